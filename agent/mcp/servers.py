"""All servers of the operator: they provide tools for each turn and are closed with the studio.

Their answers are converted to the form of the studio's own tools: text and JSON, and verified pictures.
"""

from __future__ import annotations

import asyncio
import base64
import json
import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mcp_types import (
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResourceContents,
)
from pydantic import JsonValue, SecretStr

from agent.errors import AivistaError
from agent.imaging.intake import take_in_image
from agent.mcp.connection import CallFailed, Connection
from agent.mcp.states import ServerState
from agent.mcp.tool_listing import Offer, Pins
from agent.mcp_config import McpServer
from agent.messages import ImageOrigin, ImagePart
from agent.providers.base import PictureBytes
from agent.redaction import object_without_secrets
from agent.tools.base import Arguments, Reason, Tool, ToolAnswer, ToolContext

_MOST_PICTURES = 8
_MOST_TOOLS = 64


def source_of(server: str) -> str:
    """Return the origin with which an answer of the server is marked."""
    return f"mcp:{server}"


async def answer_of(
    result: CallToolResult, server: str, images: PictureBytes, secrets: Sequence[SecretStr]
) -> ToolAnswer:
    """Return the answer for the model; content that cannot be shown to it is listed in `left_out`.

    Pictures are decoded and encoded again before they are shown. `secrets` are removed everywhere: a server may send
    back the keys that it was given.
    """
    gathered = _Gathered(images)
    for block in result.content:
        await gathered.add(block)
    text = "\n\n".join(one for one in gathered.texts if one)
    if result.is_error:
        content: dict[str, JsonValue] = {"error": text or "The server says that it failed, and not why."}
    else:
        content = {"text": text} if text else {}
        structured = result.structured_content
        if structured is not None and not _says_the_same(text, structured):
            content["result"] = structured
    if gathered.left_out:
        content["left_out"] = list(gathered.left_out)
    # Checked first: if no secret is present, text that only looks like one is left as it is.
    whole = json.dumps(content, ensure_ascii=False)
    holds_any = any(json.dumps(one.get_secret_value(), ensure_ascii=False)[1:-1] in whole for one in secrets)
    shown = object_without_secrets(content, secrets) if holds_any else content
    return ToolAnswer(shown, tuple(gathered.pictures), source=source_of(server))


@dataclass
class _Gathered:
    images: PictureBytes
    texts: list[str] = field(default_factory=list)
    pictures: list[ImagePart] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)

    async def add(self, block: ContentBlock) -> None:
        match block:
            case TextContent():
                self.texts.append(block.text)
            case ImageContent():
                await self._add_picture(block.data, "a picture")
            case ResourceLink():
                self.texts.append(f"{block.title or block.name}: {block.uri}")
            case EmbeddedResource(resource=TextResourceContents() as file):
                self.texts.append(f"{file.uri}\n{file.text}")
            case EmbeddedResource(resource=BlobResourceContents() as file) if _is_picture(file.mime_type):
                await self._add_picture(file.blob, file.uri)
            case EmbeddedResource(resource=file):
                self.left_out.append(f"{file.uri}: a file of type {file.mime_type or 'unknown'}")
            case AudioContent():
                self.left_out.append("a sound")

    async def _add_picture(self, encoded: str, name: str) -> None:
        if len(self.pictures) >= _MOST_PICTURES:
            self.left_out.append(f"{name}: there are more than {_MOST_PICTURES} pictures")
            return
        try:
            clean = await take_in_image(base64.b64decode(encoded, validate=True), name)
        except ValueError:
            self.left_out.append(f"{name}: it is not encoded as a picture")
        except AivistaError as error:
            self.left_out.append(error.info.message)
        else:
            part = await self.images.write(clean.data, clean.mime_type, ImageOrigin.UPLOADED)
            measured = {"width": clean.width, "height": clean.height, "bit_depth": clean.bit_depth}
            self.pictures.append(part.model_copy(update=measured))


def _is_picture(mime_type: str | None) -> bool:
    return (mime_type or "").lower().startswith("image/")


def _says_the_same(text: str, structured: Any) -> bool:
    """Return whether the text is a copy of the structured content as JSON, which servers send for older clients."""
    try:
        return bool(json.loads(text) == structured)
    # The text may be nested more deeply than Python reads.
    except (ValueError, RecursionError):
        return False


_log = logging.getLogger(__name__)


class McpServers:
    """The usable servers, in the order of the operator's file.

    `inherited` is the part of our environment that their programs get; `taken` are names that no tool may have.
    """

    def __init__(
        self, servers: Mapping[str, McpServer], *, home: Path, inherited: Mapping[str, str], taken: Collection[str]
    ) -> None:
        self._pins = Pins(home)
        self._connections = tuple(
            Connection(name, server, inherited=inherited, pins=self._pins, taken=taken)
            for name, server in servers.items()
        )
        self._logged: frozenset[str] = frozenset()

    def ensure_connected(self) -> None:
        """Connect unconnected servers in the background, and refresh old lists of tools of the connected ones."""
        for one in self._connections:
            one.ensure_connected()

    async def tools(self, wait_s: float) -> dict[str, Tool]:
        """Return the tools of the connected servers, by the names that models use.

        Waits up to `wait_s` for servers that are being connected; the tools of a slower server are there at a later
        turn. Tools of a lost server are included: they are not offered, and a call answers that the server is away.
        """
        self.ensure_connected()
        await self._wait(wait_s)
        offered = [(offer, one) for one in self._connections for offer in one.offers]
        left_out = frozenset(offer.declaration.name for offer, _ in offered[_MOST_TOOLS:])
        if left_out and left_out != self._logged:
            _log.warning("more than %d tools of MCP servers; left out: %s", _MOST_TOOLS, ", ".join(sorted(left_out)))
        self._logged = left_out
        lost = [(offer, one) for one in self._connections for offer in one.away]
        return {
            **{offer.declaration.name: away_tool_of(offer, one) for offer, one in lost},
            **{offer.declaration.name: tool_of(offer, one, self._pins) for offer, one in offered[:_MOST_TOOLS]},
        }

    def states(self) -> dict[str, ServerState]:
        """Return the state of each server, by its name."""
        return {one.name: one.state for one in self._connections}

    async def aclose(self) -> None:
        """Close every connection and end every started program; all at once, in a second or two."""
        await asyncio.gather(*(one.aclose() for one in self._connections))

    async def _wait(self, seconds: float) -> None:
        waits = {asyncio.ensure_future(one.settled()): one for one in self._connections}
        try:
            _, late = await asyncio.wait(waits, timeout=max(0.0, seconds))
            for one in late:
                waits[one].wait_no_longer()
        finally:
            for wait in waits:
                wait.cancel()


def tool_of(offer: Offer, connection: Connection, pins: Pins) -> Tool:
    """Return the tool for an offer, with its rule about calls that wait for the user's click.

    A call waits when the tool has changed since it was first seen or last allowed, when it does not declare itself
    read-only, and when the turn is tainted and the server is not trusted.
    """

    async def rule(arguments: Arguments, context: ToolContext) -> Reason | None:
        if pins.is_changed(offer.server, offer.tool, offer.fingerprint):
            await pins.ask(offer.server, offer.tool, offer.fingerprint)
            return "was_changed"
        is_doubtful = context.trust.is_tainted and not connection.server.trusted
        return "may_change_something" if is_doubtful or not offer.is_read_only else None

    async def answer(arguments: Arguments, context: ToolContext) -> ToolAnswer:
        # The tool may have changed between the question and the click.
        if not await pins.allow(offer.server, offer.tool, offer.fingerprint):
            return _failed(offer, f"{offer.declaration.name} has changed since the person was asked. Call it again.")
        try:
            result = await connection.call(offer.tool, arguments)
        except CallFailed as failure:
            return _failed(offer, str(failure))
        return await answer_of(result, offer.server, context.images, connection.server.secrets)

    return Tool(offer.declaration, answer, rule, server=offer.server, own_name=offer.tool)


def away_tool_of(offer: Offer, connection: Connection) -> Tool:
    """Return the tool of a server that is not connected: a model may still call it, as it did before."""

    async def answer(arguments: Arguments, context: ToolContext) -> ToolAnswer:
        return _failed(offer, f"The server {connection.name} is away. Go on without it.")

    return Tool(offer.declaration, answer, server=offer.server, own_name=offer.tool, is_offered=False)


def _failed(offer: Offer, sentence: str) -> ToolAnswer:
    # An error message may contain text of the server.
    return ToolAnswer({"error": sentence}, source=source_of(offer.server))

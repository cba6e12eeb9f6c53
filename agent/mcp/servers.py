"""The operator's servers together: asked for their tools at each turn, and closed with the studio. What a
tool of theirs answered is told as the studio's own tools tell it: words and JSON, and pictures that were looked at."""

from __future__ import annotations

import asyncio
import base64
import binascii
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
    """Return what an answer of the server is marked with as its origin."""
    return f"mcp:{server}"


async def answer_of(
    result: CallToolResult, server: str, images: PictureBytes, secrets: Sequence[SecretStr]
) -> ToolAnswer:
    """Return the answer for the model; what cannot be shown to it is named in `left_out`.

    A picture is decoded and written anew before anybody sees it. `secrets` are taken out wherever they stand: a server
    may send back what it was given.
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
    shown = object_without_secrets(content, secrets) if _holds_any(content, secrets) else content
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
        except binascii.Error:
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
    """Return whether the text is the same JSON once more, as servers write it for older clients."""
    try:
        return bool(json.loads(text) == structured)
    except ValueError:
        return False


def _holds_any(content: dict[str, JsonValue], secrets: Sequence[SecretStr]) -> bool:
    # Looked for first: without one of them, what only looks like a secret is the server's business.
    whole = json.dumps(content, ensure_ascii=False)
    return any(json.dumps(one.get_secret_value(), ensure_ascii=False)[1:-1] in whole for one in secrets)


_log = logging.getLogger(__name__)


class McpServers:
    """Every server that may be used, in the order of the operator's file.

    `inherited` is what their programs get of our environment; `taken` are names that no tool of theirs may have.
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
        """Connect in the background what is not connected, and have what is looked at anew if that was long ago."""
        for one in self._connections:
            one.ensure_connected()

    async def tools(self, wait_s: float) -> dict[str, Tool]:
        """Return the tools of the servers that are connected, by the names that models call them by.

        It waits so long for servers that are just being connected; one that needs longer comes in at a later turn.
        Those of a server that was lost are there as well: they are not offered, and a call is told that it is away.
        """
        self.ensure_connected()
        await self._wait(wait_s)
        offered = [(offer, one) for one in self._connections for offer in one.offers]
        self._log_left_out(frozenset(offer.declaration.name for offer, _ in offered[_MOST_TOOLS:]))
        lost = [(offer, one) for one in self._connections for offer in one.away]
        return {
            **{offer.declaration.name: away_tool_of(offer, one) for offer, one in lost},
            **{offer.declaration.name: tool_of(offer, one, self._pins) for offer, one in offered[:_MOST_TOOLS]},
        }

    def states(self) -> dict[str, ServerState]:
        """Return how it stands with each server, by its name."""
        return {one.name: one.state for one in self._connections}

    async def aclose(self) -> None:
        """End every connection, and every program that was started; all at once, in a second or two."""
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

    def _log_left_out(self, left_out: frozenset[str]) -> None:
        if left_out and left_out != self._logged:
            _log.warning("more than %d tools of MCP servers; left out: %s", _MOST_TOOLS, ", ".join(sorted(left_out)))
        self._logged = left_out


def tool_of(offer: Offer, connection: Connection, pins: Pins) -> Tool:
    """Return the tool. Its calls wait for a click when it is not what it was when it was seen first or allowed last;
    when it does not say that it only reads; and, of a server that is not trusted, once the turn is tainted."""

    async def rule(arguments: Arguments, context: ToolContext) -> Reason | None:
        if pins.is_changed(offer.server, offer.tool, offer.fingerprint):
            await pins.ask(offer.server, offer.tool, offer.fingerprint)
            return "was_changed"
        if not offer.is_read_only:
            return "may_change_something"
        is_doubtful = context.trust.is_tainted and not connection.server.trusted
        return "may_change_something" if is_doubtful else None

    async def answer(arguments: Arguments, context: ToolContext) -> ToolAnswer:
        # Between the question and the click the server may have become another one.
        if not await pins.allow(offer.server, offer.tool, offer.fingerprint):
            return _failed(offer, f"{offer.declaration.name} has changed since the person was asked. Call it again.")
        try:
            result = await connection.call(offer.tool, arguments)
        except CallFailed as failure:
            return _failed(offer, str(failure))
        return await answer_of(result, offer.server, context.images, connection.server.secrets)

    return Tool(offer.declaration, answer, rule, server=offer.server, own_name=offer.tool)


def away_tool_of(offer: Offer, connection: Connection) -> Tool:
    """Return the tool of a server that is not connected now: a model may call it still, as it did before."""

    async def answer(arguments: Arguments, context: ToolContext) -> ToolAnswer:
        return _failed(offer, f"The server {connection.name} is away. Go on without it.")

    return Tool(offer.declaration, answer, server=offer.server, own_name=offer.tool, is_offered=False)


def _failed(offer: Offer, sentence: str) -> ToolAnswer:
    # What an error says may be the server's words.
    return ToolAnswer({"error": sentence}, source=source_of(offer.server))

"""What a tool of a server answered, as the studio's tools answer: words and JSON, and pictures that were looked at."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
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
from agent.messages import ImageOrigin, ImagePart
from agent.providers.base import PictureBytes
from agent.redaction import object_without_secrets
from agent.tools.base import ToolAnswer

_MOST_PICTURES = 8


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

"""Earlier pictures: the text model sees placeholders for them and can load the pictures again."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from hashlib import sha256
from typing import TYPE_CHECKING

from pydantic import JsonValue

from agent.conversation import Conversation
from agent.errors import RequestRefused
from agent.messages import ContentPart, ImageOrigin, ImagePart, PromptMessage, Role, TextPart, ToolResultPart
from agent.pictures import Picture

if TYPE_CHECKING:
    from agent.storage.cache import ByteCache

TOOL_NAME = "get_history_image"
_MIN_ID_LENGTH = 8
_HEX = re.compile(r"[0-9a-f]+")
_ID = re.compile(r"\[?\s*(?:picture:)?\s*(?:history_)?([^\]\s]*)")
_ORIGIN_WORDS = {
    ImageOrigin.UPLOADED: "uploaded by the user",
    ImageOrigin.GENERATED: "generated",
    ImageOrigin.EDITED: "edited",
}

ReadImage = Callable[[ImagePart], Awaitable[bytes]]
WriteImage = Callable[[bytes, str, ImageOrigin], Awaitable[ImagePart]]


def replace_history_images(messages: Sequence[PromptMessage]) -> Sequence[PromptMessage]:
    """Return the messages as the text model sees them, with placeholders for the pictures before the last prompt.

    A placeholder is `[Picture:history_<md5>]` followed by the picture's handle and origin in words; in a tool result it
    is under `pictures`. Messages without such pictures are returned as the same objects, and so is the whole sequence
    if it has none. Thoughts are not changed, because they are not sent again.
    """
    last_prompt = max((n for n, message in enumerate(messages) if message.role is Role.PROMPT), default=0)
    past = [(n, message) for n, message in enumerate(messages[:last_prompt]) if _has_pictures(message)]
    if not past:
        return messages
    replaced = list(messages)
    for n, message in past:
        replaced[n] = message.model_copy(update={"parts": tuple(map(_without_pictures, message.parts))})
    return tuple(replaced)


async def fetch_history_image(
    image_id: str, conversation: Conversation, cache: ByteCache, read: ReadImage, write: WriteImage
) -> ToolResultPart:
    """Return the picture of a placeholder as a tool result, with the picture itself in `images`.

    `image_id` is the MD5 or at least its first eight characters, with or without `history_` and `[Picture:…]`. A
    missing file is restored with `write` from the cache, which contains recently requested pictures. The result is an
    error with a message if the id is too short, not hexadecimal, ambiguous or unknown, or if the picture is gone. Only
    pictures of this conversation are returned.
    """
    match = _ID.match(image_id.strip().lower())
    found = _find(match[1] if match else "", conversation)
    if isinstance(found, str):
        return _refusal(found)
    if not await _is_at_hand(found.image, cache, read, write):
        return _refusal(f"Picture {found.handle} has expired and its file is gone. Ask the user to add it again.")
    image = found.image.unsigned().model_copy(update={"handle": found.handle})
    content: dict[str, JsonValue] = {
        "image_id": f"history_{image.md5}",
        "handle": found.handle,
        "origin": _ORIGIN_WORDS[image.origin],
        "width": image.width,
        "height": image.height,
        "size_bytes": image.size_bytes,
    }
    return ToolResultPart(name=TOOL_NAME, content=content, images=(image,))


def placeholder(image: ImagePart) -> str:
    """Return the placeholder text for an earlier picture."""
    words = ", ".join(filter(None, (image.handle, _ORIGIN_WORDS[image.origin])))
    return f"[Picture:history_{image.md5}] ({words})"


def _has_pictures(message: PromptMessage) -> bool:
    return any(
        (isinstance(part, ImagePart) and not part.is_thought) or (isinstance(part, ToolResultPart) and part.images)
        for part in message.parts
    )


def _without_pictures(part: ContentPart) -> ContentPart:
    if isinstance(part, ImagePart) and not part.is_thought:
        return TextPart(text=placeholder(part))
    if not isinstance(part, ToolResultPart) or not part.images:
        return part
    before = part.content.get("pictures", [])
    stated = before if isinstance(before, list) else [before]
    pictures: list[JsonValue] = [*stated, *map(placeholder, part.images)]
    return part.model_copy(update={"content": {**part.content, "pictures": pictures}, "images": ()})


async def _is_at_hand(image: ImagePart, cache: ByteCache, read: ReadImage, write: WriteImage) -> bool:
    """Return whether the picture's file can be read or restored, and renew the picture in the cache."""
    cached = await cache.get(image.md5, is_renewed=True)
    try:
        data = await read(image)
    except RequestRefused:
        # The cache has what models receive; for a large picture that is a reduced copy, which cannot restore the file.
        if cached is None or sha256(cached).hexdigest() != image.digest:
            return False
        await write(cached, image.mime_type, image.origin)
        return True
    if cached is None:
        await cache.put(image.md5, data)
    return True


def _find(wanted: str, conversation: Conversation) -> Picture | str:
    """Return the picture (the newest of identical ones) whose MD5 starts with `wanted`, or an error for the model."""
    if not _HEX.fullmatch(wanted):
        return "That is not an image id. Give the hexadecimal md5 of a [Picture:history_<md5>] placeholder."
    if len(wanted) < _MIN_ID_LENGTH:
        return f"The image id {wanted} is too short. Give all of the md5 of the placeholder."
    matches = {picture.image.md5: picture for picture in conversation.pictures if picture.image.md5.startswith(wanted)}
    if not matches:
        return f"This conversation holds no picture {wanted[:32]}."
    if len(matches) > 1:
        return f"The image id {wanted} fits several pictures. Give all of the md5 of the placeholder."
    return next(iter(matches.values()))


def _refusal(sentence: str) -> ToolResultPart:
    return ToolResultPart(name=TOOL_NAME, content={"error": sentence}, is_error=True)

"""Large thought signatures, taken out of messages before they become rows and put back when they are read.

An image signature is 1.1-1.5 MB of base64, more than the picture itself: it is kept as a blob.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence

from pydantic import BaseModel, TypeAdapter

from agent.errors import StorageFailure
from agent.messages import ContentPart, PromptMessage, SignedPart

LARGE_BYTES = 4096

_log = logging.getLogger(__name__)


class Place(BaseModel):
    """Where a signature stood: the message's and the part's index, and the digest of its blob."""

    message: int
    part: int
    digest: str


PLACES = TypeAdapter(tuple[Place, ...])


def large_signatures(messages: Iterable[PromptMessage]) -> list[bytes]:
    """Return the signatures that are too large for a row, in order."""
    return [
        part.thought_signature
        for message in messages
        for part in message.parts
        if isinstance(part, SignedPart)
        if part.thought_signature is not None and len(part.thought_signature) > LARGE_BYTES
    ]


async def kept_apart(
    messages: Sequence[PromptMessage], write: Callable[[bytes], Awaitable[str]]
) -> tuple[tuple[PromptMessage, ...], tuple[Place, ...]]:
    """Return the messages as `take_out` does; `write` makes a blob of each signature and returns its digest.

    To be done off the thread of the database: others' turns wait for that one.
    """
    return take_out(messages, [await write(signature) for signature in large_signatures(messages)])


def take_out(
    messages: Sequence[PromptMessage], digests: Sequence[str]
) -> tuple[tuple[PromptMessage, ...], tuple[Place, ...]]:
    """Return the messages without their large signatures, and the places; `digests` name the blobs, in order."""
    if not digests:
        return tuple(messages), ()
    waiting = iter(digests)
    places: list[Place] = []
    light: list[PromptMessage] = []
    for m, message in enumerate(messages):
        parts = list(message.parts)
        for p, part in enumerate(parts):
            if not isinstance(part, SignedPart) or len(part.thought_signature or b"") <= LARGE_BYTES:
                continue
            places.append(Place(message=m, part=p, digest=next(waiting)))
            parts[p] = part.model_copy(update={"thought_signature": None})
        light.append(message.model_copy(update={"parts": tuple(parts)}))
    return tuple(light), tuple(places)


def put_back(
    messages: Sequence[PromptMessage], places: Iterable[Place], read: Callable[[str], bytes]
) -> tuple[PromptMessage, ...]:
    """Return the messages as they were before `take_out`.

    A part whose blob is lost comes back unsigned: its picture can still be sent, but not as the model's own.
    """
    whole = list(messages)
    for place in places:
        message = whole[place.message]
        parts = list(message.parts)
        parts[place.part] = _signed(parts[place.part], place.digest, read)
        whole[place.message] = message.model_copy(update={"parts": tuple(parts)})
    return tuple(whole)


def _signed(part: ContentPart, digest: str, read: Callable[[str], bytes]) -> ContentPart:
    try:
        return part.model_copy(update={"thought_signature": read(digest)})
    except StorageFailure:
        _log.warning("a thought signature is lost (blob %s)", digest[:8])
        return part.model_copy(update={"signed_by": None})

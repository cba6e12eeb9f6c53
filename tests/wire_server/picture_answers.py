"""What an image model can be told to answer."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from tests.wire_server.answers import Grounding, Text, thinking
from tests.wire_server.models import nearest_ratio, pixels
from tests.wire_server.pictures import look_at, paint
from tests.wire_server.refusals import Json
from tests.wire_server.request import WireRequest
from tests.wire_server.signatures import HUGE_BYTES, PICTURE_BYTES
from tests.wire_server.steps import Answer, Asked, Piece, Step


@dataclass(frozen=True)
class PictureAnswer(Answer):
    """A generated picture, as big as was asked unless told otherwise, signed as image models sign.

    `data` gives the picture's bytes; `least_bytes` makes a painted one heavy; `is_huge` gives the signatures their
    real weight of 1.2 MB of base64 each; `drafts` come first as thoughts when thoughts were asked for; `count` is
    how many pictures the one answer brings. `is_thought` marks them as thoughts; `declared` is the type that they are
    said to have. Without `has_details` its tokens are counted, but not as those of a picture.
    """

    is_for_images: ClassVar[bool] = True

    width: int | None = None
    height: int | None = None
    text_before: str = ""
    text_after: str = ""
    mime: str = "image/jpeg"
    data: bytes | None = None
    least_bytes: int = 0
    signature_bytes: int = PICTURE_BYTES
    is_huge: bool = False
    count: int = 1
    drafts: int = 0
    is_thought: bool = False
    declared: str | None = None
    thoughts: str = ""
    grounding: Grounding | None = None
    has_details: bool = True

    def steps(self, asked: Asked) -> Iterator[Step]:
        size_bytes = HUGE_BYTES if self.is_huge else self.signature_bytes
        yield from thinking(asked, self.thoughts)
        for number in range(self.drafts if asked.request.shows_thoughts else 0):
            yield Piece(({**self._part(asked, f"draft {number}"), "thought": True},))
        if self.text_before:
            yield Piece((asked.signed({"text": self.text_before}, size_bytes),))
        tokens = asked.request.known_model.image_tokens.get(_size(asked.request), 1120)
        for number in range(self.count):
            part = self._part(asked, f"{number}")
            part = {**part, "thought": True} if self.is_thought else asked.signed(part, size_bytes)
            yield Piece((part,), image_tokens=tokens, has_details=self.has_details)
        if self.text_after:
            yield Piece(({"text": self.text_after},))
        metadata = self.grounding.metadata() if self.grounding else None
        yield Piece(({"text": ""},), finish_reason="STOP", grounding=metadata)

    def _part(self, asked: Asked, name: str) -> Json:
        data = self.data
        if data is None:
            width, height = _frame(asked.request)
            subject = f"{asked.request.prompt} {asked.request.number} {name}"
            data = paint(self.width or width, self.height or height, self.mime, subject, self.least_bytes)
        return {"inlineData": {"mimeType": self.declared or self.mime, "data": base64.b64encode(data).decode()}}


@dataclass(frozen=True)
class CorruptPicture(Answer):
    """A picture that breaks off halfway, properly signed."""

    is_for_images: ClassVar[bool] = True

    mime: str = "image/jpeg"

    def steps(self, asked: Asked) -> Iterator[Step]:
        whole = paint(256, 256, self.mime, asked.request.prompt)
        return PictureAnswer(data=whole[: len(whole) // 2], mime=self.mime).steps(asked)


@dataclass(frozen=True)
class TextOnly(Answer):
    """Words instead of a picture, ending in STOP: a refusal, or a question back."""

    is_for_images: ClassVar[bool] = True

    text: str = "I can't create that picture."

    def steps(self, asked: Asked) -> Iterator[Step]:
        return Text(self.text, signed="none").steps(asked)


def _size(request: WireRequest) -> str:
    size: str = request.config.get("imageConfig", {}).get("imageSize", "1K")
    return size


def _frame(request: WireRequest) -> tuple[int, int]:
    """Return the pixels asked for; without a ratio, the last input picture's, else a square."""
    ratio = request.config.get("imageConfig", {}).get("aspectRatio")
    if ratio is None:
        ratio = "1:1"
        inputs = request.blobs
        facts = look_at(inputs[-1][1]["data"]) if inputs else None
        if facts is not None:
            ratio = nearest_ratio(facts.width, facts.height, request.known_model.ratios)
    return pixels(ratio, _size(request))

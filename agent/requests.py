"""What a user sends: the request for a turn, and the decision about a plan."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

from pydantic import Field

from agent.messages import Asked, ImagePart, ToolCallPart, whole_characters
from agent.pictures import OriginalFile
from agent.settings import TurnSettings

# The value of `TurnRequest.editing` when no picture is to be changed.
NO_PICTURE = "none"
_UPLOAD = re.compile(r"upload:([0-9]{1,4})")


@dataclass(frozen=True)
class Mask:
    """The part of a picture that may change: an image of the picture's shape (white = change) and the picture's handle.

    The handle may be `upload:N`: the Nth picture of the same request, which has no handle yet. `feather_px` is the
    width of the soft edge inside the mask, in pixels of a picture 1024 wide; None leaves the choice to the studio.
    """

    image: bytes
    handle: str
    feather_px: int | None = None


@dataclass(frozen=True)
class Expansion:
    """How far to extend a picture on each side, in fractions of its width and height.

    As in a mask, the handle may be `upload:N`.
    """

    handle: str
    left: float = 0.0
    top: float = 0.0
    right: float = 0.0
    bottom: float = 0.0


@dataclass(frozen=True)
class KeptUpload:
    """A picture that was uploaded before and is sent again: the stored image is used, the file is not decoded again."""

    name: str
    image: ImagePart
    original: OriginalFile | None = None


UploadSource: TypeAlias = "bytes | Path | tuple[str, bytes] | KeptUpload"


def upload_number(handle: str) -> int | None:
    """Return N of `upload:N`, where 1 is the first picture of a request, or None for any other handle.

    It does not check that the request has N pictures.
    """
    match = _UPLOAD.fullmatch(handle)
    return int(match[1]) if match else None


@dataclass(frozen=True)
class TurnRequest:
    """The request for a turn: the user's text, pictures, and settings for this turn.

    `images` takes bytes, paths, pairs of a file name and bytes, or `KeptUpload`. `editing` is the handle of the picture
    to change; with `none` the turn makes a new picture and uses only those earlier pictures that the text names;
    without it the turn changes the newest. `references` are the handles of the reference pictures; `roles` maps some of
    these handles to their role, a `agent.pictures.ReferenceRole` (subject, product, face, style, palette, pose, layout,
    background, text). With a `mask`, nothing outside of it changes; several masks belong to one picture each, and each
    picture is changed separately. With `expand`, the picture itself does not change. Two requests with the same
    `request_id` run once, also after a restart. `instead_of` is a turn that the user edited: the new turn becomes a
    branch beside it. `maximum_usd` is the maximum cost shown to the user: the turn asks before it exceeds that; None
    uses the studio's own estimate. `repeats` is a tool call that is carried out unchanged, without the planner. Lone
    surrogates in `text` and `request_id` become U+FFFD.
    """

    text: str
    images: Sequence[UploadSource] = ()
    mask: Mask | Sequence[Mask] | None = None
    expand: Expansion | None = None
    settings: TurnSettings = field(default_factory=TurnSettings)
    editing: str | None = None
    references: tuple[str, ...] = ()
    roles: Mapping[str, str] = field(default_factory=dict)
    request_id: str | None = None
    instead_of: str | None = None
    maximum_usd: float | None = None
    repeats: ToolCallPart | None = None

    @property
    def marked(self) -> tuple[str, ...]:
        """The handles of the marked pictures, the one to change first."""
        return (*((self.editing,) if self.editing not in (None, "", NO_PICTURE) else ()), *self.references)

    @property
    def masks(self) -> tuple[Mask, ...]:
        """The masks of the request, one per picture."""
        if self.mask is None:
            return ()
        return (self.mask,) if isinstance(self.mask, Mask) else tuple(self.mask)

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", whole_characters(self.text))
        if self.request_id is not None:
            object.__setattr__(self, "request_id", whole_characters(self.request_id))


class PlanEdit(Asked):
    """The user's changes to a plan before it runs; None leaves a value as planned."""

    call: int = 0
    prompt: str | None = Field(default=None, min_length=1)
    model: Literal["flash", "pro", "both"] | None = None
    aspect_ratio: str | None = None
    resolution: str | None = None
    number_of_images: int | None = Field(default=None, ge=1, le=4)


class Decision(Asked):
    """The user's decision: run a plan, with optional changes, or drop it; or allow waiting tool calls, or not."""

    run: bool
    edits: tuple[PlanEdit, ...] = ()

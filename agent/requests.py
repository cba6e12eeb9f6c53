"""What a person sends: one request for a turn, and what they decide about a plan."""

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

# What `TurnRequest.editing` says when no picture is to be changed.
NO_PICTURE = "none"
_UPLOAD = re.compile(r"upload:([0-9]{1,4})")


@dataclass(frozen=True)
class Mask:
    """What of a picture may change: an image of the picture's shape, white = change, and the handle it belongs to.

    The handle may be `upload:N`: the Nth picture of this very request, which has no handle of its own yet.
    `feather_px` is the width of the soft edge inside the mask, in pixels of a picture 1024 wide; None leaves the
    choice to the studio.
    """

    image: bytes
    handle: str
    feather_px: int | None = None


@dataclass(frozen=True)
class Expansion:
    """How far a picture shall grow on each side, in fractions of its width and height.

    As for a mask, the handle may be `upload:N`.
    """

    handle: str
    left: float = 0.0
    top: float = 0.0
    right: float = 0.0
    bottom: float = 0.0


@dataclass(frozen=True)
class KeptUpload:
    """A picture that was uploaded before and is sent again as it is kept: it is not read anew."""

    name: str
    image: ImagePart
    original: OriginalFile | None = None


UploadSource: TypeAlias = "bytes | Path | tuple[str, bytes] | KeptUpload"


def upload_number(handle: str) -> int | None:
    """Return N of `upload:N`, where 1 is the first picture of a request, or None when the handle is no such name.

    Whether the request has so many pictures is not looked at.
    """
    match = _UPLOAD.fullmatch(handle)
    return int(match[1]) if match else None


@dataclass(frozen=True)
class TurnRequest:
    """What the person sends: words, pictures, and what they chose for this turn.

    `images` takes bytes, paths, pairs of a file name and bytes, or `KeptUpload`. `editing` is the handle of the picture
    marked to be changed; with `none` the words make a new picture and lean on no earlier one that they do not name;
    without it they are about the newest. `references` are the handles of those marked as references; `roles` says by
    handle what some of them are for, each a `agent.pictures.ReferenceRole` (subject, product, face, style, palette,
    pose, layout, background, text). With a `mask`, nothing outside of it changes; several masks are of one picture
    each, and each picture is changed by itself. With `expand`, nothing of the picture itself changes. The same
    `request_id` twice runs once, also after a restart. `instead_of` is a turn that was said otherwise: this one stands
    beside it, as a branch of its own. `maximum_usd` is the most that the person was told it can cost: the turn asks
    before it passes that; None takes what the studio reckons itself. `repeats` is a call for a picture that is carried
    out as it stands: the planner is not asked. Halves of characters in the words, and in `request_id`, become U+FFFD.
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
        """The handles of the pictures that it marks, the one to be changed first."""
        return (*((self.editing,) if self.editing not in (None, "", NO_PICTURE) else ()), *self.references)

    @property
    def masks(self) -> tuple[Mask, ...]:
        """The masks it was given, one a picture."""
        if self.mask is None:
            return ()
        return (self.mask,) if isinstance(self.mask, Mask) else tuple(self.mask)

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", whole_characters(self.text))
        if self.request_id is not None:
            object.__setattr__(self, "request_id", whole_characters(self.request_id))


class PlanEdit(Asked):
    """What the person changed in a plan before it runs; None leaves a value as it was planned."""

    call: int = 0
    prompt: str | None = Field(default=None, min_length=1)
    model: Literal["flash", "pro", "both"] | None = None
    aspect_ratio: str | None = None
    resolution: str | None = None
    number_of_images: int | None = Field(default=None, ge=1, le=4)


class Decision(Asked):
    """What the person decided about a plan: run it, with changes perhaps, or drop it; or about calls that wait for
    them: let them run or not."""

    run: bool
    edits: tuple[PlanEdit, ...] = ()

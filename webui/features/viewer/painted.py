"""What the painter on the stage sends: masks, or how far a picture shall grow, read from two hidden fields.

Whoever holds the page may send anything, so every value is held against what the painter itself can write.
"""

from __future__ import annotations

import base64
import binascii
import io
from dataclasses import dataclass
from typing import Annotated

from PIL import Image
from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from agent import MAX_PICTURES_PER_MESSAGE, NO_PICTURE, Expansion, Mask, Value, harden_pillow, upload_number
from webui.whole_json import whole_json

MAX_EDGE_PX = 1024
MAX_PNG_BYTES = 2 << 20
MIN_FEATHER_PX, MAX_FEATHER_PX = 2, 32
# On each side, as a share of the picture's width or height.
MAX_GROWTH = 4.0
# A field longer than its PNG in base64 can be is not looked at.
MAX_FIELD_CHARACTERS = MAX_PNG_BYTES * 4 // 3 + 1024
# A picture of the conversation, or the Nth of the files that are sent along.
_HANDLE = r"^(#[0-9]{1,6}[a-z]{0,3}|upload:[1-9][0-9]{0,2})$"
_PNG = b"\x89PNG\r\n\x1a\n"
_WHITE_FROM = 128


@dataclass(frozen=True)
class WireRefusal:
    """Why nothing was sent: the key of one sentence, and what it names."""

    key: str
    handle: str = ""
    marked: str = ""


@dataclass(frozen=True)
class Painted:
    """What the next message works on: the picture marked to be changed, masks of one picture each, or its growth.
    Never both.

    A picture that is only sent with the message is not marked: its mask or growth names it as `upload:N`.
    """

    editing: str = ""
    masks: tuple[Mask, ...] = ()
    expand: Expansion | None = None


class _MaskField(Value):
    """One mask as the painter writes it; of several it writes a list."""

    model_config = ConfigDict(strict=True)

    handle: str = Field(pattern=_HANDLE)
    png: str
    feather: int | None = Field(default=None, ge=MIN_FEATHER_PX, le=MAX_FEATHER_PX)


class _ExpandField(Value):
    model_config = ConfigDict(strict=True, allow_inf_nan=False)

    handle: str = Field(pattern=_HANDLE)
    left: float = Field(default=0.0, ge=0, le=MAX_GROWTH)
    top: float = Field(default=0.0, ge=0, le=MAX_GROWTH)
    right: float = Field(default=0.0, ge=0, le=MAX_GROWTH)
    bottom: float = Field(default=0.0, ge=0, le=MAX_GROWTH)


_MASKS: TypeAdapter[_MaskField | list[_MaskField]] = TypeAdapter(
    _MaskField | Annotated[list[_MaskField], Field(min_length=1, max_length=MAX_PICTURES_PER_MESSAGE)]
)


def read_painted(mask: str | None, expand: str | None, editing: str) -> Painted | WireRefusal:
    """Return what the two fields of the painter say, for a message that marks `editing` to be changed.

    An empty mask and an expansion by nothing count as none. What is painted marks its picture where none is marked
    yet, of several the first: Send may be pressed before the page has heard of the mark.
    """
    drawn = _read_masks(mask or "")
    grown = _read_expansion(expand or "")
    if isinstance(drawn, WireRefusal):
        return drawn
    if isinstance(grown, WireRefusal):
        return grown
    if drawn and grown is not None:
        return WireRefusal("painter.both")
    handles = [mask.handle for mask in drawn] or ([grown.handle] if grown else [])
    if handles and editing == NO_PICTURE:
        # Whoever paints over a picture has changed their mind.
        editing = ""
    if not handles or editing in handles:
        return Painted(editing, drawn, grown)
    if upload_number(handles[0]) is not None:
        return WireRefusal("painter.new_or_marked", marked=editing) if editing else Painted("", drawn, grown)
    return WireRefusal("painter.other_picture", handles[0], editing) if editing else Painted(handles[0], drawn, grown)


def _read_masks(text: str) -> tuple[Mask, ...] | WireRefusal:
    if not text:
        return ()
    if len(text) > MAX_FIELD_CHARACTERS:
        return WireRefusal("painter.too_large")
    try:
        fields = _MASKS.validate_json(whole_json(text))
    except ValidationError:
        return WireRefusal("painter.unreadable")
    masks = []
    for field in fields if isinstance(fields, list) else [fields]:
        image = _clean_png(field.png)
        if isinstance(image, WireRefusal):
            return image
        if image is not None:
            masks.append(Mask(image=image, handle=field.handle, feather_px=field.feather))
    return tuple(masks)


def _read_expansion(text: str) -> Expansion | WireRefusal | None:
    if not text:
        return None
    if len(text) > MAX_FIELD_CHARACTERS:
        return WireRefusal("painter.unreadable")
    try:
        field = _ExpandField.model_validate_json(whole_json(text))
    except ValidationError:
        return WireRefusal("painter.unreadable")
    expansion = Expansion(**field.model_dump())
    return expansion if any((field.left, field.top, field.right, field.bottom)) else None


def _clean_png(encoded: str) -> bytes | WireRefusal | None:
    """Return the mask as a grey PNG of one channel, without anything else the sent one held; None when it is empty."""
    try:
        data = base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        return WireRefusal("painter.unreadable")
    if len(data) > MAX_PNG_BYTES:
        return WireRefusal("painter.too_large")
    if not data.startswith(_PNG):
        return WireRefusal("painter.unreadable")
    if max(_stated_size(data)) > MAX_EDGE_PX:
        return WireRefusal("painter.too_large")
    harden_pillow()
    try:
        with Image.open(io.BytesIO(data), formats=("PNG",)) as image:
            grey = _grey(image)
    # What Pillow raises for a PNG that is damaged, cut off, or whose texts are packed to burst.
    except (OSError, SyntaxError, ValueError):
        return WireRefusal("painter.unreadable")
    if not any(grey.histogram()[_WHITE_FROM:]):
        return None
    sink = io.BytesIO()
    grey.save(sink, "PNG")
    return sink.getvalue()


def _stated_size(png: bytes) -> tuple[int, int]:
    """Return width and height as the header states them: judged before a pixel is decoded."""
    return int.from_bytes(png[16:20], "big"), int.from_bytes(png[20:24], "big")


def _grey(image: Image.Image) -> Image.Image:
    """Return brightness, black where the image is transparent, with no metadata."""
    layers = image.convert("RGBA")
    ground = Image.new("RGBA", layers.size, "black")
    ground.alpha_composite(layers)
    return ground.convert("L")

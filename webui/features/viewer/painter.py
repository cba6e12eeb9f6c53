"""What the painter on the stage sends: masks, or how far a picture shall grow, parsed from two hidden fields.

A client can send anything, so every value is checked against what the painter itself can write.
"""

from __future__ import annotations

import base64
import io
from dataclasses import dataclass
from typing import Annotated

from PIL import Image
from pydantic import ConfigDict, Field, TypeAdapter

from agent import MAX_PICTURES_PER_MESSAGE, NO_PICTURE, Expansion, Mask, Value, harden_pillow, upload_number
from webui.whole_json import whole_json

MAX_EDGE_PX = 1024
MAX_PNG_BYTES = 2 << 20
MIN_FEATHER_PX, MAX_FEATHER_PX = 2, 32
# On each side, as a share of the picture's width or height.
MAX_GROWTH = 4.0
# A field longer than its PNG in base64 can be is rejected unread.
MAX_FIELD_CHARACTERS = MAX_PNG_BYTES * 4 // 3 + 1024
# A picture of the conversation, or the Nth of the files that are sent along.
_HANDLE = r"^(#[0-9]{1,6}[a-z]{0,3}|upload:[1-9][0-9]{0,2})$"
_PNG = b"\x89PNG\r\n\x1a\n"
_WHITE_FROM = 128


@dataclass(frozen=True)
class PainterRefusal:
    """Why nothing was sent: the key of a sentence, and its parameters."""

    key: str
    handle: str = ""
    marked: str = ""


@dataclass(frozen=True)
class Painted:
    """What the next message works on: the picture marked to be changed, and masks of one picture each or an expansion,
    never both.

    A picture that is only sent with the message is not marked: its mask or expansion names it as `upload:N`.
    """

    editing: str = ""
    masks: tuple[Mask, ...] = ()
    expand: Expansion | None = None


class _TooLarge(Exception):
    """More than the painter itself can write."""


class _MaskField(Value):
    """One mask as the painter writes it; several are a list."""

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


def read_painted(mask: str | None, expand: str | None, editing: str) -> Painted | PainterRefusal:
    """Return the content of the painter's two fields, for a message that marks `editing` to be changed.

    An empty mask and an expansion by nothing count as none. A mask marks its picture if none is marked yet; of several
    masks the first does: Send may be pressed before the page knows of the mark.
    """
    try:
        drawn, grown = _read_masks(mask or ""), _read_expansion(expand or "")
    except _TooLarge:
        return PainterRefusal("painter.too_large")
    # The errors of pydantic, base64, and of Pillow for a PNG that is damaged, truncated, or whose texts are a
    # decompression bomb.
    except (OSError, SyntaxError, ValueError):
        return PainterRefusal("painter.unreadable")
    if drawn and grown is not None:
        return PainterRefusal("painter.both")
    handles = [mask.handle for mask in drawn] or ([grown.handle] if grown else [])
    if handles and editing == NO_PICTURE:
        # The user chose to make a new picture and then painted over one: the mask wins.
        editing = ""
    if not handles or editing in handles:
        return Painted(editing, drawn, grown)
    if upload_number(handles[0]) is not None:
        return PainterRefusal("painter.new_or_marked", marked=editing) if editing else Painted("", drawn, grown)
    return (
        PainterRefusal("painter.other_picture", handles[0], editing) if editing else Painted(handles[0], drawn, grown)
    )


def _read_masks(text: str) -> tuple[Mask, ...]:
    if not text:
        return ()
    if len(text) > MAX_FIELD_CHARACTERS:
        raise _TooLarge
    fields = _MASKS.validate_json(whole_json(text))
    read = [(field, _clean_png(field.png)) for field in (fields if isinstance(fields, list) else [fields])]
    masks = (Mask(image=image, handle=field.handle, feather_px=field.feather) for field, image in read if image)
    return tuple(masks)


def _read_expansion(text: str) -> Expansion | None:
    if not text:
        return None
    if len(text) > MAX_FIELD_CHARACTERS:
        raise ValueError(len(text))
    field = _ExpandField.model_validate_json(whole_json(text))
    return Expansion(**field.model_dump()) if any((field.left, field.top, field.right, field.bottom)) else None


def _clean_png(encoded: str) -> bytes:
    """Return the mask as a grey PNG of one channel without anything else from the original; empty when the mask is
    empty.

    Raises _TooLarge, and OSError, SyntaxError or ValueError for an invalid PNG.
    """
    data = base64.b64decode(encoded, validate=True)
    if len(data) > MAX_PNG_BYTES:
        raise _TooLarge
    if not data.startswith(_PNG):
        raise ValueError(data[:8])
    # Width and height from the header: checked before a pixel is decoded.
    if max(int.from_bytes(data[16:20], "big"), int.from_bytes(data[20:24], "big")) > MAX_EDGE_PX:
        raise _TooLarge
    harden_pillow()
    with Image.open(io.BytesIO(data), formats=("PNG",)) as image:
        layers = image.convert("RGBA")
    # Brightness, black where the picture is transparent, without metadata.
    ground = Image.new("RGBA", layers.size, "black")
    ground.alpha_composite(layers)
    grey = ground.convert("L")
    if not any(grey.histogram()[_WHITE_FROM:]):
        return b""
    sink = io.BytesIO()
    grey.save(sink, "PNG")
    return sink.getvalue()

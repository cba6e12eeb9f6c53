"""What the painter sends is held against what the painter can write: whoever holds the page may send anything."""

from __future__ import annotations

import base64
import io
import json
from typing import Any

from PIL import Image, PngImagePlugin

from agent import Expansion, Mask
from tests.support.cases import each_case
from tests.support.pixels import encoded, png_with_header
from webui.features.viewer.painter import (
    MAX_EDGE_PX,
    MAX_FIELD_CHARACTERS,
    MAX_GROWTH,
    Painted,
    PainterRefusal,
    read_painted,
)

UNREADABLE = PainterRefusal("painter.unreadable")
TOO_LARGE = PainterRefusal("painter.too_large")
BOX = (8, 8, 24, 24)


def png(width: int = 64, height: int = 48, box: tuple[int, int, int, int] | None = BOX, mode: str = "L") -> bytes:
    """Return a black PNG with a white box."""
    image = Image.new("RGB", (width, height), "black")
    if box:
        image.paste((255, 255, 255), box)
    return encoded(image.convert(mode))


def mask_field(data: bytes | None = None, **more: Any) -> str:
    encoded = base64.b64encode(png() if data is None else data).decode()
    return json.dumps({"handle": "#7b", "png": encoded, "feather": 8, **more})


def expand_field(**more: Any) -> str:
    return json.dumps({"handle": "#7b", "left": 0, "top": 0, "right": 0.5, "bottom": 0, **more})


def mask_of(data: bytes, **more: Any) -> Mask:
    read = read_painted(mask_field(data, **more), "", "#7b")
    assert isinstance(read, Painted), read
    [mask] = read.masks
    return mask


def with_note(text: str, **more: Any) -> bytes:
    notes = PngImagePlugin.PngInfo()
    notes.add_text("Comment", text, **more)
    return encoded(Image.new("L", (16, 16), 255), pnginfo=notes)


@each_case("mode", ["1", "L", "LA", "P", "RGB", "RGBA"])
def test_a_mask_is_read_with_its_size_its_white_and_its_soft_edge_and_nothing_but_pixels_goes_on(mode: str) -> None:
    mask = mask_of(png(mode=mode))
    assert (mask.handle, mask.feather_px) == ("#7b", 8)
    with Image.open(io.BytesIO(mask.image)) as image:
        assert (image.format, image.mode, image.size, image.getbbox()) == ("PNG", "L", (64, 48), BOX)
    glass = Image.new("RGBA", (64, 48), (255, 255, 255, 0))
    glass.paste((200, 200, 200, 255), (0, 0, 10, 10))
    with Image.open(io.BytesIO(mask_of(encoded(glass)).image)) as read:
        assert (read.getpixel((5, 5)), read.getpixel((40, 40))) == (200, 0), "grey stays grey"
    assert b"my street" in with_note("my street")
    assert b"my street" not in mask_of(with_note("my street")).image
    assert mask_of(png(MAX_EDGE_PX, 3, (0, 0, 9, 3))).image


BOTH = f"[{mask_field()},{mask_field(handle='#2')}]"


@each_case(
    ("mask", "expand", "editing", "read"),
    [
        ("", "", "", Painted()),
        (None, None, "#2", Painted("#2")),
        (mask_field(png(box=None)), "", "#7b", Painted("#7b")),
        ("", expand_field(right=0), "#7b", Painted("#7b")),
        ("", expand_field(left=0.25), "#7b", Painted("#7b", (), Expansion("#7b", left=0.25, right=0.5))),
        ("", expand_field(handle="upload:16"), "", Painted(expand=Expansion("upload:16", right=0.5))),
        (mask_field(), "", "#2", PainterRefusal("painter.other_picture", "#7b", "#2")),
        ("", expand_field(), "#2", PainterRefusal("painter.other_picture", "#7b", "#2")),
        (BOTH, "", "#3", PainterRefusal("painter.other_picture", "#7b", "#3")),
        (mask_field(handle="upload:1"), "", "#2", PainterRefusal("painter.new_or_marked", marked="#2")),
        ("", expand_field(handle="upload:1"), "#2", PainterRefusal("painter.new_or_marked", marked="#2")),
        (mask_field(), expand_field(), "#7b", PainterRefusal("painter.both")),
        ("x" * (MAX_FIELD_CHARACTERS + 1), "", "#7b", TOO_LARGE),
        *((mask_field(png(*size)), "", "#7b", TOO_LARGE) for size in ((MAX_EDGE_PX + 1, 3), (3, MAX_EDGE_PX + 1))),
        # Judged before anything is decoded.
        *(
            (mask_field(png_with_header(side, side, 8, 0, bytes(64))), "", "#7b", TOO_LARGE)
            for side in (60_000, 2**31 - 1)
        ),
    ],
)
def test_what_is_painted_is_read_or_refused_in_a_sentence(
    mask: str | None, expand: str | None, editing: str, read: Painted | PainterRefusal
) -> None:
    assert read_painted(mask, expand, editing) == read


@each_case(
    ("mask", "editing", "marked", "handles"),
    [
        (mask_field(), "", "#7b", ["#7b"]),
        (mask_field(handle="upload:2"), "", "", ["upload:2"]),
        (BOTH, "", "#7b", ["#7b", "#2"]),
        (BOTH, "#2", "#2", ["#7b", "#2"]),
    ],
)
def test_what_is_painted_marks_its_picture_where_none_is_marked_yet(
    mask: str, editing: str, marked: str, handles: list[str]
) -> None:
    read = read_painted(mask, "", editing)
    assert isinstance(read, Painted)
    assert (read.editing, [one.handle for one in read.masks]) == (marked, handles)


HANDLES = ("7b", "#7b\n", "#7B", "#../../etc", 7, "upload:0", "upload:01", "upload:1\n", "upload:-1", "#1|upload:1")


def test_what_the_painter_cannot_have_written_is_refused() -> None:
    masks = ["nonsense", "[]", "null", "7", "{}", mask_field(more=1), f"[{','.join([mask_field()] * 17)}]"]
    masks += [mask_field(handle=one) for one in HANDLES]
    masks += [mask_field(feather=one) for one in (1, 33, "8", 8.5)]
    masks += [mask_field(png=one) for one in ("", "data:image/png;base64,AAAA", "not base64!", "AAA", None)]
    pictures = [b"GIF89a" + bytes(64), b"<svg xmlns='http://www.w3.org/2000/svg'/>", png()[:-30], png()[:20]]
    pictures += [
        b"\x89PNG\r\n\x1a\n",
        b"\x89PNG\r\n\x1a\n" + bytes(200),
        encoded(Image.new("L", (16, 16), 255), "JPEG"),
    ]
    # A text that is packed to burst.
    pictures.append(with_note("x" * (70 << 20), zip=True))
    masks += [mask_field(one) for one in pictures]
    assert [text[:80] for text in masks if read_painted(text, "", "#7b") != UNREADABLE] == []
    grown = ["nonsense", "{}", expand_field(more=1), expand_field(handle="#7b "), "x" * (MAX_FIELD_CHARACTERS + 1)]
    grown += [expand_field(left=one) for one in (-0.1, MAX_GROWTH + 0.1, "0.5", True, None)]
    grown += [f'{{"handle": "#7b", "left": {one}}}' for one in ("NaN", "Infinity", "1e400")]
    assert [text[:80] for text in grown if read_painted("", text, "#7b") != UNREADABLE] == []

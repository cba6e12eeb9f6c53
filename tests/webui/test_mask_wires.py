"""What the painter sends is held against what the painter can write."""

from __future__ import annotations

import base64
import io
import json
import struct
import zlib
from typing import Any

import pytest
from PIL import Image, PngImagePlugin

from agent.requests import Expansion, Mask
from webui.mask_wires import MAX_EDGE_PX, MAX_FIELD_CHARACTERS, MAX_GROWTH, Painted, WireRefusal, read_painted

UNREADABLE = WireRefusal("painter.unreadable")
TOO_LARGE = WireRefusal("painter.too_large")


def png(
    width: int = 64, height: int = 48, box: tuple[int, int, int, int] | None = (8, 8, 24, 24), mode: str = "RGB"
) -> bytes:
    """Return a black PNG with a white box."""
    image = Image.new(mode, (width, height), "black")
    if box:
        image.paste("white", box)
    sink = io.BytesIO()
    image.save(sink, "PNG")
    return sink.getvalue()


def mask_field(data: bytes | None = None, **more: Any) -> str:
    encoded = base64.b64encode(png() if data is None else data).decode()
    return json.dumps({"handle": "#7b", "png": encoded, "feather": 8, **more})


def expand_field(**more: Any) -> str:
    return json.dumps({"handle": "#7b", "left": 0, "top": 0, "right": 0.5, "bottom": 0, **more})


def mask_of(read: Painted | WireRefusal) -> Mask:
    assert isinstance(read, Painted)
    [mask] = read.masks
    return mask


def pixels_of(mask: Mask) -> Image.Image:
    return Image.open(io.BytesIO(mask.image))


def bomb(width: int, height: int) -> bytes:
    """Return a PNG of a few bytes whose header states this size."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + header + chunk(b"IDAT", zlib.compress(b"\0" * 64)) + chunk(b"IEND", b"")


def test_nothing_painted_leaves_the_mark_as_it_is() -> None:
    assert read_painted("", "", "") == Painted()
    assert read_painted(None, None, "#2") == Painted("#2")


def test_a_mask_is_read_with_its_size_its_white_and_its_soft_edge() -> None:
    mask = mask_of(read_painted(mask_field(), "", "#7b"))
    assert (mask.handle, mask.feather_px) == ("#7b", 8)
    with pixels_of(mask) as image:
        assert (image.format, image.mode, image.size) == ("PNG", "L", (64, 48))
        assert image.getbbox() == (8, 8, 24, 24)
        assert image.getextrema() == (0, 255)


def test_a_mask_without_a_soft_edge_leaves_it_to_the_studio() -> None:
    field = json.dumps({"handle": "#7b", "png": base64.b64encode(png()).decode()})
    assert mask_of(read_painted(field, "", "#7b")).feather_px is None


def test_what_is_painted_marks_its_picture_where_none_is_marked_yet() -> None:
    read = read_painted(mask_field(), "", "")
    assert isinstance(read, Painted)
    assert read.editing == "#7b"


def test_a_mask_of_another_picture_than_the_marked_one_is_refused() -> None:
    assert read_painted(mask_field(), "", "#2") == WireRefusal("painter.other_picture", "#7b", "#2")
    assert read_painted("", expand_field(), "#2") == WireRefusal("painter.other_picture", "#7b", "#2")


def test_of_several_masks_the_first_marks_its_picture_and_the_marked_one_is_among_them() -> None:
    both = f"[{mask_field()},{mask_field(handle='#2')}]"
    for editing, marked in (("", "#7b"), ("#2", "#2"), ("#7b", "#7b")):
        read = read_painted(both, "", editing)
        assert isinstance(read, Painted)
        assert (read.editing, [mask.handle for mask in read.masks]) == (marked, ["#7b", "#2"])
    assert read_painted(both, "", "#3") == WireRefusal("painter.other_picture", "#7b", "#3")
    assert read_painted("[]", "", "") == UNREADABLE
    assert read_painted(f"[{','.join([mask_field()] * 17)}]", "", "") == UNREADABLE


def test_what_is_painted_over_a_picture_of_the_message_marks_none_of_the_conversation() -> None:
    read = read_painted(mask_field(handle="upload:2"), "", "")
    assert mask_of(read).handle == "upload:2"
    assert isinstance(read, Painted)
    assert read.editing == ""
    assert read_painted("", expand_field(handle="upload:16"), "") == Painted(expand=Expansion("upload:16", right=0.5))


def test_a_picture_of_the_message_and_a_marked_one_are_not_changed_at_once() -> None:
    refusal = WireRefusal("painter.new_or_marked", marked="#2")
    assert read_painted(mask_field(handle="upload:1"), "", "#2") == refusal
    assert read_painted("", expand_field(handle="upload:1"), "#2") == refusal


def test_a_black_mask_is_none() -> None:
    assert read_painted(mask_field(png(box=None)), "", "#7b") == Painted("#7b")


def test_grey_stays_grey_and_what_is_transparent_stays_as_it_is() -> None:
    image = Image.new("RGBA", (64, 48), (255, 255, 255, 0))
    image.paste((200, 200, 200, 255), (0, 0, 10, 10))
    sink = io.BytesIO()
    image.save(sink, "PNG")
    with pixels_of(mask_of(read_painted(mask_field(sink.getvalue()), "", "#7b"))) as read:
        assert (read.getpixel((5, 5)), read.getpixel((40, 40))) == (200, 0)


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGBA"])
def test_every_mode_of_png_is_read(mode: str) -> None:
    data = png() if mode != "P" else b""
    with Image.open(io.BytesIO(data or png())) as image:
        sink = io.BytesIO()
        image.convert(mode).save(sink, "PNG")
    with pixels_of(mask_of(read_painted(mask_field(sink.getvalue()), "", "#7b"))) as read:
        assert read.getbbox() == (8, 8, 24, 24)


def test_nothing_but_pixels_goes_on() -> None:
    notes = PngImagePlugin.PngInfo()
    notes.add_text("Comment", "my street and number")
    sink = io.BytesIO()
    Image.new("L", (16, 16), 255).save(sink, "PNG", pnginfo=notes)
    assert b"my street" in sink.getvalue()
    assert b"my street" not in mask_of(read_painted(mask_field(sink.getvalue()), "", "#7b")).image


def test_a_mask_that_the_painter_cannot_have_written_is_refused() -> None:
    texts = [
        "nonsense",
        "[]",
        "null",
        "7",
        "{}",
        mask_field(more=1),
        mask_field(handle="7b"),
        mask_field(handle="#7b\n"),
        mask_field(handle="#7B"),
        mask_field(handle="#../../etc"),
        mask_field(handle=7),
        mask_field(handle="upload:0"),
        mask_field(handle="upload:01"),
        mask_field(handle="upload:1\n"),
        mask_field(handle="upload:-1"),
        mask_field(handle="#1|upload:1"),
        mask_field(feather=1),
        mask_field(feather=33),
        mask_field(feather="8"),
        mask_field(feather=8.5),
        mask_field(png=""),
        mask_field(png="data:image/png;base64,AAAA"),
        mask_field(png="not base64!"),
        mask_field(png="AAA"),
        mask_field(png=None),
        mask_field(b"GIF89a" + bytes(64)),
        mask_field(b"<svg xmlns='http://www.w3.org/2000/svg'/>"),
        mask_field(png()[:-30]),
        mask_field(png()[:20]),
        mask_field(b"\x89PNG\r\n\x1a\n"),
        mask_field(b"\x89PNG\r\n\x1a\n" + bytes(200)),
    ]
    assert {text: read for text in texts if (read := read_painted(text, "", "#7b")) != UNREADABLE} == {}


def test_a_jpeg_is_no_mask() -> None:
    sink = io.BytesIO()
    Image.new("L", (16, 16), 255).save(sink, "JPEG")
    assert read_painted(mask_field(sink.getvalue()), "", "#7b") == UNREADABLE


def test_a_mask_may_have_1024_pixels_on_its_longer_edge_and_no_more() -> None:
    assert mask_of(read_painted(mask_field(png(MAX_EDGE_PX, 3, (0, 0, 9, 3))), "", "#7b")).image
    assert read_painted(mask_field(png(MAX_EDGE_PX + 1, 3)), "", "#7b") == TOO_LARGE
    assert read_painted(mask_field(png(3, MAX_EDGE_PX + 1)), "", "#7b") == TOO_LARGE


@pytest.mark.parametrize("size", [(60_000, 60_000), (2**31 - 1, 2**31 - 1), (1025, 1)])
def test_a_stated_size_is_judged_before_anything_is_decoded(size: tuple[int, int]) -> None:
    assert read_painted(mask_field(bomb(*size)), "", "#7b") == TOO_LARGE


def test_a_field_that_is_far_too_long_is_not_looked_at() -> None:
    assert read_painted("x" * (MAX_FIELD_CHARACTERS + 1), "", "#7b") == TOO_LARGE


def test_a_text_in_the_png_that_is_packed_to_burst_is_refused() -> None:
    notes = PngImagePlugin.PngInfo()
    notes.add_text("Comment", "x" * (70 << 20), zip=True)
    sink = io.BytesIO()
    Image.new("L", (16, 16), 255).save(sink, "PNG", pnginfo=notes)
    assert read_painted(mask_field(sink.getvalue()), "", "#7b") == UNREADABLE


def test_an_expansion_is_read_in_fractions() -> None:
    read = read_painted("", expand_field(left=0.25, bottom=1), "#7b")
    assert read == Painted("#7b", (), Expansion("#7b", left=0.25, right=0.5, bottom=1.0))


def test_an_expansion_by_nothing_is_none() -> None:
    assert read_painted("", expand_field(right=0), "#7b") == Painted("#7b")


def test_an_expansion_that_the_painter_cannot_have_written_is_refused() -> None:
    texts = [
        "nonsense",
        "{}",
        expand_field(more=1),
        expand_field(handle="#7b "),
        expand_field(left=-0.1),
        expand_field(left=MAX_GROWTH + 0.1),
        expand_field(left="0.5"),
        expand_field(left=True),
        expand_field(left=None),
        '{"handle": "#7b", "left": NaN}',
        '{"handle": "#7b", "left": Infinity}',
        '{"handle": "#7b", "left": 1e400}',
        "x" * (MAX_FIELD_CHARACTERS + 1),
    ]
    assert {text: read for text in texts if (read := read_painted("", text, "#7b")) != UNREADABLE} == {}


def test_a_mask_and_an_expansion_in_one_message_are_refused() -> None:
    assert read_painted(mask_field(), expand_field(), "#7b") == WireRefusal("painter.both")
    assert isinstance(read_painted(mask_field(), expand_field(right=0), "#7b"), Painted)

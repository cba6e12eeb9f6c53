from __future__ import annotations

import pytest
from PIL import Image

from agent.errors import ErrorCode, RequestRefused
from tests.adapters.recipes import pixels_digest
from tests.agent.imaging.provenance.samples import FILES, JPEGS, PNGS, SRGB, png_chunk, saved, scene
from tests.support.cases import each_case


def test_the_same_pixels_have_the_same_digest_whatever_the_file() -> None:
    picture = scene("RGBA")
    files = (
        saved(picture, "PNG"),
        saved(picture, "PNG", compress_level=0, icc_profile=SRGB),
        saved(picture, "WEBP", lossless=True, exact=True),
    )
    assert len({pixels_digest(data) for data in files}) == 1
    indexed = scene().convert("P")
    assert pixels_digest(saved(indexed, "PNG")) == pixels_digest(saved(indexed.convert("RGB"), "PNG"))


def test_another_pixel_or_shape_has_another_digest() -> None:
    picture = scene()
    other = picture.copy()
    other.putpixel((47, 31), (1, 2, 3))
    flat = Image.frombytes("RGB", (32, 48), picture.tobytes())
    deep = Image.frombytes("I;16", (2, 1), b"\1\0\2\0")
    deeper = Image.frombytes("I;16", (2, 1), b"\1\0\3\0")
    digests = [pixels_digest(saved(one, "PNG")) for one in (picture, other, flat, deep, deeper)]
    assert len(set(digests)) == 5
    assert all(len(digest) == 64 for digest in digests)


def test_every_row_of_a_tall_picture_counts() -> None:
    tall = Image.new("L", (3, 1000))
    other = tall.copy()
    other.putpixel((2, 999), 1)
    assert pixels_digest(saved(tall, "PNG")) != pixels_digest(saved(other, "PNG"))


@each_case("name", FILES)
def test_every_kind_of_picture_has_one(name: str) -> None:
    assert pixels_digest(FILES[name][1]) == pixels_digest(FILES[name][1])


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"no picture",
        PNGS["png"][:60],
        JPEGS["jpeg"][:200],
        PNGS["png"][:8] + png_chunk(b"IHDR", b"\0\0\xff\xff\0\0\xff\xff\x08\0\0\0\0") + PNGS["png"][33:],
    ],
)
def test_what_cannot_be_decoded_is_refused(data: bytes) -> None:
    with pytest.raises(RequestRefused) as caught:
        pixels_digest(data)
    assert caught.value.code is ErrorCode.PICTURE_UNREADABLE

from __future__ import annotations

import io
import struct
import zlib

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image, ImageCms, ImageOps

from agent.imaging.masking import pictures
from agent.imaging.masking.pictures import Picture, Unreadable

CHANNELS = {"L": 1, "LA": 2, "RGB": 3, "RGBA": 4}


def noise(channels: int, kind: type[np.uint8] | type[np.uint16] = np.uint8) -> NDArray[np.uint8 | np.uint16]:
    values = np.random.default_rng(channels).integers(0, np.iinfo(kind).max, (31, 47, channels))
    return values.astype(kind)


@pytest.mark.parametrize("channels", CHANNELS.values())
def test_what_is_written_is_read_back_bit_for_bit(channels: int) -> None:
    picture = Picture(noise(channels))
    np.testing.assert_array_equal(pictures.read(pictures.png(picture)).pixels, picture.pixels)


@pytest.mark.parametrize("channels", [1, 3, 4])
def test_sixteen_bits_stay_sixteen_bits(channels: int) -> None:
    picture = Picture(noise(channels, np.uint16))
    back = pictures.read(pictures.png(picture))
    assert back.peak == 65535
    np.testing.assert_array_equal(back.pixels, picture.pixels)


@pytest.mark.parametrize("mode", CHANNELS)
def test_pillow_sees_the_same_picture(mode: str) -> None:
    pixels = noise(CHANNELS[mode])
    with Image.open(io.BytesIO(pictures.png(Picture(pixels)))) as image:
        assert image.mode == mode
        np.testing.assert_array_equal(np.asarray(image).reshape(pixels.shape), pixels)


@pytest.mark.parametrize("channels", CHANNELS.values())
def test_the_colour_profile_goes_along(channels: int) -> None:
    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    data = pictures.png(Picture(noise(channels), profile))
    assert pictures.read(data).profile == profile
    with Image.open(io.BytesIO(data)) as image:
        assert image.info["icc_profile"] == profile


@pytest.mark.parametrize("turn", range(1, 9))
def test_a_turned_photograph_is_read_upright(turn: int) -> None:
    image = Image.fromarray(noise(3).astype(np.uint8))
    exif = Image.Exif()
    exif[0x0112] = turn
    sink = io.BytesIO()
    image.save(sink, "PNG", exif=exif)
    with Image.open(io.BytesIO(sink.getvalue())) as stored:
        expected = np.asarray(ImageOps.exif_transpose(stored))
    np.testing.assert_array_equal(pictures.read(sink.getvalue()).pixels, expected)


@pytest.mark.parametrize("form", ["JPEG", "MPO", "WEBP", "GIF", "BMP", "AVIF"])
def test_other_formats_are_read(form: str) -> None:
    sink = io.BytesIO()
    Image.new("RGB", (20, 10), (200, 100, 50)).save(sink, form)
    picture = pictures.read(sink.getvalue())
    assert picture.pixels.shape == (10, 20, 3)
    assert np.abs(picture.pixels[5, 10].astype(int) - (200, 100, 50)).max() < 12


def test_a_palette_with_a_transparent_entry_keeps_its_transparency() -> None:
    image = Image.new("P", (4, 1), 0)
    image.putpalette([255, 0, 0, 0, 0, 255])
    image.putpixel((1, 0), 1)
    sink = io.BytesIO()
    image.save(sink, "PNG", transparency=1)
    assert pictures.read(sink.getvalue()).pixels[0, :2].tolist() == [[255, 0, 0, 255], [0, 0, 255, 0]]


def test_grey_with_alpha_of_sixteen_bits_becomes_rgba() -> None:
    # No encoder at hand writes this kind: the header's colour type is changed by hand, and the rows packed to fit.
    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    row = b"\0" + struct.pack(">HHHH", 1000, 65535, 40000, 300)
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", 2, 1, 16, 4, 0, 0, 0))
    data = b"\x89PNG\r\n\x1a\n" + header + chunk(b"IDAT", zlib.compress(row)) + chunk(b"IEND", b"")
    assert pictures.read(data).pixels.tolist() == [[[1000, 1000, 1000, 65535], [40000, 40000, 40000, 300]]]


def test_what_is_sent_shows_transparent_parts_over_white() -> None:
    pixels = np.array([[[10, 20, 30, 255], [10, 20, 30, 0], [0, 0, 0, 128]]], np.uint8)
    assert pictures.rgb(Picture(pixels)).tolist() == [[[10, 20, 30], [255, 255, 255], [127, 127, 127]]]


def test_sixteen_bits_are_sent_as_the_nearest_of_eight() -> None:
    _, data = cv2.imencode(".png", np.array([[0, 128, 129, 65535, 32896]], np.uint16))
    assert pictures.read_rgb(data.tobytes())[0, :, 0].tolist() == [0, 0, 1, 255, 128]


def test_a_picture_of_too_many_pixels_is_not_decoded() -> None:
    sink = io.BytesIO()
    Image.new("1", (8100, 8000)).save(sink, "PNG")
    with pytest.raises(Unreadable, match="pixels"):
        pictures.read(sink.getvalue())


def test_a_format_that_no_painter_stores_is_not_opened() -> None:
    sink = io.BytesIO()
    Image.new("RGB", (9, 9)).save(sink, "EPS")
    with pytest.raises(Unreadable):
        pictures.read(sink.getvalue())


@pytest.mark.parametrize("data", [b"", b"\x89PNG\r\n\x1a\n", b"\x89PNG\r\n\x1a\n" + bytes(16) + b"\x10" + bytes(40)])
def test_what_is_no_picture_is_named_so(data: bytes) -> None:
    with pytest.raises(Unreadable):
        pictures.read(data)

from __future__ import annotations

import io
import struct

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image, ImageCms, ImageOps

from agent import ErrorCode, RequestRefused
from tests.adapters.pixels import (
    Raster,
    encode_png,
    from_srgb,
    in_srgb,
    open_picture,
    read_rgb,
    resized,
    shown_rgb,
    small_copy,
    to_srgb,
)
from tests.support.cases import each_case
from tests.support.icc import grey_profile, rgb_profile
from tests.support.pixels import png_with_header

CHANNELS = {"L": 1, "LA": 2, "RGB": 3, "RGBA": 4}


def noise(channels: int, kind: type[np.uint8] | type[np.uint16] = np.uint8) -> NDArray[np.uint8 | np.uint16]:
    values = np.random.default_rng(channels).integers(0, np.iinfo(kind).max, (31, 47, channels))
    return values.astype(kind)


@pytest.mark.parametrize("channels", CHANNELS.values())
def test_what_is_written_is_read_back_bit_for_bit(channels: int) -> None:
    picture = Raster(noise(channels))
    np.testing.assert_array_equal(open_picture(encode_png(picture)).pixels, picture.pixels)


@pytest.mark.parametrize("channels", [1, 3, 4])
def test_sixteen_bits_stay_sixteen_bits(channels: int) -> None:
    picture = Raster(noise(channels, np.uint16))
    back = open_picture(encode_png(picture))
    assert back.peak == 65535
    np.testing.assert_array_equal(back.pixels, picture.pixels)


@pytest.mark.parametrize("mode", CHANNELS)
def test_pillow_sees_the_same_picture(mode: str) -> None:
    pixels = noise(CHANNELS[mode])
    with Image.open(io.BytesIO(encode_png(Raster(pixels)))) as image:
        assert image.mode == mode
        np.testing.assert_array_equal(np.asarray(image).reshape(pixels.shape), pixels)


@each_case("kind", [np.uint8, np.uint16])
@each_case("channels", CHANNELS.values())
def test_the_colour_profile_goes_along(channels: int, kind: type[np.uint8] | type[np.uint16]) -> None:
    profile = grey_profile() if channels < 3 else rgb_profile()
    if (channels, kind) == (2, np.uint16):
        pytest.skip("no PNG of this kind is ever made: it is RGBA once it was read")
    data = encode_png(Raster(noise(channels, kind), profile))
    assert open_picture(data).profile == profile
    with Image.open(io.BytesIO(data)) as image:
        assert image.info["icc_profile"] == profile


@pytest.mark.parametrize(("channels", "profile"), [(1, rgb_profile()), (3, grey_profile())])
def test_a_profile_of_another_colour_model_is_left_out(channels: int, profile: bytes) -> None:
    assert open_picture(encode_png(Raster(noise(channels), profile))).profile is None


@each_case("turn", range(1, 9))
def test_a_turned_photograph_is_read_upright(turn: int) -> None:
    image = Image.fromarray(noise(3).astype(np.uint8))
    exif = Image.Exif()
    exif[0x0112] = turn
    sink = io.BytesIO()
    image.save(sink, "PNG", exif=exif)
    with Image.open(io.BytesIO(sink.getvalue())) as stored:
        expected = np.asarray(ImageOps.exif_transpose(stored))
    np.testing.assert_array_equal(open_picture(sink.getvalue()).pixels, expected)


@each_case("form", ["JPEG", "MPO", "WEBP", "GIF", "BMP", "AVIF"])
def test_other_formats_are_read(form: str) -> None:
    sink = io.BytesIO()
    Image.new("RGB", (20, 10), (200, 100, 50)).save(sink, form)
    picture = open_picture(sink.getvalue())
    assert picture.pixels.shape == (10, 20, 3)
    assert np.abs(picture.pixels[5, 10].astype(int) - (200, 100, 50)).max() < 12


def test_a_palette_with_a_transparent_entry_keeps_its_transparency() -> None:
    image = Image.new("P", (4, 1), 0)
    image.putpalette([255, 0, 0, 0, 0, 255])
    image.putpixel((1, 0), 1)
    sink = io.BytesIO()
    image.save(sink, "PNG", transparency=1)
    assert open_picture(sink.getvalue()).pixels[0, :2].tolist() == [[255, 0, 0, 255], [0, 0, 255, 0]]


def test_grey_with_alpha_of_sixteen_bits_becomes_rgba() -> None:
    # No encoder at hand writes this kind: the header's colour type is changed by hand, and the rows packed to fit.
    data = png_with_header(2, 1, 16, 4, b"\0" + struct.pack(">HHHH", 1000, 65535, 40000, 300))
    assert open_picture(data).pixels.tolist() == [[[1000, 1000, 1000, 65535], [40000, 40000, 40000, 300]]]


def test_what_is_sent_shows_transparent_parts_over_white() -> None:
    pixels = np.array([[[10, 20, 30, 255], [10, 20, 30, 0], [0, 0, 0, 128]]], np.uint8)
    assert shown_rgb(pixels, None).tolist() == [[[10, 20, 30], [255, 255, 255], [127, 127, 127]]]


def test_sixteen_bits_are_sent_as_the_nearest_of_eight() -> None:
    _, data = cv2.imencode(".png", np.array([[0, 128, 129, 65535, 32896]], np.uint16))
    assert read_rgb(data.tobytes())[0, :, 0].tolist() == [0, 0, 1, 255, 128]


def test_a_picture_of_too_many_pixels_is_not_decoded() -> None:
    sink = io.BytesIO()
    Image.new("1", (8100, 8000)).save(sink, "PNG")
    with pytest.raises(RequestRefused, match="megapixels"):
        open_picture(sink.getvalue())


def test_a_format_that_no_painter_stores_is_not_opened() -> None:
    sink = io.BytesIO()
    Image.new("RGB", (9, 9)).save(sink, "EPS")
    with pytest.raises(RequestRefused):
        open_picture(sink.getvalue())


def test_colours_of_a_wide_profile_are_shown_as_srgb_has_them() -> None:
    wide = np.array([[[0, 255, 0], [120, 120, 120], [200, 60, 60]]], np.uint8)
    shown = shown_rgb(wide, rgb_profile())[0].astype(int)
    # Adobe's green lies beyond sRGB's; greys are the same, and its reds are stronger than sRGB's of the same numbers.
    assert shown[0].tolist()[1] == 255
    assert np.ptp(shown[1]) <= 1
    assert shown[2, 0] - shown[2, 1] > 140 + 10


@pytest.mark.parametrize(("channels", "profile"), [(3, rgb_profile()), (1, grey_profile()), (3, None), (1, None)])
def test_colours_come_back_from_srgb_as_they_went(channels: int, profile: bytes | None) -> None:
    # Colours that sRGB can hold.
    light = np.random.default_rng(2).integers(60, 180, (20, 30, 1))
    values = (light + np.random.default_rng(3).integers(-20, 20, (20, 30, channels))).astype(np.uint8)
    back = from_srgb(to_srgb(values, profile).astype(np.float32), profile, channels)
    assert np.abs(back - values).max() <= (2 if profile else 0.01)


def test_a_profile_that_says_srgb_changes_no_number() -> None:
    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    values = noise(3).astype(np.uint8)
    assert to_srgb(values, profile) is values


@pytest.mark.parametrize("profile", [b"x", b"x" * 200, rgb_profile()[:150], bytes(16) + b"RGB " + bytes(200)])
def test_a_damaged_profile_is_ignored(profile: bytes) -> None:
    values = noise(3).astype(np.uint8)
    assert np.array_equal(shown_rgb(values, profile), values)
    copy = small_copy(encode_png(Raster(values)), 20)
    assert in_srgb(copy, profile).tobytes() == copy.tobytes()


@each_case("kind", [np.uint8, np.uint16])
@each_case("channels", CHANNELS.values())
def test_a_copy_for_screens_and_models_has_eight_bits_in_srgb(
    channels: int, kind: type[np.uint8] | type[np.uint16]
) -> None:
    if (channels, kind) == (2, np.uint16):
        return
    smooth = np.asarray(cv2.GaussianBlur(noise(channels, kind), (0, 0), 3)).reshape(31, 47, channels)
    profile = grey_profile() if channels < 3 else rgb_profile()
    copy = small_copy(encode_png(Raster(np.asarray(smooth, kind), profile)), 20)
    assert (copy.mode, copy.size) == ("RGBA" if channels in {2, 4} else "RGB", (20, 13))
    assert copy.info == {}


def test_a_copy_of_sixteen_bits_is_the_picture_not_its_upper_byte_cut_to_white() -> None:
    grey = encode_png(Raster(np.full((8, 8, 1), 32896, np.uint16)))
    assert small_copy(grey, 8).getpixel((4, 4)) == (128, 128, 128)


@pytest.mark.parametrize(("is_deep", "share"), [(False, 0.5), (True, 0.1), (True, 0.5), (True, 0.95)])
def test_a_damaged_picture_is_refused_by_its_name(is_deep: bool, share: float) -> None:
    data = encode_png(Raster(noise(3, np.uint16 if is_deep else np.uint8)))
    with pytest.raises(RequestRefused, match=r"scan\.png") as caught:
        open_picture(data[: int(len(data) * share)], "scan.png")
    assert caught.value.code is ErrorCode.PICTURE_TRUNCATED


def test_resizing_keeps_the_bit_depth_and_lets_no_clear_colour_bleed() -> None:
    values = np.zeros((40, 40, 4), np.uint16)
    values[:, :20] = (51400, 51400, 51400, 65535)
    values[:, 20:] = (65535, 0, 0, 0)
    small = resized(Raster(values), 13, 13).pixels
    assert small.dtype == np.uint16
    seen = small[small[..., 3] > 6000]
    assert (abs(seen[:, :3].astype(int) - 51400) < 60).all()

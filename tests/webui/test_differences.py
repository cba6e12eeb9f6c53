"""The difference of two pictures: its numbers, its picture, and who may see it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageDraw

from agent.errors import RequestRefused
from tests.support.kept_pictures import KeptPictures, decoded, kept_pictures, png, visitor
from webui.differences import CLEAR_LEVELS, NUMBERS_HEADER, difference, difference_routes
from webui.sessions import Sessions


def ramp(width: int = 200, height: int = 100) -> Image.Image:
    grey = Image.linear_gradient("L").resize((width, height))
    return Image.merge("RGB", (grey, grey.point(lambda level: 255 - level), grey.point(lambda level: level // 2)))


def changed(image: Image.Image, box: tuple[int, int, int, int], level: int) -> Image.Image:
    """Return the image with one channel moved by that much in the box (right and bottom are outside)."""
    red, green, blue = image.convert("RGB").split()
    patch = red.crop(box).point(lambda value: value + level if value < 128 else value - level)
    red.paste(patch, box)
    return Image.merge("RGB", (red, green, blue))


def test_the_same_picture_differs_nowhere_even_in_another_file_format() -> None:
    found = difference(png(ramp()), png(ramp().convert("RGBA")), 128)
    assert (found.changed, found.clear, found.largest) == (0, 0, 0)
    shown = decoded(found.data).convert("RGB")
    assert shown.size == (128, 64)
    assert int(np.asarray(shown).max()) <= 100


def test_the_numbers_count_every_pixel_and_the_clear_ones_apart() -> None:
    second = changed(ramp(), (0, 0, 20, 100), 3)
    second = changed(second, (180, 50, 200, 60), 90)
    found = difference(png(ramp()), png(second), 512)
    assert found.changed == pytest.approx((20 * 100 + 20 * 10) / (200 * 100))
    assert found.clear == pytest.approx(20 * 10 / (200 * 100))
    assert found.largest == 90
    assert found.first == found.second == found.compared == (200, 100)


@pytest.mark.parametrize(("level", "is_clear"), [(CLEAR_LEVELS - 1, False), (CLEAR_LEVELS, True)])
def test_a_clear_change_begins_at_its_level(level: int, is_clear: bool) -> None:
    found = difference(png(ramp()), png(changed(ramp(), (0, 0, 200, 100), level)), 64)
    assert (found.changed, found.clear) == (1, 1 if is_clear else 0)


def test_one_changed_pixel_of_two_million_is_seen_in_a_small_difference() -> None:
    whole = Image.new("RGB", (2000, 1000), (90, 90, 90))
    second = whole.copy()
    second.putpixel((1500, 250), (190, 90, 90))
    found = difference(png(whole), png(second), 200)
    assert found.changed == pytest.approx(1 / 2_000_000)
    shown = decoded(found.data).convert("L")
    brightest = max(range(200 * 100), key=lambda at: shown.getpixel((at % 200, at // 200)) or 0)
    assert abs(brightest % 200 - 150) <= 1
    assert abs(brightest // 200 - 25) <= 1


def test_a_larger_copy_is_compared_at_the_size_of_the_smaller() -> None:
    smooth = Image.linear_gradient("L").resize((400, 400), Image.Resampling.BICUBIC).convert("RGB")
    small = smooth.resize((100, 100), Image.Resampling.LANCZOS)
    for one, two in ((small, smooth), (smooth, small)):
        found = difference(png(one), png(two), 128)
        assert found.compared == (100, 100)
        assert found.largest <= 3
        assert (found.first, found.second) == (one.size, two.size)
        assert decoded(found.data).size == ((100, 100) if one is small else (128, 128))


def test_another_ratio_is_fitted_into_the_first_ones_frame_and_its_sides_are_not_counted() -> None:
    wide = Image.new("RGB", (400, 100), (200, 30, 30))
    ImageDraw.Draw(wide).rectangle((150, 0, 249, 99), fill=(10, 200, 10))
    square = Image.new("RGB", (100, 100), (10, 200, 10))
    found = difference(png(wide), png(square), 400)
    assert found.compared == (100, 100)
    assert found.changed == 0
    shown = decoded(found.data).convert("RGB")
    assert shown.size == (400, 100)
    beside, inside = shown.getpixel((20, 50)), shown.getpixel((200, 50))
    assert isinstance(beside, tuple)
    assert isinstance(inside, tuple)
    assert max(beside) < 30 < min(inside)


def test_colours_that_cannot_be_seen_do_not_differ_but_another_opacity_does() -> None:
    clear = Image.new("RGBA", (50, 50), (255, 0, 0, 0))
    assert difference(png(clear), png(Image.new("RGBA", (50, 50), (0, 0, 255, 0))), 64).largest == 0
    assert difference(png(clear), png(Image.new("RGBA", (50, 50), (0, 0, 0, 255))), 64).largest == 255


def test_grey_of_16_bits_is_compared_with_colour() -> None:
    fine = Image.new("I;16", (30, 20), 128 * 257)
    found = difference(png(fine), png(Image.new("RGB", (30, 20), (128, 128, 128))), 64)
    assert found.largest == 0


@pytest.mark.parametrize(("width", "height"), [(1, 1), (1, 900), (900, 1)])
def test_the_thinnest_pictures_are_compared(width: int, height: int) -> None:
    line = Image.new("RGB", (width, height), (0, 0, 0))
    for other in (line, ramp()):
        assert max(decoded(difference(png(line), png(other), 64).data).size) <= 64
        assert difference(png(other), png(line), 64).second == (width, height)


def test_what_is_no_picture_is_refused() -> None:
    with pytest.raises(RequestRefused):
        difference(png(ramp()), b"not a picture", 64)


@pytest.fixture
async def kept(tmp_path: Path) -> AsyncIterator[KeptPictures]:
    async with kept_pictures(tmp_path) as records:
        yield records


async def test_the_owner_gets_the_picture_and_its_numbers(kept: KeptPictures) -> None:
    ours = Sessions(b"s" * 32)
    where = await kept.keep(png(ramp()), png(changed(ramp(), (0, 0, 100, 100), 40)))
    async with visitor(difference_routes(lambda: kept, ours), ours, ours.new_cookie()) as browser:
        answer = await browser.get(f"/aivista/difference/{where}/1/2?edge=100")
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "image/webp"
    assert answer.headers["cache-control"].startswith("private, ")
    assert answer.headers["content-security-policy"] == "default-src 'none'; sandbox"
    assert json.loads(answer.headers[NUMBERS_HEADER]) == {
        "changed": 0.5,
        "clear": 0.5,
        "largest": 40,
        "first": [200, 100],
        "second": [200, 100],
        "compared": [200, 100],
    }
    assert decoded(answer.content).size == (100, 50)


async def test_nobody_else_gets_it(kept: KeptPictures) -> None:
    ours = Sessions(b"s" * 32, is_shared=True)
    one, two = ours.new_cookie(), ours.new_cookie()
    where = await kept.keep(png(ramp()), png(ramp()), owner=ours.owner(ours.token_of(one)))
    routes = difference_routes(lambda: kept, ours)
    for cookie, status in ((one, 200), (two, 404), (None, 403), ("forged.0123", 403)):
        async with visitor(routes, ours, cookie) as browser:
            answer = await browser.get(f"/aivista/difference/{where}/1/2")
        assert answer.status_code == status
        assert (NUMBERS_HEADER in answer.headers) == (status == 200)
        assert status == 200 or answer.headers["cache-control"] == "no-store"


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("1/9", 404),
        ("9/1", 404),
        ("1/2?edge=63", 400),
        ("1/2?edge=2049", 400),
        ("1/2?edge=-64", 400),
        ("1/2?edge=١٠٠", 400),
        ("1/2?edge=", 400),
        ("1/3", 422),
    ],
)
async def test_what_cannot_be_compared_is_refused(kept: KeptPictures, path: str, status: int) -> None:
    ours = Sessions(b"s" * 32)
    where = await kept.keep(png(ramp()), png(ramp()), b"no picture at all")
    async with visitor(difference_routes(lambda: kept, ours), ours, ours.new_cookie()) as browser:
        assert (await browser.get(f"/aivista/difference/{where}/{path}")).status_code == status

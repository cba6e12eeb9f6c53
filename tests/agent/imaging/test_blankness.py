"""An empty picture is recognised as one, and no other is."""

from __future__ import annotations

from PIL import Image

from agent import Blank
from tests.adapters.pixels import blank_of
from tests.support.cases import each_case
from tests.support.pixels import encoded


def noisy(value: int) -> Image.Image:
    noise = Image.effect_noise((1376, 768), 2).point(lambda level: max(0, min(255, value + level - 128)))
    return Image.merge("RGB", (noise, noise, noise))


@each_case(
    ("data", "blank"),
    [
        (encoded(Image.new("RGB", (64, 36), "black")), Blank.BLACK),
        (encoded(Image.new("L", (64, 36), 3)), Blank.BLACK),
        (encoded(Image.new("RGB", (2752, 1536), (6, 5, 8)), "JPEG", quality=60), Blank.BLACK),
        (encoded(noisy(4), "JPEG", quality=80), Blank.BLACK),
        (encoded(Image.new("RGB", (64, 36), "white"), "WEBP"), Blank.WHITE),
        (encoded(Image.new("RGBA", (64, 36), (200, 30, 30, 0))), Blank.CLEAR),
        (encoded(Image.new("RGB", (64, 36), "red")), None),
        (encoded(Image.new("RGB", (64, 36), (30, 30, 34))), None),
        (encoded(Image.linear_gradient("L")), None),
        (b"no picture", None),
        (encoded(Image.new("RGB", (640, 360), "black"))[:80], None),
    ],
)
def test_a_picture_that_shows_nothing_is_told_from_one_that_does(data: bytes, blank: Blank | None) -> None:
    assert blank_of(data) is blank


def test_one_star_in_a_black_sky_is_a_picture() -> None:
    sky = Image.new("RGB", (1376, 768), "black")
    sky.paste("white", (700, 300, 704, 304))
    assert blank_of(encoded(sky)) is None
    assert blank_of(encoded(sky, "JPEG", quality=80)) is None

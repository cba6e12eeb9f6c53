"""Pictures in the look of each style: of the same size, the same every time, and really changed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.adapters.pixels import Border, StyleLook, Technique, curated_looks, curated_styles, render_in_style
from tests.support.cases import each_case


def photo(width: int = 160, height: int = 120) -> np.ndarray:
    with Image.open(Path(__file__).parents[1] / "data" / "photos" / "chelsea.webp") as opened:
        return np.array(opened.convert("RGB").resize((width, height)))


def test_every_curated_style_has_a_look() -> None:
    assert set(curated_looks()) == {style.id for style in curated_styles()}
    assert {look.technique for look in curated_looks().values()} == set(Technique)


@each_case("technique", Technique)
def test_a_look_changes_a_photo_and_keeps_its_size(technique: Technique) -> None:
    before = photo()
    kept = before.copy()
    looks = {style_id: look for style_id, look in curated_looks().items() if look.technique is technique}
    drawn = {style_id: render_in_style(before, look) for style_id, look in looks.items()}
    assert np.array_equal(before, kept)
    assert {style_id: one.shape for style_id, one in drawn.items() if one.shape != before.shape} == {}
    assert {style_id: one.dtype for style_id, one in drawn.items() if one.dtype != np.uint8} == {}
    assert [style_id for style_id, one in drawn.items() if np.abs(one.astype(int) - before).mean() <= 3] == []
    # It is still a picture, not one colour.
    assert [style_id for style_id, one in drawn.items() if one.std() <= 8] == []


def test_the_same_picture_is_drawn_the_same_every_time() -> None:
    for technique in Technique:
        look = StyleLook(technique=technique, palette=("#101020", "#c04030", "#f0e8d8"), cell=0.05)
        assert np.array_equal(render_in_style(photo(), look), render_in_style(photo(), look)), technique


def test_no_two_styles_look_alike() -> None:
    drawn = {name: render_in_style(photo(96, 72), look).astype(int) for name, look in curated_looks().items()}
    alike = [
        (one, other)
        for one, first in drawn.items()
        for other, second in drawn.items()
        if one < other and np.abs(first - second).mean() < 2
    ]
    assert alike == []


@pytest.mark.parametrize("size", [(1, 1), (3, 40), (5, 5), (31, 17), (2300, 64)])
def test_any_size_is_drawn(size: tuple[int, int]) -> None:
    width, height = size
    pixels = np.full((height, width, 3), 90, np.uint8)
    drawn = {}
    for technique in Technique:
        look = StyleLook(technique=technique, lines=0.5, border=Border.POLAROID, blurred_ends=0.5, glow=0.5)
        drawn[technique] = render_in_style(pixels, look).shape
    assert {technique: shape for technique, shape in drawn.items() if shape != pixels.shape} == {}


def test_one_colour_and_noise_are_drawn_without_a_warning() -> None:
    noise = np.random.default_rng(1).integers(0, 256, (64, 80, 3), dtype=np.uint8)
    for pixels in (noise, np.zeros((64, 80, 3), np.uint8), np.full((64, 80, 3), 255, np.uint8)):
        for look in curated_looks().values():
            assert render_in_style(pixels, look).shape == pixels.shape


def test_film_noir_has_no_colour_and_a_blueprint_is_blue() -> None:
    noir = render_in_style(photo(), curated_looks()["film-noir"]).astype(int)
    assert np.abs(noir[..., 0] - noir[..., 2]).mean() < 4
    blueprint = render_in_style(photo(), curated_looks()["technical-blueprint"]).astype(int)
    assert blueprint[..., 2].mean() > blueprint[..., 0].mean() + 30


def test_pixel_art_stands_in_squares_of_one_colour() -> None:
    drawn = render_in_style(photo(), StyleLook(technique=Technique.PIXELS, cell=0.05))
    assert (np.diff(drawn.astype(int), axis=1) == 0).all(axis=2).mean() > 0.7

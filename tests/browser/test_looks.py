"""Key screens look as they did when somebody last looked at them (see `looks.py`)."""

from __future__ import annotations

from pathlib import Path

import pytest
from PIL import Image, ImageChops, ImageOps
from playwright.sync_api import Browser

from tests.browser.looks import FOLDER, MOST_DIFFERENT, NAMES, difference, kept, looks
from tests.page import PageProcess


@pytest.fixture(scope="module")
def screens(browser: Browser, studio: PageProcess) -> dict[str, Image.Image]:
    return dict(looks(browser, studio.url))


def test_every_screen_is_kept_and_no_other(screens: dict[str, Image.Image]) -> None:
    assert sorted(screens) == sorted(NAMES)
    assert {path.stem for path in FOLDER.glob("*.webp")} == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_screen_looks_as_it_did(name: str, screens: dict[str, Image.Image], tmp_path: Path) -> None:
    seen = tmp_path / f"{name}.png"
    screens[name].save(seen)
    share = difference(screens[name], kept(name))
    again = "look at both, then take them anew with `python -m tests.browser.looks`"
    assert share <= MOST_DIFFERENT, f"{share:.1%} of {seen} differs from {FOLDER / name}.webp: {again}"


def blank(image: Image.Image, box: tuple[int, int, int, int]) -> Image.Image:
    """Return the picture with a part of it as plain as its first pixel."""
    changed = image.convert("L")
    changed.paste(int(changed.tobytes()[image.width // 2]), box)
    return changed


def test_a_screen_that_lacks_a_part_or_has_moved_is_told_apart() -> None:
    before = kept("canvas-wide-light-en")
    seen = before.resize((1440, 900), Image.Resampling.LANCZOS)
    assert difference(seen, before) == 0
    assert difference(blank(seen, (0, 0, 248, 900)), before) > MOST_DIFFERENT, "without the rail"
    assert difference(blank(seen, (922, 100, 1440, 700)), before) > MOST_DIFFERENT, "without the stage's picture"
    assert difference(ImageOps.invert(seen), before) > MOST_DIFFERENT, "in the other theme"
    assert difference(ImageChops.offset(seen, 0, 80), before) > MOST_DIFFERENT, "moved by 80 pixels"
    assert difference(ImageChops.offset(seen, 6, 3), before) <= MOST_DIFFERENT, "moved by a few"


@pytest.mark.parametrize("name", NAMES)
def test_no_two_screens_are_taken_for_each_other(name: str) -> None:
    ours = kept(name)
    alike = [other for other in NAMES if other != name and kept(other).size == ours.size]
    screen = ours.resize((ours.width * 2, ours.height * 2), Image.Resampling.LANCZOS)
    assert [other for other in alike if difference(screen, kept(other)) <= MOST_DIFFERENT] == []

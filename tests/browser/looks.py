"""How key screens look: taken from a real page, and compared with the pictures in `kept_looks/`.

`python -m tests.browser.looks` takes those anew, which is right after a change of the layout that was looked at and
meant. Compared is the layout, not the letters: both pictures become grey cells of `CELL_PX`, and a cell differs when it
is clearly darker or lighter than all of the kept picture around it. Other fonts and a line that breaks elsewhere pass;
a bar that is missing, a picture of another size, or the wrong theme do not.
"""

from __future__ import annotations

import io
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from PIL import Image, ImageChops, ImageFilter
from playwright.sync_api import Browser, Page, ViewportSize, expect, sync_playwright

from tests.page import PageProcess
from tests.page.chromium import chromium
from tests.page.hands import expect_ready, expect_rest, open_page, pictures, say

FOLDER = Path(__file__).parent / "kept_looks"
CELL_PX = 24
# So much darker or lighter than all around it (of 255), and so many of such cells.
_CLEARLY = 6
MOST_DIFFERENT = 0.012
_WIDE, _MIDDLE, _PHONE = (
    ViewportSize(width=wide, height=high) for wide, high in ((1440, 900), (1024, 768), (390, 844))
)


@dataclass(frozen=True)
class Who:
    """Somebody who looks: in which language and which light."""

    locale: str
    scheme: Literal["light", "dark"]


ENGLISH, CHINESE = Who("en-US", "light"), Who("zh-CN", "dark")
NAMES = (
    *("start-wide-light-en", "start-phone-light-en", "canvas-wide-light-en", "gallery-middle-light-en"),
    *("chat-phone-light-en", "tree-phone-light-en"),
    *("start-middle-dark-zh", "plan-phone-dark-zh", "trace-wide-dark-zh", "canvas-middle-dark-zh"),
    *("gallery-phone-dark-zh", "settings-wide-dark-zh"),
)


def looks(browser: Browser, url: str) -> Iterator[tuple[str, Image.Image]]:
    """Yield each screen by its name. The studio must be a new one that sketches: it is filled on the way."""
    page = _tab(browser, ENGLISH)
    open_page(page, url)
    yield "start-wide-light-en", _seen(page, _WIDE)
    yield "start-phone-light-en", _seen(page, _PHONE)
    page.set_viewport_size(_WIDE)
    for number, wish in enumerate(("Draw a red fox in the snow", "Make it a bit warmer"), 1):
        say(page, wish)
        expect(pictures(page)).to_have_count(number)
        expect_rest(page)
    page.locator("#top [data-act=stage]").click()
    expect(page.locator("#canvas .cv-pic")).to_have_attribute("data-handle", "#1b")
    yield "canvas-wide-light-en", _seen(page, _WIDE)
    page.locator("#tab-gallery").click()
    yield "gallery-middle-light-en", _seen(page, _MIDDLE)
    page.set_viewport_size(_PHONE)
    page.locator("#tabs [data-tab=tree]").click()
    yield "tree-phone-light-en", _seen(page, _PHONE)
    page.locator("#tabs .to-chat").click()
    yield "chat-phone-light-en", _seen(page, _PHONE)
    page.context.close()
    yield from _in_chinese(browser, url)


def _in_chinese(browser: Browser, url: str) -> Iterator[tuple[str, Image.Image]]:
    page = _tab(browser, CHINESE)
    page.goto(url)
    expect_ready(page)
    page.locator("#top [data-act=stage]").click()
    expect(page.locator("#canvas .cv-pic")).to_be_visible()
    yield "canvas-middle-dark-zh", _seen(page, _MIDDLE)
    page.set_viewport_size(_WIDE)
    page.locator("#tab-trace").click()
    expect(page.locator("#trace .trc-step").first).to_be_visible()
    yield "trace-wide-dark-zh", _seen(page, _WIDE)
    page.set_viewport_size(_PHONE)
    page.locator("#tabs [data-tab=gallery]").click()
    expect(page.locator("#gallery .gal-cell")).to_have_count(2)
    yield "gallery-phone-dark-zh", _seen(page, _PHONE)
    open_page(page, url)
    yield "start-middle-dark-zh", _seen(page, _MIDDLE)
    page.set_viewport_size(_WIDE)
    page.locator("#rail [data-act=settings]").click()
    yield "settings-wide-dark-zh", _seen(page, _WIDE)
    page.keyboard.press("Escape")
    page.set_viewport_size(_PHONE)
    page.locator("#confirm input").check(force=True)
    say(page, "画一只帆船")
    expect(page.locator("#chat .plan")).to_be_visible()
    expect_rest(page)
    yield "plan-phone-dark-zh", _seen(page, _PHONE)
    page.context.close()


def kept(name: str) -> Image.Image:
    """Return the picture that is kept of a screen, half as large as the screen."""
    return Image.open(FOLDER / f"{name}.webp").convert("L")


def keep(name: str, seen: Image.Image) -> None:
    """Keep a screen as it is now."""
    small = seen.convert("L").resize((seen.width // 2, seen.height // 2), Image.Resampling.LANCZOS)
    FOLDER.mkdir(exist_ok=True)
    small.save(FOLDER / f"{name}.webp", quality=70, method=6)


def difference(seen: Image.Image, before: Image.Image) -> float:
    """Return how much of a screen differs from the picture that is kept of it, from 0 to 1."""
    now, then = _cells(seen, seen.size), _cells(before, seen.size)
    lightest, darkest = then.filter(ImageFilter.MaxFilter(3)), then.filter(ImageFilter.MinFilter(3))
    off = ImageChops.lighter(ImageChops.subtract(now, lightest), ImageChops.subtract(darkest, now))
    clearly = sum(off.histogram()[_CLEARLY + 1 :])
    return clearly / (off.width * off.height)


def _cells(image: Image.Image, size: tuple[int, int]) -> Image.Image:
    return image.convert("L").resize((size[0] // CELL_PX, size[1] // CELL_PX), Image.Resampling.BOX)


def _tab(browser: Browser, who: Who) -> Page:
    context = browser.new_context(viewport=_WIDE, locale=who.locale, color_scheme=who.scheme, reduced_motion="reduce")
    return context.new_page()


def _seen(page: Page, size: ViewportSize) -> Image.Image:
    page.set_viewport_size(size)
    page.mouse.move(size["width"] // 2, 2)
    # The layout has settled when nothing is loading and two looks in a row are the same.
    page.wait_for_function("[...document.images].every(one => one.loading === 'lazy' || one.complete)")
    before = b""
    for _ in range(20):
        now = page.screenshot(animations="disabled", caret="hide")
        if now == before:
            break
        before = now
        page.wait_for_timeout(250)
    return Image.open(io.BytesIO(before)).convert("L")


def main() -> None:
    """Take all of them anew."""
    expect.set_options(timeout=20_000)
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as home, PageProcess(home=Path(home)) as studio:
        browser = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox", "--disable-gpu"])
        for name, seen in looks(browser, studio.url):
            keep(name, seen)
        browser.close()


if __name__ == "__main__":
    main()

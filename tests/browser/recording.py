"""`python -m tests.browser.recording` makes the READMEs' recordings anew: real frames of a real page on sketch."""

from __future__ import annotations

import base64
import io
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from PIL import Image, ImageChops
from playwright.sync_api import Browser, CDPSession, Page, expect, sync_playwright

from tests.page import PageProcess
from tests.page.chromium import chromium
from tests.page.hands import composer, expect_rest, open_page, pictures

_IMAGES = Path(__file__).parents[2] / "docs" / "images"
_SIZE = (1180, 740)
_SHOWN_WIDTH = 944
_QUALITY = 62
_KEY_MS, _FRAME_MS, _LAST_MS = 45, 125, 2600
_MOST_BYTES = 1_500_000
# A caret that blinks is no news.
_SEEN_DIFFERENCE = 12


@dataclass
class Film:
    """The frames that Chromium sends while it draws, each with its moment in seconds."""

    wire: CDPSession
    frames: list[tuple[float, bytes]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.wire.on("Page.screencastFrame", self._take)
        self.wire.send("Page.startScreencast", {"format": "png", "everyNthFrame": 1})

    def _take(self, frame: dict[str, Any]) -> None:
        self.frames.append((frame["metadata"]["timestamp"], base64.b64decode(frame["data"])))
        self.wire.send("Page.screencastFrameAck", {"sessionId": frame["sessionId"]})

    def end(self) -> list[tuple[float, bytes]]:
        """Stop filming and return the frames."""
        self.wire.send("Page.stopScreencast")
        return self.frames


def main() -> None:
    """Write a recording for each language."""
    _IMAGES.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox", "--hide-scrollbars"])
        for name, locale, scene in (("studio.webp", "en-US", _english), ("studio.zh-CN.webp", "zh-CN", _chinese)):
            frames = _filmed(browser, locale, scene)
            size = write(frames, _IMAGES / name)
            print(f"{name}: {len(frames)} frames, {size / 1e6:.2f} MB")
        browser.close()


def _filmed(browser: Browser, locale: str, scene: Callable[[Page], None]) -> list[tuple[float, bytes]]:
    width, height = _SIZE
    with tempfile.TemporaryDirectory() as home, PageProcess(home=Path(home)) as studio:
        context = browser.new_context(viewport={"width": width, "height": height}, locale=locale)
        page = context.new_page()
        open_page(page, studio.url)
        page.wait_for_timeout(800)
        film = Film(context.new_cdp_session(page))
        scene(page)
        frames = film.end()
        context.close()
    return frames


def _english(page: Page) -> None:
    _ask(page, "Draw a red fox in the snow, 16:9", 1)
    _ask(page, "Make it warmer, with more contrast", 2)
    _compare(page, "Compare")


def _chinese(page: Page) -> None:
    _ask(page, "画一只雪地里的红狐狸，16:9", 1)
    _ask(page, "再暖一点，对比强一些", 2)
    _compare(page, "对比")


def _ask(page: Page, wish: str, count: int) -> None:
    composer(page).press_sequentially(wish, delay=_KEY_MS)
    page.wait_for_timeout(350)
    composer(page).press("Enter")
    expect(pictures(page)).to_have_count(count, timeout=30_000)
    expect_rest(page)
    page.wait_for_timeout(1300)


def _compare(page: Page, label: str) -> None:
    """Open the slider between the newest picture and the one it came from, and move it there and back."""
    page.locator("#chat .pic").last.get_by_role("button", name=label, exact=True).click()
    slider = page.locator(".cmp-range")
    expect(slider).to_be_visible()
    page.wait_for_timeout(900)
    box = page.locator(".cmp-frame").first.bounding_box()
    assert box is not None
    middle, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(middle, y)
    page.mouse.down()
    for part in (0.75, 0.85, 0.6, 0.4, 0.2, 0.15, 0.35, 0.5):
        page.mouse.move(box["x"] + box["width"] * part, y, steps=5)
        page.wait_for_timeout(140)
    page.mouse.up()
    page.wait_for_timeout(400)


def write(frames: Sequence[tuple[float, bytes]], path: Path) -> int:
    """Write the frames as an animated WebP that loops, at a calm pace, and return its size in bytes.

    Frames that come too fast, or show nothing new, are left out; the one before stands longer instead. Raises
    ValueError when the file is too large for a README.
    """
    kept: list[tuple[float, Image.Image]] = []
    for moment, data in frames:
        with Image.open(io.BytesIO(data)) as whole:
            shown = whole.convert("RGB").resize(
                (_SHOWN_WIDTH, round(whole.height * _SHOWN_WIDTH / whole.width)), Image.Resampling.LANCZOS
            )
        if kept and (moment - kept[-1][0]) * 1000 < _FRAME_MS:
            # The newest of a quick run is what one would see.
            kept[-1] = (kept[-1][0], shown)
        elif not kept or _differ(kept[-1][1], shown):
            kept.append((moment, shown))
    durations = [round(1000 * (after - before)) for (before, _), (after, _) in pairwise(kept)]
    first, *others = [image for _, image in kept]
    first.save(
        path,
        save_all=True,
        append_images=others,
        duration=[*durations, _LAST_MS],
        loop=0,
        quality=_QUALITY,
        method=6,
        minimize_size=True,
    )
    size = path.stat().st_size
    if size > _MOST_BYTES:
        raise ValueError(f"{path.name} has {size} bytes: too large for a README")
    return size


def _differ(one: Image.Image, other: Image.Image) -> bool:
    if one.size != other.size:
        return True
    difference = ImageChops.difference(one, other).convert("L")
    changed = difference.point(lambda value: 255 if value > _SEEN_DIFFERENCE else 0).getbbox()
    return changed is not None


if __name__ == "__main__":
    main()

"""`python -m tests.docs.images` makes the READMEs' pictures and recordings anew: a real page on the sketch model.

For each language: a recording of a picture that is drawn, changed and compared, a picture that is being painted over,
on a wide screen, and the same conversation on a phone.
"""

from __future__ import annotations

import base64
import io
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

from PIL import Image, ImageChops
from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.page import PageProcess
from tests.page.chromium import chromium
from tests.page.hands import composer, expect_rest, open_page, pictures, say
from tests.page.journeys import Called

_IMAGES = Path(__file__).parents[2] / "docs" / "images"
# By language: the end of the files' names, the prompts of the recording, and those of the pictures.
_SCENES = {
    "en": (
        ".webp",
        ("Draw a red fox in the snow, 16:9", "Make it warmer, with more contrast"),
        ("Draw a red fox in the snow", "Make it a bit warmer, with more contrast"),
    ),
    "zh-CN": (
        ".zh-CN.webp",
        ("画一只雪地里的红狐狸，16:9", "再暖一点，对比强一些"),
        ("画一座雪山，夜晚，有月亮", "在上方加上文字“山间之夜”"),
    ),
}
# Where the brush goes, and where the divider of the comparison, in fractions of the picture.
_STROKE = ((0.2, 0.25), (0.5, 0.2), (0.75, 0.28), (0.45, 0.32), (0.25, 0.3))
_DIVIDED = (0.75, 0.85, 0.6, 0.4, 0.2, 0.15, 0.35, 0.5)
_FILMED_WIDTH, _KEY_MS, _FRAME_MS, _LAST_MS = 944, 45, 125, 2600
_MOST_BYTES = 1_500_000
# A caret that blinks is no news.
_SEEN_DIFFERENCE = 12
Frames = list[tuple[float, Image.Image]]


def main() -> None:
    """Write the files of both languages."""
    expect.set_options(timeout=30_000)
    with sync_playwright() as playwright:
        arguments = ["--no-sandbox", "--hide-scrollbars"]
        browser = playwright.chromium.launch(executable_path=chromium(), args=arguments)
        for language, (ending, told, drawn) in _SCENES.items():
            with _studio(browser, language, 1180, 740) as page:
                frames = _filmed(page, language, told)
            size = _write(frames, _IMAGES / f"studio{ending}")
            print(f"studio{ending}: {len(frames)} frames, {size / 1e6:.2f} MB")
            with _studio(browser, language, 1440, 900) as page:
                for number, prompt in enumerate(drawn, 1):
                    say(page, prompt)
                    expect(pictures(page)).to_have_count(number)
                    expect_rest(page)
                pictures(page).last.click()
                page.locator("#canvas [data-paint=open]").first.click()
                expect(page.locator("#pt-canvas")).to_be_visible()
                _drag(page, *_spots(page, "#pt-canvas", _STROKE))
                _keep(page, f"mask{ending}")
                page.keyboard.press("Escape")
                page.emulate_media(color_scheme="dark")
                page.set_viewport_size({"width": 390, "height": 844})
                page.locator("#tabs .to-chat").click()
                expect(page.locator("#box textarea")).to_be_visible()
                _keep(page, f"phone{ending}")
        browser.close()


@contextmanager
def _studio(browser: Browser, language: str, width: int, height: int) -> Iterator[Page]:
    with tempfile.TemporaryDirectory() as home, PageProcess(home=Path(home)) as studio:
        context = browser.new_context(viewport={"width": width, "height": height}, locale=language)
        page = context.new_page()
        open_page(page, studio.url)
        yield page
        context.close()


def _spots(page: Page, selector: str, places: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    box = page.locator(selector).first.bounding_box()
    assert box is not None
    return [(box["x"] + box["width"] * x, box["y"] + box["height"] * y) for x, y in places]


def _drag(page: Page, first: tuple[float, float], *others: tuple[float, float], pause_ms: int = 0) -> None:
    page.mouse.move(*first)
    page.mouse.down()
    for spot in others:
        page.mouse.move(*spot, steps=8)
        page.wait_for_timeout(pause_ms)
    page.mouse.up()


def _filmed(page: Page, language: str, told: Sequence[str]) -> Frames:
    """Draw, change and compare, and return the frames that Chromium sent meanwhile, each with its moment in seconds."""
    frames: list[tuple[float, bytes]] = []
    wire = page.context.new_cdp_session(page)

    def take(frame: dict[str, Any]) -> None:
        frames.append((frame["metadata"]["timestamp"], base64.b64decode(frame["data"])))
        wire.send("Page.screencastFrameAck", {"sessionId": frame["sessionId"]})

    page.wait_for_timeout(800)
    wire.on("Page.screencastFrame", take)
    wire.send("Page.startScreencast", {"format": "png", "everyNthFrame": 1})
    for count, prompt in enumerate(told, 1):
        composer(page).press_sequentially(prompt, delay=_KEY_MS)
        page.wait_for_timeout(350)
        composer(page).press("Enter")
        expect(pictures(page)).to_have_count(count)
        expect_rest(page)
        page.wait_for_timeout(1300)
    Called(page.locator("#chat .pic").last, language).button("compare.action").click()
    expect(page.locator(".cmp-range")).to_be_visible()
    page.wait_for_timeout(900)
    _drag(page, *_spots(page, ".cmp-frame", [(x, 0.5) for x in (0.5, *_DIVIDED)]), pause_ms=140)
    page.wait_for_timeout(400)
    wire.send("Page.stopScreencast")
    return _chosen(frames)


def _chosen(frames: Sequence[tuple[float, bytes]]) -> Frames:
    """Return the frames at a calm pace: of those that come too fast the newest, and none that shows nothing new."""
    kept: Frames = []
    for moment, data in frames:
        with Image.open(io.BytesIO(data)) as whole:
            size = (_FILMED_WIDTH, round(whole.height * _FILMED_WIDTH / whole.width))
            shown = whole.convert("RGB").resize(size, Image.Resampling.LANCZOS)
        if kept and (moment - kept[-1][0]) * 1000 < _FRAME_MS:
            kept[-1] = (kept[-1][0], shown)
        elif not kept or _differ(kept[-1][1], shown):
            kept.append((moment, shown))
    return kept


def _differ(one: Image.Image, other: Image.Image) -> bool:
    difference = ImageChops.difference(one, other).convert("L")
    return difference.point(lambda value: 255 if value > _SEEN_DIFFERENCE else 0).getbbox() is not None


def _write(frames: Frames, path: Path) -> int:
    """Write an animated WebP that loops; return its size in bytes. Raises ValueError when it is too large."""
    durations = [round(1000 * (after - before)) for (before, _), (after, _) in pairwise(frames)]
    first, *others = [image for _, image in frames]
    pace: dict[str, Any] = {"duration": [*durations, _LAST_MS], "loop": 0}
    first.save(path, save_all=True, append_images=others, **pace, quality=62, method=6, minimize_size=True)
    size = path.stat().st_size
    if size > _MOST_BYTES:
        raise ValueError(f"{path.name} has {size} bytes: too large for a README")
    return size


def _keep(page: Page, name: str) -> None:
    page.wait_for_timeout(1500)
    with Image.open(io.BytesIO(page.screenshot())) as seen:
        seen.convert("RGB").save(_IMAGES / name, quality=80, method=6)


if __name__ == "__main__":
    main()

"""`python -m tests.browser.screenshots` makes the READMEs' pictures anew, from a real page on the sketch model.

For each language: a picture that is being painted over, on a wide screen, and the same conversation on a phone.
"""

from __future__ import annotations

import io
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.page import PageProcess
from tests.page.chromium import chromium
from tests.page.hands import expect_rest, open_page, pictures, say

_IMAGES = Path(__file__).parents[2] / "docs" / "images"
_WISHES = {
    "en-US": ("Draw a red fox in the snow", "Make it a bit warmer, with more contrast"),
    "zh-CN": ("画一座雪山，夜晚，有月亮", "在上方加上文字“山间之夜”"),
}
_ENDINGS = {"en-US": ".webp", "zh-CN": ".zh-CN.webp"}
# Where the brush goes, in fractions of the picture.
_STROKE = ((0.2, 0.25), (0.5, 0.2), (0.75, 0.28), (0.45, 0.32), (0.25, 0.3))
_QUALITY = 80


def main() -> None:
    """Write the pictures of both languages."""
    expect.set_options(timeout=30_000)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        for locale in _WISHES:
            _shoot(browser, locale)
        browser.close()


def _shoot(browser: Browser, locale: str) -> None:
    with tempfile.TemporaryDirectory() as home, PageProcess(home=Path(home)) as studio:
        context = browser.new_context(viewport={"width": 1440, "height": 900}, locale=locale)
        page = context.new_page()
        open_page(page, studio.url)
        for number, wish in enumerate(_WISHES[locale], 1):
            say(page, wish)
            expect(pictures(page)).to_have_count(number)
            expect_rest(page)
        pictures(page).last.click()
        page.locator("#canvas [data-paint=open]").first.click()
        canvas = page.locator("#pt-canvas")
        expect(canvas).to_be_visible()
        box = canvas.bounding_box()
        assert box is not None
        spots = [(box["x"] + box["width"] * x, box["y"] + box["height"] * y) for x, y in _STROKE]
        page.mouse.move(*spots[0])
        page.mouse.down()
        for spot in spots[1:]:
            page.mouse.move(*spot, steps=12)
        page.mouse.up()
        _keep(page, f"mask{_ENDINGS[locale]}")
        page.keyboard.press("Escape")
        page.emulate_media(color_scheme="dark")
        page.set_viewport_size({"width": 390, "height": 844})
        page.locator("#tabs .to-chat").click()
        expect(page.locator("#box textarea")).to_be_visible()
        _keep(page, f"phone{_ENDINGS[locale]}")
        context.close()


def _keep(page: Page, name: str) -> None:
    page.wait_for_timeout(1500)
    with Image.open(io.BytesIO(page.screenshot())) as seen:
        seen.convert("RGB").save(_IMAGES / name, quality=_QUALITY, method=6)


if __name__ == "__main__":
    main()

"""`python -m tests.browser.screenshots` makes the READMEs' pictures anew, from a real page on the sketch model."""

from __future__ import annotations

import tempfile
from pathlib import Path

from playwright.sync_api import Browser, expect, sync_playwright

from tests.page import PageProcess
from tests.page.chromium import chromium
from tests.page.hands import expect_rest, open_page, pictures, say

_IMAGES = Path(__file__).parents[2] / "docs" / "images"
_SCENES = {
    "studio.png": ("en-US", "light", ["Draw a red fox in the snow", "Make it a bit warmer, with more contrast"]),
    "studio.zh-CN.png": ("zh-CN", "dark", ["画一座雪山，夜晚，有月亮", "在上方加上文字“山间之夜”"]),
}


def main() -> None:
    """Write both pictures."""
    _IMAGES.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        for name in _SCENES:
            _shoot(browser, name)
        browser.close()


def _shoot(browser: Browser, name: str) -> None:
    locale, scheme, wishes = _SCENES[name]
    with tempfile.TemporaryDirectory() as home, PageProcess(home=Path(home)) as studio:
        context = browser.new_context(viewport={"width": 1440, "height": 900}, locale=locale)
        page = context.new_page()
        page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
        open_page(page, studio.url)
        for number, wish in enumerate(wishes, 1):
            say(page, wish)
            expect(pictures(page)).to_have_count(number, timeout=30_000)
            expect_rest(page)
        pictures(page).last.click()
        page.wait_for_timeout(1500)
        page.screenshot(path=_IMAGES / name)
        context.close()


if __name__ == "__main__":
    main()

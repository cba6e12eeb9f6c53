"""Every screen by axe-core, wide in light and dark, and narrow: no fault, no word of another language, and on a phone
nothing that a finger cannot surely hit."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from functools import partial
from importlib import resources
from pathlib import Path
from typing import TypeAlias

import pytest
from playwright.sync_api import Browser, Page, ViewportSize, expect

from tests.browser.screens import open_dialog, plan, screens, show_tab
from tests.page import PageProcess
from tests.page.hands import open_at, open_page

_SCRIPTS = Path(__file__).parents[1] / "page"
WIDE: ViewportSize = {"width": 1440, "height": 900}
PHONE: ViewportSize = {"width": 390, "height": 844}
Left: TypeAlias = Callable[[Page], list[str]]
# What another theme changes, and a narrower window does not.
_COLOURS: dict[str, object] = {"runOnly": {"type": "rule", "values": ["color-contrast", "link-in-text-block"]}}
# What closes when anything else is done.
_MENUS = ("ratios", "aids", "presets", "menu", "filters", "tree menu")
_AXE = resources.files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8")
_WORDS = (_SCRIPTS / "words_shown.js").read_text(encoding="utf-8")
_UNSEEN = (_SCRIPTS / "unseen_focus.js").read_text(encoding="utf-8")
_SMALL = (_SCRIPTS / "small_targets.js").read_text(encoding="utf-8")
_LEAST_TARGET_PX = 44
# What is called the same in Chinese: names of makers, models, formats and keys.
_NAMES = re.compile(
    r"""(?<![A-Za-z])(?:Aivista|Gemini|Google|aistudio\.google\.com\S*|Flash|Pro|Thinking|Sketch\w*|[Aa]uto
    |AI|API|MCP|JSON|PNG|JPEG|WebP|GIF|HEIC|AVIF|ZIP|HTML|URL|EXIF|Markdown|JavaScript|US|MB|kB|px
    |English|zip|image/\w+|STOP|adjuster|CCD|VHS|PLAY
    |Ctrl|Shift|Enter|Esc|Tab|Home|End|Del|Alt)(?![A-Za-z])""",
    re.VERBOSE,
)


def faults(page: Page, where: str = "html", rules: dict[str, object] | None = None) -> list[str]:
    """Return what axe finds wrong there on the page as it is now, by `rules` or by all."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(_AXE)
    # All style sheets are loaded for a single rule, about turned screens.
    options = {"resultTypes": ["violations"], "preload": where == "html", **(rules or {})}
    found = page.evaluate("([where, options]) => axe.run(where, options)", [where, options])["violations"]
    return [
        f"{one['impact']} {one['id']}: {node['target']} {node['html'][:90]}" for one in found for node in one["nodes"]
    ]


def english_left(page: Page) -> list[str]:
    """Return what on a Chinese page has English words."""
    texts: list[str] = page.evaluate(_WORDS)
    return [text for text in texts if re.search(r"[A-Za-z]{3,}", _NAMES.sub("", text))]


def chinese_left(page: Page) -> list[str]:
    """Return what on an English page has Chinese signs, but for the name of the other language."""
    texts: list[str] = page.evaluate(_WORDS)
    return [text for text in texts if re.search(r"[\u4e00-\u9fff]", text) and text != "中文"]


def at_last(page: Page, left: Left) -> list[str]:
    """Return what is left in the end, when nothing is or after as long as for any other expectation: Gradio draws a
    label, and what it has loaded, a moment later."""
    until = time.monotonic() + 20
    while (found := left(page)) and time.monotonic() < until:
        page.wait_for_timeout(100)  # between two looks; what is waited for is that nothing is left
    return found


def small_targets(page: Page) -> list[str]:
    """Return the controls in sight that are smaller than a finger needs, on a phone."""
    found: list[str] = page.evaluate(_SMALL, _LEAST_TARGET_PX) if page.viewport_size == PHONE else []
    return found


@pytest.mark.parametrize(
    ("size", "locale", "wishes", "planned", "left"),
    [
        (WIDE, "en-US", ("draw a red fox in the snow", "make it warmer"), "a castle on a hill", chinese_left),
        (PHONE, "zh-CN", ("画一只雪地里的红狐", "再暖一点"), "山上的城堡", english_left),
    ],
    ids=["wide-english", "phone-chinese"],
)
# axe looks at some forty screens: a minute on a machine with nothing else to do.
@pytest.mark.timeout(300)
def test_no_screen_has_a_fault_a_word_of_another_language_or_too_small_a_target(
    browser: Browser,
    studio: PageProcess,
    photo: Path,
    size: ViewportSize,
    locale: str,
    wishes: tuple[str, str],
    planned: str,
    left: Left,
) -> None:
    is_phone = size == PHONE
    context = browser.new_context(
        viewport=size,
        locale=locale,
        color_scheme="light",
        reduced_motion="reduce",
        has_touch=is_phone,
        is_mobile=is_phone,
    )
    page = context.new_page()
    open_page(page, studio.url)
    found = [f"start: {one}" for one in [*at_last(page, faults), *at_last(page, left), *small_targets(page)]]
    open_at(page, studio.sketched(*wishes), 2)
    for name, where in screens(page, photo):
        # What lies under the pointer may still change its colour.
        of_it = at_last(page, partial(faults, where=where))
        found += [f"{name}: {one}" for one in [*of_it, *left(page), *small_targets(page)]]
        if name in _MENUS:
            continue
        page.keyboard.press("Shift")  # from here on the focus is seen, as for anybody who works with keys
        found += [f"{name}, no focus seen: {one}" for one in page.evaluate(_UNSEEN)]
        if is_phone:
            # The colours are those of the wide page.
            continue
        page.emulate_media(color_scheme="dark", reduced_motion="reduce")
        expect(page.locator("body.dark")).to_be_attached()
        found += [f"{name}, dark: {one}" for one in faults(page, where, _COLOURS)]
        page.emulate_media(color_scheme="light", reduced_motion="reduce")
        expect(page.locator("body.dark")).to_have_count(0)
    open_page(page, studio.url)
    plan(page, planned)
    found += [f"plan: {one}" for one in [*faults(page), *left(page), *small_targets(page)]]
    context.close()
    assert found == []


def test_what_is_chosen_is_told_apart_where_the_system_gives_the_colours(page: Page, studio: PageProcess) -> None:
    open_page(page, studio.url)
    page.emulate_media(forced_colors="active")
    grounds = "all => new Set(all.map(one => getComputedStyle(one).backgroundColor)).size"
    page.get_by_role("button", name="Picture panel").click()
    show_tab(page, "gallery")
    assert page.locator("#tabs [role=tab]").evaluate_all(grounds) == 2
    open_dialog(page, "setup")
    assert page.locator("#setup #review label").evaluate_all(grounds) == 2

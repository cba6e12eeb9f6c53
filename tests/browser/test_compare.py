"""Two pictures of a conversation compared on the stage, by mouse, by keyboard, on a phone."""

from __future__ import annotations

import re
from pathlib import Path

from playwright.sync_api import Locator, Page, expect

from tests.page import PageProcess
from tests.page.hands import attach, expect_loaded, expect_pictures, open_at, open_page, place_of, say
from tests.page.journeys import on, step


def open_compared(page: Page, address: str) -> Locator:
    open_at(page, address)
    on(page, "#chat").button("compare.action").first.click()
    stage = page.locator("#canvas .cmp")
    expect(stage).to_be_visible()
    expect_loaded(stage.locator(".second img"))
    return stage


def choose(stage: Locator, name: str) -> None:
    stage.get_by_role("radio", name=name).click()
    expect(stage.get_by_role("radio", name=name)).to_have_attribute("aria-checked", "true")


def style(element: Locator, name: str) -> str:
    value: str = element.evaluate("(element, name) => getComputedStyle(element)[name]", name)
    return value


def it_works_on_a_phone_in_chinese(phone: Page, address: str) -> None:
    open_at(phone, address)
    on(phone, "#chat").button("compare.action").first.tap()
    stage = phone.locator("#canvas .cmp")
    for name in ("并排", "差异", "滑动"):
        stage.get_by_role("radio", name=name).tap()
        expect(stage.get_by_role("radio", name=name)).to_have_attribute("aria-checked", "true")
        assert phone.evaluate("document.documentElement.scrollWidth") <= 390
    targets = stage.locator("button:visible, select:visible").evaluate_all(
        "all => all.map(one => one.getBoundingClientRect().height)"
    )
    assert min(targets) >= 40
    well = place_of(stage.locator(".cmp-well"))
    assert well["height"] > 300


def test_two_pictures_are_compared_in_three_ways_whatever_their_sizes_by_mouse_by_keys_and_with_fingers(
    page: Page, phone: Page, studio: PageProcess, photo: Path
) -> None:
    open_page(page, studio.url)
    attach(page, photo)
    say(page, "Make it much warmer")
    expect_pictures(page, 1)
    on(page, "#chat").button("action.edit").first.click()
    say(page, "Crop it to 1:1")
    expect_pictures(page, 2)
    expect(on(page, "#chat").button("compare.action")).to_have_count(2)
    # An upload (#1), the same warmer, and that one cut to a square.
    address = page.url
    # First: a difference that was seen once needs no other answer.
    stage = open_compared(page, address)
    with step("a difference that cannot be had is said and asked for again, and from there back to one picture"):
        page.route("**/aivista/difference/**", lambda route: route.fulfill(status=429))
        expect(stage.get_by_role("radio", name="Slider")).to_have_attribute("aria-checked", "true")
        choose(stage, "Difference")
        expect(stage.get_by_role("status")).to_have_text(
            "The difference cannot be shown. Please choose this view again."
        )
        page.unroute("**/aivista/difference/**")
        choose(stage, "Difference")
        expect(stage.get_by_role("status")).to_contain_text("of the pixels differ")
        stage.get_by_role("button", name="Open #1").click()
        expect(page.locator("#canvas .cv-pic img")).to_be_visible()
        expect(stage).to_have_count(0)
        on(page, "#canvas").button("compare.action").click()
        expect(stage).to_be_visible()
    with step("they share one frame, are picked and swapped, and nonsense changes nothing"):
        on(page, "#chat").button("compare.action").nth(1).click()
        expect_loaded(stage.locator(".second img"))
        expect(stage.locator(".cmp-sizes")).to_have_text(
            re.compile(r"^#\w+ is 480×320, #\w+ is 320×320: fitted to one frame\.$")
        )
        boxes = [stage.locator(f".cmp-pane.{name}").bounding_box() for name in ("first", "second")]
        assert boxes[0] == boxes[1]
        # The square was cut out of the middle, where it is laid over the other again.
        choose(stage, "Difference")
        expect(stage.get_by_role("status")).to_have_text("Identical, pixel for pixel, at 320×320.")
        choose(stage, "Side by side")
        first, second = (stage.get_by_label(name).input_value() for name in ("First", "Second"))
        stage.get_by_role("button", name="Swap").click()
        expect(stage.locator(".first .tag")).to_have_text(second)
        expect(stage.locator(".second .tag")).to_have_text(first)
        stage.get_by_label("First").select_option("#1")
        expect(stage.locator(".first .tag")).to_have_text("#1")
        expect(stage.get_by_role("radio", name="Side by side")).to_have_attribute("aria-checked", "true")
        for argument in ("#1 #9", "", "#9", "../../etc #1"):
            page.evaluate("arg => window.aivista.shell.act('page.compare', { arg })", argument)
        on(page, "#chat").button("compare.action").nth(1).click()
        expect(stage.locator(".cmp-sizes")).to_contain_text("320×320")
    with step("the only picture has nothing to be compared with"):
        open_at(page, studio.sketched("draw a boat"), 1)
        on(page, "#chat").button("compare.action").click()
        expect(page.locator("#canvas")).to_contain_text("#1 is the only picture in this conversation")
    stage = open_compared(page, address)
    choose(stage, "Slider")
    with step("a picture is divided from what it was made from, by mouse and by keys"):
        expect(stage.locator(".first .tag")).to_have_text("#1")
        expect(stage.get_by_label("Second")).to_have_value(re.compile("#1b|#2"))
        expect(stage.locator(".cmp-sizes")).to_have_text("Both are 480×320.")
        divider, second = stage.get_by_role("slider"), stage.locator(".second")
        assert style(second, "clipPath") == "inset(0px 0px 0px 50%)"
        divider.focus()
        for _ in range(5):
            page.keyboard.press("ArrowLeft")
        assert style(second, "clipPath") == "inset(0px 0px 0px 45%)"
        expect(divider).to_have_attribute("aria-valuetext", "45 % #1")
        box = place_of(stage.locator(".cmp-frame"))
        page.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + box["height"] * 0.5)
        page.mouse.down()
        page.mouse.move(box["x"] + box["width"] * 0.8, box["y"] + box["height"] * 0.5, steps=4)
        page.mouse.up()
        assert abs(int(divider.input_value()) - 80) <= 1
        line = place_of(stage.locator(".cmp-line"))
        assert abs(line["x"] - (box["x"] + box["width"] * 0.8)) < 8
    with step("no way to compare moves what stands around the pictures, and the difference is shown and counted"):
        other = stage.get_by_label("Second").input_value()
        parts = (".cmp-well", ".cmp-modes", ".cmp-tools", ".cmp-sizes")
        before = [stage.locator(part).bounding_box() for part in parts]
        for name in ("Side by side", "Difference"):
            choose(stage, name)
            assert [stage.locator(part).bounding_box() for part in parts] == before
        expect(stage.get_by_role("status")).to_contain_text("of the pixels differ")
        assert [stage.locator(part).bounding_box() for part in parts] == before
        said = stage.get_by_role("status")
        differs = r"[\d.<>]+ % of the pixels differ, [\d.<>]+ % by 16 of 255 or more"
        expect(said).to_have_text(re.compile(rf"^{differs}\. The largest change is \d+ of 255\.$"))
        shown = stage.get_by_alt_text("Where #1 and", exact=False)
        expect(shown).to_be_visible()
        expect_loaded(shown)
        stage.get_by_label("Second").select_option("#1")
        expect(said).to_have_text("Identical, pixel for pixel, at 480×320.")
    stage.get_by_label("Second").select_option(other)
    with step("side by side both are zoomed and moved together, and the ways are chosen with the arrow keys"):
        choose(stage, "Side by side")
        first, second = stage.locator(".first img"), stage.locator(".second img")
        assert style(first, "transform") == style(second, "transform") == "matrix(1, 0, 0, 1, 0, 0)"
        stage.get_by_role("button", name="Zoom in").click()
        stage.get_by_role("button", name="Zoom in").click()
        expect(stage.locator("output")).to_have_text("156 %")
        near = style(first, "transform")
        assert near != "matrix(1, 0, 0, 1, 0, 0)"
        assert style(second, "transform") == near
        stage.locator(".cmp-frame").focus()
        page.keyboard.press("ArrowRight")
        assert style(first, "transform") == style(second, "transform") != near
        page.keyboard.press("0")
        expect(stage.locator("output")).to_have_text("100 %")
        box = place_of(stage.locator(".cmp-pane.second"))
        page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        page.mouse.wheel(0, -400)
        expect(stage.locator("output")).not_to_have_text("100 %")
        nearer = style(first, "transform")
        page.mouse.down()
        page.mouse.move(box["x"] + box["width"] / 2 + 30, box["y"] + box["height"] / 2 + 20, steps=3)
        page.mouse.up()
        assert style(first, "transform") == style(second, "transform") != nearer
        page.keyboard.press("0")
        choose(stage, "Slider")
        page.keyboard.press("ArrowRight")
        expect(stage.get_by_role("radio", name="Side by side")).to_be_focused()
        page.keyboard.press("ArrowLeft")
        page.keyboard.press("ArrowLeft")
        expect(stage.get_by_role("radio", name="Difference")).to_be_focused()
        page.keyboard.press("Escape")
        for part in (".cmp-tools p >> nth=1", ".cmp-pane.first", ".cmp-said"):
            expect(stage.locator(part)).to_be_hidden()
    it_works_on_a_phone_in_chinese(phone, address)

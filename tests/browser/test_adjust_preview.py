"""The sliders of a panel, shown on the picture while they move."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Browser, Locator, Page, Route, expect

from tests.page import PageProcess
from tests.page.hands import expect_loaded, expect_ready, expect_rest, expect_still, open_at, pictures

PREVIEW = re.compile("^blob:")
STORED = re.compile(r"^media/")


@pytest.fixture(scope="module")
def drawn(studio: PageProcess) -> str:
    """The address of a conversation with one picture."""
    return studio.sketched("draw a red fox in the snow")


def open_sliders(page: Page, address: str) -> Locator:
    page.goto(address)
    expect_ready(page)
    expect_loaded(pictures(page).first)
    sliders = page.locator("#chat .next-steps[open] .sliders")
    sliders.locator("summary").click()
    expect(sliders.get_by_label("Warmth")).to_be_visible()
    return sliders


def mean_colour(picture: Locator) -> list[float]:
    """Return the mean red, green and blue of what the browser shows."""
    colours: list[float] = picture.evaluate(
        """async image => {
            await image.decode();
            const canvas = Object.assign(document.createElement("canvas"), { width: 64, height: 36 });
            const context = canvas.getContext("2d");
            context.drawImage(image, 0, 0, 64, 36);
            const data = context.getImageData(0, 0, 64, 36).data;
            const sums = [0, 0, 0];
            data.forEach((level, at) => { if (at % 4 < 3) sums[at % 4] += level; });
            return sums.map(sum => sum / (64 * 36));
        }"""
    )
    return colours


def test_the_picture_shows_what_the_sliders_do_and_nothing_moves(page: Page, drawn: str) -> None:
    sliders = open_sliders(page, drawn)
    picture, frame = pictures(page).first, page.locator("#chat .frame").first
    # Filling a slider scrolls to it first, which is no movement of the page's own.
    sliders.get_by_label("Warmth").scroll_into_view_if_needed()
    expect_still(page, "document.querySelector('#chat .frame').getBoundingClientRect().top")
    before, cool = frame.bounding_box(), mean_colour(picture)
    panel = sliders.bounding_box()
    sliders.get_by_label("Warmth").fill("80")
    expect(picture).to_have_attribute("src", PREVIEW)
    expect(frame).to_have_attribute("data-previewing", "Preview")
    expect(sliders.locator(".previewed")).to_have_text("Preview on #1. Nothing is kept until you apply it.")
    warm = mean_colour(picture)
    assert warm[0] - warm[2] > cool[0] - cool[2] + 10
    assert frame.bounding_box() == before
    assert sliders.bounding_box() == panel
    sliders.get_by_label("Warmth").fill("0")
    expect(picture).to_have_attribute("src", STORED)
    expect(frame).not_to_have_attribute("data-previewing", re.compile(""))
    # The browser may take another of the picture's sizes now.
    assert mean_colour(picture) == pytest.approx(cool, abs=0.5)


def test_what_is_applied_is_what_was_shown(page: Page, studio: PageProcess) -> None:
    open_at(page, studio.sketched("draw a blue bird"), 1)
    sliders = open_sliders(page, page.url)
    picture = pictures(page).first
    sliders.get_by_label("Warmth").fill("60")
    sliders.get_by_label("Brightness").fill("-20")
    expect(picture).to_have_attribute("src", PREVIEW)
    expect(sliders.locator(".previewed")).to_contain_text("Preview on #1")
    old = picture.get_attribute("src") or ""
    with page.expect_response(re.compile("aivista/preview/.*brightness=-40.*warmth=60")):
        sliders.get_by_label("Brightness").fill("-40")
    expect(picture).not_to_have_attribute("src", old)
    expect(picture).to_have_attribute("src", PREVIEW)
    shown = mean_colour(picture)
    sliders.get_by_role("button", name="Apply").click()
    expect(picture).to_have_attribute("src", STORED)
    expect(pictures(page)).to_have_count(2)
    expect_rest(page)
    expect_loaded(pictures(page).last)
    applied = mean_colour(pictures(page).last)
    assert all(abs(one - other) < 3 for one, other in zip(shown, applied, strict=True))


def test_before_is_seen_while_it_is_held_and_reset_gives_the_picture_back(page: Page, drawn: str) -> None:
    sliders = open_sliders(page, drawn)
    picture = pictures(page).first
    before = sliders.get_by_role("button", name="Before")
    expect(before).to_be_disabled()
    sliders.get_by_label("Contrast").fill("50")
    expect(picture).to_have_attribute("src", PREVIEW)
    before.hover()
    page.mouse.down()
    expect(picture).to_have_attribute("src", STORED)
    page.mouse.up()
    expect(picture).to_have_attribute("src", PREVIEW)
    before.focus()
    page.keyboard.down("Enter")
    expect(picture).to_have_attribute("src", STORED)
    page.keyboard.up("Enter")
    expect(picture).to_have_attribute("src", PREVIEW)
    sliders.get_by_role("button", name="Reset").click()
    expect(picture).to_have_attribute("src", STORED)
    expect(sliders.get_by_label("Contrast")).to_have_value("0")
    expect(sliders.locator("output").nth(1)).to_have_text("0")
    expect(sliders.get_by_role("button", name="Apply")).to_be_disabled()


def test_a_panel_that_is_closed_gives_the_picture_back(page: Page, drawn: str) -> None:
    sliders = open_sliders(page, drawn)
    picture = pictures(page).first
    sliders.get_by_label("Saturation").fill("-100")
    expect(picture).to_have_attribute("src", PREVIEW)
    sliders.locator("summary").click()
    expect(picture).to_have_attribute("src", STORED)
    sliders.locator("summary").click()
    expect(picture).to_have_attribute("src", PREVIEW)
    page.locator("#chat .next-steps[open] > summary").click()
    expect(picture).to_have_attribute("src", STORED)


def test_the_stage_shows_it_too_also_when_it_is_opened_later(page: Page, drawn: str) -> None:
    sliders = open_sliders(page, drawn)
    sliders.get_by_label("Brightness").fill("40")
    expect(pictures(page).first).to_have_attribute("src", PREVIEW)
    page.locator("#chat .frame").click()
    staged = page.locator("#canvas .cv-pic > img").first
    expect(staged).to_have_attribute("src", PREVIEW)
    sliders.get_by_role("button", name="Reset").click()
    expect(staged).to_have_attribute("src", STORED)


def test_the_newest_counts_and_a_busy_studio_is_asked_again(page: Page, drawn: str) -> None:
    def answer(route: Route) -> None:
        asked.append(route.request.url.partition("?")[2])
        if len(asked) == 1:
            route.fulfill(status=429)
        else:
            route.continue_()

    asked: list[str] = []
    sliders = open_sliders(page, drawn)
    picture = pictures(page).first
    page.route("**/aivista/preview/**", answer)
    sliders.get_by_label("Sharpness").evaluate(
        """input => {
            for (const value of [10, 20, 30, 40, 50]) {
                input.value = value;
                input.dispatchEvent(new Event("input", { bubbles: true }));
            }
        }"""
    )
    expect(picture).to_have_attribute("src", PREVIEW)
    assert asked == ["sharpness=50", "sharpness=50"]
    page.unroute("**/aivista/preview/**")


def test_a_preview_that_cannot_be_had_is_said_and_the_picture_stays(page: Page, drawn: str) -> None:
    sliders = open_sliders(page, drawn)
    page.route("**/aivista/preview/**", lambda route: route.fulfill(status=500))
    sliders.get_by_label("Warmth").fill("35")
    expect(sliders.locator(".previewed")).to_have_text("The preview cannot be shown. Applying still works.")
    expect(sliders.get_by_role("button", name="Apply")).to_be_enabled()
    expect(pictures(page).first).to_have_attribute("src", STORED)
    page.unroute("**/aivista/preview/**")


def test_on_a_phone_a_small_picture_stays_beside_the_sliders(browser: Browser, drawn: str) -> None:
    context = browser.new_context(viewport={"width": 390, "height": 844}, locale="zh-CN")
    page = context.new_page()
    page.goto(drawn)
    expect_ready(page)
    sliders = page.locator("#chat .next-steps[open] .sliders")
    sliders.locator("summary").click()
    small = sliders.locator(".mini img")
    expect_loaded(small)
    box = sliders.bounding_box()
    sliders.get_by_label("色温").fill("-70")
    expect(small).to_have_attribute("src", PREVIEW)
    expect(small).to_be_in_viewport()
    after = sliders.bounding_box()
    assert box is not None
    assert after is not None
    assert (after["width"], after["height"]) == (box["width"], box["height"])
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    context.close()


def test_the_sliders_of_an_adjusted_picture_stand_where_it_stands(page: Page, studio: PageProcess) -> None:
    open_at(page, studio.sketched("draw a blue bird", "a bit warmer"), 2)
    sliders = page.locator("#chat .next-steps[open] .sliders")
    sliders.locator("summary").click()
    warmth = sliders.get_by_label("Warmth")
    expect(warmth).to_have_value("15")
    expect(sliders.get_by_role("button", name="Apply")).to_be_disabled()
    warmth.fill("0")
    expect(pictures(page).last).to_have_attribute("src", PREVIEW)
    sliders.get_by_role("button", name="Apply").click()
    expect(pictures(page)).to_have_count(3)
    expect_rest(page)
    expect_loaded(pictures(page).last)
    assert mean_colour(pictures(page).last) == pytest.approx(mean_colour(pictures(page).first), abs=0.5)

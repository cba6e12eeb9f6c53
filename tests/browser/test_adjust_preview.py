"""The sliders of a panel, shown on the picture while they move."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from tests.page import PageProcess
from tests.page.hands import expect_loaded, expect_pictures, expect_still, open_at, open_sliders, pictures, place_of
from tests.page.journeys import Called, step

PREVIEW = re.compile("^blob:")
STORED = re.compile(r"^media/")


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


def test_what_the_sliders_do_is_shown_and_taken_back_and_applied_as_it_was_shown(
    page: Page, studio: PageProcess
) -> None:
    open_at(page, studio.sketched("draw a red fox in the snow"), 1)
    picture, frame = pictures(page).first, page.locator("#chat .frame").first
    expect_loaded(picture)
    sliders = open_sliders(page)
    called = Called(sliders, "en")
    apply, reset, before = called.button("panel.apply"), called.button("adjust.reset"), called.button("adjust.before")
    with step("the picture shows what the sliders do, and nothing moves"):
        expect(before).to_be_disabled()
        # Filling a slider scrolls to it first, which is no movement of the page's own.
        sliders.get_by_label("Warmth").scroll_into_view_if_needed()
        expect_still(page, "document.querySelector('#chat .frame').getBoundingClientRect().top")
        place, cool = frame.bounding_box(), mean_colour(picture)
        panel = place_of(sliders)
        sliders.get_by_label("Warmth").fill("80")
        expect(picture).to_have_attribute("src", PREVIEW)
        expect(frame).to_have_attribute("data-previewing", "Preview")
        expect(sliders.locator(".previewed")).to_have_text("Preview on #1. Nothing is kept until you apply it.")
        warm = mean_colour(picture)
        assert warm[0] - warm[2] > cool[0] - cool[2] + 10
        assert frame.bounding_box() == place
        assert sliders.bounding_box() == panel
        sliders.get_by_label("Warmth").fill("0")
        expect(picture).to_have_attribute("src", STORED)
        expect(frame).not_to_have_attribute("data-previewing", re.compile(""))
        # The browser may take another of the picture's sizes now.
        assert mean_colour(picture) == pytest.approx(cool, abs=0.5)
    with step("what was before is seen while its button is held"):
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
    with step("all sliders are set back at once"):
        reset.click()
        expect(picture).to_have_attribute("src", STORED)
        expect(sliders.get_by_label("Contrast")).to_have_value("0")
        expect(sliders.locator("output").nth(1)).to_have_text("0")
        expect(apply).to_be_disabled()
    with step("the newest counts, and a busy studio is asked again"):
        asked: list[str] = []

        def answer(route: Route) -> None:
            asked.append(route.request.url.partition("?")[2])
            if len(asked) == 1:
                route.fulfill(status=429)
            else:
                route.continue_()

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
        reset.click()
        expect(picture).to_have_attribute("src", STORED)
    with step("a preview that cannot be had is said, and the picture stays"):
        page.route("**/aivista/preview/**", lambda route: route.fulfill(status=500))
        sliders.get_by_label("Warmth").fill("35")
        expect(sliders.locator(".previewed")).to_have_text("The preview cannot be shown. Applying still works.")
        expect(apply).to_be_enabled()
        expect(picture).to_have_attribute("src", STORED)
        page.unroute("**/aivista/preview/**")
        reset.click()
        expect(apply).to_be_disabled()
    with step("a panel that is closed gives the picture back"):
        sliders.get_by_label("Saturation").fill("-100")
        expect(picture).to_have_attribute("src", PREVIEW)
        sliders.locator("summary").click()
        expect(picture).to_have_attribute("src", STORED)
        sliders.locator("summary").click()
        expect(picture).to_have_attribute("src", PREVIEW)
        steps = page.locator("#chat .next-steps > summary")
        steps.click()
        expect(picture).to_have_attribute("src", STORED)
        open_sliders(page)
        reset.click()
    with step("what is applied is what was shown"):
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
        apply.click()
        expect(picture).to_have_attribute("src", STORED)
        expect_pictures(page, 2)
        expect_loaded(pictures(page).last)
        applied = mean_colour(pictures(page).last)
        assert all(abs(one - other) < 3 for one, other in zip(shown, applied, strict=True))
    with step("the sliders of an adjusted picture stand where it stands, from where they lead back"):
        open_sliders(page)
        expect(sliders.get_by_label("Warmth")).to_have_value("60")
        expect(sliders.get_by_label("Brightness")).to_have_value("-40")
        expect(apply).to_be_disabled()
        sliders.get_by_label("Warmth").fill("0")
        sliders.get_by_label("Brightness").fill("0")
        expect(pictures(page).last).to_have_attribute("src", PREVIEW)
        apply.click()
        expect_pictures(page, 3)
        expect_loaded(pictures(page).last)
        assert mean_colour(pictures(page).last) == pytest.approx(mean_colour(picture), abs=0.5)
    with step("the stage shows it too, also when it is opened later"):
        open_sliders(page)
        sliders.get_by_label("Brightness").fill("40")
        expect(pictures(page).last).to_have_attribute("src", PREVIEW)
        page.locator("#chat .frame").last.click()
        staged = page.locator("#canvas .cv-pic > img").first
        expect(staged).to_have_attribute("src", PREVIEW)
        reset.click()
        expect(staged).to_have_attribute("src", STORED)


def test_on_a_phone_a_small_picture_stays_beside_the_sliders(phone: Page, studio: PageProcess) -> None:
    open_at(phone, studio.sketched("draw a red fox in the snow"), 1)
    sliders = open_sliders(phone)
    small = sliders.locator(".mini img")
    expect_loaded(small)
    box = place_of(sliders)
    sliders.get_by_label("色温").fill("-70")
    expect(small).to_have_attribute("src", PREVIEW)
    expect(small).to_be_in_viewport()
    after = place_of(sliders)
    assert (after["width"], after["height"]) == (box["width"], box["height"])
    assert phone.evaluate("document.documentElement.scrollWidth") <= 390

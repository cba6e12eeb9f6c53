"""References with a role, adjustments without a model, and two image models side by side, in a real browser."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from tests.page import PageProcess
from tests.page.hands import (
    choose_setting,
    expect_loaded,
    expect_pictures,
    open_at,
    open_more,
    open_page,
    open_sliders,
    paint,
    pictures,
    say,
)
from tests.page.journeys import Called, step
from tests.wire_server import GeminiProcess


def test_pictures_are_adjusted_exactly_and_given_as_references_with_a_role(page: Page, studio: PageProcess) -> None:
    called = Called(page)
    receipt = page.locator("#chat .receipt").last
    open_at(page, studio.sketched("draw a red fox in the snow"), 1)
    with step("an adjustment says what was done and that it was free"):
        paint(page, "make it a bit warmer")
        expect_loaded(pictures(page).last)
        expect(receipt.locator("summary")).to_contain_text("Exact adjustment · warmth +15 · 344×192 · free")
        expect(page.locator("#chat .steps").last).to_contain_text("Adjusted #1: #1b")
    with step("the sliders of the panel adjust exactly what they say"):
        sliders = open_sliders(page)
        for name, value in (("brightness", "20"), ("contrast", "-10")):
            sliders.locator(f"input[name={name}]").fill(value)
        page.locator("#chat [data-act=panel_apply]").last.click()
        expect_pictures(page, 3)
        expect(receipt.locator("summary")).to_contain_text("brightness +20, contrast −10")
    with step("a reference is given a role that stays"):
        for number in (0, 1):
            called.inside(open_more(page, number)).button("action.reference").click()
            expect(page.locator("#ctx select")).to_have_count(number + 1)
        called.field("role.name", handle="#1b").select_option("style")
        called.field("role.name", handle="#1").select_option("pose")
        expect(called.field("role.name", handle="#1b")).to_have_value("style")
        called.button("composer.remove", handle="#1").click()
        expect(page.locator("#ctx select")).to_have_count(1)
        expect(called.field("role.name", handle="#1b")).to_have_value("style")
    with step("it goes with the message, and only with that one"):
        paint(page, "draw a lighthouse")
        expect(receipt).to_contain_text("#1b style")
        expect(receipt).to_contain_text("Style: take only its colours and brushwork, not its content.")
        expect(page.locator("#ctx select")).to_have_count(0)


def test_both_image_models_paint_one_wish_side_by_side_on_a_phone(
    phone: Page, gemini: GeminiProcess, gemini_studio: PageProcess
) -> None:
    wish = {"kind": "Call", "name": "generate_image", "args": {"prompt": "A red fox"}, "text_before": "I paint it now."}
    review = '{"score": 0.9, "checklist": [], "lettering": "", "feedback": "Good.", "suggestions": []}'
    looked = {"kind": "Text", "text": review, "chunks": 1}
    gemini.control(clear=True, on_text=[wish, looked, looked])
    called = Called(phone, "zh-CN")
    both = called.words("composer.flash_pro")
    open_page(phone, gemini_studio.url)
    choose_setting(phone, "image-model", both)
    say(phone, "draw a red fox")
    expect_pictures(phone, 2)
    tags = phone.locator("#chat .pics .frame .tag")
    expect(tags).to_have_text([re.compile(f"{called.words(f'composer.{model}')}$") for model in ("flash", "pro")])
    painted = [request["model"] for request in gemini.read("requests") if request["kind"] == "image"]
    assert sorted(painted) == ["gemini-3-pro-image", "gemini-nano-banana-2.1"]
    assert gemini.read("violations") == []

"""References with a role, adjustments without a model, and two image models side by side, in a real browser."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from tests.page import PageProcess
from tests.page.hands import expect_loaded, expect_rest, open_at, open_page, pictures, say
from tests.wire_server import GeminiProcess


def test_an_adjustment_says_what_was_done_and_that_it_was_free(page: Page, studio: PageProcess) -> None:
    open_at(page, studio.sketched("draw a red fox in the snow"), 1)
    say(page, "make it a bit warmer")
    expect(pictures(page)).to_have_count(2)
    expect_rest(page)
    expect_loaded(pictures(page).last)
    expect(page.locator("#chat .receipt summary").last).to_contain_text(
        "Exact adjustment · warmth +15 · 1376×768 · free"
    )
    expect(page.locator("#chat .steps").last).to_contain_text("Adjusted #1 exactly: that is #1b")


def test_the_sliders_of_the_panel_adjust_exactly_what_they_say(page: Page, studio: PageProcess) -> None:
    open_at(page, studio.sketched("draw a boat"), 1)
    page.locator("#chat .sliders summary").click()
    for name, value in (("brightness", "20"), ("contrast", "-10")):
        page.locator(f"#chat .sliders input[name={name}]").fill(value)
    page.locator("#chat [data-act=panel_apply]").click()
    expect(pictures(page)).to_have_count(2)
    expect_rest(page)
    expect(page.locator("#chat .receipt summary").last).to_contain_text("brightness +20, contrast −10")


def test_a_reference_is_given_a_role_that_stays_and_goes_with_the_message(page: Page, studio: PageProcess) -> None:
    open_at(page, studio.sketched("draw a whale", "draw a teapot"), 2)
    for number in (0, 1):
        page.locator("#chat [data-act=reference]").nth(number).click()
        expect(page.locator("#ctx select")).to_have_count(number + 1)
    page.get_by_label("What #2 is for").select_option("style")
    expect(page.locator("#roles textarea, #roles input")).to_have_value('{"#2": "style"}')
    page.get_by_label("What #1 is for").select_option("pose")
    expect(page.get_by_label("What #2 is for")).to_have_value("style")
    page.get_by_role("button", name="Remove #1").click()
    expect(page.locator("#roles textarea, #roles input")).to_have_value('{"#2": "style"}')
    say(page, "draw a lighthouse")
    expect(pictures(page)).to_have_count(3)
    expect_rest(page)
    receipt = page.locator("#chat .receipt").last
    expect(receipt).to_contain_text("#2 style")
    expect(receipt).to_contain_text("Style: take only its colours and brushwork, not its content.")
    expect(page.locator("#ctx select")).to_have_count(0)
    expect(page.locator("#roles textarea, #roles input")).to_have_value("")


def test_both_image_models_paint_one_wish_side_by_side(
    page: Page, gemini: GeminiProcess, gemini_studio: PageProcess
) -> None:
    wish = {"kind": "Call", "name": "generate_image", "args": {"prompt": "A red fox"}, "text_before": "I paint it now."}
    review = '{"score": 0.9, "checklist": [], "lettering": "", "feedback": "Good.", "suggestions": []}'
    looked = {"kind": "Text", "text": review, "chunks": 1}
    gemini.control(clear=True, on_text=[wish, looked, looked])
    open_page(page, gemini_studio.url)
    page.locator("#image-model input").click()
    page.get_by_role("option", name="Flash + Pro").click()
    expect(page.locator("#image-model input")).to_have_value("Flash + Pro")
    say(page, "draw a red fox")
    expect(pictures(page)).to_have_count(2)
    expect_rest(page)
    tags = page.locator("#chat .pics .frame .tag")
    expect(tags).to_have_text([re.compile("Flash$"), re.compile("Pro$")])
    painted = [request["model"] for request in gemini.read("requests") if request["kind"] == "image"]
    assert sorted(painted) == ["gemini-3-pro-image", "gemini-nano-banana-2.1"]
    assert gemini.read("violations") == []

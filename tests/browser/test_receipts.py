"""What was asked and not delivered, and the ways on from a receipt, against the strict server."""

from __future__ import annotations

from typing import Any

from playwright.sync_api import Page, expect

from tests.page import PageProcess
from tests.page.hands import begin_anew, choose_setting, expect_pictures, expect_ready, open_page, pictures, say
from tests.page.journeys import step
from tests.wire_server import GeminiProcess

PAINT: dict[str, Any] = {
    "kind": "Call",
    "name": "generate_image",
    "args": {"prompt": "A red fox in snow", "aspect_ratio": "3:2", "number_of_images": 1},
    "text_before": "I paint it now.",
}
SMALL: dict[str, Any] = {"kind": "PictureAnswer", "width": 768, "height": 512}


def ask_for_more_than_comes(page: Page, gemini: GeminiProcess) -> None:
    """Ask for 2K and get a picture of half a megapixel."""
    gemini.control(on_text=[PAINT], on_image=[SMALL])
    choose_setting(page, "resolution", "2K")
    say(page, "draw a fox")
    expect_pictures(page, 1)
    expect(page.locator("#chat .shortfall")).to_contain_text("smaller than you asked for")


def test_a_receipt_leads_to_the_other_model_and_what_fell_short_is_asked_for_again(
    page: Page, gemini: GeminiProcess, gemini_studio: PageProcess
) -> None:
    open_page(page, gemini_studio.url)
    with step("the other model paints the same words"):
        gemini.control(on_text=[PAINT])
        say(page, "draw a fox")
        expect_pictures(page, 1)
        first = page.locator("#chat .receipt summary").first
        expect(first).to_contain_text("Flash")
        first.click()
        gemini.control(on_text=[PAINT])
        page.get_by_role("button", name="Same prompt, other model").click()
        expect_pictures(page, 2)
        expect(page.locator("#chat .receipt summary").last).to_contain_text("Pro")
        expect(page.locator("#chat .user .md")).to_have_text(["draw a fox", "draw a fox"])
    with step("what fell short is asked for again, repainted as an edit, and folded for good when one is content"):
        begin_anew(page)
        ask_for_more_than_comes(page, gemini)
        gemini.control(on_text=[PAINT])
        page.get_by_role("button", name="Ask again").click()
        expect_pictures(page, 2)
        expect(page.locator("#chat .receipt summary").last).to_contain_text("2K →")
        expect(page.locator("#chat .shortfall")).to_have_count(1)
        gemini.control(on_text=[PAINT])
        page.get_by_role("button", name="Repaint at 2K").click()
        expect_pictures(page, 3)
        expect(page.locator("#chat .user").last).to_contain_text("Repaint #1 at 2K")
        expect(page.locator("#chat .frame .tag").last).to_have_text("#1b")
        expect(page.locator("#chat .receipt summary").last).to_contain_text("2K →")
        page.get_by_role("button", name="Keep as it is").click()
        expect(page.locator("#chat .shortfall")).to_have_count(0)
        page.reload()
        expect_ready(page)
        expect(pictures(page)).to_have_count(3)
        expect(page.locator("#chat .shortfall")).to_have_count(0)
        page.locator("#chat .receipt summary").first.click()
        expect(page.locator("#chat .receipt").first).to_contain_text("smaller than you asked for")

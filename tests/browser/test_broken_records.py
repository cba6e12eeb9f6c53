"""Records that break while the page is open: it says so in a sentence, keeps the words, and works again after."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Page, expect

from tests.page import PageProcess
from tests.page.hands import composer, expect_rest, open_page, paint, pictures, say
from tests.support.broken_records import broken_records

SENTENCE = "The studio's records cannot be read or written"


def test_what_was_sent_is_in_the_box_again_with_the_reason_and_can_be_sent_anew(page: Page, tmp_path: Path) -> None:
    home = tmp_path / "home"
    with PageProcess(home=home) as studio:
        open_page(page, studio.url)
        paint(page, "draw a lighthouse")
        with broken_records(home):
            say(page, "make it darker")
            expect(page.locator(".toast-body")).to_contain_text(SENTENCE)
            expect(composer(page)).to_have_value("make it darker")
            expect(pictures(page)).to_have_count(1)
            expect_rest(page)
        composer(page).press("Enter")
        expect(pictures(page)).to_have_count(2)
        expect_rest(page)
        expect(composer(page)).to_have_value("")


def test_a_button_that_cannot_do_its_work_says_why_and_changes_nothing(page: Page, tmp_path: Path) -> None:
    home = tmp_path / "home"
    with PageProcess(home=home) as studio:
        open_page(page, studio.url)
        paint(page, "draw a lighthouse")
        warmer = page.locator("#chat").get_by_role("button", name="Warmer")
        with broken_records(home):
            warmer.click()
            expect(page.locator(".toast-body")).to_contain_text(SENTENCE)
            expect(pictures(page)).to_have_count(1)
            expect_rest(page)
        say(page, "make it darker")
        expect(pictures(page)).to_have_count(2)
        expect_rest(page)

"""Records that break while the page is open: it says so in a sentence, keeps the words, and works again after."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Page, expect

from tests.page import PageProcess
from tests.page.hands import composer, expect_pictures, expect_rest, open_page, open_sliders, paint, pictures, say
from tests.support.broken_records import broken_records
from tests.support.waiting import wait_until

SENTENCE = "The studio's records cannot be read or written"
CLOSED = "() => { document.querySelector('#toast button')?.click(); return !document.querySelector('#toast'); }"


def expect_sentence(page: Page) -> None:
    """Wait for the sentence, and close it, so that the next one is another."""
    line = page.locator("#toast")
    expect(line).to_contain_text(SENTENCE)
    line.get_by_role("button").click()
    # The gallery, which asks by itself, may say so as well a moment later.
    wait_until(lambda: bool(page.evaluate(CLOSED)))


def test_each_part_of_the_page_says_what_is_wrong_and_works_again_when_it_is_over(page: Page, tmp_path: Path) -> None:
    home = tmp_path / "home"
    with PageProcess(home=home) as studio:
        open_page(page, studio.url)
        paint(page, "draw a lighthouse")
        page.evaluate("aivista.tabs.show('gallery')")
        expect(page.locator("#gallery .gal-cell")).to_have_count(1)
        with broken_records(home):
            say(page, "make it darker")
            expect_sentence(page)
            expect(composer(page)).to_have_value("make it darker")
            expect_rest(page)
            open_sliders(page)
            page.locator("#chat").get_by_role("button", name="Warmer").click()
            expect_sentence(page)
            expect_rest(page)
            page.locator("#gallery .gal-star").first.click()
            expect(page.locator("#toast").get_by_text(SENTENCE)).to_be_visible()
            expect(pictures(page)).to_have_count(1)
        composer(page).press("Enter")
        expect_pictures(page, 2)
        expect(composer(page)).to_have_value("")

"""What is seen of a long turn: how long is usual, each picture as it comes, and in the title how it ended."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.page import PageProcess
from tests.page.hands import begin_anew, composer, expect_loaded, expect_pictures, expect_rest, open_page, pictures, say
from tests.page.journeys import step
from tests.wire_server import GeminiProcess

# The browser's own notifications, which a headless one does not show, and its answer to the question for them.
NOTIFICATIONS = """
  window.told = []; window.asked = 0; window.answer = 'granted'; window.away = false;
  window.Notification = class {
    static permission = 'default';
    static async requestPermission() { window.asked += 1; return (this.permission = window.answer); }
    constructor(title, { body }) { window.told.push([title, body]); }
    close() {}
  };
  Document.prototype.hasFocus = () => !window.away;
  const plain = window.requestAnimationFrame;
  // A tab that nobody looks at draws no frames.
  window.requestAnimationFrame = run => window.away ? 0 : plain(run);
"""


@pytest.fixture
def watched(profile: BrowserContext, page: Page) -> Page:
    page.add_init_script(NOTIFICATIONS)
    return page


def test_the_title_says_how_it_ended_until_one_looks_and_a_browser_may_not_allow_more(
    watched: Page, studio: PageProcess
) -> None:
    open_page(watched, studio.url)
    with step("a browser that blocks notifications is told of, and the bell stays off"):
        watched.evaluate("window.answer = 'denied'")
        bell = watched.get_by_role("switch", name="Notify me when it is done")
        bell.click()
        expect(watched.locator("#bell-note")).to_contain_text("blocks notifications")
        expect(bell).not_to_be_checked()
    with step("the title says how it ended, until one looks"):
        watched.evaluate("window.away = true")
        say(watched, "draw a red kite")
        expect_pictures(watched, 1)
        expect(watched).to_have_title("✓ Done: A red kite · Aivista")
        assert watched.evaluate("window.told") == []
        watched.evaluate("window.away = false; dispatchEvent(new Event('focus'))")
        expect(watched).to_have_title("A red kite · Aivista")
        composer(watched).fill("make it darker")
        expect(watched.locator("#cost .price")).to_have_text("Free")
        composer(watched).press("Enter")
        expect_pictures(watched, 2)
        expect(watched).to_have_title("A red kite · Aivista")


def test_a_turn_at_work_tells_how_long_is_usual_who_waits_and_how_it_ended(
    watched: Page, gemini: GeminiProcess, gemini_studio: PageProcess
) -> None:
    open_page(watched, gemini_studio.url)
    with step("the first of two pictures is shown when it is there, with how long is usual"):
        arguments = {"prompt": "A red fox in snow", "aspect_ratio": "3:2", "number_of_images": 2}
        asks = {"kind": "Call", "name": "generate_image", "args": arguments, "text_before": "I paint it now."}
        made = {"kind": "PictureAnswer"}
        gemini.control(clear=True, on_text=[asks], on_image=[made, {"kind": "Hold", "answer": made, "after_chunks": 0}])
        composer(watched).fill("two foxes")
        # Whoever sends before the price of two is told would be asked: it is more than was shown.
        expect(watched.locator("#cost .price")).to_have_attribute("data-beside", re.compile("two foxes"))
        composer(watched).press("Enter")
        expect(pictures(watched)).to_have_count(1)
        expect_loaded(pictures(watched))
        expect(watched.locator("#chat .frame.pending")).to_have_count(1)
        expect(watched.locator("#chat .live")).to_contain_text("Painting 2 pictures")
        expect(watched.locator("#chat .live small")).to_contain_text("a picture takes about 15 s")
        gemini.release()
        expect_pictures(watched, 2)
    with step("a message that is sent meanwhile is told its place in line"):
        slow = {"kind": "Hold", "answer": {"kind": "Text", "text": "One, two, three.", "chunks": 3}, "after_chunks": 1}
        gemini.control(clear=True, on_text=[slow, {"kind": "Text", "text": "And four."}])
        begin_anew(watched)
        say(watched, "count")
        expect(watched.locator("#chat .bot")).to_contain_text("One")
        say(watched, "go on")
        expect(watched.locator("#chat .live").last).to_contain_text("Waiting for the previous message")
        gemini.release()
        expect(watched.locator("#chat .bot").last).to_contain_text("And four.")
        expect_rest(watched)
    with step("the title says that it works, and a failure is told as one"):
        gemini.control(
            clear=True, on_text=[{"kind": "Hold", "answer": {"kind": "HttpError", "status": 400}, "after_chunks": 0}]
        )
        begin_anew(watched)
        bell = watched.get_by_role("switch", name="Notify me when it is done")
        assert watched.evaluate("window.asked") == 0
        bell.click()
        expect(bell).to_be_checked()
        expect(watched.locator("#bell-note")).to_contain_text("You will be notified")
        say(watched, "tell me of foxes")
        expect(watched).to_have_title(re.compile("^Working…"))
        watched.evaluate("window.away = true")
        gemini.release()
        expect(watched.locator("#chat [role=alert]")).to_be_visible()
        expect_rest(watched)
        expect(watched).to_have_title(re.compile("^⚠ Failed: "))
        [[_, said]] = watched.evaluate("window.told")
        assert said == "It failed. The conversation says why."
        bell.click()
        expect(bell).not_to_be_checked()
        assert watched.evaluate("window.asked") == 1

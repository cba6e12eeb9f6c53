"""An open page shows what came to its conversation without it, and nobody has to open that again."""

from __future__ import annotations

import asyncio
import re
from concurrent.futures import ThreadPoolExecutor

from playwright.sync_api import BrowserContext, Page, expect

from agent import Settings, Studio
from tests.page import PageProcess
from tests.page.hands import composer, expect_loaded, expect_pictures, expect_rest, open_at, open_page, pictures, say
from tests.page.journeys import step
from tests.support.scenes import run
from tests.wire_server import GeminiProcess


def test_a_picture_that_comes_after_stop_is_shown_in_every_open_page(
    page: Page, profile: BrowserContext, gemini: GeminiProcess, gemini_studio: PageProcess
) -> None:
    asks = {"kind": "Call", "name": "generate_image", "args": {"prompt": "A red fox"}, "text_before": "I paint it."}
    gemini.control(on_text=[asks], on_image=[{"kind": "Hold", "answer": {"kind": "PictureAnswer"}, "after_chunks": 0}])
    open_page(page, gemini_studio.url)
    say(page, "a fox")
    expect(page.locator("#chat .frame.pending")).to_have_count(1)
    expect(page).to_have_url(re.compile(r"\?c=\w{8,}"))
    other = profile.new_page()
    open_at(other, page.url)
    expect(other.locator("#chat .frame.pending")).to_have_count(1)
    page.locator("#box .stop-button").click()
    for one in (page, other):
        expect_rest(one)
        expect(pictures(one)).to_have_count(0)
    composer(page).fill("what I am writing meanwhile")
    gemini.release()
    for one in (page, other):
        expect(pictures(one)).to_have_count(1)
        expect_loaded(pictures(one))
    expect(composer(page)).to_have_value("what I am writing meanwhile")


def test_a_turn_of_another_program_is_shown_in_the_open_page_and_words_said_to_an_older_state_are_held_back(
    page: Page, profile: BrowserContext, studio: PageProcess
) -> None:
    address = studio.sketched("draw a red kite")
    open_at(page, address, 1)
    with step("a turn of another program is shown"):

        async def draw() -> None:
            async with Studio(Settings(home=studio.home)) as program:
                await run(program, address.rpartition("=")[2], "draw a lighthouse at dusk")

        # Playwright has an event loop running in this thread.
        with ThreadPoolExecutor(1) as beside:
            beside.submit(lambda: asyncio.run(draw())).result()
        expect_pictures(page, 2)
        expect(page.locator("#chat .user").last).to_contain_text("lighthouse")
        say(page, "make it darker")
        expect_pictures(page, 3)
    with step("words that were said to an older state are held back, and the newest is shown"):
        other = profile.new_page()
        open_at(other, page.url)
        # As in a tab that sleeps: nothing tells it of the other one.
        page.route("**/aivista/version/**", lambda route: route.abort())
        say(other, "make it black and white")
        expect_pictures(other, 4)
        say(page, "make it warmer")
        expect(page.get_by_role("alert").filter(has_text="continued in another tab")).to_be_visible()
        expect(pictures(page)).to_have_count(4)
        expect(composer(page)).to_have_value("make it warmer")
        composer(page).press("Enter")
        expect_pictures(page, 5)
        say(page, "make it darker")
        expect(pictures(page)).to_have_count(6)

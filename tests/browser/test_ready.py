"""What is sent before the page is filled goes where the address says, and what came without the page is shown."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Page, Route, expect

from agent import Settings, Studio
from tests.page import PageProcess
from tests.page.hands import (
    begin_anew,
    composer,
    draw_twice,
    expect_loaded,
    expect_pictures,
    expect_ready,
    expect_rest,
    open_at,
    open_page,
    open_settings,
    open_sliders,
    paint,
    pictures,
    reload,
    say,
)
from tests.page.journeys import Called, on, step
from tests.support.broken_records import broken_records
from tests.support.scenes import run
from tests.support.waiting import wait_until
from tests.wire_server import GeminiProcess

JOIN = re.compile(r"/gradio_api/run/predict|/aivista/act/page\.")
# What the page waits before it asks again or gives up is long for a test; typing comes before the end of three seconds.
IMPATIENT = """
  const plain = window.setTimeout, long = [1000, 2000, 4000, 10000];
  window.setTimeout = (run, wait, ...more) => plain(run, long.includes(wait) ? wait * 0.3 : wait, ...more);
"""

# Gradio sets its fields when it comes to that: not while `isBusy`.
BUSY = """addEventListener("aivista-set-inputs", event => {
  if (!window.isBusy) return;
  event.stopImmediatePropagation();
  window.isBusy = false;
})"""
MODELS, OPENS, SENDS = "**/aivista/act/page.models", "**/aivista/act/page.open", "**/gradio_api/run/predict*"


LOADED_FIRST = """() => {
  const [ready] = performance.getEntriesByName("aivista-ready");
  return performance.getEntriesByType("resource").filter(one => one.startTime < ready.startTime).map(one => one.name);
}"""


def hold(page: Page) -> list[Route]:
    """Let what the page asks Python for wait on the way, until it is let go by `page.unroute(JOIN)`."""
    kept: list[Route] = []
    page.route(JOIN, lambda route: kept.append(route))
    return kept


@pytest.fixture(scope="module")
def shared_studio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PageProcess]:
    """A studio that others reach."""
    with PageProcess("--host", "0.0.0.0", home=tmp_path_factory.mktemp("shared")) as page:
        yield page


def test_the_first_page_names_ahead_all_that_gradio_loads_and_draws_its_settings_when_it_rests(
    page: Page, studio: PageProcess
) -> None:
    with step("what stands before anything is pressed was named by the document, so that no round of requests waits"):
        open_page(page, studio.url)
        named = page.evaluate("[...document.head.querySelectorAll('[href], [src]')].map(one => one.href || one.src)")
        loaded = [address for address in page.evaluate(LOADED_FIRST) if "/assets/" in address]
        assert len(loaded) > 40
        assert set(loaded) <= set(named)
    with step("the settings are there when one opens them"):
        settings = open_settings(page)
        expect(settings.get_by_role("radio", name="16:9")).to_be_visible()


def test_a_page_that_others_reach_comes_filled_and_what_is_sent_in_it_goes_into_its_conversation(
    page: Page, shared_studio: PageProcess
) -> None:
    rows = page.locator("#chat .user")
    with step("the first page is its visitor's, and nobody is told of cookies that are kept"):
        open_page(page, shared_studio.url)
        expect(page.locator(".no-cookie")).to_be_hidden()
        say(page, "draw a boat")
        expect_pictures(page, 1)
        say(page, "make it darker")
        expect_pictures(page, 2)
    with step("a page that comes filled needs no answer, and what is sent in it goes into its conversation"):
        address = page.url
        hold(page)
        reload(page)
        expect(rows).to_have_text([re.compile("draw a boat"), re.compile("make it darker")])
        expect(pictures(page)).to_have_count(2)
        say(page, "undo that")
        page.unroute(JOIN)
        expect_pictures(page, 3)
        expect(rows).to_have_count(3)
        expect(page).to_have_url(address)


def test_what_is_typed_and_sent_while_another_conversation_is_opened_belongs_to_that_one(
    page: Page, studio: PageProcess
) -> None:
    first = studio.sketch("draw a lighthouse")
    address, rows = f"{studio.url}/?c={first}", page.locator("#chat .user")
    new = Called(page).button("rail.new")
    old = page.locator("#rail-rows").get_by_role("button", name=re.compile("lighthouse$"))
    with step("what is typed meanwhile is kept for the new one, and each draft is where it was left"):
        open_at(page, address, 1)
        composer(page).fill("and a bucket")
        hold(page)
        new.click()
        composer(page).press_sequentially("a mill")
        # A page that is looked away from keeps the draft at once.
        page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
        page.unroute(JOIN)
        expect(page.locator("#top h1[data-conversation=new]")).to_have_count(1)
        expect_ready(page)
        page.wait_for_function("localStorage.getItem('aivista-draft new')?.includes('a mill')")
        expect(composer(page)).to_have_value("a mill")
        old.click()
        expect(composer(page)).to_have_value("and a bucket")
        new.click()
        expect(composer(page)).to_have_value("a mill")
        old.click()
        expect(composer(page)).to_have_value("and a bucket")
    with step("what is typed joins the draft that was left there"):
        composer(page).fill("with a statue")
        begin_anew(page)
        hold(page)
        old.click()
        composer(page).press_sequentially("and doves")
        page.unroute(JOIN)
        expect(composer(page)).to_have_value("with a statue\nand doves")
    with step("words that could not be sent do not follow into another conversation"):
        composer(page).fill("")
        begin_anew(page)
        expect(composer(page)).to_have_value("a mill")
        page.route(JOIN, lambda route: route.abort(), times=1)
        say(page, "draw a fence")
        page.wait_for_function("localStorage.getItem('aivista-draft new')?.includes('draw a fence')")
        expect_ready(page)
        expect(rows).to_have_count(0)
        old.click()
        expect(pictures(page)).to_have_count(1)
        expect_ready(page)
        expect(composer(page)).to_have_value("")
        new.click()
        expect(composer(page)).to_have_value("draw a fence")
    with step("what is sent meanwhile waits for that conversation, and for nothing else"):
        composer(page).fill("")
        old.click()
        expect(pictures(page)).to_have_count(1)
        expect_ready(page)
        kept = hold(page)
        with page.expect_request(JOIN):
            new.click()
        say(page, "draw a teapot")
        # What a wish that was written out leaves there, and a turn that ended elsewhere.
        page.evaluate("dispatchEvent(new CustomEvent('aivista-listed', { detail: {} }))")
        draw_twice(page)
        assert page.locator("html[data-ready]").count() == 0
        expect(composer(page)).to_have_value("draw a teapot")
        assert kept
        page.unroute(JOIN)
        expect(rows).to_have_text([re.compile("draw a teapot")])
        expect_pictures(page, 1)
        expect(page.locator("#chat")).not_to_contain_text("lighthouse")
        assert page.url != address
        # The list gets a row above the other one, which would move from under the pointer.
        expect(page.locator("#rail-rows [aria-current=page]")).to_contain_text("teapot")
    with step("of two that are opened one after the other the newer is shown, though the older comes later"):
        page.route(OPENS, lambda route: kept.append(route), times=1)
        with page.expect_request(OPENS):
            old.click()
        new.click()
        expect(page.locator("#top h1[data-conversation=new]")).to_have_count(1)
        expect_ready(page)
        with page.expect_response(OPENS):
            kept[-1].continue_()
        page.unroute(OPENS)
        page.wait_for_timeout(200)
        expect(page.locator("#top h1[data-conversation=new]")).to_have_count(1)
    with step("whoever opens another one while the message is on its way stays there, and finds its turn in the list"):
        page.route(SENDS, lambda route: kept.append(route))
        with page.expect_request(SENDS):
            say(page, "draw a boat")
        old.click()
        expect(rows).to_have_text([re.compile("draw a lighthouse")])
        kept[-1].continue_()
        page.unroute(SENDS)
        sent = page.locator("#rail-rows").get_by_role("button", name=re.compile("boat$"))
        expect(sent).to_have_count(1)
        expect(rows).to_have_text([re.compile("draw a lighthouse")])
        sent.click()
        expect(rows).to_have_text([re.compile("draw a boat")])
        expect_pictures(page, 1)
    with step("where no answer comes nothing is sent, and all words are there again"):
        old.click()
        expect(rows).to_have_text([re.compile("draw a lighthouse")])
        expect_ready(page)
        composer(page).fill("make it higher")
        page.evaluate(f"() => {{ {IMPATIENT} }}")
        kept = hold(page)
        new.click()
        composer(page).press_sequentially(", please")
        composer(page).press("Enter")
        expect_ready(page)
        expect(composer(page)).to_have_value("make it higher, please")
        expect(rows).to_have_count(1)
        # Other events take the box's words along, too; Send is not among those that were asked for.
        described = page.request.get(f"{studio.url}/config", max_retries=2).json()["dependencies"]
        send = next(one["id"] for one in described if one["api_name"] == "send")
        assert send not in [json.loads(route.request.post_data or "{}").get("fn_index") for route in kept]


def test_the_page_stays_with_what_was_sent_though_what_was_asked_before_is_shown_late(
    page: Page, gemini: GeminiProcess, gemini_studio: PageProcess
) -> None:
    gemini.control(on_text=[{"kind": "Call", "name": "generate_image", "args": {"prompt": "A fox", "confidence": 0.9}}])
    kept: list[Route] = []
    page.add_init_script(BUSY)
    page.route(MODELS, lambda route: kept.append(route))
    open_page(page, gemini_studio.url)
    with page.expect_request(MODELS):
        page.evaluate("dispatchEvent(new CustomEvent('aivista-served'))")
    page.route(SENDS, lambda route: kept.append(route))
    with page.expect_request(SENDS):
        say(page, "a fox")
    page.evaluate("window.isBusy = true")
    *models, sent = kept
    for asked in models:
        asked.continue_()
    page.wait_for_function("!window.isBusy")
    sent.continue_()
    expect_pictures(page, 1)
    page.evaluate("dispatchEvent(new CustomEvent('aivista-set-inputs'))")
    page.wait_for_timeout(300)
    expect(page.locator("#top h1[data-conversation=new]")).to_have_count(0)
    expect(page.locator("#chat .user")).to_have_text([re.compile("a fox")])


def words_in_the_box_stay_when_an_example_runs_and_after_a_reload(phone: Page, studio: PageProcess) -> None:
    open_page(phone, studio.url)
    with step("nothing typed is answered in a sentence"):
        on(phone, "#box").button("builtin.send").click()
        expect(phone.locator("#chat .ask")).to_contain_text("想看到什么？")
    with step("words stay"):
        open_page(phone, studio.url)
        composer(phone).fill("my own wish")
        phone.wait_for_function("JSON.stringify(localStorage).includes('my own wish')")
        phone.locator(".example-cards").get_by_role("button").first.click()
        expect_pictures(phone, 1)
        expect(composer(phone)).to_have_value("my own wish")
        reload(phone)
        expect(composer(phone)).to_have_value("my own wish")


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
    on(page, "#box").button("builtin.stop").click()
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
    with step("a turn of another program is shown, also where the end of one before it was never told"):
        line = (
            "{ id: 'left', html: '<p id=left class=live></p>', parent: document.querySelector('#thread > .turn').id }"
        )
        page.evaluate(f"aivista.shell.applyReply({{ patches: [{line}] }})")

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
            on(page, "#gallery").button("gallery.star_one").first.click()
            expect(page.locator("#toast").get_by_text(SENTENCE)).to_be_visible()
            expect(pictures(page)).to_have_count(1)
        composer(page).press("Enter")
        expect_pictures(page, 2)
        expect(composer(page)).to_have_value("")

"""The trace: lines that open, a filter, files to take away, and steps that come in while a turn runs."""

from __future__ import annotations

import json
from typing import Any

from playwright.sync_api import Locator, Page, expect

from tests.page import PageProcess
from tests.page.hands import expect_loaded, expect_pictures, expect_rest, open_at, open_page, place_of, say
from tests.page.journeys import Called, step
from tests.wire_server import GeminiProcess


def open_trace(page: Page) -> Locator:
    """Open the tab and return the turns."""
    page.evaluate("window.aivista.tabs.show('trace')")
    expect(page.get_by_role("tab", name="Trace")).to_have_attribute("aria-selected", "true")
    return page.locator("#trace .trc-turn")


def traced(turn: Locator, name: str) -> Locator:
    return turn.locator(".trc-step", has=turn.page.locator(".trc-name", has_text=name)).first


def downloaded(page: Page, link: Locator) -> Any:
    with page.expect_download() as download:
        link.click()
    return json.loads(download.value.path().read_text("utf-8"))


def a_turn_is_read_step_by_step_and_taken_away(page: Page, studio: PageProcess) -> None:
    open_page(page, studio.url)
    open_trace(page)
    expect(page.locator("#trace")).to_contain_text("Nothing has happened yet")
    say(page, "draw a red fox")
    expect_pictures(page, 1)
    turns = page.locator("#trace .trc-turn")
    expect(turns).to_have_count(1)
    expect(turns.first).to_contain_text("draw a red fox")
    painted = traced(turns.first, "picture 1")
    painted.locator("> summary").click()
    body = painted.locator(".trc-body")
    expect(body).to_contain_text("Input")
    expect_loaded(body.locator(".trc-pic img"))
    steps = downloaded(page, page.get_by_role("link", name="Download turn"))["steps"]
    assert [one["node"] for one in steps if one["kind"] == "node"] == ["planner", "retriever", "executor"]
    assert len(downloaded(page, page.get_by_role("link", name="Download JSON"))["steps"]) == len(steps)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    body.get_by_role("button", name="Copy step").click()
    expect(body.get_by_role("button", name="Copied")).to_be_visible()
    [copied] = json.loads(page.evaluate("navigator.clipboard.readText()"))["steps"]
    assert copied["name"].startswith("picture:")
    page.get_by_role("button", name="Errors only").click()
    expect(page.locator("#trace .trc-none")).to_have_text("Nothing went wrong in these turns.")
    expect(turns.first).to_be_hidden()
    body.locator(".trc-pic").dispatch_event("click")
    expect(page.locator("#canvas .cv-bar b")).to_have_text("#1")


def test_a_trace_is_gone_once_another_conversation_is_opened_also_before_its_own_has_come(
    page: Page, studio: PageProcess
) -> None:
    other = studio.sketched("draw a cat")
    open_at(page, studio.sketched("draw a red fox"), 1)
    expect(open_trace(page)).to_contain_text("draw a red fox")
    page.route("**/aivista/act/trace.show", lambda route: None)
    open_at(page, other, 1)
    expect(page.locator("#trc")).to_have_count(0)
    # What waits goes on.
    page.unroute("**/aivista/act/trace.show")
    expect(page.locator("#trace .trc-turn")).to_contain_text("draw a cat")


def test_steps_come_in_while_a_turn_runs_and_what_is_open_stays_where_it_is(
    page: Page, phone: Page, gemini: GeminiProcess, gemini_studio: PageProcess
) -> None:
    open_page(page, gemini_studio.url)
    gemini.control(on_text=[{"kind": "Text", "text": "Hello."}])
    say(page, "hello")
    expect(page.locator("#chat")).to_contain_text("Hello.")
    expect_rest(page)
    turns = open_trace(page)
    expect(turns).to_have_count(1)
    first = traced(turns.first, "step 1")
    first.locator("> summary").click()
    expect(first.locator(".trc-body")).to_contain_text("Output")
    with step("steps come in, and what is open stays where it is"):
        at = place_of(first)
        asks = {"kind": "Call", "name": "generate_image", "args": {"prompt": "A red fox"}, "text_before": "I paint it."}
        refused = {"kind": "Hold", "answer": {"kind": "HttpError", "status": 503}, "after_chunks": 0}
        gemini.control(on_text=[asks], on_image=[refused])
        say(page, "a red fox")
        expect(turns).to_have_count(2)
        running = turns.nth(1)
        expect(traced(running, "step 1")).to_be_visible()
        expect(running).to_contain_text("Working…")
        gemini.release()
        expect(traced(running, "picture 1")).to_be_visible()
        expect(running).to_contain_text("Failed")
        expect(running).not_to_contain_text("Working…")
        expect(first.locator(".trc-body")).to_be_visible()
        assert first.bounding_box() == at
    with step("errors alone are shown"):
        page.get_by_role("button", name="Errors only").click()
        expect(turns.first).to_be_hidden()
        expect(running.locator(".trc-step.call:visible")).to_have_count(1)
        expect(running.locator(".trc-step.call:visible")).to_contain_text("overloaded")
    with step("it fits a Chinese phone"):
        open_at(phone, page.url)
        Called(phone, "zh-CN").tab("tabs.trace").tap()
        turns = phone.locator("#trace .trc-turn")
        expect(turns).to_have_count(2)
        traced(turns.nth(1), "第 1 张").locator("> summary").tap()
        expect(phone.locator("#trace")).to_contain_text("输入")
        assert phone.evaluate("document.documentElement.scrollWidth") <= 390
        lines = phone.locator("#trace summary:visible").evaluate_all("all => all.map(one => one.offsetHeight)")
        assert min(lines) >= 40

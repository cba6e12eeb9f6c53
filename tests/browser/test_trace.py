"""The trace: lines that open, a filter, files to take away, and steps that come in while a turn runs."""

from __future__ import annotations

import json
from typing import Any

from playwright.sync_api import Browser, Locator, Page, expect

from tests.page import PageProcess
from tests.page.hands import expect_loaded, expect_ready, expect_rest, open_page, pictures, say
from tests.support.gemini import paint
from tests.wire_server import Hold, HttpError, PictureAnswer, Text
from tests.wire_server.server import GeminiServer

SMALL = PictureAnswer(width=64, height=36)


def open_trace(page: Page) -> Locator:
    """Open the tab and return the turns."""
    page.evaluate("window.aivistaTabs.show('trace')")
    expect(page.get_by_role("tab", name="Trace")).to_have_attribute("aria-selected", "true")
    return page.locator("#trace .trc-turn")


def step(turn: Locator, name: str) -> Locator:
    return turn.locator(".trc-step", has=turn.page.locator(".trc-name", has_text=name)).first


def downloaded(page: Page, link: Locator) -> Any:
    with page.expect_download() as download:
        link.click()
    return json.loads(download.value.path().read_text("utf-8"))


def test_a_turn_is_read_step_by_step_and_taken_away(page: Page, studio: PageProcess) -> None:
    open_page(page, studio.url)
    open_trace(page)
    expect(page.locator("#trace")).to_contain_text("Nothing has happened yet")
    say(page, "draw a red fox")
    expect(pictures(page)).to_have_count(1)
    expect_rest(page)
    turns = page.locator("#trace .trc-turn")
    expect(turns).to_have_count(1)
    expect(turns.first).to_contain_text("draw a red fox")
    painted = step(turns.first, "picture 1")
    painted.locator("> summary").click()
    body = painted.locator(".trc-body")
    expect(body).to_contain_text("What went in")
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


def test_steps_come_in_while_a_turn_runs_and_what_is_open_stays_where_it_is(browser: Browser, tmp_path: Any) -> None:
    with GeminiServer() as server:
        environment = {"GEMINI_API_KEY": "AIza-operators-own-0001", "GOOGLE_GEMINI_BASE_URL": server.url}
        with PageProcess(home=tmp_path / "home", environment=environment) as studio:
            context = browser.new_context(viewport={"width": 1440, "height": 900}, locale="en-US")
            page = context.new_page()
            open_page(page, studio.url)
            server.on_text(Text("Hello."))
            say(page, "hello")
            expect(page.locator("#chat")).to_contain_text("Hello.")
            expect_rest(page)
            turns = open_trace(page)
            expect(turns).to_have_count(1)
            first = step(turns.first, "step 1")
            first.locator("> summary").click()
            expect(first.locator(".trc-body")).to_contain_text("What came out")
            at = first.bounding_box()
            server.on_text(paint())
            server.on_image(Hold(HttpError(503)))
            say(page, "a red fox")
            expect(turns).to_have_count(2)
            running = turns.nth(1)
            expect(step(running, "step 1")).to_be_visible()
            expect(running).to_contain_text("Working…")
            server.release()
            expect(step(running, "picture 1")).to_be_visible()
            expect(running).to_contain_text("Failed")
            expect(running).not_to_contain_text("Working…")
            expect(first.locator(".trc-body")).to_be_visible()
            assert first.bounding_box() == at
            page.get_by_role("button", name="Errors only").click()
            expect(turns.first).to_be_hidden()
            expect(running.locator(".trc-step.call:visible")).to_have_count(1)
            expect(running.locator(".trc-step.call:visible")).to_contain_text("overloaded")
            _on_a_phone_in_chinese(browser, page.url)
            context.close()


def _on_a_phone_in_chinese(browser: Browser, address: str) -> None:
    context = browser.new_context(viewport={"width": 390, "height": 844}, locale="zh-CN", has_touch=True)
    page = context.new_page()
    page.goto(address)
    expect_ready(page)
    page.locator("#tabs [data-tab=trace]").tap()
    turns = page.locator("#trace .trc-turn")
    expect(turns).to_have_count(2)
    step(turns.nth(1), "第 1 张").locator("> summary").tap()
    expect(page.locator("#trace")).to_contain_text("输入")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    lines = page.locator("#trace summary:visible").evaluate_all("all => all.map(one => one.offsetHeight)")
    assert min(lines) >= 40
    context.close()

"""Whoever is quicker than the page: what is sent before it is filled goes where the address says."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect

from tests.page import PageProcess
from tests.page.hands import composer, expect_ready, expect_rest, open_at, open_page, paint, pictures, say

JOIN = "**/gradio_api/queue/join*"
# Ten seconds are long for a test; typing comes before the end of three.
IMPATIENT = """
  const plain = window.setTimeout;
  window.setTimeout = (run, wait, ...more) => plain(run, wait === 10000 ? 3000 : wait, ...more);
"""


def hold(page: Page) -> list[Route]:
    """Let what the page asks Python for wait on the way, until it is let go by `page.unroute(JOIN)`."""
    kept: list[Route] = []
    page.route(JOIN, lambda route: kept.append(route))
    return kept


@pytest.fixture(scope="module")
def shared_studio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PageProcess]:
    """A studio that others reach: its page comes filled from the second visit on, when the browser has its cookie."""
    with PageProcess("--host", "0.0.0.0", home=tmp_path_factory.mktemp("shared")) as page:
        yield page


def test_what_is_sent_before_the_page_is_filled_waits_and_goes_into_its_conversation(
    page: Page, shared_studio: PageProcess
) -> None:
    asked = hold(page)
    page.goto(shared_studio.url)
    say(page, "draw a boat")
    expect(page.locator("#box .submit-button")).to_be_hidden()
    assert page.locator("html[data-ready]").count() == 0
    expect(composer(page)).to_have_value("draw a boat")
    assert asked
    page.unroute(JOIN)
    expect(pictures(page)).to_have_count(1)
    expect_rest(page)
    address = page.url
    # By now it has a cookie, and finds all of it in the page: no answer of Python's is needed.
    hold(page)
    page.reload()
    expect_ready(page)
    expect(page.locator("#chat .user-row")).to_have_text(re.compile("draw a boat"))
    expect(pictures(page)).to_have_count(1)
    say(page, "make it darker")
    page.unroute(JOIN)
    expect(pictures(page)).to_have_count(2)
    expect_rest(page)
    expect(page.locator("#chat .user-row")).to_have_count(2)
    expect(page).to_have_url(address)


def test_what_is_sent_while_another_conversation_is_opened_goes_into_that_one(page: Page, studio: PageProcess) -> None:
    open_at(page, studio.sketched("draw a lighthouse"), 1)
    address, kept = page.url, []

    def keep(route: Route) -> None:
        kept.append(route)

    page.route(JOIN, keep)
    with page.expect_request(JOIN):
        page.locator("#rail [data-act=new]").click()
    say(page, "draw a teapot")
    page.unroute(JOIN)
    expect(page.locator("#chat .user-row")).to_have_text(re.compile("draw a teapot"))
    expect(pictures(page)).to_have_count(1)
    expect_rest(page)
    expect(page.locator("#chat")).not_to_contain_text("lighthouse")
    assert page.url != address
    assert kept


def test_what_is_typed_while_a_conversation_is_opened_is_typed_for_that_one_and_joins_the_draft_that_was_left_there(
    page: Page, studio: PageProcess
) -> None:
    open_at(page, studio.sketched("draw a well"), 1)
    composer(page).fill("and a bucket")
    hold(page)
    page.locator("#rail [data-act=new]").click()
    composer(page).press_sequentially("a mill")
    page.wait_for_timeout(600)
    page.unroute(JOIN)
    expect(page.locator("#top h1[data-conversation=new]")).to_have_count(1)
    expect_ready(page)
    page.wait_for_function("localStorage.getItem('aivista-draft new')?.includes('a mill')")
    expect(composer(page)).to_have_value("a mill")
    page.locator("#rail-rows [data-act=open]").first.click()
    expect(composer(page)).to_have_value("and a bucket")
    page.locator("#rail [data-act=new]").click()
    expect(composer(page)).to_have_value("a mill")
    page.locator("#rail-rows [data-act=open]").first.click()
    expect(composer(page)).to_have_value("and a bucket")
    composer(page).fill("with a statue")
    page.locator("#rail [data-act=new]").click()
    expect(page.locator("#top h1[data-conversation=new]")).to_have_count(1)
    expect_ready(page)
    hold(page)
    page.locator("#rail-rows [data-act=open]").first.click()
    composer(page).press_sequentially("and doves")
    page.unroute(JOIN)
    expect(composer(page)).to_have_value("with a statue\nand doves")


def test_a_kept_press_waits_for_the_conversation_and_for_nothing_else(page: Page, studio: PageProcess) -> None:
    open_at(page, studio.sketched("draw a bridge"), 1)
    hold(page)
    page.locator("#rail [data-act=new]").click()
    say(page, "draw a kettle")
    # What a wish that was written out leaves there, and a turn that ended elsewhere.
    page.locator("#rail-stamp i").evaluate("mark => { mark.outerHTML = '<i data-at=\"7\"></i>'; }")
    page.wait_for_timeout(300)
    assert page.locator("html[data-ready]").count() == 0
    expect(composer(page)).to_have_value("draw a kettle")
    page.unroute(JOIN)
    expect(page.locator("#chat .user-row")).to_have_text(re.compile("draw a kettle"))
    expect_rest(page)
    expect(page.locator("#chat")).not_to_contain_text("bridge")


def test_where_no_answer_comes_nothing_is_sent_and_all_words_are_there_again(page: Page, studio: PageProcess) -> None:
    page.add_init_script(IMPATIENT)
    open_at(page, studio.sketched("draw a tower"), 1)
    composer(page).fill("make it higher")
    kept = hold(page)
    page.locator("#rail [data-act=new]").click()
    composer(page).press_sequentially(", please")
    composer(page).press("Enter")
    expect_ready(page)
    expect(composer(page)).to_have_value("make it higher, please")
    expect(page.locator("#chat .user-row")).to_have_count(1)
    # Other events take the box's words along, too; Send is not among those that were asked for.
    described = page.request.get(f"{studio.url}/config", max_retries=2).json()["dependencies"]
    send = next(one["id"] for one in described if one["api_name"] == "send")
    assert send not in [json.loads(route.request.post_data or "{}").get("fn_index") for route in kept]


def test_words_that_could_not_be_sent_do_not_follow_into_another_conversation(page: Page, studio: PageProcess) -> None:
    open_at(page, studio.sketched("draw a gate"), 1)
    page.locator("#rail [data-act=new]").click()
    expect(page.locator("#top h1[data-conversation=new]")).to_have_count(1)
    expect_ready(page)
    page.route(JOIN, lambda route: route.abort(), times=1)
    say(page, "draw a fence")
    page.wait_for_function("localStorage.getItem('aivista-draft new')?.includes('draw a fence')")
    expect_ready(page)
    expect(page.locator("#chat .user-row")).to_have_count(0)
    page.locator("#rail-rows [data-act=open]").first.click()
    expect(pictures(page)).to_have_count(1)
    expect_ready(page)
    expect(composer(page)).to_have_value("")
    page.locator("#rail [data-act=new]").click()
    expect(composer(page)).to_have_value("draw a fence")


def test_words_on_the_first_page_stay_when_an_example_runs(page: Page, studio: PageProcess) -> None:
    open_page(page, studio.url)
    composer(page).fill("my own wish")
    page.wait_for_function("JSON.stringify(localStorage).includes('my own wish')")
    page.locator("[data-act=try_wish]").first.click()
    expect(pictures(page)).to_have_count(1)
    expect_rest(page)
    expect(composer(page)).to_have_value("my own wish")
    page.reload()
    expect_ready(page)
    expect(composer(page)).to_have_value("my own wish")


# The stream of answers as a slow connection brings it: its last message waits until `release` is called.
SLOW_END = """
  const plain = window.fetch;
  const released = new Promise(release => { window.release = release; });
  window.fetch = async (resource, init) => {
    const answer = await plain(resource, init);
    if (!String(resource.url ?? resource).includes("/queue/data")) return answer;
    const decoder = new TextDecoder();
    const held = new TransformStream({ async transform(piece, out) {
      if (decoder.decode(piece, { stream: true }).includes('"close_stream"')) { window.isHeld = true; await released; }
      out.enqueue(piece);
    } });
    return new Response(answer.body.pipeThrough(held), answer);
  };
"""


def test_what_is_sent_while_the_stream_of_answers_ends_is_answered(page: Page, studio: PageProcess) -> None:
    page.add_init_script(SLOW_END)
    open_page(page, studio.url)
    page.wait_for_function("window.isHeld")
    with page.expect_response(JOIN) as accepted:
        say(page, "draw a harbour")
    assert accepted.value.ok
    page.evaluate("release()")
    expect(pictures(page)).to_have_count(1)
    expect_rest(page)


@pytest.mark.parametrize(
    ("refusal", "language", "said"),
    [
        ({"status": 502, "body": "<html>Bad Gateway</html>"}, "en", "did not answer (HTTP 502)"),
        ({"status": 429, "json": {"detail": "请稍候。"}}, "zh-CN", "请稍候。正在重试"),
        (None, "en", "has not answered yet"),
    ],
    ids=["error", "sentence", "no connection"],
)
def test_a_page_whose_first_answer_is_an_error_says_so_and_asks_again(
    page: Page, shared_studio: PageProcess, refusal: dict[str, Any] | None, language: str, said: str
) -> None:
    page.context.add_cookies([{"name": "aivista_lang", "value": language, "url": shared_studio.url}])

    def refuse(route: Route) -> None:
        if refusal is None:
            route.abort()
        else:
            route.fulfill(**refusal)

    page.route(JOIN, refuse)
    page.goto(shared_studio.url)
    expect(page.get_by_role("alert").filter(has_text=said)).to_be_visible()
    composer(page).fill("draw a pier")
    page.unroute(JOIN)
    expect_ready(page)
    expect(page.locator("#unfilled, .toast-body")).to_have_count(0)
    expect(composer(page)).to_have_value("draw a pier")
    expect(page.locator("#rail [data-act=new]")).to_be_visible()


def test_a_page_whose_first_answer_does_not_come_asks_again_and_is_filled_once(
    page: Page, shared_studio: PageProcess
) -> None:
    page.add_init_script(IMPATIENT)
    kept: list[Route] = []
    page.route(JOIN, lambda route: kept.append(route) if len(kept) < 2 else route.continue_())
    page.goto(f"{shared_studio.url}/?c=new")
    expect(page.get_by_role("alert").filter(has_text="has not answered yet")).to_be_visible()
    while len(kept) < 2:
        page.wait_for_timeout(50)
    kept[1].continue_()
    expect_ready(page)
    paint(page, "draw a pond")
    with page.expect_response(JOIN):
        kept[0].continue_()
    paint(page, "make it darker")
    expect(page.locator("#chat .user-row")).to_have_count(2)

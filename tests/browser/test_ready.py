"""Whoever is quicker than the page: what is sent before it is filled goes where the address says."""

from __future__ import annotations

import re

from playwright.sync_api import Page, Route, expect

from tests.page import PageProcess
from tests.page.hands import composer, expect_rest, open_page, pictures, say

JOIN = "**/gradio_api/queue/join*"


def test_until_the_page_is_filled_nothing_can_be_sent_and_then_it_goes_into_its_conversation(
    page: Page, studio: PageProcess
) -> None:
    open_page(page, studio.url)
    say(page, "draw a boat")
    expect(pictures(page)).to_have_count(1)
    expect_rest(page)
    address = page.url
    kept: list[Route] = []

    def keep(route: Route) -> None:
        kept.append(route)

    page.route(JOIN, keep)
    page.reload()
    expect(composer(page)).to_be_attached()
    expect(composer(page)).to_be_hidden()
    assert page.locator("html[data-ready]").count() == 0
    page.unroute(JOIN)
    say(page, "make it darker")
    expect(pictures(page)).to_have_count(2)
    expect_rest(page)
    expect(page.locator("#chat .user-row")).to_have_count(2)
    expect(page).to_have_url(address)
    assert kept


def test_what_is_sent_while_another_conversation_is_opened_goes_into_that_one(page: Page, studio: PageProcess) -> None:
    open_page(page, studio.url)
    say(page, "draw a lighthouse")
    expect(pictures(page)).to_have_count(1)
    expect_rest(page)
    address, kept = page.url, []

    def keep(route: Route) -> None:
        kept.append(route)

    page.route(JOIN, keep)
    page.locator("#rail [data-act=new]").click()
    say(page, "draw a teapot")
    page.unroute(JOIN)
    expect(page.locator("#chat .user-row")).to_have_text(re.compile("draw a teapot"))
    expect(pictures(page)).to_have_count(1)
    expect_rest(page)
    expect(page.locator("#chat")).not_to_contain_text("lighthouse")
    assert page.url != address
    assert kept

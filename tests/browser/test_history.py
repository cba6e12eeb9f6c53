"""Back and Forward: on a phone Back closes what was opened last, and only then leaves the conversation."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.page import PageProcess
from tests.page.hands import expect_ready, expect_rest, open_at, open_page, pictures, say
from tests.page.journeys import Called, on, step


@pytest.fixture(scope="module")
def addresses(studio: PageProcess) -> list[str]:
    """Two conversations, each with a picture."""
    return [studio.sketched(wish) for wish in ("draw a red fox in the snow", "draw a lighthouse")]


def pane(page: Page, name: str) -> Locator:
    """Return the root while a pane of the stage is open."""
    return page.locator(f"html[data-stage][data-tab={name}]")


def open_pane(page: Page, name: str) -> None:
    # Nobody opens a pane in the same instant in which they went back from another.
    settled(page)
    on(page).tab(f"tabs.{name}").click()
    expect(pane(page, name)).to_have_count(1)


def back(page: Page) -> None:
    settled(page)
    page.go_back()


def settled(page: Page) -> None:
    """Wait until the history knows what the page shows."""
    page.wait_for_function("window.aivista.history.isSettled()")


def expect_open(page: Page, address: str) -> None:
    """Wait until the conversation of this address is open."""
    expect(page.locator("#top h1")).to_have_attribute("data-conversation", address.rpartition("=")[2])
    expect(page).to_have_url(address)


def choose_lighthouse(page: Page, address: str) -> None:
    chats = on(page).button("tabs.chats")
    if chats.is_visible():
        chats.click()
    page.locator("#rail-rows").get_by_role("button", name=re.compile("lighthouse$")).click()
    expect_open(page, address)


def expect_closed(page: Page) -> None:
    """Wait until the chat is all there is."""
    expect(page.locator("html[data-stage]")).to_have_count(0)


def test_on_a_phone_back_closes_what_was_opened_last_and_only_then_leaves_the_conversation(
    phone: Page, addresses: list[str]
) -> None:
    called = Called(phone, "zh-CN")
    phone.emulate_media(reduced_motion="reduce")
    open_at(phone, addresses[0], 1)
    with step("back closes a pane, and forward opens it again"):
        open_pane(phone, "gallery")
        back(phone)
        expect(pane(phone, "gallery")).to_have_count(0)
        expect(phone.locator("#center")).to_be_visible()
        assert phone.url == addresses[0]
        phone.go_forward()
        expect(pane(phone, "gallery")).to_have_count(1)
        back(phone)
        expect_closed(phone)
    with step("whoever goes from tab to tab has one pane to close"):
        for name in ("gallery", "tree", "trace"):
            open_pane(phone, name)
            settled(phone)
        back(phone)
        expect_closed(phone)
    with step("a picture that is opened from the gallery leads back to it"):
        open_pane(phone, "gallery")
        settled(phone)
        on(phone, "#gallery").button("picture.alt").first.click()
        expect(pane(phone, "canvas")).to_have_count(1)
        back(phone)
        expect(pane(phone, "gallery")).to_have_count(1)
        back(phone)
        expect_closed(phone)
    with step("back closes the painter before the picture below it"):
        pictures(phone).click()
        expect(phone.locator("#canvas .cv-pic img")).to_be_visible()
        on(phone, "#canvas").button("painter.paint").click()
        expect(phone.locator("html[data-painting]")).to_have_count(1)
        back(phone)
        expect(phone.locator("html[data-painting]")).to_have_count(0)
        expect(pane(phone, "canvas")).to_have_count(1)
        back(phone)
        expect_closed(phone)
    open_pane(phone, "tree")
    for name in ("settings", "styles", "shortcuts"):
        with step(f"back closes the dialog {name} and nothing else"):
            phone.evaluate("name => window.aivista.dialogs.open(name)", name)
            expect(phone.locator(f"html[data-{name}]")).to_have_count(1)
            back(phone)
            expect(phone.locator(f"html[data-{name}]")).to_have_count(0)
            expect(pane(phone, "tree")).to_have_count(1)
    with step("back closes a sheet and then the list of conversations"):
        back(phone)
        expect_closed(phone)
        called.button("tabs.chats").click()
        expect(phone.locator("html[data-rail-open]")).to_have_count(1)
        on(phone, "#rail-rows").button("conversations.menu").first.click()
        expect(phone.locator("#menu-conversation")).to_be_visible()
        back(phone)
        expect(phone.locator("#menu-conversation")).to_be_hidden()
        expect(phone.locator("html[data-rail-open]")).to_have_count(1)
        back(phone)
        expect(phone.locator("html[data-rail-open]")).to_have_count(0)
    with step("what is closed by its own button leaves nothing behind"):
        choose_lighthouse(phone, addresses[1])
        for _ in range(3):
            open_pane(phone, "gallery")
            settled(phone)
            called.button("tabs.chat").click()
            expect_closed(phone)
            settled(phone)
        back(phone)
        expect_open(phone, addresses[0])
        expect(pictures(phone)).to_have_count(1)
    with step("back closes the pane first and changes the conversation after that"):
        choose_lighthouse(phone, addresses[1])
        open_pane(phone, "trace")
        back(phone)
        expect_closed(phone)
        expect_open(phone, addresses[1])
        back(phone)
        expect_open(phone, addresses[0])
        settled(phone)
        phone.go_forward()
        expect_open(phone, addresses[1])


def test_on_a_wide_page_back_leads_from_conversation_to_conversation(
    page: Page, studio: PageProcess, addresses: list[str]
) -> None:
    with step("a new conversation that gets its name is one step of the history"):
        open_page(page, studio.url)
        steps = page.evaluate("history.length")
        say(page, "draw a teapot")
        expect(pictures(page)).to_have_count(1)
        expect(page).to_have_url(re.compile(r"\?c=\w{8,}"))
        settled(page)
        assert page.evaluate("history.length") == steps
        expect_rest(page)
    with step("back leads to it from another, and the stage is beside the conversation and stays"):
        address = page.url
        Called(page).button("top.stage").click()
        on(page).tab("tabs.gallery").click()
        settled(page)
        choose_lighthouse(page, addresses[1])
        back(page)
        expect_open(page, address)
        expect_ready(page)
        expect(pane(page, "gallery")).to_have_count(1)

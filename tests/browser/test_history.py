"""Back and Forward: on a phone Back closes what was opened last, and only then leaves the conversation."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.page import PageProcess
from tests.page.hands import expect_ready, open_at


@pytest.fixture(scope="module")
def addresses(studio: PageProcess) -> list[str]:
    """Two conversations, each with a picture."""
    return [studio.sketched("draw a red fox in the snow"), studio.sketched("draw a lighthouse at dusk")]


@pytest.fixture
def phone(browser: Browser, addresses: list[str]) -> Iterator[Page]:
    """A phone on which the first of the two is open."""
    context = browser.new_context(
        viewport={"width": 390, "height": 844}, locale="en-US", has_touch=True, is_mobile=True, reduced_motion="reduce"
    )
    page = context.new_page()
    page.goto("about:blank")
    open_at(page, addresses[0], 1)
    yield page
    context.close()


def pane(page: Page, name: str) -> Locator:
    """Return the root while a pane of the stage is open."""
    return page.locator(f"html[data-stage][data-tab={name}]")


def open_pane(page: Page, name: str) -> None:
    page.locator(f"#tabs [data-tab={name}]").click()
    expect(pane(page, name)).to_have_count(1)


def back(page: Page) -> None:
    settled(page)
    page.go_back()


def settled(page: Page) -> None:
    """Wait until the history knows what the page shows."""
    page.wait_for_function("window.aivistaHistory.isSettled()")


def expect_open(page: Page, address: str) -> None:
    """Wait until the conversation of this address is open."""
    expect(page.locator("#top h1")).to_have_attribute("data-conversation", id_of(address))
    expect(page).to_have_url(address)


def id_of(address: str) -> str:
    return address.rpartition("=")[2]


def choose_conversation(page: Page, address: str) -> None:
    chats = page.locator("#tabs .to-chats")
    if chats.is_visible():
        chats.click()
    page.locator(f"#rail-rows [data-act=open][data-arg='{id_of(address)}']").click()
    expect_open(page, address)


def test_back_closes_a_pane_and_forward_opens_it_again(phone: Page) -> None:
    address = phone.url
    open_pane(phone, "gallery")
    back(phone)
    expect(pane(phone, "gallery")).to_have_count(0)
    expect(phone.locator("#center")).to_be_visible()
    assert phone.url == address
    phone.go_forward()
    expect(pane(phone, "gallery")).to_have_count(1)


def test_whoever_goes_from_tab_to_tab_has_one_pane_to_close(phone: Page) -> None:
    for name in ("gallery", "tree", "trace"):
        open_pane(phone, name)
        settled(phone)
    back(phone)
    expect(phone.locator("html[data-stage]")).to_have_count(0)


def test_a_picture_that_is_opened_from_the_gallery_leads_back_to_it(phone: Page) -> None:
    open_pane(phone, "gallery")
    settled(phone)
    phone.locator("#gallery .gal-pic").first.click()
    expect(pane(phone, "canvas")).to_have_count(1)
    back(phone)
    expect(pane(phone, "gallery")).to_have_count(1)
    back(phone)
    expect(phone.locator("html[data-stage]")).to_have_count(0)


def test_back_closes_the_painter_before_the_picture_below_it(phone: Page) -> None:
    phone.locator("#chat .frame").click()
    expect(phone.locator("#canvas .cv-pic img")).to_be_visible()
    phone.locator("#canvas [data-paint=open]").first.click()
    expect(phone.locator("html[data-painting]")).to_have_count(1)
    back(phone)
    expect(phone.locator("html[data-painting]")).to_have_count(0)
    expect(pane(phone, "canvas")).to_have_count(1)
    back(phone)
    expect(phone.locator("html[data-stage]")).to_have_count(0)


@pytest.mark.parametrize("name", ["settings", "styles", "shortcuts"])
def test_back_closes_a_dialog_and_nothing_else(phone: Page, name: str) -> None:
    open_pane(phone, "tree")
    phone.evaluate("name => window.aivistaDialogs.open(name)", name)
    expect(phone.locator(f"html[data-{name}]")).to_have_count(1)
    back(phone)
    expect(phone.locator(f"html[data-{name}]")).to_have_count(0)
    expect(pane(phone, "tree")).to_have_count(1)


def test_back_closes_a_sheet_and_then_the_list_of_conversations(phone: Page) -> None:
    phone.locator("#tabs .to-chats").click()
    expect(phone.locator("html[data-rail-open]")).to_have_count(1)
    phone.locator("#rail-rows .opener").first.click()
    expect(phone.locator("#menu-conversation")).to_be_visible()
    back(phone)
    expect(phone.locator("#menu-conversation")).to_be_hidden()
    expect(phone.locator("html[data-rail-open]")).to_have_count(1)
    back(phone)
    expect(phone.locator("html[data-rail-open]")).to_have_count(0)


def test_what_is_closed_by_its_own_button_leaves_nothing_behind(phone: Page, addresses: list[str]) -> None:
    choose_conversation(phone, addresses[1])
    for _ in range(3):
        open_pane(phone, "gallery")
        settled(phone)
        phone.locator("#tabs .to-chat").click()
        expect(phone.locator("html[data-stage]")).to_have_count(0)
        settled(phone)
    back(phone)
    expect_open(phone, addresses[0])
    expect(phone.locator("#chat .pic img")).to_have_count(1)


def test_back_closes_the_pane_first_and_changes_the_conversation_after_that(phone: Page, addresses: list[str]) -> None:
    choose_conversation(phone, addresses[1])
    open_pane(phone, "trace")
    back(phone)
    expect(phone.locator("html[data-stage]")).to_have_count(0)
    expect_open(phone, addresses[1])
    back(phone)
    expect_open(phone, addresses[0])
    settled(phone)
    phone.go_forward()
    expect_open(phone, addresses[1])


def test_on_a_wide_page_back_leads_from_conversation_to_conversation(page: Page, addresses: list[str]) -> None:
    open_at(page, addresses[0], 1)
    page.locator("#top [data-act=stage]").click()
    page.locator("#tab-gallery").click()
    settled(page)
    choose_conversation(page, addresses[1])
    back(page)
    expect_open(page, addresses[0])
    expect_ready(page)
    # The stage is beside the conversation there, and stays.
    expect(pane(page, "gallery")).to_have_count(1)


def test_a_new_conversation_that_gets_its_name_is_one_step_of_the_history(page: Page, studio: PageProcess) -> None:
    page.goto("about:blank")
    page.goto(f"{studio.url}/?c=new")
    expect_ready(page)
    steps = page.evaluate("history.length")
    page.locator("#box textarea").fill("draw a teapot")
    page.locator("#box textarea").press("Enter")
    expect(page.locator("#chat .pic img")).to_have_count(1)
    expect(page).to_have_url(re.compile(r"\?c=\w{8,}"))
    settled(page)
    assert page.evaluate("history.length") == steps

"""Every screen of the page, one after the other, as a person comes to it: for tests that look at all of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TypeAlias

from playwright.sync_api import Page, expect

from tests.page.hands import (
    ask_before_painting,
    attach,
    close_settings,
    composer,
    expect_rest,
    open_more,
    open_settings,
    open_sliders,
    pictures,
    say,
)
from tests.page.journeys import on

# The name of a screen and where on the page is what it adds to those before it.
Screen: TypeAlias = tuple[str, str]


def show_tab(page: Page, name: str) -> None:
    """Open a tab of the stage."""
    on(page).tab(f"tabs.{name}").click()
    expect(page.locator(f"#{name}")).to_be_visible()


def open_dialog(page: Page, name: str) -> None:
    """Open a dialog, wherever its button is."""
    page.evaluate("name => document.querySelector(`[data-act=${name}], [data-aid=${name}]`).click()", name)
    expect(page.get_by_role("dialog").locator("visible=true")).to_be_visible()


def screens(page: Page, photo: Path) -> Iterator[Screen]:
    """Go through all screens of an open conversation with two pictures; yield each when it stands."""
    yield "conversation", "html"
    yield from _conversation(page)
    yield from _composer(page, photo)
    yield from _rail(page)
    yield from _canvas(page)
    yield from _other_tabs(page)
    yield from _dialogs(page)


def plan(page: Page, wish: str) -> None:
    """Have a plan wait for the person's click, on a new conversation."""
    ask_before_painting(page)
    say(page, wish)
    expect(on(page, "#chat").button("plan.run")).to_be_enabled()
    expect_rest(page)


def _conversation(page: Page) -> Iterator[Screen]:
    receipt = page.locator("#chat details.receipt").last
    receipt.locator("summary").click()
    expect(receipt.locator("dl")).to_be_visible()
    yield "receipt", "#chat details.receipt"
    receipt.locator("summary").click()
    open_sliders(page)
    yield "sliders", "#chat details.next-steps"
    on(page, "#chat .next-steps[open]").text("panel.title").click()
    on(page, "#chat").button("branch.edit").last.click()
    expect(page.locator("#chat .said-form:not([hidden])")).to_be_visible()
    yield "message edited", "#chat .said-form"
    page.keyboard.press("Escape")
    open_more(page)
    yield "menu of a picture", "#chat details.more"
    page.keyboard.press("Escape")


def _composer(page: Page, photo: Path) -> Iterator[Screen]:
    attach(page, photo)
    on(open_more(page, 0)).button("action.reference").click()
    expect(page.locator("#ctx .ctx")).to_have_count(1)
    on(page, "#chat").button("action.edit").nth(1).click()
    expect(page.locator("#ctx .ctx")).to_have_count(2)
    composer(page).fill("a picture of it, at night")
    yield "composer", "#composer"
    on(page, "#box").button("builtin.remove").click()
    for _ in range(2):
        count = page.locator("#ctx .ctx").count()
        on(page, "#ctx").button("composer.remove").first.click()
        expect(page.locator("#ctx .ctx")).to_have_count(count - 1)
    composer(page).fill("")
    composer(page).press_sequentially("/")
    expect(page.locator("#suggestions [role=option]").first).to_be_visible()
    yield "suggestions", "html"
    composer(page).fill("")
    expect(page.locator("#suggestions")).to_have_count(0)
    open_settings(page)
    yield "settings of a message", "#setup"
    close_settings(page)
    on(open_settings(page)).button("aids.presets").click()
    expect(page.locator("#presets form.save")).to_be_visible()
    yield "presets", "#presets"
    page.keyboard.press("Escape")
    expect(page.locator("#presets")).to_be_hidden()
    close_settings(page)


def _rail(page: Page) -> Iterator[Screen]:
    chats = on(page).button("tabs.chats")
    is_drawer = chats.is_visible()
    if is_drawer:
        chats.click()
        expect(page.locator("html[data-rail-open]")).to_have_count(1)
    yield "rail", "#rail"
    # In the list it is seen when its row is pointed at.
    more = on(page, "#rail-rows").button("conversations.menu").first
    more.hover()
    more.click()
    expect(page.locator("#menu-conversation")).to_be_visible()
    yield "menu", "#menu-conversation"
    page.keyboard.press("Escape")
    if is_drawer:
        page.keyboard.press("Escape")
        expect(page.locator("html[data-rail-open]")).to_have_count(0)


def _canvas(page: Page) -> Iterator[Screen]:
    pictures(page).first.click()
    expect(page.locator("#canvas .cv-pic img")).to_be_visible()
    yield "canvas", "#canvas"
    on(page, "#canvas").button("painter.paint").click()
    expect(page.locator("#pt-canvas")).to_be_focused()
    page.keyboard.press("ArrowLeft")
    yield "painter", "html"
    on(page, "#pt").button("painter.mode_expand").click()
    yield "expand", "#pt"
    page.keyboard.press("Escape")
    show_tab(page, "canvas")  # on a phone the painter leads back to the conversation
    on(page, "#canvas").button("compare.action").click()
    expect(page.locator("#canvas .cmp")).to_be_visible()
    yield "compare", "#canvas"


def _other_tabs(page: Page) -> Iterator[Screen]:
    show_tab(page, "gallery")
    expect(page.locator("#gallery .gal-cell").first).to_be_visible()
    yield "gallery", "#gallery"
    on(page, "#gallery").button("gallery.more_filters").click()
    expect(page.locator("#gallery .gal-pop:popover-open")).to_be_visible()
    yield "filters", "#gallery .gal-pop"
    page.keyboard.press("Escape")
    page.locator("#gallery").get_by_role("checkbox").first.click()
    expect(page.locator("#gallery .gal-bar")).to_be_visible()
    yield "gallery chosen", "#gallery"
    on(page, "#gallery").button("gallery.drop").click()
    show_tab(page, "tree")
    expect(page.locator("#tr-pane .tr-node").first).to_be_visible()
    yield "tree", "#tree"
    on(page, "#tr-pane").button("tree.more").first.click()
    expect(page.locator("#tr-menu")).to_be_visible()
    yield "tree menu", "#tr-menu"
    page.keyboard.press("Escape")
    show_tab(page, "files")
    yield "files", "#files"
    show_tab(page, "trace")
    expect(page.locator("#trace .trc-turn").first).to_be_visible()
    yield "trace", "#trace"


def _dialogs(page: Page) -> Iterator[Screen]:
    for name in ("settings", "styles", "shortcuts", "prompts"):
        open_dialog(page, name)
        if name == "styles":
            # A few of them show what all do.
            on(page, "#sty-list").button("styles.family_chinese").click()
            expect(page.locator("#sty-list .sty-cards")).to_have_attribute("data-family", "chinese")
        # What lies behind the first of them is looked at once more.
        yield name, "html" if name == "settings" else f"#{name}"
        if name == "styles":
            on(page, "#styles").button("styles.new").click()
            expect(page.locator("#sty-form")).to_be_visible()
            yield "new style", "#styles"
            on(page, "#sty-form").button("styles.cancel").click()
            expect(page.locator("#sty-list .sty-cards")).to_be_visible()
        page.keyboard.press("Escape")
        expect(page.locator("[role=dialog]:visible:not(#presets)")).to_have_count(0)

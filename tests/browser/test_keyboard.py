"""The keys of the page: what they do, in which order Escape closes, and how single ones are turned off."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.page import PageProcess
from tests.page.hands import composer, expect_ready, expect_rest, open_page, pictures, say
from tests.wire_server import GeminiProcess


def dialog_of_keys(page: Page) -> Locator:
    return page.get_by_role("dialog", name="Keyboard shortcuts")


@pytest.fixture(scope="module")
def drawn(studio: PageProcess) -> str:
    """The address of a conversation with a picture."""
    return studio.sketched("draw a boat, 4:3")


def test_enter_sends_shift_and_enter_break_the_line_and_an_input_method_has_its_own_enter(
    page: Page, studio: PageProcess
) -> None:
    open_page(page, studio.url)
    box = composer(page)
    box.focus()
    page.keyboard.type("draw a boat")
    page.keyboard.press("Shift+Enter")
    page.keyboard.type("at night, ")
    keyboard = page.context.new_cdp_session(page)
    keyboard.send("Input.imeSetComposition", {"text": "hai", "selectionStart": 3, "selectionEnd": 3})
    page.keyboard.press("Enter")
    # What Safari sends when Enter ends the composition: it has ended already, and the key is 229.
    box.evaluate("""box => {
      const told = { key: "Enter", keyCode: 229, bubbles: true, cancelable: true };
      box.dispatchEvent(new KeyboardEvent("keydown", told));
      box.dispatchEvent(new KeyboardEvent("keypress", { ...told, keyCode: 13 }));
    }""")
    keyboard.send("Input.insertText", {"text": "海"})
    expect(box).to_have_value("draw a boat\nat night, 海")
    expect(page.locator("#chat .user")).to_have_count(0)
    page.keyboard.press("Enter")
    expect(page.locator("#chat .user").first).to_contain_text("at night, 海")
    expect(pictures(page)).to_have_count(1)
    expect_rest(page)
    box.press("ArrowUp")
    expect(box).to_have_value("draw a boat\nat night, 海")
    box.press("ArrowDown")
    expect(box).to_have_value("")


def test_escape_closes_from_the_top_then_stops_the_turn_then_closes_the_stage(
    page: Page, gemini: GeminiProcess, gemini_studio: PageProcess
) -> None:
    never = {"kind": "Text", "text": "never ending " * 30, "chunks": 30}
    gemini.control(clear=True, on_text=[{"kind": "Hold", "answer": never, "after_chunks": 3}])
    open_page(page, gemini_studio.url)
    page.locator("#top [data-act=stage]").click()
    expect(page.locator("#stage")).to_be_visible()
    say(page, "talk on and on")
    expect(page.locator("#chat .bot")).to_contain_text("never ending")
    page.locator("#top [data-act=stage]").focus()
    page.keyboard.press("?")
    expect(dialog_of_keys(page)).to_be_visible()
    page.keyboard.press("Escape")
    expect(dialog_of_keys(page)).to_have_count(0)
    expect(page.locator("#box .stop-button")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator(".stopped")).to_be_visible()
    expect_rest(page)
    expect(page.locator("#stage")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#stage")).to_be_hidden()


def test_the_list_of_keys_opens_by_key_and_by_button_and_its_switch_turns_single_keys_off(
    page: Page, drawn: str
) -> None:
    page.goto(drawn)
    expect_ready(page)
    composer(page).press("?")
    expect(composer(page)).to_have_value("?")
    opener = page.locator("#rail").get_by_role("button", name="Keyboard shortcuts")
    opener.focus()
    page.keyboard.press("?")
    dialog = dialog_of_keys(page)
    expect(dialog.get_by_role("button", name="Close")).to_be_focused()
    expect(page.locator("#shell")).to_have_js_property("inert", True)
    page.keyboard.press("Escape")
    expect(opener).to_be_focused()
    opener.click()
    page.keyboard.press("Tab")
    switch = dialog.get_by_role("switch", name=re.compile("Single-key"))
    expect(switch).to_be_focused()
    page.keyboard.press(" ")
    expect(switch).not_to_be_checked()
    page.keyboard.press("Escape")
    page.reload()
    expect_ready(page)
    opener.focus()
    page.keyboard.press("?")
    page.evaluate("aivistaTabs.show('gallery')")
    star = page.locator("#gallery .gal-cell").first.get_by_role("button", name=re.compile("^Star"))
    expect(star).to_have_attribute("aria-pressed", "false")
    page.locator("#gallery .gal-pic").first.focus()
    page.keyboard.press("s")
    page.keyboard.press(" ")
    expect(page.locator("#gallery .gal-bar")).to_contain_text("1 selected")
    expect(star).to_have_attribute("aria-pressed", "false")
    expect(dialog).to_have_count(0)
    opener.click()
    expect(switch).not_to_be_checked()
    switch.check()
    page.keyboard.press("Escape")
    page.locator("#gallery .gal-pic").first.focus()
    page.keyboard.press("s")
    expect(star).to_have_attribute("aria-pressed", "true")


def test_search_and_a_new_conversation_by_key_and_the_drawer_of_a_phone_holds_the_focus(page: Page, drawn: str) -> None:
    page.goto(drawn)
    expect_ready(page)
    page.keyboard.press("Control+k")
    expect(page.locator("#rail-find")).to_be_focused()
    page.keyboard.press("Control+Shift+O")
    expect(page).to_have_url(re.compile(r"\?c=new$"))
    expect(composer(page)).to_be_focused()
    page.set_viewport_size({"width": 390, "height": 844})
    page.keyboard.press("Control+k")
    expect(page.locator("#rail-find")).to_be_focused()
    expect(page.locator("#center")).to_have_js_property("inert", True)
    page.keyboard.press("Escape")
    expect(page.locator("#rail")).to_be_hidden()
    expect(page.locator("#center")).to_have_js_property("inert", False)


def test_the_painter_has_a_key_for_every_tool(page: Page, drawn: str) -> None:
    page.goto(drawn)
    expect_ready(page)
    pictures(page).first.click()
    page.locator("#canvas").get_by_role("button", name="Paint over it").click()
    expect(page.locator("#pt-canvas")).to_be_focused()
    share, tools = page.locator("#pt-share"), page.locator("#pt [data-tool][aria-pressed=true]")
    for key, name in (("e", "eraser"), ("r", "box"), ("b", "brush")):
        page.keyboard.press(key)
        expect(tools).to_have_attribute("data-tool", name)
    size = int(page.locator("#pt-size").input_value())
    page.keyboard.press("]")
    assert int(page.locator("#pt-size").input_value()) > size
    for key, said in (
        ("Control+a", "100 % painted"),
        ("i", "Nothing is painted yet"),
        ("i", "100 % painted"),
        ("Delete", "Nothing is painted yet"),
        ("Control+z", "100 % painted"),
        ("Control+y", "Nothing is painted yet"),
    ):
        page.keyboard.press(key)
        expect(share).to_have_text(said)
    page.locator("#pt").get_by_role("button", name="Expand").click()
    page.locator("#pt [data-side=left]").fill("10")
    page.keyboard.press("i")
    page.locator("#pt-canvas").focus()
    page.keyboard.press("Control+a")
    expect(page.locator("#pt-share")).to_contain_text("afterwards")
    page.keyboard.press("Escape")
    expect(page.locator("#pt")).to_be_hidden()

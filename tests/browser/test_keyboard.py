"""The keys of the page: what they do, in which order Escape closes, and how single ones are turned off."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from tests.page import PageProcess
from tests.page.hands import begin_anew, composer, expect_rest, open_at, open_page, pictures, reload, say
from tests.page.journeys import Called, on, step
from tests.wire_server import GeminiProcess


def test_the_keys_of_the_page_the_gallery_and_the_painter_are_listed_and_single_ones_are_turned_off(
    page: Page, gemini_studio: PageProcess
) -> None:
    called = Called(page)
    open_at(page, gemini_studio.sketched("draw a boat, 4:3"), 1)
    with step("the list of keys opens by key and by button, and its switch turns single keys off"):
        composer(page).press("?")
        expect(composer(page)).to_have_value("?")
        opener = on(page, "#rail").button("keys.title")
        opener.focus()
        page.keyboard.press("?")
        dialog = called.dialog("keys.title")
        expect(on(dialog).button("action.close")).to_be_focused()
        expect(page.locator("#shell")).to_have_js_property("inert", True)
        page.keyboard.press("Escape")
        expect(opener).to_be_focused()
        opener.click()
        page.keyboard.press("Tab")
        switch = dialog.get_by_role("switch", name=called.words("keys.single"))
        expect(switch).to_be_focused()
        page.keyboard.press(" ")
        expect(switch).not_to_be_checked()
        page.keyboard.press("Escape")
        reload(page)
        opener.focus()
        page.keyboard.press("?")
        page.evaluate("aivista.tabs.show('gallery')")
        star = on(page.locator("#gallery .gal-cell").first).button("gallery.star_one")
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
    with step("the painter has a key for every tool"):
        pictures(page).first.click()
        on(page, "#canvas").button("painter.paint").click()
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
        on(page, "#pt").button("painter.mode_expand").click()
        page.locator("#pt").get_by_label(called.words("painter.left")).fill("10")
        page.keyboard.press("i")
        page.locator("#pt-canvas").focus()
        page.keyboard.press("Control+a")
        expect(page.locator("#pt-share")).to_contain_text("afterwards")
        page.keyboard.press("Escape")
        expect(page.locator("#pt")).to_be_hidden()
    with step("search and a new conversation have keys, and the drawer of a narrow page holds the focus"):
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


def test_enter_sends_and_escape_closes_from_the_top_and_stops(
    page: Page, gemini: GeminiProcess, gemini_studio: PageProcess
) -> None:
    called = Called(page, "zh-CN")
    page.context.add_cookies([{"name": "aivista_lang", "value": "zh-CN", "url": gemini_studio.url}])
    open_page(page, gemini_studio.url)
    with step("Enter sends, Shift and Enter break the line, an input method has its own Enter"):
        gemini.control(clear=True, on_text=[{"kind": "Text", "text": "A boat at night it is."}])
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
        expect(page.locator("#chat .bot")).to_contain_text("at night it is")
        expect_rest(page)
        box.press("ArrowUp")
        expect(box).to_have_value("draw a boat\nat night, 海")
        box.press("ArrowDown")
        expect(box).to_have_value("")
    with step("Escape closes from the top, then stops the turn, then closes the stage"):
        begin_anew(page)
        never = {"kind": "Text", "text": "never ending " * 30, "chunks": 30}
        gemini.control(clear=True, on_text=[{"kind": "Hold", "answer": never, "after_chunks": 3}])
        stage, dialog = called.button("top.stage"), called.dialog("keys.title")
        stage.click()
        expect(page.locator("#stage")).to_be_visible()
        say(page, "talk on and on")
        expect(page.locator("#chat .bot")).to_contain_text("never ending")
        stage.focus()
        page.keyboard.press("?")
        expect(dialog).to_be_visible()
        page.keyboard.press("Escape")
        expect(dialog).to_have_count(0)
        expect(page.locator("#box .stop-button")).to_be_visible()
        page.keyboard.press("Escape")
        expect(page.locator(".stopped")).to_be_visible()
        expect_rest(page)
        expect(page.locator("#stage")).to_be_visible()
        page.keyboard.press("Escape")
        expect(page.locator("#stage")).to_be_hidden()

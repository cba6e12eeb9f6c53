"""The composer's aids: a wish written out, presets, prompts, ratios drawn, drops anywhere, uploads, drafts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, Request, Route, expect

from tests.page import PageProcess
from tests.page.hands import (
    Held,
    begin_anew,
    choose_setting,
    chosen_ratio,
    composer,
    draw_twice,
    drop,
    expect_pictures,
    expect_rest,
    held,
    open_at,
    open_more,
    open_page,
    open_settings,
    paint,
    pictures,
    place_of,
    reload,
    say,
)
from tests.page.journeys import Called, on, step
from tests.wire_server import GeminiProcess

PASTE = """(at, clipboardData) =>
  at.dispatchEvent(new ClipboardEvent("paste", { clipboardData, bubbles: true, cancelable: true }))"""
# An input method that has typed half of a word.
COMPOSE = """field => {
  field.value = "zhong";
  field.dispatchEvent(new InputEvent("input", { bubbles: true, isComposing: true }));
}"""
UPLOAD, JOIN = "**/gradio_api/upload*", "**/gradio_api/run/predict*"
FULL = "A red fox sits in fresh snow at the edge of a pine forest, watercolour"


@pytest.fixture
def photo_file(photo: Path) -> Held:
    return Held("garden.jpg", photo.read_bytes(), "image/jpeg")


def aid(page: Page, name: str) -> None:
    """Press one of the three buttons at the foot of the settings."""
    on(open_settings(page)).button(f"aids.{name}").click()


def press_here_and_let_go_there(page: Page, here: Locator, x: int, y: int) -> None:
    """Mark words with the mouse and let it go somewhere else."""
    box = place_of(here)
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(x, y)
    page.mouse.up()


def open_first(page: Page) -> None:
    """Open the newest conversation of the rail."""
    page.locator("#rail-rows").get_by_role("button").first.click()
    expect(page.locator("#top h1:not([data-conversation=new])")).to_have_count(1)


@contextmanager
def kept(page: Page, address: str) -> Iterator[list[Route]]:
    """Keep what is asked of an address on its way; whoever is told of it lets it go."""
    waiting: list[Route] = []
    page.route(address, lambda route: waiting.append(route))
    yield waiting
    page.unroute(address)


def a_wish_is_written_out_shown_taken_and_undone_and_never_sent(
    page: Page, gemini: GeminiProcess, gemini_studio: PageProcess
) -> None:
    gemini.control(clear=True, on_text=[{"kind": "Text", "text": FULL}])
    called = Called(page)
    open_page(page, gemini_studio.url)
    composer(page).fill("a red fox, watercolour")
    expect(page.locator(".aids [data-aid=expand]")).to_have_attribute("title", re.compile(r"about \$0\.00"))
    aid(page, "expand")
    shown = page.get_by_role("region", name="Expanded prompt")
    expect(shown.locator("ins").filter(has_text="in fresh snow")).to_be_visible()
    expect(shown).to_contain_text(re.compile(r"by Flash, \$0\.00"))
    expect(composer(page)).to_have_value("a red fox, watercolour")
    on(shown).button("expanded.take").click()
    expect(composer(page)).to_have_value(FULL)
    called.button("expanded.undo").click()
    expect(composer(page)).to_have_value("a red fox, watercolour")
    expect(shown).to_be_hidden()
    expect(page.locator("#chat .user")).to_have_count(0)
    expect(page.locator("#rail-foot .spend b")).not_to_have_text("$0.00")
    assert gemini.read("violations") == []


def pictures_are_dropped_and_pasted_seen_on_their_way_sent_along_and_stay_with_their_conversation(
    page: Page, photo_file: Held
) -> None:
    shown, rows = page.locator("#box .thumbnail-item img"), page.locator("#uploads").get_by_role("listitem")
    second = Held("second.jpg", photo_file.data, "image/jpeg")
    with step("a picture is dropped anywhere, and a target says so"):
        page.locator("#rail").dispatch_event("dragover", {"dataTransfer": held(page, photo_file)})
        expect(page.locator("#drop-target")).to_contain_text("Add to your message")
        drop(page.locator("#rail"), photo_file)
        expect(page.locator("#drop-target")).to_have_count(0)
        expect(shown).to_have_count(1)
    with step("what is no picture is refused"):
        drop(page.locator("#chat"), Held("notes.pdf", b"%PDF-1.7", "application/pdf"))
        expect(page.locator("#uploads")).to_contain_text("notes.pdf is not a picture.")
    with step("a picture is pasted anywhere"):
        page.locator("body").evaluate(PASTE, held(page, second))
        expect(shown).to_have_count(2)
    with step("what is attached stays with its conversation, in its order"):
        begin_anew(page)
        expect(shown).to_have_count(0)
        open_first(page)
        expect(shown).to_have_count(2)
        assert ["garden" in one for one in shown.evaluate_all("all => all.map(one => one.src)")] == [True, False]
        say(page, "put these beside it")
        expect(page.locator("#chat .user").last.locator("img")).to_have_count(2)
        expect_rest(page)
        expect(shown).to_have_count(0)
    with step("an upload shows how far it is, and one file can be left out"), kept(page, UPLOAD) as waiting:
        begin_anew(page)
        drop(composer(page), photo_file, second)
        expect(rows).to_have_count(2)
        expect(rows.first.get_by_role("progressbar")).to_be_visible()
        Called(rows.filter(has_text="garden.jpg")).button("upload.cancel").click()
        expect(rows).to_have_count(1)
        for route in waiting:
            if "second.jpg" in str(route.request.post_data_buffer):
                route.continue_()
        expect(shown).to_have_count(1)
        expect(shown).to_have_attribute("src", re.compile("second"))
        expect(rows).to_have_count(0)
    with step("who sends while a picture is on its way sends it along"), kept(page, UPLOAD) as waiting:
        drop(composer(page), photo_file)
        expect(rows).to_have_count(1)
        sent: list[str] = []

        def note(request: Request) -> None:
            if "darker" in (request.post_data or ""):
                sent.append(request.url)

        page.on("request", note)
        say(page, "make them darker")
        draw_twice(page)
        assert sent == []
        page.remove_listener("request", note)
        for route in waiting:
            route.continue_()
        expect(page.locator("#chat .user").first).to_contain_text("make them darker")
        expect(page.locator("#chat .user img")).to_have_count(2)
        expect(page.locator("#box .thumbnail-item")).to_have_count(0)
        expect_rest(page)


def a_draft_belongs_to_its_conversation_and_what_is_sent_is_sent_once_or_stays_in_the_box(page: Page) -> None:
    box = composer(page)
    with step("a draft survives a reload with its reference and its ratio"):
        on(open_more(page, 0)).button("action.reference").click()
        expect(page.locator("#ctx .ctx")).to_have_count(1)
        choose_setting(page, "aspect-ratio", "16:9")
        box.fill("a poster with this fox")
        page.wait_for_function("JSON.stringify(localStorage).includes('a poster with this fox')")
        reload(page)
        expect(box).to_have_value("a poster with this fox")
        expect(page.locator("#ctx .ctx b")).to_have_text("#1")
        expect(chosen_ratio(page)).to_have_value("16:9")
    with step("it belongs to its conversation"):
        begin_anew(page)
        expect(box).to_have_value("")
        open_first(page)
        expect(box).to_have_value("a poster with this fox")
    with step("it goes when it is sent"):
        box.press("Enter")
        expect_pictures(page, 2)
        reload(page)
        expect(pictures(page)).to_have_count(2)
        expect(box).to_have_value("")
    with step("the way back to a draft does not follow into another conversation"):
        box.fill("half a wish")
        box.press("ArrowUp")
        expect(box).to_have_value("a poster with this fox")
        begin_anew(page)
        expect(box).to_have_value("")
        box.press("ArrowDown")
        expect(box).to_have_value("")
    with step("nor does a wish that was asked for"):
        box.fill("a wooden bridge")
        with kept(page, "**/aivista/act/page.expand"):
            aid(page, "expand")
            expect(page.locator("#composer .expanded-wait")).to_have_count(1)
            page.locator("#rail-rows").get_by_role("button").first.click()
        expect(page.locator("#top h1:not([data-conversation=new])")).to_have_count(1)
        expect(page.locator("#composer .expanded-wait")).to_have_count(0)
        expect(page.locator("#expanded")).to_be_hidden()
    with step("what could not be sent stays in the box"):
        begin_anew(page)
        # The draft of the new conversation, from before.
        expect(box).to_have_value("a wooden bridge")
        before = page.locator("#rail-rows [data-act=open]").count()
        page.route(JOIN, lambda route: route.fulfill(status=502))
        say(page, "draw a red fox")
        expect(page.locator("#toast.bad")).to_be_visible()
        expect(page.locator("#turn-now[data-sending]")).to_have_count(0)
        expect(box).to_have_value("draw a red fox")
        page.unroute(JOIN)
    with step("what is sent is seen at once, and is one turn however often it is pressed"):
        with kept(page, JOIN) as waiting:
            box.press("Enter")
            expect(page.locator("#turn-now[data-sending]")).to_have_text("draw a red fox")
            expect.soft(box).to_have_value("draw a red fox")
            box.press("Enter")
            on(page, "#box").button("builtin.send").click()
            # What it costs is asked for as well.
            while len(presses := [one for route in waiting if (one := request_of(route))]) < 3:
                draw_twice(page)
            assert len(set(presses)) == 1
            for route in waiting:
                route.continue_()
        expect_pictures(page, 1)
        expect(page.locator("#turn-now[data-sending]")).to_have_count(0)
        expect(box).to_have_value("")
        expect(page.locator("#chat .user")).to_have_count(1)
        expect(page.locator("#rail-rows [data-act=open]")).to_have_count(before + 1)


def request_of(route: Route) -> str | None:
    """Return the name of the press that a request stands for."""
    found = re.search(r'\\"request\\":\\"(\w+)', route.request.post_data or "")
    return found and found[1]


def presets_and_prompts_and_words_written_by_rules_fill_the_composer(page: Page, studio: PageProcess) -> None:
    called = Called(page)
    # What was sent is known to the page that sent it.
    paint(page, "make it darker")
    with step("a prompt of the gallery is found by its words"):
        composer(page).press_sequentially("words of mine")
        aid(page, "prompts")
        dialog = called.dialog("prompts.title")
        search = dialog.get_by_role("searchbox")
        expect(dialog.locator(".prm:visible")).to_have_count(24)
        search.fill("limestone COFFEE")
        expect(dialog.locator(".prm:visible")).to_have_count(1)
        search.fill("nobody wrote this")
        expect(on(dialog).text("prompts.none")).to_be_visible()
        search.fill("")
    with step("what was sent can be kept there, and half a word of an input method hides none"):
        on(dialog).button("prompts.mine").click()
        on(dialog).button("prompts.star").click()
        expect(dialog.locator(".prm-own:visible")).to_have_text(["make it darker"])
        search.evaluate(COMPOSE)
        expect(dialog.locator(".prm-own:visible")).to_have_count(1)
        search.fill("")
    with step("a prompt fills the box with its place marked, and can be taken back"):
        dialog.get_by_role("button", name="Products").click()
        press_here_and_let_go_there(page, search, 8, 8)
        dialog.get_by_role("button", name="Product on stone").click()
        expect(dialog).to_be_hidden()
        expect(composer(page)).to_have_value(re.compile("^A ceramic coffee cup on a slab"))
        marked = "e => e.value.slice(e.selectionStart, e.selectionEnd)"
        assert composer(page).evaluate(marked) == "ceramic coffee cup"
        page.keyboard.press("Control+z")
        expect(composer(page)).to_have_value("words of mine")
    with step("without a key, rules write a wish out and say so"):
        begin_anew(page)
        said_aloud = page.locator("#expanded-heard[role=status]")
        expect(said_aloud).to_have_text("")
        composer(page).fill("Draw a red fox")
        aid(page, "expand")
        shown = page.locator("#expanded .expanded")
        expect(shown).to_contain_text("by simple rules, without a model")
        expect(said_aloud).to_contain_text("Expanded prompt: Draw a red fox")
        on(shown).button("expanded.keep").click()
        expect(shown).to_be_hidden()
        expect(composer(page)).to_have_value("Draw a red fox")
    with step("ratios are drawn, and what is fixed is said on the button, which lets go of it"):
        drawn = (
            open_settings(page)
            .locator("#aspect-ratio label", has_text="9:16")
            .evaluate(
                """one => {
              const { width, height } = getComputedStyle(one, "::before");
              return [width, height].map(parseFloat);
            }"""
            )
        )
        assert drawn[0] < drawn[1]
        open_settings(page).get_by_role("radio", name="4:3", exact=True).press("ArrowRight")
        expect(chosen_ratio(page)).to_have_value("4:5")
        choose_setting(page, "aspect-ratio", "9:16")
        choose_setting(page, "count", "2")
        expect(page.locator("[data-aid=setup]")).to_have_text("9:16 · 2")
        called.button("composer.reset").click()
        expect(page.locator("[data-aid=setup]")).to_have_text(called.words("composer.auto"))
        expect(chosen_ratio(page)).to_have_value("auto")
        choose_setting(page, "aspect-ratio", "21:9")
    presets = page.locator("#presets")
    with step("a preset is saved"):
        aid(page, "presets")
        called.field("presets.name").fill("Film still")
        page.keyboard.press("Enter")
        expect(presets.get_by_role("listitem").filter(has_text="Film still")).to_contain_text("21:9")
    with step("another tab takes it up"):
        # Beside words the chips are part of a draft, which another tab would open with.
        composer(page).fill("")
        page.wait_for_function("localStorage.getItem('aivista-draft new') === null")
        other = page.context.new_page()
        open_page(other, studio.url)
        expect(chosen_ratio(other)).to_have_value("auto")
        aid(other, "presets")
        other.get_by_role("button", name="Film still").first.click()
        expect(chosen_ratio(other)).to_have_value("21:9")
        expect(other.locator("#presets")).to_be_hidden()
        expect(composer(other)).to_be_focused()
        other.close()
    with step("it is renamed, deleted and brought back"):
        page.get_by_role("button", name="Rename: Film still").click()
        on(page, "#presets").field("presets.rename").fill("Cinema")
        page.keyboard.press("Enter")
        expect(presets.locator("li b")).to_have_text("Cinema")
        page.get_by_role("button", name="Delete: Cinema").click()
        expect(presets).to_contain_text("No presets yet")
        on(presets).button("presets.undo").click()
        expect(presets.locator("li b")).to_have_text("Cinema")
    with step("a name that is taken can be typed on"):
        name = on(page, "#presets").field("presets.name")
        name.fill("Tall")
        page.keyboard.press("Enter")
        expect(presets.locator("li b").get_by_text("Tall")).to_have_count(1)
        expect(name).to_have_value("")
        name.fill("n" * 60)
        page.get_by_role("button", name="Rename: Tall").click()
        on(page, "#presets").field("presets.rename").fill("cinema")
        page.keyboard.press("Enter")
        expect(presets.locator(".said.bad")).to_contain_text("already")
        expect(presets.locator(".renaming")).to_have_value("cinema")
        expect(name).to_have_value("n" * 60)
        on(page, "#presets").field("presets.rename").fill("Narrow")
        page.keyboard.press("Enter")
        expect(presets.locator("li b").get_by_text("Narrow")).to_have_count(1)
    with step("Escape closes the menu, and then the settings"):
        page.keyboard.press("Escape")
        expect(presets).to_be_hidden()
        page.keyboard.press("Escape")
        expect(page.locator("#setup")).to_be_hidden()


def test_presets_and_prompts_fill_the_composer_and_pictures_and_drafts_stay_with_their_conversation(
    page: Page, studio: PageProcess, photo_file: Held
) -> None:
    # First: what is sent later is among the prompts, too.
    open_at(page, studio.sketched("draw a paper boat"), 1)
    presets_and_prompts_and_words_written_by_rules_fill_the_composer(page, studio)
    composer(page).fill("")
    choose_setting(page, "aspect-ratio", "Auto")
    open_at(page, studio.sketched("draw a paper boat"), 1)
    pictures_are_dropped_and_pasted_seen_on_their_way_sent_along_and_stay_with_their_conversation(page, photo_file)
    open_at(page, studio.sketched("draw a red fox"), 1)
    a_draft_belongs_to_its_conversation_and_what_is_sent_is_sent_once_or_stays_in_the_box(page)


def the_aids_are_a_sheet_and_the_page_ends_above_the_composer(phone: Page, studio: PageProcess) -> None:
    called = Called(phone, "zh-CN")
    open_page(phone, studio.url)
    composer(phone).fill("画一只猫")
    called.button("composer.settings").tap()
    called.button("aids.expand").tap()
    expect(phone.locator("#expanded ins")).to_be_visible()
    called.button("expanded.take").tap()
    expect(composer(phone)).to_have_value(re.compile("^画一只猫，"))
    called.button("composer.settings").tap()
    ratios = phone.locator("#aspect-ratio label")
    for one in (ratios.first, ratios.last):
        box = place_of(one)
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 390

"""The composer's aids: a wish written out, presets, prompts, ratios drawn, drops anywhere, uploads, drafts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, Route, expect

from tests.page import PageProcess
from tests.page.hands import (
    Held,
    composer,
    draw_twice,
    drop,
    expect_ready,
    expect_rest,
    held,
    open_at,
    open_page,
    paint,
    pictures,
    say,
)
from tests.wire_server import GeminiProcess

PASTE = """(at, clipboardData) =>
  at.dispatchEvent(new ClipboardEvent("paste", { clipboardData, bubbles: true, cancelable: true }))"""
# An input method that has typed half of a word.
COMPOSE = """field => {
  field.value = "zhong";
  field.dispatchEvent(new InputEvent("input", { bubbles: true, isComposing: true }));
}"""
FULL = "A red fox sits in fresh snow at the edge of a pine forest, watercolour"


@pytest.fixture
def photo_file(photo: Path) -> Held:
    return Held("garden.jpg", photo.read_bytes(), "image/jpeg")


def aid(page: Page, name: str) -> None:
    """Press one of the three buttons beside the price."""
    page.locator(f".aids [data-aid={name}]").click()


def press_here_and_let_go_there(page: Page, here: Locator, x: int, y: int) -> None:
    """Mark words with the mouse and let it go somewhere else."""
    box = here.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(x, y)
    page.mouse.up()


def choose_ratio(page: Page, ratio: str) -> None:
    page.locator("#aspect-ratio input").click()
    page.get_by_role("option", name=ratio, exact=True).click()
    expect(page.locator("#aspect-ratio input")).to_have_value(ratio)


def test_a_wish_is_written_out_shown_taken_and_undone_and_never_sent(
    page: Page, gemini: GeminiProcess, gemini_studio: PageProcess
) -> None:
    gemini.control(clear=True, on_text=[{"kind": "Text", "text": FULL}])
    open_page(page, gemini_studio.url)
    composer(page).fill("a red fox, watercolour")
    expect(page.locator(".aids [data-aid=expand]")).to_have_attribute("title", re.compile(r"about \$0\.00"))
    aid(page, "expand")
    shown = page.get_by_role("region", name="Your wish, written out")
    expect(shown.locator("ins").filter(has_text="in fresh snow")).to_be_visible()
    expect(shown).to_contain_text(re.compile(r"by Flash, \$0\.00"))
    expect(composer(page)).to_have_value("a red fox, watercolour")
    shown.get_by_role("button", name="Use it").click()
    expect(composer(page)).to_have_value(FULL)
    page.get_by_role("button", name="Undo").click()
    expect(composer(page)).to_have_value("a red fox, watercolour")
    expect(shown).to_be_hidden()
    expect(page.locator("#chat .user")).to_have_count(0)
    expect(page.locator("#rail-foot .spend b")).not_to_have_text("$0.00")
    assert gemini.read("violations") == []


def test_without_a_key_rules_write_it_and_say_so_and_ratios_are_drawn_in_the_chip_and_in_its_list(
    page: Page, studio: PageProcess
) -> None:
    open_page(page, studio.url)
    said_aloud = page.locator("#fuller-heard[role=status]")
    expect(said_aloud).to_have_text("")
    composer(page).fill("Draw a red fox")
    aid(page, "expand")
    shown = page.locator("#fuller .fuller")
    expect(shown).to_contain_text("by simple rules, without a model")
    expect(said_aloud).to_contain_text("Your wish, written out: Draw a red fox")
    shown.get_by_role("button", name="Keep mine").click()
    expect(shown).to_be_hidden()
    expect(composer(page)).to_have_value("Draw a red fox")
    page.locator("#aspect-ratio input").click()
    drawn = page.get_by_role("option", name="9:16", exact=True).evaluate(
        """one => {
          const { width, height } = getComputedStyle(one, "::before");
          return [width, height].map(parseFloat);
        }"""
    )
    assert drawn[0] < drawn[1]
    page.get_by_role("option", name="21:9", exact=True).click()
    expect(page.locator("#aspect-ratio")).to_have_attribute("style", re.compile(r"--w: 14px; --h: 6px"))


def test_a_preset_is_saved_and_taken_up_in_another_tab(page: Page, studio: PageProcess) -> None:
    open_page(page, studio.url)
    choose_ratio(page, "21:9")
    aid(page, "presets")
    page.get_by_label("Name for these settings").fill("Film still")
    page.keyboard.press("Enter")
    row = page.locator("#presets li").filter(has_text="Film still")
    expect(row).to_contain_text("21:9")
    other = page.context.new_page()
    open_page(other, studio.url)
    expect(other.locator("#aspect-ratio input")).to_have_value("Auto ratio")
    aid(other, "presets")
    other.get_by_role("button", name="Film still").first.click()
    expect(other.locator("#aspect-ratio input")).to_have_value("21:9")
    expect(other.locator("#presets")).to_be_hidden()
    expect(composer(other)).to_be_focused()
    row.get_by_role("button", name="Rename: Film still").click()
    page.locator("#presets .renaming").fill("Cinema")
    page.keyboard.press("Enter")
    expect(page.locator("#presets li b")).to_have_text("Cinema")
    page.get_by_role("button", name="Delete: Cinema").click()
    expect(page.locator("#presets")).to_contain_text("No presets yet")
    page.locator("#presets").get_by_role("button", name="Undo").click()
    expect(page.locator("#presets li b")).to_have_text("Cinema")


def test_a_name_for_a_preset_that_is_taken_can_be_typed_on_and_tab_leaves_the_menu_of_aids_closed_behind_it(
    page: Page, studio: PageProcess
) -> None:
    open_page(page, studio.url)
    aid(page, "presets")
    for name in ("Wide", "Tall"):
        page.locator("#presets form.save input").fill(name)
        page.keyboard.press("Enter")
        expect(page.locator("#presets li b").get_by_text(name)).to_have_count(1)
        expect(page.locator("#presets form.save input")).to_have_value("")
    page.locator("#presets form.save input").fill("n" * 60)
    page.get_by_role("button", name="Rename: Tall").click()
    page.locator("#presets .renaming").fill("wide")
    page.keyboard.press("Enter")
    expect(page.locator("#presets .said.bad")).to_contain_text("already")
    expect(page.locator("#presets .renaming")).to_have_value("wide")
    expect(page.locator("#presets form.save input")).to_have_value("n" * 60)
    page.locator("#presets .renaming").fill("Narrow")
    page.keyboard.press("Enter")
    expect(page.locator("#presets li b").get_by_text("Narrow")).to_have_count(1)
    page.keyboard.press("Escape")
    page.set_viewport_size({"width": 390, "height": 844})
    page.locator("[data-aid=more]").click()
    expect(page.locator("#aids-menu")).to_be_visible()
    page.keyboard.press("Tab")
    expect(page.locator("#aids-menu")).to_be_hidden()


def test_a_prompt_of_the_gallery_fills_the_box_with_its_place_marked(page: Page, studio: PageProcess) -> None:
    open_page(page, studio.url)
    paint(page, "draw a paper boat")
    composer(page).press_sequentially("words of mine")
    aid(page, "prompts")
    dialog = page.get_by_role("dialog", name="Prompt gallery")
    expect(dialog.locator(".prm:visible")).to_have_count(24)
    dialog.get_by_role("searchbox").fill("limestone COFFEE")
    expect(dialog.locator(".prm:visible")).to_have_count(1)
    dialog.get_by_role("searchbox").fill("nobody wrote this")
    expect(dialog.get_by_text("No prompt has these words.")).to_be_visible()
    dialog.get_by_role("searchbox").fill("")
    dialog.get_by_role("button", name="Yours").click()
    dialog.get_by_role("button", name="Keep this prompt").click()
    expect(dialog.locator(".prm-own:visible")).to_have_text(["draw a paper boat"])
    search = dialog.get_by_role("searchbox")
    search.evaluate(COMPOSE)
    expect(dialog.locator(".prm-own:visible")).to_have_count(1)
    search.fill("")
    dialog.get_by_role("button", name="Products").click()
    press_here_and_let_go_there(page, search, 8, 8)
    dialog.get_by_role("button", name="Product on stone").click()
    expect(dialog).to_be_hidden()
    expect(composer(page)).to_have_value(re.compile("^A ceramic coffee cup on a slab"))
    marked = "e => e.value.slice(e.selectionStart, e.selectionEnd)"
    assert composer(page).evaluate(marked) == "ceramic coffee cup"
    page.keyboard.press("Control+z")
    expect(composer(page)).to_have_value("words of mine")


def test_a_picture_dropped_anywhere_goes_into_the_message_and_a_target_says_so(
    page: Page, studio: PageProcess, photo_file: Held
) -> None:
    open_page(page, studio.url)
    page.locator("#rail").dispatch_event("dragover", {"dataTransfer": held(page, photo_file)})
    expect(page.locator("#drop-target")).to_contain_text("Add to your message")
    drop(page.locator("#rail"), photo_file)
    expect(page.locator("#drop-target")).to_have_count(0)
    expect(page.locator("#box .thumbnail-item img")).to_have_count(1)
    drop(page.locator("#chat"), Held("notes.pdf", b"%PDF-1.7", "application/pdf"))
    expect(page.locator("#uploads")).to_contain_text("notes.pdf is not a picture.")
    page.locator("body").evaluate(PASTE, held(page, photo_file))
    expect(page.locator("#box .thumbnail-item img")).to_have_count(2)


@pytest.fixture
def slow_upload(page: Page) -> Iterator[list[Route]]:
    """Uploads that wait until the test lets them go on."""
    waiting: list[Route] = []
    page.route("**/gradio_api/upload*", lambda route: waiting.append(route))
    yield waiting
    page.unroute("**/gradio_api/upload*")


def test_an_upload_shows_how_far_it_is_and_one_file_can_be_left_out(
    page: Page, studio: PageProcess, photo_file: Held, slow_upload: list[Route]
) -> None:
    open_page(page, studio.url)
    drop(composer(page), photo_file, Held("second.jpg", photo_file.data, "image/jpeg"))
    rows = page.locator("#uploads li")
    expect(rows).to_have_count(2)
    expect(rows.first.get_by_role("progressbar")).to_be_visible()
    rows.filter(has_text="garden.jpg").get_by_role("button", name="Do not add this picture").click()
    expect(rows).to_have_count(1)
    for route in slow_upload:
        if "second.jpg" in str(route.request.post_data_buffer):
            route.continue_()
    expect(page.locator("#box .thumbnail-item img")).to_have_count(1)
    expect(page.locator("#box .thumbnail-item img")).to_have_attribute("src", re.compile("second"))
    expect(rows).to_have_count(0)


def test_who_sends_while_a_picture_is_on_its_way_sends_it_along(
    page: Page, studio: PageProcess, photo_file: Held, slow_upload: list[Route]
) -> None:
    open_page(page, studio.url)
    drop(composer(page), photo_file)
    expect(page.locator("#uploads li")).to_have_count(1)
    sent: list[str] = []
    page.on("request", lambda request: sent.append(request.url) if "darker" in (request.post_data or "") else None)
    say(page, "make it darker")
    draw_twice(page)
    assert sent == []
    for route in slow_upload:
        route.continue_()
    expect(page.locator("#chat .user-row").first).to_contain_text("make it darker")
    expect(page.locator("#chat .user-row img")).to_have_count(1)
    expect(page.locator("#box .thumbnail-item")).to_have_count(0)


def test_what_is_attached_stays_with_its_conversation(page: Page, studio: PageProcess, photo_file: Held) -> None:
    shown = page.locator("#box .thumbnail-item img")
    open_at(page, studio.sketched("draw a harbour"), 1)
    drop(composer(page), photo_file, Held("second.jpg", photo_file.data, "image/jpeg"))
    expect(shown).to_have_count(2)
    page.locator("#rail [data-act=new]").click()
    expect(page.locator("#top h1[data-conversation=new]")).to_have_count(1)
    expect(shown).to_have_count(0)
    page.locator("#rail-rows [data-act=open]").first.click()
    expect(shown).to_have_count(2)
    assert ["garden" in one for one in shown.evaluate_all("all => all.map(one => one.src)")] == [True, False]
    say(page, "put these beside it")
    expect(page.locator("#chat .user-row").last.locator("img")).to_have_count(2)
    expect_rest(page)
    expect(shown).to_have_count(0)


def test_neither_the_way_back_to_a_draft_nor_a_wish_asked_for_follows_into_another_conversation(
    page: Page, studio: PageProcess
) -> None:
    open_page(page, studio.url)
    paint(page, "draw a sailing boat")
    composer(page).fill("half a wish")
    composer(page).press("ArrowUp")
    expect(composer(page)).to_have_value("draw a sailing boat")
    page.locator("#rail [data-act=new]").click()
    expect(page.locator("#top h1[data-conversation=new]")).to_have_count(1)
    expect(composer(page)).to_have_value("")
    composer(page).press("ArrowDown")
    expect(composer(page)).to_have_value("")
    composer(page).fill("a wooden bridge")
    waiting: list[Route] = []
    page.route("**/gradio_api/queue/join*", lambda route: waiting.append(route))
    aid(page, "expand")
    expect(page.locator("#composer .fuller-wait")).to_have_count(1)
    page.locator("#rail-rows [data-act=open]").first.click()
    page.unroute("**/gradio_api/queue/join*")
    expect(page.locator("#top h1:not([data-conversation=new])")).to_have_count(1)
    expect(page.locator("#composer .fuller-wait")).to_have_count(0)
    expect(page.locator("#fuller")).to_be_hidden()


def test_a_draft_survives_a_reload_belongs_to_its_conversation_and_goes_when_it_is_sent(
    page: Page, studio: PageProcess
) -> None:
    open_at(page, studio.sketched("draw a red fox"), 1)
    page.locator("#chat .acts").first.get_by_role("button", name="Use as reference").click()
    expect(page.locator("#ctx .ctx")).to_have_count(1)
    choose_ratio(page, "16:9")
    composer(page).fill("a poster with this fox")
    page.wait_for_function("JSON.stringify(localStorage).includes('a poster with this fox')")
    page.reload()
    expect_ready(page)
    expect(composer(page)).to_have_value("a poster with this fox")
    expect(page.locator("#ctx .ctx b")).to_have_text("#1")
    expect(page.locator("#aspect-ratio input")).to_have_value("16:9")
    page.locator("#rail [data-act=new]").click()
    expect(composer(page)).to_have_value("")
    page.locator("#rail-rows [data-act=open]").first.click()
    expect(composer(page)).to_have_value("a poster with this fox")
    composer(page).press("Enter")
    expect(pictures(page)).to_have_count(2)
    expect_rest(page)
    page.reload()
    expect_ready(page)
    expect(pictures(page)).to_have_count(2)
    expect(composer(page)).to_have_value("")


def test_on_a_phone_the_aids_are_a_sheet_and_the_page_ends_above_the_composer(
    browser: Browser, studio: PageProcess
) -> None:
    context = browser.new_context(
        viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True, locale="zh-CN"
    )
    page = context.new_page()
    open_page(page, studio.url)
    composer(page).fill("画一只猫")
    page.get_by_role("button", name="提示词助手").tap()
    page.get_by_role("menuitem", name="扩写我的想法").tap()
    expect(page.locator("#fuller ins")).to_be_visible()
    page.get_by_role("button", name="用这个").tap()
    expect(composer(page)).to_have_value(re.compile("^画一只猫，"))
    page.locator("#aspect-ratio input").tap()
    for option in (page.get_by_role("option", name="1:1", exact=True), page.get_by_role("option").last):
        box = option.bounding_box()
        assert box is not None
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 390
    context.close()


def test_what_is_sent_is_seen_at_once_and_is_one_turn_however_often_it_is_pressed(
    page: Page, studio: PageProcess
) -> None:
    held: list[Route] = []
    open_page(page, studio.url)
    before = page.locator("#rail-rows [data-act=open]").count()
    page.route("**/gradio_api/queue/join*", lambda route: held.append(route))
    say(page, "draw a red fox")
    expect(page.locator("#said-now")).to_have_text("draw a red fox")
    expect.soft(composer(page)).to_have_value("draw a red fox")
    composer(page).press("Enter")
    page.locator("#box .submit-button").click()
    # What it costs is asked for as well.
    while len(presses := [one for route in held if (one := route.request.headers.get("x-aivista-request"))]) < 3:
        page.wait_for_timeout(50)
    assert len(set(presses)) == 1
    for route in held:
        route.continue_()
    page.unroute("**/gradio_api/queue/join*")
    expect(pictures(page)).to_have_count(1)
    expect_rest(page)
    expect(page.locator("#said-now")).to_have_count(0)
    expect(composer(page)).to_have_value("")
    expect(page.locator("#chat .user-row")).to_have_count(1)
    expect(page.locator("#rail-rows [data-act=open]")).to_have_count(before + 1)


def test_what_could_not_be_sent_stays_in_the_box(page: Page, studio: PageProcess) -> None:
    open_page(page, studio.url)
    page.route("**/gradio_api/queue/join*", lambda route: route.fulfill(status=502))
    say(page, "draw a red fox")
    expect(page.locator(".toast-body, .toast-text").first).to_be_visible()
    expect(page.locator("#said-now")).to_have_count(0)
    expect(composer(page)).to_have_value("draw a red fox")
    page.unroute("**/gradio_api/queue/join*")
    composer(page).press("Enter")
    expect(pictures(page)).to_have_count(1)
    expect_rest(page)

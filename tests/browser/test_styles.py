"""The style library in a browser: opened, searched, tried on a picture, and filled with styles of one's own."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from playwright.sync_api import Locator, Page, expect

from tests.adapters.pixels import curated_styles
from tests.page import PageProcess
from tests.page.hands import composer, expect_pictures, expect_rest, open_at, open_page, say
from tests.page.journeys import on, step
from tests.wire_server import GeminiProcess

WATERCOLOUR = "#sty-list article[data-id=watercolour]"


def paint(prompt: str, **arguments: str) -> dict[str, Any]:
    """Return the planner's call for a picture, as the strict server is told it."""
    return {"kind": "Call", "name": "generate_image", "args": {"prompt": prompt, "confidence": 0.9, **arguments}}


def open_library(page: Page) -> Locator:
    """Open the library and return its cards."""
    page.get_by_role("button", name="Styles").click()
    cards = page.locator("#sty-list article")
    expect(cards.first).to_be_visible()
    return cards


def test_the_library_is_opened_searched_and_filled_with_styles_of_ones_own(
    page: Page, studio: PageProcess, tmp_path: Path
) -> None:
    open_page(page, studio.url)
    with step("it opens and closes with keys"):
        expect(page.locator("#sty-list article")).to_have_count(0)
        opener = page.get_by_role("button", name="Styles")
        opener.focus()
        page.keyboard.press("Enter")
        dialog = page.get_by_role("dialog", name="Styles")
        expect(dialog).to_be_visible()
        expect(dialog.get_by_role("searchbox")).to_be_focused()
        expect(dialog.get_by_role("article")).to_have_count(len(curated_styles()))
        chip = dialog.get_by_role("button", name="Photography", exact=True)
        chip.focus()
        page.keyboard.press("Enter")
        expect(dialog.locator(".sty-cards")).to_have_attribute("data-family", "photography")
        expect(chip).to_be_focused()
        expect(chip).to_have_attribute("aria-pressed", "true")
    with step("it finds what is typed, and says why"):
        cards = page.locator("#sty-list article")
        on(page, "#sty-list").button("styles.all").click()
        expect(cards).to_have_count(len(curated_styles()))
        on(page).field("styles.find").press_sequentially("aquarelle", delay=20)
        expect(page.locator(".sty-cards")).to_have_attribute("data-query", "aquarelle")
        expect(cards.first).to_contain_text("Watercolour")
        expect(cards.first.locator(".why")).to_have_text("Also called “aquarelle”")
        cards.first.get_by_text("What it adds to a prompt").click()
        expect(cards.first).to_contain_text("granulating pigment in the shadows")
        on(page).field("styles.find").fill("")
        expect(cards).to_have_count(len(curated_styles()))
        page.keyboard.press("Escape")
        expect(dialog).to_be_hidden()
        expect(opener).to_be_focused()
    with step("a style goes into the composer"):
        composer(page).fill("a fox")
        open_library(page)
        page.locator(WATERCOLOUR).get_by_role("button", name="Try it: Watercolour").click()
        expect(composer(page)).to_have_value("a fox in the style of Watercolour")
        expect(page.locator("#chat .user")).to_have_count(0)
    with step("a form that is left changes nothing"):
        cards = open_library(page)
        for _ in range(2):
            page.get_by_role("button", name="New style").click()
            expect(page.get_by_label("Name", exact=True)).to_have_value("")
            page.get_by_label("Name", exact=True).fill("Never kept")
            page.get_by_role("button", name="Cancel").click()
            expect(page.locator("#sty-form")).to_have_count(0)
        expect(cards).to_have_count(len(curated_styles()))
    with step("a style of one's own is written, edited, deleted and brought back"):
        page.get_by_role("button", name="New style").click()
        expect(page.get_by_label("Name", exact=True)).to_be_focused()
        page.get_by_label("Name", exact=True).fill("Haiku moon")
        page.get_by_role("button", name="Save style").click()
        expect(page.get_by_role("alert")).to_contain_text("a style needs at least one")
        expect(page.get_by_label("Name", exact=True)).to_have_value("Haiku moon")
        page.get_by_label("Phrases").fill("pale moon over reeds")
        page.get_by_label("Name", exact=True).fill("")
        page.get_by_role("button", name="Save style").click()
        expect(page.get_by_role("alert")).to_contain_text("it has no name")
        page.get_by_label("Name", exact=True).fill("Haiku moon")
        page.get_by_role("button", name="Save style").click()
        expect(cards).to_have_count(1)
        expect(cards).to_contain_text("Haiku moon")
        cards.get_by_role("button", name="Edit: Haiku moon").click()
        page.get_by_label("Name", exact=True).fill("Haiku dusk")
        page.get_by_role("button", name="Save style").click()
        expect(cards).to_contain_text("Haiku dusk")
        cards.get_by_role("button", name="Delete: Haiku dusk").click()
        expect(cards).to_have_count(0)
        page.get_by_role("button", name="Undo").click()
        expect(cards).to_contain_text("Haiku dusk")
    with step("one's own styles go out as a file and come back"):
        with page.expect_download() as download:
            page.get_by_role("button", name="Export mine").click()
        assert download.value.suggested_filename == "aivista-styles.json"
        file = tmp_path / "mine.json"
        download.value.save_as(file)
        assert [style["name"]["en"] for style in json.loads(file.read_text())["styles"]] == ["Haiku dusk"]
        cards.get_by_role("button", name="Delete: Haiku dusk").click()
        expect(cards).to_have_count(0)
        on(page).field("styles.import_title").set_input_files(file)
        expect(page.get_by_role("status").filter(has_text="1 style imported.")).to_be_visible()
        expect(cards).to_contain_text("Haiku dusk")
        file.write_text("no JSON at all")
        on(page).field("styles.import_title").set_input_files(file)
        expect(page.get_by_role("alert")).to_contain_text("the file is not JSON")
        page.keyboard.press("Escape")
    with step("a style is tried on the picture that is marked, and the sketch model says that it draws by rules"):
        open_at(page, studio.sketched("draw a boat", "draw a whale"), 2)
        on(page, "#chat").button("action.edit").first.click()
        expect(page.locator("#ctx .ctx")).to_contain_text("#1")
        open_library(page)
        on(page, "#sty-list").button("styles.all").click()
        page.locator(WATERCOLOUR).get_by_role("button", name="Try it: Watercolour").click()
        expect(page.locator("#chat .refs .tag").last).to_have_text("#1")
        expect(page.locator("#chat .bot").last).to_contain_text("drawn by rules in the look of “Watercolour”")
        expect_rest(page)


def a_style_is_tried_on_the_newest_picture_and_the_draft_stays(
    page: Page, gemini: GeminiProcess, gemini_studio: PageProcess
) -> None:
    gemini.control(clear=True, on_text=[paint("a red fox"), paint("a red fox", style="Watercolour", action="edit")])
    gemini.control(on_image=[{"kind": "PictureAnswer"}] * 2)
    open_page(page, gemini_studio.url)
    say(page, "draw a red fox")
    expect_pictures(page, 1)
    composer(page).fill("half a thought")
    open_library(page)
    page.locator(WATERCOLOUR).get_by_role("button", name="Try it: Watercolour").click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.locator("#chat .user").last).to_contain_text("Repaint this in the style “Watercolour”")
    expect(page.locator("#chat .refs .tag").last).to_have_text("#1")
    expect_pictures(page, 2)
    expect(composer(page)).to_have_value("half a thought")
    page.locator("#chat .receipt summary").last.click()
    expect(page.locator("#chat .receipt").last).to_contain_text("wet-in-wet blooms and soft backruns")
    assert gemini.read("violations") == []


def the_library_is_chinese_and_fits(phone: Page, studio: PageProcess) -> None:
    open_at(phone, studio.sketched("画一只狐狸"), 1)
    phone.get_by_role("button", name="风格库").click()
    ink = phone.locator("#sty-list article[data-id=ink-wash]")
    expect(ink).to_contain_text("水墨画")
    on(phone).field("styles.find").fill("水墨")
    expect(phone.locator("#sty-list article").first).to_contain_text("水墨画")
    expect(phone.locator("#sty-list .why").first).to_have_text("也叫“水墨”")
    shown = phone.locator("#styles-box")
    assert shown.evaluate("box => box.scrollWidth - box.clientWidth") <= 0
    assert phone.evaluate("document.documentElement.scrollWidth") <= 390
    ink.get_by_role("button", name=re.compile("^试试")).click()
    expect(phone.locator("#chat .user").last).to_contain_text("把这张图改成“水墨画”风格")
    expect(phone.locator("#chat .refs .tag").last).to_have_text("#1")
    expect_rest(phone)

"""Without a key: the first page, a sketch, an upload edited, bad uploads, a reload."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.page import PageProcess
from tests.page.hands import (
    Held,
    attach,
    composer,
    drop,
    expect_loaded,
    expect_rest,
    held,
    open_at,
    open_page,
    pictures,
    say,
)


def test_the_first_page_says_that_it_sketches_and_how_to_add_a_key(page: Page, studio: PageProcess) -> None:
    open_page(page, studio.url)
    expect(page.get_by_role("status").filter(has_text="You are in sketch mode")).to_be_visible()
    expect(page.locator("#text-model")).to_have_count(0)
    expect(page.locator("#resolution")).to_have_count(0)
    expect(page.locator("#search")).to_have_count(0)
    page.get_by_role("button", name="Add a key").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_be_visible()
    expect(dialog.get_by_label("Gemini API key")).to_be_focused()
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()


def test_a_sketch_is_drawn_changed_by_the_next_sentence_and_there_after_a_reload(
    page: Page, studio: PageProcess
) -> None:
    target = page.locator("#ctx-next")
    open_page(page, studio.url)
    expect(target).to_be_hidden()
    say(page, "draw a red fox in the snow")
    expect(pictures(page)).to_have_count(1)
    expect_loaded(pictures(page).first)
    expect_rest(page)
    expect(target).to_have_text(re.compile(r"Changes apply to\s*#1\s*$"))
    say(page, "make it darker")
    expect(pictures(page)).to_have_count(2)
    expect_rest(page)
    expect(target).to_have_text(re.compile(r"Changes apply to\s*#1b\s*$"))
    say(page, "undo that")
    expect(target).to_have_text(re.compile(r"Changes apply to\s*#1\s*$"))
    expect_rest(page)
    say(page, "redo")
    expect(target).to_have_text(re.compile(r"Changes apply to\s*#1b\s*$"))
    expect_rest(page)
    expect(page).to_have_url(re.compile(r"\?c=\w{8,}"))
    page.reload()
    # Undone and redone, it is shown once more each time.
    expect(pictures(page)).to_have_count(4)
    expect(page.locator("#chat .user").nth(1)).to_contain_text("make it darker")
    expect(target).to_have_text(re.compile(r"#1b\s*$"))
    expect(page.locator("#rail [aria-current=page]")).to_contain_text("A red fox")


def test_an_upload_is_edited_and_opens_large_with_its_receipt(page: Page, studio: PageProcess, photo: Path) -> None:
    open_page(page, studio.url)
    attach(page, photo)
    expect(page.locator("#ctx-next")).to_be_hidden()
    say(page, "make it grayscale")
    expect(pictures(page)).to_have_count(1)
    expect_rest(page)
    pictures(page).first.click()
    expect(page.locator("#canvas .cv-pic img")).to_be_visible()
    expect(page.locator("#canvas .receipt")).to_contain_text("480×320")
    with page.expect_download() as download:
        page.locator("#chat .acts a").first.click()
    assert re.fullmatch(r"aivista-[\w-]+\.png", download.value.suggested_filename)


def test_a_marked_picture_and_a_reference_stand_in_the_composer_until_removed(page: Page, studio: PageProcess) -> None:
    open_at(page, studio.sketched("draw a boat", "draw a whale"), 2)
    expect(page.locator("#ctx-next")).to_be_visible()
    page.locator("#chat [data-act=edit]").last.click()
    expect(page.locator("#ctx .ctx")).to_have_count(1)
    expect(page.locator("#ctx-next")).to_be_hidden()
    page.locator("#chat [data-act=reference]").first.click()
    expect(page.locator("#ctx .ctx")).to_have_count(2)
    expect(page.locator("#ctx")).to_contain_text("Editing")
    page.get_by_role("button", name=re.compile("^Remove #")).first.click()
    expect(page.locator("#ctx .ctx")).to_have_count(1)
    expect(page.locator("#ctx")).not_to_contain_text("Editing")


def test_a_file_that_is_no_picture_is_refused_and_the_words_come_back(
    page: Page, studio: PageProcess, tmp_path: Path
) -> None:
    fake = tmp_path / "holiday.png"
    fake.write_bytes(b"this is no picture")
    open_page(page, studio.url)
    attach(page, fake)
    say(page, "make it brighter")
    card = page.locator("#chat [role=alert]")
    expect(card).to_contain_text("holiday.png is not a picture that can be read")
    expect_rest(page)
    expect(composer(page)).to_have_value("make it brighter")
    expect(page.locator("#chat .user")).to_have_count(0)


def test_nothing_typed_is_answered_in_a_sentence(page: Page, studio: PageProcess) -> None:
    open_page(page, studio.url)
    page.locator("#box .submit-button").click()
    expect(page.locator("#chat .ask")).to_contain_text("What would you like to see?")
    expect_rest(page)


def test_two_tabs_do_not_mix(page: Page, studio: PageProcess) -> None:
    other = page.context.new_page()
    for tab in (page, other):
        open_page(tab, studio.url)
    say(page, "draw a lighthouse")
    say(other, "draw a teapot")
    for tab in (page, other):
        expect(pictures(tab)).to_have_count(1)
        expect_rest(tab)
    expect(page.locator("#chat")).not_to_contain_text("teapot")
    expect(other.locator("#chat")).not_to_contain_text("lighthouse")
    assert page.url != other.url


def test_a_new_conversation_clears_and_the_old_one_opens_again(page: Page, studio: PageProcess) -> None:
    open_at(page, f"{studio.url}/?c={studio.sketch('draw a yellow tulip')}", 1)
    page.locator("#rail [data-act=new]").click()
    expect(page.locator(".welcome")).to_be_visible()
    expect(pictures(page)).to_have_count(0)
    page.locator("#rail [data-act=open]", has_text="A yellow tulip").click()
    expect(pictures(page)).to_have_count(1)


def test_the_page_speaks_chinese_to_a_chinese_browser_and_switches(browser: Browser, studio: PageProcess) -> None:
    context = browser.new_context(locale="zh-CN")
    page = context.new_page()
    open_page(page, studio.url)
    expect(page.locator("html")).to_have_attribute("lang", "zh-CN")
    expect(page.locator(".welcome h2")).to_have_text("想做点什么？")
    composer(page).fill("写到一半")
    page.get_by_role("button", name="English").click()
    expect(page.locator(".welcome h2")).to_have_text("What shall we make?")
    expect(composer(page)).to_have_value("写到一半")
    context.close()


def test_the_theme_follows_the_system_until_one_chooses(browser: Browser, studio: PageProcess) -> None:
    context = browser.new_context(color_scheme="dark", locale="en-US")
    page = context.new_page()
    open_page(page, studio.url)
    expect(page.locator("body")).to_have_class(re.compile(r"\bdark\b"))
    page.get_by_role("button", name="Theme: as the system").click()
    expect(page.locator("body")).not_to_have_class(re.compile(r"\bdark\b"))
    page.reload()
    expect(page.get_by_role("button", name="Theme: light")).to_be_visible()
    expect(page.locator("body")).not_to_have_class(re.compile(r"\bdark\b"))
    context.close()


def test_on_a_phone_the_rail_is_a_drawer_and_nothing_is_wider_than_the_screen(
    browser: Browser, studio: PageProcess
) -> None:
    context = browser.new_context(viewport={"width": 390, "height": 844}, locale="en-US")
    page = context.new_page()
    open_at(page, studio.sketched("draw a boat"), 1)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.get_by_role("combobox", name="Aspect ratio").click()
    page.get_by_role("option", name="4:5").click()
    expect(page.get_by_role("combobox", name="Aspect ratio")).to_have_value("4:5")
    expect(page.locator("#rail")).to_be_hidden()
    page.get_by_role("button", name="Chats").click()
    expect(page.locator("#rail")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#rail")).to_be_hidden()
    pictures(page).first.click()
    expect(page.locator("#canvas .cv-pic img")).to_be_visible()
    page.locator("#tabs .to-chat").click()
    expect(page.locator("#canvas .cv-pic img")).to_be_hidden()
    context.close()


PASTE = """(box, data) => box.dispatchEvent(
  new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true })
)"""


@pytest.mark.parametrize("how", ["paste", "drop"])
def test_a_picture_can_be_pasted_and_dropped(page: Page, studio: PageProcess, photo: Path, how: str) -> None:
    open_page(page, studio.url)
    file = Held("garden.jpg", photo.read_bytes(), "image/jpeg")
    if how == "paste":
        composer(page).evaluate(PASTE, held(page, file))
    else:
        drop(composer(page), file)
    expect(page.locator("#box img")).to_have_count(1)
    say(page, "make it sepia")
    expect(pictures(page)).to_have_count(1)
    expect_rest(page)
    expect(page.locator("#chat .refs img")).to_have_count(1)


def test_a_picture_whose_file_is_missing_says_so_in_its_place(page: Page, studio: PageProcess) -> None:
    address = studio.sketched("draw a purple umbrella on a beach")
    media = f"{studio.url}/media/{address.rpartition('=')[2]}/1"
    page.request.get(studio.url, max_retries=2)
    digest = hashlib.sha256(page.request.get(media, max_retries=2).body()).hexdigest()
    for file in studio.home.rglob(f"{digest}*"):
        file.unlink()
    open_at(page, address)
    frame = page.locator("#chat .frame")
    expect(frame).to_have_attribute("data-lost", re.compile("The file of picture #1 is missing"))
    expect(frame.locator("img")).to_have_class(re.compile("lost"))
    answer = page.request.get(f"{media}?size=192", max_retries=2)
    assert (answer.status, "#1" in answer.text(), digest[:8] in answer.text()) == (404, True, False)
    assert page.request.get(f"{media[:-1]}999", max_retries=2).text() == "There is no such picture."

"""Without a key: the first page, a sketch, an upload edited, bad uploads, a reload."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from playwright.sync_api import Page, expect

from tests.page import PageProcess
from tests.page.hands import (
    Held,
    attach,
    begin_anew,
    choose_setting,
    chosen_ratio,
    close_settings,
    composer,
    drop,
    expect_loaded,
    expect_pictures,
    expect_rest,
    held,
    open_at,
    open_more,
    open_page,
    open_settings,
    pictures,
    reload,
    say,
)
from tests.page.journeys import Called, on, step

PASTE = """(box, data) => box.dispatchEvent(
  new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true })
)"""
DARK = re.compile(r"\bdark\b")


def test_the_first_page_sketches_and_takes_pictures_and_a_sketch_is_changed_and_there_after_a_reload(
    page: Page, studio: PageProcess, photo: Path, tmp_path: Path
) -> None:
    called, file = Called(page), Held("garden.jpg", photo.read_bytes(), "image/jpeg")
    open_page(page, studio.url)
    with step("it says that it sketches, and how to add a key"):
        expect(page.get_by_role("status").filter(has_text=called.words("welcome.key_title"))).to_be_visible()
        expect(page.locator(".welcome h2")).to_have_text(called.words("welcome.hello"))
        expect(page.locator("#resolution")).to_have_count(0)
        for greyed in ("#text-model input", "#image-model input", "#search input"):
            expect(page.locator(greyed)).to_be_disabled()
        expect(open_settings(page)).to_contain_text(called.words("composer.needs_key"))
        close_settings(page)
        called.button("welcome.add_key").click()
        dialog = page.get_by_role("dialog")
        expect(dialog).to_be_visible()
        expect(on(dialog).field("settings.key")).to_be_focused()
        page.keyboard.press("Escape")
        expect(dialog).to_be_hidden()
    with step("a file that is no picture is refused, and the words come back"):
        fake = tmp_path / "holiday.png"
        fake.write_bytes(b"this is no picture")
        attach(page, fake)
        say(page, "make it brighter")
        refused = page.locator("#chat").get_by_role("alert")
        expect(refused).to_contain_text("holiday.png is not a picture that can be read")
        expect_rest(page)
        expect(composer(page)).to_have_value("make it brighter")
        expect(page.locator("#chat .user")).to_have_count(0)
    with step("nothing typed is answered in a sentence"):
        begin_anew(page)
        composer(page).fill("")
        on(page, "#box").button("builtin.send").click()
        expect(page.locator("#chat .ask")).to_contain_text(called.words("question.empty").partition("?")[0])
        expect_rest(page)
    with step("an upload is edited, opens large with its receipt, and is downloaded"):
        begin_anew(page)
        attach(page, photo)
        expect(page.locator("#ctx-next")).to_be_hidden()
        say(page, "make it grayscale")
        expect_pictures(page, 1)
        pictures(page).first.click()
        expect(page.locator("#canvas .cv-pic img")).to_be_visible()
        expect(page.locator("#canvas .receipt")).to_contain_text("480×320")
        with page.expect_download() as download:
            on(page, "#chat .acts").link("action.download").first.click()
        assert re.fullmatch(r"aivista-[\w-]+\.png", download.value.suggested_filename)
    with step("a picture is pasted, another is dropped, and both go with the message"):
        begin_anew(page)
        composer(page).evaluate(PASTE, held(page, file))
        expect(page.locator("#box img")).to_have_count(1)
        drop(composer(page), file)
        expect(page.locator("#box img")).to_have_count(2)
        say(page, "make it sepia")
        expect_pictures(page, 1)
        expect(page.locator("#chat .refs img")).to_have_count(2)
    called, target, references = Called(page), page.locator("#ctx-next"), page.locator("#ctx .ctx")
    lost = studio.sketch("draw a purple umbrella on a beach")
    with step("the theme follows the system until one chooses"):
        page.emulate_media(color_scheme="dark")
        open_page(page, studio.url)
        expect(page.locator("body")).to_have_class(DARK)
        called.button("rail.theme_system").click()
        expect(page.locator("body")).not_to_have_class(DARK)
    with step("two tabs do not mix"):
        expect(target).to_be_hidden()
        other = page.context.new_page()
        open_page(other, studio.url)
        say(page, "draw a red fox in the snow")
        say(other, "draw a teapot")
        for tab in (page, other):
            expect_pictures(tab, 1)
        expect(page.locator("#chat")).not_to_contain_text("teapot")
        expect(other.locator("#chat")).not_to_contain_text("fox")
        assert page.url != other.url
        other.close()
    with step("a sentence changes the picture, another undoes it, another does it again"):
        expect_loaded(pictures(page).first)
        expect(target).to_have_text(re.compile(r"Editing\s*#1\s*$"))
        say(page, "make it darker")
        expect_pictures(page, 2)
        expect(target).to_have_text(re.compile(r"Editing\s*#1b\s*$"))
        say(page, "undo that")
        expect(target).to_have_text(re.compile(r"Editing\s*#1\s*$"))
        expect_rest(page)
        say(page, "redo")
        expect(target).to_have_text(re.compile(r"Editing\s*#1b\s*$"))
        expect_rest(page)
    with step("all of it is there after a reload, and so is the theme"):
        expect(page).to_have_url(re.compile(r"\?c=\w{8,}"))
        reload(page)
        # Undone and redone, it is shown once more each time.
        expect(pictures(page)).to_have_count(4)
        expect(page.locator("#chat .user").nth(1)).to_contain_text("make it darker")
        expect(target).to_have_text(re.compile(r"#1b\s*$"))
        expect(page.locator("#rail [aria-current=page]")).to_contain_text("A red fox")
        expect(called.button("rail.theme_light")).to_be_visible()
        expect(page.locator("body")).not_to_have_class(DARK)
        page.emulate_media(color_scheme="null")
    with step("a new conversation clears the page, and the old one opens again"):
        begin_anew(page)
        expect(page.locator(".welcome")).to_be_visible()
        expect(pictures(page)).to_have_count(0)
        page.locator("#rail").get_by_role("button", name="A red fox").first.click()
        expect(pictures(page)).to_have_count(4)
    with step("a marked picture and a reference stand in the composer until removed"):
        expect(target).to_be_visible()
        on(page, "#chat").button("action.edit").last.click()
        expect(references).to_have_count(1)
        expect(target).to_be_hidden()
        on(open_more(page, 0)).button("action.reference").click()
        expect(references).to_have_count(2)
        expect(page.locator("#ctx")).to_contain_text("Editing")
        called.button("composer.remove").first.click()
        expect(references).to_have_count(1)
        expect(page.locator("#ctx")).not_to_contain_text("Editing")
    with step("a picture whose file is missing says so in its place"):
        media = f"{studio.url}/media/{lost}/1"
        digest = hashlib.sha256(page.request.get(media, max_retries=2).body()).hexdigest()
        for file in studio.home.rglob(f"{digest}*"):
            file.unlink()
        open_at(page, f"{studio.url}/?c={lost}")
        frame = page.locator("#chat .frame")
        expect(frame).to_have_attribute("data-lost", re.compile("The file of picture #1 is missing"))
        expect(frame.locator("img")).to_have_class(re.compile("lost"))
        answer = page.request.get(f"{media}?size=192", max_retries=2)
        assert (answer.status, "#1" in answer.text(), digest[:8] in answer.text()) == (404, True, False)
        missing = page.request.get(f"{media[:-1]}999", max_retries=2)
        assert missing.text() == "There is no picture #999 here. Please check its number."


def the_rail_is_a_drawer_and_nothing_is_wider_than_the_screen(phone: Page, studio: PageProcess) -> None:
    called, rail = Called(phone, "zh-CN"), phone.locator("#rail")
    open_at(phone, studio.sketched("draw a boat"), 1)
    with step("nothing is wider than the screen"):
        assert phone.evaluate("document.documentElement.scrollWidth") <= 390
    with step("a ratio is chosen"):
        choose_setting(phone, "aspect-ratio", "4:5")
        expect(chosen_ratio(phone)).to_have_value("4:5")
    with step("the rail is a drawer"):
        expect(rail).to_be_hidden()
        called.button("tabs.chats").tap()
        expect(rail).to_be_visible()
        phone.keyboard.press("Escape")
        expect(rail).to_be_hidden()
    with step("a picture takes the screen until one goes back to the chat"):
        pictures(phone).first.tap()
        expect(phone.locator("#canvas .cv-pic img")).to_be_visible()
        on(phone, "#tabs").button("tabs.chat").tap()
        expect(phone.locator("#canvas .cv-pic img")).to_be_hidden()
    with step("a new conversation greets in Chinese"):
        called.button("tabs.chats").tap()
        begin_anew(phone)
        expect(phone.locator("html")).to_have_attribute("lang", "zh-CN")
        expect(phone.locator(".welcome h2")).to_have_text("想画点什么？")

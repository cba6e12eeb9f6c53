"""The files panel: written in, run, written by the agent meanwhile, and nothing unsaved is lost."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from playwright.sync_api import Locator, Page, expect

from tests.page import PageProcess
from tests.page.hands import begin_anew, composer, expect_loaded, expect_rest, open_page, say
from tests.page.journeys import on, step
from tests.wire_server import GeminiProcess


def open_files(page: Page, url: str) -> None:
    open_page(page, url)
    page.evaluate("window.aivista.tabs.show('files')")
    expect(page.locator("#files .empty")).to_be_visible()


def row(page: Page, path: str) -> Locator:
    return page.locator(f'#files .fi-row[data-path="{path}"]')


def shown(page: Page, what: str) -> Locator:
    """Return a part of the file that is shown, of those that are open."""
    return page.locator(f".fi-file:not([hidden]) {what}")


def state(page: Page) -> Locator:
    return shown(page, ".fi-title small")


def editor(page: Page) -> Locator:
    return page.locator("#fi-code .cm-content")


def begin(page: Page, name: str, text: str = "") -> None:
    """Begin a file and type into it; it is not saved."""
    on(page, "#fi-bar").button("files.new").click()
    page.keyboard.press("ControlOrMeta+a")
    page.keyboard.type(name)
    page.keyboard.press("Enter")
    expect(editor(page)).to_be_focused()
    expect(row(page, name)).to_have_attribute("aria-selected", "true")
    page.keyboard.insert_text(text)
    expect(page.locator("#fi-code .cm-cursor-primary")).to_have_css("border-left-width", "1px")
    expect(state(page)).to_contain_text("Unsaved")


def text(page: Page) -> str:
    found: str = page.evaluate("window.aivista.editor.view().state.doc.toString()")
    return found


def writes(name: str, content: str) -> dict[str, Any]:
    return {"kind": "Call", "name": "write_file", "args": {"name": name, "content": content}}


def words(text: str) -> dict[str, Any]:
    return {"kind": "Text", "text": text, "chunks": 4}


def held(answer: dict[str, Any]) -> dict[str, Any]:
    return {"kind": "Hold", "answer": answer, "after_chunks": 1}


def test_a_program_is_written_saved_and_run_and_nothing_unsaved_is_left_behind_unasked(
    page: Page, studio: PageProcess
) -> None:
    open_files(page, studio.url)
    composer(page).fill("draw its result")
    with step("a program is written, saved and run"):
        begin(page, "tools/sum.js", "const rows = [1, 2, 39];\nconsole.log('adding', rows.length);\n")
        expect(composer(page)).to_have_value("draw its result")
        page.keyboard.insert_text("writeFile('sum.txt', String(eval(rows.join('+'))));\nmissing()")
        expect(state(page)).to_have_text("Unsaved changes")
        # A colour of ours, read by the stylesheet's name and not as Gradio has it.
        keyword = page.locator("#fi-code .cm-line span", has_text="const").first
        expect(keyword).to_have_css("color", "rgb(31, 94, 150)")
        page.locator("#files").get_by_role("button", name="Run").click()
        said = shown(page, ".fi-out")
        expect(said).to_contain_text("adding 3")
        expect(said.get_by_role("alert")).to_contain_text("missing is not defined")
        expect(row(page, "tools/sum.js")).not_to_have_attribute("data-unsaved", "")
        said.get_by_role("button", name="line 4").click()
        page.keyboard.press("Delete")
        page.keyboard.press("ControlOrMeta+s")
        expect(state(page)).to_contain_text("by you")
        page.locator("#files").get_by_role("button", name="Run").click()
        said.get_by_role("button", name="sum.txt").click()
        expect(editor(page)).to_have_text("42")
        # Undo stays within its file: there is nothing to undo in this one.
        editor(page).press("ControlOrMeta+z")
        expect(editor(page)).to_have_text("42")
    with step("nothing unsaved is left behind unasked"):
        begin_anew(page)
        page.evaluate("window.aivista.tabs.show('files')")
        expect(page.locator("#files .empty")).to_be_visible()
        begin(page, "draft.md", "not saved")
        page.get_by_role("tab", name="Canvas").click()
        page.get_by_role("button", name="New conversation").click()
        expect(page.locator("#top h1")).to_have_text("New conversation")
        page.evaluate("window.aivista.tabs.show('files')")
        expect(page.locator("#files .empty")).to_be_visible()
        page.get_by_role("button", name="draft.md").first.click()
        page.evaluate("window.aivista.tabs.show('files')")
        row(page, "draft.md").click()
        expect(editor(page)).to_have_text("not saved")
        page.once("dialog", lambda dialog: dialog.dismiss())
        with page.expect_event("dialog") as asked:
            page.evaluate("setTimeout(() => location.reload())")
        assert asked.value.type == "beforeunload"
        expect(editor(page)).to_have_text("not saved")
        editor(page).press("ControlOrMeta+s")
        expect(row(page, "draft.md")).not_to_have_attribute("data-unsaved", "")
        page.reload()
        expect(page.locator("#top h1")).to_be_visible()
        page.evaluate("window.aivista.tabs.show('files')")
        row(page, "draft.md").click()
        expect(editor(page)).to_have_text("not saved")


def test_what_the_agent_writes_appears_while_unsaved_changes_stay(
    page: Page, gemini: GeminiProcess, gemini_studio: PageProcess
) -> None:
    open_files(page, gemini_studio.url)
    begin(page, "mine.md", "my own words")
    page.keyboard.press("ControlOrMeta+s")
    expect(state(page)).to_contain_text("by you")
    page.keyboard.insert_text(", and more")
    gemini.control(
        on_text=[writes("notes/fox.md", "A fox."), writes("mine.md", "its words"), held(words("Done. " * 9))]
    )
    say(page, "write about foxes")
    # The turn is still at work when both are there.
    expect(row(page, "notes/fox.md")).to_have_accessible_name(re.compile("^fox.md, 6 B, by the assistant, "))
    note = shown(page, ".fi-note")
    expect(note).to_contain_text("The assistant changed this file")
    expect(page.locator("#box .stop-button")).to_be_visible()
    assert text(page) == "my own words, and more"
    note.get_by_role("button", name="Compare").click()
    expect(shown(page, ".fi-diff ins").last).to_have_text("+ its words")
    row(page, "notes/fox.md").click()
    expect(editor(page)).to_have_text("A fox.")
    gemini.release()
    expect_rest(page)
    row(page, "mine.md").click()
    note.get_by_role("button", name="Keep mine").click()
    expect(note).to_be_empty()
    expect(state(page)).to_contain_text("by you")
    assert text(page) == "my own words, and more"


def test_files_are_brought_in_walked_by_keys_and_taken_back_on_a_phone(
    phone: Page, studio: PageProcess, photo: Path, tmp_path: Path
) -> None:
    (tmp_path / "plan (1).md").write_text("# 计划", encoding="utf-8")
    open_files(phone, studio.url)
    phone.locator("#files input[type=file]").set_input_files([photo, tmp_path / "plan (1).md"])
    expect(phone.locator("#files .fi-row")).to_have_count(2)
    assert phone.evaluate("document.documentElement.scrollWidth") <= 390
    row(phone, "garden.jpg").tap()
    expect_loaded(shown(phone, "img"))
    phone.get_by_role("button", name="返回文件列表").tap()
    row(phone, "garden.jpg").focus()
    phone.keyboard.press("ArrowDown")
    expect(row(phone, "plan _1_.md")).to_be_focused()
    phone.keyboard.press("F2")
    phone.keyboard.press("ControlOrMeta+a")
    phone.keyboard.type("notes/plan.md")
    phone.keyboard.press("Enter")
    expect(row(phone, "notes/plan.md")).to_be_focused()
    phone.keyboard.press("ArrowLeft")
    expect(row(phone, "notes")).to_be_focused()
    phone.keyboard.press("ArrowLeft")
    expect(row(phone, "notes")).to_have_attribute("aria-expanded", "false")
    expect(row(phone, "notes/plan.md")).to_be_hidden()
    phone.keyboard.press("Delete")
    expect(phone.locator("#toast")).to_contain_text("已删除 notes/plan.md")
    expect(phone.locator("#files .fi-row")).to_have_count(1)
    phone.get_by_role("button", name="撤销").tap()
    expect(row(phone, "notes")).to_be_visible()
    with phone.expect_download() as download:
        phone.get_by_role("link", name="全部下载（zip）").tap()
    assert download.value.suggested_filename.startswith("aivista-files-")


def test_unsaved_words_outlast_a_deletion_a_new_name_and_a_drop(page: Page, studio: PageProcess) -> None:
    def drop(name: str, content: str, onto: str) -> None:
        page.evaluate(
            """([name, content, onto]) => {
              const dataTransfer = new DataTransfer();
              dataTransfer.items.add(new File([content], name));
              for (const kind of ["dragenter", "dragover", "drop"])
                document.querySelector(onto).dispatchEvent(
                  new DragEvent(kind, { dataTransfer, bubbles: true, cancelable: true }));
            }""",
            [name, content, onto],
        )

    open_files(page, studio.url)
    drop("a.txt", "one\r\n", "#files .empty")
    row(page, "a.txt").click()
    expect(state(page)).to_contain_text("contains outside content")
    editor(page).press("ControlOrMeta+End")
    page.keyboard.type("two")
    page.keyboard.press("ControlOrMeta+s")
    expect(state(page)).to_contain_text("by you")
    with page.expect_download() as download:
        page.get_by_role("link", name="Download", exact=True).click()
    assert download.value.path().read_bytes() == b"one\r\ntwo"
    page.keyboard.press("Tab")
    editor(page).press("End")
    page.keyboard.type(" three")
    row(page, "a.txt").focus()
    page.keyboard.press("Delete")
    expect(page.locator("#files .empty")).to_be_visible()
    page.locator("#toast").get_by_role("button", name="Undo").click()
    expect(state(page)).to_have_text("Unsaved changes")
    expect(shown(page, ".fi-note")).to_be_empty()
    row(page, "a.txt").focus()
    page.keyboard.press("F2")
    page.keyboard.press("ControlOrMeta+a")
    page.keyboard.type("notes/b.txt")
    page.keyboard.press("Enter")
    expect(row(page, "notes/b.txt")).to_be_focused()
    drop("c.txt", "new", "#files [data-folder=notes]")
    expect(row(page, "notes/c.txt")).to_be_visible()
    row(page, "notes/c.txt").click(button="right")
    page.get_by_role("menuitem", name="Rename").click()
    expect(page.get_by_role("textbox", name=re.compile("^File name"))).to_have_value("notes/c.txt")
    page.keyboard.press("Escape")
    assert text(page) == "one\ntwo three"
    drop("c.txt", "newer", "#files [data-folder=notes]")
    page.get_by_role("button", name="Replace").click()
    row(page, "notes/c.txt").click()
    expect(editor(page)).to_have_text("newer")
    row(page, "notes/b.txt").click()
    expect(state(page)).to_have_text("Unsaved changes")
    assert text(page) == "one\ntwo three"

"""Conversations in a browser: found, named, pinned, thrown away, copied, said otherwise, taken out and in again."""

from __future__ import annotations

import asyncio
import io
import re
import signal
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from PIL import Image, ImageChops
from playwright.sync_api import Locator, Page, expect

from tests.adapters.records import ImageStore, Records
from tests.page import PageProcess
from tests.page.hands import (
    ask_before_painting,
    begin_anew,
    composer,
    expect_pictures,
    expect_ready,
    expect_rest,
    go,
    pictures,
    place_of,
    say,
)
from tests.page.journeys import Called, on, step
from tests.support.waiting import wait_until


@pytest.fixture(scope="module")
def told(studio: PageProcess) -> str:
    """Two conversations, one in English and one in Chinese; the address of the English one."""
    address = studio.sketched("draw a red fox in the snow")
    studio.sketch("画一座雪山，夜晚，有月亮")
    return address


def expect_rest_with(page: Page, count: int) -> None:
    """Wait for so many pictures and for the end of the turn."""
    expect_pictures(page, count)
    expect(page.locator("#rail-rows [aria-current=page]")).to_be_visible()


def open_told(page: Page, address: str) -> str:
    """Open a conversation and wait until the page and its rail are usable; return its name."""
    go(page, address)
    expect_ready(page)
    expect(page.locator("#rail-rows [aria-current=page]")).to_have_count(1)
    return page.locator("#top h1").inner_text()


def row(page: Page, title: str) -> Locator:
    """Return the row of a conversation."""
    return page.locator("#rail-rows").get_by_role("listitem").filter(has_text=title)


def open_row(page: Page, title: str) -> None:
    """Open a conversation from its row."""
    row(page, title).get_by_role("button", name=re.compile(rf"^(?!More).*{re.escape(title)}")).click()


def choose(page: Page, title: str, item: str) -> None:
    """Choose from the menu of a conversation in the rail."""
    row(page, title).hover()
    Called(row(page, title)).button("conversations.menu").click()
    Called(page).item(item).click()


def delete(page: Page, title: str) -> None:
    """Delete a conversation in the rail."""
    choose(page, title, "conversations.delete")
    expect(row(page, title)).to_have_count(0)


def open_trash(page: Page) -> None:
    """Open the trash in the rail."""
    Called(page).button("conversations.library").click()
    Called(page).item("trash.title").click()


def expect_found(page: Page, query: str, marked: str) -> None:
    """Search, walk into what is found and back, and leave the search by Escape; then find nothing."""
    rows = page.locator("#rail-rows")
    listed = rows.get_by_role("listitem").count()
    page.keyboard.press("Control+k")
    field = page.get_by_role("searchbox", name="Search conversations")
    expect(field).to_be_focused()
    page.keyboard.type(query)
    expect(rows.get_by_role("status")).to_contain_text("found")
    expect(rows.locator("mark").first).to_have_text(marked, ignore_case=True)
    page.keyboard.press("ArrowDown")
    expect(rows.locator("[data-act=open]").first).to_be_focused()
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Escape")
    expect(field).to_have_value("")
    expect(rows.locator("mark")).to_have_count(0)
    expect(rows.get_by_role("listitem")).to_have_count(listed)
    field.fill("zeppelin")
    expect(rows).to_contain_text("No conversations match “zeppelin”.")
    field.fill("")
    expect(rows.get_by_role("listitem")).to_have_count(listed)


def a_conversation_is_found_pinned_copied_renamed_thrown_away_and_brought_back(page: Page, told: str) -> None:
    heading, first = page.locator("#top h1"), page.locator("#rail-rows li").first
    title = open_told(page, told)
    with step("a search shows where the words stand, in both languages"):
        for query, marked in (("red fo", "red"), ("雪山", "雪山")):
            expect_found(page, query, marked)
    with step("what is pinned stands first until it is unpinned"):
        expect(first).not_to_contain_text(title)
        choose(page, title, "conversations.pin")
        expect(page.locator("#rail-rows h3").first).to_have_text("Pinned")
        expect(first).to_contain_text(title)
        choose(page, title, "conversations.unpin")
        expect(page.locator("#rail-rows h3").first).to_have_text("Today")
        expect(first).not_to_contain_text(title)
    with step("a copy is another conversation"):
        choose(page, title, "conversations.duplicate")
        expect(heading).to_have_text(f"{title} (copy)")
        expect(pictures(page)).to_have_count(1)
        expect(page).not_to_have_url(told)
        address = page.url
    with step("it is renamed in its row, and Escape keeps the old name"):
        choose(page, f"{title} (copy)", "conversations.rename")
        field = page.get_by_role("textbox", name="Name of the conversation")
        expect(field).to_have_value(f"{title} (copy)")
        field.fill("Something else")
        page.keyboard.press("Escape")
        expect(field).to_have_count(0)
        expect(heading).to_have_text(f"{title} (copy)")
        choose(page, f"{title} (copy)", "conversations.rename")
        field.fill("  Boats for the harbour  ")
        page.keyboard.press("Enter")
        expect(heading).to_have_text("Boats for the harbour")
        expect(row(page, "Boats for the harbour")).to_be_visible()
    with step("it is renamed from its own menu, by key"):
        on(page, "#top").button("conversations.this").click()
        page.keyboard.press("Enter")
        field.fill("Harbour")
        page.keyboard.press("Enter")
        expect(row(page, "Harbour")).to_be_visible()
        expect(page).to_have_title("Harbour · Aivista")
    with step("words that follow give it no other name and change nothing in what it was copied from"):
        say(page, "make it darker")
        expect_rest_with(page, 2)
        expect(heading).to_have_text("Harbour")
        open_row(page, title)
        expect(page).to_have_url(told)
        expect(pictures(page)).to_have_count(1)
    with step("what was deleted comes back with Undo and is open again"):
        open_row(page, "Harbour")
        expect(page).to_have_url(address)
        delete(page, "Harbour")
        toast = page.get_by_role("status").filter(has_text="is deleted")
        expect(toast).to_be_visible()
        expect(heading).to_have_text("New conversation")
        on(toast).button("action.undo").focus()
        page.keyboard.press("Enter")
        expect(row(page, "Harbour")).to_have_count(1)
        expect(page).to_have_url(address)
        expect(pictures(page)).to_have_count(2)
    with step("the address of what is deleted opens nothing"):
        delete(page, "Harbour")
        go(page, address)
        expect_ready(page)
        expect(heading).not_to_have_text("Harbour")
    with step("the trash restores it"):
        open_trash(page)
        expect(row(page, "Harbour")).to_contain_text("Deleted today · 30 days left")
        on(row(page, "Harbour")).button("trash.restore").click()
        expect(row(page, "Harbour")).to_have_count(0)
        on(page.get_by_role("navigation", name="Trash")).button("trash.back").click()
        open_row(page, "Harbour")
        expect(page).to_have_url(address)
        expect(pictures(page)).to_have_count(2)
    with step("the trash deletes it forever after a question"):
        delete(page, "Harbour")
        open_trash(page)
        on(row(page, "Harbour")).button("trash.forget").click()
        really = row(page, "Harbour").get_by_role("button", name="Delete forever?")
        expect(really).to_be_focused()
        really.click()
        expect(row(page, "Harbour")).to_have_count(0)
        expect(page.get_by_role("status").filter(has_text="Deleted forever.")).to_be_visible()


def a_plan_still_waits_when_one_comes_back_and_words_are_said_otherwise_and_from_right_to_left(
    page: Page, studio: PageProcess
) -> None:
    called, confirm = Called(page), Called(page).field("composer.confirm")
    open_told(page, studio.sketched("draw a red fox in the desert", "make it darker"))
    last = page.locator("#chat .user").last
    mine = on(last)
    with step("words can be said otherwise, and Escape keeps them"):
        last.hover()
        mine.button("branch.edit").click()
        field = mine.field("branch.label")
        expect(field).to_have_value("make it darker")
        field.fill("never mind")
        page.keyboard.press("Escape")
        expect(field).to_be_hidden()
        mine.button("branch.edit").click()
        expect(field).to_have_value("make it darker")
        field.fill("make it brighter")
        field.press("Shift+Enter")
        expect(field).to_have_value("make it brighter\n")
        field.press("Backspace")
        field.press("Enter")
    with step("they make a branch"):
        expect(last.locator(".versions")).to_contain_text("2 / 2")
        expect(last.locator(".md")).to_have_text("make it brighter")
        expect_rest_with(page, 2)
        expect(page.locator("#chat")).not_to_contain_text("make it darker")
    with step("the way back moves nothing"):
        before_this = mine.button("branch.previous")
        before_this.scroll_into_view_if_needed()
        before = place_of(last)
        before_this.focus()
        page.keyboard.press("Enter")
        expect(last.locator(".versions")).to_contain_text("1 / 2")
        expect(last.locator(".md")).to_have_text("make it darker")
        after = place_of(last)
        assert abs(after["y"] - before["y"]) < 3
        expect(before_this).to_be_disabled()
        expect(mine.button("branch.next")).to_be_focused()
    branched = page.url
    with step("words from right to left stand right"):
        begin_anew(page)
        expect_right(page)
    with step("a plan is asked for"):
        begin_anew(page)
        ask_before_painting(page)
        say(page, "draw a lighthouse, 16:9")
        expect(called.button("plan.run")).to_be_enabled()
        expect_rest(page)
        address = page.url
    with step("a page that is opened shows the version that was chosen, and the chips as they are there"):
        go(page, branched)
        expect(last.locator(".versions")).to_contain_text("1 / 2")
        expect(confirm).not_to_be_checked()
    with step("the chips are as they were, and the plan still waits"):
        page.locator("#rail-rows").get_by_role("button", name=re.compile("lighthouse")).first.click()
        expect(page).to_have_url(address)
        expect(confirm).to_be_checked()
        called.button("plan.run").click()
        expect_rest_with(page, 1)


def expect_right(page: Page) -> None:
    """Type and send words from right to left, and look where they stand."""
    box = composer(page)
    box.fill("ثعلب")
    with Image.open(io.BytesIO(box.screenshot())) as shot:
        grey = shot.convert("L")
        ground = grey.getpixel((grey.width // 2, grey.height // 2))
        ink = ImageChops.difference(grey, Image.new("L", grey.size, ground)).point(lambda level: 255 * (level > 90))
        bounds = ink.crop((4, 4, grey.width - 4, grey.height - 4)).getbbox()
    assert bounds is not None
    assert bounds[0] > grey.width / 2
    say(page, "ثعلب أحمر في الثلج يمشي بين الأشجار\nقطة")
    expect_rest(page)
    own = page.locator("#chat .user .own")
    gaps = own.evaluate("""element => {
      const range = document.createRange(), text = element.firstChild, at = text.data.indexOf("\\n") + 1;
      range.setStart(text, at); range.setEnd(text, text.length);
      const line = range.getBoundingClientRect(), all = element.getBoundingClientRect();
      return [line.left - all.left, all.right - line.right];
    }""")
    assert gaps[0] > 50
    assert gaps[1] < 2
    expect(page.locator("#top h1")).to_have_attribute("dir", "auto")
    expect_rest(page)


def test_a_conversation_is_found_named_thrown_away_and_brought_back_and_its_words_are_said_otherwise(
    page: Page, studio: PageProcess, told: str
) -> None:
    a_conversation_is_found_pinned_copied_renamed_thrown_away_and_brought_back(page, told)
    a_plan_still_waits_when_one_comes_back_and_words_are_said_otherwise_and_from_right_to_left(page, studio)


def test_a_conversation_is_exported_and_imported_again_on_a_chinese_phone(
    phone: Page, studio: PageProcess, tmp_path: Path
) -> None:
    called = Called(phone, "zh-CN")
    address = studio.sketched("draw a green tree")
    title = open_told(phone, address)
    files = {}
    with step("it leaves as an archive, as a folder and as a page"):
        for kind in ("zip", "md", "html"):
            on(phone, "#top").button("conversations.this").tap()
            with phone.expect_download() as download:
                called.item(f"conversations.export_{kind}").tap()
            files[kind] = tmp_path / download.value.suggested_filename
            download.value.save_as(files[kind])
        assert 'img src="data:image/' in files["html"].read_text(encoding="utf-8")
        with zipfile.ZipFile(files["md"]) as folder:
            assert "conversation.md" in folder.namelist()
            assert any(name.startswith("pictures/") for name in folder.namelist())
        wait_until(lambda: not list((studio.home / "exports").iterdir()))
    rows = phone.locator("#rail-rows li").filter(has_text=title)
    with step("the archive comes in as one more conversation"):
        count = rows.count()
        phone.locator("#import-file").set_input_files(files["zip"])
        said = called.words("conversations.imported_one")
        expect(phone.get_by_role("status").filter(has_text=said)).to_be_visible()
        expect(rows).to_have_count(count + 1)
        expect(phone).not_to_have_url(address)
        expect(pictures(phone)).to_have_count(1)
    with step("what is no archive is refused"):
        broken = tmp_path / "broken.zip"
        broken.write_bytes(b"this is no archive")
        phone.locator("#import-file").set_input_files(broken)
        expect(phone.get_by_role("alert")).to_contain_text("这不是 Aivista 的存档")


LIST = "document.querySelector('#rail-list')"


async def keep_many(home: Path, count: int) -> None:
    """Put so many named conversations on record."""
    store = Records(home, ImageStore(home))
    await store.open()
    for number in range(count):
        await store.conversations.create("local", f"Number {number}")
    await store.aclose()


def test_a_long_list_comes_fifty_at_a_time_and_a_conversation_goes_on_after_a_restart(
    page: Page, tmp_path: Path
) -> None:
    ThreadPoolExecutor(1).submit(asyncio.run, keep_many(tmp_path, 120)).result()
    rows = page.locator("#rail-rows li")
    with PageProcess(home=tmp_path) as first:
        with step("fifty at a time"):
            page.goto(first.url)
            expect(rows).to_have_count(50)
            more = Called(page).button("rail.more")
            more.scroll_into_view_if_needed()
            expect(rows).to_have_count(100)
            more.focus()
            expect(rows).to_have_count(120)
            expect(page.locator("#rail-rows [data-act=open]").nth(100)).to_be_focused()
            expect(more).to_have_count(0)
        with step("a conversation begins, and the list stays where one reads it"):
            begin_anew(page)
            # Its rows may come anew at any moment: within one step of the page's script there is one list.
            page.wait_for_function(f"({LIST}.scrollTop = 900) && {LIST}.scrollTop > 0")
            read_at = page.evaluate(f"{LIST}.scrollTop")
            say(page, "draw a red fox in the snow")
            expect_rest_with(page, 1)
            expect(rows).to_have_count(121)
            page.wait_for_function(f"top => {LIST}.scrollTop === top", arg=read_at)
            address = page.url
        # A page that is open says on its console that its studio goes.
        go(page, "about:blank")
        first.end(signal.SIGTERM)
    with PageProcess(home=tmp_path, port=first.port), step("it goes on after a restart"):
        open_told(page, address)
        expect(pictures(page)).to_have_count(1)
        say(page, "make it darker")
        expect_rest_with(page, 2)
        go(page, "about:blank")

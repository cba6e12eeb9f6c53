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

from agent.storage.conversations import ConversationStore
from agent.storage.images import ImageStore
from tests.page import PageProcess
from tests.page.hands import composer, expect_ready, expect_rest, open_page, pictures, say
from tests.support.waiting import wait_until


@pytest.fixture(scope="module")
def told(studio: PageProcess) -> str:
    """Two conversations, one in English and one in Chinese; the address of the English one."""
    address = f"{studio.url}/?c={studio.sketch('draw a red fox in the snow')}"
    studio.sketch("画一座雪山，夜晚，有月亮")
    return address


def begin(page: Page, studio: PageProcess, *words: str) -> None:
    """Open a conversation that these words began."""
    open_told(page, f"{studio.url}/?c={studio.sketch(*words)}")
    expect(pictures(page)).to_have_count(len(words))


def expect_rest_with(page: Page, count: int) -> None:
    """Wait for so many pictures and for the end of the turn."""
    expect(pictures(page)).to_have_count(count)
    expect_rest(page)
    expect(page.locator("#rail-rows [aria-current=page]")).to_be_visible()


def open_told(page: Page, address: str) -> None:
    """Open a conversation and wait until the page and its rail are usable."""
    page.goto(address)
    expect_ready(page)
    expect(page.locator("#rail-rows [aria-current=page]")).to_be_visible()


def row(page: Page, title: str) -> Locator:
    """Return the row of a conversation."""
    return page.locator("#rail-rows li").filter(has_text=title)


def choose(page: Page, title: str, item: str) -> None:
    """Choose from the menu of a conversation in the rail."""
    row(page, title).hover()
    row(page, title).get_by_role("button", name="More about").click()
    page.get_by_role("menuitem", name=item, exact=True).click()


def test_a_conversation_is_renamed_in_its_row_and_escape_keeps_the_old_name(
    page: Page, studio: PageProcess, told: str
) -> None:
    begin(page, studio, "draw a yellow boat")
    title = page.locator("#top h1").inner_text()
    choose(page, title, "Rename")
    field = page.get_by_role("textbox", name="Name of the conversation")
    expect(field).to_have_value(title)
    field.fill("Something else")
    page.keyboard.press("Escape")
    expect(field).to_have_count(0)
    expect(page.locator("#top h1")).to_have_text(title)
    choose(page, title, "Rename")
    field.fill("  Boats for the harbour  ")
    page.keyboard.press("Enter")
    expect(page.locator("#top h1")).to_have_text("Boats for the harbour")
    expect(row(page, "Boats for the harbour")).to_be_visible()
    page.locator("#top").get_by_role("button", name="More about this conversation").click()
    page.keyboard.press("Enter")
    field.fill("Harbour")
    page.keyboard.press("Enter")
    expect(row(page, "Harbour")).to_be_visible()
    expect(page).to_have_title("Harbour · Aivista")
    # Words that follow do not give it another one.
    say(page, "make it darker")
    expect_rest_with(page, 2)
    expect(page.locator("#top h1")).to_have_text("Harbour")


def test_a_pinned_conversation_stands_first_until_it_is_unpinned(page: Page, told: str) -> None:
    open_told(page, told)
    title = page.locator("#top h1").inner_text()
    expect(page.locator("#rail-rows li").first).not_to_contain_text(title)
    choose(page, title, "Pin")
    expect(page.locator("#rail-rows h3").first).to_have_text("Pinned")
    expect(page.locator("#rail-rows li").first).to_contain_text(title)
    choose(page, title, "Unpin")
    expect(page.locator("#rail-rows h3").first).to_have_text("Today")
    expect(page.locator("#rail-rows li").first).not_to_contain_text(title)


def test_a_search_shows_where_the_words_stand_in_both_languages(page: Page, told: str) -> None:
    open_told(page, told)
    for query, marked in (("red fo", "red"), ("雪山", "雪山")):
        expect_found(page, query, marked)


def expect_found(page: Page, query: str, marked: str) -> None:
    """Search, walk into what is found and back, and leave the search by Escape; then find nothing."""
    listed = page.locator("#rail-rows li").count()
    page.keyboard.press("Control+k")
    field = page.get_by_role("searchbox", name="Search conversations")
    expect(field).to_be_focused()
    page.keyboard.type(query)
    expect(page.locator("#rail-rows [role=status]")).to_contain_text("found")
    expect(page.locator("#rail-rows mark").first).to_have_text(marked, ignore_case=True)
    page.keyboard.press("ArrowDown")
    expect(page.locator("#rail-rows [data-act=open]").first).to_be_focused()
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Escape")
    expect(field).to_have_value("")
    expect(page.locator("#rail-rows mark")).to_have_count(0)
    expect(page.locator("#rail-rows li")).to_have_count(listed)
    field.fill("zeppelin")
    expect(page.locator("#rail-rows")).to_contain_text("Nothing holds “zeppelin”.")
    field.fill("")
    expect(page.locator("#rail-rows li")).to_have_count(listed)


def test_what_was_deleted_comes_back_with_undo_and_is_open_again(page: Page, studio: PageProcess, told: str) -> None:
    begin(page, studio, "draw a green tree")
    title, address = page.locator("#top h1").inner_text(), page.url
    choose(page, title, "Delete")
    toast = page.get_by_role("status").filter(has_text="is deleted")
    expect(toast).to_be_visible()
    expect(page.locator("#top h1")).to_have_text("New conversation")
    expect(row(page, title)).to_have_count(0)
    toast.get_by_role("button", name="Undo").focus()
    page.keyboard.press("Enter")
    expect(row(page, title)).to_have_count(1)
    expect(page).to_have_url(address)
    expect(pictures(page)).to_have_count(1)
    choose(page, title, "Delete")
    expect(row(page, title)).to_have_count(0)
    page.goto(address)
    expect(page.locator("#top h1")).not_to_have_text(title)


def test_what_is_in_the_trash_is_restored_or_deleted_forever_after_a_question(
    page: Page, studio: PageProcess, told: str
) -> None:
    begin(page, studio, "draw a purple barn")
    title, address = page.locator("#top h1").inner_text(), page.url
    choose(page, title, "Delete")
    expect(row(page, title)).to_have_count(0)
    page.get_by_role("button", name="All conversations").click()
    page.get_by_role("menuitem", name="Trash").click()
    trash = page.get_by_role("navigation", name="Trash")
    expect(row(page, title)).to_contain_text("Deleted today · 30 days left")
    row(page, title).get_by_role("button", name="Restore").click()
    expect(row(page, title)).to_have_count(0)
    trash.get_by_role("button", name="Back to the conversations").click()
    row(page, title).locator("[data-act=open]").click()
    expect(page).to_have_url(address)
    expect(pictures(page)).to_have_count(1)
    choose(page, title, "Delete")
    expect(row(page, title)).to_have_count(0)
    page.get_by_role("button", name="All conversations").click()
    page.get_by_role("menuitem", name="Trash").click()
    row(page, title).get_by_role("button", name="Delete forever").click()
    really = row(page, title).get_by_role("button", name="Really?")
    expect(really).to_be_focused()
    really.click()
    expect(row(page, title)).to_have_count(0)
    expect(page.get_by_role("status").filter(has_text="Deleted forever.")).to_be_visible()


def test_a_copy_goes_its_own_way(page: Page, studio: PageProcess, told: str) -> None:
    begin(page, studio, "draw a small house")
    title, address = page.locator("#top h1").inner_text(), page.url
    choose(page, title, "Duplicate")
    expect(page.locator("#top h1")).to_have_text(f"{title} (copy)")
    expect(pictures(page)).to_have_count(1)
    expect(page).not_to_have_url(address)
    say(page, "make it darker")
    expect_rest_with(page, 2)
    row(page, title).filter(has_not_text="(copy)").locator("[data-act=open]").click()
    expect(page).to_have_url(address)
    expect(pictures(page)).to_have_count(1)


def test_words_said_otherwise_make_a_branch_and_the_way_back_moves_nothing(
    page: Page, studio: PageProcess, told: str
) -> None:
    begin(page, studio, "draw a red fox in the desert", "make it darker")
    last = page.locator("#chat .user-row").last
    last.hover()
    last.get_by_role("button", name="Edit and send again").click()
    field = last.get_by_role("textbox", name="Your words, said otherwise")
    expect(field).to_have_value("make it darker")
    field.fill("never mind")
    page.keyboard.press("Escape")
    expect(field).to_be_hidden()
    last.get_by_role("button", name="Edit and send again").click()
    expect(field).to_have_value("make it darker")
    field.fill("make it brighter")
    field.press("Shift+Enter")
    expect(field).to_have_value("make it brighter\n")
    field.press("Backspace")
    field.press("Enter")
    expect(last.locator(".versions")).to_contain_text("2 / 2")
    expect(last.locator(".message-content")).to_have_text("make it brighter")
    expect_rest_with(page, 2)
    expect(page.locator("#chat")).not_to_contain_text("make it darker")
    back = last.get_by_role("button", name="Previous version")
    back.scroll_into_view_if_needed()
    before = last.bounding_box()
    back.focus()
    page.keyboard.press("Enter")
    expect(last.locator(".versions")).to_contain_text("1 / 2")
    expect(last.locator(".message-content")).to_have_text("make it darker")
    after = last.bounding_box()
    assert before is not None
    assert after is not None
    assert abs(after["y"] - before["y"]) < 3
    expect(back).to_be_disabled()
    expect(last.get_by_role("button", name="Next version")).to_be_focused()
    page.reload()
    expect(page.locator("#chat .user-row").last.locator(".versions")).to_contain_text("1 / 2")


def test_a_conversation_is_exported_and_imported_again(
    page: Page, studio: PageProcess, told: str, tmp_path: Path
) -> None:
    open_told(page, told)
    title = page.locator("#top h1").inner_text()
    files = {}
    for item in ("ZIP", "Markdown", "web page"):
        page.locator("#top").get_by_role("button", name="More about this conversation").click()
        with page.expect_download() as download:
            page.get_by_role("menuitem", name=f"Export as {item}").click()
        files[item] = tmp_path / download.value.suggested_filename
        download.value.save_as(files[item])
    assert 'img src="data:image/' in files["web page"].read_text(encoding="utf-8")
    with zipfile.ZipFile(files["Markdown"]) as folder:
        assert "conversation.md" in folder.namelist()
        assert any(name.startswith("pictures/") for name in folder.namelist())
    wait_until(lambda: not list((studio.home / "exports").iterdir()))
    count = row(page, title).count()
    page.locator("#import-file").set_input_files(files["ZIP"])
    expect(page.get_by_role("status").filter(has_text="1 conversation came in.")).to_be_visible()
    expect(row(page, title)).to_have_count(count + 1)
    expect(page).not_to_have_url(told)
    expect(pictures(page)).to_have_count(1)
    broken = tmp_path / "broken.zip"
    broken.write_bytes(b"this is no archive")
    page.locator("#import-file").set_input_files(broken)
    expect(page.get_by_role("alert")).to_contain_text("This is no archive of Aivista's")


def test_the_chips_are_as_they_were_and_a_plan_still_waits_when_one_comes_back(
    page: Page, studio: PageProcess, told: str
) -> None:
    open_page(page, studio.url)
    page.locator("#confirm label, #chips label").filter(has_text="Ask before painting").click()
    say(page, "draw a lighthouse, 16:9")
    expect(page.get_by_role("button", name="Paint it")).to_be_enabled()
    address = page.url
    page.goto(told)
    expect(pictures(page)).to_have_count(1)
    expect(page.get_by_label("Ask before painting")).not_to_be_checked()
    page.locator("#rail-rows").get_by_role("button", name=re.compile("lighthouse")).first.click()
    expect(page).to_have_url(address)
    expect(page.get_by_label("Ask before painting")).to_be_checked()
    page.get_by_role("button", name="Paint it").click()
    expect_rest_with(page, 1)


@pytest.fixture
def own_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for a studio of one test."""
    return tmp_path_factory.mktemp("own")


def test_after_a_restart_the_conversation_goes_on(page: Page, own_home: Path) -> None:
    with PageProcess(home=own_home) as first:
        open_page(page, first.url)
        say(page, "draw a red fox in the snow")
        expect_rest_with(page, 1)
        query = page.url.partition("?")[2]
        first.end(signal.SIGTERM)
    with PageProcess(home=own_home) as second:
        open_told(page, f"{second.url}/?{query}")
        expect(pictures(page)).to_have_count(1)
        say(page, "make it darker")
        expect_rest_with(page, 2)


async def keep_many(home: Path, count: int) -> None:
    """Put so many named conversations on record."""
    store = ConversationStore(home, ImageStore(home))
    await store.open()
    for number in range(count):
        await store.create("local", f"Number {number}")
    await store.aclose()


def test_a_long_list_comes_fifty_at_a_time(page: Page, own_home: Path) -> None:
    ThreadPoolExecutor(1).submit(asyncio.run, keep_many(own_home, 120)).result()
    with PageProcess(home=own_home) as studio:
        page.goto(studio.url)
        expect(page.locator("#rail-rows li")).to_have_count(50)
        more = page.get_by_role("button", name="Show more")
        more.scroll_into_view_if_needed()
        expect(page.locator("#rail-rows li")).to_have_count(100)
        more.focus()
        expect(page.locator("#rail-rows li")).to_have_count(120)
        expect(page.locator("#rail-rows [data-act=open]").nth(100)).to_be_focused()
        expect(more).to_have_count(0)


def test_words_from_right_to_left_stand_right(page: Page, studio: PageProcess) -> None:
    open_page(page, studio.url)
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
    own = page.locator("#chat .user .own")
    expect(own).to_be_visible()
    gaps = own.evaluate("""element => {
      const range = document.createRange(), text = element.firstChild, at = text.data.indexOf("\\n") + 1;
      range.setStart(text, at); range.setEnd(text, text.length);
      const line = range.getBoundingClientRect(), all = element.getBoundingClientRect();
      return [line.left - all.left, all.right - line.right];
    }""")
    assert gaps[0] > 50
    assert gaps[1] < 2
    expect(page.locator("#top h1")).to_have_attribute("dir", "auto")

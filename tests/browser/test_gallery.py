"""The gallery in a browser: pictures of all conversations found, chosen, and put to use, by every kind of hand."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import APIResponse, Browser, BrowserContext, Locator, Page, Route, expect

from agent.imaging.provenance import Recipe, read
from tests.page import PageProcess
from tests.page.hands import composer, expect_loaded, expect_ready, expect_rest, open_page, pictures, say


@pytest.fixture(scope="module", autouse=True)
def talk(studio: PageProcess) -> str:
    """The id of a conversation with two pictures; there is one in a newer conversation, too."""
    talk = studio.sketch("draw a red fox in the snow", "draw a lighthouse")
    studio.sketch("画一只蓝色的鲸鱼")
    return talk


@pytest.fixture(scope="module")
def visitor(studio: PageProcess) -> Iterator[httpx.Client]:
    """Somebody with the cookie of the page."""
    with httpx.Client(base_url=studio.url) as client:
        client.get("/").raise_for_status()
        yield client


@pytest.fixture(autouse=True)
def as_it_was(visitor: httpx.Client) -> Iterator[None]:
    """No test leaves a star or a tag behind, or a picture deleted."""
    yield
    ids = [1, 2, 3]
    for change in (
        {"act": "undelete", "ids": ids},
        {"act": "unstar", "ids": ids},
        *({"act": "untag", "ids": ids, "tag": tag} for tag in ("poster", "客户")),
    ):
        visitor.post("/aivista/gallery/change", json=change).raise_for_status()


def cells(page: Page) -> Locator:
    """Return the pictures of the gallery."""
    return page.locator("#gallery .gal-cell")


def cell(page: Page, words: str) -> Locator:
    """Return the picture that was made from these words: its conversation's title stands behind them in brackets."""
    return cells(page).filter(has=page.get_by_role("img", name=re.compile(rf"^[^(]*{words}")))


def choose(page: Page, *words: str) -> None:
    """Tick the pictures that were made from these words."""
    for one in words:
        cell(page, one).hover()
        cell(page, one).get_by_role("checkbox").click()


def bar(page: Page) -> Locator:
    """Return the bar of what can be done with the pictures chosen."""
    return page.locator("#gallery .gal-bar")


def open_gallery(page: Page, studio: PageProcess, count: int = 3, conversation: str = "new") -> Locator:
    """Open the page with the gallery beside it; return its pictures."""
    page.goto(f"{studio.url}/?c={conversation}")
    expect_ready(page)
    page.evaluate("aivistaTabs.show('gallery')")
    expect(cells(page)).to_have_count(count)
    return cells(page)


def conversation_of(page: Page, words: str) -> str:
    """Return the id of the conversation that a picture is of."""
    return cell(page, words).get_attribute("data-conversation") or ""


def test_what_is_made_while_the_gallery_is_open_joins_it_and_is_sent_as_references_elsewhere(
    page: Page, tmp_path: Path
) -> None:
    with PageProcess(home=tmp_path) as studio:
        open_page(page, studio.url)
        page.evaluate("aivistaTabs.show('gallery')")
        expect(page.get_by_role("heading", name="No pictures yet")).to_be_visible()
        for count in (1, 2):
            say(page, "draw a boat")
            expect(cells(page)).to_have_count(count)
            expect_rest(page)
        expect(page.get_by_role("button", name="This conversation 2")).to_be_visible()
        expect(page.get_by_role("heading", name="No pictures yet")).to_be_hidden()
        open_gallery(page, studio, 2)
        for at in range(2):
            cells(page).nth(at).hover()
            cells(page).nth(at).get_by_role("checkbox").click()
        bar(page).get_by_role("button", name="Use as references").click()
        expect(page.locator("#box .thumbnail-item")).to_have_count(2)
        say(page, "make the first one warmer")
        expect(page.locator("#chat .refs img")).to_have_count(2)
        expect(cells(page).nth(3)).to_be_visible()
        expect(page.get_by_role("button", name="Uploaded 2")).to_be_visible()
        expect_rest(page)


def test_a_picture_that_comes_while_the_pictures_are_asked_for_joins_them(page: Page, tmp_path: Path) -> None:
    with PageProcess(home=tmp_path) as studio:
        open_page(page, studio.url)
        say(page, "draw a boat")
        expect(page.locator("#chat .pic .frame:not(.pending)")).to_have_count(1)
        held: list[tuple[Route, APIResponse]] = []
        page.route("**/aivista/gallery/page*", lambda route: held.append((route, route.fetch())), times=1)
        page.evaluate("aivistaTabs.show('gallery')")
        expect(page.locator("#gallery .gal-grid")).to_have_attribute("aria-busy", "true")
        say(page, "draw a boat")
        expect(page.locator("#chat .pic .frame:not(.pending)")).to_have_count(2)
        expect_rest(page)
        ((route, answer),) = held
        route.fulfill(response=answer)
        expect(cells(page)).to_have_count(2)


def test_a_click_opens_the_picture_here_or_in_its_own_conversation(page: Page, studio: PageProcess) -> None:
    open_gallery(page, studio)
    whale, light = conversation_of(page, "鲸鱼"), conversation_of(page, "lighthouse")
    cell(page, "鲸鱼").locator(".gal-pic").click()
    expect(page.locator(f'#canvas .cv-pic[data-conversation="{whale}"]')).to_be_visible()
    expect(page.locator("#top h1")).to_have_attribute("data-conversation", whale)
    page.evaluate("aivistaTabs.show('gallery')")
    cell(page, "lighthouse").locator(".gal-pic").click()
    expect(page.locator(f'#canvas .cv-pic[data-conversation="{light}"][data-handle="#2"]')).to_be_visible()
    page.evaluate("aivistaTabs.show('gallery')")
    cell(page, "red fox").locator(".gal-pic").click()
    expect(page.locator(f'#canvas .cv-pic[data-conversation="{light}"][data-handle="#1"]')).to_be_visible()


def test_all_pictures_stand_there_the_newest_first_and_words_of_both_languages_find_them_or_nothing_is_said_kindly(
    page: Page, studio: PageProcess
) -> None:
    found = open_gallery(page, studio)
    assert [found.nth(at).get_attribute("data-handle") for at in range(3)] == ["#1", "#2", "#1"]
    expect(found.nth(0).get_by_role("img")).to_have_attribute("alt", re.compile("鲸鱼"))
    expect(found.nth(2).get_by_role("img")).to_have_attribute("alt", re.compile("red fox"))
    for at in range(3):
        expect_loaded(found.nth(at).locator("img"))
    chips = page.get_by_role("group", name="Filters").get_by_role("button")
    expect(chips).to_have_text(
        [re.compile(one) for one in ("All 3", "This conversation 0", "Uploaded 0", "Edited", "St")]
    )
    box = found.nth(1).bounding_box()
    assert box is not None
    assert abs(box["width"] - box["height"]) < 1
    words = page.get_by_role("searchbox", name="Search your pictures")
    words.press_sequentially("lighthouses", delay=15)
    expect(found).to_have_count(1)
    expect(cell(page, "lighthouse")).to_be_visible()
    expect(page.locator(".gal-count")).to_have_text("1 picture found")
    words.fill("蓝色鲸鱼")
    expect(cell(page, "鲸鱼")).to_be_visible()
    expect(found).to_have_count(1)
    words.fill("submarine")
    expect(page.get_by_role("heading", name="No picture fits")).to_be_visible()
    page.locator(".gal-nothing").get_by_role("button", name="Clear filters").click()
    expect(found).to_have_count(3)
    expect(words).to_have_value("")


def test_what_looks_alike_is_found_and_when_the_studio_is_away_nothing_is_lost_and_it_is_said_once(
    page: Page, studio: PageProcess
) -> None:
    found = open_gallery(page, studio)
    choose(page, "lighthouse")
    bar(page).get_by_role("button", name="Find similar").click()
    chip = page.get_by_role("button", name="Remove Similar to #2")
    expect(chip).to_be_visible()
    expect(page.locator(".gal-count")).to_contain_text("found")
    expect(cell(page, "lighthouse")).to_have_count(0)
    expect(page.locator(".gal-order")).to_have_text("Best match")
    chip.click()
    expect(found).to_have_count(3)
    expect(chip).to_have_count(0)
    page.context.set_offline(True)
    page.get_by_role("searchbox", name="Search your pictures").fill("lighthouse")
    expect(page.get_by_role("alert")).to_contain_text("cannot be reached")
    expect(found).to_have_count(3)
    page.context.set_offline(False)
    page.locator(".gal-said").get_by_role("button", name="Try again").click()
    expect(found).to_have_count(1)
    expect(page.locator(".gal-said p")).to_have_count(0)


def test_shift_and_control_choose_and_two_are_taken_away_as_a_file_one_alone_as_itself(
    page: Page, studio: PageProcess, tmp_path: Path
) -> None:
    found = open_gallery(page, studio)
    found.nth(0).locator(".gal-pic").click(modifiers=["Control"])
    expect(bar(page)).to_contain_text("1 selected")
    found.nth(2).locator(".gal-pic").click(modifiers=["Shift"])
    expect(bar(page)).to_contain_text("3 selected")
    found.nth(1).locator(".gal-pic").click(modifiers=["Control"])
    expect(bar(page)).to_contain_text("2 selected")
    expect(page.locator("#gallery")).to_be_visible()
    page.keyboard.press("Escape")
    expect(bar(page)).to_be_hidden()
    choose(page, "red fox", "鲸鱼")
    expect(bar(page)).to_contain_text("2 selected")
    expect(bar(page).get_by_role("button", name="Compare")).to_be_hidden()
    with page.expect_download() as download:
        bar(page).get_by_role("button", name="Download").click()
    assert download.value.suggested_filename == "aivista-pictures-2.zip"
    file = tmp_path / "two.zip"
    download.value.save_as(file)
    with zipfile.ZipFile(file) as archive:
        assert archive.testzip() is None
        names = archive.namelist()
        files = {name: archive.read(name) for name in names}
    assert len(names) == 2
    assert any("red-fox" in name for name in names)
    assert any("鲸鱼" in name for name in names)
    assert all(isinstance(read(data), Recipe) for data in files.values())
    bar(page).get_by_role("button", name="Other copies").click()
    with page.expect_download() as download:
        page.get_by_role("menuitem", name="Clean copy").click()
    download.value.save_as(file)
    with zipfile.ZipFile(file) as archive:
        assert all(name.endswith("-clean.png") for name in archive.namelist())
        assert [read(archive.read(name)) for name in archive.namelist()] == [None, None]
    assert list((studio.home / "temporary").iterdir()) == []
    page.keyboard.press("Escape")
    expect(bar(page)).to_be_hidden()
    expect(page.locator("#gallery")).to_be_visible()
    choose(page, "red fox")
    with page.expect_download() as download:
        bar(page).get_by_role("button", name="Download").click()
    assert "red-fox" in download.value.suggested_filename


def test_a_star_is_found_again_and_two_of_one_conversation_are_compared(page: Page, studio: PageProcess) -> None:
    found = open_gallery(page, studio)
    cell(page, "lighthouse").hover()
    cell(page, "lighthouse").get_by_role("button", name="Star #2").click()
    starred = page.get_by_role("button", name="Starred 1")
    starred.click()
    expect(found).to_have_count(1)
    expect(starred).to_have_attribute("aria-pressed", "true")
    page.reload()
    expect_ready(page)
    page.evaluate("aivistaTabs.show('gallery')")
    expect(cell(page, "lighthouse").locator(".gal-star")).to_have_attribute("aria-pressed", "true")
    page.get_by_role("button", name="All 3").click()
    expect(found).to_have_count(3)
    choose(page, "lighthouse", "red fox")
    bar(page).get_by_role("button", name="Compare").click()
    expect(page.locator('#canvas .cmp[data-pair="#1 #2"]')).to_be_visible()


def test_what_is_deleted_goes_and_comes_back_in_its_place(page: Page, studio: PageProcess) -> None:
    found = open_gallery(page, studio)
    order = [found.nth(at).get_attribute("data-id") for at in range(3)]
    choose(page, "lighthouse", "鲸鱼")
    bar(page).get_by_role("button", name="Delete").click()
    expect(found).to_have_count(1)
    expect(page.get_by_role("button", name="All 1")).to_be_visible()
    expect(page.locator(".gal-said")).to_contain_text("2 pictures deleted")
    page.get_by_role("button", name="Undo").click()
    expect(found).to_have_count(3)
    assert [found.nth(at).get_attribute("data-id") for at in range(3)] == order
    expect(page.get_by_role("button", name="All 3")).to_be_visible()
    page.reload()
    expect_ready(page)
    page.evaluate("aivistaTabs.show('gallery')")
    expect(found).to_have_count(3)


def test_pictures_of_elsewhere_begin_a_conversation_and_the_draft_stays(
    page: Page, studio: PageProcess, talk: str
) -> None:
    open_gallery(page, studio, conversation=talk)
    composer(page).fill("in the manner of these")
    choose(page, "red fox", "鲸鱼")
    bar(page).get_by_role("button", name="Use as references").click()
    expect(page.locator("#top h1")).to_have_attribute("data-conversation", "new")
    expect(page.locator("#box .thumbnail-item")).to_have_count(2)
    expect(composer(page)).to_have_value("in the manner of these")
    expect(page.locator("#chat .user")).to_have_count(0)
    for at in range(2):
        expect_loaded(page.locator("#box .thumbnail-item img").nth(at))


def test_pictures_of_the_open_conversation_become_its_references(page: Page, studio: PageProcess, talk: str) -> None:
    open_gallery(page, studio, conversation=talk)
    composer(page).fill("one beside the other")
    page.wait_for_function("JSON.stringify(localStorage).includes('one beside the other')")
    choose(page, "red fox", "lighthouse")
    bar(page).get_by_role("button", name="Use as references").click()
    expect(page.locator("#ctx .ctx b")).to_have_text(["#2", "#1"])
    expect(bar(page)).to_be_hidden()
    # It begins no conversation, so words do not go along into one that is opened right after it.
    page.evaluate("window.aivista.act({ act: 'new', arg: '' })")
    expect(page.locator("#top h1")).to_have_attribute("data-conversation", "new")
    expect(composer(page)).to_have_value("")


def test_filters_narrow_stand_as_chips_and_go_one_by_one_and_so_do_tags(
    page: Page, studio: PageProcess, talk: str
) -> None:
    found = open_gallery(page, studio, conversation=talk)
    page.get_by_role("button", name="This conversation 2").click()
    expect(found).to_have_count(2)
    page.get_by_role("button", name="All 3").click()
    page.get_by_role("button", name="More filters").click()
    shape = page.locator("#gal-more [data-facet=shape] button").first
    shape.click()
    expect(page.locator(".gal-sift small")).to_have_text("1")
    page.locator("#gal-more").get_by_label("From").fill("2001-01-01")
    page.locator("#gal-more").get_by_label("To").fill("2001-12-31")
    expect(found).to_have_count(0)
    page.locator("#gal-more").get_by_role("button", name="Done").click()
    page.get_by_role("button", name=re.compile("Remove Jan 1, 2001")).click()
    expect(found).to_have_count(3)
    page.locator(".gal-on button").click()
    expect(page.locator(".gal-sift small")).to_have_text("")
    page.get_by_role("button", name="Newest").click()
    page.get_by_role("menuitemradio", name="Today").click()
    expect(found).to_have_count(3)
    expect(page.locator(".gal-order")).to_have_text("Today")
    page.locator(".gal-order").click()
    page.get_by_role("menuitemradio", name="Newest").click()
    choose(page, "red fox", "鲸鱼")
    bar(page).get_by_role("button", name="Tag").click()
    field = page.get_by_role("textbox", name="New or known tag")
    expect(field).to_be_focused()
    field.fill("客户")
    field.press("Enter")
    known = page.locator("#gal-tags").get_by_role("button", name="客户 2")
    expect(known).to_have_attribute("aria-pressed", "true")
    page.keyboard.press("Escape")
    expect(page.locator("#gal-tags")).to_be_hidden()
    expect(bar(page)).to_contain_text("2 selected")
    page.get_by_role("button", name="More filters").click()
    page.locator("#gal-more").get_by_role("button", name="客户 2").click()
    expect(found).to_have_count(2)
    page.keyboard.press("Escape")
    bar(page).get_by_role("button", name="Tag").click()
    known.click()
    expect(page.locator("#gal-tags [aria-pressed=true]")).to_have_count(0)
    page.keyboard.press("Escape")
    page.get_by_role("button", name="All 3").click()
    expect(found).to_have_count(3)


# A thread that was just opened runs to its end once more when its pictures have come.
SCROLLED = """async box => {
  for (let still = 0; still < 4; still = box.scrollTop === 150 ? still + 1 : 0) {
    box.scrollTop = 150;
    await new Promise(resolve => setTimeout(resolve, 200));
  }
}"""


def test_the_open_conversation_follows_and_keeps_its_place(page: Page, studio: PageProcess, talk: str) -> None:
    open_gallery(page, studio, conversation=talk)
    expect(pictures(page)).to_have_count(2)
    expect_loaded(pictures(page).last)
    thread = page.locator("#chat [role=log]")
    thread.evaluate(SCROLLED)
    choose(page, "lighthouse")
    bar(page).get_by_role("button", name="Delete").click()
    expect(pictures(page)).to_have_count(1)
    expect(page.locator("#top .sub")).to_contain_text("1 picture")
    expect(thread).to_have_js_property("scrollTop", 150)
    page.get_by_role("button", name="Undo").click()
    expect(pictures(page)).to_have_count(2)
    expect_loaded(pictures(page).last)
    expect(thread).to_have_js_property("scrollTop", 150)


def test_the_keyboard_is_enough(page: Page, studio: PageProcess) -> None:
    found = open_gallery(page, studio)
    page.get_by_role("searchbox", name="Search your pictures").focus()
    for _ in range(8):
        page.keyboard.press("Tab")
    expect(found.nth(0).locator(".gal-pic")).to_be_focused()
    page.keyboard.press("Space")
    expect(bar(page)).to_contain_text("1 selected")
    page.keyboard.press("Shift+ArrowRight")
    page.keyboard.press("Shift+ArrowRight")
    expect(bar(page)).to_contain_text("3 selected")
    page.keyboard.press("Escape")
    expect(bar(page)).to_be_hidden()
    page.keyboard.press("s")
    expect(found.nth(2).locator(".gal-star")).to_have_attribute("aria-pressed", "true")
    page.keyboard.press("Delete")
    expect(found).to_have_count(2)
    expect(found.nth(1).locator(".gal-pic")).to_be_focused()
    page.keyboard.press("Control+z")
    expect(found).to_have_count(3)
    page.keyboard.press("Home")
    expect(found.nth(0).locator(".gal-pic")).to_be_focused()
    page.keyboard.press("Control+a")
    expect(bar(page)).to_contain_text("3 selected")
    page.keyboard.press("Escape")
    page.keyboard.press("Enter")
    expect(page.locator('#canvas .cv-pic[data-handle="#1"]')).to_be_visible()
    expect(page.locator("#tab-canvas")).to_be_focused()


def phone(browser: Browser, **more: Any) -> BrowserContext:
    return browser.new_context(
        viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True, locale="zh-CN", **more
    )


def test_on_a_phone_fingers_do_the_same_and_everything_is_chinese(browser: Browser, studio: PageProcess) -> None:
    context = phone(browser)
    page = context.new_page()
    open_page(page, studio.url)
    page.locator("#tabs [data-tab=gallery]").tap()
    found = cells(page)
    expect(found).to_have_count(3)
    assert (
        page.locator(".gal-page").evaluate("grid => getComputedStyle(grid).gridTemplateColumns.split(' ').length") == 3
    )
    tick = found.nth(0).get_by_role("checkbox")
    expect(tick).to_have_css("opacity", "1")
    tick.tap()
    found.nth(1).get_by_role("checkbox").tap()
    expect(bar(page)).to_contain_text("已选 2 张")
    small = (
        bar(page)
        .locator("button:visible")
        .evaluate_all(
            "all => all.map(one => one.getBoundingClientRect()).filter(one => one.width < 40 || one.height < 40).length"
        )
    )
    assert small == 0
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    bar(page).get_by_role("button", name="删除").tap()
    expect(found).to_have_count(1)
    page.get_by_role("button", name="撤销").tap()
    expect(found).to_have_count(3)
    page.get_by_role("button", name="更多筛选").tap()
    expect(page.locator("#gal-more")).to_contain_text("宽高比")
    page.get_by_role("button", name="完成").tap()
    found.nth(0).locator(".gal-pic").tap()
    expect(page.locator("#canvas .cv-pic")).to_be_visible()
    expect(page.locator("#gallery")).to_be_hidden()
    context.close()

"""The gallery in a browser: pictures of all conversations found, chosen, and put to use, by every kind of hand."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import APIResponse, Locator, Page, Route, expect

from tests.adapters.recipes import Recipe, read_recipe
from tests.page import PageProcess
from tests.page.hands import (
    begin_anew,
    composer,
    expect_loaded,
    expect_rest,
    open_at,
    open_page,
    pictures,
    place_of,
    reload,
    say,
)
from tests.page.journeys import Called, on, step
from tests.support.waiting import wait_until


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
    for act, args in (
        ("undelete", {"ids": ids}),
        ("star", {"ids": ids, "is_on": False}),
        *(("tag", {"ids": ids, "name": tag, "is_on": False}) for tag in ("poster", "客户")),
    ):
        visitor.post(f"/aivista/act/gallery.{act}", json={"args": args}).raise_for_status()


def cells(page: Page) -> Locator:
    """Return the pictures of the gallery."""
    return page.locator("#gallery .gal-cell")


def cell(page: Page, words: str) -> Locator:
    """Return the picture that was made from these words: its conversation's title stands behind them in brackets."""
    return cells(page).filter(has=page.get_by_role("img", name=re.compile(rf"^[^(]*{words}")))


def opener(picture: Locator) -> Locator:
    """Return the button that opens a picture of the gallery."""
    return on(picture).button("picture.alt")


def choose(page: Page, *words: str) -> None:
    """Tick the pictures that were made from these words."""
    for one in words:
        cell(page, one).hover()
        cell(page, one).get_by_role("checkbox").click()


def bar(page: Page) -> Locator:
    """Return the bar of what can be done with the pictures chosen."""
    return page.locator("#gallery .gal-bar")


def show_gallery(page: Page, count: int = 3) -> Locator:
    """Show the gallery beside the conversation; return its pictures."""
    page.evaluate("aivista.tabs.show('gallery')")
    expect(cells(page)).to_have_count(count)
    return cells(page)


def open_gallery(page: Page, studio: PageProcess, conversation: str = "new") -> Locator:
    """Open a conversation with the gallery beside it; return its pictures."""
    open_at(page, f"{studio.url}/?c={conversation}")
    return show_gallery(page)


def conversation_of(page: Page, words: str) -> str:
    """Return the id of the conversation that a picture is of."""
    return cell(page, words).get_attribute("data-conversation") or ""


# The shape of each picture as it is shown, and its own.
SHAPES = """all => all.map(cell => {
  const box = cell.querySelector(".gal-pic").getBoundingClientRect(), image = cell.querySelector("img");
  return [box.width / box.height, image.width / image.height];
})"""


def headings(page: Page) -> Locator:
    """Return the headings of the groups."""
    return page.locator("#gallery .gal-group h3")


def draw_rectangle(page: Page, start: Locator, end: Locator, *, drops: bool = True) -> None:
    """Draw from the empty place beside the row to the middle of a picture."""
    row, box = place_of(start), place_of(end)
    page.mouse.move(row["x"] + row["width"] - 2, row["y"] + row["height"] - 30)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2, steps=4)
    if drops:
        page.mouse.up()


def test_what_is_made_while_the_gallery_is_open_joins_it_and_is_sent_as_references_elsewhere(
    page: Page, tmp_path: Path
) -> None:
    with PageProcess(home=tmp_path) as studio:
        open_page(page, studio.url)
        with step("the first picture joins a gallery without any"):
            show_gallery(page, 0)
            expect(page.get_by_role("heading", name="No pictures yet")).to_be_visible()
            say(page, "draw a boat")
            expect(cells(page)).to_have_count(1)
            expect_rest(page)
            expect(page.get_by_role("heading", name="No pictures yet")).to_be_hidden()
        with step("a picture that comes while the pictures are asked for joins them"):
            reload(page)
            expect(page.locator("#chat .pic .frame:not(.pending)")).to_have_count(1)
            held: list[tuple[Route, APIResponse]] = []
            page.route("**/aivista/act/gallery.show", lambda route: held.append((route, route.fetch())), times=1)
            page.evaluate("aivista.tabs.show('gallery')")
            expect(page.locator("#gallery .gal-grid")).to_have_attribute("aria-busy", "true")
            while not held:
                page.wait_for_timeout(20)  # Playwright hears of the answer while it waits
            say(page, "draw a boat")
            expect(page.locator("#chat .pic .frame:not(.pending)")).to_have_count(2)
            expect_rest(page)
            ((route, answer),) = held
            route.fulfill(response=answer)
            expect(cells(page)).to_have_count(2)
        with step("both are sent as references in another conversation"):
            begin_anew(page)
            show_gallery(page, 2)
            for at in range(2):
                cells(page).nth(at).hover()
                cells(page).nth(at).get_by_role("checkbox").click()
            bar(page).get_by_role("button", name="Use as references").click()
            expect(page.locator("#box .thumbnail-item")).to_have_count(2)
            say(page, "make the first one warmer")
            expect(page.locator("#chat .refs img")).to_have_count(2)
            expect_rest(page)
            # The numbers may be some seconds old.
            page.get_by_role("button", name=re.compile(r"^Uploaded \d")).click()
            expect(cells(page)).to_have_count(2)
            page.get_by_role("button", name=re.compile(r"^All \d")).click()
            expect(cells(page)).to_have_count(4)
        # A studio that ends tells a page that is still open of an unexpected error.
        page.goto("about:blank")


def pictures_are_found_by_words_likeness_filters_and_tags_and_nothing_is_lost_while_the_studio_is_away(
    page: Page, studio: PageProcess, talk: str
) -> None:
    found = open_gallery(page, studio)
    words = page.get_by_role("searchbox", name="Search your pictures")
    with step("all pictures stand there, the newest first"):
        assert [found.nth(at).get_attribute("data-handle") for at in range(3)] == ["#1", "#2", "#1"]
        expect(found.nth(0).get_by_role("img")).to_have_attribute("alt", re.compile("鲸鱼"))
        expect(found.nth(2).get_by_role("img")).to_have_attribute("alt", re.compile("red fox"))
        for at in range(3):
            expect_loaded(found.nth(at).locator("img"))
        chips = page.get_by_role("group", name="Filters").get_by_role("button")
        expect(chips).to_have_text(
            [re.compile(one) for one in ("All 3", "This conversation 0", "Uploaded 0", "Edited", "St")]
        )
    with step("each has its shape, in rows of one height that stay within the pane, and says how it came about"):
        shapes = found.evaluate_all(SHAPES)
        assert all(abs(shown - own) < 0.02 for shown, own in shapes)
        assert page.locator(".gal-scroll").evaluate("box => box.scrollWidth - box.clientWidth") == 0
        expect(cell(page, "red fox").locator(".gal-caption")).to_have_text("#1 draw a red fox in the snow")
    with step("words of both languages find them"):
        words.press_sequentially("lighthouses", delay=15)
        expect(found).to_have_count(1)
        expect(cell(page, "lighthouse")).to_be_visible()
        expect(page.locator(".gal-count")).to_have_text("1 picture found")
        expect(page.locator(".gal-caption mark")).to_have_text("lighthouse")
        expect(page.locator(".gal-group h3")).to_have_count(0)
        words.fill("蓝色鲸鱼")
        expect(cell(page, "鲸鱼")).to_be_visible()
        expect(found).to_have_count(1)
    with step("when nothing fits that is said kindly"):
        words.fill("submarine")
        expect(page.get_by_role("heading", name="No matching pictures")).to_be_visible()
        page.locator(".gal-nothing").get_by_role("button", name="Clear filters").click()
        expect(found).to_have_count(3)
        expect(words).to_have_value("")
    with step("what looks alike is found"):
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
    with step("that the studio is away is said once"):
        page.context.set_offline(True)
        words.fill("lighthouse")
        expect(page.get_by_role("alert")).to_contain_text("did not answer")
        expect(found).to_have_count(3)
        again = page.locator("#gal").get_by_role("button", name="Try again")
        expect(again).to_be_visible()
        page.context.set_offline(False)
        # No press of the mouse: the gallery looks again by itself now and then, and hides the button.
        again.dispatch_event("click")
        expect(found).to_have_count(1)
        expect(page.get_by_role("alert")).to_have_count(0)
        expect(again).to_be_hidden()
    words.fill("")
    found = open_gallery(page, studio, talk)
    with step("filters narrow, stand as chips and go one by one"):
        page.get_by_role("button", name="This conversation 2").click()
        expect(found).to_have_count(2)
        page.get_by_role("button", name="All 3").click()
        page.get_by_role("button", name="More filters").click()
        page.locator("#gal-more").get_by_role("button", name=re.compile(r"^\d+:\d+")).first.click()
        expect(page.locator(".gal-sift small")).to_have_text("1")
        page.locator("#gal-more").get_by_label("From").fill("2001-01-01")
        page.locator("#gal-more").get_by_label("To").fill("2001-12-31")
        expect(found).to_have_count(0)
        page.locator("#gal-more").get_by_role("button", name="Done").click()
        page.get_by_role("button", name=re.compile("Remove Jan 1, 2001")).click()
        expect(found).to_have_count(3)
        page.get_by_role("button", name=re.compile("^Remove")).click()
        expect(page.locator(".gal-sift small")).to_have_text("")
    with step("the order is a menu"):
        page.get_by_role("button", name="Newest").click()
        page.get_by_role("menuitemradio", name="Today").click()
        expect(found).to_have_count(3)
        expect(page.locator(".gal-order")).to_have_text("Today")
        page.get_by_role("button", name="Today", exact=True).click()
        page.get_by_role("menuitemradio", name="Newest").click()
    with step("pictures stand by day, or by conversation, as it was chosen last"):
        expect(headings(page)).to_have_text(["Today"])
        page.get_by_role("button", name="Newest").click()
        page.get_by_role("menuitemradio", name="Group by conversation").click()
        expect(headings(page)).to_have_count(2)
        reload(page)
        show_gallery(page)
        expect(headings(page)).to_have_count(2)
        expect(page.locator(".gal-group").last.locator(".gal-cell")).to_have_count(2)
        heading = headings(page).last
        heading.evaluate("heading => heading.textContent = 'Another name'")
        page.evaluate("aivista.tabs.show('canvas')")
        page.evaluate("aivista.tabs.show('gallery')")
        expect(heading).to_have_text("A red fox in the snow")
        page.get_by_role("button", name="Newest").click()
        page.get_by_role("menuitemradio", name="Group by day").click()
        expect(headings(page)).to_have_text(["Today"])
    with step("attempts that a review rejected can be hidden"):
        page.get_by_role("button", name="More filters").click()
        page.get_by_role("button", name="Hide rejected attempts").click()
        page.keyboard.press("Escape")
        expect(page.locator(".gal-sift small")).to_have_text("1")
        expect(found).to_have_count(3)
        page.get_by_role("button", name="Remove Hide rejected attempts").click()
        expect(page.locator(".gal-sift small")).to_have_text("")
    with step("tags are given, filtered by and taken away"):
        choose(page, "red fox", "鲸鱼")
        bar(page).get_by_role("button", name="Tag").click()
        field = page.get_by_role("textbox", name="New or existing tag")
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


def downloaded(page: Page, button: Locator, file: Path) -> dict[str, bytes]:
    """Press the button; return the files of the archive that is downloaded then."""
    with page.expect_download() as download:
        button.click()
    assert download.value.suggested_filename == "aivista-pictures-2.zip"
    download.value.save_as(file)
    with zipfile.ZipFile(file) as archive:
        assert archive.testzip() is None
        return {name: archive.read(name) for name in archive.namelist()}


def pictures_are_chosen_taken_away_starred_and_deleted_by_mouse_and_by_keys(
    page: Page, studio: PageProcess, folder: Path
) -> None:
    found = open_gallery(page, studio)
    order = [found.nth(at).get_attribute("data-id") for at in range(3)]
    with step("the keyboard is enough"):
        page.get_by_role("searchbox", name="Search your pictures").focus()
        for _ in range(8):
            page.keyboard.press("Tab")
        expect(opener(found.nth(0))).to_be_focused()
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
        expect(opener(found.nth(1))).to_be_focused()
        page.keyboard.press("Control+z")
        expect(found).to_have_count(3)
        page.keyboard.press("Home")
        expect(opener(found.nth(0))).to_be_focused()
        page.keyboard.press("ArrowDown")
        expect(opener(found.nth(2))).to_be_focused()
        page.keyboard.press("ArrowUp")
        expect(opener(found.nth(0))).to_be_focused()
        page.keyboard.press("Control+a")
        expect(bar(page)).to_contain_text("3 selected")
        page.keyboard.press("Escape")
        page.keyboard.press("Enter")
        expect(page.locator('#canvas .cv-pic[data-handle="#1"]')).to_be_visible()
        expect(page.locator("#tab-canvas")).to_be_focused()
    with step("Shift and Control choose"):
        show_gallery(page)
        opener(found.nth(0)).click(modifiers=["Control"])
        expect(bar(page)).to_contain_text("1 selected")
        opener(found.nth(2)).click(modifiers=["Shift"])
        expect(bar(page)).to_contain_text("3 selected")
        opener(found.nth(1)).click(modifiers=["Control"])
        expect(bar(page)).to_contain_text("2 selected")
        expect(page.locator("#gallery")).to_be_visible()
        page.keyboard.press("Escape")
        expect(bar(page)).to_be_hidden()
    with step("a rectangle drawn from an empty place chooses what it touches, and one from a picture nothing"):
        row = page.locator(".gal-row").last
        draw_rectangle(page, row, found.nth(2))
        expect(bar(page)).to_contain_text("1 selected")
        expect(page.locator(".gal-drawn")).to_have_count(0)
        draw_rectangle(page, row, found.nth(0), drops=False)
        expect(page.locator(".gal-drawn")).to_be_visible()
        expect(bar(page)).to_contain_text(re.compile("[23] selected"))
        page.keyboard.press("Escape")
        page.mouse.up()
        expect(page.locator(".gal-drawn")).to_have_count(0)
        expect(bar(page)).to_contain_text("1 selected")
        page.keyboard.press("Escape")
        opener(found.nth(0)).click(modifiers=["Control"])
        page.keyboard.down("Shift")
        draw_rectangle(page, row, found.nth(2))
        page.keyboard.up("Shift")
        expect(bar(page)).to_contain_text("2 selected")
        page.keyboard.press("Escape")
        draw_rectangle(page, found.nth(1).locator("img"), found.nth(0))
        expect(page.locator(".gal-drawn")).to_have_count(0)
        expect(bar(page)).to_be_hidden()
    with step("two are taken away as a file"):
        choose(page, "red fox", "鲸鱼")
        expect(bar(page)).to_contain_text("2 selected")
        expect(bar(page).get_by_role("button", name="Compare")).to_be_hidden()
        files = downloaded(page, bar(page).get_by_role("button", name="Download"), folder / "two.zip")
        assert len(files) == 2
        assert any("red-fox" in name for name in files)
        assert any("鲸鱼" in name for name in files)
        assert all(isinstance(read_recipe(data), Recipe) for data in files.values())
        bar(page).get_by_role("button", name="Other copies").click()
        files = downloaded(page, page.get_by_role("menuitem", name="Clean copy"), folder / "clean.zip")
        assert all(name.endswith("-clean.png") for name in files)
        assert [read_recipe(data) for data in files.values()] == [None, None]
        wait_until(lambda: not any((studio.home / "temporary").iterdir()))
        page.keyboard.press("Escape")
        expect(bar(page)).to_be_hidden()
        expect(page.locator("#gallery")).to_be_visible()
    with step("one alone is taken away as itself"):
        choose(page, "red fox")
        with page.expect_download() as download:
            bar(page).get_by_role("button", name="Download").click()
        assert "red-fox" in download.value.suggested_filename
        page.keyboard.press("Escape")
    with step("what is deleted goes and comes back in its place"):
        choose(page, "lighthouse", "鲸鱼")
        bar(page).get_by_role("button", name="Delete").click()
        expect(found).to_have_count(1)
        expect(page.get_by_role("button", name="All 1")).to_be_visible()
        expect(page.get_by_role("status").filter(has_text="2 pictures deleted")).to_be_visible()
        page.get_by_role("button", name="Undo").click()
        expect(found).to_have_count(3)
        assert [found.nth(at).get_attribute("data-id") for at in range(3)] == order
        expect(page.get_by_role("button", name="All 3")).to_be_visible()
    with step("a star is found again"):
        cell(page, "lighthouse").hover()
        cell(page, "lighthouse").get_by_role("button", name="Star #2").click()
        starred = page.get_by_role("button", name="Starred 2")
        starred.click()
        expect(found).to_have_count(2)
        expect(starred).to_have_attribute("aria-pressed", "true")
        reload(page)
        page.evaluate("aivista.tabs.show('gallery')")
        expect(cell(page, "lighthouse").locator(".gal-star")).to_have_attribute("aria-pressed", "true")
        page.get_by_role("button", name="All 3").click()
        expect(found).to_have_count(3)
    with step("two of one conversation are compared"):
        choose(page, "lighthouse", "red fox")
        bar(page).get_by_role("button", name="Compare").click()
        expect(page.locator('#canvas .cmp[data-pair="#1 #2"]')).to_be_visible()


# A thread that was just opened runs to its end once more when its pictures have come.
SCROLLED = """async box => {
  for (let still = 0; still < 4; still = box.scrollTop === 100 ? still + 1 : 0) {
    box.scrollTop = 100;
    await new Promise(resolve => setTimeout(resolve, 200));
  }
}"""


def pictures_lead_to_their_conversations_and_into_the_one_that_is_open(
    page: Page, studio: PageProcess, talk: str
) -> None:
    open_gallery(page, studio, talk)
    with step("the open conversation follows what is deleted, and keeps its place"):
        expect(pictures(page)).to_have_count(2)
        expect_loaded(pictures(page).last)
        thread = page.locator("#chat [role=log]")
        # One picture alone must be more than is seen at once.
        page.set_viewport_size({"width": 1280, "height": 620})
        thread.evaluate(SCROLLED)
        choose(page, "lighthouse")
        bar(page).get_by_role("button", name="Delete").click()
        expect(pictures(page)).to_have_count(1)
        expect(page.locator("#top .sub")).to_contain_text("1 picture")
        expect(thread).to_have_js_property("scrollTop", 100)
        page.get_by_role("button", name="Undo").click()
        expect(pictures(page)).to_have_count(2)
        expect_loaded(pictures(page).last)
        expect(thread).to_have_js_property("scrollTop", 100)
        page.set_viewport_size({"width": 1280, "height": 860})
    with step("pictures of the open conversation become its references"):
        composer(page).fill("one beside the other")
        page.wait_for_function("JSON.stringify(localStorage).includes('one beside the other')")
        choose(page, "red fox", "lighthouse")
        bar(page).get_by_role("button", name="Use as references").click()
        expect(page.locator("#ctx .ctx b")).to_have_text(["#2", "#1"])
        expect(bar(page)).to_be_hidden()
        # It begins no conversation, so words do not go along into one that is opened right after it.
        page.evaluate("window.aivista.shell.act('page.open')")
        expect(page.locator("#top h1")).to_have_attribute("data-conversation", "new")
        expect(composer(page)).to_have_value("")
    with step("a click opens the picture in its own conversation, or here"):
        show_gallery(page)
        whale, light = conversation_of(page, "鲸鱼"), conversation_of(page, "lighthouse")
        opener(cell(page, "鲸鱼")).click()
        expect(page.locator(f'#canvas .cv-pic[data-conversation="{whale}"]')).to_be_visible()
        expect(page.locator("#top h1")).to_have_attribute("data-conversation", whale)
        for words, handle in (("lighthouse", "#2"), ("red fox", "#1")):
            show_gallery(page)
            opener(cell(page, words)).click()
            staged = page.locator(f'#canvas .cv-pic[data-conversation="{light}"][data-handle="{handle}"]')
            expect(staged).to_be_visible()
    with step("from the gallery a picture fills the window, where the keys walk through its conversation"):
        page.keyboard.press("f")
        expect(page.locator(".vw-at")).to_have_text("1 of 2")
        page.keyboard.press("ArrowRight")
        expect(page.locator('#canvas .cv-pic[data-handle="#2"]')).to_be_visible()
        expect(page.locator(".vw-at")).to_have_text("2 of 2")
        page.keyboard.press("Escape")
    with step("pictures of elsewhere begin a conversation, and the draft stays"):
        show_gallery(page)
        composer(page).fill("in the manner of these")
        choose(page, "red fox", "鲸鱼")
        bar(page).get_by_role("button", name="Use as references").click()
        expect(page.locator("#top h1")).to_have_attribute("data-conversation", "new")
        expect(page.locator("#box .thumbnail-item")).to_have_count(2)
        expect(composer(page)).to_have_value("in the manner of these")
        expect(page.locator("#chat .user")).to_have_count(0)
        for at in range(2):
            expect_loaded(page.locator("#box .thumbnail-item img").nth(at))


def test_pictures_are_found_chosen_taken_away_starred_and_deleted_and_lead_to_their_conversations(
    page: Page, studio: PageProcess, talk: str, tmp_path: Path
) -> None:
    pictures_are_found_by_words_likeness_filters_and_tags_and_nothing_is_lost_while_the_studio_is_away(
        page, studio, talk
    )
    pictures_are_chosen_taken_away_starred_and_deleted_by_mouse_and_by_keys(page, studio, tmp_path)
    pictures_lead_to_their_conversations_and_into_the_one_that_is_open(page, studio, talk)


def test_on_a_phone_fingers_do_the_same_and_everything_is_chinese(phone: Page, studio: PageProcess) -> None:
    open_page(phone, studio.url)
    called = Called(phone, "zh-CN")
    called.tab("tabs.gallery").tap()
    found = cells(phone)
    with step("the newest stand beside one another under their day, and two are chosen"):
        expect(found).to_have_count(3)
        expect(headings(phone)).to_have_text(["今天"])
        tops = found.evaluate_all("all => all.map(one => Math.round(one.getBoundingClientRect().top))")
        assert tops[0] == tops[1]
        tick = found.nth(0).get_by_role("checkbox")
        expect(tick).to_have_css("opacity", "1")
        tick.tap()
        found.nth(1).get_by_role("checkbox").tap()
        expect(on(bar(phone)).text("gallery.chosen", count=2)).to_be_visible()
    with step("fingers can hit what is to be pressed"):
        buttons = bar(phone).locator("button:visible")
        sizes = buttons.evaluate_all("all => all.map(one => one.getBoundingClientRect())")
        assert [one for one in sizes if one["width"] < 40 or one["height"] < 40] == []
        assert phone.evaluate("document.documentElement.scrollWidth") <= 390
    with step("what is deleted comes back"):
        on(bar(phone)).button("gallery.delete").tap()
        expect(found).to_have_count(1)
        called.button("action.undo").tap()
        expect(found).to_have_count(3)
    with step("more filters open and close"):
        called.button("gallery.more_filters").tap()
        expect(phone.locator("#gal-more")).to_contain_text("宽高比")
        called.button("gallery.done").tap()
    with step("a tap opens a picture"):
        opener(found.nth(0)).tap()
        expect(phone.locator("#canvas .cv-pic")).to_be_visible()
        expect(phone.locator("#gallery")).to_be_hidden()

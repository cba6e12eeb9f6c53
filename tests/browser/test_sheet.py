"""Several pictures of one turn as a contact sheet."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from tests.page import PageProcess
from tests.page.hands import begin_anew, choose_setting, expect_pictures, open_at, open_page, say
from tests.page.journeys import step

# All turns, as after a picture of each was deleted and came back.
WRITE_ANEW = """async () => {
    for (const turn of document.querySelectorAll("#thread > .turn")) turn.removeAttribute("data-is");
    await window.aivista.shell.act("page.changed", { arg: "" });
}"""


def draw(page: Page, count: int, wish: str) -> None:
    choose_setting(page, "count", str(count))
    say(page, wish)


def test_sheets_are_walked_opened_and_compared_stand_where_they_stood_and_fit_a_phone(
    page: Page, phone: Page, studio: PageProcess
) -> None:
    open_page(page, studio.url)
    draw(page, 4, "draw a red fox")
    expect_pictures(page, 4)
    draw(page, 2, "draw a blue bird")
    expect_pictures(page, 6)
    address = page.url
    with step("the picture whose words are shown is the one that the next message changes"):
        shown = page.locator("#chat .sheet").nth(1).locator("figcaption:visible > .tag")
        expect(page.locator("#ctx-next")).to_contain_text(shown.inner_text())
    with step("frames are equal, and the arrow keys go between them"):
        sheet = page.locator("#chat .sheet").first
        frames = sheet.locator(".frame")
        expect(frames).to_have_count(4)
        boxes = [frame.bounding_box() for frame in frames.all()]
        assert len({(box["width"], box["height"]) for box in boxes if box is not None}) == 1
        names = [frame.get_attribute("data-arg") for frame in frames.all()]
        frames.first.focus()
        height = sheet.evaluate("sheet => sheet.offsetHeight")
        for key, at in (("ArrowRight", 1), ("ArrowDown", 3), ("ArrowLeft", 2), ("ArrowUp", 0), ("End", 3), ("Home", 0)):
            page.keyboard.press(key)
            expect(frames.nth(at)).to_be_focused()
            words = sheet.locator("figcaption:visible")
            expect(words).to_have_count(1)
            expect(words.locator("> .tag")).to_have_text(names[at] or "")
            assert sheet.evaluate("sheet => sheet.offsetHeight") == height
    with step("one stays at a picture while its turn is written anew"):
        frames.nth(2).focus()
        page.evaluate(WRITE_ANEW)
        expect(sheet.locator("figcaption:visible > .tag")).to_have_text(names[2] or "")
        page.keyboard.press("Tab")
        page.evaluate(WRITE_ANEW)
        expect(words.locator("[data-act=edit]")).to_be_focused()
        expect(words.locator("> .tag")).to_have_text(names[2] or "")
    with step("from a picture one comes to its words"):
        frames.first.focus()
        page.keyboard.press("ArrowLeft")
        expect(frames.first).to_be_focused()
        page.keyboard.press("ArrowRight")
        page.keyboard.press("Tab")
        expect(sheet.locator("figcaption:visible [data-act=edit]")).to_be_focused()
    with step("one click opens a picture large, and shows its words"):
        sheet = page.locator("#chat .sheet").first
        third = sheet.locator(".frame").nth(2)
        handle = third.get_attribute("data-arg") or ""
        third.click()
        expect(page.locator("#canvas .cv-bar b")).to_have_text(handle)
        expect(sheet.locator("figcaption:visible > .tag")).to_have_text(handle)
    with step("exactly two are compared with one click"):
        sheet = page.locator("#chat .sheet").nth(1)
        expect(sheet.locator(".frame")).to_have_count(2)
        handles = [frame.get_attribute("data-arg") or "" for frame in sheet.locator(".frame").all()]
        sheet.get_by_role("button", name="Compare these two").click()
        stage = page.locator("#canvas .cmp")
        expect(stage.locator(".tag").first).to_be_visible()
        assert [tag.inner_text() for tag in stage.locator(".tag").all()] == handles
        expect(page.locator("#chat .sheet").first.get_by_role("button", name="Compare these two")).to_have_count(0)
    with step("frames stand where they stood when the pictures have come"):
        begin_anew(page)
        draw(page, 3, "draw a boat")
        expect(page.locator("#chat .sheet .frame")).to_have_count(3)
        # In one go: one that is drawn anew between the look for it and its size has none.
        sizes = "[...document.querySelectorAll('#chat .sheet .frame')].map(one => [one.offsetWidth, one.offsetHeight])"
        begun = page.evaluate(sizes)
        expect_pictures(page, 3)
        assert page.evaluate(sizes) == begun
    with step("they fit a phone"):
        open_at(phone, address)
        expect(phone.locator("#chat .sheet")).to_have_count(2)
        assert phone.evaluate("document.documentElement.scrollWidth") <= 390
        widths = (
            phone.locator("#chat .sheet")
            .first.locator(".frame")
            .evaluate_all("all => all.map(one => Math.round(one.getBoundingClientRect().width))")
        )
        assert len(set(widths)) == 1
        assert widths[0] > 150

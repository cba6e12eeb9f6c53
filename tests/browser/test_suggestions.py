"""What the box offers while one types: pictures after #, prompts and styles after /, by keys and by hand."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from tests.page import PageProcess
from tests.page.hands import composer, open_at, pictures
from tests.page.journeys import step


def test_pictures_prompts_and_styles_are_offered_while_one_types(page: Page, studio: PageProcess) -> None:
    open_at(page, studio.sketched("draw a red fox", ("make it much warmer", "#1"), "draw a boat"), 3)
    offered, box = page.get_by_role("listbox", name="Suggestions"), composer(page)
    with step("a picture is chosen by keys and goes in by its name"):
        box.press_sequentially("like #")
        expect(offered.get_by_role("option")).to_have_text(["#2 draw a boat", "#1b warmth +60", "#1 draw a red fox"])
        box.press_sequentially("1")
        expect(offered.get_by_role("option")).to_have_count(2)
        page.keyboard.press("ArrowDown")
        expect(offered.get_by_role("option", selected=True)).to_contain_text("#1b")
        page.keyboard.press("Enter")
        expect(box).to_have_value("like #1b ")
        expect(offered).to_have_count(0)
    with step("a style is found by a part of its name, and Tab takes the first"):
        box.press_sequentially("/aquar")
        expect(offered.get_by_role("option").first).to_contain_text("Watercolour")
        page.keyboard.press("Tab")
        expect(box).to_have_value("like #1b in the style of Watercolour ")
        expect(box).to_be_focused()
    with step("Escape closes the list and nothing else, and it stays closed"):
        box.fill("")
        box.press_sequentially("@")
        expect(offered).to_be_visible()
        page.keyboard.press("Escape")
        expect(offered).to_have_count(0)
        expect(box).to_have_value("@")
    with step("what is kept is offered before the styles"):
        page.evaluate("localStorage.setItem('aivista-starred', JSON.stringify(['an inky night over the harbour']))")
        box.fill("")
        box.press_sequentially("/ink")
        expect(offered.get_by_role("option").first).to_have_text("an inky night over the harbour")
        offered.get_by_role("option").first.click()
        expect(box).to_have_value("an inky night over the harbour ")
    with step("addresses, fractions and names of mailboxes offer nothing, and a name that is whole is sent"):
        box.fill("")
        box.press_sequentially("see https://example.org/ink 1/2 ann@example.org #2")
        expect(offered).to_have_count(0)
        box.fill("")
        box.press_sequentially("make it brighter: #2")
        page.keyboard.press("Enter")
        expect(pictures(page)).to_have_count(4)


def test_a_finger_chooses_on_a_phone_in_chinese(phone: Page, studio: PageProcess) -> None:
    open_at(phone, studio.sketched("画一只狐狸"), 1)
    composer(phone).press_sequentially("把#")
    options = phone.get_by_role("listbox", name="建议").get_by_role("option")
    expect(options).to_have_count(1)
    assert options.first.evaluate("one => one.offsetHeight") >= 44
    options.first.tap()
    expect(composer(phone)).to_have_value("把#1 ")
    composer(phone).press_sequentially("变成 /水墨")
    options.first.tap()
    expect(composer(phone)).to_have_value("把#1 变成 “水墨画”风格 ")

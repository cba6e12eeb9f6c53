"""The layout: a stage that is wide or narrow, a thread that follows, a phone with one pane at a time."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, Route, expect

from tests.page import PageProcess
from tests.page.hands import (
    begin_anew,
    choose_setting,
    composer,
    draw_twice,
    expect_still,
    open_at,
    open_sliders,
    paint,
    place_of,
    reload,
)
from tests.page.journeys import Called, on, step

# How far apart the middles of the box and of what stands at its end are, in height.
MIDDLES_APART_PX = """(() => {
  const [box, chip] = ["#box textarea", "#summary"].map(one => document.querySelector(one).getBoundingClientRect());
  return Math.abs(box.top + box.height / 2 - chip.top - chip.height / 2);
})()"""
STAGE_PX = "document.querySelector('#stage').getBoundingClientRect().width"
LOG = "document.querySelector('#chat [role=log]')"
TO_END_PX = f"{LOG}.scrollHeight - {LOG}.scrollTop - {LOG}.clientHeight"
PANES = ("canvas", "gallery", "tree", "files", "trace")


def expect_in_sight(page: Page, part: str) -> None:
    """Unfold a part below the picture; it is in sight above the composer then."""
    details = page.locator(f"#chat details.{part}").last
    if part == "next-steps":
        open_sliders(page)
    else:
        # By key: a click of Playwright's scrolls by itself.
        details.locator("summary").evaluate("summary => summary.focus({ preventScroll: true })")
        page.keyboard.press("Enter")
    expect(details).to_have_attribute("open", "")
    page.wait_for_function(
        "details => { const box = details.getBoundingClientRect(), log = document.querySelector('#chat [role=log]')"
        ".getBoundingClientRect(); return box.top >= log.top - 1 &&"
        " (box.bottom <= log.bottom + 1 || box.top <= log.top + 16); }",
        arg=details.element_handle(),
    )
    page.keyboard.press("Enter")


def test_the_stage_keeps_its_width_and_the_thread_stands_at_its_newest_and_what_one_reads_stays_in_sight(
    page: Page, studio: PageProcess
) -> None:
    called, kept = Called(page), list[Route]()
    open_at(page, studio.sketched("draw a green whale", "make it darker"), 2)
    on(page, "#top").button("top.stage").click()
    expect(page.locator("#canvas .cv-pic img")).to_be_visible()
    wide, opened = called.button("tabs.wide"), page.locator("#canvas .cv-pic")
    with step("a picture is larger in it than in the thread, until the conversation is given the room"):
        for width_px, least in ((1440, 1.2), (1280, 1.2), (1181, 1), (1024, 1.2)):
            page.set_viewport_size({"width": width_px, "height": 860})
            page.wait_for_function(
                """least => {
                  const [opened, framed] = ["#canvas .cv-pic", "#chat .frame"].map(one => document.querySelector(one));
                  return opened.offsetWidth > least * framed.offsetWidth;
                }""",
                arg=least,
            )
            assert page.evaluate(MIDDLES_APART_PX) < 16, "the composer is one row"
        page.set_viewport_size({"width": 1280, "height": 860})
        expect(wide).to_have_attribute("aria-pressed", "true")
        usual_px = page.evaluate(STAGE_PX)
        wide.click()
        expect(wide).to_have_attribute("aria-pressed", "false")
        assert page.evaluate(STAGE_PX) == pytest.approx(380, abs=1)
        expect(opened).to_be_visible()
    with step("it is there again after a reload, with its tab"):
        called.tab("tabs.trace").click()
        reload(page)
        expect(page.locator("#trace .trc-turn")).to_have_count(2)
        expect(called.tab("tabs.trace")).to_have_attribute("aria-selected", "true")
        assert page.evaluate(STAGE_PX) == pytest.approx(380, abs=1)
        wide.click()
        assert page.evaluate(STAGE_PX) == pytest.approx(usual_px, abs=1)
    with step("without a picture it offers an example"):
        called.tab("tabs.canvas").click()
        begin_anew(page)
        expect(page.locator(".welcome")).to_be_visible()
        on(page, "#top").button("top.stage").click()
        expect(page.locator("#canvas")).to_contain_text("No picture is open")
        on(page, "#canvas").button("stage.example").click()
        expect(composer(page)).to_have_value(re.compile("fox"))
    with step("a conversation opens at its newest, with its newest picture, and what is made then comes there"):
        page.locator("#rail").get_by_role("button", name="A green whale", exact=True).click()
        expect(page.locator("#canvas .cv-pic")).to_have_attribute("data-handle", "#1b")
        assert page.evaluate(TO_END_PX) < 2
        paint(page, "make it grayscale")
        expect(page.locator("#canvas .cv-pic")).to_have_attribute("data-handle", "#1c")
    with step("the newest does not come in the way of a comparison that was asked for before"):
        page.route("**/aivista/act/page.compare", lambda route: kept.append(route))
        on(page, "#chat").button("compare.action").last.click()
        paint(page, "make it sepia")
        draw_twice(page)
        expect(page.locator("#canvas .cv-pic")).to_have_attribute("data-handle", "#1c")
        kept[0].continue_()
        expect(page.locator("#canvas .cmp")).to_be_visible()
    with step("a stage that was closed stays so"):
        on(page, "#tabs").button("action.close").click()
        reload(page)
        expect(page.locator("#stage")).to_be_hidden()
    with step("a long conversation stands at its newest"):
        changes = ("make it darker", "make it brighter", "make it warmer")
        wishes = ("draw a fox", *changes, "draw a lighthouse in a storm", *changes)
        address = studio.sketched(*wishes)
        # The second time the browser has the page's files, and the thread is there before its rows are laid out: they
        # are when they first come into sight, and the thread grows with each.
        for _ in range(2):
            open_at(page, address, len(wishes))
            expect_still(page, f"{LOG}.scrollHeight")
            assert page.evaluate(TO_END_PX) < 2
    # Last: the ratio that is chosen here stays chosen.
    called = Called(page)
    open_at(page, studio.sketched("draw a boat", "make it darker", "make it brighter"), 3)
    back = called.button("top.newest")
    with step("it opens at its newest"):
        expect(page.locator("html:not([data-behind])")).to_be_attached()
        assert page.evaluate(TO_END_PX) < 2
        expect(back).to_be_hidden()
    with step("what comes on its own leaves whoever reads where they are"):
        page.locator("#chat").hover()
        page.mouse.wheel(0, -900)
        expect(back).to_be_visible()
        at = page.evaluate(f"{LOG}.scrollTop")
        page.evaluate("""() => {
          const wrap = document.querySelector('#thread');
          wrap.append(Object.assign(document.createElement('div'), { id: 'more', style: 'flex:none;height:300px' }));
        }""")
        draw_twice(page)
        assert page.evaluate(f"{LOG}.scrollTop") == at
        back.click()
        page.wait_for_function(f"{TO_END_PX} < 2")
        expect(back).to_be_hidden()
        page.evaluate("document.querySelector('#more').remove()")
    with step("what one reads stays in sight when the stage opens"):
        page.mouse.wheel(0, -700)
        expect(back).to_be_visible()
        expect_still(page, f"{LOG}.scrollTop")
        page.evaluate(f"""() => {{
          const top = {LOG}.getBoundingClientRect().top;
          const things = document.querySelectorAll('#chat :is(.md > *, .frame, .acts, .receipt)');
          window.read = [...things].find(one => one.getBoundingClientRect().top >= top);
        }}""")
        place_px = "window.read.getBoundingClientRect().top"
        before_px = page.evaluate(place_px)
        on(page, "#top").button("top.stage").click()
        expect(page.locator("#stage")).to_be_visible()
        expect_still(page, place_px)
        assert page.evaluate(place_px) == pytest.approx(before_px, abs=2)
        on(page, "#tabs").button("action.close").click()
    with step("whoever says something wants to see what comes of it"):
        page.locator("#chat").hover()
        page.mouse.wheel(0, -900)
        expect(back).to_be_visible()
        paint(page, "make it sepia")
        page.wait_for_function(f"{TO_END_PX} < 2")
    with step("what is unfolded is in sight above the composer"):
        page.set_viewport_size({"width": 1280, "height": 700})
        expect_in_sight(page, "receipt")
        expect_in_sight(page, "next-steps")
        page.set_viewport_size({"width": 1280, "height": 860})
    with step("a picture is never taller than what can be seen at once"):
        begin_anew(page)
        choose_setting(page, "aspect-ratio", "9:16")
        paint(page, "draw a lighthouse")
        size = place_of(page.locator("#chat .frame"))
        assert size["height"] < 0.7 * 860
        assert size["width"] / size["height"] == pytest.approx(9 / 16, abs=0.01)


def one_pane_is_seen_at_a_time_and_what_is_unfolded_is_above_the_composer(phone: Page, studio: PageProcess) -> None:
    called = Called(phone, "zh-CN")
    open_at(phone, studio.sketched("draw a boat"), 1)
    with step("what is unfolded is in sight"):
        expect_in_sight(phone, "receipt")
        expect_in_sight(phone, "next-steps")
    for name in PANES:
        with step(f"the pane {name} is seen alone"):
            called.tab(f"tabs.{name}").tap()
            expect(phone.locator(f"#{name}")).to_be_visible()
            expect(composer(phone)).to_be_hidden()
            assert [one for one in PANES if phone.locator(f"#{one}").is_visible()] == [name]
    with step("the list of conversations and the composer are in reach"):
        called.button("tabs.chats").tap()
        expect(phone.locator("#rail [data-act=open]").first).to_be_visible()
        phone.keyboard.press("Escape")
        called.button("tabs.chat").tap()
        expect(composer(phone)).to_be_in_viewport()
        buttons = phone.locator("#tabs button")
        assert buttons.evaluate_all("all => all.filter(one => one.scrollWidth > one.clientWidth)") == []
        assert phone.evaluate("document.documentElement.scrollWidth") <= 390

"""The layout: a stage that is as wide as it was drawn, a thread that follows, a phone with one pane at a time."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.page import PageProcess
from tests.page.hands import composer, draw_twice, expect_ready, expect_still, open_at, open_page, paint, pictures

STAGE_PX = "document.querySelector('#stage').getBoundingClientRect().width"
LOG = "document.querySelector('#chat [role=log]')"
TO_END_PX = f"{LOG}.scrollHeight - {LOG}.scrollTop - {LOG}.clientHeight"
PANES = ("canvas", "gallery", "tree", "files", "trace")


@pytest.fixture
def phone(browser: Browser) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 390, "height": 844}, locale="en-US", has_touch=True)
    yield context.new_page()
    context.close()


def test_the_stage_is_made_wider_by_hand_and_by_keys_and_is_there_again_after_a_reload(
    page: Page, studio: PageProcess
) -> None:
    open_at(page, studio.sketched("draw a boat"), 1)
    page.locator("#top [data-act=stage]").click()
    expect(page.locator("#canvas .cv-pic img")).to_be_visible()
    edge = page.get_by_role("separator", name="Width of the panels")
    usual_px = page.evaluate(STAGE_PX)
    box = edge.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 3, 400)
    page.mouse.down()
    page.mouse.move(box["x"] - 57, 400, steps=4)
    page.mouse.up()
    assert page.evaluate(STAGE_PX) == pytest.approx(usual_px + 60, abs=2)
    edge.press("ArrowRight")
    assert page.evaluate(STAGE_PX) == pytest.approx(usual_px + 28, abs=2)
    edge.press("Home")
    widest_px = page.evaluate(STAGE_PX)
    assert 1280 - 248 - widest_px >= 420
    expect(edge).to_have_attribute("aria-valuenow", edge.get_attribute("aria-valuemax") or "")
    page.locator("#tab-trace").click()
    page.reload()
    expect_ready(page)
    expect(page.locator("#trace .trc-turn")).to_have_count(1)
    expect(page.locator("#tab-trace")).to_have_attribute("aria-selected", "true")
    assert page.evaluate(STAGE_PX) == pytest.approx(widest_px, abs=1)
    edge.press("Enter")
    assert page.evaluate(STAGE_PX) == pytest.approx(usual_px, abs=1)
    page.locator("#tabs [data-act=stage]").click()
    page.reload()
    expect_ready(page)
    expect(page.locator("#stage")).to_be_hidden()


def test_the_thread_follows_until_one_scrolls_up_and_leads_back(page: Page, studio: PageProcess) -> None:
    open_at(page, studio.sketched("draw a boat", "make it darker", "make it brighter"), 3)
    expect(page.locator("html:not([data-behind])")).to_be_attached()
    assert page.evaluate(TO_END_PX) < 2
    back = page.get_by_role("button", name="To the newest")
    expect(back).to_be_hidden()
    page.locator("#chat").hover()
    page.mouse.wheel(0, -900)
    expect(back).to_be_visible()
    # What comes on its own leaves whoever reads where they are.
    at = page.evaluate(f"{LOG}.scrollTop")
    page.evaluate("""() => {
      const wrap = document.querySelector('#chat .message-wrap');
      wrap.append(Object.assign(document.createElement('div'), { style: 'flex:none;height:300px' }));
    }""")
    draw_twice(page)
    assert page.evaluate(f"{LOG}.scrollTop") == at
    back.click()
    page.wait_for_function(f"{TO_END_PX} < 2")
    expect(back).to_be_hidden()
    page.mouse.wheel(0, -900)
    expect(back).to_be_visible()
    # Whoever says something wants to see what comes of it.
    paint(page, "make it sepia")
    page.wait_for_function(f"{TO_END_PX} < 2")


def test_what_one_reads_stays_in_sight_when_the_stage_opens(page: Page, studio: PageProcess) -> None:
    open_at(page, studio.sketched("draw a boat", "make it darker", "make it brighter"), 3)
    page.locator("#chat").hover()
    page.mouse.wheel(0, -700)
    expect(page.get_by_role("button", name="To the newest")).to_be_visible()
    expect_still(page, f"{LOG}.scrollTop")
    page.evaluate(f"""() => {{
      const top = {LOG}.getBoundingClientRect().top;
      const things = document.querySelectorAll('#chat :is(.md > *, .frame, .acts, .receipt)');
      window.read = [...things].find(one => one.getBoundingClientRect().top >= top);
    }}""")
    place_px = "window.read.getBoundingClientRect().top"
    before_px = page.evaluate(place_px)
    page.locator("#top [data-act=stage]").click()
    expect(page.locator("#stage")).to_be_visible()
    expect_still(page, place_px)
    assert page.evaluate(place_px) == pytest.approx(before_px, abs=2)


def test_a_picture_is_never_taller_than_what_can_be_seen_at_once(page: Page, studio: PageProcess) -> None:
    open_page(page, studio.url)
    page.get_by_role("combobox", name="Aspect ratio").click()
    page.get_by_role("option", name="9:16").click()
    paint(page, "draw a lighthouse")
    size = page.locator("#chat .frame").bounding_box()
    assert size is not None
    assert size["height"] < 0.7 * 860
    assert size["width"] / size["height"] == pytest.approx(9 / 16, abs=0.01)


def test_a_conversation_opens_at_its_newest_with_its_newest_picture_on_the_stage(
    page: Page, studio: PageProcess
) -> None:
    open_at(page, f"{studio.url}/?c={studio.sketch('draw a green whale', 'make it darker')}", 2)
    page.locator("#rail [data-act=new]").click()
    expect(page.locator(".welcome")).to_be_visible()
    page.locator("#top [data-act=stage]").click()
    expect(page.locator("#canvas")).to_contain_text("No picture is open")
    page.locator("#canvas [data-act=say]").click()
    expect(composer(page)).to_have_value(re.compile("fox"))
    page.locator("#rail [data-act=open]", has_text="green whale").click()
    expect(page.locator("#canvas .cv-pic")).to_have_attribute("data-handle", "#1b")
    assert page.evaluate(TO_END_PX) < 2
    # What is made while one looks at the canvas is what one sees then.
    paint(page, "make it grayscale")
    expect(page.locator("#canvas .cv-pic")).to_have_attribute("data-handle", "#1c")


def test_a_long_conversation_that_comes_with_the_page_stands_at_its_newest(page: Page, studio: PageProcess) -> None:
    api = f"{studio.url}/api/v1/conversations"
    conversation = page.request.post(api).json()["id"]
    changes = ("make it darker", "make it brighter", "make it warmer")
    wishes = ("draw a fox", *changes, "draw a lighthouse in a storm", *changes)
    for wish in wishes:
        assert page.request.post(f"{api}/{conversation}/turns", data={"text": wish}).ok
    # The second time the browser has the page's files, and the thread is there before its rows are laid out: they are
    # when they first come into sight, and the thread grows with each.
    for _ in range(2):
        page.goto(f"{studio.url}/?c={conversation}")
        expect_ready(page)
        expect(pictures(page)).to_have_count(len(wishes))
        expect_still(page, f"{LOG}.scrollHeight")
        assert page.evaluate(TO_END_PX) < 2


def test_on_a_phone_one_pane_is_seen_at_a_time_and_the_composer_is_in_reach(phone: Page, studio: PageProcess) -> None:
    open_at(phone, studio.sketched("draw a boat"), 1)
    for name in PANES:
        phone.locator(f"#tabs [data-tab={name}]").tap()
        expect(phone.locator(f"#{name}")).to_be_visible()
        expect(composer(phone)).to_be_hidden()
        shown = [one for one in PANES if phone.locator(f"#{one}").is_visible()]
        assert shown == [name]
    phone.get_by_role("button", name="Chats").tap()
    expect(phone.locator("#rail [data-act=open]").first).to_be_visible()
    phone.keyboard.press("Escape")
    phone.locator("#tabs .to-chat").tap()
    expect(composer(phone)).to_be_in_viewport()
    narrow = phone.locator("#tabs button").evaluate_all("all => all.filter(one => one.scrollWidth > one.clientWidth)")
    assert narrow == []
    assert phone.evaluate("document.documentElement.scrollWidth") <= 390


@pytest.mark.parametrize("size", [(390, 844), (1280, 700)], ids=["phone", "wide"])
@pytest.mark.parametrize("part", ["receipt", "sliders"])
def test_what_is_unfolded_is_in_sight_above_the_composer(
    browser: Browser, studio: PageProcess, size: tuple[int, int], part: str
) -> None:
    page = browser.new_context(viewport={"width": size[0], "height": size[1]}, locale="en-US").new_page()
    open_at(page, studio.sketched("draw a boat"), 1)
    details = page.locator(f"#chat details.{part}")
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
    page.context.close()

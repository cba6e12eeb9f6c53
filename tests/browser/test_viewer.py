"""An opened picture, the painter and a comparison over the whole window, by mouse, by keys and on a phone."""

from __future__ import annotations

from playwright.sync_api import Locator, Page, expect

from tests.page import PageProcess
from tests.page.hands import composer, expect_loaded, open_at, pictures, place_of
from tests.page.journeys import Called, step


def expect_full(page: Page, *, is_full: bool = True) -> None:
    expect(page.locator("html[data-full]")).to_have_count(int(is_full))


def expect_shown(page: Page, handle: str, place: str) -> None:
    expect(page.locator("#canvas .cv-pic")).to_have_attribute("data-handle", handle)
    expect(page.locator("#canvas .vw-at")).to_have_text(place)


def width_px(element: Locator) -> float:
    px: float = element.evaluate("element => element.getBoundingClientRect().width")
    return px


def test_a_picture_fills_the_window_and_is_walked_and_looked_at_closely(page: Page, whole_studio: PageProcess) -> None:
    called, picture, bar = Called(page), page.locator("#canvas .cv-pic"), Called(page.locator("#canvas .cv-bar"))
    with step("filled while another conversation is on its way, one without a picture, it is a stage again"):
        open_at(page, whole_studio.sketched("draw a red kite"), 1)
        pictures(page).click()
        page.route("**/act/page.open", lambda route: (picture.click(), route.continue_()), times=1)
        open_at(page, whole_studio.sketched("hello"), 0)
        expect(page.locator("#stage[role]")).to_have_count(0)
    open_at(page, whole_studio.sketched("draw a red kite", "make it darker", "make it sepia"), 3)
    pictures(page).nth(1).click()
    expect(bar.button("viewer.full")).to_be_visible()
    with step("a click on it fills the window, and the focus goes in"):
        beside_px = width_px(picture)
        picture.click()
        expect_full(page)
        assert width_px(picture) > beside_px
        assert page.locator("#stage").bounding_box() == {"x": 0, "y": 0, **(page.viewport_size or {})}
        expect(called.dialog("viewer.full")).to_be_visible()
        expect(bar.button("viewer.close")).to_be_focused()
        expect(page.locator("#center")).to_be_hidden()
        expect(page.locator("#canvas .strip")).to_be_hidden()
    with step("the arrow keys walk through the pictures, as far as there are any"):
        expect_shown(page, "#1b", "2 of 3")
        page.keyboard.press("ArrowRight")
        expect_shown(page, "#1c", "3 of 3")
        expect(bar.button("viewer.next")).to_be_disabled()
        page.keyboard.press("ArrowLeft")
        expect_shown(page, "#1b", "2 of 3")
        bar.button("viewer.previous").click()
        expect_shown(page, "#1", "1 of 3")
        expect_loaded(picture.locator("img"))
    with step("it is zoomed by keys, wheel, buttons and a double click, and moved"):
        fitted_px, own_px = width_px(picture), float(picture.get_attribute("data-width") or 0)
        picture.dblclick()
        expect(page.locator("#canvas").get_by_role("button", name="100 %")).to_be_visible()
        assert abs(width_px(picture) - own_px) < 1
        page.keyboard.press("0")
        assert abs(width_px(picture) - fitted_px) < 1
        page.mouse.move(300, 300)
        page.keyboard.down("Control")
        page.mouse.wheel(0, -200)
        page.keyboard.up("Control")
        page.wait_for_function(
            "px => document.querySelector('.cv-pic').getBoundingClientRect().width > px", arg=fitted_px
        )
        for _ in range(12):
            bar.button("viewer.zoom_in").click()
        expect(page.locator("#canvas").get_by_role("button", name="400 %")).to_be_visible()
        at = place_of(picture)
        page.mouse.move(600, 400)
        page.mouse.down()
        page.mouse.move(660, 430, steps=3)
        page.mouse.up()
        moved = place_of(picture)
        assert (moved["x"] - at["x"], moved["y"] - at["y"]) == (60, 30)
    with step("details stand beside it, and a comparison fills the window as well"):
        bar.button("viewer.details").click()
        expect(called.text("receipt.title").last).to_be_visible()
        bar.button("compare.action").click()
        expect(page.locator("#canvas .cmp")).to_be_visible()
        expect_full(page)
        bar.button("action.open").click()
        expect_shown(page, "#1", "1 of 3")
    with step("Escape, Back and its button lead back to where one was"):
        page.keyboard.press("Escape")
        expect_full(page, is_full=False)
        expect(page.locator("#stage")).to_be_visible()
        bar.button("viewer.full").click()
        expect_full(page)
        bar.button("viewer.close").click()
        expect_full(page, is_full=False)
        expect(bar.button("viewer.full")).to_be_focused()
        page.keyboard.press("f")
        expect_full(page)
        page.wait_for_function("history.state?.aivista?.layers.length === 1 && window.aivista.history.isSettled()")
        page.go_back()
        expect_full(page, is_full=False)
        expect(picture).to_be_visible()
    with step("a key that leads to what lies below leads there"):
        bar.button("viewer.full").click()
        expect_full(page)
        page.keyboard.press("ControlOrMeta+k")
        expect(page.locator("#rail-find")).to_be_focused()
        expect_full(page, is_full=False)
    with step("who writes types an F, and who paints paints where the pointer is, however large the picture"):
        composer(page).press("f")
        expect_full(page, is_full=False)
        called.button("painter.paint").click()
        canvas = page.locator("#pt-canvas")
        beside_px = width_px(canvas)
        page.keyboard.press("f")
        expect_full(page)
        page.wait_for_function("px => document.querySelector('#pt-canvas').offsetWidth > px", arg=beside_px)
        box = place_of(canvas)
        page.mouse.click(box["x"] + box["width"] * 0.25, box["y"] + box["height"] * 0.75)
        centre = canvas.evaluate("""canvas => {
          const { width, height } = canvas, data = canvas.getContext('2d').getImageData(0, 0, width, height).data;
          let count = 0, x = 0, y = 0;
          for (let at = 3; at < data.length; at += 4) if (data[at]) {
            count += 1; x += (at >> 2) % width; y += Math.floor((at >> 2) / width);
          }
          return [x / count / width, y / count / height];
        }""")
        assert abs(centre[0] - 0.25) < 0.01
        assert abs(centre[1] - 0.75) < 0.01
        called.button("painter.done").click()
        expect_full(page, is_full=False)
        expect(page.locator("#box textarea")).to_be_focused()


def a_picture_is_swiped_and_pinched_and_back_leads_out(phone: Page, studio: PageProcess) -> None:
    called, picture = Called(phone, "zh-CN"), phone.locator("#canvas .cv-pic")
    open_at(phone, studio.sketched("draw a red kite", "make it darker"), 2)
    pictures(phone).first.tap()
    expect(picture).to_have_attribute("data-handle", "#1")
    picture.tap()
    expect_full(phone)
    with step("everything in sight can be pressed with a finger"):
        boxes = phone.locator("#canvas :is(button, a):visible").evaluate_all(
            "all => all.map(one => one.getBoundingClientRect().toJSON())"
        )
        assert len(boxes) == 9
        assert all(one["width"] >= 44 and one["height"] >= 44 for one in boxes)
        assert all(one["left"] >= 0 and one["right"] <= 390 and one["bottom"] <= 844 for one in boxes)
    touch = phone.context.new_cdp_session(phone)

    def drag(*fingers: tuple[tuple[int, int], tuple[int, int]]) -> None:
        for at in range(5):
            points = [
                {"x": x + (to_x - x) * at / 4, "y": y + (to_y - y) * at / 4, "id": number}
                for number, ((x, y), (to_x, to_y)) in enumerate(fingers)
            ]
            touch.send("Input.dispatchTouchEvent", {"type": "touchMove" if at else "touchStart", "touchPoints": points})
        touch.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})

    with step("a swipe leads to the next one and back"):
        drag(((300, 400), (80, 410)))
        expect_shown(phone, "#1b", "2 / 2")
        drag(((80, 400), (300, 410)))
        expect_shown(phone, "#1", "1 / 2")
    with step("two fingers make it larger, and one moves it then"):
        fitted_px = width_px(picture)
        drag(((180, 400), (80, 400)), ((210, 400), (310, 400)))
        assert width_px(picture) > 2 * fitted_px
        drag(((300, 400), (80, 410)))
        expect_shown(phone, "#1", "1 / 2")
    with step("back leads to the picture in its panel, and from there to the conversation"):
        phone.wait_for_function("history.state?.aivista?.layers.length === 2 && window.aivista.history.isSettled()")
        phone.go_back()
        expect_full(phone, is_full=False)
        expect(called.button("viewer.full").first).to_be_visible()
        phone.wait_for_function("window.aivista.history.isSettled()")
        phone.go_back()
        expect(picture).to_be_hidden()

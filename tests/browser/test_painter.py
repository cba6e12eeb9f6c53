"""The painter on the stage: what is painted with mouse, finger and keys is what arrives at the server."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from urllib.parse import urljoin

import pytest
from PIL import Image, ImageChops
from playwright.sync_api import BrowserContext, CDPSession, Locator, Page, Request, expect

from agent import Expansion
from tests.page import PageProcess
from tests.page.hands import (
    attach,
    begin_anew,
    composer,
    expect_pictures,
    expect_rest,
    open_at,
    pictures,
    place_of,
    say,
)
from tests.page.journeys import Called, on, step
from tests.support.waiting import wait_until
from tests.wire_server import GeminiProcess
from webui.features.viewer.painter import Painted, read_painted


def open_painter(page: Page, studio: PageProcess, wish: str = "draw a boat, 4:3", mode: str = "paint") -> Locator:
    """Open a conversation with a picture, that on the stage and the painter on it; return its canvas."""
    open_at(page, studio.sketched(wish), 1)
    return paint_over(page, 0, mode)


def paint_over(page: Page, number: int = 0, mode: str = "paint") -> Locator:
    pictures(page).nth(number).click()
    expect(page.locator("#canvas .cv-bar b")).to_have_text(f"#{number + 1}")
    on(page, "#canvas").button(f"painter.{mode}").click()
    canvas = page.locator("#pt-canvas")
    expect(canvas).to_be_visible()
    return canvas


def spot(canvas: Locator, across: float, down: float) -> tuple[float, float]:
    """Return the point of the screen that shows this point of the picture, given in fractions."""
    box = place_of(canvas)
    return box["x"] + across * box["width"], box["y"] + down * box["height"]


def stroke(page: Page, *points: tuple[float, float]) -> None:
    """Draw a line with the mouse through points of the picture, given in fractions."""
    canvas = page.locator("#pt-canvas")
    expect(canvas).to_be_visible()
    page.mouse.move(*spot(canvas, *points[0]))
    page.mouse.down()
    for point in points[1:]:
        page.mouse.move(*spot(canvas, *point), steps=6)
    page.mouse.up()


def field(page: Page, name: str = "mask") -> str:
    value: str = page.locator(f"#{name}").input_value()
    return value


def expect_field(page: Page, value: str, name: str = "mask") -> None:
    expect(page.locator(f"#{name}")).to_have_value(value)


def tool(page: Page, key: str) -> Locator:
    return on(page, "#pt").button(f"painter.{key}")


def read(text: str, expand: str = "") -> Painted:
    """Return what the server reads in the fields."""
    painted = read_painted(text, expand, "")
    assert isinstance(painted, Painted)
    return painted


def mask(page: Page) -> Image.Image:
    """Return the mask in the field as the server reads it."""
    [painted] = read(field(page)).masks
    return Image.open(io.BytesIO(painted.image))


def is_white(image: Image.Image, across: float, down: float) -> bool:
    """Whether a point of the mask, given in fractions, is to change. The painter's mask knows no grey."""
    value = image.getpixel((round(across * (image.width - 1)), round(down * (image.height - 1))))
    assert value in (0, 255)
    return value == 255


def share(page: Page) -> Locator:
    return page.locator("#pt-share")


def expect_unpainted(page: Page) -> None:
    expect(share(page)).to_have_text("Nothing is painted yet")


def send(page: Page, words: str) -> tuple[str, str]:
    """Send the words; return what arrives in the painter's two fields, as the server is sent it."""

    def is_sent(request: Request) -> bool:
        return "/run/predict" in request.url and words in (request.post_data or "")

    with page.expect_request(is_sent) as sent:
        say(page, words)
    composed: dict[str, str] = json.loads(json.loads(sent.value.post_data or "")["data"][1])
    return composed["mask"], composed["expand"]


def touch(session: CDPSession, kind: str, *points: tuple[float, float]) -> None:
    spots = [{"x": x, "y": y, "id": number} for number, (x, y) in enumerate(points)]
    session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": spots})


def cdp(page: Page) -> CDPSession:
    context: BrowserContext = page.context
    return context.new_cdp_session(page)


def a_mask_survives_turns_failures_and_a_reload_and_arrives_at_the_server_as_it_was_painted(
    page: Page, folder: Path
) -> None:
    with step("nothing is painted at first"):
        expect_unpainted(page)
        expect(page.locator("#ctx .ctx")).to_have_count(0)
    with step("what is painted while a turn is at work outlasts its end"):
        say(page, "draw a whale")
        # Looked for whenever the page is drawn: a sketch is at work for less time than lies between two other looks.
        page.wait_for_function("document.querySelector('#chat .live')")
        stroke(page, (0.2, 0.5), (0.6, 0.5))
        expect(page.locator("#ctx")).to_contain_text(re.compile(r"Editing\s*#1\s*· mask \d+ %"))
        expect(share(page)).to_have_text(re.compile(r"^\d+ % painted$"))
        text = field(page)
        expect_pictures(page, 2)
        expect(page.locator("#ctx")).to_contain_text(re.compile(r"#1\s*· mask"))
        assert field(page) == text
        assert is_white(mask(page), 0.4, 0.5)
    with step("so does it when another picture is on the stage, and when it is left"):
        pictures(page).nth(1).click()
        expect(page.locator("#canvas .cv-bar b")).to_have_text("#2")
        expect(page.locator("#pt-canvas")).to_be_hidden()
        assert field(page) == text
        for _ in range(2):
            paint_over(page, 0)
            expect(share(page)).to_have_text(re.compile("painted$"))
            tool(page, "done").click()
        paint_over(page, 0)
    with step("it arrives at the server"):
        arrived, expand = send(page, "make it darker")
        assert (arrived, expand) == (text, "")
        [painted] = read(arrived).masks
        assert (painted.handle, painted.feather_px) == ("#1", 8)
        with Image.open(io.BytesIO(painted.image)) as image:
            natural = page.locator(".pt-pic img").evaluate("image => [image.naturalWidth, image.naturalHeight]")
            assert max(image.size) <= 1024
            assert image.width / image.height == pytest.approx(natural[0] / natural[1], rel=0.01)
            assert [is_white(image, *point) for point in ((0.2, 0.5), (0.4, 0.5), (0.6, 0.5))] == [True] * 3
            assert not any(is_white(image, *point) for point in ((0.4, 0.3), (0.4, 0.7), (0.1, 0.5), (0.75, 0.5)))
    with step("it is kept for another try"):
        expect_field(page, "")
        expect_unpainted(page)
        expect(page.locator("#chat .refs .tag").last).to_have_text("#1")
        expect_rest(page)
        tool(page, "last").click()
        expect(page.locator("#ctx")).to_contain_text("· mask")
        assert is_white(mask(page), 0.4, 0.5)
    with step("a turn that fails gives it back"):
        text = field(page)
        fake = folder / "holiday.png"
        fake.write_bytes(b"this is no picture")
        attach(page, fake)
        arrived, _ = send(page, "make it brighter")
        assert arrived == text
        expect(page.locator("#chat [role=alert]")).to_contain_text("holiday.png")
        expect_rest(page)
        expect(composer(page)).to_have_value("make it brighter")
        expect_field(page, text)
        expect(page.locator("#ctx")).to_contain_text(re.compile(r"#1\s*· mask"))
        expect(share(page)).to_have_text(re.compile("painted$"))
    with step("after a reload each picture still has its last mask"):
        tool(page, "clear").click()
        expect(page.locator("#ctx")).not_to_contain_text("mask")
        stroke(page, (0.3, 0.3), (0.3, 0.6))
        expect(page.locator("#ctx")).to_contain_text("· mask")
        composer(page).fill("")
        page.reload()
        expect(pictures(page)).to_have_count(3)
        assert field(page) == ""
        paint_over(page, 1)
        expect(tool(page, "last")).to_be_disabled()
        tool(page, "done").click()
        paint_over(page, 0)
        tool(page, "last").click()
        expect(page.locator("#ctx")).to_contain_text(re.compile(r"#1\s*· mask"))
        assert is_white(mask(page), 0.3, 0.45)
    with step("what no longer fits is cleared: by the mark of another, by unmarking, by a new conversation"):
        on(page, "#chat").button("action.edit").nth(1).click()
        expect(page.locator("#ctx .ctx")).to_contain_text("#2")
        expect_field(page, "")
        expect(page.locator("#ctx")).not_to_contain_text("mask")
        expect_unpainted(page)
        tool(page, "last").click()
        expect(page.locator("#ctx")).to_contain_text(re.compile(r"#1\s*· mask"))
        page.get_by_role("button", name="Remove #1").click()
        expect(page.locator("#ctx .ctx")).to_have_count(0)
        expect_field(page, "")
        stroke(page, (0.3, 0.3), (0.6, 0.6))
        expect(page.locator("#ctx")).to_contain_text("· mask")
        begin_anew(page)
        expect(page.locator(".welcome")).to_be_visible()
        expect_field(page, "")
        expect(page.locator("#pt-canvas")).to_be_hidden()
        expect(page.locator("#ctx .ctx")).to_have_count(0)
    with step("a field that is not the painter's is refused in a sentence, and the words stay"):
        page.locator("#mask").evaluate(
            "(input, value) => { input.value = value; }", '{"handle": "#1", "png": "R0lGODlh"}'
        )
        say(page, "make it darker")
        expect(page.locator("#chat [role=alert]")).to_contain_text("could not be read")
        expect(composer(page)).to_have_value("make it darker")
        expect(page.locator("#chat .user")).to_have_count(0)


def a_picture_of_the_thread_is_painted_over_by_one_click(page: Page, studio: PageProcess) -> None:
    open_at(page, studio.sketched("draw a red fox in the snow", "make it darker"), 2)
    Called(page.locator("#chat .acts").first).button("action.paint_over").click()
    expect(page.locator("#pt-canvas")).to_be_visible()
    expect(page.locator("#canvas .cv-pic")).to_have_attribute("data-handle", "#1")


def test_a_finger_paints_and_two_move_and_pinch_without_painting(phone: Page, studio: PageProcess) -> None:
    session, canvas = cdp(phone), open_painter(phone, studio, "画一艘船，3:4")
    with step("a finger paints"):
        touch(session, "touchStart", spot(canvas, 0.3, 0.3))
        for part in range(1, 9):
            touch(session, "touchMove", spot(canvas, 0.3, 0.3 + part * 0.05))
        touch(session, "touchEnd")
        expect(share(phone)).to_have_text(re.compile(r"^已涂抹 \d+ %$"))
        image = mask(phone)
        assert image.height > image.width
        assert [is_white(image, 0.3, down) for down in (0.3, 0.5, 0.7)] == [True] * 3
        assert not is_white(image, 0.7, 0.5)
    with step("two move and pinch"):
        before, width = field(phone), place_of(canvas)["width"]
        middle = spot(canvas, 0.5, 0.5)
        touch(session, "touchStart", middle)
        touch(session, "touchStart", middle, (middle[0] + 40, middle[1]))
        for part in range(1, 9):
            touch(session, "touchMove", (middle[0] - part * 8, middle[1]), (middle[0] + 40 + part * 8, middle[1]))
        touch(session, "touchEnd")
        assert place_of(canvas)["width"] > 2 * width
        assert field(phone) == before
    with step("everything has room for a finger, and leaving goes back to the words"):
        assert phone.evaluate("document.documentElement.scrollWidth") <= 390
        small = phone.locator("#pt button:visible").evaluate_all(
            "all => all.map(one => one.getBoundingClientRect()).filter(box => box.width < 40 || box.height < 40).length"
        )
        assert small == 0
        on(phone, "#pt").button("painter.done").click()
        expect(composer(phone)).to_be_focused()
        expect(phone.locator("#ctx")).to_contain_text("蒙版")


def paint_with_keys(page: Page) -> None:
    """Open the painter with the keyboard alone, paint and leave."""
    page.locator("#chat .frame").first.focus()
    page.keyboard.press("Enter")
    opener = on(page, "#canvas").button("painter.paint")
    expect(opener).to_be_visible()
    opener.focus()
    page.keyboard.press("Enter")
    canvas = page.locator("#pt-canvas")
    expect(canvas).to_be_focused()
    expect(page.locator("#pt-help")).to_have_css("opacity", "1")
    for _ in range(5):
        page.keyboard.press("Shift+ArrowLeft")
    expect(page.locator(".pt-ring")).to_have_css("opacity", "1")
    page.keyboard.down(" ")
    for _ in range(5):
        page.keyboard.press("Shift+ArrowRight")
    page.keyboard.up(" ")
    expect(share(page)).to_have_text(re.compile("painted$"))
    image = mask(page)
    left = 0.5 - 5 * 40 / 1024 * max(image.size) / image.width
    assert [is_white(image, across, 0.5) for across in (left, (left + 0.5) / 2, 0.5)] == [True] * 3
    assert not is_white(image, left - 0.1, 0.5)
    painted = field(page)
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Shift+ArrowDown")
    page.keyboard.press("Shift+ArrowDown")
    page.keyboard.press("Enter")
    assert is_white(mask(page), 0.5, 0.5 + (8 + 80) / 1024 * max(image.size) / image.height)
    page.keyboard.press("Control+z")
    assert field(page) == painted
    page.keyboard.press("Control+Shift+z")
    assert field(page) != painted
    page.keyboard.press("Escape")
    expect(canvas).to_be_hidden()
    expect(composer(page)).to_be_focused()
    assert field(page) != ""


def paint_several_areas(page: Page) -> None:
    """The box and the eraser make several areas with hard edges."""
    tool(page, "box").click()
    stroke(page, (0.1, 0.1), (0.5, 0.6))
    stroke(page, (0.9, 0.9), (0.7, 0.7))
    image = mask(page)
    assert [is_white(image, *point) for point in ((0.12, 0.12), (0.48, 0.58), (0.8, 0.8))] == [True] * 3
    assert not is_white(image, 0.6, 0.65)
    assert sum(image.histogram()[1:255]) == 0
    tool(page, "eraser").click()
    stroke(page, (0.3, 0.05), (0.3, 0.65))
    image = mask(page)
    assert [is_white(image, across, 0.3) for across in (0.15, 0.3, 0.45)] == [True, False, True]


def undo_and_redo(page: Page) -> None:
    """What is painted is undone and redone, inverted and cleared."""
    expect(tool(page, "undo")).to_be_disabled()
    stroke(page, (0.2, 0.2), (0.4, 0.2))
    first = field(page)
    stroke(page, (0.2, 0.8), (0.4, 0.8))
    assert [is_white(mask(page), 0.3, down) for down in (0.2, 0.8)] == [True, True]
    tool(page, "undo").click()
    assert field(page) == first
    tool(page, "redo").click()
    assert is_white(mask(page), 0.3, 0.8)
    tool(page, "invert").click()
    image = mask(page)
    assert [is_white(image, 0.3, 0.2), is_white(image, 0.6, 0.5), is_white(image, 0, 0)] == [False, True, True]
    tool(page, "clear").click()
    assert field(page) == ""
    expect_unpainted(page)
    expect(page.locator("#ctx .ctx")).to_have_count(0)
    for _ in range(4):
        tool(page, "undo").click()
    assert field(page) == ""
    expect(tool(page, "undo")).to_be_disabled()


ALPHA = """canvas => {
  const { width, height } = canvas, data = canvas.getContext("2d").getImageData(0, 0, width, height).data;
  return [0.5, 0.3].map(x => data[4 * (Math.round(height / 2) * width + Math.round(width * x)) + 3])
    .concat(data[4 * (Math.round(height / 2) * width + Math.round(width * 0.3) + 3) + 3]);
}"""


def box_with_keys_and_a_soft_edge(page: Page, canvas: Locator) -> None:
    """A box takes two corners with the keys; the soft edge is shown, and sent beside a hard mask."""
    tool(page, "box").click()
    canvas.focus()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press(" ")
    for _ in range(3):
        page.keyboard.press("Shift+ArrowRight")
        page.keyboard.press("Shift+ArrowDown")
    page.keyboard.press(" ")
    box = mask(page).getbbox()
    assert box is not None
    side = 3 * 40 / 1024 * max(mask(page).size)
    assert [box[2] - box[0], box[3] - box[1]] == pytest.approx([side, side], abs=2)
    tool(page, "clear").click()
    stroke(page, (0.3, 0.2), (0.7, 0.8))
    shown_hard = canvas.evaluate(ALPHA)
    hard = mask(page).tobytes()
    on(page, "#pt").slider("painter.feather").fill("32")
    expect(page.locator("#pt-feather + output")).to_have_text("32")
    [sent] = read(field(page)).masks
    assert sent.feather_px == 32
    assert mask(page).tobytes() == hard
    shown_soft = canvas.evaluate(ALPHA)
    assert shown_soft[0] == shown_hard[0] == 255
    assert 0 < shown_soft[2] < shown_hard[2] or shown_soft[2] == round(255 * 0.35)
    assert float(canvas.evaluate("canvas => getComputedStyle(canvas).opacity")) == pytest.approx(0.56)


def load_masks(page: Page, folder: Path) -> None:
    """A mask is loaded and scaled, or refused in a sentence."""
    size = page.locator("#pt-pixels").inner_text().split("×")
    width, height = int(size[0]), int(size[1])
    half = Image.new("L", (width // 2, height // 2))
    half.paste(255, (0, 0, width // 4, height // 2))
    chosen = page.locator("#pt-file")
    half.save(folder / "half.png")
    chosen.set_input_files(folder / "half.png")
    expect(share(page)).to_have_text("50 % painted")
    expect(page.locator("#pt-said")).to_have_text("Mask loaded.")
    assert [is_white(mask(page), across, 0.5) for across in (0.25, 0.75)] == [True, False]
    loaded, note = field(page), page.locator("#pt-note")
    Image.new("L", (300, 300), 255).save(folder / "square.png")
    (folder / "words.png").write_text("no picture")
    Image.new("L", (width, height), 0).save(folder / "black.png")
    for name, said in (
        ("square.png", f"The mask is 300×300 and the picture {width}×{height}"),
        ("words.png", "cannot be read as an image"),
        ("black.png", "This file has no white areas"),
    ):
        chosen.set_input_files(folder / name)
        expect(note).to_contain_text(said)
    assert field(page) == loaded
    tool(page, "undo").click()
    expect_unpainted(page)
    expect(note).to_be_hidden()


def paint_zoomed_and_moved(page: Page, canvas: Locator) -> None:
    """The brush still paints where it is."""
    width = place_of(canvas)["width"]
    page.mouse.move(*spot(canvas, 0.25, 0.25))
    page.mouse.wheel(0, -700)
    zoomed = place_of(canvas)["width"]
    assert zoomed > 2 * width
    stroke(page, (0.25, 0.25), (0.25, 0.25))
    bounds = mask(page).getbbox()
    assert bounds is not None
    image = mask(page)
    middle = [(bounds[0] + bounds[2]) / 2 / image.width, (bounds[1] + bounds[3]) / 2 / image.height]
    assert middle == pytest.approx([0.25, 0.25], abs=0.01)
    painted, at = field(page), place_of(canvas)
    page.keyboard.down(" ")
    start = spot(canvas, 0.25, 0.25)
    page.mouse.move(*start)
    page.mouse.down()
    page.mouse.move(start[0] + 60, start[1] + 40, steps=4)
    page.mouse.up()
    page.keyboard.up(" ")
    moved = place_of(canvas)
    assert [moved["x"] - at["x"], moved["y"] - at["y"]] == pytest.approx([60, 40], abs=1)
    tool(page, "zoom_in").focus()
    page.keyboard.press("ArrowRight")
    assert place_of(canvas)["x"] == pytest.approx(moved["x"] - 48, abs=1)
    tool(page, "zoom_in").click()
    assert place_of(canvas)["width"] == pytest.approx(zoomed * 1.5, rel=0.01)
    tool(page, "zoom_out").click()
    tool(page, "fit").click()
    assert place_of(canvas)["width"] == pytest.approx(width, abs=1)
    assert field(page) == painted


PLACES = """['#rail', '#center', '#stage', '#dock'].map(name => {
  const box = document.querySelector(name).getBoundingClientRect();
  return [box.x, box.y, box.width, box.height];
})"""


def open_and_leave(page: Page, canvas: Locator) -> None:
    """Opening and leaving the painter moves nothing else."""

    def places() -> object:
        return page.evaluate(PLACES)

    before = places()
    tool(page, "mode_expand").click()
    assert places() == before
    canvas.focus()
    page.keyboard.press("Escape")
    expect(page.locator("#canvas .cv-pic")).to_be_visible()
    expect(on(page, "#canvas").button("painter.paint")).to_be_focused()
    assert places() == before
    page.keyboard.press("Escape")
    expect(page.locator("#canvas .cv-pic")).to_be_hidden()


def size_the_brush(page: Page, canvas: Locator) -> None:
    """Brackets are the size of the brush."""
    stroke(page, (0.5, 0.5), (0.5, 0.5))
    canvas.focus()
    narrow = mask(page).getbbox()
    for _ in range(6):
        page.keyboard.press("]")
    stroke(page, (0.5, 0.5), (0.5, 0.5))
    wide = mask(page).getbbox()
    assert narrow is not None
    assert wide is not None
    grown = 6 * 8 / 1024 * max(mask(page).size)
    assert wide[2] - wide[0] == pytest.approx(narrow[2] - narrow[0] + grown, abs=8)
    for _ in range(40):
        page.keyboard.press("[")
    expect(page.locator("#pt-size")).to_have_value("4")


def every_tool_of_the_painter_does_its_part_by_mouse_and_by_keys(page: Page, canvas: Locator, folder: Path) -> None:
    with step("opening and leaving moves nothing else"):
        open_and_leave(page, canvas)
    with step("what is painted is undone and redone, inverted and cleared"):
        paint_over(page)
        undo_and_redo(page)
    with step("box and eraser"):
        paint_several_areas(page)
    with step("a mask is loaded, scaled or refused"):
        tool(page, "clear").click()
        load_masks(page, folder)
    with step("zoomed and moved"):
        tool(page, "brush").click()
        paint_zoomed_and_moved(page, canvas)
    with step("the keyboard alone opens, paints and leaves"):
        tool(page, "clear").click()
        tool(page, "done").click()
        paint_with_keys(page)
    with step("brackets are the size of the brush"):
        paint_over(page)
        tool(page, "clear").click()
        size_the_brush(page, canvas)
    with step("a box with the keys, and the soft edge"):
        tool(page, "clear").click()
        box_with_keys_and_a_soft_edge(page, canvas)
    with step("what was cleared is not sent"):
        tool(page, "clear").click()
        arrived, _ = send(page, "make it brighter")
        assert arrived == ""
        expect_pictures(page, 2)


def test_every_tool_of_the_painter_does_its_part_and_a_mask_arrives_as_it_was_painted_whatever_comes_between(
    page: Page, studio: PageProcess, tmp_path: Path
) -> None:
    every_tool_of_the_painter_does_its_part_by_mouse_and_by_keys(page, open_painter(page, studio), tmp_path)
    # The painter keeps its tools as they were.
    page.goto("about:blank")
    open_painter(page, studio)
    a_mask_survives_turns_failures_and_a_reload_and_arrives_at_the_server_as_it_was_painted(page, tmp_path)


def expansion(page: Page) -> Expansion:
    grown = read("", field(page, "expand")).expand
    assert grown is not None
    return grown


def test_a_picture_grows_by_a_ratio_by_its_edges_and_by_numbers_but_never_by_nothing(
    page: Page, studio: PageProcess, tmp_path: Path
) -> None:
    open_painter(page, studio)
    ratios = page.locator("#pt-ratio")
    with step("a ratio is reached evenly, and the mask gives way"):
        stroke(page, (0.3, 0.3), (0.6, 0.6))
        tool(page, "mode_expand").click()
        ratios.select_option("21:9")
        grown = expansion(page)
        assert field(page) == ""
        assert grown.left == grown.right > 0
        size = page.locator("#pt-pixels").inner_text().split("×")
        ratio = int(size[0]) / int(size[1])
        assert ratio * (1 + grown.left + grown.right) == pytest.approx(21 / 9, rel=0.001)
        expect(share(page)).to_have_text(re.compile(r"^\d+×\d+ afterwards$"))
        ratios.select_option("9:16")
        grown = expansion(page)
        assert grown.left == grown.right == 0
        assert ratio / (1 + grown.top + grown.bottom) == pytest.approx(9 / 16, rel=0.001)
    with step("it starts over, and the mask is undone to"):
        tool(page, "reset").click()
        assert field(page, "expand") == ""
        expect(page.locator("#ctx .ctx")).to_have_count(0)
        tool(page, "mode_mask").click()
        expect_unpainted(page)
        tool(page, "undo").click()
        assert is_white(mask(page), 0.45, 0.45)
        tool(page, "done").click()
    with step("an edge is dragged outwards"):
        paint_over(page, 0, "expand")
        picture, edge = place_of(page.locator(".pt-pic")), place_of(page.locator(".pt-edge[data-edge=right]"))
        x, y = edge["x"] + edge["width"] / 2, edge["y"] + edge["height"] / 2
        page.mouse.move(x, y)
        page.mouse.down()
        page.mouse.move(x + picture["width"] / 10, y + 30, steps=5)
        dragged = place_of(page.locator(".pt-pic"))
        page.mouse.up()
        assert dragged == picture
        grown = expansion(page)
        assert grown.handle == "#1"
        assert grown.right == pytest.approx(0.1, abs=0.01)
        assert (grown.left, grown.top, grown.bottom) == (0, 0, 0)
        expect(page.locator("#ctx")).to_contain_text(re.compile(r"Expanding\s*#1"))
    with step("another is typed, and both arrive at the server; a turn that fails gives them back"):
        top = page.locator("#pt").get_by_label("Top")
        top.fill("25")
        top.press("Enter")
        assert expansion(page).top == 0.25
        text = field(page, "expand")
        (tmp_path / "holiday.png").write_bytes(b"this is no picture")
        attach(page, tmp_path / "holiday.png")
        _, arrived = send(page, "more sea and sky")
        assert read("", arrived).expand == Expansion("#1", top=0.25, right=grown.right)
        expect(page.locator("#chat [role=alert]")).to_contain_text("holiday.png")
        expect_rest(page)
        expect_field(page, text, "expand")
        on(page, "#box").button("builtin.remove").click()
        tool(page, "reset").click()
        expect_field(page, "", "expand")
    with step("words are not sent while it is to grow by nothing"):
        said = page.locator("#chat .user").count()
        composer(page).fill("more sea and sky")
        composer(page).press("Enter")
        expect(page.locator("#pt-note")).to_contain_text("would not get larger")
        expect(composer(page)).to_have_value("more sea and sky")
        expect(page.locator("#turn-now[data-sending]")).to_have_count(0)
        expect(page.locator("#chat .user")).to_have_count(said)
        expect(ratios).to_be_focused()
    with step("they are once it grows, and what they were for is over then"):
        ratios.select_option("21:9")
        _, arrived = send(page, "extend it")
        assert read("", arrived).expand is not None
        expect_field(page, "", "expand")
        # One that painted nothing would be offered again.
        expect_pictures(page, 2)
        expect(ratios).to_have_value("")
        expect(page.locator("#pt").get_by_label("Left")).to_have_value("0")


def opened(page: Page, studio: PageProcess, number: int, language: str = "en") -> Image.Image:
    """Return the pixels of a picture of the thread, as they are downloaded."""
    link = Called(page.locator("figure.pic").nth(number), language).link("action.download")
    address = link.get_attribute("href")
    assert address is not None
    # Playwright keeps its connections: the server may end one in the moment in which it is used again.
    answer = page.request.get(urljoin(f"{studio.url}/", address), max_retries=2)
    assert answer.ok
    return Image.open(io.BytesIO(answer.body())).convert("RGB")


def changed(before: Image.Image, after: Image.Image) -> tuple[float, float, float, float]:
    """Return the box in which two pictures of one size differ, in fractions."""
    assert before.size == after.size
    box = ImageChops.difference(before, after).convert("L").point(lambda level: 255 if level else 0).getbbox()
    assert box is not None
    width, height = before.size
    return box[0] / width, box[1] / height, box[2] / width, box[3] / height


def test_several_pictures_are_painted_over_and_what_is_painted_over_changes_and_nothing_else(
    page: Page, studio: PageProcess
) -> None:
    open_at(page, studio.sketched("draw a boat, 4:3", "draw a whale, 4:3", "draw a fox, 4:3"), 3)
    also, editing = page.locator("#ctx-more"), page.locator("#ctx .ctx")
    with step("each picture that is painted over joins the others"):
        for number in range(3):
            paint_over(page, number)
            stroke(page, (0.3, 0.5), (0.6, 0.5))
            expect(editing).to_contain_text(re.compile(rf"#{number + 1}\s*· mask"))
            expect(also.locator(".ctx")).to_have_count(number)
        expect(also).to_contain_text(re.compile(r"Also\s*#1\s*· mask \d+ %\s*#2\s*· mask \d+ %"))
    with step("one is left as it is, another is gone back to, and one leaves with its cross"):
        Called(also, "en").button("painter.give_up", handle="#1").click()
        expect(also.locator("b")).to_have_text(["#2"])
        paint_over(page, 1)
        expect(page.locator("#pt-share")).to_have_text(re.compile(r"\d+ % painted"))
        editing.get_by_role("button").click()
        expect(editing).to_contain_text(re.compile(r"#2\s*· mask"))
        expect(also).to_have_count(0)
        paint_over(page, 0)
        stroke(page, (0.3, 0.5), (0.6, 0.5))
        expect(also.locator("b")).to_have_text(["#2"])
    with step("they go together, and each changes under its stroke and nowhere else"):
        say(page, "make it blue")
        expect_pictures(page, 5)
        expect(also).to_have_count(0)
        told = page.locator("figure.pic").get_by_text("pixels changed outside the mask")
        expect(told).to_have_count(2)
        expect(told.nth(0)).to_contain_text("0 of")
        expect(told.nth(1)).to_contain_text("0 of")
        # They are painted at once: either may be the first to come.
        edits = page.locator("figure.pic [data-act=edit]").evaluate_all("all => all.map(one => one.dataset.arg)")
        for before, after in ((0, edits.index("#1b")), (1, edits.index("#2b"))):
            left, top, right, bottom = changed(opened(page, studio, before), opened(page, studio, after))
            assert 0.15 < left < 0.4 < 0.5 < right < 0.75
            assert 0.3 < top < 0.5 < bottom < 0.7


def test_when_the_agent_asks_back_the_mask_stays_for_the_answer(
    page: Page, gemini: GeminiProcess, gemini_studio: PageProcess
) -> None:
    edit = {"kind": "Call", "name": "generate_image", "args": {"prompt": "A red sail", "confidence": 0.9}}
    gemini.control(
        on_text=[{"kind": "Text", "text": "Which colour shall it be?"}, edit], on_image=[{"kind": "PictureAnswer"}]
    )
    open_painter(page, gemini_studio)
    stroke(page, (0.3, 0.5), (0.6, 0.5))
    painted = page.locator("#mask").input_value()
    say(page, "change the sail")
    expect(page.locator("#chat")).to_contain_text("Which colour shall it be?")
    expect_rest(page)
    expect(composer(page)).to_have_value("")
    expect(page.locator("#mask")).to_have_value(painted)
    expect(page.locator("#ctx")).to_contain_text("· mask")
    say(page, "red, please")
    expect(page.locator("#mask")).to_have_value("")
    # Twice in the history that the second answer is given.
    wait_until(lambda: json.dumps(gemini.read("requests")).count("painted a mask over #1") >= 3)
    expect_rest(page)

"""A picture that was never sent is dropped onto the stage, painted over and sent: it changes there and nowhere else."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageChops
from playwright.sync_api import Locator, Page, Route, expect

from tests.browser.test_painter import cdp, expansion, field, mask, opened, send, share, spot, stroke, touch
from tests.page import PageProcess
from tests.page.hands import (
    Held,
    attach,
    begin_anew,
    composer,
    drop,
    expect_pictures,
    expect_ready,
    expect_rest,
    open_more,
    open_page,
    place_of,
    say,
)
from tests.page.journeys import Called, on, step
from tests.support.masking_scenes import photo as photograph
from tests.support.pixels import encoded
from tests.support.waiting import wait_until

UPLOADS, JOIN = "**/gradio_api/upload*", "**/gradio_api/run/predict*"
FILES = "images => images.map(image => decodeURIComponent(image.src).split('/').pop())"

# The page gives up a file of which it saw no sign for so long. It looks when something in the composer changes.
LATER = """async ms => {
  const plain = performance.now.bind(performance), box = document.querySelector("#box");
  for (const past of [0, ms]) {
    performance.now = () => plain() + past;
    box.appendChild(document.createComment("")).remove();
    await new Promise(done => setTimeout(done));
  }
}"""


def picture(name: str = "coffee", width: int = 640, height: int = 520) -> Image.Image:
    return Image.fromarray(np.asarray(photograph(name, width, height)))


@cache
def png(name: str = "coffee", width: int = 640, height: int = 520) -> bytes:
    """Return a photo as a file."""
    return encoded(picture(name, width, height))


def open_stage(page: Page, studio: PageProcess | None = None) -> None:
    """Begin a new conversation, in a new page of the studio or in this one, and show its empty stage."""
    if studio is None:
        begin_anew(page)
    else:
        open_page(page, studio.url)
    Called(page).button("top.stage").click()
    expect(page.locator("#canvas .empty")).to_be_visible()


def drop_on_stage(page: Page, count: int = 1, *files: Held) -> Locator:
    """Drop the files onto the stage; return the painter's canvas once so many files are attached."""
    drop(page.locator("#canvas"), *(files or (Held("garden.png", png()),)))
    canvas = page.locator("#pt-canvas")
    expect(canvas).to_be_focused()
    expect(thumbnails(page)).to_have_count(count)
    return canvas


def thumbnails(page: Page) -> Locator:
    return page.locator("#box .thumbnail-item img")


def attached(page: Page) -> list[str]:
    """Return the names of the files that wait in the composer, in order."""
    names: list[str] = thumbnails(page).evaluate_all(FILES)
    return names


def chip(page: Page) -> Locator:
    return page.locator("#ctx-new")


def handle(page: Page, name: str = "mask") -> str:
    return str(json.loads(field(page, name))["handle"])


def expect_handle(page: Page, number: int) -> None:
    """Wait until the mask names the Nth of the files."""
    expect_field(page, re.compile(rf'^{{"handle":"upload:{number}",'))


def expect_field(page: Page, value: str | re.Pattern[str]) -> None:
    expect(page.locator("#mask")).to_have_value(value)


def expect_painted(page: Page) -> None:
    """Wait for the picture of a turn, and for its end: nothing but what was painted over has changed."""
    expect_pictures(page, 1)
    expect(on(page, "figure.pic").text("edit.exact")).to_contain_text("0 of")


def expect_changed_under_the_stroke(after: Image.Image) -> tuple[float, float]:
    """Hold that the photo changed where `across` has painted, and there alone; return its top and its bottom."""
    difference = ImageChops.difference(picture().convert("RGB"), after).convert("L")
    box = difference.point(lambda level: 255 if level else 0).getbbox()
    assert box is not None
    assert 0.15 < box[0] / 640 < 0.4 < 0.5 < box[2] / 640 < 0.75
    return box[1] / 520, box[3] / 520


def across(page: Page) -> None:
    stroke(page, (0.3, 0.5), (0.6, 0.5))


NEW = re.compile(r"^New picture\s*· paint over it\s*$")
EDITED = re.compile(r"^Editing\s*New picture\s*· mask \d+ %\s*$")


def photos_are_painted_over_or_made_wider_and_nothing_outside_the_mask_changes(
    page: Page, studio: PageProcess, folder: Path
) -> None:
    called = Called(page)
    painter = on(page, "#pt")
    with step("a photo is dropped and painted over"):
        canvas = drop_on_stage(page)
        expect(page.locator("#pt-handle")).to_have_text(called.words("painter.new_picture"))
        expect(page.locator("#pt-pixels")).to_have_text("640×520")
        expect(page.locator("#pt-said")).to_have_text(called.words("painter.added"))
        assert canvas.evaluate("canvas => [canvas.width, canvas.height]") == [640, 520]
        expect(chip(page)).to_have_text(NEW)
        across(page)
        expect(chip(page)).to_have_text(EDITED)
        assert mask(page).size == (640, 520)
    with step("it changes there and nowhere else, and the composer is empty again"):
        arrived, _ = send(page, "make it blue")
        assert json.loads(arrived)["handle"] == "upload:1"
        expect_painted(page)
        expect(page.locator("#chat .refs .tag")).to_have_text(["#1"])
        top, bottom = expect_changed_under_the_stroke(opened(page, studio, 0))
        assert 0.3 < top < 0.5 < bottom < 0.7
        expect(composer(page)).to_have_value("")
        expect(page.locator("#box .thumbnail-item")).to_have_count(0)
        expect_field(page, "")
        expect(chip(page)).to_have_count(0)
        expect(page.locator("#pt-canvas")).to_be_hidden()
    with step("the edges of another are drawn outwards"):
        open_stage(page)
        drop_on_stage(page, 1, Held("garden.png", png("coffee", 320, 260)))
        painter.button("painter.mode_expand").click()
        right = page.locator("#pt").get_by_label(called.words("painter.right"))
        right.fill("50")
        right.press("Enter")
        assert (expansion(page).handle, expansion(page).right) == ("upload:1", 0.5)
        expect(chip(page)).to_have_text(re.compile(r"^Expanding\s*New picture\s*$"))
        expect(share(page)).to_have_text("480×260 afterwards")
        say(page, "make it wider")
        expect_pictures(page, 1)
        assert opened(page, studio, 0).size == (480, 260)
    with step("of several files all pictures are attached and the first is painted over, upright"):
        open_stage(page)
        (folder / "a.png").write_bytes(png("chelsea"))
        attach(page, folder / "a.png")
        exif = Image.Exif()
        exif[0x0112] = 6
        lying = Held("lying.jpg", encoded(picture(), "JPEG", exif=exif), "image/jpeg")
        drop_on_stage(page, 3, lying, Held("notes.txt", b"words", "text/plain"), Held("b.png", png("chelsea")))
        names = attached(page)
        assert re.fullmatch(r"lying-[a-z0-9]{4}\.jpg", names[1])
        assert [names[0], names[2]] == ["a.png", "b.png"]
        expect(page.locator("#pt-pixels")).to_have_text("520×640")
        across(page)
        assert mask(page).size == (520, 640)
        assert handle(page) == "upload:2"
        arrived, _ = send(page, "make it blue")
        assert json.loads(arrived)["handle"] == "upload:2"
        expect_painted(page)
        expect(page.locator("#chat .refs .tag")).to_have_text(["#1", "#2", "#3"])
        expect(page.locator("#chat .pic .tag").first).to_contain_text("#2b")
        assert opened(page, studio, 0).size == (520, 640)
    with step("it offers its mask once it has a handle"):
        page.locator("#chat .refs").get_by_role("button", name="#2").click()
        expect(page.locator("#canvas .cv-bar b")).to_have_text("#2")
        on(page, "#canvas").button("painter.paint").click()
        expect(share(page)).to_have_text(called.words("painter.nothing"))
        painter.button("painter.last").click()
        expect(page.locator("#ctx")).to_contain_text(re.compile(r"#2\s*· mask"))
        assert handle(page) == "#2"
        assert mask(page).getpixel((234, 320)) == 255


def what_cannot_be_shown_is_only_attached_and_a_new_conversation_forgets_the_mask_a_reload_the_file_too(
    page: Page,
) -> None:
    with step("what the browser cannot show is only attached"):
        drop(page.locator("#canvas"), Held("IMG_0001.HEIC", b"\0\0\0\x18ftypheic" + bytes(64), "image/heic"))
        expect(page.locator("#pt-said")).to_contain_text("Send it first, then you can paint over it")
        expect(page.locator("#box .thumbnail-item")).to_have_count(1)
        expect(page.locator("#canvas .empty")).to_be_visible()
        expect(chip(page)).to_have_count(0)
        assert page.locator("#pt-canvas").is_hidden()
        on(page, "#box").button("builtin.remove").click()
        expect(page.locator("#box .thumbnail-item")).to_have_count(0)
    with step("the mask of a huge photo is as large as the studio keeps it"):
        huge = encoded(Image.new("RGB", (6000, 3000), "teal"), "JPEG")
        drop_on_stage(page, 1, Held("wall.jpg", huge, "image/jpeg"))
        expect(page.locator("#pt-pixels")).to_have_text("6000×3000")
        across(page)
        assert mask(page).size == (1024, 512)
        expect(chip(page)).to_contain_text("· mask")
    with step("a new conversation keeps the file and forgets what was painted"):
        begin_anew(page)
        expect_field(page, "")
        expect(page.locator("#pt-canvas")).to_be_hidden()
        expect(thumbnails(page)).to_have_count(1)
        expect(chip(page)).to_have_text(NEW)
        chip(page).get_by_role("button", name="New picture ·").click()
        expect(page.locator("#pt-canvas")).to_be_visible()
        across(page)
        expect(chip(page)).to_contain_text("· mask")
    with step("a reload forgets both"):
        page.reload()
        expect_ready(page)
        expect(page.locator("#box .thumbnail-item")).to_have_count(0)
        assert field(page) == ""
        expect(chip(page)).to_have_count(0)


def the_mask_keeps_to_its_file_while_others_come_and_go_and_yields_to_a_marked_picture(page: Page, photo: Path) -> None:
    called = Called(page)
    delete = on(page, "#box").button("builtin.remove")
    with step("its number follows it when another file goes or comes"):
        attach(page, photo)
        drop_on_stage(page, 2, Held("garden.jpg", encoded(picture(), "JPEG"), "image/jpeg"))
        across(page)
        assert handle(page) == "upload:2"
        painted = mask(page).tobytes()
        delete.first.click()
        expect_handle(page, 1)
        assert len(attached(page)) == 1
        page.locator("#box input[type=file]").first.set_input_files(str(photo.rename(photo.with_name("again.jpg"))))
        expect(thumbnails(page)).to_have_count(2)
        expect_handle(page, 1)
        assert mask(page).tobytes() == painted
        delete.nth(1).click()
        expect(thumbnails(page)).to_have_count(1)
        assert field(page)
    with step("another painted file takes its place"):
        drop_on_stage(page, 2, Held("b.png", png("chelsea", 600, 400)))
        expect(page.locator("#pt-pixels")).to_have_text("600×400")
        expect(share(page)).to_have_text(called.words("painter.nothing"))
        expect(chip(page)).to_contain_text("· mask")
        assert handle(page) == "upload:1"
        chip(page).get_by_role("button", name="New picture ·").click()
        expect(page.locator("#pt-pixels")).to_have_text("640×520")
        expect(share(page)).to_have_text(re.compile("painted$"))
    with step("what was painted goes with its file"):
        delete.first.click()
        expect_field(page, "")
        expect(chip(page)).to_have_text(NEW)
        chip(page).get_by_role("button", name="New picture ·").click()
        expect(page.locator("#pt-pixels")).to_have_text("600×400")
        across(page)
        expect_handle(page, 1)
        expect(chip(page)).to_contain_text("· mask")
        delete.first.click()
        expect(page.locator("#ctx-said")).to_contain_text("no longer in your message")
        expect(page.locator("#ctx-said")).to_be_in_viewport()
        expect_field(page, "")
        expect(chip(page)).to_have_count(0)
        expect(page.locator("#pt-canvas")).to_be_hidden()
    with step("the chip stays where it is through a turn of another message"):
        # The file, and more words, are there before the studio has taken the first: they are no part of them.
        kept: list[Route] = []
        page.route(JOIN, lambda route: kept.append(route))
        say(page, "draw a boat, 4:3")
        composer(page).press_sequentially("and then")
        drop_on_stage(page)
        page.unroute(JOIN)
        expect(composer(page)).to_have_value("and then")
        across(page)
        expect(chip(page)).to_contain_text("· mask")
        chip(page).evaluate("line => { window.before = line; }")
        expect_pictures(page, 1)
        expect(composer(page)).to_have_value("and then")
        composer(page).fill("")
        on(open_more(page, 0)).button("action.reference").click()
        expect(page.locator("#ctx .ctx")).to_contain_text("#1")
        expect(chip(page)).to_contain_text("· mask")
        assert chip(page).evaluate("line => line === window.before")
        assert handle(page) == "upload:1"
        page.get_by_role("button", name="Remove #1").click()
        delete.first.click()
        expect(chip(page)).to_have_count(0)
        expect(page.locator("#ctx .ctx")).to_have_count(0)
    with step("a mark and a new picture exclude each other"):
        on(page, "#chat").button("action.edit").first.click()
        expect(page.locator("#ctx .ctx")).to_contain_text("#1")
        drop_on_stage(page)
        expect(page.locator("#ctx .ctx")).to_contain_text("#1")
        across(page)
        expect(page.locator("#ctx .ctx")).to_have_count(0)
        expect(chip(page)).to_contain_text("· mask")
        assert handle(page) == "upload:1"
        on(page, "#chat").button("action.edit").first.click()
        expect(page.locator("#ctx .ctx")).to_contain_text("#1")
        expect_field(page, "")
        expect(chip(page)).to_have_text(NEW)
        on(chip(page)).button("painter.new_drop").click()
        expect(chip(page)).to_have_count(0)
        expect(thumbnails(page)).to_have_count(1)


def a_turn_that_fails_and_files_that_are_slow_leave_no_mask_without_its_file(page: Page, folder: Path) -> None:
    fake = folder / "holiday.png"
    fake.write_bytes(b"this is no picture")
    with step("a turn that fails gives the file and the mask back, and they belong together"):
        attach(page, fake)
        drop_on_stage(page, 2)
        across(page)
        painted, names = mask(page).tobytes(), attached(page)
        on(page, "#pt").button("painter.done").click()
        arrived, _ = send(page, "make it blue")
        assert json.loads(arrived)["handle"] == "upload:2"
        expect(page.locator("#chat [role=alert]")).to_contain_text("holiday.png")
        expect_rest(page)
        expect(composer(page)).to_have_value("make it blue")
        expect(thumbnails(page)).to_have_count(2)
        expect_handle(page, 2)
        assert attached(page) == names
        assert mask(page).tobytes() == painted
        expect(chip(page)).to_have_text(EDITED)
        chip(page).get_by_role("button", name="New picture ·").click()
        expect(share(page)).to_have_text(re.compile("painted$"))
        on(page, "#box").button("builtin.remove").first.click()
        expect_handle(page, 1)
        composer(page).press("Enter")
        expect_painted(page)
    with step("a mask whose file does not come back is forgotten"):
        open_stage(page)
        drop(composer(page), Held("holiday.png", fake.read_bytes()))
        expect(thumbnails(page)).to_have_count(1)
        drop_on_stage(page, 2)
        across(page)
        kept: list[Route] = []
        # New words stand in the composer before what was sent comes back.
        page.route(JOIN, lambda route: kept.append(route))
        say(page, "make it blue")
        composer(page).press_sequentially("something else")
        # This lets go of what it kept, too.
        page.unroute(JOIN)
        expect(page.locator("#chat [role=alert]")).to_contain_text("holiday.png")
        expect_rest(page)
        # Python gives the mask back a moment later, and only from then on is its file waited for.
        page.wait_for_function("window.aivista.painter.draft?.isHeld")
        said = page.locator("#ctx-said")
        wait_until(lambda: page.evaluate(LATER, 5_000) or "no longer in your message" in said.inner_text())
        assert field(page) == ""
        expect(composer(page)).to_have_value("something else")
        expect(page.locator("#box .thumbnail-item")).to_have_count(0)
        expect(chip(page)).to_have_count(0)
        composer(page).fill("")
    held: list[Route] = []
    with step("whoever sends while the file is under way sends the mask with it"):
        open_stage(page)
        page.route(UPLOADS, lambda route: held.append(route))
        drop_on_stage(page, 0)
        across(page)
        expect_handle(page, 1)
        say(page, "make it blue")
        page.evaluate(LATER, 8_000)
        expect(thumbnails(page)).to_have_count(0)
        assert handle(page) == "upload:1"
        held.pop().continue_()
        expect_painted(page)
    with step("a slower file is not given up when a later one is there first"):
        open_stage(page)
        drop_on_stage(page, 0, Held("slow.png", png()))
        across(page)
        with page.expect_request(UPLOADS):
            drop(composer(page), Held("quick.png", png("chelsea")))
        expect(page.locator("#box .loader")).to_be_visible()
        expect(page.locator("#uploads li")).to_have_count(2)
        held[1].continue_()
        expect(thumbnails(page)).to_have_count(1)
        page.evaluate(LATER, 11_000)
        expect_handle(page, 2)
        held[0].continue_()
        expect(thumbnails(page)).to_have_count(2)
        assert [name.split("-")[0] for name in attached(page)] == ["quick.png", "slow"]
        expect_handle(page, 2)
        expect(chip(page)).to_contain_text("· mask")
        page.unroute(UPLOADS)


# Every picture that it sends is painted and pasted: more than a minute on a busy machine.
@pytest.mark.timeout(300)
def test_a_new_picture_is_painted_over_and_sent_and_its_mask_keeps_to_it_whatever_comes_between(
    page: Page, whole_studio: PageProcess, photo: Path, tmp_path: Path
) -> None:
    open_stage(page, whole_studio)
    photos_are_painted_over_or_made_wider_and_nothing_outside_the_mask_changes(page, whole_studio, tmp_path)
    open_stage(page)
    what_cannot_be_shown_is_only_attached_and_a_new_conversation_forgets_the_mask_a_reload_the_file_too(page)
    open_stage(page, whole_studio)
    the_mask_keeps_to_its_file_while_others_come_and_go_and_yields_to_a_marked_picture(page, photo)
    on(page, "#box").button("builtin.remove").click()
    open_stage(page)
    a_turn_that_fails_and_files_that_are_slow_leave_no_mask_without_its_file(page, tmp_path)


def test_on_a_phone_the_loss_of_the_file_is_said_beside_the_composer_and_another_is_painted_over_and_sent(
    phone: Page, whole_studio: PageProcess, tmp_path: Path
) -> None:
    called = Called(phone, "zh-CN")
    chosen = tmp_path / "garden.png"
    chosen.write_bytes(png())
    open_page(phone, whole_studio.url)
    painter, canvas = on(phone, "#pt"), phone.locator("#pt-canvas")
    with step("the file that was painted over is removed, which is said beside the composer"):
        called.tab("tabs.canvas").tap()
        phone.locator("#pt-photo").set_input_files(str(chosen))
        expect(canvas).to_be_visible()
        painter.button("painter.invert").tap()
        painter.button("painter.done").tap()
        expect(chip(phone)).to_contain_text("蒙版 100 %")
        on(phone, "#box").button("builtin.remove").first.tap()
        said = phone.locator("#ctx-said")
        expect(said).to_contain_text("已不在消息里")
        expect(said).to_be_in_viewport()
        place, below = place_of(said), place_of(phone.locator("#composer"))
        assert place["y"] + place["height"] <= below["y"]
        assert field(phone) == ""
    with step("another is chosen and painted over with a finger"):
        called.tab("tabs.canvas").tap()
        button = on(phone, "#canvas .empty").button("stage.choose")
        expect(button).to_be_visible()
        with phone.expect_file_chooser() as chooser:
            button.tap()
        assert chooser.value.is_multiple()
        chooser.value.set_files(str(chosen))
        session = cdp(phone)
        expect(canvas).to_be_visible()
        touch(session, "touchStart", spot(canvas, 0.3, 0.5))
        for part in range(1, 7):
            touch(session, "touchMove", spot(canvas, 0.3 + part * 0.05, 0.5))
        touch(session, "touchEnd")
        expect(share(phone)).to_have_text(re.compile(r"^已涂抹 \d+ %$"))
        painter.button("painter.done").click()
        expect(canvas).to_be_hidden()
        assert composer(phone).evaluate("box => box === document.activeElement")
        expect(chip(phone)).to_have_text(re.compile(r"^正在编辑\s*新图片\s*· 蒙版 \d+ %\s*$"))
        assert phone.evaluate("document.documentElement.scrollWidth") <= 390
        small = phone.locator("#ctx-new button").evaluate_all(
            "all => all.map(one => one.getBoundingClientRect()).filter(box => box.width < 40 || box.height < 40).length"
        )
        assert small == 0
    with step("it changes there"):
        say(phone, "改成蓝色")
        expect_pictures(phone, 1)
        expect(phone.locator("#chat .pic .tag").first).to_contain_text("#1b")
        expect_changed_under_the_stroke(opened(phone, whole_studio, 0, "zh-CN"))

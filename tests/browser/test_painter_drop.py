"""A picture that was never sent is dropped onto the stage, painted over and sent: it changes there and nowhere else."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageChops
from playwright.sync_api import Browser, Locator, Page, Route, expect

from tests.browser.test_masked_edit import opened
from tests.browser.test_painter import PHONE, cdp, expansion, field, mask, send, share, spot, stroke, tool, touch
from tests.page import PageProcess
from tests.page.hands import Held, attach, composer, drop, expect_ready, expect_rest, open_at, open_page, pictures, say
from tests.support.masking_scenes import photo as photograph

# The page gives up a file of which it saw no sign for two seconds, in which nothing happens that could be waited for.
GIVEN_UP_MS = 2_500
FILES = "images => images.map(image => decodeURIComponent(image.src).split('/').pop())"


@pytest.fixture
def phone(browser: Browser) -> Iterator[Page]:
    context = browser.new_context(viewport=PHONE, locale="zh-CN", has_touch=True, is_mobile=True, color_scheme="dark")
    tab = context.new_page()
    faults: list[str] = []
    tab.on("pageerror", lambda error: faults.append(str(error)))
    yield tab
    context.close()
    assert faults == []


def picture(name: str = "coffee", width: int = 640, height: int = 520) -> Image.Image:
    return Image.fromarray(np.asarray(photograph(name, width, height)))


@cache
def png(name: str = "coffee", width: int = 640, height: int = 520) -> bytes:
    """Return a photo as a file."""
    return encoded(picture(name, width, height))


def encoded(image: Image.Image, kind: str = "PNG", **more: Any) -> bytes:
    sink = io.BytesIO()
    image.save(sink, kind, **more)
    return sink.getvalue()


def open_stage(page: Page, studio: PageProcess) -> None:
    open_page(page, studio.url)
    page.get_by_role("button", name="Picture panel").click()
    expect(page.locator("#canvas .empty")).to_be_visible()


def open_dropped(page: Page, studio: PageProcess, *files: Held) -> Locator:
    """Open a new conversation, drop the files onto its empty stage; return the painter's canvas."""
    open_stage(page, studio)
    drop(page.locator("#canvas"), *(files or (Held("garden.png", png()),)))
    canvas = page.locator("#pt-canvas")
    expect(canvas).to_be_focused()
    expect(page.locator("#box .thumbnail-item img")).to_have_count(max(1, len(files)))
    return canvas


def attached(page: Page) -> list[str]:
    """Return the names of the files that wait in the composer, in order."""
    names: list[str] = page.locator("#box .thumbnail-item img").evaluate_all(FILES)
    return names


def chip(page: Page) -> Locator:
    return page.locator("#ctx-new")


def handle(page: Page, name: str = "mask") -> str:
    return str(json.loads(field(page, name))["handle"])


def expect_handle(page: Page, number: int) -> None:
    """Wait until the mask names the Nth of the files."""
    stamped = re.compile(rf'^{{"handle":"upload:{number}",')
    expect(page.locator("#mask :is(textarea, input)")).to_have_value(stamped)


def test_a_photo_is_dropped_painted_over_and_sent_and_nothing_outside_the_mask_changes(
    page: Page, studio: PageProcess
) -> None:
    canvas = open_dropped(page, studio)
    expect(page.locator("#pt-handle")).to_have_text("New picture")
    expect(page.locator("#pt-pixels")).to_have_text("640×520")
    expect(page.locator("#pt-said")).to_have_text("Added to your message. Paint over it, or send it as it is.")
    assert canvas.evaluate("canvas => [canvas.width, canvas.height]") == [640, 520]
    expect(chip(page)).to_have_text(re.compile(r"^New picture\s*· paint over it\s*$"))
    stroke(page, (0.3, 0.5), (0.6, 0.5))
    expect(chip(page)).to_have_text(re.compile(r"^Editing\s*New picture\s*· mask \d+ %\s*$"))
    assert mask(page).size == (640, 520)
    arrived, _ = send(page, "make it blue")
    assert json.loads(arrived)["handle"] == "upload:1"
    expect(pictures(page)).to_have_count(1, timeout=60_000)
    expect_rest(page)
    expect(page.locator("figure.pic").get_by_text("pixels changed outside the mask")).to_contain_text("0 of")
    expect(page.locator("#chat .refs .tag")).to_have_text(["#1"])
    difference = ImageChops.difference(picture().convert("RGB"), opened(page, studio, 0)).convert("L")
    box = difference.point(lambda level: 255 if level else 0).getbbox()
    assert box is not None
    left, top, right, bottom = (box[0] / 640, box[1] / 520, box[2] / 640, box[3] / 520)
    assert 0.15 < left < 0.4 < 0.5 < right < 0.75
    assert 0.3 < top < 0.5 < bottom < 0.7
    expect(composer(page)).to_have_value("")
    expect(page.locator("#box .thumbnail-item")).to_have_count(0)
    expect(page.locator("#mask :is(textarea, input)")).to_have_value("")
    expect(chip(page)).to_have_count(0)
    expect(page.locator("#pt-canvas")).to_be_hidden()


def test_its_edges_are_drawn_outwards(page: Page, studio: PageProcess) -> None:
    open_dropped(page, studio)
    page.locator("#pt").get_by_role("button", name="Expand").click()
    page.locator("#pt").get_by_label("Right").fill("50")
    page.locator("#pt").get_by_label("Right").press("Enter")
    assert (expansion(page).handle, expansion(page).right) == ("upload:1", 0.5)
    expect(chip(page)).to_have_text(re.compile(r"^Expanding\s*New picture\s*$"))
    expect(share(page)).to_have_text("960×520 afterwards")
    say(page, "make it wider")
    expect(pictures(page)).to_have_count(1, timeout=60_000)
    expect_rest(page)
    assert opened(page, studio, 0).size == (960, 520)


def test_of_several_files_all_are_attached_and_the_first_is_painted_over(page: Page, studio: PageProcess) -> None:
    open_stage(page, studio)
    first, second = Held("a.png", png()), Held("b.png", png("chelsea"))
    drop(page.locator("#canvas"), first, Held("notes.txt", b"words", "text/plain"), second)
    expect(page.locator("#box .thumbnail-item img")).to_have_count(2)
    expect(page.locator("#pt-canvas")).to_be_focused()
    names = attached(page)
    assert re.fullmatch(r"a-[a-z0-9]{4}\.png", names[0])
    assert names[1] == "b.png"
    stroke(page, (0.3, 0.5), (0.6, 0.5))
    assert handle(page) == "upload:1"
    arrived, _ = send(page, "make it blue")
    assert json.loads(arrived)["handle"] == "upload:1"
    expect(pictures(page)).to_have_count(1, timeout=60_000)
    expect_rest(page)
    expect(page.locator("#chat .refs .tag")).to_have_text(["#1", "#2"])
    expect(page.locator("#chat .pic .tag").first).to_contain_text("#1b")


def test_its_number_follows_it_when_another_file_goes_or_comes(page: Page, studio: PageProcess, photo: Path) -> None:
    open_stage(page, studio)
    attach(page, photo)
    drop(page.locator("#canvas"), Held("garden.jpg", encoded(picture(), "JPEG"), "image/jpeg"))
    expect(page.locator("#box .thumbnail-item img")).to_have_count(2)
    stroke(page, (0.3, 0.5), (0.6, 0.5))
    assert handle(page) == "upload:2"
    painted = mask(page).tobytes()
    page.locator("#box .delete-button").first.click()
    expect_handle(page, 1)
    assert len(attached(page)) == 1
    page.locator("#box input[type=file]").first.set_input_files(str(photo.rename(photo.with_name("again.jpg"))))
    expect(page.locator("#box .thumbnail-item img")).to_have_count(2)
    expect_handle(page, 1)
    assert mask(page).tobytes() == painted
    page.locator("#box .delete-button").nth(1).click()
    expect(page.locator("#box .thumbnail-item img")).to_have_count(1)
    assert field(page)


def test_a_turn_that_fails_gives_the_file_and_the_mask_back_and_they_belong_together(
    page: Page, studio: PageProcess, tmp_path: Path
) -> None:
    open_stage(page, studio)
    fake = tmp_path / "holiday.png"
    fake.write_bytes(b"this is no picture")
    attach(page, fake)
    drop(page.locator("#canvas"), Held("garden.png", png()))
    expect(page.locator("#box .thumbnail-item img")).to_have_count(2)
    stroke(page, (0.3, 0.5), (0.6, 0.5))
    painted, names = mask(page).tobytes(), attached(page)
    page.locator("#pt").get_by_role("button", name="Done").click()
    arrived, _ = send(page, "make it blue")
    assert json.loads(arrived)["handle"] == "upload:2"
    expect(page.locator("#chat [role=alert]")).to_contain_text("holiday.png")
    expect_rest(page)
    expect(composer(page)).to_have_value("make it blue")
    expect(page.locator("#box .thumbnail-item img")).to_have_count(2)
    expect_handle(page, 2)
    assert attached(page) == names
    assert mask(page).tobytes() == painted
    expect(chip(page)).to_have_text(re.compile(r"^Editing\s*New picture\s*· mask \d+ %\s*$"))
    chip(page).get_by_role("button", name="New picture ·").click()
    expect(share(page)).to_have_text(re.compile("painted$"))
    page.locator("#box .delete-button").first.click()
    expect_handle(page, 1)
    composer(page).press("Enter")
    expect(pictures(page)).to_have_count(1, timeout=60_000)
    expect_rest(page)
    expect(page.locator("figure.pic").get_by_text("pixels changed outside the mask")).to_contain_text("0 of")


def test_a_mask_whose_file_does_not_come_back_is_forgotten(page: Page, studio: PageProcess, tmp_path: Path) -> None:
    open_stage(page, studio)
    fake = tmp_path / "holiday.png"
    fake.write_bytes(b"this is no picture")
    attach(page, fake)
    drop(page.locator("#canvas"), Held("garden.png", png()))
    expect(page.locator("#box .thumbnail-item img")).to_have_count(2)
    stroke(page, (0.3, 0.5), (0.6, 0.5))
    kept: list[Route] = []
    typed: list[str] = []

    def keep(route: Route) -> None:
        if typed or "make it blue" in (route.request.post_data or ""):
            route.continue_()
        else:
            kept.append(route)

    # What was sent comes back late enough for new words to stand in the composer.
    page.route("**/gradio_api/queue/join*", keep)
    say(page, "make it blue")
    expect(page.locator("#box .thumbnail-item")).to_have_count(0)
    composer(page).fill("something else")
    typed.append("something else")
    for route in kept:
        route.continue_()
    expect(page.locator("#chat [role=alert]")).to_contain_text("holiday.png")
    expect(page.locator("#ctx-said")).to_contain_text("no longer in your message")
    assert field(page) == ""
    expect(composer(page)).to_have_value("something else")
    expect(page.locator("#box .thumbnail-item")).to_have_count(0)
    expect(chip(page)).to_have_count(0)


def test_whoever_sends_while_the_file_is_under_way_sends_the_mask_with_it(page: Page, studio: PageProcess) -> None:
    open_stage(page, studio)
    held: list[Route] = []
    page.route("**/gradio_api/upload*", lambda route: held.append(route))
    drop(page.locator("#canvas"), Held("garden.png", png()))
    expect(page.locator("#pt-canvas")).to_be_focused()
    stroke(page, (0.3, 0.5), (0.6, 0.5))
    expect_handle(page, 1)
    say(page, "make it blue")
    page.wait_for_timeout(GIVEN_UP_MS)
    expect(page.locator("#box .thumbnail-item img")).to_have_count(0)
    assert handle(page) == "upload:1"
    for route in held:
        route.continue_()
    expect(pictures(page)).to_have_count(1, timeout=60_000)
    expect_rest(page)
    expect(page.locator("figure.pic").get_by_text("pixels changed outside the mask")).to_contain_text("0 of")


def test_a_slower_file_is_not_given_up_when_a_later_one_is_there_first(page: Page, studio: PageProcess) -> None:
    open_stage(page, studio)
    held: list[Route] = []
    page.route("**/gradio_api/upload*", lambda route: held.append(route))
    drop(page.locator("#canvas"), Held("slow.png", png()))
    expect(page.locator("#pt-canvas")).to_be_focused()
    stroke(page, (0.3, 0.5), (0.6, 0.5))
    with page.expect_request("**/gradio_api/upload*"):
        drop(composer(page), Held("quick.png", png("chelsea")))
    expect(page.locator("#box .loader")).to_be_visible()
    expect(page.locator("#uploads li")).to_have_count(2)
    held[1].continue_()
    expect(page.locator("#box .thumbnail-item img")).to_have_count(1)
    page.wait_for_timeout(GIVEN_UP_MS)
    expect_handle(page, 2)
    held[0].continue_()
    expect(page.locator("#box .thumbnail-item img")).to_have_count(2)
    assert [name.split("-")[0] for name in attached(page)] == ["quick.png", "slow"]
    expect_handle(page, 2)
    expect(chip(page)).to_contain_text("· mask")


def test_a_mark_and_a_new_picture_exclude_each_other(page: Page, studio: PageProcess) -> None:
    open_at(page, studio.sketched("draw a boat, 4:3"), 1)
    page.locator("#chat .acts [data-act=edit]").first.click()
    expect(page.locator("#ctx .ctx")).to_contain_text("#1")
    page.get_by_role("button", name="Picture panel").click()
    drop(page.locator("#canvas"), Held("garden.png", png()))
    expect(page.locator("#pt-canvas")).to_be_focused()
    expect(page.locator("#ctx .ctx")).to_contain_text("#1")
    stroke(page, (0.3, 0.5), (0.6, 0.5))
    expect(page.locator("#ctx .ctx")).to_have_count(0)
    expect(chip(page)).to_contain_text("· mask")
    assert handle(page) == "upload:1"
    page.locator("#chat .acts [data-act=edit]").first.click()
    expect(page.locator("#ctx .ctx")).to_contain_text("#1")
    expect(page.locator("#mask :is(textarea, input)")).to_have_value("")
    expect(chip(page)).to_have_text(re.compile(r"^New picture\s*· paint over it\s*$"))
    chip(page).get_by_role("button", name="Leave the new picture as it is").click()
    expect(chip(page)).to_have_count(0)
    expect(page.locator("#box .thumbnail-item img")).to_have_count(1)


def test_the_chip_stays_where_it_is_through_a_turn_of_another_message(page: Page, studio: PageProcess) -> None:
    open_page(page, studio.url)
    say(page, "draw a boat, 4:3")
    page.get_by_role("button", name="Picture panel").click()
    drop(page.locator("#canvas"), Held("garden.png", png()))
    stroke(page, (0.3, 0.5), (0.6, 0.5))
    expect(chip(page)).to_contain_text("· mask")
    chip(page).evaluate("line => { window.before = line; }")
    expect(pictures(page)).to_have_count(1)
    expect_rest(page)
    page.locator("#chat .acts [data-act=reference]").first.click()
    expect(page.locator("#ctx .ctx")).to_contain_text("#1")
    expect(chip(page)).to_contain_text("· mask")
    assert chip(page).evaluate("line => line === window.before")
    assert handle(page) == "upload:1"


def test_a_photo_that_lies_on_its_side_is_painted_over_upright_and_offers_its_mask_once_it_has_a_handle(
    page: Page, studio: PageProcess
) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    lying = encoded(picture(), "JPEG", exif=exif)
    open_dropped(page, studio, Held("a.png", png("chelsea")))
    drop(page.locator("#canvas"), Held("lying.jpg", lying, "image/jpeg"))
    expect(page.locator("#box .thumbnail-item img")).to_have_count(2)
    expect(page.locator("#pt-pixels")).to_have_text("520×640")
    stroke(page, (0.3, 0.5), (0.6, 0.5))
    assert mask(page).size == (520, 640)
    assert handle(page) == "upload:2"
    say(page, "make it blue")
    expect(pictures(page)).to_have_count(1, timeout=60_000)
    expect_rest(page)
    assert opened(page, studio, 0).size == (520, 640)
    page.locator("#chat .refs .ref").nth(1).click()
    expect(page.locator("#canvas .cv-bar b")).to_have_text("#2")
    page.locator("#canvas").get_by_role("button", name="Paint over it").click()
    expect(share(page)).to_have_text("Nothing is painted yet")
    tool(page, "Last mask").click()
    expect(page.locator("#ctx")).to_contain_text(re.compile(r"#2\s*· mask"))
    assert handle(page) == "#2"
    assert mask(page).getpixel((234, 320)) == 255


def test_another_painted_file_takes_its_place_and_what_was_painted_goes_with_its_file(
    page: Page, studio: PageProcess
) -> None:
    open_dropped(page, studio, Held("a.png", png()))
    stroke(page, (0.3, 0.5), (0.6, 0.5))
    drop(page.locator("#canvas"), Held("b.png", png("chelsea", 600, 400)))
    expect(page.locator("#pt-pixels")).to_have_text("600×400")
    expect(share(page)).to_have_text("Nothing is painted yet")
    expect(chip(page)).to_contain_text("· mask")
    assert handle(page) == "upload:1"
    chip(page).get_by_role("button", name="New picture ·").click()
    expect(page.locator("#pt-pixels")).to_have_text("640×520")
    expect(share(page)).to_have_text(re.compile("painted$"))
    page.locator("#box .delete-button").first.click()
    expect(page.locator("#mask :is(textarea, input)")).to_have_value("")
    expect(chip(page)).to_have_text(re.compile(r"^New picture\s*· paint over it\s*$"))
    chip(page).get_by_role("button", name="New picture ·").click()
    expect(page.locator("#pt-pixels")).to_have_text("600×400")
    stroke(page, (0.3, 0.5), (0.6, 0.5))
    expect_handle(page, 1)
    expect(chip(page)).to_contain_text("· mask")
    page.locator("#box .delete-button").first.click()
    expect(page.locator("#ctx-said")).to_contain_text("no longer in your message")
    expect(page.locator("#ctx-said")).to_be_in_viewport()
    expect(page.locator("#mask :is(textarea, input)")).to_have_value("")
    expect(chip(page)).to_have_count(0)
    expect(page.locator("#pt-canvas")).to_be_hidden()
    say(page, "draw a boat")
    expect(pictures(page)).to_have_count(1)
    expect_rest(page)


def test_what_the_browser_cannot_show_is_only_attached_and_a_huge_photo_is_as_large_as_the_studio_keeps_it(
    page: Page, studio: PageProcess
) -> None:
    open_stage(page, studio)
    drop(page.locator("#canvas"), Held("IMG_0001.HEIC", b"\0\0\0\x18ftypheic" + bytes(64), "image/heic"))
    expect(page.locator("#pt-said")).to_contain_text("Send it: then the picture has its number")
    expect(page.locator("#box .thumbnail-item")).to_have_count(1)
    expect(page.locator("#canvas .empty")).to_be_visible()
    expect(chip(page)).to_have_count(0)
    assert page.locator("#pt-canvas").is_hidden()
    huge = encoded(Image.new("RGB", (6000, 3000), "teal"), "JPEG")
    drop(page.locator("#canvas"), Held("wall.jpg", huge, "image/jpeg"))
    expect(page.locator("#pt-canvas")).to_be_focused()
    expect(page.locator("#pt-pixels")).to_have_text("6000×3000")
    stroke(page, (0.3, 0.5), (0.6, 0.5))
    assert mask(page).size == (1024, 512)


def test_a_new_conversation_keeps_the_file_and_forgets_what_was_painted_and_a_reload_forgets_both(
    page: Page, studio: PageProcess
) -> None:
    open_dropped(page, studio)
    stroke(page, (0.3, 0.5), (0.6, 0.5))
    expect(chip(page)).to_contain_text("· mask")
    page.locator("#rail [data-act=new]").click()
    expect(page.locator("#mask :is(textarea, input)")).to_have_value("")
    expect(page.locator("#pt-canvas")).to_be_hidden()
    expect(page.locator("#box .thumbnail-item img")).to_have_count(1)
    expect(chip(page)).to_have_text(re.compile(r"^New picture\s*· paint over it\s*$"))
    chip(page).get_by_role("button", name="New picture ·").click()
    expect(page.locator("#pt-canvas")).to_be_visible()
    stroke(page, (0.3, 0.5), (0.6, 0.5))
    expect(chip(page)).to_contain_text("· mask")
    page.reload()
    expect_ready(page)
    expect(page.locator("#box .thumbnail-item")).to_have_count(0)
    assert field(page) == ""
    expect(chip(page)).to_have_count(0)


def opened_on(page: Page, studio: PageProcess) -> Image.Image:
    """Return the pixels of the first picture of the thread, in Chinese."""
    address = page.locator("figure.pic").first.get_by_role("link", name="下载").get_attribute("href")
    assert address is not None
    return Image.open(io.BytesIO(page.request.get(f"{studio.url}/{address}", max_retries=2).body())).convert("RGB")


def lose(phone: Page, studio: PageProcess, tmp_path: Path) -> None:
    """Choose a file, paint over it and remove it again: that is said beside the composer."""
    chosen = tmp_path / "garden.png"
    chosen.write_bytes(png())
    open_page(phone, studio.url)
    phone.get_by_role("tab", name="画布").tap()
    phone.locator("#pt-photo").set_input_files(str(chosen))
    expect(phone.locator("#pt-canvas")).to_be_visible()
    phone.locator("#pt").get_by_role("button", name="反选").tap()
    phone.get_by_role("button", name="完成").tap()
    expect(chip(phone)).to_contain_text("蒙版 100 %")
    phone.locator("#box .delete-button").first.tap()
    said = phone.locator("#ctx-said")
    expect(said).to_contain_text("已不在消息里")
    expect(said).to_be_in_viewport()
    phone.wait_for_function("document.querySelector('#ctx-said').style.bottom")
    place, below = said.bounding_box(), phone.locator("#composer").bounding_box()
    assert place is not None
    assert below is not None
    assert place["y"] + place["height"] <= below["y"]
    assert field(phone) == ""


def test_on_a_phone_the_loss_of_the_file_is_said_beside_the_composer_and_another_is_painted_over_and_sent(
    phone: Page, studio: PageProcess, tmp_path: Path
) -> None:
    lose(phone, studio, tmp_path)
    chosen = tmp_path / "garden.png"
    chosen.write_bytes(png())
    phone.get_by_role("tab", name="画布").tap()
    button = phone.locator("#canvas .empty").get_by_role("button", name="选择图片")
    expect(button).to_be_visible()
    with phone.expect_file_chooser() as chooser:
        button.tap()
    assert chooser.value.is_multiple()
    chooser.value.set_files(str(chosen))
    canvas, session = phone.locator("#pt-canvas"), cdp(phone)
    expect(canvas).to_be_visible()
    touch(session, "touchStart", spot(canvas, 0.3, 0.5))
    for step in range(1, 7):
        touch(session, "touchMove", spot(canvas, 0.3 + step * 0.05, 0.5))
    touch(session, "touchEnd")
    expect(share(phone)).to_have_text(re.compile(r"^已涂抹 \d+ %$"))
    phone.get_by_role("button", name="完成").click()
    expect(canvas).to_be_hidden()
    assert composer(phone).evaluate("box => box === document.activeElement")
    expect(chip(phone)).to_have_text(re.compile(r"^正在编辑\s*新图片\s*· 蒙版 \d+ %\s*$"))
    assert phone.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    small = phone.locator("#ctx-new button").evaluate_all(
        "all => all.map(one => one.getBoundingClientRect()).filter(box => box.width < 40 || box.height < 40).length"
    )
    assert small == 0
    say(phone, "改成蓝色")
    expect(pictures(phone)).to_have_count(1, timeout=60_000)
    expect_rest(phone)
    expect(phone.locator("#chat .pic .tag").first).to_contain_text("#1b")
    difference = ImageChops.difference(picture().convert("RGB"), opened_on(phone, studio)).convert("L")
    box = difference.point(lambda level: 255 if level else 0).getbbox()
    assert box is not None
    assert 0.15 < box[0] / 640 < 0.4 < 0.5 < box[2] / 640 < 0.75

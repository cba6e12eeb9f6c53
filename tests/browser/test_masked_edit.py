"""A stroke on the stage, a wish, Send: the picture changes under the stroke and nowhere else."""

from __future__ import annotations

import io
import json
import re
from urllib.parse import urljoin

from PIL import Image, ImageChops
from playwright.sync_api import Page, expect

from tests.browser.test_painter import open_painter, paint_over, stroke
from tests.page import PageProcess
from tests.page.hands import composer, expect_pictures, expect_rest, open_at, say
from tests.page.journeys import Called, step
from tests.support.waiting import wait_until
from tests.wire_server import GeminiProcess


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

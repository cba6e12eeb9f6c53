"""What people come for, each done by nothing but visible labels and accessible names, and in how few presses."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.test_painter import spot
from tests.page import PageProcess
from tests.page.hands import open_page
from tests.page.journeys import Called, step

PROMPTS = {"en": ("a red fox", "paint it blue", "fox"), "zh-CN": ("画一只红色的狐狸", "涂成蓝色", "狐狸")}


@dataclass
class Hand:
    """Presses, and counts how often; on a phone with a finger."""

    is_finger: bool
    presses: int = 0

    def press(self, target: Locator) -> None:
        self.presses += 1
        if self.is_finger:
            target.tap()
        else:
            target.click()

    def taken(self) -> int:
        """Return how many presses there were since this was asked last."""
        presses, self.presses = self.presses, 0
        return presses


@pytest.mark.parametrize("language", ["en", "zh-CN"])
@pytest.mark.parametrize("device", ["page", "phone"])
def test_five_tasks_are_done_by_visible_names(
    request: pytest.FixtureRequest, studio: PageProcess, device: str, language: str
) -> None:
    page: Page = request.getfixturevalue(device)
    page.context.add_cookies([{"name": "aivista_lang", "value": language, "url": studio.url}])
    called, hand, is_phone = Called(page, language), Hand(is_finger=device == "phone"), device == "phone"
    drawn, painted, sought = PROMPTS[language]
    open_page(page, studio.url)
    box = page.get_by_role("textbox", name=called.words("builtin.message"))
    thread = Called(page.get_by_role("log"), language)
    with step("draw"):
        box.fill(drawn)
        hand.press(called.button("builtin.send"))
        expect(thread.button("action.edit")).to_have_count(1)
        assert hand.taken() == 1
    with step("edit a part"):
        hand.press(thread.button("action.paint_over"))
        canvas = page.get_by_role("application", name=called.words("painter.canvas"))
        expect(canvas).to_be_visible()
        page.mouse.move(*spot(canvas, 0.4, 0.4))
        page.mouse.down()
        page.mouse.move(*spot(canvas, 0.6, 0.5), steps=6)
        page.mouse.up()
        if is_phone:
            hand.press(called.button("painter.done"))
        box.fill(painted)
        hand.press(called.button("builtin.send"))
        expect(thread.button("action.edit")).to_have_count(2)
        expect(thread.text("edit.exact", changed="0")).to_be_visible()
        assert hand.taken() == (3 if is_phone else 2)
    with step("compare"):
        hand.press(thread.button("compare.action").last)
        expect(called.slider("compare.divide")).to_be_visible()
        assert hand.taken() == 1
    with step("find an old picture"):
        hand.press(called.tab("tabs.gallery"))
        page.get_by_role("searchbox", name=called.words("gallery.find")).fill(sought)
        found = page.get_by_role("list", name=called.words("gallery.label")).get_by_role("listitem")
        hand.press(found.first.get_by_role("button").first)
        expect(called.button("viewer.full")).to_be_visible()
        assert hand.taken() == 2
    with step("download"):
        if is_phone:
            hand.press(called.button("tabs.chat"))
        with page.expect_download() as download:
            hand.press(thread.link("action.download").last)
        assert download.value.suggested_filename.endswith(".png")
        assert hand.taken() == (2 if is_phone else 1)

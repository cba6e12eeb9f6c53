"""A thread on paper: all of it, whatever is in sight, in light colours, and nothing beside it."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from tests.page import PageProcess
from tests.page.hands import open_at


def test_a_long_thread_is_printed_whole(page: Page, studio: PageProcess) -> None:
    page.emulate_media(color_scheme="dark")
    open_at(page, studio.sketched("draw a red fox", "draw a blue bird", "draw a boat", "draw a house"), 4)
    drawn = page.pdf()
    assert len(re.findall(rb"/Type\s*/Page\b", drawn)) > 1

    page.emulate_media(media="print", color_scheme="dark")
    for hidden in ("#rail", "#stage", "#dock", "#top button"):
        expect(page.locator(hidden).first).to_be_hidden()
    expect(page.locator("#top h1")).to_be_visible()
    colour = page.locator("#chat .user .own").first.evaluate("element => getComputedStyle(element).color")
    assert max(map(int, re.findall(r"\d+", colour))) < 60
    reach = page.evaluate("[document.documentElement.scrollHeight, document.querySelector('#thread').scrollHeight]")
    assert reach[0] >= reach[1] > 1000

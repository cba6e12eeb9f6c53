"""An unpacked archive in a real browser: its pages show their pictures and run nothing."""

from __future__ import annotations

import asyncio
import os
import zipfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from playwright.sync_api import Browser, ConsoleMessage, sync_playwright

from agent.components import AgentMessage
from agent.conversation import WholeConversation
from tests.agent.archive.shelf import kept_turns, place
from tests.page.chromium import chromium

SCRIPT = "<script>document.title = 'taken over'</script><img src=x onerror=\"document.title = 'taken over'\">"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox", "--disable-gpu"])
        yield running
        running.close()


def hostile() -> WholeConversation:
    whole = kept_turns(f"A fox {SCRIPT}")
    first = whole.turns[0]
    said = first.model_copy(
        update={"text": SCRIPT, "components": (*first.components, AgentMessage(text=f"{SCRIPT}\n**bold**"))}
    )
    return whole.model_copy(update={"turns": (said, *whole.turns[1:])})


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("unpacked")

    async def exported() -> Path:
        here = place(home / "home")
        await here.keep(hostile())
        return (await here.archive.export_library("local")).path

    # Playwright keeps an event loop running in this thread.
    with ThreadPoolExecutor(1) as thread:
        path = thread.submit(lambda: asyncio.run(exported())).result()
    with zipfile.ZipFile(path) as archive:
        archive.extractall(home / "unpacked")
    return home / "unpacked"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_pages_show_their_pictures_and_run_nothing(browser: Browser, folder: Path, scheme: str) -> None:
    context = browser.new_context(color_scheme="dark" if scheme == "dark" else "light")
    page = context.new_page()
    complaints: list[str] = []
    asked: list[str] = []

    def heard(message: ConsoleMessage) -> None:
        complaints.append(message.text)

    page.on("console", heard)
    page.on("request", lambda request: asked.append(request.url))
    page.goto((folder / "index.html").as_uri())
    page.get_by_role("link", name="A fox").click()
    page.wait_for_load_state("load")
    assert page.title().startswith("A fox <script>")
    pictures = page.locator("img")
    assert pictures.count() >= 4
    for number in range(pictures.count()):
        pictures.nth(number).scroll_into_view_if_needed()
        pictures.nth(number).evaluate("one => one.decode()")
        assert pictures.nth(number).evaluate("one => one.naturalWidth") == 24
    paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert paper == {"light": "rgb(251, 250, 247)", "dark": "rgb(25, 24, 22)"}[scheme]
    assert complaints == []
    assert {url.partition(":")[0] for url in asked} == {"file"}
    if shots := os.environ.get("ARCHIVE_SHOTS"):
        page.set_viewport_size({"width": 900, "height": 1400})
        page.screenshot(path=f"{shots}/{scheme}.png", full_page=True)
    context.close()

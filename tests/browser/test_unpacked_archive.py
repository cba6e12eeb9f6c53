"""An unpacked archive in a real browser: its pages show their pictures and run nothing."""

from __future__ import annotations

import asyncio
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from playwright.sync_api import Browser, Page

from agent import AgentMessage, WholeConversation
from tests.agent.archive.shelf import kept_turns, place

SCRIPT = "<script>document.title = 'taken over'</script><img src=x onerror=\"document.title = 'taken over'\">"


def hostile() -> WholeConversation:
    whole = kept_turns(f"A fox {SCRIPT}")
    first = whole.turns[0]
    said = first.model_copy(
        update={"text": SCRIPT, "components": (*first.components, AgentMessage(text=f"{SCRIPT}\n**bold**"))}
    )
    return whole.model_copy(update={"turns": (said, *whole.turns[1:])})


def test_the_pages_show_their_pictures_and_run_nothing_in_either_scheme(browser: Browser, tmp_path: Path) -> None:
    async def exported() -> Path:
        here = place(tmp_path / "home")
        await here.keep(hostile())
        return (await here.archive.export_library("local")).path

    # Playwright keeps an event loop running in this thread.
    with ThreadPoolExecutor(1) as thread:
        path = thread.submit(lambda: asyncio.run(exported())).result()
    with zipfile.ZipFile(path) as archive:
        archive.extractall(tmp_path / "unpacked")
    page = browser.new_page()
    complaints: list[str] = []
    asked: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("request", lambda request: asked.append(request.url))
    page.goto((tmp_path / "unpacked" / "index.html").as_uri())
    page.get_by_role("link", name="A fox").click()
    page.wait_for_load_state("load")
    assert page.title().startswith("A fox <script>")
    pictures = page.locator("img")
    assert pictures.count() >= 4
    for number in range(pictures.count()):
        pictures.nth(number).scroll_into_view_if_needed()
        pictures.nth(number).evaluate("one => one.decode()")
        assert pictures.nth(number).evaluate("one => one.naturalWidth") == 24
    page.emulate_media(color_scheme="light")
    assert paper(page) == "rgb(251, 250, 247)"
    page.emulate_media(color_scheme="dark")
    assert paper(page) == "rgb(25, 24, 22)"
    assert complaints == []
    assert {url.partition(":")[0] for url in asked} == {"file"}
    page.close()


def paper(page: Page) -> str:
    """Return the colour behind everything."""
    found: str = page.evaluate("getComputedStyle(document.body).backgroundColor")
    return found

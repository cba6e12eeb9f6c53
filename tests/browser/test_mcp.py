"""The settings dialog says how it stands with the operator's MCP servers, each time it is opened."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from playwright.sync_api import Locator, Page, expect

from tests.mcp_server import rogue
from tests.page import PageProcess
from tests.page.hands import expect_rest, open_page, say


def opened(page: Page) -> Locator:
    """Open the settings and return the lines of the servers."""
    dialog = page.get_by_role("dialog", name="Settings")
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    page.locator("#rail [data-act=settings]").click()
    # It is asked for each time, and shown when it has come; until then its former lines are there, unseen.
    expect(dialog).to_be_visible()
    lines = page.locator("#s-servers li")
    expect(lines).to_have_count(2)
    return lines


def test_the_dialog_tells_of_servers_as_they_are_when_it_is_opened(page: Page, tmp_path: Path) -> None:
    (tmp_path / "mcp.toml").write_text(
        f"[servers.rogue]\ncommand = {json.dumps(sys.executable)}\nargs = {json.dumps(rogue().args)}\n"
        '[servers.absent]\ncommand = "/nowhere/mcp-server"\n',
        "utf-8",
    )
    with PageProcess(home=tmp_path) as studio:
        open_page(page, studio.url)
        expect(opened(page).first).to_contain_text("Connects with the next message.")
        page.keyboard.press("Escape")
        say(page, "hello")
        expect_rest(page)
        # A server is connected beside the turns, and the dialog tells what was so when it was opened.
        until = time.monotonic() + 60
        while "1 tool" not in opened(page).first.inner_text() and time.monotonic() < until:
            page.wait_for_timeout(100)
        expect(opened(page)).to_contain_text(["1 tool", "Cannot start"])

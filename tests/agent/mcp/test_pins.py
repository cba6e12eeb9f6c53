"""What tools were like when they were seen first, or allowed last, in a private file that survives a restart."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from tests.adapters.mcp import Pins


async def test_a_tool_is_as_it_was_when_it_was_first_seen(tmp_path: Path) -> None:
    pins = Pins(tmp_path)
    await pins.see("files", {"read": "old"})
    await pins.see("files", {"read": "new", "write": "w"})
    later = Pins(tmp_path)
    await later.see("files", {})
    for one in (pins, later):
        assert not one.is_changed("files", "read", "old")
        assert one.is_changed("files", "read", "new")
        assert not one.is_changed("files", "write", "w")
        assert one.is_changed("other", "read", "old")


async def test_what_was_asked_about_may_be_allowed_also_after_a_restart_and_nothing_else(tmp_path: Path) -> None:
    before = Pins(tmp_path)
    await before.see("files", {"read": "old"})
    assert not await before.allow("files", "read", "new")
    await before.ask("files", "read", "new")
    pins = Pins(tmp_path)
    await pins.see("files", {"read": "new"})
    assert not await pins.allow("files", "read", "newer")
    assert await pins.allow("files", "read", "new")
    assert not pins.is_changed("files", "read", "new")
    assert pins.is_changed("files", "read", "old")


async def test_the_file_is_private_and_one_that_is_broken_counts_as_empty(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    await Pins(tmp_path).see("files", {"read": "old"})
    path = tmp_path / "mcp_tools.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.write_text("{", "utf-8")
    pins = Pins(tmp_path)
    await pins.see("files", {"read": "new"})
    assert not pins.is_changed("files", "read", "new")
    assert "counts as empty" in caplog.text


async def test_a_server_that_invents_names_for_ever_does_not_fill_the_disk(tmp_path: Path) -> None:
    pins = Pins(tmp_path)
    for round_ in range(4):
        await pins.see("files", {f"tool {round_} {number}": "x" * 64 for number in range(400)})
    path = tmp_path / "mcp_tools.json"
    assert path.stat().st_size < 100_000
    assert not pins.is_changed("files", "tool 3 399", "x" * 64)

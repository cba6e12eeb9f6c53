"""Two processes that keep presets and styles of one owner at once: each sees, and leaves, what the other wrote."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from agent.settings import Settings, TurnSettings
from agent.storage.preferences import Preferences, PreferenceStore
from agent.storage.styles import StyleLibrary

pytestmark = pytest.mark.process
COUNT = 20
_WRITING = """
import asyncio, sys
from pathlib import Path
from agent.settings import Settings, TurnSettings
from agent.storage.preferences import PreferenceStore
from agent.storage.styles import StyleLibrary

async def main(home, name, count):
    presets, styles = PreferenceStore(Settings(home=home)).presets, StyleLibrary(home)
    print("ready", flush=True)
    sys.stdin.readline()
    for at in range(count):
        await presets.save("ann", f"{name} {at}", TurnSettings())
        await styles.add({"name": {"en": f"{name} {at}"}, "phrases": ["soft light"]}, "ann")
    await styles.aclose()

asyncio.run(main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])))
"""


def run_both(home: Path) -> None:
    """Let two processes write at once, to their ends."""
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", _WRITING, str(home), name, str(COUNT)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for name in ("left", "right")
    ]
    for writer in writers:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write("go\n")
        writer.stdin.flush()
    assert [writer.communicate(timeout=90)[0] for writer in writers] == ["", ""]
    assert [writer.returncode for writer in writers] == [0, 0]


async def test_two_processes_keep_each_others_presets_and_styles(tmp_path: Path) -> None:
    await asyncio.to_thread(run_both, tmp_path)
    wanted = {f"{name} {at}" for name in ("left", "right") for at in range(COUNT)}
    presets = await PreferenceStore(Settings(home=tmp_path)).presets.of("ann")
    assert {one.name for one in presets} == wanted
    styles = StyleLibrary(tmp_path)
    assert {one.title for one in await styles.all("ann") if one.is_own} == wanted
    await styles.aclose()


async def test_what_another_process_changed_is_read_at_once(tmp_path: Path) -> None:
    here, there = PreferenceStore(Settings(home=tmp_path)), PreferenceStore(Settings(home=tmp_path))
    await here.presets.save("ann", "first", TurnSettings())
    await there.presets.save("ann", "second", TurnSettings())
    await there.keep("ann", Preferences(cap_day_usd=2.0))
    assert [one.name for one in await here.presets.of("ann")] == ["first", "second"]
    assert await here.of("ann") == Preferences(cap_day_usd=2.0)

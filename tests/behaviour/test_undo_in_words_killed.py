"""A studio that is killed while it goes back to an earlier picture goes on from that picture."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from agent import Settings, SmartCanvas, Studio, TargetNote
from tests.support.children import StudioChild
from tests.support.scenes import png
from tests.support.turns import at_rest

KILLED = """
import asyncio, os, signal, sys
from pathlib import Path
from agent import Settings, Studio, TurnRequest

async def main(home, picture, moment):
    async with Studio(Settings(home=Path(home))) as studio:
        conversation = await studio.conversations.create()
        print(conversation.id, flush=True)
        for text, images in (("make it warmer", [Path(picture)]), ("undo that and make it darker", [])):
            async for event in studio.run_turn(conversation.id, TurnRequest(text=text, images=images)):
                if images == [] and moment in (event.type, getattr(event, "step", None)):
                    os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main(*sys.argv[1:]))
"""


@pytest.mark.parametrize("moment", ["target_changed", "adjusting", "picture_ready"])
async def test_a_studio_killed_in_the_middle_goes_on_from_the_earlier_picture(tmp_path: Path, moment: str) -> None:
    home, file = tmp_path / "home", tmp_path / "blue.png"
    file.write_bytes(png(64, 36, "#4080c0"))
    with StudioChild(KILLED, str(home), str(file), moment) as child:
        conversation_id = await child.line()
        assert await child.ended() == -signal.SIGKILL
    async with Studio(Settings(home=home, retry_budget_s=0)) as studio:
        kept = await at_rest(studio, conversation_id)
    assert [(one.handle, one.parents) for one in kept.pictures] == [("#1", ()), ("#1b", ("#1",)), ("#1c", ("#1",))]
    notes = [one for one in kept.turns[-1].components if isinstance(one, TargetNote)]
    assert [note.change.handle for note in notes] == ["#1"]
    assert SmartCanvas(handles=("#1c",)) in kept.turns[-1].components

"""A studio that is killed while it goes back, or while another branch is painted, goes on with what it had."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from agent import ErrorCode, FailureNote, Settings, SmartCanvas, Studio, TargetNote, Turn, TurnState
from tests.behaviour.talk import Talk
from tests.support.children import StudioChild
from tests.support.gemini import on_gemini
from tests.support.scenes import png
from tests.support.turns import at_rest
from tests.support.waiting import until
from tests.wire_server import GeminiServer, Hold, Text

KILLED = """
import asyncio, sys
from pathlib import Path
from agent import Settings, Studio, TurnRequest
from tests.support.gemini import on_gemini
from tests.support.scenes import run
from tests.support.turns import send, started

async def main(home, url):
    async with Studio(on_gemini(Settings(home=Path(home), retry_budget_s=0), url)) as studio:
        conversation = await studio.conversations.create()
        first = started(await run(studio, conversation.id, "a"))
        print(conversation.id, first, flush=True)
        await send(studio, conversation.id, TurnRequest(text="b", instead_of=first))

asyncio.run(main(*sys.argv[1:]))
"""


async def test_a_turn_said_otherwise_goes_on_in_its_branch_after_its_process_was_killed(
    models: GeminiServer, tmp_path: Path
) -> None:
    settings = on_gemini(Settings(home=tmp_path / "home", retry_budget_s=0), models.url)
    models.on_text(Text("Well."), Hold(Text("never")))
    with StudioChild(KILLED, str(settings.home), models.url) as child:
        conversation_id, first = (await child.line()).split()
        await until(lambda: models.held)
        child.kill()
        await child.ended()
    async with Studio(settings) as studio:
        talk = Talk(studio, models, conversation_id, "local")

        async def at_rest() -> Turn | None:
            newest = (await talk.kept()).turns[-1]
            return newest if newest.state in {TurnState.FAILED, TurnState.DONE} else None

        rests = await until(at_rest)
        await talk.rests()
        again = await talk.retry(rests, Text("Otherwise."))
        kept = await talk.kept()
        shown = await studio.conversations.switch_branch(conversation_id, first)
    notes = [one.error.code for one in rests.components if isinstance(one, FailureNote)]
    assert notes == [ErrorCode.CALL_UNKNOWN], "what may have been charged is asked for again only by the person"
    assert (again.words, models.violations) == ("Otherwise.", [])
    assert [(turn.id, turn.text, turn.state) for turn in kept.turns] == [(rests.id, "b", TurnState.DONE)]
    assert kept.forks == {rests.id: (first, rests.id)}
    assert [(turn.text, turn.state) for turn in shown.turns] == [("a", TurnState.DONE)]


KILLED_IN_UNDO = """
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
    with StudioChild(KILLED_IN_UNDO, str(home), str(file), moment) as child:
        conversation_id = await child.line()
        assert await child.ended() == -signal.SIGKILL
    async with Studio(Settings(home=home, retry_budget_s=0)) as studio:
        kept = await at_rest(studio, conversation_id)
    assert [(one.handle, one.parents) for one in kept.pictures] == [("#1", ()), ("#1b", ("#1",)), ("#1c", ("#1",))]
    notes = [one for one in kept.turns[-1].components if isinstance(one, TargetNote)]
    assert [note.change.handle for note in notes] == ["#1"]
    assert SmartCanvas(handles=("#1c",)) in kept.turns[-1].components

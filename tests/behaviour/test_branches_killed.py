"""A turn that was said otherwise goes on in its branch after its process was killed."""

from __future__ import annotations

from pathlib import Path

from agent import ErrorCode, FailureNote, Settings, Studio, Turn, TurnState
from tests.behaviour.talk import Talk
from tests.support.children import StudioChild
from tests.support.gemini import on_gemini
from tests.support.waiting import until
from tests.wire_server import GeminiServer, Hold, Text

RESTS = frozenset({TurnState.FAILED, TurnState.DONE})
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
            return newest if newest.state in RESTS else None

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

"""A call that was allowed once and was under way when its process died is not made again without another click."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

from agent import Settings, TurnState
from tests.adapters.models import calls, says
from tests.adapters.tools import Arguments, Reason, ToolAnswer, ToolContext, tool
from tests.support.children import StudioChild
from tests.support.scenes import Scene, run, words
from tests.support.tool_calls import call
from tests.support.turns import at_rest, decide, newest, rows
from tests.support.waiting import until

_CHILD = """
import asyncio, sys
from tests.agent.test_consent_killed import until_it_dies
asyncio.run(until_it_dies(sys.argv[1]))
"""


async def always(arguments: Arguments, context: ToolContext) -> Reason | None:
    return "may_change_something"


def note(path: Path) -> None:
    """Write one line more, as somebody outside of the studio would."""
    path.write_text((path.read_text() if path.exists() else "") + "sent\n")


@tool(rule=always)
async def send_letter(context: ToolContext, path: Annotated[str, "Where it is written down."]) -> ToolAnswer:
    """Send a letter, which cannot be taken back."""
    note(Path(path))
    if before := os.environ.get("DIES_WHILE_SENDING"):
        # The checkpoint before this step is on disk by then.
        await until(lambda: newest_checkpoint(Path(path).parent / "home") != before)
        os._exit(9)
    return ToolAnswer({"is_sent": True})


def newest_checkpoint(home: Path) -> str:
    """Return the name of the newest checkpoint on disk; names grow with time."""
    [newest] = rows(home / "aivista.db", "SELECT max(checkpoint_id) AS name FROM checkpoints")
    return str(newest["name"])


def scene(home: Path, *later: str) -> Scene:
    send = calls(call("send_letter", "s1", path=str(home.parent / "letters")))
    script = [says(text) for text in later] if later else [send]
    return Scene(Settings(home=home, retry_budget_s=0), text=script, tools=[send_letter])


async def until_it_dies(home: str) -> None:
    """Run a turn, allow its call, and die while it runs."""
    async with scene(Path(home)).studio() as studio:
        conversation = await studio.conversations.create()
        await run(studio, conversation.id, "send it")
        os.environ["DIES_WHILE_SENDING"] = newest_checkpoint(Path(home))
        print(conversation.id, flush=True)
        await decide(studio, conversation.id, (await newest(studio, conversation.id)).id)


async def test_the_turn_that_goes_on_asks_again_before_it_sends_a_second_letter(tmp_path: Path) -> None:
    with StudioChild(_CHILD, str(tmp_path / "home")) as child:
        conversation_id = await child.line()
        assert await child.ended() == 9
    letters = tmp_path / "letters"
    async with scene(tmp_path / "home", "Sent again.").studio() as studio:
        [turn] = (await at_rest(studio, conversation_id)).turns
        assert turn.state is TurnState.WAITING
        assert letters.read_text() == "sent\n"
        events = await decide(studio, conversation_id, turn.id)
    assert words(events) == "Sent again."
    assert letters.read_text() == "sent\n" * 2

"""A studio killed at any moment of a turn: the next start goes on with it, and pays for nothing twice."""

from __future__ import annotations

import asyncio
import signal
from collections import Counter
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import pytest
from pydantic import SecretStr

from agent import (
    Conversation,
    Decision,
    ErrorCode,
    FailureNote,
    PlanCard,
    Settings,
    SmartCanvas,
    Studio,
    Turn,
    TurnDone,
    TurnEvent,
    TurnState,
)
from tests.adapters.records import Housekeeping
from tests.support import turns
from tests.support.children import StudioChild
from tests.support.gemini import KEY, SMALL
from tests.support.turns import calls_on_disk
from tests.wire_server import Answer, Call, GeminiServer, Hold, PictureAnswer, Search, Text, WireRequest
from tests.wire_server.models import Kind

WISH = "Search for the tower and draw it in the style of ukiyo-e"
REVIEW = '{"score": 0.9, "checklist": [], "lettering": "", "feedback": "Good.", "suggestions": []}'
FACTS = '{"facts": [{"item": "It is 330 m high.", "source": "tower.example"}], "prompt_draft": "a tower"}'
# What a turn asks that nothing interrupts.
ONCE = Counter(plan=2, search=1, paint=1, review=1)

CHILD = """
import asyncio, os, signal, sys
from pathlib import Path
from pydantic import SecretStr
from agent import Settings, Studio, TurnRequest, TurnSettings
from agent.settings import Patiences

# The style library is loaded for the first time, on a machine that has other things to do.
PATIENT = Patiences(retriever_s=60)

async def main(home, url, key, wish, moment, confirm):
    settings = Settings(home=Path(home), gemini_api_key=SecretStr(key), gemini_base_url=url, patiences=PATIENT)
    chosen = TurnSettings(allow_search=True, review="always", confirm=confirm == "confirm")
    async with Studio(settings) as studio:
        conversation = await studio.conversations.create()
        print(conversation.id, flush=True)
        request = TurnRequest(text=wish, settings=chosen)
        async for event in studio.run_turn(conversation.id, request):
            if moment in (event.type, getattr(event, "step", None)):
                os.kill(os.getpid(), signal.SIGKILL)
        await asyncio.sleep(60)

asyncio.run(main(*sys.argv[1:]))
"""


# It dies right before its so-manyth step with the file of a picture: Python tells of each.
DIES_WHILE_STORING = """
import asyncio, os, signal, sys
from pathlib import Path
from pydantic import SecretStr
from agent import Settings, Studio, TurnRequest

STEPS = {"open", "os.mkdir", "os.rename"}

async def main(home, url, key, last_step):
    steps = 0
    def count(name, arguments):
        nonlocal steps
        if name not in STEPS or not str(arguments[0]).startswith(home + "/pictures"):
            return
        steps += 1
        if steps == int(last_step):
            os.kill(os.getpid(), signal.SIGKILL)
    sys.addaudithook(count)
    async with Studio(Settings(home=Path(home), gemini_api_key=SecretStr(key), gemini_base_url=url)) as studio:
        conversation = await studio.conversations.create()
        print(conversation.id, flush=True)
        async for event in studio.run_turn(conversation.id, TurnRequest(text="a fox")):
            pass

asyncio.run(main(*sys.argv[1:]))
"""


@dataclass
class Tower:
    """A model that searches, plans, paints and reviews; `held` names the kind of call that gets no answer, once."""

    held: str = ""
    asked: Counter[str] = field(default_factory=Counter)

    def text(self, request: WireRequest) -> Answer:
        return self._answer(self._kind(request), request)

    def picture(self, request: WireRequest) -> Answer:
        return self._answer("paint", request)

    def _kind(self, request: WireRequest) -> str:
        if request.has_search:
            return "search"
        return "plan" if request.function_names else "review"

    def _answer(self, kind: str, request: WireRequest) -> Answer:
        self.asked[kind] += 1
        answer: Answer
        match kind:
            case "search":
                answer = Search(FACTS, sources=[("tower.example", "https://redirect.example/tower")])
            case "review":
                answer = Text(REVIEW, chunks=1)
            case "paint":
                answer = PictureAnswer(width=64, height=36, signature_bytes=9000)
            case _ if request.function_responses:
                arguments = {"prompt": "the tower", "style": "ukiyo-e", "subject": "a tower", "confidence": 0.9}
                answer = Call("generate_image", arguments, text_before="Here it comes.")
            case _:
                answer = Call("web_search", {"query": "How high is the tower?"}, text_before="I will look it up.")
        if kind == self.held:
            self.held = ""
            return Hold(answer)
        return answer


async def killed(server: GeminiServer, home: Path, moment: str = "", confirm: str = "", steps: int = 0) -> str:
    """Run the turn in a process that kills itself at the moment, or is killed once a call is held and so many steps
    are on record; return the conversation's id."""
    with StudioChild(CHILD, str(home), server.url, KEY, WISH, moment, confirm) as child:
        conversation_id = await child.line()
        if not moment:
            await asyncio.to_thread(server.wait_for_held)
            traced = "SELECT number FROM trace_steps ORDER BY number"
            await turns.until(lambda: len(turns.rows(home / "aivista.db", traced)) >= steps)
            child.kill()
        assert await child.ended() == -signal.SIGKILL
    return conversation_id


async def at_rest(studio: Studio, conversation_id: str) -> tuple[Conversation, Turn]:
    """Wait until the turn that was taken up has come to an end, and return it."""
    conversation = await turns.at_rest(studio, conversation_id)
    [turn] = conversation.turns
    return conversation, turn


def journal(home: Path) -> dict[str, str]:
    """Return the state of every paid call on disk, by name."""
    return {name: row["state"] for name, row in calls_on_disk(home).items()}


@pytest.fixture
def tower(server: GeminiServer) -> Tower:
    brain = Tower()
    server.on_text(brain.text)
    server.on_image(brain.picture)
    return brain


@pytest.mark.parametrize(
    "moment",
    [
        "turn_started",
        "thinking",
        "text_delta",
        "searching",
        "searched",
        "understood",
        "styles",
        "painting",
        "painting_started",
        "picture_ready",
        "painted",
        "reviewing",
        "picture_reviewed",
        "reviewed",
    ],
)
async def test_a_turn_whose_studio_was_killed_goes_on_at_the_next_start(
    server: GeminiServer, gemini: Settings, tower: Tower, moment: str
) -> None:
    conversation_id = await killed(server, gemini.home, moment)
    before = Counter(tower.asked)
    lost = {name.split(":")[0] for name, state in journal(gemini.home).items() if state == "sent"}
    async with Studio(gemini) as studio:
        conversation, turn = await at_rest(studio, conversation_id)
        if lost - {"critic"}:
            # The last words of the dead process were a question: nothing is asked again before the person says so.
            assert turn.state is TurnState.FAILED
            assert failure_of(turn) is ErrorCode.CALL_UNKNOWN
            assert tower.asked == before
            assert isinstance((await retried(studio, conversation_id, turn))[-1], TurnDone)
            conversation, turn = await at_rest(studio, conversation_id)
        assert turn.state is TurnState.DONE
        assert [one.handle for one in conversation.pictures if one.receipt] == ["#1"]
        assert [one.handles for one in turn.components if isinstance(one, SmartCanvas)] == [("#1",)]
    again = {"planner": "plan", "searcher": "search", "picture": "paint"}
    # On record as sent: whether its bytes had left when the process died, only the server knows.
    perhaps_twice = Counter(again[name] for name in lost if name in again)
    # A review that was lost is not made again: its picture passes without.
    assert ONCE - Counter(review=1) <= tower.asked <= ONCE + perhaps_twice
    assert server.violations == []


@pytest.mark.parametrize(("kind", "ended"), [("plan", 0), ("search", 2), ("paint", 2)])
async def test_a_call_that_was_on_its_way_is_never_made_again_without_a_click(
    server: GeminiServer, gemini: Settings, tower: Tower, kind: str, ended: int
) -> None:
    tower.held = kind
    conversation_id = await killed(server, gemini.home, steps=ended)
    before = Counter(tower.asked)
    async with Studio(gemini) as studio:
        _, turn = await at_rest(studio, conversation_id)
        assert turn.state is TurnState.FAILED
        assert failure_of(turn) is ErrorCode.CALL_UNKNOWN
        assert tower.asked == before
        assert "unknown" in journal(gemini.home).values()
        assert isinstance((await retried(studio, conversation_id, turn))[-1], TurnDone)
        assert tower.asked == ONCE + Counter({kind: 1})
        assert "unknown" not in journal(gemini.home).values()
        # The steps that had ended are on record, and the turn goes on behind them.
        steps = await studio.trace(conversation_id, turn.id)
        assert [step.number for step in steps] == list(range(1, len(steps) + 1))
        # Whether the planner's answer came from a checkpoint or from the journal, too.
        *_, lost = (step for step in steps if step.source == "journal")
        assert (lost.attempts, lost.number > ended) == (0, True)
        assert lost.error is not None
        assert lost.error.code is ErrorCode.CALL_UNKNOWN
        assert [(step.source, step.attempts) for step in steps if step.name == lost.name][-1] == ("sent", 1)
        assert next(step.name for step in steps if step.asks_for == "words") == "planner:1"
    assert server.violations == []


async def test_a_review_that_was_lost_lets_the_picture_pass_and_is_not_paid_again(
    server: GeminiServer, gemini: Settings, tower: Tower
) -> None:
    tower.held = "review"
    conversation_id = await killed(server, gemini.home)
    async with Studio(gemini) as studio:
        conversation, turn = await at_rest(studio, conversation_id)
    assert turn.state is TurnState.DONE
    assert tower.asked == ONCE
    review = conversation.picture("#1").review
    assert review is not None
    assert review.score is None


async def test_of_two_pictures_the_one_that_came_is_kept_and_only_the_other_is_asked_again(
    server: GeminiServer, gemini: Settings
) -> None:
    wish = {"prompt": "a fox", "number_of_images": 2, "confidence": 0.9}
    server.on_text(Call("generate_image", wish))
    server.on_image(PictureAnswer(width=64, height=36), Hold(PictureAnswer(width=64, height=36)))
    conversation_id = await killed(server, gemini.home, "picture_ready")
    painted = [one for one in server.requests if one.kind == "image"]
    async with Studio(gemini) as studio:
        conversation, turn = await at_rest(studio, conversation_id)
        assert turn.state is TurnState.DONE
        assert [one.handles for one in turn.components if isinstance(one, SmartCanvas)] == [("#1",)]
        assert failure_of(turn) is ErrorCode.CALL_UNKNOWN
        assert (await studio.picture(conversation_id, "#1")).data
    assert [one for one in server.requests if one.kind == "image"] == painted
    assert [one.handle for one in conversation.pictures] == ["#1"]


async def test_a_picture_that_had_come_and_was_not_stored_yet_is_never_painted_again_without_a_click(
    server: GeminiServer, gemini: Settings
) -> None:
    """Killed at every step of storing it, from the first to the last."""
    for step in count(1):
        server.clear()
        server.on_text(lambda request: Call("generate_image", {"prompt": "a fox", "confidence": 0.9}))
        server.on_image(lambda request: SMALL)
        with StudioChild(DIES_WHILE_STORING, str(gemini.home), server.url, KEY, str(step)) as child:
            conversation_id = await child.line()
            if await child.ended() == 0:
                break
        assert turns.asked(server, Kind.IMAGE) == 1
        async with Studio(gemini) as studio:
            conversation, turn = await at_rest(studio, conversation_id)
            assert turn.state is TurnState.FAILED
            assert failure_of(turn) is ErrorCode.CALL_UNKNOWN
            assert conversation.pictures == ()
            assert turns.asked(server, Kind.IMAGE) == 1
            assert isinstance((await retried(studio, conversation_id, turn))[-1], TurnDone)
            assert turns.asked(server, Kind.IMAGE) == 2
            conversation, turn = await at_rest(studio, conversation_id)
            assert turn.state is TurnState.DONE
            assert [one.handle for one in conversation.pictures] == ["#1"]
            assert (await studio.picture(conversation_id, "#1")).data
    assert step > 3
    assert Housekeeping(gemini.home).check().is_fine
    assert server.violations == []


async def test_a_plan_waits_through_a_kill(server: GeminiServer, gemini: Settings, tower: Tower) -> None:
    conversation_id = await killed(server, gemini.home, "turn_paused", "confirm")
    before = Counter(tower.asked)
    assert before["paint"] == 0
    async with Studio(gemini) as studio:
        _, turn = await at_rest(studio, conversation_id)
        assert turn.state is TurnState.WAITING
        [card] = [one for one in turn.components if isinstance(one, PlanCard)]
        assert card.state == "pending"
        events = [event async for event in studio.decide(conversation_id, turn.id, Decision(run=True))]
        assert isinstance(events[-1], TurnDone)
    assert tower.asked == ONCE


async def test_a_turn_of_a_visitor_s_own_key_waits_for_that_key(
    server: GeminiServer, gemini: Settings, tower: Tower
) -> None:
    tower.held = "paint"
    conversation_id = await killed(server, gemini.home)
    before = Counter(tower.asked)
    async with Studio(gemini.model_copy(update={"gemini_api_key": None})) as studio:
        conversation = await studio.conversations.get(conversation_id)
        [turn] = conversation.turns
        assert turn.state is TurnState.INTERRUPTED
        assert tower.asked == before
        events = [event async for event in studio.retry(conversation_id, turn.id, key=SecretStr(KEY))]
        assert isinstance(events[-1], TurnDone)
    assert tower.asked == ONCE + Counter(paint=1)


async def retried(studio: Studio, conversation_id: str, turn: Turn) -> list[TurnEvent]:
    return [event async for event in studio.retry(conversation_id, turn.id)]


def failure_of(turn: Turn) -> ErrorCode:
    return next(one.error.code for one in turn.components if isinstance(one, FailureNote))

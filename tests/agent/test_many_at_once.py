"""Many conversations at the same time: nothing of one shows in another, and every one of them comes to its end."""

from __future__ import annotations

import asyncio

import pytest

from agent.components import PlanCard, SmartCanvas
from agent.conversation import Conversation, TurnState
from agent.events import PictureReady, PictureReviewed, PlanReady, TurnDone, TurnEvent, TurnPaused
from agent.plans import PlanEdit
from agent.settings import Settings, TurnSettings
from agent.studio import Studio, TurnRequest
from tests.support.gemini import SMALL, on_gemini, spoken
from tests.support.scenes import of_type, only, run
from tests.support.turns import OVER, decide, rows, send, started
from tests.wire_server import Answer, Call, GeminiServer, Text, WireRequest

REVIEW = '{"score": %s, "checklist": [], "lettering": "", "feedback": "%s is there.", "suggestions": []}'


def mark_of(request: WireRequest) -> str:
    """Return whose request it is."""
    return next(word.strip('".,') for word in request.text.split() if word.startswith("MARK"))


def talker(request: WireRequest) -> Answer:
    """Plan a picture of the person's own mark, thank when it is there, and review what is shown."""
    mark = mark_of(request)
    if not request.function_names:
        return Text(REVIEW % (0.9, mark), chunks=1)
    if "thanks" in request.last_text:
        return Text(f"You are welcome, {mark}.", chunks=2)
    return Call("generate_image", {"prompt": f"a picture of {mark}", "confidence": 0.9}, text_before=f"For {mark}.")


async def talk(studio: Studio, mark: str, number: int) -> tuple[list[TurnEvent], Conversation]:
    """Have a picture painted, reviewed or confirmed by turns, and say thanks."""
    conversation = await studio.new_conversation(owner=f"owner of {mark}")
    owner = conversation.owner
    events = await ask(studio, conversation.id, owner, f"paint {mark} please", number)
    if number % 2:
        assert isinstance(events[-1], TurnPaused)
        edit = PlanEdit(prompt=f"an edited picture of {mark}")
        is_dropped = number % 10 == 1
        events += await decide(studio, conversation.id, started(events), edit, run=not is_dropped, owner=owner)
    events += await ask(studio, conversation.id, owner, f"thanks {mark}", 0)
    return events, await studio.conversation(conversation.id, owner)


async def ask(studio: Studio, conversation_id: str, owner: str, text: str, number: int) -> list[TurnEvent]:
    chosen = TurnSettings(confirm=number % 2 == 1, review="always" if number % 3 == 0 else "off")
    return await send(studio, conversation_id, TurnRequest(text=text, settings=chosen), owner=owner)


@pytest.mark.parametrize("count", [10, 50])
async def test_reviews_and_plans_of_many_conversations_never_mix(settings: Settings, count: int) -> None:
    marks = [f"MARK{number:02}" for number in range(count)]
    with GeminiServer(text=talker, image=lambda request: SMALL) as server:
        gemini = on_gemini(settings, server.url)
        async with Studio(gemini) as studio:
            told = await asyncio.gather(*(talk(studio, mark, number) for number, mark in enumerate(marks)))
            assert not any(studio.is_running(kept.id, kept.owner) for _, kept in told)
        assert server.violations == []
    for number, (events, kept) in enumerate(told):
        everything = spoken(events) + kept.model_dump_json()
        assert [mark for mark in marks if mark in everything] == [marks[number]]
        expect_whole(events, kept, number)
    calls = rows(gemini.home / "aivista.db", "SELECT conversation_id, name, state FROM calls")
    assert {row["state"] for row in calls} == {"done"}
    assert {row["conversation_id"] for row in calls} == {kept.id for _, kept in told}


def expect_whole(events: list[TurnEvent], kept: Conversation, number: int) -> None:
    """The conversation has its picture, unless its plan was dropped, and its review or plan where it wanted one."""
    is_dropped = number % 10 == 1
    assert [turn.state for turn in kept.turns] == [TurnState.DONE] * 2
    assert len(of_type(events, TurnDone)) == 2
    assert len(of_type(events, PictureReady)) == len(kept.pictures) == (not is_dropped)
    assert len(of_type(events, PlanReady)) == number % 2
    assert len(of_type(events, PictureReviewed)) == (number % 3 == 0 and not is_dropped)
    cards = [one.state for one in kept.turns[0].components if isinstance(one, PlanCard)]
    assert cards == (["dropped" if is_dropped else "run"] if number % 2 else [])
    shown = [one.handles for one in kept.turns[0].components if isinstance(one, SmartCanvas)]
    assert shown == ([] if is_dropped else [("#1",)])


async def test_many_stops_in_the_middle_leave_every_turn_and_every_call_ended(settings: Settings) -> None:
    marks = [f"MARK{number:02}" for number in range(12)]
    with GeminiServer(text=talker, image=lambda request: SMALL) as server:
        gemini = on_gemini(settings, server.url)
        async with Studio(gemini) as studio:
            kept = [await studio.new_conversation() for _ in marks]

            async def stop(conversation: Conversation, number: int) -> None:
                await asyncio.sleep(0.02 * number)
                await studio.cancel(conversation.id)

            turns = (
                run(studio, one.id, f"paint {mark}", review="always") for one, mark in zip(kept, marks, strict=True)
            )
            await asyncio.gather(*turns, *(stop(one, number) for number, one in enumerate(kept)))
            states = {(await studio.conversation(one.id)).turns[-1].state for one in kept if await began(studio, one)}
        assert server.violations == []
    assert states <= OVER
    left = rows(gemini.home / "aivista.db", "SELECT state FROM calls")
    assert {row["state"] for row in left} <= {"done", "cancelled"}
    assert left


async def began(studio: Studio, conversation: Conversation) -> bool:
    return bool((await studio.conversation(conversation.id)).turns)


async def test_the_picture_of_each_is_its_own(settings: Settings) -> None:
    marks = [f"MARK{number:02}" for number in range(10)]
    with GeminiServer(text=talker) as server:
        async with Studio(on_gemini(settings, server.url)) as studio:
            kept = [await studio.new_conversation() for _ in marks]
            events = await asyncio.gather(
                *(run(studio, one.id, f"paint {mark}") for one, mark in zip(kept, marks, strict=True))
            )
            prompts = [(await studio.picture(one.id, "#1")).receipt for one in kept]
            data = [(await studio.picture(one.id, "#1")).data for one in kept]
    assert [receipt and receipt.prompt for receipt in prompts] == [f"a picture of {mark}" for mark in marks]
    assert len(set(data)) == len(marks)
    for one, mark in zip(events, marks, strict=True):
        assert mark in only(one, PictureReady).picture.alt

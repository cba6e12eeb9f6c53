"""The same request sent twice runs once, in one process and after a restart, and is told the same both times."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from agent import (
    ErrorCode,
    PlanReady,
    QuestionAsked,
    Settings,
    Studio,
    TextDelta,
    TurnDone,
    TurnFailed,
    TurnPaused,
    TurnState,
    TurnStopped,
)
from tests.behaviour.conftest import OpenTalk
from tests.behaviour.talk import Talk, TurnResult
from tests.support.gemini import SMALL, paint
from tests.support.scenes import of_type, png
from tests.support.waiting import until
from tests.wire_server import Finish, Hold, Text

TWO = paint(number_of_images=2)
SAID = "Here it comes."


def handles(turn: TurnResult) -> list[str]:
    """Return the handles of the pictures that came, in order of their names."""
    return sorted(picture.handle for picture in turn.pictures)


async def test_in_one_process_the_same_request_is_answered_by_the_turn_it_began(talk: Talk) -> None:
    talk.models.on_text(TWO)
    talk.models.on_image(SMALL, SMALL)
    first, second = await asyncio.gather(*(talk.say("two foxes", request_id="r1") for _ in range(2)))
    third = await talk.say("two foxes", request_id="r1")
    assert len(talk.models.requests) == 3
    assert first.events == second.events
    for again in (second, third):
        assert (again.id, handles(again), again.words) == (first.id, ["#1", "#2"], SAID)
        assert again.one(TurnDone).price_usd == first.one(TurnDone).price_usd
    assert len((await talk.kept()).turns) == 1


async def test_after_a_restart_it_is_told_from_the_record_and_nothing_is_asked(open_talk: OpenTalk) -> None:
    async with open_talk() as talk:
        first = await talk.say("two foxes", png(), plan=TWO, image=[SMALL, SMALL], request_id="r1")
        before = await talk.kept()
    async with open_talk(talk) as talk:
        again = await talk.say("two foxes", png(), request_id="r1")
        assert await talk.kept() == before
    assert again.requests == []
    assert (again.events[0], again.events[-1]) == (first.events[0], first.events[-1])
    assert (handles(again), again.words) == (["#1b", "#1c"], SAID)


async def test_however_often_it_is_started_anew_it_costs_nothing_more(open_talk: OpenTalk) -> None:
    async with open_talk() as talk:
        first = await talk.say("a fox", plan=paint(), image=SMALL, request_id="r1")
    assert len(first.requests) == 2
    for _ in range(2):
        async with open_talk(talk) as talk:
            again = await talk.say("a fox", request_id="r1")
            stored = await talk.studio.picture(talk.id, "#1", talk.owner)
        assert (handles(again), again.events[-1], again.requests) == (["#1"], first.events[-1], [])
        assert stored.receipt == first.receipt


async def test_a_request_that_failed_is_told_as_failed_and_not_tried_again(open_talk: OpenTalk) -> None:
    async with open_talk() as talk:
        first = await talk.say("a fox", plan=paint(), image=Finish("IMAGE_SAFETY"), request_id="r1")
        second = await talk.say("a fox", request_id="r1")
    async with open_talk(talk) as talk:
        third = await talk.say("a fox", request_id="r1")
        [kept] = (await talk.kept()).turns
    assert (second.requests, third.requests) == ([], [])
    for turn in (first, second, third):
        failed = turn.one(TurnFailed)
        assert (failed.error.code, failed.node) == (ErrorCode.PICTURE_BLOCKED, "executor")
        assert (turn.id, turn.words, turn.events[-1]) == (kept.id, SAID, failed)


async def test_a_request_whose_plan_waits_shows_the_plan_again_and_it_can_be_run(open_talk: OpenTalk) -> None:
    async with open_talk() as talk:
        first = await talk.say("a fox", plan=paint(), confirm=True, request_id="r1")
        second = await talk.say("a fox", confirm=True, request_id="r1")
    async with open_talk(talk) as talk:
        third = await talk.say("a fox", confirm=True, request_id="r1")
        done = await talk.decide(third, image=SMALL)
    async with open_talk(talk) as talk:
        after = await talk.say("a fox", confirm=True, request_id="r1")
        assert (await talk.kept()).turns[-1].state is TurnState.DONE
    assert [len(turn.requests) for turn in (first, second, third, done, after)] == [1, 0, 0, 1, 0]
    for turn in (first, second, third):
        assert turn.one(PlanReady) == first.one(PlanReady)
        assert isinstance(turn.events[-1], TurnPaused)
    assert handles(done) == handles(after) == ["#1"]
    assert not of_type(after.events, PlanReady)
    assert isinstance(after.events[-1], TurnDone)


async def test_a_question_asked_back_is_asked_again(open_talk: OpenTalk) -> None:
    async with open_talk() as talk:
        first = await talk.say("", request_id="r1")
    async with open_talk(talk) as talk:
        again = await talk.say("", request_id="r1")
    assert again.one(QuestionAsked) == first.one(QuestionAsked) == QuestionAsked(question="empty")
    assert again.events[-1] == first.events[-1]


async def test_a_stopped_request_is_told_as_stopped(open_talk: OpenTalk) -> None:
    async with open_talk() as talk:
        held = Hold(Text("One two three", chunks=3), after_chunks=1)
        first = await talk.stop_at(TextDelta, "count", plan=held, request_id="r1")
        assert (await talk.kept()).turns[-1].state is TurnState.STOPPED
        await until(lambda: not talk.models.held)
    async with open_talk(talk) as talk:
        again = await talk.say("count", request_id="r1")
    assert isinstance(again.events[-1], TurnStopped)
    assert (again.id, again.words, again.requests) == (first.id, first.words.strip(), [])


async def test_other_names_other_conversations_and_no_name_at_all_run_each_for_itself(talk: Talk) -> None:
    other = replace(talk, id=(await talk.studio.conversations.create(talk.owner)).id)
    named = [(talk, "r1"), (talk, "r2"), (other, "r1"), (talk, None), (talk, None), (talk, "r1")]
    asked = [len((await one.say("hello there", request_id=name)).requests) for one, name in named]
    assert asked == [1, 1, 1, 1, 1, 0]
    assert [turn.request_id for turn in (await talk.kept()).turns] == ["r1", "r2", None, None]


async def test_a_stranger_who_guesses_the_name_learns_nothing(talk: Talk) -> None:
    await talk.say("tell me", plan=Text("A secret."), request_id="r1")
    stranger = replace(talk, owner="bob")
    events = [event async for event in stranger.run("tell me", request_id="r1")]
    assert isinstance(events[-1], TurnFailed)
    assert events[-1].error.code is ErrorCode.CONVERSATION_NOT_FOUND
    assert "A secret." not in "".join(event.model_dump_json() for event in events)


async def test_a_request_begins_one_conversation_also_from_two_studios_at_once_and_after_a_restart(
    tmp_path: Path,
) -> None:
    settings = Settings(home=tmp_path)
    async with Studio(settings) as one, Studio(settings) as other:
        began = [studio.conversations.create("ann", "r1") for studio in (one, other) * 10]
        [only] = {made.id for made in await asyncio.gather(*began)}
        await other.conversations.rename(only, "Foxes", "ann")
        assert (await one.conversations.create("ann", "r1")).title == "Foxes"
        others = [await one.conversations.create(owner, name) for owner, name in (("ann", "r2"), ("bob", "r1"))]
        others += [await one.conversations.create("ann") for _ in range(2)]
        assert len({only, *(made.id for made in others)}) == 5
    async with Studio(settings) as again:
        assert (await again.conversations.create("ann", "r1")).id == only


async def test_a_deleted_conversation_gives_its_request_away(tmp_path: Path) -> None:
    async with Studio(Settings(home=tmp_path)) as studio:
        first = await studio.conversations.create("ann", "r1")
        await studio.conversations.delete(first.id, "ann")
        second = await studio.conversations.create("ann", "r1")
        await studio.conversations.undelete(first.id, "ann")
        assert (await studio.conversations.create("ann", "r1")).id == second.id != first.id
        await studio.conversations.delete(second.id, "ann")
        await studio.conversations.delete_forever(second.id, "ann")
        assert (await studio.conversations.create("ann", "r1")).id not in (first.id, second.id)


async def test_a_request_of_a_conversation_has_1_to_200_characters(tmp_path: Path) -> None:
    async with Studio(Settings(home=tmp_path)) as studio:
        for name in ("", "r" * 201):
            with pytest.raises(ValueError, match="1 to 200"):
                await studio.conversations.create("ann", name)
        assert (await studio.conversations.create("ann", "r" * 200)).owner == "ann"


async def test_the_conversation_that_a_request_was_sent_in_is_found_until_it_is_deleted(open_talk: OpenTalk) -> None:
    async with open_talk() as talk:
        assert await talk.studio.turns.conversation_of_request("r1", talk.owner) is None
        held = Hold(Text("One two three", chunks=3), after_chunks=1)
        seen: list[str | None] = []
        talk.models.on_text(held)
        sent = asyncio.create_task(talk.say("count", request_id="r1"))
        await until(lambda: bool(talk.models.held))
        seen.append(await talk.studio.turns.conversation_of_request("r1", talk.owner))
        talk.models.release()
        await sent
        assert await talk.studio.turns.conversation_of_request("r1", "bob") is None
    async with open_talk(talk) as talk:
        seen.append(await talk.studio.turns.conversation_of_request("r1", talk.owner))
        assert seen == [talk.id, talk.id]
        await talk.studio.conversations.delete(talk.id, talk.owner)
        assert await talk.studio.turns.conversation_of_request("r1", talk.owner) is None
        await talk.studio.conversations.undelete(talk.id, talk.owner)

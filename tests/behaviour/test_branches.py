"""What is said otherwise stands beside what was said first: both are kept, one is shown, and either may go on."""

from __future__ import annotations

import asyncio

from agent import Conversation, ErrorCode, PlanCard, SmartCanvas, Step, ThoughtLog, TurnDone, TurnPaused, TurnState
from tests.adapters.records import turns_with_checkpoints
from tests.behaviour.conftest import OpenTalk
from tests.behaviour.talk import Talk, TurnResult
from tests.support.gemini import SMALL, paint
from tests.support.refusals import refusal
from tests.support.scenes import png
from tests.support.waiting import until
from tests.wire_server import Hold, HttpError, Text
from tests.wire_server.models import text_of

BROKEN = HttpError(500)
COUNT = Hold(Text("One two.", chunks=2), after_chunks=1)


async def show(talk: Talk, turn: TurnResult) -> Conversation:
    """Show the branch of a turn."""
    return await talk.studio.conversations.switch_branch(talk.id, turn.id, talk.owner)


def texts(conversation: Conversation) -> list[str]:
    """Return what the person said in the branch that is shown."""
    return [turn.text for turn in conversation.turns]


def heard(turn: TurnResult) -> list[str]:
    """Return what the text model was shown of the conversation, a text for each time somebody spoke."""
    return [text_of(content) for content in turn.requests[0].contents]


async def test_a_turn_said_otherwise_stands_beside_the_first_and_hears_only_what_was_before_it(talk: Talk) -> None:
    first = await talk.say("count", plan=Text("One."))
    second = await talk.say("go on", plan=Text("Two."))
    await talk.say("and on", plan=Text("Three."))
    other = await talk.say("go back", plan=Text("Four."), instead_of=second.id)
    assert heard(other) == ["count", "One.", "go back"]
    kept = await talk.kept()
    assert [(turn.id, turn.parent) for turn in kept.turns] == [(first.id, None), (other.id, first.id)]
    assert kept.forks == {other.id: (second.id, other.id)}


async def test_the_very_first_turn_can_be_said_otherwise(talk: Talk) -> None:
    first = await talk.say("count", plan=Text("One."))
    other = await talk.say("conta", plan=Text("Uno."), instead_of=first.id)
    assert heard(other) == ["conta"]
    kept = await talk.kept()
    assert kept.forks == {other.id: (first.id, other.id)}
    assert kept.turns[0].parent is None


async def test_switching_shows_a_branch_to_its_newest_turn_and_back_also_after_a_restart(open_talk: OpenTalk) -> None:
    async with open_talk() as talk:
        await talk.say("a")
        second = await talk.say("b")
        await talk.say("c")
        other = await talk.say("d", instead_of=second.id)
        assert texts(await talk.kept()) == ["a", "d"]
        assert texts(await show(talk, second)) == texts(await talk.kept()) == ["a", "b", "c"]
        await talk.say("e")
        assert texts(await show(talk, other)) == ["a", "d"]
    async with open_talk(talk) as talk:
        assert texts(await talk.kept()) == ["a", "d"]
        assert texts(await show(talk, second)) == ["a", "b", "c", "e"]


async def test_a_turn_that_is_not_shown_cannot_be_said_otherwise_and_one_that_is_not_there_not_be_shown(
    talk: Talk,
) -> None:
    first = await talk.say("a")
    await talk.say("b", instead_of=first.id)
    for hidden in (first.id, "no such turn"):
        refused = await talk.say("c", instead_of=hidden)
        assert (refused.failure.code, refused.requests) == (ErrorCode.TURN_NOT_FOUND, [])
    switch = talk.studio.conversations.switch_branch
    assert await refusal(switch(talk.id, "no such turn", talk.owner)) is ErrorCode.TURN_NOT_FOUND
    assert await refusal(switch(talk.id, first.id, "ann")) is ErrorCode.CONVERSATION_NOT_FOUND
    assert texts(await talk.kept()) == ["b"]


async def test_handles_are_given_once_in_all_branches(talk: Talk) -> None:
    first = await talk.say("a fox", png(), plan=paint(), image=SMALL)
    other = await talk.say("a hen", png(colour="blue"), plan=paint(), image=SMALL, instead_of=first.id)
    kept = await talk.kept()
    assert [(one.handle, one.turn_id) for one in kept.pictures] == [("#2", other.id), ("#2b", other.id)]
    assert [(one.handle, one.turn_id) for one in kept.elsewhere] == [("#1", first.id), ("#1b", first.id)]


async def test_the_newest_picture_is_that_of_the_shown_branch_and_a_named_one_may_be_of_any(talk: Talk) -> None:
    first = await talk.say("a fox", plan=paint(), image=SMALL)
    await talk.say("a hen", plan=paint("a hen"), image=SMALL, instead_of=first.id)
    await show(talk, first)
    newest = paint("make it blue", action="edit_image", reference_mode="LAST_GENERATED")
    changed = await talk.say("with a hat, please", plan=newest, image=SMALL)
    assert not any("#2" in request.text for request in changed.requests)
    named = paint("make it green", action="edit_image", handles=["#2"])
    await talk.say("and #2 green", plan=named, image=SMALL)
    kept = await talk.kept()
    parents = {one.handle: one.parents for one in kept.all_pictures}
    assert parents == {"#1": (), "#2": (), "#1b": ("#1",), "#2b": ("#2",)}
    assert [one.handle for one in kept.pictures] == ["#1", "#1b", "#2b"]


async def test_a_picture_of_another_branch_can_be_marked_to_be_changed(talk: Talk) -> None:
    first = await talk.say("a fox", plan=paint(), image=SMALL)
    await talk.say("a hen", plan=paint("a hen"), image=SMALL, instead_of=first.id)
    turn = await talk.say("redder", plan=paint("redder"), image=SMALL, editing="#1")
    assert (turn.picture.handle, turn.picture.parents) == ("#1b", ("#1",))
    assert (await talk.kept()).pictures[-1].handle == "#1b"


async def test_nothing_is_switched_while_a_turn_runs(talk: Talk) -> None:
    first = await talk.say("a")
    await talk.say("b", instead_of=first.id)
    running = asyncio.create_task(talk.say("count", plan=COUNT))
    await until(lambda: talk.models.held)
    assert await refusal(show(talk, first)) is ErrorCode.CONVERSATION_BUSY
    talk.models.release()
    assert isinstance((await running).events[-1], TurnDone)
    assert texts(await talk.kept()) == ["b", "count"]
    assert texts(await show(talk, first)) == ["a"]


async def test_a_turn_said_otherwise_while_one_runs_waits_for_it(talk: Talk) -> None:
    first = await talk.say("a")
    running = asyncio.create_task(talk.say("count", plan=COUNT))
    await until(lambda: talk.models.held)
    waiting = talk.run("b", instead_of=first.id)
    assert await anext(waiting) == ThoughtLog(step=Step.WAITING, parameters={"count": 1})
    talk.models.release()
    assert isinstance((await running).events[-1], TurnDone)
    assert isinstance([event async for event in waiting][-1], TurnDone)
    assert texts(await talk.kept()) == ["b"]
    shown = await show(talk, first)
    assert [(turn.text, turn.state) for turn in shown.turns] == [("a", TurnState.DONE), ("count", TurnState.DONE)]


# ---- what rests


async def test_a_plan_of_another_branch_waits_until_one_comes_back(open_talk: OpenTalk) -> None:
    async with open_talk() as talk:
        waiting = await talk.say("a fox", plan=paint(), confirm=True)
        await talk.say("never mind", instead_of=waiting.id)
        await talk.say("tell me a tale")
        assert (await talk.decide(waiting)).failure.code is ErrorCode.PLAN_GONE
    async with open_talk(talk) as talk:
        rests = (await show(talk, waiting)).turns[-1]
        assert rests.state is TurnState.WAITING
        assert isinstance(rests.components[-1], PlanCard)
        assert rests.components[-1].state == "pending"
        done = await talk.decide(waiting, image=SMALL)
        kept = (await talk.kept()).turns[-1]
    assert isinstance(done.events[-1], TurnDone)
    assert done.requests == done.painted(), "only the picture is asked for"
    assert (kept.id, kept.state) == (waiting.id, TurnState.DONE)
    assert SmartCanvas(handles=("#1",)) in kept.components


async def test_a_plan_is_dropped_when_its_own_branch_goes_on_without_it(talk: Talk) -> None:
    waiting = await talk.say("a fox", plan=paint(), confirm=True)
    await talk.say("never mind")
    dropped = (await talk.kept()).turns[0]
    assert (dropped.id, dropped.state) == (waiting.id, TurnState.STOPPED)


async def test_a_plan_confirmed_in_one_branch_does_not_touch_that_of_another(talk: Talk) -> None:
    fox = await talk.say("a fox", plan=paint(), confirm=True)
    hen = await talk.say("a hen", plan=paint("a hen"), confirm=True, instead_of=fox.id)
    assert isinstance(hen.events[-1], TurnPaused)
    assert isinstance((await talk.decide(hen, image=SMALL)).events[-1], TurnDone)
    assert (await show(talk, fox)).turns[-1].state is TurnState.WAITING
    assert isinstance((await talk.decide(fox, image=SMALL)).events[-1], TurnDone)
    pictures = (await talk.kept()).all_pictures
    assert [(one.handle, one.turn_id) for one in pictures] == [("#2", fox.id), ("#1", hen.id)]


async def test_a_failure_that_was_said_otherwise_goes_on_after_a_switch_and_pays_nothing_twice(
    open_talk: OpenTalk,
) -> None:
    async with open_talk() as talk:
        failed = await talk.say("a fox", plan=paint(), image=BROKEN)
        await talk.say("a hen", instead_of=failed.id)
    async with open_talk(talk) as talk:
        await show(talk, failed)
        again = await talk.retry(failed, image=SMALL)
        kept = (await talk.kept()).turns[-1]
        calls = await talk.calls(kept)
    assert isinstance(again.events[-1], TurnDone)
    assert again.requests == again.painted(), "the plan is not paid for again"
    assert (kept.id, kept.state) == (failed.id, TurnState.DONE)
    assert [(call["name"], call["attempts"]) for call in calls] == [("planner:1", 1), ("picture:1.0.0.1", 2)]


async def test_a_failure_with_others_after_it_is_sent_again_at_the_end_of_the_shown_branch(talk: Talk) -> None:
    failed = await talk.say("one", plan=BROKEN)
    second = await talk.say("two")
    await talk.say("three", instead_of=second.id)
    assert (await talk.retry(failed, Text("Again."))).words == "Again."
    kept = await talk.kept()
    assert texts(kept) == ["one", "three", "one"]
    assert kept.turns[-1].parent == kept.turns[1].id


async def test_only_what_may_go_on_keeps_its_checkpoints(open_talk: OpenTalk) -> None:
    async with open_talk() as talk:
        home = talk.studio.settings.home
        waiting = await talk.say("a fox", plan=paint(), confirm=True)
        failed = await talk.say("a hen", plan=paint("a hen"), image=BROKEN, instead_of=waiting.id)
    assert turns_with_checkpoints(home) == {waiting.id, failed.id}
    async with open_talk(talk) as talk:
        await talk.say("something else")
    async with open_talk(talk) as talk:
        await talk.say("hello")
    assert turns_with_checkpoints(home) == {waiting.id}


async def test_the_same_request_is_told_again_when_its_branch_is_not_shown(talk: Talk) -> None:
    first = await talk.say("a fox", plan=paint(), image=SMALL, request_id="r1")
    await talk.say("a hen", instead_of=first.id)
    again = await talk.say("a fox", request_id="r1")
    assert (again.id, again.words, type(again.events[-1])) == (first.id, "Here it comes.", TurnDone)
    assert again.requests == []


async def test_a_request_said_otherwise_twice_under_one_name_runs_once(talk: Talk) -> None:
    first = await talk.say("a")
    once, twice = [await talk.say("b", request_id="r1", instead_of=first.id) for _ in range(2)]
    assert (once.id, len(once.requests)) == (twice.id, 1)
    assert twice.requests == []
    assert (await talk.kept()).forks == {once.id: (first.id, once.id)}


async def test_a_late_picture_goes_into_its_turn_when_another_branch_is_shown_by_then(talk: Talk) -> None:
    painting = asyncio.create_task(talk.say("a fox", plan=paint(), image=Hold(SMALL)))
    await until(lambda: talk.models.held)
    await talk.studio.cancel(talk.id, talk.owner)
    stopped = await painting
    await talk.say("a hen", instead_of=stopped.id)
    assert (await talk.kept()).all_pictures == ()
    talk.models.release()

    async def late() -> Conversation | None:
        kept = await talk.kept()
        return kept if kept.elsewhere else None

    assert [(one.handle, one.turn_id) for one in (await until(late)).elsewhere] == [("#1", stopped.id)]
    await show(talk, stopped)

    async def with_its_canvas() -> Conversation | None:
        kept = await talk.kept()
        return kept if SmartCanvas(handles=("#1",)) in kept.turns[-1].components else None

    shown = await until(with_its_canvas)
    [picture] = shown.pictures
    assert picture.handle == "#1"
    assert picture.receipt is not None
    assert shown.price_usd > picture.receipt.price_usd > 0, "the plan's price and the picture's"


async def test_the_report_of_a_turn_can_be_had_when_its_branch_is_not_shown(talk: Talk) -> None:
    first = await talk.say("a fox", plan=paint(), image=SMALL)
    await talk.say("a hen", instead_of=first.id)
    report = await talk.studio.turns.report(talk.id, first.id, owner=talk.owner)
    pictures = report["pictures"]
    assert isinstance(pictures, list)
    assert [one["handle"] for one in pictures if isinstance(one, dict)] == ["#1"]

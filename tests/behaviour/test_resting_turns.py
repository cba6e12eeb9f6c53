"""Turns taken up again at awkward moments: nothing said is lost, nothing waits for ever, nothing is asked in vain."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from agent import (
    AgentMessage,
    AskBack,
    Decision,
    ErrorCode,
    PlanCard,
    PlanReady,
    Step,
    Steps,
    ThoughtLog,
    Turn,
    TurnDone,
    TurnEvent,
    TurnFailed,
    TurnPaused,
    TurnState,
    TurnStopped,
)
from tests.behaviour.conftest import OpenTalk
from tests.behaviour.talk import Talk, TurnResult
from tests.support.gemini import SMALL, paint, search
from tests.support.scenes import of_type
from tests.support.turns import in_database, rows
from tests.support.waiting import until
from tests.wire_server import (
    Answer,
    CorruptPicture,
    Empty,
    Finish,
    Hold,
    HttpError,
    Search,
    Text,
    TextOnly,
    WireRequest,
)
from tests.wire_server.chunks import prompt_tokens

BROKEN = HttpError(500)
FACTS = {"facts": [{"item": "The tower is 330 m high.", "source": "t.example"}], "prompt_draft": "a tower"}
# How many turns of a conversation may wait in line.
MOST_WAITING = 10


def waits(told: list[TurnEvent]) -> int:
    """Return how often it was said that a turn waits in line."""
    return sum(log.step is Step.WAITING for log in of_type(told, ThoughtLog))


async def hear(events: AsyncIterator[TurnEvent], told: list[TurnEvent]) -> None:
    """Add each event as it comes."""
    async for event in events:
        told += [event]


# ---- asked for again


async def test_retry_of_a_waiting_turn_leaves_its_plan_waiting(talk: Talk) -> None:
    turn = await talk.say("a fox", plan=paint(), image=SMALL, confirm=True)
    again = await talk.retry(turn)
    assert (len(of_type(again.events, PlanReady)), type(again.events[-1])) == (1, TurnPaused)
    assert again.record.state is TurnState.WAITING
    assert isinstance((await talk.decide(turn)).events[-1], TurnDone)


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (Finish("NO_IMAGE"), ErrorCode.NO_PICTURE),
        (Empty(), ErrorCode.EMPTY_ANSWER),
        (TextOnly("I cannot."), ErrorCode.TEXT_INSTEAD_OF_PICTURE),
    ],
    ids=["no_picture", "nothing", "words"],
)
async def test_an_answer_without_a_picture_is_asked_for_again_and_each_is_counted_once(
    talk: Talk, answer: Answer, code: ErrorCode
) -> None:
    # After words, other words for the wish may be asked for.
    talk.models.on_text(lambda _: Text("Hello."))
    failed = await talk.say("a fox", plan=paint(), image=answer)
    assert failed.failure.code is code
    turn = await talk.retry(failed, image=SMALL)
    assert (len(turn.requests), len(turn.painted()), type(turn.events[-1])) == (1, 1, TurnDone)
    assert turn.record.usage.prompt_tokens == sum(sum(prompt_tokens(request)) for request in talk.models.requests)


async def test_a_picture_that_arrived_damaged_is_asked_for_again(talk: Talk) -> None:
    failed = await talk.say("a fox", plan=paint(), image=CorruptPicture())
    assert failed.failure.code is ErrorCode.BROKEN_PICTURE
    turn = await talk.retry(failed, image=SMALL)
    assert (len(talk.models.requests), type(turn.events[-1])) == (3, TurnDone)


async def test_a_search_that_could_not_be_read_is_made_again(talk: Talk) -> None:
    plan = [search(), Search("nothing like JSON"), Text("nor this")]
    failed = await talk.say("how high?", plan=plan, allow_search=True)
    assert failed.failure.code is ErrorCode.SEARCH_UNREADABLE
    turn = await talk.retry(failed, plan=[Search(FACTS), Text("330 m.")])
    assert (len(talk.models.requests), type(turn.events[-1])) == (5, TurnDone)


async def test_a_request_refused_by_a_full_queue_runs_when_sent_again(talk: Talk) -> None:
    talk.models.on_text(Hold(Text("Hello.")))
    told: list[TurnEvent] = []
    waiting = [asyncio.create_task(hear(talk.run(f"number {n}"), told)) for n in range(MOST_WAITING + 1)]
    await until(lambda: waits(told) == MOST_WAITING)
    refused = await talk.say("one too many", request_id="r1")
    assert refused.failure.code is ErrorCode.QUEUE_FULL
    await until(lambda: talk.models.held)
    talk.models.release()
    await asyncio.gather(*waiting)
    assert isinstance((await talk.say("one too many", request_id="r1")).events[-1], TurnDone)


async def test_the_same_request_after_the_decision_tells_what_became_of_it(talk: Talk) -> None:
    turn = await talk.say("a fox", plan=paint(), image=SMALL, confirm=True, request_id="r1")
    await talk.decide(turn)
    again = await talk.say("a fox", confirm=True, request_id="r1")
    assert (type(again.events[-1]), again.requests) == (TurnDone, [])


# ---- what is told, and what is kept


async def test_one_failure_is_told_once_when_the_report_cannot_be_made(open_talk: OpenTalk) -> None:
    async with open_talk() as talk:
        await talk.say("hello there", plan=Text("Hello."))
        in_database(talk.studio.settings.home, "DROP TABLE calls")
        turn = await talk.say("are you there?")
    assert len(of_type(turn.events, TurnFailed)) == 1


async def test_the_question_stands_below_the_steps_that_led_to_it(talk: Talk) -> None:
    turn = await talk.say("a fox", plan=[paint(confidence=0.2)] * 2)
    kinds = [type(one) for one in turn.components]
    assert kinds.index(Steps) < kinds.index(AskBack)


async def test_a_failure_left_behind_keeps_neither_checkpoint_nor_answers(open_talk: OpenTalk) -> None:
    async with open_talk() as talk:
        failed = await talk.say("a fox", plan=paint(), image=BROKEN)
        await talk.say("something else", plan=Text("Hello."))
        home = talk.studio.settings.home
    for _ in range(2):
        async with open_talk() as later:
            await later.say("hello there", plan=Text("Hello."))
    left = rows(home / "aivista.db", "SELECT DISTINCT thread_id FROM checkpoints")
    kept = rows(home / "aivista.db", "SELECT turn_id FROM calls WHERE answer IS NOT NULL")
    assert failed.record.id not in {row["thread_id"] for row in left}
    assert failed.record.id not in {row["turn_id"] for row in kept}


# ---- Stop


async def test_a_stop_takes_the_retry_that_runs_and_the_one_in_line(talk: Talk) -> None:
    failed = await talk.say("a fox", plan=paint(), image=BROKEN)
    running = asyncio.create_task(talk.retry(failed, image=Hold(SMALL)))
    await until(lambda: talk.models.held)
    told: list[TurnEvent] = []
    in_line = asyncio.create_task(hear(talk.studio.retry(talk.id, failed.record.id, owner=talk.owner), told))
    await until(lambda: waits(told))
    await talk.studio.cancel(talk.id, talk.owner)
    stopped = await running
    await in_line
    assert (type(stopped.events[-1]), type(told[-1])) == (TurnStopped, TurnStopped)
    assert (await talk.kept()).turns[0].state is TurnState.STOPPED
    talk.models.release()
    await until(lambda: not talk.models.held)


async def pressed(talk: Talk, going_on: AsyncIterator[TurnEvent], events: int, hops: int) -> Turn:
    """Press Stop when a turn has told so much and the event loop has made so many steps more; return what is kept."""

    async def press() -> None:
        for _ in range(hops):
            await asyncio.sleep(0)
        await talk.studio.cancel(talk.id, talk.owner)

    told, pressing = 0, asyncio.create_task(press()) if not events else None
    async for _ in going_on:
        told += 1
        if told == events:
            pressing = asyncio.create_task(press())
    if pressing is not None:
        await pressing
    return (await talk.kept()).turns[-1]


def moments(told: list[TurnEvent]) -> list[tuple[int, int]]:
    """Return after how many events Stop is pressed, and how many steps later: all through a turn that told this."""
    return [(events, hops) for events in range(len(told) + 1) for hops in (0, 3, 12)]


async def test_stop_at_any_moment_of_a_retry_keeps_what_was_said(talk: Talk) -> None:
    def brain(request: WireRequest) -> Answer:
        return Search(FACTS) if request.has_search else Text("330 m.")

    async def failed() -> tuple[Talk, TurnResult]:
        one = await talk.another()
        return one, await one.say("the tower", plan=[look_up, BROKEN], allow_search=True)

    look_up = replace(search(), text_before="I will look it up.")
    talk.models.on_text(brain)
    one, turn = await failed()
    states, lost = set(), []
    for moment in moments((await one.retry(turn)).events):
        one, turn = await failed()
        kept = await pressed(one, talk.studio.retry(one.id, turn.record.id, owner=talk.owner), *moment)
        states.add(kept.state)
        if kept.state is TurnState.RUNNING or AgentMessage(text="I will look it up.") not in kept.components:
            lost.append((moment, kept.state))
    assert lost == []
    assert states >= {TurnState.STOPPED, TurnState.DONE}


async def test_stop_at_any_moment_of_a_decision_keeps_the_card_and_shows_no_plan_that_waits(talk: Talk) -> None:
    talk.models.on_image(lambda _: SMALL)
    turn = await talk.say("a fox", plan=paint(), confirm=True)
    states, wrong = set(), []
    for moment in moments((await talk.decide(turn)).events):
        one = await talk.another()
        turn = await one.say("a fox", plan=paint(), confirm=True)
        going_on = talk.studio.decide(one.id, turn.record.id, Decision(run=True), owner=talk.owner)
        kept = await pressed(one, going_on, *moment)
        states.add(kept.state)
        cards = [card.state for card in kept.components if isinstance(card, PlanCard)]
        is_lost = kept.state is TurnState.RUNNING or len(cards) != 1 or not kept.messages[1:]
        if is_lost or (kept.state is TurnState.WAITING) != (cards == ["pending"]):
            wrong.append((moment, kept.state, cards))
    assert wrong == []
    assert states >= {TurnState.STOPPED, TurnState.DONE}

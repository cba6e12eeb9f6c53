"""Caps: what would pass one is asked about first, in words and in pictures, and what is agreed to goes on."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from sqlalchemy import event
from sqlalchemy.engine import Engine

from agent import (
    CapPassed,
    ConsentAsked,
    ConsentCard,
    ErrorCode,
    FailureNote,
    PaintingStarted,
    PictureReady,
    PlanEdit,
    Settings,
    Studio,
    TurnDone,
    TurnFailed,
    TurnPaused,
    TurnState,
)
from tests.behaviour.conftest import OpenTalk
from tests.behaviour.talk import Talk, TurnResult, card, planned
from tests.support.gemini import SMALL, paint
from tests.support.scenes import of_type, run
from tests.support.waiting import until
from tests.wire_server import Finish, GeminiServer, Hold, Text

POOR = Text(json.dumps({"lettering": "", "checklist": [], "feedback": "", "suggestions": [], "score": 0.3}))


@dataclass(frozen=True)
class Costs:
    """What the planner's answer to the first message costs, and what one picture is told to cost before it is made."""

    words: float
    picture: float


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def costs(studio: Studio, models: GeminiServer) -> Costs:
    """What things cost here, from a turn of somebody else's."""
    somebody = Talk(studio, models, (await studio.conversations.create("somebody")).id, "somebody")
    turn = await somebody.say("a red fox", plan=paint(), confirm=True)
    return Costs(turn.record.price_usd, planned(turn).price_usd)


def passed(turn: TurnResult) -> CapPassed:
    """Return the one cap that a turn asks about."""
    [cap] = planned(turn).caps
    return cap


def painted(models: GeminiServer) -> int:
    """Return how many pictures the models were asked for."""
    return sum(request.kind == "image" for request in models.requests)


# ---- pictures


@pytest.mark.parametrize("cap", ["cap_day_usd", "cap_conversation_usd"])
@pytest.mark.parametrize(
    ("rest", "is_asked"), [(2.0, False), (1.0, False), (0.999, True), (0.0, True)], ids=["under", "at", "above", "none"]
)
async def test_pictures_that_would_pass_a_cap_are_asked_about_first(
    talk: Talk, costs: Costs, cap: str, rest: float, is_asked: bool
) -> None:
    chosen: dict[str, Any] = {cap: costs.words + rest * costs.picture + 1e-12}
    turn = await talk.say("a red fox", plan=paint(), image=[SMALL] * (not is_asked), **chosen)
    assert isinstance(turn.events[-1], TurnPaused if is_asked else TurnDone)
    assert len(turn.painted()) == (not is_asked)
    if is_asked:
        assert passed(turn).cap == cap.removeprefix("cap_").removesuffix("_usd")
        assert passed(turn).spent_usd == pytest.approx(costs.words)
        assert passed(turn).over_usd == pytest.approx((1 - rest) * costs.picture, abs=1e-6)
        assert card(turn).plans == (planned(turn),)


async def test_who_runs_it_lets_the_turn_go_on_beyond_the_cap_and_only_that_turn(talk: Talk) -> None:
    turn = await talk.say("a red fox", plan=paint(), image=SMALL, cap_day_usd=0.02)
    done = await talk.decide(turn)
    assert (type(done.events[-1]), len(done.painted())) == (TurnDone, 1)
    again = await talk.say("a whale", plan=paint("a whale"), cap_day_usd=0.05)
    assert passed(again).spent_usd == pytest.approx(done.record.price_usd + again.record.price_usd)
    assert again.painted() == []


async def test_what_a_decision_makes_dearer_is_asked_about_when_it_now_passes_a_cap(talk: Talk, costs: Costs) -> None:
    cap = costs.words + 1.5 * costs.picture
    turn = await talk.say("a red fox", plan=paint(), image=[SMALL, SMALL], confirm=True, cap_day_usd=cap)
    assert planned(turn).caps == ()
    again = await talk.decide(turn, PlanEdit(prompt="a blue whale", number_of_images=3))
    assert (planned(again).prompt, planned(again).number_of_images) == ("a blue whale", 3)
    assert (len(planned(again).caps), again.painted()) == (1, [])
    done = await talk.decide(turn, PlanEdit(number_of_images=2))
    assert isinstance(done.events[-1], TurnDone)
    assert [one.prompt for one in done.painted()] == ["a blue whale"] * 2, "what was changed first still counts"
    assert (card(done).state, card(done).plans[0].number_of_images) == ("run", 2)


# ---- what counts, here and at the same time


async def test_all_conversations_of_the_day_count_and_only_the_owners(talk: Talk, costs: Costs) -> None:
    chosen: dict[str, Any] = {"cap_day_usd": 2 * costs.words + 1.5 * costs.picture}
    first, second = talk, await talk.another()
    done = await first.say("a red fox", plan=paint(), image=SMALL, **chosen)
    assert isinstance(done.events[-1], TurnDone)
    turn = await second.say("a red fox", plan=paint(), **chosen)
    assert passed(turn).spent_usd == pytest.approx(done.record.price_usd + turn.record.price_usd)
    cap = 3 * costs.words + 1.5 * costs.picture
    here = await second.say("an owl", plan=paint("an owl"), image=SMALL, cap_conversation_usd=cap)
    assert isinstance(here.events[-1], TurnDone), "the other conversation does not count for this one's own cap"


async def test_what_another_conversation_is_painting_counts(talk: Talk, costs: Costs) -> None:
    chosen: dict[str, Any] = {"cap_day_usd": 2 * costs.words + 1.5 * costs.picture}
    painting = asyncio.create_task(talk.say("a red fox", plan=paint(), image=Hold(SMALL), **chosen))
    await until(lambda: talk.models.held)
    turn = await (await talk.another()).say("a red fox", plan=paint(), **chosen)
    talk.models.release()
    assert isinstance((await painting).events[-1], TurnDone)
    assert passed(turn).spent_usd == pytest.approx(2 * costs.words + costs.picture)
    assert painted(talk.models) == 1


async def at_once(models: GeminiServer, talks: list[Talk], cap: float) -> list[type]:
    """Run a turn in each, planned and painted in the same moment; return the kinds of events that they end with."""
    models.on_text(lambda _: Hold(paint()))
    models.on_image(lambda _: Hold(SMALL))
    turns = [asyncio.create_task(talk.say("a red fox", cap_day_usd=cap)) for talk in talks]
    await until(lambda: models.held == len(talks))
    models.release()

    def rest_or_paint() -> bool:
        painting = painted(models)
        return painting == models.held and painting + sum(turn.done() for turn in turns) == len(talks)

    await until(rest_or_paint)
    models.release()
    return [type((await turn).events[-1]) for turn in turns]


async def test_ten_turns_that_ask_together_do_not_pass_a_cap_unasked(talk: Talk, costs: Costs) -> None:
    cap = 10 * costs.words + 3.5 * costs.picture
    ends = await at_once(talk.models, [await talk.another() for _ in range(10)], cap)
    assert ends.count(TurnDone) == painted(talk.models) == 3
    assert ends.count(TurnPaused) == 7
    assert (await talk.studio.spend.day(talk.owner)).price_usd <= cap


async def test_two_processes_that_weigh_in_the_same_moment_do_not_pass_a_cap_together(
    open_talk: OpenTalk, costs: Costs
) -> None:
    cap = 6 * costs.words + 2.5 * costs.picture
    async with open_talk() as talk, open_talk() as other:
        talks = [await replace(talk, studio=studio).another() for studio in (talk.studio, other.studio) * 3]
        ends = await at_once(talk.models, talks, cap)
        assert 1 <= ends.count(TurnDone) == painted(talk.models) <= 2
        assert (await talk.studio.spend.day(talk.owner)).price_usd <= cap


async def test_what_a_turn_did_not_spend_after_all_is_there_for_the_next(talk: Talk, costs: Costs) -> None:
    chosen: dict[str, Any] = {"cap_day_usd": 2 * costs.words + 1.5 * costs.picture}
    refused = await talk.say("a red fox", plan=paint(), image=Finish("IMAGE_SAFETY"), **chosen)
    assert refused.failure.code is ErrorCode.PICTURE_BLOCKED
    turn = await (await talk.another()).say("a red fox", plan=paint(), image=SMALL, **chosen)
    assert isinstance(turn.events[-1], TurnDone)


async def test_what_a_stopped_turn_still_waits_for_counts(talk: Talk, costs: Costs) -> None:
    await talk.stop_at(PaintingStarted, "a red fox", held=1, plan=paint(), image=Hold(SMALL))
    cap = 2 * costs.words + 1.5 * costs.picture
    turn = await (await talk.another()).say("a red fox", plan=paint(), cap_day_usd=cap)
    talk.models.release()
    await until(lambda: not talk.models.held)
    assert passed(turn).spent_usd == pytest.approx(2 * costs.words + costs.picture)


@pytest.mark.parametrize(("rest", "paintings"), [(2.5, 2), (1.5, 1)])
async def test_no_new_round_is_painted_that_would_pass_a_cap(
    talk: Talk, costs: Costs, rest: float, paintings: int
) -> None:
    # A review is guessed at more than this one costs.
    cap = rest * costs.picture + 0.005
    plan, image = [paint(), *[POOR] * paintings], [SMALL] * paintings
    caps: dict[str, Any] = {"cap_conversation_usd": cap, "cap_day_usd": 9.0}
    turn = await talk.say("a red fox", plan=plan, image=image, review="always", **caps)
    assert isinstance(turn.events[-1], TurnDone)
    assert (len(turn.painted()), turn.record.price_usd <= cap) == (paintings, True)


# ---- words


@pytest.mark.parametrize(
    ("parts", "code"),
    [
        ({"cap_day_usd": 1.0}, ErrorCode.BUDGET_USED_UP),
        ({"cap_conversation_usd": 0.5}, ErrorCode.CONVERSATION_BUDGET_USED_UP),
        ({"cap_day_usd": 1.01}, None),
        ({}, None),
    ],
    ids=str,
)
async def test_not_even_words_are_asked_for_when_a_cap_is_used_up(
    talk: Talk, parts: dict[str, float], code: ErrorCode | None
) -> None:
    spent_usd = (await talk.say("hello", plan=Text("Hello."))).record.price_usd
    chosen: dict[str, Any] = {cap: part * spent_usd for cap, part in parts.items()}
    turn = await talk.say("how are you?", plan=None if code else Text("Fine."), **chosen)
    assert len(turn.requests) == (0 if code else 1)
    if code is not None:
        assert (turn.failure.code, turn.failure.can_retry) == (code, True)
        assert (turn.record.state, turn.record.price_usd) == (TurnState.FAILED, 0)
        assert [one.error for one in turn.components if isinstance(one, FailureNote)] == [turn.failure]


async def test_trying_again_sends_the_message_all_the_same_and_pictures_are_asked_about(talk: Talk) -> None:
    spent_usd = (await talk.say("hello", plan=Text("Hello."))).record.price_usd
    refused = await talk.say("a red fox", cap_day_usd=spent_usd)
    assert refused.one(TurnFailed).node == "planner"
    turn = await talk.retry(refused, plan=paint(), image=SMALL)
    assert passed(turn).cap == "day"
    done = await talk.decide(turn)
    assert (type(done.events[-1]), len(done.painted())) == (TurnDone, 1)


# ---- a cap of zero asks before every cent


@pytest.mark.parametrize("cap", ["cap_day_usd", "cap_conversation_usd"])
async def test_a_cap_of_zero_asks_before_every_cent_and_fails_no_turn(talk: Talk, cap: str) -> None:
    chosen: dict[str, Any] = {cap: 0.0}
    turn = await talk.say("a red fox", plan=paint(), image=SMALL, **chosen)
    [ask] = turn.one(ConsentAsked).asks
    assert (ask.tool, ask.reason) == ("Flash", "costs_money")
    assert 0 < json.loads(ask.arguments)["about_usd"] < 0.01
    assert (type(turn.events[-1]), turn.requests) == (TurnPaused, [])
    # Words are paid now; the picture is another question.
    worded = await talk.decide(turn)
    assert (passed(worded).cap_usd, len(worded.requests), worded.painted()) == (0, 1, [])
    done = await talk.decide(turn)
    assert (type(done.events[-1]), len(done.painted())) == (TurnDone, 1)
    again = await talk.say("a whale", **chosen)
    assert again.one(ConsentAsked).asks[0].reason == "costs_money"


async def test_who_does_not_want_to_pay_for_words_pays_nothing(talk: Talk) -> None:
    turn = await talk.decide(await talk.say("a red fox", cap_day_usd=0.0), run=False)
    assert isinstance(turn.events[-1], TurnDone)
    assert (turn.record.state, turn.record.price_usd) == (TurnState.DONE, 0)
    assert [one.state for one in turn.components if isinstance(one, ConsentCard)] == ["refused"]
    assert talk.models.requests == []
    assert isinstance((await talk.say("and now?", plan=Text("Well?"))).events[-1], TurnDone)


async def test_the_question_about_words_survives_a_restart(open_talk: OpenTalk) -> None:
    async with open_talk() as talk:
        turn = await talk.say("hello", cap_conversation_usd=0.0)
    async with open_talk() as later:
        talk = replace(talk, studio=later.studio)
        assert [one.state for one in (await talk.kept()).turns] == [TurnState.WAITING]
        talk.models.on_text(Text("Here I am."))
        done = await talk.decide(turn)
    assert (type(done.events[-1]), done.words) == (TurnDone, "Here I am.")


# ---- what costs nothing, and what it costs to look


async def test_a_sketch_is_never_asked_about(tmp_path: Path) -> None:
    async with Studio(Settings(home=tmp_path)) as studio:
        conversation = await studio.conversations.create()
        events = await run(studio, conversation.id, "draw a red fox", cap_day_usd=0.0, cap_conversation_usd=0.0)
    assert of_type(events, PictureReady)
    assert isinstance(events[-1], TurnDone)


@contextmanager
def sums_read() -> Iterator[list[str]]:
    """Collect the statements that add something up, but for those about traces."""
    found: list[str] = []

    def hear(_: object, __: object, statement: str, *___: object) -> None:
        if "sum(" in statement and "trace_steps" not in statement:
            found.append(statement)

    event.listen(Engine, "before_cursor_execute", hear)
    try:
        yield found
    finally:
        event.remove(Engine, "before_cursor_execute", hear)


async def test_a_turn_without_caps_reads_no_sums(talk: Talk) -> None:
    # Whoever may only keep so much has that added up in every turn: the owner of the house may keep all.
    alone = replace(talk, id=(await talk.studio.conversations.create()).id, owner="local")
    chosen: dict[str, Any]
    for chosen, reads in (({}, False), ({"cap_day_usd": 100.0}, True)):
        with sums_read() as statements:
            turn = await alone.say("a red fox", plan=paint(), image=SMALL, **chosen)
        assert (type(turn.events[-1]), bool(statements)) == (TurnDone, reads)

"""Confirm first: the plan is shown before it costs anything, and nothing is painted until the person says so."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent import (
    AskBack,
    ErrorCode,
    PaintingStarted,
    PlanCard,
    PlanEdit,
    PlanReady,
    Role,
    Settings,
    SmartCanvas,
    Step,
    Studio,
    ThoughtLog,
    ToolResultPart,
    TurnDone,
    TurnFailed,
    TurnPaused,
    TurnStarted,
    TurnState,
)
from tests.behaviour.conftest import OpenTalk
from tests.behaviour.talk import Talk, TurnResult, card, planned
from tests.support import turns
from tests.support.gemini import SMALL, paint
from tests.support.scenes import of_type, only, png, run
from tests.support.turns import calls_on_disk, started
from tests.support.waiting import until
from tests.wire_server import Calls, CorruptPicture, Hold, Text, WireRequest


def results(turn: TurnResult) -> list[tuple[str | None, bool]]:
    """Return which calls the turn's newest message answers, and whether with an error."""
    parts = turn.record.messages[-1].parts
    return [(part.call_id, part.is_error) for part in parts if isinstance(part, ToolResultPart)]


def sent(request: WireRequest) -> tuple[str, str, str, str]:
    """Return what a request asks for: the prompt, and of which model, ratio and size."""
    frame = request.config["imageConfig"]
    return request.prompt, request.model, frame["aspectRatio"], frame["imageSize"]


# ---- the plan


async def test_nothing_is_painted_before_the_decision_and_the_plan_is_on_record(talk: Talk) -> None:
    turn = await talk.say("a red fox", plan=paint(aspect_ratio="1:1"), confirm=True)
    shown = planned(turn)
    assert (turn.painted(), talk.studio.turns.is_running(talk.id, talk.owner)) == ([], False)
    assert isinstance(turn.events[-1], TurnPaused)
    assert not of_type(turn.events, PaintingStarted)
    assert (turn.record.state, card(turn.record)) == (TurnState.WAITING, PlanCard(plans=(shown,), state="pending"))
    assert (shown.prompt, shown.aspect_ratio, shown.resolution) == ("a red fox", "1:1", "1K")
    assert (shown.model, shown.number_of_images, shown.editing) == ("flash", 1, None)
    assert turn.words == "Here it comes."
    assert turn.record.messages[-1].role is Role.TOOL, "no call is left open in the history"


async def test_a_plan_that_makes_no_sense_goes_back_to_the_planner_unseen(talk: Talk) -> None:
    turn = await talk.say("give it a hat", plan=[paint(handles=["#9"]), paint()], image=SMALL, confirm=True)
    assert planned(turn).prompt == "a red fox"
    assert "#9" in json.dumps(turn.requests[1].function_responses)
    assert isinstance((await talk.decide(turn)).events[-1], TurnDone)


async def test_of_a_sound_and_a_senseless_plan_the_sound_one_is_shown_and_painted(talk: Talk) -> None:
    plan = Calls([replace(paint("a whale", handles=["#9"]), id="a"), replace(paint("a fox"), id="b")])
    turn = await talk.say("a fox and a whale", plan=plan, image=SMALL, confirm=True)
    done = await talk.decide(turn, PlanEdit(call=1, prompt="a blue fox"))
    assert (planned(turn).call, planned(turn).prompt) == (1, "a fox")
    assert [one.prompt for one in done.painted()] == ["a blue fox"]
    assert results(done) == [("a", True), ("b", False)]


async def test_a_setting_that_no_model_obeys_fails_before_the_plan(talk: Talk) -> None:
    turn = await talk.say("a fox", confirm=True, image_model="pro", aspect_ratio="1:8")
    assert (turn.failure.code, turn.one(TurnFailed).node) == (ErrorCode.SETTING_NOT_SUPPORTED, "planner")
    assert (of_type(turn.events, PlanReady), turn.requests) == ([], [])


async def test_an_edit_of_a_picture_names_what_it_changes(talk: Talk) -> None:
    await talk.say("a fox", plan=paint(), image=SMALL)
    hat = paint("a fox with a hat", reference_mode="LAST_GENERATED")
    turn = await talk.say("give it a hat", plan=hat, image=SMALL, confirm=True)
    assert (planned(turn).editing, planned(turn).references) == ("#1", ())
    assert (await talk.decide(turn)).picture.handle == "#1b"


async def test_a_turn_that_asks_back_or_only_talks_has_no_plan(talk: Talk) -> None:
    talked = await talk.say("a forest", plan=Text("Which season?"), confirm=True)
    asked_back = await talk.say("", confirm=True)
    assert isinstance(talked.events[-1], TurnDone)
    assert isinstance(asked_back.events[-1], TurnDone)
    assert asked_back.components == (AskBack(question="empty"),)


# ---- what the person decides


async def test_a_plan_that_is_run_as_it_is_paints_what_it_showed(talk: Talk) -> None:
    turn = await talk.say("two foxes", plan=paint(number_of_images=2), image=[SMALL, SMALL], confirm=True)
    done = await talk.decide(turn)
    assert started(done.events) == turn.record.id
    assert isinstance(done.events[-1], TurnDone)
    assert len(done.pictures) == len(done.painted()) == 2
    assert (done.record.state, card(done.record).state) == (TurnState.DONE, "run")
    assert done.requests == done.painted(), "the planner is not asked again"
    kinds = [type(one) for one in done.components]
    assert kinds.index(PlanCard) < kinds.index(SmartCanvas)
    assert not [log for log in of_type(done.events, ThoughtLog) if log.step is Step.WAITING]


async def test_what_the_person_changed_is_what_is_sent_and_what_the_card_shows(talk: Talk) -> None:
    wish = paint(aspect_ratio="16:9", resolution="1K", number_of_images=1, model="flash")
    turn = await talk.say("a red fox", plan=wish, image=[SMALL] * 3, confirm=True)
    edit = PlanEdit(call=0, prompt="a blue whale", model="pro", aspect_ratio="1:1", resolution="2K", number_of_images=3)
    done = await talk.decide(turn, edit)
    assert isinstance(done.events[-1], TurnDone)
    assert [sent(one) for one in done.painted()] == [("a blue whale", "gemini-3-pro-image", "1:1", "2K")] * 3
    [ran] = card(done.record).plans
    assert card(done.record).state == "run"
    assert (ran.prompt, ran.model, ran.aspect_ratio) == ("a blue whale", "pro", "1:1")
    assert (ran.resolution, ran.number_of_images) == ("2K", 3)


async def test_a_dropped_plan_costs_nothing_more_and_the_planner_hears_of_it(talk: Talk) -> None:
    turn = await talk.say("a red fox", plan=paint(), confirm=True)
    dropped = await talk.decide(turn, run=False)
    assert (type(dropped.events[-1]), dropped.requests) == (TurnDone, [])
    assert (dropped.record.state, card(dropped.record).state) == (TurnState.DONE, "dropped")
    assert dropped.record.price_usd == turn.record.price_usd
    [request] = (await talk.say("never mind", plan=Text("Fine."))).requests
    parts = [part for content in request.contents for part in content["parts"]]
    [told] = [part["functionResponse"]["response"] for part in parts if "functionResponse" in part]
    assert "dropped" in told["error"]


async def test_two_plans_of_one_answer_are_shown_and_changed_each_for_itself(talk: Talk) -> None:
    wishes = replace(paint("a fox", aspect_ratio="1:1"), id="a"), replace(paint("a whale", aspect_ratio="16:9"), id="b")
    turn = await talk.say("a fox and a whale", plan=Calls(wishes), image=[SMALL, SMALL], confirm=True)
    done = await talk.decide(turn, PlanEdit(call=1, prompt="a blue whale"), PlanEdit(call=0, aspect_ratio="9:16"))
    assert [(one.call, one.prompt) for one in turn.one(PlanReady).plans] == [(0, "a fox"), (1, "a whale")]
    ran = [("a fox", "9:16"), ("a blue whale", "16:9")]
    assert {(sent(one)[0], sent(one)[2]) for one in done.painted()} == set(ran)
    assert [(one.prompt, one.aspect_ratio) for one in card(done.record).plans] == ran
    assert results(done) == [("a", False), ("b", False)]


async def test_dropping_two_plans_answers_both_calls(talk: Talk) -> None:
    wishes = Calls([replace(paint(name), id=name) for name in ("fox", "whale")])
    turn = await talk.say("a fox and a whale", plan=wishes, confirm=True)
    assert results(await talk.decide(turn, run=False)) == [("fox", True), ("whale", True)]


# ---- decided too late, twice, or by somebody else


async def test_a_new_message_drops_the_plan_that_waits(talk: Talk) -> None:
    turn = await talk.say("a red fox", plan=paint(), confirm=True)
    joke = await talk.say("no, tell me a joke", plan=Text("Something else, then."))
    first, second = (await talk.kept()).turns
    assert joke.words == "Something else, then."
    assert (first.state, card(first).state) == (TurnState.STOPPED, "dropped")
    too_late = await talk.decide(turn)
    assert (too_late.failure.code, too_late.requests) == (ErrorCode.PLAN_GONE, [])
    assert (await talk.kept()).turns == (first, second)


@pytest.mark.parametrize("is_run", [True, False])
async def test_a_plan_is_decided_about_once(talk: Talk, is_run: bool) -> None:
    turn = await talk.say("a red fox", plan=paint(), image=[SMALL] * is_run, confirm=True)
    first = await talk.decide(turn, run=is_run)
    kept = await talk.kept()
    assert (type(first.events[-1]), len(first.painted())) == (TurnDone, is_run)
    for again in (True, False):
        second = await talk.decide(turn, run=again)
        assert (second.failure.code, second.requests) == (ErrorCode.PLAN_GONE, [])
    assert await talk.kept() == kept


async def test_two_decisions_at_the_same_moment_paint_once(talk: Talk) -> None:
    turn = await talk.say("a red fox", plan=paint(), image=SMALL, confirm=True)
    first, second = await asyncio.gather(talk.decide(turn), talk.decide(turn))
    assert isinstance(first.events[-1], TurnDone)
    assert second.failure.code is ErrorCode.PLAN_GONE
    assert [one.state for one in (await talk.kept()).turns] == [TurnState.DONE]
    assert [request.kind for request in talk.models.requests] == ["text", "image"]


async def test_nobody_decides_about_the_plan_of_another_conversation_or_owner(talk: Talk) -> None:
    studio, turn = talk.studio, await talk.say("a red fox", plan=paint(), image=SMALL, confirm=True)
    other = await studio.conversations.create(talk.owner)
    elsewhere = await turns.decide(studio, other.id, turn.record.id, owner=talk.owner)
    nowhere = await turns.decide(studio, talk.id, "no such turn", owner=talk.owner)
    stranger = await turns.decide(studio, talk.id, turn.record.id, owner="bob")
    assert only(elsewhere, TurnFailed).error.code is ErrorCode.PLAN_GONE
    assert only(nowhere, TurnFailed).error.code is ErrorCode.PLAN_GONE
    assert only(stranger, TurnFailed).error.code is ErrorCode.CONVERSATION_NOT_FOUND
    assert not of_type(stranger, TurnStarted)
    assert (await studio.conversations.get(other.id, talk.owner)).turns == ()
    assert (await talk.kept()).turns == (turn.record,)
    assert isinstance((await talk.decide(turn)).events[-1], TurnDone), "it still waits for whom it belongs to"


async def test_a_turn_that_failed_has_no_plan_to_decide_about(talk: Talk) -> None:
    turn = await talk.say("a red fox", plan=paint(), image=CorruptPicture())
    assert (await talk.decide(turn)).failure.code is ErrorCode.PLAN_GONE
    assert (await talk.kept()).turns == (turn.record,)


# ---- the end of a studio, and Stop


async def test_the_plan_survives_the_end_of_the_studio(open_talk: OpenTalk) -> None:
    async with open_talk() as talk:
        turn = await talk.say("a red fox", png(), plan=paint(), confirm=True, aspect_ratio="1:1")
    async with open_talk() as later:
        talk = replace(talk, studio=later.studio)
        assert (await talk.kept()).turns == (turn.record,)
        talk.models.on_image(SMALL)
        done = await talk.decide(turn, PlanEdit(prompt="a blue whale"))
    assert isinstance(done.events[-1], TurnDone)
    [request] = done.requests
    assert request.prompt.startswith("a blue whale")
    assert (sent(request)[2], len(request.pictures)) == ("1:1", 1)
    assert (done.record.state, done.record.messages[0]) == (TurnState.DONE, turn.record.messages[0])
    assert done.components[0] == turn.components[0]


async def test_stop_after_the_decision_keeps_the_card_and_the_late_picture(open_talk: OpenTalk) -> None:
    async with open_talk() as talk:
        turn = await talk.say("a fox", plan=paint(), image=Hold(SMALL), confirm=True)
        deciding = asyncio.create_task(talk.decide(turn))
        await until(lambda: talk.models.held)
        assert await talk.studio.cancel(talk.id, talk.owner)
        stopped = await deciding
        assert (stopped.record.state, card(stopped.record).state) == (TurnState.STOPPED, "run")
        talk.models.release()
        await until(lambda: not talk.models.held)
    async with open_talk() as later:
        kept = await later.studio.conversations.get(talk.id, talk.owner)
    assert [(one.handle, one.after_stop) for one in kept.pictures] == [("#1", True)]


# ---- prices


async def test_the_plan_has_a_price_and_the_picture_is_paid_once(open_talk: OpenTalk) -> None:
    async with open_talk() as talk:
        turn = await talk.say("two foxes", plan=paint(number_of_images=2, resolution="2K"), confirm=True)
        assert [row["state"] for row in calls_on_disk(talk.studio.settings.home).values()] == ["done"]
    async with open_talk() as later:
        talk = replace(talk, studio=later.studio)
        talk.models.on_image(SMALL, SMALL)
        done = await talk.decide(turn)
        # The history with the plan's turn in it is one that the API takes.
        thanked = await talk.say("thank you", plan=Text("Well."))
    assert [len(one.painted()) for one in (turn, done, thanked)] == [0, 2, 0]
    assert [len(one.requests) for one in (turn, done, thanked)] == [1, 2, 1]
    paid = sum(one.receipt.price_usd for one in done.pictures if one.receipt)
    assert planned(turn).price_usd == pytest.approx(paid, rel=0.05)
    assert done.record.price_usd == done.one(TurnDone).price_usd > paid


async def test_the_price_of_a_plan_counts_pictures_sizes_and_reviews(talk: Talk) -> None:
    async def price_usd(**chosen: Any) -> float:
        return planned(await talk.say("a fox", plan=paint(), confirm=True, **chosen)).price_usd

    plain, reviewed = await price_usd(), await price_usd(review="always")
    two, large = await price_usd(number_of_images=2), await price_usd(image_model="pro", resolution="4K")
    assert 0 < plain < reviewed < two < large
    assert two == pytest.approx(2 * plain)


async def test_a_sketch_costs_nothing_and_waits_all_the_same(tmp_path: Path) -> None:
    async with Studio(Settings(home=tmp_path)) as studio:
        conversation = await studio.conversations.create()
        events = await run(studio, conversation.id, "draw a red fox in the snow", confirm=True)
        assert (await studio.conversations.get(conversation.id)).pictures == ()
        done = await turns.decide(studio, conversation.id, started(events))
        kept = await studio.conversations.get(conversation.id)
    assert only(events, PlanReady).plans[0].price_usd == 0
    assert only(done, TurnDone).price_usd == kept.turns[0].price_usd == 0
    assert len(kept.pictures) == 1

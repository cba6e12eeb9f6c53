"""A failed turn goes on from the step that failed: what was answered before is neither asked nor paid again."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from agent import (
    AgentMessage,
    AskBack,
    Component,
    ErrorCode,
    FailureNote,
    PictureFailed,
    PictureReady,
    Role,
    SmartCanvas,
    Step,
    ThoughtLog,
    Turn,
    TurnDone,
    TurnEvent,
    TurnFailed,
    TurnState,
    TurnStopped,
)
from tests.behaviour.conftest import OpenTalk
from tests.behaviour.talk import Talk, TurnResult
from tests.support.gemini import SMALL, paint
from tests.support.scenes import of_type, png
from tests.support.waiting import until
from tests.wire_server import Call, CorruptPicture, Cut, Finish, Hold, HttpError, MidStreamError, Search, Text
from tests.wire_server.models import text_of

BROKEN = HttpError(500)
REFUSED = Finish("IMAGE_SAFETY")
REWORDED = Text('{"rewordings": ["A fox as a paper cut-out", "The snow alone, with a fox\'s tracks"]}')
CUT = Cut(1, Text("It was a dark and stormy night.", chunks=2))
SEARCH = Call("web_search", {"query": "How high is the tower?"}, text_before="I will look it up.")
FOUND = Search({"facts": [{"item": "The tower is 330 m high.", "source": "t.example"}], "prompt_draft": "a tower"})


async def newest(talk: Talk) -> Turn:
    """Return the newest turn on record."""
    return (await talk.kept()).turns[-1]


def asked_for(*turns: TurnResult) -> list[str]:
    """Return what kinds of models were asked, in order."""
    return [request.kind.value for turn in turns for request in turn.requests]


def failures(components: Sequence[Component]) -> list[ErrorCode]:
    """Return what the failures that are shown are."""
    return [one.error.code for one in components if isinstance(one, FailureNote)]


# ---- step by step


async def test_a_picture_that_failed_is_asked_for_again_and_the_plan_is_not(talk: Talk) -> None:
    failed = await talk.say("a red fox", plan=paint(), image=BROKEN)
    before = await newest(talk)
    assert (failed.one(TurnFailed).node, before.state) == ("executor", TurnState.FAILED)
    again = await talk.retry(failed, image=SMALL)
    after, calls = await newest(talk), await talk.calls(failed)
    assert isinstance(again.events[-1], TurnDone)
    assert asked_for(failed, again) == ["text", "image", "image"]
    assert (after.id, after.state, failures(after.components)) == (before.id, TurnState.DONE, [])
    assert again.picture.handle == "#1"
    told = [(call["name"], call["state"], call["attempts"]) for call in calls]
    assert told == [("planner:1", "done", 1), ("picture:1.0.0.1", "done", 2)]
    assert after.price_usd == pytest.approx(sum(call["price_usd"] for call in calls))


async def test_it_goes_on_after_a_restart_as_well(open_talk: OpenTalk) -> None:
    async with open_talk() as talk:
        failed = await talk.say("a red fox", png(), plan=paint(), image=BROKEN)
    async with open_talk(talk) as talk:
        assert (await newest(talk)).state is TurnState.FAILED
        again = await talk.retry(failed, image=SMALL)
        kept = await talk.kept()
        await talk.say("thank you", plan=Text("Well."))
    assert isinstance(again.events[-1], TurnDone)
    assert asked_for(failed, again) == ["text", "image", "image"]
    assert [(one.handle, one.turn_id) for one in kept.pictures] == [("#1", failed.id), ("#1b", failed.id)]
    assert kept.turns[-1].messages[0].text == "a red fox"


async def test_the_planner_is_asked_again_without_the_half_of_an_answer_that_came(talk: Talk) -> None:
    failed = await talk.say("tell me a tale", plan=MidStreamError())
    assert (await newest(talk)).components[0] == AgentMessage(text="piece 0 piece 1")
    again = await talk.retry(failed, Text("Once upon a time."))
    assert again.requests[0].contents == failed.requests[0].contents
    assert again.words == "Once upon a time."
    after = await newest(talk)
    assert [message.text for message in after.messages] == ["tell me a tale", "Once upon a time."]
    said = [one for one in after.components if isinstance(one, AgentMessage)]
    assert said == [AgentMessage(text="Once upon a time.")]


async def test_the_words_of_a_failed_turn_stay_on_record_and_in_the_next_request(talk: Talk) -> None:
    failed = await talk.say("tell me", plan=CUT)
    assert "It was a dark and stormy night.".startswith(failed.words)
    assert failed.components[0] == AgentMessage(text=failed.words.strip())
    assert isinstance(failed.components[-1], FailureNote)
    history = (await talk.say("and then?")).requests[0].contents
    said = [(content["role"], text_of(content)) for content in history[:2]]
    assert said == [("user", "tell me"), ("model", failed.words.strip())]


async def test_a_turn_may_fail_and_be_retried_many_times(talk: Talk) -> None:
    first = await talk.say("a fox", plan=paint(), image=BROKEN)
    codes, tries = [failures(first.components)], [first]
    for plan, image in ((REWORDED, REFUSED), (None, BROKEN), (None, SMALL)):
        tries.append(await talk.retry(first, plan, image))
        codes.append(failures(tries[-1].components))
    assert codes == [[ErrorCode.PROVIDER_ERROR], [ErrorCode.PICTURE_BLOCKED], [ErrorCode.PROVIDER_ERROR], []]
    assert isinstance(tries[-1].events[-1], TurnDone)
    # The refusal alone is followed by a look for other words.
    assert asked_for(*tries) == ["text", "image", "image", "text", "image", "image"]
    assert [one.handles for one in tries[-1].components if isinstance(one, SmartCanvas)] == [("#1",)]


async def test_a_search_that_failed_is_made_again_and_the_plan_before_it_is_not(talk: Talk) -> None:
    failed = await talk.say("how high is the tower?", plan=[SEARCH, BROKEN], allow_search=True)
    again = await talk.retry(failed, [FOUND, Text("330 m.")])
    assert failed.one(TurnFailed).node == "searcher"
    assert again.words == "330 m."
    assert [request.has_search for request in (*failed.requests, *again.requests)] == [False, True, True, False]


async def test_of_several_pictures_that_all_failed_all_are_asked_for_again(talk: Talk) -> None:
    async def release(event: TurnEvent) -> None:
        if isinstance(event, PictureFailed):
            talk.models.release()

    # The first that was asked for ends last.
    image = [Hold(CorruptPicture()), BROKEN, BROKEN]
    failed = await talk.follow(release, "three foxes", plan=paint(number_of_images=3), image=image)
    again = await talk.retry(failed, image=[SMALL] * 3)
    assert len(of_type(failed.events, PictureFailed)) == 3
    assert asked_for(failed, again) == ["text", *["image"] * 6]
    handles = {event.index: event.picture.handle for event in of_type(again.events, PictureReady)}
    assert handles == {0: "#1", 1: "#2", 2: "#3"}
    [canvas] = [one for one in again.components if isinstance(one, SmartCanvas)]
    assert canvas.handles == ("#1", "#2", "#3")


async def test_a_plan_that_was_run_is_not_shown_again_when_its_picture_is_retried(talk: Talk) -> None:
    shown = await talk.say("a fox", plan=paint(), confirm=True)
    failed = await talk.decide(shown, image=BROKEN)
    again = await talk.retry(shown, image=SMALL)
    assert isinstance(failed.events[-1], TurnFailed)
    assert isinstance(again.events[-1], TurnDone)
    assert asked_for(shown, failed, again) == ["text", "image", "image"]


async def test_a_turn_that_goes_on_is_costed_on_and_timed_on(talk: Talk) -> None:
    failed = await talk.say("a fox", plan=[paint(), REWORDED], image=REFUSED)
    before = await newest(talk)
    again = await talk.retry(failed, image=SMALL)
    after = await newest(talk)
    assert asked_for(failed, again) == ["text", "image", "text", "image"]
    painted = again.receipt
    assert before.usage.prompt_tokens > 0
    assert after.usage.prompt_tokens == before.usage.prompt_tokens + painted.usage.prompt_tokens
    assert after.price_usd == pytest.approx(before.price_usd + painted.price_usd)
    assert after.seconds >= before.seconds


# ---- where it cannot go on


async def test_a_failure_that_the_conversation_has_left_behind_is_sent_again_as_a_new_turn(talk: Talk) -> None:
    failed = await talk.say("tell me", png(), plan=CUT, aspect_ratio="1:1")
    await talk.say("something else")
    again = await talk.retry(failed, Text("Once upon a time."))
    assert again.words == "Once upon a time."
    first, other, last = (await talk.kept()).turns
    assert [turn.text for turn in (first, other, last)] == ["tell me", "something else", "tell me"]
    assert [turn.state for turn in (first, other, last)] == [TurnState.FAILED, TurnState.DONE, TurnState.DONE]
    assert again.id == last.id != first.id
    assert last.settings == first.settings
    assert [upload.digest for upload in last.uploads] == [upload.digest for upload in first.uploads]


async def test_a_failure_of_another_provider_is_sent_again_to_the_one_there_is(open_talk: OpenTalk) -> None:
    async with open_talk() as talk:
        failed = await talk.say("draw a red fox in the snow", plan=BROKEN)
    async with open_talk(talk, provider="sketch") as talk:
        again = await talk.retry(failed)
        kept = await talk.kept()
    assert (len(failed.requests), again.requests) == (1, [])
    assert isinstance(again.events[-1], TurnDone)
    told = [(turn.provider, turn.state) for turn in kept.turns]
    assert told == [("gemini", TurnState.FAILED), ("sketch", TurnState.DONE)]
    assert kept.pictures[0].turn_id == again.id


async def test_of_two_retries_at_the_same_moment_one_goes_on_and_the_other_tells_what_came_of_it(talk: Talk) -> None:
    failed = await talk.say("a fox", plan=paint(), image=BROKEN)
    talk.models.on_image(SMALL)
    retries = await asyncio.gather(*(talk.retry(failed) for _ in range(2)))
    assert [(turn.id, type(turn.events[-1])) for turn in retries] == [(failed.id, TurnDone)] * 2
    assert [request.kind for request in talk.models.requests] == ["text", "image", "image"]
    assert [turn.state for turn in (await talk.kept()).turns] == [TurnState.DONE]


async def test_a_retry_waits_in_line_behind_the_turn_that_runs(talk: Talk) -> None:
    failed = await talk.say("tell me", plan=CUT)
    running = asyncio.create_task(talk.say("count", plan=Hold(Text("One two."), after_chunks=1)))
    await until(lambda: talk.models.held)
    waiting = talk.studio.retry(talk.id, failed.id, owner=talk.owner)
    assert await anext(waiting) == ThoughtLog(step=Step.WAITING, parameters={"count": 1})
    assert len(talk.models.requests) == 2
    talk.models.release()
    assert isinstance((await running).events[-1], TurnDone)
    assert isinstance([event async for event in waiting][-1], TurnDone)
    told = [(turn.text, turn.state.value) for turn in (await talk.kept()).turns]
    assert told == [("tell me", "failed"), ("count", "done"), ("tell me", "done")]


async def test_a_turn_that_is_not_there_is_not_retried_and_nobody_else_s_is(talk: Talk) -> None:
    await talk.say("tell me", plan=CUT)
    kept = await newest(talk)
    no_turn, nothing = ErrorCode.TURN_NOT_FOUND, ErrorCode.CONVERSATION_NOT_FOUND
    for turn_id, owner, code in (("no such turn", talk.owner, no_turn), (kept.id, "bob", nothing)):
        [told] = [event async for event in talk.studio.retry(talk.id, turn_id, owner=owner)]
        assert isinstance(told, TurnFailed)
        assert told.error.code is code
    assert len(talk.models.requests) == 1
    assert [turn.state for turn in (await talk.kept()).turns] == [TurnState.FAILED]


async def test_a_stop_in_a_retry_leaves_the_turn_stopped_with_what_it_had(talk: Talk) -> None:
    failed = await talk.say("the tower", plan=[SEARCH, BROKEN], allow_search=True)
    running = asyncio.create_task(talk.retry(failed, Hold(Text("never"))))
    await until(lambda: talk.models.held)
    assert await talk.studio.cancel(talk.id, talk.owner)
    assert isinstance((await running).events[-1], TurnStopped)
    kept = await newest(talk)
    assert kept.state is TurnState.STOPPED
    assert kept.components[0] == AgentMessage(text="I will look it up.")
    assert kept.messages[-1].role is Role.TOOL, "no call is left open in the history"
    assert not [one for one in kept.components if isinstance(one, FailureNote | AskBack)]
    await until(lambda: not talk.models.held)

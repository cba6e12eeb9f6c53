"""The trace of whole turns: what is on record is what left and what came, through every way a turn can end."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import sqlite3
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from agent import (
    ErrorCode,
    Patiences,
    RequestRefused,
    Settings,
    StepKind,
    StepSummary,
    StepTraced,
    TextPart,
    TokenUsage,
    TraceStep,
    TurnDone,
    TurnStopped,
)
from tests.adapters.models import Embedding, Line, calls
from tests.adapters.records import HIDDEN
from tests.behaviour.conftest import OpenTalk
from tests.behaviour.talk import Talk
from tests.support.gemini import KEY, SMALL, paint
from tests.support.histories import LARGE_SIGNATURE
from tests.support.scenes import Scene, generate, of_type, picture, png, run
from tests.support.traces import on_record, on_the_wire
from tests.support.turns import rows
from tests.support.waiting import until
from tests.wire_server import Call, Calls, Hold, HttpError, Text, quota_body

REVIEW = '{"score": 0.9, "checklist": [], "lettering": "", "feedback": "Good.", "suggestions": []}'
HANDLE = Call("get_history_image", {"image_id": "0123456789abcdef"})
Steps = tuple[TraceStep, ...]


def of_kind(steps: Steps, kind: StepKind) -> list[TraceStep]:
    return [step for step in steps if step.kind is kind]


def parts_of(step: TraceStep) -> list[Any]:
    parts = step.came["parts"]
    assert isinstance(parts, list)
    return parts


def everything_on_disk(home: Path) -> bytes:
    """Return all that the traces hold, unpacked."""
    steps = rows(home / "aivista.db", "SELECT summary, contents FROM trace_steps")
    return b"".join(step["summary"] + zlib.decompress(step["contents"]) for step in steps)


async def steps_when(trace: Callable[[], Any], is_true: Callable[[Steps], bool]) -> Steps:
    """Return the steps once the claim holds of them."""

    async def steps() -> Steps | None:
        found: Steps = await trace()
        return found if is_true(found) else None

    return await until(steps)


async def test_what_is_on_record_is_what_was_sent_what_came_and_what_it_cost(open_talk: OpenTalk) -> None:
    # A retry, two wrong tool calls, a picture that leans on an upload, and a review.
    busy = HttpError(429, body=quota_body(retry_s=1.0))
    wish = paint("a fox in the snow", aspect_ratio="16:9", subject="a fox")
    plan = [busy, Calls([HANDLE, Call("no_such_tool")]), wish, Text(REVIEW, chunks=1)]
    async with open_talk(retry_budget_s=60) as talk:
        turn = await talk.say("Put my fox into the snow", png(), plan=plan, image=SMALL, review="always")
        steps, journal = await talk.trace(turn), await talk.calls(turn)
    assert isinstance(turn.events[-1], TurnDone)
    asked, requests = of_kind(steps, StepKind.MODEL), turn.requests
    assert [call.name.partition(":")[0] for call in asked] == ["planner", "planner", "picture", "critic"]
    # The first request was refused and made again: one call, two tries, the same bytes.
    assert requests[0].body == requests[1].body
    for call, request in zip(asked, requests[1:], strict=True):
        assert on_record(call) == on_the_wire(request)
        assert call.sent.get("system", "") == request.system
        assert call.sent.get("tools", []) == request.function_names
        assert call.model == request.model
    painted = asked[2]
    assert painted.asks_for == "picture"
    assert painted.sent["aspect_ratio"] == requests[3].config["imageConfig"]["aspectRatio"] == "16:9"
    assert asked[3].sent["response_schema"] == requests[4].config["responseJsonSchema"]
    assert [part["text"] for part in parts_of(asked[3]) if part["text"]] == [REVIEW]
    # Tries, tokens and prices add up.
    assert [(call.attempts, len(call.retries)) for call in asked] == [(2, 1), (1, 0), (1, 0), (1, 0)]
    [pause] = asked[0].retries
    assert (pause.error.code, pause.pause_s) == (ErrorCode.RATE_LIMITED, 1.0)
    assert asked[0].is_trouble
    assert sum(call.price_usd for call in asked) == pytest.approx(turn.record.price_usd)
    assert sum(call.usage.total_tokens for call in asked) == turn.record.usage.total_tokens > 0
    assert {call.name: call.price_usd for call in asked} == {row["name"]: row["price_usd"] for row in journal}
    # Each stands in its node, in place and time.
    assert [step.number for step in steps] == list(range(1, len(steps) + 1))
    nodes = {step.number: step for step in of_kind(steps, StepKind.NODE)}
    for step in steps:
        node = nodes.get(step.within or 0)
        assert (node is None) == (step.kind is StepKind.NODE)
        if node is not None:
            assert step.node == node.name
            assert node.at_s <= step.at_s
            assert step.at_s + step.seconds <= node.at_s + node.seconds + 0.001
    way = ["planner", "tools", "planner", "retriever", "executor", "critic", "presenter"]
    assert [node.name for node in nodes.values()] == way[:-1]
    assert [node.led_to for node in nodes.values()] == way[1:]
    # A tool is on record with its arguments and what the model was given.
    looked, unknown = of_kind(steps, StepKind.TOOL)
    assert (looked.name, looked.sent["arguments"]) == ("get_history_image", HANDLE.args)
    trouble = (unknown.name, unknown.has_failed, unknown.is_trouble, unknown.error)
    assert trouble == ("no_such_tool", True, True, None)
    given = [one["response"] for one in requests[2].function_responses]
    assert [step.came["content"] for step in (looked, unknown)] == given
    # Every step was told when it ended, and none after the last word.
    told = sorted((event.step for event in of_type(turn.events, StepTraced)), key=lambda one: one.number)
    summary = set(StepSummary.model_fields)
    assert told == [StepSummary.model_validate(step.model_dump(include=summary)) for step in steps]
    assert not {"sent", "came"} & summary


async def test_thoughts_are_told_as_such_and_large_signatures_by_their_digest(tmp_path: Path) -> None:
    thought = TextPart(text="A fox, then.", is_thought=True)
    signed = TextPart(text="Hello.", thought_signature=LARGE_SIGNATURE, signed_by="text-model")
    async with Scene(
        Settings(home=tmp_path), text=[Line((thought, TextPart(text="Well. "), signed))]
    ).studio() as studio:
        conversation = await studio.conversations.create()
        await run(studio, conversation.id, "hello")
        [asked] = of_kind(await studio.trace(conversation.id), StepKind.MODEL)
    told = {"signature_digest": hashlib.sha256(LARGE_SIGNATURE).hexdigest(), "signed_by": "text-model"}
    assert parts_of(asked) == [
        {"type": "text", "text": "A fox, then.", "is_thought": True},
        {"type": "text", "text": "Well. "},
        {"type": "text", "text": "Hello.", **told},
    ]
    assert len(everything_on_disk(tmp_path)) < 40_000


async def test_the_planner_says_what_it_thought_and_nobody_is_shown_it_as_an_answer(talk: Talk) -> None:
    turn = await talk.say("hi", plan=Text("Hello.", thoughts="They greet me."))
    [asked] = of_kind(await talk.trace(), StepKind.MODEL)
    again = await talk.say("again", plan=Text("Yes."))
    assert turn.requests[0].shows_thoughts
    assert "They greet me." not in str(again.requests[0].body)
    assert turn.words == "Hello."
    assert parts_of(asked)[0] == {"type": "text", "text": "They greet me.", "is_thought": True}


async def test_no_key_is_on_record_wherever_it_stood(open_talk: OpenTalk) -> None:
    own = "AIzaSyMyOwnKeyThatITyped00000000000001"
    wrong = Calls([Call("no_such_tool", {"api_key": "hunter2", "at": f"https://h/?key={own}"})])
    refused = HttpError(400, f"The key {KEY} is not good for that, and neither is {own}.")
    said = f"Paint a fox. My key is {own}, the studio's is {KEY}."
    async with open_talk() as talk:
        turn = await talk.say(said, plan=[wrong, paint(own)], image=refused, key=SecretStr("PlainLookingKey77"))
        steps = await talk.trace()
        kept = everything_on_disk(talk.studio.settings.home)
    assert turn.failure
    # It was sent as it was said; only what is kept is without it.
    assert own in turn.requests[0].last_text
    for secret in (own, KEY, "hunter2", "PlainLookingKey77"):
        assert secret.encode() not in kept
        assert secret not in json.dumps([step.model_dump(mode="json") for step in steps])
    assert kept.count(HIDDEN.encode()) >= 5
    assert f"Paint a fox. My key is {HIDDEN}" in on_record(of_kind(steps, StepKind.MODEL)[0])[0][1]


async def test_a_failure_stands_at_the_call_and_at_the_node_and_in_the_report_and_a_retry_counts_on(talk: Talk) -> None:
    turn = await talk.say("a red fox", plan=paint(), image=HttpError(503))
    failed = await talk.trace(turn)
    report: Any = await talk.studio.turns.report(talk.id, turn.id, owner=talk.owner)
    [call] = [step for step in failed if step.asks_for == "picture"]
    errors = [(step.name, step.error.code) for step in failed if step.error]
    assert errors == [("executor", ErrorCode.OVERLOADED), (call.name, ErrorCode.OVERLOADED)]
    for one, step in zip(report["trace"], failed, strict=True):
        assert (one["name"], one.get("came", {})) == (step.name, step.came)
        assert one.get("error") == (step.error.model_dump(mode="json") if step.error else None)
    [asked] = [one for one in report["trace"] if one["name"] == "planner:1"]
    assert asked["sent"]["messages"] == 1
    assert "system" not in asked["sent"]
    assert isinstance((await talk.retry(turn, image=SMALL)).events[-1], TurnDone)
    steps = await talk.trace(turn)
    assert steps[: len(failed)] == failed
    assert [step.number for step in steps] == list(range(1, len(steps) + 1))
    again = of_kind(steps[len(failed) :], StepKind.MODEL)
    assert [(step.name, step.attempts, step.error) for step in again] == [(call.name, 1, None)]
    assert again[0].at_s >= call.at_s


async def test_pictures_painted_side_by_side_are_steps_of_one_node(talk: Talk) -> None:
    await talk.say("three foxes", plan=paint(number_of_images=3), image=[SMALL] * 3)
    steps = await talk.trace()
    painted = [step for step in steps if step.asks_for == "picture"]
    [executor] = [step for step in steps if step.name == "executor"]
    assert [step.within for step in painted] == [executor.number] * 3
    assert [step.sent.get("take", 1) for step in painted] == [1, 2, 3]
    assert len({step.name for step in painted}) == 3


async def test_a_stopped_turn_keeps_what_was_sent_and_the_picture_that_came_late(talk: Talk) -> None:
    running = asyncio.create_task(talk.say("a red fox", plan=paint(), image=Hold(SMALL)))
    await asyncio.to_thread(talk.models.wait_for_held)
    await talk.studio.cancel(talk.id, talk.owner)
    assert isinstance((await running).events[-1], TurnStopped)
    stopped = await talk.trace()
    talk.models.release()
    steps = await steps_when(talk.trace, lambda steps: len(steps) > len(stopped))
    [executor] = [step for step in stopped if step.name == "executor"]
    assert executor.was_cancelled
    [late] = [step for step in steps if step not in stopped]
    assert (late.asks_for, late.within, late.was_cancelled) == ("picture", executor.number, False)
    assert late.price_usd > 0


async def test_an_answer_of_the_cache_is_on_record_as_one_that_cost_nothing(open_talk: OpenTalk) -> None:
    async with open_talk(reuse_plans=True) as talk:
        other = await talk.another()
        await talk.say("hello", plan=Text("Hello."))
        assert (await other.say("hello")).requests == []
        [first], [second] = [of_kind(await one.trace(), StepKind.MODEL) for one in (talk, other)]
    assert (first.source, first.attempts) == ("sent", 1)
    assert (second.source, second.attempts, second.price_usd, second.usage.total_tokens) == ("cache", 0, 0.0, 0)
    assert [one["text"] for one in parts_of(second) if one["text"]] == ["Hello."]
    assert second.sent == first.sent


class Ears:
    """An embedding model that hears every text the same, and remembers them."""

    model_id = "ears-1"
    dimension = 4

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def embed(self, texts: Sequence[str]) -> Embedding:
        self.asked += texts
        return Embedding([[1.0, 0.0, 0.0, 0.0] for _ in texts], TokenUsage(prompt_tokens=len(texts)))


async def test_embeddings_are_steps_too_also_those_made_beside_the_turn(tmp_path: Path) -> None:
    # The style library is loaded for the first time, on a machine that has other things to do.
    settings = Settings(home=tmp_path, retry_budget_s=0, patiences=Patiences(retriever_s=60))
    wish = calls(generate(style="like rain on a window"))
    scene, ears = Scene(settings, text=lambda _: wish, pictures=lambda _: picture(64, 36)), Ears()
    async with scene.studio() as studio:
        scene.provider.embeds = ears
        talk = (await studio.conversations.create()).id
        await run(studio, talk, "a fox like rain", review="off")
        await steps_when(lambda: studio.trace(talk), lambda steps: any(one.asks_for == "vectors" for one in steps))
        await run(studio, talk, "and a cat like rain", review="off")
        steps = [step for step in await studio.trace(talk) if step.asks_for == "vectors"]
        retrievers = [step for step in await studio.trace(talk) if step.name == "retriever"]
    sent: list[Any] = [step.sent["texts"] for step in steps]
    assert [text for texts in sent for text in texts] == ears.asked
    assert steps[-1].sent == {"texts": ["like rain on a window"]}
    assert steps[-1].came == {"vectors": 1, "dimension": 4}
    assert (steps[-1].usage.prompt_tokens, steps[-1].within) == (1, retrievers[1].number)
    # The library was read in the background, at the first turn's wish.
    assert {(step.turn_id, step.within) for step in steps[:-1]} == {(retrievers[0].turn_id, retrievers[0].number)}


async def test_a_trace_is_its_owners_alone_goes_with_its_conversation_and_does_not_come_with_a_copy(
    open_talk: OpenTalk,
) -> None:
    async with open_talk() as talk:
        await talk.say("hello", plan=Text("Hello."))
        assert len(await talk.trace()) == 2
        with pytest.raises(RequestRefused):
            await talk.studio.trace(talk.id, owner="bob")
        copy = await talk.studio.conversations.duplicate(talk.id, talk.owner)
        assert await talk.studio.trace(copy.id, owner=talk.owner) == ()
    with sqlite3.connect(talk.studio.settings.home / "aivista.db") as database:
        database.execute("PRAGMA foreign_keys=ON")
        database.execute("DELETE FROM conversations WHERE id = ?", (talk.id,))
        assert database.execute("SELECT count(*) FROM trace_steps").fetchone() == (0,)
    database.close()


async def test_an_error_in_a_step_is_told_to_the_log_also_when_the_turn_goes_on_without_it(
    talk: Talk, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR, "agent.report"):
        await talk.say("hello", plan=Text("Hello."))
        assert caplog.records == []
        plan = [paint(), HttpError(400, "The picture cannot be looked at.")]
        turn = await talk.say("a red fox", plan=plan, image=SMALL, review="always")
    assert isinstance(turn.events[-1], TurnDone)
    [record] = caplog.records
    told = json.loads(record.getMessage())
    assert told["error"] is None
    assert [step["name"] for step in told["steps"]] == ["critic:#1"]

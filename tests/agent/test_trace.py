"""The trace of whole turns: what is on record is what left and what came, through every way a turn can end."""

from __future__ import annotations

import asyncio
import json
import logging
import signal
import sqlite3
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from agent.errors import ErrorCode, RequestRefused
from agent.events import StepTraced, TurnDone, TurnEvent, TurnFailed, TurnStopped
from agent.messages import TextPart, TokenUsage
from agent.settings import Patiences, Settings
from agent.studio import Studio, TurnRequest
from agent.trace import StepKind, StepSummary, TraceStep
from tests.adapters.redaction import HIDDEN
from tests.adapters.scripted import Embedding, Line, calls, says
from tests.support.children import StudioChild
from tests.support.gemini import KEY, SMALL, on_gemini, paint
from tests.support.histories import LARGE_SIGNATURE
from tests.support.scenes import Scene, generate, of_type, picture, png, run, words
from tests.support.traces import on_record, on_the_wire
from tests.support.turns import calls_on_disk, newest, retry, started
from tests.support.waiting import until
from tests.wire_server import Call, Calls, GeminiServer, Hold, HttpError, Text, quota_body

ROOT = Path(__file__).parents[2]
REVIEW = '{"score": 0.9, "checklist": [], "lettering": "", "feedback": "Good.", "suggestions": []}'
HANDLE = Call("get_history_image", {"image_id": "0123456789abcdef"})


def of_kind(steps: tuple[TraceStep, ...], kind: StepKind) -> list[TraceStep]:
    return [step for step in steps if step.kind is kind]


def named(steps: tuple[TraceStep, ...]) -> list[str]:
    return [step.name for step in steps]


def everything_on_disk(home: Path) -> bytes:
    """Return all that the traces hold, unpacked."""
    with sqlite3.connect(home / "aivista.db") as database:
        rows = database.execute("SELECT summary, contents FROM trace_steps").fetchall()
    database.close()
    return b"".join(summary + zlib.decompress(contents) for summary, contents in rows)


async def whole_turn(studio: Studio, server: GeminiServer, conversation_id: str, text: str) -> list[TurnEvent]:
    """Run a turn with a retry, two wrong tool calls, a picture that leans on an upload, and a review."""
    busy = HttpError(429, body=quota_body(retry_s=1.0))
    wish = paint("a fox in the snow", aspect_ratio="16:9", subject="a fox")
    server.on_text(busy, Calls([HANDLE, Call("no_such_tool")]), wish, Text(REVIEW, chunks=1))
    server.on_image(SMALL)
    return await run(studio, conversation_id, text, png(), review="always")


async def test_what_is_on_record_is_what_the_server_was_sent_and_what_it_answered(settings: Settings) -> None:
    with GeminiServer() as server:
        async with Studio(on_gemini(settings, server.url, retry_budget_s=60)) as studio:
            conversation = await studio.new_conversation()
            events = await whole_turn(studio, server, conversation.id, "Put my fox into the snow")
            turn = await newest(studio, conversation.id)
            steps = await studio.trace(conversation.id, turn.id)
        assert server.violations == []
        requests = list(server.requests)
    assert isinstance(events[-1], TurnDone)
    asked = of_kind(steps, StepKind.MODEL)
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
    assert [part["text"] for part in _parts(asked[3]) if part["text"]] == [REVIEW]


async def test_thoughts_are_told_as_such_and_signatures_by_their_length(settings: Settings) -> None:
    thought = TextPart(text="A fox, then.", is_thought=True)
    signed = TextPart(text="Hello.", thought_signature=LARGE_SIGNATURE, signed_by="text-model")
    scene = Scene(settings, text=[Line((thought, signed))])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        await run(studio, conversation.id, "hello")
        [asked] = of_kind(await studio.trace(conversation.id), StepKind.MODEL)
    told: dict[str, Any] = {"thought_signature_bytes": len(LARGE_SIGNATURE), "signed_by": "text-model"}
    assert _parts(asked) == [
        {"type": "text", "text": "A fox, then.", "is_thought": True},
        {"type": "text", "text": "Hello.", **told},
    ]
    assert len(everything_on_disk(settings.home)) < 40_000


async def test_the_planner_says_what_it_thought_and_nobody_is_shown_it_as_an_answer(settings: Settings) -> None:
    with GeminiServer() as server:
        async with Studio(on_gemini(settings, server.url)) as studio:
            conversation = await studio.new_conversation()
            server.on_text(Text("Hello.", thoughts="They greet me."), Text("Yes."))
            events = await run(studio, conversation.id, "hi")
            [asked] = of_kind(await studio.trace(conversation.id), StepKind.MODEL)
            await run(studio, conversation.id, "again")
        assert server.requests[0].shows_thoughts
        assert "They greet me." not in str(server.requests[1].body)
    assert words(events) == "Hello."
    assert _parts(asked)[0] == {"type": "text", "text": "They greet me.", "is_thought": True}


async def test_tries_tokens_prices_and_times_add_up(settings: Settings) -> None:
    with GeminiServer() as server:
        async with Studio(on_gemini(settings, server.url, retry_budget_s=60)) as studio:
            conversation = await studio.new_conversation()
            await whole_turn(studio, server, conversation.id, "Put my fox into the snow")
            turn = await newest(studio, conversation.id)
            steps = await studio.trace(conversation.id, turn.id)
            journal = calls_on_disk(settings.home)
    asked = of_kind(steps, StepKind.MODEL)
    assert [(call.attempts, len(call.retries)) for call in asked] == [(2, 1), (1, 0), (1, 0), (1, 0)]
    [busy] = asked[0].retries
    assert (busy.error.code, busy.pause_s) == (ErrorCode.RATE_LIMITED, 1.0)
    assert asked[0].is_trouble
    assert sum(call.price_usd for call in asked) == pytest.approx(turn.price_usd)
    assert sum(call.usage.total_tokens for call in asked) == turn.usage.total_tokens > 0
    assert {call.name: call.price_usd for call in asked} == {name: row["price_usd"] for name, row in journal.items()}
    assert [step.number for step in steps] == list(range(1, len(steps) + 1))
    nodes = {step.number: step for step in of_kind(steps, StepKind.NODE)}
    for step in steps:
        node = nodes.get(step.within or 0)
        assert (node is None) == (step.kind is StepKind.NODE)
        if node is not None:
            assert step.node == node.name
            assert node.at_s <= step.at_s
            assert step.at_s + step.seconds <= node.at_s + node.seconds + 0.001
    assert [node.name for node in nodes.values()] == ["planner", "tools", "planner", "retriever", "executor", "critic"]
    assert [node.led_to for node in nodes.values()] == [
        "tools",
        "planner",
        "retriever",
        "executor",
        "critic",
        "presenter",
    ]


async def test_a_tool_is_on_record_with_its_arguments_and_what_the_model_was_given(settings: Settings) -> None:
    with GeminiServer() as server:
        async with Studio(on_gemini(settings, server.url, retry_budget_s=60)) as studio:
            conversation = await studio.new_conversation()
            await whole_turn(studio, server, conversation.id, "Put my fox into the snow")
            steps = await studio.trace(conversation.id)
        responses = server.requests[2].function_responses
    looked, unknown = of_kind(steps, StepKind.TOOL)
    assert (looked.name, looked.sent["arguments"]) == ("get_history_image", HANDLE.args)
    assert (unknown.name, unknown.has_failed, unknown.is_trouble, unknown.error) == ("no_such_tool", True, True, None)
    assert [step.came["content"] for step in (looked, unknown)] == [one["response"] for one in responses]


async def test_every_step_is_told_when_it_ends_and_none_after_the_last_word(settings: Settings) -> None:
    scene = Scene(settings, text=[calls(generate())], pictures=[picture(64, 36)])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        events = await run(studio, conversation.id, "a red fox")
        steps = await studio.trace(conversation.id)
    told = [event.step for event in of_type(events, StepTraced)]
    assert sorted(told, key=lambda one: one.number) == [_summary(step) for step in steps]
    assert isinstance(events[-1], TurnDone)
    assert not {"sent", "came"} & set(StepSummary.model_fields)


async def test_no_key_is_on_record_wherever_it_stood(settings: Settings) -> None:
    own = "AIzaSyMyOwnKeyThatITyped00000000000001"
    with GeminiServer() as server:
        server.on_text(Calls([Call("no_such_tool", {"api_key": "hunter2", "at": f"https://h/?key={own}"})]), paint(own))
        server.on_image(HttpError(400, f"The key {KEY} is not good for that, and neither is {own}."))
        async with Studio(on_gemini(settings, server.url)) as studio:
            conversation = await studio.new_conversation()
            request = TurnRequest(text=f"Paint a fox. My key is {own}, the studio's is {KEY}.")
            events = [
                one async for one in studio.run_turn(conversation.id, request, key=SecretStr("PlainLookingKey77"))
            ]
            steps = await studio.trace(conversation.id)
        # It was sent as it was said; only what is kept is without it.
        assert own in server.requests[0].last_text
    assert isinstance(events[-1], TurnFailed)
    kept = everything_on_disk(settings.home)
    for secret in (own, KEY, "hunter2", "PlainLookingKey77"):
        assert secret.encode() not in kept
        assert secret not in json.dumps([step.model_dump(mode="json") for step in steps])
    assert kept.count(HIDDEN.encode()) >= 5
    assert f"Paint a fox. My key is {HIDDEN}" in on_record(of_kind(steps, StepKind.MODEL)[0])[0][1]


async def test_a_failure_stands_at_the_call_and_at_the_node_and_a_turn_that_goes_on_counts_on(
    settings: Settings,
) -> None:
    with GeminiServer() as server:
        server.on_text(paint())
        server.on_image(HttpError(503), SMALL)
        async with Studio(on_gemini(settings, server.url)) as studio:
            conversation = await studio.new_conversation()
            turn_id = started(await run(studio, conversation.id, "a red fox"))
            failed = await studio.trace(conversation.id, turn_id)
            assert isinstance((await retry(studio, conversation.id, turn_id))[-1], TurnDone)
            steps = await studio.trace(conversation.id, turn_id)
    [call] = [step for step in failed if step.asks_for == "picture"]
    assert [(step.name, step.error.code) for step in failed if step.error] == [
        ("executor", ErrorCode.OVERLOADED),
        (call.name, ErrorCode.OVERLOADED),
    ]
    assert steps[: len(failed)] == failed
    assert [step.number for step in steps] == list(range(1, len(steps) + 1))
    again = [step for step in steps[len(failed) :] if step.kind is StepKind.MODEL]
    assert [(step.name, step.attempts, step.error) for step in again] == [(call.name, 1, None)]
    assert again[0].at_s >= call.at_s


async def test_pictures_painted_side_by_side_are_steps_of_one_node(settings: Settings) -> None:
    scene = Scene(settings, text=[calls(generate(number_of_images=3))], pictures=lambda _: picture(64, 36))
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        await run(studio, conversation.id, "three foxes", review="off")
        steps = await studio.trace(conversation.id)
    painted = [step for step in steps if step.asks_for == "picture"]
    [executor] = [step for step in steps if step.name == "executor"]
    assert [step.within for step in painted] == [executor.number] * 3
    assert [step.sent.get("take", 1) for step in painted] == [1, 2, 3]
    assert len({step.name for step in painted}) == 3


async def test_a_stopped_turn_keeps_what_was_sent_and_the_picture_that_came_late(settings: Settings) -> None:
    with GeminiServer() as server:
        server.on_text(paint())
        server.on_image(Hold(SMALL))
        async with Studio(on_gemini(settings, server.url)) as studio:
            conversation = await studio.new_conversation()
            running = asyncio.create_task(run(studio, conversation.id, "a red fox"))
            await asyncio.to_thread(server.wait_for_held)
            await studio.cancel(conversation.id)
            events = await running
            stopped = await studio.trace(conversation.id)
            server.release()
            steps = await _steps_when(studio, conversation.id, lambda steps: len(steps) > len(stopped))
    assert isinstance(events[-1], TurnStopped)
    [executor] = [step for step in stopped if step.name == "executor"]
    assert executor.was_cancelled
    [late] = [step for step in steps if step not in stopped]
    assert (late.asks_for, late.within, late.was_cancelled) == ("picture", executor.number, False)
    assert late.price_usd > 0


CHILD = """
import asyncio, sys
from pathlib import Path
from pydantic import SecretStr
from agent import Settings, Studio, TurnRequest

async def main(home, url, key):
    async with Studio(Settings(home=Path(home), gemini_api_key=SecretStr(key), gemini_base_url=url)) as studio:
        conversation = await studio.new_conversation()
        print(conversation.id, flush=True)
        async for event in studio.run_turn(conversation.id, TurnRequest(text="a red fox")):
            pass

asyncio.run(main(*sys.argv[1:]))
"""


async def test_after_a_sudden_end_the_steps_that_had_ended_are_there_and_the_turn_goes_on_behind_them(
    settings: Settings,
) -> None:
    with GeminiServer() as server:
        server.on_text(paint())
        server.on_image(Hold(SMALL), SMALL)
        with StudioChild(CHILD, str(settings.home), server.url, KEY) as child:
            conversation_id = await child.line()
            await asyncio.to_thread(server.wait_for_held)
            await until(lambda: len(_numbers(settings.home)) == 2)
            child.kill()
            assert await child.ended() == -signal.SIGKILL
        before = _numbers(settings.home)
        async with Studio(on_gemini(settings, server.url)) as studio:
            # The picture may have been paid for: the turn goes on by itself only to say so.
            await _steps_when(studio, conversation_id, lambda steps: any(one.source == "journal" for one in steps))
            await until(lambda: not studio.is_running(conversation_id))
            turn = await newest(studio, conversation_id)
            assert (await retry(studio, conversation_id, turn.id))[-1].type == "turn_done"
            steps = await studio.trace(conversation_id, turn.id)
    assert before == [1, 2]
    assert [step.number for step in steps] == list(range(1, len(steps) + 1))
    pictures = [step for step in steps if step.asks_for == "picture"]
    assert [(step.source, step.attempts) for step in pictures] == [("journal", 0), ("sent", 1)]
    assert pictures[0].error is not None
    assert pictures[0].error.code is ErrorCode.CALL_UNKNOWN
    assert next(step.name for step in steps if step.asks_for == "words") == "planner:1"


async def test_an_answer_of_the_cache_is_on_record_as_one_that_cost_nothing(settings: Settings) -> None:
    with GeminiServer() as server:
        server.on_text(Text("Hello."))
        async with Studio(on_gemini(settings, server.url, reuse_plans=True)) as studio:
            conversations = [await studio.new_conversation() for _ in range(2)]
            for one in conversations:
                await run(studio, one.id, "hello")
            [first], [second] = [of_kind(await studio.trace(one.id), StepKind.MODEL) for one in conversations]
        assert len(server.requests) == 1
    assert (first.source, first.attempts) == ("sent", 1)
    assert (second.source, second.attempts, second.price_usd, second.usage.total_tokens) == ("cache", 0, 0.0, 0)
    assert [one["text"] for one in _parts(second) if one["text"]] == ["Hello."]
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


async def test_embeddings_are_steps_too_also_those_made_beside_the_turn(settings: Settings) -> None:
    # The style library is loaded for the first time, on a machine that has other things to do.
    settings = settings.model_copy(update={"patiences": Patiences(retriever_s=60)})
    wish = calls(generate(style="like rain on a window"))
    scene, ears = Scene(settings, text=lambda _: wish, pictures=lambda _: picture(64, 36)), Ears()
    async with scene.studio() as studio:
        scene.provider.embeds = ears
        conversation = await studio.new_conversation()
        await run(studio, conversation.id, "a fox like rain", review="off")
        await _steps_when(studio, conversation.id, lambda steps: any(one.asks_for == "vectors" for one in steps))
        await run(studio, conversation.id, "and a cat like rain", review="off")
        steps = [step for step in await studio.trace(conversation.id) if step.asks_for == "vectors"]
        retrievers = [step for step in await studio.trace(conversation.id) if step.name == "retriever"]
    assert [text for step in steps for text in _list(step.sent["texts"])] == ears.asked
    assert steps[-1].sent == {"texts": ["like rain on a window"]}
    assert steps[-1].came == {"vectors": 1, "dimension": 4}
    assert (steps[-1].usage.prompt_tokens, steps[-1].within) == (1, retrievers[1].number)
    # The library was read in the background, at the first turn's wish.
    assert {(step.turn_id, step.within) for step in steps[:-1]} == {(retrievers[0].turn_id, retrievers[0].number)}


async def test_a_trace_is_its_owners_alone_goes_with_its_conversation_and_does_not_come_with_a_copy(
    settings: Settings,
) -> None:
    scene = Scene(settings, text=[says("Hello.")])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation("ann")
        request = TurnRequest(text="hello")
        [_ async for _ in studio.run_turn(conversation.id, request, owner="ann")]
        assert len(await studio.trace(conversation.id, owner="ann")) == 2
        with pytest.raises(RequestRefused):
            await studio.trace(conversation.id, owner="bob")
        copy = await studio.duplicate_conversation(conversation.id, "ann")
        assert await studio.trace(copy.id, owner="ann") == ()
    with sqlite3.connect(settings.home / "aivista.db") as database:
        database.execute("PRAGMA foreign_keys=ON")
        database.execute("DELETE FROM conversations WHERE id = ?", (conversation.id,))
        assert database.execute("SELECT count(*) FROM trace_steps").fetchone() == (0,)
    database.close()


async def test_the_report_tells_the_same_steps(settings: Settings) -> None:
    with GeminiServer() as server:
        server.on_text(paint())
        server.on_image(HttpError(503))
        async with Studio(on_gemini(settings, server.url)) as studio:
            conversation = await studio.new_conversation()
            turn_id = started(await run(studio, conversation.id, "a red fox"))
            steps = await studio.trace(conversation.id)
            report: Any = await studio.report(conversation.id, turn_id)
    assert [one["name"] for one in report["trace"]] == named(steps)
    for one, step in zip(report["trace"], steps, strict=True):
        assert one.get("came", {}) == step.came
        assert one.get("error") == (step.error.model_dump(mode="json") if step.error else None)
    [asked] = [one for one in report["trace"] if one["name"] == "planner:1"]
    assert asked["sent"]["messages"] == 1
    assert "system" not in asked["sent"]


async def test_an_error_in_a_step_is_told_to_the_log_also_when_the_turn_goes_on_without_it(
    settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    with GeminiServer() as server:
        server.on_text(Text("Hello."), paint(), HttpError(400, "The picture cannot be looked at."))
        server.on_image(SMALL)
        async with Studio(on_gemini(settings, server.url)) as studio:
            conversation = await studio.new_conversation()
            with caplog.at_level(logging.ERROR, "agent.report"):
                await run(studio, conversation.id, "hello")
                assert caplog.records == []
                events = await run(studio, conversation.id, "a red fox", review="always")
    assert isinstance(events[-1], TurnDone)
    [record] = caplog.records
    told = json.loads(record.getMessage())
    assert told["error"] is None
    assert [step["name"] for step in told["steps"]] == ["critic:#1"]


def _summary(step: TraceStep) -> StepSummary:
    return StepSummary.model_validate(step.model_dump(include=set(StepSummary.model_fields)))


async def _steps_when(
    studio: Studio, conversation_id: str, is_true: Callable[[tuple[TraceStep, ...]], bool]
) -> tuple[TraceStep, ...]:
    """Return the steps once the claim holds of them."""

    async def steps() -> tuple[TraceStep, ...] | None:
        found = await studio.trace(conversation_id)
        return found if is_true(found) else None

    return await until(steps)


def _parts(step: TraceStep) -> list[Any]:
    return _list(step.came["parts"])


def _list(value: Any) -> list[Any]:
    assert isinstance(value, list)
    return value


def _numbers(home: Path) -> list[int]:
    path = home / "aivista.db"
    if not path.exists():
        return []
    with sqlite3.connect(path) as database:
        try:
            rows = database.execute("SELECT number FROM trace_steps ORDER BY number").fetchall()
        except sqlite3.OperationalError:
            rows = []
    database.close()
    return [row[0] for row in rows]

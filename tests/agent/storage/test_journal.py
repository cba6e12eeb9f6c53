"""The journal of paid calls: what stands on disk while a request is on its way, and what of it stays."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from agent.errors import ErrorCode
from agent.events import Step, ThoughtLog, TurnDone, TurnFailed, TurnStopped
from agent.messages import TextPart, TokenUsage, ToolCallPart
from agent.providers.catalogue import ModelRole, load_catalogue
from agent.settings import Settings
from agent.storage.conversations import ConversationStore
from agent.storage.images import ImageStore
from agent.storage.journal import CallRecord, CallState, Heard
from agent.studio import Studio, TurnRequest
from tests.support.gemini import SMALL, on_gemini, paint
from tests.support.histories import LARGE_SIGNATURE, SMALL_SIGNATURE, answer, begun_turn, finished
from tests.support.scenes import only, run
from tests.support.turns import asked, calls_on_disk, newest, rows, started
from tests.support.waiting import until
from tests.wire_server import Answer, GeminiServer, HttpError, PictureAnswer, Text, WireRequest, quota_body
from tests.wire_server.models import Kind


@pytest.fixture
def server() -> Iterator[GeminiServer]:
    with GeminiServer() as running:
        yield running


@pytest.fixture
def gemini(settings: Settings, server: GeminiServer) -> Settings:
    return on_gemini(settings, server.url)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[ConversationStore]:
    store = ConversationStore(tmp_path, ImageStore(tmp_path))
    await store.open()
    yield store
    await store.aclose()


class Witness:
    """A model that reads the journal's file in the moment a request reaches it, then answers."""

    def __init__(self, home: Path, *answers: Answer) -> None:
        self.home = home
        self.answers = list(answers)
        self.seen: list[dict[str, tuple[str, int]]] = []

    def __call__(self, request: WireRequest) -> Answer:
        self.seen.append({name: (row["state"], row["attempts"]) for name, row in calls_on_disk(self.home).items()})
        return self.answers.pop(0)


def ended(row: dict[str, Any]) -> tuple[str, int, str | None]:
    return row["state"], row["attempts"], row["error_code"]


# Over real HTTP.


async def test_a_call_is_on_disk_as_sent_when_its_request_arrives_and_as_done_after_it(
    server: GeminiServer, gemini: Settings
) -> None:
    talker, painter = Witness(gemini.home, paint()), Witness(gemini.home, SMALL)
    server.on_text(talker)
    server.on_image(painter)
    async with Studio(gemini) as studio:
        conversation = await studio.new_conversation()
        events = await run(studio, conversation.id, "a red fox")
        turn = await newest(studio, conversation.id)
    assert talker.seen == [{"planner:1": ("sent", 1)}]
    assert painter.seen == [{"planner:1": ("done", 1), "picture:1.0.0.1": ("sent", 1)}]
    kept = calls_on_disk(gemini.home)
    assert [ended(row) for row in kept.values()] == [("done", 1, None), ("done", 1, None)]
    assert [row["model"] for row in kept.values()] == [request.model for request in server.requests]
    assert {(row["conversation_id"], row["turn_id"]) for row in kept.values()} == {(conversation.id, turn.id)}
    assert all(row["price_usd"] > 0 for row in kept.values())
    assert sum(row["price_usd"] for row in kept.values()) == pytest.approx(only(events, TurnDone).price_usd)


@pytest.mark.parametrize(
    ("refusal", "state", "code"),
    [
        (HttpError(500), "unknown", ErrorCode.PROVIDER_ERROR),
        (HttpError(504), "unknown", None),
        (HttpError(400), "failed", None),
        (HttpError(503), "failed", ErrorCode.OVERLOADED),
    ],
    ids=["500", "504", "400", "503"],
)
async def test_a_picture_that_may_have_been_charged_is_unknown_and_a_refused_one_failed(
    server: GeminiServer, gemini: Settings, refusal: HttpError, state: str, code: ErrorCode | None
) -> None:
    server.on_text(paint())
    server.on_image(refusal)
    async with Studio(gemini) as studio:
        conversation = await studio.new_conversation()
        events = await run(studio, conversation.id, "a red fox")
    row = calls_on_disk(gemini.home)["picture:1.0.0.1"]
    told = only(events, TurnFailed).error.code
    assert code in (None, told)
    assert ended(row) == (state, 1, told.value)
    assert row["answer"] is None


async def test_a_text_that_broke_off_has_failed_whatever_it_was(server: GeminiServer, gemini: Settings) -> None:
    server.on_text(HttpError(500))
    async with Studio(gemini) as studio:
        conversation = await studio.new_conversation()
        await run(studio, conversation.id, "hello there")
    assert ended(calls_on_disk(gemini.home)["planner:1"]) == ("failed", 1, "provider_error")


async def test_every_try_is_counted_and_its_bytes_leave_only_when_that_is_on_disk(
    server: GeminiServer, gemini: Settings
) -> None:
    busy = HttpError(429, body=quota_body(retry_s=0.0))
    talker = Witness(gemini.home, busy, busy, Text("Here I am."))
    server.on_text(talker)
    async with Studio(gemini.model_copy(update={"retry_budget_s": 60})) as studio:
        conversation = await studio.new_conversation()
        await run(studio, conversation.id, "hello there")
    assert talker.seen == [{"planner:1": ("sent", tried)} for tried in (1, 2, 3)]
    assert ended(calls_on_disk(gemini.home)["planner:1"]) == ("done", 3, None)


async def test_a_stop_in_the_pause_before_another_try_cancels_the_call_and_nothing_more_is_sent(
    server: GeminiServer, gemini: Settings
) -> None:
    server.on_text(HttpError(429, body=quota_body(retry_s=50.0)))
    async with Studio(gemini.model_copy(update={"retry_budget_s": 60})) as studio:
        conversation = await studio.new_conversation()
        events = studio.run_turn(conversation.id, TurnRequest(text="hello there"))
        async for event in events:
            if isinstance(event, ThoughtLog) and event.step is Step.RETRYING:
                break
        await until(lambda: calls_on_disk(gemini.home)["planner:1"]["state"] == "queued")
        assert await studio.cancel(conversation.id)
        assert [event async for event in events][-1:] == [TurnStopped()]
    assert ended(calls_on_disk(gemini.home)["planner:1"]) == ("cancelled", 1, None)
    assert asked(server, Kind.TEXT) == 1


async def test_the_answer_is_kept_while_a_turn_may_go_on_and_let_go_when_it_is_over(
    server: GeminiServer, gemini: Settings
) -> None:
    server.on_text(paint(), Text("Well."))
    server.on_image(HttpError(500))
    async with Studio(gemini) as studio:
        conversation = await studio.new_conversation()
        failed = started(await run(studio, conversation.id, "a red fox"))
        other = await studio.new_conversation()
        over = started(await run(studio, other.id, "how are you?"))
    # Sooner or later: at the latest when the next studio opens.
    async with Studio(gemini):
        pass
    kept = rows(gemini.home / "aivista.db", "SELECT turn_id, name, answer FROM calls")
    assert {(row["turn_id"], row["name"]) for row in kept if row["answer"]} == {(failed, "planner:1")}
    assert over in {row["turn_id"] for row in kept}, "the call itself stays on record"


async def test_the_answers_of_many_turns_are_let_go_together_without_a_restart(
    server: GeminiServer, gemini: Settings
) -> None:
    server.on_text(lambda request: Text("Well."))
    async with Studio(gemini) as studio:
        conversation = await studio.new_conversation()
        for number in range(33):
            await run(studio, conversation.id, f"hello number {number}")
        kept = rows(gemini.home / "aivista.db", "SELECT answer FROM calls")
    assert len(kept) == 33
    assert sum(row["answer"] is not None for row in kept) == 1


async def test_a_picture_s_heavy_signature_is_a_blob_and_no_row_holds_it(
    server: GeminiServer, gemini: Settings
) -> None:
    server.on_text(paint())
    server.on_image(PictureAnswer(width=64, height=36, signature_bytes=200_000))
    async with Studio(gemini) as studio:
        conversation = await studio.new_conversation()
        await run(studio, conversation.id, "a red fox")
        answered = calls_on_disk(gemini.home)["picture:1.0.0.1"]
        assert len(answered["answer"]) < 5_000
        assert "digest" in answered["signatures"]
    assert any(path.stat().st_size > 100_000 for path in (gemini.home / "blobs").rglob("*") if path.is_file())


# The journal by itself.


def call(turn_id: str, name: str, **update: Any) -> CallRecord:
    fields: dict[str, Any] = {"conversation_id": "", "turn_id": turn_id, "name": name, "model": "m", **update}
    return CallRecord(**fields)


async def begun(store: ConversationStore, turn_id: str = "t1") -> str:
    """Return the id of a conversation with a turn that has begun."""
    conversation = await store.create("local")
    await store.begin_turn(conversation.id, begun_turn(turn_id))
    return conversation.id


async def test_an_answer_with_large_and_small_signatures_comes_back_whole(store: ConversationStore) -> None:
    conversation_id = await begun(store)
    tool = ToolCallPart(
        name="generate_image",
        arguments={"prompt": "狐", "deep": {"list": [1.5, None, True]}},
        call_id="c1",
        thought_signature=LARGE_SIGNATURE[:-1],
        signed_by="text-model",
    )
    small = TextPart(text="", thought_signature=SMALL_SIGNATURE, signed_by="text-model")
    heard = Heard(
        parts=(*answer("#1").parts, tool, small),
        usage=TokenUsage(prompt_tokens=7, thought_tokens=9, image_tokens=1120),
        finish_reason="STOP",
    )
    sent = call("t1", "picture:1.0.0.1", conversation_id=conversation_id, state=CallState.SENT, attempts=1)
    done = sent.model_copy(update={"state": CallState.DONE, "answer": heard, "price_usd": 0.04})
    await store.journal.send(sent, is_new=True)
    await store.journal.end(done)
    assert await store.journal.calls("t1") == {done.name: done}


async def test_a_lost_blob_leaves_the_answer_unsigned_but_there(store: ConversationStore, tmp_path: Path) -> None:
    conversation_id = await begun(store)
    sent = call("t1", "picture:1.0.0.1", conversation_id=conversation_id, state=CallState.SENT, attempts=1)
    heard = Heard(parts=answer("#1").parts)
    await store.journal.send(sent, is_new=True)
    await store.journal.end(sent.model_copy(update={"state": CallState.DONE, "answer": heard}))
    await store.journal.calls("t1")
    for path in (tmp_path / "blobs").rglob("*"):
        if path.is_file():
            path.unlink()
    kept = (await store.journal.calls("t1"))["picture:1.0.0.1"].answer
    assert kept is not None
    assert [part.type for part in kept.parts] == [part.type for part in heard.parts]
    assert LARGE_SIGNATURE not in [getattr(part, "thought_signature", None) for part in kept.parts]


async def test_the_calls_of_a_turn_come_in_the_order_they_were_made_and_no_others(store: ConversationStore) -> None:
    conversation_id = await begun(store)
    await store.begin_turn(conversation_id, begun_turn("t2", parent="t1"))
    names = ["planner:1", "searcher:1", "planner:2", "picture:2.0.0.1"]
    for name in names:
        sent = call("t1", name, conversation_id=conversation_id, state=CallState.SENT, attempts=1)
        await store.journal.send(sent, is_new=True)
    same_name = call("t2", "planner:1", conversation_id=conversation_id, state=CallState.SENT, attempts=1)
    await store.journal.send(same_name, is_new=True)
    assert list(await store.journal.calls("t1")) == names
    assert list(await store.journal.calls("t2")) == ["planner:1"]
    assert await store.journal.calls("t3") == {}


async def test_what_is_handed_over_is_read_back_in_the_order_it_was_handed_over(store: ConversationStore) -> None:
    conversation_id = await begun(store)
    sent = call("t1", "planner:1", conversation_id=conversation_id, state=CallState.SENT, attempts=1)
    await store.journal.send(sent, is_new=True)
    store.journal.queue(sent.model_copy(update={"state": CallState.QUEUED}))
    await store.journal.send(sent.model_copy(update={"attempts": 2}), is_new=False)
    store.journal.cancel(sent.model_copy(update={"state": CallState.CANCELLED, "attempts": 2}))
    kept = (await store.journal.calls("t1"))["planner:1"]
    assert (kept.state, kept.attempts) == (CallState.CANCELLED, 2)


async def test_a_conversation_that_is_removed_takes_its_calls_along(store: ConversationStore, tmp_path: Path) -> None:
    conversation_id = await begun(store)
    sent = call("t1", "planner:1", conversation_id=conversation_id, state=CallState.SENT, attempts=1)
    await store.journal.send(sent, is_new=True)
    await store.remove(conversation_id, "local")
    assert calls_on_disk(tmp_path) == {}


async def test_paid_calls_on_their_way_when_a_process_died_are_of_unknown_outcome_and_counted(tmp_path: Path) -> None:
    store = ConversationStore(tmp_path, ImageStore(tmp_path))
    await store.open()
    conversation_id = await begun(store)
    painter = load_catalogue().model(ModelRole.IMAGE_FLASH, "sketch").id
    begun_calls = [("planner:1", CallState.DONE, "m"), ("a", CallState.SENT, "m"), ("b", CallState.SENT, "m")]
    for name, state, model in (*begun_calls, ("free", CallState.SENT, painter)):
        sent = call("t1", name, conversation_id=conversation_id, state=CallState.SENT, attempts=1, model=model)
        await store.journal.send(sent, is_new=True)
        if state is not CallState.SENT:
            await store.journal.end(sent.model_copy(update={"state": state, "answer": Heard()}))
    await store.aclose()
    with sqlite3.connect(tmp_path / "aivista.db") as database:
        database.execute("UPDATE turns SET runner = 'nobody'")
    database.close()
    again = ConversationStore(tmp_path, ImageStore(tmp_path))
    await again.open()
    [turn] = (await again.get(conversation_id, "local")).turns
    found = await again.journal.calls("t1")
    await again.aclose()
    assert {name: kept.state for name, kept in found.items()} == {
        "planner:1": CallState.DONE,
        "a": CallState.UNKNOWN,
        "b": CallState.UNKNOWN,
        "free": CallState.CANCELLED,
    }
    assert turn.components[-1].model_dump()["may_have_been_charged"] == 2


async def test_nothing_is_sent_while_another_program_locks_the_records_and_the_turn_waits_for_it(
    server: GeminiServer, gemini: Settings
) -> None:
    async with Studio(gemini) as studio:
        conversation = await studio.new_conversation()
        server.on_text(lambda request: Text("Well."))
        await run(studio, conversation.id, "hello there")
        with contextlib.closing(sqlite3.connect(gemini.home / "aivista.db", isolation_level=None)) as database:
            database.execute("BEGIN IMMEDIATE")
            turn = asyncio.create_task(run(studio, conversation.id, "and again"))
            done, _ = await asyncio.wait([turn], timeout=0.5)
            assert not done
            assert asked(server, Kind.TEXT) == 1
            database.execute("ROLLBACK")
        assert isinstance((await turn)[-1], TurnDone)
    assert asked(server, Kind.TEXT) == 2


async def test_a_call_that_cannot_be_put_on_record_is_not_made(server: GeminiServer, gemini: Settings) -> None:
    async with Studio(gemini) as studio:
        conversation = await studio.new_conversation()
        await run(studio, conversation.id, "hello there")
        with sqlite3.connect(gemini.home / "aivista.db") as database:
            database.execute(
                "CREATE TRIGGER no_more BEFORE INSERT ON calls BEGIN SELECT RAISE(ABORT, 'it takes no more'); END"
            )
        database.close()
        events = await run(studio, conversation.id, "are you there?")
    assert only(events, TurnFailed).error.code is ErrorCode.STORAGE_BROKEN
    assert asked(server, Kind.TEXT) == 1


async def test_a_finished_turn_s_answers_go_and_its_messages_stay(tmp_path: Path) -> None:
    store = ConversationStore(tmp_path, ImageStore(tmp_path))
    await store.open()
    conversation_id = await begun(store)
    sent = call("t1", "planner:1", conversation_id=conversation_id, state=CallState.SENT, attempts=1)
    await store.journal.send(sent, is_new=True)
    heard = Heard(parts=answer("#1").parts)
    await store.journal.end(sent.model_copy(update={"state": CallState.DONE, "answer": heard}))
    turn = finished(begun_turn())
    await store.finish_turn(conversation_id, turn)
    await store.aclose()
    again = ConversationStore(tmp_path, ImageStore(tmp_path))
    await again.open()
    kept = (await again.journal.calls("t1"))["planner:1"]
    [whole] = (await again.get(conversation_id, "local")).turns
    await again.aclose()
    assert (kept.state, kept.answer) == (CallState.DONE, None)
    assert whole.messages == turn.messages

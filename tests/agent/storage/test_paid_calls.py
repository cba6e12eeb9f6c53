"""What stands on disk while a paid request is on its way, what of it stays, and what becomes of a turn without it."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent import ErrorCode, ErrorInfo, InterruptedNote, Settings, Studio, TurnDone, TurnFailed, TurnState
from tests.adapters.calls import (
    CHECKPOINTS,
    CallRecord,
    CallState,
    Heard,
    foreign_values_made_of_a_checkpoint,
)
from tests.adapters.records import ConversationStore, ImageStore, turns_with_checkpoints
from tests.adapters.scripted import Line, calls, says
from tests.support.gemini import SMALL, on_gemini, paint
from tests.support.histories import begun_turn
from tests.support.scenes import Scene, generate, only, picture, run, words
from tests.support.turns import asked, calls_on_disk, decide, newest, retry, rows, started
from tests.wire_server import Answer, GeminiServer, HttpError, Text, WireRequest, quota_body
from tests.wire_server.models import Kind

REFUSED = Line(error=ErrorInfo(code=ErrorCode.PICTURE_BLOCKED, parameters={"reason": "IMAGE_SAFETY"}))


@pytest.fixture
def server() -> Iterator[GeminiServer]:
    with GeminiServer() as running:
        yield running


@pytest.fixture
def gemini(settings: Settings, server: GeminiServer) -> Settings:
    return on_gemini(settings, server.url)


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


# The journal


async def test_every_try_is_on_disk_before_its_bytes_leave_and_with_its_price_after_it(
    server: GeminiServer, gemini: Settings
) -> None:
    busy = HttpError(429, body=quota_body(retry_s=0.0))
    talker, painter = Witness(gemini.home, busy, busy, paint()), Witness(gemini.home, SMALL)
    server.on_text(talker)
    server.on_image(painter)
    async with Studio(gemini.model_copy(update={"retry_budget_s": 60})) as studio:
        conversation = await studio.conversations.create()
        events = await run(studio, conversation.id, "a red fox")
        turn = await newest(studio, conversation.id)
    assert talker.seen == [{"planner:1": ("sent", tried)} for tried in (1, 2, 3)]
    assert painter.seen == [{"planner:1": ("done", 3), "picture:1.0.0.1": ("sent", 1)}]
    kept = calls_on_disk(gemini.home)
    assert [ended(row) for row in kept.values()] == [("done", 3, None), ("done", 1, None)]
    assert [row["model"] for row in kept.values()] == [request.model for request in server.requests[-2:]]
    assert {(row["conversation_id"], row["turn_id"]) for row in kept.values()} == {(conversation.id, turn.id)}
    assert all(row["price_usd"] > 0 for row in kept.values())
    assert sum(row["price_usd"] for row in kept.values()) == pytest.approx(only(events, TurnDone).price_usd)


async def test_a_picture_that_may_have_been_charged_is_unknown_and_what_was_refused_has_failed(
    server: GeminiServer, gemini: Settings
) -> None:
    outcomes = {500: "unknown", 504: "unknown", 400: "failed", 503: "failed"}
    async with Studio(gemini) as studio:
        for status, state in outcomes.items():
            server.on_text(paint())
            server.on_image(HttpError(status))
            events = await run(studio, (await studio.conversations.create()).id, "a red fox")
            row = calls_on_disk(gemini.home)["picture:1.0.0.1"]
            assert ended(row) == (state, 1, only(events, TurnFailed).error.code.value), status
            assert row["answer"] is None
        server.on_text(HttpError(500))
        await run(studio, (await studio.conversations.create()).id, "hello there")
    assert ended(calls_on_disk(gemini.home)["planner:1"]) == ("failed", 1, "provider_error"), "words are not charged"


async def test_nothing_is_sent_that_is_not_on_record(server: GeminiServer, gemini: Settings) -> None:
    """While another program locks the records a turn waits for it; where they take nothing it fails."""
    server.on_text(lambda request: Text("Well."))
    async with Studio(gemini) as studio:
        conversation = await studio.conversations.create()
        await run(studio, conversation.id, "hello there")
        with contextlib.closing(sqlite3.connect(gemini.home / "aivista.db", isolation_level=None)) as database:
            database.execute("BEGIN IMMEDIATE")
            turn = asyncio.create_task(run(studio, conversation.id, "and again"))
            done, _ = await asyncio.wait([turn], timeout=0.5)
            assert (done, asked(server, Kind.TEXT)) == (set(), 1)
            database.execute("ROLLBACK")
        assert isinstance((await turn)[-1], TurnDone)
        assert asked(server, Kind.TEXT) == 2
        with contextlib.closing(sqlite3.connect(gemini.home / "aivista.db")) as database, database:
            database.execute("CREATE TRIGGER no_more BEFORE INSERT ON calls BEGIN SELECT RAISE(ABORT, 'full'); END")
        events = await run(studio, conversation.id, "are you there?")
    assert only(events, TurnFailed).error.code is ErrorCode.STORAGE_BROKEN
    assert asked(server, Kind.TEXT) == 2


async def test_paid_calls_on_their_way_when_a_process_died_are_of_unknown_outcome_and_counted(tmp_path: Path) -> None:
    sent = {"planner:1": "m", "a": "m", "b": "m", "free": "sketch-painter"}
    async with contextlib.aclosing(ConversationStore(tmp_path, ImageStore(tmp_path))) as store:
        await store.open()
        key = (await store.create("local")).id
        await store.begin_turn(key, begun_turn("t1"))
        for name, model in sent.items():
            told = {"conversation_id": key, "turn_id": "t1", "name": name, "model": model, "attempts": 1}
            call = CallRecord.model_validate({**told, "state": CallState.SENT})
            await store.journal.send(call, is_new=True)
            if name == "planner:1":
                await store.journal.end(call.model_copy(update={"state": CallState.DONE, "answer": Heard()}))
    with contextlib.closing(sqlite3.connect(tmp_path / "aivista.db")) as database, database:
        database.execute("UPDATE turns SET runner = 'nobody'")
    async with contextlib.aclosing(
        ConversationStore(tmp_path, ImageStore(tmp_path), free_models={"sketch-painter"})
    ) as again:
        await again.open()
        [turn] = (await again.get(key, "local")).turns
    assert {name: row["state"] for name, row in calls_on_disk(tmp_path).items()} == {
        "planner:1": "done",
        "a": "unknown",
        "b": "unknown",
        "free": "cancelled",
    }
    assert turn.components[-1] == InterruptedNote(may_have_been_charged=2)


async def test_what_turns_that_are_over_heard_is_let_go_of_and_what_may_go_on_keeps_it(settings: Settings) -> None:
    """Together, not at each turn, and without a restart; the calls themselves stay on record."""
    scene = Scene(settings, text=lambda asked: says("Hello."))
    async with scene.studio() as studio:
        conversation = await studio.conversations.create()
        for number in range(40):
            await run(studio, conversation.id, f"hello number {number}")
        answers = rows(settings.home / "aivista.db", "SELECT answer FROM calls")
    assert (len(answers), sum(row["answer"] is not None for row in answers) < 10) == (40, True)
    assert len(turns_with_checkpoints(settings.home)) < 10
    scene.text, scene.pictures = [calls(generate()), calls(generate())], [REFUSED]
    async with scene.studio() as studio:
        waits, fails = await studio.conversations.create(), await studio.conversations.create()
        waiting = started(await run(studio, waits.id, "a fox", confirm=True))
        failed = started(await run(studio, fails.id, "a fox"))
    for _ in range(2):
        scene.text = [says("Hello.")]
        async with scene.studio() as studio:
            last = started(await run(studio, (await studio.conversations.create()).id, "hello there"))
        assert {waiting, failed} <= turns_with_checkpoints(settings.home) <= {waiting, failed, last}


# Checkpoints


@pytest.mark.parametrize("rubbish", [b"this was a database once " * 400, b"SQLite format 3\0" + b"\xff" * 9000])
async def test_damaged_checkpoints_are_made_anew_and_every_conversation_still_opens(
    settings: Settings, rubbish: bytes
) -> None:
    scene = Scene(settings, text=[calls(generate())])
    async with scene.studio() as studio:
        key = (await studio.conversations.create()).id
        turn_id = started(await run(studio, key, "a fox", confirm=True))
    for ending in ("-wal", "-shm"):
        (settings.home / (CHECKPOINTS + ending)).unlink(missing_ok=True)
    (settings.home / CHECKPOINTS).write_bytes(rubbish)
    scene.text = [says("Something else.")]
    async with scene.studio() as studio:
        assert (await newest(studio, key)).state is TurnState.WAITING
        gone = await decide(studio, key, turn_id)
        assert only(gone, TurnFailed).error.code is ErrorCode.PLAN_GONE
        assert words(await run(studio, key, "something else")) == "Something else."
    assert (settings.home / CHECKPOINTS).stat().st_mode & 0o777 == 0o600
    assert scene.provider.asked[-1].request is None


async def test_a_failed_turn_whose_checkpoint_was_lost_pays_nothing_twice(settings: Settings) -> None:
    scene = Scene(settings, text=[calls(generate())], pictures=[REFUSED])
    async with scene.studio() as studio:
        key = (await studio.conversations.create()).id
        turn_id = started(await run(studio, key, "a fox"))
    for ending in ("", "-wal", "-shm"):
        (settings.home / (CHECKPOINTS + ending)).unlink(missing_ok=True)
    scene.text, scene.pictures = [], [picture()]
    async with scene.studio() as studio:
        assert isinstance((await retry(studio, key, turn_id))[-1], TurnDone)
        assert [one.request is None for one in scene.provider.asked] == [False], "the planner's answer is known"


async def test_nothing_is_made_of_a_type_that_is_not_ours(tmp_path: Path) -> None:
    assert await foreign_values_made_of_a_checkpoint(tmp_path / "generous", is_allowed=True) == ["rm -rf"]
    assert await foreign_values_made_of_a_checkpoint(tmp_path / "strict", is_allowed=False) == []

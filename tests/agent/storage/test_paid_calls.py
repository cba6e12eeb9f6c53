"""What stands on disk while a paid request is on its way, what of it stays, and what it adds up to."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import time
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from agent import (
    ErrorCode,
    ErrorInfo,
    InterruptedNote,
    Picture,
    Settings,
    Studio,
    TokenUsage,
    Turn,
    TurnDone,
    TurnFailed,
    TurnSettings,
    TurnState,
)
from tests.adapters.models import Line, calls
from tests.adapters.records import (
    CallRecord,
    CallState,
    Housekeeping,
    ImageStore,
    Records,
    foreign_values_made_of_a_checkpoint,
    keep,
    lose_checkpoints,
)
from tests.support.gemini import SMALL, paint
from tests.support.histories import begun_turn
from tests.support.scenes import Scene, generate, only, picture, run
from tests.support.turns import asked, calls_on_disk, in_database, newest, retry, started
from tests.wire_server import Answer, GeminiServer, HttpError, Text, WireRequest, quota_body
from tests.wire_server.models import Kind

REFUSED = Line(error=ErrorInfo(code=ErrorCode.PICTURE_BLOCKED, parameters={"reason": "IMAGE_SAFETY"}))


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
        full = "CREATE TRIGGER no_more BEFORE INSERT ON calls BEGIN SELECT RAISE(ABORT, 'full'); END"
        in_database(gemini.home, full)
        events = await run(studio, conversation.id, "are you there?")
    assert only(events, TurnFailed).error.code is ErrorCode.STORAGE_BROKEN
    assert asked(server, Kind.TEXT) == 2


# Checkpoints


async def test_a_failed_turn_whose_checkpoint_was_lost_pays_nothing_twice(settings: Settings) -> None:
    scene = Scene(settings, text=[calls(generate())], pictures=[REFUSED])
    async with scene.studio() as studio:
        key = (await studio.conversations.create()).id
        turn_id = started(await run(studio, key, "a fox"))
    lose_checkpoints(settings.home)
    scene.text, scene.pictures = [], [picture()]
    async with scene.studio() as studio:
        assert isinstance((await retry(studio, key, turn_id))[-1], TurnDone)
        assert [one.request is None for one in scene.provider.asked] == [False], "the planner's answer is known"


async def test_nothing_is_made_of_a_type_that_is_not_ours(tmp_path: Path) -> None:
    assert await foreign_values_made_of_a_checkpoint(tmp_path / "generous", is_allowed=True) == ["rm -rf"]
    assert await foreign_values_made_of_a_checkpoint(tmp_path / "strict", is_allowed=False) == []


# Sums of what was spent

USAGE = TokenUsage(
    prompt_tokens=100, cached_tokens=10, tool_tokens=5, output_tokens=20, thought_tokens=7, image_tokens=1120
)
TOKENS = 100 + 5 + 20 + 7 + 1120
DAY, ONE_DAY = date(2026, 3, 31), timedelta(days=1)


@pytest.fixture(params=["UTC", "Asia/Shanghai", "America/New_York"])
def _zone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as patch:
        patch.setenv("TZ", request.param)
        time.tzset()
        yield
    time.tzset()


def midnight(day: date) -> datetime:
    return datetime(day.year, day.month, day.day).astimezone(UTC)


def over(name: str, at: datetime, price_usd: float) -> Turn:
    one = Turn(id=name, text="a fox", settings=TurnSettings(), started_at=at)
    return one.model_copy(update={"state": TurnState.DONE, "price_usd": price_usd, "usage": USAGE})


@pytest.mark.usefixtures("_zone")
async def test_a_turn_counts_for_the_local_day_it_began_and_for_its_owner_alone(settings: Settings) -> None:
    noon = midnight(DAY) + timedelta(hours=12)
    moments = [midnight(DAY) - timedelta(microseconds=1), midnight(DAY), noon, midnight(DAY + ONE_DAY)]
    hers: list[list[tuple[Turn, list[Picture]]]] = [
        [(over(f"t{number}", at, 2.0**number), [])] for number, at in enumerate(moments)
    ]
    [*_, first] = await keep(settings.home, "ann", *hers)
    await keep(settings.home, "bob", [(over("b1", noon, 64.0), [])])
    async with Studio(settings) as studio:
        book = studio.spend

        async def days(owner: str = "ann") -> list[float]:
            return [(await book.day(owner, DAY + number * ONE_DAY)).price_usd for number in (-1, 0, 1, 2)]

        assert (await days(), await days("bob")) == ([1.0, 6.0, 8.0, 0.0], [0.0, 64.0, 0.0, 0.0])
        assert [(await book.month("ann", DAY + number * ONE_DAY)).price_usd for number in (0, 1)] == [7.0, 8.0]
        day = await book.day("ann", DAY)
        assert (day.usage, day.total_tokens) == (USAGE + USAGE, 2 * TOKENS)
        assert (await book.conversation(first, "ann")).price_usd == 8.0
        assert (await book.conversation(first, "bob")).price_usd == 0.0
        # What no turn spent, as a search does.
        await book.add("ann", 0.25, 100, DAY)
        await book.add("ann", 0.125, 7, DAY)
        assert await days() == [1.0, 6.375, 8.0, 0.0]
        assert ((await book.day("ann", DAY)).other_tokens, (await book.sums("ann", DAY)).month_usd) == (107, 7.375)
        assert (await book.before("ann", "none", "none of them", DAY)).day_usd == 6.375
        assert (await book.day("ann")).price_usd == 0.0
        await book.add("ann", 1.0, 1)
        assert (await book.sums("ann")).day_usd == (await book.day("ann")).price_usd == 1.0


@pytest.mark.parametrize("way", ["for good", "the trash", "the sweep"])
async def test_what_is_gone_for_good_still_counts_for_its_days(settings: Settings, way: str) -> None:
    at = midnight(DAY) + timedelta(hours=12)
    ids = await keep(settings.home, "ann", [(over("a1", at, 0.25), [])], [(over("a2", at + ONE_DAY, 0.5), [])])
    await keep(settings.home, "bob", [(over("b1", at, 64.0), [])])
    async with Studio(settings) as studio:
        for key in ids:
            await studio.conversations.delete(key, "ann")
        if way == "for good":
            for key in ids:
                await studio.conversations.delete_forever(key, "ann")
        elif way == "the trash":
            assert await studio.conversations.empty_trash("ann") == 2
        else:
            later = datetime.now(UTC) + timedelta(days=32)
            assert Housekeeping(settings.home, now=lambda: later).sweep().conversations == 2
        assert await studio.conversations.trash("ann") == []
        found = [await studio.spend.day("ann", DAY + number * ONE_DAY) for number in (0, 1)]
        assert [(one.price_usd, one.total_tokens) for one in found] == [(0.25, TOKENS), (0.5, TOKENS)]
        assert (await studio.spend.day("bob", DAY)).price_usd == 64.0


async def test_what_came_with_an_archive_counts_in_its_conversation_and_nowhere_else(settings: Settings) -> None:
    at = midnight(DAY) + timedelta(hours=12)
    [elsewhere] = await keep(settings.home, "bob", [(over("b1", at, 0.25), [])])
    async with Studio(settings) as studio:
        exported = await studio.archive.export_conversation(elsewhere, "bob")
        [taken] = (await studio.archive.import_archive(exported.path, "ann")).conversations
        copy = await studio.conversations.duplicate(taken.id, "ann")
        book = studio.spend
        assert await book.conversation(taken.id, "ann") == await book.conversation(elsewhere, "bob")
        assert (await book.conversation(copy.id, "ann")).price_usd == 0.0
        before = await book.before("ann", taken.id, "mine", DAY)
        assert (before.day_usd, before.conversation_usd) == (0.0, 0.0)
        for key in (taken.id, copy.id):
            await studio.conversations.delete(key, "ann")
        await studio.conversations.empty_trash("ann")
        assert (await book.month("ann", DAY)).price_usd == 0.0
        assert (await book.month("bob", DAY)).price_usd == 0.25


async def test_a_turn_at_work_counts_with_the_calls_that_ended_and_one_at_rest_once(settings: Settings) -> None:
    store = Records(settings.home, ImageStore(settings.home))
    await store.open()
    key, one = (await store.conversations.create("ann")).id, over("t1", midnight(DAY), 0.5)
    await store.turns.begin(key, one.model_copy(update={"state": TurnState.RUNNING, "price_usd": 0.0}))
    for model, state in (("words", CallState.DONE), ("painter", CallState.SENT), ("other", CallState.FAILED)):
        price_usd = 0.125 if state is CallState.DONE else 0.0
        call = CallRecord(conversation_id=key, turn_id="t1", name=model, model=model, state=state, price_usd=price_usd)
        await store.journal.send(call.model_copy(update={"reserved_usd": 0.0625}), is_new=True)
    async with Studio(settings) as studio:
        asked = (("ann", key, "mine"), ("ann", "another", "mine"), ("ann", key, "t1"), ("bob", key, "mine"))
        found = [await studio.spend.before(*who, DAY) for who in asked]
        # The call on its way counts, but to the turn itself, which knows what it has spent.
        assert [one.day_usd for one in found] == [0.1875, 0.1875, 0.0, 0.0]
        assert [one.conversation_usd for one in found] == [0.1875, 0.0, 0.0, 0.0]
        assert await studio.spend.weigh(*asked[2], lambda before: (before.day_usd, 1.0)) == 0.0
        assert (await studio.spend.before(*asked[0], DAY)).day_usd == 1.0, "what is reserved takes in what was paid"
        for how, price_usd in ((TurnState.INTERRUPTED, 0.125), (TurnState.DONE, 0.5)):
            ended = {"state": how, "price_usd": one.price_usd if how is TurnState.DONE else 0.0}
            await store.turns.finish(key, one.model_copy(update=ended))
            assert (await studio.spend.conversation(key, "ann")).price_usd == price_usd
        assert (await studio.spend.before(*asked[0], DAY)).day_usd == 0.5, "nothing is reserved by what is over"
    await store.aclose()


async def test_calls_on_their_way_when_a_process_died_are_of_unknown_outcome_and_counted(settings: Settings) -> None:
    images, home = ImageStore(settings.home), settings.home
    async with contextlib.aclosing(Records(home, images)) as store:
        await store.open()
        key = (await store.conversations.create("local")).id
        await store.turns.begin(key, begun_turn("t1"))
        for name, model in {"planner:1": "m", "a": "m", "b": "m", "free": "sketch-painter"}.items():
            call = CallRecord(conversation_id=key, turn_id="t1", name=name, model=model, state=CallState.SENT)
            await store.journal.send(call, is_new=True)
        store.journal.change(call.model_copy(update={"name": "planner:1", "state": CallState.DONE}))
    in_database(home, "UPDATE turns SET runner = 'nobody'")
    async with contextlib.aclosing(Records(home, images, free_models={"sketch-painter"})) as again:
        await again.open()
        [turn] = (await again.conversations.get(key, "local")).turns
    states = {name: row["state"] for name, row in calls_on_disk(home).items()}
    assert states == {"planner:1": "done", "a": "unknown", "b": "unknown", "free": "cancelled"}
    assert turn.components[-1] == InterruptedNote(may_have_been_charged=2)

"""Sums of what was spent: by conversation, local day and month, its owner's alone, and still there when it is gone."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta

import pytest

from agent import Picture, Settings, Studio, TokenUsage, Turn, TurnSettings, TurnState
from tests.adapters.calls import CallRecord, CallState
from tests.adapters.house import Housekeeping
from tests.adapters.records import ConversationStore, ImageStore, keep

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


def turn(name: str, at: datetime, price_usd: float) -> Turn:
    turn = Turn(id=name, text="a fox", settings=TurnSettings(), started_at=at)
    return turn.model_copy(update={"state": TurnState.DONE, "price_usd": price_usd, "usage": USAGE})


@pytest.mark.usefixtures("_zone")
async def test_a_turn_counts_for_the_local_day_it_began_and_for_its_owner_alone(settings: Settings) -> None:
    noon = midnight(DAY) + timedelta(hours=12)
    moments = [midnight(DAY) - timedelta(microseconds=1), midnight(DAY), noon, midnight(DAY + ONE_DAY)]
    hers: list[list[tuple[Turn, list[Picture]]]] = [
        [(turn(f"t{number}", at, 2.0**number), [])] for number, at in enumerate(moments)
    ]
    [*_, first] = await keep(settings.home, "ann", *hers)
    await keep(settings.home, "bob", [(turn("b1", noon, 64.0), [])])
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
        assert (await book.day_before("ann", "none of them", DAY)).spent_usd == 6.375
        assert (await book.day("ann")).price_usd == 0.0
        await book.add("ann", 1.0, 1)
        assert (await book.sums("ann")).day_usd == (await book.day("ann")).price_usd == 1.0


@pytest.mark.parametrize("way", ["for good", "the trash", "the sweep"])
async def test_what_is_gone_for_good_still_counts_for_its_days(settings: Settings, way: str) -> None:
    at = midnight(DAY) + timedelta(hours=12)
    ids = await keep(settings.home, "ann", [(turn("a1", at, 0.25), [])], [(turn("a2", at + ONE_DAY, 0.5), [])])
    await keep(settings.home, "bob", [(turn("b1", at, 64.0), [])])
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
    [elsewhere] = await keep(settings.home, "bob", [(turn("b1", at, 0.25), [])])
    async with Studio(settings) as studio:
        exported = await studio.archive.export_conversation(elsewhere, "bob")
        [taken] = (await studio.archive.import_archive(exported.path, "ann")).conversations
        copy = await studio.conversations.duplicate(taken.id, "ann")
        book = studio.spend
        assert await book.conversation(taken.id, "ann") == await book.conversation(elsewhere, "bob")
        assert (await book.conversation(copy.id, "ann")).price_usd == 0.0
        before = [
            await book.day_before("ann", "mine", DAY),
            await book.conversation_before(taken.id, "ann", "mine"),
        ]
        assert [one.spent_usd for one in before] == [0.0, 0.0]
        for key in (taken.id, copy.id):
            await studio.conversations.delete(key, "ann")
        await studio.conversations.empty_trash("ann")
        assert (await book.month("ann", DAY)).price_usd == 0.0
        assert (await book.month("bob", DAY)).price_usd == 0.25


async def test_a_turn_at_work_counts_with_the_calls_that_ended_and_one_at_rest_once(settings: Settings) -> None:
    store = ConversationStore(settings.home, ImageStore(settings.home))
    await store.open()
    key, over = (await store.create("ann")).id, turn("t1", midnight(DAY), 0.5)
    await store.begin_turn(key, over.model_copy(update={"state": TurnState.RUNNING, "price_usd": 0.0}))
    for model, state in (("words", CallState.DONE), ("painter", CallState.SENT), ("other", CallState.FAILED)):
        price_usd = 0.125 if state is CallState.DONE else 0.0
        call = CallRecord(conversation_id=key, turn_id="t1", name=model, model=model, state=state, price_usd=price_usd)
        await store.journal.send(call, is_new=True)
    async with Studio(settings) as studio:
        before = studio.spend.day_before
        assert await before("ann", "mine", DAY) == await studio.spend.conversation_before(key, "ann", "mine")
        asked = (("ann", "mine", ()), ("ann", "mine", ("t1",)), ("ann", "t1", ()), ("bob", "mine", ()))
        found = [await before(owner, turn_id, DAY, known=known) for owner, turn_id, known in asked]
        # A turn knows what it has spent itself.
        assert [one.spent_usd for one in found] == [0.125, 0.125, 0.0, 0.0]
        assert [one.models for one in found] == [("painter",), (), (), ()]
        for how, price_usd in ((TurnState.INTERRUPTED, 0.125), (TurnState.DONE, 0.5)):
            ended = {"state": how, "price_usd": over.price_usd if how is TurnState.DONE else 0.0}
            await store.finish_turn(key, over.model_copy(update=ended))
            assert (await studio.spend.conversation(key, "ann")).price_usd == price_usd
        assert (await before("ann", "mine", DAY)).models == ()
    await store.aclose()

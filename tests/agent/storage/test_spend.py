"""Sums of what was spent: by conversation, local day and month, with tokens by kind."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, date, datetime, timedelta
from functools import partial
from pathlib import Path

import pytest

from agent.conversation import Turn, TurnState
from agent.messages import TokenUsage
from agent.settings import TurnSettings
from agent.storage.conversations import ConversationStore
from agent.storage.images import ImageStore
from agent.storage.journal import CallRecord, CallState
from agent.storage.spend import SpendBook, Spent, begins_at, month_of, today
from agent.storage.spend_rows import keep

USAGE = TokenUsage(
    prompt_tokens=100, cached_tokens=10, tool_tokens=5, output_tokens=20, thought_tokens=7, image_tokens=1120
)
DAY = date(2026, 3, 31)


@pytest.fixture(params=["UTC", "Asia/Shanghai", "America/New_York"])
def _zone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as patch:
        patch.setenv("TZ", request.param)
        time.tzset()
        yield
    time.tzset()


@pytest.fixture
async def store(tmp_path: Path, _zone: None) -> AsyncIterator[ConversationStore]:
    opened = ConversationStore(tmp_path, ImageStore(tmp_path))
    await opened.open()
    yield opened
    await opened.aclose()


async def spend(
    store: ConversationStore,
    at: datetime,
    price_usd: float = 0.25,
    *,
    owner: str = "ann",
    conversation_id: str = "",
    name: str = "t1",
    state: TurnState = TurnState.DONE,
) -> str:
    """Record a turn that began at the moment; return its conversation."""
    here = conversation_id or (await store.create(owner)).id
    turn = Turn(id=f"{here}-{name}", text="a fox", settings=TurnSettings(), started_at=at)
    await store.begin_turn(here, turn)
    if state is not TurnState.RUNNING:
        ended = {"state": state, "price_usd": price_usd, "usage": USAGE}
        await store.finish_turn(here, turn.model_copy(update=ended))
    return here


async def call(store: ConversationStore, conversation_id: str, price_usd: float, state: CallState, model: str) -> None:
    """Put a call of the conversation's first turn on record."""
    turn_id = f"{conversation_id}-t1"
    one = CallRecord(
        conversation_id=conversation_id, turn_id=turn_id, name=model, model=model, state=state, price_usd=price_usd
    )
    await store.journal.send(one, is_new=True)


async def test_a_turn_belongs_to_the_local_day_it_began(store: ConversationStore) -> None:
    book, midnight = SpendBook(store), begins_at(DAY)
    await spend(store, midnight - timedelta(microseconds=1), 1.0)
    await spend(store, midnight, 2.0)
    await spend(store, midnight + timedelta(hours=12), 4.0)
    await spend(store, begins_at(DAY + timedelta(days=1)), 8.0)
    assert [(await book.day("ann", DAY + timedelta(days=n))).price_usd for n in (-1, 0, 1, 2)] == [1.0, 6.0, 8.0, 0.0]
    assert (await book.month("ann", DAY)).price_usd == 7.0
    assert (await book.month("ann", DAY + timedelta(days=1))).price_usd == 8.0
    before = await book.day_before("ann", "none of them", DAY)
    assert (before.spent_usd, before.models) == (6.0, ())


async def test_today_and_this_month_are_those_of_the_clock(store: ConversationStore) -> None:
    book = SpendBook(store)
    await spend(store, datetime.now(UTC), 0.5)
    first = begins_at(month_of(today())[0])
    await spend(store, first - timedelta(seconds=1), 16.0)
    assert (await book.day("ann")).price_usd == (await book.month("ann")).price_usd == 0.5
    sums = await book.sums("ann")
    assert (sums.month_usd, sums.day_usd) == (0.5, 0.5)


async def test_tokens_are_summed_by_kind(store: ConversationStore) -> None:
    here = await spend(store, begins_at(DAY))
    await spend(store, begins_at(DAY), conversation_id=here, name="t2")
    expected = Spent(price_usd=0.5, usage=USAGE + USAGE)
    assert await SpendBook(store).conversation(here, "ann") == expected
    assert await SpendBook(store).day("ann", DAY) == expected
    assert expected.total_tokens == 2 * (100 + 5 + 20 + 7 + 1120)


async def test_what_came_with_an_archive_counts_in_its_conversation_and_nowhere_else(store: ConversationStore) -> None:
    book, noon = SpendBook(store), datetime(2026, 3, 31, 12, tzinfo=UTC)
    elsewhere = await spend(store, noon, 0.25, owner="bob")
    taken = await store.add_whole("ann", await store.whole(elsewhere, "bob"))
    assert await book.conversation(taken.id, "ann") == Spent(price_usd=0.25, usage=USAGE)
    assert await book.day("ann", DAY) == await book.month("ann", DAY) == Spent()
    assert (await book.sums("ann", DAY)).month_usd == 0.0
    assert (await book.day_before("ann", "mine", DAY)).spent_usd == 0.0
    assert (await book.conversation_before(taken.id, "ann", "mine")).spent_usd == 0.0
    await spend(store, noon, 0.5, conversation_id=taken.id, name="here")
    assert (await book.conversation(taken.id, "ann")).price_usd == 0.75
    assert (await book.day("ann", DAY)).price_usd == (await book.month("ann", DAY)).price_usd == 0.5
    assert (await book.conversation_before(taken.id, "ann", "mine")).spent_usd == 0.5
    await store.delete(taken.id, "ann")
    await store.sweep(datetime.now(UTC) + timedelta(days=1))
    assert (await book.day("ann", DAY)).price_usd == 0.5
    assert (await book.day("bob", DAY)).price_usd == 0.25


async def test_what_no_turn_spent_belongs_to_its_local_day_and_its_owner(store: ConversationStore) -> None:
    book = SpendBook(store)
    await spend(store, begins_at(DAY), 0.5)
    await book.add("ann", 0.25, 100, DAY)
    await book.add("ann", 0.125, 7, DAY)
    await book.add("bob", 4.0, 1, DAY)
    day = await book.day("ann", DAY)
    assert (day.price_usd, day.usage, day.other_tokens) == (0.875, USAGE, 107)
    assert day.total_tokens == USAGE.total_tokens + 107
    assert (await book.day("ann", DAY + timedelta(days=1))) == Spent()
    assert (await book.month("ann", DAY)).price_usd == 0.875
    assert (await book.sums("ann", DAY)).day_usd == 0.875
    assert (await book.day_before("ann", "mine", DAY)).spent_usd == 0.875
    await book.add("ann", 1.0, 1)
    assert (await book.day("ann", today())).price_usd == 1.0


async def test_nobody_reads_what_another_spent(store: ConversationStore) -> None:
    book = SpendBook(store)
    here = await spend(store, begins_at(DAY), owner="bob")
    assert await book.conversation(here, "ann") == Spent()
    assert await book.day("ann", DAY) == await book.month("ann", DAY) == Spent()
    assert (await book.conversation(here, "bob")).price_usd == 0.25


async def test_a_turn_at_work_counts_with_the_calls_that_ended(store: ConversationStore) -> None:
    book = SpendBook(store)
    here = await spend(store, begins_at(DAY), state=TurnState.RUNNING)
    await call(store, here, 0.125, CallState.DONE, "words")
    await call(store, here, 0.0, CallState.SENT, "painter")
    await call(store, here, 0.0, CallState.FAILED, "other")
    found = await book.day_before("ann", "mine", DAY)
    assert (found.spent_usd, found.models) == (0.125, ("painter",))
    assert await book.conversation_before(here, "ann", "mine") == found
    known = await book.day_before("ann", "mine", DAY, known=[f"{here}-t1"])
    assert (known.spent_usd, known.models) == (0.125, ())
    own = await book.day_before("ann", f"{here}-t1", DAY)
    assert (own.spent_usd, own.models) == (0.0, ()), "a turn knows what it has spent itself"
    assert (await book.day_before("bob", "mine", DAY)).models == ()


async def test_a_turn_at_rest_counts_once_and_waits_for_nothing(store: ConversationStore) -> None:
    here = await spend(store, begins_at(DAY))
    await call(store, here, 0.25, CallState.DONE, "painter")
    await call(store, here, 0.0, CallState.SENT, "lost")
    found = await SpendBook(store).day_before("ann", "mine", DAY)
    assert (found.spent_usd, found.models) == (0.25, ())


async def test_a_turn_whose_process_died_counts_with_its_calls(store: ConversationStore) -> None:
    here = await spend(store, begins_at(DAY), 0.0, state=TurnState.INTERRUPTED)
    await call(store, here, 0.125, CallState.DONE, "painter")
    assert (await SpendBook(store).conversation(here, "ann")).price_usd == 0.125


async def test_what_is_gone_for_good_still_counts_for_its_days(store: ConversationStore) -> None:
    book, noon = SpendBook(store), datetime(2026, 3, 31, 12, tzinfo=UTC)
    first, second = await spend(store, noon, 0.25), await spend(store, noon, 0.5)
    other = await spend(store, noon, 64.0, owner="bob")
    before = await book.month("ann", DAY)
    for leaving in ([first], [second], []):
        await store.in_transaction(partial(keep, conversation_ids=leaving))
    await store.in_transaction(lambda on: [on.exec_driver_sql("DELETE FROM turns WHERE price_usd < 1")])
    after = await book.month("ann", DAY)
    assert (after.price_usd, after.total_tokens) == (before.price_usd, before.total_tokens) == (0.75, 2 * 1252)
    assert (await book.day("ann", DAY)).price_usd == 0.75
    assert (await book.day("ann", DAY + timedelta(days=1))).price_usd == 0.0
    assert (await book.conversation(other, "bob")).price_usd == 64.0


def test_a_month_ends_where_the_next_begins() -> None:
    assert month_of(date(2026, 12, 31)) == (date(2026, 12, 1), date(2027, 1, 1))
    assert month_of(date(2028, 2, 29)) == (date(2028, 2, 1), date(2028, 3, 1))

"""Spend by conversation, day and month: sums over recorded turns and over what is kept of removed ones.

A turn belongs to the day on which it began. Days and months follow the machine's local clock; the cost of conversations
that were removed for good is only known by UTC day and is counted for the local day with the same date. The cost of a
gallery search belongs to no turn, but to the local day of the search.

The cost of a turn imported from an archive counts only in its conversation. It was not spent here, or is already
counted where it was, so no day, month or cap includes it.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, time, timedelta
from functools import reduce
from typing import Any, TypeVar

from sqlalchemy import Connection, Integer, Select, and_, bindparam, case, func, or_, select, update
from sqlalchemy.dialects.sqlite import insert

from agent.conversation import TurnState
from agent.library import SoFar, SpendSums, Spent
from agent.messages import TokenUsage
from agent.storage.database import Database
from agent.storage.journal import CallState
from agent.storage.tables import CALLS, CONVERSATIONS, SPEND_DAYS, TURNS

T = TypeVar("T")

_C, _T, _S = CONVERSATIONS.c, TURNS.c, SPEND_DAYS.c

_OF_CALLS = select(func.coalesce(func.sum(CALLS.c.price_usd), 0.0)).where(CALLS.c.turn_id == _T.id).scalar_subquery()
# A turn's row has its price once the turn has ended; until then, and when its process died, its calls know more.
_IS_OVER = _T.state.in_((TurnState.DONE.value, TurnState.STOPPED.value))
_PRICE = case((_IS_OVER, _T.price_usd), else_=func.max(_T.price_usd, _OF_CALLS))
_TOKENS = {name: func.json_extract(_T.details, f"$.usage.{name}").cast(Integer()) for name in TokenUsage.model_fields}
# As in `TokenUsage.total_tokens`: cached tokens are part of the prompt.
_NOT_TOKENS = frozenset({"cached_tokens", "search_queries"})
_COUNTED = [func.coalesce(each, 0) for name, each in _TOKENS.items() if name not in _NOT_TOKENS]
_TOTAL = reduce(operator.add, _COUNTED)  # pyrefly: ignore[incompatible-overload-argument]

_JOINED = TURNS.join(CONVERSATIONS)
_MINE = _C.owner == bindparam("whose")
_HERE = and_(_MINE, _T.conversation_id == bindparam("key"))
_IN_DAYS = and_(_MINE, _T.started_at >= bindparam("since"), _T.started_at < bindparam("until"))
_NOT_THIS = _T.id != bindparam("turn")
_SPENT_HERE = _T.is_imported.is_(False)

_SUM = func.coalesce(func.sum(_PRICE), 0.0)
_ALL = select(_SUM.label("price_usd"), *(func.sum(each).label(name) for name, each in _TOKENS.items())).select_from(
    _JOINED
)
_OF_CONVERSATION = _ALL.where(_HERE)
_OF_DAYS = _ALL.where(_IN_DAYS, _SPENT_HERE)
_PRICE_OF_DAYS = select(_SUM).select_from(_JOINED).where(_IN_DAYS, _SPENT_HERE)
_CONVERSATION_BUT = select(_SUM).select_from(_JOINED).where(_HERE, _NOT_THIS, _SPENT_HERE)
_DAYS_BUT = _PRICE_OF_DAYS.where(_NOT_THIS)
_GONE = select(
    func.coalesce(func.sum(_S.price_usd), 0.0).label("price_usd"), func.coalesce(func.sum(_S.tokens), 0).label("tokens")
).where(_S.owner == bindparam("whose"), _S.day >= bindparam("first"), _S.day < bindparam("following"))

# What another turn is about to pay: the cost of its calls under way, even after a stop, or all it has reserved minus
# its cost so far, which is already part of the spend.
_RUNS = _T.state == TurnState.RUNNING.value
_SENT = and_(CALLS.c.turn_id == _T.id, CALLS.c.state == CallState.SENT.value)
_UNDER_WAY = select(func.coalesce(func.sum(CALLS.c.reserved_usd), 0.0)).where(_SENT).scalar_subquery()
_PENDING = (
    select(func.coalesce(func.sum(func.max(_UNDER_WAY, case((_RUNS, _T.reserved_usd - _PRICE), else_=0.0))), 0.0))
    .select_from(_JOINED)
    .where(_MINE, _NOT_THIS, or_(_RUNS, _T.started_at >= bindparam("lately")))
)
_PENDING_HERE = _PENDING.where(_T.conversation_id == bindparam("key"))
# No call of an ended turn is under way for longer.
_LATELY = timedelta(days=1)
_RESERVE = update(TURNS).where(_T.id == bindparam("turn")).values(reserved_usd=bindparam("price"))

# Times are stored in UTC, the date first.
_DAY = func.substr(_T.started_at, 1, 10)
_LEAVING = (
    select(_C.owner, _DAY.label("day"), _SUM.label("price_usd"), func.sum(_TOTAL).label("tokens"))
    .select_from(_JOINED)
    .where(_C.id == bindparam("key"), _SPENT_HERE)
    .group_by(_C.owner, _DAY)
)
_ADD_DAY = insert(SPEND_DAYS)
_KEEP_DAY = _ADD_DAY.on_conflict_do_update(
    index_elements=[_S.owner, _S.day],
    set_={"price_usd": _S.price_usd + _ADD_DAY.excluded.price_usd, "tokens": _S.tokens + _ADD_DAY.excluded.tokens},
)


class SpendBook:
    """The sums of a database. Every call raises StorageFailure when the database fails.

    `add` records costs that belong to no turn, `weigh` the most that a turn may cost. A running turn, in any process,
    counts with its finished calls.
    """

    def __init__(self, database: Database) -> None:
        self._db = database

    async def conversation(self, conversation_id: str, owner: str) -> Spent:
        """Return the cost of the owner's conversation so far, on every branch; zero when there is none."""
        here = {"whose": owner, "key": conversation_id}
        return await self._db.read(lambda on: _spent(on, _OF_CONVERSATION, here))

    async def day(self, owner: str, day: date | None = None) -> Spent:
        """Return what the owner spent on a local day (default: today)."""
        return await self._spent_in(owner, *_day_of(day))

    async def month(self, owner: str, day: date | None = None) -> Spent:
        """Return what the owner spent in the month of the day (default: today)."""
        return await self._spent_in(owner, *_month_of(day))

    async def _spent_in(self, owner: str, first: date, following: date) -> Spent:
        def read(on: Connection) -> Spent:
            spent, gone = _spent(on, _OF_DAYS, _moments(owner, first, following)), _gone(on, owner, first, following)
            price_usd = spent.price_usd + gone.price_usd
            return Spent(price_usd=price_usd, usage=spent.usage, other_tokens=gone.other_tokens)

        return await self._db.read(read)

    async def sums(self, owner: str, day: date | None = None) -> SpendSums:
        """Return the two sums that the page always shows, without tokens, which are slow to read."""

        def price(on: Connection, first: date, following: date) -> float:
            spent: float = on.execute(_PRICE_OF_DAYS, _moments(owner, first, following)).scalar_one()
            return spent + _gone(on, owner, first, following).price_usd

        def read(on: Connection) -> SpendSums:
            return SpendSums(month_usd=price(on, *_month_of(day)), day_usd=price(on, *_day_of(day)))

        return await self._db.read(read)

    async def beside_turns(self, owner: str, day: date | None = None) -> Spent:
        """Return what the owner spent on a local day (default: today) outside recorded turns."""
        return await self._db.read(lambda on: _gone(on, owner, *_day_of(day)))

    async def add(self, owner: str, price_usd: float, tokens: int, day: date | None = None) -> None:
        """Record spend of a local day (default: today) that belongs to no turn."""
        row = {"owner": owner, "day": (day or local_today()).isoformat(), "price_usd": price_usd, "tokens": tokens}
        if price_usd or tokens:
            await self._db.write(lambda on: on.execute(_KEEP_DAY, row), is_spare=True)

    async def before(self, owner: str, conversation_id: str, turn_id: str, day: date | None = None) -> SoFar:
        """Return the cost of the owner's other turns, in this conversation and on a local day (default: today).

        It includes what running turns, in any process, are about to pay for pictures.
        """
        # As a write: it then sees what turns have handed over.
        return await self._db.write(lambda on: _before(on, owner, conversation_id, turn_id, day))

    async def weigh(
        self, owner: str, conversation_id: str, turn_id: str, choose: Callable[[SoFar], tuple[T, float]]
    ) -> T:
        """Return the choice that `choose` makes from the result of `before`; it may be called twice.

        `choose` also returns the most that the turn may cost, in dollars. From this moment until the turn ends, this
        amount counts for the owner's other turns.
        """

        def weigh(on: Connection) -> T:
            chosen, price_usd = choose(_before(on, owner, conversation_id, turn_id))
            on.execute(_RESERVE, {"turn": turn_id, "price": price_usd})
            return chosen

        return await self._db.write(weigh)

    def reserve(self, turn_id: str, price_usd: float) -> None:
        """Queue the most that a turn without a cap may cost, recorded as `weigh` does."""
        writing = self._db.write_soon(lambda on: on.execute(_RESERVE, {"turn": turn_id, "price": price_usd}))
        # The turn's next awaited write fails in the same way and tells the user.
        writing.add_done_callback(lambda done: done.cancelled() or done.exception())


def _before(on: Connection, owner: str, conversation_id: str, turn_id: str, day: date | None = None) -> SoFar:
    first, following = _day_of(day)
    values = {**_moments(owner, first, following), "key": conversation_id, "turn": turn_id}
    values |= {"lately": datetime.now(UTC) - _LATELY}
    here, in_days, pending_here, pending = (
        float(on.execute(one, values).scalar_one()) for one in (_CONVERSATION_BUT, _DAYS_BUT, _PENDING_HERE, _PENDING)
    )
    gone_usd = _gone(on, owner, first, following).price_usd
    return SoFar(conversation_usd=here + pending_here, day_usd=in_days + gone_usd + pending)


def keep_spend(connection: Connection, conversation_id: str) -> None:
    """Add the cost of the conversation to its owner's days, right before it is removed for good."""
    rows = connection.execute(_LEAVING, {"key": conversation_id})
    kept = [row._asdict() for row in rows if row.price_usd or row.tokens]
    if kept:
        connection.execute(_KEEP_DAY, kept)


def local_today() -> date:
    """Return the local date."""
    return datetime.now().astimezone().date()


def _day_of(day: date | None) -> tuple[date, date]:
    """Return the day (default: today) and the next one."""
    first = day or local_today()
    return first, first + timedelta(days=1)


def _month_of(day: date | None) -> tuple[date, date]:
    """Return the first day of the day's month (default: today) and of the next month."""
    first = (day or local_today()).replace(day=1)
    return first, (first + timedelta(days=31)).replace(day=1)


def _spent(connection: Connection, statement: Select[*tuple[Any, ...]], values: Mapping[str, object]) -> Spent:
    """Return the sums of a statement whose columns are named as in `TokenUsage`."""
    row = connection.execute(statement, values).one()._mapping
    usage = TokenUsage(**{name: int(row[name] or 0) for name in TokenUsage.model_fields})
    return Spent(price_usd=row["price_usd"] or 0.0, usage=usage)


def _gone(connection: Connection, owner: str, first: date, following: date) -> Spent:
    """Return what was spent in these days outside recorded turns."""
    values = {"whose": owner, "first": first.isoformat(), "following": following.isoformat()}
    row = connection.execute(_GONE, values).one()
    return Spent(price_usd=row.price_usd, other_tokens=row.tokens)


def _moments(owner: str, first: date, following: date) -> dict[str, object]:
    """Return the days' limits in UTC: local midnight at the start of each."""
    since, until = (datetime.combine(day, time.min).astimezone(UTC) for day in (first, following))
    return {"whose": owner, "since": since, "until": until}

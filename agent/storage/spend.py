"""What was spent, by conversation, day and month: sums over the turns on record, and over what is left of those gone.

A turn belongs to the day it began. Days and months are those of the machine's own clock; what conversations that are
gone for good had cost is only known by the day in UTC, and is counted for the local day of the same date. What a search
of the gallery costs belongs to no turn, and to the local day on which it is made.

What a turn that came with an archive had cost is part of what its conversation has cost, and of nothing else: it was
not spent here, or is counted already where it was, so no day, no month and no cap knows of it.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
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
# A turn's row has its price when the turn rests; until then, and when its process died, its calls know more.
_IS_OVER = _T.state.in_((TurnState.DONE.value, TurnState.STOPPED.value))
_PRICE = case((_IS_OVER, _T.price_usd), else_=func.max(_T.price_usd, _OF_CALLS))
_TOKENS = {name: func.json_extract(_T.details, f"$.usage.{name}").cast(Integer()) for name in TokenUsage.model_fields}
# As `TokenUsage.total_tokens`: cached ones are part of the prompt.
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

# What a turn that others wait for is about to pay: what its calls under way may cost, also when it was stopped, or all
# that it has reserved, without what it has cost so far, which is among what was spent.
_RUNS = _T.state == TurnState.RUNNING.value
_SENT = and_(CALLS.c.turn_id == _T.id, CALLS.c.state == CallState.SENT.value)
_UNDER_WAY = select(func.coalesce(func.sum(CALLS.c.reserved_usd), 0.0)).where(_SENT).scalar_subquery()
_PENDING = (
    select(func.coalesce(func.sum(func.max(_UNDER_WAY, case((_RUNS, _T.reserved_usd - _PRICE), else_=0.0))), 0.0))
    .select_from(_JOINED)
    .where(_MINE, _NOT_THIS, or_(_RUNS, _T.started_at >= bindparam("lately")))
)
_PENDING_HERE = _PENDING.where(_T.conversation_id == bindparam("key"))
# No call of a turn that is over is on its way for longer.
_LATELY = timedelta(days=1)
_RESERVE = update(TURNS).where(_T.id == bindparam("turn")).values(reserved_usd=bindparam("price"))

# A moment is written in UTC, its date first.
_DAY = func.substr(_T.started_at, 1, 10)
_LEAVING = (
    select(_C.owner, _DAY.label("day"), _SUM.label("price_usd"), func.sum(_TOTAL).label("tokens"))
    .select_from(_JOINED)
    .where(_C.id.in_(bindparam("leaving", expanding=True)), _SPENT_HERE)
    .group_by(_C.owner, _DAY)
)
_ADD_DAY = insert(SPEND_DAYS)
_KEEP_DAY = _ADD_DAY.on_conflict_do_update(
    index_elements=[_S.owner, _S.day],
    set_={"price_usd": _S.price_usd + _ADD_DAY.excluded.price_usd, "tokens": _S.tokens + _ADD_DAY.excluded.tokens},
)


class SpendBook:
    """The sums of a database. Every call raises StorageFailure when it cannot.
    `add` writes what costs something without a turn, `weigh` what a turn may come to.

    A turn that runs, here or in another process, counts with the calls of it that have ended.
    """

    def __init__(self, database: Database) -> None:
        self._db = database

    async def conversation(self, conversation_id: str, owner: str) -> Spent:
        """Return what the owner's conversation has cost so far, every branch of it; nothing when there is none."""
        here = {"whose": owner, "key": conversation_id}
        return await self._db.read(lambda on: _spent(on, _OF_CONVERSATION, here))

    async def day(self, owner: str, day: date | None = None) -> Spent:
        """Return what the owner spent on a local day, today without one."""
        return await self._spent_in(owner, *_day_of(day))

    async def month(self, owner: str, day: date | None = None) -> Spent:
        """Return what the owner spent in the month of the day, this one without one."""
        return await self._spent_in(owner, *_month_of(day))

    async def _spent_in(self, owner: str, first: date, following: date) -> Spent:
        def read(on: Connection) -> Spent:
            spent, gone = _spent(on, _OF_DAYS, _moments(owner, first, following)), _gone(on, owner, first, following)
            price_usd = spent.price_usd + gone.price_usd
            return gone.model_copy(update={"price_usd": price_usd, "usage": spent.usage})

        return await self._db.read(read)

    async def sums(self, owner: str, day: date | None = None) -> SpendSums:
        """Return the two sums that always stand on the page, without their tokens, which stand deep in the rows."""

        def price(on: Connection, first: date, following: date) -> float:
            spent: float = on.execute(_PRICE_OF_DAYS, _moments(owner, first, following)).scalar_one()
            return spent + _gone(on, owner, first, following).price_usd

        def read(on: Connection) -> SpendSums:
            return SpendSums(month_usd=price(on, *_month_of(day)), day_usd=price(on, *_day_of(day)))

        return await self._db.read(read)

    async def beside_turns(self, owner: str, day: date | None = None) -> Spent:
        """Return what the owner spent on a local day, today without one, in no turn that is on record."""
        return await self._db.read(lambda on: _gone(on, owner, *_day_of(day)))

    async def add(self, owner: str, price_usd: float, tokens: int, day: date | None = None) -> None:
        """Put on record what was spent on a local day, today without one, in no turn."""
        row = {"owner": owner, "day": (day or local_today()).isoformat(), "price_usd": price_usd, "tokens": tokens}
        if price_usd or tokens:
            await self._db.write(lambda on: on.execute(_KEEP_DAY, row), is_spare=True)

    async def before(self, owner: str, conversation_id: str, turn_id: str, day: date | None = None) -> SoFar:
        """Return what the owner's other turns have cost here and on a local day, today without one, with what those at
        work, in any process, are about to pay for pictures."""
        # As a write: it sees what turns have handed over.
        return await self._db.write(lambda on: _before(on, owner, conversation_id, turn_id, day))

    async def weigh(
        self, owner: str, conversation_id: str, turn_id: str, choose: Callable[[SoFar], tuple[T, float]]
    ) -> T:
        """Return what `choose` makes of what `before` tells; it may be called twice.

        The dollars that it tells with it, which the turn may come to in all, count for the owner's other turns from
        that very moment until the turn ends.
        """

        def weigh(on: Connection) -> T:
            chosen, price_usd = choose(_before(on, owner, conversation_id, turn_id))
            on.execute(_RESERVE, {"turn": turn_id, "price": price_usd})
            return chosen

        return await self._db.write(weigh)

    def reserve(self, turn_id: str, price_usd: float) -> None:
        """Hand over what a turn that is held to no cap may come to in all, as `weigh` writes it."""
        writing = self._db.write_soon(lambda on: on.execute(_RESERVE, {"turn": turn_id, "price": price_usd}))
        # The next awaited write of the turn meets the same trouble and tells the person.
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


def keep_spend(connection: Connection, conversation_ids: Sequence[str]) -> None:
    """Add what the conversations cost to the days of their owners, right before they are removed for good."""
    rows = connection.execute(_LEAVING, {"leaving": list(conversation_ids)}).all()
    kept = [row._asdict() for row in rows if row.price_usd or row.tokens]
    if kept:
        connection.execute(_KEEP_DAY, kept)


def local_today() -> date:
    """Return the local day."""
    return datetime.now().astimezone().date()


def _day_of(day: date | None) -> tuple[date, date]:
    """Return the day, today without one, and the next one."""
    first = day or local_today()
    return first, first + timedelta(days=1)


def _month_of(day: date | None) -> tuple[date, date]:
    """Return the first day of the day's month, today's without one, and the first of the next one."""
    first = (day or local_today()).replace(day=1)
    return first, (first + timedelta(days=31)).replace(day=1)


def _spent(connection: Connection, statement: Select[*tuple[Any, ...]], values: Mapping[str, object]) -> Spent:
    """Return the sums of a statement that names them as `TokenUsage` does."""
    row = connection.execute(statement, values).one()._mapping
    usage = TokenUsage(**{name: int(row[name] or 0) for name in TokenUsage.model_fields})
    return Spent(price_usd=row["price_usd"] or 0.0, usage=usage)


def _gone(connection: Connection, owner: str, first: date, following: date) -> Spent:
    """Return what was spent in the days in no turn that is on record."""
    values = {"whose": owner, "first": first.isoformat(), "following": following.isoformat()}
    row = connection.execute(_GONE, values).one()
    return Spent(price_usd=row.price_usd, other_tokens=row.tokens)


def _moments(owner: str, first: date, following: date) -> dict[str, object]:
    """Return the days as moments in UTC: when each begins on this machine's clock."""
    since, until = (datetime.combine(day, time.min).astimezone(UTC) for day in (first, following))
    return {"whose": owner, "since": since, "until": until}

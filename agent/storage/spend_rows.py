"""The sums of what was spent, as plain blocking reads for the database's thread."""

from __future__ import annotations

import operator
from collections.abc import Collection, Sequence
from datetime import date
from functools import reduce

from sqlalchemy import Connection, Integer, and_, bindparam, case, func, select, update
from sqlalchemy.dialects.sqlite import insert

from agent.conversation import TurnState
from agent.library import Spent, UnderWay
from agent.messages import TokenUsage
from agent.storage.journal import CallState
from agent.storage.spend import begins_at, spent_of
from agent.storage.tables import CALLS, CONVERSATIONS, SPEND_DAYS, TURNS

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

_RUNS_UNKNOWN = and_(_T.state == TurnState.RUNNING.value, _T.id.not_in(bindparam("known", expanding=True)), _MINE)
_ASKED = (
    select(CALLS.c.model)
    .select_from(_JOINED.join(CALLS, CALLS.c.turn_id == _T.id))
    .where(_RUNS_UNKNOWN, _T.reserved_usd == 0, CALLS.c.state.in_((CallState.SENT.value, CallState.QUEUED.value)))
)
_ASKED_HERE = _ASKED.where(_T.conversation_id == bindparam("key"))
# What such a turn has cost so far is among what was spent.
_RESERVED = (
    select(func.coalesce(func.sum(func.max(0.0, _T.reserved_usd - _PRICE)), 0.0))
    .select_from(_JOINED)
    .where(_RUNS_UNKNOWN, _T.reserved_usd > 0)
)
_RESERVED_HERE = _RESERVED.where(_T.conversation_id == bindparam("key"))
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


def of_conversation(connection: Connection, owner: str, conversation_id: str) -> Spent:
    """Return what the owner's conversation has cost."""
    return spent_of(connection.execute(_OF_CONVERSATION, {"whose": owner, "key": conversation_id}).one()._mapping)


def of_days(connection: Connection, owner: str, first: date, following: date) -> Spent:
    """Return what the owner spent from the first day on, before the following one."""
    spent = spent_of(connection.execute(_OF_DAYS, _moments(owner, first, following)).one()._mapping)
    gone = connection.execute(_GONE, _dates(owner, first, following)).one()
    return spent.model_copy(update={"price_usd": spent.price_usd + gone.price_usd, "other_tokens": gone.tokens})


def beside_turns(connection: Connection, owner: str, first: date, following: date) -> Spent:
    """Return what the owner spent in the days in no turn that is on record."""
    gone = connection.execute(_GONE, _dates(owner, first, following)).one()
    return Spent(price_usd=gone.price_usd, other_tokens=gone.tokens)


def price_of_days(connection: Connection, owner: str, first: date, following: date) -> float:
    """Return the dollars of `of_days` alone: tokens stand deep in the rows."""
    spent: float = connection.execute(_PRICE_OF_DAYS, _moments(owner, first, following)).scalar_one()
    gone: float = connection.execute(_GONE, _dates(owner, first, following)).one().price_usd
    return spent + gone


def conversation_without(
    connection: Connection, owner: str, conversation_id: str, turn_id: str, known: Collection[str]
) -> UnderWay:
    """Return what the conversation has cost here but for one turn, and which models it waits for."""
    here = {"whose": owner, "key": conversation_id}
    others = {**here, "known": [turn_id, *known]}
    spent: float = connection.execute(_CONVERSATION_BUT, {**here, "turn": turn_id}).scalar_one()
    reserved: float = connection.execute(_RESERVED_HERE, others).scalar_one()
    return UnderWay(spent_usd=spent + reserved, models=tuple(connection.scalars(_ASKED_HERE, others)))


def days_without(
    connection: Connection, owner: str, first: date, following: date, turn_id: str, known: Collection[str]
) -> UnderWay:
    """Return what the owner spent in the days but for one turn, and which models the others wait for."""
    spent: float = connection.execute(_DAYS_BUT, {**_moments(owner, first, following), "turn": turn_id}).scalar_one()
    gone: float = connection.execute(_GONE, _dates(owner, first, following)).one().price_usd
    others = {"whose": owner, "known": [turn_id, *known]}
    reserved: float = connection.execute(_RESERVED, others).scalar_one()
    return UnderWay(spent_usd=spent + gone + reserved, models=tuple(connection.scalars(_ASKED, others)))


def reserve(connection: Connection, turn_id: str, price_usd: float) -> None:
    """Write what the turn may come to in all."""
    connection.execute(_RESERVE, {"turn": turn_id, "price": price_usd})


def keep(connection: Connection, conversation_ids: Sequence[str]) -> None:
    """Add what the conversations cost to the days of their owners, right before they are removed for good."""
    rows = connection.execute(_LEAVING, {"leaving": list(conversation_ids)}).all()
    kept = [row._asdict() for row in rows if row.price_usd or row.tokens]
    if kept:
        connection.execute(_KEEP_DAY, kept)


def add(connection: Connection, owner: str, day: date, price_usd: float, tokens: int) -> None:
    """Add what was spent in no turn to a local day of the owner's."""
    if price_usd or tokens:
        row = {"owner": owner, "day": day.isoformat(), "price_usd": price_usd, "tokens": tokens}
        connection.execute(_KEEP_DAY, row)


def _moments(owner: str, first: date, following: date) -> dict[str, object]:
    return {"whose": owner, "since": begins_at(first), "until": begins_at(following)}


def _dates(owner: str, first: date, following: date) -> dict[str, object]:
    return {"whose": owner, "first": first.isoformat(), "following": following.isoformat()}

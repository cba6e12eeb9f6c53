"""What was spent, by conversation, day and month: sums over the turns on record, and over what is left of those gone.

A turn belongs to the day it began. Days and months are those of the machine's own clock; what conversations that are
gone for good had cost is only known by the day in UTC, and is counted for the local day of the same date. What a search
of the gallery costs belongs to no turn, and to the local day on which it is made.

What a turn that came with an archive had cost is part of what its conversation has cost, and of nothing else: it was
not spent here, or is counted already where it was, so no day, no month and no cap knows of it.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import UTC, date, datetime, time, timedelta
from typing import TYPE_CHECKING, Any

from agent.library import SpendSums, Spent, UnderWay
from agent.messages import TokenUsage

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from agent.storage.conversations import ConversationStore


class SpendBook:
    """Reads the sums from a store, on that store's own thread. Every call raises StorageFailure when it cannot.
    `add` writes what costs something without a turn, `reserve` what a turn may come to.

    A turn that runs, here or in another process, counts with the calls of it that have ended.
    """

    def __init__(self, records: ConversationStore) -> None:
        self._store = records

    async def conversation(self, conversation_id: str, owner: str) -> Spent:
        """Return what the owner's conversation has cost so far, every branch of it; nothing when there is none."""
        from agent.storage import spend_rows

        return await self._store.read(lambda on: spend_rows.of_conversation(on, owner, conversation_id))

    async def day(self, owner: str, day: date | None = None) -> Spent:
        """Return what the owner spent on a local day, today without one."""
        from agent.storage import spend_rows

        first = day or local_today()
        return await self._store.read(lambda on: spend_rows.of_days(on, owner, first, first + timedelta(days=1)))

    async def month(self, owner: str, day: date | None = None) -> Spent:
        """Return what the owner spent in the month of the day, this one without one."""
        from agent.storage import spend_rows

        first, following = month_of(day or local_today())
        return await self._store.read(lambda on: spend_rows.of_days(on, owner, first, following))

    async def sums(self, owner: str, day: date | None = None) -> SpendSums:
        """Return the two sums that always stand on the page, without their tokens."""
        from agent.storage import spend_rows

        now = day or local_today()

        def read(on: Connection) -> SpendSums:
            month, this_day = month_of(now), (now, now + timedelta(days=1))
            return SpendSums(
                month_usd=spend_rows.price_of_days(on, owner, *month),
                day_usd=spend_rows.price_of_days(on, owner, *this_day),
            )

        return await self._store.read(read)

    async def beside_turns(self, owner: str, day: date | None = None) -> Spent:
        """Return what the owner spent on a local day, today without one, in no turn that is on record."""
        from agent.storage import spend_rows

        first = day or local_today()
        return await self._store.read(lambda on: spend_rows.beside_turns(on, owner, first, first + timedelta(days=1)))

    async def add(self, owner: str, price_usd: float, tokens: int, day: date | None = None) -> None:
        """Put on record what was spent on a local day, today without one, in no turn."""
        from agent.storage import spend_rows

        now = day or local_today()
        await self._store.in_transaction(lambda on: spend_rows.add(on, owner, now, price_usd, tokens))

    async def reserve(self, turn_id: str, price_usd: float) -> None:
        """Put on record what a turn that runs may come to in all, for the turns of other processes; its end ends it."""
        from agent.storage import spend_rows

        await self._store.after_writes(lambda on: spend_rows.reserve(on, turn_id, price_usd))

    async def conversation_before(
        self, conversation_id: str, owner: str, turn_id: str, known: Collection[str] = ()
    ) -> UnderWay:
        """Return what the conversation has cost here without one of its turns; of the `known` ones the caller knows
        better what they wait for."""
        from agent.storage import spend_rows

        return await self._store.after_writes(
            lambda on: spend_rows.conversation_without(on, owner, conversation_id, turn_id, known)
        )

    async def day_before(
        self, owner: str, turn_id: str, day: date | None = None, known: Collection[str] = ()
    ) -> UnderWay:
        """Return what the owner spent on the local day, today without one, but for one turn; `known` as above."""
        from agent.storage import spend_rows

        first = day or local_today()
        following = first + timedelta(days=1)
        return await self._store.after_writes(
            lambda on: spend_rows.days_without(on, owner, first, following, turn_id, known)
        )


def local_today() -> date:
    """Return the local day."""
    return datetime.now().astimezone().date()


def month_of(day: date) -> tuple[date, date]:
    """Return the first day of the month and the first of the next one."""
    first = day.replace(day=1)
    return first, (first + timedelta(days=31)).replace(day=1)


def begins_at(day: date) -> datetime:
    """Return the moment in UTC when the day begins on this machine's clock."""
    return datetime.combine(day, time.min).astimezone(UTC)


def spent_of(row: Any) -> Spent:
    """Return the sums of a row that names them as `TokenUsage` does."""
    usage = TokenUsage(**{name: int(row[name] or 0) for name in TokenUsage.model_fields})
    return Spent(price_usd=row["price_usd"] or 0.0, usage=usage)

"""What somebody else pays for a turn: how much at most, and where each call of it is put on their account."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any


# Whoever sums up the loans in use tells them apart by what they are.
@dataclass(eq=False)
class Loan:
    """The money of another one for one turn: `most_usd` in US dollars for all of it.

    `book` puts on the lender's record what a call has cost, in work that `keep_alive` holds on to. Of `in_use_now`,
    all that the lender has lent, a loan is a part as long as calls may come, or are under way.
    """

    most_usd: float
    book: Callable[[float], Awaitable[None]]
    in_use_now: set[Loan]
    keep_alive: Callable[[Coroutine[Any, Any, Any]], asyncio.Task[Any]]
    _booked_usd: float = 0.0
    _users: int = 0

    @property
    def aside_usd(self) -> float:
        """What of it may still be spent."""
        return max(0.0, self.most_usd - self._booked_usd)

    def pay(self, price_usd: float) -> None:
        """Have a call booked that has ended: once for each call, whatever becomes of the turn."""
        if price_usd > 0:
            self._take()
            self.keep_alive(self._pay(price_usd))

    @contextmanager
    def in_use(self) -> Iterator[None]:
        """Keep what is left of it set aside."""
        self._take()
        try:
            yield
        finally:
            self._give_back()

    async def _pay(self, price_usd: float) -> None:
        try:
            await self.book(price_usd)
            self._booked_usd += price_usd
        finally:
            self._give_back()

    def _take(self) -> None:
        self._users += 1
        self.in_use_now.add(self)

    def _give_back(self) -> None:
        self._users -= 1
        if not self._users:
            self.in_use_now.discard(self)


def in_use(loan: Loan | None) -> AbstractContextManager[None]:
    """Keep a loan set aside, if there is one."""
    return nullcontext() if loan is None else loan.in_use()

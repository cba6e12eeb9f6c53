"""Limits for a studio with visitors: the number of turns, and the operator's money for them."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any

from agent.errors import AivistaError, ErrorCode, KeyProblem, RequestRefused
from agent.messages import Value
from agent.spending import A_TRIFLE_USD, format_usd
from agent.storage.spend import SpendBook

WINDOW_S = 600.0
# The sponsor's spending is recorded under this owner name, across restarts; no real owner has it.
SPONSOR_ACCOUNT = "owner-of-the-space"
_MOST_OWNERS = 10_000


class TurnLimits(Value):
    """The limits for turns; None is no limit. The operator's own turns count only for `turns_at_once`.

    Turns beyond `turns_at_once` wait in a queue. Each other owner may start `turns_per_visitor` turns within ten
    minutes.
    """

    turns_at_once: int | None = None
    turns_per_visitor: int | None = None


class Sponsor(Value):
    """The operator's limits for paying visitors without a key, in US dollars: for all of them per day, and per turn.

    A turn reserves its `cap_turn_usd` while it runs, so that all turns together never exceed `cap_day_usd` by more than
    the excess of one call over its estimate. Pictures that would exceed `cap_turn_usd` are not made.
    """

    cap_day_usd: float
    cap_turn_usd: float


@dataclass
class TurnRateLimiter:
    """Counts the turns of each owner within `WINDOW_S`. `clock` returns seconds."""

    turns_per_visitor: int
    clock: Callable[[], float] = time.monotonic
    _begun: dict[str, deque[float]] = field(default_factory=dict)

    def enter(self, owner: str) -> None:
        """Count a turn. Raises RequestRefused(TOO_MANY_TURNS) over the limit; the refused turn does not count."""
        now = self.clock()
        if len(self._begun) > _MOST_OWNERS:
            self._begun = {name: times for name, times in self._begun.items() if now - times[-1] < WINDOW_S}
        times = self._begun.get(owner, deque())
        while times and now - times[0] >= WINDOW_S:
            times.popleft()
        if len(times) >= self.turns_per_visitor:
            seconds = max(1, round(times[0] + WINDOW_S - now))
            raise RequestRefused(ErrorCode.TOO_MANY_TURNS, count=len(times), seconds=seconds)
        times.append(now)
        self._begun[owner] = times


# Compared by identity: two equal budgets are different budgets.
@dataclass(eq=False)
class SponsoredBudget:
    """The sponsor's money for one turn: at most `most_usd` US dollars in all.

    It is in the account's `in_use` as long as its turn may make calls, or charges are still to be recorded.
    """

    most_usd: float
    account: SponsorAccount
    _charged_usd: float = 0.0
    # Charges that are not recorded yet.
    _on_their_way: list[float] = field(default_factory=list)
    _holders: int = 0

    @property
    def aside_usd(self) -> float:
        """The amount reserved from others: the rest of the budget while calls are possible, then unrecorded charges."""
        return max(0.0, self.most_usd - self._charged_usd) if self._holders else sum(self._on_their_way)

    def charge(self, price_usd: float) -> None:
        """Charge a finished call to the account: once for each call, even if the turn fails or is cancelled."""
        if price_usd > 0:
            self._on_their_way.append(price_usd)
            self.account.in_use.add(self)
            self.account.keep_alive(self._charge(price_usd))

    @contextmanager
    def reserved(self) -> Iterator[None]:
        """Keep the rest of the budget reserved within the block."""
        self._holders += 1
        self.account.in_use.add(self)
        try:
            yield
        finally:
            self._holders -= 1
            self._leave()

    async def _charge(self, price_usd: float) -> None:
        try:
            await self.account.charge(price_usd)
            self._charged_usd += price_usd
        finally:
            self._on_their_way.remove(price_usd)
            self._leave()

    def _leave(self) -> None:
        if not self._holders and not self._on_their_way:
            self.account.in_use.discard(self)


@dataclass
class SponsorAccount:
    """The account of a sponsor. `keep_alive` runs the tasks that record charges."""

    sponsor: Sponsor
    spend: SpendBook
    keep_alive: Callable[[Coroutine[Any, Any, Any]], asyncio.Task[Any]]
    in_use: set[SponsoredBudget] = field(default_factory=set)

    @asynccontextmanager
    async def budget(self, is_new: bool) -> AsyncIterator[SponsoredBudget]:
        """Reserve a turn's budget within the block. Raises KeyProblem if the turn is new and the cap is used up."""
        budget = SponsoredBudget(self.sponsor.cap_turn_usd, self)
        with budget.reserved():
            if is_new and (problem := await self.problem()):
                raise problem
            yield budget

    async def charge(self, price_usd: float) -> None:
        """Record the cost of a call."""
        if price_usd > 0:
            await self.spend.add(SPONSOR_ACCOUNT, price_usd, 0)

    async def problem(self) -> AivistaError | None:
        """Return the error for new turns when the day's cap is used up, else None."""
        # Reservations are read first: a charge that is recorded in between must not be missing from both.
        aside_usd = sum(budget.aside_usd for budget in self.in_use)
        spent_usd = (await self.spend.day(SPONSOR_ACCOUNT)).price_usd
        if spent_usd + aside_usd <= self.sponsor.cap_day_usd + A_TRIFLE_USD:
            return None
        return KeyProblem(ErrorCode.OWNER_CAP_USED_UP, cap=format_usd(self.sponsor.cap_day_usd))


ChargeFn = Callable[[float], Awaitable[None]]

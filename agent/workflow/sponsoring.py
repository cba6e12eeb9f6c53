"""Limits of a studio that others come to: how many turns, and how much of somebody else's money for them."""

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
# No owner is called so: what the sponsor paid stands on record under this name, over restarts as well.
SPONSOR_ACCOUNT = "owner-of-the-space"
_MOST_OWNERS = 10_000


class TurnLimits(Value):
    """How many turns a studio takes; None is no limit. The operator's own turns count for the first alone.

    Of more than `turns_at_once` the others wait in line. Each other owner may begin `turns_per_visitor` turns within
    ten minutes.
    """

    turns_at_once: int | None = None
    turns_per_visitor: int | None = None


class Sponsor(Value):
    """The operator pays for others who bring no key: in US dollars for all of them a day, and for each turn.

    A turn sets its `cap_turn_usd` aside while it runs, so that all together never pass `cap_day_usd` by more than what
    one call costs beyond its estimate. Pictures that would cost a turn more are not painted.
    """

    cap_day_usd: float
    cap_turn_usd: float


@dataclass
class TurnRateLimiter:
    """Counts the turns of each owner within `WINDOW_S`. `clock` tells seconds."""

    turns_per_visitor: int
    clock: Callable[[], float] = time.monotonic
    _begun: dict[str, deque[float]] = field(default_factory=dict)

    def enter(self, owner: str) -> None:
        """Count a turn. Raises RequestRefused when there were too many lately; that one does not count."""
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
    """The sponsor's money for one turn: `most_usd` in US dollars for all of it.

    It is one of the account's `in_use` as long as calls may come, or are under way.
    """

    most_usd: float
    account: SponsorAccount
    _charged_usd: float = 0.0
    # What has been spent and is not on record yet.
    _on_their_way: list[float] = field(default_factory=list)
    _holders: int = 0

    @property
    def aside_usd(self) -> float:
        """What nobody else may spend: what is left of it while calls may come, then what is not on record yet."""
        return max(0.0, self.most_usd - self._charged_usd) if self._holders else sum(self._on_their_way)

    def charge(self, price_usd: float) -> None:
        """Put a call that has ended on the account: once for each call, whatever becomes of the turn."""
        if price_usd > 0:
            self._on_their_way.append(price_usd)
            self.account.in_use.add(self)
            self.account.keep_alive(self._charge(price_usd))

    @contextmanager
    def reserved(self) -> Iterator[None]:
        """Keep what is left of it set aside."""
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
    """What a sponsor pays. Charges are written in work that `keep_alive` holds on to."""

    sponsor: Sponsor
    spend: SpendBook
    keep_alive: Callable[[Coroutine[Any, Any, Any]], asyncio.Task[Any]]
    in_use: set[SponsoredBudget] = field(default_factory=set)

    @asynccontextmanager
    async def budget(self, is_new: bool) -> AsyncIterator[SponsoredBudget]:
        """Set aside what a turn may cost, while it lasts. Raises KeyProblem when a new one finds the cap used up."""
        budget = SponsoredBudget(self.sponsor.cap_turn_usd, self)
        with budget.reserved():
            if is_new and (problem := await self.problem()):
                raise problem
            yield budget

    async def charge(self, price_usd: float) -> None:
        """Put on record what a call has cost."""
        if price_usd > 0:
            await self.spend.add(SPONSOR_ACCOUNT, price_usd, 0)

    async def problem(self) -> AivistaError | None:
        """Return what is in the way of anything new, None as long as the day's cap allows it."""
        # In this order: what is charged meanwhile must not be missing in both.
        aside_usd = sum(budget.aside_usd for budget in self.in_use)
        spent_usd = (await self.spend.day(SPONSOR_ACCOUNT)).price_usd
        if spent_usd + aside_usd <= self.sponsor.cap_day_usd + A_TRIFLE_USD:
            return None
        return KeyProblem(ErrorCode.OWNER_CAP_USED_UP, cap=format_usd(self.sponsor.cap_day_usd))


ChargeFn = Callable[[float], Awaitable[None]]

"""The studio of a place where others come: so many turns at once, so many of one visitor, and so much of the owner's
money a day."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from dataclasses import dataclass, field

from pydantic import SecretStr

from agent import (
    OPERATOR,
    AivistaError,
    Decision,
    ErrorCode,
    ExpandedPrompt,
    GalleryPage,
    GalleryQuery,
    KeyProblem,
    PromptToExpand,
    RequestRefused,
    Settings,
    Studio,
    TurnEvent,
    TurnFailed,
    TurnRequest,
)
from agent.providers.pool import NO_KEY
from agent.spending import A_TRIFLE_USD, format_usd
from agent.workflow.lending import Loan
from agent.workflow.search_meters import Book
from webui.space.spacefile import Limits, Pays

WINDOW_S = 600.0
# No visitor is called so: what the owner of the place paid stands on record under this name, over restarts as well.
PURSE = "owner-of-the-space"
_MOST_VISITORS = 10_000


@dataclass
class Gate:
    """Counts the turns of each visitor within `WINDOW_S`. `clock` tells seconds."""

    turns_per_visitor: int
    clock: Callable[[], float] = time.monotonic
    _came: dict[str, deque[float]] = field(default_factory=dict)

    def enter(self, visitor: str) -> None:
        """Let a visitor's turn in. Raises RequestRefused when there were too many lately; that one does not count."""
        now = self.clock()
        if len(self._came) > _MOST_VISITORS:
            self._came = {name: times for name, times in self._came.items() if now - times[-1] < WINDOW_S}
        times = self._came.get(visitor, deque())
        while times and now - times[0] >= WINDOW_S:
            times.popleft()
        if len(times) >= self.turns_per_visitor:
            seconds = max(1, round(times[0] + WINDOW_S - now))
            raise RequestRefused(ErrorCode.TOO_MANY_TURNS, count=len(times), seconds=seconds)
        times.append(now)
        self._came[visitor] = times


class LimitedStudio(Studio):
    """A studio whose turns pass a gate, and wait in line where too many are at work.

    What the place's owner pays for others is held to the owner's cap: each turn may cost up to `cap_turn_usd`, which is
    set aside while it runs, so that all together never pass `cap_day_usd` by more than what one call costs beyond its
    estimate. Pictures that would cost a turn more are not painted. Each call is put into the purse as it ends. The
    owner's own turns, those of `OPERATOR`, pass no gate and no such cap.
    """

    def __init__(self, settings: Settings, limits: Limits, pays: Pays, *, sketch_pace_s: float = 0.0) -> None:
        super().__init__(settings, sketch_pace_s=sketch_pace_s, turns_at_once=limits.turns_at_once)
        self._gate = Gate(limits.turns_per_visitor)
        self._pays = pays
        self._loans: set[Loan] = set()

    async def run_turn(
        self, conversation_id: str, request: TurnRequest, *, owner: str = OPERATOR, key: SecretStr | None = None
    ) -> AsyncIterator[TurnEvent]:
        """Run one turn as `Studio.run_turn` does; it ends with TurnFailed where a limit stands in its way."""
        events = super().run_turn(conversation_id, request, owner=owner, key=key)
        async with aclosing(self._gated(owner, events)) as gated:
            async for event in gated:
                yield event

    async def decide(
        self,
        conversation_id: str,
        turn_id: str,
        decision: Decision,
        *,
        owner: str = OPERATOR,
        key: SecretStr | None = None,
    ) -> AsyncIterator[TurnEvent]:
        """Answer as `Studio.decide` does; to drop a plan passes no gate."""
        events = super().decide(conversation_id, turn_id, decision, owner=owner, key=key)
        if not decision.run:
            async for event in events:
                yield event
            return
        async with aclosing(self._gated(owner, events)) as gated:
            async for event in gated:
                yield event

    async def retry(
        self, conversation_id: str, turn_id: str, *, owner: str = OPERATOR, key: SecretStr | None = None
    ) -> AsyncIterator[TurnEvent]:
        """Go on as `Studio.retry` does, through the gate."""
        events = super().retry(conversation_id, turn_id, owner=owner, key=key)
        async with aclosing(self._gated(owner, events)) as gated:
            async for event in gated:
                yield event

    async def gallery_page(self, owner: str, query: GalleryQuery, *, key: SecretStr | None = None) -> GalleryPage:
        """Return a page as `Studio.gallery_page` does; by meaning only as long as the owner's cap allows."""
        if self._is_paid_for(owner, key) and await self._over_the_cap():
            key = NO_KEY
        return await super().gallery_page(owner, query, key=key)

    async def fuller_wish(
        self, wish: PromptToExpand, owner: str = OPERATOR, key: SecretStr | None = None
    ) -> ExpandedPrompt:
        """Write a wish out as `Studio.fuller_wish` does. Raises KeyProblem when the owner's cap is used up."""
        if self._is_paid_for(owner, key) and (problem := await self._over_the_cap()):
            raise problem
        return await super().fuller_wish(wish, owner, key)

    def _is_paid_for(self, owner: str, key: SecretStr | None) -> bool:
        """Whether the place's owner pays what another one does."""
        is_other = owner != OPERATOR and key is None
        return is_other and self._pays.who == "owner" and self.provider_name(None, owner) != "sketch"

    async def _gated(self, owner: str, events: AsyncIterator[TurnEvent]) -> AsyncGenerator[TurnEvent, None]:
        try:
            if owner != OPERATOR:
                self._gate.enter(owner)
        except RequestRefused as refused:
            yield TurnFailed(error=refused.info)
            return
        async for event in events:
            yield event

    def _lend(self, owner: str, key: SecretStr | None, asks: bool) -> AbstractAsyncContextManager[Loan | None]:
        return self._lent(asks) if self._is_paid_for(owner, key) else super()._lend(owner, key, asks)

    @asynccontextmanager
    async def _lent(self, asks: bool) -> AsyncIterator[Loan]:
        loan = Loan(self._pays.cap_turn_usd, self._into_the_purse, self._loans, self.keep_alive)
        with loan.in_use():
            if asks and (problem := await self._over_the_cap()):
                raise problem
            yield loan

    def _book(self, owner: str, key: SecretStr | None) -> Book | None:
        return self._into_the_purse if self._is_paid_for(owner, key) else None

    async def _over_the_cap(self) -> AivistaError | None:
        cap_usd = self._pays.cap_day_usd or 0.0
        # In this order: what is booked meanwhile must not be missing in both.
        aside_usd = sum(loan.aside_usd for loan in self._loans)
        spent_usd = (await self.spend.day(PURSE)).price_usd
        if spent_usd + aside_usd <= cap_usd + A_TRIFLE_USD:
            return None
        return KeyProblem(ErrorCode.OWNER_CAP_USED_UP, cap=format_usd(cap_usd))

    async def _into_the_purse(self, cost_usd: float) -> None:
        if cost_usd > 0:
            await self.spend.add(PURSE, cost_usd, 0)

"""The studio of a Space: so many turns at once, so many of one visitor, and so much of its owner's money a day."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from dataclasses import dataclass, field, replace

from pydantic import SecretStr

from agent.errors import ErrorCode, KeyProblem, RequestRefused
from agent.events import TurnEvent, TurnFailed
from agent.plans import Decision
from agent.settings import Settings
from agent.studio import Studio, TurnRequest
from webui.space.spacefile import Limits, Pays

WINDOW_S = 600.0
# No visitor is called so: what the Space's owner paid stands on record under this name, over restarts as well.
PURSE = "owner-of-the-space"
_MOST_VISITORS = 10_000


@dataclass
class Gate:
    """Counts turns as they come and go. `clock` tells seconds."""

    limits: Limits
    clock: Callable[[], float] = time.monotonic
    at_work: int = 0
    _came: dict[str, deque[float]] = field(default_factory=dict)

    def enter(self, visitor: str) -> None:
        """Let a visitor's turn in; `leave` ends it. Raises RequestRefused when there is no room, or it is too soon."""
        now = self.clock()
        if len(self._came) > _MOST_VISITORS:
            self._came = {name: times for name, times in self._came.items() if now - times[-1] < WINDOW_S}
        times = self._came.get(visitor, deque())
        while times and now - times[0] >= WINDOW_S:
            times.popleft()
        if len(times) >= self.limits.turns_per_visitor:
            seconds = max(1, round(times[0] + WINDOW_S - now))
            raise RequestRefused(ErrorCode.TOO_MANY_TURNS, count=len(times), seconds=seconds)
        if self.at_work >= self.limits.turns_at_once:
            raise RequestRefused(ErrorCode.STUDIO_BUSY, count=self.at_work)
        times.append(now)
        self._came[visitor] = times
        self.at_work += 1

    def leave(self) -> None:
        """End a turn that was let in."""
        self.at_work -= 1


class LimitedStudio(Studio):
    """A studio whose turns pass a gate. Those that the Space's owner pays are held to the owner's cap: each may cost up
    to `cap_turn_usd`, which is set aside while it runs, so that all together never pass `cap_day_usd` by more than what
    one call costs beyond its estimate.
    """

    def __init__(self, settings: Settings, limits: Limits, pays: Pays, *, sketch_pace_s: float = 0.0) -> None:
        super().__init__(settings, sketch_pace_s=sketch_pace_s)
        self._gate = Gate(limits)
        self._pays = pays
        self._set_aside_usd = 0.0

    async def run_turn(
        self, conversation_id: str, request: TurnRequest, *, owner: str = "local", key: SecretStr | None = None
    ) -> AsyncIterator[TurnEvent]:
        """Run one turn as `Studio.run_turn` does; it ends with TurnFailed where a limit stands in its way."""
        if self._is_paid_by_owner(key):
            chosen = request.settings.budget_usd
            budget_usd = min(self._pays.cap_turn_usd, chosen) if chosen else self._pays.cap_turn_usd
            request = replace(request, settings=request.settings.model_copy(update={"budget_usd": budget_usd}))
        events = super().run_turn(conversation_id, request, owner=owner, key=key)
        async with aclosing(self._gated(conversation_id, owner, key, events)) as gated:
            async for event in gated:
                yield event

    async def decide(
        self,
        conversation_id: str,
        turn_id: str,
        decision: Decision,
        *,
        owner: str = "local",
        key: SecretStr | None = None,
    ) -> AsyncIterator[TurnEvent]:
        """Answer as `Studio.decide` does; to drop a plan passes no gate."""
        events = super().decide(conversation_id, turn_id, decision, owner=owner, key=key)
        if not decision.run:
            async for event in events:
                yield event
            return
        async with aclosing(self._gated(conversation_id, owner, key, events)) as gated:
            async for event in gated:
                yield event

    async def retry(
        self, conversation_id: str, turn_id: str, *, owner: str = "local", key: SecretStr | None = None
    ) -> AsyncIterator[TurnEvent]:
        """Go on as `Studio.retry` does, through the gate."""
        events = super().retry(conversation_id, turn_id, owner=owner, key=key)
        async with aclosing(self._gated(conversation_id, owner, key, events)) as gated:
            async for event in gated:
                yield event

    def _is_paid_by_owner(self, key: SecretStr | None) -> bool:
        return self._pays.who == "owner" and key is None and self.provider_name(None) != "sketch"

    async def _gated(
        self, conversation_id: str, owner: str, key: SecretStr | None, events: AsyncIterator[TurnEvent]
    ) -> AsyncGenerator[TurnEvent, None]:
        is_paid = self._is_paid_by_owner(key)
        try:
            self._gate.enter(owner)
        except RequestRefused as refused:
            yield TurnFailed(error=refused.info)
            return
        aside_usd = self._pays.cap_turn_usd if is_paid else 0.0
        self._set_aside_usd += aside_usd
        before_usd: float | None = None
        try:
            if is_paid and (problem := await self._over_the_cap()):
                yield TurnFailed(error=problem.info)
                return
            before_usd = await self._cost_usd(conversation_id, owner) if is_paid else None
            async for event in events:
                yield event
        finally:
            # A closed page does not stop its turn.
            self.keep_alive(self._settle(conversation_id, owner, aside_usd, before_usd))

    async def _over_the_cap(self) -> KeyProblem | None:
        cap_usd = self._pays.cap_day_usd or 0.0
        spent_usd = (await self.spend.day(PURSE)).price_usd
        if spent_usd + self._set_aside_usd <= cap_usd:
            return None
        return KeyProblem(ErrorCode.OWNER_CAP_USED_UP, cap=f"{cap_usd:.2f}")

    async def _cost_usd(self, conversation_id: str, owner: str) -> float:
        return (await self.spend.conversation(conversation_id, owner)).price_usd

    async def _settle(self, conversation_id: str, owner: str, aside_usd: float, before_usd: float | None) -> None:
        try:
            async for _ in self.attach(conversation_id, owner):
                pass
            if before_usd is not None:
                cost_usd = await self._cost_usd(conversation_id, owner) - before_usd
                if cost_usd > 0:
                    await self.spend.add(PURSE, cost_usd, 0)
        finally:
            self._set_aside_usd -= aside_usd
            self._gate.leave()

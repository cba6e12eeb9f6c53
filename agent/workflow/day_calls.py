"""Calls that belong to no turn: what they cost is on record for the day, and none is made beyond the day's cap."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from agent.errors import ErrorCode, RequestRefused
from agent.events import CapPassed
from agent.providers.catalogue import ModelEntry
from agent.spending import Caps, SoFar, format_usd, used_up
from agent.storage.spend import SpendBook
from agent.workflow.hearing import Answer
from agent.workflow.sponsoring import ChargeFn

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class DayCalls:
    """The calls of an owner's that no turn makes: they are added to what the day has cost.

    None is made any more when the day's cap is used up; `cap_day_usd` tells what an owner may spend in a day. One that
    is cut off by the studio's end has a cost that nobody knows. `charge` puts what a call has cost on the account of
    whoever pays it in the owner's place, also when it ends long after the search that it was made for.
    """

    owner: str
    spend: SpendBook
    cap_day_usd: Callable[[str], Awaitable[float | None]]
    charge: ChargeFn | None = None

    async def send(self, model: ModelEntry) -> str:
        """Note that a call leaves now. Raises RequestRefused(DAY_CAP_USED_UP) when it must not be made."""
        cap = await self.passed() if model.prices else None
        if cap is not None:
            raise RequestRefused(
                ErrorCode.DAY_CAP_USED_UP, cap=format_usd(cap.cap_usd), spent=format_usd(cap.spent_usd)
            )
        return ""

    async def end(self, name: str, model: ModelEntry, answer: Answer) -> None:
        """Add what the call has cost to the day. Raises StorageFailure."""
        price_usd = model.price_usd(answer.usage, datetime.now(UTC).date())
        _log.debug("%s was asked outside of a turn: %d tokens, $%.6f", model.id, answer.usage.total_tokens, price_usd)
        await self.spend.add(self.owner, price_usd, answer.usage.total_tokens)
        if self.charge is not None:
            await self.charge(price_usd)

    def cancel(self, name: str) -> None:
        """Note that the call was given up: what it has cost is not known."""

    async def passed(self) -> CapPassed | None:
        """Return the owner's cap for the day when nothing is left of it."""
        cap_usd = await self.cap_day_usd(self.owner)
        if cap_usd is None:
            return None
        spent_usd = (await self.spend.sums(self.owner)).day_usd
        return used_up(Caps(day_usd=cap_usd), SoFar(day_usd=spent_usd))

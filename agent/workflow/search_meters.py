"""The embedding models that searches of the gallery ask. What they cost is on record for the day, and under its cap."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from agent.errors import ErrorCode, RequestRefused
from agent.plans import CapPassed
from agent.providers.base import Provider
from agent.providers.catalogue import Catalogue, ModelEntry
from agent.spending import Caps, SoFar, used_up
from agent.storage.spend import SpendBook
from agent.workflow.hearing import Answer
from agent.workflow.metering import Meter, embedder_of, embedding_model
from agent.workflow.retrying import Breakers

# On a shared link many owners are served by the operator's one key.
_MOST_KEPT = 64

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class _DayCalls:
    """The calls of an owner's searches: no turn's, so they are added to what the day has cost.

    None is made any more when the day's cap is used up. One that is cut off by the studio's end has a cost that nobody
    knows.
    """

    owner: str
    spend: SpendBook
    cap_day_usd: Callable[[str], Awaitable[float | None]]

    async def send(self, model: ModelEntry) -> str:
        cap = await self.passed() if model.prices else None
        if cap is not None:
            raise RequestRefused(ErrorCode.BUDGET_USED_UP, cap=f"{cap.cap_usd:.2f}", spent=f"{cap.spent_usd:.2f}")
        return ""

    async def end(self, name: str, model: ModelEntry, answer: Answer) -> None:
        price_usd = model.price_usd(answer.usage, datetime.now(UTC).date())
        _log.debug("a search has asked %s: %d tokens, $%.6f", model.id, answer.usage.total_tokens, price_usd)
        await self.spend.add(self.owner, price_usd, answer.usage.total_tokens)

    def cancel(self, name: str) -> None:
        pass

    async def passed(self) -> CapPassed | None:
        """Return the owner's cap for the day when nothing is left of it."""
        cap_usd = await self.cap_day_usd(self.owner)
        if cap_usd is None:
            return None
        spent_usd = (await self.spend.sums(self.owner)).day_usd
        return used_up(Caps(day_usd=cap_usd), SoFar(day_usd=spent_usd))


class SearchMeters:
    """A meter for each owner and key, kept so that a model that failed is left alone by the next search as well.

    `cap_day_usd` tells what an owner may spend in a day.
    """

    def __init__(
        self,
        catalogue: Catalogue,
        breakers: Breakers,
        spend: SpendBook,
        cap_day_usd: Callable[[str], Awaitable[float | None]],
    ) -> None:
        self._catalogue = catalogue
        self._breakers = breakers
        self._spend = spend
        self._cap_day_usd = cap_day_usd
        # By the provider's identity, which nothing else takes while the provider is held here.
        self._meters: OrderedDict[tuple[int, str], tuple[Provider, Meter]] = OrderedDict()

    def has_model(self, provider_name: str) -> bool:
        """Whether the provider has a model that can be asked."""
        return embedding_model(self._catalogue, provider_name) is not None

    async def of(self, owner: str, provider: Provider, provider_name: str) -> Meter | None:
        """Return the model that the owner's searches ask, None where there is none or the day's cap is used up."""
        calls = _DayCalls(owner, self._spend, self._cap_day_usd)
        model = embedding_model(self._catalogue, provider_name)
        if model is None or (model.prices and await calls.passed() is not None):
            return None
        name = (id(provider), owner)
        if name not in self._meters:
            embedder = embedder_of(provider, model)
            if embedder is None:
                return None
            self._meters[name] = provider, Meter(model, embedder, self._breakers.of(provider, model.id), calls)
        self._meters.move_to_end(name)
        while len(self._meters) > _MOST_KEPT:
            self._meters.popitem(last=False)
        return self._meters[name][1]

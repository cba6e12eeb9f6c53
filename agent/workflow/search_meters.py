"""The models that are asked outside of turns: those that embed for searches of the gallery, and the one that writes out
a wish. What they cost is on record for the day, and under its cap."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable

from agent.providers.base import Provider
from agent.providers.catalogue import Catalogue
from agent.storage.spend import SpendBook
from agent.workflow.day_calls import DayCalls
from agent.workflow.fuller_wishes import Writer
from agent.workflow.metering import Meter, embedder_of, embedding_model
from agent.workflow.retrying import Breakers
from agent.workflow.sponsoring import ChargeFn

# On a shared link many owners are served by the operator's one key.
_MOST_KEPT = 64


class SearchMeters:
    """A meter for each owner and key, kept so that a model that failed is left alone by the next search as well.

    `cap_day_usd` tells what an owner may spend in a day. `charge` puts a call on the account of whoever pays in their
    place.
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
        self._meters: OrderedDict[tuple[int, str, bool], tuple[Provider, Meter]] = OrderedDict()

    def calls(self, owner: str, charge: ChargeFn | None = None) -> DayCalls:
        """Return where the owner's calls are put on record that no turn makes."""
        return DayCalls(owner, self._spend, self._cap_day_usd, charge)

    def writer(self, owner: str, provider: Provider, provider_name: str, charge: ChargeFn | None = None) -> Writer:
        """Return what the owner's wishes are written out with."""
        return Writer(self._catalogue, provider_name, provider, self._breakers, self.calls(owner, charge))

    def has_model(self, provider_name: str) -> bool:
        """Whether the provider has a model that can be asked."""
        return embedding_model(self._catalogue, provider_name) is not None

    async def of(
        self, owner: str, provider: Provider, provider_name: str, charge: ChargeFn | None = None
    ) -> Meter | None:
        """Return the model that the owner's searches ask, None where there is none or the day's cap is used up."""
        calls = self.calls(owner, charge)
        model = embedding_model(self._catalogue, provider_name)
        if model is None or (model.prices and await calls.passed() is not None):
            return None
        name = (id(provider), owner, charge is not None)
        if name not in self._meters:
            embedder = embedder_of(provider, model)
            if embedder is None:
                return None
            self._meters[name] = provider, Meter(model, embedder, self._breakers.of(provider, model.id), calls)
        self._meters.move_to_end(name)
        while len(self._meters) > _MOST_KEPT:
            self._meters.popitem(last=False)
        return self._meters[name][1]

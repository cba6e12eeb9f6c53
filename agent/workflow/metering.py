"""Models whose calls are put on record whoever has them asked: embedding models, in a turn or in a search of the
gallery, and the one that writes out a wish. What is asked outside of turns is added to what the day has cost, and none
of it asked beyond the day's cap."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Protocol

from cachetools import LRUCache

from agent.errors import AivistaError, ErrorCode, RequestRefused, error_from_info
from agent.events import CapPassed
from agent.messages import TokenUsage
from agent.providers.base import Embedder, Provider
from agent.providers.catalogue import Catalogue, ModelEntry, ModelRole
from agent.spending import Caps, SoFar, format_usd, used_up
from agent.storage.spend import SpendBook
from agent.workflow.model_answers import Answer, CircuitBreaker, CircuitBreakers, paused
from agent.workflow.sponsoring import ChargeFn

# On a shared link many owners are served by the operator's one key.
_MOST_KEPT = 64
_log = logging.getLogger(__name__)


class CallRecorder(Protocol):
    """Where the calls of a meter are put on record."""

    async def send(self, model: ModelEntry) -> str:
        """Note that a call leaves now, and return its name. Raises AivistaError when it must not be made."""
        ...

    async def end(self, name: str, model: ModelEntry, answer: Answer) -> None:
        """Note how the call ended, and what it cost."""
        ...

    def cancel(self, name: str) -> None:
        """Note that the call was given up before its answer came."""
        ...


# Whoever asks by it knows embedders by what they are, not by what they have used.
@dataclass(eq=False)
class UsageMeter:
    """An embedding model, and the tokens it has used since this meter was made.

    Each of its calls is in the book. A model that fails again and again is left alone for a while, whoever asks it.
    """

    model: ModelEntry
    embedder: Embedder
    breaker: CircuitBreaker
    recorder: CallRecorder
    usage: TokenUsage = field(default_factory=TokenUsage)

    @property
    def model_id(self) -> str:
        """The model whose vectors these are."""
        return self.embedder.model_id

    @property
    def dimension(self) -> int:
        """How many numbers a vector has."""
        return self.embedder.dimension

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Return one vector for each text, in order. Raises AivistaError."""
        left_s = self.breaker.admit()
        if left_s is not None:
            raise error_from_info(paused(self.model.label, self.breaker, left_s))
        try:
            name = await self.recorder.send(self.model)
        except BaseException:
            self.breaker.release()
            raise
        try:
            embedding = await self.embedder.embed(texts)
        except AivistaError as error:
            await self._end(name, Answer(error=error.info))
            raise
        except asyncio.CancelledError:
            self.breaker.release()
            self.recorder.cancel(name)
            raise
        self.usage += embedding.usage
        await self._end(name, Answer(usage=embedding.usage))
        return embedding.vectors

    async def _end(self, name: str, answer: Answer) -> None:
        self.breaker.note(answer.error)
        await self.recorder.end(name, self.model, answer)


def embedding_model(catalogue: Catalogue, provider_name: str) -> ModelEntry | None:
    """Return the provider's model that embeds, None where it has none."""
    entries = (one for one in catalogue.entries if one.role is ModelRole.EMBEDDING)
    return next((one for one in entries if one.provider == provider_name), None)


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


@dataclass(frozen=True)
class PromptWriter:
    """Who writes wishes out: the text models of a provider, and where their calls are put on record."""

    catalogue: Catalogue
    provider_name: str
    provider: Provider
    breakers: CircuitBreakers
    calls: DayCalls


class OwnerMeters:
    """A meter for each owner and key, kept so that a model that failed is left alone by the next search as well.

    `cap_day_usd` tells what an owner may spend in a day. `charge` puts a call on the account of whoever pays in their
    place.
    """

    def __init__(
        self,
        catalogue: Catalogue,
        breakers: CircuitBreakers,
        spend: SpendBook,
        cap_day_usd: Callable[[str], Awaitable[float | None]],
    ) -> None:
        self._catalogue = catalogue
        self._breakers = breakers
        self._spend = spend
        self._cap_day_usd = cap_day_usd
        # By the provider's identity, which nothing else takes while the provider is held here.
        self._meters: LRUCache[tuple[int, str, bool], tuple[Provider, UsageMeter]] = LRUCache(_MOST_KEPT)

    def calls(self, owner: str, charge: ChargeFn | None = None) -> DayCalls:
        """Return where the owner's calls are put on record that no turn makes."""
        return DayCalls(owner, self._spend, self._cap_day_usd, charge)

    def writer(
        self, owner: str, provider: Provider, provider_name: str, charge: ChargeFn | None = None
    ) -> PromptWriter:
        """Return what the owner's wishes are written out with."""
        return PromptWriter(self._catalogue, provider_name, provider, self._breakers, self.calls(owner, charge))

    def has_model(self, provider_name: str) -> bool:
        """Whether the provider has a model that can be asked."""
        return embedding_model(self._catalogue, provider_name) is not None

    async def of(
        self, owner: str, provider: Provider, provider_name: str, charge: ChargeFn | None = None
    ) -> UsageMeter | None:
        """Return the model that the owner's searches ask, None where there is none or the day's cap is used up."""
        calls = self.calls(owner, charge)
        model = embedding_model(self._catalogue, provider_name)
        if model is None or (model.prices and await calls.passed() is not None):
            return None
        name = (id(provider), owner, charge is not None)
        if name not in self._meters:
            embedder = provider.embedder(model)
            if embedder is None:
                return None
            self._meters[name] = provider, UsageMeter(model, embedder, self._breakers.of(provider, model.id), calls)
        return self._meters[name][1]

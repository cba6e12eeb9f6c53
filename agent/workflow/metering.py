"""Metered model calls: embedding models, in a turn or in a gallery search, and the text model that expands prompts.

Calls outside of turns are added to the day's spending, and are refused when the day's cap is used up."""

from __future__ import annotations

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

# With a shared link, many owners use the operator's one key.
_MOST_KEPT = 64
_log = logging.getLogger(__name__)


class CallRecorder(Protocol):
    """Records the calls of a meter."""

    async def send(self, model: ModelEntry) -> str:
        """Record that a call is being sent, and return its name. Raises AivistaError when it must not be made."""
        ...

    async def end(self, name: str, model: ModelEntry, answer: Answer) -> None:
        """Record how the call ended, and its cost."""
        ...

    def cancel(self, name: str) -> None:
        """Record that the call was cancelled before its answer."""
        ...


# Compared by identity: `usage` changes, but it stays the same embedder to its users.
@dataclass(eq=False)
class UsageMeter:
    """An embedding model, and the tokens it has used since this meter was created.

    Each call is recorded by `recorder`. A model that fails repeatedly is not called for a while, by any user of its
    `breaker`.
    """

    model: ModelEntry
    embedder: Embedder
    breaker: CircuitBreaker
    recorder: CallRecorder
    usage: TokenUsage = field(default_factory=TokenUsage)

    @property
    def model_id(self) -> str:
        """The id of the embedding model."""
        return self.embedder.model_id

    @property
    def dimension(self) -> int:
        """The length of a vector."""
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
        except BaseException:
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
    """Return the provider's embedding model, None when it has none."""
    entries = (one for one in catalogue.entries if one.role is ModelRole.EMBEDDING)
    return next((one for one in entries if one.provider == provider_name), None)


@dataclass(frozen=True)
class DayCalls:
    """The calls of an owner outside of turns: their cost is added to the day's spending.

    No call is made when the day's cap is used up; `cap_day_usd` returns an owner's cap per day. The cost of a call that
    the studio's end interrupts stays unknown. `charge` charges a call to the sponsor who pays for the owner, also when
    the call ends long after its search.
    """

    owner: str
    spend: SpendBook
    cap_day_usd: Callable[[str], Awaitable[float | None]]
    charge: ChargeFn | None = None

    async def send(self, model: ModelEntry) -> str:
        """Check the day's cap before a call. Raises RequestRefused(DAY_CAP_USED_UP) when it must not be made."""
        cap = await self.passed() if model.prices else None
        if cap is not None:
            raise RequestRefused(
                ErrorCode.DAY_CAP_USED_UP, cap=format_usd(cap.cap_usd), spent=format_usd(cap.spent_usd)
            )
        return ""

    async def end(self, name: str, model: ModelEntry, answer: Answer) -> None:
        """Add the cost of the call to the day's spending. Raises StorageFailure."""
        price_usd = model.price_usd(answer.usage, datetime.now(UTC).date())
        _log.debug("%s was asked outside of a turn: %d tokens, $%.6f", model.id, answer.usage.total_tokens, price_usd)
        await self.spend.add(self.owner, price_usd, answer.usage.total_tokens)
        if self.charge is not None:
            await self.charge(price_usd)

    def cancel(self, name: str) -> None:
        """Do nothing: the cost of a cancelled call is unknown."""

    async def passed(self) -> CapPassed | None:
        """Return the owner's cap for the day if it is used up, else None."""
        cap_usd = await self.cap_day_usd(self.owner)
        if cap_usd is None:
            return None
        spent_usd = (await self.spend.sums(self.owner)).day_usd
        return used_up(Caps(day_usd=cap_usd), SoFar(day_usd=spent_usd))


@dataclass(frozen=True)
class PromptWriter:
    """The text models that expand prompts, and the record of their calls."""

    catalogue: Catalogue
    provider_name: str
    provider: Provider
    breakers: CircuitBreakers
    calls: DayCalls


class OwnerMeters:
    """A meter for each owner and key, cached so that the next search also avoids a model that failed.

    `cap_day_usd` returns an owner's cap per day. `charge` charges a call to the sponsor who pays for the owner.
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
        # The key has the provider's `id`, which is unique because the value holds a reference to the provider.
        self._meters: LRUCache[tuple[int, str, bool], tuple[Provider, UsageMeter]] = LRUCache(_MOST_KEPT)

    def calls(self, owner: str, charge: ChargeFn | None = None) -> DayCalls:
        """Return the record of the owner's calls outside of turns."""
        return DayCalls(owner, self._spend, self._cap_day_usd, charge)

    def writer(
        self, owner: str, provider: Provider, provider_name: str, charge: ChargeFn | None = None
    ) -> PromptWriter:
        """Return the writer that expands the owner's prompts."""
        return PromptWriter(self._catalogue, provider_name, provider, self._breakers, self.calls(owner, charge))

    def has_model(self, provider_name: str) -> bool:
        """Return whether the provider has an embedding model."""
        return embedding_model(self._catalogue, provider_name) is not None

    async def of(
        self, owner: str, provider: Provider, provider_name: str, charge: ChargeFn | None = None
    ) -> UsageMeter | None:
        """Return the meter for the owner's searches, None without an embedding model or with the day's cap used up."""
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

"""The embedding model of a turn, as the style library asks it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field

from agent.errors import AivistaError, ErrorCode, ProviderFailure
from agent.messages import TokenUsage
from agent.providers.base import Embedder
from agent.providers.catalogue import ModelEntry, ModelRole
from agent.workflow.deps import Deps
from agent.workflow.hearing import Answer
from agent.workflow.retrying import Breaker

logger = logging.getLogger(__name__)


# The library knows embedders by what they are, not by what they have used.
@dataclass(eq=False)
class Meter:
    """An embedding model, and the tokens it has used since this meter was made.

    Each of its calls has a row in the journal, `name` and a number. One that the journal knows already is not made
    again: a turn that goes on after a crash finds its styles by name. A model that fails again and again is left alone
    for a while, as the turn's other models are.
    """

    model: ModelEntry
    embedder: Embedder
    breaker: Breaker
    deps: Deps
    name: str
    usage: TokenUsage = field(default_factory=TokenUsage)
    _calls: int = 0

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
        if self.breaker.blocks():
            raise ProviderFailure(ErrorCode.OVERLOADED, model=self.model.label)
        self._calls += 1
        name, ledger = f"{self.name}.{self._calls}", self.deps.ledger
        if name in ledger.known:
            raise ProviderFailure(ErrorCode.CALL_UNKNOWN, model=self.model.label)
        ledger.queue(name, self.model)
        await ledger.send(name)
        try:
            embedding = await self.embedder.embed(texts)
        except AivistaError as error:
            await self._end(name, Answer(error=error.info))
            raise
        except asyncio.CancelledError:
            ledger.cancel(name)
            raise
        self.usage += embedding.usage
        await self._end(name, Answer(usage=embedding.usage))
        return embedding.vectors

    async def _end(self, name: str, answer: Answer) -> None:
        self.breaker.note(answer.error)
        price_usd = self.deps.spend(self.model, answer.usage).price_usd
        await self.deps.ledger.end(name, answer, price_usd, is_text=True)


def meter_of(deps: Deps, name: str) -> Meter | None:
    """Return the embedding model behind the key that serves the turn, or None where there is none."""
    entries = deps.catalogue.entries
    ours = (one for one in entries if one.role is ModelRole.EMBEDDING and one.provider == deps.provider_name)
    model = next(ours, None)
    embedder = deps.provider.embedder(model) if model is not None else None
    if model is None or embedder is None:
        return None
    return Meter(model, embedder, deps.breakers.of(deps.provider, model.id), deps, name)


async def learn_styles(deps: Deps, meter: Meter) -> None:
    """Have the model read the curated styles, for the wishes to come. What it costs is in the log, in no turn."""
    try:
        await deps.styles.learn_meaning(meter)
    except (AivistaError, ValueError) as error:
        logger.warning("the model %s did not read the styles, they are found by their names: %s", meter.model_id, error)
        return
    spent = deps.spend(meter.model, meter.usage)
    logger.info(
        "the model %s has read the styles: %d tokens, $%.4f", meter.model_id, spent.usage.total_tokens, spent.price_usd
    )

"""The embedding model of a turn, as the style library asks it."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from agent.errors import AivistaError, ErrorCode, ProviderFailure
from agent.providers.base import Embedder, Embedding
from agent.providers.catalogue import ModelEntry
from agent.workflow.deps import Deps
from agent.workflow.hearing import Answer
from agent.workflow.metering import Meter, embedding_model

logger = logging.getLogger(__name__)


@dataclass
class _TurnCalls:
    """The calls of a turn's meter: each has a row in the journal, `name` and a number.

    One that the journal knows already is not made again: a turn that goes on after a crash finds its styles by name.
    """

    deps: Deps
    name: str
    newest: str = ""
    _count: int = 0

    async def send(self, model: ModelEntry) -> str:
        self._count += 1
        name, ledger = f"{self.name}.{self._count}", self.deps.ledger
        if name in ledger.known:
            raise ProviderFailure(ErrorCode.CALL_UNKNOWN, model=model.label)
        ledger.queue(name, model)
        await ledger.send(name)
        self.newest = name
        return name

    async def end(self, name: str, model: ModelEntry, answer: Answer) -> None:
        price_usd = self.deps.spend(model, answer.usage).price_usd
        await self.deps.ledger.end(name, answer, price_usd, is_repeatable=True)

    def cancel(self, name: str) -> None:
        self.deps.ledger.cancel(name)


@dataclass
class _Traced:
    """An embedding model whose calls are steps of the turn."""

    embedder: Embedder
    model: ModelEntry
    calls: _TurnCalls

    @property
    def model_id(self) -> str:
        return self.embedder.model_id

    @property
    def dimension(self) -> int:
        return self.embedder.dimension

    async def embed(self, texts: Sequence[str]) -> Embedding:
        deps = self.calls.deps
        with deps.trace.call(self.calls.newest, self.model, tuple(texts)) as step:
            embedding = await self.embedder.embed(texts)
            step.embed(embedding, deps.spend(self.model, embedding.usage).price_usd)
        return embedding


def meter_of(deps: Deps, name: str) -> Meter | None:
    """Return the embedding model behind the key that serves the turn, or None where there is none."""
    model = embedding_model(deps.catalogue, deps.provider_name)
    embedder = deps.provider.embedder(model) if model is not None else None
    if model is None or embedder is None:
        return None
    calls = _TurnCalls(deps, name)
    return Meter(model, _Traced(embedder, model, calls), deps.breakers.of(deps.provider, model.id), calls)


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

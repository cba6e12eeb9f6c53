"""The embedding model of a turn, as the style library asks it."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field

from agent.errors import AivistaError, ErrorCode, ProviderFailure
from agent.messages import TokenUsage
from agent.providers.base import Embedder
from agent.providers.catalogue import ModelEntry, ModelRole
from agent.workflow.deps import Deps
from agent.workflow.retrying import Breaker

logger = logging.getLogger(__name__)


# The library knows embedders by what they are, not by what they have used.
@dataclass(eq=False)
class Meter:
    """An embedding model, and the tokens it has used since this meter was made.

    A model that fails again and again is left alone for a while, as the turn's other models are.
    """

    model: ModelEntry
    embedder: Embedder
    breaker: Breaker
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
        if self.breaker.blocks():
            raise ProviderFailure(ErrorCode.OVERLOADED, model=self.model.label)
        try:
            answer = await self.embedder.embed(texts)
        except AivistaError as error:
            self.breaker.note(error.info)
            raise
        self.breaker.note(None)
        self.usage += answer.usage
        return answer.vectors


def meter_of(deps: Deps) -> Meter | None:
    """Return the embedding model behind the key that serves the turn, or None where there is none."""
    entries = deps.catalogue.entries
    ours = (one for one in entries if one.role is ModelRole.EMBEDDING and one.provider == deps.provider_name)
    model = next(ours, None)
    embedder = deps.provider.embedder(model) if model is not None else None
    if model is None or embedder is None:
        return None
    return Meter(model, embedder, deps.breakers.of(deps.provider, model.id))


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

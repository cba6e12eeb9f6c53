"""An embedding model whose calls are put on record, whoever has it asked: a turn, or a search of the gallery."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from agent.errors import AivistaError, error_from_info
from agent.messages import TokenUsage
from agent.providers.base import Embedder, Provider
from agent.providers.catalogue import Catalogue, ModelEntry, ModelRole
from agent.workflow.hearing import Answer
from agent.workflow.retrying import Breaker, paused


class CallBook(Protocol):
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
class Meter:
    """An embedding model, and the tokens it has used since this meter was made.

    Each of its calls is in the book. A model that fails again and again is left alone for a while, whoever asks it.
    """

    model: ModelEntry
    embedder: Embedder
    breaker: Breaker
    book: CallBook
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
            name = await self.book.send(self.model)
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
            self.book.cancel(name)
            raise
        self.usage += embedding.usage
        await self._end(name, Answer(usage=embedding.usage))
        return embedding.vectors

    async def _end(self, name: str, answer: Answer) -> None:
        self.breaker.note(answer.error)
        await self.book.end(name, self.model, answer)


def embedding_model(catalogue: Catalogue, provider_name: str) -> ModelEntry | None:
    """Return the provider's model that embeds, None where it has none."""
    entries = (one for one in catalogue.entries if one.role is ModelRole.EMBEDDING)
    return next((one for one in entries if one.provider == provider_name), None)


def embedder_of(provider: Provider, model: ModelEntry | None) -> Embedder | None:
    """Return the embedding model behind the provider's key, None where there is none."""
    return provider.embedder(model) if model is not None else None

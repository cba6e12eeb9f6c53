"""Gemini's embedding model: texts become vectors, a hundred in a call.

Importing this module loads Google's SDK, as `agent.providers.gemini` does.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from google.genai import types

from agent.errors import ErrorCode, ProviderFailure
from agent.messages import TokenUsage
from agent.providers.base import Embedding
from agent.providers.catalogue import ModelEntry
from agent.providers.gemini_connection import GeminiCall, GeminiConnection

# The API takes no more in one call.
_MOST_TEXTS = 100


class GeminiEmbedder:
    """The `Embedder` of one key: vectors of length 1 with `dimension` numbers.

    The model's full 3072 numbers tell little more of short texts than the first 768, and take four times the room.
    The connection belongs to whoever gives it, and is closed there. Nothing is tried twice here.
    """

    def __init__(
        self, connection: GeminiConnection, model: ModelEntry, *, dimension: int = 768, timeout_s: float = 20
    ) -> None:
        self._connection = connection
        self._model = model
        self._dimension = dimension
        self._timeout_s = timeout_s

    @property
    def model_id(self) -> str:
        """The model whose vectors these are."""
        return self._model.id

    @property
    def dimension(self) -> int:
        """How many numbers a vector has."""
        return self._dimension

    async def embed(self, texts: Sequence[str]) -> Embedding:
        """Return one vector for each text, in order. Raises the errors of `agent.errors`, never the SDK's.

        The tokens are those of the answer's `usageMetadata`, which `gemini-embedding-2` sends; a model whose answer
        has none counts as having used none.
        """
        vectors: list[list[float]] = []
        usage = TokenUsage()
        for start in range(0, len(texts), _MOST_TEXTS):
            part = await self._batch(texts[start : start + _MOST_TEXTS])
            vectors, usage = vectors + part.vectors, usage + part.usage
        return Embedding(vectors, usage)

    async def _batch(self, texts: Sequence[str]) -> Embedding:
        models = self._connection.client().aio.models
        # A list of plain texts would become one content of many parts, and one vector for all of them.
        contents: list[types.ContentUnionDict] = [types.Content(parts=[types.Part(text=text)]) for text in texts]
        config = types.EmbedContentConfig(output_dimensionality=self._dimension)
        call = GeminiCall(self._timeout_s)
        try:
            work = models.embed_content(model=self._model.id, contents=contents, config=config)
            answer = await self._connection.attend(work, call, self._model)
        finally:
            if call.response is not None:
                await call.response.aclose()
        vectors = [_of_length_1(embedding.values or []) for embedding in answer.embeddings or ()]
        if len(vectors) != len(texts) or any(len(vector) != self._dimension for vector in vectors):
            raise ProviderFailure(ErrorCode.EMPTY_ANSWER, provider_detail="not one vector for each text")
        told = answer.usage_metadata
        return Embedding(vectors, TokenUsage(prompt_tokens=(told.prompt_token_count or 0) if told else 0))


def _of_length_1(vector: Sequence[float]) -> list[float]:
    # Only the full vector comes at length 1; a shortened one may not.
    length = math.hypot(*vector)
    return [value / length for value in vector] if length else []

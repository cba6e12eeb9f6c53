"""Deterministic unit vectors: texts that share words point the same way."""

from __future__ import annotations

import hashlib
import math
import re
from functools import lru_cache

from tests.wire_server.refusals import Json
from tests.wire_server.request import text_of


def vector(text: str, dimensions: int) -> list[float]:
    """Return the sum of the words' own directions, of length 1."""
    words = re.findall(r"\w+", text.lower()) or [text]
    sums = [float(sum(column)) for column in zip(*(_direction(word, dimensions) for word in words), strict=True)]
    length = math.sqrt(sum(value * value for value in sums)) or 1.0
    return [value / length for value in sums]


def answer(body: Json, dimensions: int) -> Json:
    """Return the response of batchEmbedContents, or of embedContent for a single content."""
    if "requests" in body:
        usage = _usage(body["requests"])
        return {"embeddings": [_embedding(entry, dimensions) for entry in body["requests"]], "usageMetadata": usage}
    return {"embedding": _embedding(body, dimensions), "usageMetadata": _usage([body])}


def _usage(entries: list[Json]) -> Json:
    # Here it is `promptTokenDetails`; an answer in words has `promptTokensDetails`.
    tokens = sum(len(text_of(entry["content"])) // 4 + 1 for entry in entries)
    return {"promptTokenCount": tokens, "promptTokenDetails": [{"modality": "TEXT", "tokenCount": tokens}]}


def _embedding(entry: Json, dimensions: int) -> Json:
    return {"values": vector(text_of(entry["content"]), int(entry.get("outputDimensionality", dimensions)))}


@lru_cache(maxsize=512)
def _direction(word: str, dimensions: int) -> tuple[float, ...]:
    return tuple(value - 127.5 for value in hashlib.shake_256(word.encode()).digest(dimensions))

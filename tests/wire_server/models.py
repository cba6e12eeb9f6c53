"""The models this server knows, as Google documents them, and what they answer without a script.

The table is the server's own: independent of the code under test.
"""

from __future__ import annotations

import base64
import hashlib
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache
from typing import Any

from tests.support.tables import table
from tests.wire_server.refusals import Json, Refused

MAX_PICTURES = 14
_TABLE = table("wire_models")
_SETS = ("thinking_levels", "ratios", "sizes")
_SCALE = {"512": 0.5, "1K": 1.0, "2K": 2.0, "4K": 4.0}


class Kind(StrEnum):
    """What a model makes; each kind has its own queue of answers."""

    TEXT = "text"
    IMAGE = "image"
    EMBEDDING = "embedding"


@dataclass(frozen=True)
class WireModel:
    """One model: what it makes and what it takes. Thinking levels in capitals; no levels means no thinking."""

    name: str
    kind: Kind
    thinking_levels: frozenset[str] = frozenset()
    ratios: frozenset[str] = frozenset()
    sizes: frozenset[str] = frozenset()
    has_search: bool = False
    has_image_search: bool = False
    image_tokens: dict[str, int] = field(default_factory=dict)
    dimensions: int = 0

    @property
    def methods(self) -> tuple[str, ...]:
        """The methods of the REST API this model answers."""
        if self.kind is Kind.EMBEDDING:
            return ("embedContent", "batchEmbedContents", "countTokens")
        return ("generateContent", "streamGenerateContent", "countTokens")


def pixels(ratio: str, size: str) -> tuple[int, int]:
    """Return the width and height of a picture of this ratio and size."""
    width, height = _TABLE["pixels_1k"][ratio]
    return int(width * _SCALE[size]), int(height * _SCALE[size])


def nearest_ratio(width: int, height: int, ratios: frozenset[str]) -> str:
    """Return the ratio closest to this shape."""
    shapes = {ratio: wide / high for ratio, (wide, high) in _TABLE["pixels_1k"].items() if ratio in ratios}
    return min(sorted(shapes), key=lambda ratio: abs(shapes[ratio] - width / height))


def _model(name: str, fields: dict[str, Any]) -> WireModel:
    sets: dict[str, Any] = {each: frozenset(value.split()) for each, value in fields.items() if each in _SETS}
    return WireModel(name, **fields | sets | {"kind": Kind(fields.get("kind", "text"))})


MODELS = {name: _model(name, fields) for name, fields in _TABLE["models"].items()}
RETIRED = frozenset(_TABLE["retired"])

# Without a script: the list of models, a page at a time, and vectors of texts. Texts that share words point the same
# way.

_PAGE = 50


def page(models: Sequence[WireModel], query: Mapping[str, str]) -> Json:
    """Return the page that the query asks for, and the token of the next one while there is one."""
    size, start = _size(query.get("pageSize", "")), _start(query.get("pageToken", ""))
    if start >= len(models) > 0 and start:
        raise Refused("page_token", "Page token is invalid.")
    found: Json = {"models": [listed(model) for model in models[start : start + size]]}
    if start + size < len(models):
        found["nextPageToken"] = base64.urlsafe_b64encode(f"models:{start + size}".encode()).decode()
    return found


def listed(model: WireModel) -> Json:
    """Return the model as the API describes it; one that embeds has no settings of sampling."""
    limits = {Kind.TEXT: (1_048_576, 65_536), Kind.IMAGE: (131_072, 32_768), Kind.EMBEDDING: (8_192, 1)}[model.kind]
    told: Json = {
        "name": f"models/{model.name}",
        "version": "001",
        "displayName": model.name.replace("-", " ").title(),
        "description": f"Stable version of {model.name}.",
        "inputTokenLimit": limits[0],
        "outputTokenLimit": limits[1],
        "supportedGenerationMethods": list(model.methods),
    }
    if model.kind is not Kind.EMBEDDING:
        told |= {"temperature": 1, "topP": 0.95, "topK": 64, "maxTemperature": 2}
    if model.thinking_levels:
        told["thinking"] = True
    return told


def _size(written: str) -> int:
    if not written:
        return _PAGE
    if not written.isdigit():
        raise Refused("page_size", f"Invalid value at 'page_size' (TYPE_INT32), {written!r}")
    return min(int(written) or _PAGE, 1000)


def _start(token: str) -> int:
    if not token:
        return 0
    try:
        name, _, number = base64.urlsafe_b64decode(token).decode().partition(":")
        return int(number) if name == "models" else -1
    except ValueError:
        raise Refused("page_token", "Page token is invalid.") from None


def vector(text: str, dimensions: int) -> list[float]:
    """Return the sum of the words' own directions, of length 1."""
    words = re.findall(r"\w+", text.lower()) or [text]
    sums = [float(sum(column)) for column in zip(*(_direction(word, dimensions) for word in words), strict=True)]
    length = math.sqrt(sum(value * value for value in sums)) or 1.0
    return [value / length for value in sums]


def embedded(body: Json, dimensions: int) -> Json:
    """Return the response of batchEmbedContents, or of embedContent for a single content."""
    if "requests" in body:
        usage = _spent(body["requests"])
        return {"embeddings": [_embedding(entry, dimensions) for entry in body["requests"]], "usageMetadata": usage}
    return {"embedding": _embedding(body, dimensions), "usageMetadata": _spent([body])}


def _spent(entries: list[Json]) -> Json:
    # Here it is `promptTokenDetails`; an answer in words has `promptTokensDetails`.
    tokens = sum(len(text_of(entry["content"])) // 4 + 1 for entry in entries)
    return {"promptTokenCount": tokens, "promptTokenDetails": [{"modality": "TEXT", "tokenCount": tokens}]}


def _embedding(entry: Json, dimensions: int) -> Json:
    return {"values": vector(text_of(entry["content"]), int(entry.get("outputDimensionality", dimensions)))}


@lru_cache(maxsize=512)
def _direction(word: str, dimensions: int) -> tuple[float, ...]:
    return tuple(value - 127.5 for value in hashlib.shake_256(word.encode()).digest(dimensions))


def text_of(content: Json) -> str:
    """Return the text parts of a content, joined."""
    return "".join(part.get("text", "") for part in content.get("parts", []) if not part.get("thought"))

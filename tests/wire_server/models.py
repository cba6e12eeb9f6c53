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

from tests.wire_server.refusals import Json, Refused

MAX_PICTURES = 14
# Pixels at 1K, width first; 512, 2K and 4K are this times 0.5, 2 and 4.
_PIXELS_1K = {
    "1:1": (1024, 1024),
    "1:4": (512, 2048),
    "1:8": (384, 3072),
    "2:3": (848, 1264),
    "3:2": (1264, 848),
    "3:4": (896, 1200),
    "4:1": (2048, 512),
    "4:3": (1200, 896),
    "4:5": (928, 1152),
    "5:4": (1152, 928),
    "8:1": (3072, 384),
    "9:16": (768, 1376),
    "16:9": (1376, 768),
    "21:9": (1584, 672),
}
_SCALE = {"512": 0.5, "1K": 1.0, "2K": 2.0, "4K": 4.0}
ALL_RATIOS = frozenset(_PIXELS_1K)
COMMON_RATIOS = ALL_RATIOS - {"1:4", "4:1", "1:8", "8:1"}


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
    width, height = _PIXELS_1K[ratio]
    return int(width * _SCALE[size]), int(height * _SCALE[size])


def nearest_ratio(width: int, height: int, ratios: frozenset[str]) -> str:
    """Return the ratio closest to this shape."""
    return min(sorted(ratios), key=lambda ratio: abs(_PIXELS_1K[ratio][0] / _PIXELS_1K[ratio][1] - width / height))


_FLASH_TOKENS = {"512": 747, "1K": 1120, "2K": 1680, "4K": 2520}
_PRO_TOKENS = {"1K": 1120, "2K": 1120, "4K": 2000}
_THREE, _FOUR = "LOW MEDIUM HIGH", "MINIMAL LOW MEDIUM HIGH"


def _model(name: str, levels: str, kind: Kind = Kind.TEXT, *, has_search: bool = True, **fields: Any) -> WireModel:
    return WireModel(name, kind, frozenset(levels.split()), has_search=has_search, **fields)


def _painter(name: str, levels: str, *sizes: str, tokens: dict[str, int], **fields: Any) -> WireModel:
    given: dict[str, Any] = {"ratios": COMMON_RATIOS, "sizes": frozenset(sizes), "image_tokens": tokens, **fields}
    return _model(name, levels, Kind.IMAGE, **given)


_ALL = (
    _model("gemini-3.8-flash", _THREE),
    _model("gemini-3.6-flash", _FOUR),
    _model("gemini-3.5-flash-lite", _FOUR),
    _model("gemini-4-hydrogen", "LOW MEDIUM HIGH XHIGH"),
    _model("gemini-4-argon", _THREE),
    _model("gemini-4-carbon", _THREE),
    _model("gemini-3.1-pro-preview", _THREE),
    _painter(
        "gemini-nano-banana-2.1",
        "MINIMAL MEDIUM HIGH",
        *("1K", "2K", "4K"),
        tokens=_FLASH_TOKENS,
        ratios=ALL_RATIOS,
        has_image_search=True,
    ),
    _painter("gemini-3-pro-image", _FOUR, "1K", "2K", "4K", tokens=_PRO_TOKENS),
    _painter("gemini-3.1-flash-lite-image", "MINIMAL HIGH", "1K", tokens=_FLASH_TOKENS, has_search=False),
    # Legacy, still answering: no size, no thinking, no search.
    _painter("gemini-2.5-flash-image", "", tokens={"1K": 1290}, has_search=False),
    _model("gemini-embedding-2", "", Kind.EMBEDDING, has_search=False, dimensions=3072),
    _model("gemini-embedding-001", "", Kind.EMBEDDING, has_search=False, dimensions=3072),
)
MODELS = {model.name: model for model in _ALL}
RETIRED = frozenset(
    {
        "gemini-3-pro-preview",
        "gemini-3.1-flash-image",
        "gemini-3-pro-image-preview",
        "gemini-3.1-flash-image-preview",
        "gemini-2.5-flash-image-preview",
    }
)

# Without a script: the list of models, a page at a time, and vectors of texts. Texts that share words point the same
# way.

_PAGE = 50
_MOST = 1000
_LIMITS = {Kind.TEXT: (1_048_576, 65_536), Kind.IMAGE: (131_072, 32_768), Kind.EMBEDDING: (8_192, 1)}


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
    limits = _LIMITS[model.kind]
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
    return min(int(written) or _PAGE, _MOST)


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

"""The models this server knows, as Google documents them. Its own table: independent of the code under test."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

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

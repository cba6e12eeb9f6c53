"""How long a picture usually takes: as the person's own pictures of that model and size did, else as published."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import log
from statistics import median
from typing import Protocol

from agent import AivistaError, Catalogue, GalleryPage, GalleryQuery, PaintingStarted, Receipt

# So many of the newest pictures are looked at, and so many of the right size count: models get faster and slower.
_LOOKED_AT = 40
_COUNTED = 12
# Sizes such as 1K and 2K lie a factor of four apart in pixels.
_SAME_SIZE = log(2)
# Below that nobody waits.
LEAST_S = 3.0


@dataclass(frozen=True)
class Usual:
    """How long is usual, in seconds: of the whole turn where the person's own pictures tell (`is_own`), else of one
    picture by the catalogue, which counts from `begun_s` of the turn on."""

    seconds: float
    is_own: bool
    begun_s: float = 0.0


class Pictures(Protocol):
    """Where the person's pictures are found (`Gallery`)."""

    async def page(self, owner: str, query: GalleryQuery) -> GalleryPage:
        """Return some of the owner's pictures, the newest first. Raises StorageFailure."""
        ...


async def usual_time(
    gallery: Pictures,
    catalogue: Catalogue,
    owner: str,
    provider: str,
    asked: PaintingStarted,
    elapsed_s: float,
    turn_id: str = "",
) -> Usual | None:
    """Return when the pictures asked for can be expected; None where nothing tells, or nobody would wait for it.

    Of several models the slowest counts: they paint side by side. Pictures of the turn `turn_id` do not count: the
    first of several that comes at once says nothing of the others.
    """
    labels = asked.model_label.split(" + ")
    own = [await _own_s(gallery, owner, label, asked.width * asked.height, turn_id) for label in labels]
    known = [seconds for seconds in own if seconds is not None]
    if len(known) == len(labels):
        usual = Usual(elapsed_s + max(known), is_own=True)
        return usual if usual.seconds >= LEAST_S else None
    table = published_s(catalogue, provider)
    published = max(table.get(label, 0.0) for label in labels)
    return Usual(published, is_own=False, begun_s=elapsed_s) if published >= LEAST_S else None


def published_s(catalogue: Catalogue, provider: str) -> dict[str, float]:
    """Return the seconds that a picture takes by the catalogue, by the label of the model."""
    painters = (one for one in catalogue.entries if one.provider == provider and one.aspect_ratios)
    return {one.label: one.typical_seconds for one in painters}


def usual_of(receipts: Iterable[Receipt], pixels: int) -> float | None:
    """Return the median of how long pictures of about that many pixels took; the newest come first."""
    fitting = [one.seconds for one in receipts if one.seconds > 0 and _is_alike(one.width * one.height, pixels)]
    return median(fitting[:_COUNTED]) if fitting else None


def _is_alike(pixels: int, others: int) -> bool:
    return min(pixels, others) > 0 and abs(log(pixels / others)) < _SAME_SIZE


async def _own_s(gallery: Pictures, owner: str, label: str, pixels: int, turn_id: str) -> float | None:
    receipts: Sequence[Receipt] = ()
    # Without an answer nothing is said of it; the picture comes all the same.
    with suppress(AivistaError):
        page = await gallery.page(owner, GalleryQuery(model=label, limit=_LOOKED_AT))
        earlier = [one.picture for one in page.items if one.picture.turn_id != turn_id]
        receipts = [one.receipt for one in earlier if one.receipt is not None]
    return usual_of(receipts, pixels)

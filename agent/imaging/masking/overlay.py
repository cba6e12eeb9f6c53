"""An answer over a picture: aligned once, and pasted again whenever the mask changes.

Changes beyond the mask, and the absence of changes inside it, are only reported; nothing outside the mask is written.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from agent.imaging.masking import alignment, compositing, crops, verdicts
from agent.imaging.masking.alignment import Matrix
from agent.imaging.masking.values import Box, Reason
from agent.pictures import Judgement, Placement
from agent.pixels import Bytes, Floats, Raster, encode_png, of_channels

_LEAST_LEVELS = 10.0
_FAR_PX = 24
_SEARCHED_PX = 96
# Resampling alone causes differences up to this distance along strong edges.
_LEAST_SPILL_PX = 6
_MORE_PX = 2
_TOUCHING_PX = 2
# A difference is divided by the local contrast plus this many levels.
_USUAL_LEVELS = 6.0
_LEAST_SURPRISE = 0.6
_TIMES_FAR = 1.25
_LEAST_SPILL_AREA = 60
_UNCHANGED_SHARE = 0.005


@dataclass(frozen=True)
class Reach:
    """Where an answer changed something.

    `spill_px` is the number of work frame pixels by which the mask would have to grow to include all changes, 0 for
    none; `is_unchanged` says that nothing changed inside the mask, `keeps_clear` that nothing changed near its border.
    """

    spill_px: int
    is_unchanged: bool
    keeps_clear: bool


def reach_of(sent: Bytes, shown: Floats, mask: Bytes, comparable: Bytes, clear_px: float) -> Reach:
    """Return where `shown`, the aligned answer in the original's colours, differs from what was sent.

    `mask` is 255 inside, `comparable` is 255 where the two can be compared. Differences beyond the mask count only if
    they are connected with it and at most 96 pixels away. Near the border means inside the mask, within `clear_px`.
    """
    reach = cv2.distanceTransform(np.where(mask > 0, 0, 255).astype(np.uint8), cv2.DIST_L2, 5)
    difference = _difference(sent, shown)
    surprise = difference / (_activity(sent) + _USUAL_LEVELS)
    where = comparable > 0
    far = surprise[where & (reach > _FAR_PX)][::3]
    limit = max(_LEAST_SURPRISE, _TIMES_FAR * float(np.percentile(far, 97)) if far.size else 0.0)
    differs = (surprise > limit) & (difference > _LEAST_LEVELS)
    is_unchanged = bool(where.any() and differs[mask > 0].mean() < _UNCHANGED_SHARE)
    depth = cv2.distanceTransform(np.where(mask > 0, 255, 0).astype(np.uint8), cv2.DIST_L2, 5)
    rim = differs[(mask > 0) & (depth <= clear_px)]
    keeps_clear = bool(where.any() and rim.size and rim.mean() < _UNCHANGED_SHARE)
    beyond = _touching(differs & where & (reach <= _SEARCHED_PX), mask)
    distances = reach[beyond & (mask == 0)]
    if distances.size < _LEAST_SPILL_AREA:
        return Reach(0, is_unchanged, keeps_clear)
    spill = int(np.ceil(np.percentile(distances, 97))) + _MORE_PX
    return Reach(spill if spill > _LEAST_SPILL_PX else 0, is_unchanged, keeps_clear)


def changed_area(sent: Bytes, shown: Floats, comparable: Bytes) -> Bytes:
    """Return 255 where two aligned pictures differ by more than redrawing explains, without small specks."""
    difference = _difference(sent, shown)
    where = comparable > 0
    if not where.any():
        return np.full(comparable.shape, 255, np.uint8)
    usual, spread = alignment.usual_and_spread(difference[where])
    limit = max(_LEAST_LEVELS, usual + 6 * (1.4826 * spread))
    differs = np.where((difference > limit) & where, 255, 0).astype(np.uint8)
    kernel = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (5, 5))
    clean = cv2.morphologyEx(differs, cv2.MORPH_OPEN, kernel)
    return np.asarray(cv2.morphologyEx(clean, cv2.MORPH_CLOSE, kernel, iterations=2), np.uint8)


def _difference(sent: Bytes, shown: Floats) -> Floats:
    apart = of_channels(np.maximum, np.abs(sent.astype(np.float32) - shown))
    return np.asarray(cv2.GaussianBlur(apart, (0, 0), 2), np.float32)


def _activity(sent: Bytes) -> Floats:
    """Return the local contrast: redrawing causes larger differences where there is more detail."""
    grey = np.asarray(cv2.cvtColor(sent, cv2.COLOR_RGB2GRAY), np.float32)
    detail = grey - cv2.GaussianBlur(grey, (0, 0), 4)
    return np.sqrt(cv2.GaussianBlur(np.asarray(detail * detail, np.float32), (0, 0), 4))


def _touching(differs: NDArray[np.bool_], mask: Bytes) -> NDArray[np.bool_]:
    """Return the differing pixels that are connected with the mask."""
    kernel = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (2 * _TOUCHING_PX + 1, 2 * _TOUCHING_PX + 1))
    # Thin lines along edges come from redrawing; a real spill is thicker.
    body = cv2.morphologyEx((differs | (mask > 0)).astype(np.uint8), cv2.MORPH_OPEN, kernel)
    _, labels = cv2.connectedComponents(np.bitwise_or(body, mask > 0), connectivity=8)
    own = np.unique(labels[mask > 0])
    return np.asarray((body > 0) & np.isin(labels, own[own > 0]))


_EDGE_PX = 2
_OTHER_RATIO = 0.004
# If the edit keeps this many feather widths away from the border, the feather can be that much wider, which is less
# visible. Otherwise a wider feather would leave the edit half transparent.
_CLEAR_TIMES = 2.0


@dataclass(frozen=True)
class Paste:
    """A composite and the findings of its making; `spill_px` is in pixels of the picture."""

    picture: Raster
    spill_px: int
    is_unchanged: bool


@dataclass(frozen=True)
class Surface:
    """A picture, its box that an answer covers, and the size (width, height) of the work frame over the box.

    `sent` is the box in that frame.
    """

    picture: Raster
    box: Box
    size: tuple[int, int]
    sent: Bytes

    @classmethod
    def over(cls, picture: Raster, box: Box, size: tuple[int, int]) -> Surface:
        """Return the surface for the box of a picture, with a work frame of this size (width, height)."""
        return cls(picture, box, size, fitted(crops.filled(picture, box), size))

    def outside(self, values: Bytes) -> Bytes:
        """Return 255 in the work frame within the picture and outside the mask."""
        return 255 - crops.in_frame(values, self.box, self.size, beyond=255)


@dataclass(frozen=True)
class Fit:
    """The alignment of an answer with a surface, and the judgement of how alike the two are.

    `matrix` is the affine map from the work frame to the answer resized to it; `bends` is a coarse grid (rows, columns,
    2) of the residual displacement, None when the answer is rigid. `bends` have the precision of the stored record.
    """

    matrix: Matrix
    bends: alignment.Bends | None
    judgement: Judgement


def fitted(pixels: Bytes, size: tuple[int, int]) -> Bytes:
    """Return the pixels resized to (width, height): by area to shrink, cubic to enlarge."""
    if pixels.shape[1::-1] == size:
        return pixels
    is_smaller = size[0] * size[1] < pixels.shape[0] * pixels.shape[1]
    return np.asarray(
        cv2.resize(pixels, size, interpolation=cv2.INTER_AREA if is_smaller else cv2.INTER_CUBIC), np.uint8
    )


def aligned(surface: Surface, mask: Bytes, answer: Bytes) -> Fit:
    """Return the alignment of the answer with the surface, and the verdict by the area outside the mask.

    When nothing is outside the mask, the answer is used without alignment.
    """
    size = surface.size
    outside = surface.outside(mask)
    nominals = nominal_maps(answer, size)
    if not outside.any():
        return Fit(nominals[0], None, Judgement(verdict="good", reason=Reason.COVERS_ALL))
    small = fitted(answer, size)
    template, moving = alignment.normalised(surface.sent), alignment.normalised(small)
    found = alignment.align(surface.sent, small, template, moving, outside, nominals)
    judgement = verdicts.judged(surface.sent, small, template, moving, outside, found.matrix, nominals)
    if judgement.verdict == "refused":
        return Fit(found.matrix, None, judgement)
    if judgement.reason == Reason.LITTLE_TO_ALIGN_BY and found.correlation < verdicts.TRUSTED_CORRELATION:
        # An answer that hardly correlates must not be moved by that correlation.
        return Fit(nominals[0], None, judgement)
    bends = alignment.bends_of(template, moving, outside, found.matrix)
    kept = None if bends is None else bends.astype(np.float16).astype(np.float32)
    return Fit(found.matrix, kept, judgement)


def placed(surface: Surface, fit: Fit, frame: tuple[int, int], feather_px: float) -> Placement:
    """Return the alignment of an answer in the form that is stored."""
    box, bends = surface.box, fit.bends
    rows, columns = (0, 0) if bends is None else bends.shape[:2]
    return Placement(
        box=(box.left, box.top, box.width, box.height),
        frame=frame,
        feather_px=feather_px,
        work=surface.size,
        matrix=tuple(float(value) for value in fit.matrix.ravel()),
        bends=b"" if bends is None else bends.astype(np.float16).tobytes(),
        bends_rows=rows,
        bends_columns=columns,
    )


def fit_of(placement: Placement, judgement: Judgement) -> Fit:
    """Return the alignment of an answer from its stored form."""
    matrix = np.array(placement.matrix, np.float64).reshape(2, 3)
    if not placement.bends:
        return Fit(matrix, None, judgement)
    grid = np.frombuffer(placement.bends, np.float16).astype(np.float32)
    return Fit(matrix, grid.reshape(placement.bends_rows, placement.bends_columns, 2), judgement)


def paste(surface: Surface, mask: Bytes, answer: Bytes, fit: Fit, feather_px: float) -> Paste:
    """Return the picture with the answer inside the mask, its colours matched outside this mask.

    The feather is twice as wide if the edit keeps at least that distance from the whole border.
    """
    size = surface.size
    shown = alignment.seen_through(fitted(answer, size), fit.matrix, fit.bends)
    outside = surface.outside(mask)
    comparable = outside & alignment.inside_answer(fit.matrix, outside.shape, _EDGE_PX)
    correction = compositing.colour_correction(surface.sent, shown, outside, comparable)
    placed_answer = compositing.PlacedAnswer(answer, surface.box, size, fit.matrix, fit.bends, correction)
    inside = crops.in_frame(mask, surface.box, size)
    toned = true_colours(correction, shown)
    wide_px = _CLEAR_TIMES * feather_px
    reach = reach_of(surface.sent, toned, inside, comparable, wide_px)
    result = compositing.pasted(surface.picture, mask, placed_answer, wide_px if reach.keeps_clear else feather_px)
    return Paste(result, math.ceil(reach.spill_px * surface.box.width / size[0]), reach.is_unchanged)


def true_colours(correction: compositing.Correction, shown: Floats) -> Floats:
    """Return the aligned answer in the work frame with its colours corrected."""
    height, width = shown.shape[:2]
    field = cv2.resize(correction.field, (width, height), interpolation=cv2.INTER_LINEAR)
    return np.asarray(np.clip(compositing.applied(correction.table, shown) + field, 0, 255), np.float32)


def nominal_maps(answer: Bytes, size: tuple[int, int]) -> list[Matrix]:
    """Return the maps a model may have applied on purpose: the plain frame; for another ratio stretch, crop and pad.

    Each maps the work frame (width, height) to the answer resized to it.
    """
    width, height = size
    their_height, their_width = answer.shape[:2]
    stretched = np.array([[1.0, 0, 0], [0, 1.0, 0]])
    if abs(math.log((their_width / their_height) / (width / height))) < _OTHER_RATIO:
        return [stretched]
    factors = (their_width / width, their_height / height)
    return [
        stretched,
        *(_centred(scale / factors[0], scale / factors[1], size) for scale in (max(factors), min(factors))),
    ]


def preview(picture: Raster, surface: Surface) -> bytes:
    """Return the surface's box of a picture as a PNG at the work frame's size."""
    return encode_png(Raster(fitted(crops.filled(picture, surface.box), surface.size)))


def _centred(across: float, down: float, size: tuple[int, int]) -> Matrix:
    middle = ((size[0] - 1) / 2, (size[1] - 1) / 2)
    return np.array([[across, 0, middle[0] * (1 - across)], [0, down, middle[1] * (1 - down)]])

"""Whether an answer shows the same picture outside the mask: judged by structure, tile by tile, after alignment.

The number of matching features is no criterion: another framing of the same picture matches perfectly. The
plausibility of the map detects another framing, and the correlation everything else.
"""

from __future__ import annotations

from collections.abc import Sequence

import cv2
import numpy as np
from numpy.typing import NDArray

from agent.imaging.masking.alignment import Grey, Matrix, correlated, inside_answer, is_plausible, moved, parts
from agent.imaging.masking.values import Reason
from agent.pictures import EditVerdict, Judgement
from agent.pixels import Bytes

TILE_PX = 48
TILES_NEEDED = 6
_TEXTURED_LEVELS = 2.5
_TILE_CORRELATES = 0.5
_LEAST_OF_A_TILE = 0.6
# Every answer has new grain, so the grain of a plain sky says nothing about the content of the answer.
_GRAIN_PX = 2.0
_FILLED = 0.3
_REFUSED_CORRELATION = 0.40
_REFUSED_SHARE = 0.45
_GOOD_CORRELATION = 0.50
_GOOD_SHARE = 0.65
# With few tiles, a position found with less correlation than this is not trusted.
TRUSTED_CORRELATION = 0.45


def textured_tiles(picture: Bytes, outside: Bytes) -> int:
    """Return the number of 48-pixel tiles outside the mask with structure to align by, not counting grain."""
    return int(_lasting(picture, outside).sum())


def judged(
    sent: Bytes, answer: Bytes, template: Grey, moving: Grey, outside: Bytes, matrix: Matrix, nominals: Sequence[Matrix]
) -> Judgement:
    """Return the verdict on an answer aligned by `matrix`.

    All pictures are in the work frame; `outside` is 255 outside the mask. `template` is `sent`, normalised, and
    `moving` is `answer`, normalised. `nominals` are the maps that the model may have applied on purpose.
    """
    height, width = sent.shape[:2]
    where = outside & inside_answer(matrix, outside.shape)
    fitted = moved(moving, matrix)
    textured = _textured(_grey(sent), where)
    count = int(textured.sum())
    share = float((textured & _correlating(template, fitted, where)).sum() / count) if count else 0.0
    correlation = correlated(template, fitted, where)
    shift, scale, turn_deg = parts(matrix, width, height)
    lasting = _lasting(sent, where)
    added = _lasting(answer, outside) & ~lasting
    # On a plain picture, only structure that the answer adds can count against it.
    is_filled = added.sum() > _FILLED * _by_tile(np.asarray(outside > 0, np.float32)).sum()
    verdict, reason = _verdict(
        correlation,
        share,
        count,
        int(lasting.sum()),
        is_plausible(matrix, nominals, width, height),
        is_filled=bool(is_filled),
    )
    return Judgement(
        verdict=verdict,
        reason=reason,
        correlation=correlation,
        tile_share=share,
        tiles=count,
        shift_px=float(np.hypot(*shift)),
        scale=scale,
        turn_deg=turn_deg,
    )


def _verdict(
    correlation: float, share: float, tiles: int, lasting: int, is_plausible: bool, *, is_filled: bool
) -> tuple[EditVerdict, Reason]:
    """Return the verdict; `tiles` counts tiles with structure, `lasting` those whose structure a model keeps."""
    is_alike = correlation >= _GOOD_CORRELATION and share >= _GOOD_SHARE
    if tiles < TILES_NEEDED or (lasting < TILES_NEEDED and not is_alike):
        # Too few tiles decide nothing, but a trusted map that redrawing cannot explain still refuses the answer.
        if (is_plausible or correlation < TRUSTED_CORRELATION) and not is_filled:
            return "unsure", Reason.LITTLE_TO_ALIGN_BY
        return "refused", Reason.ANOTHER_PICTURE
    if correlation < _REFUSED_CORRELATION or share < _REFUSED_SHARE:
        return "refused", Reason.ANOTHER_PICTURE
    if not is_plausible:
        return "refused", Reason.ANOTHER_FRAMING
    if is_alike:
        return "good", Reason.SAME_PICTURE
    return "unsure", Reason.WEAKLY_ALIKE


def _lasting(picture: Bytes, outside: Bytes) -> NDArray[np.bool_]:
    """Return the tiles with structure that a model keeps when it redraws the picture."""
    smooth = cv2.GaussianBlur(_grey(picture), (0, 0), _GRAIN_PX)
    return _textured(np.asarray(smooth, np.float32), outside)


def _grey(picture: Bytes) -> Grey:
    return np.asarray(cv2.cvtColor(picture, cv2.COLOR_RGB2GRAY), np.float32)


def _by_tile(values: Grey) -> Grey:
    """Return the mean of each whole tile."""
    rows, columns = values.shape[0] // TILE_PX, values.shape[1] // TILE_PX
    if not rows or not columns:
        return np.zeros((rows, columns), np.float32)
    whole = values[: rows * TILE_PX, : columns * TILE_PX]
    return np.asarray(cv2.resize(whole, (columns, rows), interpolation=cv2.INTER_AREA), np.float32)


def _textured(grey: Grey, outside: Bytes) -> NDArray[np.bool_]:
    free = (outside > 0).astype(np.float32)
    detail = grey - cv2.GaussianBlur(grey, (0, 0), 12)
    share = _by_tile(free)
    power = _by_tile(np.asarray(detail * detail * free, np.float32)) / np.maximum(share, 1e-6)
    return np.asarray((share >= _LEAST_OF_A_TILE) & (np.sqrt(power) >= _TEXTURED_LEVELS))


def _correlating(template: Grey, fitted: Grey, where: Bytes) -> NDArray[np.bool_]:
    """Return the tiles in which the two normalised pictures correlate over the pixels set in `where`."""
    free = (where > 0).astype(np.float32)
    share = np.maximum(_by_tile(free), 1e-6)

    def mean(values: Grey) -> Grey:
        return np.asarray(_by_tile(np.asarray(values * free, np.float32)) / share, np.float32)

    one, other = mean(template), mean(fitted)
    both = mean(template * fitted) - one * other
    power = (mean(template * template) - one * one) * (mean(fitted * fitted) - other * other)
    return np.asarray(both / np.sqrt(np.maximum(power, 1e-9)) > _TILE_CORRELATES)

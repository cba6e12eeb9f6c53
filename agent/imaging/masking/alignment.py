"""Alignment of an answer with the crop that was sent, by the area outside the mask: features first, then correlation.

All work is done in the work frame, about a megapixel over the crop; pixel centres are at whole numbers. The steps and
their numbers (features at 400 pixels, affine motion, locally normalised grey, a second pass without the pixels that
disagree) stayed within 0.05 px over simulated answers; see docs/benchmarks.md.

When a model redraws an answer, the affine map leaves a smooth residual displacement (a bend), measured outside the
mask. Optical flow there is averaged over tiles and extended into the mask by a Gaussian process, which falls back to
the affine map far from any tile. The bend is used only after a cross-check: a bend fitted to one half of a chequerboard
of tiles must make the other half correlate clearly better. At full size, rigid answers, including those that bleed over
the mask, gained at most 1.003 in that test, and wobbling ones 1.4 or more, so rigid answers stay exact.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from agent.pixels import Bytes

Grey = NDArray[np.float32]
Matrix = NDArray[np.float64]

_FEATURE_SIDE_PX = 400
_FEATURES = 1000
_FEATURE_CLEARANCE_PX = 6
_MASK_CLEARANCE_PX = 8
_COARSEST_SIDE_PX = 96
_ECC_BLUR_PX = 5
_LEAST_PIXELS = 400
# A later start must beat an earlier one by this margin: repeated patterns also correlate well in wrong places.
_CLEARLY_BETTER = 0.01
_LEAST_DETERMINANT, _MOST_DETERMINANT = 0.05, 20.0
_MAX_SCALE = 0.12
_MAX_TURN_DEG = 2.5
_MAX_SHIFT = 0.10
_MAX_ANISOTROPY = 0.06


@dataclass(frozen=True)
class Alignment:
    """An affine map from the work frame to the fitted answer, and the correlation it reaches outside the mask."""

    matrix: Matrix
    correlation: float


def normalised(picture: Bytes) -> Grey:
    """Return an RGB picture as grey, normalised by its local mean and contrast, so that only structure is left."""
    values = cv2.cvtColor(picture, cv2.COLOR_RGB2GRAY).astype(np.float32)
    centred = np.asarray(values - _broad(values), np.float32)
    spread = np.sqrt(np.maximum(_broad(np.asarray(centred * centred, np.float32)), 0))
    return np.asarray(centred / (spread + 3), np.float32)


def _broad(values: Grey) -> Grey:
    """Return a Gaussian blur with a sigma of 12 pixels, computed at a quarter of the size because it is smooth."""
    height, width = values.shape
    size = (max(1, width // 4), max(1, height // 4))
    small = cv2.GaussianBlur(cv2.resize(values, size, interpolation=cv2.INTER_AREA), (0, 0), 3)
    return np.asarray(cv2.resize(small, (width, height), interpolation=cv2.INTER_LINEAR), np.float32)


def align(
    sent: Bytes, answer: Bytes, template: Grey, moving: Grey, outside: Bytes, nominals: Sequence[Matrix]
) -> Alignment:
    """Return the affine map that aligns `answer` with `sent`, by the pixels `outside` (255) the mask.

    Both pictures have the work frame's size; `template` and `moving` are their normalised versions.
    `nominals` are the maps that a model may have applied on purpose to an answer of another ratio (stretched, padded,
    cropped), the most likely first.
    """
    clear = shrunk(outside, _MASK_CLEARANCE_PX)
    # How many times the frame is halved at the coarsest level.
    coarsest = min(3, int(math.log2(max(1.0, min(clear.shape) / _COARSEST_SIDE_PX))))
    best = Alignment(nominals[0], -math.inf)
    for start, is_sure in _starts(sent, answer, outside, nominals, template, moving, clear):
        found = _refined(template, moving, clear, start, range(coarsest, min(1, coarsest) - 1, -1))
        if found.correlation > best.correlation + _CLEARLY_BETTER:
            best = found
        if is_sure and best.correlation > 0.5:
            break
    # The finest level costs as much as all others: run it only for the best start, and again only when needed.
    agreeing = _agreeing(template, moving, clear, best.matrix)
    last = _ecc(template, moving, agreeing, best.matrix, 30)
    if last is not None:
        correlation = correlated(template, moved(moving, last), clear & inside_answer(last, clear.shape))
        if correlation > best.correlation - _CLEARLY_BETTER:
            return Alignment(last, correlation)
    return _refined(template, moving, clear, best.matrix, range(1))


def _starts(
    sent: Bytes, answer: Bytes, outside: Bytes, nominals: Sequence[Matrix], template: Grey, moving: Grey, clear: Bytes
) -> Iterator[tuple[Matrix, bool]]:
    """Yield the maps to start from, and whether each is sure."""
    features = _by_features(sent, answer, outside)
    if features is not None and features[1]:
        yield features
    for nominal in nominals:
        yield nominal, False
    if features is not None and not features[1]:
        yield features
    # The last is the most likely map, shifted by phase correlation.
    weights = cv2.GaussianBlur(clear.astype(np.float32) / 255, (0, 0), 4)
    (x, y), _ = cv2.phaseCorrelate(template * weights, moved(moving, nominals[0]) * weights)
    shifted = nominals[0].copy()
    shifted[:, 2] += nominals[0][:, :2] @ np.array([x, y])
    yield shifted, False


def is_plausible(matrix: Matrix, nominals: Sequence[Matrix], width: int, height: int) -> bool:
    """Return whether the map is within the drift of a redrawn answer: 12 % zoom, 2.5 degrees, 10 % shift."""
    return any(_is_near(matrix, nominal, width, height) for nominal in nominals)


def _is_near(matrix: Matrix, nominal: Matrix, width: int, height: int) -> bool:
    left = matrix[:, :2] @ np.linalg.inv(nominal[:, :2])
    across, down, turn_deg = _parts(left)
    centre = np.array([(width - 1) / 2, (height - 1) / 2, 1.0])
    shift = np.abs(matrix @ centre - nominal @ centre) / (width, height)
    return bool(
        abs(math.sqrt(max(across * down, 0)) - 1) <= _MAX_SCALE
        and abs(math.log(max(across, 1e-6) / max(down, 1e-6))) <= _MAX_ANISOTROPY
        and abs(turn_deg) <= _MAX_TURN_DEG
        and np.linalg.det(left) > 0
        and shift.max() <= _MAX_SHIFT
    )


def parts(matrix: Matrix, width: int, height: int) -> tuple[tuple[float, float], float, float]:
    """Return shift of the centre (pixels), zoom and turn (degrees) of an affine map."""
    across, down, turn_deg = _parts(matrix[:, :2])
    centre = np.array([(width - 1) / 2, (height - 1) / 2, 1.0])
    shift = matrix @ centre - centre[:2]
    return (float(shift[0]), float(shift[1])), math.sqrt(max(across * down, 0)), turn_deg


def _parts(left: NDArray[np.float64]) -> tuple[float, float, float]:
    across, down = float(np.hypot(left[0, 0], left[1, 0])), float(np.hypot(left[0, 1], left[1, 1]))
    turn = math.atan2(left[1, 0] - left[0, 1], left[0, 0] + left[1, 1])
    return across, down, math.degrees(turn)


def moved(picture: Grey, matrix: Matrix) -> Grey:
    """Return the picture warped by the map, at the same size."""
    height, width = picture.shape[:2]
    flags = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
    shown = cv2.warpAffine(picture, matrix, (width, height), flags=flags, borderMode=cv2.BORDER_REPLICATE)
    return np.asarray(shown, np.float32)


def inside_answer(matrix: Matrix, shape: tuple[int, ...], margin_px: int = 1) -> Bytes:
    """Return 255 where the map leads into the answer, at least `margin_px` away from its edge."""
    height, width = shape[:2]
    within = np.zeros((height, width), np.uint8)
    within[margin_px : height - margin_px, margin_px : width - margin_px] = 255
    flags = cv2.INTER_NEAREST | cv2.WARP_INVERSE_MAP
    return np.asarray(cv2.warpAffine(within, matrix, (width, height), flags=flags, borderValue=0.0), np.uint8)


def correlated(one: Grey, other: Grey, where: Bytes) -> float:
    """Return the normalised correlation of two normalised pictures over the pixels set in `where`; 0 if too few."""
    chosen = where > 0
    if int(chosen.sum()) < _LEAST_PIXELS:
        return 0.0
    first, second = one[chosen], other[chosen]
    first = first - first.mean(dtype=np.float64).astype(np.float32)
    second = second - second.mean(dtype=np.float64).astype(np.float32)
    power = math.sqrt(float(first @ first) * float(second @ second))
    return float(first @ second) / power if power > 1e-9 else 0.0


def scaled(matrix: Matrix, factor_x: float, factor_y: float) -> Matrix:
    """Return the map for frames that are larger by these factors; pixel centres are preserved."""
    up = np.array([[factor_x, 0, (factor_x - 1) / 2], [0, factor_y, (factor_y - 1) / 2], [0, 0, 1.0]])
    return np.asarray((up @ np.vstack([matrix, [0, 0, 1]]) @ np.linalg.inv(up))[:2])


def _by_features(sent: Bytes, answer: Bytes, outside: Bytes) -> tuple[Matrix, bool] | None:
    """Return the map that most of the matching features agree on, and whether they are enough to be sure of it."""
    height, width = sent.shape[:2]
    factor = min(1.0, _FEATURE_SIDE_PX / max(width, height))
    size = (max(8, round(width * factor)), max(8, round(height * factor)))
    free = shrunk(
        np.asarray(cv2.resize(outside, size, interpolation=cv2.INTER_NEAREST), np.uint8), _FEATURE_CLEARANCE_PX
    )
    finder = cv2.SIFT.create(nfeatures=_FEATURES, contrastThreshold=0.02)
    one = cv2.cvtColor(cv2.resize(sent, size, interpolation=cv2.INTER_AREA), cv2.COLOR_RGB2GRAY)
    other = cv2.cvtColor(cv2.resize(answer, size, interpolation=cv2.INTER_AREA), cv2.COLOR_RGB2GRAY)
    points, words = finder.detectAndCompute(one, free)
    their_points, their_words = finder.detectAndCompute(other, None)
    if words is None or their_words is None or len(their_points) < 2:
        return None
    pairs = [pair for pair in cv2.BFMatcher(cv2.NORM_L2).knnMatch(words, their_words, k=2) if len(pair) == 2]
    good = [first for first, second in pairs if first.distance < 0.8 * second.distance]
    if len(good) < 6:
        return None
    here = np.array([points[match.queryIdx].pt for match in good], np.float32)
    there = np.array([their_points[match.trainIdx].pt for match in good], np.float32)
    matrix, inliers = cv2.estimateAffine2D(here, there, method=cv2.RANSAC, ransacReprojThreshold=1.5)
    affine = np.asarray(matrix, np.float64)
    # When OpenCV finds no transform, it returns None instead of a matrix.
    if affine.shape != (2, 3):
        return None
    kept = here[np.asarray(inliers).ravel() > 0]
    cells = {(int(8 * x / size[0]), int(8 * y / size[1])) for x, y in kept}
    found = scaled(affine, width / size[0], height / size[1])
    return found, len(kept) >= 30 and len(cells) >= 8


def _refined(template: Grey, moving: Grey, clear: Bytes, start: Matrix, levels: Iterable[int]) -> Alignment:
    height, width = template.shape[:2]
    matrix = start
    for level in levels:
        size = (max(8, width >> level), max(8, height >> level))
        factors = (width / size[0], height / size[1])
        one = cv2.resize(template, size, interpolation=cv2.INTER_AREA) if level else template
        other = cv2.resize(moving, size, interpolation=cv2.INTER_AREA) if level else moving
        free = cv2.resize(clear, size, interpolation=cv2.INTER_NEAREST) if level else clear
        smaller = scaled(matrix, 1 / factors[0], 1 / factors[1])
        found = _ecc(
            np.asarray(one, np.float32), np.asarray(other, np.float32), np.asarray(free, np.uint8), smaller, 40
        )
        if found is not None:
            matrix = scaled(found, *factors)
    where = clear & inside_answer(matrix, clear.shape)
    return Alignment(matrix, correlated(template, moved(moving, matrix), where))


def _ecc(template: Grey, moving: Grey, free: Bytes, start: Matrix, iterations: int) -> Matrix | None:
    if int((free > 0).sum()) < _LEAST_PIXELS:
        return None
    criteria = (cv2.TERM_CRITERIA_EPS | cv2.TERM_CRITERIA_COUNT, iterations, 1e-5)
    every = np.full(moving.shape, 255, np.uint8)
    try:
        _, found = cv2.findTransformECCWithMask(
            template, moving, free, every, start.astype(np.float32), cv2.MOTION_AFFINE, criteria, _ECC_BLUR_PX
        )
    # OpenCV raises when two pictures do not correlate: then this start is useless.
    except cv2.error:
        return None
    matrix = np.asarray(found, np.float64)
    is_map = np.isfinite(matrix).all() and _LEAST_DETERMINANT < np.linalg.det(matrix[:, :2]) < _MOST_DETERMINANT
    return matrix if is_map else None


def _agreeing(template: Grey, moving: Grey, clear: Bytes, matrix: Matrix) -> Bytes:
    where = clear & inside_answer(matrix, clear.shape)
    residual = cv2.GaussianBlur(np.abs(template - moved(moving, matrix)), (0, 0), 2)
    chosen = residual[where > 0]
    if chosen.size < _LEAST_PIXELS:
        return where
    usual, spread = usual_and_spread(chosen)
    return np.where((where > 0) & (residual <= usual + 3 * 1.4826 * spread), 255, 0).astype(np.uint8)


def usual_and_spread(values: NDArray[np.floating | np.integer]) -> tuple[float, float]:
    """Return the median of the values, and the median of their distances from it."""
    usual = float(np.median(values))
    return usual, float(np.median(np.abs(values - usual)))


def shrunk(free: Bytes, pixels: int) -> Bytes:
    """Return the set area eroded by this many pixels; the edge of the frame does not count as a border."""
    kernel = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (2 * pixels + 1, 2 * pixels + 1))
    # Outside the frame there is nothing to keep a distance from.
    return np.asarray(cv2.erode(free, kernel, borderType=cv2.BORDER_CONSTANT, borderValue=255.0), np.uint8)


Bends = NDArray[np.float32]

_TILE_PX = 24
# The first measurement keeps a distance from anything the edit drew beyond the mask; later ones can recognise that.
_CLEARANCES_PX = (8, 3, 3)
_LENGTH_PX = 80.0
_NOISE = 0.02
_LEAST_WEIGHT = 0.08
_LEAST_TILES = 12
_LONGEST_PX = 8.0
# On held-out tiles, 1 minus the correlation must fall by at least this factor.
_LEAST_GAIN = 1.10
# Flow is fitted to at most this many tiles: the cost grows with the cube of their number.
_MOST_TILES = 2500


@dataclass(frozen=True)
class _Tiles:
    """The flow of each tile (rows by columns by x and y, pixels), its weight from 0 to 1, and the tiles' centres."""

    flow: NDArray[np.float64]
    weight: NDArray[np.float64]
    centres: NDArray[np.float64]


def bends_of(template: Grey, moving: Grey, outside: Bytes, matrix: Matrix) -> Bends | None:
    """Return the displacement in work frame pixels to apply before the affine map, on a coarse grid; None if rigid.

    Takes the normalised pictures at the work frame's size; `outside` is 255 where nothing should have changed.
    """
    if not _wobbles(template, moving, shrunk(outside, _CLEARANCES_PX[0]), matrix):
        return None
    bends: Bends | None = None
    for clearance_px in _CLEARANCES_PX:
        rest = _measured(template, moving, shrunk(outside, clearance_px), matrix, bends)
        flow = rest.flow if bends is None else rest.flow + bends
        bends = _fitted(_Tiles(flow, rest.weight, rest.centres), np.ones(rest.weight.shape, np.bool_), _LENGTH_PX)
    return bends


def _wobbles(template: Grey, moving: Grey, clear: Bytes, matrix: Matrix) -> bool:
    """Return whether a bend passes the cross-check at half the size, which costs a quarter and shows it as well."""
    height, width = template.shape[0] // 2, template.shape[1] // 2
    one = np.asarray(cv2.resize(template, (width, height), interpolation=cv2.INTER_AREA), np.float32)
    other = np.asarray(cv2.resize(moving, (width, height), interpolation=cv2.INTER_AREA), np.float32)
    free = np.asarray(cv2.resize(clear, (width, height), interpolation=cv2.INTER_NEAREST), np.uint8)
    smaller = scaled(matrix, width / template.shape[1], height / template.shape[0])
    tiles = _measured(one, other, free, smaller, None)
    return int((tiles.weight > _LEAST_WEIGHT).sum()) >= _LEAST_TILES and _helps(one, other, free, smaller, tiles)


def places(matrix: Matrix, shape: tuple[int, ...], bends: Bends | None) -> tuple[Grey, Grey]:
    """Return for every pixel of the work frame its column and row in the answer."""
    height, width = shape[:2]
    rows, columns = np.mgrid[0:height, 0:width].astype(np.float32)
    if bends is not None:
        field = cv2.resize(bends, (width, height), interpolation=cv2.INTER_CUBIC)
        columns, rows = columns + field[..., 0], rows + field[..., 1]
    x = matrix[0, 0] * columns + matrix[0, 1] * rows + matrix[0, 2]
    y = matrix[1, 0] * columns + matrix[1, 1] * rows + matrix[1, 2]
    return np.asarray(x, np.float32), np.asarray(y, np.float32)


def seen_through(picture: NDArray[np.generic], matrix: Matrix, bends: Bends | None) -> Grey:
    """Return the answer warped by the map and the bends, at the work frame's size, as floats."""
    x, y = places(matrix, picture.shape, bends)
    values = picture.astype(np.float32)
    shown = cv2.remap(values, x, y, interpolation=cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
    return np.asarray(shown, np.float32)


def _measured(template: Grey, moving: Grey, clear: Bytes, matrix: Matrix, bends: Bends | None) -> _Tiles:
    shown = seen_through(moving, matrix, bends)
    valid = (clear & inside_answer(matrix, clear.shape, 2)) > 0
    # The edit's own drawing must not influence the flow: inside the mask both pictures are made identical.
    filled = np.where(clear > 0, shown, template)
    finder = cv2.DISOpticalFlow.create(cv2.DISOpticalFlow_PRESET_MEDIUM)
    no_flow = np.zeros((*template.shape, 2), np.float32)
    flow = np.asarray(finder.calc(_as_bytes(template), _as_bytes(filled), no_flow), np.float32)
    weight = _trust(template, filled, flow, valid)
    return _by_tile(flow, weight)


def _trust(template: Grey, filled: Grey, flow: Bends, valid: NDArray[np.bool_]) -> Grey:
    height, width = template.shape
    rows, columns = np.mgrid[0:height, 0:width].astype(np.float32)
    again = cv2.remap(
        filled,
        columns + flow[..., 0],
        rows + flow[..., 1],
        interpolation=cv2.INTER_LINEAR,
        borderMode=cv2.BORDER_REPLICATE,
    )
    residual = cv2.GaussianBlur(np.abs(template - again), (0, 0), 2)
    usual = float(np.median(residual[valid])) if valid.any() else 0.0
    agrees = valid & (residual < 2.5 * usual) & (np.hypot(flow[..., 0], flow[..., 1]) < _LONGEST_PX)
    across, down = cv2.Sobel(template, cv2.CV_32F, 1, 0) / 8, cv2.Sobel(template, cv2.CV_32F, 0, 1) / 8
    detail = cv2.GaussianBlur(across * across + down * down, (0, 0), 3)
    return np.asarray(agrees * np.minimum(1, detail / 0.1), np.float32)


def _by_tile(flow: Bends, weight: Grey) -> _Tiles:
    height, width = weight.shape
    side = max(_TILE_PX, int(np.ceil(np.sqrt(height * width / _MOST_TILES))))
    size = (max(2, round(width / side)), max(2, round(height / side)))
    weights = np.asarray(cv2.resize(weight, size, interpolation=cv2.INTER_AREA), np.float64)
    weighted = cv2.resize(flow * weight[..., None], size, interpolation=cv2.INTER_AREA)
    rows, columns = np.mgrid[0 : size[1], 0 : size[0]].astype(np.float64)
    x, y = (columns + 0.5) * width / size[0] - 0.5, (rows + 0.5) * height / size[1] - 0.5
    mean = weighted.astype(np.float64) / np.maximum(weights, 1e-6)[..., None]
    return _Tiles(mean, weights, np.stack([x, y], axis=-1))


def _fitted(tiles: _Tiles, chosen: NDArray[np.bool_], length_px: float) -> Bends:
    known = chosen & (tiles.weight > _LEAST_WEIGHT)
    places_of, flow, weight = tiles.centres[known], tiles.flow[known], tiles.weight[known]
    if len(flow) < _LEAST_TILES:
        return np.zeros(tiles.flow.shape, np.float32)
    power = max(1e-6, float((weight[:, None] * flow * flow).sum() / weight.sum() / 2))
    covariance = power * _likeness(places_of, places_of, length_px)
    covariance[np.diag_indices(len(flow))] += _NOISE / weight
    solved = np.linalg.solve(covariance, flow)
    every = tiles.centres.reshape(-1, 2)
    return np.asarray((power * _likeness(every, places_of, length_px) @ solved).reshape(tiles.flow.shape), np.float32)


def _likeness(one: NDArray[np.float64], other: NDArray[np.float64], length_px: float) -> NDArray[np.float64]:
    """Return the Matérn 3/2 kernel of the distances between the points."""
    squares = (one**2).sum(axis=1)[:, None] + (other**2).sum(axis=1)[None] - 2 * one @ other.T
    far = np.sqrt(3 * np.maximum(squares, 0)) / length_px
    return np.asarray((1 + far) * np.exp(-far))


def _helps(template: Grey, moving: Grey, clear: Bytes, matrix: Matrix, tiles: _Tiles) -> bool:
    rows, columns = np.indices(tiles.weight.shape)
    half = (rows // 2 + columns // 2) % 2 == 0
    straight = seen_through(moving, matrix, None)
    within = clear & inside_answer(matrix, clear.shape, 4)
    height, width = clear.shape
    for fitted in (half, ~half):
        bent = seen_through(moving, matrix, _fitted(tiles, fitted, _LENGTH_PX / 2))
        others = np.where(fitted, 0, 255).astype(np.uint8)
        where = within & np.asarray(cv2.resize(others, (width, height), interpolation=cv2.INTER_NEAREST), np.uint8)
        gain = (1 - correlated(template, straight, where)) / max(1e-6, 1 - correlated(template, bent, where))
        if gain < _LEAST_GAIN:
            return False
    return True


def _as_bytes(structure: Grey) -> Bytes:
    return np.clip(128 + 45 * structure, 0, 255).astype(np.uint8)

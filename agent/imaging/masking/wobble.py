"""What an affine map leaves over when an answer was redrawn by eye: a smooth bend, measured outside the mask.

Optical flow outside the mask is averaged over tiles and carried into the mask by a Gaussian process, which fades to
the affine map where nothing is near. It is used only when it proves itself: a bend fitted to one half of a
chequerboard of tiles must make the other half correlate clearly better. At full size rigid answers, bleeding ones
included, gained 1.003 at most by that test and wobbling ones 1.4 and more, so rigid answers stay as exact as they are.
"""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from agent.imaging.masking.alignment import Bytes, Grey, Matrix, correlated, inside_answer, scaled, shrunk

Bends = NDArray[np.float32]

_TILE_PX = 24
_FIRST_CLEARANCE_PX = 8
# The first measurement keeps away from what the edit may have drawn beyond the mask, later ones can tell it apart.
_CLEARANCES_PX = (8, 3, 3)
_LENGTH_PX = 80.0
_NOISE = 0.02
_LEAST_WEIGHT = 0.08
_LEAST_TILES = 12
_LONGEST_PX = 8.0
# The share of what did not correlate must fall by this much on tiles that were held out.
_LEAST_GAIN = 1.10
# Flow is fitted to so many tiles at most: the cost grows with their third power.
_MOST_TILES = 2500


@dataclass(frozen=True)
class _Tiles:
    """Flow by tile (rows by columns by x and y, pixels), its weight from 0 to 1, and where the tiles' centres lie."""

    flow: NDArray[np.float64]
    weight: NDArray[np.float64]
    centres: NDArray[np.float64]


def bends_of(template: Grey, moving: Grey, outside: Bytes, matrix: Matrix) -> Bends | None:
    """Return by how many pixels of the work frame to move before the affine map, on a coarse grid, or None when rigid.

    Takes the normalised pictures at the work frame's size; `outside` is 255 where nothing was to change.
    """
    clear = shrunk(outside, _FIRST_CLEARANCE_PX)
    if not _wobbles(template, moving, clear, matrix):
        return None
    bends: Bends | None = None
    for clearance_px in _CLEARANCES_PX:
        rest = _measured(template, moving, shrunk(outside, clearance_px), matrix, bends, _TILE_PX)
        flow = rest.flow if bends is None else rest.flow + bends
        bends = _fitted(_Tiles(flow, rest.weight, rest.centres), np.ones(rest.weight.shape, np.bool_), _LENGTH_PX)
    return bends


def _wobbles(template: Grey, moving: Grey, clear: Bytes, matrix: Matrix) -> bool:
    """Return whether a bend proves itself, at half the size: there it costs a quarter and shows as well."""
    height, width = template.shape[0] // 2, template.shape[1] // 2
    one = np.asarray(cv2.resize(template, (width, height), interpolation=cv2.INTER_AREA), np.float32)
    other = np.asarray(cv2.resize(moving, (width, height), interpolation=cv2.INTER_AREA), np.float32)
    free = np.asarray(cv2.resize(clear, (width, height), interpolation=cv2.INTER_NEAREST), np.uint8)
    smaller = scaled(matrix, width / template.shape[1], height / template.shape[0])
    tiles = _measured(one, other, free, smaller, None, _TILE_PX)
    return int((tiles.weight > _LEAST_WEIGHT).sum()) >= _LEAST_TILES and _helps(one, other, free, smaller, tiles)


def spread_out(bends: Bends, width: int, height: int) -> Bends:
    """Return the bend of every pixel of a frame, height by width by x and y."""
    return np.asarray(cv2.resize(bends, (width, height), interpolation=cv2.INTER_CUBIC), np.float32)


def places(matrix: Matrix, shape: tuple[int, ...], bends: Bends | None) -> tuple[Grey, Grey]:
    """Return the column and row of the answer that every pixel of the work frame shows."""
    height, width = shape[:2]
    rows, columns = np.mgrid[0:height, 0:width].astype(np.float32)
    if bends is not None:
        field = spread_out(bends, width, height)
        columns, rows = columns + field[..., 0], rows + field[..., 1]
    x = matrix[0, 0] * columns + matrix[0, 1] * rows + matrix[0, 2]
    y = matrix[1, 0] * columns + matrix[1, 1] * rows + matrix[1, 2]
    return np.asarray(x, np.float32), np.asarray(y, np.float32)


def seen_through(picture: NDArray[np.generic], matrix: Matrix, bends: Bends | None) -> Grey:
    """Return the answer as seen through the whole map, at the work frame's size, as floats."""
    x, y = places(matrix, picture.shape, bends)
    values = picture.astype(np.float32)
    shown = cv2.remap(values, x, y, interpolation=cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
    return np.asarray(shown, np.float32)


def _measured(template: Grey, moving: Grey, clear: Bytes, matrix: Matrix, bends: Bends | None, tile_px: int) -> _Tiles:
    shown = seen_through(moving, matrix, bends)
    valid = (clear & inside_answer(matrix, clear.shape, 2.0)) > 0
    # What the edit drew must pull nothing: inside the mask both pictures are made the same.
    filled = np.where(clear > 0, shown, template)
    finder = cv2.DISOpticalFlow.create(cv2.DISOpticalFlow_PRESET_MEDIUM)
    no_flow = np.zeros((*template.shape, 2), np.float32)
    flow = np.asarray(finder.calc(_as_bytes(template), _as_bytes(filled), no_flow), np.float32)
    weight = _trust(template, filled, flow, valid)
    return _by_tile(flow, weight, tile_px)


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


def _by_tile(flow: Bends, weight: Grey, tile_px: int) -> _Tiles:
    height, width = weight.shape
    side = max(tile_px, int(np.ceil(np.sqrt(height * width / _MOST_TILES))))
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
    """Return the Matérn 3/2 kernel of the distances."""
    squares = (one**2).sum(axis=1)[:, None] + (other**2).sum(axis=1)[None] - 2 * one @ other.T
    far = np.sqrt(3 * np.maximum(squares, 0)) / length_px
    return np.asarray((1 + far) * np.exp(-far))


def _helps(template: Grey, moving: Grey, clear: Bytes, matrix: Matrix, tiles: _Tiles) -> bool:
    rows, columns = np.indices(tiles.weight.shape)
    half = (rows // 2 + columns // 2) % 2 == 0
    straight = seen_through(moving, matrix, None)
    within = clear & inside_answer(matrix, clear.shape, 4.0)
    return all(
        _gain(
            template,
            moving,
            straight,
            matrix,
            _fitted(tiles, fitted, _LENGTH_PX / 2),
            within & _over(~fitted, clear.shape),
        )
        >= _LEAST_GAIN
        for fitted in (half, ~half)
    )


def _gain(template: Grey, moving: Grey, straight: Grey, matrix: Matrix, bends: Bends, where: Bytes) -> float:
    bent = seen_through(moving, matrix, bends)
    return (1 - correlated(template, straight, where)) / max(1e-6, 1 - correlated(template, bent, where))


def _over(chosen: NDArray[np.bool_], shape: tuple[int, ...]) -> Bytes:
    values = np.where(chosen, 255, 0).astype(np.uint8)
    return np.asarray(cv2.resize(values, (shape[1], shape[0]), interpolation=cv2.INTER_NEAREST), np.uint8)


def _as_bytes(structure: Grey) -> Bytes:
    return np.clip(128 + 45 * structure, 0, 255).astype(np.uint8)

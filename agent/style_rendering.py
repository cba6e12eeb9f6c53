"""Renders a picture in the look of a style by rules: palette, lines, texture and technique. No model is called.

`render_in_style` is the whole interface. The look of a style is a `StyleLook`, a few numbers and names in the data of
the style; everything is computed from them, so a new style needs only data. The result is an approximation for sketches
and previews: the code sees colours and edges, not the content of the picture.

A picture is an array of 8-bit RGB. This module imports OpenCV and NumPy: import it only when there are pixels.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias

import cv2
import numpy as np
from numpy.typing import NDArray

from agent.style_look import Border, Ground, StyleLook, Technique

# 8 bits, from 0 to 255.
Pixels: TypeAlias = NDArray[Any]
# An array of 32-bit floats from 0 to 1. `Any`, because OpenCV's type hints do not describe what it returns.
Plane: TypeAlias = Any

# The cost of a technique grows with the pixels, and a larger working size shows nothing more.
MOST_WORKING_PX = 1600
_LEAST_WORKING_PX = 32
_MOST_ENLARGED_PX = 8192
_SEED = 20


def render_in_style(pixels: Pixels, look: StyleLook) -> Pixels:
    """Return the picture in the look of a style, at the same size; the input is not modified."""
    height, width = pixels.shape[:2]
    if min(height, width) < _LEAST_WORKING_PX:
        # Too small for a stroke or a dot: render it enlarged and scale it down again.
        factor = -(-_LEAST_WORKING_PX // min(height, width))
        if max(height, width) * factor > _MOST_ENLARGED_PX:
            return pixels.copy()
        larger = np.repeat(np.repeat(pixels, factor, axis=0), factor, axis=1)
        return _resized(render_in_style(larger, look), width, height)
    scale = min(1.0, MOST_WORKING_PX / max(height, width))
    work = pixels if scale == 1.0 else _resized(pixels, max(4, round(width * scale)), max(4, round(height * scale)))
    image = work.astype(np.float32) / 255
    image = _toned(image, look)
    image = _smoothed(image, look.smooth)
    image = _coloured(image, look)
    image = _TECHNIQUES[look.technique](image, look)
    image = _drawn_lines(image, work, look)
    image = _glowing(image, look)
    image = _on_ground(image, look)
    image = _finished(image, look)
    rendered = np.clip(image * 255 + 0.5, 0, 255).astype(np.uint8)
    if scale != 1.0:
        how = cv2.INTER_NEAREST if look.technique is Technique.PIXELS else cv2.INTER_CUBIC
        rendered = cv2.resize(rendered, (width, height), interpolation=how).astype(np.uint8)
    return _bordered(rendered, look)


# Tone and colour


def _toned(image: Plane, look: StyleLook) -> Plane:
    toned = _levelled(image) if look.technique is not Technique.PHOTO or look.mapped > 0.4 else image
    toned = toned * look.light
    toned = (toned - 0.5) * look.contrast + 0.5
    grey = _grey(toned)[..., None]
    toned = grey + (toned - grey) * look.saturation
    if look.warmth:
        toned = toned * np.array([1 + 0.18 * look.warmth, 1.0, 1 - 0.22 * look.warmth], np.float32)
    if look.haze:
        toned = toned * (1 - 0.55 * look.haze) + 0.55 * look.haze * np.array([0.93, 0.94, 0.95], np.float32)
    return np.clip(toned, 0, 1).astype(np.float32)


def _levelled(image: Plane) -> Plane:
    """Return the picture with its tones stretched towards black and white: a drawing uses the full tonal range."""
    low, high = (float(value) for value in np.quantile(_grey(image)[::4, ::4], (0.01, 0.99)))
    drawn_out = (image - low) / max(0.15, high - low)
    return np.clip(image * 0.35 + drawn_out * 0.65, 0, 1).astype(np.float32)


def _smoothed(image: Plane, amount: float) -> Plane:
    if amount <= 0:
        return image
    eight = (image * 255).astype(np.uint8)
    reach = 3 + 14 * amount * min(image.shape[:2]) / 900
    if reach >= 6:
        eight = cv2.edgePreservingFilter(eight, flags=1, sigma_s=10 + 55 * amount, sigma_r=0.12 + 0.35 * amount)
    else:
        for _ in range(1 + round(2 * amount)):
            eight = cv2.bilateralFilter(eight, 0, 18 + 60 * amount, max(1.5, reach / 2.5))
    return eight.astype(np.float32) / 255


def _coloured(image: Plane, look: StyleLook) -> Plane:
    if look.levels:
        grey = _grey(image)
        stepped = np.floor(grey * look.levels * 0.999) / max(1, look.levels - 1)
        image = np.clip(image * ((stepped + 0.02) / (grey + 0.02))[..., None], 0, 1).astype(np.float32)
    palette = _palette(look)
    if palette is None:
        return image
    if look.tinted:
        image = _toward_nearest(image, palette, look.tinted)
    if look.mapped:
        image = image * (1 - look.mapped) + _ramped(_grey(image), palette) * look.mapped
    return image.astype(np.float32)


def _palette(look: StyleLook) -> Plane | None:
    if not look.palette:
        return None
    return np.array([_rgb(colour) for colour in look.palette], np.float32)


def _rgb(colour: str) -> tuple[float, float, float]:
    return int(colour[1:3], 16) / 255, int(colour[3:5], 16) / 255, int(colour[5:7], 16) / 255


def _colour(colour: str) -> Plane:
    return np.array(_rgb(colour), np.float32)


def _ink_colour(look: StyleLook) -> Plane:
    return _colour(look.palette[0] if look.palette else look.line_colour)


def _ramped(grey: Plane, palette: Plane) -> Plane:
    """Return for each pixel the colour of a ramp through the palette, from first to last, by its lightness."""
    places = np.linspace(0, 1, len(palette))
    channels = [np.interp(grey, places, palette[:, channel]) for channel in range(3)]
    return np.stack(channels, axis=-1).astype(np.float32)


def _toward_nearest(image: Plane, palette: Plane, share: float) -> Plane:
    """Return the picture with each colour moved towards the nearest palette colour; lightness has less weight."""
    light, first, second = cv2.split(cv2.cvtColor(image, cv2.COLOR_RGB2LAB))
    best = np.full(image.shape[:2], np.inf, np.float32)
    nearest = np.zeros(image.shape[:2], np.intp)
    for number, (lit, one, other) in enumerate(cv2.cvtColor(palette[None], cv2.COLOR_RGB2LAB)[0]):
        distance = ((light - lit) * 0.7) ** 2 + (first - one) ** 2 + (second - other) ** 2
        nearest[distance < best] = number
        np.minimum(best, distance, out=best)
    return image * (1 - share) + palette[nearest] * share


def _grey(image: Plane) -> Plane:
    return (image @ np.array([0.299, 0.587, 0.114], np.float32)).astype(np.float32)


# Techniques: each takes and returns a picture with values from 0 to 1


def _photo(image: Plane, look: StyleLook) -> Plane:
    return image


def _flat(image: Plane, look: StyleLook) -> Plane:
    """Render flat areas of a few colours, which are taken from the picture itself."""
    small = cv2.resize(image, None, fx=0.25, fy=0.25, interpolation=cv2.INTER_AREA)
    count = 9 if not look.levels else max(3, look.levels)
    criteria = (cv2.TERM_CRITERIA_EPS + cv2.TERM_CRITERIA_MAX_ITER, 12, 0.003)
    cv2.setRNGSeed(_SEED)
    data = small.reshape(-1, 3).astype(np.float32)
    count = min(count, len(np.unique((data * 20).astype(np.uint8), axis=0)))
    _, _, centres = cv2.kmeans(data, count, np.empty(0, np.int32), criteria, 2, cv2.KMEANS_PP_CENTERS)
    areas = _toward_nearest(image, centres.astype(np.float32), 1.0)
    eight = cv2.medianBlur((areas * 255).astype(np.uint8), min(_odd(image, 0.006), 9))
    return eight.astype(np.float32) / 255


def _brush(image: Plane, look: StyleLook) -> Plane:
    """Render strokes along the forms: colours smeared along edges, with the streaks of the bristles."""
    return _stroked(image, look, turn=0.0, bristles=0.10)


def _swirl(image: Plane, look: StyleLook) -> Plane:
    """Render strokes that follow swirls over the whole picture."""
    return _stroked(image, look, turn=1.0, bristles=0.22)


def _stroked(image: Plane, look: StyleLook, turn: float, bristles: float) -> Plane:
    angle = _direction(image, look.cell)
    if turn:
        y, x = _places(angle.shape) / min(angle.shape)
        eddies = np.sin(7 * x + 2.2 * np.sin(5 * y)) + np.cos(6 * y + 1.8 * np.sin(6 * x))
        angle = angle * (1 - 0.55 * turn) + eddies * 1.3 * turn
    length = max(3, round(_cell_px(image, look) * 1.4))
    streaks = _along(_noise(image.shape[:2], max(1.0, length / 9)), angle, length)
    streaks = (streaks - streaks.mean()) / (streaks.std() + 1e-6)
    painted = _along(image, angle, length)
    painted = cv2.medianBlur((painted * 255).astype(np.uint8), min(_odd(image, look.cell * 0.25), 7))
    mixed = painted.astype(np.float32) / 255 + (streaks * bristles * 0.35)[..., None]
    return np.clip(mixed, 0, 1).astype(np.float32)


def _thick(image: Plane, look: StyleLook) -> Plane:
    """Render thick paint with a relief: light falls on the ridges of the strokes."""
    painted = _stroked(image, look, turn=0.15, bristles=0.16)
    ridges = _along(
        _noise(image.shape[:2], max(1.0, _cell_px(image, look) / 8)),
        _direction(image, look.cell),
        max(3, round(_cell_px(image, look))),
    )
    height = cv2.GaussianBlur(ridges * 1.6 + _grey(painted), (0, 0), 1.0)
    lit = cv2.Sobel(height, cv2.CV_32F, 1, 0, ksize=3) + cv2.Sobel(height, cv2.CV_32F, 0, 1, ksize=3)
    lit = np.clip(lit / (3.2 * lit.std() + 1e-6), -1, 1)
    return np.clip(painted + 0.16 * lit[..., None], 0, 1).astype(np.float32)


def _dots(image: Plane, look: StyleLook) -> Plane:
    """Render overlapping round dots of pure colour on the ground."""
    height, width = image.shape[:2]
    step = max(3, round(_cell_px(image, look)))
    random = np.random.default_rng(_SEED)
    canvas = (cv2.GaussianBlur(image, (0, 0), step) * 0.6 + _colour(look.ground_colour) * 0.4).copy()
    average = cv2.blur(image, (step, step))
    for radius in (0.62, 0.48, 0.36):
        ys, xs = np.mgrid[0:height:step, 0:width:step]
        xs = np.clip(xs.ravel() + random.integers(-step // 2, step // 2 + 1, xs.size), 0, width - 1)
        ys = np.clip(ys.ravel() + random.integers(-step // 2, step // 2 + 1, ys.size), 0, height - 1)
        colours = average[ys, xs]
        grey = _grey(colours)[:, None]
        jitter = random.normal(0, 0.09, colours.shape).astype(np.float32)
        colours = np.clip(grey + (colours - grey) * 1.45 + jitter, 0, 1)
        for place in random.permutation(xs.size):
            centre = (int(xs[place]), int(ys[place]))
            cv2.circle(
                canvas, centre, max(1, round(step * radius)), [float(c) for c in colours[place]], -1, cv2.LINE_AA
            )
    return canvas.astype(np.float32)


def _halftone(image: Plane, look: StyleLook) -> Plane:
    """Render flat colours with printed dots in the middle tones."""
    areas = _flat(image, look)
    step = max(4.0, _cell_px(image, look))
    y, x = _places(image.shape)
    turned_x, turned_y = (x + y) / math.sqrt(2), (x - y) / math.sqrt(2)
    wave = (np.cos(2 * math.pi * turned_x / step) + np.cos(2 * math.pi * turned_y / step)) / 4 + 0.5
    grey = _grey(image)
    is_ink = (wave > grey * 1.25 + 0.12) & (grey < 0.72)
    dark = areas * 0.42
    soft = np.clip((wave - (grey * 1.25 + 0.12)) * step * 0.9, 0, 1) * (grey < 0.72)
    mixed: Plane = np.where(is_ink[..., None], areas * (1 - soft[..., None]) + dark * soft[..., None], areas)
    return mixed.astype(np.float32)


def _pencil(image: Plane, look: StyleLook) -> Plane:
    """Render graphite or crayon: paper shows through strokes of one direction, and the contours are drawn."""
    grey = _grey(image)
    blurred = cv2.GaussianBlur(1 - grey, (0, 0), max(2.0, _cell_px(image, look) * 0.7))
    sketched = np.clip(grey / np.maximum(1 - blurred, 0.02), 0, 1)
    length = max(5, round(_cell_px(image, look) * 2))
    strokes = _along(_noise(grey.shape, 1.2), np.full(grey.shape, -0.85, np.float32), length)
    strokes = np.clip(0.5 + (strokes - strokes.mean()) / (4 * strokes.std() + 1e-6), 0, 1)
    shade = np.clip((0.80 - grey) * 1.15, 0, 1) * (0.35 + 0.85 * strokes)
    lead = np.clip(1 - (1 - sketched) * 0.95 - shade * 0.75, 0, 1)
    paper = _colour(look.ground_colour)
    if look.saturation > 0.15 and not look.mapped:
        tint = np.clip(image * 0.85 + 0.10, 0, 1)
        cover = np.clip((1 - lead) * 1.3 + (0.25 + 0.75 * strokes) * (1.02 - grey) * 1.1, 0, 1)[..., None]
        return (paper * (1 - cover) + tint * cover * (0.55 + 0.45 * lead[..., None])).astype(np.float32)
    return (paper * lead[..., None] + _ink_colour(look) * (1 - lead[..., None])).astype(np.float32)


def _hatching(image: Plane, look: StyleLook) -> Plane:
    """Render thin lines; darker areas have thicker lines and more crossing directions."""
    grey = cv2.GaussianBlur(_grey(image), (0, 0), 1.2)
    y, x = _places(grey.shape)
    step = max(3.2, _cell_px(image, look) * 0.55)
    wobble = _noise(grey.shape, step * 10) * step * 0.35 + cv2.GaussianBlur(grey, (0, 0), step * 2) * step * 2
    ink = np.zeros_like(grey)
    for slope, below in ((0.7, 0.74), (-0.7, 0.52), (0.05, 0.36), (1.5, 0.20)):
        along = x * math.sin(slope) + y * math.cos(slope) + wobble
        wave = 0.5 + 0.5 * np.cos(2 * math.pi * along / step)
        width_of_line = np.clip((below - grey) / below, 0, 1)
        ink = np.maximum(ink, np.clip((wave - (1 - 0.55 * width_of_line)) * 6, 0, 1) * (grey < below))
    ink = np.clip(np.maximum(ink, _contours(grey, 0.9)), 0, 1)[..., None]
    paper = _colour(look.ground_colour)
    tint = paper if look.saturation < 0.1 else paper * 0.72 + np.clip(image * 0.8 + 0.2, 0, 1) * 0.28
    return (tint * (1 - ink) + _ink_colour(look) * ink).astype(np.float32)


def _ink(image: Plane, look: StyleLook) -> Plane:
    """Render washes of thinned ink that bleed into the paper, with much of the paper left visible."""
    spread = max(2.0, _cell_px(image, look))
    bleeding = _noise(image.shape[:2], spread * 1.5)
    blooms = _noise(image.shape[:2], spread * 7, seed=6)
    wet = cv2.edgePreservingFilter((image * 255).astype(np.uint8), flags=1, sigma_s=30, sigma_r=0.40) / 255
    wet = _pushed(wet.astype(np.float32), bleeding * spread * 0.16 + blooms * spread * 0.12)
    grey = _grey(wet)
    soft = cv2.GaussianBlur(grey, (0, 0), spread * 0.35)
    # Pigment collects at the edge of a wash.
    pool = np.clip((cv2.GaussianBlur(grey, (0, 0), spread * 0.6) - soft) * 5, 0, 1)
    cover = np.clip((0.97 - grey) * 1.2 + 0.10 * blooms * (grey < 0.9), 0, 1) * 0.88 + 0.5 * pool
    paper = _colour(look.ground_colour)
    cover = np.clip(cover, 0, 1)[..., None]
    return np.clip(paper * (1 - cover) + wet * cover * (1 - 0.3 * pool[..., None]), 0, 1).astype(np.float32)


def _carved(image: Plane, look: StyleLook) -> Plane:
    """Render a block print: black and white, with lines cut by a gouge in the middle tones."""
    grey = cv2.createCLAHE(2.0, (4, 4)).apply((_grey(image) * 255).astype(np.uint8)).astype(np.float32) / 255
    grey = cv2.bilateralFilter(grey, 0, 0.2, 5)
    y, x = _places(grey.shape)
    step = max(4.0, _cell_px(image, look))
    wobble = _noise(grey.shape, step * 9) * step * 0.5
    # The lines follow the form: they bend with the lightness, as a gouge follows a cheek.
    form = cv2.GaussianBlur(grey, (0, 0), step * 1.6)
    along = y * 0.92 + x * 0.38 + wobble + form * step * 5
    gouge = 0.5 + 0.5 * np.cos(2 * math.pi * along / step)
    is_light = np.clip((grey - 0.22 - 0.52 * gouge) * 14, 0, 1)
    is_light = np.where(grey > 0.80, 1.0, np.where(grey < 0.20, 0.0, is_light))
    is_light = is_light * (1 - _contours(grey, 1.4))
    paper = _colour(look.ground_colour)
    light = is_light.astype(np.float32)[..., None]
    if look.saturation > 0.2:
        paper = np.clip(_flat(image, look) * 0.85 + 0.2, 0, 1)
    return (_ink_colour(look) * (1 - light) + paper * light).astype(np.float32)


def _cut_out(image: Plane, look: StyleLook) -> Plane:
    """Render clean shapes of one paper on another, with edges as if cut with scissors."""
    grey = cv2.createCLAHE(1.5, (3, 3)).apply((_grey(image) * 255).astype(np.uint8))
    grey = cv2.medianBlur(grey, min(_odd(image, 0.012), 15)).astype(np.float32) / 255
    local = cv2.GaussianBlur(grey, (0, 0), max(6.0, 0.07 * min(grey.shape)))
    shape = ((grey < 0.45 * float(np.median(grey)) + 0.55 * local) * 255).astype(np.uint8)
    kernel = cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (_odd(image, 0.008),) * 2)
    shape = cv2.morphologyEx(cv2.morphologyEx(shape, cv2.MORPH_OPEN, kernel), cv2.MORPH_CLOSE, kernel)
    soft = cv2.GaussianBlur(shape, (0, 0), 1.1).astype(np.float32)[..., None] / 255
    light = _colour(look.ground_colour)
    if look.glow and len(look.palette) > 2:
        # Lit from behind: the cut shapes show their dyed colours.
        dyed = _toward_nearest(image, _palette(look), 0.85)
        return (light * (1 - soft) + dyed * 0.75 * soft).astype(np.float32)
    return (light * (1 - soft) + _ink_colour(look) * soft).astype(np.float32)


def _pixels(image: Plane, look: StyleLook) -> Plane:
    """Render large square pixels with few colours."""
    height, width = image.shape[:2]
    step = max(3, round(_cell_px(image, look)))
    small = cv2.resize(image, (max(2, width // step), max(2, height // step)), interpolation=cv2.INTER_AREA)
    small = np.clip((small - 0.5) * 1.12 + 0.5, 0, 1)
    few = np.round(small * 7) / 7 if not look.palette else small
    return cv2.resize(few.astype(np.float32), (width, height), interpolation=cv2.INTER_NEAREST)


def _studs(image: Plane, look: StyleLook) -> Plane:
    """Render toy bricks: a round stud on each plate, and a seam around the plate."""
    height, width = image.shape[:2]
    step = max(6, round(_cell_px(image, look)))
    plates = (max(2, math.ceil(width / step)), max(2, math.ceil(height / step)))
    small = np.round(cv2.resize(image, plates, interpolation=cv2.INTER_AREA) * 6) / 6
    blocks = np.repeat(np.repeat(small, step, axis=0), step, axis=1)[:height, :width]
    y, x = _places(image.shape) % step / step
    radius = np.hypot(x - 0.5, y - 0.5)
    edge = np.exp(-(((radius - 0.31) / 0.045) ** 2))
    slope = (0.5 - x) + (0.5 - y)
    light = 0.35 * edge * np.sign(slope) * np.minimum(1, np.abs(slope) * 3) + np.where(radius < 0.31, 0.06, 0.0)
    seam = np.where((x < 0.05) | (y < 0.05), 0.82, 1.0)
    return np.clip((blocks + 0.02) * (1 + light[..., None]) * seam[..., None], 0, 1).astype(np.float32)


def _tiles(image: Plane, look: StyleLook) -> Plane:
    """Render small stones in grout, each slightly irregular and with its own shade."""
    height, width = image.shape[:2]
    step = max(5, round(_cell_px(image, look)))
    random = np.random.default_rng(_SEED)
    wobble = cv2.GaussianBlur(random.normal(0, 1, (height, width, 2)).astype(np.float32), (0, 0), step * 1.5)
    wobble = wobble / (wobble.std() + 1e-6) * step * 0.28
    y, x = _places(image.shape)
    x, y = x + wobble[..., 0], y + wobble[..., 1]
    column, row = np.floor(x / step).astype(int), np.floor(y / step).astype(int)
    inside_x, inside_y = x / step - column, y / step - row
    cx = np.clip(((column + 0.5) * step).astype(int), 0, width - 1)
    cy = np.clip(((row + 0.5) * step).astype(int), 0, height - 1)
    colours = cv2.blur(image, (step, step))[cy, cx]
    shade = ((column * 7919 + row * 104729) % 97) / 97 - 0.5
    colours = np.clip(colours * (1 + 0.22 * shade[..., None]), 0, 1)
    rim = np.minimum(np.minimum(inside_x, 1 - inside_x), np.minimum(inside_y, 1 - inside_y))
    stone = np.clip((rim - 0.05) * 12, 0, 1)[..., None]
    lit = 0.07 * ((inside_x < 0.2) | (inside_y < 0.2)) - 0.08 * ((inside_x > 0.8) | (inside_y > 0.8))
    grout = _colour(look.line_colour)
    return np.clip((colours + lit[..., None]) * stone + grout * (1 - stone), 0, 1).astype(np.float32)


def _cells(image: Plane, look: StyleLook) -> tuple[NDArray[Any], Plane]:
    """Return the cell number of each pixel, and the mean colour of each cell; there are more cells along edges."""
    height, width = image.shape[:2]
    step = max(6, round(_cell_px(image, look)))
    random = np.random.default_rng(_SEED)
    ys, xs = np.mgrid[step // 2 : height : step, step // 2 : width : step]
    reach = max(1, round(step * 0.35))
    xs = np.clip(xs.ravel() + random.integers(-reach, reach + 1, xs.size), 0, width - 1)
    ys = np.clip(ys.ravel() + random.integers(-reach, reach + 1, ys.size), 0, height - 1)
    on_edge = np.flatnonzero(_contours(_grey(image), 1.0).ravel() > 0.5)
    if on_edge.size:
        extra = random.choice(on_edge, min(on_edge.size, xs.size), replace=False)
        xs, ys = np.concatenate([xs, extra % width]), np.concatenate([ys, extra // width])
    seeds = np.full((height, width), 255, np.uint8)
    seeds[ys, xs] = 0
    labels = cv2.distanceTransformWithLabels(seeds, cv2.DIST_L2, 5, labelType=cv2.DIST_LABEL_PIXEL)[1].astype(np.intp)
    count = int(labels.max()) + 1
    total = np.stack([np.bincount(labels.ravel(), image[..., c].ravel(), count) for c in range(3)], axis=-1)
    number = np.bincount(labels.ravel(), minlength=count)[:, None]
    return labels, (total / np.maximum(number, 1)).astype(np.float32)


def _facets(image: Plane, look: StyleLook) -> Plane:
    """Render flat triangles, like early computer graphics."""
    height, width = image.shape[:2]
    step = max(8, round(_cell_px(image, look)))
    random = np.random.default_rng(_SEED)
    points = {(0, 0), (width - 1, 0), (0, height - 1), (width - 1, height - 1)}
    for y in range(0, height + step, step):
        for x in range(0, width + step, step):
            jitter = random.integers(-step // 3, step // 3 + 1, 2)
            points.add((int(np.clip(x + jitter[0], 0, width - 1)), int(np.clip(y + jitter[1], 0, height - 1))))
    on_edge = np.flatnonzero(_contours(_grey(image), 1.2).ravel() > 0.6)
    if on_edge.size:
        for place in random.choice(on_edge, min(on_edge.size, len(points)), replace=False):
            points.add((int(place % width), int(place // width)))
    division = cv2.Subdiv2D((0, 0, width, height))
    for x, y in sorted(points):
        division.insert((float(x), float(y)))
    average = cv2.blur(image, (max(3, step // 2),) * 2)
    faceted = average.copy()
    for triangle in division.getTriangleList():
        corners = np.asarray(triangle).reshape(3, 2)
        if ((corners < -1).any()) or (corners[:, 0] > width).any() or (corners[:, 1] > height).any():
            continue
        centre = corners.mean(axis=0)
        row, column = min(height - 1, max(0, int(centre[1]))), min(width - 1, max(0, int(centre[0])))
        side = corners[1] - corners[0]
        shade = 1 + 0.10 * math.sin(math.atan2(float(side[1]), float(side[0])) * 2)
        colour = np.clip(average[row, column] * shade, 0, 1)
        cv2.fillConvexPoly(faceted, corners.astype(np.int32), [float(c) for c in colour], cv2.LINE_AA)
    return faceted.astype(np.float32)


def _glass(image: Plane, look: StyleLook) -> Plane:
    """Render stained glass: panes of one colour each, with lead between them and light behind."""
    labels, colours = _cells(image, look)
    grey = _grey(colours)[:, None]
    colours = np.clip(grey + (colours - grey) * 1.5 + 0.05, 0, 1).astype(np.float32)
    panes = colours[labels]
    streaky = cv2.GaussianBlur(_noise(image.shape[:2], 5.0), (0, 0), 4)
    panes = panes * (1 + 0.5 * streaky[..., None])
    size = max(1, round(_cell_px(image, look) * 0.09))
    lead = cv2.dilate(_seams(labels), np.ones((size, size), np.uint8))
    lead = cv2.GaussianBlur(lead, (0, 0), 0.8)[..., None]
    return np.clip(panes * (1 - lead) + _colour(look.line_colour) * lead, 0, 1).astype(np.float32)


def _scanlines(image: Plane, look: StyleLook) -> Plane:
    """Render an analogue video tape: soft, with colours bleeding sideways, scan lines, and noise in two bands."""
    height, width = image.shape[:2]
    space = cv2.cvtColor(image, cv2.COLOR_RGB2LAB)
    space[..., 1:] = cv2.blur(space[..., 1:], (_odd(image, 0.03), 1))
    space[..., 0] = cv2.blur(space[..., 0], (_odd(image, 0.004), 1))
    tape = cv2.cvtColor(space, cv2.COLOR_LAB2RGB)
    tape = np.roll(tape, (0, round(width * 0.004)), axis=(0, 1)) * 0.5 + tape * 0.5
    period = max(2, height // 240)
    tape *= (1 - 0.16 * ((np.arange(height) // period) % 2))[:, None, None]
    random = np.random.default_rng(_SEED)
    for start in (int(height * 0.93), int(height * 0.40)):
        band = tape[start : start + max(2, height // 40)]
        for number in range(len(band)):
            band[number] = np.roll(band[number], int(random.normal(0, width * 0.02)), axis=0)
        band += random.normal(0, 0.12, band.shape).astype(np.float32)
    return np.clip(tape, 0, 1).astype(np.float32)


def _streaks(image: Plane, look: StyleLook) -> Plane:
    """Render a long exposure: bright areas become horizontal trails, and everything is smoothed in that direction."""
    length = max(9, round(min(image.shape[:2]) * look.cell * 4))
    kernel = np.zeros((length, length), np.float32)
    kernel[length // 2] = 1 / length
    swept = cv2.filter2D(image, -1, kernel, borderType=cv2.BORDER_REFLECT)
    bright = np.clip((_grey(image) - 0.62) * 4, 0, 1)
    trails = cv2.filter2D(image * bright[..., None], -1, kernel * 2.6, borderType=cv2.BORDER_REFLECT)
    mixed = image * 0.42 + swept * 0.58
    return np.clip(1 - (1 - mixed) * (1 - np.clip(trails, 0, 1) * 0.8), 0, 1).astype(np.float32)


def _modelled(image: Plane, look: StyleLook) -> Plane:
    """Render soft modelled matter: even colours, forms rounded by light from the upper left, a few highlights."""
    reach = max(2.0, _cell_px(image, look))
    even = cv2.edgePreservingFilter((image * 255).astype(np.uint8), flags=1, sigma_s=45, sigma_r=0.42) / 255
    even = even.astype(np.float32)
    height = cv2.GaussianBlur(_grey(even), (0, 0), reach * 0.6)
    edge = cv2.GaussianBlur(_contours(_grey(even), 1.0), (0, 0), reach * 0.5)
    dx = cv2.Sobel(height - 0.8 * edge, cv2.CV_32F, 1, 0, ksize=5)
    dy = cv2.Sobel(height - 0.8 * edge, cv2.CV_32F, 0, 1, ksize=5)
    lit = -(dx + dy)
    lit = np.clip(lit / (3.5 * lit.std() + 1e-6), -1, 1)
    shine = np.clip(lit - 0.55, 0, 1) ** 2
    return np.clip(even * (1 + 0.26 * lit[..., None]) + 0.45 * shine[..., None], 0, 1).astype(np.float32)


def _panels(image: Plane, look: StyleLook) -> Plane:
    """Render rectangles of the palette's colours between straight lines, smaller where there is more detail."""
    height, width = image.shape[:2]
    smallest = max(8, round(_cell_px(image, look)))
    canvas = np.zeros_like(image)
    palette = _palette(look)
    thick = max(2, round(0.011 * min(height, width)))
    waiting, frames = [(0, 0, width, height)], []
    while waiting:
        left, top, right, bottom = waiting.pop()
        piece = image[top:bottom, left:right]
        wide, tall = right - left, bottom - top
        is_lively = float(piece.std(axis=(0, 1)).mean()) > 0.13
        if max(wide, tall) < 2 * smallest or (not is_lively and max(wide, tall) < 0.5 * min(height, width)):
            colour = np.median(piece.reshape(-1, 3), axis=0).astype(np.float32)
            if palette is not None:
                colour = _toward_nearest(colour[None, None], palette, 1.0)[0, 0]
            canvas[top:bottom, left:right] = colour
            frames.append((left, top, right, bottom))
            continue
        is_across = wide >= tall
        change = np.abs(np.diff(piece.mean(axis=0 if is_across else 1), axis=0)).sum(axis=-1)
        margin = max(1, min(smallest, len(change) // 3))
        at = margin + int(np.argmax(change[margin : len(change) - margin])) + 1
        if is_across:
            waiting += [(left, top, left + at, bottom), (left + at, top, right, bottom)]
        else:
            waiting += [(left, top, right, top + at), (left, top + at, right, bottom)]
    for left, top, right, bottom in frames:
        cv2.rectangle(canvas, (left, top), (right, bottom), _rgb(look.line_colour), thick)
    return canvas.astype(np.float32)


_TECHNIQUES: dict[Technique, Callable[[Any, StyleLook], Any]] = {
    Technique.PHOTO: _photo,
    Technique.FLAT: _flat,
    Technique.BRUSH: _brush,
    Technique.SWIRL: _swirl,
    Technique.THICK: _thick,
    Technique.DOTS: _dots,
    Technique.HALFTONE: _halftone,
    Technique.PENCIL: _pencil,
    Technique.HATCHING: _hatching,
    Technique.INK: _ink,
    Technique.CARVED: _carved,
    Technique.CUT_OUT: _cut_out,
    Technique.PIXELS: _pixels,
    Technique.STUDS: _studs,
    Technique.TILES: _tiles,
    Technique.FACETS: _facets,
    Technique.GLASS: _glass,
    Technique.SCANLINES: _scanlines,
    Technique.STREAKS: _streaks,
    Technique.MODELLED: _modelled,
    Technique.PANELS: _panels,
}


# Lines, light, ground and border


def _drawn_lines(image: Plane, original: Pixels, look: StyleLook) -> Plane:
    if not look.lines:
        return image
    grey = cv2.bilateralFilter(_grey(original.astype(np.float32) / 255), 0, 0.12, 4)
    ink = _contours(grey, 0.6 + 2.4 * look.line_width)
    ink = np.clip(ink * look.lines * 1.15, 0, 1)[..., None]
    return (image * (1 - ink) + _colour(look.line_colour) * ink).astype(np.float32)


def _contours(grey: Plane, width: float) -> Plane:
    """Return the contour strength of each pixel, from 0 to 1: a steepened difference of Gaussians."""
    scale = max(0.7, min(grey.shape) / 800) * width
    first = cv2.GaussianBlur(grey, (0, 0), scale)
    second = cv2.GaussianBlur(grey, (0, 0), scale * 1.6)
    edge = second - first * 0.985 - 0.012
    return np.clip(edge * 26, 0, 1).astype(np.float32)


def _glowing(image: Plane, look: StyleLook) -> Plane:
    if look.glow:
        bright = image * np.clip((_grey(image) - 0.45) * 2.2, 0, 1)[..., None]
        halo = cv2.GaussianBlur(bright, (0, 0), max(3.0, 0.022 * min(image.shape[:2])))
        image = 1 - (1 - image) * (1 - np.clip(halo * look.glow, 0, 1))
    if look.blurred_ends:
        height = image.shape[0]
        soft = cv2.GaussianBlur(image, (0, 0), max(2.0, 0.014 * height * look.blurred_ends))
        away = np.abs(np.arange(height, dtype=np.float32) / height - 0.55)
        share = np.clip((away - 0.10) * 5, 0, 1)[:, None, None]
        image = image * (1 - share) + soft * share
    return np.clip(image, 0, 1).astype(np.float32)


def _on_ground(image: Plane, look: StyleLook) -> Plane:
    if look.ground is Ground.NONE:
        return image
    shape = image.shape[:2]
    unit = max(1.0, min(shape) / 700)
    y, x = _places(shape)
    strength = 0.045
    match look.ground:
        case Ground.PAPER:
            grain = _noise(shape, 1.6 * unit)
        case Ground.ROUGH_PAPER:
            grain, strength = _noise(shape, 2.2 * unit) + 0.5 * _noise(shape, 6 * unit, seed=1), 0.07
        case Ground.CANVAS:
            weave = np.sin(2 * math.pi * x / (4.5 * unit)) + np.sin(2 * math.pi * y / (4.5 * unit))
            grain, strength = weave * 0.32 + 0.6 * _noise(shape, 2 * unit), 0.07
        case Ground.SILK:
            grain = 0.5 * np.sin(2 * math.pi * y / (3 * unit)) + 0.5 * np.sin(2 * math.pi * x / (3.4 * unit))
            strength = 0.05
        case Ground.PLASTER:
            patches = _noise(shape, 45 * unit)
            cracks = np.clip(1 - np.abs(_noise(shape, 26 * unit, seed=2)) * 26, 0, 1)
            flakes = _noise(shape, 9 * unit, seed=3) + 0.8 * patches
            worn = np.clip((flakes - 2.3) * 1.6, 0, 1)[..., None]
            image = image * (1 - worn * 0.45) + _colour(look.ground_colour) * worn * 0.45
            grain, strength = 0.7 * patches + 0.5 * _noise(shape, 2 * unit) - 1.8 * cracks, 0.09
        case Ground.WOOD:
            rings = np.sin((y + 26 * unit * _noise(shape, 70 * unit)) / (5 * unit))
            grain, strength = rings * 0.5 + _along(_noise(shape, 1.0), np.zeros(shape, np.float32), 31) * 2.5, 0.06
        case Ground.FELT:
            grain, strength = _noise(shape, 1.0) + 0.7 * _noise(shape, 4 * unit, seed=4), 0.10
        case Ground.FILM:
            grain, strength = _noise(shape, 0.9 * unit), 0.05
        case Ground.PRINT:
            speckle = np.where(_noise(shape, 0.8 * unit) > 1.5, 1.6, 0.0)
            grain, strength = speckle + 0.5 * _noise(shape, 3 * unit, seed=5), 0.06
        case Ground.GRID:
            step = max(8.0, min(shape) / 28)
            is_line = ((x % step) < unit) | ((y % step) < unit)
            grain, strength = is_line * 1.2 + 0.3 * _noise(shape, 2 * unit), 0.14
    tint = _colour(look.ground_colour)
    is_tinted = look.technique not in (Technique.PENCIL, Technique.HATCHING, Technique.INK, Technique.CARVED)
    if is_tinted and look.ground not in (Ground.FILM, Ground.GRID, Ground.PLASTER):
        image = image * (0.55 + 0.45 * tint)
    rough = cv2.GaussianBlur(grain.astype(np.float32), (0, 0), 0.6)[..., None]
    return np.clip(image * (1 + strength * rough), 0, 1).astype(np.float32)


def _finished(image: Plane, look: StyleLook) -> Plane:
    if look.vignette:
        height, width = image.shape[:2]
        y, x = np.mgrid[-1 : 1 : height * 1j, -1 : 1 : width * 1j]
        away = np.clip((np.hypot(x, y) - 0.55) / 0.86, 0, 1) ** 1.6
        image = image * (1 - 0.8 * look.vignette * away[..., None]).astype(np.float32)
    if look.grain:
        image = image + 0.16 * look.grain * _noise(image.shape[:2], 0.8)[..., None] * (0.4 + 0.6 * (1 - image))
    return np.clip(image, 0, 1).astype(np.float32)


def _bordered(pixels: Pixels, look: StyleLook) -> Pixels:
    height, width = pixels.shape[:2]
    edge = max(2, round(0.035 * min(height, width)))
    if look.border is Border.NONE or min(height, width) < 24:
        return pixels
    top = bottom = left = right = edge
    colour: tuple[float, ...] = (250, 249, 245)
    match look.border:
        case Border.POLAROID:
            bottom = edge * 4
        case Border.BARS:
            top = bottom = max(2, round(0.085 * height))
            left = right = 0
            colour = (6, 6, 8)
        case Border.PAPER:
            colour = tuple(255 * value for value in _rgb(look.ground_colour))
        case Border.PLATE:
            colour = (18, 15, 12)
    framed = np.empty_like(pixels)
    framed[:] = np.array(colour, np.uint8)
    if look.border is Border.BARS:
        framed[top : height - bottom] = pixels[top : height - bottom]
    else:
        inner = _resized(pixels, width - left - right, height - top - bottom)
        framed[top : height - bottom, left : width - right] = inner
    return framed


# Shared by techniques


def _resized(pixels: Pixels, width: int, height: int) -> Pixels:
    return cv2.resize(pixels, (max(1, width), max(1, height)), interpolation=cv2.INTER_AREA).astype(np.uint8)


def _odd(image: Plane, share: float) -> int:
    """Return a share of the shorter side in pixels, odd and at least 3."""
    return int(max(3, round(share * min(image.shape[:2])) | 1))


def _cell_px(image: Plane, look: StyleLook) -> float:
    """Return the size of the look's strokes, dots or tiles in pixels."""
    return float(look.cell * min(image.shape[:2]))


def _places(shape: tuple[int, ...]) -> Plane:
    """Return the row and the column of each pixel, as two planes in one array."""
    return np.mgrid[: shape[0], : shape[1]].astype(np.float32)


def _noise(shape: tuple[int, ...], size: float, seed: int = 0) -> Plane:
    """Return smooth noise with a grain of `size` pixels: mean 0, standard deviation 1, deterministic."""
    random = np.random.default_rng(_SEED + seed)
    size = max(0.5, size)
    small = (max(2, round(shape[0] / size)), max(2, round(shape[1] / size)))
    noise: Plane = random.normal(0, 1, small).astype(np.float32)
    noise = cv2.resize(noise, (shape[1], shape[0]), interpolation=cv2.INTER_CUBIC)
    return ((noise - noise.mean()) / (noise.std() + 1e-6)).astype(np.float32)


def _direction(image: Plane, cell: float) -> Plane:
    """Return the direction of the forms at each pixel, in radians: along edges, smoothed over a few cells."""
    grey = cv2.GaussianBlur(_grey(image), (0, 0), 1.5)
    dx, dy = cv2.Sobel(grey, cv2.CV_32F, 1, 0, ksize=5), cv2.Sobel(grey, cv2.CV_32F, 0, 1, ksize=5)
    reach = max(3.0, cell * 2.2 * min(grey.shape))
    xx, yy, xy = (cv2.GaussianBlur(part, (0, 0), reach) for part in (dx * dx, dy * dy, dx * dy))
    return (0.5 * np.arctan2(2 * xy, xx - yy) + math.pi / 2).astype(np.float32)


def _along(values: Plane, angle: Plane, length: int) -> Plane:
    """Return the values averaged along a direction: a line integral over `length` pixels."""
    y, x = _places(angle.shape)
    dx, dy = np.cos(angle), np.sin(angle)
    steps = min(12, max(2, length // 2))
    total = values.astype(np.float32).copy()
    for number in range(1, steps + 1):
        far = number * length / (2 * steps)
        for sign in (1, -1):
            total += cv2.remap(
                values, x + sign * far * dx, y + sign * far * dy, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REFLECT
            )
    return (total / (2 * steps + 1)).astype(np.float32)


def _pushed(image: Plane, by: Plane) -> Plane:
    """Return the picture with its pixels displaced, so that edges become uneven."""
    y, x = _places(by.shape)
    return cv2.remap(image, x + by, y + np.roll(by, 37, axis=0), cv2.INTER_LINEAR, borderMode=cv2.BORDER_REFLECT)


def _seams(labels: NDArray[Any]) -> Plane:
    """Return 1 where two cells meet, else 0."""
    seams = np.zeros(labels.shape, np.float32)
    seams[:, 1:] = labels[:, 1:] != labels[:, :-1]
    seams[1:] = np.maximum(seams[1:], labels[1:] != labels[:-1])
    return seams

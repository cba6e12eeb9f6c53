"""A canvas that imitates paint: soft gradients, washes with darker rims, wobbly lines and grain, all from one seed.

`FigureFrame` is a coordinate system for one figure on it, which keeps the drawing code readable.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFilter

from agent import wording
from agent.pixels import Floats
from agent.providers.sketch.palette import Colour, Palette, darker, lighter, mix

Point: TypeAlias = tuple[float, float]


class Canvas:
    """A picture being painted. Points are fractions of the canvas: (0, 0) top left, (1, 1) bottom right."""

    def __init__(self, size: tuple[int, int], seed: int, *, is_flat: bool = False) -> None:
        self.width, self.height = size
        self.unit = min(size)
        self.random = np.random.default_rng(seed)
        self._pixels: Floats = np.zeros((self.height, self.width, 3), dtype=np.float32)
        self._is_flat = is_flat
        # A soft field between about -1 and 1 that makes a wash uneven, with fine grain in it.
        cells = (Image.fromarray(self.random.uniform(-1, 1, (n, n)).astype(np.float32)) for n in (9, 54))
        coarse, fine = (np.asarray(few.resize(size, Image.Resampling.BICUBIC)) for few in cells)
        grain = self.random.standard_normal((self.height, self.width), dtype=np.float32)
        strength = 0.0 if is_flat else 1.0
        self._wash: Floats = ((coarse * 0.65 + fine * 0.3 + grain * 0.16) * strength).astype(np.float32)

    def image(self) -> Image.Image:
        """Return the painting as an RGB picture."""
        return Image.fromarray(np.clip(self._pixels + 0.5, 0, 255).astype(np.uint8), "RGB")

    def between(self, low: float, high: float) -> float:
        """Return a number between the two, the same for the same seed."""
        return float(self.random.uniform(low, high))

    def ground(self, top: Colour, low: Colour) -> None:
        """Cover the whole canvas with a gradient."""
        self._pixels[:] = self._gradient(top, low, 0, self.height)
        self._pixels *= 1 + self._wash[..., None] * 0.035

    def fill(
        self,
        points: Sequence[Point],
        top: Colour,
        low: Colour | None = None,
        *,
        opacity: float = 1.0,
        rim: float = 0.22,
    ) -> None:
        """Fill a polygon with a gradient wash whose rim is slightly darker, like watercolour on paper."""
        scaled = [(x * self.width, y * self.height) for x, y in points]
        left = max(0, math.floor(min(x for x, _ in scaled)) - 1)
        upper = max(0, math.floor(min(y for _, y in scaled)) - 1)
        right = min(self.width, math.ceil(max(x for x, _ in scaled)) + 1)
        lower = min(self.height, math.ceil(max(y for _, y in scaled)) + 1)
        if left >= right or upper >= lower:
            return
        double = Image.new("L", ((right - left) * 2, (lower - upper) * 2), 0)
        ImageDraw.Draw(double).polygon([((x - left) * 2, (y - upper) * 2) for x, y in scaled], fill=255)
        mask_image = double.reduce(2)
        mask = np.asarray(mask_image, dtype=np.float32) / 255
        paint = self._gradient(top, low or top, upper, lower)
        shade = 1 + self._wash[upper:lower, left:right] * 0.06
        if rim and not self._is_flat:
            blurred = mask_image.filter(ImageFilter.BoxBlur(max(2, self.unit // 130)))
            shade = shade - np.clip(mask - np.asarray(blurred, dtype=np.float32) / 255, 0, 1) * rim
        area = self._pixels[upper:lower, left:right]
        area += (paint * shade[..., None] - area) * (mask * opacity)[..., None]

    def oval(
        self,
        x: float,
        y: float,
        rx: float,
        ry: float,
        top: Colour,
        low: Colour | None = None,
        *,
        opacity: float = 1.0,
        rim: float = 0.22,
    ) -> None:
        """Fill an oval; `rx` and `ry` are shares of the shorter side, so that a circle is round on any canvas."""
        self.fill(self.oval_points(x, y, rx, ry), top, low, opacity=opacity, rim=rim)

    def oval_points(self, x: float, y: float, rx: float, ry: float) -> list[Point]:
        """Return the outline of a slightly wobbly oval."""
        wobble, start = self.between(0.0, 0.014), self.between(0, math.tau)
        points: list[Point] = []
        for step in range(64):
            angle = math.tau * step / 64
            grow = 1 + wobble * math.sin(3 * angle + start)
            across, down = math.cos(angle) * rx * grow, math.sin(angle) * ry * grow
            points.append((x + across * self.unit / self.width, y + down * self.unit / self.height))
        return points

    def stroke(
        self, points: Sequence[Point], colour: Colour, width: float, *, opacity: float = 0.8, tapers: bool = True
    ) -> None:
        """Draw a line by hand: `width` is a share of the shorter side; the line swells, thins and trembles."""
        path = smooth(points)
        half = width * self.unit / 2
        left: list[Point] = []
        right: list[Point] = []
        phase = self.between(0, math.tau)
        for index, (x, y) in enumerate(path):
            before, after = path[max(0, index - 1)], path[min(len(path) - 1, index + 1)]
            along_x, along_y = (after[0] - before[0]) * self.width, (after[1] - before[1]) * self.height
            length = math.hypot(along_x, along_y) or 1.0
            share = index / (len(path) - 1)
            ends = min(1.0, 0.35 + 4 * min(share, 1 - share)) if tapers else 1.0
            reach = half * ends * (1 + 0.22 * math.sin(phase + share * 17))
            across = (-along_y / length * reach / self.width, along_x / length * reach / self.height)
            left.append((x + across[0], y + across[1]))
            right.append((x - across[0], y - across[1]))
        self.fill([*left, *reversed(right)], colour, opacity=opacity, rim=0.0)

    def outline(self, points: Sequence[Point], colour: Colour, opacity: float) -> None:
        """Draw around a shape with a loose line that does not quite meet itself."""
        shift = 0.0022
        dx, dy = self.between(-shift, shift), self.between(-shift, shift)
        start = int(self.between(0, len(points)))
        loop = [*points[start:], *points[:start]]
        self.stroke([(x + dx, y + dy) for x, y in [*loop, loop[0]]], colour, 0.0045, opacity=opacity)

    def glow(self, x: float, y: float, radius: float, colour: Colour, opacity: float) -> None:
        """Add a soft light around a point; `radius` is a share of the shorter side."""
        reach = max(2, int(radius * self.unit))
        centre_x, centre_y = int(x * self.width), int(y * self.height)
        left, upper = max(0, centre_x - reach), max(0, centre_y - reach)
        right, lower = min(self.width, centre_x + reach), min(self.height, centre_y + reach)
        if left >= right or upper >= lower:
            return
        down, across = np.ogrid[upper:lower, left:right]
        distance = np.sqrt((across - centre_x) ** 2 + (down - centre_y) ** 2).astype(np.float32) / reach
        strength = np.clip(1 - distance, 0, 1) ** 2 * opacity
        area = self._pixels[upper:lower, left:right]
        area += (np.array(colour, dtype=np.float32) - area) * strength[..., None]

    def dots(
        self,
        count: int,
        area: tuple[float, float, float, float],
        radius: tuple[float, float],
        colour: Colour,
        opacity: float,
    ) -> None:
        """Scatter small dots over an area (left, top, right, bottom)."""
        for _ in range(count):
            x, y = self.between(area[0], area[2]), self.between(area[1], area[3])
            size = self.between(*radius) * self.unit
            turns = (k * math.tau / 8 for k in range(8))
            corners = [(x + size * math.cos(t) / self.width, y + size * math.sin(t) / self.height) for t in turns]
            self.fill(corners, colour, opacity=opacity * self.between(0.5, 1.0), rim=0.0)

    def ridge(self, base: float, height: float, roughness: int, *, is_sharp: bool = False) -> list[Point]:
        """Return the top line of a ridge from the left edge to the right, about `height` above `base`."""
        knots = self.random.uniform(0, 1, roughness + 3)
        at = np.linspace(0, roughness + 2, 140)
        if is_sharp:
            steps = np.arange(roughness + 3)
            heights = np.interp(at, steps, np.where(steps % 2, knots * 0.4 + 0.6, knots * 0.35))
            heights += self._jitter(0.045)
        else:
            low = np.floor(at).astype(int).clip(0, roughness + 1)
            share = at - low
            share = share * share * (3 - 2 * share)
            heights = knots[low] * (1 - share) + knots[low + 1] * share + self._jitter(0.012)
        return [
            (float(x), float(base - height * y)) for x, y in zip(np.linspace(-0.02, 1.02, 140), heights, strict=True)
        ]

    def land(self, ridge: Sequence[Point], top: Colour, low: Colour, *, opacity: float = 1.0) -> None:
        """Fill everything below a ridge, and draw a thin line along its top."""
        self.fill([*ridge, (1.02, 1.03), (-0.02, 1.03)], top, low, opacity=opacity)
        self.stroke(ridge[::3], darker(top, 0.35), 0.0025, opacity=0.35)

    def _jitter(self, amount: float) -> NDArray[np.float64]:
        coarse = self.random.uniform(-amount, amount, 140 // 4 + 2)
        return np.interp(np.arange(140), np.arange(len(coarse)) * 4, coarse)

    def _gradient(self, top: Colour, low: Colour, upper: int, lower: int) -> Floats:
        share = np.linspace(0, 1, lower - upper, dtype=np.float32)[:, None, None]
        first, last = np.array(top, dtype=np.float32), np.array(low, dtype=np.float32)
        return (first + (last - first) * share).astype(np.float32)


def smooth(points: Sequence[Point], *, closed: bool = False, steps: int = 8) -> list[Point]:
    """Return a curve through the points (Catmull-Rom); a closed one returns to its start."""
    count = len(points)
    if count < 3:
        return list(points)
    curve: list[Point] = []
    for index in range(count if closed else count - 1):
        around = [
            points[(index + k) % count] if closed else points[min(count - 1, max(0, index + k))] for k in (-1, 0, 1, 2)
        ]
        curve += [_between(around, step / steps) for step in range(steps)]
    return curve if closed else [*curve, points[-1]]


def _between(around: Sequence[Point], t: float) -> Point:
    before, start, end, after = around
    x, y = (
        0.5 * (2 * s + (e - b) * t + (2 * b - 5 * s + 4 * e - a) * t * t + (3 * s - b - 3 * e + a) * t**3)
        for b, s, e, a in zip(before, start, end, after, strict=True)
    )
    return x, y


class FigureFrame:
    """Draws in units of the figure: x to the right from its middle, y up from the ground it stands on.

    `scale` is one unit as a share of the canvas's shorter side.
    """

    def __init__(self, canvas: Canvas, palette: Palette, x: float, base: float, scale: float, words: str = "") -> None:
        self.canvas = canvas
        self.palette = palette
        self.words = words
        self._x, self._base = x, base
        self._across = scale * canvas.unit / canvas.width
        self._up = scale * canvas.unit / canvas.height
        self._scale = scale

    def names(self, detail: str) -> bool:
        """Return whether the description names a detail that only some drawings have."""
        return wording.pattern(f"drawn.{detail}").search(self.words) is not None

    def shape(self, points: Sequence[Point], colour: Colour, *, sharp: bool = False, line: float = 0.6) -> None:
        """Fill a closed shape, rounded unless `sharp`, lit from above and with a hand-drawn outline."""
        placed = self._placed(points)
        outline = placed if sharp else smooth(placed, closed=True)
        self.canvas.fill(outline, lighter(colour, 0.14), darker(colour, 0.16))
        if line:
            self.canvas.outline(self._dense(placed) if sharp else outline[::2], self.palette.ink, line)

    def oval(self, x: float, y: float, rx: float, ry: float, colour: Colour, *, line: float = 0.6) -> None:
        """Fill an oval around (x, y)."""
        points = [(x + rx * math.cos(k * math.tau / 16), y + ry * math.sin(k * math.tau / 16)) for k in range(16)]
        self.shape(points, colour, line=line)

    def dot(self, x: float, y: float, radius: float, colour: Colour) -> None:
        """Put a small round dot without an outline."""
        self.oval(x, y, radius, radius, colour, line=0)

    def line(
        self, points: Sequence[Point], width: float, colour: Colour | None = None, *, opacity: float = 0.85
    ) -> None:
        """Draw a stroke through the points; `width` is in units of the figure."""
        self.canvas.stroke(self._placed(points), colour or self.palette.ink, width * self._scale, opacity=opacity)

    def limb(self, points: Sequence[Point], width: float, colour: Colour) -> None:
        """Draw a thick stroke with an outline: a leg, a tail, a neck."""
        self.canvas.stroke(
            self._placed(points), self.palette.ink, (width + 0.035) * self._scale, opacity=0.6, tapers=False
        )
        self.canvas.stroke(self._placed(points), colour, width * self._scale, opacity=1.0, tapers=False)

    def shadow(self) -> None:
        """Draw the figure's shadow on the ground."""
        points = self.canvas.oval_points(self._x, self._base + 0.004, 0.95 * self._scale, 0.11 * self._scale)
        self.canvas.fill(points, mix(self.palette.near, (20, 20, 30), 0.4), opacity=0.32, rim=0.0)

    def eyes(self, y: float, apart: float, radius: float) -> None:
        """Draw two eyes with a glint, each `apart` from the middle."""
        for side in (-1, 1):
            self.dot(side * apart, y, radius, (30, 27, 32))
            self.dot(side * apart + radius * 0.3, y + radius * 0.35, radius * 0.34, (255, 255, 255))

    def _placed(self, points: Sequence[Point]) -> list[Point]:
        return [(self._x + x * self._across, self._base - y * self._up) for x, y in points]

    @staticmethod
    def _dense(points: Sequence[Point]) -> list[Point]:
        """Return the outline with three points on each edge, so that a smoothed line keeps its corners."""
        return [
            (x + (next_x - x) * share, y + (next_y - y) * share)
            for (x, y), (next_x, next_y) in zip(points, [*points[1:], points[0]], strict=True)
            for share in (0.02, 0.5, 0.98)
        ]


def both_sides(half: Sequence[Point]) -> list[Point]:
    """Return an outline from one half of it; the other half mirrors the points left to right, in reverse order."""
    return [*half, *((-x, y) for x, y in reversed(half) if x)]

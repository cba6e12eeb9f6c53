"""A small frame for one figure: its own coordinates, so that a drawing reads like the thing it draws."""

from __future__ import annotations

import math
from collections.abc import Sequence

from agent.providers.sketch.brush import Canvas, Point, smooth
from agent.providers.sketch.palette import Colour, Palette, darker, lighter, mix


class Easel:
    """Draws in units of the figure: x to the right from its middle, y up from where it stands.

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

    def shape(self, points: Sequence[Point], colour: Colour, *, sharp: bool = False, line: float = 0.6) -> None:
        """Fill a closed shape, rounded unless `sharp`, lit from above and outlined by hand."""
        placed = self._placed(points)
        outline = placed if sharp else smooth(placed, closed=True)
        self.canvas.fill(outline, lighter(colour, 0.14), darker(colour, 0.16))
        if line:
            self.canvas.outline(
                self._dense(placed) if sharp else outline[::2], self.palette.ink, width=0.0045, opacity=line
            )

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

    def shadow(self, width: float = 0.95) -> None:
        """Lay the figure's shadow on the ground."""
        points = self.canvas.oval_points(self._x, self._base + 0.004, width * self._scale, 0.11 * self._scale)
        self.canvas.fill(points, mix(self.palette.near, (20, 20, 30), 0.4), opacity=0.32, rim=0.0)

    def eyes(self, x: float, y: float, apart: float, radius: float) -> None:
        """Put two eyes with a glint, `apart` from the middle to each side."""
        for side in (-1, 1):
            self.dot(x + side * apart, y, radius, (30, 27, 32))
            self.dot(x + side * apart + radius * 0.3, y + radius * 0.35, radius * 0.34, (255, 255, 255))

    def _placed(self, points: Sequence[Point]) -> list[Point]:
        return [(self._x + x * self._across, self._base - y * self._up) for x, y in points]

    @staticmethod
    def _dense(points: Sequence[Point]) -> list[Point]:
        """Return the corners with two points on each edge, so that a smoothed outline keeps to its corners."""
        dense: list[Point] = []
        for index, start in enumerate(points):
            end = points[(index + 1) % len(points)]
            dense += [
                (start[0] + (end[0] - start[0]) * share, start[1] + (end[1] - start[1]) * share)
                for share in (0.02, 0.5, 0.98)
            ]
        return dense


def both_sides(half: Sequence[Point]) -> list[Point]:
    """Return the closed outline whose right half is given from top to bottom; the left half mirrors it."""
    return [*half, *((-x, y) for x, y in reversed(half) if x)]

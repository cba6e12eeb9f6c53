"""Trees that stand in many places of a sketch."""

from __future__ import annotations

from agent.providers.sketch.brush import Canvas
from agent.providers.sketch.palette import Colour, Palette, darker, lighter, mix


def pine(canvas: Canvas, x: float, base: float, height: float, colour: Colour, palette: Palette) -> None:
    """Draw one fir tree, its height a share of the shorter side."""
    across, down = canvas.unit / canvas.width, canvas.unit / canvas.height
    canvas.stroke(
        [(x, base), (x, base - height * 0.3 * down)], darker(colour, 0.4), height * 0.07, opacity=0.9, tapers=False
    )
    for tier in range(4):
        low = base - height * (0.12 + 0.2 * tier) * down
        top = low - height * 0.34 * down
        wide = height * (0.3 - 0.058 * tier) * across
        tilt = canvas.between(-0.1, 0.1) * wide
        points = [
            (x - wide, low),
            (x - wide * 0.4, low - height * 0.03 * down),
            (x + wide, low + height * 0.01 * down),
            (x + tilt, top),
        ]
        canvas.fill(points, lighter(colour, 0.06 * tier), darker(colour, 0.12))
        if "snow" in palette.moods:
            left, right = (x - wide * 0.45, low - height * 0.16 * down), (x + wide * 0.35, low - height * 0.18 * down)
            canvas.fill([left, (x + tilt, top), right], (248, 250, 253), opacity=0.8, rim=0.0)


def leaf_tree(canvas: Canvas, x: float, base: float, height: float, colour: Colour, palette: Palette) -> None:
    """Draw one tree with a round crown, its height a share of the shorter side."""
    across, down = canvas.unit / canvas.width, canvas.unit / canvas.height
    trunk = mix((96, 68, 54), palette.near, 0.35)
    fork = base - height * 0.55 * down
    canvas.stroke(
        [(x, base), (x + 0.01 * across, fork), (x, fork - height * 0.1 * down)], trunk, height * 0.06, opacity=0.95
    )
    leaf = colour if "autumn" not in palette.moods else mix(palette.accent, (236, 170, 60), canvas.between(0, 0.9))
    leaf = mix((244, 166, 190), (255, 222, 230), canvas.between(0, 0.6)) if "spring" in palette.moods else leaf
    for dx, dy, size in ((0, 0.8, 0.2), (-0.17, 0.66, 0.15), (0.17, 0.66, 0.15), (-0.08, 0.9, 0.12), (0.09, 0.9, 0.12)):
        canvas.oval(x + dx * height * across, base - dy * height * down, size * height, size * height * 0.9,
                    lighter(leaf, 0.14), darker(leaf, 0.14), opacity=0.88)  # fmt: skip

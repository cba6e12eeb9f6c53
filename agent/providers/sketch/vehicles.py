"""What floats, flies and drives."""

from __future__ import annotations

import math

from agent.providers.sketch.easel import Easel
from agent.providers.sketch.palette import Colour, darker, lighter, mix

_GLASS: Colour = (190, 220, 228)
_DARK: Colour = (52, 48, 54)
_WHITE: Colour = (250, 247, 240)


def boat(easel: Easel, colour: Colour) -> None:
    """A small sailing boat on its reflection."""
    easel.shape(
        [(-0.8, -0.08), (0.8, -0.08), (0.5, -0.34), (-0.5, -0.34)], mix(colour, easel.palette.water, 0.7), line=0
    )
    easel.line([(0, 0.3), (0.02, 2.0)], 0.05, darker(colour, 0.3), opacity=1.0)
    easel.shape([(0.07, 1.95), (0.42, 1.3), (0.78, 0.46), (0.07, 0.42)], _WHITE)
    easel.shape([(-0.05, 1.75), (-0.05, 0.42), (-0.66, 0.46), (-0.3, 1.1)], mix(easel.palette.accent, _WHITE, 0.25))
    easel.shape([(0.02, 2.0), (0.3, 1.94), (0.02, 1.86)], easel.palette.accent, sharp=True)
    easel.shape([(-0.95, 0.34), (0.95, 0.34), (0.72, -0.08), (-0.66, -0.08)], colour, sharp=True)
    easel.line([(-0.88, 0.22), (0.9, 0.22)], 0.05, lighter(colour, 0.55))
    for y, reach in ((-0.1, 1.05), (-0.2, 0.8)):
        easel.line(
            [(-reach, y), (-reach * 0.3, y - 0.03), (reach * 0.3, y + 0.02), (reach, y)],
            0.03,
            lighter(easel.palette.water, 0.6),
        )


def balloon(easel: Easel, colour: Colour) -> None:
    """A hot-air balloon with coloured gores."""
    outline = [
        (0, -0.62),
        (0.3, -0.34),
        (0.72, 0.2),
        (0.78, 0.66),
        (0.44, 1.08),
        (0, 1.2),
        (-0.44, 1.08),
        (-0.78, 0.66),
        (-0.72, 0.2),
        (-0.3, -0.34),
    ]
    easel.shape(outline, colour)
    for share, tint in ((0.62, lighter(colour, 0.6)), (0.24, mix(colour, easel.palette.light, 0.25))):
        easel.shape([(x * share, y if abs(x) < 0.01 else y * 0.985) for x, y in outline], tint, line=0.4)
    for x in (-0.22, 0.22):
        easel.line([(x * 0.7, -0.5), (x * 0.55, -0.98)], 0.022)
    easel.shape([(-0.19, -0.96), (0.19, -0.96), (0.14, -1.26), (-0.14, -1.26)], (158, 110, 70), sharp=True)
    easel.line([(-0.18, -1.06), (0.18, -1.06)], 0.022)


def rocket(easel: Easel, colour: Colour) -> None:
    """A rocket with its flame."""
    for reach, tint in ((1.5, (255, 150, 60)), (1.2, (255, 214, 110))):
        easel.shape([(-0.22, -0.72), (0.22, -0.72), (0.14, -1.05), (0, -reach), (-0.14, -1.05)], tint, line=0)
    for side in (-1, 1):
        easel.shape(
            [(side * 0.3, -0.1), (side * 0.7, -0.66), (side * 0.62, -0.86), (side * 0.26, -0.66)], easel.palette.accent
        )
    easel.shape([(0, 1.3), (0.3, 0.8), (0.38, 0.1), (0.28, -0.72), (-0.28, -0.72), (-0.38, 0.1), (-0.3, 0.8)], colour)
    easel.shape([(0, 1.3), (0.2, 1.02), (0.29, 0.8), (0, 0.74), (-0.29, 0.8), (-0.2, 1.02)], easel.palette.accent)
    easel.oval(0, 0.32, 0.19, 0.19, _DARK)
    easel.oval(0, 0.32, 0.14, 0.14, _GLASS, line=0.2)
    easel.line([(-0.33, -0.3), (0, -0.36), (0.33, -0.3)], 0.025, opacity=0.5)


def car(easel: Easel, colour: Colour) -> None:
    """A small car from the side."""
    easel.shape([(-0.62, 0.6), (-0.42, 1.02), (0.1, 1.1), (0.46, 1.0), (0.72, 0.62)], lighter(colour, 0.1))
    easel.shape([(-0.5, 0.64), (-0.34, 0.95), (-0.02, 0.98), (-0.02, 0.64)], _GLASS, sharp=True)
    easel.shape([(0.06, 0.64), (0.06, 0.98), (0.38, 0.92), (0.6, 0.64)], _GLASS, sharp=True)
    easel.shape(
        [(-1.2, 0.24), (-1.2, 0.52), (-0.9, 0.64), (-0.4, 0.66), (0.7, 0.66), (1.12, 0.58), (1.26, 0.4), (1.22, 0.22)],
        colour,
    )
    easel.line([(0.02, 0.62), (0.0, 0.26)], 0.022, opacity=0.5)
    easel.line([(-0.26, 0.52), (-0.12, 0.52)], 0.03)
    easel.dot(1.14, 0.44, 0.075, (255, 238, 170))
    for x in (-0.68, 0.72):
        easel.oval(x, 0.22, 0.25, 0.25, _DARK)
        easel.oval(x, 0.22, 0.11, 0.11, (206, 206, 204))


def bicycle(easel: Easel, colour: Colour) -> None:
    """A bicycle from the side."""
    for x in (-0.72, 0.74):
        ring = [(x + 0.46 * math.cos(k * math.tau / 24), 0.46 + 0.46 * math.sin(k * math.tau / 24)) for k in range(25)]
        easel.line(ring, 0.065, _DARK, opacity=1.0)
        for k in range(6):
            angle = k * math.pi / 6
            easel.line(
                [
                    (x + 0.44 * math.cos(angle), 0.46 + 0.44 * math.sin(angle)),
                    (x - 0.44 * math.cos(angle), 0.46 - 0.44 * math.sin(angle)),
                ],
                0.012,
                opacity=0.45,
            )
    for points in (
        [(-0.72, 0.46), (-0.06, 0.44)],
        [(-0.06, 0.44), (-0.3, 1.12)],
        [(-0.72, 0.46), (-0.26, 1.0)],
        [(-0.26, 1.0), (0.5, 1.04)],
        [(-0.06, 0.44), (0.5, 1.04)],
        [(0.46, 1.22), (0.74, 0.46)],
    ):
        easel.limb(points, 0.07, colour)
    easel.line([(0.44, 1.28), (0.62, 1.36), (0.74, 1.24)], 0.06, _DARK, opacity=1.0)
    easel.shape([(-0.52, 1.14), (-0.3, 1.22), (-0.08, 1.16), (-0.3, 1.1)], _DARK)
    easel.oval(-0.06, 0.44, 0.11, 0.11, (190, 190, 188))
    easel.line([(-0.06, 0.44), (0.06, 0.2), (0.16, 0.2)], 0.045)

"""Drawings of things: vehicles, buildings, plants and objects."""

from __future__ import annotations

import math

from agent.providers.sketch.canvas import FigureFrame, both_sides
from agent.providers.sketch.palette import Colour, darker, lighter, mix

_GLASS: Colour = (190, 220, 228)
_DARK: Colour = (52, 48, 54)
_WHITE: Colour = (250, 247, 240)
_LEAF: Colour = (98, 146, 92)


def boat(frame: FigureFrame, colour: Colour) -> None:
    """Draw a small sailing boat on its reflection."""
    frame.shape(
        [(-0.8, -0.08), (0.8, -0.08), (0.5, -0.34), (-0.5, -0.34)], mix(colour, frame.palette.water, 0.7), line=0
    )
    frame.line([(0, 0.3), (0.02, 2.0)], 0.05, darker(colour, 0.3), opacity=1.0)
    frame.shape([(0.07, 1.95), (0.42, 1.3), (0.78, 0.46), (0.07, 0.42)], _WHITE)
    frame.shape([(-0.05, 1.75), (-0.05, 0.42), (-0.66, 0.46), (-0.3, 1.1)], mix(frame.palette.accent, _WHITE, 0.25))
    frame.shape([(0.02, 2.0), (0.3, 1.94), (0.02, 1.86)], frame.palette.accent, sharp=True)
    frame.shape([(-0.95, 0.34), (0.95, 0.34), (0.72, -0.08), (-0.66, -0.08)], colour, sharp=True)
    frame.line([(-0.88, 0.22), (0.9, 0.22)], 0.05, lighter(colour, 0.55))
    for y, reach in ((-0.1, 1.05), (-0.2, 0.8)):
        wave = [(-reach, y), (-reach * 0.3, y - 0.03), (reach * 0.3, y + 0.02), (reach, y)]
        frame.line(wave, 0.03, lighter(frame.palette.water, 0.6))


def balloon(frame: FigureFrame, colour: Colour) -> None:
    """Draw a hot-air balloon with coloured gores."""
    outline = both_sides([(0, -0.62), (0.3, -0.34), (0.72, 0.2), (0.78, 0.66), (0.44, 1.08), (0, 1.2)])
    frame.shape(outline, colour)
    for share, tint in ((0.62, lighter(colour, 0.6)), (0.24, mix(colour, frame.palette.light, 0.25))):
        frame.shape([(x * share, y if abs(x) < 0.01 else y * 0.985) for x, y in outline], tint, line=0.4)
    for x in (-0.22, 0.22):
        frame.line([(x * 0.7, -0.5), (x * 0.55, -0.98)], 0.022)
    frame.shape([(-0.19, -0.96), (0.19, -0.96), (0.14, -1.26), (-0.14, -1.26)], (158, 110, 70), sharp=True)
    frame.line([(-0.18, -1.06), (0.18, -1.06)], 0.022)


def rocket(frame: FigureFrame, colour: Colour) -> None:
    """Draw a rocket with its flame."""
    for reach, tint in ((1.5, (255, 150, 60)), (1.2, (255, 214, 110))):
        frame.shape([(-0.22, -0.72), (0.22, -0.72), (0.14, -1.05), (0, -reach), (-0.14, -1.05)], tint, line=0)
    for side in (-1, 1):
        frame.shape(
            [(side * 0.3, -0.1), (side * 0.7, -0.66), (side * 0.62, -0.86), (side * 0.26, -0.66)], frame.palette.accent
        )
    frame.shape(both_sides([(0, 1.3), (0.3, 0.8), (0.38, 0.1), (0.28, -0.72)]), colour)
    frame.shape(both_sides([(0, 1.3), (0.2, 1.02), (0.29, 0.8), (0, 0.74)]), frame.palette.accent)
    frame.oval(0, 0.32, 0.19, 0.19, _DARK)
    frame.oval(0, 0.32, 0.14, 0.14, _GLASS, line=0.2)
    frame.line([(-0.33, -0.3), (0, -0.36), (0.33, -0.3)], 0.025, opacity=0.5)


def car(frame: FigureFrame, colour: Colour) -> None:
    """Draw a small car from the side."""
    frame.shape([(-0.62, 0.6), (-0.42, 1.02), (0.1, 1.1), (0.46, 1.0), (0.72, 0.62)], lighter(colour, 0.1))
    frame.shape([(-0.5, 0.64), (-0.34, 0.95), (-0.02, 0.98), (-0.02, 0.64)], _GLASS, sharp=True)
    frame.shape([(0.06, 0.64), (0.06, 0.98), (0.38, 0.92), (0.6, 0.64)], _GLASS, sharp=True)
    frame.shape(
        [(-1.2, 0.24), (-1.2, 0.52), (-0.9, 0.64), (-0.4, 0.66), (0.7, 0.66), (1.12, 0.58), (1.26, 0.4), (1.22, 0.22)],
        colour,
    )
    frame.line([(0.02, 0.62), (0.0, 0.26)], 0.022, opacity=0.5)
    frame.line([(-0.26, 0.52), (-0.12, 0.52)], 0.03)
    frame.dot(1.14, 0.44, 0.075, (255, 238, 170))
    for x in (-0.68, 0.72):
        frame.oval(x, 0.22, 0.25, 0.25, _DARK)
        frame.oval(x, 0.22, 0.11, 0.11, (206, 206, 204))


def bicycle(frame: FigureFrame, colour: Colour) -> None:
    """Draw a bicycle from the side."""
    for x in (-0.72, 0.74):
        ring = [(x + 0.46 * math.cos(k * math.tau / 24), 0.46 + 0.46 * math.sin(k * math.tau / 24)) for k in range(25)]
        frame.line(ring, 0.065, _DARK, opacity=1.0)
        for k in range(6):
            angle = k * math.pi / 6
            across, up = 0.44 * math.cos(angle), 0.44 * math.sin(angle)
            frame.line([(x + across, 0.46 + up), (x - across, 0.46 - up)], 0.012, opacity=0.45)
    for points in (
        [(-0.72, 0.46), (-0.06, 0.44)],
        [(-0.06, 0.44), (-0.3, 1.12)],
        [(-0.72, 0.46), (-0.26, 1.0)],
        [(-0.26, 1.0), (0.5, 1.04)],
        [(-0.06, 0.44), (0.5, 1.04)],
        [(0.46, 1.22), (0.74, 0.46)],
    ):
        frame.limb(points, 0.07, colour)
    frame.line([(0.44, 1.28), (0.62, 1.36), (0.74, 1.24)], 0.06, _DARK, opacity=1.0)
    frame.shape([(-0.52, 1.14), (-0.3, 1.22), (-0.08, 1.16), (-0.3, 1.1)], _DARK)
    frame.oval(-0.06, 0.44, 0.11, 0.11, (190, 190, 188))
    frame.line([(-0.06, 0.44), (0.06, 0.2), (0.16, 0.2)], 0.045)


def lighthouse(frame: FigureFrame, colour: Colour) -> None:
    """Draw a striped lighthouse on its rocks."""
    rock = mix(frame.palette.near, (110, 104, 104), 0.4)
    frame.shape([(-1.1, -0.12), (-0.8, 0.2), (-0.35, 0.34), (0.4, 0.3), (0.85, 0.16), (1.15, -0.12)], rock)
    frame.shape([(-0.36, 0.22), (0.36, 0.22), (0.22, 1.9), (-0.22, 1.9)], _WHITE, sharp=True)
    for low in (0.5, 1.06, 1.6):
        high = low + 0.26
        wide, narrow = (0.36 - 0.14 * (y - 0.22) / 1.68 for y in (low, high))
        frame.shape([(-wide, low), (wide, low), (narrow, high), (-narrow, high)], colour, sharp=True, line=0.2)
    frame.shape([(-0.32, 1.9), (0.32, 1.9), (0.28, 2.0), (-0.28, 2.0)], _DARK, sharp=True)
    frame.shape([(-0.17, 2.0), (0.17, 2.0), (0.17, 2.26), (-0.17, 2.26)], (255, 232, 150), sharp=True)
    frame.shape([(-0.24, 2.26), (0.24, 2.26), (0, 2.52)], colour, sharp=True)
    frame.shape([(-0.1, 0.24), (0.1, 0.24), (0.1, 0.5), (0, 0.56), (-0.1, 0.5)], _DARK, sharp=True)
    frame.dot(0, 1.42, 0.06, _DARK)


def house(frame: FigureFrame, colour: Colour) -> None:
    """Draw a cottage with a smoking chimney."""
    roof = mix((178, 84, 62), frame.palette.accent, 0.35)
    for y, size in ((2.02, 0.11), (2.24, 0.15), (2.5, 0.19)):
        frame.oval(0.66 + (y - 2) * 0.3, y, size, size * 0.8, mix(_WHITE, frame.palette.sky_low, 0.3), line=0.2)
    frame.shape([(0.42, 1.3), (0.66, 1.3), (0.66, 1.86), (0.42, 1.86)], darker(roof, 0.2), sharp=True)
    frame.shape([(-0.86, 0), (0.86, 0), (0.86, 1.0), (-0.86, 1.0)], colour, sharp=True)
    frame.shape([(-1.08, 0.94), (1.08, 0.94), (0.6, 1.68), (-0.6, 1.68)], roof, sharp=True)
    for y in (1.12, 1.3, 1.48):
        frame.line([(-0.94 + (y - 1) * 0.6, y), (0.94 - (y - 1) * 0.6, y)], 0.02, darker(roof, 0.35), opacity=0.5)
    frame.shape([(-0.16, 0), (0.2, 0), (0.2, 0.6), (0.02, 0.68), (-0.16, 0.6)], (120, 78, 56), sharp=True)
    frame.dot(0.13, 0.3, 0.03, (240, 210, 120))
    is_dark = "night" in frame.palette.moods or "sunset" in frame.palette.moods
    glass = (255, 222, 130) if is_dark else _GLASS
    for x in (-0.54, 0.54):
        frame.shape([(x - 0.17, 0.36), (x + 0.17, 0.36), (x + 0.17, 0.72), (x - 0.17, 0.72)], glass, sharp=True)
        frame.line([(x, 0.36), (x, 0.72)], 0.025)
        frame.line([(x - 0.17, 0.54), (x + 0.17, 0.54)], 0.025)
    if "snow" in frame.palette.moods:
        snow = [(-0.8, 1.42), (-0.6, 1.72), (0.6, 1.72), (0.8, 1.42), (0.4, 1.52), (0, 1.44), (-0.4, 1.54)]
        frame.shape(snow, (248, 250, 253), line=0.2)


def umbrella(frame: FigureFrame, colour: Colour) -> None:
    """Draw an open umbrella."""
    frame.line([(0, 1.9), (0, 0.3), (0.06, 0.1), (0.22, 0.08), (0.28, 0.24)], 0.065, (104, 74, 56), opacity=1.0)
    top = both_sides([(-1.1, 1.1), (-0.9, 1.54), (-0.5, 1.84), (0, 1.96)])
    hem = both_sides([(0.88, 1.2), (0.66, 1.24), (0.44, 1.1), (0.22, 1.24), (0, 1.1)])
    frame.shape([*top, *hem], colour)
    for x in (-0.44, 0.0, 0.44):
        frame.line([(0, 1.95), (x * 0.7, 1.6), (x, 1.12)], 0.022, opacity=0.5)
    frame.line([(0, 1.94), (0, 2.1)], 0.05)


def cup(frame: FigureFrame, colour: Colour) -> None:
    """Draw a steaming cup on its saucer."""
    for x in (-0.22, 0.04, 0.3):
        frame.line([(x, 1.15), (x + 0.1, 1.35), (x - 0.06, 1.58), (x + 0.07, 1.84)], 0.045, _WHITE, opacity=0.65)
    frame.oval(0, 0.08, 1.02, 0.17, darker(colour, 0.06))
    frame.oval(0, 0.11, 0.66, 0.1, darker(colour, 0.2), line=0)
    ring = [(0.5, 0.78), (0.8, 0.86), (0.92, 0.62), (0.76, 0.4), (0.48, 0.36)]
    frame.limb(ring, 0.1, colour)
    frame.shape(both_sides([(-0.64, 0.96), (-0.6, 0.5), (-0.36, 0.16), (0, 0.1)]), colour)
    frame.oval(0, 0.96, 0.64, 0.15, lighter(colour, 0.3))
    frame.oval(0, 0.945, 0.55, 0.11, (112, 70, 44), line=0.3)
    frame.line([(-0.26, 0.95), (-0.05, 0.99), (0.2, 0.95)], 0.03, (206, 160, 112), opacity=0.8)
    frame.line([(-0.48, 0.76), (-0.45, 0.5), (-0.32, 0.3)], 0.05, _WHITE, opacity=0.6)


def cake(frame: FigureFrame, colour: Colour) -> None:
    """Draw a layered cake with candles."""
    frame.oval(0, 0.06, 1.05, 0.16, (236, 232, 226))
    for low, wide, tint in ((0.08, 0.84, colour), (0.62, 0.56, lighter(colour, 0.25))):
        frame.shape([(-wide, low), (wide, low), (wide, low + 0.52), (-wide, low + 0.52)], tint, sharp=True)
        drip = [(-wide + wide * 2 * k / 10, low + (0.3 if k % 2 else 0.42)) for k in range(11)]
        frame.shape([(-wide, low + 0.56), *drip, (wide, low + 0.56)], frame.palette.accent, line=0.35)
    for x in (-0.3, 0.0, 0.3):
        frame.line([(x, 1.16), (x, 1.5)], 0.06, lighter(frame.palette.accent, 0.4), opacity=1.0)
        frame.shape([(x, 1.52), (x + 0.06, 1.6), (x, 1.74), (x - 0.06, 1.6)], (255, 206, 90), line=0)


def guitar(frame: FigureFrame, colour: Colour) -> None:
    """Draw an acoustic guitar, upright."""
    frame.shape([(-0.08, 1.1), (0.08, 1.1), (0.07, 2.2), (-0.07, 2.2)], (96, 66, 50), sharp=True)
    frame.shape([(-0.12, 2.18), (0.12, 2.18), (0.15, 2.5), (-0.15, 2.5)], darker(colour, 0.35), sharp=True)
    body = both_sides([(0, 0), (0.5, 0.08), (0.62, 0.4), (0.4, 0.74), (0.44, 1.0), (0.26, 1.24), (0, 1.28)])
    frame.shape(body, colour)
    frame.oval(0, 0.78, 0.2, 0.2, _DARK)
    frame.shape([(-0.2, 0.3), (0.2, 0.3), (0.2, 0.38), (-0.2, 0.38)], _DARK, sharp=True)
    for x in (-0.045, -0.015, 0.015, 0.045):
        frame.line([(x, 0.34), (x, 2.4)], 0.011, (250, 240, 214), opacity=0.9)
    for y in (1.4, 1.62, 1.82, 2.0):
        frame.line([(-0.07, y), (0.07, y)], 0.018, (220, 206, 170))
    for side in (-1, 1):
        for y in (2.26, 2.36, 2.46):
            frame.dot(side * 0.18, y, 0.035, (226, 216, 190))


def fruit(frame: FigureFrame, colour: Colour) -> None:
    """Draw three fruits, one leaf."""
    for x, y, size, tint in (
        (-0.62, 0.42, 0.43, mix(colour, (240, 180, 66), 0.75)),
        (0.66, 0.38, 0.4, mix(colour, (150, 178, 84), 0.75)),
        (0.02, 0.5, 0.52, colour),
    ):
        apple = both_sides([(0, -0.96), (0.5, -0.94), (0.98, -0.3), (0.96, 0.4), (0.55, 0.86), (0, 0.72)])
        frame.shape([(x + px * size, y + py * size) for px, py in apple], tint)
        frame.line([(x - 0.52 * size, y + 0.5 * size), (x - 0.68 * size, y + 0.1 * size)], 0.06, _WHITE, opacity=0.55)
        frame.line([(x, y + 0.66 * size), (x + 0.05, y + 1.1 * size)], 0.04, (92, 66, 48), opacity=1.0)
    frame.shape([(0.06, 1.0), (0.2, 1.2), (0.5, 1.22), (0.34, 1.02)], _LEAF)


def flowers(frame: FigureFrame, colour: Colour) -> None:
    """Draw a bunch of flowers in a vase."""
    vase = mix(frame.palette.water, _WHITE, 0.35)
    heads = ((-0.56, 1.62, 0.3), (0.58, 1.66, 0.29), (0.0, 2.0, 0.33), (-0.22, 1.36, 0.24), (0.3, 1.3, 0.23))
    for x, y, _ in heads:
        frame.line([(0, 0.7), (x * 0.4, 1.0), (x, y)], 0.045, darker(_LEAF, 0.15), opacity=1.0)
    for x, y in ((-0.5, 1.08), (0.54, 1.06), (-0.7, 1.28), (0.8, 1.3)):
        frame.shape([(x * 0.3, 0.9), (x * 0.8, y + 0.1), (x * 1.15, y + 0.06), (x * 0.7, y - 0.12)], _LEAF)
    for index, (x, y, size) in enumerate(heads):
        tint = (colour, lighter(colour, 0.45), mix(colour, (246, 200, 96), 0.5))[index % 3]
        for petal in range(7):
            angle = petal * math.tau / 7 + index
            across, up = size * 0.6 * math.cos(angle), size * 0.6 * math.sin(angle)
            frame.oval(x + across, y + up, size * 0.42, size * 0.42, tint, line=0.35)
        frame.oval(x, y, size * 0.32, size * 0.32, (240, 190, 84))
    frame.shape(
        [(-0.3, 0.96), (0.3, 0.96), (0.24, 0.74), (0.46, 0.36), (0.3, 0.0), (-0.3, 0.0), (-0.46, 0.36), (-0.24, 0.74)],
        vase,
    )
    frame.line([(-0.3, 0.5), (-0.32, 0.34), (-0.22, 0.14)], 0.05, _WHITE, opacity=0.6)


def tree(frame: FigureFrame, colour: Colour) -> None:
    """Draw one old tree with a wide crown."""
    bark = mix((108, 78, 60), frame.palette.near, 0.25)
    moods = frame.palette.moods
    leaf = mix(colour, frame.palette.accent, 0.85) if "autumn" in moods else colour
    leaf = (246, 178, 198) if "spring" in moods else leaf
    left = [(-0.34, 0), (-0.14, 0.2), (-0.13, 0.8), (-0.3, 1.2)]
    right = [(0.3, 1.22), (0.14, 0.8), (0.15, 0.2), (0.36, 0)]
    frame.shape([*left, (0, 1.04), *right], bark)
    sides = ((-0.62, 1.36, 0.4), (0.64, 1.38, 0.4), (-0.3, 1.72, 0.44), (0.34, 1.74, 0.44))
    for x, y, size in (*sides, (0, 1.44, 0.5), (0.02, 2.0, 0.34)):
        frame.oval(x, y, size, size * 0.86, mix(leaf, frame.palette.light, 0.08 + (y - 1.3) * 0.2), line=0.35)
    for _ in range(26):
        x, y = frame.canvas.between(-0.9, 0.9), frame.canvas.between(1.15, 2.2)
        if x**2 + ((y - 1.6) / 0.66) ** 2 < 1:
            frame.dot(x, y, 0.028, lighter(leaf, frame.canvas.between(0.1, 0.5)))


def heart(frame: FigureFrame, colour: Colour) -> None:
    """Draw a heart with a highlight."""
    points = both_sides([(0, -0.95), (0.6, -0.4), (1.0, 0.16), (0.94, 0.66), (0.5, 0.86), (0.14, 0.7), (0, 0.42)])
    frame.shape(points, colour)
    frame.line([(-0.72, 0.2), (-0.7, 0.5), (-0.46, 0.64)], 0.1, _WHITE, opacity=0.6)


def star(frame: FigureFrame, colour: Colour) -> None:
    """Draw a five-pointed star."""
    turns = [(k * math.pi / 5, 0.46 if k % 2 else 1.0) for k in range(10)]
    frame.shape([(reach * math.sin(turn), reach * math.cos(turn)) for turn, reach in turns], colour, sharp=True)

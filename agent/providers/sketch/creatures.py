"""Drawings of animals, each from a few round shapes, of people and of figures like them."""

from __future__ import annotations

from agent.providers.sketch.canvas import FigureFrame, both_sides
from agent.providers.sketch.palette import Colour, darker, lighter, mix

_CREAM: Colour = (250, 240, 224)
_PINK: Colour = (226, 150, 144)
_DARK: Colour = (48, 42, 46)
_SKINS: tuple[Colour, ...] = ((244, 208, 178), (226, 178, 142), (188, 134, 98), (134, 92, 66))
_HAIRS: tuple[Colour, ...] = ((52, 42, 44), (98, 64, 46), (178, 122, 66), (72, 58, 62), (196, 104, 58))


def _sitting_body(frame: FigureFrame, colour: Colour, *, tall: float = 1.0) -> None:
    body = both_sides([(0, 0), (0.52, 0.02), (0.62, 0.34), (0.46, 0.8), (0.24, 1.15)])
    frame.shape([(x, y * tall) for x, y in body], colour)
    frame.oval(0, 0.62 * tall, 0.27, 0.42 * tall, mix(colour, _CREAM, 0.7), line=0)
    for side in (-1, 1):
        frame.line([(side * 0.13, 0.55 * tall), (side * 0.12, 0.25), (side * 0.13, 0.06)], 0.03, opacity=0.5)
        frame.oval(side * 0.2, 0.07, 0.18, 0.09, mix(colour, _CREAM, 0.45))
        frame.line([(side * 0.4, 0.42 * tall), (side * 0.5, 0.24), (side * 0.44, 0.08)], 0.025, opacity=0.4)


def _whiskers(frame: FigureFrame, y: float, reach: float) -> None:
    for side in (-1, 1):
        for lift in (-0.05, 0.02, 0.09):
            frame.line([(side * 0.16, y), (side * reach, y + lift)], 0.014, opacity=0.6)


def cat(frame: FigureFrame, colour: Colour) -> None:
    """Draw a sitting cat with a curled tail."""
    frame.limb([(0.42, 0.12), (0.82, 0.14), (0.98, 0.44), (0.84, 0.72), (0.92, 0.9)], 0.15, darker(colour, 0.08))
    _sitting_body(frame, colour)
    for side in (-1, 1):
        frame.shape([(side * 0.4, 1.52), (side * 0.42, 1.98), (side * 0.1, 1.74)], colour, sharp=True)
        frame.shape([(side * 0.35, 1.6), (side * 0.36, 1.86), (side * 0.18, 1.72)], _PINK, sharp=True, line=0)
    frame.shape(both_sides([(0, 1.05), (0.32, 1.12), (0.46, 1.38), (0.36, 1.68), (0, 1.8)]), colour)
    for x in (-0.1, 0.0, 0.1):
        frame.line([(x, 1.78), (x * 0.8, 1.64)], 0.035, darker(colour, 0.4), opacity=0.7)
    frame.oval(0, 1.2, 0.2, 0.13, mix(colour, _CREAM, 0.75), line=0)
    frame.eyes(1.42, 0.18, 0.075)
    frame.shape([(-0.05, 1.29), (0.05, 1.29), (0, 1.23)], _PINK, sharp=True)
    frame.line([(-0.1, 1.15), (-0.05, 1.13), (0, 1.2), (0.05, 1.13), (0.1, 1.15)], 0.022)
    _whiskers(frame, 1.24, 0.62)


def fox(frame: FigureFrame, colour: Colour) -> None:
    """Draw a sitting fox with a bushy, white-tipped tail."""
    tail = [(0.3, 0.06), (0.72, 0.02), (1.12, 0.26), (1.2, 0.66), (1.0, 0.98), (0.94, 0.66), (0.72, 0.46), (0.4, 0.36)]
    frame.shape(tail, darker(colour, 0.05))
    frame.shape([(1.18, 0.52), (1.2, 0.72), (1.0, 0.98), (0.95, 0.74), (1.04, 0.66)], _CREAM, line=0.3)
    _sitting_body(frame, colour)
    for side in (-1, 1):
        frame.shape([(side * 0.46, 1.5), (side * 0.5, 2.05), (side * 0.08, 1.72)], colour, sharp=True)
        frame.shape([(side * 0.41, 1.62), (side * 0.43, 1.93), (side * 0.2, 1.73)], _DARK, sharp=True, line=0)
    frame.shape(both_sides([(0, 1.0), (0.2, 1.12), (0.56, 1.32), (0.4, 1.68), (0, 1.8)]), colour)
    for side in (-1, 1):
        cheek = [(0, 1.03), (side * 0.2, 1.13), (side * 0.53, 1.32), (side * 0.22, 1.38), (side * 0.05, 1.24)]
        frame.shape(cheek, _CREAM, line=0)
    frame.eyes(1.45, 0.2, 0.065)
    frame.oval(0, 1.07, 0.085, 0.06, _DARK, line=0)


def rabbit(frame: FigureFrame, colour: Colour) -> None:
    """Draw a sitting rabbit, one ear bent."""
    frame.oval(0.58, 0.24, 0.18, 0.17, _CREAM)
    _sitting_body(frame, colour, tall=0.92)
    for side, points in (
        (-1, [(-0.24, 1.5), (-0.36, 2.1), (-0.22, 2.42), (-0.06, 2.1), (-0.06, 1.55)]),
        (1, [(0.06, 1.55), (0.1, 2.1), (0.28, 2.4), (0.38, 2.08), (0.24, 1.5)]),
    ):
        frame.shape(points, colour)
        frame.oval(side * 0.19, 1.98, 0.055, 0.28, _PINK, line=0)
    frame.shape(both_sides([(0, 0.98), (0.36, 1.08), (0.44, 1.36), (0.3, 1.62), (0, 1.7)]), colour)
    frame.oval(0, 1.14, 0.2, 0.12, _CREAM, line=0)
    frame.eyes(1.38, 0.2, 0.07)
    frame.oval(0, 1.22, 0.05, 0.035, _PINK)
    frame.line([(-0.09, 1.1), (0, 1.17), (0.09, 1.1)], 0.022)
    _whiskers(frame, 1.18, 0.56)


def bear(frame: FigureFrame, colour: Colour) -> None:
    """Draw a round sitting bear, or a panda."""
    limbs, ears = darker(colour, 0.08), darker(colour, 0.1)
    if frame.names("panda"):
        colour, limbs, ears = (246, 243, 236), _DARK, _DARK
    for side in (-1, 1):
        frame.oval(side * 0.5, 0.17, 0.26, 0.2, limbs)
        arm = [(side * 0.38, 1.0), (side * 0.72, 0.82), (side * 0.78, 0.5), (side * 0.6, 0.46), (side * 0.42, 0.72)]
        frame.shape(arm, limbs)
    frame.oval(0, 0.62, 0.6, 0.62, colour)
    frame.oval(0, 0.56, 0.36, 0.42, mix(colour, _CREAM, 0.6), line=0)
    for side in (-1, 1):
        frame.oval(side * 0.4, 1.78, 0.18, 0.18, ears)
        frame.oval(side * 0.4, 1.78, 0.09, 0.09, mix(colour, _PINK, 0.6), line=0)
    frame.oval(0, 1.46, 0.52, 0.45, colour)
    frame.oval(0, 1.3, 0.25, 0.18, mix(colour, _CREAM, 0.75), line=0.3)
    if limbs is _DARK:
        for side in (-1, 1):
            frame.oval(side * 0.21, 1.54, 0.13, 0.15, _DARK, line=0)
    frame.eyes(1.56, 0.2, 0.06)
    frame.oval(0, 1.38, 0.09, 0.06, _DARK, line=0)
    frame.line([(-0.1, 1.23), (0, 1.27), (0, 1.33), (0, 1.27), (0.1, 1.23)], 0.025)
    for side in (-1, 1):
        frame.oval(side * 0.5, 0.14, 0.11, 0.1, mix(colour, _CREAM, 0.5), line=0)


def bird(frame: FigureFrame, colour: Colour) -> None:
    """Draw a round bird on a branch."""
    wood = mix((110, 78, 58), frame.palette.near, 0.3)
    frame.line([(-1.3, 0.08), (-0.4, 0.0), (0.5, 0.03), (1.35, 0.14)], 0.13, wood, opacity=1.0)
    for x, y in ((-0.95, 0.2), (0.95, 0.24), (1.2, 0.02)):
        leaf = [(x - 0.16, y), (x, y + 0.1), (x + 0.18, y + 0.02), (x, y - 0.07)]
        frame.shape(leaf, mix((106, 150, 92), frame.palette.mid, 0.3))
    frame.shape([(-0.5, 0.42), (-1.2, 0.2), (-1.22, 0.36), (-0.52, 0.72)], darker(colour, 0.25))
    breast = [(0.05, 0.12), (0.5, 0.3), (0.66, 0.72), (0.62, 1.2), (0.3, 1.42)]
    back = [(-0.02, 1.28), (-0.3, 0.9), (-0.62, 0.56), (-0.4, 0.22)]
    frame.shape([*breast, *back], colour)
    frame.shape(
        [(0.12, 0.17), (0.46, 0.34), (0.58, 0.72), (0.38, 0.92), (0.12, 0.62)], mix(colour, _CREAM, 0.75), line=0
    )
    frame.shape(
        [(0.1, 0.86), (-0.06, 0.46), (-0.5, 0.3), (-0.86, 0.36), (-0.42, 0.66), (-0.14, 0.96)], darker(colour, 0.22)
    )
    for shift in (0.0, 0.12):
        frame.line(
            [(-0.08 - shift, 0.6 - shift * 0.6), (-0.36 - shift, 0.46 - shift * 0.5), (-0.6, 0.4)], 0.022, opacity=0.5
        )
    frame.shape([(0.6, 1.22), (0.9, 1.1), (0.6, 1.03)], (238, 170, 66), sharp=True)
    frame.dot(0.4, 1.18, 0.075, _DARK)
    frame.dot(0.42, 1.2, 0.025, (255, 255, 255))
    for x in (0.02, 0.2):
        frame.line([(x, 0.16), (x + 0.02, 0.02)], 0.04, darker((238, 170, 66), 0.15), opacity=1.0)


def fish(frame: FigureFrame, colour: Colour) -> None:
    """Draw a fish with a flowing tail, seen from the side."""
    fin = lighter(colour, 0.25)
    frame.shape([(-0.7, 0), (-1.25, 0.55), (-1.4, 0.42), (-1.18, 0.0), (-1.4, -0.42), (-1.25, -0.55)], fin)
    frame.shape([(-0.35, 0.4), (-0.2, 0.85), (0.3, 0.78), (0.42, 0.42)], fin)
    frame.shape([(-0.1, -0.42), (-0.2, -0.75), (0.2, -0.66), (0.3, -0.4)], fin)
    back = [(0.98, 0.02), (0.74, 0.32), (0.2, 0.5), (-0.4, 0.36), (-0.8, 0.06)]
    belly = [(-0.8, -0.06), (-0.4, -0.36), (0.2, -0.5), (0.74, -0.3)]
    frame.shape([*back, *belly], colour)
    frame.shape([(0.9, -0.06), (0.6, -0.36), (0.1, -0.45), (-0.4, -0.3), (0.2, -0.2)], mix(colour, _CREAM, 0.6), line=0)
    frame.line([(0.46, 0.36), (0.36, 0.02), (0.46, -0.32)], 0.035, darker(colour, 0.3), opacity=0.7)
    for x in (-0.45, -0.2, 0.05):
        for y in (-0.12, 0.1):
            frame.line([(x, y + 0.1), (x - 0.07, y), (x, y - 0.1)], 0.024, darker(colour, 0.3), opacity=0.5)
    frame.shape([(0.2, -0.06), (-0.1, 0.08), (-0.2, -0.16), (0.06, -0.22)], fin)
    frame.dot(0.66, 0.12, 0.1, (255, 255, 255))
    frame.dot(0.68, 0.12, 0.06, _DARK)
    frame.line([(0.96, -0.05), (0.86, -0.1), (0.8, -0.06)], 0.028)


def dragon(frame: FigureFrame, colour: Colour) -> None:
    """Draw a small dragon with wings and a spiked back."""
    wing = mix(colour, frame.palette.accent, 0.5)
    frame.shape([(-0.1, 0.95), (-0.5, 1.75), (-0.62, 1.3), (-0.98, 1.5), (-0.86, 1.1), (-1.2, 1.1), (-0.5, 0.7)], wing)
    frame.limb([(-0.4, 0.3), (-0.85, 0.12), (-1.2, 0.2), (-1.36, 0.48)], 0.16, colour)
    frame.shape([(-1.36, 0.42), (-1.54, 0.62), (-1.3, 0.74), (-1.22, 0.52)], wing)
    breast = [(0.0, 0.02), (0.42, 0.08), (0.55, 0.45), (0.5, 0.95), (0.44, 1.35)]
    back = [(0.1, 1.3), (-0.05, 0.95), (-0.45, 0.55), (-0.5, 0.1)]
    frame.shape([*breast, *back], colour)
    frame.shape(
        [(0.15, 0.08), (0.44, 0.16), (0.52, 0.6), (0.42, 1.1), (0.26, 0.7)], mix(colour, (248, 228, 160), 0.75), line=0
    )
    for x, y in ((-0.36, 0.72), (-0.18, 0.94), (-0.04, 1.16), (0.06, 1.42), (0.12, 1.68)):
        frame.shape([(x + 0.1, y - 0.08), (x - 0.14, y + 0.12), (x + 0.1, y + 0.1)], wing, sharp=True)
    head = [(0.1, 1.3), (0.12, 1.66), (0.36, 1.84), (0.66, 1.74), (0.98, 1.56), (0.98, 1.38), (0.7, 1.3), (0.4, 1.22)]
    frame.shape(head, colour)
    for x in (0.2, 0.4):
        frame.shape([(x, 1.78), (x - 0.1, 2.1), (x + 0.13, 1.82)], _CREAM, sharp=True)
    frame.dot(0.54, 1.6, 0.07, (255, 240, 180))
    frame.dot(0.56, 1.6, 0.04, _DARK)
    frame.dot(0.9, 1.52, 0.025, _DARK)
    frame.line([(0.96, 1.44), (0.76, 1.4), (0.6, 1.43)], 0.025)
    for x in (-0.2, 0.3):
        frame.oval(x, 0.08, 0.24, 0.1, darker(colour, 0.08))


def horse(frame: FigureFrame, colour: Colour) -> None:
    """Draw a horse standing, seen from the side."""
    mane = darker(colour, 0.5)
    frame.limb([(-0.78, 0.98), (-1.08, 0.8), (-1.06, 0.4)], 0.14, mane)
    for x, shade in ((-0.5, 0.25), (0.5, 0.25), (-0.7, 0.05), (0.68, 0.05)):
        frame.limb([(x, 0.8), (x + 0.02, 0.4), (x, 0.03)], 0.17, darker(colour, shade))
        frame.oval(x + 0.02, 0.05, 0.11, 0.07, mane, line=0.3)
    back = [(-0.86, 0.94), (-0.7, 1.18), (-0.1, 1.12), (0.46, 1.2), (0.84, 1.04)]
    belly = [(0.8, 0.72), (0.3, 0.58), (-0.3, 0.58), (-0.8, 0.64)]
    frame.shape([*back, *belly], colour)
    frame.shape([(0.36, 1.14), (0.7, 1.62), (0.78, 1.98), (1.06, 1.86), (1.06, 1.5), (0.92, 0.92)], colour)
    frame.shape([(0.74, 1.98), (1.0, 2.02), (1.26, 1.78), (1.56, 1.5), (1.5, 1.34), (1.3, 1.36), (0.98, 1.62)], colour)
    frame.shape([(0.8, 1.94), (0.84, 2.24), (0.98, 2.0)], colour, sharp=True)
    frame.shape([(0.82, 2.06), (0.62, 1.9), (0.42, 1.42), (0.26, 1.2), (0.5, 1.16), (0.7, 1.54), (0.84, 1.84)], mane)
    frame.dot(1.08, 1.8, 0.05, _DARK)
    frame.dot(1.46, 1.46, 0.028, _DARK)
    frame.line([(1.5, 1.38), (1.38, 1.42)], 0.022)


def butterfly(frame: FigureFrame, colour: Colour) -> None:
    """Draw a butterfly with open wings."""
    for side in (-1, 1):
        upper = [(0.05, 0.1), (0.5, 0.78), (1.06, 0.86), (1.16, 0.44), (0.72, 0.02), (0.1, -0.04)]
        lower = [(0.06, -0.04), (0.66, -0.12), (0.84, -0.56), (0.56, -0.9), (0.2, -0.6)]
        frame.shape([(side * x, y) for x, y in lower], mix(colour, frame.palette.light, 0.3))
        frame.shape([(side * x, y) for x, y in upper], colour)
        for x, y, size in ((0.86, 0.56, 0.13), (0.56, 0.36, 0.1), (0.56, -0.46, 0.11)):
            frame.oval(side * x, y, size, size, lighter(colour, 0.6), line=0.3)
        for end in ((1.0, 0.7), (0.9, 0.3), (0.6, -0.6)):
            frame.line(
                [(side * 0.08, 0.02), (side * end[0] * 0.5, end[1] * 0.55), (side * end[0], end[1])], 0.02, opacity=0.35
            )
        frame.line([(side * 0.03, 0.42), (side * 0.14, 0.74), (side * 0.3, 0.9)], 0.026)
    frame.oval(0, -0.02, 0.075, 0.5, _DARK)


def person(frame: FigureFrame, colour: Colour) -> None:
    """Draw a head-and-shoulders portrait; the words select long hair, grey hair and a hat."""
    skin = _SKINS[int(frame.canvas.between(0, len(_SKINS)))]
    hair = _HAIRS[int(frame.canvas.between(0, len(_HAIRS)))]
    if frame.names("old"):
        hair = (206, 204, 202)
    if frame.names("long_hair"):
        back = [(0, 2.0), (0.5, 1.85), (0.62, 1.3), (0.66, 0.72), (0.4, 0.5)]
        frame.shape(both_sides(back), darker(hair, 0.12))
    chest = [(0.2, 0.66), (0.55, 0.58), (0.95, 0.34), (1.05, -0.3)]
    frame.shape(both_sides(chest), colour)
    frame.shape([(-0.17, 0.95), (0.17, 0.95), (0.22, 0.62), (0, 0.46), (-0.22, 0.62)], darker(skin, 0.12), line=0.3)
    frame.line([(-0.3, 0.64), (0, 0.4), (0.3, 0.64)], 0.06, lighter(colour, 0.4))
    for side in (-1, 1):
        frame.line([(side * 0.62, 0.1), (side * 0.66, -0.15)], 0.025, opacity=0.4)
    for side in (-1, 1):
        frame.oval(side * 0.43, 1.26, 0.08, 0.12, skin)
    head = [(0, 1.76), (0.4, 1.56), (0.42, 1.2), (0.24, 0.86), (0, 0.76)]
    frame.shape(both_sides(head), skin)
    for side in (-1, 1):
        frame.oval(side * 0.26, 1.06, 0.09, 0.06, mix(skin, (232, 110, 100), 0.4), line=0)
        frame.line([(side * 0.09, 1.4), (side * 0.17, 1.44), (side * 0.27, 1.4)], 0.032, darker(hair, 0.2))
    frame.eyes(1.27, 0.17, 0.05)
    frame.line([(0.01, 1.24), (0.05, 1.11), (-0.01, 1.09)], 0.022, darker(skin, 0.45), opacity=0.7)
    frame.line([(-0.1, 0.97), (0, 0.935), (0.1, 0.97)], 0.034, (176, 82, 78))
    top = both_sides([(-0.46, 1.28), (-0.5, 1.62), (-0.34, 1.9), (0, 2.0)])
    frame.shape([*top, (0.36, 1.52), (0.1, 1.66), (-0.16, 1.56), (-0.36, 1.5)], hair)
    for x in (-0.2, 0.05, 0.25):
        frame.line([(x, 1.94), (x * 1.5 + 0.02, 1.74)], 0.022, lighter(hair, 0.25), opacity=0.6)
    if frame.names("hat"):
        crown = both_sides([(-0.46, 1.72), (-0.42, 2.1), (-0.2, 2.3)])
        frame.shape(crown, darker(colour, 0.06))
        brim = [(-0.86, 1.68), (-0.4, 1.82), (0.4, 1.82), (0.86, 1.68), (0.4, 1.62), (-0.4, 1.62)]
        frame.shape(brim, darker(colour, 0.12))
        frame.line([(-0.46, 1.86), (0, 1.92), (0.46, 1.86)], 0.1, lighter(colour, 0.5))


def robot(frame: FigureFrame, colour: Colour) -> None:
    """Draw a friendly robot, waving."""
    joint = darker(colour, 0.4)
    for side in (-1, 1):
        x = side * 0.25
        frame.limb([(side * 0.24, 0.5), (x, 0.1)], 0.16, joint)
        frame.shape([(x - 0.2, 0), (x + 0.2, 0), (x + 0.15, 0.17), (x - 0.15, 0.17)], colour, sharp=True)
    frame.limb([(-0.5, 1.0), (-0.8, 0.8), (-0.78, 0.5)], 0.13, joint)
    frame.limb([(0.5, 1.0), (0.86, 1.12), (0.96, 1.5)], 0.13, joint)
    frame.oval(-0.78, 0.44, 0.13, 0.12, colour)
    frame.oval(0.97, 1.58, 0.13, 0.12, colour)
    frame.shape([(-0.5, 0.42), (0.5, 0.42), (0.56, 1.14), (-0.56, 1.14)], colour, sharp=True)
    frame.shape([(-0.3, 0.62), (0.3, 0.62), (0.3, 0.96), (-0.3, 0.96)], lighter(colour, 0.55), sharp=True)
    for x, light in ((-0.16, frame.palette.accent), (0.0, (240, 196, 84)), (0.16, (96, 176, 140))):
        frame.dot(x, 0.79, 0.055, light)
    frame.limb([(0, 1.14), (0, 1.26)], 0.18, joint)
    frame.shape([(-0.48, 1.26), (0.48, 1.26), (0.5, 1.9), (-0.5, 1.9)], lighter(colour, 0.12), sharp=True)
    frame.shape([(-0.36, 1.42), (0.36, 1.42), (0.36, 1.78), (-0.36, 1.78)], (40, 46, 62), sharp=True, line=0.3)
    for side in (-1, 1):
        frame.dot(side * 0.17, 1.64, 0.075, (126, 236, 224))
        frame.oval(side * 0.53, 1.58, 0.06, 0.13, joint)
    frame.line([(-0.12, 1.5), (0, 1.47), (0.12, 1.5)], 0.03, (126, 236, 224))
    frame.line([(0, 1.9), (0.02, 2.14)], 0.04)
    frame.dot(0.02, 2.18, 0.075, frame.palette.accent)

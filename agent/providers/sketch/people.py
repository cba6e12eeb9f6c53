"""People and those made like them."""

from __future__ import annotations

import re

from agent.providers.sketch.easel import Easel, both_sides
from agent.providers.sketch.palette import Colour, darker, lighter, mix

_LONG_HAIR = re.compile(
    r"\b(?:wom[ae]n|girls?|lady|ladies|princess|queen|witch|mother|grandma|dancers?)\b|女"
    r"|公主|姑娘|妈|奶奶"
)
_OLD = re.compile(r"\b(?:old|elderly|grandma|grandpa|wizards?|senior)\b|老|爷爷|奶奶|巫师")
_HAT = re.compile(r"\b(?:hats?|caps?|wizards?|witch|cowboy)\b|帽|巫师|牛仔")
_SKINS: tuple[Colour, ...] = ((244, 208, 178), (226, 178, 142), (188, 134, 98), (134, 92, 66))
_HAIRS: tuple[Colour, ...] = ((52, 42, 44), (98, 64, 46), (178, 122, 66), (72, 58, 62), (196, 104, 58))


def person(easel: Easel, colour: Colour) -> None:
    """A head-and-shoulders portrait; the words decide on long hair, grey hair and a hat."""
    skin = _SKINS[int(easel.canvas.between(0, len(_SKINS)))]
    hair = _HAIRS[int(easel.canvas.between(0, len(_HAIRS)))]
    if _OLD.search(easel.words):
        hair = (206, 204, 202)
    if _LONG_HAIR.search(easel.words):
        back = [(0, 2.0), (0.5, 1.85), (0.62, 1.3), (0.66, 0.72), (0.4, 0.5)]
        easel.shape(both_sides(back), darker(hair, 0.12))
    _shoulders(easel, skin, colour)
    for side in (-1, 1):
        easel.oval(side * 0.43, 1.26, 0.08, 0.12, skin)
    head = [(0, 1.76), (0.4, 1.56), (0.42, 1.2), (0.24, 0.86), (0, 0.76)]
    easel.shape(both_sides(head), skin)
    _face(easel, skin, hair)
    _fringe(easel, hair)
    if _HAT.search(easel.words):
        _hat(easel, colour)


def _shoulders(easel: Easel, skin: Colour, colour: Colour) -> None:
    chest = [(0.2, 0.66), (0.55, 0.58), (0.95, 0.34), (1.05, -0.3)]
    easel.shape(both_sides(chest), colour)
    easel.shape([(-0.17, 0.95), (0.17, 0.95), (0.22, 0.62), (0, 0.46), (-0.22, 0.62)], darker(skin, 0.12), line=0.3)
    easel.line([(-0.3, 0.64), (0, 0.4), (0.3, 0.64)], 0.06, lighter(colour, 0.4))
    for side in (-1, 1):
        easel.line([(side * 0.62, 0.1), (side * 0.66, -0.15)], 0.025, opacity=0.4)


def _fringe(easel: Easel, hair: Colour) -> None:
    top = [(-0.46, 1.28), (-0.5, 1.62), (-0.34, 1.9), (0, 2.0), (0.34, 1.9), (0.5, 1.62), (0.46, 1.28)]
    easel.shape([*top, (0.36, 1.52), (0.1, 1.66), (-0.16, 1.56), (-0.36, 1.5)], hair)
    for x in (-0.2, 0.05, 0.25):
        easel.line([(x, 1.94), (x * 1.5 + 0.02, 1.74)], 0.022, lighter(hair, 0.25), opacity=0.6)


def _hat(easel: Easel, colour: Colour) -> None:
    crown = [(-0.46, 1.72), (-0.42, 2.1), (-0.2, 2.3), (0.2, 2.3), (0.42, 2.1), (0.46, 1.72)]
    easel.shape(crown, darker(colour, 0.06))
    easel.shape(
        [(-0.86, 1.68), (-0.4, 1.82), (0.4, 1.82), (0.86, 1.68), (0.4, 1.62), (-0.4, 1.62)], darker(colour, 0.12)
    )
    easel.line([(-0.46, 1.86), (0, 1.92), (0.46, 1.86)], 0.1, lighter(colour, 0.5))


def _face(easel: Easel, skin: Colour, hair: Colour) -> None:
    for side in (-1, 1):
        easel.oval(side * 0.26, 1.06, 0.09, 0.06, mix(skin, (232, 110, 100), 0.4), line=0)
        easel.line([(side * 0.09, 1.4), (side * 0.17, 1.44), (side * 0.27, 1.4)], 0.032, darker(hair, 0.2))
    easel.eyes(0, 1.27, 0.17, 0.05)
    easel.line([(0.01, 1.24), (0.05, 1.11), (-0.01, 1.09)], 0.022, darker(skin, 0.45), opacity=0.7)
    easel.line([(-0.1, 0.97), (0, 0.935), (0.1, 0.97)], 0.034, (176, 82, 78))


def robot(easel: Easel, colour: Colour) -> None:
    """A friendly robot, waving."""
    joint = darker(colour, 0.4)
    for side in (-1, 1):
        easel.limb([(side * 0.24, 0.5), (side * 0.25, 0.1)], 0.16, joint)
        easel.shape(
            [(side * 0.25 - 0.2, 0), (side * 0.25 + 0.2, 0), (side * 0.25 + 0.15, 0.17), (side * 0.25 - 0.15, 0.17)],
            colour,
            sharp=True,
        )
    easel.limb([(-0.5, 1.0), (-0.8, 0.8), (-0.78, 0.5)], 0.13, joint)
    easel.limb([(0.5, 1.0), (0.86, 1.12), (0.96, 1.5)], 0.13, joint)
    easel.oval(-0.78, 0.44, 0.13, 0.12, colour)
    easel.oval(0.97, 1.58, 0.13, 0.12, colour)
    easel.shape([(-0.5, 0.42), (0.5, 0.42), (0.56, 1.14), (-0.56, 1.14)], colour, sharp=True)
    easel.shape([(-0.3, 0.62), (0.3, 0.62), (0.3, 0.96), (-0.3, 0.96)], lighter(colour, 0.55), sharp=True)
    for x, light in ((-0.16, easel.palette.accent), (0.0, (240, 196, 84)), (0.16, (96, 176, 140))):
        easel.dot(x, 0.79, 0.055, light)
    easel.limb([(0, 1.14), (0, 1.26)], 0.18, joint)
    easel.shape([(-0.48, 1.26), (0.48, 1.26), (0.5, 1.9), (-0.5, 1.9)], lighter(colour, 0.12), sharp=True)
    easel.shape([(-0.36, 1.42), (0.36, 1.42), (0.36, 1.78), (-0.36, 1.78)], (40, 46, 62), sharp=True, line=0.3)
    for side in (-1, 1):
        easel.dot(side * 0.17, 1.64, 0.075, (126, 236, 224))
        easel.oval(side * 0.53, 1.58, 0.06, 0.13, joint)
    easel.line([(-0.12, 1.5), (0, 1.47), (0.12, 1.5)], 0.03, (126, 236, 224))
    easel.line([(0, 1.9), (0.02, 2.14)], 0.04)
    easel.dot(0.02, 2.18, 0.075, easel.palette.accent)

"""The table of figures: which drawing stands for which word, how tall it is, and its own colour."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from agent.providers.sketch import animals, objects, people, vehicles
from agent.providers.sketch.brush import Canvas
from agent.providers.sketch.easel import Easel
from agent.providers.sketch.palette import Colour, Palette, mix

_Drawing = Callable[[Easel, Colour], None]


@dataclass(frozen=True)
class _Figure:
    """A drawing, its size as a share of the shorter side for one unit of its own, and its natural colour."""

    draw: _Drawing
    scale: float
    colour: Colour | None = None
    is_floating: bool = False
    has_shadow: bool = True


_FIGURES: dict[str, _Figure] = {
    "cat": _Figure(animals.cat, 0.30, (150, 118, 92)),
    "fox": _Figure(animals.fox, 0.30, (218, 116, 52)),
    "rabbit": _Figure(animals.rabbit, 0.30, (196, 176, 158)),
    "bear": _Figure(animals.bear, 0.33, (126, 92, 70)),
    "bird": _Figure(animals.bird, 0.28),
    "fish": _Figure(animals.fish, 0.34, (240, 132, 70), is_floating=True, has_shadow=False),
    "dragon": _Figure(animals.dragon, 0.34, (84, 146, 104)),
    "horse": _Figure(animals.horse, 0.30, (150, 104, 72)),
    "butterfly": _Figure(animals.butterfly, 0.34, None, is_floating=True, has_shadow=False),
    "robot": _Figure(people.robot, 0.32, (150, 172, 184)),
    "person": _Figure(people.person, 0.38, None, has_shadow=False),
    "lighthouse": _Figure(objects.lighthouse, 0.34, (208, 72, 58)),
    "boat": _Figure(vehicles.boat, 0.34, (150, 84, 58), has_shadow=False),
    "balloon": _Figure(vehicles.balloon, 0.30, None, is_floating=True, has_shadow=False),
    "rocket": _Figure(vehicles.rocket, 0.32, (232, 232, 228), is_floating=True, has_shadow=False),
    "car": _Figure(vehicles.car, 0.32),
    "bicycle": _Figure(vehicles.bicycle, 0.32),
    "house": _Figure(objects.house, 0.33, (226, 200, 164)),
    "umbrella": _Figure(objects.umbrella, 0.34),
    "cup": _Figure(objects.cup, 0.32, (240, 234, 222)),
    "cake": _Figure(objects.cake, 0.32, (246, 218, 206)),
    "guitar": _Figure(objects.guitar, 0.32, (186, 112, 62)),
    "fruit": _Figure(objects.fruit, 0.30, (208, 66, 52)),
    "flower": _Figure(objects.flowers, 0.30),
    "tree": _Figure(objects.tree, 0.38, (96, 140, 84)),
    "heart": _Figure(objects.heart, 0.34, (214, 70, 76), is_floating=True, has_shadow=False),
    "star": _Figure(objects.star, 0.34, (240, 190, 70), is_floating=True, has_shadow=False),
}

# How far to the left a figure stands that makes room beside it, and how much smaller it is.
_ASIDE = 0.19
_SMALLER = 0.78


def paint_figure(
    name: str, canvas: Canvas, palette: Palette, stand: float, words: str, *, is_aside: bool = False
) -> None:
    """Paint the figure of that name, standing at the height `stand` or floating above it; aside it is smaller.

    `words` is the wish in lower case, for what only some drawings show (a hat, grey hair).
    """
    figure = _FIGURES[name]
    colour = palette.subject or figure.colour or palette.accent
    if "night" in palette.moods:
        colour = mix(colour, palette.sky_low, 0.18)
    is_wide = canvas.width > canvas.height * 1.2
    x = canvas.between(0.4, 0.6) if is_wide else canvas.between(0.47, 0.53)
    x, scale = (x if name != "person" else 0.5), figure.scale
    if is_aside:
        x, scale = x - (_ASIDE if is_wide else _ASIDE / 2), scale * _SMALLER
    easel = Easel(canvas, palette, x, 0.5 if figure.is_floating else stand, scale, words)
    if figure.has_shadow and not figure.is_floating:
        easel.shadow()
    figure.draw(easel, colour)

"""A short wish for a drawing, made fuller by rules: only with what the sketch painter obeys, a place and a light."""

from __future__ import annotations

import re

from agent.providers.sketch.phrases import is_chinese
from agent.providers.sketch.vocabulary import FIGURES, MOODS, PLACES, find
from agent.providers.sketch.wishes import Draw, understand

_FORMS: dict[str, tuple[str, str]] = {
    "cat": ("in a sunlit room by a window", "在洒满阳光的窗边房间里"),
    "fox": ("at the edge of a pine forest", "在松林边"),
    "rabbit": ("in a meadow of tall grass", "在高高的草地里"),
    "bear": ("in a deep forest", "在幽深的森林里"),
    "bird": ("above a wide lake", "在开阔的湖面上"),
    "fish": ("in a clear sea", "在清澈的海里"),
    "dragon": ("above steep mountains", "在险峻的群山之上"),
    "horse": ("in a wide field", "在开阔的田野上"),
    "butterfly": ("in a garden in bloom", "在盛放的花园里"),
    "robot": ("in the streets of a city", "在城市的街道上"),
    "person": ("in front of distant mountains", "远处是群山"),
    "lighthouse": ("on a rocky coast", "在礁石海岸上"),
    "boat": ("on a calm lake", "在平静的湖上"),
    "balloon": ("over green hills", "在青山之上"),
    "rocket": ("on its way through space", "飞行在太空中"),
    "car": ("in a street of a small town", "在小镇的街上"),
    "bicycle": ("in a quiet street", "在安静的街边"),
    "house": ("at the foot of the mountains", "在山脚下"),
    "cup": ("on a wooden table", "在木桌上"),
    "cake": ("on a kitchen table", "在厨房的桌上"),
    "guitar": ("in a cosy room", "在温馨的房间里"),
    "fruit": ("on a wooden table", "在木桌上"),
    "flower": ("on a table by the window", "在窗边的桌上"),
    "tree": ("in a wide field", "在开阔的田野上"),
}
_ANYWHERE = ("in a wide field", "在开阔的田野上")
_LIGHT = ("at golden hour", "黄昏时分")
# Where the light of the day does not reach.
_OWN_LIGHT = frozenset({"space", "abstract"})
_END = re.compile(r"[\s.。!！,，;；]*$")


def fuller_wish(text: str) -> str:
    """Return the wish with a place and a light where it names none; unchanged when it is no wish for a drawing, or
    says both already."""
    if not isinstance(understand(text, has_pictures=False), Draw):
        return text
    chinese = is_chinese(text)
    named, added = find(PLACES, text), list[str]()
    if named is None:
        figure = find(FIGURES, text)
        added.append(_FORMS.get(figure or "", _ANYWHERE)[chinese])
    place = named or find(PLACES, added[0])
    if find(MOODS, text) is None and place not in _OWN_LIGHT:
        added.append(_LIGHT[chinese])
    if not added:
        return text
    comma = "，" if chinese else ", "
    return comma.join([_END.sub("", text), *added])

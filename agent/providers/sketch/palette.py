"""The colours of a sketch, from the moods and colour words of the request and its seed; and colours by name."""

from __future__ import annotations

import colorsys
import functools
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TypeAlias

from agent import wording
from agent.providers.sketch.vocabulary import MOODS, find, find_all

Colour: TypeAlias = tuple[int, int, int]

PAPER: Colour = (248, 244, 235)
INK: Colour = (44, 42, 48)


@dataclass(frozen=True)
class Palette:
    """The colours of one sketch, far to near. `subject` is set when the request names a colour."""

    sky_top: Colour
    sky_low: Colour
    light: Colour
    far: Colour
    mid: Colour
    near: Colour
    ground: Colour
    water: Colour
    accent: Colour
    ink: Colour = INK
    subject: Colour | None = None
    moods: tuple[str, ...] = ()


_DAYS: tuple[Palette, ...] = (
    Palette(
        sky_top=(126, 176, 206), sky_low=(240, 232, 212), light=(255, 240, 200), far=(152, 176, 190),
        mid=(108, 144, 142), near=(66, 102, 92), ground=(198, 192, 148), water=(96, 154, 176), accent=(216, 92, 70),
    ),
    Palette(
        sky_top=(172, 198, 198), sky_low=(249, 226, 194), light=(255, 236, 190), far=(188, 172, 166),
        mid=(152, 132, 120), near=(92, 88, 84), ground=(216, 188, 142), water=(116, 162, 168), accent=(200, 82, 58),
    ),
    Palette(
        sky_top=(112, 184, 214), sky_low=(232, 242, 230), light=(255, 244, 204), far=(146, 190, 196),
        mid=(94, 154, 140), near=(46, 108, 92), ground=(170, 194, 122), water=(66, 148, 178), accent=(238, 124, 78),
    ),
)  # fmt: skip
_MOODS: dict[str, Palette] = {
    "night": Palette(
        sky_top=(16, 22, 56), sky_low=(78, 88, 138), light=(255, 244, 210), far=(60, 72, 120),
        mid=(40, 50, 92), near=(22, 28, 58), ground=(48, 60, 96), water=(34, 54, 104), accent=(255, 196, 92),
        ink=(16, 18, 36),
    ),
    "sunset": Palette(
        sky_top=(94, 86, 146), sky_low=(255, 190, 122), light=(255, 232, 168), far=(172, 114, 138),
        mid=(122, 78, 112), near=(66, 48, 82), ground=(152, 96, 92), water=(196, 118, 116), accent=(255, 118, 70),
    ),
    "snow": Palette(
        sky_top=(146, 174, 204), sky_low=(234, 236, 240), light=(255, 250, 240), far=(178, 196, 216),
        mid=(146, 168, 192), near=(84, 108, 138), ground=(243, 246, 250), water=(134, 170, 196), accent=(200, 72, 60),
    ),
    "autumn": Palette(
        sky_top=(166, 188, 192), sky_low=(252, 230, 190), light=(255, 236, 180), far=(194, 154, 122),
        mid=(202, 124, 66), near=(134, 72, 42), ground=(218, 164, 86), water=(116, 150, 152), accent=(206, 72, 38),
    ),
    "spring": Palette(
        sky_top=(162, 204, 224), sky_low=(253, 235, 237), light=(255, 246, 220), far=(190, 208, 196),
        mid=(150, 192, 142), near=(98, 150, 100), ground=(184, 208, 142), water=(136, 190, 204), accent=(238, 130, 160),
    ),
    "rain": Palette(
        sky_top=(106, 122, 138), sky_low=(196, 203, 206), light=(228, 232, 234), far=(148, 160, 170),
        mid=(110, 125, 136), near=(66, 82, 94), ground=(128, 138, 138), water=(108, 128, 142), accent=(222, 158, 58),
    ),
    "summer": _DAYS[2],
}  # fmt: skip
_NEON = Palette(
    sky_top=(20, 12, 50), sky_low=(196, 44, 128), light=(255, 214, 236), far=(92, 36, 118),
    mid=(52, 26, 92), near=(18, 14, 44), ground=(36, 22, 70), water=(40, 30, 96), accent=(0, 226, 226),
    ink=(12, 10, 30), moods=("night",),
)  # fmt: skip
_PRIORITY = ("night", "sunset", "snow", "rain", "autumn", "spring", "summer")
# By name in the wording's sections `painted_colours` and `colours`.
_PAINTED_COLOURS: dict[str, Colour] = {
    "red": (206, 62, 48),
    "orange": (232, 128, 48),
    "yellow": (240, 192, 60),
    "green": (84, 152, 92),
    "teal": (52, 164, 170),
    "blue": (58, 112, 190),
    "purple": (128, 88, 176),
    "pink": (236, 140, 168),
    "brown": (132, 92, 62),
    "black": (52, 50, 58),
    "white": (240, 238, 232),
    "grey": (140, 142, 148),
}
_BLACK: Colour = (0, 0, 0)
_WHITE: Colour = (255, 255, 255)
_COLOURS: dict[str, Colour] = {
    "navy": (24, 40, 110),
    "sky": (104, 178, 240),
    "turquoise": (32, 186, 196),
    "teal": (0, 128, 128),
    "lime": (140, 208, 40),
    "olive": (118, 122, 40),
    "mint": (152, 224, 184),
    "crimson": (190, 16, 46),
    "maroon": (122, 20, 40),
    "magenta": (214, 32, 148),
    "violet": (126, 56, 178),
    "lavender": (184, 160, 226),
    "indigo": (72, 50, 150),
    "pink": (240, 120, 164),
    "orange": (240, 132, 32),
    "gold": (218, 170, 40),
    "yellow": (244, 208, 44),
    "beige": (230, 214, 178),
    "brown": (122, 76, 44),
    "silver": (190, 194, 200),
    "grey": (128, 128, 128),
    "red": (208, 34, 36),
    "green": (44, 150, 66),
    "blue": (36, 92, 204),
    "black": (22, 22, 24),
    "white": (246, 246, 244),
}
_CODE = "[0-9a-f]{6}"
_SHADE = 0.4


def palette_for(text: str, style: str, seed: int) -> Palette:
    """Return the palette for a request: first its moods, then its style, its colour words, and a shift by the seed."""
    moods = find_all(MOODS, text)
    lead = next((mood for mood in _PRIORITY if mood in moods), None)
    palette = _MOODS[lead] if lead else _DAYS[seed % len(_DAYS)]
    if style == "cyberpunk":
        palette = _NEON
    if "snow" in moods and lead != "snow":
        palette = replace(palette, ground=mix(palette.ground, (226, 232, 246), 0.6))
    turn = ((seed >> 8) % 1000 / 1000 - 0.5) * 0.03
    palette = _recoloured(palette, lambda colour: _turned(colour, turn))
    colour_name = find("painted_colours", text)
    subject = _PAINTED_COLOURS[colour_name] if colour_name else None
    moods = moods if style != "cyberpunk" else (*moods, "night")
    palette = replace(palette, subject=subject, accent=subject or palette.accent, moods=moods)
    if style not in {"ink wash", "pencil", "line art"}:
        return palette
    return replace(_recoloured(palette, _as_ink), light=_as_ink(palette.light), accent=palette.accent)


def mix(first: Colour, second: Colour, share: float) -> Colour:
    """Return the colour that is `share` of the way from the first to the second."""
    return _colour(a + (b - a) * share for a, b in zip(first, second, strict=True))


def darker(colour: Colour, share: float) -> Colour:
    """Return the colour darkened by that share."""
    return mix(colour, (20, 18, 30), share)


def lighter(colour: Colour, share: float) -> Colour:
    """Return the colour lightened by that share towards warm white."""
    return mix(colour, (255, 252, 244), share)


def _recoloured(palette: Palette, change: Callable[[Colour], Colour]) -> Palette:
    return replace(
        palette,
        sky_top=change(palette.sky_top),
        sky_low=change(palette.sky_low),
        far=change(palette.far),
        mid=change(palette.mid),
        near=change(palette.near),
        ground=change(palette.ground),
        water=change(palette.water),
        accent=change(palette.accent),
    )


def _turned(colour: Colour, turn: float) -> Colour:
    hue, light, saturation = colorsys.rgb_to_hls(*(value / 255 for value in colour))
    return _colour(value * 255 for value in colorsys.hls_to_rgb((hue + turn) % 1, light, saturation))


def _as_ink(colour: Colour) -> Colour:
    gray = round(0.3 * colour[0] + 0.59 * colour[1] + 0.11 * colour[2])
    return mix((gray, gray, gray), (236, 232, 222), 0.35)


def _colour(values: Iterable[float]) -> Colour:
    red, green, blue = (min(255, max(0, round(value))) for value in values)
    return red, green, blue


@functools.cache
def colour_words() -> str:
    """Return a regular expression for one colour in folded text, without capturing groups."""
    patterns = []
    for language in wording.LANGUAGES:
        shades = wording.section(language, "shades")
        patterns.append(f"(?:{shades['light']}|{shades['dark']})?{_names(language)}{shades['end']}")
    return f"(?:{'|'.join(patterns)}|#{_CODE}(?![0-9a-z]))"


def find_colours(folded: str) -> tuple[Colour, ...]:
    """Return the colours named in a folded text, in order: names in both languages, and codes such as #ff8800."""
    return tuple(_colour_of(match) for match in _colour_name().finditer(folded))


@functools.cache
def _colour_name() -> re.Pattern[str]:
    light, dark = (wording.pattern(f"shades.{shade}").pattern for shade in ("light", "dark"))
    return re.compile(
        rf"(?:(?P<light>{light})|(?P<dark>{dark}))?(?P<name>\b{_names('en')}\b|{_names('zh')})|#(?P<code>{_CODE})(?![0-9a-z])"
    )


def _names(language: str) -> str:
    return wording.expand(language, "colours", list(wording.section(language, "colours").values()))


def _colour_of(match: re.Match[str]) -> Colour:
    if match["code"]:
        red, green, blue = bytes.fromhex(match["code"])
        return red, green, blue
    # Some names begin like a shade ("深红").
    whole = _colour_named(match[0])
    if whole is not None:
        return whole
    plain = _colour_named(match["name"])
    assert plain is not None
    if match["light"]:
        return mix(plain, _WHITE, _SHADE)
    return mix(plain, _BLACK, _SHADE) if match["dark"] else plain


def _colour_named(word: str) -> Colour | None:
    return next(
        (colour for name, colour in _COLOURS.items() if wording.pattern(f"colours.{name}").fullmatch(word)), None
    )

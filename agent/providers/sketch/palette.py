"""Colours of a sketch, chosen by the moods and colour words of the wish and varied by its seed; and colours by name."""

from __future__ import annotations

import colorsys
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import TypeAlias

from agent.providers.sketch.vocabulary import MOODS, find_all

Colour: TypeAlias = tuple[int, int, int]

PAPER: Colour = (248, 244, 235)
INK: Colour = (44, 42, 48)


@dataclass(frozen=True)
class Palette:
    """The colours of one sketch, far to near. `subject` is set when the words name a colour."""

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
_COLOURS: tuple[tuple[Colour, re.Pattern[str]], ...] = tuple(
    (colour, re.compile(pattern, re.IGNORECASE))
    for colour, pattern in (
        ((206, 62, 48), r"\b(?:red|crimson|scarlet|ruby)\b|红|赤"),
        ((232, 128, 48), r"\borange\b(?! juice)|橙色|橘色|橘(?=猫)"),
        ((240, 192, 60), r"\b(?:yellow|golden|gold)\b|黄|金色"),
        ((84, 152, 92), r"\b(?:green|emerald|mint|olive)\b|绿"),
        ((52, 164, 170), r"\b(?:teal|turquoise|cyan)\b|青色|蓝绿"),
        ((58, 112, 190), r"\b(?:blue|azure|navy|indigo)\b|蓝"),
        ((128, 88, 176), r"\b(?:purple|violet|lavender|magenta)\b|紫"),
        ((236, 140, 168), r"\b(?:pink|rose-?coloured)\b|粉"),
        ((132, 92, 62), r"\b(?:brown|chocolate|bronze)\b|棕|褐"),
        ((52, 50, 58), r"\bblack\b|黑(?!白|夜)"),
        ((240, 238, 232), r"\bwhite\b|(?<!黑)白"),
        ((140, 142, 148), r"\b(?:gr[ae]y|silver)\b|灰|银色"),
    )
)
_BLACK: Colour = (0, 0, 0)
_WHITE: Colour = (255, 255, 255)
# English names, Chinese names, colour. Longer names come first where one begins with another.
_COLOUR_NAMES: tuple[tuple[str, str, Colour], ...] = (
    ("navy(?: blue)?", "藏青|海军蓝", (24, 40, 110)),
    ("sky[- ]blue|azure", "天蓝", (104, 178, 240)),
    ("turquoise|cyan|aqua", "青绿|蓝绿|青", (32, 186, 196)),
    ("teal", "水鸭", (0, 128, 128)),
    ("lime(?: green)?", "黄绿|柠檬绿", (140, 208, 40)),
    ("olive(?: green)?", "橄榄绿?", (118, 122, 40)),
    ("mint(?: green)?", "薄荷绿?", (152, 224, 184)),
    ("crimson|scarlet|ruby", "深红|绯红|猩红", (190, 16, 46)),
    ("maroon|burgundy|wine red", "酒红|暗红", (122, 20, 40)),
    ("magenta|fuchsia", "品红|洋红|玫红", (214, 32, 148)),
    ("violet|purple", "紫罗兰|紫", (126, 56, 178)),
    ("lavender|lilac", "薰衣草紫?|淡紫", (184, 160, 226)),
    ("indigo", "靛蓝?", (72, 50, 150)),
    ("pink|rose", "粉红|玫瑰红?|粉", (240, 120, 164)),
    ("orange", "橙|橘", (240, 132, 32)),
    ("golden|gold", "金黄|金", (218, 170, 40)),
    ("yellow", "黄", (244, 208, 44)),
    ("beige|cream", "米|奶油", (230, 214, 178)),
    ("brown|chocolate", "棕|褐|咖啡", (122, 76, 44)),
    ("silver", "银", (190, 194, 200)),
    ("gr[ae]y", "灰", (128, 128, 128)),
    ("red", "大红|红|赤", (208, 34, 36)),
    ("green", "绿", (44, 150, 66)),
    ("blue", "蓝", (36, 92, 204)),
    ("black", "黑", (22, 22, 24)),
    ("white", "白", (246, 246, 244)),
)
_ENGLISH_NAMES = "|".join(english for english, _, _ in _COLOUR_NAMES)
_CHINESE_NAMES = "|".join(chinese for _, chinese, _ in _COLOUR_NAMES)
_LIGHT_SHADE = r"(?:light|pale|pastel|bright)[- ]|[浅淡亮]"
_DARK_SHADE = r"(?:dark|deep)[- ]|[深暗]"
# One colour in folded words, without any group of its own.
COLOUR = (
    rf"(?:(?:(?:light|pale|pastel|bright|dark|deep)[- ])?(?:{_ENGLISH_NAMES})\b"
    rf"|[浅淡亮深暗]?(?:{_CHINESE_NAMES})色?|#[0-9a-f]{{6}}(?![0-9a-z]))"
)
_COLOUR_NAME = re.compile(
    rf"(?:(?P<light>{_LIGHT_SHADE})|(?P<dark>{_DARK_SHADE}))?(?:\b(?P<english>{_ENGLISH_NAMES})\b|(?P<chinese>{_CHINESE_NAMES}))"
    r"|#(?P<code>[0-9a-f]{6})(?![0-9a-z])"
)
_SHADE = 0.4


def palette_for(text: str, style: str, seed: int) -> Palette:
    """Return the palette for a wish: moods first, then the style, then the colour words, then the seed's shift."""
    moods = find_all(MOODS, text)
    lead = next((mood for mood in _PRIORITY if mood in moods), None)
    palette = _MOODS[lead] if lead else _DAYS[seed % len(_DAYS)]
    if style == "cyberpunk":
        palette = _NEON
    if "snow" in moods and lead != "snow":
        palette = replace(palette, ground=mix(palette.ground, (226, 232, 246), 0.6))
    turn = ((seed >> 8) % 1000 / 1000 - 0.5) * 0.03
    palette = _recoloured(palette, lambda colour: _turned(colour, turn))
    subject = _named_colour(text)
    moods = moods if style != "cyberpunk" else (*moods, "night")
    return _in_style(replace(palette, subject=subject, accent=subject or palette.accent, moods=moods), style)


def mix(first: Colour, second: Colour, share: float) -> Colour:
    """Return the colour that is `share` of the way from the first to the second."""
    return _colour(a + (b - a) * share for a, b in zip(first, second, strict=True))


def darker(colour: Colour, share: float) -> Colour:
    """Return the colour with that share of its light taken away."""
    return mix(colour, (20, 18, 30), share)


def lighter(colour: Colour, share: float) -> Colour:
    """Return the colour with that share of the way to warm white."""
    return mix(colour, (255, 252, 244), share)


def _named_colour(text: str) -> Colour | None:
    hits = [(match.start(), colour) for colour, pattern in _COLOURS if (match := pattern.search(text))]
    return min(hits)[1] if hits else None


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


def _in_style(palette: Palette, style: str) -> Palette:
    if style not in {"ink wash", "pencil", "line art"}:
        return palette
    return replace(_recoloured(palette, _as_ink), light=_as_ink(palette.light), accent=palette.accent)


def _as_ink(colour: Colour) -> Colour:
    gray = round(0.3 * colour[0] + 0.59 * colour[1] + 0.11 * colour[2])
    return mix((gray, gray, gray), (236, 232, 222), 0.35)


def _colour(values: Iterable[float]) -> Colour:
    red, green, blue = (min(255, max(0, round(value))) for value in values)
    return red, green, blue


def find_colours(folded: str) -> tuple[Colour, ...]:
    """Return the colours named in folded words, in their order: names of both languages, and codes such as #ff8800."""
    return tuple(_colour_of(match) for match in _COLOUR_NAME.finditer(folded))


def _colour_of(match: re.Match[str]) -> Colour:
    if match["code"]:
        red, green, blue = bytes.fromhex(match["code"])
        return red, green, blue
    # Some names begin as a shade does ("深红").
    whole = _colour_named(match[0])
    if whole is not None:
        return whole
    plain = _colour_named(match["english"] or match["chinese"])
    assert plain is not None
    if match["light"]:
        return mix(plain, _WHITE, _SHADE)
    return mix(plain, _BLACK, _SHADE) if match["dark"] else plain


def _colour_named(word: str) -> Colour | None:
    return next(
        (colour for english, chinese, colour in _COLOUR_NAMES if re.fullmatch(f"(?:{english}|{chinese})", word)), None
    )

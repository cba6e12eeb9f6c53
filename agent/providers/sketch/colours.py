"""Names of colours in English and Chinese, and the colours that people mean by them."""

from __future__ import annotations

import re

from agent.providers.sketch.palette import Colour, mix

_BLACK: Colour = (0, 0, 0)
_WHITE: Colour = (255, 255, 255)
# English names, Chinese names, colour. Longer names come first where one begins with another.
_NAMES: tuple[tuple[str, str, Colour], ...] = (
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
_ENGLISH = "|".join(english for english, _, _ in _NAMES)
_CHINESE = "|".join(chinese for _, chinese, _ in _NAMES)
_LIGHT = r"(?:light|pale|pastel|bright)[- ]|[浅淡亮]"
_DARK = r"(?:dark|deep)[- ]|[深暗]"
# One colour in folded words, without any group of its own.
COLOUR = (
    rf"(?:(?:(?:light|pale|pastel|bright|dark|deep)[- ])?(?:{_ENGLISH})\b"
    rf"|[浅淡亮深暗]?(?:{_CHINESE})色?|#[0-9a-f]{{6}}(?![0-9a-z]))"
)
_FIND = re.compile(
    rf"(?:(?P<light>{_LIGHT})|(?P<dark>{_DARK}))?(?:\b(?P<english>{_ENGLISH})\b|(?P<chinese>{_CHINESE}))"
    r"|#(?P<code>[0-9a-f]{6})(?![0-9a-z])"
)
_SHADE = 0.4


def find_colours(folded: str) -> tuple[Colour, ...]:
    """Return the colours named in folded words, in their order: names of both languages, and codes such as #ff8800."""
    return tuple(_colour_of(match) for match in _FIND.finditer(folded))


def _colour_of(match: re.Match[str]) -> Colour:
    if match["code"]:
        red, green, blue = bytes.fromhex(match["code"])
        return red, green, blue
    # Some names begin as a shade does ("深红").
    whole = _named(match[0])
    if whole is not None:
        return whole
    plain = _named(match["english"] or match["chinese"])
    assert plain is not None
    if match["light"]:
        return mix(plain, _WHITE, _SHADE)
    return mix(plain, _BLACK, _SHADE) if match["dark"] else plain


def _named(word: str) -> Colour | None:
    return next((colour for english, chinese, colour in _NAMES if re.fullmatch(f"(?:{english}|{chinese})", word)), None)

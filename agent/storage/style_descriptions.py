"""Styles found by how people describe them ("soft blurry night lights", 蓝底白线带尺寸的图): weighed words, in memory.

Each style has descriptions of its own in `style_data`. A request is held against them by its words (stems in English,
pairs of characters in Chinese), and by pairs of neighbouring words. A word weighs much where few styles have it and
few captions of photos do; which words are everyday ones is counted in `everyday_words.txt`. Whether the best style is
meant at all is a second question, answered by a logistic regression: how much was met, by how many words, how much was
not, and whether the request speaks of a look or of somebody doing something somewhere.

Its weights were fitted on the descriptions (each left out in turn) against captions of photos and the `tuning` half of
`tests/bench/styles_wishes.toml`. `python -m tests.bench.styles` tells what they do.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from importlib import resources
from itertools import pairwise
from typing import NamedTuple

from agent.library import Style
from agent.storage.style_naming import Words, is_ideograph, word_set

_STOP_WORDS = word_set(
    """
    a an the of in on at to and or with for from by as is are was it its this that these those like kind sort
    look looks looking style where which who so very just only some all one my your his her our their there
    into out up down over under be been being i you he she we they me him them not no do does did can could
    would will make made makes making picture image painting drawn drawing illustration show shows shown
    please want something thing things
    """
)
_STOP_PAIRS = word_set(
    """
    那种 种的 一种 的感 感觉 一个 一只 一样 样的 那像 像是 一张 很多 就是 看起 起来 样子 出来 风格
    """
)
_STOP_CHARACTERS = frozenset("的了着是")
_SAME_MEANING = """
color colour hue tone tint
old vintage antique retro oldschool aged
photo photograph snapshot shot photography
film movi cinema
draw drawn sketch drew
kid child children toddler
shiny glossi gloss
outlin contour
paint pigment
fuzzi blurri blur hazi haz
comput digital
cube block blocki
tini littl small
huge larg big enormous giant vast
glow shine shin lit
scari creepi spooki
cute adorabl
woman lady girl maiden
japan japanes
china chines
german germany
italian itali
bold thick heavi
thin fine delicat
20 1920 twenti
30 1930 thirti
50 1950 fifti
60 1960 sixti
70 1970 seventi
80 1980 eighti
90 1990 nineti
brush brushstrok stroke brushwork
pattern motif ornament
grain graini
melt drip dripp
ad advert advertis advertisement
church cathedral chapel
stitch sew sewn
dot dotted speck speckl
scratch scratchi
fade washed
transpar translucent
"""
_MEANT_BY = {word: line.split()[0] for line in _SAME_MEANING.split("\n") for word in line.split()}
_SUFFIXES = (("ies", "y"), ("ing", ""), ("edly", ""), ("ed", ""), ("ly", ""), ("es", ""), ("s", ""))
_DECADE = re.compile(r"(?:19|20)?(\d0)s")

_SPEAKS_OF_A_LOOK = re.compile(
    r"\b(?:like|looks?|style|vibes?|feel|feeling|mood|kind of|sort of|as if|reminds|those|era|century|picture of"
    r"|made of|drawn|painted|printed|filmed|shot on|the way)\b|那种|像|感觉|似的|一样|的样子"
    r"|画风|效果|质感|年代|时代|世纪|画的|拍的|做的",
    re.IGNORECASE,
)
_SPEAKS_OF_A_THING = re.compile(
    r"(?:please |can you |draw |paint |make |create )*(?:an?|the|one|two|three|four|some|his|her|my|he|she|they"
    r"|people|there)\b"
    r"(?! (?:\w+ ){0,2}(?:picture|painting|drawing|print|poster|photo|photograph|image|sketch|film|movie|game|page"
    r"|plan|book|magazine|portrait|style|look|kind|future|paint|mood)\b)"
    r"|(?:画|给|把)?(?:一[只个座片朵棵辆位条间栋艘幅家杯碗块把台张本]|两|三|几)"
    r"|(?:妈妈|爸爸|奶奶|爷爷|老师|学生|孩子|小朋友|[小]?[男女]孩|老人|工人|师傅|医生|人们|他|她|弟弟|妹妹)",
    re.IGNORECASE,
)
_SPEAKS_OF_A_SCENE = re.compile(
    r"着|正在|放在|门口|旁边|桌上|墙上挂|地上|家里|不变|坐在|站在|走|跑|在看|在吃|手里|前面|后面|下面|里的"
    r"|\b(?:on|in|under|beside|behind|above|near|outside|at|through|between|into|for)"
    r" (?:the|a|an|my|his|her|our|their)\b"
    r"|\b(?:is|are|was|were) \w+ing\b",
    re.IGNORECASE,
)
_IS_A_CHINESE_PHRASE = re.compile(r"[\u4e00-\u9fff]+")
# Changes of a picture speak of light, things and lettering, not of a look.
_IS_A_CHANGE = re.compile(
    r"不变|换成|换掉|去掉|虚化一点|[亮暗大小清]一[点些]|写着|写上|写白色|的字[：:]|邀请函"
    r"|^(?:please )?(?:add|remove|delete|replace|crop|rotate|resize|enlarge|brighten|sharpen|fix|keep|move)\b"
    r"|\b(?:leave|keep) (?:it|the rest)\b|\btoo (?:much|little|many)\b|\bmore natural\b",
    re.IGNORECASE,
)

_STYLES_PHRASES_WEIGH = 0.6
_NAMES_WEIGH = 0.7
_PAIR_WEIGHS = 0.5
_UNKNOWN_WORD_WEIGHS = 4.0
_MOST_WORDS = 60
# A word that weighs as much tells something of the style.
_TELLING = 1.6
# A request that speaks of a thing or a scene rather describes that, and so does one phrase (河边的红发女孩).
_A_SCENE_MUST_BE_SURER = 1.5
_A_PHRASE_MUST_BE_SURER = 1.0


class DescribedStyle(NamedTuple):
    """A style that a request describes: the description that came closest, and how surely (log-odds)."""

    style_id: str
    description: str
    log_odds: float


class _Evidence(NamedTuple):
    """What speaks for a style: `weight` of the words met and how many tell something, the heaviest, and `pairs`."""

    weight: float
    met: int
    heaviest: float
    pairs: float
    closest: float
    description: str

    @property
    def total(self) -> float:
        return self.weight + 0.5 * self.closest


class _Text(NamedTuple):
    style_id: str
    text: str
    weighs: float


class StyleDescriptions:
    """The descriptions of some styles, ready to be searched."""

    def __init__(self, styles: Sequence[Style], described: Mapping[str, Sequence[str]]) -> None:
        self._texts: list[_Text] = []
        self._found_in: dict[str, list[int]] = defaultdict(list)
        self._styles_of: dict[str, set[str]] = defaultdict(set)
        self._count = max(2, len(styles))
        for style in styles:
            for text in described.get(style.id, ()):
                self._add(_Text(style.id, text, 1.0))
            for text in (style.description.en, style.description.zh, *style.phrases):
                self._add(_Text(style.id, text, _STYLES_PHRASES_WEIGH))
            names = " | ".join((*style.names, *style.aliases.en, *style.aliases.zh, *style.loose))
            self._add(_Text(style.id, style.description.en or style.title, _NAMES_WEIGH), names)

    def _add(self, text: _Text, said: str = "") -> None:
        singles, pairs = terms_of(Words(said or text.text).words)
        for term in singles | pairs:
            self._found_in[term].append(len(self._texts))
            self._styles_of[term].add(text.style_id)
        self._texts.append(text)

    def found_in(self, wish: Words, *, without: Iterable[tuple[int, int]] = (), limit: int = 3) -> list[DescribedStyle]:
        """Return the styles that the request may describe, the surest first; above 0 a style is rather meant than not.

        `without` are the words, from the first to before the end, that are known to mean something else.
        """
        if _IS_A_CHANGE.search(wish.text):
            return []
        hidden = {number for first, end in without for number in range(first, end)}
        found: dict[str, DescribedStyle] = {}
        for first, end in _parts(wish):
            words = [wish.words[n] if n not in hidden else "" for n in range(first, end)]
            for one in self._search(words, wish.said(first, end), limit=limit, leaving_out=""):
                known = found.get(one.style_id)
                if known is None or one.log_odds > known.log_odds:
                    found[one.style_id] = one
        return sorted(found.values(), key=lambda one: one.log_odds, reverse=True)[:limit]

    def _search(self, words: Sequence[str], text: str, *, limit: int, leaving_out: str) -> list[DescribedStyle]:
        """Search for some words; `leaving_out` is a description that is taken for not there, to fit the weights."""
        singles, pairs = terms_of(words)
        evidence, of_all = self._evidence(singles, pairs, leaving_out)
        doubt = 0.0
        if _SPEAKS_OF_A_THING.match(text) or _SPEAKS_OF_A_SCENE.search(text):
            doubt = _A_SCENE_MUST_BE_SURER
        elif _IS_A_CHINESE_PHRASE.fullmatch(text) and not _SPEAKS_OF_A_LOOK.search(text):
            doubt = _A_PHRASE_MUST_BE_SURER
        ranked = sorted(evidence.items(), key=lambda item: item[1].total, reverse=True)[:limit]
        return [
            DescribedStyle(style_id, one.description, _log_odds(self.features(one, singles, of_all, text)) - doubt)
            for style_id, one in ranked
            if one.total >= 0.5 * ranked[0][1].total
        ]

    def _evidence(self, singles: set[str], pairs: set[str], leaving_out: str) -> tuple[dict[str, _Evidence], float]:
        """Return what speaks for each style, and how much all the words weigh."""
        weight: dict[str, float] = defaultdict(float)
        count: dict[str, int] = defaultdict(int)
        heaviest: dict[str, float] = defaultdict(float)
        of_pairs: dict[str, float] = defaultdict(float)
        of_text: dict[int, float] = defaultdict(float)
        of_all = 0.0
        for term in singles | pairs:
            places = [place for place in self._found_in.get(term, ()) if self._texts[place].text != leaving_out]
            said_by = {self._texts[place].style_id for place in places}
            if not said_by:
                of_all += _UNKNOWN_WORD_WEIGHS * rarity(term) if term in singles else 0.0
                continue
            many = len(said_by)
            weighs = math.log(1 + (self._count - many + 0.5) / (many + 0.5)) * (0.05 + 0.95 * rarity(term) ** 1.5)
            weighs *= 1.0 if term in singles else _PAIR_WEIGHS
            of_all += weighs if term in singles else 0.0
            often: dict[str, float] = defaultdict(float)
            for place in places:
                often[self._texts[place].style_id] += self._texts[place].weighs
                of_text[place] += weighs * self._texts[place].weighs
            for style_id, times in often.items():
                gained = weighs * times * 2 / (times + 1)
                weight[style_id] += gained
                if term in singles:
                    count[style_id] += gained >= _TELLING
                    heaviest[style_id] = max(heaviest[style_id], gained)
                else:
                    of_pairs[style_id] += gained
        closest: dict[str, tuple[float, str]] = {}
        for place, amount in of_text.items():
            entry = self._texts[place]
            if amount > closest.get(entry.style_id, (0.0, ""))[0]:
                closest[entry.style_id] = amount, entry.text
        return {
            one: _Evidence(weight[one], count[one], heaviest[one], of_pairs[one], *closest.get(one, (0.0, "")))
            for one in weight
        }, of_all

    def features(self, one: _Evidence, singles: set[str], of_all: float, text: str) -> tuple[float, ...]:
        """Return what is weighed for the question whether the style is meant."""
        looks = [
            rarity(term) ** 2 * min(1.0, math.log(len(self._styles_of[term])) / 3)
            for term in singles
            if len(self._styles_of.get(term, ())) >= 3
        ]
        return (
            one.total,
            float(one.met),
            one.heaviest,
            one.pairs,
            one.weight / (of_all + 1e-6),
            one.met / (len(singles) + 1),
            one.total / (len(singles) + 2),
            1.0 if _SPEAKS_OF_A_LOOK.search(text) else 0.0,
            1.0 if _SPEAKS_OF_A_THING.match(text) else 0.0,
            1.0 if _SPEAKS_OF_A_SCENE.search(text) else 0.0,
            sum(looks),
            len(looks) / (len(singles) + 0.5),
        )


# One weight for each of `features`, and the bias.
_WEIGHTS = (0.11, 1.059, 0.434, 0.176, -1.348, -3.1, 0.817, 1.747, -2.654, -1.213, 2.811, -0.567)
_BIAS = -5.163


def _log_odds(features: Sequence[float]) -> float:
    return _BIAS + sum(weight * value for weight, value in zip(_WEIGHTS, features, strict=True))


def _parts(wish: Words) -> list[tuple[int, int]]:
    """Return the whole request and its clauses: a look is often said in a clause of its own."""
    count = len(wish.words)
    starts = [*wish.clause_starts, count]
    parts = [(first, end) for first, end in pairwise(starts) if end - first >= 2]
    whole = [(0, count)] if 0 < count <= _MOST_WORDS else []
    return list(dict.fromkeys([*whole, *((first, min(end, first + _MOST_WORDS)) for first, end in parts)]))[:24]


def terms_of(words: Sequence[str]) -> tuple[set[str], set[str]]:
    """Return the terms of some words, and the pairs of neighbours among them."""
    singles: set[str] = set()
    pairs: set[str] = set()
    run: list[str] = []
    latest: list[str] = []
    for word in (*words, ""):
        if word and is_ideograph(word):
            run.append(word)
            latest = []
            continue
        _add_characters("".join(run), singles, pairs)
        run = []
        if not word or word in _STOP_WORDS:
            continue
        term = _stem(word)
        singles.add(term)
        pairs.update("+".join(sorted((other, term))) for other in latest[-3:])
        latest.append(term)
    return singles, pairs


def _add_characters(run: str, singles: set[str], pairs: set[str]) -> None:
    for first in range(len(run) - 1):
        pair = run[first : first + 2]
        if pair not in _STOP_PAIRS and not _STOP_CHARACTERS & set(pair):
            singles.add(pair)
        three = run[first : first + 3]
        if len(three) == 3 and "的" not in three:
            pairs.add(three)


def _stem(word: str) -> str:
    decade = _DECADE.fullmatch(word)
    if decade:
        return _MEANT_BY.get(decade[1], decade[1])
    stem = word
    for suffix, instead in _SUFFIXES:
        if stem.endswith(suffix) and len(stem) - len(suffix) >= 3:
            stem = stem[: -len(suffix)] + instead
            break
    if len(stem) > 3 and stem[-1] == stem[-2] and stem[-1] not in "aeiou":
        stem = stem[:-1]
    if stem.endswith("e") and len(stem) > 3:
        stem = stem[:-1]
    if stem.endswith("y") and len(stem) > 3:
        stem = stem[:-1] + "i"
    return _MEANT_BY.get(stem, _MEANT_BY.get(word, stem))


def rarity(term: str) -> float:
    """Return how rare a term is in everyday requests, from 0 to 1."""
    return everyday_words().get(term, 1.0)


@lru_cache(maxsize=1)
def everyday_words() -> dict[str, float]:
    """Return the terms that are common in captions of photos and in Chinese at large, and how rare each is (0 to 0.9).

    A line of the file is a digit, the tenths, and the terms of that rarity.
    """
    folder = resources.files("agent.storage") / "style_data"
    found: dict[str, float] = {}
    for line in (folder / "everyday_words.txt").read_text(encoding="utf-8").splitlines():
        tenths, *terms = line.split()
        found.update(dict.fromkeys(terms, int(tenths) / 10))
    return found

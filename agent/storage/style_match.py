"""Find which styles a text names or describes, and how surely: pure functions over words, in memory.

A name is strict or loose. A strict one ("ukiyo-e", 浮世绘) means the style anywhere, unless the words around it
describe a thing: a museum of Van Gogh's, an oil painting above the sofa. A loose one ("noir", 漫画) is also a word for
things, so it means the style only where the request makes that clear: alone, set off by a comma, beside a word such as
"style", after "as a" or 做成, or right before a creature ("manga cat", 漫画猫).

A style is also found by how people describe it ("soft blurry night lights", 蓝底白线带尺寸的图). Each style has its own
descriptions in `style_data`. A request is compared with them by its words (stems in English, pairs of characters in
Chinese) and by pairs of neighbouring words. A word has a high weight when few styles and few captions of photos use it;
`everyday_words.txt` lists the common words. A logistic regression then decides whether the best style is meant at all,
from the weight and number of the words that match, what does not match, and whether the request speaks of a look or of
somebody doing something somewhere. Its weights were fitted on the descriptions (each left out in turn) against captions
of photos and the `tuning` half of `tests/bench/styles_wishes.toml`. `python -m tests.bench.styles` measures the result.

The words and patterns for these decisions are data, in `style_data/rules`.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import tomllib
import unicodedata
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from importlib import resources
from itertools import accumulate, pairwise
from typing import NamedTuple

from agent.library import MatchKind, MatchReason, Style, StyleMatch

FLOOR = 0.6
"""From this similarity on, a style is meant more often than not."""

# The rules


class Rules(NamedTuple):
    """Sets of words and regular expressions by name, as stored in a file of `style_data/rules`."""

    words: dict[str, frozenset[str]]
    patterns: dict[str, re.Pattern[str]]
    # Maps each word to the one word that represents all its synonyms.
    meant_by: dict[str, str]


@lru_cache
def rules(name: str) -> Rules:
    """Return the rules of this name; the file is read on first use."""
    table = tomllib.loads(style_data(f"rules/{name}.toml"))
    return Rules(
        {key: frozenset(text.split()) for key, text in table["words"].items()},
        {key: re.compile(pattern, re.VERBOSE) for key, pattern in table["patterns"].items()},
        {word: line.split()[0] for line in table.get("same_meaning", "").splitlines() for word in line.split()},
    )


def style_data(name: str) -> str:
    """Return a file of `style_data` as text."""
    return (resources.files("agent.storage") / "style_data" / name).read_text(encoding="utf-8")


@lru_cache(maxsize=1)
def ordinary_words() -> frozenset[str]:
    """Return the ordinary English words that differ by only a letter or two from a word of a style's name."""
    return frozenset(style_data("ordinary_words.txt").split())


@lru_cache(maxsize=1)
def everyday_words() -> dict[str, float]:
    """Return how rare (0 to 0.9) the common terms in photo captions and in general Chinese are.

    A line of the file is a digit, the tenths, and the terms of that rarity.
    """
    lines = [line.split() for line in style_data("everyday_words.txt").splitlines()]
    return {term: int(tenths) / 10 for tenths, *terms in lines for term in terms}


# Words

_ACCENTS = re.compile("[\u0300-\u036f]")
_APOSTROPHES = re.compile("['\u2019\u02bc`]")
_TOKEN = re.compile(r"[\u2e80-\u9fff\uf900-\ufaff]|[^\W_\u2e80-\u9fff\uf900-\ufaff]+")
_CLAUSE_END = re.compile(r"[,.;:!?()，。；：！？、（）\n]|\s[-–—]+\s|—")


@lru_cache(maxsize=1)
def _simplified() -> dict[int, str]:
    return {ord(pair[0]): pair[1] for pair in rules("names").words["simplified"]}


class Words:
    """The words of a text; each ideograph is one word.

    `text` is the whole text in lower case, without accents and apostrophes, in simplified characters. `joined` is all
    words without anything between them.
    """

    def __init__(self, text: str) -> None:
        folded = unicodedata.normalize("NFKC", text).casefold()
        bare = _ACCENTS.sub("", unicodedata.normalize("NFD", _APOSTROPHES.sub("", folded)))
        self.text = unicodedata.normalize("NFC", bare).translate(_simplified())
        found = list(_TOKEN.finditer(self.text))
        self.words = [match.group() for match in found]
        self.joined = "".join(self.words)
        self.starts = [0, *accumulate(map(len, self.words))]
        self._places = [match.span() for match in found]

    @cached_property
    def has_ideographs(self) -> bool:
        """Whether any word is an ideograph."""
        return any(map(is_ideograph, self.words))

    @cached_property
    def clause_starts(self) -> list[int]:
        """The numbers of the words that begin a clause."""
        return [0] + [
            number
            for number in range(1, len(self.words))
            if _CLAUSE_END.search(self.text, self._places[number - 1][1], self._places[number][0])
        ]

    def clause_start(self, word: int) -> int:
        """Return the number of the word that begins the clause of this word."""
        return self.clause_starts[bisect_left(self.clause_starts, word + 1) - 1]

    def clause_end(self, word: int) -> int:
        """Return where the clause of the word before this one ends: the number of the next clause's first word."""
        number = bisect_left(self.clause_starts, word)
        return self.clause_starts[number] if number < len(self.clause_starts) else len(self.words)

    def word_at(self, offset: int) -> int | None:
        """Return the number of the word that begins at this offset of `joined`; the number of words for its end."""
        number = bisect_left(self.starts, offset)
        return number if number < len(self.starts) and self.starts[number] == offset else None

    def text_between(self, first: int, end: int) -> str:
        """Return the words as written in the text, with everything between them."""
        return self.text[self._places[first][0] : self._places[end - 1][1]]


def is_ideograph(word: str) -> bool:
    """Return whether the word is a single ideograph or kana."""
    return "\u2e80" <= word[0] <= "\u9fff" or "\uf900" <= word[0] <= "\ufaff"


# Names

_PLURAL = 0.97
_LOOSE_AS_STYLE = 0.9
# A loose name that may mean a thing, and a strict name that its context turns into a thing.
_AS_A_THING = 0.4
# A name inside a longer name of another style: "立体剪纸" is paper sculpture, not paper cutting.
_INSIDE_ANOTHER = 0.55
_PHRASES_FOUND = (0.0, 0.45, 0.7, 0.85)
_SHORTEST_SPLIT_NAME = 8
_SHORTEST_SPLIT_WORD = 3
_LONGEST_NAME_WORDS = 14
_SHORTEST_MISSPELT_WORD = 5
_SHORTEST_CORE = 3


class Naming(NamedTuple):
    """A style's name found in a request, from word `first` up to but not including `end`."""

    similarity: float
    reason: MatchReason
    first: int
    end: int

    @property
    def rank(self) -> tuple[float, int]:
        """Sort key: the surest first; among equals, the longest."""
        return self.similarity, self.end - self.first


class _Name(NamedTuple):
    style_id: str
    kind: MatchKind
    text: str
    words: Words
    is_loose: bool


class _Place(NamedTuple):
    name: _Name
    first: int
    end: int
    similarity: float


class StyleNames:
    """The names and phrases of a set of styles, indexed once so that they can be found in requests."""

    def __init__(self, styles: Iterable[Style]) -> None:
        self._phrases: list[tuple[str, str, Words]] = []
        self._by_letters: dict[str, list[_Name]] = defaultdict(list)
        self._by_first_word: dict[str, list[_Name]] = defaultdict(list)
        self._by_pattern: dict[str, list[_Name]] = defaultdict(list)
        self._joined_by_letter: dict[str, list[str]] = defaultdict(list)
        self._spelling: dict[str, set[str]] = defaultdict(set)
        for style in styles:
            self._phrases += [(style.id, phrase, Words(phrase)) for phrase in style.phrases]
            for text in style.names:
                self._add(_Name(style.id, MatchKind.NAME, text, Words(text), is_loose=False))
            for text in (*style.aliases.en, *style.aliases.zh):
                self._add(_Name(style.id, MatchKind.ALIAS, text, Words(text), is_loose=False))
            for text in style.loose:
                self._add(_Name(style.id, MatchKind.ALIAS, text, Words(text), is_loose=True))

    def _add(self, name: _Name) -> None:
        joined, words = name.words.joined, name.words.words
        if not joined:
            return
        for word in words:
            if len(word) >= _SHORTEST_MISSPELT_WORD:
                self._spelling[word[0]].add(word)
        self._by_letters[joined].append(name)
        if name.is_loose:
            return
        if not name.words.has_ideographs:
            self._by_first_word[words[0]].append(name)
            if len(joined) >= _SHORTEST_SPLIT_NAME:
                self._joined_by_letter[joined[0]].append(joined)
        elif len(words) == len(joined):
            ending = rules("names").patterns["generic_ending"].search(joined)
            core = ending.start() if ending else len(joined)
            if core >= _SHORTEST_CORE + (name.kind is MatchKind.ALIAS):
                for wrong in range(1, min(core, len(joined) - 1)):
                    self._by_pattern[f"{joined[:wrong]}?{joined[wrong + 1 :]}"].append(name)

    def found_in(self, request: Words, *, is_style: bool = False) -> dict[str, Naming]:
        """Return the best naming of each style by its id; with `is_style` no name is taken for a thing.

        A name inside another style's longer name counts little, and so does one that is denied or that means a thing.
        """
        namings = [(place.name.style_id, _naming(request, place, is_style=is_style)) for place in self._places(request)]
        # "一盒彩色铅笔" holds a thing; the shorter name inside it is no style either.
        things = [naming for _, naming in namings if naming.similarity <= _AS_A_THING]
        for number, (style_id, naming) in enumerate(namings):
            if any(thing.first <= naming.first and naming.end <= thing.end for thing in things):
                namings[number] = style_id, naming._replace(similarity=min(naming.similarity, _AS_A_THING))
        best: dict[str, Naming] = {}
        for style_id, naming in (*namings, *self._by_phrases(request)):
            if style_id not in best or naming.rank > best[style_id].rank:
                best[style_id] = naming
        return {
            style_id: naming._replace(similarity=min(naming.similarity, _INSIDE_ANOTHER))
            if any(_is_inside(naming, other) for other in best.values())
            else naming
            for style_id, naming in best.items()
        }

    def _places(self, request: Words) -> Iterator[_Place]:
        exact: set[str] = set()
        for place in self._whole(request):
            exact.add(place.name.text)
            yield place
        for place in (
            *self._one_wrong_character(request),
            *self._wrong_letters(request),
            *self._wrongly_joined(request),
        ):
            if place.name.text not in exact:
                yield place

    def _whole(self, request: Words) -> Iterator[_Place]:
        """Yield names that match letter for letter, with any spacing, in singular or plural."""
        for first, end, letters in _spans(request):
            for plural, similarity in (("", 1.0), ("s", _PLURAL), ("es", _PLURAL)):
                if letters.endswith(plural):
                    for name in self._by_letters.get(letters.removesuffix(plural), ()):
                        if _may_be_split(name.words, request, first, end):
                            yield _Place(name, first, end, similarity)

    def _one_wrong_character(self, request: Words) -> Iterator[_Place]:
        """Yield names with one wrong character inside; a wrong first or last one would match too many other words."""
        for first, end, letters in _spans(request):
            if end - first == len(letters) >= _SHORTEST_CORE:
                for wrong in range(1, len(letters) - 1):
                    for name in self._by_pattern.get(f"{letters[:wrong]}?{letters[wrong + 1 :]}", ()):
                        if name.words.joined != letters:
                            yield _Place(name, first, end, 1 - 1 / len(letters))

    def _wrong_letters(self, request: Words) -> Iterator[_Place]:
        """Yield names with misspelt words, unless the misspelling is an ordinary word itself."""
        meant = [self._meant(word) for word in request.words]
        for first, candidates in enumerate(meant):
            for word in candidates:
                for name in self._by_first_word.get(word, ()):
                    end = first + len(name.words.words)
                    wrong = [each.get(one, -1) for one, each in zip(name.words.words, meant[first:end], strict=False)]
                    if end <= len(meant) and min(wrong) >= 0 and sum(wrong):
                        yield _Place(name, first, end, 1 - 1.5 * sum(wrong) / len(name.words.joined))

    def _meant(self, word: str) -> dict[str, int]:
        """Return the words of names that this word may be a misspelling of, each with its number of wrong letters."""
        from rapidfuzz.distance import OSA

        found = {word: 0}
        if len(word) < _SHORTEST_MISSPELT_WORD - 1 or is_ideograph(word) or word in ordinary_words():
            return found
        for known in self._spelling.get(word[0], ()):
            allowed = 1 if len(known) < 9 else 2
            if abs(len(known) - len(word)) <= allowed:
                wrong = OSA.distance(known, word, score_cutoff=allowed)
                if 0 < wrong <= allowed:
                    found[known] = wrong
        return found

    def _wrongly_joined(self, request: Words) -> Iterator[_Place]:
        """Yield names of two or more words that are wrongly joined or split and have one wrong letter too."""
        from rapidfuzz.distance import OSA

        for first, end, letters in _spans(request, longest=4):
            words = request.words[first:end]
            if len(letters) < _SHORTEST_SPLIT_NAME - 1 or (request.has_ideographs and any(map(is_ideograph, words))):
                continue
            if len(words) == 1 and letters in ordinary_words():
                continue
            for joined in self._joined_by_letter.get(letters[0], ()):
                if abs(len(joined) - len(letters)) <= 1 and OSA.distance(joined, letters, score_cutoff=1) == 1:
                    for name in self._by_letters[joined]:
                        count = len(name.words.words)
                        is_torn_well = len(words) < count or min(map(len, words)) >= _SHORTEST_SPLIT_WORD
                        if len(words) != count and is_torn_well and not name.is_loose:
                            yield _Place(name, first, end, 1 - 1.5 / len(joined))

    def _by_phrases(self, request: Words) -> Iterator[tuple[str, Naming]]:
        """Yield styles by their phrases; one phrase alone scores low, because it is just a wish."""
        found: dict[str, list[tuple[str, int, int]]] = defaultdict(list)
        for style_id, text, words in self._phrases:
            offset = request.joined.find(words.joined)
            if offset < 0:
                continue
            first, end = request.word_at(offset), request.word_at(offset + len(words.joined))
            if first is not None and end is not None:
                found[style_id].append((text, first, end))
        for style_id, phrases in found.items():
            text, first, end = phrases[0]
            similarity = _PHRASES_FOUND[min(len(phrases), len(_PHRASES_FOUND) - 1)]
            reason = MatchReason(kind=MatchKind.PHRASE, text=text, words=request.text_between(first, end))
            yield style_id, Naming(similarity, reason, first, end)


def _spans(request: Words, longest: int = _LONGEST_NAME_WORDS) -> Iterator[tuple[int, int, str]]:
    for first in range(len(request.words)):
        letters = ""
        for end in range(first + 1, min(first + longest, len(request.words)) + 1):
            letters += request.words[end - 1]
            yield first, end, letters


def _may_be_split(name: Words, request: Words, first: int, end: int) -> bool:
    """Return whether these words may be a split name: "how much a car costs" does not mean Mucha."""
    if end - first <= len(name.words) or name.has_ideographs:
        return True
    return len(name.joined) >= _SHORTEST_SPLIT_NAME and min(map(len, request.words[first:end])) >= _SHORTEST_SPLIT_WORD


def _is_inside(inner: Naming, outer: Naming) -> bool:
    """Whether `outer` owns the words that both take: it is longer, or as long and a style's own name."""
    if inner.end <= outer.first or outer.end <= inner.first or inner.similarity > outer.similarity:
        return False
    shorter_by = (outer.end - outer.first) - (inner.end - inner.first)
    is_name = outer.reason.kind is MatchKind.NAME and inner.reason.kind is not MatchKind.NAME
    return shorter_by > 0 or (shorter_by == 0 and is_name)


def _naming(request: Words, place: _Place, *, is_style: bool) -> Naming:
    name, first, end, similarity = place
    if _is_denied(request, first):
        similarity = 0.0
    elif not is_style and _is_a_thing(request, first, end):
        similarity = _AS_A_THING
    elif name.is_loose and is_style:
        similarity = min(similarity, _LOOSE_AS_STYLE)
    elif name.is_loose:
        similarity = _LOOSE_AS_STYLE if _means_the_style(request, first, end) else _AS_A_THING
    reason = MatchReason(kind=name.kind, text=name.text, words=request.text_between(first, end))
    return Naming(similarity, reason, first, end)


# The context of a name

_DENIAL_REACH = 5
_DENIAL_REACH_ZH = 7


def _is_denied(request: Words, first: int) -> bool:
    words, patterns, _ = rules("names")
    reach = _DENIAL_REACH_ZH if is_ideograph(request.words[first]) else _DENIAL_REACH
    before = request.words[max(request.clause_start(first), first - reach) : first]
    for number, word in reversed(list(enumerate(before))):
        if word in words["but"]:
            return word == "but" and before[max(0, number - 1)] in words["all_but"]
        if word in words["denying"]:
            return True
    return bool(patterns["denied_before"].search("".join(before)))


def _is_a_thing(request: Words, first: int, end: int) -> bool:
    """Whether the context of a name means a thing: somebody holds, hangs or sells it, or it is a shop."""
    words, patterns, _ = rules("names")
    before, after = request.words[request.clause_start(first) : first], request.words[end : end + 1]
    if after and after[0] in words["things_after"]:
        return True
    tail = "".join(request.words[end : end + 4]) if request.clause_end(end) > end else ""
    if tail and is_ideograph(tail[0]) and patterns["thing_after"].match(tail):
        return True
    if before and before[-1] in words["determiners"] and after and after[0] in words["standing"]:
        return True
    if is_ideograph(request.words[first]):
        said_before = "".join(before[-12:])
        if patterns["handled_before"].search(said_before) or patterns["place_before"].search(said_before):
            return True
        if patterns["lettering_before"].search("".join(request.words[max(0, first - 8) : first])):
            return True
    named = [word for word in before[-4:] if word not in words["determiners"]]
    near = [word for word in named if word not in words["qualities"]]
    if words["handling_pairs"].intersection(("_".join(named[-2:]), "_".join(near[-2:]))):
        return True
    if near:
        # Somebody is doing something to it ("peeling the sticker").
        verb = near[-2] if len(near) > 1 and near[-1] in words["about_a_thing"] else near[-1]
        if near[-1] in words["handling"] or (verb.endswith("ing") and len(verb) > 5 and verb not in words["not_doing"]):
            return True
    place = " ".join(request.words[end : min(end + 6, request.clause_end(end))])
    return bool(before and patterns["place_after"].match(place))


def _means_the_style(request: Words, first: int, end: int) -> bool:
    """Whether the words around a loose name make clear that the style is meant."""
    words, patterns, _ = rules("names")
    rest = request.words[end : end + 2]
    if (rest and rest[0] in words["style_words"]) or patterns["style_after"].match("".join(rest)):
        return True
    lead = [word for word in request.words[max(0, first - 3) : first] if word not in words["articles"]]
    if len(lead) > 1 and lead[-1] == "of" and lead[-2] in words["style_of"]:
        return True
    before, after = request.words[request.clause_start(first) : first], request.words[end : request.clause_end(end)]
    is_before_a_creature = "".join(request.words[first:end]) not in words["not_before_creatures"]
    if is_ideograph(request.words[first]):
        said_before, said_after = "".join(before), "".join(after)
        return bool(
            (patterns["filling"].fullmatch(said_before) and patterns["filling"].fullmatch(said_after))
            or (patterns["like"].search(said_before) and patterns["alike"].match(said_after))
            or patterns["feels"].match(said_after)
            or patterns["changed_to"].search(said_before)
            or (patterns["by_means_of"].search(said_before) and patterns["made"].match(said_after))
            or (is_before_a_creature and patterns["creature"].match(said_after))
        )
    is_at_end = words["filling"].issuperset(after)
    if is_at_end and words["filling"].issuperset(before):
        return not before or before[-1] != "the"
    if is_at_end and before:
        lead = [word for word in before[-4:] if word not in words["articles"] and word not in words["qualities"]]
        if lead and lead[-1] in words["turned_into"]:
            return True
        if before[0] in words["changing"] and before[-1] not in words["determiners"]:
            return True
    if after[:1] == ["of"] and after[1:] and (words["filling"] | words["changing"]).issuperset(before):
        return words["no_subjects"].isdisjoint(after[1:3])
    return is_before_a_creature and bool(words["creatures"].intersection(after[:1]))


# Descriptions

_SUFFIXES = (("ies", "y"), ("ing", ""), ("edly", ""), ("ed", ""), ("ly", ""), ("es", ""), ("s", ""))
_DECADE = re.compile(r"(?:19|20)?(\d0)s")
_CHINESE_PHRASE = re.compile(r"[\u4e00-\u9fff]+")

_STYLES_PHRASES_WEIGH = 0.6
_NAMES_WEIGH = 0.7
_PAIR_WEIGHS = 0.5
_UNKNOWN_WORD_WEIGHS = 4.0
_MOST_WORDS = 60
_MOST_PARTS = 24
# A word with at least this weight is a sign of the style.
_TELLING = 1.6
# A request about a thing or a scene probably describes that, not a style, and so does one phrase (河边的红发女孩).
_A_SCENE_MUST_BE_SURER = 1.5
_A_PHRASE_MUST_BE_SURER = 1.0


class DescribedStyle(NamedTuple):
    """A style that a request describes: its closest description, and the log-odds that it is meant."""

    style_id: str
    description: str
    log_odds: float


class _Text(NamedTuple):
    style_id: str
    text: str
    weighs: float


@dataclass
class _Evidence:
    """The evidence for a style: total `weight`, number of telling words met, `heaviest` word, and `pairs`."""

    weight: float = 0.0
    met: int = 0
    heaviest: float = 0.0
    pairs: float = 0.0
    closest: float = 0.0
    description: str = ""

    @property
    def total(self) -> float:
        return self.weight + 0.5 * self.closest


class StyleDescriptions:
    """The descriptions of a set of styles, indexed for search."""

    def __init__(self, styles: Sequence[Style], described: Mapping[str, Sequence[str]]) -> None:
        self._texts: list[_Text] = []
        self._found_in: dict[str, list[int]] = defaultdict(list)
        self._styles_of: dict[str, set[str]] = defaultdict(set)
        self._count = max(2, len(styles))
        for style in styles:
            for text in described.get(style.id, ()):
                self._add(_Text(style.id, text, 1.0), text)
            for text in (style.description.en, style.description.zh, *style.phrases):
                self._add(_Text(style.id, text, _STYLES_PHRASES_WEIGH), text)
            names = " | ".join((*style.names, *style.aliases.en, *style.aliases.zh, *style.loose))
            self._add(_Text(style.id, style.description.en or style.title, _NAMES_WEIGH), names)

    def _add(self, text: _Text, searched: str) -> None:
        for term in set().union(*_terms_of(Words(searched).words)):
            self._found_in[term].append(len(self._texts))
            self._styles_of[term].add(text.style_id)
        self._texts.append(text)

    def found_in(
        self, request: Words, *, without: Iterable[tuple[int, int]] = (), limit: int = 3
    ) -> list[DescribedStyle]:
        """Return the styles that the request may describe, the surest first; above 0 one is probably meant.

        `without` holds ranges of words, from the first up to but not including the end, that are known to mean
        something else.
        """
        # An edit request speaks of light, things and lettering, not of a style.
        if rules("descriptions").patterns["change"].search(request.text):
            return []
        hidden = {number for first, end in without for number in range(first, end)}
        found: dict[str, DescribedStyle] = {}
        for first, end in _parts(request):
            words = [request.words[number] if number not in hidden else "" for number in range(first, end)]
            for one in self._search(words, request.text_between(first, end), limit):
                if one.style_id not in found or one.log_odds > found[one.style_id].log_odds:
                    found[one.style_id] = one
        return sorted(found.values(), key=lambda one: one.log_odds, reverse=True)[:limit]

    def _search(self, words: Sequence[str], text: str, limit: int) -> list[DescribedStyle]:
        patterns = rules("descriptions").patterns
        singles, pairs = _terms_of(words)
        evidence, of_all = self._evidence(singles, pairs)
        speaks_of_a_look = bool(patterns["look"].search(text))
        speaks_of_a_thing = bool(patterns["thing"].match(text))
        speaks_of_a_scene = bool(patterns["scene"].search(text))
        doubt = 0.0
        if speaks_of_a_thing or speaks_of_a_scene:
            doubt = _A_SCENE_MUST_BE_SURER
        elif _CHINESE_PHRASE.fullmatch(text) and not speaks_of_a_look:
            doubt = _A_PHRASE_MUST_BE_SURER
        said_of_many = [(term, len(self._styles_of.get(term, ()))) for term in singles]
        looks = [_rarity(term) ** 2 * min(1.0, math.log(many) / 3) for term, many in said_of_many if many >= 3]
        of_the_request = (
            *(float(speaks_of_a_look), float(speaks_of_a_thing), float(speaks_of_a_scene)),
            *(sum(looks), len(looks) / (len(singles) + 0.5)),
        )
        ranked = sorted(evidence.items(), key=lambda item: item[1].total, reverse=True)[:limit]
        found = []
        for style_id, one in ranked:
            if one.total >= 0.5 * ranked[0][1].total:
                shares = (one.weight / (of_all + 1e-6), one.met / (len(singles) + 1), one.total / (len(singles) + 2))
                features = (one.total, one.met, one.heaviest, one.pairs, *shares, *of_the_request)
                log_odds = _BIAS + sum(weight * value for weight, value in zip(_WEIGHTS, features, strict=True))
                found.append(DescribedStyle(style_id, one.description, log_odds - doubt))
        return found

    def _evidence(self, singles: set[str], pairs: set[str]) -> tuple[dict[str, _Evidence], float]:
        """Return the evidence for each style, and the weight of all words together."""
        found: dict[str, _Evidence] = defaultdict(_Evidence)
        of_text: dict[int, float] = defaultdict(float)
        of_all = 0.0
        for term in singles | pairs:
            is_single, rarity = term in singles, _rarity(term)
            many = len(self._styles_of.get(term, ()))
            if not many:
                of_all += _UNKNOWN_WORD_WEIGHS * rarity if is_single else 0.0
                continue
            weighs = math.log(1 + (self._count - many + 0.5) / (many + 0.5)) * (0.05 + 0.95 * rarity**1.5)
            weighs *= 1.0 if is_single else _PAIR_WEIGHS
            of_all += weighs if is_single else 0.0
            often: dict[str, float] = defaultdict(float)
            for place in self._found_in[term]:
                often[self._texts[place].style_id] += self._texts[place].weighs
                of_text[place] += weighs * self._texts[place].weighs
            for style_id, times in often.items():
                gained = weighs * times * 2 / (times + 1)
                one = found[style_id]
                one.weight += gained
                if is_single:
                    one.met += gained >= _TELLING
                    one.heaviest = max(one.heaviest, gained)
                else:
                    one.pairs += gained
        for place, amount in of_text.items():
            one = found[self._texts[place].style_id]
            if amount > one.closest:
                one.closest, one.description = amount, self._texts[place].text
        return found, of_all


# One weight for each of the features in `_search`, and the bias.
_WEIGHTS = (0.11, 1.059, 0.434, 0.176, -1.348, -3.1, 0.817, 1.747, -2.654, -1.213, 2.811, -0.567)
_BIAS = -5.163


def _parts(request: Words) -> list[tuple[int, int]]:
    """Return the whole request and its clauses: a style is often described in its own clause."""
    count = len(request.words)
    whole = [(0, count)] if 0 < count <= _MOST_WORDS else []
    clauses = [
        (first, min(end, first + _MOST_WORDS))
        for first, end in pairwise((*request.clause_starts, count))
        if end - first >= 2
    ]
    return list(dict.fromkeys([*whole, *clauses]))[:_MOST_PARTS]


def _terms_of(words: Sequence[str]) -> tuple[set[str], set[str]]:
    """Return the terms of the words, and the pairs of neighbouring terms."""
    stop = rules("descriptions").words
    singles: set[str] = set()
    pairs: set[str] = set()
    run = ""
    latest: list[str] = []
    for word in (*words, ""):
        if word and is_ideograph(word):
            run += word
            latest = []
            continue
        for first in range(len(run) - 1):
            pair, three = run[first : first + 2], run[first : first + 3]
            if pair not in stop["stop_pairs"] and stop["stop_characters"].isdisjoint(pair):
                singles.add(pair)
            if len(three) == 3 and "的" not in three:
                pairs.add(three)
        run = ""
        if word and word not in stop["stop_words"]:
            term = _stem(word)
            singles.add(term)
            pairs.update("+".join(sorted((other, term))) for other in latest[-3:])
            latest.append(term)
    return singles, pairs


def _stem(word: str) -> str:
    meant_by = rules("descriptions").meant_by
    decade = _DECADE.fullmatch(word)
    if decade:
        return meant_by.get(decade[1], decade[1])
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
    return meant_by.get(stem, meant_by.get(word, stem))


def _rarity(term: str) -> float:
    """Return how rare a term is in everyday requests, from 0 to 1."""
    return everyday_words().get(term, 1.0)


# Combined search

LONGEST_WISH = 4000
SURELY_NAMED = 0.9
"""From this similarity on, the user wants the named style, not one that is merely similar."""
_BESIDE_A_NAMED_ONE = 0.75
# How sure a description must be (log-odds): in a request that may name no style, and in a text about a style.
_DESCRIBED_IN_A_REQUEST = 1.25
_DESCRIBED_AS_A_STYLE = -1.0
_BESIDE_A_NAME = 5.0
_SUREST_DESCRIBED = 0.84
_SUREST_GUESS = 0.97


@dataclass(frozen=True)
class StyleSet:
    """Styles that belong together; `name` is the name of their vector table."""

    name: str
    styles: tuple[Style, ...]

    @cached_property
    def content(self) -> str:
        """The digest of everything that is searched in them."""
        return digest_of(json.dumps([style.model_dump(mode="json") for style in self.styles], ensure_ascii=False))

    @cached_property
    def names(self) -> StyleNames:
        """The names of the styles, indexed for search."""
        return StyleNames(self.styles)


def digest_of(text: str) -> str:
    """Return the digest that identifies a text."""
    return hashlib.sha256(text.encode()).hexdigest()


def find_styles(
    style_sets: Sequence[StyleSet],
    descriptions: StyleDescriptions,
    text: str,
    meaning: Mapping[str, float],
    *,
    limit: int,
    floor: float,
    is_style: bool,
) -> list[StyleMatch]:
    """Return the styles that a text names or describes, the surest first.

    Among equals, the user's own styles come first, then longer names. `meaning` maps style ids to similarities. With
    `is_style`, words that could also mean things are taken for a style.
    """
    request = Words(text)
    named: dict[str, Naming] = {}
    for style_set in style_sets:
        named |= style_set.names.found_in(request, is_style=is_style)
    surest = max((naming.similarity for naming in named.values()), default=0.0)
    things = [(naming.first, naming.end) for naming in named.values() if naming.similarity < FLOOR]
    described = {one.style_id: one for one in descriptions.found_in(request, without=things, limit=limit)}
    needed = _DESCRIBED_AS_A_STYLE if is_style else _DESCRIBED_IN_A_REQUEST
    # A user who names a style rarely describes another one.
    needed += _BESIDE_A_NAME if surest >= FLOOR else 0.0
    ranked = []
    for style in (style for style_set in style_sets for style in style_set.styles):
        naming, description, by_meaning = named.get(style.id), described.get(style.id), meaning.get(style.id, 0.0)
        if surest >= SURELY_NAMED:
            by_meaning *= _BESIDE_A_NAMED_ONE
        by_name = naming.similarity if naming else 0.0
        as_described = _similarity(description.log_odds - needed) if description else 0.0
        # Two guesses that agree are surer than either alone.
        guessed = min(_SUREST_GUESS, 1 - (1 - by_meaning) * (1 - as_described))
        similarity = max(by_name, guessed)
        if not similarity:
            continue
        length = 0
        is_said = naming is not None and naming.reason.kind is MatchKind.PHRASE and by_name >= FLOOR
        if naming is not None and (by_name == similarity or is_said):
            reason, length = naming.reason, naming.end - naming.first
        elif description is not None and as_described >= by_meaning:
            reason = MatchReason(kind=MatchKind.DESCRIPTION, text=description.description)
        else:
            its_own = style.description.en or style.description.zh or style.title
            reason = MatchReason(kind=MatchKind.MEANING, text=its_own)
        found = StyleMatch(style=style, similarity=round(similarity, 3), reason=reason)
        ranked.append((found.similarity, style.is_own, length, by_name + by_meaning + as_described, found))
    ranked.sort(key=lambda entry: entry[:-1], reverse=True)
    return [found for *_, found in ranked if found.similarity >= floor][:limit]


def _similarity(surplus: float) -> float:
    """Convert a surplus of log-odds over the needed value to the similarity scale."""
    if surplus < 0:
        return max(0.0, FLOOR - 0.01 + 0.05 * surplus)
    return FLOOR + (_SUREST_DESCRIBED - FLOOR) * (1 - math.exp(-surplus / 4))


def find_style(style_set: StyleSet, descriptions: StyleDescriptions, text: str) -> tuple[str, str] | None:
    """Return the id of the one style that a request asks for, and the words that name it; None when it asks for none.

    The words are empty when the request describes the style.
    """
    request = Words(text.strip()[:LONGEST_WISH])
    named = style_set.names.found_in(request)
    if named:
        style_id, naming = max(named.items(), key=lambda item: item[1].rank)
        if naming.similarity >= FLOOR:
            return style_id, naming.reason.words
    things = [(naming.first, naming.end) for naming in named.values()]
    for one in descriptions.found_in(request, without=things, limit=1):
        if one.log_odds >= _DESCRIBED_IN_A_REQUEST:
            return one.style_id, ""
    return None

"""How surely a wish names a style: its names found in the wish, whole, misspelt, or as loose words beside "style"."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from importlib import resources
from typing import NamedTuple

from agent.storage.style_values import MatchKind, MatchReason, Style
from agent.storage.style_words import Words, edits, is_ideograph

_PLURAL = 0.97
_LOOSE_BESIDE_STYLE = 0.9
_LOOSE_ALONE = 0.4
# A name inside a longer name of another style: "立体剪纸" is paper sculpture, not paper cutting.
_INSIDE_ANOTHER = 0.55
_PHRASES_FOUND = (0.0, 0.45, 0.7, 0.85)
_SHORTEST_SPLIT_NAME = 8
_SHORTEST_SPLIT_WORD = 3

_STYLE_WORDS = frozenset(
    {
        *("style", "styled", "styling", "aesthetic", "aesthetics", "look", "vibe", "vibes", "feel", "mood", "theme"),
        *("art", "artwork", "illustration", "painting", "drawing", "print", "poster", "portrait", "page", "panel"),
        *("render", "rendering", "animation", "inspired", "effect", "filter", "version"),
    }
)
_STYLE_CHARACTERS = ("风", "画", "感", "质感", "效果", "滤镜", "派", "主义", "式", "版", "系", "手绘", "插图")
_STYLE_OF = frozenset({"style", "manner", "look", "spirit", "aesthetic", "vein"})
_ARTICLES = frozenset({"a", "an", "the"})
_NOT = frozenset(["not", "no", "without", "never", "avoid", "dont", "isnt", "instead", "than", "except"])
_BUT = frozenset({"but", "just", "rather"})
_NOT_CHARACTERS = ("不要", "不是", "不用", "不想", "别用", "别画", "别做", "别是", "而非", "无需", "拒绝")
_NEGATION_REACH = 3
# Endings that say "picture" rather than which: a wrong letter counts only in what stands before them.
_GENERIC_ENDINGS = (
    *("摄影", "海报", "插画", "设计", "风格", "艺术", "主义", "照片", "电影", "动画", "效果图", "封面", "图案", "漫画"),
    *("画", "风", "派", "图"),
)
_SHORTEST_CORE = 3


class Naming(NamedTuple):
    """A style's name found in a wish, from the first word to before the end."""

    similarity: float
    reason: MatchReason
    first: int
    end: int


class _Place(NamedTuple):
    first: int
    end: int
    similarity: float


def namings(styles: list[Style], wish: Words) -> dict[str, Naming]:
    """Return the best naming of each style by its id; what stands inside another style's longer name counts little."""
    found = {style.id: naming for style in styles if (naming := _best(style, wish)) is not None}
    return {
        style_id: naming._replace(similarity=min(naming.similarity, _INSIDE_ANOTHER))
        if any(_is_inside(naming, other) for other in found.values())
        else naming
        for style_id, naming in found.items()
    }


def _is_inside(inner: Naming, outer: Naming) -> bool:
    is_part = outer.first <= inner.first and inner.end <= outer.end
    is_shorter = inner.end - inner.first < outer.end - outer.first
    return is_part and is_shorter and outer.similarity >= inner.similarity


def _best(style: Style, wish: Words) -> Naming | None:
    every = (*_strict(style, wish), *_loose(style, wish), *_by_phrases(style, wish))
    return max(every, key=lambda naming: (naming.similarity, naming.end - naming.first), default=None)


def _strict(style: Style, wish: Words) -> Iterator[Naming]:
    kinds = [(MatchKind.NAME, name) for name in style.names]
    kinds += [(MatchKind.ALIAS, name) for name in (*style.aliases.en, *style.aliases.zh)]
    for kind, text in kinds:
        name = _words(text)
        places = list(_whole(name, wish)) or list(_misspelt(name, wish))
        for place in places:
            if not _is_negated(wish, place.first):
                yield _naming(wish, place, kind, text, place.similarity)


def _loose(style: Style, wish: Words) -> Iterator[Naming]:
    for text in style.loose:
        for place in _whole(_words(text), wish):
            if not _is_negated(wish, place.first):
                similarity = _LOOSE_BESIDE_STYLE if _speaks_of_style(wish, place) else _LOOSE_ALONE
                yield _naming(wish, place, MatchKind.ALIAS, text, similarity)


def _by_phrases(style: Style, wish: Words) -> Iterator[Naming]:
    """Take phrases for a sign of the style only where several of them are said: one alone is just a wish."""
    found = [(text, place) for text in style.phrases for place in list(_whole(_words(text), wish))[:1]]
    if found:
        text, place = found[0]
        similarity = _PHRASES_FOUND[min(len(found), len(_PHRASES_FOUND) - 1)]
        yield _naming(wish, place, MatchKind.PHRASE, text, similarity)


def _naming(wish: Words, place: _Place, kind: MatchKind, text: str, similarity: float) -> Naming:
    reason = MatchReason(kind=kind, text=text, words=wish.said(place.first, place.end))
    return Naming(similarity, reason, place.first, place.end)


@lru_cache(maxsize=16_384)
def _words(name: str) -> Words:
    return Words(name)


# Where a name stands


def _whole(name: Words, wish: Words) -> Iterator[_Place]:
    """Yield where the name is said letter for letter, however it is spaced, in singular or plural."""
    offset = wish.joined.find(name.joined) if name.joined else -1
    while offset >= 0:
        first, after = wish.word_at(offset), offset + len(name.joined)
        if first is not None:
            end, is_plural = _end(wish, after)
            if end is not None and _may_be_split(name, wish, first, end):
                yield _Place(first, end, _PLURAL if is_plural else 1.0)
        offset = wish.joined.find(name.joined, offset + 1)


def _end(wish: Words, after: int) -> tuple[int | None, bool]:
    end = wish.word_at(after)
    if end is not None:
        return end, False
    for plural in ("s", "es"):
        if wish.joined.startswith(plural, after):
            end = wish.word_at(after + len(plural))
            if end is not None:
                return end, True
    return None, False


def _may_be_split(name: Words, wish: Words, first: int, end: int) -> bool:
    """Return whether these words can be the name: "how much a car costs" does not speak of Mucha."""
    if end - first <= len(name.words) or name.has_ideographs:
        return True
    parts = wish.words[first:end]
    return len(name.joined) >= _SHORTEST_SPLIT_NAME and min(map(len, parts)) >= _SHORTEST_SPLIT_WORD


def _misspelt(name: Words, wish: Words) -> Iterator[_Place]:
    return _with_a_wrong_character(name, wish) if name.has_ideographs else _with_wrong_letters(name, wish)


def _with_wrong_letters(name: Words, wish: Words) -> Iterator[_Place]:
    count = len(name.words)
    for first, word in enumerate(wish.words):
        if not name.joined or word[0] != name.joined[0] or is_ideograph(word):
            continue
        for size in range(max(1, count - 1), count + 2):
            said = wish.words[first : first + size]
            wrong = _wrong_letters(name, said) if len(said) == size else None
            if wrong:
                yield _Place(first, first + size, 1 - 1.5 * wrong / len(name.joined))


def _wrong_letters(name: Words, said: list[str]) -> int | None:
    """Return how many letters are wrong, or None when these words are others and not the name misspelt."""
    if len(said) == 1 and said[0] in ordinary_words():
        return None
    if len(said) != len(name.words):
        joined = "".join(said)
        split_ok = len(said) < len(name.words) or min(map(len, said)) >= _SHORTEST_SPLIT_WORD
        wrong = edits(name.joined, joined, 1) if len(name.joined) >= _SHORTEST_SPLIT_NAME and split_ok else 2
        return wrong if wrong <= 1 else None
    total = 0
    for word, other in zip(name.words, said, strict=True):
        allowed = _allowed_edits(word)
        wrong = edits(word, other, allowed)
        if wrong > allowed:
            return None
        total += wrong
    return total


def _allowed_edits(word: str) -> int:
    return 0 if len(word) < 5 else 1 if len(word) < 9 else 2


def _with_a_wrong_character(name: Words, wish: Words) -> Iterator[_Place]:
    """Yield where one character inside the name is another: the first and the last make too many other words."""
    size, core = len(name.words), _core_size(name.joined)
    if core < _SHORTEST_CORE or size != len(name.joined):
        return
    for first in range(len(wish.words) - size + 1):
        said = wish.words[first : first + size]
        wrong = [number for number in range(size) if said[number] != name.words[number]]
        if len(wrong) == 1 and 0 < wrong[0] < min(core, size - 1):
            yield _Place(first, first + size, 1 - 1 / size)


def _core_size(name: str) -> int:
    ending = next((ending for ending in _GENERIC_ENDINGS if name.endswith(ending)), "")
    return len(name) - len(ending)


@lru_cache(maxsize=1)
def ordinary_words() -> frozenset[str]:
    """Return the words of everyday English that are a letter or two from a style's name."""
    folder = resources.files("agent.storage") / "style_data"
    return frozenset((folder / "ordinary_words.txt").read_text(encoding="utf-8").split())


# What stands around a name


def _speaks_of_style(wish: Words, place: _Place) -> bool:
    rest = wish.words[place.end : place.end + 2]
    if rest and rest[0] in _STYLE_WORDS:
        return True
    if "".join(rest).startswith(_STYLE_CHARACTERS):
        return True
    before = [word for word in wish.words[max(0, place.first - 3) : place.first] if word not in _ARTICLES]
    return len(before) > 1 and before[-1] == "of" and before[-2] in _STYLE_OF


def _is_negated(wish: Words, first: int) -> bool:
    clause = max(wish.clause_start(first), first - _NEGATION_REACH)
    before = wish.words[clause:first]
    for word in reversed(before):
        if word in _BUT:
            return False
        if word in _NOT:
            return True
    return any(negation in "".join(before) for negation in _NOT_CHARACTERS)

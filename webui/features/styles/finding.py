"""What a person finds in the style library: what it finds by name, what merely says the words, and why."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from agent import MatchKind, Style, StyleMatch
from webui.words import Words

MINE = "mine"
# The families a style is listed under, by the first of its tags that is one, in the order of the list.
FAMILIES = ("painting", "drawing", "illustration", "chinese", "print", "craft", "design", "photography", "film", "3d")


@dataclass(frozen=True)
class Shown:
    """A style of the list, and why it is there: a sentence when something was searched for."""

    style: Style
    why: str = ""


def title_of(words: Words, style: Style) -> str:
    """Return the style's name in the page's language, else in the one it has."""
    return style.name.zh if words.language == "zh-CN" and style.name.zh else style.title


def family_of(style: Style) -> str:
    """Return the family a style is listed under: `mine` for one's own, nothing for none."""
    return MINE if style.is_own else next((tag for tag in style.tags if tag in FAMILIES), "")


def family_name(words: Words, family: str) -> str:
    """Return what a family is called on the page."""
    if family == MINE:
        return words("styles.mine")
    return words(f"styles.family_{family}") if family in FAMILIES else words("styles.family_other")


def in_family(style: Style, family: str) -> bool:
    """Whether a style is shown when that family is chosen; nothing chosen shows every one."""
    return not family or (style.is_own if family == MINE else family in style.tags)


def found(words: Words, query: str, styles: Sequence[Style], matches: Sequence[StyleMatch]) -> list[Shown]:
    """Return what the library found, then every other style that says the words somewhere, each with the reason."""
    surest = [Shown(match.style, _reason(words, match)) for match in matches]
    known = {shown.style.id for shown in surest}
    wanted = query.casefold()
    rest: list[tuple[int, Shown]] = []
    for style in styles:
        hit = next((hit for hit in _sayings(words, style) if wanted in hit[1].casefold()), None)
        if hit is not None and style.id not in known:
            rank, text, key = hit
            rest.append((rank, Shown(style, words(key, text=text))))
    return surest + [shown for _, shown in sorted(rest, key=lambda entry: entry[0])]


def grouped(shown: Sequence[Shown]) -> list[tuple[str, list[Shown]]]:
    """Return the styles by family, one's own first."""
    families = (MINE, *FAMILIES, "")
    members = {family: [one for one in shown if family_of(one.style) == family] for family in families}
    return [(family, ones) for family, ones in members.items() if ones]


def _reason(words: Words, match: StyleMatch) -> str:
    kind = match.reason.kind
    # How people describe a style is told as its meaning.
    kind = MatchKind.MEANING if kind is MatchKind.DESCRIPTION else kind
    return words(f"styles.why_{kind}", text=match.reason.text)


def _sayings(words: Words, style: Style) -> Iterator[tuple[int, str, str]]:
    """Yield all that a style says, what tells most first: its rank, the text, the key of the reason."""
    for name in style.names:
        yield 0, name, "styles.why_name"
    for alias in (*style.aliases.en, *style.aliases.zh, *style.loose):
        yield 1, alias, "styles.why_alias"
    for tag in style.tags:
        yield 2, family_name(words, tag) if tag in FAMILIES else tag, "styles.why_tag"
        yield 2, tag, "styles.why_tag"
    for phrase in style.phrases:
        yield 3, phrase, "styles.why_phrase"
    for description in (style.description.en, style.description.zh):
        yield 4, description, "styles.why_description"

"""A style, a style that a person wrote, and why a wish found one."""

from __future__ import annotations

import unicodedata
from enum import StrEnum
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from agent.messages import Value

_JOINERS = "\u200c\u200d"
_SHORTEST_NAME = {"latin": 3, "other": 2}
_FIRST_IDEOGRAPH = "\u2e80"


def _clean(text: str) -> str:
    """Return the text on one line. Raises ValueError for what no person types."""
    line = " ".join(text.split())
    if any(unicodedata.category(char).startswith("C") and char not in _JOINERS for char in line):
        raise ValueError("it holds characters that cannot be shown")
    # Brackets are how the prompt marks its own blocks, such as facts.
    if any(char in "[]" for char in line):
        raise ValueError("square brackets are not allowed")
    return line


def _clean_name(text: str) -> str:
    name = _clean(text)
    letters = [char for char in name if char.isalnum()]
    is_other = any(char >= _FIRST_IDEOGRAPH for char in letters)
    # A name of one or two letters would be found in every wish.
    if name and len(letters) < _SHORTEST_NAME["other" if is_other else "latin"]:
        raise ValueError("it is too short to be told from other words")
    return name


def _clean_entry(text: str) -> str:
    line = _clean(text)
    if not line:
        raise ValueError("it is empty")
    return line


def _clean_alias(text: str) -> str:
    return _clean_name(_clean_entry(text))


Name = Annotated[str, Field(max_length=80), AfterValidator(_clean_name)]
Alias = Annotated[str, Field(max_length=80), AfterValidator(_clean_alias)]
Phrase = Annotated[str, Field(max_length=240), AfterValidator(_clean_entry)]
Tag = Annotated[str, Field(max_length=40), AfterValidator(_clean_entry)]
Prose = Annotated[str, Field(max_length=1000), AfterValidator(_clean)]
AliasList = Annotated[tuple[Alias, ...], Field(max_length=80)]
PhraseList = Annotated[tuple[Phrase, ...], Field(max_length=20)]


class StyleName(Value):
    """What a style is called; one of the two languages is enough for a style of one's own."""

    en: Name = ""
    zh: Name = ""


class StyleAliases(Value):
    """What else people call it."""

    en: AliasList = ()
    zh: AliasList = ()


class StyleDescription(Value):
    """What it looks like, in a sentence."""

    en: Prose = ""
    zh: Prose = ""


class StyleDraft(Value):
    """A style as it is written: everything but its id.

    `loose` names stand for the style only beside a word such as "style": a gothic church is a building, a gothic
    look is a style. `phrases` go into the prompt; `negative` says what the picture should not have.
    """

    name: StyleName
    aliases: StyleAliases = StyleAliases()
    loose: AliasList = ()
    description: StyleDescription = StyleDescription()
    phrases: PhraseList = Field(min_length=1)
    negative: PhraseList = ()
    tags: Annotated[tuple[Tag, ...], Field(max_length=20)] = ()

    @model_validator(mode="after")
    def _has_a_name(self) -> Self:
        if not self.title:
            raise ValueError("a style needs a name")
        return self

    @property
    def title(self) -> str:
        """The name to show where only one language has one."""
        return self.name.en or self.name.zh

    @property
    def names(self) -> tuple[str, ...]:
        """The names in both languages, without empty ones."""
        return tuple(name for name in (self.name.en, self.name.zh) if name)


class Style(StyleDraft):
    """A style of the library. `is_own` says that a person wrote it, and may change it."""

    id: str = Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$", max_length=64)
    is_own: bool = False

    @property
    def draft(self) -> StyleDraft:
        """The style without its id, as it is exported."""
        return StyleDraft.model_validate(self.model_dump(exclude={"id", "is_own"}))


class StyleFile(Value):
    """Styles on their way out of one library and into another."""

    aivista_styles: Literal[1] = 1
    styles: tuple[StyleDraft, ...]


class MatchKind(StrEnum):
    """What of a style a wish met."""

    NAME = "name"
    ALIAS = "alias"
    PHRASE = "phrase"
    DESCRIPTION = "description"
    MEANING = "meaning"


class MatchReason(Value):
    """Why a style was found: `text` is the name, alias or phrase as the style has it, `words` how the wish said it.

    For DESCRIPTION `text` is how people describe the style and `words` is empty; for MEANING `text` is the style's own
    description.
    """

    kind: MatchKind
    text: str
    words: str = ""


class StyleMatch(Value):
    """A style that a wish found, and how surely.

    `similarity` means the same however it was found: 1 when the wish says the style's own name, 0.6 where it begins
    to be right more often than wrong, less for chance.
    """

    style: Style
    similarity: float = Field(ge=0, le=1)
    reason: MatchReason

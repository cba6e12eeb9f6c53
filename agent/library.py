"""What is kept beside the conversations: the gallery's questions and answers, styles, presets, caps, what was spent."""

from __future__ import annotations

import unicodedata
from datetime import date, datetime, timedelta
from enum import StrEnum
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from agent.messages import TokenUsage, Value
from agent.pictures import Picture
from agent.settings import TurnSettings

MAX_GALLERY_PAGE = 200
MAX_TAG_CHARACTERS = 64
# Of a deleted picture as of a deleted conversation; then the file goes, and with it the way back.
KEPT_FOR = timedelta(days=30)

GallerySource = Literal["made", "uploaded", "edited"]
GalleryPlace = Literal["tag", "title", "words", "prompt", "alt", "lettering", "style", "model"]


class GalleryFoundBy(StrEnum):
    """Why a search found a picture. The page has a word for each under `gallery.found_by.<name>`."""

    WORDS = "words"
    MEANING = "meaning"
    LOOKS = "looks"


def plain_tag(tag: str) -> str:
    """Return a tag as it is kept: on one line, its accents in Unicode's form NFC, not too long; empty for none."""
    return " ".join(unicodedata.normalize("NFC", tag).split())[:MAX_TAG_CHARACTERS].strip()


class GalleryQuery(Value):
    """Which pictures to show; everything given must hold.

    `words` and `similar_to` (a picture's id) search: the best come first, and those whose words match before those that
    only mean the same or look alike. Without a search the newest come first, or with `is_by_conversation` the
    conversations where something was said last, each with its newest picture first. Days are those of UTC, both
    included. `hides_rejected` leaves out attempts that a review sent back. `after` is the `next` of the page before;
    one that cannot be read is the beginning.
    """

    after: str | None = None
    limit: int = Field(default=60, ge=1, le=MAX_GALLERY_PAGE)
    conversation_id: str | None = None
    model: str | None = None
    shape: str | None = None
    source: GallerySource | None = None
    day_from: date | None = None
    day_to: date | None = None
    is_starred: bool | None = None
    tag: str | None = None
    hides_rejected: bool = False
    words: str = Field(default="", max_length=2000)
    similar_to: int | None = None
    is_by_conversation: bool = False

    @property
    def is_search(self) -> bool:
        """Whether the best come first, not the newest."""
        return bool(self.words.strip()) or self.similar_to is not None

    @property
    def has_filters(self) -> bool:
        """Whether anything but words and likeness is asked."""
        asked = {"after", "limit", "words", "similar_to", "is_by_conversation"}
        return self != GalleryQuery(**self.model_dump(include=asked))


class GalleryMatch(Value):
    """Why a search found a picture.

    `place` is where most of the words stand, `excerpt` what stands there, and `marks` where in it the words begin and
    end; `similarity`, from 0 to 1, is how much it looks like the other picture.
    """

    found_by: tuple[GalleryFoundBy, ...]
    place: GalleryPlace | None = None
    excerpt: str = ""
    marks: tuple[tuple[int, int], ...] = ()
    similarity: float | None = None


class GalleryItem(Value):
    """A picture of the gallery; its `picture` comes without `answer`. `match` is there after a search only.

    `is_rejected` when it is an attempt that a review sent back.
    """

    id: int
    conversation_id: str
    conversation_title: str
    picture: Picture
    is_starred: bool = False
    is_rejected: bool = False
    tags: tuple[str, ...] = ()
    model: str = ""
    shape: str = ""
    source: str = ""
    match: GalleryMatch | None = None


class GalleryPage(Value):
    """Some pictures, and `next` for the page after it, None on the last one.

    `found` counts the pictures of a search, at most 500 without filters; it is None without one. `is_whole` is False
    while pictures are still being read for a search, which then may have missed some.
    """

    items: tuple[GalleryItem, ...]
    next: str | None = None
    found: int | None = None
    is_whole: bool = True


class GalleryFacets(Value):
    """What there is to choose from: how many pictures of each kind, months as `2026-01`, the newest first."""

    total: int = 0
    starred: int = 0
    models: dict[str, int] = Field(default_factory=dict)
    shapes: dict[str, int] = Field(default_factory=dict)
    sources: dict[str, int] = Field(default_factory=dict)
    months: dict[str, int] = Field(default_factory=dict)
    tags: dict[str, int] = Field(default_factory=dict)


class ZippedPictures(Value):
    """A file with pictures, which is the caller's to remove: its path, how many it holds, and which of those wanted are
    not in it, by handle."""

    path: str
    count: int
    left_out: tuple[str, ...] = ()


def moment_cursor(created_at: datetime, picture_id: int) -> str:
    """Return where a page of the newest pictures ended."""
    return f"{created_at.isoformat()}~{picture_id}"


def moment_of(cursor: str | None) -> tuple[datetime, int] | None:
    """Return the place that a cursor names, None for the beginning."""
    moment, _, number = (cursor or "").partition("~")
    try:
        created_at = datetime.fromisoformat(moment)
    except ValueError:
        return None
    is_place = number.isdecimal() and number.isascii() and len(number) < 19 and created_at.tzinfo is not None
    return (created_at, int(number)) if is_place else None


def rank_cursor(rank: int) -> str:
    """Return where a page of a search ended."""
    return f"r{rank}"


def rank_of(cursor: str | None) -> int:
    """Return how many pictures of a search came before, 0 for the beginning."""
    digits = (cursor or "").removeprefix("r")
    return int(digits) if digits.isdecimal() and digits.isascii() and len(digits) < 8 else 0


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


class Preferences(Value):
    """The caps that a person is asked at, in US dollars; None is no cap."""

    cap_conversation_usd: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    cap_day_usd: float | None = Field(default=None, ge=0, allow_inf_nan=False)


class Preset(Value):
    """Settings under a name; the name is the owner's own, and theirs once."""

    id: str = Field(max_length=32)
    name: str
    settings: TurnSettings


class Spent(Value):
    """Dollars, and the tokens by kind; `other_tokens` are those of conversations that are gone and of searches, of
    which only the number is known."""

    price_usd: float = 0.0
    usage: TokenUsage = TokenUsage()
    other_tokens: int = 0

    @property
    def total_tokens(self) -> int:
        """All tokens of every kind."""
        return self.usage.total_tokens + self.other_tokens


class SpendSums(Value):
    """What the owner has spent this month and today, in US dollars."""

    month_usd: float = 0.0
    day_usd: float = 0.0


class SoFar(Value):
    """What has been spent of each cap, in US dollars, with what others are about to pay."""

    conversation_usd: float = 0.0
    day_usd: float = 0.0

    def __add__(self, more_usd: float) -> SoFar:
        return SoFar(conversation_usd=self.conversation_usd + more_usd, day_usd=self.day_usd + more_usd)

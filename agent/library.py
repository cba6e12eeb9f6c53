"""The values beside the conversations: gallery queries and results, styles, presets, caps, spending."""

from __future__ import annotations

import unicodedata
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from agent.messages import TokenUsage, Value
from agent.pictures import Picture
from agent.settings import TurnSettings

MAX_GALLERY_PAGE = 200
MAX_TAG_CHARACTERS = 64
# Deleted pictures and conversations can be restored for this long; then their files are removed.
KEPT_FOR = timedelta(days=30)

GallerySource = Literal["made", "uploaded", "edited"]
GalleryPlace = Literal["tag", "title", "words", "prompt", "alt", "lettering", "style", "model"]


class GalleryFoundBy(StrEnum):
    """Why a search found a picture. The page has a word for each under `gallery.found_by.<name>`."""

    WORDS = "words"
    MEANING = "meaning"
    LOOKS = "looks"


def plain_tag(tag: str) -> str:
    """Return a tag in its stored form: one line, Unicode NFC, limited length; empty when nothing is left."""
    return " ".join(unicodedata.normalize("NFC", tag).split())[:MAX_TAG_CHARACTERS].strip()


class GalleryQuery(Value):
    """A gallery query; a picture must satisfy all given conditions.

    `words` and `similar_to` (a picture's id) search: the best matches come first, and word matches come before
    matches by meaning or looks. Without a search the newest pictures come first; with `is_by_conversation` they are
    grouped by conversation, the last active conversation first, each with its newest picture first. Days are in UTC,
    both inclusive. `hides_rejected` excludes attempts that a review rejected. `after` is the `next` of the previous
    page; an invalid value means the beginning.
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
        """Whether the query searches, so that the best matches come first instead of the newest."""
        return bool(self.words.strip()) or self.similar_to is not None

    @property
    def has_filters(self) -> bool:
        """Whether the query has conditions other than the search itself."""
        asked = {"after", "limit", "words", "similar_to", "is_by_conversation"}
        return self != GalleryQuery(**self.model_dump(include=asked))


class GalleryMatch(Value):
    """Why a search found a picture.

    `place` is the field that contains most of the words, `excerpt` its text, and `marks` the start and end of each word
    in it; `similarity`, from 0 to 1, is the visual similarity to the other picture.
    """

    found_by: tuple[GalleryFoundBy, ...]
    place: GalleryPlace | None = None
    excerpt: str = ""
    marks: tuple[tuple[int, int], ...] = ()
    similarity: float | None = None


class GalleryItem(Value):
    """A picture of the gallery; its `picture` comes without `answer`. `match` is set only after a search.

    `is_rejected` is true for an attempt that a review rejected.
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
    """A page of pictures, and `next` for the following page, None on the last one.

    `found` counts the pictures of a search, at most 500 without filters; it is None without a search. `is_whole` is
    False while pictures are still being indexed for the search, which may then miss some.
    """

    items: tuple[GalleryItem, ...]
    next: str | None = None
    found: int | None = None
    is_whole: bool = True


class GalleryFacets(Value):
    """The filter values of a gallery with their picture counts; months are written `2026-01`, the newest first."""

    total: int = 0
    starred: int = 0
    models: dict[str, int] = Field(default_factory=dict)
    shapes: dict[str, int] = Field(default_factory=dict)
    sources: dict[str, int] = Field(default_factory=dict)
    months: dict[str, int] = Field(default_factory=dict)
    tags: dict[str, int] = Field(default_factory=dict)


class ZippedPictures(Value):
    """A ZIP file of pictures, which the caller must remove; `left_out` are the handles of missing pictures."""

    path: str
    count: int
    left_out: tuple[str, ...] = ()


def moment_cursor(created_at: datetime, picture_id: int) -> str:
    """Return the cursor at the end of a page of the newest pictures."""
    return f"{created_at.isoformat()}~{picture_id}"


def moment_of(cursor: str | None) -> tuple[datetime, int] | None:
    """Return the position that a cursor encodes, None for the beginning."""
    moment, _, number = (cursor or "").partition("~")
    try:
        created_at = datetime.fromisoformat(moment)
        # The first and the last hours of all time may have no time in UTC.
        created_at.astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    is_place = number.isdecimal() and number.isascii() and len(number) < 19 and created_at.tzinfo is not None
    return (created_at, int(number)) if is_place else None


def rank_cursor(rank: int) -> str:
    """Return the cursor at the end of a page of search results."""
    return f"r{rank}"


def rank_of(cursor: str | None) -> int:
    """Return how many search results precede the cursor, 0 for the beginning."""
    digits = (cursor or "").removeprefix("r")
    return int(digits) if digits.isdecimal() and digits.isascii() and len(digits) < 8 else 0


_JOINERS = "\u200c\u200d"
_SHORTEST_LATIN, _SHORTEST_IDEOGRAPHIC = 3, 2
_FIRST_IDEOGRAPH = "\u2e80"


def _clean(text: str) -> str:
    """Return the text on one line. Raises ValueError for control characters and square brackets."""
    line = " ".join(text.split())
    if any(unicodedata.category(char).startswith("C") and char not in _JOINERS for char in line):
        raise ValueError("it holds characters that cannot be shown")
    # The prompt uses brackets to mark its own blocks, such as facts.
    if any(char in "[]" for char in line):
        raise ValueError("square brackets are not allowed")
    return line


def _clean_name(text: str) -> str:
    name = _clean(text)
    letters = [char for char in name if char.isalnum()]
    shortest = _SHORTEST_IDEOGRAPHIC if any(char >= _FIRST_IDEOGRAPH for char in letters) else _SHORTEST_LATIN
    # A name of one or two letters would match in almost every prompt.
    if name and len(letters) < shortest:
        raise ValueError("it is too short to be told from other words")
    return name


def _clean_entry(text: str) -> str:
    line = _clean(text)
    if not line:
        raise ValueError("it is empty")
    return line


Name = Annotated[str, Field(max_length=80), AfterValidator(_clean_name)]
Alias = Annotated[str, Field(max_length=80), AfterValidator(_clean_entry), AfterValidator(_clean_name)]
Phrase = Annotated[str, Field(max_length=240), AfterValidator(_clean_entry)]
Tag = Annotated[str, Field(max_length=40), AfterValidator(_clean_entry)]
Prose = Annotated[str, Field(max_length=1000), AfterValidator(_clean)]
AliasList = Annotated[tuple[Alias, ...], Field(max_length=80)]
PhraseList = Annotated[tuple[Phrase, ...], Field(max_length=20)]


class StyleName(Value):
    """A style's name; one of the two languages is enough for a user's own style."""

    en: Name = ""
    zh: Name = ""


class StyleAliases(Value):
    """Other names of a style."""

    en: AliasList = ()
    zh: AliasList = ()


class StyleDescription(Value):
    """A description of a style's appearance, in one sentence."""

    en: Prose = ""
    zh: Prose = ""


class StyleDraft(Value):
    """A style without its id.

    `loose` names mean the style only next to a word such as "style": a gothic church is a building, a gothic look is a
    style. `phrases` go into the prompt; `negative` lists what the picture should not contain.
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
        """The name to display: the English one, or else the Chinese one."""
        return self.name.en or self.name.zh

    @property
    def names(self) -> tuple[str, ...]:
        """The names in both languages, without empty ones."""
        return tuple(name for name in (self.name.en, self.name.zh) if name)


class Style(StyleDraft):
    """A style of the library. `is_own` is true when a user wrote it and may change it."""

    id: str = Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$", max_length=64)
    is_own: bool = False

    @property
    def draft(self) -> StyleDraft:
        """The style without its id, as it is exported."""
        return StyleDraft.model_validate(self.model_dump(exclude={"id", "is_own"}))


class StyleFile(Value):
    """A file of exported styles, which another library can import."""

    aivista_styles: Literal[1] = 1
    styles: tuple[StyleDraft, ...]


class MatchKind(StrEnum):
    """What part of a style a prompt matched."""

    NAME = "name"
    ALIAS = "alias"
    PHRASE = "phrase"
    DESCRIPTION = "description"
    MEANING = "meaning"


class MatchReason(Value):
    """Why a style was found: `text` is the style's name, alias or phrase, `words` the matching words of the prompt.

    For DESCRIPTION `text` is how people describe the style, and `words` is empty; for MEANING `text` is the style's own
    description.
    """

    kind: MatchKind
    text: str
    words: str = ""


class StyleMatch(Value):
    """A style that a prompt matched, and the confidence of the match.

    `similarity` has the same scale for every kind of match: 1 when the prompt contains the style's own name, 0.6 where
    matches start to be right more often than wrong, less for accidental matches.
    """

    style: Style
    similarity: float = Field(ge=0, le=1)
    reason: MatchReason


class Preferences(Value):
    """The spending caps at which the user is asked, in US dollars; None means no cap."""

    cap_conversation_usd: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    cap_day_usd: float | None = Field(default=None, ge=0, allow_inf_nan=False)


class Preset(Value):
    """Settings saved under a name that the owner chose; it is unique per owner."""

    id: str = Field(max_length=32)
    name: str
    settings: TurnSettings


class Spent(Value):
    """US dollars and tokens by kind; `other_tokens`, of deleted conversations and searches, have no known kind."""

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
    """The spending that counts towards each cap, in US dollars, including amounts that other turns have reserved."""

    conversation_usd: float = 0.0
    day_usd: float = 0.0

    def __add__(self, more_usd: float) -> SoFar:
        return SoFar(conversation_usd=self.conversation_usd + more_usd, day_usd=self.day_usd + more_usd)

"""What is asked of the gallery, and what it answers."""

from __future__ import annotations

import unicodedata
from datetime import date, datetime, timedelta
from enum import StrEnum
from typing import Literal

from pydantic import Field

from agent.messages import Value
from agent.pictures import Picture

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

    `words` and `similar_to` (a picture's id) search: the best come first, else the newest. Days are those of UTC, both
    included. `after` is the `next` of the page before; one that cannot be read is the beginning.
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
    words: str = Field(default="", max_length=2000)
    similar_to: int | None = None

    @property
    def is_search(self) -> bool:
        """Whether the best come first, not the newest."""
        return bool(self.words.strip()) or self.similar_to is not None

    @property
    def has_filters(self) -> bool:
        """Whether anything but words and likeness is asked."""
        plain = GalleryQuery(after=self.after, limit=self.limit, words=self.words, similar_to=self.similar_to)
        return self != plain


class GalleryMatch(Value):
    """Why a search found a picture.

    `place` is where most of the words stand and `excerpt` what stands there; `similarity`, from 0 to 1, is how much it
    looks like the other picture.
    """

    found_by: tuple[GalleryFoundBy, ...]
    place: GalleryPlace | None = None
    excerpt: str = ""
    similarity: float | None = None


class GalleryItem(Value):
    """A picture of the gallery; its `picture` comes without `answer`. `match` is there after a search only."""

    id: int
    conversation_id: str
    conversation_title: str
    picture: Picture
    is_starred: bool = False
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

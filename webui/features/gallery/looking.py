"""What is looked for in the gallery, what there is to choose from, and the pictures found, for the templates."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from functools import partial
from typing import Annotated, Any, NamedTuple, TypeAlias
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import Field, JsonValue

from agent import (
    EXACT_ADJUSTMENT_LABEL,
    GalleryFacets,
    GalleryFoundBy,
    GalleryItem,
    GalleryMatch,
    GalleryQuery,
    Picture,
)
from webui.view import View, marked, picture_alt
from webui.words import Words

LONGEST_QUERY = 200
# Twice as many pixels as a cell usually has on the page.
_CELL_EDGE_PX, _WIDE_EDGE_PX = 384, 640
# Pictures that are longer still are shown on a ground of this shape: no row holds a strip well.
_LEAST_RATIO, _MOST_RATIO = 0.5, 4
_LEAD = 10

Name: TypeAlias = Annotated[str, Field(max_length=100)]


class Look(GalleryQuery):
    """What is looked for, and how it is grouped. `when` is a number of days or a month, else the days from and to
    count. Days are those of the person's time `zone`."""

    words: str = Field(default="", max_length=LONGEST_QUERY)
    similar_to: int | None = Field(default=None, ge=0, lt=1 << 63)
    similar_handle: Name = ""
    here: bool = False
    when: str = Field(default="", pattern=r"^(|1|7|30|(19|20)\d\d-(0[1-9]|1[0-2]))$")
    zone: Name = "UTC"

    @property
    def is_filtered(self) -> bool:
        """Whether anything but words is asked."""
        return self.model_dump(mode="json", include=set(PLAIN)) != PLAIN

    @property
    def own_zone(self) -> tzinfo:
        """The person's time zone, as far as this machine knows it."""
        try:
            return ZoneInfo(self.zone)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            return UTC

    def query(self, conversation_id: str) -> GalleryQuery:
        """Return what the gallery is asked, with the open conversation."""
        asked = self.model_dump(include=set(GalleryQuery.model_fields))
        asked["conversation_id"] = conversation_id if self.here else None
        if "-" in self.when:
            first = date.fromisoformat(f"{self.when}-01")
            last = (first + timedelta(days=31)).replace(day=1) - timedelta(days=1)
            asked |= {"day_from": first, "day_to": last}
        elif self.when:
            # The gallery's days are those of UTC: the one on which the person's own began, so that nothing is missing.
            own = datetime.now(self.own_zone).date() - timedelta(days=int(self.when) - 1)
            start = datetime.combine(own, time(), self.own_zone).astimezone(UTC)
            asked |= {"day_from": start.date(), "day_to": None}
        return GalleryQuery(**asked)


# What is looked for when nothing is, but words.
PLAIN: dict[str, JsonValue] = Look().model_dump(
    mode="json", exclude={"words", "zone", "is_by_conversation", "conversation_id", "after", "limit"}
)
_ANY_DAY: dict[str, JsonValue] = {"when": "", "day_from": None, "day_to": None}


class Option(NamedTuple):
    """What can be chosen: how many pictures have it, what it changes of the look, and whether it is chosen."""

    label: str
    number: int | None
    change: dict[str, JsonValue]
    is_on: bool = False


class Cell(NamedTuple):
    """A picture as it is shown. `name` says all of it, `caption` is pieces of text and whether they are marked."""

    item: GalleryItem
    name: str
    address: str
    width: int
    height: int
    ratio: float
    rejected: str
    caption: list[tuple[str, bool]]


class Group(NamedTuple):
    """Pictures of a day or of a conversation; what a search found is one, without a name."""

    key: str
    name: str
    cells: list[Cell]


def filters(words: Words, look: Look, facets: GalleryFacets | None = None, here: int = 0) -> dict[str, Any]:
    """Return what there is to choose from; without `facets` nothing has been counted."""
    dates, known = _dates(words, look), facets or GalleryFacets()

    def option(label: str, count: int | None, name: str, value: Any) -> Option:
        """Return a filter that is set by pressing it, and left off by pressing it again."""
        is_on = getattr(look, name) == value
        return Option(label, count if facets else None, {name: PLAIN[name] if is_on else value}, is_on)

    def time_of(label: str, when: str, count: int | None = None) -> Option:
        return Option(label, count, {**_ANY_DAY, "when": when}, look.when == when and bool(when or not dates))

    def label_of(value: str) -> str:
        """Return a facet's name: what was done without a model has one of its own in each language."""
        return words("receipt.exact") if value == EXACT_ADJUSTMENT_LABEL else value

    more = {"model": known.models, "shape": known.shapes, "tag": known.tags}
    on = {
        "similar_to": words("gallery.similar_to", handle=look.similar_handle) if look.similar_to is not None else "",
        **{name: label_of(getattr(look, name) or "") for name in more},
        "hides_rejected": words("gallery.kept") if look.hides_rejected else "",
    }
    off = [Option(label, None, {name: PLAIN[name]}) for name, label in on.items() if label]
    return {
        "look": look,
        "everything": Option(words("gallery.all"), known.total if facets else None, PLAIN, not look.is_filtered),
        "facets": known,
        "here": here,
        "option": option,
        "time_of": time_of,
        "label_of": label_of,
        "month_of": partial(_month, words),
        "on": [*off, *([Option(dates, None, _ANY_DAY)] if dates else [])],
        "hidden_count": sum(bool(getattr(look, name)) for name in (*more, "hides_rejected")),
        "more": more,
        "order": dates or words("gallery.best" if look.is_search else "gallery.newest"),
        "clear": {**PLAIN, "words": ""},
    }


def groups(words: Words, look: Look, items: Sequence[GalleryItem]) -> list[Group]:
    """Return the pictures in their groups, in their order."""
    grouped: dict[str, Group] = {}
    zone = look.own_zone
    for item in items:
        key, name = "found", ""
        if look.is_by_conversation and not look.is_search:
            key, name = item.conversation_id, _title(words, item)
        elif not look.is_search:
            day = item.picture.created_at.astimezone(zone).date()
            key, name = day.isoformat(), _day(words, day, datetime.now(zone).date())
        grouped.setdefault(key, Group(key, name, [])).cells.append(_cell(words, item))
    return [*grouped.values()]


def _cell(words: Words, item: GalleryItem) -> Cell:
    picture = item.picture
    width, height = picture.image.width or 1, picture.image.height or 1
    rejected = _why_rejected(words, picture) if item.is_rejected else ""
    name = words("gallery.of", alt=picture_alt(words, picture), title=_title(words, item))
    edge_px = _WIDE_EDGE_PX if width > height else _CELL_EDGE_PX
    return Cell(
        item,
        name=". ".join(part for part in (name, _why_found(words, item.match), rejected) if part),
        address=View(words, item.conversation_id).url(picture.handle, edge_px),
        width=width,
        height=height,
        ratio=round(min(_MOST_RATIO, max(_LEAST_RATIO, width / height)), 4),
        rejected=rejected,
        caption=_caption(words, item),
    )


def _why_found(words: Words, match: GalleryMatch | None) -> str:
    if match is None:
        return ""
    if match.similarity is not None:
        return words("gallery.alike", percent=round(match.similarity * 100))
    if match.place is not None:
        excerpt = " ".join(match.excerpt.split())
        return words("gallery.why", place=words(f"gallery.place_{match.place}"), excerpt=excerpt)
    return words("gallery.why_meaning") if GalleryFoundBy.MEANING in match.found_by else ""


def _why_rejected(words: Words, picture: Picture) -> str:
    review = picture.review
    missing = [one.wish for one in review.checklist if one.is_met is False] if review else []
    why = (review.feedback if review else "") or words("did.join").join(missing)
    return words("gallery.rejected_why", why=" ".join(why.split())) if why else words("gallery.rejected_title")


def _caption(words: Words, item: GalleryItem) -> list[tuple[str, bool]]:
    """Return how the picture came about, or why it was found."""
    picture, match = item.picture, item.match
    if match is not None and match.similarity is not None:
        return [(_why_found(words, match), False)]
    if match is not None and match.marks:
        return _marked(match)
    asked = (picture.receipt.user_text if picture.receipt else "") or picture.alt
    return [(" ".join(asked.split()) or words("gallery.uploaded"), False)]


def _marked(match: GalleryMatch) -> list[tuple[str, bool]]:
    """Return the excerpt from shortly before its first mark: a narrow picture leaves no room for more."""
    excerpt, first = match.excerpt, match.marks[0][0]
    at = max(0, first - _LEAD)
    at = excerpt.find(" ", at, first) + 1 or at if at else 0
    return [*([("…", False)] if at else []), *marked(excerpt, match.marks, at)]


def _title(words: Words, item: GalleryItem) -> str:
    return item.conversation_title or words("top.untitled")


def _dates(words: Words, look: Look) -> str:
    """Return when the pictures are from that are looked for; empty for any time."""
    if look.when:
        names = {"1": "today", "7": "week", "30": "month"}
        return words(f"gallery.{names[look.when]}") if look.when in names else _month(words, look.when)
    first, last = (_date(words, day) if day else "" for day in (look.day_from, look.day_to))
    if first and last:
        return words("gallery.between", first=first, last=last)
    return words("gallery.since", first=first) if first else words("gallery.until", last=last) if last else ""


def _day(words: Words, day: date, today: date) -> str:
    if today - day in (timedelta(0), timedelta(days=1)):
        return words("gallery.today" if day == today else "gallery.yesterday")
    weekday = words("gallery.weekdays").split()[day.weekday()]
    name = words("gallery.day", weekday=weekday, month=_month_name(words, day.month), day=day.day)
    return name if day.year == today.year else words("gallery.day_of_year", day=name, year=day.year)


def _date(words: Words, day: date) -> str:
    # Three letters are enough of a month in English, and all of it in Chinese.
    return words("gallery.date", month=_month_name(words, day.month)[:3], day=day.day, year=day.year)


def _month(words: Words, month: str) -> str:
    year, number = map(int, month.split("-"))
    return words("gallery.month_of", month=_month_name(words, number), year=year)


def _month_name(words: Words, number: int) -> str:
    return words("gallery.month_names").split()[number - 1]

"""The gallery: all pictures, to find, select, star, tag, delete and download.

The page sends its filter with each action, and merges the answer into what it shows; further pages of pictures are
appended. Only the page knows which pictures are selected.
"""

from __future__ import annotations

import secrets
import time
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta, tzinfo
from functools import partial
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypeAlias
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import Field, JsonValue
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from agent import (
    MAX_GALLERY_PAGE,
    MAX_TAG_CHARACTERS,
    GalleryFacets,
    GalleryFoundBy,
    GalleryItem,
    GalleryMatch,
    GalleryPage,
    GalleryQuery,
    Picture,
    Value,
)
from webui.features.page import opened
from webui.features.viewer import canvas_html, compare_html
from webui.features.viewer.image_routes import download_name
from webui.http.sessions import NO_STORE, TemporaryFile, Visitor, as_text, visitor_route
from webui.screen import Screen
from webui.shell.actions import MAX_REFERENCES, Context, Feature
from webui.shell.templates import Patch, Reply, Toast, render
from webui.view import View, marked, picture_alt
from webui.words import Words

PAGE_SIZE = 60
MOST_AT_ONCE = 5000
LONGEST_QUERY = 200
_LIMITS = {"longest_query": LONGEST_QUERY, "longest_tag": MAX_TAG_CHARACTERS}
# Larger ids do not fit the database's integers.
Id: TypeAlias = Annotated[int, Field(ge=0, lt=1 << 63)]
_READY_S = 600.0
_MOST_READY = 3
# Twice as many pixels as a cell usually has on the page.
_CELL_EDGE_PX, _WIDE_EDGE_PX = 384, 640
# A longer picture is shown on a background of this shape: a narrow strip breaks a row.
_LEAST_RATIO, _MOST_RATIO = 0.5, 4
_LEAD = 10

Name: TypeAlias = Annotated[str, Field(max_length=100)]


class GalleryFilter(GalleryQuery):
    """The filter, and how the pictures are grouped. `when` is a number of days or a month; otherwise the days from
    and to count. Days are those of the user's time `zone`."""

    words: str = Field(default="", max_length=LONGEST_QUERY)
    similar_to: Id | None = None
    similar_handle: Name = ""
    here: bool = False
    when: str = Field(default="", pattern=r"^(|1|7|30|(19|20)\d\d-(0[1-9]|1[0-2]))$")
    zone: Name = "UTC"

    @property
    def is_filtered(self) -> bool:
        """Whether anything but a search text is set."""
        return self.model_dump(mode="json", include=set(PLAIN)) != PLAIN

    @property
    def own_zone(self) -> tzinfo:
        """The user's time zone, if this machine knows it."""
        try:
            return ZoneInfo(self.zone)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            return UTC

    def query(self, conversation_id: str) -> GalleryQuery:
        """Return the query for the gallery, given the open conversation."""
        asked = self.model_dump(include=set(GalleryQuery.model_fields))
        asked["conversation_id"] = conversation_id if self.here else None
        if "-" in self.when:
            first = date.fromisoformat(f"{self.when}-01")
            last = (first + timedelta(days=31)).replace(day=1) - timedelta(days=1)
            asked |= {"day_from": first, "day_to": last}
        elif self.when:
            # The gallery counts days in UTC: the day on which the user's day began, so that nothing is missing.
            own = datetime.now(self.own_zone).date() - timedelta(days=int(self.when) - 1)
            start = datetime.combine(own, datetime.min.time(), self.own_zone).astimezone(UTC)
            asked |= {"day_from": start.date(), "day_to": None}
        return GalleryQuery(**asked)


# The values of an empty filter, apart from the search text.
PLAIN: dict[str, JsonValue] = GalleryFilter().model_dump(
    mode="json", exclude={"words", "zone", "is_by_conversation", "conversation_id", "after", "limit"}
)
_ANY_DAY: dict[str, JsonValue] = {"when": "", "day_from": None, "day_to": None}


class PageRequest(GalleryFilter):
    """A number of pictures, or those `after` a page; `there` are the groups that the page has already."""

    count: int = Field(default=PAGE_SIZE, ge=1, le=MOST_AT_ONCE)
    there: tuple[Name, ...] = Field(default=(), max_length=MOST_AT_ONCE)


class ChosenPictures(Value):
    """Pictures by the gallery's ids."""

    ids: Annotated[tuple[Id, ...], Field(max_length=MOST_AT_ONCE)]


class Together(Value):
    """Pictures that are used together, by the gallery's ids."""

    ids: Annotated[tuple[Id, ...], Field(min_length=1, max_length=MAX_REFERENCES)]


class Changed(GalleryFilter, ChosenPictures):
    """Selected pictures, with the filter that is shown."""


class Starred(Changed):
    """Pictures to star or unstar."""

    is_on: bool


class Tagged(Starred):
    """Pictures to tag or untag."""

    name: str = Field(max_length=MAX_TAG_CHARACTERS)


class Wanted(ChosenPictures):
    """Pictures to download; `clean` ones carry neither a recipe nor any other metadata."""

    clean: bool = False


def gallery_html(words: Words) -> str:
    """Return the empty pane: pictures are loaded when it is first shown."""
    return render("gallery/pane.html", words, **_LIMITS, **filters(words, GalleryFilter()), page=None)


gallery = Feature("gallery", lambda screen: packed_routes(screen))


@gallery.action
async def show(at: Context, shown: PageRequest) -> Reply:
    """Show pictures and the filters, or append a page. The script receives the cursor of the next page."""
    page = await _page(at, shown)
    grouped = groups(at.words, shown, page.items)
    if shown.after:
        patches = []
        for group in grouped:
            if group.key not in shown.there:
                patches.append(at.fragment(f"gal-g-{group.key}", "gallery/group.html", "gal-grid", group=group))
                continue
            row = f"gal-r-{group.key}"
            patches += [at.fragment(f"gal-{one.item.id}", "gallery/cell.html", row, one=one) for one in group.cells]
    else:
        values = {**_LIMITS, **await _filters(at, shown), "page": page, "groups": grouped}
        patches = [at.fragment("gal", "gallery/pane.html", "gallery", **values)]
    return Reply(patches=tuple(patches), events={"gallery": {"next": page.next, "is_whole": page.is_whole}})


@gallery.action
async def count(at: Context, look: GalleryFilter) -> Reply:
    """Show how many pictures each filter has."""
    return Reply(patches=await _counts(at, look))


@gallery.action
async def star(at: Context, starred: Starred) -> Reply:
    """Star or unstar pictures."""
    done = await at.screen.studio().gallery.star(at.visitor.owner, starred.ids, starred.is_on)
    items = await _items(at, done)
    stars = [at.fragment(f"gal-star-{item.id}", "gallery/star.html", item=item) for item in items]
    return Reply(patches=(*stars, *await _counts(at, starred)), toast=None if done else _gone(at))


@gallery.action
async def tags(at: Context, chosen: ChosenPictures) -> Reply:
    """Show all tags, and which of them the selected pictures have."""
    return Reply(patches=(await _tags(at, chosen.ids),))


@gallery.action
async def tag(at: Context, tagged: Tagged) -> Reply:
    """Tag or untag pictures."""
    library, owner = at.screen.studio().gallery, at.visitor.owner
    done = await (library.tag if tagged.is_on else library.untag)(owner, tagged.ids, tagged.name)
    sentence = at.words.counted("gallery.tagged", len(done), tag=" ".join(tagged.name.split()))
    toast = Toast(text=sentence) if tagged.is_on else None
    patches = (await _tags(at, tagged.ids), *await _counts(at, tagged))
    return Reply(patches=patches, toast=toast if done else _gone(at))


@gallery.action
async def delete(at: Context, changed: Changed) -> Reply:
    """Delete pictures."""
    items = await _items(at, changed.ids)
    done = await at.screen.studio().gallery.delete(at.visitor.owner, changed.ids)
    ids: list[JsonValue] = [*done]
    toast = Toast(text=at.words.counted("gallery.deleted", len(done)), undo=gallery.undo(undelete, {"ids": ids}))
    patches = (*(Patch(id=f"gal-{one}") for one in done), *await _counts(at, changed))
    return Reply(patches=patches, toast=toast if done else _gone(at), events=_changed_event(at, items))


@gallery.action
async def undelete(at: Context, chosen: ChosenPictures) -> Reply:
    """Restore pictures that were just deleted. The script calls this wherever the pictures are shown by now."""
    done = await at.screen.studio().gallery.undelete(at.visitor.owner, chosen.ids)
    toast = Toast(text=at.words.counted("gallery.restored", len(done)))
    events: dict[str, JsonValue] = {**_changed_event(at, await _items(at, done)), "gallery-back": len(done)}
    return Reply(toast=toast if done else _gone(at), events=events)


@gallery.action
async def pack(at: Context, wanted: Wanted) -> Reply:
    """Pack pictures into a ZIP file; the script receives its address."""
    desk, owner, kind = at.screen.studio().recipes, at.visitor.owner, "clean" if wanted.clean else ""

    async def taken_away(item: GalleryItem) -> bytes:
        place = item.conversation_id, item.picture.handle, owner
        if wanted.clean:
            return (await desk.clean(*place)).data
        return (await desk.with_recipe(*place, key=at.screen.sessions.key(at.visitor))).data

    packed = await at.screen.studio().gallery.zip_of(
        owner, wanted.ids, name_of=lambda picture: download_name(picture, kind), bytes_of=taken_away
    )
    sentence = at.words.counted("gallery.zipped", packed.count)
    if packed.left_out:
        sentence = at.words("gallery.zipped_some", count=packed.count, left_out=", ".join(packed.left_out))
    address = kept(owner, Path(packed.path), packed.count)
    return Reply(toast=Toast(text=sentence), events={"gallery-packed": address})


@gallery.action
async def open_(at: Context, which: Together) -> Reply:
    """Open a picture, with its conversation."""
    items = await _together(at, which)
    return await _staged(at, items[:1]) if items else Reply(toast=_gone(at))


@gallery.action
async def compare(at: Context, which: Together) -> Reply:
    """Compare two pictures of one conversation."""
    items = await _together(at, which)
    is_pair = len(items) == 2 and items[0].conversation_id == items[1].conversation_id
    return await _staged(at, items) if is_pair else Reply(toast=_gone(at))


@gallery.action
async def reference(at: Context, which: Together) -> Reply:
    """Use pictures as references: directly when all belong to the open conversation, else as files in a new one."""
    items = await _together(at, which)
    if not items:
        return Reply(toast=_gone(at))
    if any(item.conversation_id != at.state.conversation for item in items):
        files: list[JsonValue] = []
        for item in items:
            url = View(at.words, item.conversation_id).url(item.picture.handle)
            files.append({"url": url, "name": download_name(item.picture)})
        reply = at.reply(await opened(at, ""))
        return reply.model_copy(update={"events": {**reply.events, "attach": files}})
    named = [item.picture.handle for item in items if item.picture.handle != at.state.editing]
    kept = [handle for handle in at.state.references if handle not in named]
    references = (*kept, *named)[-MAX_REFERENCES:]
    return at.reply(at.screen.context(at.view, at.state.editing, references, at.state.given_roles))


async def _together(at: Context, which: Together) -> tuple[GalleryItem, ...]:
    """Return the pictures, or none when one of them does not exist or belongs to somebody else."""
    items = await _items(at, which.ids)
    return items if len(items) == len(set(which.ids)) else ()


async def _staged(at: Context, items: Sequence[GalleryItem]) -> Reply:
    """Show one picture on the stage, or two of them compared, the older one first."""
    key = items[0].conversation_id
    conversation = await at.screen.studio().conversations.get(key, at.visitor.owner)
    view, pictures = at.screen.view(at.visitor, key), [conversation.picture(item.picture.handle) for item in items]
    if len(pictures) == 1:
        html = canvas_html(view, conversation, pictures[0])
    else:
        html = compare_html(view, conversation, *sorted(pictures, key=lambda one: one.created_at))
    around = await opened(at, key) if key != at.state.conversation else {}
    return at.reply({**around, "canvas": html})


async def _page(at: Context, shown: PageRequest) -> GalleryPage:
    """Return as many pictures as are asked for, over several pages of the gallery."""
    items, after, key = list[GalleryItem](), shown.after, at.screen.sessions.key(at.visitor)
    query = shown.query(at.state.conversation or "-")
    while True:
        asked = {"after": after, "limit": min(MAX_GALLERY_PAGE, shown.count - len(items))}
        page = await at.screen.studio().gallery.page(at.visitor.owner, query.model_copy(update=asked), key=key)
        items += page.items
        after = page.next
        if after is None or len(items) >= shown.count:
            return page.model_copy(update={"items": tuple(items)})


async def _filters(at: Context, look: GalleryFilter) -> dict[str, Any]:
    library, owner, here = at.screen.studio().gallery, at.visitor.owner, at.state.conversation
    count = await library.count(owner, GalleryQuery(conversation_id=here)) if here else 0
    return filters(at.words, look, await library.facets(owner), count)


async def _counts(at: Context, look: GalleryFilter) -> tuple[Patch, ...]:
    values = await _filters(at, look)
    return tuple(at.fragment(f"gal-{one}", f"gallery/{one}.html", **values) for one in ("chips", "more-in"))


async def _tags(at: Context, ids: Sequence[int]) -> Patch:
    items = await _items(at, ids)
    having = Counter(name for item in items for name in item.tags)
    names = dict((await at.screen.studio().gallery.facets(at.visitor.owner)).tags)
    # The counts may be some seconds old.
    names |= {name: 1 for name in having if name not in names}

    def state(name: str) -> str:
        return "true" if having[name] == len(items) else "mixed" if having[name] else "false"

    options = [(Option(name, number, {}), state(name)) for name, number in names.items()]
    return at.fragment("gal-tag-options", "gallery/tags.html", options=options)


async def _items(at: Context, ids: Sequence[int]) -> tuple[GalleryItem, ...]:
    return await at.screen.studio().gallery.items(at.visitor.owner, ids)


def _gone(at: Context) -> Toast:
    return Toast(text=at.words("gallery.gone"), is_problem=True)


def _changed_event(at: Context, items: Sequence[GalleryItem]) -> dict[str, JsonValue]:
    """Return the event that makes other panes update pictures of the open conversation."""
    return {"pictures": True} if any(item.conversation_id == at.state.conversation for item in items) else {}


# ZIP files that were not fetched yet: each can be fetched once, at an unguessable address


class _Ready(NamedTuple):
    owner: str
    path: Path
    pictures: int
    until_s: float


_ready: dict[str, _Ready] = {}


def kept(owner: str, path: Path, count: int) -> str:
    """Return the address where the owner fetches a file with so many pictures. The file is removed when nobody
    fetches it in time, or when its owner packs newer ones."""
    now_s, theirs = time.monotonic(), [name for name, one in _ready.items() if one.owner == owner]
    old = [name for name, one in _ready.items() if one.until_s < now_s]
    for gone in {*old, *theirs[: 1 - _MOST_READY]}:
        _ready.pop(gone).path.unlink(missing_ok=True)
    name = secrets.token_urlsafe(16)
    _ready[name] = _Ready(owner, path, count, now_s + _READY_S)
    return f"aivista/gallery/zip/{name}"


def packed_routes(screen: Screen) -> Sequence[Route]:
    """Return the route of packed files; 404 for an unknown one."""

    async def fetch(request: Request, visitor: Visitor) -> Response:
        name = request.path_params["name"]
        found = _ready.get(name)
        if found is None or found.owner != visitor.owner or not found.path.exists():
            return as_text(visitor.words("route.no_file"), 404)
        if request.method == "HEAD":
            return Response(media_type="application/zip", headers=NO_STORE)
        del _ready[name]
        return TemporaryFile(found.path, "application/zip", f"aivista-pictures-{found.pictures}.zip")

    return [visitor_route("/aivista/gallery/zip/{name}", screen.sessions, fetch)]


# The filters and the found pictures, as values for the templates


class Option(NamedTuple):
    """A choice of a filter: how many pictures have it, how it changes the filter, and whether it is chosen."""

    label: str
    number: int | None
    change: dict[str, JsonValue]
    is_on: bool = False


class Cell(NamedTuple):
    """A picture of the grid. `name` is its full description, `caption` its caption in pieces, marked or not."""

    item: GalleryItem
    name: str
    address: str
    width: int
    height: int
    ratio: float
    rejected: str
    caption: list[tuple[str, bool]]


class Group(NamedTuple):
    """The pictures of a day or of a conversation; the hits of a search are one group without a name."""

    key: str
    name: str
    cells: list[Cell]


def filters(words: Words, look: GalleryFilter, facets: GalleryFacets | None = None, here: int = 0) -> dict[str, Any]:
    """Return the filters; without `facets` nothing was counted yet."""
    dates, known = _dates(words, look), facets or GalleryFacets()

    def option(label: str, count: int | None, name: str, value: Any) -> Option:
        """Return a filter that is toggled by pressing it."""
        is_on = getattr(look, name) == value
        return Option(label, count if facets else None, {name: PLAIN[name] if is_on else value}, is_on)

    def time_of(label: str, when: str, count: int | None = None) -> Option:
        return Option(label, count, {**_ANY_DAY, "when": when}, look.when == when and bool(when or not dates))

    more = {"model": known.models, "shape": known.shapes, "tag": known.tags}
    on = {
        "similar_to": words("gallery.similar_to", handle=look.similar_handle) if look.similar_to is not None else "",
        **{name: words.model(getattr(look, name) or "") for name in more},
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
        "label_of": words.model,
        "month_of": partial(_month, words),
        "on": [*off, *([Option(dates, None, _ANY_DAY)] if dates else [])],
        "hidden_count": sum(bool(getattr(look, name)) for name in (*more, "hides_rejected")),
        "more": more,
        "order": dates or words("gallery.best" if look.is_search else "gallery.newest"),
        "clear": {**PLAIN, "words": ""},
    }


def groups(words: Words, look: GalleryFilter, items: Sequence[GalleryItem]) -> list[Group]:
    """Return the pictures in their groups, in order."""
    grouped: dict[str, Group] = {}
    zone = look.own_zone
    today = datetime.now(zone).date()
    for item in items:
        key, name = "found", ""
        if look.is_by_conversation and not look.is_search:
            key, name = item.conversation_id, _title(words, item)
        elif not look.is_search:
            day = item.picture.created_at.astimezone(zone).date()
            key, name = day.isoformat(), _day(words, day, today)
        grouped.setdefault(key, Group(key, name, [])).cells.append(_cell(words, item))
    return list(grouped.values())


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
    """Return how the picture was made, or why it was found."""
    picture, match = item.picture, item.match
    if match is not None and match.similarity is not None:
        return [(_why_found(words, match), False)]
    if match is not None and match.marks:
        return _marked(match)
    asked = (picture.receipt.user_text if picture.receipt else "") or picture.alt
    return [(" ".join(asked.split()) or words("gallery.uploaded"), False)]


def _marked(match: GalleryMatch) -> list[tuple[str, bool]]:
    """Return the excerpt from shortly before its first mark, because a narrow picture leaves no room for more."""
    excerpt, first = match.excerpt, match.marks[0][0]
    at = max(0, first - _LEAD)
    at = excerpt.find(" ", at, first) + 1 or at if at else 0
    return [*([("…", False)] if at else []), *marked(excerpt, match.marks, at)]


def _title(words: Words, item: GalleryItem) -> str:
    return item.conversation_title or words("top.untitled")


def _dates(words: Words, look: GalleryFilter) -> str:
    """Return the dates of the filter in words; empty for any time."""
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
    # Three letters of a month's name are enough in English, and all of it in Chinese.
    return words("gallery.date", month=_month_name(words, day.month)[:3], day=day.day, year=day.year)


def _month(words: Words, month: str) -> str:
    year, number = map(int, month.split("-"))
    return words("gallery.month_of", month=_month_name(words, number), year=year)


def _month_name(words: Words, number: int) -> str:
    return words("gallery.month_names").split()[number - 1]

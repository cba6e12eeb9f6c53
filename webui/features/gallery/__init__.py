"""The gallery: every picture there is, found, chosen, starred, tagged, deleted and taken away.

The page sends with each action what is looked for, and merges the answer into what it shows; further pages of pictures
are appended. Which pictures are chosen the page alone knows.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, TypeAlias

from pydantic import Field, JsonValue

from agent import MAX_GALLERY_PAGE, MAX_TAG_CHARACTERS, GalleryItem, GalleryPage, GalleryQuery, Value
from webui.features.gallery.looking import LONGEST_QUERY, Look, Name, Option, filters, groups
from webui.features.gallery.packed import kept, packed_routes
from webui.features.page.opening import opened
from webui.features.viewer import canvas_html, compare_html
from webui.media import download_name
from webui.shell.actions import MAX_REFERENCES, Context, Feature
from webui.shell.patches import Patch, Reply, Toast
from webui.shell.templates import render
from webui.words import Words

PAGE_SIZE = 60
MOST_AT_ONCE = 5000
_LIMITS = {"longest_query": LONGEST_QUERY, "longest_tag": MAX_TAG_CHARACTERS}

# Beyond what a database counts to there is no picture.
Ids: TypeAlias = Annotated[tuple[Annotated[int, Field(ge=0, lt=1 << 63)], ...], Field(max_length=MOST_AT_ONCE)]


class Shown(Look):
    """So many pictures, or those `after` a page; `there` are the groups that the page has already."""

    count: int = Field(default=PAGE_SIZE, ge=1, le=MOST_AT_ONCE)
    there: tuple[Name, ...] = Field(default=(), max_length=MOST_AT_ONCE)


class Chosen(Value):
    """Pictures by the gallery's ids."""

    ids: Ids


class Together(Value):
    """Pictures that are used together, by the gallery's ids."""

    ids: Annotated[tuple[Annotated[int, Field(ge=0, lt=1 << 63)], ...], Field(min_length=1, max_length=MAX_REFERENCES)]


class Changed(Look, Chosen):
    """Pictures, out of those that are looked at."""


class Starred(Changed):
    """Pictures that get a star or lose it."""

    is_on: bool


class Tagged(Starred):
    """Pictures that get a tag or lose it."""

    name: str = Field(max_length=MAX_TAG_CHARACTERS)


class Wanted(Chosen):
    """Pictures to take away; `clean` ones carry no recipe, nor anything else that is said of them."""

    clean: bool = False


def gallery_html(words: Words) -> str:
    """Return the pane without a picture: they come when it is first looked at."""
    return render("gallery/pane.html", words, **_LIMITS, **filters(words, Look()), page=None)


gallery = Feature("gallery", packed_routes)


@gallery.action
async def show(at: Context, shown: Shown) -> Reply:
    """Show pictures and what there is to choose from, or append a page. The script is told of the page after it."""
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
async def count(at: Context, look: Look) -> Reply:
    """Show how many pictures there are of each kind."""
    return Reply(patches=await _counts(at, look))


@gallery.action
async def star(at: Context, starred: Starred) -> Reply:
    """Give pictures a star, or take it from them."""
    done = await at.screen.studio().gallery.star(at.visitor.owner, starred.ids, starred.is_on)
    items = await _items(at, done)
    stars = [at.fragment(f"gal-star-{item.id}", "gallery/star.html", item=item) for item in items]
    return Reply(patches=(*stars, *await _counts(at, starred)), toast=None if done else _gone(at))


@gallery.action
async def tags(at: Context, chosen: Chosen) -> Reply:
    """Show the tags that there are, and which of them the chosen pictures have."""
    return Reply(patches=(await _tags(at, chosen.ids),))


@gallery.action
async def tag(at: Context, tagged: Tagged) -> Reply:
    """Give pictures a tag, or take it from them."""
    library, owner = at.screen.studio().gallery, at.visitor.owner
    done = await (library.tag if tagged.is_on else library.untag)(owner, tagged.ids, tagged.name)
    said = at.words.counted("gallery.tagged", len(done), tag=" ".join(tagged.name.split()))
    toast = Toast(text=said) if tagged.is_on else None
    patches = (await _tags(at, tagged.ids), *await _counts(at, tagged))
    return Reply(patches=patches, toast=toast if done else _gone(at))


@gallery.action
async def delete(at: Context, changed: Changed) -> Reply:
    """Delete pictures."""
    items = await _items(at, changed.ids)
    done = await at.screen.studio().gallery.delete(at.visitor.owner, changed.ids)
    ids: list[JsonValue] = [*done]
    said = Toast(text=at.words.counted("gallery.deleted", len(done)), undo=gallery.undo(undelete, {"ids": ids}))
    patches = (*(Patch(id=f"gal-{one}") for one in done), *await _counts(at, changed))
    return Reply(patches=patches, toast=said if done else _gone(at), events=_told(at, items))


@gallery.action
async def undelete(at: Context, chosen: Chosen) -> Reply:
    """Bring back pictures that were just deleted; the script asks for them, wherever they stand now."""
    done = await at.screen.studio().gallery.undelete(at.visitor.owner, chosen.ids)
    said = Toast(text=at.words.counted("gallery.restored", len(done)))
    events: dict[str, JsonValue] = {**_told(at, await _items(at, done)), "gallery-back": len(done)}
    return Reply(toast=said if done else _gone(at), events=events)


@gallery.action
async def pack(at: Context, wanted: Wanted) -> Reply:
    """Pack pictures; the script is told where the file is."""
    desk, owner, kind = at.screen.studio().recipes, at.visitor.owner, "clean" if wanted.clean else ""

    async def taken_away(item: GalleryItem) -> bytes:
        place = item.conversation_id, item.picture.handle, owner
        if wanted.clean:
            return (await desk.clean(*place)).data
        return (await desk.with_recipe(*place, key=at.screen.sessions.key(at.visitor))).data

    packed = await at.screen.studio().gallery.zip_of(
        owner, wanted.ids, name_of=lambda picture: download_name(picture, kind), bytes_of=taken_away
    )
    said = at.words.counted("gallery.zipped", packed.count)
    if packed.left_out:
        said = at.words("gallery.zipped_some", count=packed.count, left_out=", ".join(packed.left_out))
    address = kept(owner, Path(packed.path), packed.count)
    return Reply(toast=Toast(text=said), events={"gallery-packed": address})


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
    """Make pictures references: in a new conversation, as files, unless all are of the open one."""
    items = await _together(at, which)
    if not items:
        return Reply(toast=_gone(at))
    if any(item.conversation_id != at.place.conversation for item in items):
        files: list[JsonValue] = []
        for item in items:
            view = at.screen.view(at.visitor, item.conversation_id)
            files.append({"url": view.url(item.picture.handle), "name": download_name(item.picture)})
        reply = at.reply(await opened(at, ""))
        return reply.model_copy(update={"events": {**reply.events, "attach": files}})
    named = [item.picture.handle for item in items if item.picture.handle != at.place.editing]
    kept = [handle for handle in at.place.references if handle not in named]
    references = (*kept, *named)[-MAX_REFERENCES:]
    return at.reply(at.screen.context(at.view, at.place.editing, references, at.place.given_roles))


async def _together(at: Context, which: Together) -> tuple[GalleryItem, ...]:
    """Return the pictures; none when one of them is not there, or not the visitor's."""
    items = await _items(at, which.ids)
    return items if len(items) == len(set(which.ids)) else ()


async def _staged(at: Context, items: Sequence[GalleryItem]) -> Reply:
    """Show one picture, or two of them compared, the older one first."""
    key = items[0].conversation_id
    conversation = await at.screen.studio().conversations.get(key, at.visitor.owner)
    view, pictures = at.screen.view(at.visitor, key), [conversation.picture(item.picture.handle) for item in items]
    if len(pictures) == 1:
        html = canvas_html(view, conversation, pictures[0])
    else:
        html = compare_html(view, conversation, *sorted(pictures, key=lambda one: one.created_at))
    around = await opened(at, key) if key != at.place.conversation else {}
    return at.reply({**around, "canvas": html})


async def _page(at: Context, shown: Shown) -> GalleryPage:
    """Return as many pictures as are wanted, whatever a page holds."""
    items = list[GalleryItem]()
    query = shown.query(at.place.conversation or "-")
    after = shown.after
    while True:
        asked = {"after": after, "limit": min(MAX_GALLERY_PAGE, shown.count - len(items))}
        key = at.screen.sessions.key(at.visitor)
        page = await at.screen.studio().gallery.page(at.visitor.owner, query.model_copy(update=asked), key=key)
        items += page.items
        after = page.next
        if after is None or len(items) >= shown.count:
            return page.model_copy(update={"items": tuple(items)})


async def _filters(at: Context, look: Look) -> dict[str, Any]:
    library, owner, here = at.screen.studio().gallery, at.visitor.owner, at.place.conversation
    count = await library.count(owner, GalleryQuery(conversation_id=here)) if here else 0
    return filters(at.words, look, await library.facets(owner), count)


async def _counts(at: Context, look: Look) -> tuple[Patch, ...]:
    values = await _filters(at, look)
    return tuple(at.fragment(f"gal-{one}", f"gallery/{one}.html", **values) for one in ("chips", "more-in"))


async def _tags(at: Context, ids: Sequence[int]) -> Patch:
    items = await _items(at, ids)
    names = dict((await at.screen.studio().gallery.facets(at.visitor.owner)).tags)
    # The counts may be some seconds old.
    for name in (name for item in items for name in item.tags):
        names.setdefault(name, 1)

    def state(name: str) -> str:
        having = sum(name in item.tags for item in items)
        return "true" if having == len(items) else "mixed" if having else "false"

    options = [(Option(name, number, {}), state(name)) for name, number in names.items()]
    return at.fragment("gal-tag-options", "gallery/tags.html", options=options)


async def _items(at: Context, ids: Sequence[int]) -> tuple[GalleryItem, ...]:
    return await at.screen.studio().gallery.items(at.visitor.owner, ids)


def _gone(at: Context) -> Toast:
    return Toast(text=at.words("gallery.gone"), is_problem=True)


def _told(at: Context, items: Sequence[GalleryItem]) -> dict[str, JsonValue]:
    """Return the event by which what else shows pictures of the open conversation hears of it."""
    return {"pictures": True} if any(item.conversation_id == at.place.conversation for item in items) else {}

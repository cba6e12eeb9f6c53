"""What is kept beyond one conversation: the style library, the gallery, and what was spent."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import Field

from agent import (
    GalleryFacets,
    GalleryItem,
    GalleryMatch,
    GalleryQuery,
    Spent,
    Style,
    StyleDraft,
    StyleMatch,
    Value,
    local_today,
)
from webui.api.door import TheCaller, TheDoor
from webui.api.views import PictureView, picture_view

router = APIRouter(prefix="/api/v1", tags=["library"])


class Styles(Value):
    """Styles: the caller's own, then the curated ones."""

    styles: tuple[Style, ...]


class StyleMatches(Value):
    """The styles that words name, the surest first."""

    matches: tuple[StyleMatch, ...]


class GalleryPicture(Value):
    """A picture of the gallery, and the conversation it is of. `match` is there after a search."""

    id: int
    conversation_id: str
    conversation_title: str
    picture: PictureView
    is_starred: bool
    tags: tuple[str, ...]
    match: GalleryMatch | None = None


class GalleryView(Value):
    """Some pictures; `next` is the `after` of the page that follows, null on the last one."""

    items: tuple[GalleryPicture, ...]
    next: str | None
    found: int | None
    is_whole: bool


class Cost(Value):
    """What was spent, in US dollars, and the tokens."""

    price_usd: float
    total_tokens: int


class Usage(Value):
    """What the caller spent today and this month, by the clock of the studio's machine, and in a conversation when one
    is named."""

    at: datetime
    day: Cost
    month: Cost
    conversation: Cost | None = Field(default=None)


@router.get("/styles")
async def list_styles(door: TheDoor, caller: TheCaller) -> Styles:
    """Return every style the caller sees."""
    return Styles(styles=await door.studio().styles.all(caller.owner))


@router.get("/styles/search")
async def find_styles(
    door: TheDoor,
    caller: TheCaller,
    words: Annotated[str, Query(max_length=4000)],
    limit: Annotated[int, Query(ge=1, le=50)] = 3,
) -> StyleMatches:
    """Return the styles that the words name."""
    return StyleMatches(matches=tuple(await door.studio().styles.search(words, limit, owner=caller.owner)))


@router.get("/styles/{style_id}")
async def read_style(door: TheDoor, caller: TheCaller, style_id: str) -> Style:
    """Return a style."""
    return await door.studio().styles.get(style_id, caller.owner)


@router.post("/styles", status_code=201)
async def add_style(door: TheDoor, caller: TheCaller, draft: StyleDraft) -> Style:
    """Keep a style of the caller's own."""
    return await door.studio().styles.add(draft, caller.owner)


@router.put("/styles/{style_id}")
async def edit_style(door: TheDoor, caller: TheCaller, style_id: str, draft: StyleDraft) -> Style:
    """Replace a style of the caller's own."""
    return await door.studio().styles.edit(style_id, draft, caller.owner)


@router.delete("/styles/{style_id}", status_code=204)
async def delete_style(door: TheDoor, caller: TheCaller, style_id: str) -> None:
    """Remove a style of the caller's own."""
    await door.studio().styles.delete(style_id, caller.owner)


@router.get("/gallery")
async def read_gallery(door: TheDoor, caller: TheCaller, query: Annotated[GalleryQuery, Query()]) -> GalleryView:
    """Return a page of the caller's pictures: the newest first, or the best of a search in words or by likeness."""
    page = await door.studio().gallery.page(caller.owner, query, key=caller.key)
    items = tuple(map(_item, page.items))
    return GalleryView(items=items, next=page.next, found=page.found, is_whole=page.is_whole)


@router.get("/gallery/facets")
async def read_facets(door: TheDoor, caller: TheCaller) -> GalleryFacets:
    """Return how many pictures there are of each kind."""
    return await door.studio().gallery.facets(caller.owner)


@router.get("/usage")
async def read_usage(
    door: TheDoor, caller: TheCaller, conversation_id: Annotated[str | None, Query(max_length=100)] = None
) -> Usage:
    """Return what was spent."""
    book, now = door.studio().spend, datetime.now().astimezone()
    of_conversation = None
    if conversation_id is not None:
        await door.studio().conversations.get(conversation_id, caller.owner)
        of_conversation = _cost(await book.conversation(conversation_id, caller.owner))
    return Usage(
        at=now,
        day=_cost(await book.day(caller.owner, local_today())),
        month=_cost(await book.month(caller.owner, local_today())),
        conversation=of_conversation,
    )


def _cost(spent: Spent) -> Cost:
    return Cost(price_usd=spent.price_usd, total_tokens=spent.total_tokens)


def _item(item: GalleryItem) -> GalleryPicture:
    return GalleryPicture(
        id=item.id,
        conversation_id=item.conversation_id,
        conversation_title=item.conversation_title,
        picture=picture_view(item.conversation_id, item.picture),
        is_starred=item.is_starred,
        tags=item.tags,
        match=item.match,
    )

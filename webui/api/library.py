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
from webui.api.calls import AnyCall
from webui.api.models import PictureView, picture_view

_OF_ITEM = {"id", "conversation_id", "conversation_title", "is_starred", "is_rejected", "tags"}

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
    is_rejected: bool
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
async def list_styles(call: AnyCall) -> Styles:
    """Return every style the caller sees."""
    return Styles(styles=await call.studio.styles.all(call.owner))


@router.get("/styles/search")
async def find_styles(
    call: AnyCall,
    words: Annotated[str, Query(max_length=4000)],
    limit: Annotated[int, Query(ge=1, le=50)] = 3,
) -> StyleMatches:
    """Return the styles that the words name."""
    return StyleMatches(matches=tuple(await call.studio.styles.search(words, limit, owner=call.owner)))


@router.get("/styles/{style_id}")
async def read_style(call: AnyCall, style_id: str) -> Style:
    """Return a style."""
    return await call.studio.styles.get(style_id, call.owner)


@router.post("/styles", status_code=201)
async def add_style(call: AnyCall, draft: StyleDraft) -> Style:
    """Keep a style of the caller's own."""
    return await call.studio.styles.add(draft, call.owner)


@router.put("/styles/{style_id}")
async def edit_style(call: AnyCall, style_id: str, draft: StyleDraft) -> Style:
    """Replace a style of the caller's own."""
    return await call.studio.styles.edit(style_id, draft, call.owner)


@router.delete("/styles/{style_id}", status_code=204)
async def delete_style(call: AnyCall, style_id: str) -> None:
    """Remove a style of the caller's own."""
    await call.studio.styles.delete(style_id, call.owner)


@router.get("/gallery")
async def read_gallery(call: AnyCall, query: Annotated[GalleryQuery, Query()]) -> GalleryView:
    """Return a page of the caller's pictures: the newest first, or the best of a search in words or by likeness."""
    page = await call.studio.gallery.page(call.owner, query, key=call.key)
    items = tuple(map(_item, page.items))
    return GalleryView(items=items, next=page.next, found=page.found, is_whole=page.is_whole)


@router.get("/gallery/facets")
async def read_facets(call: AnyCall) -> GalleryFacets:
    """Return how many pictures there are of each kind."""
    return await call.studio.gallery.facets(call.owner)


@router.get("/usage")
async def read_usage(call: AnyCall, conversation_id: Annotated[str | None, Query(max_length=100)] = None) -> Usage:
    """Return what was spent."""
    book, now = call.studio.spend, datetime.now().astimezone()
    of_conversation = None
    if conversation_id is not None:
        await call.studio.conversations.get(conversation_id, call.owner)
        of_conversation = _cost(await book.conversation(conversation_id, call.owner))
    return Usage(
        at=now,
        day=_cost(await book.day(call.owner, local_today())),
        month=_cost(await book.month(call.owner, local_today())),
        conversation=of_conversation,
    )


def _cost(spent: Spent) -> Cost:
    return Cost(price_usd=spent.price_usd, total_tokens=spent.total_tokens)


def _item(item: GalleryItem) -> GalleryPicture:
    picture = picture_view(item.conversation_id, item.picture)
    return GalleryPicture(**item.model_dump(include=_OF_ITEM), picture=picture, match=item.match)

"""Stored data: conversations with their pictures and files, the style library, the gallery, and spending."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Annotated, Any, Literal
from urllib.parse import quote

from fastapi import APIRouter, Header, Query, Request, Response
from pydantic import Field, StringConstraints

from agent import (
    NEW_FILE,
    Asked,
    DeletedConversation,
    FileInfo,
    GalleryFacets,
    GalleryMatch,
    GalleryQuery,
    Receipt,
    Spent,
    Style,
    StyleDraft,
    StyleMatch,
    Value,
    local_today,
)
from webui.api.calls import AnyCall
from webui.api.models import Conversations, PictureView, WholeView, find_conversations, picture_view, whole_view
from webui.api.problems import RefusalCode, Refused
from webui.http.sessions import NO_CACHE, NO_STORE

conversations = APIRouter(prefix="/api/v1", tags=["conversations"])
pictures = APIRouter(prefix="/api/v1/conversations/{conversation_id}/pictures", tags=["pictures"])
files = APIRouter(prefix="/api/v1/conversations/{conversation_id}/files", tags=["files"])
library = APIRouter(prefix="/api/v1", tags=["library"])

_PICTURE: dict[int | str, dict[str, Any]] = {
    200: {"description": "The picture.", "content": {"image/*": {"schema": {"type": "string"}}}}
}
_BYTES = {"application/octet-stream": {"schema": {"type": "string"}}}
_FILE: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "What the file holds.",
        "content": _BYTES,
        "headers": {
            "ETag": {"required": True, "schema": {"type": "string", "pattern": '^"[0-9]+"$'}},
            "Content-Disposition": {"required": True, "schema": {"type": "string", "pattern": "^attachment; "}},
        },
    }
}
_VERSION = re.compile(r'"?([0-9]{1,15})"?')

Title = Annotated[str, Field(max_length=1000)]
Limit = Annotated[int, Query(ge=1, le=200)]
Offset = Annotated[int, Query(ge=0, le=1_000_000)]
IfMatch = Annotated[str, Header(max_length=100, description="The version that is expected.")]
IfNoneMatch = Annotated[str, Header(max_length=100, description="`*`: the file must not be there yet.")]


class NewConversation(Asked):
    """A new conversation; without a title it takes the first words of its first message.

    The same `request_id` twice creates one conversation, unless that one was deleted since.
    """

    title: Title | None = None
    request_id: Annotated[str, StringConstraints(min_length=1, max_length=100)] | None = None


class ConversationChange(Asked):
    """The new values; fields that are left out stay unchanged."""

    title: Title | None = None
    is_pinned: bool | None = None


class Trash(Value):
    """Deleted conversations, the last deleted first. Each is kept at least until `kept_until`."""

    conversations: tuple[DeletedConversation, ...]


class Emptied(Value):
    """How many conversations were deleted permanently."""

    removed: int


class Pictures(Value):
    """The pictures of the current branch, the oldest first; `elsewhere` are those of other branches."""

    pictures: tuple[PictureView, ...]
    elsewhere: tuple[PictureView, ...] = ()


class Files(Value):
    """The files, by name."""

    files: tuple[FileInfo, ...]


class Styles(Value):
    """Styles: the caller's own, then the curated ones."""

    styles: tuple[Style, ...]


class StyleMatches(Value):
    """The styles that match the words, the best first."""

    matches: tuple[StyleMatch, ...]


class GalleryPicture(Value):
    """A picture of the gallery with its conversation. `match` is set after a search."""

    id: int
    conversation_id: str
    conversation_title: str
    picture: PictureView
    is_starred: bool
    is_rejected: bool
    tags: tuple[str, ...]
    match: GalleryMatch | None = None


class GalleryView(Value):
    """A page of pictures; `next` is the `after` of the following page, null on the last one."""

    items: tuple[GalleryPicture, ...]
    next: str | None
    found: int | None
    is_whole: bool


class Cost(Value):
    """An amount in US dollars, and the tokens."""

    price_usd: float
    total_tokens: int


class Usage(Value):
    """What the caller spent today and this month, by the clock of the studio's machine, and in a conversation if one
    is given."""

    at: datetime
    day: Cost
    month: Cost
    conversation: Cost | None = None


@conversations.get("/conversations")
async def list_conversations(
    call: AnyCall,
    limit: Limit = 50,
    offset: Offset = 0,
    query: Annotated[str, Query(max_length=1000, description="Words that all must stand in it.")] = "",
) -> Conversations:
    """Return the caller's conversations, without those that have neither a title nor a turn."""
    return await find_conversations(call.studio, call.owner, query, limit, offset)


@conversations.post("/conversations", status_code=201)
async def create_conversation(call: AnyCall, new: NewConversation | None = None) -> WholeView:
    """Create a conversation, or return the one that the same request created."""
    new = new or NewConversation()
    conversation = await call.studio.conversations.create(call.owner, new.request_id)
    if new.title is not None and not conversation.title:
        await call.studio.conversations.rename(conversation.id, new.title, call.owner)
    return await whole_view(call.studio, conversation.id, call.owner)


@conversations.get("/conversations/{conversation_id}")
async def read_conversation(call: AnyCall, conversation_id: str) -> WholeView:
    """Return a conversation with the turns and pictures of the current branch."""
    return await whole_view(call.studio, conversation_id, call.owner)


@conversations.patch("/conversations/{conversation_id}")
async def change_conversation(call: AnyCall, conversation_id: str, change: ConversationChange) -> WholeView:
    """Rename or pin a conversation."""
    if change.title is not None:
        await call.studio.conversations.rename(conversation_id, change.title, call.owner)
    if change.is_pinned is not None:
        await call.studio.conversations.pin(conversation_id, change.is_pinned, call.owner)
    return await whole_view(call.studio, conversation_id, call.owner)


@conversations.delete("/conversations/{conversation_id}", status_code=204)
async def delete_conversation(call: AnyCall, conversation_id: str) -> None:
    """Delete a conversation. It can be restored for 30 days."""
    await call.studio.conversations.delete(conversation_id, call.owner)


@conversations.post("/conversations/{conversation_id}/undelete")
async def undelete_conversation(call: AnyCall, conversation_id: str) -> WholeView:
    """Restore a deleted conversation."""
    await call.studio.conversations.undelete(conversation_id, call.owner)
    return await whole_view(call.studio, conversation_id, call.owner)


@conversations.get("/trash")
async def list_trash(call: AnyCall, limit: Limit = 50, offset: Offset = 0) -> Trash:
    """Return the caller's deleted conversations."""
    return Trash(conversations=tuple(await call.studio.conversations.trash(call.owner, limit, offset)))


@conversations.delete("/trash")
async def empty_trash(call: AnyCall) -> Emptied:
    """Delete all conversations in the trash permanently."""
    return Emptied(removed=await call.studio.conversations.empty_trash(call.owner))


@conversations.delete("/trash/{conversation_id}", status_code=204)
async def delete_forever(call: AnyCall, conversation_id: str) -> None:
    """Delete a conversation in the trash permanently. A conversation that is not in the trash is not found."""
    await call.studio.conversations.delete_forever(conversation_id, call.owner)


@pictures.get("")
async def list_pictures(call: AnyCall, conversation_id: str) -> Pictures:
    """Return the pictures of a conversation."""
    conversation = await call.studio.conversations.get(conversation_id, call.owner)
    return Pictures(
        pictures=tuple(picture_view(conversation.id, one) for one in conversation.pictures),
        elsewhere=tuple(picture_view(conversation.id, one) for one in conversation.elsewhere),
    )


@pictures.get("/{handle}", response_class=Response, responses=_PICTURE)
async def read_picture(
    call: AnyCall,
    conversation_id: str,
    handle: str,
    form: Annotated[
        Literal["original", "recipe", "clean"],
        Query(description="The bytes as they came, with the picture's recipe in them, or with nothing said of it."),
    ] = "original",
) -> Response:
    """Return the bytes of a picture; the pixels are the same in each form. The handle is `7b` or `%237b`."""
    if form == "original":
        stored = await call.studio.picture(conversation_id, handle, call.owner)
        return Response(stored.data, media_type=stored.mime_type, headers=NO_CACHE)
    if form == "clean":
        file = await call.studio.recipes.clean(conversation_id, handle, call.owner)
    else:
        file = await call.studio.recipes.with_recipe(conversation_id, handle, call.owner, key=call.key)
    return Response(file.data, media_type=file.picture.image.mime_type, headers=NO_CACHE)


@pictures.get("/{handle}/thumbnail", response_class=Response, responses=_PICTURE)
async def read_thumbnail(
    call: AnyCall, conversation_id: str, handle: str, edge_px: Annotated[int, Query(ge=16, le=2048)] = 512
) -> Response:
    """Return a small copy as WebP, its longer edge at most `edge_px`."""
    data, mime_type = await call.studio.thumbnail(conversation_id, handle, edge_px, call.owner)
    return Response(data, media_type=mime_type, headers=NO_CACHE)


@pictures.get("/{handle}/receipt")
async def read_receipt(call: AnyCall, conversation_id: str, handle: str) -> Receipt:
    """Return asked against got. 404 for an upload, which has no receipt."""
    picture = (await call.studio.conversations.get(conversation_id, call.owner)).picture(handle)
    if picture.receipt is None:
        raise Refused(RefusalCode.NO_RECEIPT, handle=picture.handle)
    return picture.receipt


@files.get("")
async def list_files(call: AnyCall, conversation_id: str) -> Files:
    """Return the files of a conversation."""
    return Files(files=await call.studio.files(conversation_id, call.owner).list())


@files.get("/{name:path}", response_class=Response, responses=_FILE)
async def read_file(call: AnyCall, conversation_id: str, name: str) -> Response:
    """Return the content of a file, never rendered as a page; its version is the ETag."""
    file = await call.studio.files(conversation_id, call.owner).read(name)
    last = file.name.rpartition("/")[2]
    plain = re.sub(r"[^\w. -]", "_", last, flags=re.ASCII)
    headers = {
        **NO_STORE,
        "ETag": f'"{file.version}"',
        "Content-Disposition": f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(last)}",
    }
    return Response(file.content, media_type="application/octet-stream", headers=headers)


@files.put("/{name:path}", openapi_extra={"requestBody": {"required": True, "content": _BYTES}})
async def write_file(
    call: AnyCall,
    conversation_id: str,
    name: str,
    request: Request,
    if_match: IfMatch = "",
    if_none_match: IfNoneMatch = "",
) -> FileInfo:
    """Write the body to a new or existing file. A request without a body is refused."""
    expected = NEW_FILE if if_none_match.strip() == "*" else _version(if_match)
    data = await request.body()
    if not data:
        # A forgotten body must not empty a file.
        raise Refused(RefusalCode.UNREADABLE, problem="body")
    workspace = call.studio.files(conversation_id, call.owner)
    return await workspace.write(name, data, by="person", expected_version=expected, is_untrusted=True)


@files.delete("/{name:path}", status_code=204)
async def delete_file(call: AnyCall, conversation_id: str, name: str, if_match: IfMatch = "") -> None:
    """Delete a file permanently."""
    await call.studio.files(conversation_id, call.owner).delete(name, expected_version=_version(if_match))


def _version(if_match: str) -> int | None:
    if not if_match.strip():
        return None
    match = _VERSION.fullmatch(if_match.strip())
    if match is None:
        raise Refused(RefusalCode.UNREADABLE, problem="If-Match")
    return int(match[1])


@library.get("/styles")
async def list_styles(call: AnyCall) -> Styles:
    """Return all styles that the caller can use."""
    return Styles(styles=await call.studio.styles.all(call.owner))


@library.get("/styles/search")
async def find_styles(
    call: AnyCall, words: Annotated[str, Query(max_length=4000)], limit: Annotated[int, Query(ge=1, le=50)] = 3
) -> StyleMatches:
    """Return the styles that match the words."""
    return StyleMatches(matches=tuple(await call.studio.styles.search(words, limit, owner=call.owner)))


@library.get("/styles/{style_id}")
async def read_style(call: AnyCall, style_id: str) -> Style:
    """Return a style."""
    return await call.studio.styles.get(style_id, call.owner)


@library.post("/styles", status_code=201)
async def add_style(call: AnyCall, draft: StyleDraft) -> Style:
    """Add a style of the caller's own."""
    return await call.studio.styles.add(draft, call.owner)


@library.put("/styles/{style_id}")
async def edit_style(call: AnyCall, style_id: str, draft: StyleDraft) -> Style:
    """Replace one of the caller's own styles."""
    return await call.studio.styles.edit(style_id, draft, call.owner)


@library.delete("/styles/{style_id}", status_code=204)
async def delete_style(call: AnyCall, style_id: str) -> None:
    """Delete one of the caller's own styles."""
    await call.studio.styles.delete(style_id, call.owner)


@library.get("/gallery")
async def read_gallery(call: AnyCall, query: Annotated[GalleryQuery, Query()]) -> GalleryView:
    """Return a page of the caller's pictures: the newest first, or the best matches of a search by words or
    likeness."""
    page = await call.studio.gallery.page(call.owner, query, key=call.key)
    kept = {"id", "conversation_id", "conversation_title", "is_starred", "is_rejected", "tags"}
    items = tuple(
        GalleryPicture(
            **item.model_dump(include=kept), picture=picture_view(item.conversation_id, item.picture), match=item.match
        )
        for item in page.items
    )
    return GalleryView(items=items, next=page.next, found=page.found, is_whole=page.is_whole)


@library.get("/gallery/facets")
async def read_facets(call: AnyCall) -> GalleryFacets:
    """Return how many pictures there are of each kind."""
    return await call.studio.gallery.facets(call.owner)


@library.get("/usage")
async def read_usage(call: AnyCall, conversation_id: Annotated[str | None, Query(max_length=100)] = None) -> Usage:
    """Return what was spent."""
    spend, now, of_conversation = call.studio.spend, datetime.now().astimezone(), None
    if conversation_id is not None:
        await call.studio.conversations.get(conversation_id, call.owner)
        of_conversation = _cost(await spend.conversation(conversation_id, call.owner))
    return Usage(
        at=now,
        day=_cost(await spend.day(call.owner, local_today())),
        month=_cost(await spend.month(call.owner, local_today())),
        conversation=of_conversation,
    )


def _cost(spent: Spent) -> Cost:
    return Cost(price_usd=spent.price_usd, total_tokens=spent.total_tokens)

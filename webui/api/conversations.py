"""Conversations: listed, searched, made, read, named, pinned, deleted and brought back."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import Field, StringConstraints

from agent import Asked, Value
from webui.api.door import TheCaller, TheDoor
from webui.api.views import ConversationView, WholeView, listed_view, whole_view

router = APIRouter(prefix="/api/v1/conversations", tags=["conversations"])

Title = Annotated[str, Field(max_length=1000)]


class NewConversation(Asked):
    """A conversation that begins; without a title it takes its first words for one.

    The same `request_id` twice begins one conversation, unless that was deleted since.
    """

    title: Title | None = None
    request_id: Annotated[str, StringConstraints(min_length=1, max_length=100)] | None = None


class ConversationChange(Asked):
    """What shall be otherwise; what is left out stays."""

    title: Title | None = None
    is_pinned: bool | None = None


class Conversations(Value):
    """Some conversations: the pinned first, then the newest; after a search the newest first."""

    conversations: tuple[ConversationView, ...]


@router.get("")
async def list_conversations(
    door: TheDoor,
    caller: TheCaller,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
    offset: Annotated[int, Query(ge=0, le=1_000_000)] = 0,
    query: Annotated[str, Query(max_length=1000, description="Words that all must stand in it.")] = "",
) -> Conversations:
    """Return the caller's conversations; those with neither a title nor a turn are left out."""
    if query.strip():
        found = await door.studio().conversations.search(query, caller.owner, limit)
        return Conversations(conversations=tuple(listed_view(one.info, one.excerpt) for one in found))
    listed = await door.studio().conversations.list(caller.owner, limit, offset)
    return Conversations(conversations=tuple(map(listed_view, listed)))


@router.post("", status_code=201)
async def create_conversation(door: TheDoor, caller: TheCaller, new: NewConversation | None = None) -> WholeView:
    """Begin a conversation, or return the one that the same request began."""
    new = new or NewConversation()
    conversation = await door.studio().conversations.create(caller.owner, new.request_id)
    if new.title is not None and not conversation.title:
        await door.studio().conversations.rename(conversation.id, new.title, caller.owner)
    return await _whole(door, caller, conversation.id)


@router.get("/{conversation_id}")
async def read_conversation(door: TheDoor, caller: TheCaller, conversation_id: str) -> WholeView:
    """Return a conversation with the turns and pictures of the branch that is shown."""
    return await _whole(door, caller, conversation_id)


@router.patch("/{conversation_id}")
async def change_conversation(
    door: TheDoor, caller: TheCaller, conversation_id: str, change: ConversationChange
) -> WholeView:
    """Rename or pin a conversation."""
    if change.title is not None:
        await door.studio().conversations.rename(conversation_id, change.title, caller.owner)
    if change.is_pinned is not None:
        await door.studio().conversations.pin(conversation_id, change.is_pinned, caller.owner)
    return await _whole(door, caller, conversation_id)


@router.delete("/{conversation_id}", status_code=204)
async def delete_conversation(door: TheDoor, caller: TheCaller, conversation_id: str) -> None:
    """Delete a conversation. For 30 days it can be brought back."""
    await door.studio().conversations.delete(conversation_id, caller.owner)


@router.post("/{conversation_id}/undelete")
async def undelete_conversation(door: TheDoor, caller: TheCaller, conversation_id: str) -> WholeView:
    """Bring a deleted conversation back."""
    await door.studio().conversations.undelete(conversation_id, caller.owner)
    return await _whole(door, caller, conversation_id)


async def _whole(door: TheDoor, caller: TheCaller, conversation_id: str) -> WholeView:
    conversation = await door.studio().conversations.get(conversation_id, caller.owner)
    return whole_view(conversation, is_running=door.studio().turns.is_running(conversation_id, caller.owner))

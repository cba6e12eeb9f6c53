"""The trash: deleted conversations, listed and removed for good. They are brought back at their own address."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from agent import DeletedConversation, Value
from webui.api.door import TheCaller, TheDoor

router = APIRouter(prefix="/api/v1/trash", tags=["conversations"])


class Trash(Value):
    """Deleted conversations, the one that was deleted last first. Each is kept at least until `kept_until`."""

    conversations: tuple[DeletedConversation, ...]


class Emptied(Value):
    """How many conversations are gone for good."""

    removed: int


@router.get("")
async def list_trash(
    door: TheDoor,
    caller: TheCaller,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
    offset: Annotated[int, Query(ge=0, le=1_000_000)] = 0,
) -> Trash:
    """Return the caller's deleted conversations."""
    return Trash(conversations=tuple(await door.studio().conversations.trash(caller.owner, limit, offset)))


@router.delete("")
async def empty_trash(door: TheDoor, caller: TheCaller) -> Emptied:
    """Remove all of the caller's deleted conversations for good."""
    return Emptied(removed=await door.studio().conversations.empty_trash(caller.owner))


@router.delete("/{conversation_id}", status_code=204)
async def delete_forever(door: TheDoor, caller: TheCaller, conversation_id: str) -> None:
    """Remove a deleted conversation for good. One that is not deleted is not found here."""
    await door.studio().conversations.delete_forever(conversation_id, caller.owner)

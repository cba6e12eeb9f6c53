"""What programs read, over HTTP and MCP: conversations, turns and pictures without bytes and signatures."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import Field

from agent import (
    AgentMessage,
    Component,
    EditNotice,
    Picture,
    Receipt,
    Review,
    SmartCanvas,
    Studio,
    TokenUsage,
    Turn,
    TurnSettings,
    Value,
)


class EditView(Value):
    """The result of a masked edit: of `outside` pixels outside the mask, `changed_outside` differ from before."""

    kind: str
    verdict: str
    reason: str
    changed_outside: int
    outside: int
    notices: tuple[EditNotice, ...] = ()


class DriftView(Value):
    """How much an edit without a mask changed of the picture `base`, from 0 to 1."""

    base: str
    is_comparable: bool
    changed_share: float


class PictureFacts(Value):
    """A picture: its handle, asked against got. An upload has no receipt."""

    handle: str
    width: int | None
    height: int | None
    mime_type: str
    size_bytes: int
    origin: str
    turn_id: str
    created_at: datetime
    parents: tuple[str, ...] = ()
    alt: str = ""
    receipt: Receipt | None = None
    review: Review | None = None
    edit: EditView | None = None
    drift: DriftView | None = None


class PictureView(PictureFacts):
    """A picture: its handle, its URLs, asked against got. An upload has no receipt."""

    url: str
    thumbnail_url: str


class TurnView(Value):
    """A turn: what was sent, the components of the answer, its cost in US dollars. `answer` is the agent's text."""

    id: str
    text: str
    state: str
    started_at: datetime
    settings: TurnSettings
    uploads: tuple[str, ...] = ()
    editing: str | None = None
    references: tuple[str, ...] = ()
    answer: str = ""
    pictures: tuple[str, ...] = ()
    components: tuple[Component, ...] = ()
    usage: TokenUsage
    price_usd: float
    seconds: float


class ConversationView(Value):
    """A conversation as in a list."""

    id: str
    title: str
    created_at: datetime
    updated_at: datetime
    is_pinned: bool = False
    picture_count: int = 0
    price_usd: float = 0.0
    excerpt: str = Field(default="", description="After a search: the piece in which the words stand.")


class Conversations(Value):
    """Conversations: the pinned first, then the newest; after a search the newest first."""

    conversations: tuple[ConversationView, ...]


class WholeView(ConversationView):
    """A conversation with the turns and pictures of the current branch."""

    is_running: bool
    edit_target: str | None = Field(
        default=None, description="The picture that the next words change when none is named or marked."
    )
    turns: tuple[TurnView, ...] = ()
    pictures: tuple[PictureView, ...] = ()


def picture_facts(picture: Picture) -> dict[str, Any]:
    """Return the fields of PictureFacts; a subclass adds the URLs."""
    edit = EditView.model_validate(picture.edit, from_attributes=True) if picture.edit is not None else None
    drift = DriftView.model_validate(picture.drift, from_attributes=True) if picture.drift is not None else None
    return {
        **picture.model_dump(include={"handle", "turn_id", "created_at", "parents", "alt"}),
        **picture.image.model_dump(include={"width", "height", "mime_type", "size_bytes", "origin"}),
        "receipt": picture.receipt,
        "review": picture.review,
        "edit": edit,
        "drift": drift,
    }


def picture_view(conversation_id: str, picture: Picture) -> PictureView:
    """Return a picture as the HTTP API has it."""
    path = f"/api/v1/conversations/{conversation_id}/pictures/{picture.handle.lstrip('#')}"
    return PictureView(**picture_facts(picture), url=path, thumbnail_url=f"{path}/thumbnail")


def turn_view(turn: Turn) -> TurnView:
    """Return a turn as programs read it."""
    canvases = [one for one in turn.components if isinstance(one, SmartCanvas)]
    return TurnView(
        id=turn.id,
        text=turn.text,
        state=turn.state.value,
        started_at=turn.started_at,
        settings=turn.settings,
        uploads=tuple(image.handle or "" for image in turn.uploads),
        editing=turn.asked_editing,
        references=turn.references,
        answer="\n\n".join(one.text for one in turn.components if isinstance(one, AgentMessage)),
        pictures=tuple(handle for canvas in canvases for handle in canvas.handles),
        components=turn.components,
        usage=turn.usage,
        price_usd=turn.price_usd,
        seconds=turn.seconds,
    )


async def find_conversations(studio: Studio, owner: str, query: str, limit: int, offset: int = 0) -> Conversations:
    """Return an owner's conversations, or those that contain all words of a query; a search has no offset."""
    if query.strip():
        found = [(one.info, one.excerpt) for one in await studio.conversations.search(query, owner, limit)]
    else:
        found = [(info, "") for info in await studio.conversations.list(owner, limit, offset)]
    hidden = {"thumbnail_digest"}
    listed = (ConversationView(excerpt=excerpt, **info.model_dump(exclude=hidden)) for info, excerpt in found)
    return Conversations(conversations=tuple(listed))


async def whole_view(studio: Studio, conversation_id: str, owner: str) -> WholeView:
    """Return all of a conversation. Raises RequestRefused when the owner has none of that id."""
    conversation = await studio.conversations.get(conversation_id, owner)
    return WholeView(
        **conversation.model_dump(include={"id", "title", "created_at", "updated_at", "is_pinned"}),
        picture_count=len(conversation.all_pictures),
        price_usd=conversation.price_usd,
        is_running=studio.turns.is_running(conversation_id, owner),
        edit_target=conversation.edit_target,
        turns=tuple(map(turn_view, conversation.turns)),
        pictures=tuple(picture_view(conversation.id, one) for one in conversation.pictures),
    )

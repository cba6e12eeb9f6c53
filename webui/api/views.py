"""Conversations, turns and pictures as programs read them: addresses instead of bytes, no signature."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from agent import (
    AgentMessage,
    Component,
    Conversation,
    ConversationInfo,
    DriftRecord,
    EditNotice,
    EditRecord,
    Picture,
    Receipt,
    Review,
    SmartCanvas,
    TokenUsage,
    Turn,
    TurnSettings,
    Value,
)


class EditView(Value):
    """What came of an edit of a part: of `outside` pixels beyond the mask, `changed_outside` differ from before."""

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


class PictureView(Value):
    """A picture: its handle, where its bytes are, asked against got. An upload has no receipt."""

    handle: str
    url: str
    thumbnail_url: str
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


class TurnView(Value):
    """A turn: what was sent, what is shown of the answer, what it cost in US dollars. `answer` is the agent's words."""

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
    """A conversation as its list shows it."""

    id: str
    title: str
    created_at: datetime
    updated_at: datetime
    is_pinned: bool = False
    picture_count: int = 0
    price_usd: float = 0.0
    excerpt: str = Field(default="", description="After a search: the piece in which the words stand.")


class WholeView(ConversationView):
    """A conversation with the turns and pictures of the branch that is shown."""

    is_running: bool
    edit_target: str | None = Field(
        default=None, description="The picture that the next words change when none is named or marked."
    )
    turns: tuple[TurnView, ...] = ()
    pictures: tuple[PictureView, ...] = ()


def picture_path(conversation_id: str, handle: str) -> str:
    """Return where a picture's bytes are."""
    return f"/api/v1/conversations/{conversation_id}/pictures/{handle.lstrip('#')}"


def picture_view(conversation_id: str, picture: Picture) -> PictureView:
    """Return a picture as programs read it."""
    image, path = picture.image, picture_path(conversation_id, picture.handle)
    return PictureView(
        handle=picture.handle,
        url=path,
        thumbnail_url=f"{path}/thumbnail",
        width=image.width,
        height=image.height,
        mime_type=image.mime_type,
        size_bytes=image.size_bytes,
        origin=image.origin.value,
        turn_id=picture.turn_id,
        created_at=picture.created_at,
        parents=picture.parents,
        alt=picture.alt,
        receipt=picture.receipt,
        review=picture.review,
        edit=_edit(picture.edit),
        drift=_drift(picture.drift),
    )


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


def listed_view(info: ConversationInfo, excerpt: str = "") -> ConversationView:
    """Return a conversation of a list."""
    return ConversationView(excerpt=excerpt, **info.model_dump(exclude={"thumbnail_digest"}))


def whole_view(conversation: Conversation, *, is_running: bool) -> WholeView:
    """Return all of a conversation."""
    own = conversation.model_dump(include={"id", "title", "created_at", "updated_at", "is_pinned"})
    return WholeView(
        **own,
        picture_count=len(conversation.all_pictures),
        price_usd=conversation.price_usd,
        is_running=is_running,
        edit_target=conversation.edit_target,
        turns=tuple(map(turn_view, conversation.turns)),
        pictures=tuple(picture_view(conversation.id, one) for one in conversation.pictures),
    )


def _edit(edit: EditRecord | None) -> EditView | None:
    if edit is None:
        return None
    return EditView(
        kind=edit.kind,
        verdict=edit.verdict,
        reason=edit.reason,
        changed_outside=edit.changed_outside,
        outside=edit.outside,
        notices=edit.notices,
    )


def _drift(drift: DriftRecord | None) -> DriftView | None:
    if drift is None:
        return None
    return DriftView(base=drift.base, is_comparable=drift.is_comparable, changed_share=drift.changed_share)

"""What the tools answer, as structured content."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pydantic import Field

from agent import Ask, ConversationInfo, Fact, Picture, Plan, Receipt, Source, Value
from webui.mcp_door.addresses import picture_uri, receipt_uri

TurnState = Literal["done", "needs_decision", "at_work", "stopped", "failed"]


class ReceiptFacts(Value):
    """Asked against got. The whole receipt is a resource."""

    prompt: str = Field(description="As it was sent to the image model.")
    model: str
    asked_aspect_ratio: str | None
    asked_size: str | None
    references: tuple[str, ...]
    facts: tuple[Fact, ...]
    sources: tuple[Source, ...]
    shortfalls: tuple[str, ...] = Field(description="What was delivered otherwise than asked.")
    attempts: int
    price_usd: float
    seconds: float
    is_sketch: bool


class EditFacts(Value):
    """What came of an edit of a part: of `outside` pixels beyond the mask, `changed_outside` differ from before."""

    verdict: str
    reason: str
    changed_outside: int
    outside: int
    notices: tuple[str, ...]


class ReviewedItem(Value):
    """Something the person asked for, in their words, and what is seen of it; `is_met` is null where nobody looked."""

    asked: str
    seen: str
    is_met: bool | None


class PictureFacts(Value):
    """A picture of a conversation; an upload has no receipt.

    `review` is what a model saw of what was asked for, empty for a picture that nobody looked at; `review_score` is its
    own judgement, from 0 to 1.
    """

    handle: str
    uri: str
    receipt_uri: str | None
    width: int | None
    height: int | None
    mime_type: str
    origin: str
    alt: str
    parents: tuple[str, ...]
    created_at: datetime
    review_score: float | None
    review: tuple[ReviewedItem, ...] = ()
    receipt: ReceiptFacts | None
    edit: EditFacts | None


class TurnAnswer(Value):
    """What a turn brought, or what it waits for; `next` says what to do then."""

    state: TurnState
    conversation_id: str
    turn_id: str
    text: str = Field(description="The agent's words, or the sentence of what went wrong.")
    pictures: tuple[PictureFacts, ...] = ()
    plans: tuple[Plan, ...] = ()
    asks: tuple[Ask, ...] = ()
    next: str = ""
    price_usd: float = 0.0
    seconds: float = 0.0


class PictureList(Value):
    """The newest pictures of a conversation, oldest first; `total` counts all of the branch that is shown."""

    conversation_id: str
    total: int
    pictures: tuple[PictureFacts, ...]


class OnePicture(Value):
    """A picture of a conversation."""

    conversation_id: str
    picture: PictureFacts


class ConversationFacts(Value):
    """A conversation as a list shows it; `excerpt` is where a search found its words."""

    id: str
    title: str
    created_at: datetime
    updated_at: datetime
    picture_count: int
    price_usd: float
    excerpt: str = ""


class ConversationList(Value):
    """Conversations, the pinned first, then the newest. Those without a turn are not among them."""

    conversations: tuple[ConversationFacts, ...]


class NewConversation(Value):
    """A conversation that is there now."""

    conversation_id: str


def picture_facts(conversation_id: str, picture: Picture) -> PictureFacts:
    """Return a picture as programs read it."""
    image, edit, receipt = picture.image, picture.edit, picture.receipt
    return PictureFacts(
        handle=picture.handle,
        uri=picture_uri(conversation_id, picture.handle),
        receipt_uri=receipt_uri(conversation_id, picture.handle) if receipt is not None else None,
        width=image.width,
        height=image.height,
        mime_type=image.mime_type,
        origin=image.origin.value,
        alt=picture.alt,
        parents=picture.parents,
        created_at=picture.created_at,
        review_score=picture.review.score if picture.review is not None else None,
        review=_review(picture),
        receipt=_receipt(receipt) if receipt is not None else None,
        edit=EditFacts(
            verdict=edit.verdict,
            reason=edit.reason,
            changed_outside=edit.changed_outside,
            outside=edit.outside,
            notices=tuple(notice.code for notice in edit.notices),
        )
        if edit is not None
        else None,
    )


def conversation_facts(info: ConversationInfo, excerpt: str = "") -> ConversationFacts:
    """Return a conversation as programs read it."""
    return ConversationFacts(
        id=info.id,
        title=info.title,
        created_at=info.created_at,
        updated_at=info.updated_at,
        picture_count=info.picture_count,
        price_usd=info.price_usd,
        excerpt=excerpt,
    )


def _review(picture: Picture) -> tuple[ReviewedItem, ...]:
    items = picture.review.checklist if picture.review is not None else ()
    # The first records hold checks of the studio's own, which are no review.
    return tuple(ReviewedItem(asked=one.wish, seen=one.why, is_met=one.is_met) for one in items if one.check is None)


def _receipt(receipt: Receipt) -> ReceiptFacts:
    return ReceiptFacts(
        prompt=receipt.prompt,
        model=receipt.model_label or receipt.model,
        asked_aspect_ratio=receipt.asked_aspect_ratio,
        asked_size=receipt.asked_resolution,
        references=tuple(reference.handle for reference in receipt.references),
        facts=receipt.facts,
        sources=receipt.sources,
        shortfalls=receipt.shortfalls,
        attempts=receipt.attempts,
        price_usd=receipt.price_usd,
        seconds=receipt.seconds,
        is_sketch=receipt.is_sketch,
    )

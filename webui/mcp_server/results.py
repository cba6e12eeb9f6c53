"""What the tools answer: words, previews and links for people, and the HTTP API's models with a `uri` as data."""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from typing import Annotated, Literal

from mcp_types import CallToolResult, ContentBlock, ImageContent, ResourceLink, TextContent
from pydantic import Field, PlainSerializer, WithJsonSchema

from agent import (
    AivistaError,
    Ask,
    CapPassed,
    Picture,
    Plan,
    Receipt,
    Review,
    Studio,
    TurnDone,
    TurnFailed,
    TurnPaused,
    TurnStopped,
    Value,
)
from webui.api.models import PictureFacts, picture_facts
from webui.api.outcomes import Outcome
from webui.words import load_words

PICTURE_URI = "aivista://conversations/{conversation_id}/pictures/{handle}"
RECEIPT_URI = f"{PICTURE_URI}/receipt"
URI = re.compile(r"aivista://conversations/([0-9A-Za-z_-]{1,64})/pictures/([0-9]{1,6}[a-z]{0,3})(/receipt)?")
# Models and programs read this first, and do not say their language.
WORDS = load_words("en")
_PREVIEW_PX = 768
_FEW_CENTS_USD = 0.1
_NOTHING_USD = 0.00005

TurnState = Literal["done", "needs_decision", "at_work", "stopped", "failed"]


# Models read this: no schema of all that a receipt may hold, and nothing that it does not.
_BRIEF = (
    PlainSerializer(lambda value: value.model_dump(mode="json", exclude_defaults=True)),
    WithJsonSchema({"type": "object"}),
)


class PictureResult(PictureFacts):
    """A picture of a conversation; an upload has no receipt. `uri` leads to its bytes."""

    receipt: Annotated[Receipt, *_BRIEF] | None = Field(default=None, description="Asked against got.")
    review: Annotated[Review, *_BRIEF] | None = Field(default=None, description="What was asked for, and what is seen.")
    uri: str
    receipt_uri: str | None


class TurnResult(Value):
    """What a turn brought, or what it waits for; `next` says what to do then."""

    state: TurnState
    conversation_id: str
    turn_id: str
    text: str = Field(description="The agent's words, or the sentence of what went wrong.")
    pictures: tuple[PictureResult, ...] = ()
    plans: tuple[Plan, ...] = ()
    asks: tuple[Ask, ...] = ()
    next: str = ""
    price_usd: float = 0.0
    seconds: float = 0.0


class PictureList(Value):
    """The newest pictures of a conversation, oldest first; `total` counts all of the branch that is shown."""

    conversation_id: str
    total: int
    pictures: tuple[PictureResult, ...]


class OnePicture(Value):
    """A picture of a conversation."""

    conversation_id: str
    picture: PictureResult


class NewConversation(Value):
    """A conversation that was created."""

    conversation_id: str


def picture_uri(conversation_id: str, handle: str, template: str = PICTURE_URI) -> str:
    """Return the address of a picture as a resource, or by RECEIPT_URI that of its receipt."""
    return template.format(conversation_id=conversation_id, handle=handle.lstrip("#"))


def picture_result(conversation_id: str, picture: Picture) -> PictureResult:
    """Return a picture as data."""
    receipt_uri = picture_uri(conversation_id, picture.handle, RECEIPT_URI) if picture.receipt is not None else None
    uri = picture_uri(conversation_id, picture.handle)
    return PictureResult(**picture_facts(picture), uri=uri, receipt_uri=receipt_uri)


def tool_result(
    answer: Value, text: str, blocks: Sequence[ContentBlock] = (), *, is_error: bool = False
) -> CallToolResult:
    """Return a tool's result: text and blocks to look at, and the answer as data."""
    data = answer.model_dump(mode="json")
    return CallToolResult(content=[TextContent(text=text), *blocks], structured_content=data, is_error=is_error)


def refusal(sentence: str) -> CallToolResult:
    """Return the result of a call that could not be done."""
    return CallToolResult(content=[TextContent(text=sentence)], is_error=True)


async def turn_result(studio: Studio, owner: str, outcome: Outcome) -> CallToolResult:
    """Return the result of a turn that has ended, or rests."""
    place, ending = outcome.conversation_id, outcome.ending
    state, sentence, then = _state(outcome)
    failed = [f"One picture could not be made: {WORDS.error(info)}" for info in outcome.failures]
    text = "\n\n".join(part for part in (outcome.text, sentence, *failed) if part)
    needs_decision = state == "needs_decision"
    answer = TurnResult(
        state=state,
        conversation_id=place,
        turn_id=outcome.turn_id,
        text=text,
        pictures=tuple(picture_result(place, one) for one in outcome.pictures),
        plans=outcome.plans if needs_decision else (),
        asks=outcome.asks if needs_decision else (),
        next=then,
        price_usd=ending.price_usd if isinstance(ending, TurnDone) else 0.0,
        seconds=ending.seconds if isinstance(ending, TurnDone) else 0.0,
    )
    lines = [text, *map(picture_line, outcome.pictures), then, "" if state == "failed" else f"Conversation: {place}"]
    blocks = [block for one in outcome.pictures for block in await picture_blocks(studio, owner, place, one)]
    text = "\n\n".join(line for line in lines if line)
    return tool_result(answer, text, blocks, is_error=state in ("failed", "stopped"))


async def picture_blocks(
    studio: Studio, owner: str, conversation_id: str, picture: Picture, edge_px: int = _PREVIEW_PX
) -> list[ContentBlock]:
    """Return a preview of a picture and the link to its original; the link alone when its file is gone."""
    try:
        small, mime_type = await studio.thumbnail(conversation_id, picture.handle, edge_px, owner)
    except AivistaError as error:
        return [
            TextContent(text=f"{picture.handle}: {WORDS.error(error.info)}"),
            picture_link(conversation_id, picture),
        ]
    preview = ImageContent(data=base64.b64encode(small).decode("ascii"), mime_type=mime_type)
    return [preview, picture_link(conversation_id, picture)]


def picture_link(conversation_id: str, picture: Picture) -> ResourceLink:
    """Return the link to a picture's original."""
    return ResourceLink(
        uri=picture_uri(conversation_id, picture.handle),
        name=picture.handle,
        title=f"Picture {picture.handle}, as it was made",
        description=picture.alt or None,
        mime_type=picture.image.mime_type,
        size=picture.image.size_bytes,
    )


def picture_line(picture: Picture) -> str:
    """Return a picture in one line: its handle, size, model, price, and what was delivered otherwise."""
    image, receipt, edit = picture.image, picture.receipt, picture.edit
    parts = [f"{image.width} × {image.height} px" if image.width and image.height else image.mime_type]
    if receipt is not None:
        parts += [receipt.model_label or receipt.model, _price(receipt.price_usd)]
        parts += [WORDS(f"receipt.short_{one}") for one in receipt.shortfalls]
    else:
        parts.append(image.origin.value)
    if edit is not None:
        parts += [WORDS(f"notice.{notice.code}") for notice in edit.notices]
        if edit.verdict != "good":
            parts.append(f"the edit is {edit.verdict}")
    return f"{picture.handle}: {', '.join(parts)}"


def _state(outcome: Outcome) -> tuple[TurnState, str, str]:
    """Return how far the turn came, a sentence of it, and what to do next."""
    match outcome.ending:
        case TurnPaused() if outcome.plans or outcome.asks:
            caps = dict.fromkeys(_cap(cap) for plan in outcome.plans for cap in plan.caps)
            asks = [
                f"The tool {ask.tool} {WORDS(f'consent.{ask.reason}')} Its arguments: {ask.arguments}"
                for ask in outcome.asks
            ]
            then = (
                "Ask the person, unless they have decided already. Then call decide with "
                f"conversation_id={outcome.conversation_id}, turn_id={outcome.turn_id} and run=true or run=false."
            )
            lines = ["The studio waits for a decision.", *map(_plan, outcome.plans), *caps, *asks]
            return "needs_decision", "\n".join(lines), then
        case TurnPaused():
            then = "Call again with the same request_id in a while, or with another one to begin anew."
            return "at_work", "This request is at work elsewhere, or was interrupted.", then
        case TurnStopped():
            then = "To have it done after all, call again with another request_id or none."
            return "stopped", "The turn was stopped; what was made before is kept.", then
        case TurnFailed(error=info):
            return "failed", WORDS.error(info), ""
        case _:
            return "done", "", ""


def _plan(plan: Plan) -> str:
    price = f"{'about ' if plan.price_usd > 0 else ''}{_price(plan.price_usd)}"
    model = f"{plan.number_of_images} × {plan.model_label or plan.model}"
    parts = [model, plan.aspect_ratio, plan.resolution or "", price]
    notices = [WORDS(f"notice.{code}") for code in plan.notices]
    return " ".join([f"Plan {plan.call} ({', '.join(part for part in parts if part)}): {plan.prompt}", *notices])


def _cap(cap: CapPassed) -> str:
    amounts = {"cap": cap.cap_usd, "over": cap.over_usd, "spent": cap.spent_usd, "price": cap.price_usd}
    key = "spend.passes_day" if cap.cap == "day" else "spend.passes_conversation"
    return WORDS(key, **{name: _dollars(amount) for name, amount in amounts.items()})


def _price(amount: float) -> str:
    return _dollars(amount) if amount > 0 else "free"


def _dollars(amount: float) -> str:
    is_even = abs(amount - round(amount, 2)) < _NOTHING_USD
    return f"${amount:.2f}" if is_even or amount >= _FEW_CENTS_USD else f"${amount:.4f}"

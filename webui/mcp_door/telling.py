"""What a turn brought, as a tool's result: words, previews, links to the originals, and the same as data."""

from __future__ import annotations

import base64
from collections.abc import Sequence

from mcp_types import CallToolResult, ContentBlock, ImageContent, ResourceLink, TextContent

from agent import (
    AivistaError,
    Ask,
    CapPassed,
    Picture,
    Plan,
    SmartCanvas,
    TurnDone,
    TurnFailed,
    TurnPaused,
    TurnStopped,
    Value,
)
from webui.mcp_door.addresses import picture_uri
from webui.mcp_door.answers import PictureFacts, TurnAnswer, TurnState, picture_facts
from webui.mcp_door.callers import Call
from webui.mcp_door.following import WORDS, Told

_PREVIEW_PX = 768
_FEW_CENTS_USD = 0.1
_NOTHING_USD = 0.00005


async def turn_result(call: Call, conversation_id: str, told: Told) -> CallToolResult:
    """Return the result of a turn that has ended, or rests."""
    pictures = await _shown(call, conversation_id, told)
    state, sentence, then = _state(conversation_id, told)
    failed = [f"One picture could not be made: {WORDS.error(info)}" for info in told.failures]
    text = "\n\n".join(part for part in (told.text, sentence, *failed) if part)
    facts = tuple(picture_facts(conversation_id, picture) for picture in pictures)
    done = told.ending if isinstance(told.ending, TurnDone) else None
    answer = TurnAnswer(
        state=state,
        conversation_id=conversation_id,
        turn_id=told.turn_id,
        text=text,
        pictures=facts,
        plans=told.plans if state == "needs_decision" else (),
        asks=told.asks if state == "needs_decision" else (),
        next=then,
        price_usd=done.price_usd if done else 0.0,
        seconds=done.seconds if done else 0.0,
    )
    place = "" if state == "failed" else f"Conversation: {conversation_id}"
    lines = [text, *map(picture_line, facts), then, place]
    content: list[ContentBlock] = [TextContent(text="\n\n".join(line for line in lines if line))]
    for picture in pictures:
        content += await picture_content(call, conversation_id, picture, _PREVIEW_PX)
    return as_result(content, answer, is_error=state in ("failed", "stopped"))


def as_result(content: Sequence[ContentBlock], answer: Value, *, is_error: bool = False) -> CallToolResult:
    """Return a tool's result that says the same in words and as data."""
    data = answer.model_dump(mode="json")
    return CallToolResult(content=list(content), structured_content=data, is_error=is_error)


def refusal(sentence: str) -> CallToolResult:
    """Return the result of a call that could not be done."""
    return CallToolResult(content=[TextContent(text=sentence)], is_error=True)


async def picture_content(call: Call, conversation_id: str, picture: Picture, edge_px: int) -> list[ContentBlock]:
    """Return a preview of a picture and the link to its original; the link alone when its file is gone."""
    content: list[ContentBlock] = []
    try:
        small, mime_type = await call.studio.thumbnail(conversation_id, picture.handle, edge_px, call.caller.owner)
    except AivistaError as error:
        content.append(TextContent(text=f"{picture.handle}: {WORDS.error(error.info)}"))
    else:
        content.append(ImageContent(data=base64.b64encode(small).decode("ascii"), mime_type=mime_type))
    return [*content, picture_link(conversation_id, picture)]


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


def picture_line(facts: PictureFacts) -> str:
    """Return a picture in one line: its handle, size, model, price, and what was delivered otherwise."""
    parts = [f"{facts.width} × {facts.height} px" if facts.width and facts.height else facts.mime_type]
    if facts.receipt is not None:
        free = facts.receipt.price_usd <= 0
        parts += [facts.receipt.model, "free" if free else _dollars(facts.receipt.price_usd)]
        parts += [WORDS(f"receipt.short_{one}") for one in facts.receipt.shortfalls]
    else:
        parts.append(facts.origin)
    if facts.edit is not None:
        parts += [WORDS(f"notice.{code}") for code in facts.edit.notices]
        if facts.edit.verdict != "good":
            parts.append(f"the edit is {facts.edit.verdict}")
    return f"{facts.handle}: {', '.join(parts)}"


async def _shown(call: Call, conversation_id: str, told: Told) -> list[Picture]:
    """Return the turn's pictures as they are now, without those that a review sent back for a better one."""
    if not told.pictures:
        return []
    conversation = await call.studio.conversations.get(conversation_id, call.caller.owner)
    turn = conversation.turn(told.turn_id)
    canvases = [one for one in (turn.components if turn else ()) if isinstance(one, SmartCanvas)]
    earlier = {handle for canvas in canvases for handle in canvas.earlier}
    now = {picture.handle: picture for picture in conversation.all_pictures}
    return [now[handle] for handle in told.pictures if handle in now and handle not in earlier]


def _state(conversation_id: str, told: Told) -> tuple[TurnState, str, str]:
    """Return how far the turn came, a sentence of it, and what to do next."""
    match told.ending:
        case TurnPaused() if told.plans or told.asks:
            lines = [*map(_plan, told.plans), *dict.fromkeys(_cap(cap) for plan in told.plans for cap in plan.caps)]
            sentence = "\n".join(["The studio waits for a decision.", *lines, *map(_ask, told.asks)])
            then = (
                "Ask the person, unless they have decided already. Then call decide with "
                f"conversation_id={conversation_id}, turn_id={told.ending.turn_id} and run=true or run=false."
            )
            return "needs_decision", sentence, then
        case TurnPaused():
            then = "Call again with the same request_id in a while, or with another one to begin anew."
            return "at_work", "This request is at work elsewhere, or was interrupted.", then
        case TurnStopped():
            then = "To have it done after all, call again with another request_id or none."
            return "stopped", "The turn was stopped; what was made before is kept.", then
        case TurnFailed():
            return "failed", WORDS.error(told.ending.error), ""
        case _:
            return "done", "", ""


def _plan(plan: Plan) -> str:
    parts = [f"{plan.number_of_images} × {plan.model_label or plan.model}", plan.aspect_ratio, plan.resolution or ""]
    parts.append(f"about {_dollars(plan.price_usd)}" if plan.price_usd > 0 else "free")
    notices = [WORDS(f"notice.{code}") for code in plan.notices]
    return " ".join([f"Plan {plan.call} ({', '.join(part for part in parts if part)}): {plan.prompt}", *notices])


def _ask(ask: Ask) -> str:
    return f"The tool {ask.tool} {WORDS(f'consent.{ask.reason}')} Its arguments: {ask.arguments}"


def _cap(cap: CapPassed) -> str:
    key = "spend.passes_day" if cap.cap == "day" else "spend.passes_conversation"
    amounts = {"cap": cap.cap_usd, "over": cap.over_usd, "spent": cap.spent_usd, "price": cap.price_usd}
    return WORDS(key, **{name: _dollars(amount) for name, amount in amounts.items()})


def _dollars(amount: float) -> str:
    is_even = abs(amount - round(amount, 2)) < _NOTHING_USD
    return f"${amount:.2f}" if is_even or amount >= _FEW_CENTS_USD else f"${amount:.4f}"

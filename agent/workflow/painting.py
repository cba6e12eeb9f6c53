"""One picture from asking to the record: the call, the look at what came, the handle, the receipt."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from datetime import UTC, datetime

from agent.components import SmartCanvas
from agent.errors import AivistaError, ErrorCode, ErrorInfo
from agent.imaging.blankness import blank_of
from agent.imaging.handles import allot_handle
from agent.imaging.intake import probe
from agent.imaging.provenance import has_credentials
from agent.imaging.references import without_signatures
from agent.messages import ImageOrigin, ImagePart, PromptMessage, Source
from agent.pictures import Picture, Receipt, Reference
from agent.providers.base import ImageRequest
from agent.workflow.asking import ask_picture
from agent.workflow.commissions import Commission
from agent.workflow.deps import Deps, today
from agent.workflow.hearing import Answer
from agent.workflow.lending import in_use
from agent.workflow.masked import Finished, finish_part
from agent.workflow.state import Spend

_RATIO_TOLERANCE = 0.03
_SIZE_TOLERANCE = 0.9


@dataclass(frozen=True)
class Painted:
    """What became of one picture: the picture or the reason there is none, and what the call cost either way."""

    spend: Spend
    picture: Picture | None = None
    error: ErrorInfo | None = None
    sources: tuple[Source, ...] = ()
    suggestions_html: str = ""


async def paint(deps: Deps, order: Commission, *, name: str, take: int, number: int, advice: str) -> Painted:
    """Ask for one picture, the `take`th of its commission in round `number`, and put it on record.

    `name` is the call's in the journal. A failure is returned, never raised: the other pictures go on.
    """
    started_s = time.monotonic()
    answer, spend, attempts = await _ask(deps, order, name, take, advice)
    if answer.error is not None:
        return Painted(spend=spend, error=answer.error)
    image = answer.picture
    if image is None:
        await deps.ledger.spoil(name, ErrorCode.NO_PICTURE)
        reason = answer.finish_reason or "?"
        return Painted(spend=spend, error=ErrorInfo(code=ErrorCode.NO_PICTURE, parameters={"reason": reason}))
    made = _Made(name, number, advice, answer, image, spend, attempts, time.monotonic() - started_s)
    try:
        picture = await _record(deps, order, made)
    except AivistaError as error:
        if error.code is ErrorCode.BROKEN_PICTURE:
            await deps.ledger.spoil(name, error.code)
        return Painted(spend=spend, error=error.info)
    grounding = answer.grounding
    return Painted(
        spend=spend,
        picture=picture,
        sources=grounding.sources if grounding else (),
        suggestions_html=grounding.suggestions_html if grounding else "",
    )


async def add_late(deps: Deps, painted: Painted) -> None:
    """Put a picture that came after its turn had ended into that turn: it was paid for."""
    await deps.settled.wait()
    turn = await deps.records.turn(deps.conversation.id, deps.turn.id)
    if turn is None:
        return
    shown = (SmartCanvas(handles=(painted.picture.handle,)),) if painted.picture else ()
    update = {
        "components": turn.components + shown,
        "usage": turn.usage + painted.spend.usage,
        "price_usd": turn.price_usd + painted.spend.price_usd,
    }
    await deps.records.finish_turn(deps.conversation.id, turn.model_copy(update=update))


async def _ask(deps: Deps, order: Commission, name: str, take: int, advice: str) -> tuple[Answer, Spend, int]:
    # A picture that was asked for is paid for, also when its turn was stopped meanwhile.
    with deps.pledges.asking(deps.turn.id, name, order.price_usd(today())), in_use(deps.loan):
        return await _answered(deps, order, name, take, advice)


async def _answered(deps: Deps, order: Commission, name: str, take: int, advice: str) -> tuple[Answer, Spend, int]:
    model, messages = order.request.model, order.messages(advice)
    request = ImageRequest(
        model=model,
        messages=messages,
        aspect_ratio=order.request.aspect_ratio,
        resolution=order.request.resolution,
        use_grounding=order.request.use_grounding,
        take=take,
        mask=order.part.frame_mask if order.part else None,
    )
    answer = await ask_picture(deps, name, request)
    spend = deps.spend(model, answer.usage)
    if answer.error is None or answer.error.code is not ErrorCode.SIGNATURE_REJECTED:
        return answer, spend, 1
    # Nothing was painted for a rejected request, so asking again with the pictures in a prompt cannot pay twice.
    retry = request.model_copy(update={"messages": without_signatures(messages)})
    answer = await ask_picture(deps, f"{name}.unsigned", retry)
    return answer, spend + deps.spend(model, answer.usage), 2


@dataclass(frozen=True)
class _Made:
    """A picture that came, and how."""

    name: str
    number: int
    advice: str
    answer: Answer
    image: ImagePart
    spend: Spend
    attempts: int
    seconds: float


async def _record(deps: Deps, order: Commission, made: _Made) -> Picture:
    # The turn goes on after a crash: this picture may be on record already.
    before = await _recorded(deps, made.name)
    if before is not None:
        return before
    data = await deps.images.read(made.image)
    probed = await probe(data)
    size: dict[str, str | int] = {"mime_type": probed.mime_type, "width": probed.width, "height": probed.height}
    sized = made.image.model_copy(update={**size, "thought_signature": None, "signed_by": None})
    # What the studio draws itself is never empty.
    is_ours = order.request.model.provider == "sketch"
    blank = None if is_ours else await asyncio.to_thread(blank_of, data)
    finished = await finish_part(deps, order.part, sized) if order.part else None
    base = order.references.base
    origin = ImageOrigin.EDITED if base is not None else ImageOrigin.GENERATED
    image = (finished.image if finished else sized).model_copy(update={"origin": origin})
    async with deps.allotting:
        recorded = await _recorded(deps, made.name)
        if recorded is not None:
            return recorded
        now = await deps.records.conversation_of_any_owner(deps.conversation.id)
        handle = allot_handle(now.handles, base=base.handle if base else None)
        named = image.model_copy(update={"handle": handle})
        picture = Picture(
            handle=handle,
            image=named,
            turn_id=deps.turn.id,
            created_at=datetime.now(UTC),
            parents=tuple(reference.handle for reference in order.references.pictures),
            # A part is shown to the model cut out and marked: its answer is no turn of this picture's.
            answer=None if finished else _with_handle(made.answer.message, made.image, handle, size),
            receipt=_receipt(deps, order, made, named, finished).model_copy(
                update={"has_credentials": finished is None and has_credentials(data)}
            ),
            alt=order.request.subject or order.request.prompt[:200],
            after_stop=deps.stopped.is_set(),
            round=made.number,
            call=made.name,
            edit=finished.record if finished else None,
            blank=blank,
        )
        await deps.records.add_picture(deps.conversation.id, picture)
    return picture


async def _recorded(deps: Deps, name: str) -> Picture | None:
    """Return the turn's picture that the paid call brought, if it is on record."""
    # It was paid for, so it is recorded also when the conversation is thrown away or shows another branch meanwhile.
    now = await deps.records.conversation_of_any_owner(deps.conversation.id)
    return next((one for one in now.all_pictures if one.turn_id == deps.turn.id and one.call == name), None)


def _with_handle(message: PromptMessage, image: ImagePart, handle: str, size: dict[str, str | int]) -> PromptMessage:
    named = image.model_copy(update={**size, "handle": handle})
    return message.model_copy(update={"parts": tuple(named if part is image else part for part in message.parts)})


def _receipt(deps: Deps, order: Commission, made: _Made, image: ImagePart, finished: Finished | None) -> Receipt:
    request, answer = order.request, made.answer
    grounding, shown = answer.grounding, order.references.pictures
    width, height = image.width or 0, image.height or 0
    asked = _asked(order, finished)
    return Receipt(
        prompt=order.prompt_with(made.advice),
        user_text=deps.turn.text,
        model=request.model.id,
        model_label=request.model.label,
        asked_aspect_ratio=asked.aspect_ratio,
        asked_resolution=asked.resolution,
        width=width,
        height=height,
        mime_type=image.mime_type,
        references=tuple(Reference(handle=one.handle, role=order.roles.get(one.handle, "")) for one in shown),
        left_out=order.references.left_out,
        styles=order.styles,
        facts=order.facts,
        sources=order.sources + (grounding.sources if grounding else ()),
        usage=made.spend.usage,
        price_usd=made.spend.price_usd,
        seconds=round(made.seconds, 3),
        attempts=made.attempts,
        finish_reason=answer.finish_reason,
        is_sketch=request.model.provider == "sketch",
        shortfalls=shortfalls(asked.pixels, (width, height), asked.resolution),
    )


@dataclass(frozen=True)
class _Shape:
    """What was asked for: ratio, size, and the pixels of the two."""

    aspect_ratio: str | None
    resolution: str | None
    pixels: tuple[int, int]


def _asked(order: Commission, finished: Finished | None) -> _Shape:
    """Return what the picture's shape is held against: for what was pasted that of the picture it was pasted on."""
    request, part = order.request, order.part
    if part is None or finished is None:
        return _Shape(request.aspect_ratio, request.resolution, order.expected_pixels)
    if finished.record.verdict == "refused":
        frame = part.plan.frame
        return _Shape(request.aspect_ratio, request.resolution, (frame.width_px, frame.height_px))
    width, height = part.size
    return _Shape(None, f"{width}×{height}", part.size)


def shortfalls(asked: tuple[int, int], got: tuple[int, int], resolution: str | None) -> tuple[str, ...]:
    """Return what of the asked size was not delivered: `aspect_ratio`, `resolution`, both or neither."""
    if not all(got):
        return ()
    missing = []
    if abs((got[0] / got[1]) / (asked[0] / asked[1]) - 1) > _RATIO_TOLERANCE:
        missing.append("aspect_ratio")
    if resolution and got[0] * got[1] < asked[0] * asked[1] * _SIZE_TOLERANCE:
        missing.append("resolution")
    return tuple(missing)

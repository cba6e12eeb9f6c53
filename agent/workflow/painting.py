"""One picture from asking to the record: the call, the look at what came, the handle, the receipt."""

from __future__ import annotations

import asyncio
import time
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, replace
from datetime import datetime
from math import log

from agent.conversation import Turn
from agent.errors import AivistaError, ErrorCode, ErrorInfo, StorageFailure
from agent.events import SmartCanvas
from agent.imaging import masking
from agent.imaging.blankness import blank_of, is_see_through
from agent.imaging.checks import captions_in
from agent.imaging.intake import probe_image
from agent.imaging.lettering import asked_lettering
from agent.imaging.provenance import has_credentials
from agent.imaging.references import without_signatures
from agent.messages import ImageOrigin, ImagePart, PromptMessage, Source
from agent.pictures import Caption, Picture, PixelSize, Receipt, Reduction, ReductionKind, Reference
from agent.providers.base import ImageRequest
from agent.storage.images import copy_size
from agent.workflow.asking import ask_picture
from agent.workflow.commissions import Commission, without_signatures_call
from agent.workflow.deps import Deps, today
from agent.workflow.hearing import Answer
from agent.workflow.masked import Finished, finish_part, pixel_size
from agent.workflow.sponsoring import reserved
from agent.workflow.state import Spend

_RATIO_TOLERANCE = 0.03
_SIZE_TOLERANCE = 0.9
_NO_LESS = 0.97
# In logarithms: as `_RATIO_TOLERANCE`, for its own sizes are not quite of their ratios.
_SAME_SHAPE = 0.03
_RECORDED_AGAIN_S = 5.0
# The store gives a picture its handle in the moment it is recorded.
_UNNAMED = ""


@dataclass(frozen=True)
class Painted:
    """What became of one picture: the picture or the reason there is none, and what the call cost either way."""

    spend: Spend
    picture: Picture | None = None
    more: tuple[Picture, ...] = ()
    error: ErrorInfo | None = None
    sources: tuple[Source, ...] = ()
    suggestions_html: str = ""


async def paint(
    deps: Deps, order: Commission, *, name: str, take: int, number: int, advice: str, asked_at: datetime
) -> Painted:
    """Ask for one picture, the `take`th of its commission in round `number`, and put it on record.

    `name` is the call's in the journal; `asked_at` is what it is dated by, so that pictures of one request stand in its
    order whichever comes first. A failure is returned, never raised: the other pictures go on.
    """
    try:
        async with AsyncExitStack() as room:
            return await _painted(deps, order, name, take, number, advice, asked_at, room)
    except StorageFailure as failure:
        return Painted(spend=Spend(), error=failure.info)


async def _painted(
    deps: Deps,
    order: Commission,
    name: str,
    take: int,
    number: int,
    advice: str,
    asked_at: datetime,
    room: AsyncExitStack,
) -> Painted:
    started_s = time.monotonic()
    answer, spend, attempts = await _ask(deps, order, name, take, advice, room)
    if answer.error is not None:
        return Painted(spend=spend, error=answer.error)
    image = answer.picture
    if image is None:
        await deps.ledger.spoil(name, ErrorCode.NO_PICTURE)
        reason = answer.finish_reason or "?"
        return Painted(spend=spend, error=ErrorInfo(code=ErrorCode.NO_PICTURE, parameters={"reason": reason}))
    made = _Made(name, number, advice, answer, image, spend, attempts, time.monotonic() - started_s, asked_at)
    try:
        picture = await _record(deps, order, made)
    except StorageFailure:
        # It was paid for: it is asked for no second time, and joins its turn when there is room.
        deps.images.offer(deps.conversation.id, image)
        deps.keep_alive(_record_later(deps, order, made))
        lost = ErrorInfo(code=ErrorCode.PICTURE_NOT_RECORDED, parameters={"digest": image.digest})
        return Painted(spend=spend, error=lost)
    except AivistaError as error:
        if error.code is ErrorCode.BROKEN_PICTURE:
            await deps.ledger.spoil(name, error.code)
        return Painted(spend=spend, error=error.info)
    grounding = answer.grounding
    return Painted(
        spend=spend,
        picture=picture,
        more=await _recorded_also(deps, order, made) if order.part is None else (),
        sources=grounding.sources if grounding else (),
        suggestions_html=grounding.suggestions_html if grounding else "",
    )


async def _recorded_also(deps: Deps, order: Commission, made: _Made) -> tuple[Picture, ...]:
    """Put what other pictures the answer held on record: they were paid for with the last one."""
    kept = []
    for place, image in enumerate(made.answer.pictures[:-1], 2):
        with suppress(AivistaError):
            kept.append(await _record(deps, order, replace(made, name=f"{made.name}+{place}", image=image)))
    return tuple(kept)


async def _record_later(deps: Deps, order: Commission, made: _Made) -> None:
    """Put a picture on record as soon as the disk takes it, and show it in its turn."""
    while True:
        await asyncio.sleep(_RECORDED_AGAIN_S)
        try:
            picture = await _record(deps, order, made)
            await _show_late(deps, picture)
        except StorageFailure:
            continue
        deps.images.withdraw(made.image)
        return


async def _show_late(deps: Deps, picture: Picture) -> None:
    shown = (SmartCanvas(handles=(picture.handle,)),)

    def with_it(turn: Turn) -> Turn:
        is_shown = any(picture.handle in one.handles for one in turn.components if isinstance(one, SmartCanvas))
        return turn if is_shown else turn.model_copy(update={"components": turn.components + shown})

    await deps.records.amend_turn(deps.conversation.id, deps.turn.id, with_it)


async def add_late(deps: Deps, painted: Painted) -> None:
    """Put a picture that came after its turn had ended into that turn: it was paid for."""
    await deps.settled.wait()
    shown = (SmartCanvas(handles=(painted.picture.handle,)),) if painted.picture else ()

    def with_it(turn: Turn) -> Turn:
        update = {
            "components": turn.components + shown,
            "usage": turn.usage + painted.spend.usage,
            "price_usd": turn.price_usd + painted.spend.price_usd,
        }
        return turn.model_copy(update=update)

    if painted.picture is None:
        deps.ledger.release()
    # Several may come at once.
    await deps.records.amend_turn(deps.conversation.id, deps.turn.id, with_it)


async def _ask(
    deps: Deps, order: Commission, name: str, take: int, advice: str, room: AsyncExitStack
) -> tuple[Answer, Spend, int]:
    # A picture that was asked for is paid for, also when its turn was stopped meanwhile: it counts from now on, before
    # there is room for it on the disk.
    with deps.pledges.asking(deps.turn.id, order.price_usd(today())), reserved(deps.sponsored):
        await room.enter_async_context(deps.images.reserve.hold(order.room_bytes))
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
    answer = await ask_picture(deps, without_signatures_call(name), retry)
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
    asked_at: datetime


async def _record(deps: Deps, order: Commission, made: _Made) -> Picture:
    # The turn goes on after a crash: this picture may be on record already.
    before = await _recorded(deps, made.name)
    if before is not None:
        return before
    data = await deps.images.read(made.image)
    probed = await probe_image(data)
    size: dict[str, str | int] = {"mime_type": probed.mime_type, "width": probed.width, "height": probed.height}
    size["bit_depth"] = probed.bit_depth
    sized = made.image.model_copy(update={**size, "thought_signature": None, "signed_by": None})
    # What the studio draws itself is never empty.
    blank = None if order.request.model.is_sketch else await asyncio.to_thread(blank_of, data)
    finished = await finish_part(deps, order.part, sized) if order.part else None
    captions = await _captions(deps, order, await deps.images.read(finished.image) if finished else data)
    base = order.references.base
    origin = ImageOrigin.EDITED if base is not None else ImageOrigin.GENERATED
    image = (finished.image if finished else sized).model_copy(update={"origin": origin})
    picture = Picture(
        handle=_UNNAMED,
        image=image.model_copy(update={"handle": _UNNAMED}),
        turn_id=deps.turn.id,
        created_at=made.asked_at,
        parents=tuple(reference.handle for reference in order.references.pictures),
        # A part is shown to the model cut out and marked: its answer is no turn of this picture's.
        answer=None if finished else _unnamed(made.answer.message, made.image, size),
        receipt=_receipt(deps, order, made, image, finished).model_copy(
            update={
                "has_credentials": finished is None and has_credentials(data),
                "captions": captions,
                "reductions": (*reductions(order, image, finished), *(await _lost_transparency(deps, order, data))),
            }
        ),
        alt=order.request.subject or order.request.prompt[:200],
        after_stop=deps.stopped.is_set(),
        round=made.number,
        call=made.name,
        edit=finished.record if finished else None,
        blank=blank,
    )
    return await deps.records.add_picture(deps.conversation.id, picture, base=base.handle if base else None)


async def _captions(deps: Deps, order: Commission, data: bytes) -> tuple[Caption, ...]:
    if not order.request.model.is_sketch:
        return ()
    words = asked_lettering(order.request.prompt) or asked_lettering(deps.turn.text)
    return await asyncio.to_thread(captions_in, data, words)


async def _recorded(deps: Deps, name: str) -> Picture | None:
    """Return the turn's picture that the paid call brought, if it is on record."""
    # It was paid for, so it is recorded also when the conversation is thrown away or shows another branch meanwhile.
    now = await deps.records.conversation_of_any_owner(deps.conversation.id)
    return next((one for one in now.all_pictures if one.turn_id == deps.turn.id and one.call == name), None)


def _unnamed(message: PromptMessage, image: ImagePart, size: dict[str, str | int]) -> PromptMessage:
    """Return the model's message with the picture that gets its handle when it is recorded."""
    named = image.model_copy(update={**size, "handle": _UNNAMED})
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
        asked_negative_prompt=deps.turn.settings.negative_prompt or "",
        asked_reference_mode=deps.turn.settings.reference_mode,
        asked_reference_count=deps.turn.settings.reference_count,
        width=width,
        height=height,
        mime_type=image.mime_type,
        bit_depth=image.bit_depth,
        references=tuple(Reference(handle=one.handle, role=order.roles.get(one.handle, "")) for one in shown),
        left_out=order.references.left_out,
        styles=order.styles,
        missing_style=order.missing_style,
        facts=order.facts,
        sources=order.sources + (grounding.sources if grounding else ()),
        usage=made.spend.usage,
        price_usd=made.spend.price_usd,
        seconds=round(made.seconds, 3),
        attempts=made.attempts,
        finish_reason=answer.finish_reason,
        is_sketch=request.model.is_sketch,
        asked=order.asked,
        shortfalls=tuple(
            one for one in shortfalls(asked.pixels, (width, height), asked.resolution) if one in _chosen(order)
        ),
    )


def _chosen(order: Commission) -> set[str]:
    """Return what of the shape the picture is held to: a model may keep that of the picture it changes, where
    nobody chose another."""
    settings = {"aspect_ratio", "resolution"}
    if not order.request.model.keeps_shape or order.references.base is None:
        return settings
    return {name for name in settings if order.request.filled.get(name, "default") != "default"}


def reductions(order: Commission, image: ImagePart, finished: Finished | None) -> tuple[Reduction, ...]:
    """Return where less than a picture's own size or bit depth was used to make `image`."""
    base, part = order.references.base, order.part
    is_shown = not order.request.model.works_on_originals
    found = []
    for one in order.references.pictures if is_shown else ():
        # Of a picture that is changed in a part only that part is shown.
        if not (part is not None and one == base):
            width, height = copy_size(one.image)
            found.append(
                _reduction(ReductionKind.SHOWN, one, pixel_size(one.image), PixelSize(width=width, height=height))
            )
    if base is not None and part is None and is_shown:
        full, used = pixel_size(base.image), pixel_size(image)
        # The person, or the planner for them, may have chosen another shape.
        is_kept = order.request.filled.get("aspect_ratio") == "default"
        is_reshaped = is_kept and abs(log(used.width * full.height / (used.height * full.width))) > _SAME_SHAPE
        if is_reshaped:
            found.append(Reduction(kind=ReductionKind.SHAPE, handle=base.handle, full=full, used=used))
        if not is_reshaped or used.bit_depth < full.bit_depth:
            found.append(_reduction(ReductionKind.RESULT, base, full, used))
    if base is not None and part is not None and finished is not None and finished.record.verdict != "refused":
        found.append(part_reduction(base, part.plan))
    return tuple(one for one in found if one is not None)


async def _lost_transparency(deps: Deps, order: Commission, data: bytes) -> tuple[Reduction, ...]:
    """Return that the picture is opaque where the one it was made of is not."""
    base = order.references.base
    if base is None or order.part is not None or order.request.model.works_on_originals:
        return ()
    try:
        before = await deps.images.read(base.image)
    except AivistaError:
        # The paid picture counts, also when nobody can compare it.
        return ()
    if not await asyncio.to_thread(is_see_through, before) or await asyncio.to_thread(is_see_through, data):
        return ()
    full = pixel_size(base.image)
    return (Reduction(kind=ReductionKind.TRANSPARENCY, handle=base.handle, full=full, used=full),)


def part_reduction(base: Picture, plan: masking.EditPlan) -> Reduction | None:
    """Return that what was painted for a part of the base is smaller or flatter than where it stands."""
    full = PixelSize(width=plan.box.width, height=plan.box.height, bit_depth=base.image.bit_depth)
    bits = base.image.bit_depth if plan.is_in_place else 8
    used = PixelSize(width=plan.frame.width_px, height=plan.frame.height_px, bit_depth=bits)
    return _reduction(ReductionKind.PART, base, full, used)


def _reduction(kind: ReductionKind, base: Picture, full: PixelSize, used: PixelSize) -> Reduction | None:
    # A frame of the model's may be a pixel or two off the part's own shape.
    is_smaller = used.width * used.height < _NO_LESS * full.width * full.height
    if not is_smaller and used.bit_depth >= full.bit_depth:
        return None
    return Reduction(kind=kind, handle=base.handle, full=full, used=used)


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

"""The executor: generates the pictures that the planner requests, and repaints those that a review rejects.

It handles each picture from the request to the record: the call, the checks of the result, the handle, the receipt.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack, nullcontext, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from math import log

from pydantic import JsonValue

from agent.cancellation import shielded
from agent.conversation import Turn
from agent.errors import AivistaError, ErrorCode, ErrorInfo, StorageFailure, ToolArgumentError
from agent.events import (
    Component,
    FailureNote,
    PaintingStarted,
    PictureFailed,
    PictureReady,
    SearchNote,
    SmartCanvas,
    Step,
)
from agent.imaging.checks import blank_of, captions_in, is_see_through
from agent.imaging.intake import probe_image
from agent.imaging.lettering import asked_lettering
from agent.imaging.provenance import has_credentials
from agent.imaging.references import without_signatures
from agent.messages import GroundingPart, ImageOrigin, ImagePart, PromptMessage, ToolResultPart
from agent.pictures import Caption, Picture, PixelSize, Receipt, Reduction, ReductionKind, Reference
from agent.providers.base import ImageRequest
from agent.storage.images import copy_size
from agent.tools.base import error_result
from agent.workflow.adjuster import AdjustmentRequest, adjusted, called_adjustment, shown
from agent.workflow.confirmer import caps_in_the_way, must_confirm, price_of, shown_first
from agent.workflow.critic import review_due, settle_paintings
from agent.workflow.deps import Deps, emit, say, show, today
from agent.workflow.image_requests import (
    PreparedImageRequest,
    picture_call,
    prepare_image_request,
    without_signatures_call,
)
from agent.workflow.masked import Finished, finish_part, note_drifts, pixel_size
from agent.workflow.model_answers import Answer
from agent.workflow.model_calls import ask_picture
from agent.workflow.spending_caps import beyond_sponsored_budget
from agent.workflow.state import Attempt, Next, Spend, TurnProgress, Work, serving_node, settle

_RATIO_TOLERANCE = 0.03
_SIZE_TOLERANCE = 0.9
_NO_LESS = 0.97
# As a logarithm: equals `_RATIO_TOLERANCE`, because a model's sizes do not match their ratios exactly.
_SAME_SHAPE = 0.03
_RECORDED_AGAIN_S = 5.0
# The store assigns the handle when the picture is recorded.
_UNNAMED = ""


async def executor(state: TurnProgress, deps: Deps) -> Next:
    """Generate all pictures that were requested, or rejected by a review, concurrently.

    If the user must see the plan, or it would exceed a cap, it is shown first. Pictures that cost more than a sponsor's
    budget are not made. An invalid call goes back to the planner for correction; a call that the user's own setting
    forbids ends the turn. The turn fails only when no picture at all could be made.
    """
    try:
        all_prepared, adjustments, refused = await _prepared_requests(state, deps)
    except AivistaError as error:
        return _failed(error.info)
    if not all_prepared:
        components, answers = await _adjusted(adjustments, state, deps)
        target, settled = settle(state, {**refused, **answers})
        return Next(target if refused else "presenter", {**settled, "components": components})
    is_shown = must_confirm(state, deps, all_prepared)
    # In a shown plan the user can still reduce the cost.
    too_dear = None if is_shown else beyond_sponsored_budget(state, deps, price_of(state, deps, all_prepared))
    if too_dear is not None:
        return _failed(too_dear)
    caps = await caps_in_the_way(state, deps, all_prepared, may_paint=not is_shown)
    if caps or is_shown:
        return await shown_first(state, deps, all_prepared, caps)
    components, answers = await _adjusted(adjustments, state, deps)
    works = dict(state["works"])
    for index, prepared in all_prepared.items():
        work = works.get(index) or prepared.work()
        works[index] = await _paint_round(prepared, partial(picture_call, state, index), work, deps, components)
    update: TurnProgress = {"works": works, "answers": {**state["answers"], **refused, **answers}}
    errors = [attempt.error for work in works.values() for attempt in work.attempts if attempt.error]
    if errors and not any(attempt.handle for work in works.values() for attempt in work.attempts):
        # Without the works: when the user retries, every picture is requested again.
        return _failed(errors[0])
    if any(review_due(deps, work) for work in works.values()):
        return Next("critic", {**update, "components": components})
    await note_drifts(works.values(), deps)
    settled = await settle_paintings({**state, **update}, deps)
    return Next("presenter", {**update, **settled, "components": [*components, *settled["components"]]})


async def _prepared_requests(
    state: TurnProgress, deps: Deps
) -> tuple[dict[int, PreparedImageRequest], dict[int, AdjustmentRequest], dict[int, ToolResultPart]]:
    """Return the prepared image requests, exact adjustments and results of invalid calls, by the call's position."""
    ready: dict[int, PreparedImageRequest] = {}
    adjustments: dict[int, AdjustmentRequest] = {}
    refused: dict[int, ToolResultPart] = {}
    for index, call in enumerate(state["calls"]):
        if serving_node(call) != "executor" or index in state["answers"]:
            continue
        try:
            adjustment = called_adjustment(call, deps, deps.edit_history(state).target)
            if adjustment is not None:
                adjustments[index] = adjustment
            else:
                ready[index] = await prepare_image_request(state, deps, index)
        except ToolArgumentError as error:
            refused[index] = error_result(call, error.info.message)
    return ready, adjustments, refused


async def _adjusted(
    adjustments: Mapping[int, AdjustmentRequest], state: TurnProgress, deps: Deps
) -> tuple[list[Component], dict[int, ToolResultPart]]:
    """Carry out the planner's adjustments; return the components to show, and the results of the calls."""
    components: list[Component] = []
    answers: dict[int, ToolResultPart] = {}
    for index, adjustment in adjustments.items():
        picture, total = await adjusted(adjustment, picture_call(state, index, 0, 1), deps)
        components += shown(picture, total)
        call = state["calls"][index]
        size: dict[str, JsonValue] = {"width": picture.image.width, "height": picture.image.height}
        content: dict[str, JsonValue] = {"pictures": [{"handle": picture.handle, **size}], "adjusted": adjustment.done}
        answers[index] = ToolResultPart(
            name=call.name, call_id=call.call_id, content=content, images=(picture.image,), is_error=False
        )
    return components, answers


def _failed(error: ErrorInfo) -> Next:
    return Next("failure", {"error": error, "failed_node": "executor"})


async def _paint_round(
    prepared: PreparedImageRequest,
    name_of: Callable[[int, int], str],
    work: Work,
    deps: Deps,
    components: list[Component],
) -> Work:
    """Run one round and return the work with its attempts; notes are added to the `components`."""
    number = max((attempt.round for attempt in work.attempts), default=0) + 1
    advice: Mapping[int, str] = work.advice if number > 1 else dict.fromkeys(range(prepared.picture_count), "")
    if not advice:
        return work
    width, height = prepared.expected_pixels
    label = " + ".join(one.request.model.label for one in prepared.each)
    name = ", ".join(part for part in (label, prepared.request.resolution) if part)
    say(deps, Step.PAINTING, count=len(advice), model=name)
    emit(deps, PaintingStarted(count=len(advice), width=width, height=height, model_label=label))
    names = [name_of(slot, number) for slot in advice]
    painted = await _side_by_side(prepared, names, number, advice, deps)
    made = sum(one.picture is not None for one in painted)
    if made:
        say(deps, Step.PAINTED, count=made)
    for one in painted:
        if one.picture is not None and deps.services.images.is_unsaved(one.picture.image.digest):
            in_memory = ErrorInfo(code=ErrorCode.PICTURE_NOT_SAVED, parameters={"handle": one.picture.handle})
            components.append(FailureNote(error=in_memory, node="executor"))
        if one.more:
            components.append(SmartCanvas(handles=tuple(picture.handle for picture in one.more)))
        found = one.grounding
        if found.suggestions_html or found.sources:
            note = SearchNote(sources=found.sources, suggestions_html=found.suggestions_html)
            components.append(show(deps, note))
    attempts = tuple(
        Attempt(slot=slot, round=number, handle=one.picture.handle if one.picture else None, error=one.error)
        for slot, one in zip(advice, painted, strict=True)
    )
    return work.model_copy(update={"attempts": work.attempts + attempts, "advice": {}})


async def _side_by_side(
    prepared: PreparedImageRequest, names: Sequence[str], number: int, advice: Mapping[int, str], deps: Deps
) -> list[Painted]:
    is_left, asked_at = asyncio.Event(), datetime.now(UTC)
    if len(names) > 1:
        base = prepared.references.base
        models = [prepared.of_slot(slot)[0].request.model for slot in advice]
        await deps.ledger.reserve(names, models, base.handle if base is not None else None)

    async def paint_one(place: int, slot: int) -> Painted:
        own, take = prepared.of_slot(slot)
        painted = await _paint(
            deps,
            own,
            name=names[place],
            take=take,
            number=number,
            advice=advice[slot],
            asked_at=asked_at + timedelta(microseconds=place),
        )
        if is_left.is_set():
            await _add_late(deps, painted)
            return painted
        if painted.picture is not None:
            emit(deps, PictureReady(index=place, picture=painted.picture.model_copy(update={"answer": None})))
        elif painted.error is not None:
            emit(deps, PictureFailed(index=place, error=painted.error))
        return painted

    # A requested picture is paid for, so its task survives a cancelled turn and stores the picture when it arrives.
    tasks = [deps.services.keep_alive(paint_one(place, slot)) for place, slot in enumerate(advice)]
    try:
        return await shielded(asyncio.gather(*tasks))
    finally:
        # Also after an internal error: the other pictures are still being generated.
        is_left.set()


@dataclass(frozen=True)
class Painted:
    """The result for one picture: the picture, or the error."""

    picture: Picture | None = None
    more: tuple[Picture, ...] = ()
    error: ErrorInfo | None = None
    grounding: GroundingPart = field(default_factory=GroundingPart)


async def _paint(
    deps: Deps, prepared: PreparedImageRequest, *, name: str, take: int, number: int, advice: str, asked_at: datetime
) -> Painted:
    """Request one picture, number `take` of its request in round `number`, and record it.

    `name` is the name of the call in the journal. `asked_at` becomes the picture's time, so that the pictures of one
    request stay in order whichever arrives first. A storage failure is returned, not raised: the other pictures
    continue.
    """
    try:
        async with AsyncExitStack() as room:
            started_s = time.monotonic()
            answer, spend, attempts = await _ask(deps, prepared, name, take, advice, room)
            if answer.error is not None:
                return Painted(error=answer.error)
            image = answer.picture
            if image is None:
                deps.ledger.discard_answer(name, ErrorCode.NO_PICTURE)
                reason = answer.finish_reason or "?"
                return Painted(error=ErrorInfo(code=ErrorCode.NO_PICTURE, parameters={"reason": reason}))
            seconds = time.monotonic() - started_s
            made = _Made(name, number, advice, answer, image, spend, attempts, seconds, asked_at)
            return await _recorded_or_later(deps, prepared, made)
    except StorageFailure as failure:
        return Painted(error=failure.info)


async def _recorded_or_later(deps: Deps, prepared: PreparedImageRequest, made: _Made) -> Painted:
    """Record a picture and the others of its answer; without disk space, as soon as there is some."""
    image = made.image
    try:
        picture = await _record(deps, prepared, made)
    except StorageFailure:
        # The picture is paid for: it is not requested again, and joins its turn when the disk has space.
        deps.services.images.offer(deps.conversation.id, image)
        deps.services.keep_alive(_record_later(deps, prepared, made))
        return Painted(error=ErrorInfo(code=ErrorCode.PICTURE_NOT_RECORDED, parameters={"digest": image.digest}))
    except AivistaError as error:
        if error.code is ErrorCode.BROKEN_PICTURE:
            deps.ledger.discard_answer(made.name, error.code)
        return Painted(error=error.info)
    more = await _recorded_also(deps, prepared, made)
    return Painted(picture=picture, more=more, grounding=made.answer.grounding)


async def _recorded_also(deps: Deps, prepared: PreparedImageRequest, made: _Made) -> tuple[Picture, ...]:
    """Record the other pictures of the answer, which were paid for together with the last one."""
    kept = []
    # Of a masked edit, the last picture alone is pasted.
    others = made.answer.pictures[:-1] if prepared.part is None else []
    for place, image in enumerate(others, 2):
        with suppress(AivistaError):
            kept.append(await _record(deps, prepared, replace(made, name=f"{made.name}+{place}", image=image)))
    return tuple(kept)


async def _record_later(deps: Deps, prepared: PreparedImageRequest, made: _Made) -> None:
    """Record a picture and the others of its answer as soon as the disk has space, and show them in their turn."""
    while True:
        await asyncio.sleep(_RECORDED_AGAIN_S)
        try:
            picture = await _record(deps, prepared, made)
            await _show_late(deps, (picture, *await _recorded_also(deps, prepared, made)))
        except StorageFailure:
            continue
        deps.services.images.withdraw(made.image)
        return


async def _show_late(deps: Deps, pictures: Sequence[Picture]) -> None:
    def with_it(turn: Turn) -> Turn:
        shown = {handle for one in turn.components if isinstance(one, SmartCanvas) for handle in one.handles}
        handles = tuple(one.handle for one in pictures if one.handle not in shown)
        if not handles:
            return turn
        return turn.model_copy(update={"components": (*turn.components, SmartCanvas(handles=handles))})

    await deps.services.records.turns.amend(deps.conversation.id, deps.turn.id, with_it)


async def _add_late(deps: Deps, painted: Painted) -> None:
    """Add an answer that arrived after the end of its turn to that turn, because it was paid for."""
    await deps.settled.wait()
    spend = deps.record.taken()
    came = (painted.picture, *painted.more) if painted.picture else ()
    shown = (SmartCanvas(handles=tuple(one.handle for one in came)),) if came else ()

    def with_it(turn: Turn) -> Turn:
        update = {
            "components": turn.components + shown,
            "usage": turn.usage + spend.usage,
            "price_usd": turn.price_usd + spend.price_usd,
        }
        return turn.model_copy(update=update)

    if painted.picture is None:
        deps.ledger.release()
    # Amended, not overwritten: several pictures may arrive at once.
    await deps.services.records.turns.amend(deps.conversation.id, deps.turn.id, with_it)


async def _ask(
    deps: Deps, prepared: PreparedImageRequest, name: str, take: int, advice: str, room: AsyncExitStack
) -> tuple[Answer, Spend, int]:
    # A requested picture is paid for, even if its turn is cancelled meanwhile: it counts from now on, before disk space
    # is reserved for it.
    with deps.sponsored.reserved() if deps.sponsored is not None else nullcontext():
        await room.enter_async_context(deps.services.images.reserve.hold(prepared.room_bytes))
        model, messages = prepared.request.model, prepared.messages(advice)
        request = ImageRequest(
            model=model,
            messages=messages,
            aspect_ratio=prepared.request.aspect_ratio,
            resolution=prepared.request.resolution,
            use_grounding=prepared.request.use_grounding,
            take=take,
            mask=prepared.part.mask if prepared.part and model.takes_masks else None,
        )
        about_usd = prepared.price_usd(today())
        answer = await ask_picture(deps, name, request, about_usd)
        spend = deps.spend(model, answer.usage)
        if answer.error is None or answer.error.code is not ErrorCode.SIGNATURE_REJECTED:
            return answer, spend, 1
        # A rejected request generated nothing, so a retry with the pictures in a prompt cannot pay twice.
        retry = request.model_copy(update={"messages": without_signatures(messages)})
        answer = await ask_picture(deps, without_signatures_call(name), retry, about_usd)
        return answer, spend + deps.spend(model, answer.usage), 2


@dataclass(frozen=True)
class _Made:
    """A generated picture, and how it was made."""

    name: str
    number: int
    advice: str
    answer: Answer
    image: ImagePart
    spend: Spend
    attempts: int
    seconds: float
    asked_at: datetime


async def _record(deps: Deps, prepared: PreparedImageRequest, made: _Made) -> Picture:
    # If the turn resumed after a crash, this picture may already be recorded. It was paid for, so it is recorded even
    # if the conversation was deleted or shows another branch meanwhile.
    now = await deps.services.records.conversations.of_any_owner(deps.conversation.id)
    before = next((one for one in now.all_pictures if one.turn_id == deps.turn.id and one.call == made.name), None)
    if before is not None:
        return before
    data = await deps.services.images.read(made.image)
    probed = await probe_image(data)
    size: dict[str, str | int] = {
        "mime_type": probed.mime_type,
        "width": probed.width,
        "height": probed.height,
        "bit_depth": probed.bit_depth,
    }
    sized = made.image.unsigned().model_copy(update=size)
    # A sketch, which the studio draws itself, is never empty.
    blank = None if prepared.request.model.is_sketch else await asyncio.to_thread(blank_of, data)
    finished = await finish_part(deps, prepared.part, sized) if prepared.part else None
    base = prepared.references.base
    origin = ImageOrigin.EDITED if base is not None else ImageOrigin.GENERATED
    image = (finished.image if finished else sized).model_copy(update={"origin": origin})
    picture = Picture(
        handle=_UNNAMED,
        image=image.model_copy(update={"handle": _UNNAMED}),
        turn_id=deps.turn.id,
        created_at=made.asked_at,
        parents=tuple(reference.handle for reference in prepared.references.pictures),
        # A masked edit sends only a crop and its marked copy, so its answer cannot be replayed for this picture.
        answer=None if finished else _unnamed(made.answer.message, made.image, size),
        receipt=await _receipt(deps, prepared, made, image, finished, data),
        # The sketch model changes only pixels: the picture still shows the same subject.
        alt=base.alt
        if base and prepared.request.model.is_sketch
        else prepared.request.subject or prepared.request.prompt[:200],
        after_stop=deps.stopped.is_set(),
        round=made.number,
        call=made.name,
        edit=finished.record if finished else None,
        blank=blank,
    )
    return await deps.services.records.conversations.add_picture(
        deps.conversation.id, picture, base=base.handle if base else None
    )


async def _captions(
    deps: Deps, prepared: PreparedImageRequest, finished: Finished | None, data: bytes
) -> tuple[Caption, ...]:
    if not prepared.request.model.is_sketch:
        return ()
    words = asked_lettering(prepared.request.prompt) or asked_lettering(deps.turn.text)
    shown = await deps.services.images.read(finished.image) if finished else data
    return await asyncio.to_thread(captions_in, shown, words)


def _unnamed(message: PromptMessage, image: ImagePart, size: dict[str, str | int]) -> PromptMessage:
    """Return the model's message with its picture's handle left empty until the picture is recorded."""
    named = image.model_copy(update={**size, "handle": _UNNAMED})
    return message.model_copy(update={"parts": tuple(named if part is image else part for part in message.parts)})


async def _receipt(
    deps: Deps, prepared: PreparedImageRequest, made: _Made, image: ImagePart, finished: Finished | None, data: bytes
) -> Receipt:
    """Return the receipt of `image`; `data` is the file that the model answered."""
    request, answer = prepared.request, made.answer
    width, height = image.width or 0, image.height or 0
    aspect_ratio, resolution, pixels = _asked(prepared, finished)
    return Receipt(
        prompt=prepared.prompt_with(made.advice),
        user_text=deps.turn.text,
        model=request.model.id,
        model_label=request.model.label,
        asked_aspect_ratio=aspect_ratio,
        asked_resolution=resolution,
        asked_negative_prompt=deps.turn.settings.negative_prompt or "",
        asked_reference_mode=deps.turn.settings.reference_mode,
        asked_reference_count=deps.turn.settings.reference_count,
        width=width,
        height=height,
        mime_type=image.mime_type,
        bit_depth=image.bit_depth,
        references=tuple(
            Reference(handle=one.handle, role=prepared.roles.get(one.handle, ""))
            for one in prepared.references.pictures
        ),
        left_out=prepared.references.left_out,
        styles=prepared.styles,
        missing_style=prepared.missing_style,
        facts=prepared.facts,
        sources=prepared.sources + answer.grounding.sources,
        usage=made.spend.usage,
        # Of a masked edit, one picture of the answer is kept.
        price_usd=made.spend.price_usd / (len(answer.pictures) if prepared.part is None else 1),
        seconds=round(made.seconds, 3),
        attempts=made.attempts,
        finish_reason=answer.finish_reason,
        is_sketch=request.model.is_sketch,
        asked=prepared.asked,
        shortfalls=tuple(one for one in _shortfalls(pixels, (width, height), resolution) if one in _chosen(prepared)),
        has_credentials=finished is None and has_credentials(data),
        captions=await _captions(deps, prepared, finished, data),
        reductions=(*_reductions(prepared, image, finished), *await _lost_transparency(deps, prepared, data)),
    )


def _chosen(prepared: PreparedImageRequest) -> set[str]:
    """Return which of `aspect_ratio` and `resolution` the picture must satisfy.

    A model that keeps the base picture's shape needs to satisfy only those that someone chose."""
    settings = {"aspect_ratio", "resolution"}
    if not prepared.request.model.keeps_shape or prepared.references.base is None:
        return settings
    return {name for name in settings if prepared.request.filled.get(name, "default") != "default"}


def _reductions(prepared: PreparedImageRequest, image: ImagePart, finished: Finished | None) -> tuple[Reduction, ...]:
    """Return the losses of size or bit depth in the making of `image`."""
    base, part = prepared.references.base, prepared.part
    is_shown = not prepared.request.model.works_on_originals
    found = []
    # Of the base of a masked edit, only the part is sent: its loss follows below.
    shown = prepared.references.pictures if part is None else prepared.others
    for one in shown if is_shown else ():
        width, height = copy_size(one.image)
        found.append(_reduction(ReductionKind.SHOWN, one, pixel_size(one.image), PixelSize(width=width, height=height)))
    if base is not None and part is None and is_shown:
        full, used = pixel_size(base.image), pixel_size(image)
        # Only without a chosen shape: the user, or the planner for them, may have requested another one.
        is_kept = prepared.request.filled.get("aspect_ratio") == "default"
        is_reshaped = is_kept and abs(log(used.width * full.height / (used.height * full.width))) > _SAME_SHAPE
        if is_reshaped:
            found.append(Reduction(kind=ReductionKind.SHAPE, handle=base.handle, full=full, used=used))
        if not is_reshaped or used.bit_depth < full.bit_depth:
            found.append(_reduction(ReductionKind.RESULT, base, full, used))
    is_pasted = finished is not None and finished.record.verdict != "refused"
    if base is not None and part is not None and is_pasted and not part.plan.is_in_place:
        box, frame = part.plan.box, part.plan.frame
        full = PixelSize(width=box.width, height=box.height, bit_depth=base.image.bit_depth)
        used = PixelSize(width=frame.width_px, height=frame.height_px)
        found.append(_reduction(ReductionKind.PART, base, full, used))
    return tuple(one for one in found if one is not None)


async def _lost_transparency(deps: Deps, prepared: PreparedImageRequest, data: bytes) -> tuple[Reduction, ...]:
    """Return the loss of transparency if the picture is opaque and its base is not."""
    base = prepared.references.base
    if base is None or prepared.part is not None or prepared.request.model.works_on_originals:
        return ()
    try:
        before = await deps.services.images.read(base.image)
    except AivistaError:
        # The paid picture is kept even if it cannot be compared.
        return ()
    if not await asyncio.to_thread(is_see_through, before) or await asyncio.to_thread(is_see_through, data):
        return ()
    full = pixel_size(base.image)
    return (Reduction(kind=ReductionKind.TRANSPARENCY, handle=base.handle, full=full, used=full),)


def _reduction(kind: ReductionKind, base: Picture, full: PixelSize, used: PixelSize) -> Reduction | None:
    # The model's frame may differ from the part's shape by a pixel or two.
    is_smaller = used.width * used.height < _NO_LESS * full.width * full.height
    if not is_smaller and used.bit_depth >= full.bit_depth:
        return None
    return Reduction(kind=kind, handle=base.handle, full=full, used=used)


def _asked(prepared: PreparedImageRequest, finished: Finished | None) -> tuple[str | None, str | None, tuple[int, int]]:
    """Return the requested aspect ratio, resolution and size in pixels; after a paste, those of the whole picture."""
    request, part = prepared.request, prepared.part
    if part is None or finished is None:
        return request.aspect_ratio, request.resolution, prepared.expected_pixels
    if finished.record.verdict == "refused":
        frame = part.plan.frame
        return request.aspect_ratio, request.resolution, (frame.width_px, frame.height_px)
    width, height = part.size
    return None, f"{width}×{height}", part.size


def _shortfalls(asked: tuple[int, int], got: tuple[int, int], resolution: str | None) -> tuple[str, ...]:
    """Return which part of the requested shape was missed: `aspect_ratio`, `resolution`, both or neither."""
    if not all(got):
        return ()
    missing = []
    if abs((got[0] / got[1]) / (asked[0] / asked[1]) - 1) > _RATIO_TOLERANCE:
        missing.append("aspect_ratio")
    if resolution and got[0] * got[1] < asked[0] * asked[1] * _SIZE_TOLERANCE:
        missing.append("resolution")
    return tuple(missing)

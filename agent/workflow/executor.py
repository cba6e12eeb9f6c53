"""The executor: paints what the planner asked for, and paints again what a review sent back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial

from langgraph.types import Command
from pydantic import JsonValue

from agent.errors import AivistaError, ErrorCode, ErrorInfo, ToolArgumentError
from agent.events import FailureNote, PaintingStarted, PictureFailed, PictureReady, SearchNote, SmartCanvas, Step
from agent.messages import ToolResultPart
from agent.tools.base import error_result
from agent.workflow.adjuster import AdjustmentWish, adjusted, called_adjustment, shown
from agent.workflow.capping import beyond_sponsored_budget
from agent.workflow.commissions import Commission, commission, picture_call
from agent.workflow.confirmer import caps_in_the_way, must_confirm, price_of, shown_first
from agent.workflow.critic import review_due
from agent.workflow.deps import TurnRuntime, emit, say, show
from agent.workflow.drifting import note_drifts
from agent.workflow.painting import Painted, add_late, paint
from agent.workflow.results import settle_paintings
from agent.workflow.routing import Target, serving_node, settle
from agent.workflow.state import Attempt, Spend, TurnProgress, Work
from agent.workflow.undo import edit_history


async def executor(state: TurnProgress, runtime: TurnRuntime) -> Command[Target]:
    """Paint every picture asked for, or sent back by a review, side by side.

    Nothing is painted before the person has seen the plan, where they are to see it or it would pass a cap, and nothing
    at somebody else's expense that costs more than is lent. A call that does not fit goes back to the planner to mend;
    one the person's own setting forbids ends the turn. The turn fails only when nothing at all could be painted.
    """
    deps = runtime.context
    try:
        commissions, wishes, refused = await _commissions(state, runtime)
    except AivistaError as error:
        return _failed(error.info, {})
    if not commissions:
        made, answers = await _adjusted(wishes, state, runtime)
        target, settled = settle(state, {**refused, **answers})
        settled["components"] = [*settled.get("components", []), *made.get("components", [])]
        return Command(goto=target if refused else "presenter", update={**made, **settled})
    is_shown = must_confirm(state, deps, commissions)
    # A plan may still be made smaller.
    too_dear = None if is_shown else beyond_sponsored_budget(state, deps, price_of(state, deps, commissions))
    if too_dear is not None:
        return _failed(too_dear, {})
    caps = await caps_in_the_way(state, deps, commissions, may_paint=not is_shown)
    if caps or is_shown:
        return await shown_first(state, runtime, commissions, caps)
    update, answers = await _adjusted(wishes, state, runtime)
    update["spend"] = Spend()
    works = dict(state["works"])
    for index, order in commissions.items():
        work = works.get(index) or order.work()
        works[index] = await _paint_round(order, partial(picture_call, state, index), work, runtime, update)
    update["works"], update["answers"] = works, {**state["answers"], **refused, **answers}
    errors = [attempt.error for work in works.values() for attempt in work.attempts if attempt.error]
    if errors and not any(attempt.handle for work in works.values() for attempt in work.attempts):
        # Without the works: when the person tries again, every picture is asked for again.
        return _failed(errors[0], {"steps": update["steps"], "spend": update["spend"]})
    if any(review_due(deps, work) for work in works.values()):
        return Command(goto="critic", update=update)
    deps.pledges.let_go(deps.turn.id)
    await note_drifts(works.values(), deps)
    target, settled = await settle_paintings({**state, "works": works, "answers": update["answers"]}, deps)
    settled["components"] = [*update["components"], *settled.get("components", [])]
    return Command(goto=target, update={**update, **settled})


async def _commissions(
    state: TurnProgress, runtime: TurnRuntime
) -> tuple[dict[int, Commission], dict[int, AdjustmentWish], dict[int, ToolResultPart]]:
    """Return what can be painted, by the call's position, what is adjusted exactly, and the answers to the calls that
    can be neither."""
    ready: dict[int, Commission] = {}
    wishes: dict[int, AdjustmentWish] = {}
    refused: dict[int, ToolResultPart] = {}
    for index, call in enumerate(state["calls"]):
        if serving_node(call) != "executor" or index in state["answers"]:
            continue
        try:
            wish = called_adjustment(call, runtime.context, edit_history(state, runtime.context).target)
            if wish is not None:
                wishes[index] = wish
            else:
                ready[index] = await commission(state, runtime.context, index)
        except ToolArgumentError as error:
            refused[index] = error_result(call, error.info.message)
    return ready, wishes, refused


async def _adjusted(
    wishes: Mapping[int, AdjustmentWish], state: TurnProgress, runtime: TurnRuntime
) -> tuple[TurnProgress, dict[int, ToolResultPart]]:
    """Adjust what the planner called to be adjusted; return the update, and the answers to its calls."""
    update: TurnProgress = {"steps": [], "components": []}
    answers: dict[int, ToolResultPart] = {}
    for index, wish in wishes.items():
        picture, steps, total = await adjusted(wish, picture_call(state, index, 0, 1), runtime)
        update["steps"] += steps
        update["components"] += shown(picture, total)
        call = state["calls"][index]
        size: dict[str, JsonValue] = {"width": picture.image.width, "height": picture.image.height}
        content: dict[str, JsonValue] = {"pictures": [{"handle": picture.handle, **size}], "adjusted": wish.done}
        answers[index] = ToolResultPart(
            name=call.name, call_id=call.call_id, content=content, images=(picture.image,), is_error=False
        )
    return update, answers


def _failed(error: ErrorInfo, update: TurnProgress) -> Command[Target]:
    return Command(goto="failure", update={**update, "error": error, "failed_node": "executor"})


async def _paint_round(
    order: Commission, name_of: Callable[[int, int], str], work: Work, runtime: TurnRuntime, update: TurnProgress
) -> Work:
    """Return the work with this round's attempts; the steps, notes and spend go into `update`."""
    number = max((attempt.round for attempt in work.attempts), default=0) + 1
    advice: Mapping[int, str] = work.advice if number > 1 else dict.fromkeys(range(order.picture_count), "")
    if not advice:
        return work
    width, height = order.expected_pixels
    label = " + ".join(one.request.model.label for one in order.each)
    name = ", ".join(part for part in (label, order.request.resolution) if part)
    update["steps"].append(say(runtime, Step.PAINTING, count=len(advice), model=name))
    emit(runtime, PaintingStarted(count=len(advice), width=width, height=height, model_label=label))
    names = [name_of(slot, number) for slot in advice]
    painted = await _side_by_side(order, names, number, advice, runtime)
    made = [one for one in painted if one.picture is not None]
    if made:
        update["steps"].append(say(runtime, Step.PAINTED, count=len(made)))
    for one in painted:
        update["spend"] = update["spend"] + one.spend
        if one.picture is not None and runtime.context.images.is_unsaved(one.picture.image.digest):
            in_memory = ErrorInfo(code=ErrorCode.PICTURE_NOT_SAVED, parameters={"handle": one.picture.handle})
            update["components"].append(FailureNote(error=in_memory, node="executor"))
        if one.more:
            update["components"].append(SmartCanvas(handles=tuple(picture.handle for picture in one.more)))
        if one.suggestions_html or one.sources:
            note = SearchNote(sources=one.sources, suggestions_html=one.suggestions_html)
            update["components"].append(show(runtime, note))
    attempts = tuple(
        Attempt(slot=slot, round=number, handle=one.picture.handle if one.picture else None, error=one.error)
        for slot, one in zip(advice, painted, strict=True)
    )
    return work.model_copy(update={"attempts": work.attempts + attempts, "advice": {}})


async def _side_by_side(
    order: Commission, names: Sequence[str], number: int, advice: Mapping[int, str], runtime: TurnRuntime
) -> list[Painted]:
    deps = runtime.context
    is_left, asked_at = asyncio.Event(), datetime.now(UTC)
    if len(names) > 1:
        base = order.references.base
        models = [order.of_slot(slot)[0].request.model for slot in advice]
        await deps.ledger.reserve(names, models, base.handle if base is not None else None)

    async def paint_one(place: int, slot: int) -> Painted:
        own, take = order.of_slot(slot)
        painted = await paint(
            deps,
            own,
            name=names[place],
            take=take,
            number=number,
            advice=advice[slot],
            asked_at=asked_at + timedelta(microseconds=place),
        )
        if is_left.is_set():
            await add_late(deps, painted)
        elif painted.picture is not None:
            emit(runtime, PictureReady(index=place, picture=painted.picture.model_copy(update={"answer": None})))
        elif painted.error is not None:
            emit(runtime, PictureFailed(index=place, error=painted.error))
        return painted

    # A picture that was asked for is paid for: it outlives a Stop and is stored whenever it comes.
    tasks = [deps.keep_alive(paint_one(place, slot)) for place, slot in enumerate(advice)]
    together = asyncio.gather(*tasks)
    try:
        return await asyncio.shield(together)
    finally:
        # Also after an error of ours: the others are under way.
        is_left.set()
        # When the studio ends under them as well, nobody is left to hear it.
        together.add_done_callback(lambda ended: ended.cancelled() or ended.exception())

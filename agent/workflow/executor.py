"""The executor: what the planner asked for, held against the locks and the pictures there are, then painted."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from langgraph.types import Command
from pydantic import JsonValue

from agent.components import Component, FailureNote, SearchNote, SmartCanvas
from agent.errors import AivistaError, ErrorInfo, ToolArgumentError
from agent.events import PaintingStarted, PictureFailed, PictureReady, SearchFound, Step
from agent.imaging.contract import (
    GenerateImageArgs,
    final_prompt,
    normalize,
    parse_arguments,
    requested_search_in_words,
)
from agent.imaging.references import ResolvedReferences, build_image_messages, resolve_references
from agent.messages import ToolCallPart, ToolResultPart
from agent.pictures import Picture, StyleUse
from agent.providers.catalogue import ModelEntry, ModelRole
from agent.storage.style_values import StyleMatch
from agent.tools.base import error_result
from agent.workflow.deps import Deps, TurnRuntime, emit, say
from agent.workflow.painting import Commission, Painted, paint
from agent.workflow.retriever import with_styles
from agent.workflow.routing import Target, serving_node, settle
from agent.workflow.state import Spend, TurnProgress


async def executor(state: TurnProgress, runtime: TurnRuntime) -> Command[Target]:
    """Paint every picture asked for, side by side.

    A call that does not fit goes back to the planner to mend; one the person's own setting forbids ends the turn.
    The turn fails only when nothing at all could be painted.
    """
    calls = {i: call for i, call in enumerate(state["calls"]) if serving_node(call) == "executor"}
    commissions: dict[int, Commission] = {}
    answers: dict[int, ToolResultPart] = {}
    try:
        for index, call in calls.items():
            try:
                commissions[index] = await commission(state, runtime.context, call, state["styles"].get(index, []))
            except ToolArgumentError as error:
                answers[index] = error_result(call, error.info.message)
    except AivistaError as error:
        return Command(goto="failure", update={"error": error.info, "failed_node": "executor"})
    update: TurnProgress = {"steps": [], "components": [], "spend": Spend()}
    failures: list[ErrorInfo] = []
    for index, order in commissions.items():
        painted = await _paint_all(order, runtime, update)
        answers[index] = _result(calls[index], painted)
        failures += [one.error for one in painted if one.error is not None]
    target, settled = settle(state, answers)
    update |= settled
    if not commissions:
        return Command(goto=target, update=update)
    made = any(isinstance(component, SmartCanvas) for component in update["components"])
    if not made and failures:
        return Command(goto="failure", update={**update, "error": failures[0], "failed_node": "executor"})
    update["components"] = [*update["components"], *(FailureNote(error=error, node="executor") for error in failures)]
    return Command(goto="presenter", update=update)


async def commission(
    state: TurnProgress, deps: Deps, call: ToolCallPart, styles: Sequence[StyleMatch] = ()
) -> Commission:
    """Return what will be painted for a call: arguments held against the locks, references and handles resolved.

    Raises ToolArgumentError for what the planner must mend, RequestRefused for what the person must change.
    """
    arguments = with_styles(parse_arguments(call.arguments), styles)
    conversation = await deps.records.get(deps.conversation.id, deps.conversation.owner)

    def shown_to(model: ModelEntry) -> ResolvedReferences:
        return resolve_references(
            arguments.reference_mode,
            arguments.reference_count,
            pictures=conversation.pictures,
            turn_id=deps.turn.id,
            named=_named(deps, arguments),
            max_references=model.max_references,
            # A picture the person marked to be changed is changed, whatever the agent calls it.
            action=None if deps.turn.editing else arguments.action,
        )

    # The base decides the default ratio, the ratio may decide the model, and the model limits the references.
    base = shown_to(deps.catalogue.model(ModelRole.IMAGE_FLASH, deps.provider_name)).base
    request = normalize(
        arguments,
        deps.turn.settings,
        deps.catalogue,
        deps.provider_name,
        search_needed=bool(arguments.use_grounding or state["facts"]),
        search_requested_in_words=requested_search_in_words(deps.turn.text),
        edited_pixels=(base.image.width or 1, base.image.height or 1) if base else None,
    )
    references = shown_to(request.model)
    base = references.base
    prompt = final_prompt(request, state["facts"], references.pictures)
    replay = await deps.records.answer_of(deps.conversation.id, base.handle) if base else None
    return Commission(
        request=request,
        prompt=prompt,
        messages=build_image_messages(prompt, references, replay, request.model),
        references=references,
        styles=tuple(StyleUse(name=match.style.title, similarity=match.similarity) for match in styles),
        facts=tuple(state["facts"]),
        sources=tuple(state["sources"]),
    )


def _named(deps: Deps, arguments: GenerateImageArgs) -> list[str]:
    """Return the handles that come before any mode: the picture marked to be changed, the agent's, the references."""
    marked = [deps.turn.editing] if deps.turn.editing else []
    return list(dict.fromkeys([*marked, *arguments.handles, *deps.turn.references]))


async def _paint_all(order: Commission, runtime: TurnRuntime, update: TurnProgress) -> list[Painted]:
    deps = runtime.context
    count = order.request.number_of_images
    width, height = order.expected_pixels
    label = order.request.model.label
    update["steps"].append(say(runtime, Step.PAINTING, count=count, model=label))
    emit(runtime, PaintingStarted(count=count, width=width, height=height, model_label=label))
    # A picture that was asked for is paid for: it outlives a Stop and is stored whenever it comes.
    tasks = [deps.keep_alive(_paint_one(order, index, runtime)) for index in range(count)]
    painted: list[Painted] = await asyncio.shield(asyncio.gather(*tasks))
    pictures = [one.picture for one in painted if one.picture is not None]
    if pictures:
        update["steps"].append(say(runtime, Step.PAINTED, count=len(pictures)))
        update["components"].append(SmartCanvas(handles=tuple(picture.handle for picture in pictures)))
    for one in painted:
        update["spend"] = update["spend"] + one.spend
    update["components"] += _grounded(painted, runtime)
    return painted


async def _paint_one(order: Commission, index: int, runtime: TurnRuntime) -> Painted:
    painted = await paint(runtime.context, order, index + 1)
    if runtime.context.stopped.is_set():
        await _add_late(runtime.context, painted)
        return painted
    if painted.picture is not None:
        emit(runtime, PictureReady(index=index, picture=painted.picture.model_copy(update={"answer": None})))
    elif painted.error is not None:
        emit(runtime, PictureFailed(index=index, error=painted.error))
    return painted


async def _add_late(deps: Deps, painted: Painted) -> None:
    """Put a picture that came after Stop into its turn: it was paid for."""
    await deps.settled.wait()
    conversation = await deps.records.get(deps.conversation.id, deps.conversation.owner)
    turn = next(turn for turn in conversation.turns if turn.id == deps.turn.id)
    shown = (SmartCanvas(handles=(painted.picture.handle,)),) if painted.picture else ()
    price_usd = turn.price_usd + painted.spend.price_usd
    update = {
        "components": turn.components + shown,
        "usage": turn.usage + painted.spend.usage,
        "price_usd": price_usd,
    }
    await deps.records.finish_turn(conversation.id, turn.model_copy(update=update))


def _grounded(painted: Sequence[Painted], runtime: TurnRuntime) -> list[Component]:
    notes: list[Component] = []
    for one in painted:
        if one.suggestions_html or one.sources:
            emit(runtime, SearchFound(sources=one.sources, suggestions_html=one.suggestions_html))
            notes.append(SearchNote(sources=one.sources, suggestions_html=one.suggestions_html))
    return notes


def _result(call: ToolCallPart, painted: Sequence[Painted]) -> ToolResultPart:
    pictures = [one.picture for one in painted if one.picture is not None]
    failed: list[JsonValue] = [one.error.message for one in painted if one.error is not None]
    content: dict[str, JsonValue] = {"pictures": [_described(picture) for picture in pictures]}
    if failed:
        content["failed"] = failed
    images = tuple(picture.image for picture in pictures)
    return ToolResultPart(name=call.name, call_id=call.call_id, content=content, images=images, is_error=not pictures)


def _described(picture: Picture) -> JsonValue:
    return {"handle": picture.handle, "width": picture.image.width, "height": picture.image.height}

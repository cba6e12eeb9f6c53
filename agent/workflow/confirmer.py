"""Confirmation: shows the plan before any picture is generated, and pauses the turn until the user decides.

The turn pauses by LangGraph's interrupt, on a checkpoint, so the decision may come after a restart.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from agent.conversation import TurnState
from agent.events import CapPassed, ModelPrice, Plan, PlanCard
from agent.imaging.contract import image_models
from agent.messages import ToolResultPart
from agent.requests import Decision, PlanEdit
from agent.spending import review_price, worst_review_usd
from agent.tools.base import error_result
from agent.wording.requests import named_number
from agent.workflow.critic import review_due
from agent.workflow.deps import Deps, show, today
from agent.workflow.image_requests import PreparedImageRequest, first_round
from agent.workflow.presenter import put_on_record
from agent.workflow.spending_caps import caps_passed, maximum_passed
from agent.workflow.state import Next, TurnProgress, serving_node, settle

_DROPPED = "The person saw the plan and dropped it. Nothing was painted."


def must_confirm(state: TurnProgress, deps: Deps, all_prepared: Mapping[int, PreparedImageRequest]) -> bool:
    """Return whether the user must see the plan first: by setting, for untrusted content, or if the edit may fail."""
    if state["decision"] is not None:
        return False
    # Free pictures need no consent.
    needs_consent = any(
        one.part is not None and one.part.needs_consent and not one.request.model.is_free
        for prepared in all_prepared.values()
        for one in prepared.each
    )
    return deps.turn.settings.confirm or needs_consent or _is_beyond_trust(state, deps, all_prepared)


def _is_beyond_trust(state: TurnProgress, deps: Deps, all_prepared: Mapping[int, PreparedImageRequest]) -> bool:
    """Return whether the model has seen content from outside and requests more paid pictures than the user did.

    The user's number is a lock, a number in this message, or the number of masks, at least one. A web page must not
    decide how much is spent."""
    paid = [one.request for prepared in all_prepared.values() for one in prepared.each if not one.request.model.is_free]
    chosen = deps.turn.settings.number_of_images or named_number(deps.turn.text)
    most = chosen * (2 if deps.turn.settings.image_model == "both" else 1) * max(1, len(deps.turn.masked))
    return sum(one.number_of_images for one in paid) > most and deps.trust(state).is_tainted


async def caps_in_the_way(
    state: TurnProgress, deps: Deps, all_prepared: Mapping[int, PreparedImageRequest], *, may_paint: bool
) -> tuple[CapPassed, ...]:
    """Return the caps that these requests would exceed: then the user sees the plan first, whatever their settings.

    If there are none and the turn `may_paint`, its price is reserved, so that other turns count it from now on.
    """
    passed = await caps_passed(state, deps, price_of(state, deps, all_prepared), may_paint=may_paint)
    return (*passed, *maximum_passed(state, deps, *_worst_of(state, deps, all_prepared)))


def _worst_of(state: TurnProgress, deps: Deps, all_prepared: Mapping[int, PreparedImageRequest]) -> tuple[float, float]:
    """Return the maximum remaining cost in US dollars: for the pictures alone, and with due reviews and repaints."""
    alone_usd = all_usd = 0.0
    for prepared, own, is_due in first_round(state, deps, all_prepared):
        is_reviewed = review_due(deps, prepared.work())
        look_usd = worst_review_usd(deps.text_model, today()) if is_reviewed else 0.0
        rounds = deps.turn.settings.review_rounds if is_reviewed else 1
        worst_usd = own.worst_usd(today())
        alone_usd += worst_usd if is_due else 0.0
        all_usd += rounds * (worst_usd + look_usd) - (0.0 if is_due else worst_usd)
    return alone_usd, all_usd


def price_of(state: TurnProgress, deps: Deps, all_prepared: Mapping[int, PreparedImageRequest]) -> float:
    """Return the approximate remaining cost of these requests, in US dollars, including the due reviews."""
    return sum(
        _each_usd(deps, prepared, own) for prepared, own, is_due in first_round(state, deps, all_prepared) if is_due
    )


async def shown_first(
    state: TurnProgress, deps: Deps, all_prepared: Mapping[int, PreparedImageRequest], caps: Sequence[CapPassed]
) -> Next:
    """Record the plan, show it, and pause the turn at `decision`; `caps` are those that it would exceed."""
    card = PlanCard(plans=tuple(_plan(deps, index, prepared, caps) for index, prepared in all_prepared.items()))
    await put_on_record(deps, {**state, "plan": card}, TurnState.WAITING)
    return Next("decision", {"plan": show(deps, card)})


async def decision(state: TurnProgress, deps: Deps, answer: object) -> Next:
    """Pause until the user decides: run the plan, with optional changes, or drop it."""
    decided = Decision.model_validate(answer)
    # Merged with the edits of an earlier decision about the same plan.
    before = state["decision"]
    edits = {edit.call: edit for edit in before.edits} if before else {}
    for edit in decided.edits:
        changed = edit.model_dump(exclude_none=True)
        edits[edit.call] = edits.get(edit.call, PlanEdit(call=edit.call)).model_copy(update=changed)
    decided = decided.model_copy(update={"edits": tuple(edits.values())})
    card = state["plan"] or PlanCard(plans=())
    if decided.run:
        plans = tuple(_as_edited(deps, plan, decided) for plan in card.plans)
        run = card.model_copy(update={"state": "run", "plans": plans})
        return Next("executor", {"decision": decided, "plan": run})
    answers: dict[int, ToolResultPart] = {
        index: error_result(call, _DROPPED)
        for index, call in enumerate(state["calls"])
        if serving_node(call) == "executor"
    }
    _, settled = settle(state, answers)
    return Next("presenter", {**settled, "plan": card.model_copy(update={"state": "dropped"})})


def _as_edited(deps: Deps, plan: Plan, decided: Decision) -> Plan:
    edit = next((edit for edit in decided.edits if edit.call == plan.call), None)
    if edit is None:
        return plan
    kept = {"aspect_ratio", "resolution"} if deps.turn.has_area else set()
    changed = edit.model_dump(exclude_none=True, exclude=kept)
    if edit.model is not None:
        models = image_models(deps.services.catalogue, deps.provider_name)
        chosen = list(models.values()) if edit.model == "both" else [models[edit.model]]
        changed |= {"model_label": " + ".join(model.label for model in chosen), "prices": ()}
    return plan.model_copy(update=changed)


def _plan(deps: Deps, index: int, prepared: PreparedImageRequest, caps: Sequence[CapPassed]) -> Plan:
    request, model = prepared.request, prepared.request.model
    base = prepared.references.base
    prices = tuple(_price(deps, prepared, one) for one in prepared.each)
    name = "pro" if model.role.value.endswith("pro") else "flash"
    return Plan(
        call=index,
        prompt=prepared.arguments.prompt,
        model=name if prepared.partner is None else "both",
        model_label=" + ".join(price.model_label for price in prices),
        aspect_ratio=request.aspect_ratio,
        resolution=request.resolution,
        number_of_images=request.number_of_images,
        references=tuple(picture.handle for picture in prepared.references.pictures if picture is not base),
        editing=base.handle if base else None,
        price_usd=round(sum(price.price_usd for price in prices), 6),
        prices=prices if prepared.partner else (),
        seconds=max(one.request.model.typical_seconds for one in prepared.each),
        notices=prepared.part.codes_before_paying if prepared.part else (),
        caps=tuple(caps),
    )


def _price(deps: Deps, prepared: PreparedImageRequest, one: PreparedImageRequest) -> ModelPrice:
    """Return the price of one model's pictures of the request, including a review of each if due."""
    price_usd = _each_usd(deps, prepared, one) * one.request.number_of_images
    return ModelPrice(model_label=one.request.model.label, price_usd=round(price_usd, 6))


def _each_usd(deps: Deps, prepared: PreparedImageRequest, one: PreparedImageRequest) -> float:
    price_usd = one.price_usd(today())
    if one.request.model.is_reviewed and review_due(deps, prepared.work()):
        price_usd += review_price(deps.text_model, today())
    return price_usd

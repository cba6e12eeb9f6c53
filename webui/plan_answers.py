"""What the person decided about a plan, as the page sends it: read strictly, held against what the models offer."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import ValidationError

from agent import Decision, ErrorCode, Plan, PlanEdit, RequestRefused, Value, check_request, is_blank_text
from webui.offers import Offer
from webui.waiting_cards import offer_of
from webui.whole_json import whole_json
from webui.words import Words


class RunPlan(Value):
    """Run was pressed: the turn whose plan it is, and what its fields say."""

    turn: str
    edits: tuple[PlanEdit, ...] = ()


def read_run(argument: str) -> RunPlan | None:
    """Return what was decided, or None when the page sent something else."""
    try:
        return RunPlan.model_validate_json(whole_json(argument))
    except ValidationError:
        return None


def decision_to_run(words: Words, run: RunPlan, plans: Sequence[Plan], offers: Sequence[Offer]) -> Decision:
    """Return the decision with what was really changed.

    Raises RequestRefused for a plan that is not there, for no words or too many, and for a value that the model does
    not offer; the setting is named in the visitor's words.
    """
    known = {plan.call: plan for plan in plans}
    edits = []
    for edit in run.edits:
        plan = known.get(edit.call)
        if plan is None:
            raise RequestRefused(ErrorCode.PLAN_GONE)
        changed = _changed(edit, plan)
        _check(words, changed, plan, offers)
        edits.append(changed)
    return Decision(run=True, edits=tuple(edit for edit in edits if edit != PlanEdit(call=edit.call)))


def after(plans: Sequence[Plan], decision: Decision, offers: Sequence[Offer]) -> tuple[Plan, ...]:
    """Return the plans as they were decided."""
    labels = {one.name: one.label for one in offers}
    edits = {edit.call: edit.model_dump(exclude_none=True) for edit in decision.edits}
    for edit in edits.values():
        edit |= {"model_label": labels[edit["model"]], "prices": ()} if edit.get("model") in labels else {}
    return tuple(plan.model_copy(update=edits.get(plan.call, {})) for plan in plans)


def _changed(edit: PlanEdit, plan: Plan) -> PlanEdit:
    """Return the edit without the values that stay as they were planned."""
    given = edit.model_dump(exclude={"call"}, exclude_none=True)
    kept = {name: value for name, value in given.items() if value != getattr(plan, name)}
    return PlanEdit.model_validate({"call": edit.call, **kept})


def _check(words: Words, edit: PlanEdit, plan: Plan, offers: Sequence[Offer]) -> None:
    if edit.prompt is not None:
        if is_blank_text(edit.prompt):
            raise RequestRefused(ErrorCode.NOTHING_SENT)
        check_request(edit.prompt, 0)
    name = edit.model or plan.model
    offer = offer_of(offers, name)
    if edit.model is not None and (offer is None or offer.name != edit.model):
        choices = ", ".join(one.label for one in offers)
        raise _unsupported(plan.model_label, words("composer.image_model"), edit.model, choices)
    # Painted by both, each must obey.
    obeying = list(offers) if name == "both" else [offer] if offer is not None else []
    # A new model must obey what stays of the plan, too.
    ratio = edit.aspect_ratio or (plan.aspect_ratio if edit.model else None)
    size = edit.resolution or (plan.resolution if edit.model else None)
    for one in obeying:
        if ratio is not None and ratio not in one.aspect_ratios:
            raise _unsupported(one.label, words("composer.aspect_ratio"), ratio, ", ".join(one.aspect_ratios))
        if size is not None and size not in one.resolutions:
            raise _unsupported(one.label, words("composer.resolution"), size, ", ".join(one.resolutions) or "—")


def _unsupported(model: str, setting: str, value: str, choices: str) -> RequestRefused:
    return RequestRefused(
        ErrorCode.SETTING_NOT_SUPPORTED, model=model, setting=setting, value=value[:40], choices=choices
    )

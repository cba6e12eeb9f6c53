"""What came of the pictures asked for: the best attempt of each shown first, every attempt kept, the planner told."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import JsonValue

from agent.adjusting.adjustment import Adjustment
from agent.events import ActionPanel, Component, FailureNote, PanelButton, PanelSlider, SmartCanvas
from agent.messages import ToolCallPart, ToolResultPart
from agent.pictures import PASS_SCORE, EditVerdict, Picture, Review
from agent.workflow.deps import Deps
from agent.workflow.routing import Target, settle
from agent.workflow.state import Attempt, TurnProgress, Work

_BUTTONS = (
    PanelButton(action="regenerate"),
    PanelButton(action="vary"),
    PanelButton(action="edit"),
    PanelButton(action="more_contrast"),
    PanelButton(action="warmer"),
)
_SLIDERS = (
    PanelSlider(setting="brightness"),
    PanelSlider(setting="contrast"),
    PanelSlider(setting="saturation"),
    PanelSlider(setting="warmth"),
    PanelSlider(setting="sharpness"),
)

_EDITS: dict[EditVerdict, str] = {
    "good": "Pasted into {base}: every pixel outside the marked part is as it was.",
    "unsure": "Pasted into {base}, every pixel outside the marked part as it was; whether it sits in the right place "
    "could not be checked, and the person is asked to keep or discard it.",
    "refused": "Not pasted: the image model showed something else, and {base} is unchanged. The person sees its answer "
    "beside it. Say so, and offer to try again.",
}


async def settle_paintings(state: TurnProgress, deps: Deps) -> tuple[Target, TurnProgress]:
    """Return where the turn goes now that nothing is painted any more, and the update: what it shows, what the
    planner's calls are answered with."""
    conversation = await deps.records.get(deps.conversation.id, deps.conversation.owner)
    known = {picture.handle: picture for picture in conversation.all_pictures}
    answers: dict[int, ToolResultPart] = dict(state["answers"])
    components: list[Component] = []
    for index, work in state["works"].items():
        answers[index] = _result(state["calls"][index], work, state["reviews"], known)
        components += shown(work, state["reviews"])
    _, settled = settle(state, answers)
    return "presenter", {**settled, "components": components}


def best_of(work: Work, reviews: Mapping[str, Review]) -> list[str]:
    """Return the best attempt at each picture of the work, those that came, in the order they were asked for."""
    chosen = []
    for slot in sorted({attempt.slot for attempt in work.attempts}):
        made = [attempt for attempt in work.attempts if attempt.slot == slot and attempt.handle]
        if made:
            chosen.append(max(made, key=lambda attempt: (_rank(attempt, reviews), attempt.round)).handle or "")
    return chosen


def shown(work: Work, reviews: Mapping[str, Review]) -> list[Component]:
    """Return what the conversation shows of the work: pictures, what can be done next with them, failures."""
    best = best_of(work, reviews)
    others = [attempt for attempt in work.attempts if attempt.handle and attempt.handle not in best]
    earlier = [
        one.handle or "" for one in sorted(others, key=lambda one: (_rank(one, reviews), one.round), reverse=True)
    ]
    components: list[Component] = []
    if best:
        components.append(SmartCanvas(handles=tuple(best), earlier=tuple(earlier)))
        components.append(next_steps(best[0]))
    for slot in sorted({attempt.slot for attempt in work.attempts}):
        tries = [attempt for attempt in work.attempts if attempt.slot == slot]
        if not any(attempt.handle for attempt in tries) and tries[-1].error is not None:
            components.append(FailureNote(error=tries[-1].error, node="executor"))
    return components


def next_steps(handle: str, adjusted: Adjustment | None = None) -> ActionPanel:
    """Return what can be done next with a picture. `adjusted` is how far it was adjusted already."""
    if adjusted is None:
        return ActionPanel(handle=handle, buttons=_BUTTONS, sliders=_SLIDERS)
    sliders = tuple(PanelSlider(setting=one.setting, amount=getattr(adjusted, one.setting)) for one in _SLIDERS)
    return ActionPanel(handle=handle, buttons=_BUTTONS, sliders=sliders)


def _rank(attempt: Attempt, reviews: Mapping[str, Review]) -> float:
    review = reviews.get(attempt.handle or "")
    return PASS_SCORE if review is None else review.rank


def _result(
    call: ToolCallPart, work: Work, reviews: Mapping[str, Review], known: Mapping[str, Picture]
) -> ToolResultPart:
    best = [known[handle] for handle in best_of(work, reviews) if handle in known]
    made = {attempt.slot for attempt in work.attempts if attempt.handle}
    failed: list[JsonValue] = [
        attempt.error.message for attempt in work.newest() if attempt.error is not None and attempt.slot not in made
    ]
    content: dict[str, JsonValue] = {
        "pictures": [_described(one, reviews.get(one.handle), is_named=work.partner is not None) for one in best]
    }
    if failed:
        content["failed"] = failed
    return ToolResultPart(
        name=call.name,
        call_id=call.call_id,
        content=content,
        images=tuple(picture.image for picture in best),
        is_error=not best,
    )


def _described(picture: Picture, review: Review | None, *, is_named: bool) -> JsonValue:
    told: dict[str, JsonValue] = {
        "handle": picture.handle,
        "width": picture.image.width,
        "height": picture.image.height,
    }
    if picture.edit is not None:
        told["edit"] = _EDITS[picture.edit.verdict].format(base=picture.parents[0])
    if picture.blank is not None:
        told["empty"] = f"It shows nothing ({picture.blank.value} all over). The person sees that; offer to try again."
    if is_named and picture.receipt is not None:
        told["model"] = picture.receipt.model_label
    if review is not None and review.score is not None and review.model_label:
        missing: list[JsonValue] = [item.wish for item in review.checklist if item.is_met is False]
        told["review"] = {"missing": missing, "feedback": review.feedback}
    return told

"""A planner that is not sure enough of what the person wants asks back instead of having it painted."""

from __future__ import annotations

from collections.abc import Sequence

from agent.errors import ToolArgumentError
from agent.imaging.contract import parse_arguments
from agent.imaging.intents import holds_question, is_unsure
from agent.messages import PromptMessage, Role, TextPart, ToolCallPart, ToolResultPart
from agent.tools.base import error_result
from agent.workflow.deps import TurnRuntime
from agent.workflow.hearing import Answer
from agent.workflow.reception import ASK_INSTEAD, after_unsure, asked_back
from agent.workflow.routing import GENERATE_IMAGE, Target, next_target, settle
from agent.workflow.state import TurnProgress

NOTHING_PAINTED = (
    "[The studio: no picture was made, because generate_image was not called. If the person wants one, call it now. If "
    "not, answer them without claiming one.]"
)


def without_the_unsure(state: TurnProgress, answer: Answer, runtime: TurnRuntime) -> tuple[Target, TurnProgress]:
    """Return where the planner's calls lead and the update, once those it is not sure of are answered with a no.

    `state` holds the calls, and what some are answered with already; its `unsure_calls` are those of earlier steps of
    the turn.
    """
    calls = state["calls"]
    has_mask = runtime.context.turn.has_area
    waiting = [index for index in range(len(calls)) if index not in state["answers"]]
    unsure = [index for index in waiting if _is_unsure(calls[index], has_mask=has_mask)]
    if not unsure:
        return settle(state, {}) if state["answers"] else (next_target(calls, answered=()), {})
    answers: dict[int, ToolResultPart] = {index: error_result(calls[index], ASK_INSTEAD) for index in unsure}
    target, update = settle(state, answers)
    update["unsure_calls"] = state["unsure_calls"] + len(unsure)
    if len(unsure) < len(calls):
        return target, update
    match after_unsure(state["unsure_calls"], holds_question(answer.text)):
        case "planner":
            return "planner", update
        case "presenter":
            return "presenter", update
        case "ask":
            asked = asked_back(runtime, "unsure", _subject(calls, unsure))
            update["messages"] = update.get("messages", []) + asked["messages"]
            update["components"] = asked["components"]
            return "presenter", update


def claimed(claims_so_far: int, runtime: TurnRuntime) -> tuple[Target, TurnProgress]:
    """Return where an answer leads that claims a picture which no call made: the planner is asked once more, then the
    person is told."""
    if not claims_so_far:
        note = PromptMessage(role=Role.PROMPT, parts=(TextPart(text=NOTHING_PAINTED),))
        return "planner", {"messages": [note], "claims": 1}
    return "presenter", asked_back(runtime, "not_painted")


def _is_unsure(call: ToolCallPart, *, has_mask: bool) -> bool:
    if call.name != GENERATE_IMAGE:
        return False
    try:
        return is_unsure(parse_arguments(call.arguments), has_mask=has_mask)
    except ToolArgumentError:
        # The executor answers it with the sentence from which the planner can mend it.
        return False


def _subject(calls: Sequence[ToolCallPart], unsure: Sequence[int]) -> str:
    named = (calls[index].arguments.get("subject") for index in unsure)
    return next((one.strip()[:80] for one in named if isinstance(one, str) and one.strip()), "")

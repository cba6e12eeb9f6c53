"""A planner that is not sure enough of what the person wants asks back instead of having it painted."""

from __future__ import annotations

from collections.abc import Sequence

from agent.errors import ToolArgumentError
from agent.events import QuestionAsked
from agent.imaging.contract import parse_arguments
from agent.imaging.intents import holds_question, is_unsure
from agent.messages import ToolCallPart, ToolResultPart
from agent.tools.base import error_result
from agent.workflow.deps import TurnRuntime, emit
from agent.workflow.hearing import Answer
from agent.workflow.reception import ASK_INSTEAD, after_unsure, asked_back
from agent.workflow.routing import GENERATE_IMAGE, Target, next_target, settle
from agent.workflow.state import TurnProgress


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
            subject = _subject(calls, unsure)
            emit(runtime, QuestionAsked(question="unsure", subject=subject))
            asked = asked_back("unsure", subject)
            update["messages"] = update.get("messages", []) + asked["messages"]
            update["components"] = asked["components"]
            return "presenter", update


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

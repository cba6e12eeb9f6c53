"""Where a turn goes next: which of the waiting calls is served, and by which node."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Literal, NamedTuple

from agent.imaging.arguments import GENERATE_IMAGE
from agent.messages import PromptMessage, Role, ToolCallPart, ToolResultPart
from agent.workflow.state import TurnProgress

Target = Literal[
    "tools", "consent", "searcher", "retriever", "decision", "executor", "critic", "presenter", "planner", "failure"
]

SEARCH = "web_search"


class Next(NamedTuple):
    """What a node leads to, None where the turn is over, and what it adds to the turn's state."""

    goto: str | None
    update: TurnProgress


def named_style(call: ToolCallPart) -> str:
    """Return the style that a call for a picture names, or nothing."""
    style = call.arguments.get("style") if call.name == GENERATE_IMAGE else None
    return style.strip() if isinstance(style, str) else ""


def serving_node(call: ToolCallPart) -> Target:
    """Return the node that serves the call."""
    if call.name == GENERATE_IMAGE:
        return "executor"
    return "searcher" if call.name == SEARCH else "tools"


def next_target(calls: Sequence[ToolCallPart], answered: Collection[int]) -> Target:
    """Return the node for the calls still open: searches first, then tools, pictures last (by way of the
    retriever); none left: back.

    A model's answer without any call ends the turn.
    """
    if not calls:
        return "presenter"
    waiting = {serving_node(call) for index, call in enumerate(calls) if index not in answered}
    order: tuple[Target, ...] = ("searcher", "tools", "executor")
    fallback: Target = "planner"
    target = next((node for node in order if node in waiting), fallback)
    return "retriever" if target == "executor" else target


def settle(state: TurnProgress, new: dict[int, ToolResultPart]) -> tuple[Target, TurnProgress]:
    """Return the next node and the update after some calls were answered.

    The answers go into the history as one message, in the order of the calls, when the last of them is there.
    """
    answers = {**state["answers"], **new}
    target = next_target(state["calls"], answers)
    update: TurnProgress = {"answers": answers}
    if len(answers) == len(state["calls"]):
        parts = tuple(answers[index] for index in range(len(answers)))
        update["messages"] = [PromptMessage(role=Role.TOOL, parts=parts)]
        update["calls"], update["answers"] = [], {}
    return target, update

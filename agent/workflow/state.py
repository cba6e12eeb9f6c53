"""What a turn carries from node to node: references and values, never the bytes of a picture."""

from __future__ import annotations

import operator
from typing import Annotated, TypedDict

from agent.components import Component
from agent.errors import ErrorInfo
from agent.events import ThoughtLog
from agent.messages import PromptMessage, Source, TokenUsage, ToolCallPart, ToolResultPart, Value
from agent.pictures import Fact
from agent.storage.style_values import StyleMatch


class Spend(Value):
    """Tokens and dollars of the calls made so far."""

    usage: TokenUsage = TokenUsage()
    price_usd: float = 0.0

    def __add__(self, more: Spend) -> Spend:
        return Spend(usage=self.usage + more.usage, price_usd=self.price_usd + more.price_usd)


class TurnProgress(TypedDict, total=False):
    """The state of one turn.

    `messages` are what the turn has added to the history, the person's own first. `calls` are those of the newest
    model message that wait for an answer, and `answers` what has been answered of them, by position;
    `styles` are those found for a call, by position as well.
    """

    messages: Annotated[list[PromptMessage], operator.add]
    components: Annotated[list[Component], operator.add]
    steps: Annotated[list[ThoughtLog], operator.add]
    spend: Annotated[Spend, operator.add]
    calls: list[ToolCallPart]
    answers: dict[int, ToolResultPart]
    facts: list[Fact]
    sources: list[Source]
    styles: dict[int, list[StyleMatch]]
    has_searched: bool
    planner_steps: int
    call_counts: dict[str, int]
    error: ErrorInfo | None
    failed_node: str


def first_progress(message: PromptMessage) -> TurnProgress:
    """Return the state of a turn that has only the person's own message."""
    return {
        "messages": [message],
        "components": [],
        "steps": [],
        "spend": Spend(),
        "calls": [],
        "answers": {},
        "facts": [],
        "sources": [],
        "styles": {},
        "has_searched": False,
        "planner_steps": 0,
        "call_counts": {},
        "error": None,
        "failed_node": "",
    }

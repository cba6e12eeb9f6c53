"""The state of a turn, passed from node to node, and the routing: which node serves the next open call.

The state has references and values, never picture bytes."""

from __future__ import annotations

import operator
import sys
from collections.abc import Collection, Sequence
from typing import Annotated, Any, Literal, NamedTuple, TypedDict

from pydantic import Field, model_validator

from agent import conversation, errors, events, library, messages, pictures, requests, settings
from agent.errors import ErrorInfo
from agent.events import (
    AgentMessage,
    Component,
    ConsentCard,
    PictureReady,
    PlanCard,
    SmartCanvas,
    StoppedNote,
    TextDelta,
    ThoughtLog,
    TurnEvent,
)
from agent.imaging import arguments, contract
from agent.imaging.arguments import GENERATE_IMAGE
from agent.imaging.contract import NormalizedRequest
from agent.library import StyleMatch
from agent.messages import PromptMessage, Role, Source, TextPart, TokenUsage, ToolCallPart, ToolResultPart, Value
from agent.pictures import AskedItem, Fact, MissingStyle, Review
from agent.providers import catalogue
from agent.requests import Decision
from agent.tools import trust


class Spend(Value):
    """Tokens and US dollars of the calls so far, and the journal names of the answered ones."""

    usage: TokenUsage = TokenUsage()
    price_usd: float = 0.0
    calls: tuple[str, ...] = ()

    def __add__(self, more: Spend) -> Spend:
        price_usd, calls = self.price_usd + more.price_usd, dict.fromkeys((*self.calls, *more.calls))
        return Spend(usage=self.usage + more.usage, price_usd=price_usd, calls=tuple(calls))


class Attempt(Value):
    """One attempt at one picture of a call: `slot` is the picture's index, `round` counts from 1.

    It has either the handle of the picture, or the error.
    """

    slot: int
    round: int
    handle: str | None = None
    error: ErrorInfo | None = None


class Work(Value):
    """The image request of one call, and its attempts so far.

    `planned` is the prompt as the planner wrote it, `prompt` as it was sent. `partner` is the same request for a second
    model, for a comparison: its slots follow those of `request`. `asked` are the user's requests that the pictures are
    reviewed against. `advice` are the reviews' corrections for the next round, by slot.
    """

    request: NormalizedRequest
    planned: str
    prompt: str
    asked: tuple[AskedItem, ...] = ()
    partner: NormalizedRequest | None = None
    attempts: tuple[Attempt, ...] = ()
    advice: dict[int, str] = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _of_an_earlier_version(cls, data: Any) -> Any:
        # A turn may have been paused since before an update of the program.
        if not isinstance(data, dict) or not isinstance(data.get("prompt"), dict):
            return data
        prompts = {"planned": data["prompt"]["original"], "prompt": data["prompt"]["final"]}
        return {name: one for name, one in data.items() if name in cls.model_fields} | prompts

    @property
    def requests(self) -> tuple[NormalizedRequest, ...]:
        """The requests, one for each model."""
        return (self.request,) if self.partner is None else (self.request, self.partner)

    def newest(self) -> tuple[Attempt, ...]:
        """Return the attempts of the last round."""
        last = max((attempt.round for attempt in self.attempts), default=0)
        return tuple(attempt for attempt in self.attempts if attempt.round == last)


class Leftovers(Value):
    """The partial output of a failed node: it is shown in the failed turn, and dropped when the node runs again."""

    messages: tuple[PromptMessage, ...] = ()
    components: tuple[Component, ...] = ()


class TurnProgress(TypedDict, total=False):
    """The state of one turn.

    `entry` is the node at which the graph starts. `messages` are those that the turn has added to the history, the
    user's own first. `calls` are the open calls of the newest model message, and `answers` their results so far, by
    position; `styles` and `works` belong to image calls, also by position. `reviews` are by handle. `plan` is the plan
    shown to the user before any picture is made, and `consent` the question before tools run. `words` is the rest of
    the user's text after a request to go back to another picture; if empty, the whole text counts. `claims` counts the
    answers that claimed a picture without a call.
    """

    entry: str
    words: str
    messages: Annotated[list[PromptMessage], operator.add]
    components: Annotated[list[Component], operator.add]
    steps: Annotated[list[ThoughtLog], operator.add]
    spend: Annotated[Spend, operator.add]
    calls: list[ToolCallPart]
    answers: dict[int, ToolResultPart]
    facts: list[Fact]
    sources: list[Source]
    styles: dict[int, list[StyleMatch]]
    missing_styles: dict[int, MissingStyle]
    works: dict[int, Work]
    reviews: dict[str, Review]
    plan: PlanCard | None
    consent: ConsentCard | None
    decision: Decision | None
    leftovers: Leftovers
    has_searched: bool
    planner_steps: int
    call_counts: dict[str, int]
    unsure_calls: int
    claims: int
    error: ErrorInfo | None
    failed_node: str


def first_progress(message: PromptMessage) -> TurnProgress:
    """Return the initial state of a turn, which has only the user's message."""
    return {
        "entry": "",
        "words": "",
        "messages": [message],
        "components": [],
        "steps": [],
        "spend": Spend(),
        "calls": [],
        "answers": {},
        "facts": [],
        "sources": [],
        "styles": {},
        "missing_styles": {},
        "works": {},
        "reviews": {},
        "plan": None,
        "consent": None,
        "decision": None,
        "leftovers": Leftovers(),
        "has_searched": False,
        "planner_steps": 0,
        "call_counts": {},
        "unsure_calls": 0,
        "claims": 0,
        "error": None,
        "failed_node": "",
    }


_SUMS = ("messages", "components", "steps", "spend")


def with_update(state: TurnProgress, update: TurnProgress) -> TurnProgress:
    """Return the state merged with a node's update, in the same way as the graph does."""
    before: dict[str, Any] = {**state}
    sums: Any = {name: before[name] + more for name, more in update.items() if name in _SUMS}
    return {**state, **update, **sums}


class TurnRecord:
    """The progress of a turn: its state after the last finished node, and the output and payments of the running node.

    So a turn that is cancelled during a node loses nothing.
    """

    def __init__(self, first: TurnProgress) -> None:
        self.has_begun = False
        self._state = first
        self._handles: list[str] = []
        self.forget()

    def begin(self, state: TurnProgress) -> None:
        """Start a node with this state."""
        self.has_begun = True
        self._state = state

    def forget(self) -> None:
        """Drop the node's output and payments: they come again when the node runs again."""
        self._text = ""
        self._steps: list[ThoughtLog] = []
        self.spend = Spend()

    def end(self, update: TurnProgress) -> TurnProgress:
        """Return the node's update with its steps and payments, and apply it to the state."""
        brought: TurnProgress = {**update, "steps": self._steps, "spend": self.spend}
        self._state = with_update(self._state, brought)
        self.forget()
        if any(isinstance(one, SmartCanvas) for one in brought.get("components", ())):
            self._handles = []
        return brought

    def say(self, line: ThoughtLog) -> None:
        """Add a line about the current work."""
        self._steps.append(line)

    def pay(self, spend: Spend, *, is_known: bool = False) -> None:
        """Add the cost of a call; if its answer `is_known` from the journal, only if it is not counted yet."""
        counted = {*self._state["spend"].calls, *self.spend.calls}
        if not (is_known and counted.issuperset(spend.calls)):
            self.spend += spend

    def taken(self) -> Spend:
        """Return the payments since the turn was recorded, and reset them."""
        spend, self.spend = self.spend, Spend()
        return spend

    def show(self, event: TurnEvent) -> None:
        """Add text and pictures of the running node."""
        if isinstance(event, TextDelta):
            self._text += event.text
        elif isinstance(event, PictureReady):
            self._handles.append(event.picture.handle)

    def so_far(self) -> TurnProgress:
        """Return the state including the unfinished node: shown text, stored pictures, paid calls."""
        more: TurnProgress = {"steps": self._steps, "spend": self.spend, "messages": [], "components": []}
        if self._text.strip():
            more["messages"] = [PromptMessage(role=Role.MODEL, parts=(TextPart(text=self._text),))]
            more["components"] = [AgentMessage(text=self._text.strip())]
        if self._handles:
            more["components"] = [*more["components"], SmartCanvas(handles=tuple(self._handles))]
        return with_update(self._state, more)

    def stopped(self) -> TurnProgress:
        """Return the state so far with a StoppedNote. It is the final state."""
        state = self.so_far()
        self.forget()
        return {**state, "components": [*state["components"], StoppedNote()]}


Target = Literal["tools", "searcher", "retriever", "executor", "presenter", "planner"]

SEARCH = "web_search"


class Next(NamedTuple):
    """The next node, None when the turn is over, and the update of the turn's state."""

    goto: str | None
    update: TurnProgress


def named_style(call: ToolCallPart) -> str:
    """Return the style that an image call names, or an empty string."""
    style = call.arguments.get("style") if call.name == GENERATE_IMAGE else None
    return style.strip() if isinstance(style, str) else ""


def serving_node(call: ToolCallPart) -> Target:
    """Return the node that serves the call."""
    if call.name == GENERATE_IMAGE:
        return "executor"
    return "searcher" if call.name == SEARCH else "tools"


def next_target(calls: Sequence[ToolCallPart], answered: Collection[int]) -> Target:
    """Return the node for the open calls: searches first, then tools, pictures last (through the retriever).

    With no open call it is the planner; a model's answer without any call ends the turn.
    """
    if not calls:
        return "presenter"
    waiting = {serving_node(call) for index, call in enumerate(calls) if index not in answered}
    if "searcher" in waiting:
        return "searcher"
    if "tools" in waiting:
        return "tools"
    return "retriever" if waiting else "planner"


def settle(state: TurnProgress, new: dict[int, ToolResultPart]) -> tuple[Target, TurnProgress]:
    """Return the next node and the update after some calls were answered.

    Once all calls are answered, the results go into the history as one message, in the order of the calls.
    """
    answers = {**state["answers"], **new}
    target = next_target(state["calls"], answers)
    update: TurnProgress = {"answers": answers}
    if len(answers) == len(state["calls"]):
        parts = tuple(answers[index] for index in range(len(answers)))
        update["messages"] = [PromptMessage(role=Role.TOOL, parts=parts)]
        update["calls"], update["answers"] = [], {}
    return target, update


_MODULES = (conversation, errors, events, library, messages, pictures, requests, settings)
# The types that a checkpoint may contain: those of the state, and nothing else.
CHECKPOINTED: tuple[type, ...] = tuple(
    one
    for module in (*_MODULES, arguments, contract, catalogue, trust, sys.modules[__name__])
    for one in vars(module).values()
    if isinstance(one, type) and one.__module__ == module.__name__
)

"""What a turn carries from node to node, references and values, never the bytes of a picture; and where it goes next:
which of the waiting calls is served, and by which node."""

from __future__ import annotations

import operator
import sys
from collections.abc import Collection, Iterator, Sequence
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
    """Tokens and dollars of the calls made so far; of those that were answered, their names in the journal."""

    usage: TokenUsage = TokenUsage()
    price_usd: float = 0.0
    calls: tuple[str, ...] = ()

    def __add__(self, more: Spend) -> Spend:
        price_usd, calls = self.price_usd + more.price_usd, dict.fromkeys((*self.calls, *more.calls))
        return Spend(usage=self.usage + more.usage, price_usd=price_usd, calls=tuple(calls))


class Attempt(Value):
    """One try at one of the pictures of a call: `slot` is its place among them, `round` counts from 1.

    Either the handle of what came, or why nothing did.
    """

    slot: int
    round: int
    handle: str | None = None
    error: ErrorInfo | None = None


class Work(Value):
    """What is asked of the image model for one call, and what came of it so far.

    `planned` is the prompt as the planner wrote it, `prompt` as it was sent. `partner` is the same asked of another
    model, to be seen beside it: its slots follow those of `request`. `asked` is what the pictures are held against:
    what the person said. `advice` is what the reviews want mended, by slot, for the round to come.
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
    def _of_an_earlier_version(cls, told: Any) -> Any:
        # A turn may have rested since before the update.
        if not isinstance(told, dict) or not isinstance(told.get("prompt"), dict):
            return told
        prompts = {"planned": told["prompt"]["original"], "prompt": told["prompt"]["final"]}
        return {name: one for name, one in told.items() if name in cls.model_fields} | prompts

    @property
    def requests(self) -> tuple[NormalizedRequest, ...]:
        """What is asked, one for each model."""
        return (self.request,) if self.partner is None else (self.request, self.partner)

    def newest(self) -> tuple[Attempt, ...]:
        """Return the attempts of the last round."""
        last = max((attempt.round for attempt in self.attempts), default=0)
        return tuple(attempt for attempt in self.attempts if attempt.round == last)


class Leftovers(Value):
    """What a node that failed had said already: it stays with the failed turn, and goes when the node runs again."""

    messages: tuple[PromptMessage, ...] = ()
    components: tuple[Component, ...] = ()


class TurnProgress(TypedDict, total=False):
    """The state of one turn.

    `entry` is the node at which the graph takes the turn up. `messages` are what the turn has added to the history, the
    person's own first. `calls` are those of the newest model message that wait for an answer, and `answers` what has
    been answered of them, by position; `styles` and `works` are those of a call for pictures, by position as well.
    `reviews` are by handle. `plan` is what the person was shown before it is painted, and `consent` what they were
    asked before tools run. `words` are what is left of the person's own once they have gone back to another picture;
    without that all of them count. `claims` counts the answers that claimed a picture which no call made.
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
    """Return the state of a turn that has only the person's own message."""
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
    """Return the state after a node, as the graph makes it."""
    before: dict[str, Any] = {**state}
    sums: Any = {name: before[name] + more for name, more in update.items() if name in _SUMS}
    return {**state, **update, **sums}


class TurnRecord:
    """What a turn has brought: its state after the last node that has ended, and what the node at work has said and
    paid since, which is part of what that brings. So a turn that is stopped in it loses nothing.
    """

    def __init__(self, first: TurnProgress) -> None:
        self.has_begun = False
        self._state = first
        self._handles: list[str] = []
        self.forget()

    def begin(self, state: TurnProgress) -> None:
        """Go on from this state with a node that begins."""
        self.has_begun = True
        self._state = state

    def forget(self) -> None:
        """Drop what the node has said and paid: it does so once more when it is run again."""
        self._text = ""
        self._steps: list[ThoughtLog] = []
        self.spend = Spend()

    def end(self, update: TurnProgress) -> TurnProgress:
        """Return what the node has brought, by what it returned and what it has said and paid, and go on from there."""
        brought: TurnProgress = {**update, "steps": self._steps, "spend": self.spend}
        self._state = with_update(self._state, brought)
        self.forget()
        if any(isinstance(one, SmartCanvas) for one in brought.get("components", ())):
            self._handles = []
        return brought

    def say(self, line: ThoughtLog) -> None:
        """Keep a line of what is being done."""
        self._steps.append(line)

    def pay(self, spend: Spend, *, is_known: bool = False) -> None:
        """Count what a call has cost; one whose answer `is_known` from the journal only where it is not counted yet."""
        counted = {*self._state["spend"].calls, *self.spend.calls}
        if not (is_known and counted.issuperset(spend.calls)):
            self.spend += spend

    def taken(self) -> Spend:
        """Return what was paid since the turn was put on record, and count it no more."""
        spend, self.spend = self.spend, Spend()
        return spend

    def show(self, event: TurnEvent) -> None:
        """Keep the words and pictures of the node at work."""
        if isinstance(event, TextDelta):
            self._text += event.text
        elif isinstance(event, PictureReady):
            self._handles.append(event.picture.handle)

    def so_far(self) -> TurnProgress:
        """Return the state with what was half done: words shown, pictures stored, calls paid."""
        more: TurnProgress = {"steps": self._steps, "spend": self.spend, "messages": [], "components": []}
        if self._text.strip():
            more["messages"] = [PromptMessage(role=Role.MODEL, parts=(TextPart(text=self._text),))]
            more["components"] = [AgentMessage(text=self._text.strip())]
        if self._handles:
            more["components"] = [*more["components"], SmartCanvas(handles=tuple(self._handles))]
        return with_update(self._state, more)

    def stopped(self) -> TurnProgress:
        """Return that with the note that it was stopped; a plan that waited is dropped. Nothing is done after it."""
        state = self.so_far()
        self.forget()
        state["components"] = [*state["components"], StoppedNote()]
        plan = state["plan"]
        if plan is not None and plan.state == "pending":
            state["plan"] = plan.model_copy(update={"state": "dropped"})
        return state


def added_so_far(state: TurnProgress) -> list[PromptMessage | ToolResultPart]:
    """Return what a turn has added to the history, and which of its newest calls were answered already."""
    return [*state["messages"], *state["answers"].values()]


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


def _checkpointed() -> Iterator[type]:
    """Tell the types that a checkpoint of a turn may hold: what the state is made of, and nothing else."""
    own = sys.modules[__name__]
    modules = (conversation, errors, events, library, messages, pictures, requests, settings)
    for module in (*modules, arguments, contract, catalogue, trust, own):
        for one in vars(module).values():
            if isinstance(one, type) and one.__module__ == module.__name__:
                yield one


CHECKPOINTED: tuple[type, ...] = tuple(_checkpointed())

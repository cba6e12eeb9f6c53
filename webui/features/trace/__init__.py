"""The trace of a conversation: its turns, the steps of each, and all inputs and outputs of a step; also as JSON.

The page requests turns when they come into view, steps when their turn is opened, and contents when a step is opened.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
from urllib.parse import quote

from pydantic import Field, JsonValue
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from agent import (
    Conversation,
    ErrorCode,
    RequestRefused,
    StepKind,
    StepSummary,
    TokenUsage,
    TraceStep,
    Turn,
    Value,
    report_text,
)
from webui.http.sessions import NO_STORE, Visitor, as_json, attachment, visitor_route
from webui.screen import Screen
from webui.shell.actions import Context, Feature
from webui.shell.templates import Patch, Reply
from webui.words import Words

_PAGE_TURNS = 20
# Larger numbers do not fit the database's integers.
_MOST_STEPS = 1 << 31
_NODE_ICONS = {
    "reception": "message-circle",
    "adjuster": "sliders-horizontal",
    "planner": "list-checks",
    "tools": "wrench",
    "searcher": "globe",
    "retriever": "palette",
    "executor": "brush",
    "critic": "scan-eye",
}
_NODES = frozenset({*_NODE_ICONS, "consent", "decision", "presenter", "failure", "retrial"})
_CALL_ICONS = {"words": "message-square-text", "picture": "image", "vectors": "binary"}
_SOURCES = {"journal": "trace.from_journal", "cache": "trace.from_cache"}


class ShownTrace(Value):
    """The newest turn that is shown already, if any, and whether only turns with errors are."""

    since: str = Field(default="", max_length=200)
    errors_only: bool = False


class OfTurn(Value):
    """A turn."""

    turn: str = Field(max_length=200)


class OfStep(OfTurn):
    """A step of a turn, by its number."""

    number: int = Field(ge=0, lt=_MOST_STEPS)


def _files(screen: Screen) -> Sequence[Route]:
    """Return the routes of a conversation, a turn and a step as JSON files; a refusal is one sentence under `error`."""

    async def file(request: Request, visitor: Visitor) -> Response:
        key, turn, number = (request.path_params.get(one) for one in ("conversation", "turn", "number"))
        traces, conversation = screen.studio().traces, await screen.studio().conversations.get(str(key), visitor.owner)
        if turn is None:
            return await _file(await traces.steps(conversation.id), conversation.id, conversation.id)
        if number is not None:
            return await _file([await _step(screen, conversation, turn, number)], conversation.id, "step")
        steps = await traces.steps(conversation.id, [turn])
        if not steps:
            raise RequestRefused(ErrorCode.TURN_NOT_FOUND)
        return await _file(steps, conversation.id, turn)

    paths = ("{conversation}/{turn}/{number:int}", "{conversation}/{turn}", "{conversation}")
    return [visitor_route(f"/aivista/trace/{path}.json", screen.sessions, file, refusal=as_json) for path in paths]


trace = Feature("trace", routes=_files)


@trace.action
async def show(at: Context, seen: ShownTrace) -> Reply:
    """Show the newest turns of the branch; of a trace that is shown already, only what came since its last turn
    began."""
    conversation = await at.conversation()
    ids = [turn.id for turn in conversation.turns] if conversation is not None else []
    if conversation is None or not ids:
        values: dict[str, Any] = {"turns": []}
    elif seen.since in ids:
        turns = await _traced(at, conversation, ids.index(seen.since), len(ids))
        come = [_fragment(at, f"trc-{one.turn.id}", "turn.html", "trc-turns", one=one, is_open=True) for one in turns]
        return Reply(patches=tuple(come))
    else:
        values = {**await _page(at, conversation, len(ids)), "newest": ids[-1]}
    values |= {"conversation": at.state.conversation, "errors_only": seen.errors_only}
    return Reply(patches=(_fragment(at, "trc", "pane.html", "trace", **values),))


@trace.action
async def older(at: Context, before: OfTurn) -> Reply:
    """Show the turns before one."""
    conversation = await _conversation(at)
    page = await _page(at, conversation, _place(conversation, before.turn))
    # If the trace that asked is gone, there is no place for them.
    name = f"trc-before-{before.turn}"
    return Reply(patches=(_fragment(at, name, "older.html", name, newest="", **page),))


@trace.action
async def turn(at: Context, opened: OfTurn) -> Reply:
    """Show the steps of a turn."""
    conversation = await _conversation(at)
    place = _place(conversation, opened.turn)
    [found] = await _traced(at, conversation, place, place + 1)
    inside = _fragment(at, f"trc-{opened.turn}-in", "inside.html", f"trc-{opened.turn}", one=found, is_open=True)
    return Reply(patches=(inside,))


@trace.action
async def step(at: Context, opened: OfStep) -> Reply:
    """Show everything about a step."""
    conversation = await _conversation(at)
    found = await _step(at.screen, conversation, opened.turn, opened.number)
    handles = {picture.image.digest: picture.handle for picture in conversation.all_pictures}
    values = {"step": found, "handles": handles, "thumbnail": at.view.thumbnail}
    name = f"trc-{opened.turn}-{opened.number}"
    return Reply(patches=(_fragment(at, name, "step.html", f"trc-{opened.turn}", **values),))


def _fragment(at: Context, name: str, template: str, parent: str, **values: Any) -> Patch:
    def address(turn_id: str = "", number: int | None = None) -> str:
        parts = [quote(one, safe="") for one in (at.state.conversation, turn_id) if one]
        return "/".join(["aivista/trace", *parts, *([str(number)] if number is not None else [])]) + ".json"

    return at.fragment(name, f"trace/{template}", parent, address=address, **FUNCTIONS, **values)


async def _conversation(at: Context) -> Conversation:
    return await at.screen.studio().conversations.get(at.state.conversation, at.visitor.owner)


def _place(conversation: Conversation, turn_id: str) -> int:
    place = next((place for place, one in enumerate(conversation.turns) if one.id == turn_id), None)
    if place is None:
        raise RequestRefused(ErrorCode.TURN_NOT_FOUND)
    return place


async def _page(at: Context, conversation: Conversation, end: int) -> dict[str, Any]:
    """Return a page of turns, and the first of them if there are others before it."""
    first = max(0, end - _PAGE_TURNS)
    return {
        "turns": await _traced(at, conversation, first, end),
        "before": conversation.turns[first].id if first else "",
    }


async def _traced(at: Context, conversation: Conversation, first: int, end: int) -> list[TracedTurn]:
    turns = conversation.turns[first:end]
    steps = defaultdict[str, list[StepSummary]](list)
    for step in await at.screen.studio().traces.summaries(conversation.id, [turn.id for turn in turns]):
        steps[step.turn_id].append(step)
    return [TracedTurn(turn, place, steps[turn.id]) for place, turn in enumerate(turns, first + 1)]


async def _step(screen: Screen, conversation: Conversation, turn_id: str, number: int) -> TraceStep:
    step = await screen.studio().traces.step(conversation.id, turn_id, number) if number < _MOST_STEPS else None
    if step is None:
        raise RequestRefused(ErrorCode.TURN_NOT_FOUND)
    return step


async def _file(steps: Sequence[TraceStep], conversation_id: str, name: str) -> Response:
    kept = [step.model_dump(mode="json") for step in steps]
    content: dict[str, Any] = {"trace": 1, "conversation": conversation_id, "steps": kept}
    headers = {**NO_STORE, **attachment(f"aivista-trace-{name[:64]}.json")}
    return Response(await asyncio.to_thread(report_text, content), media_type="application/json", headers=headers)


# Steps as lines


class Line(NamedTuple):
    """A step as a line: number, icon, kind (a CSS class) and name; a node that is still running has no `step` yet."""

    number: int
    shape: str
    kind: str
    name: str
    step: StepSummary | None = None


@dataclass(frozen=True)
class TracedTurn:
    """A turn of the shown branch, its position (from 1), and its steps in the order in which they began."""

    turn: Turn
    place: int
    steps: Sequence[StepSummary]

    @property
    def seconds(self) -> float:
        """How many seconds the turn took, or has taken until now."""
        return max([self.turn.seconds, *(step.at_s + step.seconds for step in self.steps)])

    @property
    def call_count(self) -> int:
        """How many models and tools it called."""
        return sum(step.kind is not StepKind.NODE for step in self.steps)

    @property
    def price_usd(self) -> float:
        """Its cost in US dollars."""
        return sum(step.price_usd for step in self.steps)

    @property
    def tokens(self) -> int:
        """How many tokens it used."""
        return sum(step.usage.total_tokens for step in self.steps)

    @property
    def is_trouble(self) -> bool:
        """Whether anything went wrong in it, even if it was retried successfully."""
        return any(step.is_trouble for step in self.steps)


def _lines(words: Words, steps: Sequence[StepSummary]) -> list[Line]:
    """Return the steps as lines, the steps inside a node below it; a node that is still running is represented by
    its name."""
    nodes, shown = {step.number for step in steps if step.kind is StepKind.NODE}, list[Line]()
    for step in sorted(steps, key=lambda one: one.number):
        if step.within is not None and step.within not in nodes:
            nodes.add(step.within)
            shown.append(Line(step.within, _NODE_ICONS.get(step.node, "waypoints"), "node", _node(words, step.node)))
        is_node = step.kind is StepKind.NODE
        shape = _NODE_ICONS.get(step.name, "waypoints") if is_node else _CALL_ICONS.get(step.asks_for, "wrench")
        kind = ["node" if is_node else "call", *(["trouble"] if step.is_trouble else [])]
        kind += ["mended"] if step.is_trouble and not (step.has_failed or step.was_cancelled) else []
        name = _node(words, step.name) if is_node else words.model(step.model_label) or step.name
        shown.append(Line(step.number, shape, " ".join(kind), name, step))
    return shown


def _about(words: Words, step: StepSummary) -> list[tuple[str, str]]:
    """Return the facts of a step besides its figures, with a colour each; trouble comes first."""
    facts = list[tuple[str, str]]()
    if step.was_cancelled:
        facts.append(("bad", words("trace.cancelled")))
    elif step.error is not None and step.kind is not StepKind.NODE:
        facts.append(("bad", words.error(step.error)))
    elif step.has_failed:
        # The failed call says why, and so does the node itself when it is opened.
        facts.append(("bad", words("trace.step_failed")))
    if step.retries:
        facts.append(("warn", words.counted("trace.retries", len(step.retries))))
    if step.source in _SOURCES:
        facts.append(("", words(_SOURCES[step.source])))
    if step.model_label:
        facts.append(("", _purpose(words, step)))
    if step.led_to:
        facts.append(("", f"{words('trace.led_to')} {_node(words, step.led_to)}"))
    return facts


def _purpose(words: Words, step: StepSummary) -> str:
    """Return which call of its node it was, in plain words, derived from its name in the journal."""
    if planned := re.fullmatch(r"planner:(\d+)", step.name):
        return words("trace.plan_step", number=planned[1])
    if painted := re.fullmatch(r"picture:\d+\.\d+\.(\d+)\.(\d+)", step.name):
        attempt = [words("trace.attempt", number=painted[2])] if painted[2] != "1" else []
        return words("did.join").join([words("trace.picture", number=int(painted[1]) + 1), *attempt])
    reviewed = re.fullmatch(r"critic:(#\S+)", step.name)
    return reviewed[1] if reviewed else _node(words, step.node)


def _node(words: Words, node: str) -> str:
    """Return what a node of the turn's graph does, in plain words."""
    return words(f"node.{node if node in _NODES else 'other'}")


def _tokens(words: Words, usage: TokenUsage) -> str:
    kinds = (
        (usage.prompt_tokens + usage.tool_tokens, "trace.tokens_in"),
        (usage.cached_tokens, "trace.tokens_cached"),
        (usage.output_tokens, "trace.tokens_out"),
        (usage.thought_tokens, "trace.tokens_thought"),
        (usage.image_tokens, "trace.tokens_image"),
        (usage.search_queries, "trace.searches"),
    )
    return " · ".join(words.counted(key, count) for count, key in kinds if count) if usage.total_tokens else ""


def _took(words: Words, seconds: float) -> str:
    if seconds < 0.095:
        return words("trace.milliseconds", count=f"{seconds * 1000:.0f}" if seconds >= 0.0005 else "<1")
    return words("trace.seconds", count=f"{seconds:.1f}")


def _dollars(price_usd: float) -> str:
    """Return an amount with as many digits as small prices need."""
    if not price_usd:
        return "$0"
    return f"${price_usd:.3f}" if price_usd >= 0.001 else f"${price_usd:.5f}"


def _plain(value: JsonValue) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)


# Functions that the templates use besides `t`.
FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "lines": _lines,
    "about": _about,
    "node": _node,
    "tokens": _tokens,
    "took": _took,
    "dollars": _dollars,
    "plain": _plain,
}

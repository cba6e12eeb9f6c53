"""What the lines of the trace say: of a turn its sums, of a step its name, its figures and what went wrong."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from pydantic import JsonValue

from agent import StepKind, StepSummary, TokenUsage, Turn
from webui.words import Words

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


class Line(NamedTuple):
    """A step as a line: its number, icon, kind (a class of CSS) and name; of a node still at work there is no step."""

    number: int
    shape: str
    kind: str
    name: str
    step: StepSummary | None = None


@dataclass(frozen=True)
class TracedTurn:
    """A turn of the shown branch, which one it is (from 1), and its steps in the order in which they began."""

    turn: Turn
    place: int
    steps: Sequence[StepSummary]

    @property
    def seconds(self) -> float:
        """How long it took, or has taken until now."""
        return max([self.turn.seconds, *(step.at_s + step.seconds for step in self.steps)])

    @property
    def call_count(self) -> int:
        """How many models and tools it called."""
        return sum(step.kind is not StepKind.NODE for step in self.steps)

    @property
    def price_usd(self) -> float:
        """What it cost."""
        return sum(step.price_usd for step in self.steps)

    @property
    def tokens(self) -> int:
        """How many tokens it took."""
        return sum(step.usage.total_tokens for step in self.steps)

    @property
    def is_trouble(self) -> bool:
        """Whether anything went wrong in it, mended or not."""
        return any(step.is_trouble for step in self.steps)


def _lines(words: Words, steps: Sequence[StepSummary]) -> list[Line]:
    """Return the steps, those made in a node below it; one whose node has not ended yet stands below its name."""
    nodes, shown = {step.number for step in steps if step.kind is StepKind.NODE}, list[Line]()
    for step in sorted(steps, key=lambda one: one.number):
        if step.within is not None and step.within not in nodes:
            nodes.add(step.within)
            shown.append(Line(step.within, _NODE_ICONS.get(step.node, "waypoints"), "node", _node(words, step.node)))
        is_node = step.kind is StepKind.NODE
        shape = _NODE_ICONS.get(step.name, "waypoints") if is_node else _CALL_ICONS.get(step.asks_for, "wrench")
        kind = ["node" if is_node else "call", *(["trouble"] if step.is_trouble else [])]
        kind += ["mended"] if step.is_trouble and not (step.has_failed or step.was_cancelled) else []
        name = _node(words, step.name) if is_node else step.model_label or step.name
        shown.append(Line(step.number, shape, " ".join(kind), name, step))
    return shown


def _about(words: Words, step: StepSummary) -> list[tuple[str, str]]:
    """Return what a line says of its step beside the figures, each with its colour: trouble first."""
    said = list[tuple[str, str]]()
    if step.was_cancelled:
        said.append(("bad", words("trace.cancelled")))
    elif step.error is not None and step.kind is not StepKind.NODE:
        said.append(("bad", words.error(step.error)))
    elif step.has_failed:
        # Why is told by the call that failed, and by the node itself when it is opened.
        said.append(("bad", words("trace.step_failed")))
    if step.retries:
        said.append(("warn", words.counted("trace.retries", len(step.retries))))
    if step.source in _SOURCES:
        said.append(("", words(_SOURCES[step.source])))
    if step.model_label:
        said.append(("", _purpose(words, step)))
    if step.led_to:
        said.append(("", f"{words('trace.led_to')} {_node(words, step.led_to)}"))
    return said


def _purpose(words: Words, step: StepSummary) -> str:
    """Return which call of its node it was, in plain words; its name in the journal says it."""
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
    """Return an amount in as many digits as small prices need."""
    if not price_usd:
        return "$0"
    return f"${price_usd:.3f}" if price_usd >= 0.001 else f"${price_usd:.5f}"


def _plain(value: JsonValue) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)


# What the templates call beside `t`.
FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "lines": _lines,
    "about": _about,
    "node": _node,
    "tokens": _tokens,
    "took": _took,
    "dollars": _dollars,
    "plain": _plain,
}

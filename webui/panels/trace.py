"""The trace on the stage: each turn of the conversation with its steps, a line each, that open.

Python writes the frame once and the turns when they are looked at (`webui.trace_routes`); what an opened step holds is
`webui.trace_details`'s. assets/trace.js puts the one into the other, and never closes what is open.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape
from urllib.parse import quote

import gradio as gr

from agent import StepKind, StepSummary, Turn, TurnState
from webui.icons import icon
from webui.panels.flat import flat
from webui.words import Words

_MOST_WORDS = 200
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
    def calls(self) -> list[StepSummary]:
        """Its calls of models and tools."""
        return [step for step in self.steps if step.kind is not StepKind.NODE]


def build_trace() -> gr.HTML:
    """Return the trace, empty until a visitor is known."""
    return flat("trace")


def trace_html(words: Words) -> str:
    """Return the pane without a turn: they come when it is looked at."""
    told = {"failed": words("trace.failed"), "retry": words("action.retry"), "loading": words("trace.loading")}
    sentences = "".join(f' data-{name}="{escape(sentence)}"' for name, sentence in told.items())
    save, errors = escape(words("trace.download_all")), escape(words("trace.errors_only"))
    empty = (
        f'<div class="empty" hidden><div class="empty-art">{icon("list-tree", 26)}</div>'
        f"<h3>{escape(words('trace.empty'))}</h3><p>{escape(words('trace.empty_text'))}</p></div>"
    )
    return (
        f'<div class="trc"{sentences}><div class="trc-bar"><button type="button" class="chip toggle" '
        f'data-trace="errors" aria-pressed="false">{icon("triangle-alert", 14)}<span>{errors}</span></button>'
        f'<span class="grow"></span><a class="b line" data-trace="save" download>{icon("download")}'
        f'<span>{save}</span></a></div><div class="trc-scroll" tabindex="-1" role="region" '
        f'aria-label="{escape(words("trace.label"))}"><p class="trc-note" role="status"></p>'
        f'<div class="trc-start"></div><div class="trc-turns"></div>{empty}'
        f'<p class="trc-none" hidden>{escape(words("trace.no_errors"))}</p></div></div>'
    )


def turn_html(words: Words, conversation_id: str, traced: TracedTurn, *, is_open: bool) -> str:
    """Return a turn: its words, its sums and, when it is open, its steps."""
    turn = traced.turn
    said = " ".join(turn.text.split())[:_MOST_WORDS] or words("trace.no_words")
    trouble = " trouble" if any(step.is_trouble for step in traced.steps) else ""
    shown = inside_html(words, conversation_id, traced) if is_open else ""
    name = f"<b>{escape(words('trace.turn', number=traced.place))}</b>{_state(words, turn.state)}"
    return (
        f'<details class="trc-turn{trouble}" data-turn="{escape(turn.id)}"{" open" if is_open else ""}'
        f'{"" if is_open else " data-lazy"}><summary>{icon("chevron-right", 15)}<span class="trc-head">'
        f"{name}<time>{_moment(turn.started_at)}</time>"
        f'<span class="trc-words">{escape(said)}</span><span class="trc-brief">{_brief(words, traced)}</span></span>'
        f'</summary><div class="trc-in">{shown}</div></details>'
    )


def _state(words: Words, state: TurnState) -> str:
    match state:
        case TurnState.RUNNING:
            return f'<em class="trc-live">{escape(words("trace.running"))}</em>'
        case TurnState.FAILED:
            return f'<em class="bad">{escape(words("trace.turn_failed"))}</em>'
        case TurnState.STOPPED:
            return f"<em>{escape(words('trace.cancelled'))}</em>"
        case _:
            return ""


def inside_html(words: Words, conversation_id: str, traced: TracedTurn) -> str:
    """Return what an opened turn shows: four figures, what can be done with it, the steps."""
    if not traced.steps:
        key = "trace.running" if traced.turn.state is TurnState.RUNNING else "trace.nothing_kept"
        return f'<p class="trc-gone">{escape(words(key))}</p>'
    address, save = trace_url(conversation_id, traced.turn.id), escape(words("trace.download_turn"))
    acts = copy_button(words, words("trace.copy_turn"), address)
    acts += f'<a class="b" href="{address}" download>{icon("download")}<span>{save}</span></a>'
    head = "".join(
        f"<span>{escape(words(key))}</span>" for key in ("trace.step", "trace.tokens", "trace.price", "trace.time")
    )
    return (
        f'<dl class="trc-sums">{_figures(words, traced)}</dl><div class="trc-acts">{acts}</div>'
        f'<div class="trc-cols" aria-hidden="true">{head}</div>'
        f'<div class="trc-steps" style="--total:{max(traced.seconds, 0.001):.3f}">{_steps(words, traced.steps)}</div>'
    )


def trace_url(conversation_id: str, turn_id: str = "", number: int | None = None) -> str:
    """Return the address of a step, a turn or a whole conversation as JSON."""
    parts = [quote(one, safe="") for one in (conversation_id, turn_id) if one]
    parts += [str(number)] if number is not None else []
    return f"aivista/trace/{'/'.join(parts)}.json"


def copy_button(words: Words, label: str, address: str) -> str:
    """Return a button that copies what is at the address."""
    return (
        f'<button type="button" class="b" data-act="copy_report" data-arg="{escape(address)}" '
        f'data-done="{escape(words("report.copied"))}" data-failed="{escape(words("report.not_copied"))}">'
        f"{icon('copy')}<span>{escape(label)}</span></button>"
    )


def dollars(price_usd: float) -> str:
    """Return an amount in as many digits as small prices need."""
    if not price_usd:
        return "$0"
    return f"${price_usd:.3f}" if price_usd >= 0.001 else f"${price_usd:.5f}"


def took(words: Words, seconds: float) -> str:
    """Return how long something took."""
    if seconds < 0.095:
        return words("trace.milliseconds", count=f"{seconds * 1000:.0f}" if seconds >= 0.0005 else "<1")
    return words("trace.seconds", count=f"{seconds:.1f}")


def _figures(words: Words, traced: TracedTurn) -> str:
    figures = {
        "trace.time": took(words, traced.seconds),
        "trace.price": dollars(sum(step.price_usd for step in traced.steps)),
        "trace.tokens": f"{sum(step.usage.total_tokens for step in traced.steps):,}",
        "trace.calls": str(len(traced.calls)),
    }
    return "".join(f"<div><dt>{escape(words(key))}</dt><dd>{escape(one)}</dd></div>" for key, one in figures.items())


def _brief(words: Words, traced: TracedTurn) -> str:
    if not traced.steps:
        return ""
    parts = [took(words, traced.seconds), dollars(sum(step.price_usd for step in traced.steps))]
    return escape(" · ".join([words.counted("trace.call_count", len(traced.calls)), *parts]))


def _steps(words: Words, steps: Sequence[StepSummary]) -> str:
    """Return the steps, those made in a node below it; one whose node has not ended yet stands below its name."""
    nodes = {step.number for step in steps if step.kind is StepKind.NODE}
    shown, begun = [], set[int]()
    for step in sorted(steps, key=lambda one: one.number):
        if step.within is not None and step.within not in nodes and step.within not in begun:
            begun.add(step.within)
            shown.append(_under_way(words, step.node, step.within))
        shown.append(_step(words, step))
    return "".join(shown)


def _under_way(words: Words, node: str, number: int) -> str:
    name = escape(node_name(words, node))
    return (
        f'<div class="trc-step node" data-number="{number}"><div class="trc-line">'
        f'{icon(_NODE_ICONS.get(node, "waypoints"))}<span class="trc-name"><b>{name}</b></span>'
        f'<span></span><span></span><span class="trc-live">{escape(words("trace.running"))}</span></div></div>'
    )


def _step(words: Words, step: StepSummary) -> str:
    is_node = step.kind is StepKind.NODE
    shape = _NODE_ICONS.get(step.name, "waypoints") if is_node else _CALL_ICONS.get(step.asks_for, "wrench")
    mended = "" if step.has_failed or step.was_cancelled else " mended"
    kind = f"{'node' if is_node else 'call'}{f' trouble{mended}' if step.is_trouble else ''}"
    bar = "" if is_node else f'<i style="--at:{step.at_s:.3f};--took:{step.seconds:.3f}"></i>'
    name = escape(node_name(words, step.name) if is_node else step.model_label or step.name)
    return (
        f'<details class="trc-step {kind}" data-number="{step.number}"><summary class="trc-line">{icon(shape)}'
        f'<span class="trc-name"><b{" class=model" if step.model_label else ""}>{name}</b>'
        f"<small>{_about(words, step)}</small></span><span>{_tokens(step)}</span><span>{_price(step)}</span>"
        f'<span>{escape(took(words, step.seconds))}</span>{bar}</summary><div class="trc-body"></div></details>'
    )


def _about(words: Words, step: StepSummary) -> str:
    """Return what a line says of its step beside the figures: trouble first, in a colour and in words."""
    parts = []
    if step.was_cancelled:
        parts.append(f'<em class="bad">{escape(words("trace.cancelled"))}</em>')
    elif step.error is not None and step.kind is not StepKind.NODE:
        parts.append(f'<em class="bad">{escape(words.error(step.error))}</em>')
    elif step.has_failed:
        # Why is told by the call that failed, and by the node itself when it is opened.
        parts.append(f'<em class="bad">{escape(words("trace.step_failed"))}</em>')
    if step.retries:
        parts.append(f'<em class="warn">{escape(words.counted("trace.retries", len(step.retries)))}</em>')
    if step.source in _SOURCES:
        parts.append(escape(words(_SOURCES[step.source])))
    if step.model_label:
        parts.append(escape(_purpose(words, step)))
    if step.led_to:
        parts.append(escape(f"{words('trace.led_to')} {node_name(words, step.led_to)}"))
    return " · ".join(parts)


def node_name(words: Words, node: str) -> str:
    """Return what a node of the turn's graph does, in plain words."""
    return words(f"node.{node if node in _NODES else 'other'}")


def _purpose(words: Words, step: StepSummary) -> str:
    """Return which call of its node it was, in plain words; its name in the journal says it."""
    if planned := re.fullmatch(r"planner:(\d+)", step.name):
        return words("trace.plan_step", number=planned[1])
    if painted := re.fullmatch(r"picture:\d+\.\d+\.(\d+)\.(\d+)", step.name):
        attempt = [words("trace.attempt", number=painted[2])] if painted[2] != "1" else []
        return words("did.join").join([words("trace.picture", number=int(painted[1]) + 1), *attempt])
    reviewed = re.fullmatch(r"critic:(#\S+)", step.name)
    return reviewed[1] if reviewed else node_name(words, step.node)


def _tokens(step: StepSummary) -> str:
    return f"{step.usage.total_tokens:,}" if step.kind is StepKind.MODEL else ""


def _price(step: StepSummary) -> str:
    return dollars(step.price_usd) if step.kind is StepKind.MODEL else ""


def _moment(when: datetime) -> str:
    """Return a moment for the page's script to say in the reader's own time zone."""
    utc = when.astimezone(UTC)
    return f'<span data-moment="{utc.isoformat(timespec="seconds")}">{utc:%Y-%m-%d %H:%M} UTC</span>'

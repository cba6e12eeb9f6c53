"""The card of calls that wait for the person's click: what would be done, why it is asked, and the exact arguments."""

from __future__ import annotations

import json
from collections.abc import Sequence
from html import escape

from pydantic import JsonValue

from agent.components import ConsentCard
from agent.plans import Ask
from webui.cards import View, button
from webui.icons import icon
from webui.words import Words

_REASONS = {
    "foreign_address": "consent.foreign_address",
    "overwrites": "consent.overwrites",
    "deletes": "consent.deletes",
    "may_change_something": "consent.may_change_something",
    "was_changed": "consent.was_changed",
}


def open_consent(view: View, asks: Sequence[Ask], turn_id: str, *, is_ready: bool = True) -> str:
    """Return the card of calls that wait. Until `is_ready` they are not on record and cannot be decided about."""
    words = view.words
    buttons = button("allow_calls", words("consent.allow"), "check", "solid", arg=turn_id, is_off=not is_ready)
    buttons += button("refuse_calls", words("consent.refuse"), "", "line", arg=turn_id, is_off=not is_ready)
    listed = "".join(_asked(words, ask) for ask in asks)
    return (
        f'<section class="card consent" role="group" aria-label="{escape(words("consent.title"))}">'
        f"<h3>{icon('shield-question-mark', 18)}{escape(words('consent.title'))}</h3>{listed}"
        f"<footer>{buttons}</footer></section>"
    )


def closed_consent(view: View, card: ConsentCard) -> str:
    """Return calls that were decided about, folded."""
    words = view.words
    head = words("consent.was_allowed") if card.is_allowed else words("consent.was_refused")
    names = words("did.join").join(dict.fromkeys(ask.tool for ask in card.asks))
    listed = "".join(_asked(words, ask) for ask in card.asks)
    return (
        f'<details class="plan-past"><summary>{icon("shield-check" if card.is_allowed else "ban", 15)}'
        f"<b>{escape(head)}</b><span>{escape(names)}</span>{icon('chevron-down', 14)}</summary>{listed}</details>"
    )


def _asked(words: Words, ask: Ask) -> str:
    rows = "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in _arguments(ask.arguments))
    return (
        f'<div class="ask"><p><b>{escape(ask.tool)}</b><span>{escape(words(_REASONS[ask.reason]))}</span></p>'
        f"<dl>{rows}</dl></div>"
    )


def _arguments(text: str) -> list[tuple[str, str]]:
    """Return the arguments' names and values, word for word; what was cut short is shown as it is."""
    try:
        read: JsonValue = json.loads(text)
    except ValueError:
        return [("", text)]
    if not isinstance(read, dict):
        return [("", text)]
    return [
        (name, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
        for name, value in read.items()
    ]

"""The card of calls that wait for the person's click: what would be done, why it is asked, and all of the arguments."""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from html import escape

from pydantic import JsonValue

from agent import Ask, ConsentCard, host_of, plain_text
from webui.cards import View, button
from webui.icons import icon
from webui.words import Words

_REASONS = {
    "foreign_address": "consent.foreign_address",
    "overwrites": "consent.overwrites",
    "deletes": "consent.deletes",
    "may_change_something": "consent.may_change_something",
    "was_changed": "consent.was_changed",
    "costs_money": "consent.costs_money",
}

# Controls, what formats its neighbours, private and unassigned characters, other line ends.
_NOT_PLAIN = re.compile(r"[^\n\t -~]")
_UNSEEN = frozenset({"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp"})


def open_consent(view: View, asks: Sequence[Ask], turn_id: str, *, is_ready: bool = True) -> str:
    """Return the card of calls that wait. Until `is_ready` they are not on record and cannot be decided about.

    *Allow* stays off until the end of the arguments has been in sight (assets/consent.js); `data-card` tells which
    arguments these were.
    """
    words = view.words
    name = hashlib.sha256("\n".join(ask.arguments for ask in asks).encode("utf-8", "replace")).hexdigest()[:16]
    buttons = button("allow_calls", words("consent.allow"), "check", "solid", arg=turn_id, is_off=True)
    buttons += button("refuse_calls", words("consent.refuse"), "", "line", arg=turn_id, is_off=not is_ready)
    return (
        f'<section class="card consent" role="group" aria-label="{escape(words("consent.title"))}" '
        f'data-card="{turn_id}.{name}"{" data-ready" if is_ready else ""}>'
        f"<h3>{icon('shield-question-mark', 18)}{escape(words('consent.title'))}</h3>{_asks(words, asks)}"
        f'<p class="unread" role="status">{escape(words("consent.unread"))}</p><footer>{buttons}</footer></section>'
    )


def closed_consent(view: View, card: ConsentCard) -> str:
    """Return calls that were decided about, folded."""
    words = view.words
    head = words("consent.was_allowed") if card.is_allowed else words("consent.was_refused")
    names = words("did.join").join(dict.fromkeys(ask.tool for ask in card.asks))
    return (
        f'<details class="plan-past"><summary>{icon("shield-check" if card.is_allowed else "ban", 15)}'
        f"<b>{escape(head)}</b><span>{escape(names)}</span>{icon('chevron-down', 14)}</summary>"
        f"{_asks(words, card.asks)}</details>"
    )


def _asks(words: Words, asks: Sequence[Ask]) -> str:
    """Return every call with all of its arguments, in one place that scrolls; its end can be looked for."""
    listed = "".join(_asked(words, ask) for ask in asks)
    label = escape(words("consent.arguments"))
    return f'<div class="asks" role="region" tabindex="0" aria-label="{label}">{listed}<i class="asks-end"></i></div>'


def _asked(words: Words, ask: Ask) -> str:
    rows = _cost(words, ask) if ask.reason == "costs_money" else _arguments(ask.arguments)
    url = next((value for name, value in rows if name == "url"), "")
    if ask.reason == "foreign_address" and (host := host_of(url)):
        rows.append((words("consent.server"), host))
    listed = "".join(f"<dt>{_seen(words, name)}</dt><dd>{_seen(words, value)}</dd>" for name, value in rows)
    return (
        f'<div class="ask"><p><b>{escape(ask.tool)}</b><span>{escape(words(_REASONS[ask.reason]))}</span></p>'
        f"<dl>{listed}</dl></div>"
    )


def _cost(words: Words, ask: Ask) -> list[tuple[str, str]]:
    """Return about what would be paid, and which cap has it asked about."""
    told = dict(_arguments(ask.arguments))
    cap = words("consent.cap_day" if told.get("cap") == "day" else "consent.cap_conversation")
    return [(words("consent.about"), f"≈ ${told.get('about_usd', '?')}"), (cap, f"${told.get('cap_usd', '?')}")]


def _seen(words: Words, text: str) -> str:
    """Return the text as HTML, each character of it to be seen: what shows nothing, or turns the direction of its
    neighbours, stands there by its number."""

    def shown(match: re.Match[str]) -> str:
        sign = match[0]
        if not _is_unseen(sign):
            return sign
        code = f"U+{ord(sign):04X}"
        return f'<s title="{escape(words("consent.unseen", code=code))}">{code}</s>'

    return _NOT_PLAIN.sub(shown, escape(text))


@lru_cache(maxsize=4096)
def _is_unseen(sign: str) -> bool:
    return unicodedata.category(sign) in _UNSEEN or plain_text(sign) == ""


def _arguments(text: str) -> list[tuple[str, str]]:
    """Return the arguments' names and values, word for word; what is no object is shown as it is."""
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

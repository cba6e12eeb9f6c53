"""A wish that was written out, above the composer: what was added and removed, and the choice to take it or not."""

from __future__ import annotations

from html import escape

from agent import ExpandedPrompt
from webui.icons import icon
from webui.spend import dollars
from webui.word_diff import diff_html, word_diff
from webui.words import Words


def fuller_html(words: Words, ticket: str, before: str, written: ExpandedPrompt) -> str:
    """Return the fuller wish beside the one it came from. `ticket` names the question, so that a late answer to an
    earlier one is left alone; the page's script takes the words from `data-text`, and says `data-heard` aloud."""
    if written.by == "nobody":
        return _line(ticket, "same", words("fuller.only_new"), words)
    if written.text == before.strip():
        return _line(ticket, "same", words("fuller.same"), words)
    by = words("fuller.by_rules")
    if written.by == "model":
        by = words("fuller.by_model", model=written.label, price=dollars(written.price_usd))
    pieces = word_diff(before.strip(), written.text)
    heard = f"{words('fuller.title')}: {written.text}"
    return (
        f'<section class="fuller" data-ticket="{escape(ticket)}" data-text="{escape(written.text)}" '
        f'data-heard="{escape(heard)}" aria-label="{escape(words("fuller.title"))}">'
        f"<header>{icon('sparkles', 15)}<b>{escape(words('fuller.title'))}</b><small>{escape(by)}</small></header>"
        f'<p class="words" tabindex="0">{diff_html(pieces)}</p>'
        f"<footer><small>{escape(words('fuller.unsent'))}</small><span class='grow'></span>"
        f'<button type="button" class="b line" data-aid="keep_wish">{escape(words("fuller.keep"))}</button>'
        f'<button type="button" class="b solid" data-aid="take_wish">{escape(words("fuller.take"))}</button>'
        f'</footer><p class="took">{icon("sparkles", 15)}<span>{escape(words("fuller.taken"))}</span>'
        f'<button type="button" class="b" data-aid="undo_wish">{icon("undo-2", 15)}{escape(words("fuller.undo"))}'
        f"</button>{_close(words)}</p></section>"
    )


def refused_html(words: Words, ticket: str, sentence: str) -> str:
    """Return why the wish was not written out."""
    return _line(ticket, "bad", sentence, words)


def _line(ticket: str, look: str, text: str, words: Words) -> str:
    name, heard, role = "circle-check", f' data-heard="{escape(text)}"', ""
    if look == "bad":
        name, heard, role = "circle-alert", "", ' role="alert"'
    return (
        f'<section class="fuller line {look}" data-ticket="{escape(ticket)}"{heard}><p{role}>{icon(name, 15)}'
        f"<span>{escape(text)}</span>{_close(words)}</p></section>"
    )


def _close(words: Words) -> str:
    name = escape(words("action.close"))
    return (
        f'<button type="button" class="b icon" data-aid="keep_wish" aria-label="{name}" title="{name}">'
        f"{icon('x', 15)}</button>"
    )

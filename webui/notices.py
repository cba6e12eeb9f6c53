"""How a turn ended when it did not end well: failed, cut off, stopped, refused. Calm where the person can act."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from agent.errors import Actor, ErrorCode, ErrorInfo
from webui.cards import View, button
from webui.icons import icon
from webui.words import Words

_HEAD_ICONS = {
    Actor.POLICY: "shield-alert",
    Actor.KEY: "key-round",
    Actor.NETWORK: "wifi-off",
    Actor.YOU: "circle-alert",
}


def failure(view: View, error: ErrorInfo, turn_id: str) -> str:
    """Return the card of a failed turn: who must act, why, what is kept, and the ways on.

    Without `turn_id` nothing was stored: the words are back in the composer and there is nothing to retry.
    """
    words, is_unknown = view.words, error.code is ErrorCode.CALL_UNKNOWN
    # Nobody failed where an answer never came: the person decides whether it is asked for again.
    actor = error.code.value if is_unknown else error.actor.value
    rows = [
        (words("failure.who"), words(f"failure.who_{actor}")),
        (words("failure.why"), words.error(error)),
        (words("failure.kept"), words("failure.kept_text")),
    ]
    if error.provider_detail:
        rows.append((words("failure.detail"), error.provider_detail[:300]))
    listed = "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in rows)
    buttons = []
    if turn_id:
        buttons.append(button("retry", words("action.retry"), "rotate-ccw", "solid", arg=turn_id))
        buttons.append(button("edit_words", words("action.edit_words"), "pencil", "line", arg=turn_id))
    if error.actor is Actor.KEY:
        buttons.append(button("settings", words("action.settings"), "key-round", "line"))
    is_calm = is_unknown or error.actor in (Actor.YOU, Actor.KEY)
    return (
        f'<section class="card {"calm" if is_calm else "refusal"}" role="alert" data-code="{error.code.value}">'
        f"<h3>{icon(_HEAD_ICONS.get(error.actor, 'circle-alert'), 18)}{escape(words(f'failure.title_{actor}'))}</h3>"
        f"<dl>{listed}</dl>{_foot(view, buttons, turn_id)}</section>"
    )


def interrupted(view: View, may_have_been_charged: int, turn_id: str) -> str:
    """Return the card of a turn that the end of the studio cut off: what may have been charged, and how it goes on."""
    words, count = view.words, may_have_been_charged
    charged = words.counted("interrupted.charged", count) if count > 0 else words("interrupted.not_charged")
    buttons = [
        button("retry", words("interrupted.go_on"), "play", "solid", arg=turn_id),
        button("edit_words", words("action.edit_words"), "pencil", "line", arg=turn_id),
    ]
    return (
        f'<section class="card calm cut-off" role="status"><h3>{icon("unplug", 18)}'
        f"{escape(words('interrupted.title'))}</h3><p>{escape(charged)}</p><p>{escape(words('interrupted.text'))}</p>"
        f"{_foot(view, buttons, turn_id)}</section>"
    )


def refused(words: Words, sentence: str) -> str:
    """Return the card of a click that could not be carried out."""
    return (
        f'<section class="card calm" role="alert"><h3>{icon("circle-alert", 18)}'
        f"{escape(words('failure.title_you'))}</h3><p>{escape(sentence)}</p></section>"
    )


def stopped(words: Words) -> str:
    """Return the line of a turn that the person stopped."""
    return f'<p class="stopped" role="status">{icon("circle-stop", 15)}{escape(words("stopped.text"))}</p>'


def _foot(view: View, buttons: Sequence[str], turn_id: str) -> str:
    """Return the ways on, and after them the report of a turn that is on record."""
    report = _report(view, turn_id) if turn_id else ""
    return f"<footer>{''.join(buttons)}{report}</footer>" if buttons or report else ""


def _report(view: View, turn_id: str) -> str:
    words, address = view.words, escape(view.report_url(turn_id))
    copy, save = words("report.copy"), words("report.download")
    return (
        f'<span class="report"><button type="button" class="b" data-act="copy_report" data-arg="{address}" '
        f'data-done="{escape(words("report.copied"))}" data-failed="{escape(words("report.not_copied"))}">'
        f'{icon("copy")}<span aria-live="polite">{escape(copy)}</span></button>'
        f'<a class="b" href="{address}" download>{icon("download")}<span>{escape(save)}</span></a></span>'
    )

"""How a turn ended when it did not end well: failed, cut off, stopped, refused. Calm where the person can act."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from agent import Actor, Charge, ErrorCode, ErrorInfo
from webui.cards import View, button
from webui.icons import icon
from webui.next_steps import next_step
from webui.words import Words

_HEAD_ICONS = {
    Actor.POLICY: "shield-alert",
    Actor.KEY: "key-round",
    Actor.NETWORK: "wifi-off",
    Actor.YOU: "circle-alert",
}


# Those who act when a call of a model failed: of such a one it is told whether it was charged.
_OF_A_CALL = frozenset({Actor.KEY, Actor.POLICY, Actor.PROVIDER, Actor.NETWORK})

# What the provider gives as its reason, in words that say something.
_REASONS = {
    "SAFETY": "reason.safety",
    "IMAGE_SAFETY": "reason.safety",
    "PROHIBITED_CONTENT": "reason.prohibited",
    "IMAGE_PROHIBITED_CONTENT": "reason.prohibited",
    "BLOCKLIST": "reason.blocklist",
    "SPII": "reason.personal",
    "RECITATION": "reason.recitation",
    "IMAGE_RECITATION": "reason.recitation",
    "JAILBREAK": "reason.jailbreak",
    "NO_IMAGE": "reason.no_image",
    "IMAGE_OTHER": "reason.other",
    "OTHER": "reason.other",
}


def failure_sentence(words: Words, error: ErrorInfo) -> str:
    """Return the sentence of a failure, with the provider's reason in words beside its code."""
    reason = str(error.parameters.get("reason", ""))
    if reason not in _REASONS:
        return words.error(error)
    told = words("reason.with_code", reason=words(_REASONS[reason]), code=reason)
    return words.error(error.model_copy(update={"parameters": {**error.parameters, "reason": told}}))


def failure(view: View, error: ErrorInfo, turn_id: str, rewordings: Sequence[str] = ()) -> str:
    """Return the card of a failed turn: who refused, who must act, why, whether the same can help, and the ways on.

    `rewordings` are other wishes, each of which a click puts into the composer. Without `turn_id` nothing was stored:
    the words are back in the composer and there is nothing to retry.
    """
    words, is_unknown = view.words, error.code is ErrorCode.CALL_UNKNOWN
    # Nobody failed where an answer never came: the person decides whether it is asked for again.
    actor = error.code.value if is_unknown else error.actor.value
    title = words(f"failure.title_refused_{error.refused}") if error.refused else words(f"failure.title_{actor}")
    listed = "".join(f"<dt>{escape(name)}</dt><dd>{value}</dd>" for name, value in _rows(words, error, actor, turn_id))
    is_calm = is_unknown or error.actor in (Actor.YOU, Actor.KEY)
    ways_on = _ways_on(words, error, turn_id, has_rewordings=bool(rewordings), price=view.turn_price)
    return (
        f'<section class="card {"calm" if is_calm else "refusal"}" role="alert" data-code="{error.code.value}">'
        f"<h3>{icon(_HEAD_ICONS.get(error.actor, 'circle-alert'), 18)}{escape(title)}</h3>"
        f"<dl>{listed}</dl>{_rewordings(words, rewordings)}"
        f"{_foot(view, [*_picture_to_keep(view, error), *ways_on], turn_id)}</section>"
    )


def _rows(words: Words, error: ErrorInfo, actor: str, turn_id: str) -> list[tuple[str, str]]:
    """Return the rows of the card, their values as HTML."""
    rows = []
    if error.refused:
        said = words(f"failure.refused_{error.refused}", **error.sentence_parameters)
        rows.append((words("failure.refused_by"), escape(said)))
    place = next_step(error.code)
    rows += [
        (words("failure.who"), escape(words(f"failure.who_{actor}"))),
        (words("failure.why"), f"<span>{escape(failure_sentence(words, error))}{f' {place}' if place else ''}</span>"),
    ]
    if turn_id and error.code is not ErrorCode.CALL_UNKNOWN:
        rows.append((words("failure.again"), escape(_same_again(words, error))))
    if error.actor in _OF_A_CALL or error.charged is not Charge.NO:
        rows.append((words("failure.charged"), escape(words(f"failure.charged_{error.charged.value}"))))
    rows.append((words("failure.kept"), escape(words("failure.kept_text"))))
    if error.provider_detail:
        rows.append((words("failure.detail"), escape(error.provider_detail[:300])))
    return rows


def _same_again(words: Words, error: ErrorInfo) -> str:
    """Return whether sending the very same message again can help."""
    if error.can_retry:
        return words("failure.again_helps")
    return words("failure.again_refused" if error.refused else "failure.again_same")


def _rewordings(words: Words, offers: Sequence[str]) -> str:
    if not offers:
        return ""
    chips = "".join(button("say", one, style="example", arg=one) for one in offers)
    name = escape(words("failure.other_words"))
    return (
        f'<h4>{name}</h4><div class="examples" role="group" aria-label="{name}">{chips}</div>'
        f'<p class="hint">{escape(words("failure.other_words_hint"))}</p>'
    )


def _ways_on(words: Words, error: ErrorInfo, turn_id: str, *, has_rewordings: bool, price: str = "") -> list[str]:
    """Return the buttons, the likeliest way on first and filled."""
    buttons = []
    if error.actor is Actor.KEY:
        buttons.append(button("settings", words("action.settings"), "key-round", "solid"))
    if turn_id:
        is_first = error.can_retry and not has_rewordings and error.actor is not Actor.KEY
        style = "solid" if is_first else "line"
        buttons.append(button("retry", words("action.retry"), "rotate-ccw", style, arg=turn_id, price=price))
        buttons.append(button("edit_words", words("action.edit_words"), "pencil", "line", arg=turn_id))
    return buttons


def interrupted(view: View, may_have_been_charged: int, turn_id: str) -> str:
    """Return the card of a turn that the end of the studio cut off: what may have been charged, and how it goes on."""
    words, count = view.words, may_have_been_charged
    charged = words.counted("interrupted.charged", count) if count > 0 else words("interrupted.not_charged")
    buttons = [
        button("retry", words("interrupted.go_on"), "play", "solid", arg=turn_id, price=view.turn_price),
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


def _picture_to_keep(view: View, error: ErrorInfo) -> list[str]:
    """Return the download of a picture that was paid for and that the full disk does not take."""
    digest, handle = error.parameters.get("digest"), error.parameters.get("handle")
    if error.code is ErrorCode.PICTURE_NOT_RECORDED and digest:
        address = view.unrecorded_url(str(digest))
    elif error.code is ErrorCode.PICTURE_NOT_SAVED and handle:
        address = view.url(str(handle), is_download=True, kind="clean")
    else:
        return []
    label = escape(view.words("action.download"))
    return [f'<a class="b primary" href="{escape(address)}" download>{icon("download")}<span>{label}</span></a>']


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

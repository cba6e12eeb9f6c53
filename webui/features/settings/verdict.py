"""What the test of a key found, in plain words: the key, the text models, the image models, and who must act."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from pydantic import SecretStr

from agent import IMAGE_ROLES, Actor, ErrorInfo, KeyDiagnosis, ModelStanding
from webui.icons import icon
from webui.notices import KEYS_PAGE, next_step, place_link
from webui.words import Words

_TAIL_CHARACTERS = 4


def verdict_html(words: Words, diagnosis: KeyDiagnosis) -> str:
    """Return what was found: one line for the key, one for each group of models that stand alike."""
    if diagnosis.problem is not None:
        return verdict(_problem(words, words(f"failure.title_{diagnosis.problem.actor.value}"), diagnosis.problem))
    lines = [line("circle-check", "ok", words("keytest.accepted"))]
    kinds = (
        ("keytest.text", [one for one in diagnosis.models if one.role not in IMAGE_ROLES]),
        ("keytest.pictures", [one for one in diagnosis.models if one.role in IMAGE_ROLES]),
    )
    for kind, standings in kinds:
        lines += [_group(words, words(kind), alike) for alike in _alike(standings)]
    return verdict("".join(lines))


def state_html(
    words: Words,
    session: SecretStr | None,
    kept: SecretStr | None,
    *,
    has_operator_key: bool,
    has_own_server: bool = False,
) -> str:
    """Return which key is in use, by its last four characters at most, and which others it goes before.

    The key of the session goes first, then the one kept on this machine, then that of the studio's environment.
    """
    used = session or kept
    if used is not None:
        name = "keytest.in_session" if session is not None else "keytest.on_machine"
        behind = [words("keytest.before_kept", tail=tail(kept))] if session is not None and kept is not None else []
        behind += [words("keytest.before_operator")] if has_operator_key else []
        return verdict(line("circle-check", "ok", words(name, tail=tail(used)), *behind))
    if has_operator_key:
        return verdict(line("circle-check", "ok", words("settings.key_operator"), words("keytest.yours_first")))
    get = f"{escape(words('settings.get'))} {place_link(words, KEYS_PAGE)}"
    if has_own_server:
        return verdict(line("circle-check", "ok", words("settings.key_server"), more_html=get))
    return verdict(line("key-round", "", words("settings.key_none"), more_html=get))


def tail(key: SecretStr) -> str:
    """Return the last four characters of a key; of one that is hardly longer, none."""
    text = key.get_secret_value()
    return text[-_TAIL_CHARACTERS:] if len(text) > 2 * _TAIL_CHARACTERS else "…"


def note_html(words: Words, key: str) -> str:
    """Return one calm sentence in the verdict's place."""
    return verdict(line("info", "", words(key)))


def verdict(lines: str) -> str:
    """Return the lines as one box that is read out when it changes."""
    return f'<div class="keyres" role="status"><ul>{lines}</ul></div>'


def line(icon_name: str, tone: str, text: str, *more: str, more_html: str = "") -> str:
    """Return one line: what it says, and more beneath it in smaller letters; `more_html` is trusted."""
    small = "".join(f"<small>{escape(one)}</small>" for one in more if one)
    small += f"<small>{more_html}</small>" if more_html else ""
    return f'<li class="{tone}">{icon(icon_name, 17)}<span>{escape(text)}{small}</span></li>'


def _alike(standings: Sequence[ModelStanding]) -> list[list[ModelStanding]]:
    """Return the models in groups that stand alike, in the order in which they come."""
    groups: dict[str, list[ModelStanding]] = {}
    for one in standings:
        state = one.problem.code.value if one.problem else f"{one.is_tried}"
        groups.setdefault(state, []).append(one)
    return list(groups.values())


def _group(words: Words, kind: str, alike: Sequence[ModelStanding]) -> str:
    first, names = alike[0], words("did.join").join(dict.fromkeys(one.label for one in alike))
    title = words("keytest.models", kind=kind, names=names)
    if first.problem is not None:
        told = first.problem.model_copy(update={"parameters": {**first.problem.parameters, "model": names}})
        return _problem(words, title, told)
    return line("circle-check", "ok", title, words("keytest.works" if first.is_tried else "keytest.offered"))


def _problem(words: Words, title: str, problem: ErrorInfo) -> str:
    """Return a line with what is wrong, who must act, and where. What passes by itself is told calmly."""
    who, place = words(f"failure.who_{problem.actor.value}"), next_step(words, problem.code)
    told = f"{escape(words.error(problem))}{f' {place}' if place else ''}"
    tone = "bad" if problem.actor in (Actor.KEY, Actor.NETWORK, Actor.OPERATOR) else ""
    act = f'<small class="act"><b>{escape(words("failure.who"))}</b> {escape(who)}</small>'
    return (
        f'<li class="{tone}" data-code="{problem.code.value}">{icon("circle-alert", 17)}<span>{escape(title)}'
        f"<small>{told}</small>{act}</span></li>"
    )

"""What the test of a key found, in plain words: the key, the text models, the image models, and who must act."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from markupsafe import Markup
from pydantic import SecretStr

from agent import IMAGE_ROLES, Actor, ErrorInfo, KeyDiagnosis, ModelStanding
from webui.features.thread.notices import KEYS_PAGE, next_step, place_link
from webui.shell.templates import render
from webui.words import Words

_TAIL_CHARACTERS = 4


def verdict_html(words: Words, diagnosis: KeyDiagnosis) -> Markup:
    """Return what was found: one line for the key, one for each group of models that stand alike."""
    if diagnosis.problem is not None:
        title = words(f"failure.title_{diagnosis.problem.actor.value}")
        return verdict(words, _problem(words, title, diagnosis.problem))
    lines = [Line("circle-check", "ok", words("keytest.accepted"))]
    kinds = (
        ("keytest.text", [one for one in diagnosis.models if one.role not in IMAGE_ROLES]),
        ("keytest.pictures", [one for one in diagnosis.models if one.role in IMAGE_ROLES]),
    )
    for kind, standings in kinds:
        lines += [_group(words, words(kind), alike) for alike in _alike(standings)]
    return verdict(words, *lines)


def state_html(
    words: Words,
    session: SecretStr | None,
    kept: SecretStr | None,
    *,
    has_operator_key: bool,
    has_own_server: bool = False,
) -> Markup:
    """Return which key is in use, by its last four characters at most, and which others it goes before.

    The key of the session goes first, then the one kept on this machine, then that of the studio's environment.
    """
    used = session or kept
    if used is not None:
        name = "keytest.in_session" if session is not None else "keytest.on_machine"
        behind = [words("keytest.before_kept", tail=tail(kept))] if session is not None and kept is not None else []
        behind += [words("keytest.before_operator")] if has_operator_key else []
        return verdict(words, Line("circle-check", "ok", words(name, tail=tail(used)), behind))
    if has_operator_key:
        first = [words("keytest.yours_first")]
        return verdict(words, Line("circle-check", "ok", words("settings.key_operator"), first))
    get = [Markup("{} {}").format(words("settings.get"), place_link(words, KEYS_PAGE))]
    if has_own_server:
        return verdict(words, Line("circle-check", "ok", words("settings.key_server"), get))
    return verdict(words, Line("key-round", "", words("settings.key_none"), get))


def tail(key: SecretStr) -> str:
    """Return the last four characters of a key; of one that is hardly longer, none."""
    text = key.get_secret_value()
    return text[-_TAIL_CHARACTERS:] if len(text) > 2 * _TAIL_CHARACTERS else "…"


def note_html(words: Words, key: str) -> Markup:
    """Return one calm sentence in the verdict's place."""
    return verdict(words, Line("info", "", words(key)))


class Line(NamedTuple):
    """A line of the box: what it says, and more beneath it in smaller letters; of a problem its code and who must
    act."""

    icon: str
    tone: str
    text: str
    more: Sequence[str | Markup] = ()
    code: str = ""
    who: str = ""


def verdict(words: Words, *lines: Line) -> Markup:
    """Return the lines as one box that is read out when it changes."""
    return render("settings/verdict.html", words, lines=lines)


def _alike(standings: Sequence[ModelStanding]) -> list[list[ModelStanding]]:
    """Return the models in groups that stand alike, in the order in which they come."""
    groups: dict[str, list[ModelStanding]] = {}
    for one in standings:
        state = one.problem.code.value if one.problem else f"{one.is_tried}"
        groups.setdefault(state, []).append(one)
    return list(groups.values())


def _group(words: Words, kind: str, alike: Sequence[ModelStanding]) -> Line:
    first, names = alike[0], words("did.join").join(dict.fromkeys(one.label for one in alike))
    title = words("keytest.models", kind=kind, names=names)
    if first.problem is not None:
        told = first.problem.model_copy(update={"parameters": {**first.problem.parameters, "model": names}})
        return _problem(words, title, told)
    return Line("circle-check", "ok", title, [words("keytest.works" if first.is_tried else "keytest.offered")])


def _problem(words: Words, title: str, problem: ErrorInfo) -> Line:
    """Return a line with what is wrong, who must act, and where. What passes by itself is told calmly."""
    told = Markup("{} {}").format(words.error(problem), next_step(words, problem.code)).strip()
    tone = "bad" if problem.actor in (Actor.KEY, Actor.NETWORK, Actor.OPERATOR) else ""
    who = words(f"failure.who_{problem.actor.value}")
    return Line("circle-alert", tone, title, [told], problem.code.value, who)

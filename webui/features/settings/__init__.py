"""The settings: the key (tested before it is trusted, kept where the user chooses), spending caps, defaults of new
conversations, theme and language, location of the data, the operator's MCP servers, and the version.

No answer holds more of a key than its last four characters.
"""

from __future__ import annotations

import asyncio
import os
import stat
import webbrowser
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, NamedTuple

from markupsafe import Markup
from pydantic import JsonValue, SecretStr, ValidationError

from agent import (
    IMAGE_ROLES,
    OPERATOR,
    Actor,
    Backups,
    ErrorInfo,
    KeyDiagnosis,
    ModelStanding,
    Preferences,
    ServerProblem,
    ServerState,
    Value,
    program_version,
)
from webui.features.composer import ChosenSettings, fixed
from webui.features.thread.steps import KEYS_PAGE, next_step, place_link
from webui.shell.actions import Context, Feature
from webui.shell.templates import Patch, Reply, Toast, render
from webui.words import LANGUAGES, Words, load_words

settings = Feature("settings")
MAX_KEY_CHARACTERS = 400
# Nothing is wrong with these: they were not needed yet, or are connecting.
_CALM: frozenset[ServerProblem] = frozenset({"not_asked", "connecting", "not_when_public"})
# The studio may offer other models now: the page refreshes its choices, prices and surroundings.
_SERVED: dict[str, JsonValue] = {"served": True}
_TAIL_CHARACTERS = 4


class Typed(Value):
    """A typed key, and where to keep it."""

    key: SecretStr = SecretStr("")
    keep: Literal["session", "machine"] = "session"

    @property
    def found(self) -> SecretStr | None:
        """The typed key, or None when it is empty or cannot be one."""
        key = self.key.get_secret_value().strip()
        is_plausible = 0 < len(key) <= MAX_KEY_CHARACTERS and key.isascii() and key.isprintable()
        return SecretStr(key) if is_plausible else None


class Defaults(Value):
    """Whether new conversations begin with the settings that are chosen now."""

    are_kept: bool


class Caps(Value):
    """The caps as typed, None for none."""

    day: JsonValue = None
    conversation: JsonValue = None


@settings.action
async def open(at: Context) -> Reply:
    """Show the settings as they are now."""
    shown = at.fragment("settings", "settings/dialog.html", **_key(at), **await _around(at))
    return Reply(patches=(shown,), events={"settings-opened": at.visitor.owner == OPERATOR})


@settings.action
async def test(at: Context, typed: Typed) -> Reply:
    """Test what the typed key can do, or without one the visitor's own."""
    key = typed.found or at.screen.sessions.key(at.visitor)
    if key is None and at.visitor.owner == OPERATOR:
        # A lent key is the operator's: nobody else learns about it, or spends its quota on tests.
        key = at.screen.key_in_use(at.visitor)
    if key is None:
        return _nothing_typed(at)
    found = verdict_html(at.words, await at.screen.studio().keys.test(key))
    return Reply(patches=(_verdict(found),), events=_SERVED)


@settings.action
async def save(at: Context, typed: Typed) -> Reply:
    """Keep the typed key where the user chose; the page tests it then."""
    sessions, key = at.screen.sessions, typed.found
    if key is not None and typed.keep == "machine" and sessions.kept is not None:
        sessions.kept.keep(key)
        # A key typed before would take precedence over the one that was just kept.
        sessions.hold_key(at.visitor, None)
    elif key is None or not sessions.hold_key(at.visitor, key):
        return _nothing_typed(at)
    return _changed(at, {"settings-saved": True})


@settings.action
async def remove(at: Context) -> Reply:
    """Forget the key in use: the session's first, then the one kept on this machine."""
    sessions = at.screen.sessions
    if sessions.session_key(at.visitor) is not None:
        sessions.hold_key(at.visitor, None)
    elif sessions.kept is not None:
        sessions.kept.remove()
    return _changed(at)


@settings.action
async def cap(at: Context, caps: Caps) -> Reply:
    """Save the spending caps."""
    given = {"cap_day_usd": caps.day, "cap_conversation_usd": caps.conversation}
    try:
        chosen = Preferences.model_validate(given, strict=True)
    except ValidationError:
        return Reply(toast=Toast(text=at.words("spend.caps_wrong"), is_problem=True))
    await at.screen.studio().preferences.keep(at.visitor.owner, chosen)
    return Reply(toast=Toast(text=at.words("spend.caps_saved")), events=_SERVED)


@settings.action
async def defaults(at: Context, given: Defaults) -> Reply:
    """Save the current settings as the defaults of new conversations, or remove the defaults."""
    chosen = at.state.chosen if given.are_kept else None
    kept = chosen.turn_settings() if chosen is not None else None
    await at.screen.studio().preferences.keep_defaults(at.visitor.owner, kept)
    sentence = at.words("defaults.kept" if chosen else "defaults.cleared")
    return Reply(
        patches=(at.fragment("set-new", "settings/new.html", **_defaults(at, chosen)),), toast=Toast(text=sentence)
    )


@settings.action
async def size(at: Context) -> Reply:
    """Show how much room the data takes; all files have to be looked at for that."""
    if at.visitor.owner != OPERATOR:
        return Reply()
    used = await asyncio.to_thread(_bytes_below, at.screen.studio().settings.home)
    return Reply(patches=(at.fragment("set-size", "settings/size.html", size=f"{used / 1e6:,.1f} MB"),))


@settings.action
async def open_folder(at: Context) -> Reply:
    """Open the folder of the data on the operator's own machine, in its file manager."""
    kept = at.screen.studio().settings
    if at.visitor.owner != OPERATOR or kept.is_public:
        return Reply(toast=Toast(text=at.words("refusal.nothing_here"), is_problem=True))
    if await asyncio.to_thread(webbrowser.open, kept.home.resolve().as_uri()):
        return Reply()
    return Reply(toast=Toast(text=at.words("data.not_opened"), is_problem=True))


@settings.action
async def back_up(at: Context) -> Reply:
    """Back up the database now; only the operator may."""
    if at.visitor.owner != OPERATOR:
        return Reply(toast=Toast(text=at.words("refusal.nothing_here"), is_problem=True))
    made = await asyncio.to_thread(Backups(at.screen.studio().settings.home).make, datetime.now(UTC))
    sentence = at.words("data.backed_up", name=made.path.name, size=f"{made.size_bytes / 1e6:,.1f} MB")
    shown = at.fragment("set-backup", "settings/backup.html", newest_backup=made.made_at)
    return Reply(patches=(shown,), toast=Toast(text=sentence))


def _changed(at: Context, events: Mapping[str, JsonValue] | None = None) -> Reply:
    """Return the form of the key as it is now, with an empty field."""
    return Reply(
        patches=(at.fragment("set-key", "settings/key.html", **_key(at)),), events={**_SERVED, **(events or {})}
    )


def _nothing_typed(at: Context) -> Reply:
    """Return one calm sentence in place of a result."""
    return Reply(patches=(_verdict(verdict(at.words, Line("info", "", at.words("settings.empty")))),))


def _verdict(html: str) -> Patch:
    return Patch(id="s-verdict", html=f'<div id="s-verdict">{html}</div>')


def _key(at: Context) -> dict[str, Any]:
    """Return the values of the key's form: which key is in use, and where another one may be kept."""
    sessions, visitor, settings_ = at.screen.sessions, at.visitor, at.screen.studio().settings
    is_private, typed = sessions.kept is not None, sessions.session_key(visitor)
    state = state_html(
        at.words,
        typed,
        sessions.kept.read() if sessions.kept is not None else None,
        has_operator_key=settings_.lent_key(visitor.owner) is not None,
        has_own_server=at.screen.planner(visitor).has_own_server,
    )
    is_of_session = typed is not None or not is_private
    return {
        "state": state,
        "is_private": is_private,
        "remove": ("settings.remove" if is_of_session else "keytest.remove_kept") if sessions.key(visitor) else "",
    }


def _defaults(at: Context, chosen: ChosenSettings | None) -> dict[str, Any]:
    return {"defaults": fixed(at.words, chosen) or [at.words("presets.all_auto")] if chosen else []}


async def _around(at: Context) -> dict[str, Any]:
    """Return the values of the other sections. Only the operator is told where the data is."""
    studio, visitor, is_operator = at.screen.studio(), at.visitor, at.visitor.owner == OPERATOR
    servers = [one for one in studio.mcp_servers() if one.problem is None or not studio.settings.is_public]
    kept = await studio.preferences.defaults(visitor.owner)
    backups = await asyncio.to_thread(Backups(studio.settings.home).all) if is_operator else ()
    planner = at.screen.planner(visitor)
    served = "sketch" if planner.is_sketch else "server" if planner.has_own_server else "gemini"
    return {
        "caps": await studio.preferences.of(visitor.owner),
        **_defaults(at, ChosenSettings.of(kept) if kept is not None else None),
        "languages": {one: load_words(one)("page.language") for one in LANGUAGES},
        "home": str(studio.settings.home) if is_operator else "",
        "can_open": not studio.settings.is_public,
        "newest_backup": backups[0].made_at if backups else None,
        "visitors": _visitors(at) if is_operator else [],
        "lines": [_server(at.words, one) for one in servers],
        "version": program_version(),
        "served": at.words(f"about.{served}"),
    }


def _visitors(at: Context) -> list[str]:
    """Return sentences on who can open the studio, and whose key pays for them."""
    words, sessions, kept = at.words, at.screen.sessions, at.screen.studio().settings
    if not (kept.is_public and sessions.is_shared):
        return [words("visitors.as_you" if kept.is_public else "visitors.none")]
    signed_in = [words("visitors.accounts")] if sessions.has_accounts else []
    return [words("visitors.others"), *signed_in, words("visitors.lent" if kept.lends_keys else "visitors.own_keys")]


def _bytes_below(folder: Path) -> int:
    total = 0
    # A folder that is gone meanwhile is passed over, and so is a file.
    for place, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                state = os.lstat(os.path.join(place, name))
                total += state.st_size if stat.S_ISREG(state.st_mode) else 0
    return total


def _server(words: Words, server: ServerState) -> Line:
    if server.problem is None:
        return Line("circle-check", "ok", server.name, [words.counted("mcp.tools", server.tools)])
    shape, tone = ("info", "") if server.problem in _CALM else ("circle-alert", "bad")
    return Line(shape, tone, server.name, [words(f"mcp.{server.problem}")])


# The result of a test of a key


def verdict_html(words: Words, diagnosis: KeyDiagnosis) -> Markup:
    """Return the result: one line for the key, and one for each group of models with the same standing."""
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
    words: Words, session: SecretStr | None, kept: SecretStr | None, *, has_operator_key: bool, has_own_server: bool
) -> Markup:
    """Return which key is in use, by its last four characters at most, and which others it takes precedence over.

    The session's key comes first, then the one kept on this machine, then the one in the studio's environment.
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
    """Return the last four characters of a key; empty for a key that is hardly longer."""
    text = key.get_secret_value()
    return text[-_TAIL_CHARACTERS:] if len(text) > 2 * _TAIL_CHARACTERS else "…"


class Line(NamedTuple):
    """A line of the result: its text, and more below in smaller letters; for a problem its code and who must act."""

    icon: str
    tone: str
    text: str
    more: Sequence[str | Markup] = ()
    code: str = ""
    who: str = ""


def verdict(words: Words, *lines: Line) -> Markup:
    """Return the lines as one box that screen readers announce when it changes."""
    return render("settings/verdict.html", words, lines=lines)


def _alike(standings: Sequence[ModelStanding]) -> list[list[ModelStanding]]:
    """Return the models in groups of the same standing, in order of appearance."""
    groups: dict[str, list[ModelStanding]] = {}
    for one in standings:
        state = one.problem.code.value if one.problem else f"{one.is_tried}"
        groups.setdefault(state, []).append(one)
    return list(groups.values())


def _group(words: Words, kind: str, alike: Sequence[ModelStanding]) -> Line:
    first, names = alike[0], words("did.join").join(dict.fromkeys(one.label for one in alike))
    title = words("keytest.models", kind=kind, names=names)
    if first.problem is not None:
        named = first.problem.model_copy(update={"parameters": {**first.problem.parameters, "model": names}})
        return _problem(words, title, named)
    return Line("circle-check", "ok", title, [words("keytest.works" if first.is_tried else "keytest.offered")])


def _problem(words: Words, title: str, problem: ErrorInfo) -> Line:
    """Return a line with what is wrong, who must act, and where. A passing problem is shown calmly."""
    text = Markup("{} {}").format(words.error(problem), next_step(words, problem.code)).strip()
    tone = "bad" if problem.actor in (Actor.KEY, Actor.NETWORK, Actor.OPERATOR) else ""
    who = words(f"failure.who_{problem.actor.value}")
    return Line("circle-alert", tone, title, [text], problem.code.value, who)

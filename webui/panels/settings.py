"""The settings dialog: a key for this session, tried before it is trusted, the caps of what may be spent, and how it
stands with the operator's MCP servers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import gradio as gr
from pydantic import SecretStr, ValidationError

from agent.errors import ErrorInfo
from agent.mcp.states import Problem, ServerState
from agent.storage.preferences import Preferences
from webui.cards import button
from webui.icons import icon
from webui.panels.flat import flat
from webui.words import Words

MAX_KEY_CHARACTERS = 400
_PROBLEMS: dict[Problem, str] = {
    "not_asked": "mcp.not_asked",
    "not_when_public": "mcp.not_when_public",
    "connecting": "mcp.connecting",
    "cannot_start": "mcp.cannot_start",
    "ended": "mcp.ended",
    "no_answer": "mcp.no_answer",
    "unreachable": "mcp.unreachable",
    "address_refused": "mcp.address_refused",
    "locked": "mcp.locked",
    "not_understood": "mcp.not_understood",
}
# Nothing is wrong with these: they have not been needed yet, or are on their way.
_CALM: frozenset[Problem] = frozenset({"not_asked", "connecting", "not_when_public"})


@dataclass(frozen=True)
class SettingsPanel:
    """The components of the dialog."""

    head: gr.HTML
    key: gr.Textbox
    test: gr.Button
    verdict: gr.HTML
    remove: gr.Button
    save: gr.Button
    cap_day: gr.Number
    cap_conversation: gr.Number
    caps_save: gr.Button
    caps_note: gr.HTML
    servers: gr.HTML


def build_settings() -> SettingsPanel:
    """Return the dialog, closed. Its key box never gets a value from us: the page's config would show it."""
    with gr.Column(elem_id="settings"), gr.Column(elem_id="settings-box"):
        head = flat("s-head")
        with gr.Row(elem_id="s-keyrow"):
            key = gr.Textbox(type="password", elem_id="s-key", scale=1, interactive=True, autofocus=False)
            test = gr.Button("", elem_id="s-test", scale=0, min_width=96)
        verdict = flat("s-verdict")
        with gr.Row(elem_id="s-foot"):
            remove = gr.Button("", elem_id="s-remove", scale=0, min_width=96)
            save = gr.Button("", variant="primary", elem_id="s-save", scale=0, min_width=96)
        with gr.Row(elem_id="s-caps"):
            cap_day, cap_conversation = (_amount(f"s-cap-{name}") for name in ("day", "conversation"))
            caps_save = gr.Button("", elem_id="s-caps-save", scale=0, min_width=96)
        caps_note = flat("s-caps-note")
        servers = flat("s-servers")
    caps = (cap_day, cap_conversation, caps_save, caps_note)
    return SettingsPanel(head, key, test, verdict, remove, save, *caps, servers)


def _amount(elem_id: str) -> gr.Number:
    # Without a least value: Gradio would refuse a smaller one in its own words.
    return gr.Number(label=elem_id, elem_id=elem_id, interactive=True, step=0.5, min_width=0)


def head_html(words: Words) -> str:
    """Return the dialog's title and what happens to a key."""
    return (
        f'<h2 id="set-title">{escape(words("settings.title"))}</h2>'
        f"{button('settings_close', words('action.close'), 'x', 'icon', bare=True)}"
        f"<p>{escape(words('settings.lead'))}</p>"
    )


def state_html(words: Words, key: SecretStr | None, *, has_operator_key: bool, has_own_server: bool = False) -> str:
    """Return which key is in use, by its last four characters at most, or what serves without one."""
    if key is not None:
        return _verdict("circle-check", "ok", words("settings.key_set", tail=key.get_secret_value()[-4:]))
    if has_operator_key:
        return _verdict("circle-check", "ok", words("settings.key_operator"))
    if has_own_server:
        return _verdict("circle-check", "ok", words("settings.key_server"), words("settings.get"))
    return _verdict("key-round", "", words("settings.key_none"), words("settings.get"))


def verdict_html(words: Words, error: ErrorInfo | None) -> str:
    """Return what the test of a key said."""
    if error is None:
        return _verdict("circle-check", "ok", words("settings.works"))
    return _verdict("circle-alert", "bad", words(f"failure.title_{error.actor.value}"), words.error(error))


def note_html(words: Words, key: str) -> str:
    """Return one calm sentence in the verdict's place."""
    return _verdict("info", "", words(key))


def _verdict(icon_name: str, tone: str, text: str, more: str = "") -> str:
    return f'<ul class="keyres" role="status">{_line(icon_name, tone, text, more)}</ul>'


def _line(icon_name: str, tone: str, text: str, more: str = "") -> str:
    small = f"<small>{escape(more)}</small>" if more else ""
    return f'<li class="{tone}">{icon(icon_name, 17)}<span>{escape(text)}{small}</span></li>'


def servers_html(words: Words, servers: Sequence[ServerState]) -> str:
    """Return how it stands with each MCP server, in a line; nothing where the operator lists none."""
    if not servers:
        return ""
    rows = "".join(_server(words, one) for one in servers)
    return f'<h3>{escape(words("mcp.title"))}</h3><ul class="keyres">{rows}</ul>'


def _server(words: Words, server: ServerState) -> str:
    if server.problem is None:
        return _line("circle-check", "ok", server.name, words.counted("mcp.tools", server.tools))
    sentence = words(_PROBLEMS[server.problem])
    if server.problem in _CALM:
        return _line("info", "", server.name, sentence)
    return _line("circle-alert", "bad", server.name, sentence)


def problem_html(sentence: str) -> str:
    """Return one sentence about what cannot be kept as it is."""
    return _verdict("circle-alert", "bad", sentence)


def cap_updates(words: Words, panel: SettingsPanel, chosen: Preferences) -> dict[Any, Any]:
    """Return the caps' fields in the visitor's words, filled with what they chose."""
    return {
        panel.cap_day: _field(words, words("spend.cap_day"), chosen.cap_day_usd),
        panel.cap_conversation: _field(words, words("spend.cap_conversation"), chosen.cap_conversation_usd),
        panel.caps_save: gr.update(value=words("spend.caps_save")),
        panel.caps_note: note_html(words, "spend.caps_lead"),
    }


def _field(words: Words, label: str, value: float | None) -> dict[str, Any]:
    update: dict[str, Any] = gr.update(label=label, value=value, placeholder=words("spend.no_cap"))
    return update


def read_caps(day: object, conversation: object) -> Preferences | None:
    """Return the caps as they were typed, an empty field for none, or None when one is no amount."""
    try:
        return Preferences.model_validate({"cap_day_usd": day, "cap_conversation_usd": conversation}, strict=True)
    except ValidationError:
        return None


def typed_key(text: str | None) -> SecretStr | None:
    """Return what was typed as a key, or None when it is empty or cannot be one."""
    key = (text or "").strip()
    is_plausible = 0 < len(key) <= MAX_KEY_CHARACTERS and key.isascii() and key.isprintable()
    return SecretStr(key) if is_plausible else None

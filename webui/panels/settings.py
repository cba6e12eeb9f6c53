"""The settings dialog: a key, tried before it is trusted and kept as its person chooses, the caps of what may be spent,
and how it stands with the operator's MCP servers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import gradio as gr
from pydantic import SecretStr, ValidationError

from agent import Preferences, ServerProblem, ServerState
from webui.cards import button
from webui.panels.flat import flat
from webui.panels.key_verdict import line, note_html
from webui.words import Words

MAX_KEY_CHARACTERS = 400
SESSION, MACHINE = "session", "machine"
_KEEPS = {SESSION: "keytest.keep_session", MACHINE: "keytest.keep_machine"}
_PROBLEMS: dict[ServerProblem, str] = {
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
_CALM: frozenset[ServerProblem] = frozenset({"not_asked", "connecting", "not_when_public"})


@dataclass(frozen=True)
class SettingsPanel:
    """The components of the dialog."""

    head: gr.HTML
    key: gr.Textbox
    keep: gr.Radio
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
        keep = gr.Radio([SESSION, MACHINE], value=SESSION, elem_id="s-keep", interactive=True, visible=False)
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
    return SettingsPanel(head, key, keep, test, verdict, remove, save, *caps, servers)


def _amount(elem_id: str) -> gr.Number:
    # Without a least value: Gradio would refuse a smaller one in its own words.
    return gr.Number(label=elem_id, elem_id=elem_id, interactive=True, step=0.5, min_width=0)


def head_html(words: Words, *, is_private: bool = False) -> str:
    """Return the dialog's title and what happens to a key; `is_private` where it may be kept on this machine."""
    lead = words("keytest.lead" if is_private else "settings.lead")
    return (
        f'<h2 id="set-title">{escape(words("settings.title"))}</h2>'
        f"{button('settings_close', words('action.close'), 'x', 'icon', bare=True)}"
        f"<p>{escape(lead)}</p>"
    )


def keep_update(words: Words, *, is_private: bool) -> dict[str, Any]:
    """Return the choice of where a key is kept; where others can come there is none."""
    choices = [(words(key), name) for name, key in _KEEPS.items()]
    update: dict[str, Any] = gr.update(label=words("keytest.keep"), choices=choices, visible=is_private)
    return update


def servers_html(words: Words, servers: Sequence[ServerState]) -> str:
    """Return how it stands with each MCP server, in a line; nothing where the operator lists none."""
    if not servers:
        return ""
    rows = "".join(_server(words, one) for one in servers)
    return f'<h3>{escape(words("mcp.title"))}</h3><ul class="keyres">{rows}</ul>'


def _server(words: Words, server: ServerState) -> str:
    if server.problem is None:
        return line("circle-check", "ok", server.name, words.counted("mcp.tools", server.tools))
    sentence = words(_PROBLEMS[server.problem])
    if server.problem in _CALM:
        return line("info", "", server.name, sentence)
    return line("circle-alert", "bad", server.name, sentence)


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

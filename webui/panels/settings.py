"""The settings dialog: a key for this session, tried before it is trusted."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

import gradio as gr
from pydantic import SecretStr

from agent.errors import ErrorInfo
from webui.cards import button
from webui.icons import icon
from webui.panels.flat import flat
from webui.words import Words

MAX_KEY_CHARACTERS = 400


@dataclass(frozen=True)
class SettingsPanel:
    """The components of the dialog."""

    head: gr.HTML
    key: gr.Textbox
    test: gr.Button
    verdict: gr.HTML
    remove: gr.Button
    save: gr.Button


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
    return SettingsPanel(head, key, test, verdict, remove, save)


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
    small = f"<small>{escape(more)}</small>" if more else ""
    return (
        f'<ul class="keyres" role="status"><li class="{tone}">{icon(icon_name, 17)}'
        f"<span>{escape(text)}{small}</span></li></ul>"
    )


def typed_key(text: str | None) -> SecretStr | None:
    """Return what was typed as a key, or None when it is empty or cannot be one."""
    key = (text or "").strip()
    is_plausible = 0 < len(key) <= MAX_KEY_CHARACTERS and key.isascii() and key.isprintable()
    return SecretStr(key) if is_plausible else None

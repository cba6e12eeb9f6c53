"""The files of a conversation on the stage: their tree, an editor, what a program of theirs says.

Python writes the frame once, in the visitor's words; assets/files.js and its neighbours fill it (`webui.file_routes`).
The editor is Gradio's own: the grid of assets/files.css lays it into the frame, and it comes when it is first needed.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import Any

import gradio as gr

from webui.file_kinds import MOST_EDITED_BYTES
from webui.icons import icon
from webui.panels.flat import flat
from webui.words import Words

_BUS = "window.aivistaEditorBus = { tell: () => trigger('click', {}) };"
# Runs in the page alone: what the script there wants of the editor, as an update of it.
_UPDATE = "() => ({ __type__: 'update', ...(window.aivistaEditor?.wanted() || {}) })"
_TOLD = (
    *("files.unsaved", "files.saved", "files.by_agent", "files.by_person", "files.name_label"),
    *("files.failed", "files.exists", "files.replace", "files.too_large", "files.long", "files.binary"),
    *("files.agent_changed", "files.other_changed", "files.was_deleted", "files.keep_mine"),
    *("files.take_theirs", "files.see_both", "files.hide_both", "files.close_file", "files.undo"),
    *("files.running", "files.editor", "files.more", "files.folder", "files.count", "files.count_one"),
    "files.untrusted",
)
_ICONS = {
    "text": "file-text",
    "code": "file-code",
    "picture": "image",
    "bytes": "file",
    "folder": "folder",
    "open": "folder-open",
    "agent": "sparkles",
    "more": "ellipsis",
}


@dataclass(frozen=True)
class FilesPanel:
    """The components: the frame, the editor in it, and what lets the page speak to the editor."""

    frame: gr.HTML
    editor: gr.Code
    bus: gr.HTML


def build_files() -> FilesPanel:
    """Return the pane, empty: it is filled when somebody looks at it."""
    with gr.Column(elem_id="files"):
        frame = flat("fi-frame")
        editor = gr.Code(
            elem_id="fi-code",
            interactive=True,
            visible=False,
            show_label=False,
            container=False,
            buttons=[],
            wrap_lines=True,
            lines=1,
        )
        bus = flat("fi-bus", js_on_load=_BUS)
    quiet: dict[str, Any] = {"show_progress": "hidden", "show_progress_on": [], "api_visibility": "private"}
    quiet["trigger_mode"] = "multiple"
    bus.click(None, None, editor, js=_UPDATE, **quiet)
    return FilesPanel(frame, editor, bus)


def files_html(words: Words) -> str:
    """Return the frame without a file: they come when it is looked at."""
    told = "".join(f' data-{_attribute(key)}="{escape(_said(words, key))}"' for key in _TOLD)
    icons = "".join(f'<i data-icon="{name}">{icon(shape, 15)}</i>' for name, shape in _ICONS.items())
    return (
        f'<div class="fi" data-language="{escape(words.language)}" data-most-edited="{MOST_EDITED_BYTES}"{told}>'
        f'{_side(words)}{_main(words)}<div class="fi-said" role="status"></div>{_menu(words)}'
        f'<div class="fi-drop" aria-hidden="true"><p>{escape(words("files.drop"))}</p></div>'
        f'<div class="fi-icons" hidden>{icons}</div></div>'
    )


def _said(words: Words, key: str) -> str:
    """Return a sentence with its parameters as signs for the page's script to fill in."""
    return words(key, **{one: f"{{{one}}}" for one in ("name", "names", "time", "count", "limit")})


def _attribute(key: str) -> str:
    return key.partition(".")[2].replace("_", "-")


def _side(words: Words) -> str:
    empty = (
        f'<div class="empty" hidden><div class="empty-art">{icon("folder-open", 26)}</div>'
        f"<h3>{escape(words('files.empty'))}</h3><p>{escape(words('files.empty_text'))}</p><div>"
        f"{_wide('new', words('files.new'), 'file-plus')}{_wide('upload', words('files.upload'), 'upload')}</div></div>"
    )
    pack = escape(words("files.all"))
    return (
        f'<aside class="fi-side"><div class="fi-bar"><b class="fi-count"></b><span class="grow"></span>'
        f"{_button('new', words('files.new'), 'file-plus')}{_button('upload', words('files.upload'), 'upload')}"
        f'<a class="b icon fi-all" download aria-label="{pack}" title="{pack}">{icon("folder-down")}</a></div>'
        f'<div class="fi-tree" role="tree" aria-label="{escape(words("files.label"))}"></div>{empty}'
        f'<input type="file" class="fi-pick" multiple hidden aria-label="{escape(words("files.upload"))}"></aside>'
    )


def _main(words: Words) -> str:
    save, download = escape(words("files.save_keys")), escape(words("files.download"))
    run, keep = escape(words("files.run")), escape(words("files.save"))
    return (
        f'<div class="fi-head" hidden>{_button("back", words("files.back"), "arrow-left", "fi-back")}'
        '<div class="fi-title"><b></b><small role="status"></small></div><span class="grow"></span>'
        f'<button type="button" class="b line" data-files="run">{icon("play", 15)}<span>{run}</span></button>'
        f'<button type="button" class="b solid" data-files="save" title="{save}">{icon("save", 15)}'
        f'<span>{keep}</span></button><a class="b icon" data-files="download" download aria-label="{download}" '
        f'title="{download}">{icon("download")}</a></div><div class="fi-note" role="alert"></div>'
        f'<div class="fi-view"><p class="quiet">{escape(words("files.choose"))}</p></div>'
        '<section class="fi-run" aria-live="polite"></section>'
        f'<p class="fi-help" id="fi-help">{escape(words("files.leave_editor"))}</p>'
    )


def _menu(words: Words) -> str:
    items = (
        ("run", "files.run", "play"),
        ("rename", "files.rename", "pencil"),
        ("download", "files.download", "download"),
        ("delete", "files.delete", "trash"),
    )
    buttons = "".join(
        f'<button type="button" role="menuitem" tabindex="-1" data-menu="{act}">{icon(shape)}'
        f"<span>{escape(words(key))}</span></button>"
        for act, key, shape in items
    )
    return f'<div id="fi-menu" role="menu" popover>{buttons}</div>'


def _wide(act: str, label: str, shape: str) -> str:
    return f'<button type="button" class="b line" data-files="{act}">{icon(shape)}<span>{escape(label)}</span></button>'


def _button(act: str, label: str, shape: str, style: str = "") -> str:
    name = escape(label)
    return (
        f'<button type="button" class="b icon {style}" data-files="{act}" aria-label="{name}" title="{name}">'
        f"{icon(shape)}</button>"
    )

"""The page: its layout, and the few events by which Gradio's inputs call Python. Everything else is an action
(`webui.shell.actions`)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import gradio as gr
import orjson

from agent import AivistaError, Catalogue, ErrorCode, ErrorInfo, Studio
from webui.api.gradio_chat import add_chat_endpoint, saying_failures
from webui.features.files import build_files
from webui.features.gallery import gallery_html
from webui.features.trace import frame_html
from webui.panels.chat import build_chat
from webui.panels.composer import Chosen, build_composer
from webui.panels.conversations import build_rail
from webui.panels.flat import flat
from webui.panels.painter import build_canvas, build_painter, painter_html
from webui.panels.stage_tabs import build_stage_tabs, stage_tabs_html
from webui.panels.thread_foot import build_thread_foot, thread_foot_html
from webui.roles import read_references, read_roles
from webui.screen import Panels, Screen, Updates
from webui.script_words import script_words_html
from webui.sessions import Sessions, Visitor
from webui.shell.patches import Reply, Toast
from webui.tabs import Tab
from webui.turns import Fields, Turns
from webui.words import Words, load_words

_log = logging.getLogger(__name__)

_LONGEST_NAME = 64
# Where no component is named, Gradio tells each output of an event that it waits, and draws it anew for that.
_QUIET: dict[str, Any] = {"show_progress": "hidden", "show_progress_on": [], "api_visibility": "private"}
TURNS_AT_ONCE = 64


class Page(NamedTuple):
    """The page: what Gradio serves, and what fills it and reads its actions."""

    blocks: gr.Blocks
    screen: Screen


def build_page(studio: Callable[[], Studio], catalogue: Catalogue, sessions: Sessions, *, is_kept: bool = True) -> Page:
    """Return the page. `studio` is asked for when a handler runs, not before.

    Without `is_kept` it says that what is made is gone when the studio restarts.
    """
    page = gr.Blocks(title="Aivista", fill_width=True, analytics_enabled=False, delete_cache=(600, 7200))
    with page:
        with gr.Row(elem_id="shell"):
            rail = build_rail()
            with gr.Column(elem_id="center"):
                chat, foot, recipe = build_chat(), build_thread_foot(), flat("recipe")
                composer = build_composer(catalogue)
            with gr.Column(elem_id="stage"):
                tabs = build_stage_tabs()
                canvas, painter = build_canvas(), build_painter()
                gallery = flat("gallery")
                flat("tree")
                trace = flat("trace")
                build_files()
        spoken = {tabs: stage_tabs_html, painter: painter_html, gallery: gallery_html, trace: frame_html}
        spoken |= {foot: thread_foot_html, flat("script-words"): script_words_html}
        _speak(sessions.fixed_language, {one: spoken[one] for one in (painter, gallery, trace)})
        screen = Screen(studio, sessions, Panels(rail, chat, composer, canvas, recipe, spoken), is_kept)
        _wire(screen)
        add_chat_endpoint(screen, TURNS_AT_ONCE)
    return Page(page, screen)


def _speak(language: str | None, seen_later: Mapping[gr.HTML, Callable[[Words], str]]) -> None:
    """Write what nobody sees at once into the page itself, in the language that most will read: it is there then before
    Python is asked, and needs no update but for the others."""
    words = load_words(language or "en")
    for part, html_of in seen_later.items():
        html = html_of(words)
        # Gradio patches what is there, and does not reach into a template: one of another language would stay.
        if "<template" not in html:
            part.value = html


def _wire(screen: Screen) -> None:
    """Let Send, Stop and the settings that others follow from call Python. What changes on the page comes back as a
    `Reply`, for its script; the script changes Gradio's inputs by an event of its own."""
    composer, told = screen.panels.composer, screen.panels.chat.told
    wires = {name: getattr(composer, name) for name in ("conversation", "editing", "references", "roles")}
    painted = {"mask": composer.mask, "expand": composer.expand}

    async def send(
        request: gr.Request,
        message: dict[str, Any] | None,
        conversation: str,
        editing: str,
        references: str,
        roles: str,
        mask: str,
        expand: str,
        **chips: Any,
    ) -> str:
        visitor, named = screen.sessions.visitor(request), read_references(references)
        tab = screen.tabs.of(visitor.owner, _header(request, "tab"))
        try:
            updates = await Turns(screen).send(
                visitor,
                tab,
                message,
                Chosen.from_chips(chips),
                conversation,
                editing,
                named,
                Fields(mask or "", expand or ""),
                read_roles(roles, named),
                _header(request, "request") or None,
                _header(request, "seen"),
            )
        except Exception as error:
            info = error.info if isinstance(error, AivistaError) else ErrorInfo(code=ErrorCode.INTERNAL)
            _log.exception("a message was not sent")
            return _told(screen, visitor, tab, {}, visitor.words.error(info))
        return _told(screen, visitor, tab, updates)

    take = "told => { if (told) window.aivistaShell.take(JSON.parse(told)); }"
    inputs = {"message": composer.message, **wires, **painted, **composer.settings}
    at_once: dict[str, Any] = {"concurrency_limit": TURNS_AT_ONCE, "trigger_mode": "multiple", **_QUIET}
    sent = composer.message.submit(send, None, told, inputs_kwargs=inputs, **at_once)
    sent.then(None, told, None, js=take, **_QUIET)

    async def stop(request: gr.Request, conversation: str) -> None:
        visitor = screen.sessions.visitor(request)
        with saying_failures(visitor.words):
            await screen.studio().cancel(conversation, visitor.owner)

    composer.message.stop(stop, None, None, inputs_kwargs={"conversation": composer.conversation}, **_QUIET)

    def narrow(request: gr.Request, **chips: Any) -> str:
        visitor = screen.sessions.visitor(request)
        with saying_failures(visitor.words):
            return _told(screen, visitor, Tab(), screen.narrowed(visitor, chips))

    others_follow = [composer.image_model.input, composer.allow_search.input, composer.reference_mode.input]
    narrowed = gr.on(others_follow, narrow, None, told, inputs_kwargs=composer.settings, **_QUIET)
    narrowed.then(None, told, None, js=take, **_QUIET)

    # The page's script hears what the settings say, and sets them.
    names, chips = list(composer.settings), list(composer.settings.values())
    heard = f"(...values) => {{ window.aivistaChips?.({names}.map((name, at) => [name, values[at]])); }}"
    gr.on([chip.change for chip in composer.chips.values()], None, chips, None, js=heard, **_QUIET)
    with gr.Column(elem_classes="wire"):
        setting = gr.Button("set", elem_id="set-inputs")
    changed = [composer.message, *chips, *wires.values(), *painted.values()]
    elements = [one.elem_id for one in changed]
    given = f"() => window.aivistaShell.inputs({elements})"
    set_ = setting.click(None, None, changed, js=given, trigger_mode="multiple", **_QUIET)
    set_.then(None, None, None, js="() => window.aivistaShell.areSet()", **_QUIET)


def _header(request: gr.Request, name: str) -> str:
    return str(request.headers.get(f"x-aivista-{name}", ""))[:_LONGEST_NAME]


def _told(screen: Screen, visitor: Visitor, tab: Tab, updates: Updates, problem: str = "") -> str:
    """Return a reply as JSON, for the page's script."""
    reply: Reply = screen.reply(updates, tab)
    if problem:
        reply = reply.model_copy(update={"toast": Toast(text=problem, is_problem=True)})
    return orjson.dumps(reply.written(visitor.words)).decode()

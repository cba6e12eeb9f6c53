"""Gradio's part of the page: the inputs of the composer, and the few events by which they call Python. The rest of
the page is our own HTML (`shell/document.html`), and everything else is an action (`webui.shell.actions`)."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import gradio as gr
import orjson

from agent import AivistaError, Catalogue, ErrorCode, ErrorInfo, Studio
from webui.api.gradio_chat import add_chat_endpoint, report_failures
from webui.features.composer import Composer, build_composer
from webui.features.files import build_editor
from webui.http.sessions import Sessions
from webui.screen import OVER, SENT, Screen
from webui.shell.actions import ComposerState, Context
from webui.shell.templates import Reply, Toast
from webui.turns import Turns
from webui.whole_json import read_value
from webui.words import Words

_log = logging.getLogger(__name__)

# Where no component is named, Gradio shows each output of an event as loading, and redraws it for that.
_QUIET: dict[str, Any] = {
    "show_progress": "hidden",
    "show_progress_on": [],
    "api_visibility": "private",
    "queue": False,
}
TURNS_AT_ONCE = 64


def build_page(
    studio: Callable[[], Studio], catalogue: Catalogue, sessions: Sessions, *, is_kept: bool
) -> tuple[gr.Blocks, Screen]:
    """Return the page: Gradio's app, and the screen that fills it and answers its actions. `studio` is called when a
    handler runs, not before.

    Without `is_kept` the page says that everything is gone when the studio restarts.
    """
    with gr.Blocks(title="Aivista", fill_width=True, analytics_enabled=False, delete_cache=(600, 7200)) as blocks:
        screen, composer = Screen(studio, sessions, is_kept), build_composer(catalogue)
        _wire(screen, composer, build_editor(), blocks)
        add_chat_endpoint(screen, composer, TURNS_AT_ONCE)
    return blocks, screen


def _wire(screen: Screen, composer: Composer, editor: gr.Code, blocks: gr.Blocks) -> None:
    """Connect Send, Stop and the settings that affect others to Python. A change of the page comes back as a `Reply`
    for its script; the script sets Gradio's inputs by an event of its own."""
    # Invisible components are not drawn, and the page loads nothing for them. The event that sets the inputs is
    # triggered by a kind of component that the page has anyway.
    composed, answer = (gr.Textbox("", label=name, visible=False) for name in ("composed", "answer"))
    setting = gr.HTML(elem_classes="wire", js_on_load="addEventListener('aivista-set-inputs', () => trigger('click'))")

    async def send(request: gr.Request, message: dict[str, Any] | None, composed: str) -> str:
        visitor = screen.sessions.visitor(request)
        sent = read_value(ComposerState, composed or "{}")
        if sent is None:
            return _reply_json(visitor.words, Reply(toast=_problem(visitor.words("gallery.unreadable"))))
        at = Context(screen, visitor, sent)
        try:
            return _reply_json(visitor.words, at.reply({**await Turns(at).send(message, sent), SENT: sent.request}))
        except Exception as error:
            info = error.info if isinstance(error, AivistaError) else ErrorInfo(code=ErrorCode.INTERNAL)
            _log.exception("a message was not sent")
            # The page emptied the box when Send was pressed: the text goes back into it.
            reply = at.reply({OVER: {sent.request: "failed"}, SENT: sent.request})
            return _reply_json(visitor.words, reply.model_copy(update={"toast": _problem(visitor.words.error(info))}))

    answered = "answer => { if (answer) window.aivista.sending.answered(JSON.parse(answer)); }"
    script = "message => [message, window.aivista.sending.composedFields()]"
    sent = composer.message.submit(
        send, [composer.message, composed], answer, js=script, trigger_mode="multiple", **_QUIET
    )
    sent.then(None, answer, None, js=answered, **_QUIET)

    async def stop(request: gr.Request, conversation: str) -> None:
        visitor = screen.sessions.visitor(request)
        with report_failures(visitor.words):
            await screen.studio().cancel(conversation, visitor.owner)

    where = "() => window.aivista.shell.pageState().conversation"
    composer.message.stop(stop, composed, None, js=where, **_QUIET)

    async def narrow(request: gr.Request, **chips: Any) -> str:
        visitor = screen.sessions.visitor(request)
        with report_failures(visitor.words):
            return _reply_json(visitor.words, screen.reply(screen.narrowed(visitor, chips)))

    settings = composer.settings
    others_follow = [settings[name].input for name in ("image_model", "allow_search", "reference_mode")]
    narrowed = gr.on(others_follow, narrow, None, answer, inputs_kwargs={**settings}, **_QUIET)
    applied = "answer => { if (answer) window.aivista.shell.applyReply(JSON.parse(answer)); }"
    narrowed.then(None, answer, None, js=applied, **_QUIET)

    # The page's script is told what the settings are, and sets them.
    names, chips = list(settings), list(settings.values())
    script = f"window.aivista.chips?.({names}.map((name, at) => [name, values[at]]))"
    gr.on(
        [blocks.load, *(chip.change for chip in chips)],
        None,
        chips,
        None,
        js=f"(...values) => {{ {script}; }}",
        **_QUIET,
    )
    changed = [composer.message, *chips, editor]
    given = f"() => window.aivista.shell.takeInputs({[one.elem_id for one in changed]})"
    set_ = setting.click(None, None, changed, js=given, trigger_mode="multiple", **_QUIET)
    # A component that is not drawn yet does not report its change.
    set_.then(None, chips, None, js=f"(...values) => {{ {script}; window.aivista.shell.confirmInputs(); }}", **_QUIET)


def _problem(sentence: str) -> Toast:
    return Toast(text=sentence, is_problem=True)


def _reply_json(words: Words, reply: Reply) -> str:
    """Return a reply as JSON, for the page's script."""
    return orjson.dumps(reply.written(words)).decode()

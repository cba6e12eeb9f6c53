"""The page: its layout, and which event calls which handler. Inputs go to handlers by name."""

from __future__ import annotations

import inspect
import logging
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import Any, NamedTuple

import gradio as gr

from agent import AivistaError, Catalogue, ErrorCode, ErrorInfo, Studio
from webui.api.gradio_chat import add_chat_endpoint
from webui.branches import wire_branches
from webui.clicks import Clicks, Context, read_click, read_references
from webui.draft_wiring import wire_drafts
from webui.features.files import build_files
from webui.features.gallery import build_gallery, gallery_html
from webui.features.trace import frame_html
from webui.gallery_wiring import wire_gallery
from webui.model_limits import BUS
from webui.opening import Opening, wire_opening
from webui.panels.chat import build_chat
from webui.panels.composer import Chosen, build_composer
from webui.panels.conversations import build_rail
from webui.panels.flat import flat
from webui.panels.painter import build_canvas, build_painter, painter_html
from webui.panels.recipes import build_recipes
from webui.panels.stage_tabs import build_stage_tabs, stage_tabs_html
from webui.panels.thread_foot import build_thread_foot, thread_foot_html
from webui.recipe_wiring import wire_recipes
from webui.roles import read_roles
from webui.screen import Panels, Screen, Updates
from webui.script_words import script_words_html
from webui.sessions import Sessions
from webui.spend_wiring import wire_spend
from webui.tabs import Tab
from webui.turns import Fields, Turns, give_back, paint_back
from webui.wish_wiring import wire_wish
from webui.words import Words, load_words

_log = logging.getLogger(__name__)

_LONGEST_REQUEST_ID = 64
_BUS = "window.aivista = { act: data => trigger('click', data) };"
# Where no component is named, Gradio tells each output of an event that it waits, and draws it anew for that.
_QUIET: dict[str, Any] = {"show_progress": "hidden", "show_progress_on": [], "api_visibility": "private"}
TURNS_AT_ONCE = 64


class Page(NamedTuple):
    """The page: what Gradio serves, what fills it for its visitor, and what its actions read."""

    blocks: gr.Blocks
    opening: Opening
    screen: Screen


def build_page(studio: Callable[[], Studio], catalogue: Catalogue, sessions: Sessions, *, is_kept: bool = True) -> Page:
    """Return the page. `studio` is asked for when a handler runs, not before.

    Without `is_kept` it says that what is made is gone when the studio restarts.
    """
    page = gr.Blocks(title="Aivista", fill_width=True, analytics_enabled=False, delete_cache=(600, 7200))
    with page:
        bus = flat("bus", js_on_load=_BUS)
        with gr.Row(elem_id="shell"):
            rail = build_rail()
            with gr.Column(elem_id="center"):
                chat, foot = build_chat(), build_thread_foot()
                recipes = build_recipes()
                composer = build_composer(catalogue)
            with gr.Column(elem_id="stage"):
                tabs = build_stage_tabs()
                canvas, painter = build_canvas(), build_painter()
                gallery = build_gallery()
                flat("tree")
                trace = flat("trace")
                build_files()
        panels = Panels(rail, chat, composer, canvas)
        screen = Screen(studio, sessions, panels, is_kept)
        tab = gr.State(Tab())
        spoken = {tabs: stage_tabs_html, painter: painter_html, gallery.pane: gallery_html}
        spoken |= {trace: frame_html, foot: thread_foot_html, flat("script-words"): script_words_html}
        _speak(sessions.fixed_language, spoken, seen_later=(painter, gallery.pane, trace))
        _wire_turns(screen, tab)
        _wire_clicks(bus, screen, tab)
        _wire_models(screen)
        wire_branches(screen, tab)
        wire_gallery(screen, gallery, tab)
        wire_recipes(screen, recipes, tab)
        wire_spend(screen, tab)
        wire_wish(screen)
        wire_drafts(screen)
        add_chat_endpoint(screen, TURNS_AT_ONCE)
        with gr.Column(elem_classes="wire"):
            filled, again = gr.Textbox("", label="filled"), gr.Button("again", elem_id="fill-again")
        opening = Opening(screen, spoken, filled)
        wire_opening(page, opening, tab, again)
    _say_failures(page, sessions)
    return Page(page, opening, screen)


def _speak(
    language: str | None, spoken: Mapping[gr.HTML, Callable[[Words], str]], seen_later: Sequence[gr.HTML]
) -> None:
    """Write what nobody sees at once into the page itself, in the language that most will read: it is there then before
    Python is asked, and needs no update but for the others."""
    words = load_words(language or "en")
    for part in seen_later:
        html = spoken[part](words)
        # Gradio patches what is there, and does not reach into a template: one of another language would stay.
        if "<template" not in html:
            part.value = html


def _say_failures(page: gr.Blocks, sessions: Sessions) -> None:
    """Have what a handler raises reach the log whole, and the person as one sentence: Gradio alone says nothing."""
    for event in page.fns.values():
        if callable(event.fn):
            event.fn = _saying_failures(event.fn, sessions)


def _saying_failures(handler: Callable[..., Any], sessions: Sessions) -> Callable[..., Any]:
    """Return the handler, of the same kind: Gradio looks at whether it waits and whether it streams."""

    @contextmanager
    def said(*given: object) -> Iterator[None]:
        try:
            yield
        except Exception as error:
            _log.exception("an event of the page failed")
            request = next((one for one in given if isinstance(one, gr.Request)), None)
            words = sessions.visitor(request).words if request is not None else load_words("en")
            info = error.info if isinstance(error, AivistaError) else ErrorInfo(code=ErrorCode.INTERNAL)
            raise gr.Error(words.error(info), print_exception=False) from None

    if inspect.isasyncgenfunction(handler):

        @wraps(handler)
        async def stream(*given: Any, **named: Any) -> AsyncIterator[Any]:
            with said(*given, *named.values()):
                async for one in handler(*given, **named):
                    yield one

        return stream
    if inspect.iscoroutinefunction(handler):

        @wraps(handler)
        async def answer(*given: Any, **named: Any) -> Any:
            with said(*given, *named.values()):
                return await handler(*given, **named)

        return answer

    @wraps(handler)
    def answer_at_once(*given: Any, **named: Any) -> Any:
        with said(*given, *named.values()):
            return handler(*given, **named)

    return answer_at_once


def _wire_turns(screen: Screen, tab: gr.State) -> None:
    composer, turns = screen.panels.composer, Turns(screen)
    wires = {"conversation": composer.conversation, "editing": composer.editing, "references": composer.references}
    wires["roles"] = composer.roles
    painted = {"mask": composer.mask, "expand": composer.expand}

    async def send(
        request: gr.Request,
        tab: Tab,
        message: dict[str, Any] | None,
        conversation: str,
        editing: str,
        references: str,
        roles: str,
        mask: str,
        expand: str,
        **chips: Any,
    ) -> Updates:
        visitor, named = screen.sessions.visitor(request), read_references(references)
        chosen, fields = Chosen.from_chips(chips), Fields(mask or "", expand or "")
        given = read_roles(roles, named)
        request_id = request.headers.get("x-aivista-request", "")[:_LONGEST_REQUEST_ID] or None
        seen = request.headers.get("x-aivista-seen", "")[:_LONGEST_REQUEST_ID]
        sent = await turns.send(
            visitor, tab, message, chosen, conversation, editing, named, fields, given, request_id, seen
        )
        return sent or screen.nothing()

    sent = composer.message.submit(
        send,
        None,
        screen.panels.outputs,
        inputs_kwargs={
            "tab": tab,
            "message": composer.message,
            **wires,
            **painted,
            **composer.settings,
        },
        concurrency_limit=TURNS_AT_ONCE,
        trigger_mode="multiple",
        **_QUIET,
    )
    # The page asks for what was sent for nothing once it has heard of it: what it holds then is what counts.
    with gr.Column(elem_classes="wire"):
        again = gr.Button("give back", elem_id="give-back")
    for unused in (again.click, sent.failure):
        kept = unused(paint_back, [tab, *painted.values()], [*painted.values()], **_QUIET)
        kept.then(give_back, [tab, composer.message], composer.message, **_QUIET)

    async def stop(request: gr.Request, conversation: str) -> None:
        visitor = screen.sessions.visitor(request)
        await screen.studio().cancel(conversation, visitor.owner)

    composer.message.stop(stop, None, None, inputs_kwargs={"conversation": composer.conversation}, **_QUIET)

    def narrow(request: gr.Request, **chips: Any) -> Updates:
        return screen.narrowed(screen.sessions.visitor(request), chips)

    outputs = [*composer.settings.values(), *composer.told]
    for chip in (composer.image_model.input, composer.allow_search.input, composer.reference_mode.input):
        chip(narrow, None, outputs, inputs_kwargs=composer.settings, **_QUIET)


def _wire_models(screen: Screen) -> None:
    """Let the page ask what the key in use is good for, when it rests and when another key or cap was chosen."""
    composer, asked = screen.panels.composer, flat("models-bus", js_on_load=BUS)

    async def look(request: gr.Request, conversation: str, **chips: Any) -> Updates:
        visitor = screen.sessions.visitor(request)
        key = screen.key_in_use(visitor)
        if key is not None and screen.takes_keys(visitor):
            # The list of what it is offered costs nothing.
            await screen.studio().keys.listed(key)
        frame = await screen.frame(visitor, await screen.conversation(visitor, conversation))
        return {**screen.narrowed(visitor, chips), **frame}

    around = [screen.panels.rail.stamp, screen.panels.chat.top, screen.panels.chat.welcome, composer.next_target]
    outputs = [*composer.settings.values(), *composer.told, *around]
    asked.click(
        look, None, outputs, inputs_kwargs={"conversation": composer.conversation, **composer.settings}, **_QUIET
    )


def _wire_clicks(bus: gr.HTML, screen: Screen, tab: gr.State) -> None:
    composer, clicks = screen.panels.composer, Clicks(screen, Turns(screen))

    async def act(
        request: gr.Request,
        event: gr.EventData,
        tab: Tab,
        conversation: str,
        editing: str,
        references: str,
        roles: str,
        **chips: Any,
    ) -> Updates:
        click = read_click(event._data)
        if click is None:
            return screen.nothing()
        named = read_references(references)
        context = Context(conversation, editing, named, read_roles(roles, named), Chosen.from_chips(chips))
        return await clicks.answer(screen.sessions.visitor(request), tab, click, context) or screen.nothing()

    bus.click(
        act,
        None,
        screen.panels.outputs,
        inputs_kwargs={
            "tab": tab,
            "conversation": composer.conversation,
            "editing": composer.editing,
            "references": composer.references,
            "roles": composer.roles,
            **composer.settings,
        },
        concurrency_limit=TURNS_AT_ONCE,
        trigger_mode="multiple",
        **_QUIET,
    )

"""A wish written out at the press of a button: shown beside the person's own words, sent by nobody."""

from __future__ import annotations

import asyncio
import time
from typing import Any, Literal

import gradio as gr
from pydantic import Field, ValidationError

from agent import AivistaError, ExpandedPrompt, PromptToExpand, Value
from webui.panels.composer import Chosen
from webui.panels.conversations import stamp_html
from webui.panels.flat import flat
from webui.panels.fuller import fuller_html, refused_html
from webui.screen import Screen, Updates
from webui.sessions import Visitor

_BUS = "window.aivistaWish = { ask: data => trigger('click', data) };"
_QUIET: dict[str, Any] = {"show_progress": "hidden", "show_progress_on": [], "api_visibility": "private"}
_AT_ONCE = 32


class WishClick(Value):
    """What the page asks to be written out. `ticket` comes back with the answer; `files` counts those in the box, and
    `is_painted` says that a part of a picture is marked."""

    ticket: str = Field(max_length=40)
    text: str = Field(max_length=1_000_000)
    files: int = Field(default=0, ge=0, le=1000)
    is_painted: bool = False


def read_wish_click(data: object) -> WishClick | None:
    """Return the click, or None when the page sent something else."""
    try:
        return WishClick.model_validate(data)
    except ValidationError:
        return None


def pictures_of(click: WishClick, editing: str, references: str) -> Literal["none", "beside", "change"]:
    """Return what the pictures that go along are for: one is to be changed, or they lie beside the wish."""
    if editing or click.is_painted:
        return "change"
    return "beside" if references or click.files else "none"


async def written_out(screen: Screen, visitor: Visitor, wish: PromptToExpand) -> ExpandedPrompt:
    """Return the wish written out. Whoever leaves meanwhile has paid for it: it is put on record all the same."""
    studio = screen.studio()
    asked = studio.expand_prompt(wish, visitor.owner, screen.sessions.key(visitor))
    written: ExpandedPrompt = await asyncio.shield(studio.keep_alive(asked))
    return written


def wire_wish(screen: Screen) -> None:
    """Let the button of the composer call its handler."""
    composer = screen.panels.composer
    bus = flat("wish-bus", js_on_load=_BUS)

    async def write(request: gr.Request, event: gr.EventData, editing: str, references: str, **chips: Any) -> Updates:
        click = read_wish_click(event._data)
        if click is None:
            return {composer.fuller: gr.skip()}
        visitor, settings = screen.sessions.visitor(request), Chosen.model_validate(chips).turn_settings()
        wish = PromptToExpand(
            text=click.text,
            text_model=settings.text_model,
            pictures=pictures_of(click, editing, references),
            aspect_ratio=settings.aspect_ratio,
            number_of_images=settings.number_of_images,
        )
        try:
            written = await written_out(screen, visitor, wish)
        except AivistaError as error:
            return {composer.fuller: refused_html(visitor.words, click.ticket, visitor.words.error(error.info))}
        shown = await asyncio.to_thread(fuller_html, visitor.words, click.ticket, click.text, written)
        # The rail's foot tells what was spent.
        return {composer.fuller: shown, screen.panels.rail.stamp: stamp_html(time.monotonic_ns())}

    bus.click(
        write,
        None,
        [composer.fuller, screen.panels.rail.stamp],
        inputs_kwargs={"editing": composer.editing, "references": composer.references, **composer.settings},
        concurrency_limit=_AT_ONCE,
        trigger_mode="multiple",
        **_QUIET,
    )

"""What the gallery does to the rest of the page: a picture is opened, two are compared, some become references."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import gradio as gr
from pydantic import Field, ValidationError

from agent import AivistaError, Conversation, GalleryItem, ReferenceRole, Value, storage_failure
from webui.clicks import MAX_REFERENCES, read_references
from webui.features.gallery import GalleryPanel
from webui.features.viewer import canvas_html, compare_html
from webui.media import download_name
from webui.page_gate.transit import given_folder
from webui.roles import read_roles
from webui.screen import Screen, Updates
from webui.sessions import Visitor
from webui.tabs import Tab

_QUIET: dict[str, Any] = {"show_progress": "hidden", "show_progress_on": [], "api_visibility": "private"}
_AT_ONCE = 64


class GalleryClick(Value):
    """A click of the gallery as the page sends it, with the pictures it is about; anything else is ignored."""

    act: Literal["open", "compare", "reference"]
    ids: Annotated[tuple[int, ...], Field(min_length=1, max_length=MAX_REFERENCES)]


def read_gallery_click(data: object) -> GalleryClick | None:
    """Return the click, or None when the page sent something else."""
    try:
        return GalleryClick.model_validate(data)
    except ValidationError:
        return None


@dataclass(frozen=True)
class At:
    """Where the page stands: the conversation that is open, what the composer works on, and what is in it."""

    conversation_id: str = ""
    editing: str = ""
    references: tuple[str, ...] = ()
    roles: Mapping[str, ReferenceRole] = field(default_factory=dict)
    message: Mapping[str, Any] | None = None


@dataclass(frozen=True)
class GalleryActs:
    """Answers the clicks of the gallery. Only the visitor's own pictures are ever shown or used."""

    screen: Screen

    async def answer(self, visitor: Visitor, tab: Tab, click: GalleryClick, at: At) -> Updates:
        """Return what the click changes; what cannot be done is told in one sentence, and changes nothing."""
        try:
            items = await self._items(visitor, click)
            if not items:
                gr.Warning(visitor.words("gallery.gone"))
                return {}
            if click.act == "reference":
                return await self._referred(visitor, tab, items, at)
            conversation = await self.screen.studio().conversations.get(items[0].conversation_id, visitor.owner)
            shown = self._shown(visitor, conversation, [item.picture.handle for item in items])
        except AivistaError as error:
            gr.Warning(visitor.words.error(error.info))
            return {}
        if conversation.id == at.conversation_id:
            return shown
        tab.take_over()
        chips = self.screen.chips_of(visitor, conversation)
        return {**await self.screen.opened(visitor, conversation), **chips, **shown}

    async def _items(self, visitor: Visitor, click: GalleryClick) -> tuple[GalleryItem, ...]:
        """Return the pictures of the click; none when one of them is not there, or not the visitor's."""
        items = await self.screen.studio().gallery.items(visitor.owner, click.ids)
        is_pair = len(items) == 2 and items[0].conversation_id == items[1].conversation_id
        is_whole = len(items) == len(set(click.ids)) and (click.act != "compare" or is_pair)
        return items if is_whole else ()

    def _shown(self, visitor: Visitor, conversation: Conversation, handles: Sequence[str]) -> Updates:
        """Return the stage with one picture, or with two of them compared, the older one first."""
        view = self.screen.view(visitor, conversation.id)
        first, *others = (conversation.picture(handle) for handle in handles)
        if not others:
            return {self.screen.panels.canvas: canvas_html(view, conversation, first)}
        before, after = sorted((first, others[0]), key=lambda one: one.created_at)
        return {self.screen.panels.canvas: compare_html(view, conversation, before, after)}

    async def _referred(self, visitor: Visitor, tab: Tab, items: Sequence[GalleryItem], at: At) -> Updates:
        """Return the composer with the pictures as references, in a new conversation unless all are of the open one."""
        if any(item.conversation_id != at.conversation_id for item in items):
            files = [await self._copied(visitor, item) for item in items]
            tab.take_over()
            opened = await self.screen.opened(visitor, None)
            return {**opened, self.screen.panels.composer.message: gr.update(value=_with_files(at.message, files))}
        named = [item.picture.handle for item in items if item.picture.handle != at.editing]
        kept = [handle for handle in at.references if handle not in named]
        view = self.screen.view(visitor, at.conversation_id)
        return self.screen.context(view, at.editing, (*kept, *named)[-MAX_REFERENCES:], at.roles)

    async def _copied(self, visitor: Visitor, item: GalleryItem) -> str:
        """Return a copy of the picture where uploads are, under a name nobody guesses, until those are thrown away."""
        stored = await self.screen.studio().picture(item.conversation_id, item.picture.handle, visitor.owner)
        folder = Path(self.screen.panels.composer.message.GRADIO_CACHE) / given_folder(self.screen.sessions, visitor)
        path = folder / download_name(stored.picture)

        def write() -> None:
            folder.mkdir(mode=0o700, parents=True)
            path.write_bytes(stored.data)

        try:
            await asyncio.to_thread(write)
        except OSError as error:
            raise storage_failure(error) from error
        return str(path.resolve())


def wire_gallery(screen: Screen, gallery: GalleryPanel, tab: gr.State) -> None:
    """Let the gallery's clicks call their handler."""
    acts, composer = GalleryActs(screen), screen.panels.composer

    async def act(
        request: gr.Request,
        event: gr.EventData,
        tab: Tab,
        message: dict[str, Any] | None,
        conversation: str,
        editing: str,
        references: str,
        roles: str,
    ) -> Updates:
        click = read_gallery_click(event._data)
        if click is None:
            return screen.nothing()
        named = read_references(references)
        at = At(conversation, editing, named, read_roles(roles, named), message)
        return await acts.answer(screen.sessions.visitor(request), tab, click, at) or screen.nothing()

    gallery.bus.click(
        act,
        None,
        screen.panels.outputs,
        inputs_kwargs={
            "tab": tab,
            "message": composer.message,
            "conversation": composer.conversation,
            "editing": composer.editing,
            "references": composer.references,
            "roles": composer.roles,
        },
        concurrency_limit=_AT_ONCE,
        trigger_mode="multiple",
        **_QUIET,
    )


def _with_files(message: Mapping[str, Any] | None, files: Sequence[str]) -> dict[str, object]:
    """Return the composer's value with the files behind whatever is in it."""
    before = [str(file) for file in (message or {}).get("files") or []]
    return {"text": str((message or {}).get("text") or ""), "files": [*before, *files]}

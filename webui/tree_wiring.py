"""The tree at work: shown as the conversation stands, and its branches edited, deleted and brought back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import gradio as gr
from pydantic import Field, ValidationError

from agent import MAX_GALLERY_PAGE, AivistaError, Conversation, GalleryQuery, Value
from webui.clicks import read_references
from webui.lineage import Lineage, lineage
from webui.panels import tree as panel
from webui.panels.tree import TreePanel
from webui.redrawing import OnPage, redrawn
from webui.roles import read_roles
from webui.screen import Screen, Updates
from webui.sessions import Visitor

_QUIET: dict[str, Any] = {"show_progress": "hidden", "show_progress_on": [], "api_visibility": "private"}
_AT_ONCE = 64


class TreeClick(Value):
    """A click of the tree as the page sends it; anything else is ignored. `opened` is the picture on the canvas."""

    act: str
    arg: str = Field(default="", max_length=64)
    opened: str = Field(default="", max_length=64)


def read_tree_click(data: object) -> TreeClick | None:
    """Return the click, or None when the page sent something else."""
    try:
        return TreeClick.model_validate(data)
    except ValidationError:
        return None


@dataclass
class Felled:
    """What one open tab deleted last, by the gallery's ids."""

    ids: tuple[int, ...] = ()


@dataclass(frozen=True)
class Grown:
    """A conversation's tree, and the gallery's id of each picture that is there."""

    conversation: Conversation
    tree: Lineage
    ids: dict[str, int]


@dataclass(frozen=True)
class Trees:
    """Answers the clicks of the tree with updates. All that is read or changed is the visitor's own."""

    screen: Screen
    panel: TreePanel

    async def answer(
        self, visitor: Visitor, felled: Felled, click: TreeClick, conversation_id: str, on_page: OnPage
    ) -> Updates:
        """Return what the click changes; unknown acts change nothing, what cannot be done is told in a sentence."""
        try:
            conversation = await self.screen.conversation(visitor, conversation_id)
            if conversation is None:
                view = self.screen.view(visitor, "")
                return {self.panel.note: "", self.panel.pane: panel.tree_html(view, Lineage())}
            match click.act:
                case "show":
                    return {self.panel.note: "", **await self._shown(visitor, conversation, click.opened)}
                case "edit":
                    return self._edit(visitor, conversation, click.arg, on_page)
                case "ask":
                    return await self._ask(visitor, conversation, click.arg)
                case "keep":
                    return {self.panel.note: ""}
                case "delete":
                    changed = await self._delete(visitor, felled, conversation, click)
                    return {**changed, **await redrawn(self.screen, visitor, conversation.id, on_page)}
                case "undo":
                    changed = await self._undo(visitor, felled, conversation, click)
                    return {**changed, **await redrawn(self.screen, visitor, conversation.id, on_page)}
                case _:
                    return {}
        except AivistaError as error:
            return {self.panel.note: panel.told_html(visitor.words, visitor.words.error(error.info))}

    async def _grown(self, visitor: Visitor, conversation: Conversation) -> Grown:
        """Return the tree; pictures that the gallery does not have any more are gone from it."""
        gallery, ids, after = self.screen.studio().gallery, dict[str, int](), None
        while True:
            query = GalleryQuery(conversation_id=conversation.id, limit=MAX_GALLERY_PAGE, after=after)
            page = await gallery.page(visitor.owner, query)
            ids |= {item.picture.handle: item.id for item in page.items}
            after = page.next
            if after is None:
                break
        # As it is now: what was deleted or brought back a moment ago is told by the records alone.
        conversation = await self.screen.conversation(visitor, conversation.id) or conversation
        there = {one.handle for one in conversation.all_pictures}
        deleted = [one for one in await gallery.deleted(visitor.owner, conversation.id) if one.handle not in there]
        gone = {*(there - ids.keys()), *(one.handle for one in deleted)}
        return Grown(conversation, lineage((*conversation.all_pictures, *deleted), gone), ids)

    async def _shown(self, visitor: Visitor, conversation: Conversation, opened: str) -> Updates:
        grown = await self._grown(visitor, conversation)
        view = self.screen.view(visitor, conversation.id)
        return {self.panel.pane: panel.tree_html(view, grown.tree, opened)}

    def _edit(self, visitor: Visitor, conversation: Conversation, handle: str, on_page: OnPage) -> Updates:
        """Mark a picture of any branch to be changed by the next message."""
        marked = conversation.picture(handle).handle
        leaned = tuple(one for one in on_page.references if one != marked)
        view = self.screen.view(visitor, conversation.id)
        return self.screen.context(view, marked, leaned, on_page.roles)

    async def _ask(self, visitor: Visitor, conversation: Conversation, handle: str) -> Updates:
        doomed = self._branch(await self._grown(visitor, conversation), handle)
        if not doomed:
            return {}
        return {self.panel.note: panel.asking_html(visitor.words, handle, len(doomed) - 1)}

    async def _delete(self, visitor: Visitor, felled: Felled, conversation: Conversation, click: TreeClick) -> Updates:
        doomed = self._branch(await self._grown(visitor, conversation), click.arg)
        felled.ids = await self.screen.studio().gallery.delete(visitor.owner, doomed)
        said = visitor.words.counted("tree.deleted", len(felled.ids))
        shown = await self._shown(visitor, conversation, click.opened)
        return {**shown, self.panel.note: panel.told_html(visitor.words, said, can_undo=bool(felled.ids))}

    async def _undo(self, visitor: Visitor, felled: Felled, conversation: Conversation, click: TreeClick) -> Updates:
        back = await self.screen.studio().gallery.undelete(visitor.owner, felled.ids)
        felled.ids = ()
        said = visitor.words.counted("tree.restored", len(back))
        shown = await self._shown(visitor, conversation, click.opened)
        return {**shown, self.panel.note: panel.told_html(visitor.words, said)}

    @staticmethod
    def _branch(grown: Grown, handle: str) -> list[int]:
        """Return the ids of the picture, when it is there, and of all made from it."""
        if handle not in grown.ids:
            return []
        return [grown.ids[one] for one in grown.tree.branch_of(handle) if one in grown.ids]


def wire_tree(screen: Screen, tree: TreePanel, tab: gr.State) -> None:
    """Let the clicks of the tree call their handler; `tab` is the open tab, which none of them takes over."""
    trees, composer, felled = Trees(screen, tree), screen.panels.composer, gr.State(Felled())

    async def act(
        request: gr.Request,
        event: gr.EventData,
        felled: Felled,
        conversation: str,
        editing: str,
        references: str,
        roles: str,
    ) -> Updates:
        click = read_tree_click(event._data)
        if click is None:
            return {tree.note: gr.skip()}
        visitor, named = screen.sessions.visitor(request), read_references(references)
        on_page = OnPage(read_references(click.opened), editing, named, read_roles(roles, named))
        return await trees.answer(visitor, felled, click, conversation, on_page) or {tree.note: gr.skip()}

    marked = [composer.next_target, composer.context, composer.roles, composer.editing, composer.references]
    around = [screen.panels.chat.thread, screen.panels.chat.top, screen.panels.canvas]
    tree.bus.click(
        act,
        None,
        [tree.note, tree.pane, *marked, *around],
        inputs_kwargs={
            "felled": felled,
            "conversation": composer.conversation,
            "editing": composer.editing,
            "references": composer.references,
            "roles": composer.roles,
        },
        concurrency_limit=_AT_ONCE,
        trigger_mode="multiple",
        **_QUIET,
    )

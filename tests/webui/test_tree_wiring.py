"""The tree at work on real records: what was deleted stands as a ghost where others were made from it."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import gradio as gr
import pytest

from agent.messages import ImageOrigin
from agent.settings import Settings
from agent.studio import Studio
from tests.support.galleries import filled
from tests.support.histories import finished
from webui.panels.canvas import build_canvas
from webui.panels.chat import build_chat
from webui.panels.composer import build_composer
from webui.panels.conversations import build_rail
from webui.panels.settings import build_settings
from webui.panels.tree import build_tree
from webui.redrawing import OnPage
from webui.screen import Panels, Screen
from webui.sessions import Sessions, Visitor
from webui.tree_wiring import Felled, TreeClick, Trees
from webui.words import load_words

WORDS = load_words("en")


@dataclass
class Garden:
    """A conversation with three pictures, each made from the one before, and a fourth made from nothing."""

    studio: Studio
    trees: Trees
    conversation_id: str
    ids: list[int]
    felled: Felled = field(default_factory=Felled)

    async def click(self, act: str, arg: str = "", on_page: OnPage | None = None, owner: str = "ann") -> dict[str, Any]:
        """Return what a click changed, by what it is on the page."""
        visitor, click = Visitor(owner, owner, WORDS), TreeClick(act=act, arg=arg)
        updates = await self.trees.answer(visitor, self.felled, click, self.conversation_id, on_page or OnPage())
        panels = self.trees.screen.panels
        named = {
            "pane": self.trees.panel.pane,
            "note": self.trees.panel.note,
            "canvas": panels.canvas,
            "thread": panels.chat.thread,
            "editing": panels.composer.editing,
        }
        names = {id(component): name for name, component in named.items()}
        return {names[id(component)]: value for component, value in updates.items() if id(component) in names}

    async def shown(self) -> dict[str, str]:
        """Return each picture of the tree as HTML, by its handle."""
        pane = (await self.click("show"))["pane"]
        found = re.findall(r'(<div class="tr-node.*?data-handle="([^"]+)".*?</div>)', pane, re.DOTALL)
        return {handle: html for html, handle in found}


@pytest.fixture
async def garden(tmp_path: Path) -> AsyncIterator[Garden]:
    async with filled(tmp_path) as kept:
        conversation = await kept.conversation("ann")
        parents: tuple[tuple[str, ...], ...] = ((), ("#1",), ("#2",), ())
        ids = [
            await kept.add(conversation, "a fox", origin=ImageOrigin.EDITED, details={"parents": one})
            for one in parents
        ]
        turn = (await kept.store.conversation_of_any_owner(conversation)).turns[-1]
        await kept.store.finish_turn(conversation, finished(turn))
    async with Studio(Settings(home=tmp_path)) as studio:
        with gr.Blocks():
            panels = Panels(
                build_rail(), build_chat(), build_composer(studio.catalogue), build_canvas(), build_settings()
            )
            tree = build_tree()
        screen = Screen(lambda: studio, Sessions(b"secret", is_shared=True), panels)
        yield Garden(studio, Trees(screen, tree), conversation, ids)


async def test_a_deleted_picture_between_two_others_stands_as_a_ghost(garden: Garden) -> None:
    await garden.studio.gallery.delete("ann", [garden.ids[1]])
    shown = await garden.shown()
    assert set(shown) == {"#1", "#2", "#3", "#4"}
    assert 'data-parents="#2"' in shown["#3"], "what was made from it is no root"
    assert 'data-parents="#1"' in shown["#2"]
    assert "<img" not in shown["#2"]
    assert " disabled" in shown["#2"]
    assert "tr-more" not in shown["#2"]
    assert all("<img" in shown[handle] and " disabled" not in shown[handle] for handle in ("#1", "#3", "#4"))


async def test_a_deleted_picture_that_nothing_was_made_from_is_gone(garden: Garden) -> None:
    await garden.studio.gallery.delete("ann", garden.ids[2:])
    assert set(await garden.shown()) == {"#1", "#2"}
    await garden.studio.gallery.delete("ann", garden.ids[:2])
    assert await garden.shown() == {}


async def test_a_ghost_can_be_neither_gone_on_from_nor_deleted_once_more(garden: Garden) -> None:
    await garden.studio.gallery.delete("ann", [garden.ids[1]])
    assert "Picture #2 was deleted" in (await garden.click("edit", "#2"))["note"]
    assert await garden.click("ask", "#2") == {}
    asked = await garden.click("ask", "#1")
    assert "the picture made from it" in asked["note"], "a ghost is not counted"


async def test_a_branch_with_a_ghost_in_it_goes_whole_and_comes_back_as_it_was(garden: Garden) -> None:
    await garden.studio.gallery.delete("ann", [garden.ids[1]])
    await garden.click("delete", "#1")
    assert set(await garden.shown()) == {"#4"}
    await garden.click("undo")
    shown = await garden.shown()
    assert set(shown) == {"#1", "#2", "#3", "#4"}
    assert "<img" not in shown["#2"]


async def test_what_is_deleted_leaves_the_thread_the_stage_and_the_composer(garden: Garden) -> None:
    changed = await garden.click("delete", "#3", OnPage(("#3",), editing="#3"))
    assert "cv-pic" not in changed["canvas"]
    assert changed["editing"] == ""
    assert "thread" in changed
    back = await garden.click("undo", on_page=OnPage(("#1",), editing="#1"))
    assert "thread" in back
    assert not {"canvas", "editing"} & set(back)


async def test_nobody_sees_the_tree_of_another(garden: Garden) -> None:
    changed = await garden.click("show", owner="bob")
    assert "tr-node" not in changed["pane"]

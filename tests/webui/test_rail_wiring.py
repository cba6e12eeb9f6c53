"""The rail's clicks: each changes the visitor's own conversations, and tells what cannot be done in one sentence."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import gradio as gr
import pytest

from agent.conversation import Conversation
from agent.settings import Settings, TurnSettings
from agent.studio import Studio, TurnRequest
from webui.branches import BranchClick, Branches, read_branch_click
from webui.panels.canvas import build_canvas
from webui.panels.chat import build_chat
from webui.panels.composer import Chosen, build_composer
from webui.panels.conversations import build_menus, build_rail
from webui.panels.settings import build_settings
from webui.rail_wiring import Look, Rail, RailClick, read_rail_click
from webui.screen import Panels, Screen
from webui.sessions import Sessions, Visitor
from webui.tabs import Tab
from webui.words import load_words

EN = load_words("en")


class Desk:
    """The rail of a studio, clicked by visitors of a shared link."""

    def __init__(self, studio: Studio) -> None:
        self.studio = studio
        with gr.Blocks():
            rail, chat, composer = build_rail(), build_chat(), build_composer(studio.catalogue)
            self.panels = Panels(rail, chat, composer, build_canvas(), build_settings())
            self.menus = build_menus()
        self.screen = Screen(lambda: studio, Sessions(b"secret", is_shared=True), self.panels)
        self.rail = Rail(self.screen, self.menus, lambda: studio.preferences)
        self.look, self.tab = Look(), Tab()

    async def seen(self, act: str, text: str = "", owner: str = "ann") -> str:
        """Return the rows after a look at them."""
        click = RailClick(act=act, text=text)
        updates = await self.rail.look(Visitor(owner, owner, EN), self.look, click, "")
        return str(updates[self.panels.rail.rows])

    async def click(self, act: str, key: str, owner: str = "ann", current: str = "", **more: Any) -> dict[Any, Any]:
        """Return what a click changed, by component."""
        changed: dict[Any, Any] = {}
        click = RailClick(act=act, id=key, **more)
        async for updates in self.rail.change(Visitor(owner, owner, EN), self.tab, self.look, click, current):
            changed |= updates
        return changed

    async def told(self, *texts: str, owner: str = "ann") -> Conversation:
        """Return a conversation in which these words were said."""
        conversation = await self.studio.new_conversation(owner)
        for text in texts:
            async for _ in self.studio.run_turn(conversation.id, TurnRequest(text), owner=owner):
                pass
        return await self.studio.conversation(conversation.id, owner)


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    async with Studio(Settings(home=tmp_path)) as studio:
        yield Desk(studio)


@pytest.mark.parametrize(
    "data", [None, "x", {"act": "find", "text": 5}, {"act": "x", "more": 1}, {"act": "d" * 9, "id": "9" * 65}]
)
def test_what_is_no_click_of_the_rail_is_ignored(data: object) -> None:
    assert read_rail_click(data) is None


async def test_more_rows_come_fifty_at_a_time(desk: Desk) -> None:
    for number in range(51):
        await desk.studio._records.create("ann", f"Number {number}")
    assert (await desk.seen("look")).count("<li>") == 50
    assert (await desk.seen("more")).count("<li>") == 51
    assert (await desk.seen("look")).count("<li>") == 51


async def test_the_others_are_listed_beside_fifty_pinned_ones(desk: Desk) -> None:
    first = await desk.told("hello")
    await desk.studio.pin_conversation(first.id, True, "ann")
    for _ in range(49):
        copy = await desk.studio.duplicate_conversation(first.id, "ann")
        await desk.studio.pin_conversation(copy.id, True, "ann")
    newest = await desk.told("a red fox")
    shown = await desk.seen("look")
    assert shown.count('data-pinned="true"') == 50
    assert f'data-id="{newest.id}"' in shown
    assert 'data-rail="more"' not in shown


async def test_a_search_lasts_until_it_is_emptied(desk: Desk) -> None:
    await desk.told("a red fox")
    await desk.told("a blue whale")
    assert "<mark>whale</mark>" in await desk.seen("find", " whale ")
    assert "<mark>whale</mark>" in await desk.seen("look")
    assert (await desk.seen("find", "")).count("<li>") == 2
    assert "will be listed" in await desk.seen("look", owner="bob")


async def test_a_name_is_kept_and_shown_above_the_open_conversation(desk: Desk) -> None:
    key = (await desk.told("hello")).id
    changed = await desk.click("rename", key, current=key, text="Greetings")
    assert ">Greetings</h1>" in changed[desk.panels.chat.top]
    assert "Greetings" in changed[desk.panels.rail.rows]
    assert desk.panels.chat.top not in await desk.click("rename", key, text="Others")
    refused = await desk.click("rename", key, text=" ")
    assert 'role="alert"' in refused[desk.menus.said]
    assert (await desk.studio.conversation(key, "ann")).title == "Others"


async def test_pinning_is_shown_in_the_menus_of_the_row_and_of_the_top(desk: Desk) -> None:
    key = (await desk.told("hello")).id
    changed = await desk.click("pin", key, current=key)
    assert 'data-pinned="true"' in changed[desk.panels.chat.top]
    assert 'data-pinned="true"' in changed[desk.panels.rail.rows]
    assert "Pinned" not in (await desk.click("unpin", key))[desk.panels.rail.rows]


async def test_deleting_the_open_one_leads_to_a_new_one_and_undo_leads_back(desk: Desk) -> None:
    key = (await desk.told("hello")).id
    changed = await desk.click("delete", key, current=key)
    assert changed[desk.panels.composer.conversation] == ""
    assert f'data-id="{key}" data-open="true"' in changed[desk.menus.said]
    assert "will be listed" in changed[desk.panels.rail.rows]
    back = await desk.click("undo", key, is_open=True)
    assert back[desk.panels.composer.conversation] == key
    assert "is back" in back[desk.menus.said]


async def test_the_trash_shows_what_was_deleted_until_it_is_restored_or_goes_for_good(desk: Desk) -> None:
    stays, first, second = [(await desk.told(text)).id for text in ("hello there", "good morning", "good evening")]
    for key in (first, second):
        await desk.click("delete", key, current=stays)
    shown = await desk.seen("trash")
    assert shown.index("good evening") < shown.index("good morning")
    assert "hello there" not in shown
    assert shown.count("Deleted today · 30 days left") == 2
    assert "The trash is empty" in await desk.seen("look", owner="bob")
    restored = await desk.click("restore", first)
    assert "good morning" not in restored[desk.panels.rail.rows]
    assert "is back" in restored[desk.menus.said]
    gone = await desk.click("forget", second)
    assert "The trash is empty" in gone[desk.panels.rail.rows]
    listed = await desk.seen("list")
    assert ("good morning" in listed, "hello there" in listed, "good evening" in listed) == (True, True, False)
    await desk.click("delete", first)
    assert "The trash is empty" in (await desk.click("empty", ""))[desk.menus.said]
    assert await desk.studio.trash("ann") == []
    assert "<mark>hello</mark>" in await desk.seen("find", "hello"), "a search leaves the trash"


async def test_deleting_another_one_leaves_the_screen_as_it_is(desk: Desk) -> None:
    key, other = (await desk.told("hello")).id, (await desk.told("other words")).id
    changed = await desk.click("delete", other, current=key)
    assert desk.panels.chat.thread not in changed
    assert 'data-open="false"' in changed[desk.menus.said]


async def test_a_copy_is_opened_under_a_name_that_says_so(desk: Desk) -> None:
    key = (await desk.told("hello")).id
    changed = await desk.click("duplicate", key, current=key)
    copy = changed[desk.panels.composer.conversation]
    assert copy != key
    assert (await desk.studio.conversation(copy, "ann")).title.endswith("(copy)")
    await desk.click("rename", key, text="n" * 120)
    changed = await desk.click("duplicate", key, current=key)
    assert len((await desk.studio.conversation(changed[desk.panels.composer.conversation], "ann")).title) == 120


@pytest.mark.parametrize("act", ["rename", "pin", "duplicate", "delete", "undo", "restore", "forget"])
async def test_nobody_changes_what_is_somebody_elses(desk: Desk, act: str) -> None:
    key = (await desk.told("hello")).id
    changed = await desk.click(act, key, owner="bob", text="mine")
    assert "no longer exists" in changed[desk.menus.said]
    assert (await desk.studio.conversation(key, "ann")).title == "hello"


async def test_opening_a_conversation_brings_its_chips_back(desk: Desk) -> None:
    conversation = await desk.studio.new_conversation("ann")
    settings = Chosen(aspect_ratio="16:9", number_of_images="2", review="off", confirm=True).turn_settings()
    async for _ in desk.studio.run_turn(conversation.id, TurnRequest("draw a fox", settings=settings), owner="ann"):
        pass
    changed = await desk.click("delete", (await desk.told("x")).id, current="")
    assert desk.panels.composer.aspect_ratio not in changed
    copy = await desk.click("duplicate", conversation.id)
    chips = desk.panels.composer
    values = [copy[chip]["value"] for chip in (chips.aspect_ratio, chips.number_of_images, chips.review, chips.confirm)]
    assert values == ["16:9", "2", "off", True]


@pytest.mark.parametrize(
    "chosen",
    [
        Chosen(),
        Chosen(text_model="thinking", image_model="pro", allow_search=True, search_policy="both", resolution="2K"),
        Chosen(aspect_ratio="16:9", number_of_images="4", review="always", confirm=True),
    ],
)
def test_the_chips_of_a_turn_are_those_it_was_sent_with(chosen: Chosen) -> None:
    assert Chosen.of(chosen.turn_settings()) == chosen


def test_more_pictures_than_a_chip_offers_are_left_to_the_agent() -> None:
    assert Chosen.of(TurnSettings(number_of_images=None)).number_of_images == "auto"


# Said otherwise


async def branched(desk: Desk, key: str, click: BranchClick, owner: str = "ann") -> dict[Any, Any]:
    """Return what a click under the person's words changed, by component, as it is in the end."""
    changed: dict[Any, Any] = {}
    async for updates in Branches(desk.screen).answer(Visitor(owner, owner, EN), desk.tab, key, click):
        changed |= {one: value for one, value in updates.items() if value != gr.skip()}
    return changed


def test_what_is_no_click_under_a_message_is_ignored() -> None:
    assert read_branch_click({"act": "say"}) is None
    assert read_branch_click({"act": "say", "turn": "t", "text": ["x"]}) is None


async def test_words_said_otherwise_keep_all_else_and_the_first_version_is_a_step_away(desk: Desk) -> None:
    told = await desk.told("draw a red fox", "make it darker")
    first, second = told.turns
    await branched(desk, told.id, BranchClick(act="say", turn=second.id, text="make it brighter"))
    now = await desk.studio.conversation(told.id, "ann")
    assert [turn.text for turn in now.turns] == ["draw a red fox", "make it brighter"]
    assert now.turns[1].settings == second.settings
    assert now.forks[now.turns[1].id] == (second.id, now.turns[1].id)
    back = await branched(desk, told.id, BranchClick(act="switch", turn=second.id))
    assert ">1 / 2<" in str(back[desk.panels.chat.thread])
    assert [turn.text for turn in (await desk.studio.conversation(told.id, "ann")).turns][1] == "make it darker"
    assert first.id in {turn.id for turn in now.turns}


async def test_an_upload_comes_along_when_the_words_are_said_otherwise(desk: Desk) -> None:
    source = await desk.told("draw a red fox")
    data = (await desk.studio.picture(source.id, "#1", "ann")).data
    conversation = await desk.studio.new_conversation("ann")
    request = TurnRequest("make it darker", images=[("fox.png", data)])
    async for _ in desk.studio.run_turn(conversation.id, request, owner="ann"):
        pass
    [turn] = (await desk.studio.conversation(conversation.id, "ann")).turns
    await branched(desk, conversation.id, BranchClick(act="say", turn=turn.id, text="make it brighter"))
    [again] = (await desk.studio.conversation(conversation.id, "ann")).turns
    assert [image.digest for image in again.uploads] == [image.digest for image in turn.uploads]


async def test_nobody_says_somebody_elses_words_otherwise(desk: Desk) -> None:
    told = await desk.told("draw a red fox")
    assert await branched(desk, told.id, BranchClick(act="say", turn=told.turns[0].id, text="x"), "bob") == {}
    assert len((await desk.studio.conversation(told.id, "ann")).forks) == 0

"""The menu of presets: each click changes the visitor's own, and takes the chips along as they are offered now."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from agent.settings import Settings
from agent.studio import Studio
from tests.support.cases import each_case
from tests.webui.test_rail_wiring import Desk
from webui.panels.composer import Chosen
from webui.preset_wiring import PresetClick, Presets, Shelf, read_preset_click
from webui.sessions import Visitor
from webui.words import load_words

EN = load_words("en")
WIDE = Chosen(aspect_ratio="21:9", number_of_images="2", review="always", confirm=True)


class Menu:
    """The menu in one tab, clicked by visitors of a shared link."""

    def __init__(self, studio: Studio) -> None:
        self.desk = Desk(studio)
        self.presets, self.shelf = Presets(self.desk.screen, lambda: studio.preferences), Shelf()
        self.composer = self.desk.panels.composer

    async def click(
        self, act: str, key: str = "", name: str = "", chosen: Chosen | None = None, owner: str = "ann"
    ) -> dict[Any, Any]:
        click = PresetClick(act=act, id=key, name=name)
        return await self.presets.answer(Visitor(owner, owner, EN), self.shelf, click, chosen or Chosen())

    async def seen(self, owner: str = "ann") -> str:
        return str((await self.click("list", owner=owner))[self.composer.presets])

    async def key(self, owner: str = "ann") -> str:
        [found] = re.findall(r'<li data-id="([^"]+)"', await self.seen(owner))
        return str(found)


@pytest.fixture
async def menu(tmp_path: Path) -> AsyncIterator[Menu]:
    async with Studio(Settings(home=tmp_path)) as studio:
        yield Menu(studio)


def said(updates: dict[Any, Any], menu: Menu) -> str:
    found = re.search(r'<p class="said[^>]*><span>(.*?)</span>', str(updates[menu.composer.presets]))
    return unescape(found[1]) if found else ""


async def test_a_preset_shows_what_it_fixes_with_its_ratio_drawn(menu: Menu) -> None:
    assert "No presets yet" in await menu.seen()
    assert said(await menu.click("save", name="Wide", chosen=WIDE), menu) == "“Wide” is saved."
    shown = await menu.seen()
    for part in ("Wide", 'class="shape"', "21:9", "×2", "Always review", "Ask before painting"):
        assert part in shown
    assert said(await menu.click("save", name="wide"), menu) == "“wide” now holds these settings."
    assert "Everything automatic" in await menu.seen()


async def test_a_preset_that_is_taken_up_sets_the_chips(menu: Menu) -> None:
    await menu.click("save", name="Wide", chosen=WIDE)
    updates = await menu.click("use", await menu.key())
    values = {name: updates[chip]["value"] for name, chip in menu.composer.settings.items()}
    assert values["aspect_ratio"] == "21:9"
    assert (values["number_of_images"], values["review"], values["confirm"]) == ("2", "always", True)
    assert menu.composer.cost in updates


async def test_what_the_model_in_use_does_not_obey_is_left_to_the_agent(menu: Menu) -> None:
    await menu.click("save", name="Print", chosen=Chosen(image_model="pro", resolution="4K", aspect_ratio="1:8"))
    updates = await menu.click("use", await menu.key())
    assert updates[menu.composer.resolution]["value"] == "auto"


async def test_rename_delete_and_undo_say_what_they_did(menu: Menu) -> None:
    await menu.click("save", name="Wide", chosen=WIDE)
    key = await menu.key()
    assert "Film" in str((await menu.click("rename", key, "Film"))[menu.composer.presets])
    assert said(await menu.click("delete", key), menu) == "“Film” is deleted."
    assert "No presets yet" in await menu.seen()
    assert "Film" in str((await menu.click("undo"))[menu.composer.presets])
    await menu.click("undo")
    assert (await menu.seen()).count("<li ") == 1


async def test_what_cannot_be_done_is_told_in_one_sentence(menu: Menu) -> None:
    await menu.click("save", name="Wide", chosen=WIDE)
    await menu.click("save", name="Tall")
    keys = re.findall(r'<li data-id="([^"]+)"', await menu.seen())
    assert "already" in said(await menu.click("rename", keys[0], "tall"), menu)
    assert said(await menu.click("save", name=" "), menu) == "A preset needs a name of 1 to 60 characters."
    assert said(await menu.click("use", "gone"), menu) == "This preset is not there any more."
    assert (await menu.seen()).count("<li ") == 2


async def test_a_name_that_is_refused_is_there_to_be_typed_on(menu: Menu) -> None:
    await menu.click("save", name="Wide", chosen=WIDE)
    await menu.click("save", name="Tall")
    keys = re.findall(r'<li data-id="([^"]+)"', await menu.seen())
    refused = str((await menu.click("rename", keys[0], "tall"))[menu.composer.presets])
    assert re.findall(r'data-id="([^"]+)" data-name="[^"]+" data-typed="tall"', refused) == [keys[0]]
    assert "data-typed" not in await menu.seen()


async def test_nobody_sees_or_touches_anothers_presets(menu: Menu) -> None:
    await menu.click("save", name="Wide", chosen=WIDE)
    key = await menu.key()
    assert "Wide" not in await menu.seen("bob")
    for act in ("use", "rename", "delete"):
        updates = await menu.click(act, key, "Mine", owner="bob")
        assert said(updates, menu) == "This preset is not there any more."
    assert "Wide" in await menu.seen()


async def test_a_name_cannot_carry_markup(menu: Menu) -> None:
    shown = str((await menu.click("save", name='<img src=x onerror="x">'))[menu.composer.presets])
    assert "<img" not in shown


@each_case("data", [None, 3, [], {}, {"act": 1}, {"act": "save", "name": "x" * 401}])
def test_a_click_that_is_none_is_ignored(data: object) -> None:
    assert read_preset_click(data) is None

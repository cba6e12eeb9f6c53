"""What the gallery does to the page: pictures are opened, compared and referred to, never those of another."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import gradio as gr
import pytest

from agent.settings import Settings
from agent.studio import Studio
from tests.support.cases import each_case
from tests.support.galleries import filled
from tests.support.histories import finished
from webui.clicks import MAX_REFERENCES
from webui.gallery_wiring import At, GalleryActs, GalleryClick, read_gallery_click
from webui.panels.canvas import build_canvas
from webui.panels.chat import build_chat
from webui.panels.composer import build_composer
from webui.panels.conversations import build_rail
from webui.panels.settings import build_settings
from webui.screen import Panels, Screen
from webui.sessions import Sessions, Visitor
from webui.tabs import Tab
from webui.words import load_words

WORDS = load_words("en")
OWNER = "ann"


@dataclass
class Desk:
    """A studio whose owner has three pictures in one conversation and one in another, and the page before it."""

    studio: Studio
    acts: GalleryActs
    first: str
    second: str
    ids: list[int]
    tab: Tab = field(default_factory=Tab)

    async def click(
        self, act: str, *ids: int, at: At | None = None, owner: str = OWNER, opened: str = ""
    ) -> dict[str, Any]:
        """Return what a click changed, by what it is on the page."""
        updates: dict[Any, Any] = {}
        visitor = Visitor(owner, owner, WORDS)
        click = GalleryClick.model_validate({"act": act, "ids": ids, "opened": opened})
        async for some in self.acts.answer(visitor, self.tab, click, at or At(self.first)):
            updates |= some
        panels = self.acts.screen.panels
        named = {
            "canvas": panels.canvas,
            "thread": panels.chat.thread,
            "conversation": panels.composer.conversation,
            "references": panels.composer.references,
            "editing": panels.composer.editing,
            "top": panels.chat.top,
            "message": panels.composer.message,
        }
        names = {id(component): name for name, component in named.items()}
        return {names[id(component)]: value for component, value in updates.items() if id(component) in names}


@pytest.fixture
async def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Desk]:
    monkeypatch.setenv("GRADIO_TEMP_DIR", str(tmp_path / "uploads"))
    home = tmp_path / "home"
    home.mkdir()
    async with filled(home) as kept:
        first, second = await kept.conversation(OWNER, "First"), await kept.conversation(OWNER, "Second")
        ids = [await kept.add(one, "a fox", words="a fox") for one in (first, first, first, second)]
        for one in (first, second):
            turn = (await kept.store.conversation_of_any_owner(one)).turns[-1]
            await kept.store.finish_turn(one, finished(turn))
    async with Studio(Settings(home=home)) as studio:
        with gr.Blocks():
            panels = Panels(
                build_rail(), build_chat(), build_composer(studio.catalogue), build_canvas(), build_settings()
            )
        screen = Screen(lambda: studio, Sessions(b"secret", is_shared=True), panels)
        yield Desk(studio, GalleryActs(screen), first, second, ids)


@each_case(
    "data",
    [
        None,
        "open",
        {},
        {"act": "open", "ids": []},
        {"act": "open", "ids": "7"},
        {"act": "open", "ids": ["x"]},
        {"act": "burn", "ids": [7]},
        {"act": "open", "ids": [7], "owner": "bob"},
        {"act": "reference", "ids": list(range(MAX_REFERENCES + 1))},
    ],
)
def test_anything_but_an_act_and_a_few_pictures_is_ignored(data: object) -> None:
    assert read_gallery_click(data) is None


def test_a_click_is_read() -> None:
    assert read_gallery_click({"act": "compare", "ids": [7, 9]}) == GalleryClick(act="compare", ids=(7, 9))


async def test_a_picture_of_the_open_conversation_comes_onto_the_stage_and_nothing_else_changes(desk: Desk) -> None:
    changed = await desk.click("open", desk.ids[1])
    assert list(changed) == ["canvas"]
    assert 'data-handle="#2"' in changed["canvas"]
    assert desk.tab.ticket == 0


async def test_a_picture_of_another_conversation_opens_that_one_and_itself(desk: Desk) -> None:
    changed = await desk.click("open", desk.ids[3])
    assert changed["conversation"] == desk.second
    assert f'data-conversation="{desk.second}" data-handle="#4"' in changed["canvas"]
    assert desk.tab.ticket == 1, "what streamed into the page before must not go on writing"


async def test_two_are_compared_the_older_one_first(desk: Desk) -> None:
    changed = await desk.click("compare", desk.ids[2], desk.ids[0])
    assert list(changed) == ["canvas"]
    assert 'data-pair="#1 #3"' in changed["canvas"]


async def test_two_of_another_conversation_are_compared_there(desk: Desk) -> None:
    changed = await desk.click("compare", desk.ids[0], desk.ids[1], at=At(desk.second))
    assert changed["conversation"] == desk.first
    assert 'data-pair="#1 #2"' in changed["canvas"]


@pytest.mark.parametrize("which", [(0,), (0, 3), (0, 1, 2), (0, 0)], ids=["one", "of-two", "three", "twice"])
async def test_anything_but_two_of_one_conversation_is_not_compared(desk: Desk, which: tuple[int, ...]) -> None:
    with pytest.warns(UserWarning, match="not there any more"):
        assert await desk.click("compare", *(desk.ids[one] for one in which)) == {}


async def test_pictures_of_the_open_conversation_join_the_references(desk: Desk) -> None:
    at = At(desk.first, editing="#3", references=("#2",))
    changed = await desk.click("reference", *desk.ids[:3], at=at)
    assert changed == {"references": "#1 #2", "editing": "#3"}


async def test_pictures_of_elsewhere_begin_a_conversation_with_copies_of_them(desk: Desk, tmp_path: Path) -> None:
    draft: Mapping[str, Any] = {"text": "like these", "files": ["/uploads/mine.png"]}
    changed = await desk.click("reference", desk.ids[0], desk.ids[3], at=At(desk.first, message=draft))
    assert changed["conversation"] == ""
    assert changed["thread"] == []
    value = changed["message"]["value"]
    assert value["text"] == "like these"
    before, *copies = [Path(file) for file in value["files"]]
    assert before == Path("/uploads/mine.png")
    assert [copy.name for copy in copies] == ["aivista-1-a-fox.png", "aivista-4-a-fox.png"]
    stored = [await desk.studio.picture(desk.first, "#1", OWNER), await desk.studio.picture(desk.second, "#4", OWNER)]
    assert [copy.read_bytes() for copy in copies] == [one.data for one in stored]
    assert all(copy.is_relative_to((tmp_path / "uploads").resolve()) for copy in copies)
    assert len({copy.parent for copy in copies}) == 2


@pytest.mark.parametrize("act", ["open", "compare", "reference"])
async def test_the_pictures_of_another_are_not_there(desk: Desk, act: str, tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="not there any more"):
        assert await desk.click(act, desk.ids[0], desk.ids[1], owner="bob") == {}
    assert not (tmp_path / "uploads").exists()
    assert desk.tab.ticket == 0


async def test_a_picture_whose_file_is_gone_changes_nothing_and_is_told(desk: Desk) -> None:
    digest = (await desk.studio.gallery.items(OWNER, desk.ids[3:]))[0].picture.image.digest
    for file in (desk.studio.settings.home / "pictures").rglob(f"{digest}*"):
        file.unlink()
    with pytest.warns(UserWarning, match=r"\S"):
        assert await desk.click("reference", desk.ids[3]) == {}
    assert desk.tab.ticket == 0


async def test_after_a_deletion_the_thread_is_shown_without_the_picture_and_nothing_else_moves(desk: Desk) -> None:
    await desk.studio.gallery.delete(OWNER, desk.ids[:1])
    changed = await desk.click("changed", desk.ids[0], at=At(desk.first, editing="#2"), opened="#2")
    assert set(changed) == {"thread", "top"}
    assert desk.tab.ticket == 0, "a turn that streams into the page goes on doing so"
    await desk.studio.gallery.undelete(OWNER, desk.ids[:1])
    back = await desk.click("changed", desk.ids[0], at=At(desk.first))
    assert "3 pictures" in back["top"]
    assert "2 pictures" in changed["top"]


@pytest.mark.parametrize("opened", ["#1", "#1 #2"])
async def test_a_deleted_picture_leaves_the_stage_and_the_composer(desk: Desk, opened: str) -> None:
    await desk.studio.gallery.delete(OWNER, desk.ids[:1])
    at = At(desk.first, editing="#1", references=("#2", "#3"))
    changed = await desk.click("changed", desk.ids[0], at=at, opened=opened)
    assert "cv-pic" not in changed["canvas"]
    assert (changed["editing"], changed["references"]) == ("", "#2 #3")


async def test_nobody_has_the_conversation_of_another_drawn(desk: Desk) -> None:
    assert await desk.click("changed", desk.ids[0], owner="bob") == {}

"""A draft's chips and marks come back as far as they still mean something."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import gradio as gr
import pytest

from agent.settings import Settings
from agent.studio import Studio
from tests.webui.test_rail_wiring import Desk
from webui.draft_wiring import Draft, chosen_of, read_draft, restored
from webui.page import build_page
from webui.panels.composer import Chosen
from webui.sessions import Visitor
from webui.words import load_words

ANN = Visitor("ann", "ann", load_words("en"))
CHIPS = {"aspect_ratio": "21:9", "confirm": True, "review": "off"}


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    async with Studio(Settings(home=tmp_path)) as studio:
        yield Desk(studio)


async def test_the_chips_come_back_in_a_new_conversation(desk: Desk) -> None:
    updates = restored(desk.screen, ANN, Draft(chips=CHIPS), None)
    values = {name: updates[chip]["value"] for name, chip in desk.panels.composer.settings.items()}
    assert (values["aspect_ratio"], values["confirm"], values["review"]) == ("21:9", True, "off")
    assert desk.panels.composer.context not in updates


async def test_pictures_are_marked_again_with_what_they_were_for(desk: Desk) -> None:
    conversation = await desk.told("draw a red fox", "draw a cup", "draw a boat")
    draft = Draft(editing="#1", references=("#2", "#3", "#9", "#1"), roles='{"#2": "style", "#9": "face"}')
    updates = restored(desk.screen, ANN, draft, conversation)
    composer = desk.panels.composer
    assert (updates[composer.editing], updates[composer.references]) == ("#1", "#2 #3")
    assert updates[composer.roles] == '{"#2": "style"}'
    assert composer.aspect_ratio not in updates, "chips that were not kept stay as they are"


async def test_marks_of_pictures_that_are_gone_change_nothing(desk: Desk) -> None:
    conversation = await desk.told("draw a red fox")
    assert restored(desk.screen, ANN, Draft(editing="#8", references=("#9",)), conversation) == {}


@pytest.mark.parametrize("chips", [{"aspect_ratio": 3.5}, {"image_model": "hologram"}, {"number_of_images": "many"}])
def test_chips_that_this_page_does_not_offer_are_left_alone(chips: dict[str, object]) -> None:
    draft = read_draft({"chips": chips})
    assert draft is None or chosen_of(draft) is None


def test_a_draft_says_what_its_chips_said() -> None:
    assert chosen_of(Draft(chips=CHIPS)) == Chosen(aspect_ratio="21:9", confirm=True, review="off")


@pytest.mark.parametrize("data", [None, 1, "x", {"references": ["#1"] * 50}, {"roles": "x" * 3000}])
def test_a_draft_that_is_none_is_ignored(data: object) -> None:
    assert read_draft(data) is None


async def test_a_draft_of_a_new_conversation_is_not_put_into_one_that_is_open_by_now(desk: Desk) -> None:
    page = build_page(lambda: desk.studio, desk.studio.catalogue, desk.screen.sessions).blocks
    [restore] = [one for one in page.fns.values() if one.name == "restore"]
    assert restore.trigger_mode == "multiple", "one that is asked for while another is under way counts, too"
    event = gr.EventData(None, {"conversation": "", "chips": CHIPS})
    request = gr.Request(headers={}, cookies={})
    assert restore.fn is not None
    assert len(await restore.fn(request, event, "")) > 1
    assert len(await restore.fn(request, event, "another")) == 1

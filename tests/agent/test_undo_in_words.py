"""Undo, redo and "back to #1" in words: no new picture, no call, and the next words change the earlier picture."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from agent.adjusting import Adjustment
from agent.adjusting.applying import apply_adjustment
from agent.components import ActionPanel, AgentMessage, SmartCanvas, TargetNote
from agent.events import PictureReady, TargetChanged, TurnDone, TurnEvent
from agent.messages import TextPart, ToolCallPart, ToolResultPart
from agent.providers.scripted import Asked, calls, says
from agent.settings import Settings
from agent.studio import Studio
from tests.support.children import StudioChild
from tests.support.scenes import Scene, generate, of_type, only, picture, png, run, words
from tests.support.turns import at_rest

FOX = [calls(generate()), calls(generate("add a hat", action="edit_image"))]


def written(asked: Asked) -> str:
    """Return the newest message of the person as the planner was shown it."""
    prompts = [message for message in asked.messages if message.role == "prompt"]
    return "\n".join(part.text for part in prompts[-1].parts if isinstance(part, TextPart))


def parents(events: list[TurnEvent]) -> tuple[str, ...]:
    return only(events, PictureReady).picture.parents


@pytest.mark.parametrize(
    "text", ["undo that", "put it back", "go back to #1", "use the first one again", "撤销", "恢复原来的", "回到第一张"]
)
async def test_the_earlier_picture_is_shown_and_nothing_is_asked_or_paid(settings: Settings, text: str) -> None:
    scene = Scene(settings, text=FOX, pictures=[picture(), picture(colour="blue")])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        await run(studio, conversation.id, "a red fox")
        await run(studio, conversation.id, "add a hat")
        asked = len(scene.provider.asked)
        events = await run(studio, conversation.id, text)
        kept = await studio.conversation(conversation.id)
        after = await run(studio, conversation.id, "make it warmer")
    assert len(scene.provider.asked) == asked
    change = only(events, TargetChanged)
    assert (change.handle, change.before, change.has_moved) == ("#1", "#1b", True)
    done = events[-1]
    assert isinstance(done, TurnDone)
    assert done.price_usd == 0.0
    assert [one.handle for one in kept.pictures] == ["#1", "#1b"]
    assert kept.edit_target == "#1"
    note, panel = kept.turns[-1].components
    assert note == TargetNote(change=change)
    assert isinstance(panel, ActionPanel)
    assert panel.handle == "#1"
    assert parents(after) == ("#1",)


@pytest.mark.parametrize(("back", "forward"), [("undo", "redo"), ("undo that", "undo the undo"), ("撤销", "重做")])
async def test_redo_and_the_undo_of_an_undo_go_forward_again(settings: Settings, back: str, forward: str) -> None:
    async with Studio(settings) as studio:
        conversation = await studio.new_conversation()
        await run(studio, conversation.id, "make it warmer", png())
        await run(studio, conversation.id, back)
        events = await run(studio, conversation.id, forward)
        kept = await studio.conversation(conversation.id)
    assert only(events, TargetChanged).handle == kept.edit_target == "#1b"


async def test_undo_goes_one_step_further_each_time_and_says_when_nothing_is_left(settings: Settings) -> None:
    async with Studio(settings) as studio:
        conversation = await studio.new_conversation()
        await run(studio, conversation.id, "make it warmer", png())
        await run(studio, conversation.id, "make it darker")
        moves = [only(await run(studio, conversation.id, "undo"), TargetChanged) for _ in range(3)]
        kept = await studio.conversation(conversation.id)
    assert [(one.handle, one.has_moved) for one in moves] == [("#1b", True), ("#1", True), ("#1", False)]
    assert len(kept.turns[-1].components) == 1


async def test_redo_where_nothing_was_undone_says_so(settings: Settings) -> None:
    async with Studio(settings) as studio:
        conversation = await studio.new_conversation()
        await run(studio, conversation.id, "make it warmer", png())
        change = only(await run(studio, conversation.id, "重做"), TargetChanged)
    assert (change.handle, change.has_moved) == ("#1b", False)


async def test_in_a_conversation_without_pictures_the_words_go_on_to_the_agent(settings: Settings) -> None:
    scene = Scene(settings, text=[says("There is nothing to undo yet.")])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        events = await run(studio, conversation.id, "undo that")
    assert words(events) == "There is nothing to undo yet."
    assert not of_type(events, TargetChanged)


async def test_a_picture_that_is_not_there_is_named_and_nothing_is_changed(settings: Settings) -> None:
    scene = Scene(settings)
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        await run(studio, conversation.id, "make it warmer", png())
        events = await run(studio, conversation.id, "go back to #9 and make it darker")
        kept = await studio.conversation(conversation.id)
    change = only(events, TargetChanged)
    assert (change.missing, change.handle) == ("#9", "#1b")
    assert len(kept.pictures) == 2
    assert scene.provider.asked == []


@pytest.mark.parametrize(
    "text", ["undo that and make it darker", "撤销，再暗一些", "go back to #1, then make it darker"]
)
async def test_an_adjustment_asked_for_besides_starts_from_the_earlier_picture(settings: Settings, text: str) -> None:
    data = png(50, 40, "#4080c0")
    async with Studio(settings) as studio:
        conversation = await studio.new_conversation()
        await run(studio, conversation.id, "make it warmer", data)
        events = await run(studio, conversation.id, text)
        stored = await studio.picture(conversation.id, "#1c")
    assert only(events, TargetChanged).handle == "#1"
    assert parents(events) == ("#1",)
    assert stored.data == apply_adjustment(data, Adjustment(brightness=-30)).data


async def test_a_change_by_a_model_asked_for_besides_starts_from_the_earlier_picture(settings: Settings) -> None:
    third = calls(generate("add a scarf", action="edit_image"))
    scene = Scene(settings, text=[*FOX, third], pictures=[picture(), picture(), picture()])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        await run(studio, conversation.id, "a red fox")
        await run(studio, conversation.id, "add a hat")
        events = await run(studio, conversation.id, "No, undo that and add a scarf instead")
        kept = await studio.conversation(conversation.id)
    assert parents(events) == ("#1",)
    told = written(scene.provider.asked[-2])
    assert told.startswith("add a scarf instead\n[The person went back to #1 first: it is the picture to change.]")
    assert "When no picture is named, #1 is the one to change." in told
    assert kept.turns[-1].text == kept.turns[-1].messages[0].text == "No, undo that and add a scarf instead"
    assert kept.edit_target == "#1c"


async def test_the_planner_hears_in_later_turns_which_picture_is_the_one(settings: Settings) -> None:
    third = calls(generate("add a scarf", action="edit_image", reference_mode="LAST_GENERATED"))
    scene = Scene(settings, text=[*FOX, third], pictures=[picture(), picture(), picture()])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        await run(studio, conversation.id, "a red fox")
        await run(studio, conversation.id, "add a hat")
        await run(studio, conversation.id, "undo that")
        events = await run(studio, conversation.id, "add a scarf")
    planner = scene.provider.asked[-2]
    assert "When no picture is named, #1 is the one to change." in written(planner)
    assert any("went back one step: #1 is the picture to change now" in message.text for message in planner.messages)
    assert parents(events) == ("#1",)


async def test_the_planner_can_go_back_by_itself(settings: Settings) -> None:
    back = calls(ToolCallPart(name="go_back_to", arguments={"handle": "#1"}))
    scene = Scene(settings, text=[*FOX, back, says("Here it is again.")], pictures=[picture(), picture()])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        await run(studio, conversation.id, "a red fox")
        await run(studio, conversation.id, "add a hat")
        events = await run(studio, conversation.id, "hm, somehow I fancied the bareheaded one more")
        kept = await studio.conversation(conversation.id)
    assert only(events, TargetChanged).handle == kept.edit_target == "#1"
    assert [type(one) for one in kept.turns[-1].components if not isinstance(one, AgentMessage)][-1:] == [TargetNote]
    assert len(kept.pictures) == 2


async def test_a_picture_that_the_planner_makes_up_goes_back_to_it_as_an_error(settings: Settings) -> None:
    back = calls(ToolCallPart(name="go_back_to", arguments={"handle": "#9"}))
    scene = Scene(settings, text=[FOX[0], back, says("There is no such picture.")], pictures=[picture()])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        await run(studio, conversation.id, "a red fox")
        events = await run(studio, conversation.id, "hm, what about the other fox?")
    answer = scene.provider.asked[-1].messages[-1].parts[0]
    assert isinstance(answer, ToolResultPart)
    assert answer.is_error
    assert of_type(events, TargetChanged) == []


async def test_sketch_mode_writes_on_the_earlier_picture(settings: Settings) -> None:
    async with Studio(settings) as studio:
        conversation = await studio.new_conversation()
        await run(studio, conversation.id, "make it warmer", png(400, 300))
        events = await run(studio, conversation.id, "undo that and add the text “Hello”")
        after = await run(studio, conversation.id, "undo")
    assert parents(events) == ("#1",)
    assert only(after, TargetChanged).handle == "#1"


async def test_a_selected_picture_goes_back_to_the_one_it_was_made_from(settings: Settings) -> None:
    async with Studio(settings) as studio:
        conversation = await studio.new_conversation()
        await run(studio, conversation.id, "make it warmer", png())
        await run(studio, conversation.id, "make it darker")
        change = only(await run(studio, conversation.id, "undo that", editing="#1b"), TargetChanged)
    assert change.handle == "#1"


async def test_words_beside_an_upload_are_about_the_upload(settings: Settings) -> None:
    scene = Scene(settings, text=[says("What shall I do with it?")])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        events = await run(studio, conversation.id, "undo that", png())
    assert of_type(events, TargetChanged) == []
    assert len(scene.provider.asked) == 1


async def test_it_holds_after_a_restart_and_on_each_branch(settings: Settings) -> None:
    async with Studio(settings) as studio:
        conversation = await studio.new_conversation()
        await run(studio, conversation.id, "make it warmer", png())
        await run(studio, conversation.id, "undo")
    async with Studio(settings) as studio:
        assert (await studio.conversation(conversation.id)).edit_target == "#1"
        again = await run(studio, conversation.id, "redo")
    assert only(again, TargetChanged).handle == "#1b"


KILLED = """
import asyncio, os, signal, sys
from pathlib import Path
from agent import Settings, Studio, TurnRequest

async def main(home, picture, moment):
    async with Studio(Settings(home=Path(home))) as studio:
        conversation = await studio.new_conversation()
        print(conversation.id, flush=True)
        for text, images in (("make it warmer", [Path(picture)]), ("undo that and make it darker", [])):
            async for event in studio.run_turn(conversation.id, TurnRequest(text=text, images=images)):
                if images == [] and moment in (event.type, getattr(event, "step", None)):
                    os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main(*sys.argv[1:]))
"""


@pytest.mark.parametrize("moment", ["target_changed", "adjusting", "picture_ready"])
async def test_a_studio_killed_in_the_middle_goes_on_from_the_earlier_picture(
    settings: Settings, tmp_path: Path, moment: str
) -> None:
    file = tmp_path / "blue.png"
    file.write_bytes(png(64, 36, "#4080c0"))
    with StudioChild(KILLED, str(settings.home), str(file), moment) as child:
        conversation_id = await child.line()
        assert await child.ended() == -signal.SIGKILL
    async with Studio(settings) as studio:
        kept = await at_rest(studio, conversation_id)
    assert [(one.handle, one.parents) for one in kept.pictures] == [("#1", ()), ("#1b", ("#1",)), ("#1c", ("#1",))]
    notes = [one for one in kept.turns[-1].components if isinstance(one, TargetNote)]
    assert [note.change.handle for note in notes] == ["#1"]
    assert SmartCanvas(handles=("#1c",)) in kept.turns[-1].components

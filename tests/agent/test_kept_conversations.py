"""What a person does with whole conversations, through the one door: kept, found, put away, brought back, copied."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from agent.components import SmartCanvas
from agent.conversation import TurnState
from agent.errors import ErrorCode, ErrorInfo, RequestRefused
from agent.events import TurnDone, TurnStopped
from agent.messages import TextPart
from agent.providers.scripted import Hold, Line, calls, says
from agent.settings import Settings, TurnSettings
from agent.storage.gallery_values import GalleryQuery
from agent.studio import TurnRequest
from tests.support.scenes import Scene, generate, picture, png, run, words
from tests.support.turns import send, started
from tests.support.waiting import until


async def test_a_conversation_is_called_what_the_model_called_the_picture(settings: Settings) -> None:
    scene = Scene(settings, text=[calls(generate(subject="a fox in the snow")), says("Well.")], pictures=[picture()])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        events = await run(studio, conversation.id, "please could you draw me one of those red animals")
        titles = [one.title for one in await studio.conversations()]
        assert (await studio.conversation(conversation.id)).title == "A fox in the snow"
        await run(studio, conversation.id, "thank you")
        titles += [one.title for one in await studio.conversations()]
    assert isinstance(events[-1], TurnDone)
    assert titles == ["A fox in the snow"] * 2
    assert len(scene.provider.asked) == 3, "no call of its own for the title"


async def test_what_the_person_called_it_stays_whatever_the_model_calls_it(settings: Settings) -> None:
    scene = Scene(settings, text=[calls(generate(subject="a fox in the snow"))], pictures=[picture()])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        await studio.rename_conversation(conversation.id, "Christmas cards")
        await run(studio, conversation.id, "a fox")
        assert [one.title for one in await studio.conversations()] == ["Christmas cards"]


async def test_conversations_are_found_by_what_anybody_said_in_them(settings: Settings) -> None:
    scene = Scene(settings, text=[says("一只苍鹭站在水里。"), says("Foxes are red.")])
    async with scene.studio() as studio:
        heron, fox = await studio.new_conversation(), await studio.new_conversation()
        await run(studio, heron.id, "a heron")
        await run(studio, fox.id, "a fox")
        by_answer = await studio.search_conversations("苍鹭")
        by_wish = await studio.search_conversations("fox")
        assert await studio.search_conversations("fox", owner="ann") == []
    assert [(one.info.id, one.place) for one in by_answer] == [(heron.id, "answered")]
    assert [one.info.id for one in by_wish] == [fox.id]


async def test_deleting_stops_what_runs_and_bringing_it_back_shows_how_far_it_came(settings: Settings) -> None:
    gate = asyncio.Event()
    scene = Scene(settings, text=[Line((TextPart(text="One "), Hold(gate), TextPart(text="two.")))])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        running = asyncio.create_task(run(studio, conversation.id, "count"))
        await until(lambda: len(scene.provider.asked) == 1)
        await studio.delete_conversation(conversation.id)
        assert isinstance((await running)[-1], TurnStopped)
        assert await studio.conversations() == []
        with pytest.raises(RequestRefused) as refused:
            await studio.conversation(conversation.id)
        back = await studio.undelete_conversation(conversation.id)
    assert refused.value.code is ErrorCode.CONVERSATION_NOT_FOUND
    assert [(turn.text, turn.state) for turn in back.turns] == [("count", TurnState.STOPPED)]


async def test_a_picture_that_was_paid_for_is_there_when_its_conversation_is_brought_back(settings: Settings) -> None:
    gate = asyncio.Event()
    late = Line((Hold(gate), *picture().parts))
    scene = Scene(settings, text=[calls(generate())], pictures=[late])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        running = asyncio.create_task(run(studio, conversation.id, "a fox"))
        await until(lambda: len(scene.provider.asked) == 2)
        await studio.delete_conversation(conversation.id)
        await running
        gate.set()
    async with scene.studio() as studio:
        back = await studio.undelete_conversation(conversation.id)
        data = (await studio.picture(conversation.id, "#1")).data
    assert [one.handle for one in back.pictures] == ["#1"]
    assert SmartCanvas(handles=("#1",)) in back.turns[0].components
    assert data


async def test_nobody_else_deletes_or_stops_a_conversation(settings: Settings) -> None:
    gate = asyncio.Event()
    scene = Scene(settings, text=[Line((Hold(gate), TextPart(text="Well.")))])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        running = asyncio.create_task(run(studio, conversation.id, "a"))
        await until(lambda: len(scene.provider.asked) == 1)
        with pytest.raises(RequestRefused):
            await studio.delete_conversation(conversation.id, "ann")
        gate.set()
        assert isinstance((await running)[-1], TurnDone)


async def test_a_copy_goes_on_by_itself_and_knows_its_pictures(settings: Settings) -> None:
    change = generate("make it blue", action="edit_image", handles=["#1"])
    signed = picture(signature=b"s" * 5000)
    scene = Scene(
        settings, text=[calls(generate()), calls(change), says("Hello.")], pictures=[signed, picture(colour="blue")]
    )
    async with scene.studio() as studio:
        original = await studio.new_conversation()
        await run(studio, original.id, "a fox")
        copy = await studio.duplicate_conversation(original.id, title="Another fox")
        await run(studio, copy.id, "make the fox blue")
        kept, other = await studio.conversation(copy.id), await studio.conversation(original.id)
        assert [one.title for one in await studio.conversations()] == ["Another fox", "a fox"]
        assert words(await run(studio, original.id, "hello")) == "Hello."
    painted = scene.provider.asked[-2].request
    assert painted is not None
    assert [one.role.value for one in painted.messages] == ["prompt", "model", "prompt"], "its own answer goes back"
    assert [one.handle for one in kept.pictures] == ["#1", "#1b"]
    assert [one.handle for one in other.pictures] == ["#1"]


async def test_a_plan_that_waits_can_be_decided_in_the_original_only(settings: Settings) -> None:
    scene = Scene(settings, text=[calls(generate())])
    async with scene.studio() as studio:
        original = await studio.new_conversation()
        waiting = started(await send(studio, original.id, TurnRequest("a fox", settings=TurnSettings(confirm=True))))
        copy = await studio.duplicate_conversation(original.id)
        kept = await studio.conversation(original.id)
    assert (kept.turns[0].id, kept.turns[0].state) == (waiting, TurnState.WAITING)
    assert (copy.turns[0].id != waiting, copy.turns[0].state) == (True, TurnState.STOPPED)


async def test_opening_a_conversation_tells_the_settings_of_its_last_turn(settings: Settings) -> None:
    scene = Scene(settings, text=[says("Well."), says("Well.")])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        await run(studio, conversation.id, "a", aspect_ratio="1:1")
        await run(studio, conversation.id, "b", aspect_ratio="9:16", image_model="pro")
    async with scene.studio() as studio:
        last = (await studio.conversation(conversation.id)).turns[-1].settings
    assert (last.aspect_ratio, last.image_model) == ("9:16", "pro")


async def test_the_pinned_stand_first(settings: Settings) -> None:
    scene = Scene(settings, text=lambda asked: says("Well."))
    async with scene.studio() as studio:
        kept = [await studio.new_conversation() for _ in range(3)]
        for one in kept:
            await run(studio, one.id, "hello")
        await studio.pin_conversation(kept[0].id, True)
        assert [one.id for one in await studio.conversations()] == [kept[0].id, kept[2].id, kept[1].id]
        assert [one.id for one in await studio.conversations(limit=1, offset=1)] == [kept[2].id]


async def test_the_newest_is_found_behind_fifty_pinned_ones(settings: Settings) -> None:
    scene = Scene(settings, text=lambda asked: says("Well."))
    async with scene.studio() as studio:
        first = await studio.new_conversation()
        await run(studio, first.id, "hello")
        await studio.pin_conversation(first.id, True)
        for _ in range(49):
            await studio.pin_conversation((await studio.duplicate_conversation(first.id)).id, True)
        newest = await studio.new_conversation()
        await run(studio, newest.id, "hello")
        assert newest.id not in [one.id for one in await studio.conversations()]
        assert await studio.newest_conversation() == newest.id
        await studio.new_conversation()
        assert await studio.newest_conversation() == newest.id
        assert await studio.newest_conversation("somebody else") is None


async def test_a_picture_that_is_not_there_is_refused_by_what_became_of_it(settings: Settings) -> None:
    """One that never was, one that was deleted, and one whose file is lost are three different things."""
    scene = Scene(settings, text=[calls(generate())], pictures=[picture()])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        await run(studio, conversation.id, "a red fox")
        await run(studio, conversation.id, "look", png())
        (deleted,) = [
            one.id for one in (await studio.gallery.page("local", GalleryQuery())).items if one.picture.handle == "#1"
        ]
        await studio.gallery.delete("local", [deleted])
        for file in (settings.home / "pictures").glob("**/*.*"):
            file.unlink()

        async def refused(handle: str, of: Callable[..., Awaitable[object]]) -> ErrorInfo:
            with pytest.raises(RequestRefused) as caught:
                await of(conversation.id, handle)
            return caught.value.info

        async def thumbnail(conversation_id: str, handle: str) -> object:
            return await studio.thumbnail(conversation_id, handle, 64)

        for of in (studio.picture, thumbnail):
            told = {handle: await refused(handle, of) for handle in ("#999", "#1", "#2")}
            assert [info.code for info in told.values()] == [
                ErrorCode.PICTURE_NOT_FOUND,
                ErrorCode.PICTURE_DELETED,
                ErrorCode.PICTURE_FILE_MISSING,
            ]
            assert all(handle in info.message for handle, info in told.items())

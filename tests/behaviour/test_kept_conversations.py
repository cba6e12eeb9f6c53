"""What a person does with whole conversations: kept, found, put away, brought back, copied."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from agent import ErrorCode, ErrorInfo, RequestRefused, SmartCanvas, TurnEvent, TurnState, TurnStopped
from tests.adapters.records import gallery_ids
from tests.behaviour.conftest import OpenTalk
from tests.behaviour.talk import Talk
from tests.support.gemini import SMALL, paint
from tests.support.refusals import refusal
from tests.support.scenes import png
from tests.support.waiting import until
from tests.wire_server import Hold, PictureAnswer, Text


async def last_of(stream: AsyncIterator[TurnEvent]) -> TurnEvent:
    """Run a turn to its end, whatever becomes of its conversation; return its last event."""
    return [event async for event in stream][-1]


async def held(talk: Talk, text: str) -> asyncio.Task[TurnEvent]:
    """Begin a turn and return once an answer to it is held."""
    running = asyncio.create_task(last_of(talk.run(text)))
    await until(lambda: talk.models.held)
    return running


async def titles(talk: Talk) -> list[str]:
    return [one.title for one in await talk.studio.conversations.list(talk.owner)]


async def test_a_conversation_is_called_what_the_model_called_the_picture(talk: Talk) -> None:
    wish = "please could you draw me one of those red animals"
    first = await talk.say(wish, plan=paint(subject="a fox in the snow"), image=SMALL)
    assert (await titles(talk), (await talk.kept()).title) == (["A fox in the snow"], "A fox in the snow")
    second = await talk.say("thank you", plan=Text("Well."))
    assert await titles(talk) == ["A fox in the snow"]
    assert (len(first.requests), len(second.requests)) == (2, 1), "no call of its own for the title"


async def test_what_the_person_called_it_stays_whatever_the_model_calls_it(talk: Talk) -> None:
    await talk.studio.conversations.rename(talk.id, "Christmas cards", talk.owner)
    await talk.say("a fox", plan=paint(subject="a fox in the snow"), image=SMALL)
    assert await titles(talk) == ["Christmas cards"]


async def test_conversations_are_found_by_what_anybody_said_in_them(talk: Talk) -> None:
    fox = await talk.another()
    await talk.say("a heron", plan=Text("一只苍鹭站在水里。"))
    await fox.say("a fox", plan=Text("Foxes are red."))
    by_answer = await talk.studio.conversations.search("苍鹭", talk.owner)
    by_wish = await talk.studio.conversations.search("fox", talk.owner)
    assert [(one.info.id, one.place) for one in by_answer] == [(talk.id, "answered")]
    assert [one.info.id for one in by_wish] == [fox.id]
    assert await talk.studio.conversations.search("fox", owner="ann") == []


async def test_deleting_stops_what_runs_and_bringing_it_back_shows_how_far_it_came(talk: Talk) -> None:
    talk.models.on_text(Hold(Text("One two.", chunks=2), after_chunks=1))
    running = await held(talk, "count")
    await talk.studio.conversations.delete(talk.id, talk.owner)
    assert isinstance(await running, TurnStopped)
    assert await titles(talk) == []
    assert await refusal(talk.kept()) is ErrorCode.CONVERSATION_NOT_FOUND
    back = await talk.studio.conversations.undelete(talk.id, talk.owner)
    assert [(turn.text, turn.state) for turn in back.turns] == [("count", TurnState.STOPPED)]


async def test_a_picture_that_was_paid_for_is_there_when_its_conversation_is_brought_back(talk: Talk) -> None:
    talk.models.on_text(paint())
    talk.models.on_image(Hold(SMALL))
    running = await held(talk, "a fox")
    await talk.studio.conversations.delete(talk.id, talk.owner)
    await running
    talk.models.release()
    await talk.studio.conversations.undelete(talk.id, talk.owner)

    async def is_shown() -> bool:
        return SmartCanvas(handles=("#1",)) in (await talk.kept()).turns[0].components

    await until(is_shown)
    assert [one.handle for one in (await talk.kept()).pictures] == ["#1"]
    assert (await talk.studio.picture(talk.id, "#1", talk.owner)).data


async def test_a_copy_goes_on_by_itself_and_knows_its_pictures(talk: Talk) -> None:
    # A signature of this size is no part of the row.
    await talk.say("a fox", plan=paint(), image=PictureAnswer(64, 36, signature_bytes=5000))
    copied = await talk.studio.conversations.duplicate(talk.id, talk.owner, "Another fox")
    copy = Talk(talk.studio, talk.models, copied.id, talk.owner)
    change = paint("make it blue", action="edit_image", handles=["#1"])
    [painted] = (await copy.say("make the fox blue", plan=change, image=SMALL)).painted()
    assert [content["role"] for content in painted.contents] == ["user", "model", "user"], "its own answer goes back"
    assert [one.handle for one in (await copy.kept()).pictures] == ["#1", "#1b"]
    assert [one.handle for one in (await talk.kept()).pictures] == ["#1"]
    assert await titles(talk) == ["Another fox", "a fox"]
    assert (await talk.say("hello", plan=Text("Hello."))).words == "Hello."


async def test_a_plan_that_waits_can_be_decided_in_the_original_only(talk: Talk) -> None:
    waiting = (await talk.say("a fox", plan=paint(), confirm=True)).turn
    copy = await talk.studio.conversations.duplicate(talk.id, talk.owner)
    assert waiting is not None
    assert [(turn.id, turn.state) for turn in (await talk.kept()).turns] == [(waiting.id, TurnState.WAITING)]
    assert (copy.turns[0].id != waiting.id, copy.turns[0].state) == (True, TurnState.STOPPED)


async def test_opening_a_conversation_tells_the_settings_of_its_last_turn(open_talk: OpenTalk) -> None:
    async with open_talk() as talk:
        await talk.say("a", plan=Text("Well."), aspect_ratio="1:1")
        await talk.say("b", plan=Text("Well."), aspect_ratio="9:16", image_model="pro")
    async with open_talk() as again:
        last = (await again.studio.conversations.get(talk.id, talk.owner)).turns[-1].settings
    assert (last.aspect_ratio, last.image_model) == ("9:16", "pro")


async def test_the_pinned_stand_first(talk: Talk) -> None:
    kept = [talk, await talk.another(), await talk.another()]
    for one in kept:
        await one.say("hello", plan=Text("Well."))
    await talk.studio.conversations.pin(talk.id, True, talk.owner)
    listed = await talk.studio.conversations.list(talk.owner)
    assert [one.id for one in listed] == [kept[0].id, kept[2].id, kept[1].id]
    assert [one.id for one in await talk.studio.conversations.list(talk.owner, limit=1, offset=1)] == [kept[2].id]


async def test_the_newest_is_found_behind_fifty_pinned_ones(talk: Talk) -> None:
    studio, owner = talk.studio, talk.owner
    await talk.say("hello", plan=Text("Well."))
    await studio.conversations.pin(talk.id, True, owner)
    for _ in range(49):
        await studio.conversations.pin((await studio.conversations.duplicate(talk.id, owner)).id, True, owner)
    newest = await talk.another()
    await newest.say("hello", plan=Text("Well."))
    assert newest.id not in [one.id for one in await studio.conversations.list(owner)]
    assert await studio.conversations.newest(owner) == newest.id
    await studio.conversations.create(owner)
    assert await studio.conversations.newest(owner) == newest.id
    assert await studio.conversations.newest("somebody else") is None


async def test_a_picture_that_is_not_there_is_refused_by_what_became_of_it(open_talk: OpenTalk) -> None:
    """One that never was, one that was deleted, and one whose file is lost are three different things."""
    async with open_talk() as talk:
        studio, owner = talk.studio, talk.owner
        await talk.say("a red fox", plan=paint(), image=SMALL)
        await talk.say("look", png(), plan=Text("I see."))
        await studio.gallery.delete(owner, [(await gallery_ids(studio, owner))["#1"]])
        for file in (studio.settings.home / "pictures").glob("**/*.*"):
            file.unlink()

        async def refused(handle: str, of: Callable[[str], Awaitable[object]]) -> ErrorInfo:
            with pytest.raises(RequestRefused) as caught:
                await of(handle)
            return caught.value.info

        for of in (
            lambda handle: studio.picture(talk.id, handle, owner),
            lambda handle: studio.thumbnail(talk.id, handle, 64, owner),
        ):
            told = {handle: await refused(handle, of) for handle in ("#999", "#1", "#2")}
            assert [info.code for info in told.values()] == [
                ErrorCode.PICTURE_NOT_FOUND,
                ErrorCode.PICTURE_DELETED,
                ErrorCode.PICTURE_FILE_MISSING,
            ]
            assert all(handle in info.message for handle, info in told.items())


async def test_the_handle_of_a_deleted_picture_is_given_to_no_other(talk: Talk) -> None:
    await talk.say("a fox", plan=paint(), image=SMALL)
    await talk.studio.gallery.delete(talk.owner, [(await gallery_ids(talk.studio, talk.owner))["#1"]])
    assert (await talk.say("another fox", plan=paint(), image=SMALL)).picture.handle == "#2"

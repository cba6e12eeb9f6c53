"""Stop at every moment, over real HTTP: it ends at once, keeps what there is, and the next turn is as good as ever."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent.components import AgentMessage, SmartCanvas, StoppedNote
from agent.conversation import Conversation, TurnState
from agent.events import (
    PictureReady,
    Step,
    TextDelta,
    ThoughtLog,
    TurnDone,
    TurnEvent,
    TurnFailed,
    TurnStarted,
    TurnStopped,
)
from agent.messages import Role
from agent.settings import Settings
from agent.studio import Studio, TurnRequest
from tests.support.children import children_that_run
from tests.support.gemini import SMALL, draw, on_gemini, paint, search
from tests.support.scenes import of_type, png, run, stop_at, words
from tests.support.waiting import until
from tests.wire_server import Answer, Call, Calls, GeminiServer, Hold, Search, Text, WireRequest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def server() -> Iterator[GeminiServer]:
    with GeminiServer() as running:
        yield running


@pytest.fixture
def gemini(settings: Settings, server: GeminiServer) -> Settings:
    return on_gemini(settings, server.url)


async def follow(studio: Studio, conversation_id: str, request: TurnRequest) -> list[TurnEvent]:
    """Run one turn to its end and return its events."""
    return [event async for event in studio.run_turn(conversation_id, request)]


async def expect_stopped(studio: Studio, conversation_id: str, text: str) -> Conversation:
    """The newest turn is on record as stopped, with the person's words and the note that says so."""
    kept = await studio.conversation(conversation_id)
    assert (kept.turns[-1].text, kept.turns[-1].state) == (text, TurnState.STOPPED)
    assert kept.turns[-1].messages[0].text == text
    assert StoppedNote() in kept.turns[-1].components
    return kept


async def expect_next_turn_works(server: GeminiServer, studio: Studio, conversation_id: str) -> None:
    server.clear()
    server.on_text(Text("Still here."))
    assert words(await run(studio, conversation_id, "Are you there?")) == "Still here."
    await draw(server, studio, conversation_id, "a fox")


# Stop, moment by moment.


async def test_stop_in_the_very_moment_of_sending_ends_the_turn(server: GeminiServer, gemini: Settings) -> None:
    async with Studio(gemini) as studio:
        conversation = await studio.new_conversation()
        turn = run(studio, conversation.id, "a fox")
        events, was_stopped = await asyncio.gather(turn, studio.cancel(conversation.id))
        assert was_stopped
        assert events == [TurnStopped()]
        assert server.requests == []
        await expect_next_turn_works(server, studio, conversation.id)


async def test_stop_before_anything_was_sent_keeps_the_words(server: GeminiServer, gemini: Settings) -> None:
    async with Studio(gemini) as studio:
        conversation = await studio.new_conversation()
        events = await stop_at(studio, conversation.id, "a fox", TurnStarted)
        assert events[-1] == TurnStopped()
        await expect_stopped(studio, conversation.id, "a fox")
        await expect_next_turn_works(server, studio, conversation.id)


async def test_stop_takes_along_what_waits_and_nothing_of_it_is_sent(server: GeminiServer, gemini: Settings) -> None:
    server.on_text(Hold(Text("One two three", chunks=3), after_chunks=1))
    async with Studio(gemini) as studio:
        conversation = await studio.new_conversation()
        first = asyncio.create_task(run(studio, conversation.id, "count"))
        await asyncio.to_thread(server.wait_for_held)
        waiting = studio.run_turn(conversation.id, TurnRequest(text="and then a fox"))
        assert (await anext(waiting)) == ThoughtLog(step=Step.WAITING, parameters={"count": 1})
        assert await studio.cancel(conversation.id)
        assert [event async for event in waiting] == [TurnStopped()]
        assert (await first)[-1] == TurnStopped()
        assert [request.last_text for request in server.requests] == ["count"]
        await expect_stopped(studio, conversation.id, "count")
        await expect_next_turn_works(server, studio, conversation.id)


async def test_one_turn_is_stopped_and_the_next_in_line_goes_on(server: GeminiServer, gemini: Settings) -> None:
    server.on_text(Hold(Text("One two three", chunks=3), after_chunks=1), Text("I go on."))
    async with Studio(gemini) as studio:
        conversation = await studio.new_conversation()
        counting = studio.run_turn(conversation.id, TurnRequest(text="count"))
        started = await anext(counting)
        assert isinstance(started, TurnStarted)
        await asyncio.to_thread(server.wait_for_held)
        second = asyncio.create_task(run(studio, conversation.id, "go on"))
        await asyncio.sleep(0)
        assert not await studio.cancel(conversation.id, turn_id="another")
        assert not await studio.cancel(conversation.id, "somebody", turn_id=started.turn_id)
        assert await studio.cancel(conversation.id, turn_id=started.turn_id)
        assert [event async for event in counting][-1] == TurnStopped()
        assert words(await second) == "I go on."


async def test_stop_in_the_middle_of_an_answer_keeps_its_words_and_closes_the_stream(
    server: GeminiServer, gemini: Settings
) -> None:
    server.on_text(Hold(Text("One two three", chunks=3), after_chunks=1))
    async with Studio(gemini) as studio:
        conversation = await studio.new_conversation()
        events = await stop_at(studio, conversation.id, "count", TextDelta)
        left = await asyncio.to_thread(server.wait_for_disconnect)
        assert left.chunks_sent == 1
        assert events[-1] == TurnStopped()
        kept = await expect_stopped(studio, conversation.id, "count")
        assert kept.turns[0].components == (AgentMessage(text="One"), StoppedNote())
        server.on_text(Text("Four."))
        await run(studio, conversation.id, "go on")
        assert "One" in server.requests[-1].text
        await expect_next_turn_works(server, studio, conversation.id)


async def test_stop_during_a_search_leaves_no_call_without_an_answer(server: GeminiServer, gemini: Settings) -> None:
    # Two calls in one answer, so that one of them is served and the other never begun.
    server.on_text(Calls([search(), paint()]), Hold(Search({"facts": [], "prompt_draft": ""})))
    async with Studio(gemini) as studio:
        conversation = await studio.new_conversation()
        turn = asyncio.create_task(run(studio, conversation.id, "the tower", allow_search=True))
        await asyncio.to_thread(server.wait_for_held)
        assert await studio.cancel(conversation.id)
        await asyncio.to_thread(server.wait_for_disconnect)
        assert (await turn)[-1] == TurnStopped()
        kept = await expect_stopped(studio, conversation.id, "the tower")
        assert [message.role for message in kept.messages] == [Role.PROMPT, Role.MODEL, Role.TOOL]
        await expect_next_turn_works(server, studio, conversation.id)


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="children are counted in /proc")
async def test_stop_in_the_middle_of_a_program_leaves_no_process_of_it(server: GeminiServer, gemini: Settings) -> None:
    server.on_text(Call("run_javascript", {"code": "while (true);"}))
    async with Studio(gemini) as studio:
        conversation = await studio.new_conversation()
        turn = asyncio.create_task(run(studio, conversation.id, "count for ever"))
        await until(lambda: children_that_run("sandbox/child.py"))
        assert await studio.cancel(conversation.id)
        assert children_that_run("sandbox/child.py") == []
        assert (await turn)[-1] == TurnStopped()
        kept = await expect_stopped(studio, conversation.id, "count for ever")
        assert [message.role for message in kept.messages] == [Role.PROMPT, Role.MODEL, Role.TOOL]
        await expect_next_turn_works(server, studio, conversation.id)


async def test_a_picture_that_comes_after_stop_lands_marked_in_its_turn(server: GeminiServer, gemini: Settings) -> None:
    server.on_text(paint())
    server.on_image(Hold(SMALL))
    async with Studio(gemini) as studio:
        conversation = await studio.new_conversation()
        turn = asyncio.create_task(run(studio, conversation.id, "a fox"))
        await asyncio.to_thread(server.wait_for_held)
        assert await studio.cancel(conversation.id)
        assert (await turn)[-1] == TurnStopped()
        await expect_stopped(studio, conversation.id, "a fox")
        assert server.disconnects == [], "a picture under way is paid for, so it is waited for"
        server.release()
    async with Studio(gemini) as studio:
        kept = await expect_stopped(studio, conversation.id, "a fox")
        assert [(one.handle, one.after_stop) for one in kept.pictures] == [("#1", True)]
        assert kept.turns[0].components[-1] == SmartCanvas(handles=("#1",))
        assert kept.turns[0].price_usd > 0
        assert (await studio.picture(conversation.id, "#1")).receipt is not None
        server.clear()
        assert await draw(server, studio, conversation.id, "at dusk", handles=["#1"]) == "#1b"


async def test_a_late_picture_does_not_disturb_the_turn_that_has_begun_meanwhile(
    server: GeminiServer, gemini: Settings
) -> None:
    server.on_text(paint())
    server.on_image(Hold(SMALL))
    async with Studio(gemini) as studio:
        conversation = await studio.new_conversation()
        turn = asyncio.create_task(run(studio, conversation.id, "a fox"))
        await asyncio.to_thread(server.wait_for_held)
        await studio.cancel(conversation.id)
        await turn
        server.on_text(Hold(Text("One two three", chunks=3), after_chunks=1))
        talk = asyncio.create_task(run(studio, conversation.id, "count"))
        await asyncio.to_thread(server.wait_for_held, 2)
        server.release()
        events = await talk
    assert isinstance(events[-1], TurnDone)
    assert words(events) == "One two three"
    assert of_type(events, PictureReady) == []
    async with Studio(gemini) as studio:
        kept = await studio.conversation(conversation.id)
    assert [turn.state for turn in kept.turns] == [TurnState.STOPPED, TurnState.DONE]
    assert [one.turn_id for one in kept.pictures] == [kept.turns[0].id]


async def test_a_late_picture_and_an_upload_of_the_next_turn_never_share_a_handle(
    server: GeminiServer, gemini: Settings, tmp_path: Path
) -> None:
    slow_file = tmp_path / "dog.png"
    os.mkfifo(slow_file)
    server.on_text(paint())
    server.on_image(Hold(SMALL))
    async with Studio(gemini) as studio:
        conversation, other = await studio.new_conversation(), await studio.new_conversation()
        turn = asyncio.create_task(run(studio, conversation.id, "a fox"))
        await asyncio.to_thread(server.wait_for_held)
        await studio.cancel(conversation.id)
        await turn
        request = TurnRequest(text="my dog", images=[slow_file])
        talk = asyncio.create_task(follow(studio, conversation.id, request))
        server.release()
        await run(studio, other.id, "time for the picture to come")
        await asyncio.to_thread(slow_file.write_bytes, png())
        events = await talk
        assert isinstance(events[0], TurnStarted)
        assert isinstance(events[-1], TurnDone)
    async with Studio(gemini) as studio:
        kept = await studio.conversation(conversation.id)
    assert sorted(picture.handle for picture in kept.pictures) == ["#1", "#2"]


async def test_of_two_pictures_the_one_that_had_come_stays_and_the_other_follows(
    server: GeminiServer, gemini: Settings
) -> None:
    server.on_text(paint(number_of_images=2))
    server.on_image(SMALL, Hold(SMALL))
    async with Studio(gemini) as studio:
        conversation = await studio.new_conversation()
        events = await stop_at(studio, conversation.id, "two foxes", PictureReady)
        assert events[-1] == TurnStopped()
        kept = await expect_stopped(studio, conversation.id, "two foxes")
        assert [(one.handle, one.after_stop) for one in kept.pictures] == [("#1", False)]
        server.release()
    async with Studio(gemini) as studio:
        kept = await studio.conversation(conversation.id)
        assert [(one.handle, one.after_stop) for one in kept.pictures] == [("#1", False), ("#2", True)]
        canvases = [one for one in kept.turns[0].components if isinstance(one, SmartCanvas)]
        assert canvases == [SmartCanvas(handles=("#1",)), SmartCanvas(handles=("#2",))]
        await expect_next_turn_works(server, studio, conversation.id)


async def test_stop_after_the_end_changes_nothing(server: GeminiServer, gemini: Settings) -> None:
    async with Studio(gemini) as studio:
        conversation = await studio.new_conversation()
        await draw(server, studio, conversation.id, "a fox")
        before = await studio.conversation(conversation.id)
        assert not await studio.cancel(conversation.id)
        assert await studio.conversation(conversation.id) == before
    assert before.turns[0].state is TurnState.DONE


async def test_stop_pressed_many_times_is_one_stop(server: GeminiServer, gemini: Settings) -> None:
    server.on_text(paint())
    server.on_image(Hold(SMALL))
    async with Studio(gemini) as studio:
        conversation = await studio.new_conversation()
        turn = asyncio.create_task(run(studio, conversation.id, "a fox"))
        await asyncio.to_thread(server.wait_for_held)

        async def press_after(hops: int) -> None:
            for _ in range(hops):
                await asyncio.sleep(0)
            await studio.cancel(conversation.id)

        await asyncio.gather(*(press_after(hops) for hops in range(8)))
        assert of_type(await turn, TurnStopped) == [TurnStopped()]
        await expect_stopped(studio, conversation.id, "a fox")
        server.release()
    async with Studio(gemini) as studio:
        kept = await studio.conversation(conversation.id)
        assert [one.after_stop for one in kept.pictures] == [True]
        assert kept.turns[0].components[-1] == SmartCanvas(handles=("#1",))


async def test_stop_at_any_moment_leaves_no_turn_at_work_and_a_history_that_goes_on(
    server: GeminiServer, gemini: Settings
) -> None:
    def text(request: WireRequest) -> Answer:
        return Text("Well, a fox is red.") if request.function_responses else paint()

    async def press_after(hops: int) -> None:
        for _ in range(hops):
            await asyncio.sleep(0)
        await studio.cancel(conversation.id)

    server.on_text(text)
    server.on_image(lambda request: SMALL)
    async with Studio(gemini) as studio:
        conversation = await studio.new_conversation()
        for hops in [*range(24), *range(24, 400, 16)]:
            turn = run(studio, conversation.id, f"a fox after {hops}", png())
            events, _ = await asyncio.gather(turn, press_after(hops))
            endings = [type(event) for event in events if isinstance(event, TurnStopped | TurnDone | TurnFailed)]
            assert endings in ([TurnStopped], [TurnDone])
            assert isinstance(events[-1], TurnStopped | TurnDone)
            states = {turn.state for turn in (await studio.conversation(conversation.id)).turns}
            assert states <= {TurnState.STOPPED, TurnState.DONE}
        assert server.violations == []
        await expect_next_turn_works(server, studio, conversation.id)


async def test_stop_of_one_conversation_leaves_the_other_alone(server: GeminiServer, gemini: Settings) -> None:
    def text(request: WireRequest) -> Answer:
        return Hold(Text(f"You said {request.last_text} and more", chunks=4), after_chunks=2)

    server.on_text(text)
    async with Studio(gemini) as studio:
        one, two = await studio.new_conversation(), await studio.new_conversation()
        first = asyncio.create_task(run(studio, one.id, "ALPHA"))
        second = asyncio.create_task(run(studio, two.id, "OMEGA"))
        await asyncio.to_thread(server.wait_for_held, 2)
        assert await studio.cancel(one.id)
        server.release()
        stopped, done = await first, await second
        kept = {name: (await studio.conversation(name)).model_dump_json() for name in (one.id, two.id)}
    assert isinstance(stopped[-1], TurnStopped)
    assert isinstance(done[-1], TurnDone)
    assert words(done) == "You said OMEGA and more"
    assert "OMEGA" not in words(stopped) + kept[one.id]
    assert "ALPHA" not in words(done) + kept[two.id]


async def test_many_conversations_at_once_do_not_mix(server: GeminiServer, gemini: Settings) -> None:
    def text(request: WireRequest) -> Answer:
        mark = request.last_text.split()[-1]
        if request.function_responses or "paint" not in request.last_text:
            return Text(f"Here is {mark}.", chunks=2)
        return Call("generate_image", {"prompt": f"a picture of {mark}"}, text_before=f"I paint {mark}.")

    server.on_text(text)
    server.on_image(lambda request: SMALL)
    marks = [f"MARK{number:02}" for number in range(8)]

    async def talk(studio: Studio, mark: str) -> str:
        conversation = await studio.new_conversation()
        events = await run(studio, conversation.id, f"paint {mark}")
        events += await run(studio, conversation.id, f"thanks {mark}")
        assert len(of_type(events, TurnDone)) == 2
        return (await studio.conversation(conversation.id)).model_dump_json()

    async with Studio(gemini) as studio:
        kept = await asyncio.gather(*(talk(studio, mark) for mark in marks))
    for mark, record in zip(marks, kept, strict=True):
        assert f"a picture of {mark}" in record
        assert [other for other in marks if other in record] == [mark]
    assert server.violations == []

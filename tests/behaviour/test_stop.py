"""Stop at every moment, over real HTTP: it ends at once, keeps what there is, and the next turn is as good as ever."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from agent import (
    AgentMessage,
    Conversation,
    PictureReady,
    Role,
    SmartCanvas,
    Step,
    StoppedNote,
    TextDelta,
    ThoughtLog,
    TurnDone,
    TurnFailed,
    TurnStarted,
    TurnState,
    TurnStopped,
)
from tests.behaviour.conftest import OpenTalk
from tests.behaviour.talk import Talk, TurnResult
from tests.support.children import children_that_run
from tests.support.gemini import SMALL, paint, search
from tests.support.scenes import of_type, png
from tests.support.waiting import until
from tests.wire_server import Answer, Call, Calls, Hold, PictureAnswer, Search, Text, WireRequest

Running = asyncio.Task[TurnResult]
COUNTING = Hold(Text("One two three", chunks=3), after_chunks=1)
CALLED = [Role.PROMPT, Role.MODEL, Role.TOOL]


async def held(talk: Talk, text: str, **chosen: Any) -> Running:
    """Begin a turn of which a call is held."""
    turn = asyncio.create_task(talk.say(text, **chosen))
    await asyncio.to_thread(talk.models.wait_for_held)
    return turn


async def press(talk: Talk, hops: int = 0) -> bool:
    """Press Stop, a few steps of the loop later."""
    for _ in range(hops):
        await asyncio.sleep(0)
    return await talk.studio.cancel(talk.id, talk.owner)


async def expect_stopped(talk: Talk, turn: TurnResult | Running, text: str) -> Conversation:
    """The newest turn is on record as stopped, with the person's words and the note that says so."""
    assert (turn if isinstance(turn, TurnResult) else await turn).events[-1] == TurnStopped()
    kept = await talk.kept()
    assert (kept.turns[-1].text, kept.turns[-1].state) == (text, TurnState.STOPPED)
    assert kept.turns[-1].messages[0].text == text
    assert StoppedNote() in kept.turns[-1].components
    return kept


async def expect_next_turn_works(talk: Talk) -> None:
    assert (await talk.say("Are you there?", plan=Text("Still here."))).words == "Still here."
    assert isinstance((await talk.say("a fox", plan=paint(), image=SMALL)).events[-1], TurnDone)


# ---- moment by moment


async def test_stop_before_anything_is_asked_ends_the_turn_and_after_its_end_changes_nothing(talk: Talk) -> None:
    turn, was_stopped = await asyncio.gather(talk.say("a fox"), press(talk))
    assert was_stopped
    assert (turn.events, turn.requests) == ([TurnStopped()], [])
    await expect_next_turn_works(talk)
    await expect_stopped(talk, await talk.stop_at(TurnStarted, "another fox"), "another fox")
    await expect_next_turn_works(talk)
    before = await talk.kept()
    assert not await press(talk)
    assert await talk.kept() == before
    assert before.turns[-1].state is TurnState.DONE


async def test_stop_takes_along_what_waits_and_nothing_of_it_is_sent(talk: Talk) -> None:
    first = await held(talk, "count", plan=COUNTING)
    waiting = talk.run("and then a fox")
    assert (await anext(waiting)) == ThoughtLog(step=Step.WAITING, parameters={"count": 1})
    assert await press(talk)
    assert [event async for event in waiting] == [TurnStopped()]
    await expect_stopped(talk, first, "count")
    assert [request.last_text for request in talk.models.requests] == ["count"]
    await expect_next_turn_works(talk)


async def test_one_turn_is_stopped_and_the_next_in_line_goes_on(talk: Talk) -> None:
    talk.models.on_text(COUNTING, Text("I go on."))
    counting = talk.run("count")
    started = await anext(counting)
    assert isinstance(started, TurnStarted)
    await asyncio.to_thread(talk.models.wait_for_held)
    second = asyncio.create_task(talk.say("go on"))
    await asyncio.sleep(0)
    assert not await talk.studio.cancel(talk.id, talk.owner, turn_id="another")
    assert not await talk.studio.cancel(talk.id, "somebody", turn_id=started.turn_id)
    assert await talk.studio.cancel(talk.id, talk.owner, turn_id=started.turn_id)
    assert [event async for event in counting][-1] == TurnStopped()
    assert (await second).words == "I go on."


async def test_stop_in_the_middle_of_an_answer_keeps_its_words_and_closes_the_stream(talk: Talk) -> None:
    turn = await talk.stop_at(TextDelta, "count", plan=COUNTING)
    assert (await asyncio.to_thread(talk.models.wait_for_disconnect)).chunks_sent == 1
    await expect_stopped(talk, turn, "count")
    assert turn.components == (AgentMessage(text="One"), StoppedNote())
    assert "One" in (await talk.say("go on", plan=Text("Four."))).requests[-1].text
    await expect_next_turn_works(talk)


async def test_stop_during_a_search_leaves_no_call_without_an_answer(talk: Talk) -> None:
    # Two calls in one answer, so that one of them is served and the other never begun.
    plan = [Calls([search(), paint()]), Hold(Search({"facts": [], "prompt_draft": ""}))]
    turn = await held(talk, "the tower", plan=plan, allow_search=True)
    assert await press(talk)
    await asyncio.to_thread(talk.models.wait_for_disconnect)
    kept = await expect_stopped(talk, turn, "the tower")
    assert [message.role for message in kept.messages] == CALLED
    await expect_next_turn_works(talk)


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="children are counted in /proc")
async def test_stop_in_the_middle_of_a_program_leaves_no_process_of_it(talk: Talk) -> None:
    endless = Call("run_javascript", {"code": "while (true);"})
    turn = asyncio.create_task(talk.say("count for ever", plan=endless))
    await until(lambda: children_that_run("sandbox/child.py"))
    assert await press(talk)
    assert children_that_run("sandbox/child.py") == []
    kept = await expect_stopped(talk, turn, "count for ever")
    assert [message.role for message in kept.messages] == CALLED
    await expect_next_turn_works(talk)


async def test_stop_at_any_moment_leaves_no_turn_at_work_and_a_history_that_goes_on(talk: Talk) -> None:
    def plan(request: WireRequest) -> Answer:
        return Text("Well, a fox is red.") if request.function_responses else paint()

    talk.models.on_text(plan)
    talk.models.on_image(lambda request: SMALL)
    for hops in [*range(24), *range(24, 400, 16)]:
        turn, _ = await asyncio.gather(talk.say(f"a fox after {hops}", png(), review="on"), press(talk, hops))
        endings = [type(event) for event in turn.events if isinstance(event, TurnStopped | TurnDone | TurnFailed)]
        assert endings in ([TurnStopped], [TurnDone])
        assert isinstance(turn.events[-1], TurnStopped | TurnDone)
        assert {turn.state for turn in (await talk.kept()).turns} <= {TurnState.STOPPED, TurnState.DONE}
    await expect_next_turn_works(talk)


async def test_stop_of_one_conversation_leaves_the_other_alone(talk: Talk) -> None:
    def echo(request: WireRequest) -> Answer:
        return Hold(Text(f"You said {request.last_text} and more", chunks=4), after_chunks=2)

    talk.models.on_text(echo)
    other = await talk.another()
    turns = [asyncio.create_task(one.say(text)) for one, text in ((talk, "ALPHA"), (other, "OMEGA"))]
    await asyncio.to_thread(talk.models.wait_for_held, 2)
    assert await press(talk)
    talk.models.release()
    stopped, done = await asyncio.gather(*turns)
    assert (type(stopped.events[-1]), type(done.events[-1])) == (TurnStopped, TurnDone)
    assert done.words == "You said OMEGA and more"
    assert "OMEGA" not in stopped.words + (await talk.kept()).model_dump_json()
    assert "ALPHA" not in done.words + (await other.kept()).model_dump_json()


# ---- pictures that come late


async def test_a_picture_that_comes_after_stop_lands_marked_in_its_turn_and_disturbs_none(open_talk: OpenTalk) -> None:
    async with open_talk() as talk:
        turn = await held(talk, "a fox", plan=paint(), image=Hold(SMALL))
        # However often it is pressed, it is one stop.
        assert any(await asyncio.gather(*(press(talk, hops) for hops in range(8))))
        assert of_type((await turn).events, TurnStopped) == [TurnStopped()]
        await expect_stopped(talk, turn, "a fox")
        assert talk.models.disconnects == [], "a picture under way is paid for, so it is waited for"
        counting = asyncio.create_task(talk.say("count", plan=COUNTING))
        await asyncio.to_thread(talk.models.wait_for_held, 2)
        talk.models.release()
        counted = await counting
    assert isinstance(counted.events[-1], TurnDone)
    assert (counted.words, counted.pictures) == ("One two three", [])
    async with open_talk(talk) as talk:
        kept = await talk.kept()
        assert [turn.state for turn in kept.turns] == [TurnState.STOPPED, TurnState.DONE]
        made = [(one.handle, one.after_stop, one.turn_id) for one in kept.pictures]
        assert made == [("#1", True, kept.turns[0].id)]
        assert kept.turns[0].components[-2:] == (StoppedNote(), SmartCanvas(handles=("#1",)))
        assert kept.turns[0].price_usd > 0
        assert (await talk.studio.picture(talk.id, "#1", talk.owner)).receipt is not None
        assert (await talk.say("at dusk", plan=paint(handles=["#1"]), image=SMALL)).picture.handle == "#1b"


async def test_all_pictures_of_an_answer_that_comes_after_stop_stand_in_its_turn(open_talk: OpenTalk) -> None:
    async with open_talk() as talk:
        turn = await held(talk, "a fox", plan=paint(), image=Hold(PictureAnswer(64, 36, count=3)))
        await press(talk)
        await turn
        talk.models.release()
    async with open_talk(talk) as talk:
        kept = await talk.kept()
        shown = [one.handles for one in kept.turns[0].components if isinstance(one, SmartCanvas)]
        assert [sorted(handles) for handles in shown] == [["#1", "#2", "#3"]]
        assert sorted(one.handle for one in kept.pictures) == ["#1", "#2", "#3"]
        prices = [one.receipt.price_usd for one in kept.pictures if one.receipt]
        # One call was paid, and each picture has its share of the price.
        assert prices == [prices[0]] * 3
        assert 0 < sum(prices) < kept.turns[0].price_usd + 1e-9


async def test_a_late_picture_and_an_upload_of_the_next_turn_never_share_a_handle(
    open_talk: OpenTalk, tmp_path: Path
) -> None:
    slow_file = tmp_path / "dog.png"
    os.mkfifo(slow_file)
    async with open_talk() as talk:
        turn = await held(talk, "a fox", plan=paint(), image=Hold(SMALL))
        await press(talk)
        await turn
        upload = asyncio.create_task(talk.say("my dog", slow_file))
        talk.models.release()
        await (await talk.another()).say("time for the picture to come")
        await asyncio.to_thread(slow_file.write_bytes, png())
        events = (await upload).events
        assert (type(events[0]), type(events[-1])) == (TurnStarted, TurnDone)
    async with open_talk(talk) as talk:
        assert sorted(picture.handle for picture in (await talk.kept()).pictures) == ["#1", "#2"]


async def test_of_two_pictures_the_one_that_had_come_stays_and_the_other_follows(open_talk: OpenTalk) -> None:
    async with open_talk() as talk:
        wish = paint(number_of_images=2)
        turn = await talk.stop_at(PictureReady, "two foxes", held=1, plan=wish, image=[SMALL, Hold(SMALL)])
        [came] = (await expect_stopped(talk, turn, "two foxes")).pictures
        assert not came.after_stop
    async with open_talk(talk) as talk:
        late = {one.handle for one in (await talk.kept()).pictures if one.after_stop}
        assert late == {"#1", "#2"} - {came.handle}
        shown = (await talk.kept()).turns[0].components
        assert [one.handles for one in shown if isinstance(one, SmartCanvas)] == [(came.handle,), tuple(late)]
        prices = [one.receipt.price_usd for one in (await talk.kept()).pictures if one.receipt]
        assert (await talk.kept()).turns[0].price_usd > sum(prices) > 0, "the picture that had come was paid, too"
        await expect_next_turn_works(talk)

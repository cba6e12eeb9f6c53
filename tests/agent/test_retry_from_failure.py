"""A failed turn goes on from the step that failed: what was answered before is neither asked nor paid again."""

from __future__ import annotations

import asyncio

import pytest

from agent.components import AgentMessage, AskBack, FailureNote, SmartCanvas
from agent.conversation import TurnState
from agent.errors import ErrorCode, ErrorInfo, NetworkFailure, ProviderFailure, RequestRefused
from agent.events import PictureReady, Step, TextDelta, ThoughtLog, TurnDone, TurnFailed, TurnStarted, TurnStopped
from agent.messages import GroundingPart, Role, Source, TextPart, ToolCallPart
from agent.providers.scripted import Hold, Line, calls, finds, says
from agent.settings import Settings
from agent.studio import Studio, TurnRequest
from tests.support.gemini import SMALL, on_gemini, paint
from tests.support.scenes import Scene, generate, of_type, only, picture, png, run, words
from tests.support.turns import asked, calls_on_disk, decide, newest, retry, started
from tests.support.waiting import until
from tests.wire_server import GeminiServer, HttpError, MidStreamError, Text
from tests.wire_server.models import Kind

BROKEN = Line(raises=ProviderFailure(ErrorCode.PROVIDER_ERROR))
REFUSED = Line(error=ErrorInfo(code=ErrorCode.PICTURE_BLOCKED, parameters={"reason": "IMAGE_SAFETY"}))
REWORDED = says('{"rewordings": ["A fox as a paper cut-out", "The snow alone, with a fox\'s tracks"]}')
CUT = Line((TextPart(text="It was a dark and"),), raises=NetworkFailure(ErrorCode.STREAM_CUT))
SEARCH = ToolCallPart(name="web_search", arguments={"query": "How high is the tower?"})
FACTS = '{"facts": [{"item": "The tower is 330 m high.", "source": "t.example"}], "prompt_draft": "a tower"}'
GROUNDED = GroundingPart(queries=("q",), sources=(Source(title="t.example", url="https://r.example/1"),))


def kinds(scene: Scene) -> list[str]:
    """Return what the models of every studio were asked for, in order."""
    asked_all = [one for provider in scene.providers for one in provider.asked]
    return ["words" if one.request is None else "picture" for one in asked_all]


# On the real wire.


async def test_a_picture_that_failed_is_asked_for_again_and_the_plan_is_not(settings: Settings) -> None:
    with GeminiServer() as server:
        server.on_text(paint())
        server.on_image(HttpError(500), SMALL)
        gemini = on_gemini(settings, server.url)
        async with Studio(gemini) as studio:
            conversation = await studio.new_conversation()
            failed = await run(studio, conversation.id, "a red fox")
            before = await newest(studio, conversation.id)
            events = await retry(studio, conversation.id, started(failed))
            after = await newest(studio, conversation.id)
        assert (asked(server, Kind.TEXT), asked(server, Kind.IMAGE)) == (1, 2)
        assert server.violations == []
    assert (only(failed, TurnFailed).node, before.state) == ("executor", TurnState.FAILED)
    assert isinstance(events[-1], TurnDone)
    assert (after.id, after.state) == (before.id, TurnState.DONE)
    assert only(events, PictureReady).picture.handle == "#1"
    assert not [one for one in after.components if isinstance(one, FailureNote)]
    rows = calls_on_disk(gemini.home)
    assert {name: (row["state"], row["attempts"]) for name, row in rows.items()} == {
        "planner:1": ("done", 1),
        "picture:1.0.0.1": ("done", 2),
    }
    assert after.price_usd == pytest.approx(sum(row["price_usd"] for row in rows.values()))


async def test_it_goes_on_after_a_restart_as_well(settings: Settings) -> None:
    with GeminiServer() as server:
        server.on_text(paint(), Text("Well."))
        server.on_image(HttpError(500), SMALL)
        gemini = on_gemini(settings, server.url)
        async with Studio(gemini) as studio:
            conversation = await studio.new_conversation()
            turn_id = started(await run(studio, conversation.id, "a red fox", png()))
        async with Studio(gemini) as studio:
            assert (await newest(studio, conversation.id)).state is TurnState.FAILED
            events = await retry(studio, conversation.id, turn_id)
            kept = await studio.conversation(conversation.id)
            await run(studio, conversation.id, "thank you")
        assert (asked(server, Kind.TEXT), asked(server, Kind.IMAGE)) == (2, 2)
        assert server.violations == []
    assert isinstance(events[-1], TurnDone)
    assert [(one.handle, one.turn_id) for one in kept.pictures] == [("#1", turn_id), ("#1b", turn_id)]
    assert kept.turns[-1].messages[0].text == "a red fox"


async def test_the_planner_is_asked_again_without_the_half_of_an_answer_that_came(settings: Settings) -> None:
    with GeminiServer() as server:
        server.on_text(MidStreamError(), Text("Once upon a time."))
        async with Studio(on_gemini(settings, server.url)) as studio:
            conversation = await studio.new_conversation()
            failed = await run(studio, conversation.id, "tell me a tale")
            before = await newest(studio, conversation.id)
            events = await retry(studio, conversation.id, started(failed))
            after = await newest(studio, conversation.id)
        first, second = server.requests
        assert second.contents == first.contents
        assert server.violations == []
    assert before.components[0] == AgentMessage(text="piece 0 piece 1")
    assert words(events) == "Once upon a time."
    assert [message.text for message in after.messages] == ["tell me a tale", "Once upon a time."]
    assert [one for one in after.components if isinstance(one, AgentMessage)] == [
        AgentMessage(text="Once upon a time.")
    ]


# Step by step.


async def test_the_words_of_a_failed_turn_stay_on_record_and_in_the_next_request(settings: Settings) -> None:
    scene = Scene(settings, text=[CUT, says("Go on.")])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        events = await run(studio, conversation.id, "tell me")
        kept = await newest(studio, conversation.id)
        await run(studio, conversation.id, "and then?")
    assert words(events) == "It was a dark and"
    assert kept.components[0] == AgentMessage(text="It was a dark and")
    assert isinstance(kept.components[-1], FailureNote)
    history = scene.provider.asked[-1].messages
    assert [(message.role, message.text) for message in history[:2]] == [
        (Role.PROMPT, "tell me"),
        (Role.MODEL, "It was a dark and"),
    ]


async def test_a_turn_may_fail_and_be_retried_many_times(settings: Settings) -> None:
    lines = [calls(generate()), REWORDED]
    scene = Scene(settings, text=lines, pictures=[BROKEN, REFUSED, BROKEN, picture()])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        turn_id = started(await run(studio, conversation.id, "a fox"))
        codes = []
        for _ in range(3):
            kept = await newest(studio, conversation.id)
            notes = [one for one in kept.components if isinstance(one, FailureNote)]
            codes.append([note.error.code for note in notes])
            events = await retry(studio, conversation.id, turn_id)
        after = await newest(studio, conversation.id)
    assert codes == [[ErrorCode.PROVIDER_ERROR], [ErrorCode.PICTURE_BLOCKED], [ErrorCode.PROVIDER_ERROR]]
    assert isinstance(events[-1], TurnDone)
    # The refusal alone is followed by a look for other words.
    assert kinds(scene) == ["words", "picture", "picture", "words", "picture", "picture"]
    assert [one.handles for one in after.components if isinstance(one, SmartCanvas)] == [("#1",)]


async def test_a_search_that_failed_is_made_again_and_the_plan_before_it_is_not(settings: Settings) -> None:
    scene = Scene(settings, text=[calls(SEARCH), BROKEN, finds(FACTS, GROUNDED), says("330 m.")])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        failed = await run(studio, conversation.id, "how high is the tower?", allow_search=True)
        events = await retry(studio, conversation.id, started(failed))
    assert only(failed, TurnFailed).node == "searcher"
    assert words(events) == "330 m."
    assert [asked.options.google_search for asked in scene.provider.asked] == [False, True, True, False]


async def test_of_several_pictures_that_all_failed_all_are_asked_for_again(settings: Settings) -> None:
    wish = generate(number_of_images=3)
    scene = Scene(settings, text=[calls(wish)], pictures=[BROKEN, REFUSED, BROKEN, *[picture()] * 3])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        turn_id = started(await run(studio, conversation.id, "three foxes"))
        events = await retry(studio, conversation.id, turn_id)
        kept = await studio.conversation(conversation.id)
    assert {event.index: event.picture.handle for event in of_type(events, PictureReady)} == {0: "#1", 1: "#2", 2: "#3"}
    [canvas] = [one for one in kept.turns[0].components if isinstance(one, SmartCanvas)]
    assert canvas.handles == ("#1", "#2", "#3")


async def test_a_plan_that_was_run_is_not_shown_again_when_its_picture_is_retried(settings: Settings) -> None:
    scene = Scene(settings, text=[calls(generate())], pictures=[BROKEN, picture()])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        turn_id = started(await run(studio, conversation.id, "a fox", confirm=True))
        failed = await decide(studio, conversation.id, turn_id)
        events = await retry(studio, conversation.id, turn_id)
    assert isinstance(failed[-1], TurnFailed)
    assert isinstance(events[-1], TurnDone)
    assert kinds(scene) == ["words", "picture", "picture"]


async def test_a_turn_that_goes_on_is_costed_on_and_timed_on(settings: Settings) -> None:
    scene = Scene(settings, text=[calls(generate()), REWORDED], pictures=[REFUSED, picture()])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        turn_id = started(await run(studio, conversation.id, "a fox"))
        before = await newest(studio, conversation.id)
        await retry(studio, conversation.id, turn_id)
        after = await newest(studio, conversation.id)
    assert kinds(scene) == ["words", "picture", "words", "picture"]
    assert before.usage.prompt_tokens == 300
    assert after.usage.prompt_tokens == 400
    assert after.seconds >= before.seconds
    assert [one.node for one in after.timings] == [*(one.node for one in before.timings), "executor"]


# Where it cannot go on.


async def test_a_failure_that_the_conversation_has_left_behind_is_sent_again_as_a_new_turn(settings: Settings) -> None:
    scene = Scene(settings, text=[CUT, says("Something else."), says("Once upon a time.")])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        failed = await run(studio, conversation.id, "tell me", png(), aspect_ratio="1:1")
        await run(studio, conversation.id, "something else")
        events = await retry(studio, conversation.id, started(failed))
        kept = await studio.conversation(conversation.id)
    assert words(events) == "Once upon a time."
    assert [(turn.text, turn.state) for turn in kept.turns] == [
        ("tell me", TurnState.FAILED),
        ("something else", TurnState.DONE),
        ("tell me", TurnState.DONE),
    ]
    again = kept.turns[2]
    assert started(events) == again.id != kept.turns[0].id
    assert again.settings == kept.turns[0].settings
    assert [upload.digest for upload in again.uploads] == [upload.digest for upload in kept.turns[0].uploads]


async def test_a_failure_of_another_provider_is_sent_again_to_the_one_there_is(settings: Settings) -> None:
    with GeminiServer() as server:
        server.on_text(HttpError(500))
        async with Studio(on_gemini(settings, server.url)) as studio:
            conversation = await studio.new_conversation()
            turn_id = started(await run(studio, conversation.id, "draw a red fox in the snow"))
        async with Studio(settings) as studio:
            events = await retry(studio, conversation.id, turn_id)
            kept = await studio.conversation(conversation.id)
        assert asked(server, Kind.TEXT) == 1
    assert isinstance(events[-1], TurnDone)
    assert [(turn.provider, turn.state) for turn in kept.turns] == [
        ("gemini", TurnState.FAILED),
        ("sketch", TurnState.DONE),
    ]
    assert kept.pictures[0].turn_id == started(events)


async def test_of_two_retries_at_the_same_moment_one_goes_on_and_the_other_tells_what_came_of_it(
    settings: Settings,
) -> None:
    scene = Scene(settings, text=[calls(generate())], pictures=[BROKEN, picture()])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        turn_id = started(await run(studio, conversation.id, "a fox"))
        first, second = await asyncio.gather(*(retry(studio, conversation.id, turn_id) for _ in range(2)))
        kept = await studio.conversation(conversation.id)
    assert isinstance(first[-1], TurnDone)
    assert isinstance(second[-1], TurnDone)
    assert started(second) == turn_id
    assert kinds(scene) == ["words", "picture", "picture"]
    assert [turn.state for turn in kept.turns] == [TurnState.DONE]


async def test_a_retry_waits_in_line_behind_the_turn_that_runs(settings: Settings) -> None:
    gate = asyncio.Event()
    talk = Line((TextPart(text="One "), Hold(gate), TextPart(text="two.")))
    scene = Scene(settings, text=[CUT, talk, says("Once upon a time.")])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        turn_id = started(await run(studio, conversation.id, "tell me"))
        running = studio.run_turn(conversation.id, TurnRequest(text="count"))
        async for event in running:
            if isinstance(event, TextDelta):
                break
        waiting = studio.retry(conversation.id, turn_id)
        assert await anext(waiting) == ThoughtLog(step=Step.WAITING, parameters={"count": 1})
        assert len(scene.provider.asked) == 2
        gate.set()
        assert isinstance([event async for event in running][-1], TurnDone)
        assert isinstance([event async for event in waiting][-1], TurnDone)
        kept = await studio.conversation(conversation.id)
    assert [(turn.text, turn.state) for turn in kept.turns] == [
        ("tell me", TurnState.FAILED),
        ("count", TurnState.DONE),
        ("tell me", TurnState.DONE),
    ]


async def test_a_turn_that_is_not_there_is_not_retried_and_nobody_else_s_is(settings: Settings) -> None:
    scene = Scene(settings, text=[CUT])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation(owner="ann")
        turn_id = ""
        async for event in studio.run_turn(conversation.id, TurnRequest(text="tell me"), owner="ann"):
            turn_id = event.turn_id if isinstance(event, TurnStarted) else turn_id
        assert [event async for event in studio.retry(conversation.id, "no such turn", owner="ann")] == []
        with pytest.raises(RequestRefused) as refusal:
            await retry(studio, conversation.id, turn_id)
        kept = await studio.conversation(conversation.id, owner="ann")
    assert refusal.value.code is ErrorCode.CONVERSATION_NOT_FOUND
    assert len(scene.provider.asked) == 1
    assert [turn.state for turn in kept.turns] == [TurnState.FAILED]


async def test_a_stop_in_a_retry_leaves_the_turn_stopped_with_what_it_had(settings: Settings) -> None:
    gate = asyncio.Event()
    late = Line((Hold(gate), TextPart(text="never")))
    scene = Scene(settings, text=[calls(SEARCH, text="I will look it up."), BROKEN, late])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        turn_id = started(await run(studio, conversation.id, "the tower", allow_search=True))
        running = asyncio.create_task(retry(studio, conversation.id, turn_id))
        await until(lambda: len(scene.provider.asked) == 3)
        assert await studio.cancel(conversation.id)
        events = await running
        kept = await newest(studio, conversation.id)
    assert isinstance(events[-1], TurnStopped)
    assert kept.state is TurnState.STOPPED
    assert kept.components[0] == AgentMessage(text="I will look it up.")
    assert kept.messages[-1].role is Role.TOOL, "no call is left open in the history"
    assert not [one for one in kept.components if isinstance(one, FailureNote | AskBack)]

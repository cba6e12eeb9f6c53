"""What is said otherwise stands beside what was said first: both are kept, one is shown, and either may go on."""

from __future__ import annotations

import asyncio
import signal

import pytest

from agent.components import FailureNote, PlanCard, SmartCanvas
from agent.conversation import TurnState
from agent.errors import ErrorCode, ProviderFailure, RequestRefused
from agent.events import Step, TextDelta, ThoughtLog, TurnDone, TurnEvent, TurnFailed, TurnPaused
from agent.messages import TextPart
from agent.providers.scripted import Hold, Line, calls, says
from agent.settings import Settings, TurnSettings
from agent.studio import Studio, TurnRequest
from tests.support.children import StudioChild
from tests.support.scenes import Scene, generate, only, picture, png, run, words
from tests.support.turns import decide, kept_when, newest, retry, rows, send, started
from tests.support.waiting import until

RESTS = frozenset({TurnState.FAILED, TurnState.DONE})
BROKEN = Line(raises=ProviderFailure(ErrorCode.PROVIDER_ERROR))


async def say_instead(
    studio: Studio, conversation_id: str, turn_id: str, text: str, *images: bytes, **settings: object
) -> list[TurnEvent]:
    """Say a turn of the shown branch otherwise, and return the events."""
    chosen = TurnSettings.model_validate(settings)
    return await send(studio, conversation_id, TurnRequest(text, images, instead_of=turn_id, settings=chosen))


async def texts(studio: Studio, conversation_id: str) -> list[str]:
    """Return what the person said in the branch that is shown."""
    return [turn.text for turn in (await studio.conversation(conversation_id)).turns]


def history(scene: Scene) -> list[str]:
    """Return the words of what the text model was shown last."""
    return [message.text for message in scene.provider.asked[-1].messages]


async def test_a_turn_said_otherwise_stands_beside_the_first_and_hears_only_what_was_before_it(
    settings: Settings,
) -> None:
    scene = Scene(settings, text=[says(answer) for answer in ("One.", "Two.", "Three.", "Four.")])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        first = started(await run(studio, conversation.id, "count"))
        second = started(await run(studio, conversation.id, "go on"))
        await run(studio, conversation.id, "and on")
        other = started(await say_instead(studio, conversation.id, second, "go back"))
        kept = await studio.conversation(conversation.id)
    heard = history(scene)
    assert [one for one in heard if one in ("count", "One.", "go on", "Two.", "and on", "Three.", "go back")] == [
        "count",
        "One.",
        "go back",
    ]
    assert [(turn.id, turn.parent) for turn in kept.turns] == [(first, None), (other, first)]
    assert kept.forks == {other: (second, other)}


async def test_the_very_first_turn_can_be_said_otherwise(settings: Settings) -> None:
    scene = Scene(settings, text=[says("One."), says("Uno.")])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        first = started(await run(studio, conversation.id, "count"))
        other = started(await say_instead(studio, conversation.id, first, "conta"))
        kept = await studio.conversation(conversation.id)
    assert history(scene)[-1] == "conta"
    assert "count" not in history(scene)
    assert kept.forks == {other: (first, other)}
    assert kept.turns[0].parent is None


async def test_switching_shows_a_branch_to_its_newest_turn_and_back(settings: Settings) -> None:
    scene = Scene(settings, text=lambda asked: says("Well."))
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        await run(studio, conversation.id, "a")
        second = started(await run(studio, conversation.id, "b"))
        await run(studio, conversation.id, "c")
        other = started(await say_instead(studio, conversation.id, second, "d"))
        assert await texts(studio, conversation.id) == ["a", "d"]
        shown = await studio.switch_branch(conversation.id, second)
        assert [turn.text for turn in shown.turns] == await texts(studio, conversation.id) == ["a", "b", "c"]
        await run(studio, conversation.id, "e")
        assert [turn.text for turn in (await studio.switch_branch(conversation.id, other)).turns] == ["a", "d"]
        await studio.switch_branch(conversation.id, other)
    async with scene.studio() as studio:
        assert await texts(studio, conversation.id) == ["a", "d"]
        assert [turn.text for turn in (await studio.switch_branch(conversation.id, second)).turns] == [*"abce"]


async def test_a_turn_that_is_not_shown_cannot_be_said_otherwise_and_one_that_is_not_there_not_be_shown(
    settings: Settings,
) -> None:
    scene = Scene(settings, text=lambda asked: says("Well."))
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        first = started(await run(studio, conversation.id, "a"))
        await say_instead(studio, conversation.id, first, "b")
        asked = len(scene.provider.asked)
        for hidden in (first, "no such turn"):
            events = await say_instead(studio, conversation.id, hidden, "c")
            assert only(events, TurnFailed).error.code is ErrorCode.TURN_NOT_FOUND
        with pytest.raises(RequestRefused) as refused:
            await studio.switch_branch(conversation.id, "no such turn")
        with pytest.raises(RequestRefused) as foreign:
            await studio.switch_branch(conversation.id, first, "ann")
        assert await texts(studio, conversation.id) == ["b"]
    assert refused.value.code is ErrorCode.TURN_NOT_FOUND
    assert foreign.value.code is ErrorCode.CONVERSATION_NOT_FOUND
    assert len(scene.provider.asked) == asked


async def test_handles_are_given_once_in_all_branches(settings: Settings) -> None:
    scene = Scene(settings, text=[*[calls(generate())] * 3], pictures=[picture(), picture(), picture()])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        first = started(await run(studio, conversation.id, "a fox", png()))
        other = started(await say_instead(studio, conversation.id, first, "a hen", png(colour="blue")))
        kept = await studio.conversation(conversation.id)
    assert [(one.handle, one.turn_id) for one in kept.pictures] == [("#2", other), ("#2b", other)]
    assert [(one.handle, one.turn_id) for one in kept.elsewhere] == [("#1", first), ("#1b", first)]


async def test_the_newest_picture_is_that_of_the_shown_branch_and_a_named_one_may_be_of_any(
    settings: Settings,
) -> None:
    change = generate("make it blue", action="edit_image", reference_mode="LAST_GENERATED")
    named = generate("make it green", action="edit_image", handles=["#2"])
    scene = Scene(
        settings,
        text=[calls(generate("a fox")), calls(generate("a hen")), calls(change), calls(named)],
        pictures=[picture(colour=one) for one in ("red", "white", "blue", "green")],
    )
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        first = started(await run(studio, conversation.id, "a fox"))
        await say_instead(studio, conversation.id, first, "a hen")
        await studio.switch_branch(conversation.id, first)
        await run(studio, conversation.id, "with a hat, please")
        assert "#2" not in "".join(history(scene))
        await run(studio, conversation.id, "and #2 green")
        kept = await studio.conversation(conversation.id)
    assert {one.handle: one.parents for one in kept.all_pictures} == {
        "#1": (),
        "#2": (),
        "#1b": ("#1",),
        "#2b": ("#2",),
    }
    assert [one.handle for one in kept.pictures] == ["#1", "#1b", "#2b"]


async def test_a_picture_of_another_branch_can_be_marked_to_be_changed(settings: Settings) -> None:
    scene = Scene(settings, text=[*[calls(generate())] * 3], pictures=[picture(), picture(), picture()])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        first = started(await run(studio, conversation.id, "a fox"))
        await say_instead(studio, conversation.id, first, "a hen")
        await run(studio, conversation.id, "redder", editing="#1")
        kept = await studio.conversation(conversation.id)
    assert (kept.pictures[-1].handle, kept.pictures[-1].parents) == ("#1b", ("#1",))


async def test_nothing_is_switched_while_a_turn_runs(settings: Settings) -> None:
    gate = asyncio.Event()
    slow = Line((TextPart(text="One "), Hold(gate), TextPart(text="two.")))
    scene = Scene(settings, text=[says("Well."), says("Well."), slow])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        first = started(await run(studio, conversation.id, "a"))
        await say_instead(studio, conversation.id, first, "b")
        running = asyncio.create_task(run(studio, conversation.id, "count"))
        await until(lambda: len(scene.provider.asked) == 3)
        with pytest.raises(RequestRefused) as refused:
            await studio.switch_branch(conversation.id, first)
        gate.set()
        assert isinstance((await running)[-1], TurnDone)
        assert await texts(studio, conversation.id) == ["b", "count"]
        await studio.switch_branch(conversation.id, first)
        assert await texts(studio, conversation.id) == ["a"]
    assert refused.value.code is ErrorCode.CONVERSATION_BUSY


async def test_a_turn_said_otherwise_while_one_runs_waits_for_it(settings: Settings) -> None:
    gate = asyncio.Event()
    slow = Line((TextPart(text="One "), Hold(gate), TextPart(text="two.")))
    scene = Scene(settings, text=[says("Well."), slow, says("Otherwise.")])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        first = started(await run(studio, conversation.id, "a"))
        running = studio.run_turn(conversation.id, TurnRequest(text="count"))
        async for event in running:
            if isinstance(event, TextDelta):
                break
        waiting = studio.run_turn(conversation.id, TurnRequest(text="b", instead_of=first))
        assert await anext(waiting) == ThoughtLog(step=Step.WAITING, parameters={"count": 1})
        gate.set()
        assert isinstance([event async for event in running][-1], TurnDone)
        assert isinstance([event async for event in waiting][-1], TurnDone)
        assert await texts(studio, conversation.id) == ["b"]
        shown = await studio.switch_branch(conversation.id, first)
    assert [(turn.text, turn.state) for turn in shown.turns] == [("a", TurnState.DONE), ("count", TurnState.DONE)]


# What rests


async def test_a_plan_of_another_branch_waits_until_one_comes_back(settings: Settings) -> None:
    scene = Scene(settings, text=[calls(generate()), says("Well."), says("Well.")], pictures=[picture()])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        waiting = started(await run(studio, conversation.id, "a fox", confirm=True))
        await say_instead(studio, conversation.id, waiting, "never mind")
        await run(studio, conversation.id, "tell me a tale")
        refused = await decide(studio, conversation.id, waiting)
        assert only(refused, TurnFailed).error.code is ErrorCode.PLAN_GONE
    async with scene.studio() as studio:
        shown = await studio.switch_branch(conversation.id, waiting)
        assert (shown.turns[-1].state, shown.turns[-1].components[-1]) == (
            TurnState.WAITING,
            next(one for one in shown.turns[-1].components if isinstance(one, PlanCard) and one.state == "pending"),
        )
        scene.provider.asked.clear()
        events = await decide(studio, conversation.id, waiting)
        done = await newest(studio, conversation.id)
    assert isinstance(events[-1], TurnDone)
    assert (done.id, done.state) == (waiting, TurnState.DONE)
    assert SmartCanvas(handles=("#1",)) in done.components
    assert [one.request is not None for one in scene.provider.asked] == [True], "only the picture is asked for"


async def test_a_plan_is_dropped_when_its_own_branch_goes_on_without_it(settings: Settings) -> None:
    scene = Scene(settings, text=[calls(generate()), says("Well.")])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        waiting = started(await run(studio, conversation.id, "a fox", confirm=True))
        await run(studio, conversation.id, "never mind")
        kept = await studio.conversation(conversation.id)
    assert (kept.turns[0].id, kept.turns[0].state) == (waiting, TurnState.STOPPED)


async def test_a_failure_that_was_said_otherwise_goes_on_after_a_switch_and_pays_nothing_twice(
    settings: Settings,
) -> None:
    scene = Scene(settings, text=[calls(generate()), says("Well.")], pictures=[BROKEN, picture()])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        failed = started(await run(studio, conversation.id, "a fox"))
        await say_instead(studio, conversation.id, failed, "a hen")
    scene.text, scene.pictures = [], [picture()]
    async with scene.studio() as studio:
        await studio.switch_branch(conversation.id, failed)
        events = await retry(studio, conversation.id, failed)
        done = await newest(studio, conversation.id)
    assert isinstance(events[-1], TurnDone)
    assert (done.id, done.state) == (failed, TurnState.DONE)
    assert [one.request is not None for one in scene.provider.asked] == [True], "the plan is not paid for again"
    calls_of_it = f"SELECT name, attempts FROM calls WHERE turn_id = '{failed}' ORDER BY created_at"
    assert [tuple(row.values()) for row in rows(settings.home / "aivista.db", calls_of_it)] == [
        ("planner:1", 1),
        ("picture:1.0.0.1", 2),
    ]


async def test_a_failure_with_others_after_it_is_sent_again_at_the_end_of_the_shown_branch(
    settings: Settings,
) -> None:
    scene = Scene(settings, text=[BROKEN, says("Two."), says("Three."), says("Again.")])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        failed = started(await run(studio, conversation.id, "one"))
        second = started(await run(studio, conversation.id, "two"))
        await say_instead(studio, conversation.id, second, "three")
        events = await retry(studio, conversation.id, failed)
        kept = await studio.conversation(conversation.id)
    assert words(events) == "Again."
    assert [turn.text for turn in kept.turns] == ["one", "three", "one"]
    assert kept.turns[-1].parent == kept.turns[1].id


async def test_only_what_may_go_on_keeps_its_checkpoints(settings: Settings) -> None:
    scene = Scene(settings, text=[calls(generate()), BROKEN, says("Well."), says("Well.")])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        waiting = started(await run(studio, conversation.id, "a fox", confirm=True))
        failed = started(await say_instead(studio, conversation.id, waiting, "a hen"))
        await run(studio, conversation.id, "something else")
    scene.text = [says("Well.")]
    async with scene.studio() as studio:
        await run(studio, (await studio.new_conversation()).id, "hello")
    left = {row["thread_id"] for row in rows(settings.home / "checkpoints.db", "SELECT thread_id FROM checkpoints")}
    assert (waiting in left, failed in left) == (True, False)


async def test_the_same_request_is_told_again_when_its_branch_is_not_shown(settings: Settings) -> None:
    scene = Scene(settings, text=[calls(generate(), text="A fox."), says("Well.")], pictures=[picture()])
    request = TurnRequest(text="a fox", request_id="r1")
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        first = await send(studio, conversation.id, request)
        await say_instead(studio, conversation.id, started(first), "a hen")
        again = await send(studio, conversation.id, request)
    assert (started(again), words(again), type(again[-1])) == (started(first), "A fox.", TurnDone)
    assert len(scene.provider.asked) == 3


async def test_a_request_said_otherwise_twice_under_one_name_runs_once(settings: Settings) -> None:
    scene = Scene(settings, text=[says("One."), says("Two.")])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        first = started(await run(studio, conversation.id, "a"))
        request = TurnRequest(text="b", request_id="r1", instead_of=first)
        once = await send(studio, conversation.id, request)
        twice = await send(studio, conversation.id, request)
        kept = await studio.conversation(conversation.id)
    assert started(once) == started(twice)
    assert kept.forks == {started(once): (first, started(once))}


async def test_a_plan_confirmed_in_one_branch_does_not_touch_that_of_another(settings: Settings) -> None:
    scene = Scene(settings, text=[calls(generate("a fox")), calls(generate("a hen"))], pictures=[picture(), picture()])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        fox = started(await run(studio, conversation.id, "a fox", confirm=True))
        events = await say_instead(studio, conversation.id, fox, "a hen", confirm=True)
        assert isinstance(events[-1], TurnPaused)
        hen = started(events)
        assert isinstance((await decide(studio, conversation.id, hen))[-1], TurnDone)
        assert (await studio.switch_branch(conversation.id, fox)).turns[-1].state is TurnState.WAITING
        assert isinstance((await decide(studio, conversation.id, fox))[-1], TurnDone)
        kept = await studio.conversation(conversation.id)
    assert [(one.handle, one.turn_id) for one in kept.all_pictures] == [("#2", fox), ("#1", hen)]


async def test_a_late_picture_goes_into_its_turn_when_another_branch_is_shown_by_then(settings: Settings) -> None:
    gate = asyncio.Event()
    late = Line((Hold(gate), *picture().parts))
    scene = Scene(settings, text=[calls(generate()), says("Well.")], pictures=[late])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        painting = asyncio.create_task(run(studio, conversation.id, "a fox"))
        await until(lambda: len(scene.provider.asked) == 2)
        await studio.cancel(conversation.id)
        stopped = started(await painting)
        await say_instead(studio, conversation.id, stopped, "a hen")
        assert (await studio.conversation(conversation.id)).all_pictures == ()
        gate.set()
        kept = await kept_when(studio, conversation.id, lambda one: bool(one.elsewhere))
        assert [(one.handle, one.turn_id) for one in kept.elsewhere] == [("#1", stopped)]
        await studio.switch_branch(conversation.id, stopped)
        shown = await kept_when(
            studio, conversation.id, lambda one: SmartCanvas(handles=("#1",)) in one.turns[-1].components
        )
    receipt = shown.pictures[0].receipt
    assert receipt is not None
    assert shown.price_usd > receipt.price_usd > 0, "the plan's price and the picture's"
    assert [one.handle for one in shown.pictures] == ["#1"]


KILLED = """
import asyncio, os, signal, sys
from pathlib import Path
from agent.providers.scripted import says
from agent.settings import Settings
from agent.studio import TurnRequest
from tests.support.scenes import Scene, run
from tests.support.turns import send, started

def answer(asked):
    if asked.messages[-1].text == "b":
        os.kill(os.getpid(), signal.SIGKILL)
    return says("Well.")

async def main():
    async with Scene(Settings(home=Path(sys.argv[1])), text=answer).studio() as studio:
        conversation = await studio.new_conversation()
        first = started(await run(studio, conversation.id, "a"))
        print(conversation.id, first, flush=True)
        await send(studio, conversation.id, TurnRequest(text="b", instead_of=first))

asyncio.run(main())
"""


async def test_a_turn_said_otherwise_goes_on_in_its_branch_after_its_process_was_killed(settings: Settings) -> None:
    with StudioChild(KILLED, str(settings.home)) as child:
        conversation_id, first = (await child.line()).split()
        assert await child.ended() == -signal.SIGKILL
    scene = Scene(settings, text=[says("Otherwise.")])
    async with scene.studio() as studio:
        rests = (await kept_when(studio, conversation_id, lambda one: one.turns[-1].state in RESTS)).turns[-1]
        await until(lambda: not studio.is_running(conversation_id))
        notes = [one.error.code for one in rests.components if isinstance(one, FailureNote)]
        events = await retry(studio, conversation_id, rests.id)
        kept = await studio.conversation(conversation_id)
        shown = await studio.switch_branch(conversation_id, first)
    assert notes == [ErrorCode.CALL_UNKNOWN], "what may have been charged is asked for again only by the person"
    assert words(events) == "Otherwise."
    assert [(turn.id, turn.text, turn.state) for turn in kept.turns] == [(rests.id, "b", TurnState.DONE)]
    assert kept.forks == {rests.id: (first, rests.id)}
    assert [(turn.text, turn.state) for turn in shown.turns] == [("a", TurnState.DONE)]


async def test_the_report_of_a_turn_can_be_had_when_its_branch_is_not_shown(settings: Settings) -> None:
    scene = Scene(settings, text=[calls(generate()), says("Well.")], pictures=[picture()])
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        first = started(await run(studio, conversation.id, "a fox"))
        await say_instead(studio, conversation.id, first, "a hen")
        report = await studio.report(conversation.id, first)
    pictures = report["pictures"]
    assert isinstance(pictures, list)
    assert [one["handle"] for one in pictures if isinstance(one, dict)] == ["#1"]

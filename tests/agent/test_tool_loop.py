"""The agent calls tools, any number of them, and goes on with what they answered; none of them can take a turn down."""

from __future__ import annotations

import asyncio
import errno
import os
import subprocess
from typing import Annotated

import pytest

from agent import ErrorCode, Role, Settings, Step, ThoughtLog, ToolCallPart, TurnDone, TurnEvent, TurnFailed
from tests.adapters.models import Asked, Line, Script, calls, says
from tests.adapters.tools import Tool, ToolAnswer, ToolContext, tool
from tests.support.cases import each_case
from tests.support.scenes import Scene, generate, of_type, only, picture, run, words
from tests.support.tool_calls import call, results


async def turn(settings: Settings, script: Script, *tools: Tool, text: str = "do it") -> tuple[Scene, list[TurnEvent]]:
    """Run a turn with these tools."""
    scene = Scene(settings, text=script, tools=tools)
    async with scene.studio() as studio:
        return scene, await run(studio, (await studio.conversations.create()).id, text)


@tool()
async def weigh(context: ToolContext, thing: Annotated[str, "What is weighed."]) -> ToolAnswer:
    """Weigh a thing and tell its grams."""
    return ToolAnswer({"grams": len(thing)})


@tool(most_a_turn=2)
async def ask_oracle(context: ToolContext, question: Annotated[str, "What is asked."]) -> ToolAnswer:
    """Ask the oracle, which soon tires."""
    return ToolAnswer({"answer": "perhaps"})


@tool()
async def break_down(context: ToolContext) -> ToolAnswer:
    """Break down in a way that nobody foresaw."""
    raise ZeroDivisionError("a secret of the machine")


@tool()
async def read_encyclopedia(context: ToolContext) -> ToolAnswer:
    """Read a very long text."""
    return ToolAnswer({"text": "x" * 10_000_000, "after": "y"}, source="https://long.example/")


async def test_calls_of_one_answer_run_side_by_side_and_are_answered_in_order_with_their_ids(
    settings: Settings,
) -> None:
    # One after the other they would wait for ever.
    barrier = asyncio.Barrier(2)

    @tool()
    async def meet_someone(context: ToolContext, name: Annotated[str, "Who comes."]) -> ToolAnswer:
        """Come to a place where somebody else comes at the same time."""
        await barrier.wait()
        return ToolAnswer({"met_by": name})

    ann, egg, bob = (
        call("meet_someone", "a", name="Ann"),
        call("weigh", "b", thing="egg"),
        call("meet_someone", "c", name="Bob"),
    )
    scene, events = await turn(settings, [calls(ann, egg, bob), says("They met.")], meet_someone, weigh)
    answers = [("a", {"met_by": "Ann"}), ("b", {"grams": 3}), ("c", {"met_by": "Bob"})]
    assert [(one.call_id, one.content) for one in results(scene.provider.asked[1])] == answers
    assert words(events) == "They met."


async def test_the_agent_may_call_one_tool_after_another_before_it_answers_and_the_steps_name_each(
    settings: Settings,
) -> None:
    things = ["a", "an   egg", "abc"]
    scene = Scene(settings, text=[*(calls(call("weigh", thing=one)) for one in things), says("Six.")], tools=[weigh])
    async with scene.studio() as studio:
        conversation = await studio.conversations.create()
        events = await run(studio, conversation.id, "weigh all of it")
        kept = (await studio.conversations.get(conversation.id)).turns[0]
    assert isinstance(events[-1], TurnDone)
    assert [message.role for message in kept.messages] == [Role.PROMPT, *[Role.MODEL, Role.TOOL] * 3, Role.MODEL]
    lines = [one.parameters for one in of_type(events, ThoughtLog) if one.step is Step.TOOL]
    assert lines == [{"name": "weigh", "object": one} for one in ("a", "an egg", "abc")]


@each_case(
    ("wrong", "said"),
    [
        (call("fly"), "There is no tool named fly. Tools: generate_image, "),
        (call("weigh"), "The arguments of weigh do not fit: thing: Field required."),
        (call("weigh", thing="egg", unit="lb"), "unit: Extra inputs are not permitted"),
        (call("break_down"), "break_down failed. Go on without it."),
    ],
)
async def test_a_call_that_cannot_be_done_goes_back_as_an_error_the_model_can_mend(
    settings: Settings, wrong: ToolCallPart, said: str
) -> None:
    scene, events = await turn(settings, [calls(wrong), says("Then not.")], weigh, break_down)
    (result,) = results(scene.provider.asked[1])
    assert result.is_error
    assert said in str(result.content["error"])
    assert "secret" not in str(result.content)
    assert words(events) == "Then not."


async def test_where_no_process_can_be_started_the_model_hears_it_and_the_turn_goes_on(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fork_fails(*arguments: object) -> int:
        raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    scene = Scene(
        settings,
        text=[calls(call("run_javascript", code="1 + 1")), says("In my head: 2."), calls(generate())],
        pictures=[picture()],
    )
    async with scene.studio() as studio:
        conversation = await studio.conversations.create()
        # What the system says when it has no place for another process.
        monkeypatch.setattr(subprocess, "_fork_exec", fork_fails)
        events = await run(studio, conversation.id, "add them up")
        (result,) = results(scene.provider.asked[1])
        assert result.is_error
        assert "scripts cannot be run here now: no process could be started" in str(result.content["error"])
        assert words(events) == "In my head: 2."
        assert isinstance((await run(studio, conversation.id, "a red fox"))[-1], TurnDone)


@each_case(("is_stubborn", "most"), [(True, 3), (False, 16)])
async def test_the_same_call_three_times_or_sixteen_steps_end_the_turn(
    settings: Settings, is_stubborn: bool, most: int
) -> None:
    def endless(asked: Asked) -> Line:
        return calls(call("weigh", thing="egg" if is_stubborn else f"thing {len(asked.messages)}"))

    scene, events = await turn(settings, endless, weigh)
    assert only(events, TurnFailed).error.code is ErrorCode.TOO_MANY_STEPS
    assert len(scene.provider.asked) == most


async def test_a_tool_that_may_be_called_twice_a_turn_is_not_run_a_third_time(settings: Settings) -> None:
    asks = [call("ask_oracle", question=one) for one in ("first?", "second?", "third?")]
    scene, _ = await turn(settings, [calls(*asks[:1]), calls(*asks[1:]), says("Enough.")], ask_oracle)
    answered = results(scene.provider.asked[2])
    assert [one.is_error for one in answered] == [False, True]
    assert "ask_oracle can be called 2 times in a turn" in str(answered[1].content["error"])


async def test_what_a_tool_found_is_cut_where_it_would_fill_the_model_with_it(settings: Settings) -> None:
    scene, _ = await turn(settings, [calls(call("read_encyclopedia")), says("Long.")], read_encyclopedia)
    (result,) = results(scene.provider.asked[1])
    assert result.content["untrusted"] is True
    assert len(str(result.content)) < 70_000
    assert str(result.content["text"]).endswith("[truncated]")

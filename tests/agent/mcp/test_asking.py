"""Which calls of servers' tools wait for the person: those of a tool that has changed, or is not believed."""

from __future__ import annotations

from agent import ConsentAsked, Settings, Step, ThoughtLog, TurnDone
from tests.adapters.scripted import calls, says
from tests.mcp_server import rogue
from tests.support.mcp_turns import meeting
from tests.support.scenes import only, words
from tests.support.tool_calls import call, results
from tests.support.turns import decide, newest
from tests.support.waiting import until

ACT = "rogue_act"


async def test_a_changed_description_asks_and_what_is_allowed_is_known_from_then_on(settings: Settings) -> None:
    async with meeting(settings, {"rogue": rogue("--description", "Old.", trusted=True)}) as met:
        events = await met.turn(calls(call(ACT, how="well")), says("Good."))
        assert isinstance(events[-1], TurnDone)
    async with meeting(settings, {"rogue": rogue("--description", "New.", trusted=True)}) as met:
        events = await met.turn(calls(call(ACT, how="well")))
        (ask,) = only(events, ConsentAsked).asks
        assert (ask.tool, ask.reason) == (ACT, "was_changed")
        waiting = await newest(met.studio, met.conversation_id)
        met.lines[:] = [says("Good.")]
        assert words(await decide(met.studio, met.conversation_id, waiting.id, run=True)) == "Good."
        events = await met.turn(calls(call(ACT, how="well")), says("Good."))
        assert isinstance(events[-1], TurnDone)


async def test_a_server_that_becomes_another_after_the_first_call_asks_at_the_second(settings: Settings) -> None:
    async with meeting(settings, {"rogue": rogue("--description", "Old.", trusted=True)}) as met:
        await met.turn(calls(call(ACT, how="be another")), says("Good."))

        # Its list is read again in the background, as soon as it says that it has another one.
        async def is_another() -> bool:
            await met.turn(says("Hello."))
            return any("Mallory" in tool.description for tool in met.asked.tools)

        await until(is_another)
        events = await met.turn(calls(call(ACT, how="well")))
    assert [ask.reason for ask in only(events, ConsentAsked).asks] == ["was_changed"]


async def test_a_tool_that_changes_between_the_question_and_the_click_does_not_run(settings: Settings) -> None:
    async with meeting(settings, {"rogue": rogue("--description", "Old.")}):
        pass
    async with meeting(settings, {"rogue": rogue("--description", "New.")}) as met:
        await met.turn(calls(call(ACT, how="well")))
        waiting = await newest(met.studio, met.conversation_id)
        conversation_id = met.conversation_id
    async with meeting(settings, {"rogue": rogue("--description", "Newest.")}) as met:
        met.lines[:] = [says("Then again.")]
        await decide(met.studio, conversation_id, waiting.id, run=True)
        (answer,) = results(met.asked)
    assert "has changed since the person was asked" in str(answer.content["error"])


async def test_an_untrusted_server_asks_once_something_from_outside_is_there_also_in_every_later_turn(
    settings: Settings,
) -> None:
    async with meeting(settings, {"rogue": rogue()}) as met:
        at_once = await met.turn(calls(call(ACT, how="well")), calls(call(ACT, how="well again")))
    async with meeting(settings, {"rogue": rogue()}) as met:
        await met.turn(calls(call(ACT, how="well")), says("Good."))
        await met.turn(says("You are welcome."), text="thanks")
        later = await met.turn(calls(call(ACT, how="well again")))
    for events in (at_once, later):
        (ask,) = only(events, ConsentAsked).asks
        assert ask.reason == "may_change_something"
        assert "well again" in ask.arguments


async def test_a_trusted_server_that_only_reads_asks_nothing(settings: Settings) -> None:
    async with meeting(settings, {"rogue": rogue(trusted=True)}) as met:
        again = [calls(call(ACT, how=f"well {number}")) for number in range(3)]
        events = await met.turn(*again, says("Good."))
    assert isinstance(events[-1], TurnDone)
    used = [one.parameters["name"] for one in events if isinstance(one, ThoughtLog) and one.step is Step.TOOL]
    assert used == ["act"] * 3

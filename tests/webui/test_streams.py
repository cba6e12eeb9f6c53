"""Streams of turns that begin, go on, or are refused."""

from __future__ import annotations

from collections.abc import AsyncIterator

from agent.components import ActionPanel, AgentMessage, FailureNote, InterruptedNote, PlanCard, SmartCanvas, Steps
from agent.conversation import TurnState
from agent.errors import ErrorCode, ErrorInfo, RequestRefused
from agent.events import Step, TextDelta, ThoughtLog, TurnEvent, TurnFailed, TurnStarted
from tests.support.page_values import PLAN, VIEW, image, picture, turn
from webui.live import advance, advance_all, resumed
from webui.render import Card, render_live
from webui.streams import refusals_told

FAILED = turn(
    AgentMessage(text="Here it is."),
    Steps(lines=(ThoughtLog(step=Step.PAINTING),), seconds=3),
    SmartCanvas(handles=("#1",)),
    ActionPanel(handle="#1"),
    FailureNote(error=ErrorInfo(code=ErrorCode.OVERLOADED)),
    InterruptedNote(),
    state=TurnState.FAILED,
)


async def refused_after(*events: TurnEvent) -> AsyncIterator[TurnEvent]:
    for event in events:
        yield event
    raise RequestRefused(ErrorCode.PLAN_GONE)


async def test_a_refusal_that_was_raised_ends_the_stream_as_an_event() -> None:
    first = TextDelta(text="a")
    told = [event async for event in refusals_told(refused_after(first))]
    assert told == [first, TurnFailed(error=ErrorInfo(code=ErrorCode.PLAN_GONE))]


def test_a_turn_that_goes_on_keeps_what_it_brought_and_loses_how_it_ended() -> None:
    live = resumed(FAILED)
    assert live.turn_id == "t1"
    assert [type(one) for one in live.earlier] == [AgentMessage, SmartCanvas]
    blocks = render_live(VIEW, live, 0, {"#1": picture("#1")})
    html = "".join(block.html for block in blocks if isinstance(block, Card))
    assert html.index('data-arg="#1"') < html.index('class="live"')


def test_the_plan_of_a_turn_that_goes_on_is_the_decided_one() -> None:
    decided = PlanCard(plans=(PLAN,), state="run")
    waiting = turn(PlanCard(plans=(PLAN,)), state=TurnState.WAITING)
    assert resumed(waiting, decided).earlier == (decided,)
    assert resumed(waiting).earlier == waiting.components


def test_a_turn_that_goes_on_under_its_own_id_keeps_its_uploads() -> None:
    sent = FAILED.model_copy(update={"uploads": (image("#2"),)})
    live = advance(resumed(sent), TurnStarted(turn_id="t1"))
    assert live.uploads == sent.uploads
    assert live.earlier


def test_a_turn_that_was_sent_again_as_another_has_shown_nothing_yet() -> None:
    live = advance_all(resumed(FAILED), [TurnStarted(turn_id="t2"), TextDelta(text="Anew.")])
    assert (live.turn_id, live.earlier, live.uploads) == ("t2", (), ())
    assert live.text == FAILED.text

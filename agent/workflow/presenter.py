"""The presenter: turns what a turn brought into components and writes the turn to the conversation."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from contextlib import suppress

from langgraph.types import Command, interrupt

from agent.conversation import Turn, TurnState
from agent.errors import StorageFailure
from agent.events import (
    AskBack,
    Component,
    ConsentCard,
    FailureNote,
    Outcome,
    PlanCard,
    SmartCanvas,
    Steps,
    StoppedNote,
    TargetNote,
    TurnDone,
    TurnFailed,
)
from agent.workflow.deps import Deps, TurnRuntime, emit
from agent.workflow.rewording import reworded
from agent.workflow.state import Leftovers, TurnProgress
from agent.workflow.window import answer_open_calls

_RECORDED_AGAIN_S = 5.0
_OUTCOMES = (SmartCanvas, FailureNote, StoppedNote, PlanCard, ConsentCard, AskBack, TargetNote)

_STEP_OUTCOMES: dict[TurnState, Outcome] = {TurnState.FAILED: "failed", TurnState.STOPPED: "stopped"}

_NOT_DONE = defaultdict(
    lambda: "Stopped before it was done.",
    {TurnState.WAITING: "Not done yet: the person was asked and has not decided.", TurnState.FAILED: "It failed."},
)


async def presenter(state: TurnProgress, runtime: TurnRuntime) -> TurnProgress:
    """Write the finished turn and say so."""
    turn = finished_turn(runtime.context, state, TurnState.DONE)
    runtime.context.ledger.release()
    await runtime.context.records.finish_turn(runtime.context.conversation.id, turn)
    emit(runtime, TurnDone(turn_id=turn.id, usage=turn.usage, price_usd=turn.price_usd, seconds=turn.seconds))
    return {}


async def failure(state: TurnProgress, runtime: TurnRuntime) -> TurnProgress:
    """Write the failed turn with all it brought, and say what happened and who must act."""
    error, node, left = state["error"], state["failed_node"], state["leftovers"]
    assert error is not None
    rewordings, spend, steps = await reworded(state, runtime, error)
    note = FailureNote(error=error, node=node, rewordings=rewordings)
    failed: TurnProgress = {
        **state,
        "messages": [*state["messages"], *left.messages],
        "components": [*state["components"], *left.components, note],
        "spend": state["spend"] + spend,
        "steps": [*state["steps"], *steps],
    }
    turn = finished_turn(runtime.context, failed, TurnState.FAILED)
    try:
        await runtime.context.records.finish_turn(runtime.context.conversation.id, turn)
    except StorageFailure:
        # What the person is told is why it failed, not that the full disk takes no record of that.
        runtime.context.keep_alive(_recorded_later(runtime.context, turn))
    runtime.context.settled.set()
    emit(runtime, TurnFailed(error=error, node=node, rewordings=rewordings))
    # A turn that goes on from here has paid for them, too.
    return {"spend": spend, "steps": steps}


async def _recorded_later(deps: Deps, turn: Turn) -> None:
    while True:
        await asyncio.sleep(_RECORDED_AGAIN_S)
        with suppress(StorageFailure):
            await deps.records.finish_turn(deps.conversation.id, turn)
            return


async def retrial(state: TurnProgress, runtime: TurnRuntime) -> Command[str]:
    """Rest until the person has the turn go on, then run the node that failed once more."""
    interrupt(None)
    return Command(goto=state["failed_node"], update={"error": None, "failed_node": "", "leftovers": Leftovers()})


def finished_turn(deps: Deps, state: TurnProgress, how: TurnState) -> Turn:
    """Return the turn as it goes on record: messages without open calls, components in reading order."""
    return deps.turn.model_copy(
        update={
            "state": how,
            "messages": tuple(answer_open_calls(state["messages"], _NOT_DONE[how])),
            "components": _in_reading_order(state, deps.elapsed_s, how),
            "usage": state["spend"].usage,
            "price_usd": state["spend"].price_usd,
            "seconds": round(deps.elapsed_s, 3),
            "timings": tuple(state["timings"]),
        }
    )


def _in_reading_order(state: TurnProgress, seconds: float, how: TurnState) -> tuple[Component, ...]:
    """Put the line of steps between the words and what came of them; a turn of words alone needs none."""
    components = [*state["components"], *([state["consent"]] if state["consent"] is not None else [])]
    if state["plan"] is not None:
        at = next((i for i, one in enumerate(components) if isinstance(one, _OUTCOMES)), len(components))
        components.insert(at, state["plan"])
    if len(state["steps"]) > 1:
        # Work that was done side by side is told of when all of it is over.
        lines = tuple(sorted(state["steps"], key=lambda line: line.at_s))
        steps = Steps(lines=lines, seconds=round(seconds, 3), outcome=_STEP_OUTCOMES.get(how, "done"))
        at = next((i for i, one in enumerate(components) if isinstance(one, _OUTCOMES)), len(components))
        components.insert(at, steps)
    return tuple(components)

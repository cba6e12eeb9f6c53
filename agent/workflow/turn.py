"""A turn from the person's message to its last event, once it is that conversation's turn to go.

It begins, or it goes on: from the checkpoint after the last node that was finished, however it came to rest.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph.types import Command

from agent.conversation import Conversation, Turn, TurnState
from agent.errors import ErrorCode, RequestRefused
from agent.events import Component, ConsentCard, PlanCard, Step, ThoughtLog, TurnPaused, TurnStarted, component_events
from agent.requests import Decision
from agent.storage.checkpoints import Checkpoints
from agent.workflow.deps import Deps
from agent.workflow.graph import TurnGraph
from agent.workflow.live import LiveTurn, Progress
from agent.workflow.presenter import finished_turn, put_on_record
from agent.workflow.state import TurnProgress, first_progress

# A turn takes at most 16 planner steps, each with at most a search, tools and pictures after it.
_RECURSION_LIMIT = 120
# Where a turn rests until the person decides.
_ASKING = (("decision",), ("consent",))
# What may be done again or decided later stands on a checkpoint until then.
_REST = frozenset({TurnState.FAILED, TurnState.WAITING, TurnState.INTERRUPTED})


@dataclass(frozen=True)
class Runner:
    """Runs turns through the graph of a studio, with its checkpoints."""

    graph: TurnGraph
    checkpoints: Checkpoints

    async def begin(self, deps: Deps, live: LiveTurn) -> None:
        """Run a new turn and publish what happens."""
        first = first_progress(deps.turn.messages[0])
        self.checkpoints.begin(deps.turn.id)
        live.publish(TurnStarted(turn_id=deps.turn.id, uploads=deps.turn.uploads))
        await self._run(deps, live, first, first)

    async def go_on(self, deps: Deps, live: LiveTurn, decision: Decision | None) -> None:
        """Run a turn from where it rests: after a failure, after the end of a process, or with a plan's decision.

        Raises RequestRefused when the plan no longer waits.
        """
        live.publish(TurnStarted(turn_id=deps.turn.id, uploads=deps.turn.uploads))
        snapshot = await self.graph.aget_state(_config(deps.turn))
        first = first_progress(deps.turn.messages[0])
        if decision is not None and snapshot.next not in _ASKING:
            raise RequestRefused(ErrorCode.PLAN_GONE)
        if not snapshot.values:
            # It ended before its first checkpoint: what was answered is in the journal.
            await self._run(deps, live, first, first)
            return
        so_far = cast("TurnProgress", {**first, **snapshot.values})
        if decision is not None:
            await self._run(deps, live, Command(resume=decision), so_far)
        elif snapshot.next in _ASKING:
            await self._wait_on(deps, live, so_far)
        elif snapshot.next == ("retrial",):
            await self._run(deps, live, Command(resume=True), so_far)
        else:
            live.publish(ThoughtLog(step=Step.RESUMED))
            await self._run(deps, live, None, so_far)

    async def _wait_on(self, deps: Deps, live: LiveTurn, so_far: TurnProgress) -> None:
        """Put on record that the turn still waits: without a decision there is nothing to do."""
        await put_on_record(deps, so_far, TurnState.WAITING)
        for event in component_events(so_far["consent"] or so_far["plan"] or PlanCard(plans=())):
            live.publish(event)
        live.publish(TurnPaused(turn_id=deps.turn.id))

    async def record_stop(self, deps: Deps, live: LiveTurn) -> None:
        """Put a stopped turn on record as far as it came."""
        if live.progress is None and can_go_on(deps.turn):
            # It was to go on and had not moved yet: it rests where it did.
            await deps.records.turns.finish(deps.conversation.id, deps.turn)
            deps.settled.set()
            return
        progress = live.progress or Progress(first_progress(deps.turn.messages[0]))
        await put_on_record(deps, progress.stopped(), TurnState.STOPPED)
        deps.ledger.release()
        deps.settled.set()
        self.checkpoints.forget(deps.turn.id)

    async def record_cut(self, deps: Deps, live: LiveTurn) -> None:
        """Put a turn on record that the studio ends under, with what it shows: still at work, so that the next start
        takes it up from its last checkpoint. Raises RequestRefused when it is not on record yet.
        """
        progress = live.progress or Progress(first_progress(deps.turn.messages[0]))
        shown = finished_turn(deps, progress.so_far(), TurnState.RUNNING).components
        goes_on = deps.turn.model_copy(update={"state": TurnState.RUNNING, "components": shown})
        await deps.records.turns.finish(deps.conversation.id, goes_on)
        deps.settled.set()

    async def _run(
        self, deps: Deps, live: LiveTurn, start: TurnProgress | Command[Any] | None, so_far: TurnProgress
    ) -> None:
        progress = live.progress = Progress(so_far)
        states: AsyncIterator[Any] = self.graph.astream(start, _config(deps.turn), context=deps, stream_mode="values")
        rests = False
        async for state in states:
            # LangGraph's own key beside ours: the turn waits for the person.
            rests = state.pop("__interrupt__", None) is not None or rests
            progress.take_state(state)
        if not rests:
            self.checkpoints.forget(deps.turn.id)
            return
        await self.checkpoints.written()
        if not live.has_ended:
            live.publish(TurnPaused(turn_id=deps.turn.id))


def superseded(turn: Turn) -> Turn | None:
    """Return the turn as it stays behind when the conversation goes on without it, or None when nothing changes.

    A plan that still waits is dropped, and calls that wait are refused.
    """
    if turn.state is not TurnState.WAITING:
        return None
    components = tuple(map(_declined, turn.components))
    return turn.model_copy(update={"state": TurnState.STOPPED, "components": components})


def _declined(component: Component) -> Component:
    if isinstance(component, PlanCard) and component.state == "pending":
        return component.model_copy(update={"state": "dropped"})
    if isinstance(component, ConsentCard) and component.state == "pending":
        return component.model_copy(update={"state": "refused"})
    return component


def can_go_on(turn: Turn) -> bool:
    """Return whether the turn rests where it can be taken up again."""
    return turn.state in _REST


def before(conversation: Conversation, turn_id: str) -> Conversation:
    """Return the conversation as it was when the turn began. What came with it and after it is elsewhere.

    Raises RequestRefused(TURN_NOT_FOUND) for a turn of a branch that is not shown.
    """
    place = next((place for place, turn in enumerate(conversation.turns) if turn.id == turn_id), None)
    if place is None:
        raise RequestRefused(ErrorCode.TURN_NOT_FOUND)
    turns = conversation.turns[:place]
    past = {turn.id for turn in turns}
    pictures = conversation.pictures
    update = {
        "turns": turns,
        "pictures": tuple(one for one in pictures if one.turn_id in past),
        "elsewhere": (*conversation.elsewhere, *(one for one in pictures if one.turn_id not in past)),
        "forks": {one: beside for one, beside in conversation.forks.items() if one in past},
    }
    return conversation.model_copy(update=update)


def _config(turn: Turn) -> RunnableConfig:
    return {"recursion_limit": _RECURSION_LIMIT, "configurable": {"thread_id": turn.id}}

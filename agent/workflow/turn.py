"""Runs a turn from the user's message to its last event, after the scheduler has started it.

A turn starts, or resumes from the checkpoint after the last finished node. Text answers, questions to the user, exact
adjustments and going back to an earlier picture need no graph, and do not import LangGraph, which takes most of a
second; a turn that needs more continues in the graph from its current node.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from agent.conversation import Conversation, Turn, TurnState
from agent.errors import ErrorCode, RequestRefused
from agent.events import PlanCard, Step, ThoughtLog, TurnPaused, TurnStarted, component_events
from agent.requests import Decision
from agent.storage.database import Database
from agent.workflow.deps import Deps
from agent.workflow.live import LiveTurn
from agent.workflow.nodes import step
from agent.workflow.presenter import finished_turn, put_on_record
from agent.workflow.reception import route_start
from agent.workflow.state import CHECKPOINTED, TurnProgress, first_progress, with_update

if TYPE_CHECKING:
    from langchain_core.runnables import RunnableConfig
    from langgraph.types import Command

    from agent.storage.checkpoints import Checkpoints
    from agent.workflow.graph import TurnGraph

# A turn takes at most 16 planner steps, each with at most a search, tools and pictures after it.
_RECURSION_LIMIT = 120
# The nodes at which a turn pauses until the user decides.
_ASKING = (("decision",), ("consent",))
_WITHOUT_GRAPH = frozenset({"reception", "undo", "adjuster", "planner", "presenter"})


class _Loaded(NamedTuple):
    graph: TurnGraph
    checkpoints: Checkpoints


class Runner:
    """Runs the turns of a studio."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._lock = asyncio.Lock()
        self._loaded: _Loaded | None = None

    async def begin(self, deps: Deps, live: LiveTurn) -> None:
        """Run a new turn and publish its events."""
        live.publish(TurnStarted(turn_id=deps.turn.id, uploads=deps.turn.uploads))
        await self._from_the_start(deps, live)

    async def go_on(self, deps: Deps, live: LiveTurn, decision: Decision | None) -> None:
        """Resume a paused turn: after a failure, after the end of a process, or with a decision about a plan or calls.

        Raises RequestRefused(PLAN_GONE) when the turn no longer waits for a decision.
        """
        live.publish(TurnStarted(turn_id=deps.turn.id, uploads=deps.turn.uploads))
        graph, _ = await self._load()
        snapshot = await graph.aget_state(_config(deps.turn))
        if decision is not None and snapshot.next not in _ASKING:
            raise RequestRefused(ErrorCode.PLAN_GONE)
        if not snapshot.values:
            # It ended before its first checkpoint: it starts again, with the answers in the journal.
            await self._from_the_start(deps, live)
            return
        so_far = cast("TurnProgress", {**first_progress(deps.turn.messages[0]), **snapshot.values})
        deps.record.begin(so_far)
        from langgraph.types import Command

        if decision is not None:
            await self._run(deps, live, Command(resume=decision))
        elif snapshot.next in _ASKING:
            # There is no decision yet: record that the turn still waits.
            await put_on_record(deps, so_far, TurnState.WAITING)
            for event in component_events(so_far["consent"] or so_far["plan"] or PlanCard(plans=())):
                live.publish(event)
            live.publish(TurnPaused(turn_id=deps.turn.id))
        elif snapshot.next == ("retrial",):
            await self._run(deps, live, Command(resume=True))
        else:
            live.publish(ThoughtLog(step=Step.RESUMED))
            await self._run(deps, live, None)

    async def record_stop(self, deps: Deps) -> None:
        """Record the progress of a cancelled turn."""
        if not deps.record.has_begun and can_go_on(deps.turn):
            # It was about to resume and has made no progress, so it stays paused as before.
            await deps.services.records.turns.finish(deps.conversation.id, deps.turn)
            deps.settled.set()
            return
        await put_on_record(deps, deps.record.stopped(), TurnState.STOPPED)
        deps.ledger.release()
        deps.settled.set()
        self.forget(deps.turn.id)

    async def record_cut(self, deps: Deps) -> None:
        """Record an interrupted turn as still running, with its components.

        So the next start of the studio resumes it from its last checkpoint. Raises RequestRefused when it is not
        recorded yet.
        """
        shown = finished_turn(deps, deps.record.so_far(), TurnState.RUNNING).components
        goes_on = deps.turn.model_copy(update={"state": TurnState.RUNNING, "components": shown})
        await deps.services.records.turns.finish(deps.conversation.id, goes_on)
        deps.settled.set()

    def forget(self, turn_id: str) -> None:
        """Stop writing checkpoints of a turn that is over or superseded."""
        if self._loaded is not None:
            self._loaded.checkpoints.forget(turn_id)

    async def settle(self) -> None:
        """Wait until every checkpoint is written."""
        if self._loaded is not None:
            await self._loaded.checkpoints.written()

    async def _load(self) -> _Loaded:
        async with self._lock:
            if self._loaded is None:
                self._loaded = await asyncio.to_thread(self._load_now)
            return self._loaded

    def _load_now(self) -> _Loaded:
        from agent.storage.checkpoints import Checkpoints
        from agent.workflow.graph import turn_graph

        checkpoints = Checkpoints(self._db, CHECKPOINTED)
        return _Loaded(turn_graph(checkpoints), checkpoints)

    async def _from_the_start(self, deps: Deps, live: LiveTurn) -> None:
        state = first_progress(deps.turn.messages[0])
        deps.record.begin(state)
        node: str | None = route_start(deps)
        while node in _WITHOUT_GRAPH:
            node, update = await step(node, state, deps)
            state = with_update(state, update)
        if node is not None:
            _, checkpoints = await self._load()
            checkpoints.begin(deps.turn.id)
            await self._run(deps, live, {**state, "entry": node})

    async def _run(self, deps: Deps, live: LiveTurn, start: TurnProgress | Command[Any] | None) -> None:
        graph, checkpoints = await self._load()
        from langsmith import tracing_context

        states: AsyncIterator[Any] = graph.astream(start, _config(deps.turn), context=deps, stream_mode="values")
        rests = False
        # LangGraph would send all messages to LangSmith if the environment, set for other programs, enables that.
        with tracing_context(enabled=False):
            async for state in states:
                # LangGraph adds this key when the turn waits for the user.
                rests = "__interrupt__" in state or rests
        if not rests:
            checkpoints.forget(deps.turn.id)
            return
        await checkpoints.written()
        if not live.has_ended:
            live.publish(TurnPaused(turn_id=deps.turn.id))


def can_go_on(turn: Turn) -> bool:
    """Return whether the turn is paused and can be resumed: its checkpoint is kept until then."""
    return turn.state in (TurnState.FAILED, TurnState.WAITING, TurnState.INTERRUPTED)


def before(conversation: Conversation, turn_id: str) -> Conversation:
    """Return the conversation before the turn started. Pictures of this and later turns are in `elsewhere`.

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

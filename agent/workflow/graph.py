"""The whole turn on one screen.

    START ─┬─ nothing to work on ─► reception ─ asks back ──────────────────────────────► presenter ─► END
           ├─ back to an earlier picture ─► undo ─ what else is asked ─► adjuster | planner
           ├─ light, colour or frame alone ─► adjuster ─────────────────────────────────► presenter
           └─► planner ─┬─ words alone ─────────────────────────────────────────────────► presenter
                ▲ ▲     ├─ read_url, files, … ─► tools ⇄ consent
                │ └─────┼─────────────────────────┘
                │       ├─ web_search ─► searcher ─┐
                └───────┼──────────────────────────┘
                        └─ generate_image ─► retriever ─► executor ⇄ critic ────────────► presenter
                                                             │ ▲
                         where the person confirms first ─► decision ─ dropped ─────────► presenter
    any node that fails for good ─► failure ─► retrial ─► the node that failed

The retriever is passed by when no style is named, the critic when no review is due. At `consent`, `decision` and
`retrial` the turn rests, on a checkpoint, until the person says something. The drawing made from the code is in
docs/turn-graph.md.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable
from functools import cache
from typing import Any, NamedTuple, Protocol

from langgraph.errors import GraphBubbleUp
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Checkpointer, Command

from agent.conversation import Timing
from agent.errors import AivistaError, ErrorCode, ErrorInfo
from agent.workflow.adjuster import adjuster
from agent.workflow.confirmer import decision
from agent.workflow.critic import critic, unreviewed
from agent.workflow.deps import Deps, TurnRuntime
from agent.workflow.executor import executor
from agent.workflow.planner import planner
from agent.workflow.presenter import failure, presenter, retrial
from agent.workflow.reception import entrance, reception, undo
from agent.workflow.retriever import retriever, unstyled
from agent.workflow.searcher import searcher
from agent.workflow.state import TurnProgress
from agent.workflow.tools import consent, tools

logger = logging.getLogger(__name__)

TurnGraph = CompiledStateGraph[TurnProgress, Deps, TurnProgress, TurnProgress]  # pyrefly: ignore[bad-specialization]


class Node(NamedTuple):
    """A step of a turn, and the places it chooses from to lead on to.

    What it raises leads to `failure`, or to where `when_it_fails` says.
    """

    work: Callable[[TurnProgress, TurnRuntime], Awaitable[Command[Any]]]
    leads_to: tuple[str, ...]
    when_it_fails: Callable[[TurnProgress, TurnRuntime, Exception], Awaitable[Command[Any]]] | None = None
    is_timed: bool = True


_CALLED = ("tools", "searcher", "retriever", "executor")
_MAY_FAIL = (*("reception", "undo", "adjuster", "planner", "tools", "searcher"), *("decision", "executor", "presenter"))
NODES: dict[str, Node] = {
    "reception": Node(reception, ("presenter",)),
    "undo": Node(undo, ("adjuster", "planner", "presenter")),
    "adjuster": Node(adjuster, ("presenter",)),
    "planner": Node(planner, ("planner", *_CALLED, "consent", "presenter", "failure")),
    "tools": Node(tools, ("planner", "consent", "retriever", "executor")),
    "consent": Node(consent, ("planner", "tools", "presenter"), is_timed=False),
    "searcher": Node(searcher, ("planner", "tools", "retriever", "executor", "failure")),
    "retriever": Node(retriever, ("executor",), unstyled),
    "decision": Node(decision, ("executor", "presenter"), is_timed=False),
    "executor": Node(executor, ("planner", "decision", "critic", "presenter", "failure")),
    "critic": Node(critic, ("executor", "presenter"), unreviewed),
    "presenter": Node(presenter, (END,), is_timed=False),
    "failure": Node(failure, ("retrial",), is_timed=False),
    "retrial": Node(retrial, _MAY_FAIL, is_timed=False),
}


def turn_graph(checkpoints: Checkpointer = None) -> TurnGraph:
    """Return the compiled graph; it holds nothing of any turn and serves all of them."""
    return _compiled().copy({"checkpointer": checkpoints})


@cache
def _compiled() -> TurnGraph:
    graph = StateGraph(TurnProgress, context_schema=Deps)  # pyrefly: ignore[bad-specialization]
    for name, node in NODES.items():
        graph.add_node(name, _step(name, node), destinations=node.leads_to)
    # Not by way of a node of its own: most turns need no question, and a step of the graph takes time.
    graph.add_conditional_edges(START, entrance, ["reception", "undo", "planner", "adjuster"])
    return graph.compile()


class _Step(Protocol):
    async def __call__(self, state: TurnProgress, runtime: TurnRuntime) -> Command[Any]: ...


def _step(name: str, node: Node) -> _Step:
    """Return the node as LangGraph runs it: with its time added to the state, on record in the trace, and led on when
    it fails."""

    async def run(state: TurnProgress, runtime: TurnRuntime) -> Command[Any]:
        try:
            return await (_timed(name, node, state, runtime) if node.is_timed else node.work(state, runtime))
        except GraphBubbleUp:
            # LangGraph's own: the turn comes to rest.
            raise
        except Exception as error:
            if name == "failure":
                # Led to itself it would go on for ever.
                raise
            return await node.when_it_fails(state, runtime, error) if node.when_it_fails else _to_failure(name, error)

    return run


async def _timed(name: str, node: Node, state: TurnProgress, runtime: TurnRuntime) -> Command[Any]:
    started_s = time.monotonic()
    with runtime.context.trace.node(name) as step:
        command = await node.work(state, runtime)
        step.lead(command)
    timing = Timing(node=name, seconds=round(time.monotonic() - started_s, 4))
    return Command(goto=command.goto, update={**(command.update or {}), "timings": [timing]})


def _to_failure(name: str, error: Exception) -> Command[Any]:
    """Lead what a node raised to the failure node; what we did not foresee is logged with its traceback."""
    if isinstance(error, AivistaError):
        info = error.info
    else:
        logger.error("the node %s failed", name, exc_info=error)
        info = ErrorInfo(code=ErrorCode.INTERNAL)
    return Command(goto="failure", update={"error": info, "failed_node": name})

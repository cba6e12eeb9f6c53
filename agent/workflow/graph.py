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
from typing import NamedTuple, Protocol

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime
from langgraph.types import Checkpointer, Command, interrupt

from agent.conversation import Timing
from agent.errors import AivistaError, ErrorCode, ErrorInfo
from agent.workflow.adjuster import adjuster
from agent.workflow.confirmer import decision
from agent.workflow.critic import critic, unreviewed
from agent.workflow.deps import Deps
from agent.workflow.executor import executor
from agent.workflow.planner import planner
from agent.workflow.presenter import failure, presenter, retrial
from agent.workflow.reception import entrance, reception, undo
from agent.workflow.retriever import retriever, unstyled
from agent.workflow.routing import Next
from agent.workflow.searcher import searcher
from agent.workflow.state import TurnProgress
from agent.workflow.tools import consent, tools

logger = logging.getLogger(__name__)

TurnGraph = CompiledStateGraph[TurnProgress, Deps, TurnProgress, TurnProgress]  # pyrefly: ignore[bad-specialization]


class Node(NamedTuple):
    """A step of a turn, and the places it chooses from to lead on to.

    What it raises leads to `failure`, or to where `when_it_fails` says. One that `rests` waits for the person first, and
    is given their word.
    """

    work: Callable[..., Awaitable[Next]]
    leads_to: tuple[str, ...]
    when_it_fails: Callable[[TurnProgress, Deps, Exception], Awaitable[Next]] | None = None
    is_traced: bool = True
    rests: bool = False


_CALLED = ("tools", "searcher", "retriever", "executor")
_MAY_FAIL = (*("reception", "undo", "adjuster", "planner", "tools", "searcher"), *("decision", "executor", "presenter"))
NODES: dict[str, Node] = {
    "reception": Node(reception, ("presenter",)),
    "undo": Node(undo, ("adjuster", "planner", "presenter")),
    "adjuster": Node(adjuster, ("presenter",)),
    "planner": Node(planner, ("planner", *_CALLED, "consent", "presenter", "failure")),
    "tools": Node(tools, ("planner", "consent", "retriever", "executor")),
    "consent": Node(consent, ("planner", "tools", "presenter"), is_traced=False, rests=True),
    "searcher": Node(searcher, ("planner", "tools", "retriever", "executor", "failure")),
    "retriever": Node(retriever, ("executor",), unstyled),
    "decision": Node(decision, ("executor", "presenter"), is_traced=False, rests=True),
    "executor": Node(executor, ("planner", "decision", "critic", "presenter", "failure")),
    "critic": Node(critic, ("executor", "presenter"), unreviewed),
    "presenter": Node(presenter, (END,), is_traced=False),
    "failure": Node(failure, ("retrial",), is_traced=False),
    "retrial": Node(retrial, _MAY_FAIL, is_traced=False, rests=True),
}


def turn_graph(checkpoints: Checkpointer = None) -> TurnGraph:
    """Return the compiled graph; it holds nothing of any turn and serves all of them."""
    return _compiled().copy({"checkpointer": checkpoints})


@cache
def _compiled() -> TurnGraph:
    graph = StateGraph(TurnProgress, context_schema=Deps)  # pyrefly: ignore[bad-specialization]
    for name, node in NODES.items():
        graph.add_node(name, _command(name, node), destinations=node.leads_to)
    # Not by way of a node of its own: most turns need no question, and a step of the graph takes time.
    graph.add_conditional_edges(START, _entrance, ["reception", "undo", "planner", "adjuster"])
    return graph.compile()


def _entrance(state: TurnProgress, runtime: Runtime[Deps]) -> str:
    return entrance(state, runtime.context)


class _Runs(Protocol):
    async def __call__(self, state: TurnProgress, runtime: Runtime[Deps]) -> Command[str]: ...


def _command(name: str, node: Node) -> _Runs:
    """Return the node as LangGraph runs it."""

    async def run(state: TurnProgress, runtime: Runtime[Deps]) -> Command[str]:
        said = (interrupt(None),) if node.rests else ()
        goto, update = await step(name, state, runtime.context, *said)
        return Command(goto=goto or END, update=update)

    return run


async def step(name: str, state: TurnProgress, deps: Deps, *said: object) -> Next:
    """Return what a node brings, with its time, on record in the trace, and where it leads, also when it fails."""
    node = NODES[name]
    try:
        return await (_timed(name, node, state, deps) if node.is_traced else node.work(state, deps, *said))
    except Exception as error:
        if name == "failure":
            # Led to itself it would go on for ever.
            raise
        return await node.when_it_fails(state, deps, error) if node.when_it_fails else _to_failure(name, error)


async def _timed(name: str, node: Node, state: TurnProgress, deps: Deps) -> Next:
    started_s = time.monotonic()
    with deps.trace.node(name) as traced:
        led = await node.work(state, deps)
        traced.lead(led)
    timing = Timing(node=name, seconds=round(time.monotonic() - started_s, 4))
    return Next(led.goto, {**led.update, "timings": [timing]})


def _to_failure(name: str, error: Exception) -> Next:
    """Lead what a node raised to the failure node; what we did not foresee is logged with its traceback."""
    if isinstance(error, AivistaError):
        info = error.info
    else:
        logger.error("the node %s failed", name, exc_info=error)
        info = ErrorInfo(code=ErrorCode.INTERNAL)
    return Next("failure", {"error": info, "failed_node": name})

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
from collections.abc import Callable
from functools import cache
from typing import Any, Literal, NoReturn, Protocol

from langgraph.errors import NodeError, NodeTimeoutError
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Checkpointer, Command, TimeoutPolicy

from agent.conversation import Timing
from agent.errors import AivistaError, ErrorCode, ErrorInfo
from agent.settings import Patiences
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


class _Node(Protocol):
    async def __call__(self, state: TurnProgress, runtime: TurnRuntime) -> Command[Any]: ...


def turn_graph(patiences: Patiences | None = None, checkpoints: Checkpointer = None) -> TurnGraph:
    """Return the compiled graph; it holds nothing of any turn and serves all of them."""
    return _compiled(patiences or Patiences()).copy({"checkpointer": checkpoints})


@cache
def _compiled(patiences: Patiences) -> TurnGraph:
    graph = StateGraph(TurnProgress, context_schema=Deps)  # pyrefly: ignore[bad-specialization]
    graph.set_node_defaults(error_handler=_handler(to_failure))
    from_planner = ("planner", "tools", "consent", "searcher", "retriever", "executor", "presenter", "failure")
    graph.add_node("reception", _timed("reception", reception), destinations=("presenter",))
    graph.add_node("undo", _timed("undo", undo), destinations=("adjuster", "planner", "presenter"))
    graph.add_node("adjuster", _timed("adjuster", adjuster), destinations=("presenter",))
    graph.add_node(
        "planner",
        _timed("planner", planner),
        destinations=from_planner,
        # Until its first word: every word after it is a sign of life.
        timeout=TimeoutPolicy(idle_timeout=patiences.planner_s, refresh_on="heartbeat"),
    )
    graph.add_node("tools", _timed("tools", tools), destinations=("planner", "retriever", "executor", "consent"))
    graph.add_node("consent", consent, destinations=("tools", "planner", "presenter"))
    graph.add_node(
        "searcher",
        _timed("searcher", searcher),
        destinations=("planner", "tools", "retriever", "executor", "failure"),
        timeout=TimeoutPolicy(idle_timeout=patiences.searcher_s, refresh_on="heartbeat"),
    )
    graph.add_node(
        "retriever",
        _timed("retriever", retriever),
        destinations=("executor",),
        timeout=patiences.retriever_s,
        error_handler=_handler(unstyled),
    )
    graph.add_node("decision", decision, destinations=("executor", "presenter"))
    graph.add_node(
        "executor", _timed("executor", executor), destinations=("planner", "decision", "critic", "presenter", "failure")
    )
    graph.add_node(
        "critic",
        _timed("critic", critic),
        destinations=("executor", "presenter"),
        timeout=TimeoutPolicy(idle_timeout=patiences.critic_s, refresh_on="heartbeat"),
        error_handler=_handler(unreviewed),
    )
    graph.add_node("presenter", presenter)
    graph.add_node("failure", failure, error_handler=_handler(raised))
    graph.add_node("retrial", retrial, destinations=_MAY_FAIL)
    # Not by way of a node of its own: most turns need no question, and a step of the graph takes time.
    graph.add_conditional_edges(START, entrance, ["reception", "undo", "planner", "adjuster"])
    graph.add_edge("presenter", END)
    graph.add_edge("failure", "retrial")
    return graph.compile()


_MAY_FAIL = (*("reception", "undo", "adjuster", "planner", "tools", "searcher"), *("decision", "executor", "presenter"))


def to_failure(state: TurnProgress, error: NodeError) -> Command[Literal["failure"]]:
    """Lead whatever a node raised to the failure node; what we did not foresee is logged with its traceback."""
    if isinstance(error.error, AivistaError):
        info = error.error.info
    elif isinstance(error.error, NodeTimeoutError):
        info = ErrorInfo(code=ErrorCode.NODE_TIMEOUT, parameters={"seconds": round(error.error.timeout)})
    else:
        logger.error("the node %s failed", error.node, exc_info=error.error)
        info = ErrorInfo(code=ErrorCode.INTERNAL)
    return Command(goto="failure", update={"error": info, "failed_node": error.node})


def raised(state: TurnProgress, error: NodeError) -> NoReturn:
    """Raise what the failure node raised: led to itself it would go on for ever."""
    raise error.error


def _handler(handler: Callable[..., Any]) -> Any:
    """Return the handler of a node's error: LangGraph calls it with the error, and its types know only nodes."""
    return handler


def _timed(name: str, node: _Node) -> _Node:
    """Return the node with its time added to the state, and on record in the trace."""

    async def run(state: TurnProgress, runtime: TurnRuntime) -> Command[Any]:
        started_s = time.monotonic()
        with runtime.context.trace.node(name) as step:
            command = await node(state, runtime)
            step.lead(command)
        timing = Timing(node=name, seconds=round(time.monotonic() - started_s, 4))
        return Command(goto=command.goto, update={**(command.update or {}), "timings": [timing]})

    return run

"""The nodes of a turn: their functions, their possible next nodes, and their error handling.

The first nodes of a turn run without LangGraph (`turn.py`); from the first image request, search, tool call, pause or
failure on LangGraph runs it (`graph.py`).
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from agent.errors import AivistaError, ErrorCode, ErrorInfo
from agent.workflow.adjuster import adjuster
from agent.workflow.confirmer import decision
from agent.workflow.critic import critic, unreviewed
from agent.workflow.deps import Deps
from agent.workflow.executor import executor
from agent.workflow.planner import planner
from agent.workflow.presenter import failure, presenter, retrial
from agent.workflow.reception import reception, undo
from agent.workflow.retriever import retriever, unstyled
from agent.workflow.searcher import searcher
from agent.workflow.state import Next, TurnProgress
from agent.workflow.tools import consent, tools

logger = logging.getLogger(__name__)


class Node(NamedTuple):
    """A node of a turn, and the nodes that may follow; the turn ends after a node without any.

    An exception leads to `failure`, or is handled by `when_it_fails`. A node that `rests` first waits for the user, and
    receives the user's decision.
    """

    work: Callable[..., Awaitable[Next]]
    leads_to: tuple[str, ...]
    when_it_fails: Callable[[TurnProgress, Deps, Exception], Awaitable[Next]] | None = None
    is_traced: bool = True
    rests: bool = False


_MAY_FAIL = ("reception", "undo", "adjuster", "planner", "tools", "searcher", "decision", "executor", "presenter")
NODES: dict[str, Node] = {
    "reception": Node(reception, ("presenter",)),
    "undo": Node(undo, ("adjuster", "planner", "presenter")),
    "adjuster": Node(adjuster, ("presenter",)),
    "planner": Node(planner, ("planner", "tools", "searcher", "retriever", "consent", "presenter", "failure")),
    "tools": Node(tools, ("planner", "consent", "retriever")),
    "consent": Node(consent, ("planner", "tools", "presenter"), is_traced=False, rests=True),
    "searcher": Node(searcher, ("planner", "tools", "retriever", "failure")),
    "retriever": Node(retriever, ("executor",), unstyled),
    "decision": Node(decision, ("executor", "presenter"), is_traced=False, rests=True),
    "executor": Node(executor, ("planner", "decision", "critic", "presenter", "failure")),
    "critic": Node(critic, ("executor", "presenter"), unreviewed),
    "presenter": Node(presenter, (), is_traced=False),
    "failure": Node(failure, ("retrial",), is_traced=False),
    "retrial": Node(retrial, _MAY_FAIL, is_traced=False, rests=True),
}


async def step(name: str, state: TurnProgress, deps: Deps, *resumed_with: object) -> Next:
    """Run a node, with a step in the trace, and return its update and the next node, also when it fails."""
    node = NODES[name]
    deps.record.begin(state)
    try:
        led = await (_traced(name, node, state, deps) if node.is_traced else node.work(state, deps, *resumed_with))
    except Exception as error:
        if name == "failure":
            # If `failure` led to itself, the turn would never end.
            raise
        if node.when_it_fails is not None:
            led = await node.when_it_fails(state, deps, error)
        else:
            led = _to_failure(name, error)
            deps.record.forget()
    return Next(led.goto, deps.record.end(led.update))


async def _traced(name: str, node: Node, state: TurnProgress, deps: Deps) -> Next:
    with deps.trace.node(name) as traced:
        led = await node.work(state, deps)
        traced.lead(led)
    return led


def _to_failure(name: str, error: Exception) -> Next:
    """Lead to the failure node with a node's exception; an unexpected one is logged with its traceback."""
    if isinstance(error, AivistaError):
        info = error.info
    else:
        logger.error("the node %s failed", name, exc_info=error)
        info = ErrorInfo(code=ErrorCode.INTERNAL)
    return Next("failure", {"error": info, "failed_node": name})

"""The whole turn on one screen.

    START ─► planner ─┬─ text only ──────────────► presenter ─► END
              ▲ ▲     ├─ get_history_image, … ─► tools ──┐
              │ └─────┼──────────────────────────────────┘
              │       ├─ web_search ─► searcher ─┐
              └───────┼──────────────────────────┘
                      └─ generate_image ─► retriever ─► executor ─► presenter ─► END
    any node that fails for good ─► failure ─► END

The retriever is passed by when no style is named. The critic comes between executor and presenter.
"""

from __future__ import annotations

import logging
from functools import cache
from typing import Literal

from langgraph.errors import NodeError
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Command

from agent.errors import AivistaError, ErrorCode, ErrorInfo
from agent.workflow.deps import Deps
from agent.workflow.executor import executor
from agent.workflow.planner import planner
from agent.workflow.presenter import failure, presenter
from agent.workflow.retriever import retriever
from agent.workflow.searcher import searcher
from agent.workflow.state import TurnProgress
from agent.workflow.tools import tools

logger = logging.getLogger(__name__)

TurnGraph = CompiledStateGraph[TurnProgress, Deps, TurnProgress, TurnProgress]


@cache
def turn_graph() -> TurnGraph:
    """Return the compiled graph; it holds nothing of any turn and serves all of them."""
    graph = StateGraph(TurnProgress, context_schema=Deps)
    graph.add_node(
        "planner", planner, destinations=("tools", "searcher", "retriever", "executor", "presenter", "failure")
    )
    graph.add_node("tools", tools, destinations=("planner", "retriever", "executor"))
    graph.add_node("searcher", searcher, destinations=("planner", "tools", "retriever", "executor", "failure"))
    graph.add_node("retriever", retriever, destinations=("executor",))
    graph.add_node("executor", executor, destinations=("planner", "presenter", "failure"))
    graph.add_node("presenter", presenter)
    graph.add_node("failure", failure)
    graph.set_node_defaults(error_handler=to_failure)
    graph.add_edge(START, "planner")
    graph.add_edge("presenter", END)
    graph.add_edge("failure", END)
    return graph.compile()


def to_failure(state: TurnProgress, error: NodeError) -> Command[Literal["failure"]]:
    """Lead whatever a node raised to the failure node; what we did not foresee is logged with its traceback."""
    if isinstance(error.error, AivistaError):
        info = error.error.info
    else:
        logger.error("the node %s failed", error.node, exc_info=error.error)
        info = ErrorInfo(code=ErrorCode.INTERNAL)
    return Command(goto="failure", update={"error": info, "failed_node": error.node})

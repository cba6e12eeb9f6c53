"""The graph of a turn.

    START ─┬─ nothing to work on ─► reception ─ asks back ──────────────────────────────► presenter ─► END
           ├─ back to an earlier picture ─► undo ─ further request ────► adjuster | planner
           ├─ only light, colour or frame ─► adjuster ──────────────────────────────────► presenter
           └─► planner ─┬─ only text ───────────────────────────────────────────────────► presenter
                ▲ ▲     ├─ read_url, files, … ─► tools ⇄ consent
                │ └─────┼─────────────────────────┘
                │       ├─ web_search ─► searcher ─┐
                └───────┼──────────────────────────┘
                        └─ generate_image ─► retriever ─► executor ⇄ critic ────────────► presenter
                                                             │ ▲
                         if the user must confirm ────────► decision ─ dropped ─────────► presenter
    any node that fails for good ─► failure ─► retrial ─► the failed node

The critic is skipped when no review is due. At `consent`, `decision` and `retrial` the turn pauses, on a checkpoint,
until the user decides. docs/turn-graph.md has a diagram that is generated from the code.
"""

from __future__ import annotations

from functools import cache
from typing import Protocol

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime
from langgraph.types import Checkpointer, Command, interrupt

from agent.workflow.deps import Deps
from agent.workflow.nodes import NODES, Node, step
from agent.workflow.state import TurnProgress

TurnGraph = CompiledStateGraph[TurnProgress, Deps, TurnProgress, TurnProgress]  # pyrefly: ignore[bad-specialization]


def turn_graph(checkpoints: Checkpointer = None) -> TurnGraph:
    """Return the compiled graph; it has no state of a turn and serves all turns."""
    return _compiled().copy({"checkpointer": checkpoints})


@cache
def _compiled() -> TurnGraph:
    graph = StateGraph(TurnProgress, context_schema=Deps)  # pyrefly: ignore[bad-specialization]
    for name, node in NODES.items():
        graph.add_node(name, _command(name, node), destinations=node.leads_to or (END,))
    graph.add_conditional_edges(START, lambda state: state["entry"], list(NODES))
    return graph.compile()


class _Runs(Protocol):
    async def __call__(self, state: TurnProgress, runtime: Runtime[Deps]) -> Command[str]: ...


def _command(name: str, node: Node) -> _Runs:
    """Return the node as a LangGraph node function."""

    async def run(state: TurnProgress, runtime: Runtime[Deps]) -> Command[str]:
        resumed_with = (interrupt(None),) if node.rests else ()
        goto, update = await step(name, state, runtime.context, *resumed_with)
        return Command(goto=goto or END, update=update)

    return run

"""The graph of a turn as a page: its nodes, what each does, and where each leads, read from the compiled graph."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from langgraph.graph import END, START
from langgraph.types import TimeoutPolicy

from agent.workflow import graph
from agent.workflow.graph import turn_graph

PAGE = Path(__file__).parents[2] / "docs" / "turn-graph.md"
COMMAND = "python -m tests.docs"

_PAGE = """# The graph of a turn

Made from the code by `{command}`; a test compares. A dashed arrow is chosen by its node, a solid one always taken. At
a node with double sides the turn rests, by LangGraph's interrupt and on a checkpoint, until the person says something,
also after a restart. A node that raises or takes too long leads to `failure`, where nothing else is said.

```mermaid
{drawing}
```

| node | what it does | at most | when it fails |
| --- | --- | --- | --- |
{rows}
"""
# `end` is a word of Mermaid's own.
_IDS = {START: "beginning", END: "ending"}
_LABELS = {START: "START", END: "END"}


def page() -> str:
    """Return the whole page."""
    return _PAGE.format(command=COMMAND, drawing="\n".join(_drawing()), rows="\n".join(_rows()))


def arrows() -> list[tuple[str, str, bool]]:
    """Return where each node leads, whether or not by choice; LangGraph's own nodes for errors are left out."""
    order = {name: place for place, name in enumerate([START, *_nodes(), END])}
    drawn = turn_graph().get_graph().edges
    shown = [(one.source, one.target, one.conditional) for one in drawn if {one.source, one.target} <= order.keys()]
    return sorted(shown, key=lambda arrow: (order[arrow[0]], order[arrow[1]]))


def rests(name: str) -> bool:
    """Return whether the turn can rest at the node until the person says something."""
    return "interrupt" in _function(name).__code__.co_names


def _nodes() -> dict[str, Any]:
    return {name: node for name, node in turn_graph().builder.nodes.items() if not node.is_error_handler}


def _drawing() -> Iterator[str]:
    yield "flowchart TD"
    yield from (f"    {_shape(name)}" for name in (START, *_nodes(), END))
    for source, target, is_chosen in arrows():
        yield f"    {_IDS.get(source, source)} {'-.->' if is_chosen else '-->'} {_IDS.get(target, target)}"


def _shape(name: str) -> str:
    if name in _IDS:
        return f"{_IDS[name]}([{_LABELS[name]}])"
    return f"{name}[[{name}]]" if rests(name) else f"{name}({name})"


def _rows() -> Iterator[str]:
    for name, node in _nodes().items():
        yield f"| `{name}` | {_first_line(_function(name))} | {_seconds(node.timeout)} | {_otherwise(node)} |"


def _otherwise(node: Any) -> str:
    """Return what happens when the node fails, where that is not the way to `failure`."""
    handlers: dict[str, Any] = dict(turn_graph().builder.nodes)
    handler = handlers.get(node.error_handler_node or "")
    function = (handler.runnable.func or handler.runnable.afunc) if handler else graph.to_failure
    return "" if function is graph.to_failure else _first_line(function)


def _function(name: str) -> Callable[..., Any]:
    """Return the node's function by its name: what the graph holds of most is a wrapper that takes the time."""
    function: Callable[..., Any] = getattr(graph, name)
    return function


def _first_line(function: Callable[..., Any]) -> str:
    first, _, _ = (function.__doc__ or "").strip().partition("\n\n")
    if not first:
        raise ValueError(f"{function.__name__} says nothing about itself")
    return " ".join(first.split())


def _seconds(limit: TimeoutPolicy | None) -> str:
    if limit is None:
        return ""
    seconds = limit.run_timeout or limit.idle_timeout
    sign = "" if limit.run_timeout else " without a sign of life"
    return f"{seconds:g} s{sign}"

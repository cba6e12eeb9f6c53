"""The graph of a turn as a page: its nodes, what each does, and where each leads, read from the table of its nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, get_args, get_type_hints

from langgraph.graph import END, START

from agent.workflow.nodes import NODES
from agent.workflow.reception import route_start

PAGE = Path(__file__).parents[2] / "docs" / "turn-graph.md"

_PAGE = """# The graph of a turn

Made from the code by `{command}`; a test compares. At a node with double sides the turn rests, by LangGraph's interrupt
and on a checkpoint, until the person says something, also after a restart. A node that fails leads to `failure`, where
nothing else is said.

```mermaid
{drawing}
```

| node | what it does | when it fails |
| --- | --- | --- |
{rows}
"""
# `end` is a word of Mermaid's own.
_IDS = {START: "beginning", END: "ending"}
_LABELS = {START: "START", END: "END"}


def page() -> str:
    """Return the whole page."""
    return _PAGE.format(command="python -m tests.docs", drawing="\n".join(_drawing()), rows="\n".join(_rows()))


def arrows() -> list[tuple[str, str]]:
    """Return where each node leads."""
    entered: tuple[str, ...] = get_args(get_type_hints(route_start)["return"])
    led = {START: entered, **{name: node.leads_to or (END,) for name, node in NODES.items()}}
    order = [START, *NODES, END]
    return [(name, target) for name in led for target in sorted(led[name], key=order.index)]


def _drawing() -> Iterator[str]:
    yield "flowchart TD"
    yield from (f"    {_shape(name)}" for name in (START, *NODES, END))
    for source, target in arrows():
        yield f"    {_IDS.get(source, source)} --> {_IDS.get(target, target)}"


def _shape(name: str) -> str:
    if name in _IDS:
        return f"{_IDS[name]}([{_LABELS[name]}])"
    return f"{name}[[{name}]]" if NODES[name].rests else f"{name}({name})"


def _rows() -> Iterator[str]:
    for name, node in NODES.items():
        otherwise = _first_line(node.when_it_fails) if node.when_it_fails else ""
        yield f"| `{name}` | {_first_line(node.work)} | {otherwise} |"


def _first_line(function: Callable[..., Any]) -> str:
    first, _, _ = (function.__doc__ or "").strip().partition("\n\n")
    if not first:
        raise ValueError(f"{function} says nothing about itself")
    return " ".join(first.split())

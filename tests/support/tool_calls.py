"""Calls of tools, and what the model was answered."""

from __future__ import annotations

from pydantic import JsonValue

from agent import PromptMessage, Role, ToolCallPart, ToolResultPart
from tests.adapters.models import Asked


def call(name: str, call_id: str | None = None, /, **arguments: JsonValue) -> ToolCallPart:
    """Return the model's call of a tool."""
    return ToolCallPart(name=name, arguments=arguments, call_id=call_id)


def results(asked: Asked) -> list[ToolResultPart]:
    """Return what the newest message answers the model's calls with."""
    last: PromptMessage = asked.messages[-1]
    assert last.role is Role.TOOL
    return [part for part in last.parts if isinstance(part, ToolResultPart)]

"""What a tool of the planner is: a declaration the model reads, and a function that answers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from pydantic import JsonValue

from agent.conversation import Conversation
from agent.messages import ToolCallPart, ToolResultPart
from agent.providers.base import PictureBytes, ToolDeclaration
from agent.storage.cache import HistoryImageCache


@dataclass(frozen=True)
class ToolContext:
    """What a tool may reach: this conversation alone."""

    conversation: Conversation
    images: PictureBytes
    cache: HistoryImageCache


Arguments = Mapping[str, JsonValue]


@dataclass(frozen=True)
class Tool:
    """A tool and how to run it. `run` raises ToolArgumentError with a sentence that the model can mend."""

    declaration: ToolDeclaration
    run: Callable[[Arguments, ToolContext], Awaitable[ToolResultPart]]

    @property
    def name(self) -> str:
        """The name the model calls."""
        return self.declaration.name


def error_result(call: ToolCallPart, sentence: str) -> ToolResultPart:
    """Return the answer to a call that could not be done, for the model to mend."""
    return ToolResultPart(name=call.name, call_id=call.call_id, content={"error": sentence}, is_error=True)

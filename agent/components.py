"""What the agent can show: pieces of interface as data, rendered by whichever front is attached.

A turn's components, in order, are what the conversation looks like when it is opened again.
"""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from agent.errors import ErrorInfo
from agent.events import ThoughtLog
from agent.messages import Source, Value


class AgentMessage(Value):
    """Words of the agent, as Markdown from a model: never trusted as HTML."""

    type: Literal["agent_message"] = "agent_message"
    text: str


class Steps(Value):
    """What the agent did, one line each, and how long it took in all."""

    type: Literal["steps"] = "steps"
    lines: tuple[ThoughtLog, ...]
    seconds: float


class SmartCanvas(Value):
    """Pictures of one request, by handle, in the order they were asked for."""

    type: Literal["smart_canvas"] = "smart_canvas"
    handles: tuple[str, ...]


class SearchNote(Value):
    """What a search rested on, and the provider's search suggestions exactly as given."""

    type: Literal["search_note"] = "search_note"
    sources: tuple[Source, ...]
    suggestions_html: str = ""


class FailureNote(Value):
    """A failure in its place in the thread; `node` names the step that failed."""

    type: Literal["failure_note"] = "failure_note"
    error: ErrorInfo
    node: str = ""


class StoppedNote(Value):
    """The person pressed Stop; everything above it is kept."""

    type: Literal["stopped_note"] = "stopped_note"


Component: TypeAlias = Annotated[
    AgentMessage | Steps | SmartCanvas | SearchNote | FailureNote | StoppedNote, Field(discriminator="type")
]

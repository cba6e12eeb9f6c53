"""The tools, as they are offered: what each is for, what it takes and answers, and what it may do."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from mcp_types import CallToolResult, Tool, ToolAnnotations

from agent import Value
from webui.mcp_door import answers, arguments, looking, painting
from webui.mcp_door.callers import Call
from webui.mcp_door.schemas import schema_of

# A turn adds to a conversation and takes nothing away. Its agent reads the web where it is let to, and may cost money:
# called twice it paints twice, but for a request_id.
_PAINTS = ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=False, open_world_hint=True)
# What is consented to is another tool's, which may delete.
_CONSENTS = ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=False, open_world_hint=True)
_LOOKS = ToolAnnotations(read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False)
_BEGINS = ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=False, open_world_hint=False)


@dataclass(frozen=True)
class DoorTool:
    """A tool of this door. `is_turn` when it begins or takes up a turn, which counts by itself."""

    name: str
    title: str
    description: str
    arguments: type[Value]
    answer: type[Value]
    annotations: ToolAnnotations
    run: Callable[[Call, Any], Awaitable[CallToolResult]]
    is_turn: bool = False

    def declaration(self, sizes: Sequence[str]) -> Tool:
        """Return the tool as a client reads it; `sizes` are those that the models take."""
        schema = schema_of(self.arguments, "validation")
        size = schema["properties"].get("size")
        if size is not None and sizes:
            size["description"] = f"{_one_of(sizes)}, as the model offers. {size['description']}"
        return Tool(
            name=self.name,
            title=self.title,
            description=self.description,
            input_schema=schema,
            output_schema=schema_of(self.answer, "serialization"),
            annotations=self.annotations,
        )


def _one_of(names: Sequence[str]) -> str:
    *others, last = names
    return f"{', '.join(others)} or {last}" if others else last


_PAINTING = (
    DoorTool(
        "generate",
        "Paint pictures",
        "Have the studio's agent paint pictures by a wish in words. It may answer with a question, or with a plan that "
        "waits for `decide`. Answers with previews; the originals are linked resources.",
        arguments.GenerateArguments,
        answers.TurnAnswer,
        _PAINTS,
        painting.generate,
        is_turn=True,
    ),
    DoorTool(
        "edit",
        "Change a picture",
        "Change a picture as a whole, by words. The picture it is made from stays as it is; the new one gets a handle "
        "of its own. To hold everything outside of an area still, use `masked_edit`.",
        arguments.EditArguments,
        answers.TurnAnswer,
        _PAINTS,
        painting.edit,
        is_turn=True,
    ),
    DoorTool(
        "masked_edit",
        "Change a part of a picture",
        "Change only a part of a picture: the white of a mask, or a box in percent. Every pixel outside of it stays "
        "exactly what it was; how many were checked is in the answer.",
        arguments.MaskedEditArguments,
        answers.TurnAnswer,
        _PAINTS,
        painting.masked_edit,
        is_turn=True,
    ),
    DoorTool(
        "describe",
        "Look at a picture",
        "Have the studio's text model look at a picture and describe it, or answer a question about it. It costs one "
        "or two calls of the text model, and is kept in the conversation.",
        arguments.DescribeArguments,
        answers.TurnAnswer,
        _PAINTS,
        painting.describe,
        is_turn=True,
    ),
    DoorTool(
        "decide",
        "Decide about a plan",
        "Run or drop the plan that a turn waits with, with changes perhaps; or let the tool calls run that it asks "
        "about, or not. Ask the person first: this is their consent, to what is paid and to what a tool may do.",
        arguments.DecideArguments,
        answers.TurnAnswer,
        _CONSENTS,
        painting.decide,
        is_turn=True,
    ),
)
_LOOKING = (
    DoorTool(
        "list_pictures",
        "List pictures",
        "List the newest pictures of a conversation: handles, sizes, receipts, links to the originals.",
        arguments.ListPicturesArguments,
        answers.PictureList,
        _LOOKS,
        looking.list_pictures,
    ),
    DoorTool(
        "get_picture",
        "Get a picture",
        "Get a preview of a picture, its receipt (asked against got), and the link to the original.",
        arguments.GetPictureArguments,
        answers.OnePicture,
        _LOOKS,
        looking.get_picture,
    ),
    DoorTool(
        "list_conversations",
        "List conversations",
        "List the conversations of the studio, the newest first, or those that hold certain words.",
        arguments.ListConversationsArguments,
        answers.ConversationList,
        _LOOKS,
        looking.list_conversations,
    ),
    DoorTool(
        "new_conversation",
        "Begin a conversation",
        "Begin an empty conversation and get its id. `generate` begins one by itself where none is named.",
        arguments.NoArguments,
        answers.NewConversation,
        _BEGINS,
        looking.new_conversation,
    ),
)
TOOLS = {tool.name: tool for tool in (*_PAINTING, *_LOOKING)}

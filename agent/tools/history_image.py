"""`get_history_image`: a look at a picture that stands as a placeholder in the history."""

from __future__ import annotations

from agent.errors import ErrorCode, ToolArgumentError
from agent.history_images import fetch_history_image
from agent.messages import ToolResultPart
from agent.providers.base import ToolDeclaration
from agent.tools.base import Arguments, Tool, ToolContext

_DECLARATION = ToolDeclaration(
    name="get_history_image",
    description=(
        "Look at an earlier picture of this conversation that stands as [Picture:history_<md5>]. "
        "Call it only when you must see the picture to answer or to plan."
    ),
    parameters={
        "type": "object",
        "properties": {
            "image_id": {"type": "string", "description": "The md5 of the placeholder, with or without history_."}
        },
        "required": ["image_id"],
    },
)


async def _run(arguments: Arguments, context: ToolContext) -> ToolResultPart:
    image_id = arguments.get("image_id")
    if not isinstance(image_id, str):
        raise ToolArgumentError(
            ErrorCode.BAD_TOOL_ARGUMENTS, name=_DECLARATION.name, problem="image_id must be the md5 of a placeholder"
        )
    images = context.images
    return await fetch_history_image(image_id, context.conversation, context.cache, images.read, images.write)


GET_HISTORY_IMAGE = Tool(_DECLARATION, _run)

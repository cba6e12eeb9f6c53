"""`go_back_to`: another picture becomes the one that the person's next words change."""

from __future__ import annotations

from typing import Annotated

from agent.errors import ErrorCode, RequestRefused, ToolArgumentError
from agent.tools.base import ToolAnswer, ToolContext, tool


@tool()
async def go_back_to(
    context: ToolContext, handle: Annotated[str, "The picture's handle, such as #3 or #3b."]
) -> ToolAnswer:
    """Show an earlier picture of this conversation to the person again, and make it the one that their next words
    change. It costs nothing and paints nothing. Use it when they want an earlier picture back, or to go on with it, and
    ask for no change yet; to change it at once, name it first in the handles of generate_image instead."""
    try:
        picture = context.conversation.picture(handle)
    except RequestRefused as error:
        raise ToolArgumentError(ErrorCode.BAD_TOOL_ARGUMENTS, name="go_back_to", problem=error.info.message) from None
    return ToolAnswer({"handle": picture.handle, "shown": True}, target=picture.handle)

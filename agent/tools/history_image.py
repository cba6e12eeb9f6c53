"""`get_history_image`: a look at a picture that stands as a placeholder in the history."""

from __future__ import annotations

from typing import Annotated

from agent.history_images import fetch_history_image
from agent.tools.base import ToolAnswer, ToolContext, foreign_picture, tool


@tool()
async def get_history_image(
    context: ToolContext, image_id: Annotated[str, "The md5 of the placeholder, with or without history_."]
) -> ToolAnswer:
    """Look at an earlier picture of this conversation that stands as [Picture:history_<md5>]. Call it only when you
    must see the picture to answer or to plan."""
    images = context.images
    found = await fetch_history_image(image_id, context.conversation, context.cache, images.read, images.write)
    source = next((one for image in found.images if (one := foreign_picture(context, image))), "")
    return ToolAnswer(found.content, found.images, source=source)

"""`view_image`: a look at a picture by its handle, whole or at a part of it."""

from __future__ import annotations

import asyncio
import io
from dataclasses import replace
from typing import Annotated

from PIL import Image
from pydantic import Field, JsonValue

from agent.errors import ErrorCode, RequestRefused, ToolArgumentError
from agent.messages import ImagePart
from agent.tools.base import ToolAnswer, ToolContext, foreign_picture, tool

LONGEST_EDGE_PX = 1536
_SMALLEST_PX = 16

Percent = Annotated[float, Field(ge=0, le=100)]


@tool()
async def view_image(
    context: ToolContext,
    handle: Annotated[str, "The picture's handle, such as #3 or #3b."],
    left: Annotated[Percent, "Where the part begins, in percent of the width from the left edge."] = 0,
    top: Annotated[Percent, "Where the part begins, in percent of the height from the top edge."] = 0,
    width: Annotated[Percent, "How wide the part is, in percent of the picture's width."] = 100,
    height: Annotated[Percent, "How high the part is, in percent of the picture's height."] = 100,
) -> ToolAnswer:
    """Look closely at a picture of this conversation, or at a part of it, enlarged. Use it for details: small
    lettering, a corner, a face. The top right quarter is left 50, top 0, width 50, height 50."""
    image = _named(context, handle)
    data = await context.originals.read(image)
    shown, size, box = await asyncio.to_thread(_cut, data, (left, top, width, height))
    part = await context.images.write(shown, "image/png", image.origin)
    part = part.model_copy(update={"width": size[0], "height": size[1]})
    seen: dict[str, JsonValue] = {"handle": image.handle, "width": image.width, "height": image.height}
    return ToolAnswer({**seen, "shown_px": list(box)}, (part,), source=foreign_picture(context, image))


def _named(context: ToolContext, handle: str) -> ImagePart:
    """Return the picture; this turn's own uploads are not in the conversation yet."""
    wanted = "#" + handle.strip().lstrip("#").lower()
    for upload in context.uploads:
        if upload.handle == wanted:
            return upload
    try:
        picture = context.conversation.picture(handle)
    except RequestRefused as error:
        raise ToolArgumentError(ErrorCode.BAD_TOOL_ARGUMENTS, name="view_image", problem=error.info.message) from None
    return picture.image.model_copy(update={"handle": picture.handle})


def _cut(
    data: bytes, part: tuple[float, float, float, float]
) -> tuple[bytes, tuple[int, int], tuple[int, int, int, int]]:
    """Return the part as PNG, its size, and where it stands in the picture: left, top, right and bottom in pixels.

    A small part is enlarged, a large one made smaller, to `LONGEST_EDGE_PX`.
    """
    from agent.pixels import image_of, in_srgb, open_picture

    picture = open_picture(data)
    left, top, width, height = part
    first_column, last_column = _span(left, width, picture.width)
    first_row, last_row = _span(top, height, picture.height)
    place = (first_column, first_row, last_column, last_row)
    seen = replace(picture, pixels=picture.pixels[first_row:last_row, first_column:last_column])
    cut = in_srgb(image_of(seen), picture.profile)
    scale = LONGEST_EDGE_PX / max(cut.size)
    if scale < 1 or cut.size != (picture.width, picture.height):
        size = (max(1, round(cut.width * scale)), max(1, round(cut.height * scale)))
        cut = cut.resize(size, Image.Resampling.LANCZOS)
    buffer = io.BytesIO()
    cut.save(buffer, "PNG")
    return buffer.getvalue(), cut.size, place


def _span(start: float, length: float, pixels: int) -> tuple[int, int]:
    """Return where a part of a side begins and ends, in pixels; it is never thinner than a few of them."""
    smallest = min(pixels, _SMALLEST_PX)
    begins = min(round(start / 100 * pixels), pixels - smallest)
    ends = min(max(round((start + length) / 100 * pixels), begins + smallest), pixels)
    return begins, ends

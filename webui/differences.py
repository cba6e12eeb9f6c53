"""Where two pictures differ, as a picture and in numbers: `/aivista/difference/{conversation}/{first}/{second}`."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from agent import Studio
from webui.http.sessions import Sessions
from webui.picture_work import HEADERS, Workbench, refusal

if TYPE_CHECKING:
    import numpy as np
    from PIL import Image

NUMBERS_HEADER = "Aivista-Difference"
DEFAULT_EDGE_PX = 1024
MAX_EDGE_PX = 2048
MIN_EDGE_PX = 64
CLEAR_LEVELS = 16
# Below this the whole range of colours is not used, so that the noise of a codec does not look like a new picture.
_FULL_LEVELS = 64
_GAMMA = 0.6
_HOT = (255.0, 196.0, 64.0)
_OUTSIDE = 24
_STRIP_ROWS = 256
_MIME_TYPE = "image/webp"


@dataclass(frozen=True)
class Difference:
    """What differs between two pictures, and a WebP that shows where.

    `changed` and `clear` are shares (0 to 1) of the pixels compared: any difference at all, and one of at least
    `CLEAR_LEVELS` of 255 in some channel. `largest` is the largest one, 0 to 255. Sizes are (width, height) in pixels;
    `compared` is the size at which both were laid over each other.
    """

    data: bytes
    changed: float
    clear: float
    largest: int
    first: tuple[int, int]
    second: tuple[int, int]
    compared: tuple[int, int]

    @property
    def numbers(self) -> dict[str, object]:
        """Everything but the picture, for the page's script."""
        return {
            "changed": self.changed,
            "clear": self.clear,
            "largest": self.largest,
            "first": self.first,
            "second": self.second,
            "compared": self.compared,
        }


@dataclass(frozen=True)
class _Overlay:
    """Two pictures of the same size, and the box of the first one's frame (left, top, width, height) they cover."""

    first: Image.Image
    second: Image.Image
    box: tuple[int, int, int, int]


def difference_routes(studio: Callable[[], Studio], sessions: Sessions) -> list[Route]:
    """Return the route; both pictures are handles without `#`, `?edge=` is the longer edge of the answer in pixels.

    The answer is a WebP, and its header `Aivista-Difference` holds the numbers as JSON. 400 for another edge than 64
    to 2048, and what `Workbench.answer` says.
    """
    # A picture of 64 megapixels takes 200 MB while it is decoded, and here are two.
    bench = Workbench(places=1)

    async def route(request: Request) -> Response:
        edge_px = _edge(request.query_params.get("edge", str(DEFAULT_EDGE_PX)))
        if edge_px is None:
            return refusal(sessions.visitor(request).words("route.unreadable"), 400)
        where = request.path_params

        async def work(owner: str) -> Response:
            source = studio()
            first = await source.picture(where["conversation"], where["first"], owner)
            second = await source.picture(where["conversation"], where["second"], owner)
            found = await asyncio.to_thread(difference, first.data, second.data, edge_px)
            headers = {**HEADERS, NUMBERS_HEADER: json.dumps(found.numbers)}
            return Response(found.data, media_type=_MIME_TYPE, headers=headers)

        return await bench.answer(request, sessions, work)

    return [Route("/aivista/difference/{conversation}/{first}/{second}", route, methods=["GET"])]


def _edge(text: str) -> int | None:
    is_number = text.isascii() and text.isdigit() and len(text) <= 4
    return int(text) if is_number and MIN_EDGE_PX <= int(text) <= MAX_EDGE_PX else None


def difference(first: bytes, second: bytes, edge_px: int) -> Difference:
    """Return where the second picture differs from the first. Busy: run it in a thread.

    Pictures of one size are compared pixel by pixel. Of another size, the second is fitted into the middle of the
    first one's frame and both are compared at the coarser of the two; what lies beside it is not counted. What cannot
    be seen, because it is clear in both, is the same.

    Raises RequestRefused when either is no picture, damaged, or more than 64 megapixels.
    """
    one, two = _opened(first), _opened(second)
    overlay = _overlaid(one, two)
    levels = _levels(overlay.first, overlay.second)
    largest = int(levels.max())
    return Difference(
        data=_shown(one, levels, overlay.box, edge_px),
        changed=float((levels > 0).mean()),
        clear=float((levels >= CLEAR_LEVELS).mean()),
        largest=largest,
        first=one.size,
        second=two.size,
        compared=overlay.first.size,
    )


def _opened(data: bytes) -> Image.Image:
    from agent import image_of, open_picture

    image = image_of(open_picture(data))
    return image.convert("RGBA" if image.mode in ("LA", "RGBA") else "RGB")


def _overlaid(first: Image.Image, second: Image.Image) -> _Overlay:
    from PIL import Image

    scale = min(first.width / second.width, first.height / second.height)
    width = min(first.width, max(1, round(second.width * scale)))
    height = min(first.height, max(1, round(second.height * scale)))
    left, top = (first.width - width) // 2, (first.height - height) // 2
    part = first.crop((left, top, left + width, top + height))
    if scale > 1:
        part = part.resize(second.size, Image.Resampling.LANCZOS, reducing_gap=3.0)
    elif second.size != part.size:
        second = second.resize(part.size, Image.Resampling.LANCZOS, reducing_gap=3.0)
    return _Overlay(part, second, (left, top, width, height))


def _levels(first: Image.Image, second: Image.Image) -> np.ndarray[tuple[int, int], np.dtype[np.uint8]]:
    """Return the largest difference of any channel, 0 to 255, for each pixel: rows, columns."""
    import numpy as np

    # Premultiplied, so that the colour of a clear pixel, which nobody sees, does not count.
    mode = "RGBa" if "RGBA" in (first.mode, second.mode) else "RGB"
    found = np.empty((first.height, first.width), np.uint8)
    for top in range(0, first.height, _STRIP_ROWS):
        box = (0, top, first.width, min(first.height, top + _STRIP_ROWS))
        one, two = (np.asarray(_in_mode(image.crop(box), mode)) for image in (first, second))
        found[box[1] : box[3]] = (np.maximum(one, two) - np.minimum(one, two)).max(axis=2)
    return found


def _in_mode(image: Image.Image, mode: str) -> Image.Image:
    return image.convert("RGBA").convert(mode) if mode == "RGBa" else image


def _shown(
    first: Image.Image,
    levels: np.ndarray[tuple[int, int], np.dtype[np.uint8]],
    box: tuple[int, int, int, int],
    edge_px: int,
) -> bytes:
    """Return the first picture as a faint grey ghost with the differences glowing on it."""
    import numpy as np
    from PIL import Image

    scale = min(1.0, edge_px / max(first.size))
    size = (max(1, round(first.width * scale)), max(1, round(first.height * scale)))
    left, width = _span(box[0], box[2], scale, size[0])
    top, height = _span(box[1], box[3], scale, size[1])
    ghost = 40 + np.asarray(_on_grey(first.resize(size, Image.Resampling.BILINEAR, reducing_gap=2.0))) * 0.22
    canvas = np.full((size[1], size[0], 3), _OUTSIDE, np.float32)
    glow = np.power(np.minimum(_fitted(levels, width, height) / max(int(levels.max()), _FULL_LEVELS), 1.0), _GAMMA)
    part = ghost[top : top + height, left : left + width, None] * (1 - glow[:, :, None])
    canvas[top : top + height, left : left + width] = part + glow[:, :, None] * np.array(_HOT, np.float32)
    sink = io.BytesIO()
    Image.fromarray(canvas.round().astype(np.uint8)).save(sink, "WEBP", quality=88, method=2)
    return sink.getvalue()


def _span(start: int, length: int, scale: float, edge: int) -> tuple[int, int]:
    """Return where a length begins and how long it is at another scale, at least a pixel and inside of the edge."""
    first = min(round(start * scale), edge - 1)
    return first, max(1, min(round(length * scale), edge - first))


def _on_grey(image: Image.Image) -> Image.Image:
    from PIL import Image

    if image.mode == "RGBA":
        image = Image.alpha_composite(Image.new("RGBA", image.size, (128, 128, 128, 255)), image)
    return image.convert("L")


def _fitted(
    levels: np.ndarray[tuple[int, int], np.dtype[np.uint8]], width: int, height: int
) -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
    """Return the levels at another size. Made small, each cell keeps its largest, so that one pixel stays in sight."""
    import numpy as np

    rows, columns = levels.shape
    at_row, at_column = np.arange(height) * rows // height, np.arange(width) * columns // width
    levels = np.maximum.reduceat(levels, at_row, axis=0) if height <= rows else levels[at_row]
    levels = np.maximum.reduceat(levels, at_column, axis=1) if width <= columns else levels[:, at_column]
    return levels.astype(np.float32)

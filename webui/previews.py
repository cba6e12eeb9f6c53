"""A picture as the sliders of a panel would make it, small: `/aivista/preview/{conversation}/{handle}`."""

from __future__ import annotations

import asyncio
import io
import re
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, get_args

from pydantic import ValidationError
from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from agent import Adjustment, PanelSetting, Studio
from webui.http.sessions import Sessions
from webui.picture_work import HEADERS, Workbench, refusal

if TYPE_CHECKING:
    pass

EDGE_PX = 896
SETTINGS: tuple[str, ...] = get_args(PanelSetting)
_KEPT_BYTES = 32 << 20
_AMOUNT = re.compile(r"-?[0-9]{1,3}")


class SmallCopies:
    """Small copies of the pictures that sliders were last moved over, by digest and frame; the oldest leave first.

    Decoding a large picture takes longer than adjusting a small one, and a slider asks for the same one many times.
    """

    def __init__(self, most_bytes: int = _KEPT_BYTES) -> None:
        self._most_bytes = most_bytes
        self._kept: OrderedDict[str, bytes] = OrderedDict()

    def find(self, digest: str) -> bytes | None:
        """Return the copy, if it is still kept."""
        if digest in self._kept:
            self._kept.move_to_end(digest)
        return self._kept.get(digest)

    def keep(self, digest: str, data: bytes) -> None:
        """Keep a copy; one that is larger than all the room is not."""
        self._kept[digest] = data
        while sum(map(len, self._kept.values())) > self._most_bytes:
            self._kept.popitem(last=False)


def preview_routes(studio: Callable[[], Studio], sessions: Sessions) -> list[Route]:
    """Return the route. The query holds amounts by name, each once and from -100 to 100; one left out is 0.

    400 for any other query, and what `Workbench.answer` says.
    """
    bench, copies = Workbench(places=2), SmallCopies()

    async def route(request: Request) -> Response:
        adjustment = read_query(request.query_params)
        if adjustment is None:
            return refusal(sessions.visitor(request).words("route.unreadable"), 400)

        async def work(owner: str) -> Response:
            where = request.path_params
            small, before = await _small(studio(), copies, where["conversation"], where["handle"], owner)
            data, mime_type = await asyncio.to_thread(adjusted, small, before.combine(adjustment))
            return Response(data, media_type=mime_type, headers=HEADERS)

        return await bench.answer(request, sessions, work)

    return [Route("/aivista/preview/{conversation}/{handle}", route, methods=["GET"])]


def read_query(query: QueryParams) -> Adjustment | None:
    """Return what the query asks for, or None when it holds anything else."""
    asked = query.multi_items()
    names = [name for name, _ in asked]
    if len(set(names)) < len(names) or not set(names) <= set(SETTINGS):
        return None
    if not all(_AMOUNT.fullmatch(value) for _, value in asked):
        return None
    try:
        return Adjustment.model_validate({name: int(value) for name, value in asked})
    except ValidationError:
        return None


async def _small(
    studio: Studio, copies: SmallCopies, conversation_id: str, handle: str, owner: str
) -> tuple[bytes, Adjustment]:
    """Return a small copy in the picture's frame, and the light and colour that it lacks of it."""
    from agent import preview_adjustment

    conversation = await studio.conversations.get(conversation_id, owner)
    picture = conversation.picture(handle)
    original, before = conversation.adjusted_from(picture.handle) or (picture, Adjustment())
    frame = before.model_copy(update=dict.fromkeys(SETTINGS, 0))
    key = f"{original.image.digest} {frame.model_dump_json()}"
    found = copies.find(key)
    if found is None:
        stored = await studio.picture(conversation_id, original.handle, owner)
        found = (await asyncio.to_thread(preview_adjustment, stored.data, frame, EDGE_PX)).data
        copies.keep(key, found)
    return found, Adjustment.model_validate(before.model_dump(include=set(SETTINGS)))


def adjusted(small: bytes, adjustment: Adjustment) -> tuple[bytes, str]:
    """Return the small picture adjusted, and its type: JPEG, or WebP where something can be seen through."""
    from PIL import Image

    from agent import preview_adjustment

    made = preview_adjustment(small, adjustment, EDGE_PX)
    sink = io.BytesIO()
    with Image.open(io.BytesIO(made.data)) as image:
        kept = {"icc_profile": image.info.get("icc_profile")}
        if image.mode in ("LA", "RGBA"):
            image.save(sink, "WEBP", quality=90, method=2, **kept)
            return sink.getvalue(), "image/webp"
        image.save(sink, "JPEG", quality=90, subsampling=0, **kept)
    return sink.getvalue(), "image/jpeg"

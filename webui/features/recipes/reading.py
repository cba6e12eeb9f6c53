"""What a file says of how it was made: asked by the page for a file that somebody is about to send.

Whatever a file says is somebody's data. The page gets it as a value of known fields, sends it back with a click, and it
is read here with the same care both times.
"""

from __future__ import annotations

import asyncio

from pydantic import ValidationError
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from agent import (
    ForeignRecipe,
    FoundRecipe,
    Recipe,
    RecipeSettings,
    RefusedRecipe,
    TurnSettings,
    Value,
    read_recipe,
    upload_limit_megabytes,
)
from webui.features.composer import AUTO, Chosen
from webui.http.sessions import COOKIE, Sessions, Visitor
from webui.picture_work import Workbench, refusal
from webui.whole_json import whole_json

MAX_FOUND_CHARACTERS = 2 << 20
_PRIVATE = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}


class Told(Value):
    """What was found in a file, of one kind."""

    recipe: Recipe | None = None
    foreign: ForeignRecipe | None = None
    refused: RefusedRecipe | None = None

    @property
    def found(self) -> FoundRecipe:
        """What it is."""
        return self.recipe or self.foreign or self.refused


def told(found: FoundRecipe) -> Told | None:
    """Return what was found as the page keeps it; None for nothing."""
    match found:
        case Recipe():
            return Told(recipe=found)
        case ForeignRecipe():
            return Told(foreign=found)
        case RefusedRecipe():
            return Told(refused=found)
        case None:
            return None


def read_told(text: str) -> FoundRecipe:
    """Return what the page sent back, or None when it sent something else."""
    if not text or len(text) > MAX_FOUND_CHARACTERS:
        return None
    try:
        return Told.model_validate_json(whole_json(text)).found
    except ValidationError:
        return None


def chosen_as(settings: TurnSettings | RecipeSettings | None, recipe: Recipe | None, now: Chosen) -> Chosen:
    """Return the chips as they were for the turn, the others as they are.

    Without settings on record what was asked for stands in. Values that no model in use obeys are left out when the
    chips are drawn.
    """
    if settings is None:
        ratio = recipe.asked_aspect_ratio if recipe else None
        size = recipe.asked_resolution if recipe else None
        return now.model_copy(update={"aspect_ratio": ratio or AUTO, "resolution": size or AUTO})
    count = settings.number_of_images
    told: dict[str, object] = {
        "text_model": settings.text_model,
        "image_model": settings.image_model,
        "allow_search": settings.allow_search,
        "search_policy": str(settings.search_policy),
        "aspect_ratio": settings.aspect_ratio or AUTO,
        "resolution": settings.resolution or AUTO,
        "number_of_images": AUTO if count is None else str(count),
    }
    told["reference_mode"] = settings.reference_mode or AUTO
    if isinstance(settings, TurnSettings):
        told |= {"review": settings.review, "confirm": settings.confirm}
        told |= {
            "negative_prompt": settings.negative_prompt or "",
            "reference_count": str(settings.reference_count or AUTO),
        }
    return now.model_copy(update=told)


def recipe_routes(sessions: Sessions) -> list[Route]:
    """Return the route `POST /aivista/recipe`: the bytes of a file in, JSON of what it says out.

    204 when it says nothing, 413 for more than may be sent as a picture, and what `Workbench.answer` says. Nothing is
    kept.
    """
    bench = Workbench(places=2)

    async def route(request: Request) -> Response:
        if sessions.token_of(request.cookies.get(COOKIE)) is None:
            return refusal(sessions.visitor(request).words("route.not_yours"), 403)
        # Before anybody looks whether the browser is still there: that look would swallow the first part of it.
        data = await _body(request, upload_limit_megabytes(sessions.visitor(request).owner))
        if data is None:
            return refusal(_too_large(sessions.visitor(request)), 413)

        async def work(_owner: str) -> Response:
            found = told(await asyncio.to_thread(read_recipe, data))
            if found is None:
                return Response(status_code=204, headers=_PRIVATE)
            return Response(found.model_dump_json(exclude_none=True), media_type="application/json", headers=_PRIVATE)

        return await bench.answer(request, sessions, work)

    return [Route("/aivista/recipe", route, methods=["POST"])]


def _too_large(visitor: Visitor) -> str:
    return visitor.words("builtin.too_large", limit=upload_limit_megabytes(visitor.owner))


async def _body(request: Request, limit_megabytes: int) -> bytes | None:
    """Return the bytes that were sent, or None as soon as they are too many."""
    data = bytearray()
    async for part in request.stream():
        data += part
        if len(data) > limit_megabytes << 20:
            return None
    return bytes(data)

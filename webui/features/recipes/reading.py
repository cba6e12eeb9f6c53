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
from webui.http.sessions import Sessions, Visitor
from webui.http.visitor_routes import NO_STORE, Workbench, as_text, body_of, visitor_route
from webui.whole_json import whole_json

MAX_FOUND_CHARACTERS = 2 << 20


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
    return now.model_copy(update=Chosen.of(settings).model_dump(include=set(type(settings).model_fields)))


def recipe_routes(sessions: Sessions) -> list[Route]:
    """Return the route `POST /aivista/recipe`: the bytes of a file in, JSON of what it says out.

    204 when it says nothing, 413 for more than may be sent as a picture, 429 for one who asks too much at once. Nothing
    is kept.
    """
    bench = Workbench(places=2)

    async def read(request: Request, visitor: Visitor) -> Response:
        limit = upload_limit_megabytes(visitor.owner)
        # Before anybody looks whether the browser is still there: that look would swallow the first part of it.
        data = await body_of(request, limit << 20)
        if data is None:
            return as_text(visitor.words("builtin.too_large", limit=limit), 413)

        async def work() -> Response:
            found = told(await asyncio.to_thread(read_recipe, data))
            if found is None:
                return Response(status_code=204, headers=NO_STORE)
            return Response(found.model_dump_json(exclude_none=True), media_type="application/json", headers=NO_STORE)

        return await bench.run(request, visitor, work)

    return [visitor_route("/aivista/recipe", sessions, read, method="POST")]

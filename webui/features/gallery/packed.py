"""Packed files that are not fetched yet: each is given once, at an address that nobody guesses."""

from __future__ import annotations

import secrets
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Route

from webui.http.sessions import Visitor
from webui.http.visitor_routes import NO_STORE, as_text, visitor_route
from webui.screen import Screen

_READY_S = 600.0
_MOST_READY = 3


class _Ready(NamedTuple):
    owner: str
    path: Path
    pictures: int
    until_s: float


_ready: dict[str, _Ready] = {}


def kept(owner: str, path: Path, count: int) -> str:
    """Return the address where the owner fetches a file of so many pictures. It goes when nobody comes for it, or when
    its owner has others packed instead."""
    now_s, theirs = time.monotonic(), [name for name, one in _ready.items() if one.owner == owner]
    old = [name for name, one in _ready.items() if one.until_s < now_s]
    for gone in {*old, *theirs[: 1 - _MOST_READY]}:
        _ready.pop(gone).path.unlink(missing_ok=True)
    name = secrets.token_urlsafe(16)
    _ready[name] = _Ready(owner, path, count, now_s + _READY_S)
    return f"aivista/gallery/zip/{name}"


def packed_routes(screen: Screen) -> Sequence[Route]:
    """Return the route of packed files; 404 for what is not there."""

    async def fetch(request: Request, visitor: Visitor) -> Response:
        name = request.path_params["name"]
        found = _ready.get(name)
        if found is None or found.owner != visitor.owner:
            return as_text(visitor.words("route.no_file"), 404)
        del _ready[name]
        return FileResponse(
            found.path,
            media_type="application/zip",
            filename=f"aivista-pictures-{found.pictures}.zip",
            headers=NO_STORE,
            background=BackgroundTask(found.path.unlink, missing_ok=True),
        )

    return [visitor_route("/aivista/gallery/zip/{name}", screen.sessions, fetch)]

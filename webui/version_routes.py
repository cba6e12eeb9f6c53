"""The address where an open page asks whether its conversation has changed without it: in another tab or process, or by
a picture that came after Stop."""

from __future__ import annotations

from collections.abc import Callable

from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from agent import AivistaError, RequestRefused, Studio
from webui.http.sessions import COOKIE, Sessions

_HEADERS = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Resource-Policy": "same-origin",
}


def version_routes(studio: Callable[[], Studio], sessions: Sessions) -> list[Route]:
    """Return the route `/aivista/version/{conversation}`: another number after each change.

    Without our cookie it answers 403, for what the owner does not have 404, and 500 when the records fail; always
    with one sentence under `error`.
    """

    async def answer(request: Request) -> JSONResponse:
        visitor = sessions.visitor(request)
        if sessions.token_of(request.cookies.get(COOKIE)) is None:
            return _json({"error": visitor.words("route.not_yours")}, 403)
        try:
            # One that is open stands in memory: to look whether it still holds takes microseconds.
            kept = await studio().conversations.get(request.path_params["conversation"], visitor.owner)
        except AivistaError as error:
            status = 404 if isinstance(error, RequestRefused) else 500
            return _json({"error": visitor.words.error(error.info)}, status)
        return _json({"version": kept.version})

    return [Route("/aivista/version/{conversation}", answer, methods=["GET"])]


def _json(content: dict[str, str] | dict[str, int], status_code: int = 200) -> JSONResponse:
    return JSONResponse(content, status_code, _HEADERS)

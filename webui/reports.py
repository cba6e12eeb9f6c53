"""The debug report of a turn as a file, for the conversation's owner only."""

from __future__ import annotations

import re
from collections.abc import Callable

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from agent import AivistaError, RequestRefused, Studio, report_text
from webui.http.sessions import Sessions

_HEADERS = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; sandbox",
    "Cross-Origin-Resource-Policy": "same-origin",
}


def report_routes(studio: Callable[[], Studio], sessions: Sessions) -> list[Route]:
    """Return the route `/aivista/report/{conversation}/{turn}.json`.

    Without our cookie it answers 403, for a turn its owner does not have 404, and 500 when the records cannot be read.
    """

    async def report(request: Request) -> Response:
        visitor = sessions.visitor(request)
        if visitor.token is None:
            return _refusal(visitor.words("route.not_yours"), 403)
        conversation_id, turn_id = request.path_params["conversation"], request.path_params["turn"]
        try:
            place, key = (conversation_id, turn_id), sessions.key(visitor)
            found = await studio().turns.report(*place, owner=visitor.owner, key=key)
        except RequestRefused:
            return _refusal(visitor.words("route.no_report"), 404)
        except AivistaError as error:
            return _refusal(visitor.words.error(error.info), 500)
        name = re.sub(r"[^\w-]", "", turn_id, flags=re.ASCII)[:64]
        headers = {**_HEADERS, "Content-Disposition": f'attachment; filename="aivista-report-{name}.json"'}
        return Response(report_text(found), media_type="application/json", headers=headers)

    return [Route("/aivista/report/{conversation}/{turn}.json", report, methods=["GET"])]


def _refusal(sentence: str, status_code: int) -> Response:
    return PlainTextResponse(sentence, status_code=status_code, headers=_HEADERS)

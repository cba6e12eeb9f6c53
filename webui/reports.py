"""The debug report of a turn as a file, for the conversation's owner only."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Protocol

from pydantic import JsonValue, SecretStr
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from agent import AivistaError, RequestRefused, report_text
from webui.sessions import Sessions

_HEADERS = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; sandbox",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class ReportSource(Protocol):
    """Who writes reports: the studio."""

    async def report(
        self, conversation_id: str, turn_id: str, *, owner: str, key: SecretStr | None
    ) -> dict[str, JsonValue]:
        """Return the report of a turn, `key` and the operator's hidden in it. Raises RequestRefused when the owner has
        no such turn."""
        ...


def report_routes(studio: Callable[[], ReportSource], sessions: Sessions) -> list[Route]:
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
            found = await studio().report(*place, owner=visitor.owner, key=key)
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

"""The trace's own addresses: turns a page at a time, what an opened one holds, and all of it as JSON."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from agent import (
    AivistaError,
    Conversation,
    ErrorCode,
    RequestRefused,
    Studio,
    TraceStep,
    TurnState,
    report_text,
)
from webui.cards import View
from webui.panels.trace import TracedTurn, inside_html, turn_html
from webui.sessions import COOKIE, Sessions, Visitor
from webui.trace_details import details_html

PAGE_TURNS = 20
_HEADERS = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; sandbox",
    "Cross-Origin-Resource-Policy": "same-origin",
}


@dataclass(frozen=True)
class _Pages:
    studio: Callable[[], Studio]

    async def page(self, visitor: Visitor, request: Request) -> Response:
        """Answer with the newest turns of the shown branch, with those before one (`before`), or from one on (`since`).

        The newest one is open; so are all from one on, which was open before them.
        """
        conversation = await self._conversation(visitor, request)
        ids = [turn.id for turn in conversation.turns]
        since = request.query_params.get("since", "")
        first, end = _window(ids, request.query_params.get("before", ""), since)
        traced = await self._traced(conversation, first, end)
        turns = [
            {
                "id": one.turn.id,
                "is_running": one.turn.state is TurnState.RUNNING,
                "html": turn_html(visitor.words, conversation.id, one, is_open=since in ids or one.place == len(ids)),
            }
            for one in traced
        ]
        return _json({"turns": turns, "has_more": first > 0})

    async def turn(self, visitor: Visitor, request: Request) -> Response:
        """Answer with what an opened turn shows."""
        conversation = await self._conversation(visitor, request)
        place = _place(conversation, request.path_params["turn"])
        [traced] = await self._traced(conversation, place, place + 1)
        return _json({"html": inside_html(visitor.words, conversation.id, traced)})

    async def step(self, visitor: Visitor, request: Request) -> Response:
        """Answer with all of a step."""
        conversation = await self._conversation(visitor, request)
        step = await self._step(conversation, request)
        handles = {picture.image.digest: picture.handle for picture in conversation.all_pictures}
        return _json({"html": details_html(View(visitor.words, conversation.id), step, handles)})

    async def step_file(self, visitor: Visitor, request: Request) -> Response:
        """Answer with a step as JSON."""
        conversation = await self._conversation(visitor, request)
        return await _file([await self._step(conversation, request)], conversation.id, "step")

    async def turn_file(self, visitor: Visitor, request: Request) -> Response:
        """Answer with the steps of a turn of any branch as JSON."""
        conversation = await self._conversation(visitor, request)
        turn_id = request.path_params["turn"]
        steps = await self.studio().traces.steps(conversation.id, [turn_id])
        if not steps:
            raise RequestRefused(ErrorCode.TURN_NOT_FOUND)
        return await _file(steps, conversation.id, turn_id)

    async def conversation_file(self, visitor: Visitor, request: Request) -> Response:
        """Answer with the steps of every turn of every branch as JSON."""
        conversation = await self._conversation(visitor, request)
        return await _file(await self.studio().traces.steps(conversation.id), conversation.id, conversation.id)

    async def _conversation(self, visitor: Visitor, request: Request) -> Conversation:
        return await self.studio().conversations.get(request.path_params["conversation"], visitor.owner)

    async def _traced(self, conversation: Conversation, first: int, end: int) -> list[TracedTurn]:
        turns = conversation.turns[first:end]
        steps = await self.studio().traces.summaries(conversation.id, [turn.id for turn in turns])
        return [
            TracedTurn(turn, place, [step for step in steps if step.turn_id == turn.id])
            for place, turn in enumerate(turns, first + 1)
        ]

    async def _step(self, conversation: Conversation, request: Request) -> TraceStep:
        turn_id, number = request.path_params["turn"], request.path_params["number"]
        # Beyond what a database counts to there is none.
        step = await self.studio().traces.step(conversation.id, turn_id, number) if number < 1 << 31 else None
        if step is None:
            raise RequestRefused(ErrorCode.TURN_NOT_FOUND)
        return step


def trace_routes(studio: Callable[[], Studio], sessions: Sessions) -> list[Route]:
    """Return the routes below `/aivista/trace`: `{conversation}`, `{conversation}/{turn}` and
    `{conversation}/{turn}/{number}` for the page, and the same with `.json` as files.

    Without our cookie they answer 403, for what the owner does not have 404, and 500 when the records fail; always
    with one sentence under `error`.
    """
    pages = _Pages(studio)
    # Those with an ending first: a name may hold a dot.
    kept = (
        ("{conversation}/{turn}/{number:int}.json", pages.step_file),
        ("{conversation}/{turn}/{number:int}", pages.step),
        ("{conversation}/{turn}.json", pages.turn_file),
        ("{conversation}/{turn}", pages.turn),
        ("{conversation}.json", pages.conversation_file),
        ("{conversation}", pages.page),
    )
    return [Route(f"/aivista/trace/{path}", _guarded(sessions, work), methods=["GET"]) for path, work in kept]


def _guarded(
    sessions: Sessions, work: Callable[[Visitor, Request], Awaitable[Response]]
) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        if sessions.token_of(request.cookies.get(COOKIE)) is None:
            return _json({"error": sessions.visitor(request).words("route.not_yours")}, 403)
        visitor = sessions.visitor(request)
        try:
            return await work(visitor, request)
        except RequestRefused as error:
            return _json({"error": visitor.words.error(error.info)}, 404)
        except AivistaError as error:
            return _json({"error": visitor.words.error(error.info)}, 500)

    return answer


def _window(ids: Sequence[str], before: str, since: str) -> tuple[int, int]:
    """Return the first place and the one after the last of the turns that are asked for."""
    if since in ids:
        return ids.index(since), len(ids)
    end = ids.index(before) if before in ids else len(ids)
    return max(0, end - PAGE_TURNS), end


def _place(conversation: Conversation, turn_id: str) -> int:
    place = next((place for place, turn in enumerate(conversation.turns) if turn.id == turn_id), None)
    if place is None:
        raise RequestRefused(ErrorCode.TURN_NOT_FOUND)
    return place


async def _file(steps: Sequence[TraceStep], conversation_id: str, name: str) -> Response:
    told: dict[str, Any] = {
        "trace": 1,
        "conversation": conversation_id,
        "steps": [step.model_dump(mode="json") for step in steps],
    }
    plain = re.sub(r"[^\w-]", "", name, flags=re.ASCII)[:64]
    headers = {**_HEADERS, "Content-Disposition": f'attachment; filename="aivista-trace-{plain}.json"'}
    return Response(await asyncio.to_thread(report_text, told), media_type="application/json", headers=headers)


def _json(content: dict[str, Any], status_code: int = 200) -> JSONResponse:
    return JSONResponse(content, status_code, _HEADERS)

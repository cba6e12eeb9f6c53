"""The trace of a conversation: its turns, the steps of each, and all that went into a step and came out; also as JSON.

The page asks for turns when they are looked at, for steps when their turn is opened, for the rest when a step is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from agent import Conversation, ErrorCode, RequestRefused, TraceStep, Value, report_text
from webui.features.trace.lines import FUNCTIONS, TracedTurn
from webui.http.sessions import Visitor
from webui.http.visitor_routes import NO_STORE, as_json, attachment, visitor_route
from webui.screen import Screen
from webui.shell.actions import Context, Feature
from webui.shell.patches import Patch, Reply

_PAGE_TURNS = 20
# Beyond what a database counts to there is no step.
_MOST_STEPS = 1 << 31


class Seen(Value):
    """The last of the turns that are shown already, if any are, and whether only those with errors are."""

    since: str = Field(default="", max_length=200)
    errors_only: bool = False


class OfTurn(Value):
    """A turn."""

    turn: str = Field(max_length=200)


class OfStep(OfTurn):
    """A step of a turn, by its number."""

    number: int = Field(ge=0, lt=_MOST_STEPS)


def _files(screen: Screen) -> Sequence[Route]:
    """Return the routes of a conversation, a turn and a step as JSON files; what is refused is a sentence under
    `error`."""

    async def file(request: Request, visitor: Visitor) -> Response:
        key, turn, number = (request.path_params.get(one) for one in ("conversation", "turn", "number"))
        traces, conversation = screen.studio().traces, await screen.studio().conversations.get(str(key), visitor.owner)
        if turn is None:
            return await _file(await traces.steps(conversation.id), conversation.id, conversation.id)
        if number is not None:
            return await _file([await _step(screen, conversation, turn, number)], conversation.id, "step")
        steps = await traces.steps(conversation.id, [turn])
        if not steps:
            raise RequestRefused(ErrorCode.TURN_NOT_FOUND)
        return await _file(steps, conversation.id, turn)

    paths = ("{conversation}/{turn}/{number:int}", "{conversation}/{turn}", "{conversation}")
    return [visitor_route(f"/aivista/trace/{path}.json", screen.sessions, file, refusal=as_json) for path in paths]


trace = Feature("trace", routes=_files)


@trace.action
async def show(at: Context, seen: Seen) -> Reply:
    """Show the newest turns of the branch; of a trace that is there only what has come since its last turn began."""
    conversation = await at.conversation()
    ids = [turn.id for turn in conversation.turns] if conversation is not None else []
    if conversation is None or not ids:
        values: dict[str, Any] = {"turns": []}
    elif seen.since in ids:
        turns = await _traced(at, conversation, ids.index(seen.since), len(ids))
        come = [_fragment(at, f"trc-{one.turn.id}", "turn.html", "trc-turns", one=one, is_open=True) for one in turns]
        return Reply(patches=tuple(come))
    else:
        values = {**await _page(at, conversation, len(ids)), "newest": ids[-1]}
    values |= {"conversation": at.place.conversation, "errors_only": seen.errors_only}
    return Reply(patches=(_fragment(at, "trc", "pane.html", "trace", **values),))


@trace.action
async def older(at: Context, before: OfTurn) -> Reply:
    """Show the turns before one."""
    conversation = await _conversation(at)
    page = await _page(at, conversation, _place(conversation, before.turn))
    # When the trace that asked is gone, so is where they would stand.
    name = f"trc-before-{before.turn}"
    return Reply(patches=(_fragment(at, name, "older.html", name, newest="", **page),))


@trace.action
async def turn(at: Context, opened: OfTurn) -> Reply:
    """Show the steps of a turn."""
    conversation = await _conversation(at)
    place = _place(conversation, opened.turn)
    [found] = await _traced(at, conversation, place, place + 1)
    inside = _fragment(at, f"trc-{opened.turn}-in", "inside.html", f"trc-{opened.turn}", one=found, is_open=True)
    return Reply(patches=(inside,))


@trace.action
async def step(at: Context, opened: OfStep) -> Reply:
    """Show all of a step."""
    conversation = await _conversation(at)
    found = await _step(at.screen, conversation, opened.turn, opened.number)
    handles = {picture.image.digest: picture.handle for picture in conversation.all_pictures}
    values = {"step": found, "handles": handles, "thumbnail": at.view.thumbnail}
    name = f"trc-{opened.turn}-{opened.number}"
    return Reply(patches=(_fragment(at, name, "step.html", f"trc-{opened.turn}", **values),))


def _fragment(at: Context, name: str, template: str, parent: str, **values: Any) -> Patch:
    def address(turn_id: str = "", number: int | None = None) -> str:
        parts = [quote(one, safe="") for one in (at.place.conversation, turn_id) if one]
        return "/".join(["aivista/trace", *parts, *([str(number)] if number is not None else [])]) + ".json"

    return at.fragment(name, f"trace/{template}", parent, address=address, **FUNCTIONS, **values)


async def _conversation(at: Context) -> Conversation:
    return await at.screen.studio().conversations.get(at.place.conversation, at.visitor.owner)


def _place(conversation: Conversation, turn_id: str) -> int:
    place = next((place for place, one in enumerate(conversation.turns) if one.id == turn_id), None)
    if place is None:
        raise RequestRefused(ErrorCode.TURN_NOT_FOUND)
    return place


async def _page(at: Context, conversation: Conversation, end: int) -> dict[str, Any]:
    """Return a page of turns, and the first of them if there are others before it."""
    first = max(0, end - _PAGE_TURNS)
    return {
        "turns": await _traced(at, conversation, first, end),
        "before": conversation.turns[first].id if first else "",
    }


async def _traced(at: Context, conversation: Conversation, first: int, end: int) -> list[TracedTurn]:
    turns = conversation.turns[first:end]
    steps = await at.screen.studio().traces.summaries(conversation.id, [turn.id for turn in turns])
    return [
        TracedTurn(turn, place, [step for step in steps if step.turn_id == turn.id])
        for place, turn in enumerate(turns, first + 1)
    ]


async def _step(screen: Screen, conversation: Conversation, turn_id: str, number: int) -> TraceStep:
    step = await screen.studio().traces.step(conversation.id, turn_id, number) if number < _MOST_STEPS else None
    if step is None:
        raise RequestRefused(ErrorCode.TURN_NOT_FOUND)
    return step


async def _file(steps: Sequence[TraceStep], conversation_id: str, name: str) -> Response:
    kept = [step.model_dump(mode="json") for step in steps]
    told: dict[str, Any] = {"trace": 1, "conversation": conversation_id, "steps": kept}
    headers = {**NO_STORE, **attachment(f"aivista-trace-{name[:64]}.json")}
    return Response(await asyncio.to_thread(report_text, told), media_type="application/json", headers=headers)

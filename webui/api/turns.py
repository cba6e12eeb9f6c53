"""Turns: sent, followed, cut and resumed, decided about, stopped and told from their record."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Header, Query, Request, Response
from fastapi.responses import StreamingResponse

from agent import Decision, ErrorCode, RequestRefused, TraceStep, Value
from webui.api.door import TheCaller, TheDoor, ThePayer
from webui.api.streams import DOCUMENTED, Streams
from webui.api.turn_requests import TURN_BODY, read_turn
from webui.api.views import PictureView, TurnView, picture_view, turn_view

router = APIRouter(prefix="/api/v1/conversations/{conversation_id}", tags=["turns"])

LastEventId = Annotated[str, Header(max_length=100, description="The id of the last event that arrived.")]


class Stopped(Value):
    """Whether there was anything to stop."""

    stopped: bool


class Turns(Value):
    """Some turns, the oldest first, and the pictures that they show. `earlier` leads to the turns before them, as
    `before`; null at the beginning."""

    turns: tuple[TurnView, ...]
    pictures: tuple[PictureView, ...]
    earlier: str | None = None


class Trace(Value):
    """The steps of one turn, or of all: what was sent, what came, how long it took, what it cost."""

    steps: tuple[TraceStep, ...]


@router.post("/turns", response_class=StreamingResponse, responses=DOCUMENTED, openapi_extra=TURN_BODY)
async def send_turn(door: TheDoor, caller: ThePayer, conversation_id: str, request: Request) -> StreamingResponse:
    """Send a turn and stream what happens. Leaving the stream does not stop the turn.

    What is refused before the turn is on record is answered with a problem document instead.
    """
    await door.studio().conversations.get(conversation_id, caller.owner)
    turn = await read_turn(request, door.uploads, caller.owner)
    streams = Streams(door, caller, conversation_id)
    live = door.studio().turns.start(conversation_id, turn, owner=caller.owner, key=caller.key)
    return streams.answer(await streams.begun(live), 0)


@router.get("/turns")
async def list_turns(
    door: TheDoor,
    caller: TheCaller,
    conversation_id: str,
    before: Annotated[str | None, Query(max_length=100, description="`earlier` of the page after it.")] = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> Turns:
    """Return the newest turns of the branch that is shown, or the newest before one of them."""
    page = await door.studio().conversations.turns_page(conversation_id, caller.owner, before=before, limit=limit)
    return Turns(
        turns=tuple(map(turn_view, page.turns)),
        pictures=tuple(picture_view(conversation_id, one) for one in page.pictures),
        earlier=page.earlier,
    )


@router.get("/events", response_class=StreamingResponse, responses={**DOCUMENTED, 204: {"description": "No more."}})
async def follow(door: TheDoor, caller: TheCaller, conversation_id: str, last_event_id: LastEventId = "") -> Response:
    """Follow the running turn from its first event, or go on after the last one that arrived; 204 without one."""
    found = await Streams(door, caller, conversation_id).resumed(last_event_id, None)
    return found or Response(status_code=204)


@router.post("/cancel")
async def cancel(door: TheDoor, caller: TheCaller, conversation_id: str) -> Stopped:
    """Stop what runs or waits in line; what was made so far is kept."""
    await door.studio().conversations.get(conversation_id, caller.owner)
    return Stopped(stopped=await door.studio().cancel(conversation_id, caller.owner))


@router.post("/turns/{turn_id}/cancel")
async def cancel_turn(door: TheDoor, caller: TheCaller, conversation_id: str, turn_id: str) -> Stopped:
    """Stop this turn, if it runs; others of the conversation go on, and what it made so far is kept."""
    await door.studio().conversations.get(conversation_id, caller.owner)
    return Stopped(stopped=await door.studio().cancel(conversation_id, caller.owner, turn_id=turn_id))


@router.get("/turns/{turn_id}")
async def read_turn_record(door: TheDoor, caller: TheCaller, conversation_id: str, turn_id: str) -> TurnView:
    """Return a turn of the branch that is shown, as far as it is on record."""
    conversation = await door.studio().conversations.get(conversation_id, caller.owner)
    turn = conversation.turn(turn_id)
    if turn is None:
        raise RequestRefused(ErrorCode.TURN_NOT_FOUND)
    return turn_view(turn)


@router.get(
    "/turns/{turn_id}/events",
    response_class=StreamingResponse,
    responses={**DOCUMENTED, 204: {"description": "Nothing came after that event."}},
)
async def follow_turn(
    door: TheDoor, caller: TheCaller, conversation_id: str, turn_id: str, last_event_id: LastEventId = ""
) -> Response:
    """Follow a turn from its first event, or go on after the last one that arrived.

    For ten minutes after its end it is told exactly as it came, then from its record: with `started` it begins anew.
    """
    found = await Streams(door, caller, conversation_id).resumed(last_event_id, turn_id)
    return found or Response(status_code=204)


@router.post("/turns/{turn_id}/decision", response_class=StreamingResponse, responses=DOCUMENTED)
async def decide(
    door: TheDoor, caller: ThePayer, conversation_id: str, turn_id: str, decision: Decision
) -> StreamingResponse:
    """Run the plan that a turn waits with, with changes perhaps, or drop it; or let calls of tools run, or not."""
    await door.studio().conversations.get(conversation_id, caller.owner)
    streams = Streams(door, caller, conversation_id)
    live = door.studio().turns.decide(conversation_id, turn_id, decision, owner=caller.owner, key=caller.key)
    return streams.answer(await streams.begun(live))


@router.post("/turns/{turn_id}/retry", response_class=StreamingResponse, responses=DOCUMENTED)
async def retry(door: TheDoor, caller: ThePayer, conversation_id: str, turn_id: str) -> StreamingResponse:
    """Have a failed or interrupted turn go on where it was; what was answered is not paid for again."""
    streams = Streams(door, caller, conversation_id)
    live = await door.studio().turns.retry(conversation_id, turn_id, owner=caller.owner, key=caller.key)
    return streams.answer(await streams.begun(live))


@router.get("/trace")
async def read_trace(door: TheDoor, caller: TheCaller, conversation_id: str) -> Trace:
    """Return the steps of every turn of every branch."""
    return Trace(steps=await door.studio().trace(conversation_id, None, caller.owner))


@router.get("/turns/{turn_id}/trace")
async def read_turn_trace(door: TheDoor, caller: TheCaller, conversation_id: str, turn_id: str) -> Trace:
    """Return the steps of a turn of any branch."""
    steps = await door.studio().trace(conversation_id, turn_id, caller.owner)
    if not steps:
        raise RequestRefused(ErrorCode.TURN_NOT_FOUND)
    return Trace(steps=steps)

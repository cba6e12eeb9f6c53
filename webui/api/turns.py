"""Turns: sent, followed, resumed, decided about, stopped and read from their record; and uploads.

A turn comes as JSON that names uploads or holds data URLs, or as a form that contains the files.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any, Literal, TypeAlias

from fastapi import APIRouter, File, Form, Header, Query, Request, Response
from fastapi import UploadFile as SentFile
from fastapi.responses import StreamingResponse
from pydantic import Field, StringConstraints

from agent import (
    MAX_MASK_MEGABYTES,
    MAX_PICTURES_PER_MESSAGE,
    MAX_UPLOAD_MEGABYTES,
    MAX_VISITOR_UPLOAD_MEGABYTES,
    Asked,
    Decision,
    ErrorCode,
    Expansion,
    Mask,
    RequestRefused,
    TraceStep,
    TurnRequest,
    TurnSettings,
    Value,
    take_in_image,
    upload_limit_megabytes,
)
from webui.api.calls import FILES, AnyCall, TurnCall, Uploads, files_of, form_content, is_form, refuse_unknown
from webui.api.events import DOCUMENTED, Streams
from webui.api.models import PictureView, TurnView, picture_view, turn_view
from webui.api.problems import RefusalCode, Refused
from webui.whole_json import whole_json

router = APIRouter(prefix="/api/v1/conversations/{conversation_id}", tags=["turns"])
uploads = APIRouter(prefix="/api/v1/uploads", tags=["uploads"])

_FILE = (
    f"PNG (8 or 16 bits), JPEG, WebP, GIF, HEIC or AVIF, at most {MAX_UPLOAD_MEGABYTES} MB; "
    f"{MAX_VISITOR_UPLOAD_MEGABYTES} MB for anybody but the studio's owner."
)

# Every picture may have a mask.
_MOST_FORM_FILES = 2 * MAX_PICTURES_PER_MESSAGE
_MOST_FORM_FIELDS = 20
_MOST_FIELD_BYTES = 1 << 20

Short: TypeAlias = Annotated[str, StringConstraints(max_length=100)]
Shorts: TypeAlias = Annotated[tuple[Short, ...], Field(max_length=100)]
Share: TypeAlias = Annotated[float, Field(ge=0, le=100, allow_inf_nan=False)]


class MaskBody(Asked):
    """What of a picture may change (white), and which picture: its handle, or `upload:1` for the first of this request.

    `image` is the id of an upload or a data URL. In a form it may be left out: then the files of the field `mask` are
    used in order.
    """

    handle: Short
    image: str = ""
    feather_px: Annotated[int, Field(ge=0, le=1000)] | None = None


class ExpansionBody(Asked):
    """How far a picture grows on each side, in fractions of its width and height."""

    handle: Short
    left: Share = 0.0
    top: Share = 0.0
    right: Share = 0.0
    bottom: Share = 0.0


class TurnBody(Asked):
    """A turn: text, pictures (ids of uploads, or data URLs), and its settings.

    The same `request_id` twice runs once. `editing` and `references` are handles; with `none` for `editing` the text
    makes a new picture, without `editing` it is about the newest; `roles` gives references a role. `masks`, like
    `mask`, are each for one picture; each of those pictures is edited separately. `instead_of` is the id of a turn that
    this one replaces in a new branch.
    """

    text: str = ""
    images: Annotated[tuple[str, ...], Field(max_length=100)] = ()
    mask: MaskBody | None = None
    masks: Annotated[tuple[MaskBody, ...], Field(max_length=100)] = ()
    expand: ExpansionBody | None = None
    settings: TurnSettings = TurnSettings()
    editing: Short | None = None
    references: Shorts = ()
    roles: dict[Short, Short] = Field(default_factory=dict, max_length=100)
    request_id: Annotated[str, StringConstraints(min_length=1, max_length=100)] | None = None
    instead_of: Short | None = None


TURN_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {"schema": {"$ref": "#/components/schemas/TurnBody"}},
            **form_content(
                ["request"],
                {"request": {"type": "string", "description": "A TurnBody as JSON."}, "images": FILES, "mask": FILES},
            ),
        },
    }
}


async def read_turn(request: Request, uploads: Uploads, owner: str) -> TurnRequest:
    """Return the turn that a request asks for.

    Raises pydantic's ValidationError for invalid values, and Refused.
    """
    files, mask_files = list[tuple[str, bytes]](), list[tuple[str, bytes]]()
    if not is_form(request):
        body = TurnBody.model_validate_json(await request.body())
    else:
        async with request.form(
            max_files=_MOST_FORM_FILES, max_fields=_MOST_FORM_FIELDS, max_part_size=_MOST_FIELD_BYTES
        ) as form:
            raw = form.get("request")
            if not isinstance(raw, str):
                raise Refused(RefusalCode.UNREADABLE, problem="request")
            body = TurnBody.model_validate_json(whole_json(raw))
            refuse_unknown(form, files=("images", "mask"), texts=("request",))
            files, mask_files = await files_of(form, "images"), await files_of(form, "mask")
    named = [uploads.read(owner, written) for written in body.images]
    areas = [*([body.mask] if body.mask is not None else []), *body.masks]
    masks = list[Mask]()
    for area in areas:
        is_beside = bool(mask_files) and not area.image
        _, drawn = mask_files.pop(0) if is_beside else uploads.read(owner, area.image)
        masks.append(Mask(drawn, area.handle, area.feather_px))
    if mask_files:
        raise Refused(RefusalCode.UNREADABLE, problem="request.mask.handle")
    return TurnRequest(
        **body.model_dump(include={"text", "editing", "references", "roles", "request_id", "instead_of"}),
        images=[(name, data) if name else data for name, data in (*named, *files)],
        mask=masks,
        expand=Expansion(**body.expand.model_dump()) if body.expand is not None else None,
        settings=body.settings,
    )


LastEventId = Annotated[str, Header(max_length=100, description="The id of the last event that arrived.")]


class Stopped(Value):
    """Whether there was anything to stop."""

    stopped: bool


class Turns(Value):
    """Turns, the oldest first, and the pictures that they show. `earlier` is the `before` of the turns before them;
    null at the beginning."""

    turns: tuple[TurnView, ...]
    pictures: tuple[PictureView, ...]
    earlier: str | None = None


class Trace(Value):
    """The steps of one turn, or of all: inputs, outputs, duration, cost."""

    steps: tuple[TraceStep, ...]


@router.post("/turns", response_class=StreamingResponse, responses=DOCUMENTED, openapi_extra=TURN_BODY)
async def send_turn(call: TurnCall, conversation_id: str, request: Request) -> StreamingResponse:
    """Send a turn and stream its events. Closing the stream does not stop the turn.

    A request that is refused before the turn is recorded is answered with a problem document instead.
    """
    await call.studio.conversations.get(conversation_id, call.owner)
    turn = await read_turn(request, call.api.uploads, call.owner)
    live = call.studio.turns.start(conversation_id, turn, owner=call.owner, key=call.key)
    return await Streams(call, conversation_id).begun(live, 0)


@router.get("/turns")
async def list_turns(
    call: AnyCall,
    conversation_id: str,
    before: Annotated[str | None, Query(max_length=100, description="`earlier` of the page after it.")] = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> Turns:
    """Return the newest turns of the current branch, or the newest before a given one."""
    page = await call.studio.conversations.turns_page(conversation_id, call.owner, before=before, limit=limit)
    return Turns(
        turns=tuple(map(turn_view, page.turns)),
        pictures=tuple(picture_view(conversation_id, one) for one in page.pictures),
        earlier=page.earlier,
    )


@router.get("/events", response_class=StreamingResponse, responses={**DOCUMENTED, 204: {"description": "No more."}})
async def follow(call: AnyCall, conversation_id: str, last_event_id: LastEventId = "") -> Response:
    """Follow the running turn from its first event, or continue after the last event received; 204 without one."""
    found = await Streams(call, conversation_id).resumed(last_event_id, None)
    return found or Response(status_code=204)


@router.post("/cancel")
async def cancel(call: AnyCall, conversation_id: str) -> Stopped:
    """Stop running and queued turns; what was made so far is kept."""
    await call.studio.conversations.get(conversation_id, call.owner)
    return Stopped(stopped=await call.studio.cancel(conversation_id, call.owner))


@router.post("/turns/{turn_id}/cancel")
async def cancel_turn(call: AnyCall, conversation_id: str, turn_id: str) -> Stopped:
    """Stop this turn, if it runs; other turns of the conversation go on, and what it made so far is kept."""
    await call.studio.conversations.get(conversation_id, call.owner)
    return Stopped(stopped=await call.studio.cancel(conversation_id, call.owner, turn_id=turn_id))


@router.get("/turns/{turn_id}")
async def read_turn_record(call: AnyCall, conversation_id: str, turn_id: str) -> TurnView:
    """Return a turn of the current branch, as far as it is recorded."""
    conversation = await call.studio.conversations.get(conversation_id, call.owner)
    turn = conversation.turn(turn_id)
    if turn is None:
        raise RequestRefused(ErrorCode.TURN_NOT_FOUND)
    return turn_view(turn)


@router.get(
    "/turns/{turn_id}/events",
    response_class=StreamingResponse,
    responses={**DOCUMENTED, 204: {"description": "Nothing came after that event."}},
)
async def follow_turn(call: AnyCall, conversation_id: str, turn_id: str, last_event_id: LastEventId = "") -> Response:
    """Follow a turn from its first event, or continue after the last event received.

    For ten minutes after its end it is sent exactly as it came, then from its record: `started` means that it begins
    anew.
    """
    found = await Streams(call, conversation_id).resumed(last_event_id, turn_id)
    return found or Response(status_code=204)


@router.post("/turns/{turn_id}/decision", response_class=StreamingResponse, responses=DOCUMENTED)
async def decide(call: TurnCall, conversation_id: str, turn_id: str, decision: Decision) -> StreamingResponse:
    """Run a waiting plan, perhaps with changes, or drop it; or allow or refuse waiting tool calls."""
    await call.studio.conversations.get(conversation_id, call.owner)
    live = call.studio.turns.decide(conversation_id, turn_id, decision, owner=call.owner, key=call.key)
    return await Streams(call, conversation_id).begun(live)


@router.post("/turns/{turn_id}/retry", response_class=StreamingResponse, responses=DOCUMENTED)
async def retry(call: TurnCall, conversation_id: str, turn_id: str) -> StreamingResponse:
    """Resume a failed or interrupted turn where it stopped; answers that were received are not paid for again."""
    live = await call.studio.turns.retry(conversation_id, turn_id, owner=call.owner, key=call.key)
    return await Streams(call, conversation_id).begun(live)


@router.get("/trace")
async def read_trace(call: AnyCall, conversation_id: str) -> Trace:
    """Return the steps of all turns of all branches."""
    return Trace(steps=await call.studio.trace(conversation_id, None, call.owner))


@router.get("/turns/{turn_id}/trace")
async def read_turn_trace(call: AnyCall, conversation_id: str, turn_id: str) -> Trace:
    """Return the steps of a turn of any branch."""
    steps = await call.studio.trace(conversation_id, turn_id, call.owner)
    if not steps:
        raise RequestRefused(ErrorCode.TURN_NOT_FOUND)
    return Trace(steps=steps)


class UploadView(Value):
    """An upload: its id for use in a turn, and when it expires. The size of a mask is checked when it is used."""

    id: str
    expires_at: datetime
    width: int | None = None
    height: int | None = None


@uploads.post("", status_code=201)
async def upload(
    call: AnyCall,
    file: Annotated[SentFile, File(description=_FILE)],
    kind: Annotated[Literal["picture", "mask"], Form()] = "picture",
) -> UploadView:
    """Upload a picture or a mask. It is kept for an hour, for its owner alone."""
    name, data = file.filename or "", await file.read()
    width = height = None
    if kind == "picture":
        taken = await take_in_image(data, name, limit_megabytes=upload_limit_megabytes(call.owner))
        width, height = taken.width, taken.height
    elif len(data) > MAX_MASK_MEGABYTES << 20:
        raise RequestRefused(ErrorCode.MASK_TOO_LARGE, limit=MAX_MASK_MEGABYTES)
    upload_id, until_s = call.api.uploads.put(call.owner, name, data)
    return UploadView(id=upload_id, expires_at=datetime.fromtimestamp(until_s, UTC), width=width, height=height)

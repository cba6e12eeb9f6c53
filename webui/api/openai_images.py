"""Pictures in OpenAI's shape: `POST /v1/images/generations` and `/v1/images/edits`, for clients that speak it.

Each call is a turn in a conversation of its own, so that what it made, and cost, is in the gallery like everything
else. OpenAI's mask is transparent where the picture may change; one without alpha counts as ours does, white.
"""

from __future__ import annotations

import asyncio
import base64
import io
import json
import time
from collections.abc import AsyncIterator, Sequence
from math import log
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Request, Response
from fastapi.responses import StreamingResponse
from PIL import Image
from pydantic import Field, StringConstraints

from agent import (
    MAX_MASK_MEGABYTES,
    AivistaError,
    Asked,
    Decision,
    ErrorCode,
    Mask,
    ModelEntry,
    ModelRole,
    Picture,
    ProviderFailure,
    RequestRefused,
    TokenUsage,
    TurnDone,
    TurnFailed,
    TurnPaused,
    TurnRequest,
    TurnSettings,
    Value,
    error_from_info,
    probe_image,
)
from webui.api.calls import AnyCall, Call, TurnCall
from webui.api.events import HEADERS
from webui.api.outcomes import Outcome, outcome_of
from webui.api.problems import RefusalCode, Refused
from webui.api.turns import files_of, read_file, refuse_unknown
from webui.root_path import public_url

router = APIRouter(prefix="/v1", tags=["OpenAI's shape"])

MODELS = ("auto", "flash", "pro")
_STREAM: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The pictures; with `stream` one event each.",
        "content": {"text/event-stream": {"schema": {}}},
    }
}
_MOST_FILES = 17
_MOST_FIELDS = 20
_MOST_OF_A_TURN = 4
Choice = Annotated[str, StringConstraints(max_length=100)]


class ImagesAsked(Asked):
    """What both routes take, by OpenAI's names.

    `model` is `flash`, `pro` or, as is every name of another house's, `auto`; `quality` `high` asks for `pro`. `size`
    is taken as the nearest ratio and resolution on offer. Pictures come as `b64_json`, or with `response_format` `url`
    by an address of ours that is signed and good for a day. More than four pictures are painted by several turns, each
    in a conversation of its own; when one fails, what came before is handed over. `style` and `moderation` are taken
    and change nothing: the prompt says how the picture looks. What else is not obeyed is refused. With `stream`
    pictures come as Server-Sent Events as soon as their turn has ended, each whole: `partial_images` changes nothing.
    """

    prompt: str
    model: Choice = "auto"
    n: Annotated[int, Field(ge=1, le=10)] = 1
    size: Choice = "auto"
    quality: Literal["auto", "low", "medium", "high", "standard", "hd"] = "auto"
    response_format: Literal["b64_json", "url"] = "b64_json"
    user: Choice = ""
    background: Literal["auto", "opaque"] = "auto"
    output_format: Literal["png"] = "png"
    moderation: Literal["auto", "low"] = "auto"
    style: Literal["vivid", "natural"] | None = None
    stream: bool = False
    partial_images: Annotated[int, Field(ge=0, le=3)] = 0


class OneImage(Value):
    """A picture, and the prompt as it was sent to the image model."""

    b64_json: str | None = None
    url: str | None = None
    revised_prompt: str | None = None


class ImagesMade(Value):
    """The pictures that were made, and the tokens. `conversation_id` is where the first of them are kept."""

    created: int
    data: tuple[OneImage, ...]
    usage: dict[str, Any]
    conversation_id: str


@router.get("/models")
async def list_models(_call: AnyCall) -> dict[str, Any]:
    """Return the names that `model` may have."""
    return {
        "object": "list",
        "data": [{"id": name, "object": "model", "created": 0, "owned_by": "aivista"} for name in MODELS],
    }


@router.post("/images/generations", response_model=ImagesMade, response_model_exclude_none=True, responses=_STREAM)
async def generate(call: TurnCall, request: Request, asked: ImagesAsked) -> ImagesMade | Response:
    """Paint pictures by a prompt."""
    return await _answer(call, request, asked, [], None)


_EDIT_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["image", "prompt"],
                    "properties": {
                        "image": {"type": "array", "minItems": 1, "items": {"type": "string", "format": "binary"}},
                        "mask": {"type": "string", "format": "binary"},
                        **{name: {"type": "string"} for name in ImagesAsked.model_fields},
                    },
                }
            }
        },
    }
}


@router.post(
    "/images/edits",
    response_model=ImagesMade,
    response_model_exclude_none=True,
    responses=_STREAM,
    openapi_extra=_EDIT_BODY,
)
async def edit(call: TurnCall, request: Request) -> ImagesMade | Response:
    """Change the first picture; with a mask, not a pixel outside of it. Further pictures are references."""
    if not request.headers.get("content-type", "").lower().startswith("multipart/form-data"):
        raise Refused(RefusalCode.UNREADABLE, problem="multipart/form-data")
    async with request.form(max_files=_MOST_FILES, max_fields=_MOST_FIELDS) as form:
        pictures = [await read_file(file) for file in files_of(form, "image", "image[]")]
        masks = [await read_file(file) for file in files_of(form, "mask")]
        refuse_unknown(form, files=("image", "image[]", "mask"), texts=ImagesAsked.model_fields)
        # An empty field says nothing, as null does in JSON.
        told = {name: value for name, value in form.items() if isinstance(value, str) and value}
    if not pictures:
        raise Refused(RefusalCode.UNREADABLE, problem="image")
    asked = ImagesAsked.model_validate(told)
    mask = await _mask_of(masks[0][1]) if masks else None
    return await _answer(call, request, asked, pictures, mask)


async def _answer(
    call: Call, request: Request, asked: ImagesAsked, pictures: Sequence[tuple[str, bytes]], mask: bytes | None
) -> ImagesMade | Response:
    """Return the pictures. Raises AivistaError, and Refused(NOT_PAINTED) when the agent answered without any."""
    outcomes = _outcomes(call, asked, pictures, mask)
    first = await anext(outcomes)
    if asked.stream:
        kind = "image_edit" if pictures else "image_generation"
        events = _events(call, request, asked, f"{kind}.completed", first, outcomes)
        return StreamingResponse(events, media_type="text/event-stream", headers=HEADERS)
    made = [first, *[one async for one in outcomes]]
    return ImagesMade(
        created=int(time.time()),
        data=tuple([await _image(call, request, asked, one, picture) for one in made for picture in one.pictures]),
        usage=_usage(*made),
        conversation_id=first.conversation_id,
    )


async def _events(
    call: Call, request: Request, asked: ImagesAsked, name: str, first: Outcome, rest: AsyncIterator[Outcome]
) -> AsyncIterator[bytes]:
    """Tell each picture as it comes; the tokens of a turn are counted with its first."""
    outcome: Outcome | None = first
    while outcome is not None:
        usage = _usage(outcome)
        for picture in outcome.pictures:
            image = await _image(call, request, asked, outcome, picture)
            size = f"{picture.image.width}x{picture.image.height}"
            told = {"type": name, "created_at": int(time.time()), "size": size, "quality": asked.quality}
            told |= {
                "background": "opaque",
                "output_format": "png",
                "usage": usage,
                **image.model_dump(exclude_none=True),
            }
            yield f"event: {name}\ndata: {json.dumps(told)}\n\n".encode()
            usage = _usage()
        outcome = await anext(rest, None)


async def _outcomes(
    call: Call, asked: ImagesAsked, pictures: Sequence[tuple[str, bytes]], mask: bytes | None
) -> AsyncIterator[Outcome]:
    for start in range(0, asked.n, _MOST_OF_A_TURN):
        try:
            if start:
                call.api.turns.take_or_refuse(call.owner)
            outcome = await _outcome(call, asked, pictures, mask, min(asked.n - start, _MOST_OF_A_TURN))
        except (AivistaError, Refused):
            if not start:
                raise
            # What was painted is paid for.
            return
        yield outcome


async def _outcome(
    call: Call, asked: ImagesAsked, pictures: Sequence[tuple[str, bytes]], mask: bytes | None, count: int
) -> Outcome:
    """Paint so many pictures in a conversation of their own."""
    conversation = await call.studio.conversations.create(call.owner)
    turn = TurnRequest(
        text=asked.prompt,
        images=pictures,
        mask=Mask(mask, "upload:1") if mask is not None else None,
        settings=_settings(call, asked, count),
    )
    live = call.studio.turns.start(conversation.id, turn, owner=call.owner, key=call.key)
    # The turn goes on whoever waits for it.
    outcome = await outcome_of(call.studio, live, call.words)
    match outcome.ending:
        case TurnFailed(error=info):
            raise error_from_info(info)
        case TurnPaused(is_cut=True):
            raise RequestRefused(ErrorCode.STUDIO_CLOSING)
        case TurnPaused():
            # It asks for a click that this shape has no place for: a cap would be passed, a tool would be called.
            dropped = call.studio.turns.decide(
                conversation.id, outcome.turn_id, Decision(run=False), owner=call.owner, key=call.key
            )
            await dropped.wait()
            raise Refused(RefusalCode.NEEDS_DECISION)
    if not outcome.pictures:
        raise Refused(RefusalCode.NOT_PAINTED, text=outcome.text[:500] or "…")
    return outcome


def _settings(call: Call, asked: ImagesAsked, count: int) -> TurnSettings:
    model: Literal["auto", "flash", "pro"] = "auto"
    if asked.model == "pro" or (asked.model != "flash" and asked.quality in ("high", "hd")):
        model = "pro"
    elif asked.model == "flash":
        model = "flash"
    role = ModelRole.IMAGE_PRO if model == "pro" else ModelRole.IMAGE_FLASH
    entry = call.studio.catalogue.model(role, call.studio.provider_name(call.key, call.owner))
    ratio, resolution = _size(asked.size, entry)
    return TurnSettings(
        image_model=model, aspect_ratio=ratio, resolution=resolution, number_of_images=count, review="off"
    )


async def _image(call: Call, request: Request, asked: ImagesAsked, outcome: Outcome, picture: Picture) -> OneImage:
    prompt = picture.receipt.prompt if picture.receipt is not None else None
    if asked.response_format == "url":
        name = picture.handle.lstrip("#")
        query = call.api.sessions.link_query(call.owner, outcome.conversation_id, name)
        url = f"{public_url(request)}/media/{outcome.conversation_id}/{name}?{query}"
        return OneImage(url=url, revised_prompt=prompt)
    stored = await call.studio.picture(outcome.conversation_id, picture.handle, call.owner)
    return OneImage(b64_json=base64.b64encode(stored.data).decode(), revised_prompt=prompt)


def _size(size: str, entry: ModelEntry) -> tuple[str | None, str | None]:
    """Return the ratio and resolution on offer that are nearest to a size, None for what the agent may choose.

    Raises Refused(SIZE_UNKNOWN).
    """
    if size == "auto":
        return None, None
    wide, _, high = size.partition("x")
    if not all(one.isascii() and one.isdecimal() and 0 < len(one) < 6 and int(one) for one in (wide, high)):
        raise Refused(RefusalCode.SIZE_UNKNOWN, size=size[:40])
    width, height = int(wide), int(high)
    ratio = min(entry.aspect_ratios, key=lambda one: abs(log(width / height) - log(_ratio(one))), default=None)
    if ratio is None:
        return None, None
    offered = {one: entry.pixels(ratio, one) for one in entry.resolutions}
    nearest = min(
        (one for one, pixels in offered.items() if pixels is not None),
        key=lambda one: abs(log(_area(offered[one])) - log(width * height)),
        default=None,
    )
    return ratio, nearest


def _ratio(written: str) -> float:
    wide, _, high = written.partition(":")
    return int(wide) / int(high)


def _area(pixels: tuple[int, int] | None) -> int:
    return pixels[0] * pixels[1] if pixels is not None else 1


def _usage(*outcomes: Outcome) -> dict[str, Any]:
    usages = (one.ending.usage for one in outcomes if isinstance(one.ending, TurnDone))
    usage = sum(usages, TokenUsage())
    given = usage.prompt_tokens + usage.tool_tokens
    return {
        "input_tokens": given,
        "output_tokens": usage.total_tokens - given,
        "total_tokens": usage.total_tokens,
        "input_tokens_details": {"text_tokens": given, "image_tokens": 0},
    }


async def _mask_of(data: bytes) -> bytes:
    """Return OpenAI's mask as one of ours. Raises RequestRefused for what is no picture."""
    if len(data) > MAX_MASK_MEGABYTES << 20:
        raise RequestRefused(ErrorCode.MASK_TOO_LARGE, limit=MAX_MASK_MEGABYTES)
    try:
        probed = await probe_image(data)
    except ProviderFailure as error:
        raise RequestRefused(ErrorCode.MASK_UNREADABLE) from error
    if probed.mime_type not in ("image/png", "image/webp"):
        return data
    return await asyncio.to_thread(_white_where_transparent, data)


def _white_where_transparent(data: bytes) -> bytes:
    with Image.open(io.BytesIO(data), formats=("PNG", "WEBP")) as image:
        if not image.has_transparency_data:
            return data
        alpha = image.convert("RGBA").getchannel("A")
    sink = io.BytesIO()
    alpha.point([255 - level for level in range(256)]).save(sink, "PNG")
    return sink.getvalue()

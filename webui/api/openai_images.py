"""Pictures by OpenAI's API: `POST /v1/images/generations` and `/v1/images/edits`, for clients that speak it.

Each call is a turn in a conversation of its own, so that its pictures and cost are in the gallery like all others.
OpenAI's mask is transparent where the picture may change; one without alpha is read as ours: white.
"""

from __future__ import annotations

import asyncio
import base64
import io
import json
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from math import log, prod
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Request, Response
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
from webui.api.calls import FILES, AnyCall, Call, TurnCall, files_of, form_content, is_form, refuse_unknown
from webui.api.outcomes import Outcome, outcome_of
from webui.api.problems import RefusalCode, Refused
from webui.http.event_stream import event_stream
from webui.http.root_path import public_url

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
    """The parameters of both routes, by OpenAI's names.

    `model` is `flash`, `pro` or `auto`; any other name counts as `auto`. `quality` `high` asks for `pro`. `size` is
    mapped to the nearest ratio and resolution. Pictures come as `b64_json`, or with `response_format` `url` as a URL of
    ours that is signed and valid for a day. More than four pictures are painted by several turns, each in a
    conversation of its own; when one fails, the pictures before it are returned. `style` and `moderation` are accepted
    and ignored: the prompt says how the picture looks. Other unsupported values are refused. With `stream`, pictures
    come as Server-Sent Events as soon as their turn has ended, each complete: `partial_images` changes nothing.
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
    """The pictures and the tokens used. `conversation_id` is where the first of them are kept."""

    created: int
    data: tuple[OneImage, ...]
    usage: dict[str, Any]
    conversation_id: str


_EDIT_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": form_content(
            ["image", "prompt"],
            {
                "image": {"type": "array", "minItems": 1, "items": FILES["items"]},
                "mask": FILES["items"],
                **{name: {"type": "string"} for name in ImagesAsked.model_fields},
            },
        ),
    }
}


@router.get("/models")
async def list_models(_call: AnyCall) -> dict[str, Any]:
    """Return the names that `model` accepts."""
    return {
        "object": "list",
        "data": [{"id": name, "object": "model", "created": 0, "owned_by": "aivista"} for name in MODELS],
    }


@router.post("/images/generations", response_model=ImagesMade, response_model_exclude_none=True, responses=_STREAM)
async def generate(call: TurnCall, request: Request, asked: ImagesAsked) -> ImagesMade | Response:
    """Paint pictures from a prompt."""
    return await _Painting(call, request, asked).answer()


@router.post(
    "/images/edits",
    response_model=ImagesMade,
    response_model_exclude_none=True,
    responses=_STREAM,
    openapi_extra=_EDIT_BODY,
)
async def edit(call: TurnCall, request: Request) -> ImagesMade | Response:
    """Change the first picture; with a mask, no pixel outside of it. Further pictures are references."""
    if not is_form(request):
        raise Refused(RefusalCode.UNREADABLE, problem="multipart/form-data")
    async with request.form(max_files=_MOST_FILES, max_fields=_MOST_FIELDS) as form:
        pictures, masks = await files_of(form, "image", "image[]"), await files_of(form, "mask")
        refuse_unknown(form, files=("image", "image[]", "mask"), texts=ImagesAsked.model_fields)
        # An empty field counts as missing, as null does in JSON.
        fields = {name: value for name, value in form.items() if isinstance(value, str) and value}
    if not pictures:
        raise Refused(RefusalCode.UNREADABLE, problem="image")
    asked = ImagesAsked.model_validate(fields)
    mask = await _mask_of(masks[0][1]) if masks else None
    return await _Painting(call, request, asked, pictures, mask).answer()


@dataclass(frozen=True)
class _Painting:
    """One request: its parameters, pictures and mask."""

    call: Call
    request: Request
    asked: ImagesAsked
    pictures: Sequence[tuple[str, bytes]] = ()
    mask: bytes | None = None

    async def answer(self) -> ImagesMade | Response:
        """Return the pictures. Raises AivistaError, and Refused(NOT_PAINTED) when the agent answered without any."""
        outcomes = self._outcomes()
        first = await anext(outcomes)
        if self.asked.stream:
            return event_stream(self._events(first, outcomes))
        made = [first, *[one async for one in outcomes]]
        return ImagesMade(
            created=int(time.time()),
            data=tuple([await self._image(one, picture) for one in made for picture in one.pictures]),
            usage=_usage(*made),
            conversation_id=first.conversation_id,
        )

    async def _events(self, first: Outcome, rest: AsyncIterator[Outcome]) -> AsyncIterator[bytes]:
        """Yield each picture as it comes; the tokens of a turn are reported with its first one."""
        name = "image_edit.completed" if self.pictures else "image_generation.completed"
        outcome: Outcome | None = first
        while outcome is not None:
            usage = _usage(outcome)
            for picture in outcome.pictures:
                image = await self._image(outcome, picture)
                event = {
                    "type": name,
                    "created_at": int(time.time()),
                    "size": f"{picture.image.width}x{picture.image.height}",
                    "quality": self.asked.quality,
                    "background": "opaque",
                    "output_format": "png",
                    "usage": usage,
                    **image.model_dump(exclude_none=True),
                }
                yield f"event: {name}\ndata: {json.dumps(event)}\n\n".encode()
                usage = _usage()
            outcome = await anext(rest, None)

    async def _outcomes(self) -> AsyncIterator[Outcome]:
        """Paint in several turns what is too much for one."""
        for start in range(0, self.asked.n, _MOST_OF_A_TURN):
            try:
                if start:
                    self.call.api.turns.take_or_refuse(self.call.owner)
                outcome = await self._outcome(min(self.asked.n - start, _MOST_OF_A_TURN))
            except (AivistaError, Refused):
                if not start:
                    raise
                # Pictures that were painted are paid for.
                return
            yield outcome

    async def _outcome(self, count: int) -> Outcome:
        """Paint so many pictures in a conversation of their own."""
        studio, owner, key = self.call.studio, self.call.owner, self.call.key
        conversation = await studio.conversations.create(owner)
        turn = TurnRequest(
            text=self.asked.prompt,
            images=self.pictures,
            mask=Mask(self.mask, "upload:1") if self.mask is not None else None,
            settings=self._settings(count),
        )
        live = studio.turns.start(conversation.id, turn, owner=owner, key=key)
        # The turn goes on even if the client leaves.
        outcome = await outcome_of(studio, live, self.call.words)
        match outcome.ending:
            case TurnFailed(error=info):
                raise error_from_info(info)
            case TurnPaused(is_cut=True):
                raise RequestRefused(ErrorCode.STUDIO_CLOSING)
            case TurnPaused():
                # The turn waits for a decision that this API cannot express: a cap would be exceeded, or a tool would
                # be called.
                drop = Decision(run=False)
                await studio.turns.decide(conversation.id, outcome.turn_id, drop, owner=owner, key=key).wait()
                raise Refused(RefusalCode.NEEDS_DECISION)
        if not outcome.pictures:
            raise Refused(RefusalCode.NOT_PAINTED, text=outcome.text[:500] or "…")
        return outcome

    def _settings(self, count: int) -> TurnSettings:
        model: Literal["auto", "flash", "pro"] = "auto"
        if self.asked.model == "pro" or (self.asked.model != "flash" and self.asked.quality in ("high", "hd")):
            model = "pro"
        elif self.asked.model == "flash":
            model = "flash"
        role = ModelRole.IMAGE_PRO if model == "pro" else ModelRole.IMAGE_FLASH
        provider = self.call.studio.provider_name(self.call.key, self.call.owner)
        ratio, resolution = _size(self.asked.size, self.call.studio.catalogue.model(role, provider))
        return TurnSettings(
            image_model=model, aspect_ratio=ratio, resolution=resolution, number_of_images=count, review="off"
        )

    async def _image(self, outcome: Outcome, picture: Picture) -> OneImage:
        prompt = picture.receipt.prompt if picture.receipt is not None else None
        owner, place = self.call.owner, outcome.conversation_id
        if self.asked.response_format == "url":
            name = picture.handle.lstrip("#")
            query = self.call.api.sessions.link_query(owner, place, name)
            return OneImage(url=f"{public_url(self.request)}/media/{place}/{name}?{query}", revised_prompt=prompt)
        stored = await self.call.studio.picture(place, picture.handle, owner)
        return OneImage(b64_json=base64.b64encode(stored.data).decode(), revised_prompt=prompt)


def _size(size: str, entry: ModelEntry) -> tuple[str | None, str | None]:
    """Return the supported ratio and resolution nearest to a size, None for what the agent may choose.

    Raises Refused(SIZE_UNKNOWN).
    """
    if size == "auto":
        return None, None
    wide, _, high = size.partition("x")
    if not all(one.isascii() and one.isdecimal() and 0 < len(one) < 6 and int(one) for one in (wide, high)):
        raise Refused(RefusalCode.SIZE_UNKNOWN, size=size[:40])
    width, height = int(wide), int(high)

    def distance(ratio: str) -> float:
        across, _, down = ratio.partition(":")
        return abs(log(width / height) - log(int(across) / int(down)))

    ratio = min(entry.aspect_ratios, key=distance, default=None)
    if ratio is None:
        return None, None
    offered = {one: pixels for one in entry.resolutions if (pixels := entry.pixels(ratio, one)) is not None}
    nearest = min(offered, key=lambda one: abs(log(prod(offered[one])) - log(width * height)), default=None)
    return ratio, nearest


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
    """Return OpenAI's mask as one of ours. Raises RequestRefused for anything but a picture."""
    if len(data) > MAX_MASK_MEGABYTES << 20:
        raise RequestRefused(ErrorCode.MASK_TOO_LARGE, limit=MAX_MASK_MEGABYTES)
    try:
        probed = await probe_image(data)
    except ProviderFailure as error:
        raise RequestRefused(ErrorCode.MASK_UNREADABLE) from error
    if probed.mime_type not in ("image/png", "image/webp"):
        return data

    def white_where_transparent() -> bytes:
        with Image.open(io.BytesIO(data), formats=("PNG", "WEBP")) as image:
            if not image.has_transparency_data:
                return data
            alpha = image.convert("RGBA").getchannel("A")
        sink = io.BytesIO()
        alpha.point([255 - level for level in range(256)]).save(sink, "PNG")
        return sink.getvalue()

    return await asyncio.to_thread(white_where_transparent)

"""Pictures in OpenAI's shape: `POST /v1/images/generations` and `/v1/images/edits`, for clients that speak it.

Each call is a turn in a conversation of its own, so that what it made, and cost, is in the gallery like everything
else. OpenAI's mask is transparent where the picture may change; one without alpha counts as ours does, white.
"""

from __future__ import annotations

import asyncio
import base64
import io
import time
from collections.abc import Sequence
from dataclasses import dataclass
from math import log
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Request
from PIL import Image
from pydantic import Field, StringConstraints

from agent import (
    MAX_MASK_MEGABYTES,
    AivistaError,
    Asked,
    Decision,
    ErrorCode,
    LiveTurn,
    Mask,
    ModelEntry,
    ModelRole,
    Picture,
    PictureReady,
    ProviderFailure,
    RequestRefused,
    SmartCanvas,
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
from webui.api.door import Caller, Door, TheCaller, TheDoor, ThePayer, take_one
from webui.api.problems import RefusalCode, Refused
from webui.api.streams import Streams
from webui.api.turn_requests import files_of, read_file, refuse_unknown
from webui.root_path import public_url

router = APIRouter(prefix="/v1", tags=["OpenAI's shape"])

MODELS = ("auto", "flash", "pro")
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
    and change nothing: the prompt says how the picture looks. What else is not obeyed is refused.
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
    stream: Literal[False] = False


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
async def list_models(_caller: TheCaller) -> dict[str, Any]:
    """Return the names that `model` may have."""
    return {
        "object": "list",
        "data": [{"id": name, "object": "model", "created": 0, "owned_by": "aivista"} for name in MODELS],
    }


@router.post("/images/generations", response_model_exclude_none=True)
async def generate(door: TheDoor, caller: ThePayer, request: Request, asked: ImagesAsked) -> ImagesMade:
    """Paint pictures by a prompt."""
    return await _Painting(door, caller, request, asked).made([], None)


_EDIT_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["image", "prompt"],
                    "properties": {
                        "image": {"type": "array", "items": {"type": "string", "format": "binary"}},
                        "mask": {"type": "string", "format": "binary"},
                        **{name: {"type": "string"} for name in ImagesAsked.model_fields},
                    },
                }
            }
        },
    }
}


@router.post("/images/edits", response_model_exclude_none=True, openapi_extra=_EDIT_BODY)
async def edit(door: TheDoor, caller: ThePayer, request: Request) -> ImagesMade:
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
    numbers = {"n": int(told["n"])} if told.get("n", "").isdecimal() else {}
    flags = {"stream": told["stream"].lower() == "true"} if "stream" in told else {}
    asked = ImagesAsked.model_validate({**told, **numbers, **flags})
    mask = await _mask_of(masks[0][1]) if masks else None
    return await _Painting(door, caller, request, asked).made(pictures, mask)


@dataclass(frozen=True)
class _Batch:
    """What one turn made."""

    conversation_id: str
    data: tuple[OneImage, ...]
    usage: TokenUsage


@dataclass(frozen=True)
class _Painting:
    """One call, which is a turn, or several."""

    door: Door
    caller: Caller
    request: Request
    asked: ImagesAsked

    async def made(self, pictures: Sequence[tuple[str, bytes]], mask: bytes | None) -> ImagesMade:
        """Return the pictures. Raises AivistaError, and Refused(NOT_PAINTED) when the agent answered without any."""
        made: list[_Batch] = []
        for begins in range(0, self.asked.n, _MOST_OF_A_TURN):
            try:
                if made:
                    take_one(self.door.turns, self.caller.owner)
                made.append(await self._batch(pictures, mask, min(self.asked.n - begins, _MOST_OF_A_TURN)))
            except (AivistaError, Refused):
                if not made:
                    raise
                # What was painted is paid for.
                break
        usage = sum((one.usage for one in made), TokenUsage())
        data = tuple(picture for one in made for picture in one.data)
        return ImagesMade(
            created=int(time.time()), data=data, usage=_usage(usage), conversation_id=made[0].conversation_id
        )

    async def _batch(self, pictures: Sequence[tuple[str, bytes]], mask: bytes | None, count: int) -> _Batch:
        studio, owner = self.door.studio(), self.caller.owner
        turn = TurnRequest(
            text=self.asked.prompt,
            images=pictures,
            mask=Mask(mask, "upload:1") if mask is not None else None,
            settings=self._settings(count),
        )
        conversation = await studio.conversations.create(owner)
        streams = Streams(self.door, self.caller, conversation.id)
        live = await streams.begun(studio.turns.start(conversation.id, turn, owner=owner, key=self.caller.key))
        # The turn goes on whoever waits for it.
        await live.wait()
        found = await self._pictures(streams, live)
        usage = live.last.usage if isinstance(live.last, TurnDone) else TokenUsage()
        data = tuple([await self._told(conversation.id, picture) for picture in found])
        return _Batch(conversation.id, data, usage)

    def _settings(self, count: int) -> TurnSettings:
        wants_best = self.asked.model == "pro" or (self.asked.model != "flash" and self.asked.quality in ("high", "hd"))
        model: Literal["auto", "flash", "pro"] = (
            "pro" if wants_best else "flash" if self.asked.model == "flash" else "auto"
        )
        studio = self.door.studio()
        role = ModelRole.IMAGE_PRO if wants_best else ModelRole.IMAGE_FLASH
        entry = studio.catalogue.model(role, studio.provider_name(self.caller.key, self.caller.owner))
        ratio, resolution = _size(self.asked.size, entry)
        return TurnSettings(
            image_model=model,
            aspect_ratio=ratio,
            resolution=resolution,
            number_of_images=count,
            review="off",
        )

    async def _pictures(self, streams: Streams, live: LiveTurn) -> list[Picture]:
        last = live.last
        if isinstance(last, TurnFailed):
            raise error_from_info(last.error)
        if isinstance(last, TurnPaused):
            if last.is_cut:
                raise RequestRefused(ErrorCode.STUDIO_CLOSING)
            # It asks for a click that this shape has no place for: a cap would be passed, a tool would be called.
            await self._drop(live.conversation_id, last.turn_id)
            raise Refused(RefusalCode.NEEDS_DECISION)
        made = {one.picture.handle: one.picture for one in live.events if isinstance(one, PictureReady)}
        turn = await streams.turn(live.turn_id or "")
        canvases = [one for one in (turn.components if turn else ()) if isinstance(one, SmartCanvas)]
        shown = [made[handle] for one in canvases for handle in one.handles if handle in made]
        if not shown and not made:
            raise Refused(RefusalCode.NOT_PAINTED, text=(await streams.words_of(live.events))[:500] or "…")
        return shown or list(made.values())

    async def _drop(self, conversation_id: str, turn_id: str) -> None:
        studio, owner = self.door.studio(), self.caller.owner
        async for _ in studio.decide(conversation_id, turn_id, Decision(run=False), owner=owner):
            pass

    async def _told(self, conversation_id: str, picture: Picture) -> OneImage:
        prompt = picture.receipt.prompt if picture.receipt is not None else None
        if self.asked.response_format == "url":
            return OneImage(url=self._url(conversation_id, picture), revised_prompt=prompt)
        stored = await self.door.studio().picture(conversation_id, picture.handle, self.caller.owner)
        return OneImage(b64_json=base64.b64encode(stored.data).decode(), revised_prompt=prompt)

    def _url(self, conversation_id: str, picture: Picture) -> str:
        name = picture.handle.lstrip("#")
        query = self.door.sessions.link_query(self.caller.owner, conversation_id, name)
        return f"{public_url(self.request)}/media/{conversation_id}/{name}?{query}"


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


def _usage(usage: TokenUsage) -> dict[str, Any]:
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

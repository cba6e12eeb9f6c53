"""The tools that begin a turn, or have one go on: they may cost money."""

from __future__ import annotations

import asyncio
import io

from mcp_types import CallToolResult
from PIL import Image, ImageDraw

from agent import Decision, Mask, TurnRequest, TurnSettings, take_in_image
from webui.mcp_door.arguments import (
    Box,
    DecideArguments,
    DescribeArguments,
    EditArguments,
    GenerateArguments,
    MaskedEditArguments,
    TargetArguments,
)
from webui.mcp_door.callers import Call
from webui.mcp_door.following import follow
from webui.mcp_door.telling import turn_result

_UPLOAD = "upload:1"
_ONLY_PAINTED = "The agent wanted to paint instead of answering. Nothing was painted."


async def generate(call: Call, asked: GenerateArguments) -> CallToolResult:
    """Paint pictures by a wish."""
    request = TurnRequest(
        text=asked.wish, settings=asked.settings(), references=asked.references, request_id=asked.request_id
    )
    return await _turn(call, asked.conversation_id, request)


async def edit(call: Call, asked: EditArguments) -> CallToolResult:
    """Change a picture as a whole."""
    request = TurnRequest(
        text=asked.wish,
        images=_uploads(asked),
        settings=asked.settings(),
        editing=asked.handle,
        request_id=asked.request_id,
    )
    return await _turn(call, asked.conversation_id, request)


async def masked_edit(call: Call, asked: MaskedEditArguments) -> CallToolResult:
    """Change a part of a picture; outside of it not a pixel."""
    mask = asked.mask if asked.mask is not None else await _mask_of(call, asked)
    request = TurnRequest(
        text=asked.wish,
        images=_uploads(asked),
        mask=Mask(mask, asked.handle or _UPLOAD, asked.feather_px),
        settings=asked.settings(),
        request_id=asked.request_id,
    )
    return await _turn(call, asked.conversation_id, request)


async def describe(call: Call, asked: DescribeArguments) -> CallToolResult:
    """Have the text model look at a picture and answer in words."""
    conversation = await call.studio.conversations.get(asked.conversation_id, call.caller.owner)
    handle = conversation.picture(asked.handle).handle
    question = asked.question.strip() or "Describe what it shows."
    request = TurnRequest(
        text=f"Look at picture {handle} with view_image, then answer in words only, without a new picture: {question}",
        # With confirm, a picture that is planned all the same is not paid for.
        settings=TurnSettings(confirm=True, review="off"),
        references=(handle,),
        request_id=asked.request_id,
    )
    events = call.studio.run_turn(conversation.id, request, owner=call.caller.owner, key=call.caller.key)
    told = await follow(call, conversation.id, events)
    if told.plans:
        drop = call.studio.decide(
            conversation.id, told.turn_id, Decision(run=False), owner=call.caller.owner, key=call.caller.key
        )
        told.ending = (await follow(call, conversation.id, drop)).ending
        told.plans, told.words = (), told.words or [_ONLY_PAINTED]
    return await turn_result(call, conversation.id, told)


async def decide(call: Call, asked: DecideArguments) -> CallToolResult:
    """Run or drop what a turn waits with."""
    owner, key = call.caller.owner, call.caller.key
    await call.studio.conversations.get(asked.conversation_id, owner)
    decision = Decision(run=asked.run, edits=asked.edits)
    events = call.studio.decide(asked.conversation_id, asked.turn_id, decision, owner=owner, key=key)
    told = await follow(call, asked.conversation_id, events)
    told.turn_id = told.turn_id or asked.turn_id
    return await turn_result(call, asked.conversation_id, told)


async def _turn(call: Call, conversation_id: str | None, request: TurnRequest) -> CallToolResult:
    """Run a turn in the conversation, in a new one, or in the one that the very same request began."""
    place = conversation_id or await _begun(call, request.request_id)
    await call.studio.conversations.get(place, call.caller.owner)
    events = call.studio.run_turn(place, request, owner=call.caller.owner, key=call.caller.key)
    return await turn_result(call, place, await follow(call, place, events))


async def _begun(call: Call, request_id: str | None) -> str:
    # Clients of another door may count their requests alike.
    name = f"mcp:{request_id}" if request_id is not None else None
    return (await call.studio.conversations.create(call.caller.owner, name)).id


def _uploads(asked: TargetArguments) -> tuple[bytes, ...]:
    return (asked.picture,) if asked.picture is not None else ()


async def _mask_of(call: Call, asked: MaskedEditArguments) -> bytes:
    """Return the mask of a box, of the picture's own size."""
    assert asked.box is not None
    if asked.picture is not None:
        taken = await take_in_image(asked.picture, "Picture 1")
        size = (taken.width, taken.height)
    else:
        conversation = await call.studio.conversations.get(asked.conversation_id or "", call.caller.owner)
        image = conversation.picture(asked.handle or "").image
        size = (image.width or 1, image.height or 1)
    return await asyncio.to_thread(_drawn, asked.box, size)


def _drawn(box: Box, size: tuple[int, int]) -> bytes:
    """Return a PNG of this size that is white inside the box, which has at least one pixel each way."""
    width, height = size
    left, top = (min(round(at * side / 100), side - 1) for at, side in ((box.left, width), (box.top, height)))
    right = max(left + 1, round((box.left + box.width) * width / 100))
    lower = max(top + 1, round((box.top + box.height) * height / 100))
    mask = Image.new("L", size, 0)
    # Pillow draws the last pixel of a rectangle as well.
    ImageDraw.Draw(mask).rectangle((left, top, right - 1, lower - 1), fill=255)
    out = io.BytesIO()
    mask.save(out, "PNG")
    return out.getvalue()

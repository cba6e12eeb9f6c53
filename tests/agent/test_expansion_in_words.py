"""More around a picture, asked for in words: it grows, and stays itself to the pixel."""

from __future__ import annotations

import io

import pytest
from PIL import Image

from agent.errors import ErrorCode
from agent.events import PlanReady, TurnDone, TurnFailed
from agent.messages import ImageOrigin
from agent.pictures import Margins
from agent.settings import Settings
from agent.studio import Studio
from tests.support.gemini import on_gemini, paint
from tests.support.scenes import only, png, run
from tests.wire_server import GeminiServer


def pixels(data: bytes) -> Image.Image:
    with Image.open(io.BytesIO(data)) as image:
        return image.convert("RGB")


@pytest.mark.parametrize(
    ("text", "size", "corner"),
    [
        ("outpaint to 16:9", (854, 480), (107, 0)),
        ("扩展画面到16:9", (854, 480), (107, 0)),
        ("往左边扩一点", (800, 480), (160, 0)),
        ("show more around it", (960, 720), (160, 120)),
    ],
)
async def test_without_a_key_what_is_there_is_continued(
    settings: Settings, text: str, size: tuple[int, int], corner: tuple[int, int]
) -> None:
    async with Studio(settings) as studio:
        conversation = await studio.new_conversation()
        events = await run(studio, conversation.id, text, png(640, 480, "teal"))
        assert isinstance(events[-1], TurnDone)
        before, after = [await studio.picture(conversation.id, handle) for handle in ("#1", "#1b")]
    grown, (left, top) = pixels(after.data), corner
    assert grown.size == size
    assert grown.crop((left, top, left + 640, top + 480)).tobytes() == pixels(before.data).tobytes()
    assert after.picture.image.origin is ImageOrigin.EDITED
    assert after.picture.edit is not None
    assert after.picture.edit.kind == "expansion"


async def test_with_a_key_the_agent_is_told_how_far_the_picture_grows_and_grows_it_exactly(settings: Settings) -> None:
    with GeminiServer() as server:
        server.on_text(paint("the same teal wall goes on", action="edit_image", handles=["#1"]))
        async with Studio(on_gemini(settings, server.url)) as studio:
            conversation = await studio.new_conversation()
            events = await run(studio, conversation.id, "outpaint to 16:9", png(640, 480, "teal"), review="off")
            kept = await studio.conversation(conversation.id)
    assert server.violations == []
    assert kept.turns[0].margins == Margins(left=107, right=107)
    assert "made larger beyond its edges" in server.requests[0].last_text
    # Of a picture of one colour there is little to align by: the person is asked before it is paid for.
    [plan] = only(events, PlanReady).plans
    assert plan.notices == ("little_to_align_by",)


async def test_a_ratio_that_is_there_already_is_refused_before_anything_is_asked(settings: Settings) -> None:
    async with Studio(settings) as studio:
        conversation = await studio.new_conversation()
        events = await run(studio, conversation.id, "outpaint to 4:3", png(640, 480, "teal"))
    assert isinstance(events[-1], TurnFailed)
    assert events[-1].error.code is ErrorCode.EXPANSION_EMPTY

"""Whatever picture came in a paid answer is kept, however it is labelled and however many there are."""

from __future__ import annotations

import pytest

from agent.events import TurnDone
from agent.settings import Settings
from agent.studio import Studio
from tests.support.gemini import on_gemini, paint
from tests.support.scenes import run
from tests.support.waiting import until
from tests.wire_server import GeminiServer, PictureAnswer


@pytest.mark.parametrize(
    "answer",
    [
        PictureAnswer(64, 36, is_thought=True),
        PictureAnswer(64, 36, declared="application/octet-stream"),
        PictureAnswer(64, 36, declared=""),
        PictureAnswer(64, 36, mime="image/png", declared="image/jpeg"),
        PictureAnswer(64, 36, text_after="There it is."),
    ],
    ids=["labelled as a thought", "as bytes", "as nothing", "as another type", "words after it"],
)
async def test_the_only_picture_of_an_answer_is_the_result(settings: Settings, answer: PictureAnswer) -> None:
    with GeminiServer() as server:
        server.on_text(paint())
        server.on_image(answer)
        async with Studio(on_gemini(settings, server.url)) as studio:
            conversation = await studio.new_conversation()
            events = await run(studio, conversation.id, "a red fox")
            kept = await studio.conversation(conversation.id)
            shown = await studio.picture(conversation.id, "#1")
    assert isinstance(events[-1], TurnDone)
    assert [one.handle for one in kept.pictures] == ["#1"]
    assert shown.mime_type == answer.mime


async def test_all_pictures_of_an_answer_are_kept_and_each_stands_in_its_turn(settings: Settings) -> None:
    with GeminiServer() as server:
        server.on_text(paint())
        server.on_image(PictureAnswer(64, 36, count=3))
        async with Studio(on_gemini(settings, server.url)) as studio:
            conversation = await studio.new_conversation()
            await run(studio, conversation.id, "a red fox")

            async def shown() -> set[str]:
                [turn] = (await studio.conversation(conversation.id)).turns
                return {handle for one in turn.components for handle in getattr(one, "handles", ())}

            async def has_all() -> bool:
                return len(await shown()) == 3

            await until(has_all)
            kept = await studio.conversation(conversation.id)
            assert await shown() == {one.handle for one in kept.pictures}

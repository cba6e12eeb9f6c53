"""A picture painted again: the same request once more, beside the first; a variation differs in what it says."""

from __future__ import annotations

import re
from typing import Any

import pytest

from agent.settings import Settings
from agent.studio import Studio
from tests.support.gemini import SMALL, on_gemini, paint
from tests.support.scenes import png, run
from tests.support.turns import newest, send
from tests.wire_server import GeminiServer

DIFFERENCE = "Seen from above."


def sent(server: GeminiServer) -> list[Any]:
    """Return the bodies that the image model was sent."""
    return [request.body for request in server.requests if "image" in request.model or "banana" in request.model]


def prompt_of(body: Any) -> str:
    """Take the words out of a body and return them, the names of its pictures left out: sent anew they have others."""
    words = [part.pop("text") for one in body["contents"] for part in one["parts"] if "text" in part]
    return re.sub(r"#\d+[a-z]*", "#", "\n".join(words))


@pytest.mark.parametrize("difference", ["", DIFFERENCE])
@pytest.mark.parametrize("edits", [False, True], ids=["new", "edit"])
async def test_the_same_request_is_sent_once_more_and_the_picture_is_a_sibling(
    settings: Settings, difference: str, edits: bool
) -> None:
    with GeminiServer() as server:
        async with Studio(on_gemini(settings, server.url)) as studio:
            conversation = await studio.new_conversation()
            server.on_text(
                paint("a red fox", aspect_ratio="3:2", style="ukiyo-e", **({"handles": ["#1"]} if edits else {}))
            )
            server.on_image(SMALL, SMALL)
            await run(studio, conversation.id, "the fox of my photo", png(80, 60, "green"), png(60, 80, "blue"))
            first = (await studio.conversation(conversation.id)).pictures[-1]
            request = await studio.repeated(conversation.id, first.handle, difference=difference)
            assert request is not None
            await send(studio, conversation.id, request)
            assert await studio.repeated(conversation.id, first.handle) is not None, "it stays, and can be repeated"
            turn, kept = await newest(studio, conversation.id), await studio.conversation(conversation.id)
        assert server.violations == []
    before, after = sent(server)
    texts = [prompt_of(body) for body in (before, after)]
    assert before == after, "references, parameters and their order are equal, byte for byte"
    if difference:
        assert (DIFFERENCE in texts[1], DIFFERENCE in texts[0]) == (True, False)
    else:
        assert texts[0] == texts[1]
    second = kept.pictures[-1]
    assert [one.handle for one in kept.pictures] == ["#1", "#2", first.handle, second.handle]
    assert len(second.parents) == len(first.parents)
    assert first.handle not in second.parents, "the model was not shown the first"
    assert len([one for one in server.requests if "flash" in one.model and "image" not in one.model]) == 1
    assert second.receipt is not None
    assert turn.price_usd == second.receipt.price_usd, "the planner was not paid again"

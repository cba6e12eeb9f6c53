"""A conversation of two hundred turns with a hundred pictures: what is sent stays short, and memory stays small."""

from __future__ import annotations

import hashlib

import pytest

from agent import Settings, Studio, TurnState
from tests.support.children import StudioChild
from tests.support.gemini import KEY, on_gemini
from tests.wire_server import Answer, Call, GeminiServer, PictureAnswer, Text, WireRequest
from tests.wire_server.models import Kind

TURNS = 200

CHILD = """
import asyncio, hashlib, resource, sys
from pathlib import Path
from pydantic import SecretStr
from agent import Settings, Studio, TurnRequest

def resident_bytes():
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()

async def main(home, url, key, turns):
    async with Studio(Settings(home=Path(home), gemini_api_key=SecretStr(key), gemini_base_url=url)) as studio:
        conversation = await studio.conversations.create()
        for number in range(int(turns)):
            # By then everything is loaded that a turn uses.
            if number == 20:
                before_bytes = resident_bytes()
            wish = f"wish {number}: " + ("draw a fox" if number % 2 else "tell me of foxes")
            async for event in studio.run_turn(conversation.id, TurnRequest(text=wish)):
                pass
            assert event.type == "turn_done", event
            print(number, flush=True)
        kept = (await studio.conversations.get(conversation.id)).model_dump_json()
        print(conversation.id, hashlib.sha256(kept.encode()).hexdigest(), resident_bytes() - before_bytes)

asyncio.run(main(*sys.argv[1:]))
"""


def brain(request: WireRequest) -> Answer:
    if "draw" in request.last_text:
        return Call("generate_image", {"prompt": "a fox", "confidence": 0.9}, text_before="Here it comes.")
    return Text("A fox is red, and clever in every tale.", chunks=2)


# Two hundred turns take their time on a busy machine.
@pytest.mark.timeout(300)
async def test_two_hundred_turns_are_all_kept_and_only_the_newest_of_them_are_sent(settings: Settings) -> None:
    with GeminiServer(text=brain, image=lambda request: PictureAnswer()) as server:
        gemini = on_gemini(settings, server.url)
        with StudioChild(CHILD, str(gemini.home), server.url, KEY, str(TURNS)) as child:
            for number in range(TURNS):
                assert await child.line() == str(number)
            conversation_id, digest, growth_bytes = (await child.line()).split()
            assert await child.ended() == 0
        assert server.violations == []
        asked = [request for request in server.requests if request.kind is Kind.TEXT]
        assert sum(request.kind is Kind.IMAGE for request in server.requests) == TURNS / 2
    assert int(growth_bytes) < (200 << 20)
    assert max(len(request.contents) for request in asked) <= 50
    assert [picture for request in asked for picture in request.pictures] == []
    assert "wish 199" in asked[-1].text
    assert "wish 100" not in asked[-1].text
    async with Studio(gemini) as studio:
        kept = await studio.conversations.get(conversation_id)
        assert (await studio.picture(conversation_id, "#100")).data
    assert [turn.state for turn in kept.turns] == [TurnState.DONE] * TURNS
    assert [one.handle for one in kept.pictures] == [f"#{number}" for number in range(1, TURNS // 2 + 1)]
    assert hashlib.sha256(kept.model_dump_json().encode()).hexdigest() == digest

"""A masked edit cut off by the death of its process: paid once, nothing outside changed."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent import Settings, Studio, TurnState
from tests.support.children import StudioChild
from tests.support.gemini import KEY, on_gemini
from tests.support.masked_turns import changed, mask_over, painted_inside, pixels_of
from tests.support.masking_scenes import photo, rectangle, stored
from tests.support.turns import asked, at_rest, rows
from tests.support.waiting import until
from tests.wire_server import Answer, Call, GeminiServer, Text, WireRequest
from tests.wire_server.models import Kind

AREA = rectangle(260, 180, 400, 320)

CHILD = """
import asyncio, os, signal, sys
from pathlib import Path
from pydantic import SecretStr
from agent import Settings, Studio, TurnRequest
from agent.requests import Mask

async def main(home, url, key, photo, mask, moment):
    settings = Settings(home=Path(home), gemini_api_key=SecretStr(key), gemini_base_url=url)
    async with Studio(settings) as studio:
        conversation = await studio.conversations.create()
        print(conversation.id, flush=True)
        look = TurnRequest(text="Look.", images=[Path(photo)])
        edit = TurnRequest(text="a red cup", mask=Mask(Path(mask).read_bytes(), "#1"))
        for request in (look, edit):
            async for event in studio.run_turn(conversation.id, request):
                if moment == event.type:
                    os.kill(os.getpid(), signal.SIGKILL)
        await asyncio.sleep(60)

asyncio.run(main(*sys.argv[1:]))
"""


@pytest.fixture
def server() -> Iterator[GeminiServer]:
    with GeminiServer() as running:
        running.on_text(_talk)
        running.on_image(painted_inside())
        yield running


def _talk(request: WireRequest) -> Answer:
    if "painted a mask" in request.prompt:
        return Call("generate_image", {"prompt": "a red cup", "confidence": 0.9}, text_before="A cup.")
    return Text("I see.")


@pytest.mark.parametrize("moment", ["answered", "picture_ready"])
async def test_a_killed_edit_goes_on_with_the_same_plan_and_is_paid_once(
    server: GeminiServer, settings: Settings, tmp_path: Path, moment: str
) -> None:
    gemini = on_gemini(settings, server.url)
    photograph, mask = tmp_path / "photo.png", tmp_path / "mask.png"
    photograph.write_bytes(stored(photo()))
    mask.write_bytes(mask_over("#1", AREA).image)
    arguments = (str(gemini.home), server.url, KEY, str(photograph), str(mask), moment)
    with StudioChild(CHILD, *arguments) as child:
        conversation_id = await child.line()
        if moment == "answered":
            # It is being pasted then.
            statement = "SELECT state FROM calls WHERE name LIKE 'picture:%'"
            await until(lambda: rows(gemini.home / "aivista.db", statement) == [{"state": "done"}])
            child.kill()
        assert await child.ended() == -signal.SIGKILL
    async with Studio(gemini) as studio:
        conversation = await at_rest(studio, conversation_id)
        turn = conversation.turns[-1]
        before, after = await studio.picture(conversation_id, "#1"), await studio.picture(conversation_id, "#1b")
    assert asked(server, Kind.IMAGE) == 1
    assert server.violations == []
    assert [picture.handle for picture in conversation.pictures] == ["#1", "#1b"]
    edit = conversation.picture("#1b").edit
    assert edit is not None
    assert (edit.verdict, edit.changed_outside) == ("good", 0)
    assert (changed(pixels_of(before.data), pixels_of(after.data))[AREA == 0] == 0).all()
    assert turn.state is TurnState.DONE
    assert turn.mask is not None

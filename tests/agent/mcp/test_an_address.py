"""Tools of a real server of streamable HTTP on loopback, and which addresses are dialled at all."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pydantic import SecretStr

from agent import Settings, TurnDone
from tests.adapters.mcp import HttpServer
from tests.adapters.scripted import calls, says
from tests.mcp_server import desk_at_an_address
from tests.support.mcp_turns import meeting
from tests.support.scenes import words
from tests.support.tool_calls import call, results

KEY = "canary-55d0e2b7"


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with desk_at_an_address("--key", KEY) as url:
        yield url


def far(address: str, key: str = KEY, **fields: object) -> HttpServer:
    headers = {"Authorization": SecretStr(f"Bearer {key}")}
    return HttpServer.model_validate({"url": address, "headers": headers, "allow_local": True, **fields})


@pytest.mark.parametrize("is_in_one_piece", [False, True])
async def test_its_tools_are_called_and_an_answer_too_long_ends_nothing(
    settings: Settings, is_in_one_piece: bool
) -> None:
    one_piece = ("--json",) if is_in_one_piece else ()
    with desk_at_an_address(*one_piece, "--key", KEY) as address:
        async with meeting(settings, {"far": far(address, trusted=True)}) as met:
            lines = [calls(call("far_weigh", thing="egg")), calls(call("far_flood", megabytes=3))]
            events = await met.turn(*lines, calls(call("far_weigh", thing="stone")), says("Five."))
            answers = [one.content for asked in met.scene.provider.asked[-3:] for one in results(asked)]
            assert met.state("far").problem is None
    assert words(events) == "Five."
    assert '"grams": 3' in str(answers[0]["text"])
    assert "longer than 1 MB" in str(answers[1]["error"])
    assert '"grams": 5' in str(answers[2]["text"])


async def test_what_keeps_from_a_server_is_said_and_the_turn_goes_on(
    settings: Settings, address: str, caplog: pytest.LogCaptureFixture
) -> None:
    servers = {
        "locked": far(address, "canary-wrong-1"),
        "unreachable": far("http://127.0.0.1:9/mcp"),
        # 127.0.0.1, in a form that the file's own check takes for a name.
        "address_refused": HttpServer(url="http://2130706433/mcp"),
    }
    async with meeting(settings, dict(servers), is_awaited=False) as met:
        for problem in servers:
            await met.until_it_says(problem, problem)
        assert isinstance((await met.turn(says("Hello.")))[-1], TurnDone)
    assert "canary" not in caplog.text


async def test_a_public_studio_dials_no_address_of_its_own_machine(settings: Settings, address: str) -> None:
    async with meeting(settings, {"far": far(address)}, is_awaited=False, is_public=True) as met:
        assert met.state("far").problem == "not_when_public"

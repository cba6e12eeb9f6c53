"""Tools of a real server of streamable HTTP on loopback, and which addresses are dialled at all."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pydantic import SecretStr

from agent.events import TurnDone
from agent.settings import Settings
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


async def weigh_flood_weigh(settings: Settings, address: str) -> None:
    """Have a turn call a tool, then one that answers too much, then the first one again."""
    async with meeting(settings, {"far": far(address, trusted=True)}) as met:
        lines = [calls(call("far_weigh", thing="egg")), calls(call("far_flood", megabytes=3))]
        events = await met.turn(*lines, calls(call("far_weigh", thing="stone")), says("Five."))
        answers = [one.content for asked in met.scene.provider.asked[-3:] for one in results(asked)]
        assert met.state("far").problem is None
    assert words(events) == "Five."
    assert '"grams": 3' in str(answers[0]["text"])
    assert "longer than 1 MB" in str(answers[1]["error"])
    assert '"grams": 5' in str(answers[2]["text"])


async def test_its_tools_are_called_and_an_event_too_long_ends_nothing(settings: Settings, address: str) -> None:
    await weigh_flood_weigh(settings, address)


async def test_an_answer_in_one_piece_is_limited_as_well(settings: Settings) -> None:
    with desk_at_an_address("--json", "--key", KEY) as address:
        await weigh_flood_weigh(settings, address)


async def test_with_a_wrong_key_it_is_said_to_be_locked_and_the_turn_goes_on(
    settings: Settings, address: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with meeting(settings, {"far": far(address, "canary-wrong-1")}, is_awaited=False) as met:
        await met.until_it_says("far", "locked")
        assert isinstance((await met.turn(says("Hello.")))[-1], TurnDone)
    assert "canary" not in caplog.text


async def test_a_server_that_is_gone_is_unreachable_and_the_turn_goes_on(settings: Settings) -> None:
    async with meeting(settings, {"far": far("http://127.0.0.1:9/mcp")}, is_awaited=False) as met:
        await met.until_it_says("far", "unreachable")
        assert isinstance((await met.turn(says("Hello.")))[-1], TurnDone)


async def test_a_public_studio_dials_no_address_of_its_own_machine(settings: Settings, address: str) -> None:
    async with meeting(settings, {"far": far(address)}, is_awaited=False, is_public=True) as met:
        assert met.state("far").problem == "not_when_public"


async def test_this_machine_in_another_spelling_is_refused_by_the_guard(settings: Settings) -> None:
    # 127.0.0.1, in a form that the file's own check takes for a name.
    server = HttpServer(url="http://2130706433/mcp")
    async with meeting(settings, {"far": server}, is_awaited=False) as met:
        await met.until_it_says("far", "address_refused")

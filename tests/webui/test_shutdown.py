"""A real studio that is told to end in the middle of a turn, and the one that is started after it."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from agent import Settings, Studio, TurnDone, TurnState
from tests.page import PageProcess
from tests.support.api import Told, begun, told
from tests.support.gemini import KEY, SMALL, on_gemini, paint
from tests.support.turns import asked, at_rest
from tests.support.waiting import until
from tests.wire_server import GeminiServer, Hold
from tests.wire_server.models import Kind


@pytest.fixture
def server() -> Iterator[GeminiServer]:
    with GeminiServer() as running:
        running.on_text(lambda _: paint())
        running.on_image(Hold(SMALL))
        yield running


def page_on(server: GeminiServer, home: Path, **more: str) -> PageProcess:
    chosen = {"GEMINI_API_KEY": KEY, "GOOGLE_GEMINI_BASE_URL": server.url, "AIVISTA_SHUTDOWN_GRACE_S": "60", **more}
    return PageProcess(home=home, environment=chosen)


@asynccontextmanager
async def painting(client: httpx.AsyncClient, server: GeminiServer) -> AsyncIterator[tuple[str, AsyncIterator[Told]]]:
    """Have a turn wait for its picture; give its conversation and its events."""
    conversation = await begun(client)
    body = {"text": "a fox", "settings": {"review": "off"}}
    async with client.stream("POST", f"/api/v1/conversations/{conversation}/turns", json=body) as answer:
        events = told(answer.aiter_lines())
        await asyncio.to_thread(server.wait_for_held)
        yield conversation, events


async def not_ready(client: httpx.AsyncClient) -> Any:
    """Return what a studio says that is told to end, as soon as it knows."""

    async def refusal() -> Any:
        answer = await client.get("/readyz")
        return None if answer.status_code == 200 else answer.json()

    return await until(refusal)


async def test_a_turn_that_ends_within_the_grace_has_its_picture(server: GeminiServer, tmp_path: Path) -> None:
    with page_on(server, tmp_path) as page:
        async with httpx.AsyncClient(base_url=page.url, timeout=60) as client:
            assert (await client.get("/readyz")).json() == {"status": "ready"}
            async with painting(client, server) as (conversation, events):
                page.tell(signal.SIGTERM)
                assert await not_ready(client) == {"status": "not ready", "not_ready": ["turns"]}
                assert (await client.get("/healthz")).status_code == 200
                other = await begun(client)
                refused = await client.post(f"/api/v1/conversations/{other}/turns", json={"text": "a dog"})
                assert (refused.status_code, refused.json()["code"]) == (503, "studio_closing")
                assert refused.json()["can_retry"]
                server.release()
                last = [event async for event in events][-1]
                assert (last.event, last.data["state"]) == ("done", "done")
        assert page.ended() == 0
        assert "Traceback" not in page.errors
    async with Studio(on_gemini(Settings(home=tmp_path), server.url)) as studio:
        assert [one.handle for one in (await studio.conversations.get(conversation)).pictures] == ["#1"]
        assert (await studio.picture(conversation, "#1")).receipt is not None
        assert (await studio.conversations.get(other)).turns == ()


async def test_a_second_signal_ends_the_wait_and_the_next_start_is_true(server: GeminiServer, tmp_path: Path) -> None:
    with page_on(server, tmp_path) as page:
        client = httpx.AsyncClient(base_url=page.url, timeout=60)
        async with client, painting(client, server) as (conversation, events):
            page.tell(signal.SIGINT)
            await not_ready(client)
            page.tell(signal.SIGINT)
            last = [event async for event in events][-1]
            assert (last.event, last.data["state"]) == ("done", "interrupted")
        assert page.ended() == 0
        assert "Traceback" not in page.errors
    server.clear()
    server.on_image(SMALL)
    async with Studio(on_gemini(Settings(home=tmp_path), server.url)) as studio:
        kept = await at_rest(studio, conversation)
        assert kept.turns[0].state is TurnState.FAILED
        assert "call_unknown" in kept.turns[0].model_dump_json()
        assert asked(server, Kind.IMAGE) == 0
        again = [event async for event in studio.retry(conversation, kept.turns[0].id)]
        assert isinstance(again[-1], TurnDone)
        assert asked(server, Kind.IMAGE) == 1


async def test_a_turn_that_does_not_end_within_the_grace_is_on_record(server: GeminiServer, tmp_path: Path) -> None:
    # The picture never comes, and the studio would wait for it longer than the test.
    limits = {"AIVISTA_SHUTDOWN_GRACE_S": "0.5", "AIVISTA_IMAGE_TIMEOUT_S": "600"}
    with page_on(server, tmp_path, **limits) as page:
        client = httpx.AsyncClient(base_url=page.url, timeout=60)
        async with client, painting(client, server) as (conversation, _):
            assert await asyncio.to_thread(page.end, signal.SIGINT) == 0
    server.release()
    async with Studio(Settings(home=tmp_path)) as studio:
        assert [turn.text for turn in (await studio.conversations.get(conversation)).turns] == ["a fox"]

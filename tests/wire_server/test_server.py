"""The server as a test uses it: brains, faults, holding, waiting, and clients that leave."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx2
import pytest
from google import genai
from google.genai import types

from tests.support.waiting import PATIENCE_S
from tests.wire_server import (
    Answer,
    Call,
    Delay,
    DelayBetweenChunks,
    Finish,
    GeminiServer,
    Hold,
    PictureAnswer,
    Text,
    WireRequest,
)
from tests.wire_server.raw import BANANA, FLASH, Raw
from tests.wire_server.steps import Asked, Piece, Step

HI: dict[str, Any] = {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}


@pytest.fixture
async def aio(server: GeminiServer) -> AsyncIterator[genai.client.AsyncClient]:
    options = types.HttpOptions(
        base_url=server.url,
        api_version="v1beta",
        timeout=20_000,
        async_client_args={"transport": httpx2.AsyncHTTPTransport()},
    )
    with genai.Client(api_key="a-key", http_options=options) as client:
        async with client.aio as asynchronous:
            yield asynchronous


def planner(request: WireRequest) -> Answer:
    """Draw when spoken to, and say so when it is drawn."""
    if request.function_responses:
        return Text(f"Drawn: {request.function_responses[0]['response']['handle']}.")
    return Call(request.function_names[0], {"prompt": request.last_text})


def test_a_brain_answers_a_whole_turn(server: GeminiServer, sdk: genai.Client) -> None:
    server.on_text(planner)
    tool = types.Tool(function_declarations=[types.FunctionDeclaration(name="draw", description="Draws.")])
    config = types.GenerateContentConfig(tools=[tool])
    first = sdk.models.generate_content(model=FLASH, contents="a fox", config=config)
    (part,) = first.parts or []
    assert part.function_call
    assert part.function_call.args == {"prompt": "a fox"}
    contents = [
        types.Content(role="user", parts=[types.Part(text="a fox")]),
        types.Content(role="model", parts=[part]),
        types.Content(role="user", parts=[types.Part.from_function_response(name="draw", response={"handle": "#1"})]),
    ]
    assert sdk.models.generate_content(model=FLASH, contents=contents, config=config).text == "Drawn: #1."
    assert server.violations == []


def test_the_queue_goes_before_the_brain_and_each_kind_has_its_own(server: GeminiServer, raw: Raw) -> None:
    server.on_text(lambda request: Text("from the brain"), Text("from the queue"))
    server.on_image(Finish("NO_IMAGE"))
    assert [raw.parts(HI)[0]["text"] for _ in range(2)] == ["from the queue", "from the brain"]
    assert server.remaining == 1


def test_a_brain_may_leave_an_answer_to_the_default(raw: Raw, server: GeminiServer) -> None:
    server.on_text(lambda request: None)
    assert raw.parts(HI)[0]["text"] == "Hello."


def test_a_brain_sees_the_pictures_sent(server: GeminiServer, sdk: genai.Client) -> None:
    server.on_image(PictureAnswer(40, 30, mime="image/png"))
    paint = types.GenerateContentConfig(response_modalities=["IMAGE"])
    (part,) = sdk.models.generate_content(model=BANANA, contents="a fox", config=paint).parts or []
    assert part.inline_data
    data = part.inline_data.data or b""
    server.on_text(lambda request: Text(f"{len(request.pictures[0])} bytes"))
    picture = types.Part.from_bytes(data=data, mime_type="image/png")
    question = types.Content(role="user", parts=[types.Part(text="How big?"), picture])
    assert sdk.models.generate_content(model=FLASH, contents=question).text == f"{len(data)} bytes"


def test_a_failing_brain_is_a_500_and_fails_the_test() -> None:
    def failing(request: WireRequest) -> Answer:
        raise LookupError("no idea")

    with pytest.raises(LookupError, match="no idea"), GeminiServer(text=failing) as server:
        _assert_answers_500(server)


def _assert_answers_500(server: GeminiServer) -> None:
    url = f"{server.url}/v1beta/models/{FLASH}:generateContent"
    response = httpx2.post(url, json=HI, headers={"x-goog-api-key": "a-key"}, trust_env=False)
    assert response.status_code == 500
    assert server.violations == []


class HalfAnAnswer(Answer):
    """Says one word and fails."""

    def steps(self, asked: Asked) -> Iterator[Step]:
        yield Piece(({"text": "Well"},))
        raise LookupError("lost for words")


def test_an_answer_that_fails_halfway_breaks_off_and_fails_the_test(raw: Raw) -> None:
    with pytest.raises(LookupError, match="lost for words"), GeminiServer() as server:
        _assert_breaks_off(server, raw)


def _assert_breaks_off(server: GeminiServer, raw: Raw) -> None:
    server.on_text(HalfAnAnswer())
    url = f"{server.url}/v1beta/models/{FLASH}:streamGenerateContent?alt=sse"
    with pytest.raises(httpx2.RemoteProtocolError):
        raw.http.post(url, json=HI)


def test_a_delayed_answer_is_whole(server: GeminiServer, raw: Raw) -> None:
    server.on_text(Delay(0.01, DelayBetweenChunks(0.01, Text("one two three", chunks=3))))
    assert raw.parts(HI)[0]["text"] == "one two three"


def test_a_held_answer_waits_for_its_release(server: GeminiServer, raw: Raw) -> None:
    server.on_text(Hold(Text("late")))
    with ThreadPoolExecutor(1) as pool:
        coming = pool.submit(raw.parts, HI)
        server.wait_for_held()
        assert not coming.done()
        server.release()
        assert coming.result(10)[0]["text"] == "late"


def test_a_release_that_comes_before_the_request_lets_that_one_answer_pass(server: GeminiServer, raw: Raw) -> None:
    server.on_text(Hold(Text("early")), Hold(Text("late")))
    server.release()
    assert raw.parts(HI)[0]["text"] == "early"
    with ThreadPoolExecutor(1) as pool:
        coming = pool.submit(raw.parts, HI)
        server.wait_for_held()
        server.release()
        assert coming.result(10)[0]["text"] == "late"


def test_a_client_that_leaves_in_the_middle_is_noticed(server: GeminiServer, raw: Raw) -> None:
    server.on_text(Hold(Text("a long story", chunks=5), after_chunks=2))
    url = f"{server.url}/v1beta/models/{FLASH}:streamGenerateContent?alt=sse"
    with raw.http.stream("POST", url, json=HI):
        server.wait_for_held()
    left = server.wait_for_disconnect()
    assert (left.model, left.method, left.chunks_sent) == (FLASH, "streamGenerateContent", 2)
    assert server.violations == []


async def test_a_cancelled_stream_of_the_sdk_is_noticed(server: GeminiServer, aio: genai.client.AsyncClient) -> None:
    server.on_text(Hold(Text("a long story", chunks=5), after_chunks=2))

    async def read() -> None:
        async for _ in await aio.models.generate_content_stream(model=FLASH, contents="tell me"):
            pass

    task = asyncio.create_task(read())
    await asyncio.to_thread(server.wait_for_held)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    left = await asyncio.to_thread(server.wait_for_disconnect)
    assert left.chunks_sent == 2


async def test_a_cancelled_call_is_noticed_before_its_first_chunk(
    server: GeminiServer, aio: genai.client.AsyncClient
) -> None:
    server.on_image(Hold(PictureAnswer()))
    paint = types.GenerateContentConfig(response_modalities=["IMAGE"])
    task = asyncio.create_task(aio.models.generate_content(model=BANANA, contents="a fox", config=paint))
    await asyncio.to_thread(server.wait_for_held)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    left = await asyncio.to_thread(server.wait_for_disconnect)
    assert (left.model, left.chunks_sent) == (BANANA, 0)


async def test_many_clients_are_served_at_once(server: GeminiServer, aio: genai.client.AsyncClient) -> None:
    server.on_text(*[Hold(Text(f"answer {number}")) for number in range(20)])
    asks = [asyncio.create_task(aio.models.generate_content(model=FLASH, contents="hi")) for _ in range(20)]
    await asyncio.to_thread(server.wait_for_held, 20)
    server.release()
    answers = await asyncio.gather(*asks)
    assert {answer.text for answer in answers} == {f"answer {number}" for number in range(20)}
    assert server.disconnects == []


def test_waiting_for_what_never_comes_ends() -> None:
    with GeminiServer() as server, pytest.raises(TimeoutError, match="still not so"):
        server.wait_for_disconnect(timeout_s=0.01)


def test_clearing_forgets_the_script_and_the_records(server: GeminiServer, raw: Raw) -> None:
    server.on_text(Text("one"), Text("two"))
    raw.post({"contents": []})
    server.clear()
    assert (server.requests, server.violations, server.remaining) == ([], [], 0)
    assert raw.parts(HI)[0]["text"] == "Hello."


def test_the_server_ends_with_an_answer_under_way() -> None:
    with ThreadPoolExecutor(1) as pool:
        with GeminiServer() as server:
            server.on_text(Hold(Text("never")))
            url = f"{server.url}/v1beta/models/{FLASH}:generateContent"
            coming = pool.submit(httpx2.post, url, json=HI, headers={"x-goog-api-key": "k"}, trust_env=False)
            server.wait_for_held()
        assert isinstance(coming.exception(PATIENCE_S), httpx2.TransportError)
        assert server.disconnects == []


def test_a_port_in_use_is_an_error_at_once(server: GeminiServer) -> None:
    port = int(server.url.rpartition(":")[2])
    with pytest.raises(OSError, match="in use"), GeminiServer(port=port):
        pass

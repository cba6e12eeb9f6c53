"""The embedder against a strict server, and against one that answers as it is told: real HTTP, the real SDK."""

from __future__ import annotations

import asyncio
import json
import math
import socket
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing, asynccontextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from agent.errors import AivistaError, ErrorCode, KeyProblem, NetworkFailure, ProviderFailure, RateLimited
from agent.messages import TokenUsage
from tests.adapters.catalogue import ModelEntry, ModelRole, load_catalogue
from tests.adapters.providers import GeminiConnection, GeminiEmbedder
from tests.support.waiting import join
from tests.wire_server import GeminiServer, error_body, quota_body

KEY = "AIzaSyTestKeyThatNobodyOwns0123456789"
MODEL = load_catalogue().model(ModelRole.EMBEDDING, "gemini")


class CannedServer(ThreadingHTTPServer):
    """Answers every request with the same status and body; `hold` keeps it silent until it is set."""

    def __init__(self, status: int, body: bytes) -> None:
        super().__init__(("127.0.0.1", 0), _CannedAnswer)
        self.status, self.body = status, body
        self.asked, self.hold = threading.Event(), threading.Event()
        self.hold.set()
        self.count = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/"

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing of clients that left."""


class _CannedAnswer(BaseHTTPRequestHandler):
    server: CannedServer

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.server.count += 1
        self.server.asked.set()
        self.server.hold.wait(30)
        self.send_response(self.server.status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(self.server.body)))
        self.end_headers()
        self.wfile.write(self.server.body)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@pytest.fixture
def server() -> Iterator[GeminiServer]:
    with GeminiServer() as running:
        yield running


@asynccontextmanager
async def connected(
    url: str, key: str = KEY, model: ModelEntry = MODEL, **settings: Any
) -> AsyncIterator[GeminiEmbedder]:
    async with aclosing(GeminiConnection(key, base_url=url)) as connection:
        yield GeminiEmbedder(connection, model, **settings)


@pytest.fixture
async def embedder(server: GeminiServer) -> AsyncIterator[GeminiEmbedder]:
    async with connected(server.url) as made:
        yield made


@pytest.fixture
def canned() -> Iterator[CannedServer]:
    with CannedServer(200, b"{}") as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        yield running
        running.hold.set()
        running.shutdown()
        join(thread)


async def test_each_text_becomes_one_vector_of_length_1_in_order(embedder: GeminiEmbedder) -> None:
    fox, crow, again = (await embedder.embed(["a red fox", "三只乌鸦", "a red fox"])).vectors
    assert [len(vector) for vector in (fox, crow, again)] == [embedder.dimension] * 3
    assert all(math.hypot(*vector) == pytest.approx(1.0) for vector in (fox, crow, again))
    assert fox == again
    assert sum(one * other for one, other in zip(fox, crow, strict=True)) < 0.9


async def test_the_model_is_the_catalogues_and_is_told(server: GeminiServer, embedder: GeminiEmbedder) -> None:
    await embedder.embed(["a fox"])
    [request] = server.requests
    assert (request.model, request.method) == ("gemini-embedding-2", "batchEmbedContents")
    assert (embedder.model_id, embedder.dimension) == (MODEL.id, 768)


async def test_many_texts_go_in_hundreds_and_come_back_in_order(server: GeminiServer, embedder: GeminiEmbedder) -> None:
    texts = [f"text number {number}" for number in range(205)]
    vectors = (await embedder.embed(texts)).vectors
    assert [len(request.normal["requests"]) for request in server.requests] == [100, 100, 5]
    [last] = (await embedder.embed(texts[-1:])).vectors
    assert vectors[-1] == last
    assert len({tuple(vector) for vector in vectors}) == 205


async def test_the_tokens_are_those_of_every_answer(embedder: GeminiEmbedder) -> None:
    answer = await embedder.embed(["a fox"] * 101)
    assert answer.usage == TokenUsage(prompt_tokens=2 * 101)


async def test_an_answer_without_tokens_counts_none(canned: CannedServer) -> None:
    canned.body = json.dumps({"embeddings": [{"values": [1.0] * 768}]}).encode()
    async with connected(canned.url) as embedder:
        assert (await embedder.embed(["a fox"])).usage == TokenUsage()


async def test_no_text_asks_nobody(server: GeminiServer, embedder: GeminiEmbedder) -> None:
    assert (await embedder.embed([])).vectors == []
    assert server.requests == []


@pytest.mark.parametrize(
    ("key", "code"), [("", ErrorCode.KEY_MISSING), ("schlüssel", ErrorCode.KEY_INVALID), (KEY, ErrorCode.KEY_INVALID)]
)
async def test_a_bad_key_is_told_as_by_the_other_models(server: GeminiServer, key: str, code: ErrorCode) -> None:
    server.reject_key(KEY)
    async with connected(server.url, key) as embedder:
        with pytest.raises(KeyProblem) as caught:
            await embedder.embed(["a fox"])
    assert caught.value.code is code


async def test_an_unknown_model_names_the_variable_to_change(server: GeminiServer) -> None:
    unknown = MODEL.model_copy(update={"id": "gemini-embedding-99"})
    async with connected(server.url, model=unknown) as embedder:
        with pytest.raises(ProviderFailure, match="AIVISTA_MODEL_EMBEDDING") as caught:
            await embedder.embed(["a fox"])
    assert caught.value.code is ErrorCode.MODEL_NOT_FOUND


@pytest.mark.parametrize(
    ("status", "body", "kind", "code"),
    [
        (429, quota_body("minute", retry_s=7), RateLimited, ErrorCode.RATE_LIMITED),
        (429, quota_body("day"), KeyProblem, ErrorCode.QUOTA_EXHAUSTED),
        (503, error_body(503, "busy"), ProviderFailure, ErrorCode.OVERLOADED),
        (400, error_body(400, f"bad thing with {KEY}"), ProviderFailure, ErrorCode.REQUEST_REJECTED),
        (200, b"<html>", ProviderFailure, ErrorCode.ANSWER_UNREADABLE),
        (200, {}, ProviderFailure, ErrorCode.EMPTY_ANSWER),
        (200, {"embeddings": [{"values": [1.0] * 768}]}, ProviderFailure, ErrorCode.EMPTY_ANSWER),
        (200, {"embeddings": [{"values": [1.0] * 5}] * 2}, ProviderFailure, ErrorCode.EMPTY_ANSWER),
        (200, {"embeddings": [{"values": [0.0] * 768}] * 2}, ProviderFailure, ErrorCode.EMPTY_ANSWER),
        (200, {"embeddings": [{}] * 2}, ProviderFailure, ErrorCode.EMPTY_ANSWER),
    ],
)
async def test_each_failure_has_its_own_sentence_without_the_key_and_is_not_tried_twice(
    canned: CannedServer, status: int, body: dict[str, Any] | bytes, kind: type[AivistaError], code: ErrorCode
) -> None:
    canned.status, canned.body = status, body if isinstance(body, bytes) else json.dumps(body).encode()
    async with connected(canned.url) as embedder:
        with pytest.raises(kind) as caught:
            await embedder.embed(["a fox", "a crow"])
    assert caught.value.code is code
    assert KEY not in caught.value.info.model_dump_json()
    assert canned.count == 1


async def test_a_server_that_is_not_there_is_a_failure_of_the_network() -> None:
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{reserved.getsockname()[1]}/"
        async with connected(address) as embedder:
            with pytest.raises(NetworkFailure) as caught:
                await embedder.embed(["a fox"])
    assert caught.value.code is ErrorCode.CONNECTION_FAILED


async def test_a_silent_server_is_given_up_after_the_timeout(canned: CannedServer) -> None:
    canned.hold.clear()
    async with connected(canned.url, timeout_s=0.05) as embedder:
        with pytest.raises(ProviderFailure) as caught:
            await embedder.embed(["a fox"])
    assert caught.value.code is ErrorCode.PROVIDER_TIMEOUT


async def test_a_cancelled_call_ends_at_once(canned: CannedServer) -> None:
    canned.hold.clear()
    async with connected(canned.url) as embedder:
        call = asyncio.create_task(embedder.embed(["a fox"]))
        await asyncio.to_thread(canned.asked.wait, 30)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call

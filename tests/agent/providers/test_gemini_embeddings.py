"""The embedder against a strict server, and against one that answers as it is told: real HTTP, the real SDK."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import Any

import pytest

from agent import AivistaError, ErrorCode, KeyProblem, NetworkFailure, ProviderFailure, RateLimited, TokenUsage
from tests.adapters.catalogue import ModelEntry, ModelRole, load_catalogue
from tests.adapters.providers import GeminiConnection, GeminiEmbedder
from tests.support import broken_servers as broken
from tests.support.cases import each_case
from tests.support.desks import GEMINI_KEY
from tests.wire_server import GeminiServer, error_body, quota_body

MODEL = load_catalogue().model(ModelRole.EMBEDDING, "gemini")


@asynccontextmanager
async def connected(
    url: str, key: str = GEMINI_KEY, model: ModelEntry = MODEL, **settings: Any
) -> AsyncIterator[GeminiEmbedder]:
    async with aclosing(GeminiConnection(key, base_url=url)) as connection:
        yield GeminiEmbedder(connection, model, **settings)


@pytest.fixture
async def embedder(server: GeminiServer) -> AsyncIterator[GeminiEmbedder]:
    async with connected(server.url) as made:
        yield made


async def failure(kind: type[AivistaError], url: str, *texts: str, **settings: Any) -> AivistaError:
    """Return what embedding at this address ends with."""
    async with connected(url, **settings) as embedder:
        with pytest.raises(kind) as caught:
            await embedder.embed(texts or ("a fox",))
    assert GEMINI_KEY not in caught.value.info.model_dump_json()
    return caught.value


async def test_each_text_becomes_one_vector_of_length_1_in_order(
    server: GeminiServer, embedder: GeminiEmbedder
) -> None:
    assert (await embedder.embed([])).vectors == []
    assert server.requests == []
    fox, crow, again = (await embedder.embed(["a red fox", "三只乌鸦", "a red fox"])).vectors
    [request] = server.requests
    assert (request.model, request.method) == ("gemini-embedding-2", "batchEmbedContents")
    assert (embedder.model_id, embedder.dimension) == (MODEL.id, 768)
    assert [len(vector) for vector in (fox, crow, again)] == [768] * 3
    assert all(math.hypot(*vector) == pytest.approx(1.0) for vector in (fox, crow, again))
    assert fox == again
    assert sum(one * other for one, other in zip(fox, crow, strict=True)) < 0.9


async def test_many_texts_go_in_hundreds_and_come_back_in_order_and_are_counted(
    server: GeminiServer, embedder: GeminiEmbedder
) -> None:
    texts = [f"text number {number}" for number in range(205)]
    vectors = (await embedder.embed(texts)).vectors
    assert [len(request.normal["requests"]) for request in server.requests] == [100, 100, 5]
    [last] = (await embedder.embed(texts[-1:])).vectors
    assert vectors[-1] == last
    assert len({tuple(vector) for vector in vectors}) == 205
    assert (await embedder.embed(["a fox"] * 101)).usage == TokenUsage(prompt_tokens=2 * 101)


@each_case(
    ("key", "code"),
    [("", ErrorCode.KEY_MISSING), ("schlüssel", ErrorCode.KEY_INVALID), (GEMINI_KEY, ErrorCode.KEY_INVALID)],
)
async def test_a_bad_key_is_told_as_by_the_other_models(server: GeminiServer, key: str, code: ErrorCode) -> None:
    server.reject_key(GEMINI_KEY)
    assert (await failure(KeyProblem, server.url, key=key)).code is code


async def test_an_unknown_model_names_the_variable_to_change(server: GeminiServer) -> None:
    error = await failure(ProviderFailure, server.url, model=MODEL.model_copy(update={"id": "gemini-embedding-99"}))
    assert error.code is ErrorCode.MODEL_NOT_FOUND
    assert "AIVISTA_MODEL_EMBEDDING" in str(error)


def vectors(*values: list[float]) -> dict[str, Any]:
    return {"embeddings": [{"values": one} for one in values]}


def canned(status: int, body: dict[str, Any] | bytes) -> bytes:
    """Return a whole HTTP response."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    head = f"HTTP/1.1 {status} Some\r\ncontent-type: application/json\r\ncontent-length: {len(data)}\r\n\r\n"
    return head.encode() + data


async def test_an_answer_without_tokens_counts_none() -> None:
    with broken.speaking(canned(200, vectors([1.0] * 768))) as url:
        async with connected(url) as embedder:
            assert (await embedder.embed(["a fox"])).usage == TokenUsage()


@each_case(
    ("status", "body", "kind", "code"),
    [
        (429, quota_body("minute", retry_s=7), RateLimited, ErrorCode.RATE_LIMITED),
        (429, quota_body("day"), KeyProblem, ErrorCode.QUOTA_EXHAUSTED),
        (503, error_body(503, "busy"), ProviderFailure, ErrorCode.OVERLOADED),
        (400, error_body(400, f"bad thing with {GEMINI_KEY}"), ProviderFailure, ErrorCode.REQUEST_REJECTED),
        (200, b"<html>", ProviderFailure, ErrorCode.ANSWER_UNREADABLE),
        (200, {}, ProviderFailure, ErrorCode.EMPTY_ANSWER),
        (200, vectors([1.0] * 768), ProviderFailure, ErrorCode.EMPTY_ANSWER),
        (200, vectors(*[[1.0] * 5] * 2), ProviderFailure, ErrorCode.EMPTY_ANSWER),
        (200, vectors(*[[0.0] * 768] * 2), ProviderFailure, ErrorCode.EMPTY_ANSWER),
        (200, {"embeddings": [{}] * 2}, ProviderFailure, ErrorCode.EMPTY_ANSWER),
    ],
)
async def test_each_failure_has_its_own_sentence_without_the_key_and_is_not_tried_twice(
    status: int, body: dict[str, Any] | bytes, kind: type[AivistaError], code: ErrorCode
) -> None:
    with broken.speaking(canned(status, body), once=True) as url:
        assert (await failure(kind, url, "a fox", "a crow")).code is code


async def test_a_server_that_is_not_there_is_a_failure_of_the_network() -> None:
    with broken.refusing() as url:
        assert (await failure(NetworkFailure, url)).code is ErrorCode.CONNECTION_FAILED


async def test_a_silent_server_is_given_up_after_the_timeout_and_a_cancelled_call_ends_at_once() -> None:
    with broken.silent() as (url, asked):
        assert (await failure(ProviderFailure, url, timeout_s=0.05)).code is ErrorCode.PROVIDER_TIMEOUT
        asked.clear()
        async with connected(url) as embedder:
            call = asyncio.create_task(embedder.embed(["a fox"]))
            await asyncio.to_thread(asked.wait, 30)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call

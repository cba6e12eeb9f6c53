"""A meter: every call of its model is in the book, whatever way it ends, and none is made that must not be."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from agent.errors import ErrorCode, NetworkFailure, ProviderFailure, RequestRefused
from agent.messages import TokenUsage
from agent.providers.base import Embedding
from agent.providers.catalogue import ModelEntry, ModelRole, load_catalogue
from agent.workflow.hearing import Answer
from agent.workflow.metering import Meter, embedding_model
from agent.workflow.retrying import Breaker

CATALOGUE = load_catalogue()
MODEL = CATALOGUE.model(ModelRole.EMBEDDING, "gemini")


@dataclass
class Book:
    """Notes what it hears; `refusal` is why no call may be made."""

    heard: list[str] = field(default_factory=list)
    refusal: RequestRefused | None = None

    async def send(self, model: ModelEntry) -> str:
        if self.refusal is not None:
            raise self.refusal
        self.heard.append("send")
        return "call"

    async def end(self, name: str, model: ModelEntry, answer: Answer) -> None:
        self.heard.append(f"{name} {answer.error.code if answer.error else answer.usage.prompt_tokens}")

    def cancel(self, name: str) -> None:
        self.heard.append(f"{name} cancelled")


@dataclass
class Model:
    """An embedding model of two numbers a vector."""

    failure: NetworkFailure | None = None
    answers: asyncio.Event | None = None
    asked: asyncio.Event = field(default_factory=asyncio.Event)
    model_id: str = MODEL.id
    dimension: int = 2
    count: int = 0

    async def embed(self, texts: Sequence[str]) -> Embedding:
        self.count += 1
        self.asked.set()
        if self.answers is not None:
            await self.answers.wait()
        if self.failure is not None:
            raise self.failure
        return Embedding([[1.0, 0.0] for _ in texts], TokenUsage(prompt_tokens=7))


async def test_a_call_is_in_the_book_before_it_leaves_and_with_what_it_used() -> None:
    book = Book()
    meter = Meter(MODEL, Model(), Breaker(), book)
    assert await meter.embed(["a fox"]) == [[1.0, 0.0]]
    assert await meter.embed(["a fox", "an owl"]) == [[1.0, 0.0]] * 2
    assert book.heard == ["send", "call 7", "send", "call 7"]
    assert (meter.usage.prompt_tokens, meter.model_id, meter.dimension) == (14, MODEL.id, 2)


async def test_a_model_that_fails_again_and_again_is_left_alone() -> None:
    book, model = Book(), Model(NetworkFailure(ErrorCode.CONNECTION_FAILED))
    meter = Meter(MODEL, model, Breaker(limit=2), book)
    for _ in range(2):
        with pytest.raises(NetworkFailure):
            await meter.embed(["a fox"])
    with pytest.raises(ProviderFailure) as left_alone:
        await meter.embed(["a fox"])
    assert left_alone.value.code is ErrorCode.MODEL_PAUSED
    assert book.heard == ["send", "call connection_failed"] * 2
    assert model.count == 2


async def test_what_the_book_refuses_is_not_asked() -> None:
    model = Model()
    meter = Meter(MODEL, model, Breaker(), Book(refusal=RequestRefused(ErrorCode.BUDGET_USED_UP)))
    with pytest.raises(RequestRefused):
        await meter.embed(["a fox"])
    assert model.count == 0


async def test_a_call_that_is_given_up_is_told_to_the_book() -> None:
    book, model = Book(), Model(answers=asyncio.Event())
    call = asyncio.create_task(Meter(MODEL, model, Breaker(), book).embed(["a fox"]))
    await model.asked.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert book.heard == ["send", "call cancelled"]


def test_only_gemini_embeds() -> None:
    assert [embedding_model(CATALOGUE, name) for name in ("gemini", "sketch", "openai")] == [MODEL, None, None]

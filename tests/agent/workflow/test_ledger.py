"""A turn's calls as its journal has them: what is known is not asked again, what is ambiguous only by the person."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agent.errors import ErrorCode, ErrorInfo
from agent.messages import TextPart, TokenUsage
from agent.storage.conversations import ConversationStore
from agent.storage.images import ImageStore
from agent.storage.journal import FREE_MODELS, CallState
from agent.workflow.hearing import Answer
from agent.workflow.ledger import Ledger
from tests.adapters.catalogue import ModelRole, load_catalogue
from tests.support.histories import LARGE_SIGNATURE, answer, begun_turn

CATALOGUE = load_catalogue()
TALKER = CATALOGUE.model(ModelRole.FLASH, "gemini")
PAINTER = CATALOGUE.model(ModelRole.IMAGE_FLASH, "gemini")
FREE_PAINTER = CATALOGUE.model(ModelRole.IMAGE_FLASH, "sketch")
AMBIGUOUS = [
    ErrorCode.PROVIDER_ERROR,
    ErrorCode.PROVIDER_TIMEOUT,
    ErrorCode.STREAM_CUT,
    ErrorCode.NODE_TIMEOUT,
]
CERTAIN = [ErrorCode.RATE_LIMITED, ErrorCode.OVERLOADED, ErrorCode.PICTURE_BLOCKED, ErrorCode.KEY_INVALID]


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[ConversationStore]:
    store = ConversationStore(tmp_path, ImageStore(tmp_path))
    await store.open()
    yield store
    await store.aclose()


async def ledger_of(store: ConversationStore) -> Ledger:
    """Return the ledger of a turn that has just begun."""
    conversation = await store.create("local")
    await store.begin_turn(conversation.id, begun_turn())
    return Ledger(store.journal, conversation.id, "t1")


async def taken_up(store: ConversationStore, ledger: Ledger, *, may_repeat: bool = True) -> Ledger:
    """Return the turn's ledger as it is when the turn goes on."""
    return Ledger(store.journal, ledger.conversation_id, "t1", await store.journal.calls("t1"), may_repeat)


async def made(ledger: Ledger, name: str, heard: Answer, *, is_text: bool = False, price_usd: float = 0.04) -> None:
    """Make a call from its first moment to its end."""
    model = TALKER if is_text else PAINTER
    ledger.queue(name, model)
    await ledger.send(name)
    await ledger.end(name, heard, price_usd, is_text=is_text)


def failed(code: ErrorCode) -> Answer:
    return Answer(error=ErrorInfo(code=code))


async def test_a_call_that_was_never_made_is_not_known(store: ConversationStore) -> None:
    ledger = await ledger_of(store)
    assert ledger.answered("planner:1", TALKER) is None


async def test_an_answer_is_known_with_all_of_it_and_its_cost(store: ConversationStore) -> None:
    ledger = await ledger_of(store)
    heard = Answer(list(answer("#1").parts), TokenUsage(prompt_tokens=3, image_tokens=1120), "STOP")
    await made(ledger, "picture:1.0.0.1", heard)
    for one in (ledger, await taken_up(store, ledger)):
        assert one.answered("picture:1.0.0.1", PAINTER) == heard
    kept = (await store.journal.calls("t1"))["picture:1.0.0.1"]
    assert (kept.state, kept.attempts, kept.price_usd, kept.model) == (CallState.DONE, 1, 0.04, PAINTER.id)
    assert LARGE_SIGNATURE in [getattr(part, "thought_signature", None) for part in heard.parts]


async def test_one_call_s_answer_is_not_another_s(store: ConversationStore) -> None:
    ledger = await ledger_of(store)
    await made(ledger, "planner:1", Answer([TextPart(text="one")]), is_text=True)
    assert ledger.answered("planner:2", TALKER) is None


@pytest.mark.parametrize("code", AMBIGUOUS)
async def test_a_picture_that_may_have_been_made_is_unknown_and_only_the_person_has_it_made_again(
    store: ConversationStore, code: ErrorCode
) -> None:
    ledger = await ledger_of(store)
    await made(ledger, "picture:1.0.0.1", failed(code))
    unasked = (await taken_up(store, ledger, may_repeat=False)).answered("picture:1.0.0.1", PAINTER)
    assert unasked is not None
    assert unasked.error is not None
    assert (unasked.error.code, unasked.error.parameters) == (ErrorCode.CALL_UNKNOWN, {"model": PAINTER.label})
    assert unasked.usage == TokenUsage(), "what is not known is not counted"
    assert (await taken_up(store, ledger)).answered("picture:1.0.0.1", PAINTER) is None


@pytest.mark.parametrize("code", AMBIGUOUS)
async def test_what_costs_nothing_is_made_again_unasked(store: ConversationStore, code: ErrorCode) -> None:
    ledger = await ledger_of(store)
    ledger.queue("picture:1.0.0.1", FREE_PAINTER)
    await ledger.send("picture:1.0.0.1")
    await ledger.end("picture:1.0.0.1", failed(code), 0.0, is_text=False)
    assert (await taken_up(store, ledger, may_repeat=False)).answered("picture:1.0.0.1", FREE_PAINTER) is None


def test_the_models_that_cost_nothing_are_the_built_in_ones() -> None:
    assert {one.id for one in CATALOGUE.entries if one.provider == "sketch"} == FREE_MODELS


@pytest.mark.parametrize("code", CERTAIN)
async def test_a_picture_that_was_surely_not_made_may_be_asked_for_again(
    store: ConversationStore, code: ErrorCode
) -> None:
    ledger = await ledger_of(store)
    await made(ledger, "picture:1.0.0.1", failed(code))
    again = await taken_up(store, ledger, may_repeat=False)
    assert again.answered("picture:1.0.0.1", PAINTER) is None
    assert again.known["picture:1.0.0.1"].state is CallState.FAILED
    assert again.known["picture:1.0.0.1"].error_code is code


@pytest.mark.parametrize("code", AMBIGUOUS)
async def test_words_are_asked_for_again_whatever_went_wrong(store: ConversationStore, code: ErrorCode) -> None:
    ledger = await ledger_of(store)
    await made(ledger, "planner:1", failed(code), is_text=True)
    assert (await taken_up(store, ledger, may_repeat=False)).answered("planner:1", TALKER) is None


async def test_words_that_came_before_a_failure_are_not_an_answer(store: ConversationStore) -> None:
    ledger = await ledger_of(store)
    half = Answer([TextPart(text="It was a dark")], error=ErrorInfo(code=ErrorCode.STREAM_CUT))
    await made(ledger, "planner:1", half, is_text=True)
    again = await taken_up(store, ledger)
    assert again.answered("planner:1", TALKER) is None
    assert again.known["planner:1"].answer is None


async def test_a_call_made_again_counts_on_and_its_failure_is_forgotten(store: ConversationStore) -> None:
    ledger = await ledger_of(store)
    await made(ledger, "picture:1.0.0.1", failed(ErrorCode.PROVIDER_ERROR))
    again = await taken_up(store, ledger)
    await made(again, "picture:1.0.0.1", Answer([TextPart(text="there")]))
    [kept] = (await store.journal.calls("t1")).values()
    assert (kept.state, kept.attempts, kept.error_code) == (CallState.DONE, 2, None)


async def test_a_call_given_up_before_it_left_leaves_no_row(store: ConversationStore) -> None:
    ledger = await ledger_of(store)
    ledger.queue("planner:1", TALKER)
    ledger.cancel("planner:1")
    assert await store.journal.calls("t1") == {}


async def test_a_call_given_up_on_its_way_is_cancelled_and_may_be_made_again(store: ConversationStore) -> None:
    ledger = await ledger_of(store)
    ledger.queue("planner:1", TALKER)
    await ledger.send("planner:1")
    ledger.cancel("planner:1")
    again = await taken_up(store, ledger, may_repeat=False)
    assert again.known["planner:1"].state is CallState.CANCELLED
    assert again.answered("planner:1", TALKER) is None


async def test_a_call_that_waits_for_its_next_try_is_queued_and_then_sent_once_more(store: ConversationStore) -> None:
    ledger = await ledger_of(store)
    ledger.queue("planner:1", TALKER)
    await ledger.send("planner:1")
    ledger.queue("planner:1", TALKER)
    assert (await store.journal.calls("t1"))["planner:1"].state is CallState.QUEUED
    await ledger.send("planner:1")
    kept = (await store.journal.calls("t1"))["planner:1"]
    assert (kept.state, kept.attempts) == (CallState.SENT, 2)


async def test_a_call_that_a_breaker_held_back_is_not_on_record_as_made(store: ConversationStore) -> None:
    ledger = await ledger_of(store)
    ledger.queue("planner:1", TALKER)
    await ledger.end("planner:1", failed(ErrorCode.OVERLOADED), 0.0, is_text=True)
    assert await store.journal.calls("t1") == {}

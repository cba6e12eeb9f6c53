"""A turn's calls as its journal has them: what is known is not asked again, what is ambiguous only by the person."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from agent import ErrorCode, ErrorInfo, TextPart, TokenUsage
from agent.storage.conversations import ConversationStore
from agent.storage.images import ImageStore
from agent.storage.journal import CallState
from agent.workflow.hearing import Answer
from agent.workflow.ledger import Ledger
from tests.adapters.catalogue import ModelRole, load_catalogue
from tests.support.cases import each_case
from tests.support.histories import LARGE_SIGNATURE, answer, begun_turn

PICTURE = "picture:1.0.0.1"
CATALOGUE = load_catalogue()
TALKER = CATALOGUE.model(ModelRole.FLASH, "gemini")
PAINTER = CATALOGUE.model(ModelRole.IMAGE_FLASH, "gemini")
FREE_PAINTER = CATALOGUE.model(ModelRole.IMAGE_FLASH, "sketch")
AMBIGUOUS = [ErrorCode.PROVIDER_ERROR, ErrorCode.PROVIDER_TIMEOUT, ErrorCode.STREAM_CUT, ErrorCode.NODE_TIMEOUT]
CERTAIN = [ErrorCode.RATE_LIMITED, ErrorCode.OVERLOADED, ErrorCode.PICTURE_BLOCKED, ErrorCode.KEY_INVALID]


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[ConversationStore]:
    store = ConversationStore(tmp_path, ImageStore(tmp_path))
    await store.open()
    yield store
    await store.aclose()


@pytest.fixture
async def ledger(store: ConversationStore) -> Ledger:
    """The ledger of a turn that has just begun."""
    conversation = await store.create("local")
    await store.begin_turn(conversation.id, begun_turn())
    return Ledger(store.journal, conversation.id, "t1")


async def taken_up(store: ConversationStore, ledger: Ledger, *, may_repeat: bool = True) -> Ledger:
    """Return the turn's ledger as it is when the turn goes on."""
    return Ledger(store.journal, ledger.conversation_id, "t1", await store.journal.calls("t1"), may_repeat)


async def made(
    ledger: Ledger, name: str, heard: Answer, *, is_text: bool = False, model: Any = None, price_usd: float = 0.04
) -> None:
    """Make a call from its first moment to its end."""
    model = model or (TALKER if is_text else PAINTER)
    ledger.queue(name, model)
    await ledger.send(name)
    await ledger.end(name, heard, price_usd, is_repeatable=is_text or model.is_free)


def failed(code: ErrorCode) -> Answer:
    return Answer(error=ErrorInfo(code=code))


async def kept(store: ConversationStore) -> dict[str, tuple[CallState, int]]:
    """Return the state of each call in the journal, and how often it was tried."""
    return {name: (one.state, one.attempts) for name, one in (await store.journal.calls("t1")).items()}


async def test_an_answer_is_known_with_all_of_it_and_its_cost_and_no_other(
    store: ConversationStore, ledger: Ledger
) -> None:
    assert ledger.answered(PICTURE, PAINTER) is None
    heard = Answer(list(answer("#1").parts), TokenUsage(prompt_tokens=3, image_tokens=1120), "STOP")
    await made(ledger, PICTURE, heard)
    for one in (ledger, await taken_up(store, ledger)):
        assert one.answered(PICTURE, PAINTER) == heard
    call = (await store.journal.calls("t1"))[PICTURE]
    assert (call.state, call.attempts, call.price_usd, call.model) == (CallState.DONE, 1, 0.04, PAINTER.id)
    assert LARGE_SIGNATURE in [getattr(part, "thought_signature", None) for part in heard.parts]
    await made(ledger, "planner:1", Answer([TextPart(text="one")]), is_text=True)
    assert ledger.answered("planner:2", TALKER) is None


@pytest.mark.parametrize("code", AMBIGUOUS)
async def test_what_may_have_been_made_and_costs_is_asked_for_again_only_by_the_person(
    store: ConversationStore, ledger: Ledger, code: ErrorCode
) -> None:
    await made(ledger, PICTURE, failed(code))
    unasked = (await taken_up(store, ledger, may_repeat=False)).answered(PICTURE, PAINTER)
    assert unasked is not None
    assert unasked.error is not None
    assert (unasked.error.code, unasked.error.parameters) == (ErrorCode.CALL_UNKNOWN, {"model": PAINTER.label})
    assert unasked.usage == TokenUsage(), "what is not known is not counted"
    assert (await taken_up(store, ledger)).answered(PICTURE, PAINTER) is None
    # Words are asked for again unasked, and so is what costs nothing.
    await made(ledger, "planner:1", failed(code), is_text=True)
    await made(ledger, "picture:2", failed(code), model=FREE_PAINTER, price_usd=0.0)
    again = await taken_up(store, ledger, may_repeat=False)
    assert (again.answered("planner:1", TALKER), again.answered("picture:2", FREE_PAINTER)) == (None, None)


@each_case("code", CERTAIN)
async def test_a_picture_that_was_surely_not_made_may_be_asked_for_again(
    store: ConversationStore, ledger: Ledger, code: ErrorCode
) -> None:
    await made(ledger, PICTURE, failed(code))
    again = await taken_up(store, ledger, may_repeat=False)
    assert again.answered(PICTURE, PAINTER) is None
    assert (again.known[PICTURE].state, again.known[PICTURE].error_code) == (CallState.FAILED, code)


async def test_words_that_came_before_a_failure_are_not_an_answer(store: ConversationStore, ledger: Ledger) -> None:
    half = Answer([TextPart(text="It was a dark")], error=ErrorInfo(code=ErrorCode.STREAM_CUT))
    await made(ledger, "planner:1", half, is_text=True)
    again = await taken_up(store, ledger)
    assert (again.answered("planner:1", TALKER), again.known["planner:1"].answer) == (None, None)


async def test_a_call_made_again_counts_on_and_its_failure_is_forgotten(
    store: ConversationStore, ledger: Ledger
) -> None:
    await made(ledger, PICTURE, failed(ErrorCode.PROVIDER_ERROR))
    again = await taken_up(store, ledger)
    await made(again, PICTURE, Answer([TextPart(text="there")]))
    [call] = (await store.journal.calls("t1")).values()
    assert (call.state, call.attempts, call.error_code) == (CallState.DONE, 2, None)


async def test_a_call_is_on_record_from_the_moment_it_leaves_and_stays_there(
    store: ConversationStore, ledger: Ledger
) -> None:
    # Given up before it left, or held back by a breaker.
    ledger.queue("planner:1", TALKER)
    ledger.cancel("planner:1")
    assert await kept(store) == {}
    ledger.queue("planner:1", TALKER)
    await ledger.end("planner:1", failed(ErrorCode.OVERLOADED), 0.0, is_repeatable=True)
    assert await kept(store) == {}
    # It waits for its next try, and is sent once more.
    ledger.queue("planner:1", TALKER)
    await ledger.send("planner:1")
    ledger.queue("planner:1", TALKER)
    assert await kept(store) == {"planner:1": (CallState.QUEUED, 1)}
    await ledger.send("planner:1")
    assert await kept(store) == {"planner:1": (CallState.SENT, 2)}
    # Given up on its way it may be made again.
    ledger.cancel("planner:1")
    again = await taken_up(store, ledger, may_repeat=False)
    assert again.known["planner:1"].state is CallState.CANCELLED
    assert again.answered("planner:1", TALKER) is None

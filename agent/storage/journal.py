"""The journal of paid calls: a row for each, written before its bytes leave, so that nothing is ever paid twice.

    queued ─► sent ─► done | failed | unknown | cancelled

A call that was `sent` when the process died is `unknown`: it may have been charged, and only the person may have it
made again. One of the built-in model, which costs nothing, is `cancelled` instead. One that is `done` keeps its answer
until its turn is over, so that a turn that goes on asks for nothing it already has.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING

from pydantic import Field

from agent.errors import ErrorCode
from agent.messages import ContentPart, PromptMessage, Role, TokenUsage, Value
from agent.storage.images import ImageStore
from agent.storage.signatures import Place, large_signatures, put_back, take_out
from agent.storage.writing import Writing

if TYPE_CHECKING:
    from agent.storage.call_rows import CallRows

_log = logging.getLogger(__name__)


class CallState(StrEnum):
    """How far a paid call came."""

    QUEUED = "queued"
    SENT = "sent"
    DONE = "done"
    FAILED = "failed"
    UNKNOWN = "unknown"
    CANCELLED = "cancelled"


class Heard(Value):
    """The answer of a call that is done."""

    parts: tuple[ContentPart, ...] = ()
    usage: TokenUsage = TokenUsage()
    finish_reason: str = ""


class CallRecord(Value):
    """One paid call of a turn. `name` is unique in the turn and the same whenever the turn goes on.

    `attempts` counts how often it was sent; the price is in US dollars, and `reserved_usd` what it may cost while it is
    on its way. `handle` is the one that its picture will have, where that was settled before it was sent.
    """

    conversation_id: str
    turn_id: str
    name: str
    model: str
    state: CallState = CallState.QUEUED
    attempts: int = 0
    created_at: datetime = Field(default_factory=lambda: datetime.now(UTC))
    updated_at: datetime = Field(default_factory=lambda: datetime.now(UTC))
    price_usd: float = 0.0
    reserved_usd: float = 0.0
    error_code: ErrorCode | None = None
    answer: Heard | None = None
    handle: str | None = None


class Journal:
    """The rows of every turn's paid calls. Raises StorageFailure when the database cannot be written or read."""

    def __init__(self, writing: Writing, rows: Callable[[], CallRows], images: ImageStore) -> None:
        self._writing = writing
        self._rows = rows
        self._images = images

    async def reserve(self, calls: Sequence[CallRecord], base: str | None) -> dict[str, str]:
        """Put calls for pictures on record that are about to be made, and return the handles of those pictures.

        They follow one another in the order of the calls: in the family of `base` when they are made by editing that
        picture. A call that has a handle keeps it.
        """
        rows, found = self._rows(), dict[str, str]()
        await self._writing.write(lambda: found.update(rows.reserve(calls, base)), _nothing)
        return found

    def queue(self, call: CallRecord) -> None:
        """Hand over that the call waits for its next try. It has a row."""
        rows = self._rows()
        self._soon(lambda: rows.change(call, None, ()))

    async def send(self, call: CallRecord, *, is_new: bool) -> None:
        """Write that the call's bytes leave now. They may, when this returns: the row survives a power cut.

        `is_new` when the call has no row yet: one that waits for nothing gets its first row here.
        """
        rows = self._rows()
        await self._writing.write(
            lambda: rows.add(call) if is_new else rows.change(call, None, ()), _nothing, is_durable=True
        )

    async def end(self, call: CallRecord) -> None:
        """Hand over how the call ended, its answer included. What is written later comes later on disk as well."""
        rows, places = self._rows(), tuple[Place, ...]()
        if call.answer is not None:
            message = PromptMessage(role=Role.MODEL, parts=call.answer.parts)
            signatures = large_signatures((message,))
            if signatures:
                digests = [await self._images.write_blob(signature) for signature in signatures]
                (message,), places = take_out((message,), digests)
                call = call.model_copy(update={"answer": call.answer.model_copy(update={"parts": message.parts})})
        ended = call
        self._soon(lambda: rows.change(ended, ended.answer, places))

    def cancel(self, call: CallRecord) -> None:
        """Hand over that the call was given up."""
        rows = self._rows()
        self._soon(lambda: rows.change(call, None, ()))

    def release(self, turn_id: str) -> None:
        """Hand over that no call of the turn is made any more: the handles of pictures that never came are free."""
        rows = self._rows()
        self._soon(lambda: rows.release(turn_id))

    async def calls(self, turn_id: str) -> dict[str, CallRecord]:
        """Return the calls of a turn by name, their answers whole, the oldest first."""
        found: list[tuple[CallRecord, tuple[Place, ...]]] = []
        rows = self._rows()
        await self._writing.write(lambda: found.extend(rows.of(turn_id)), _nothing)
        return {call.name: await asyncio.to_thread(self._whole, call, places) for call, places in found}

    def _whole(self, call: CallRecord, places: tuple[Place, ...]) -> CallRecord:
        if call.answer is None or not places:
            return call
        message = PromptMessage(role=Role.MODEL, parts=call.answer.parts)
        (message,) = put_back((message,), places, self._images.read_blob_now)
        return call.model_copy(update={"answer": call.answer.model_copy(update={"parts": message.parts})})

    def _soon(self, record: Callable[[], None]) -> None:
        self._writing.write_soon(record).add_done_callback(_tell)


def _tell(written: asyncio.Future[None]) -> None:
    # The next awaited write of the turn meets the same trouble and tells the person.
    error = None if written.cancelled() else written.exception()
    if error is not None:
        _log.error("a paid call could not be put on record: %s", error)


def _nothing() -> None:
    pass

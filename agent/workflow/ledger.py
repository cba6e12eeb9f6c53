"""The money of a turn: its paid calls in the journal, and its remaining budget."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from math import ceil

from agent.errors import Charge, ErrorCode, ErrorInfo
from agent.messages import TokenUsage, ToolCallPart
from agent.providers.catalogue import ModelEntry
from agent.spending import A_TRIFLE_USD, format_usd
from agent.storage.journal import CallAnswer, CallRecord, CallState, Journal
from agent.workflow.model_answers import Answer
from agent.workflow.sponsoring import SponsoredBudget


@dataclass
class Ledger:
    """The paid calls of one turn: which are already answered, and which must not be repeated without consent.

    With `may_repeat` the user agreed to repeat calls with an unknown outcome. `sponsored` is the sponsor's budget that
    pays for them, if any.
    """

    journal: Journal
    conversation_id: str
    turn_id: str
    known: dict[str, CallRecord]
    may_repeat: bool
    sponsored: SponsoredBudget | None
    _unwritten: set[str] = field(default_factory=set)
    _reserved: set[str] = field(default_factory=set)

    def release(self) -> None:
        """Release the reserved handles of pictures that were never made, when the turn will not request them again."""
        if any(call.handle is not None for call in self.known.values()):
            self.journal.release(self.turn_id)

    async def reserve(self, names: Sequence[str], models: Sequence[ModelEntry], base: str | None) -> None:
        """Reserve the handles of pictures before they are requested, in the order of their call names."""
        calls = [self.known.get(name) or self._new(name, model) for name, model in zip(names, models, strict=True)]
        handles = await self.journal.reserve(calls, base)
        for call in calls:
            self.known[call.name] = call.model_copy(update={"handle": handles[call.name]})
            if call.state is CallState.QUEUED:
                self._reserved.add(call.name)

    def answered(self, name: str, model: ModelEntry) -> Answer | None:
        """Return the recorded answer of the call, or an error if its outcome is unknown; None if it must be made."""
        call = self.known.get(name)
        if call is not None and call.state is CallState.DONE and call.answer is not None:
            saved = call.answer
            return Answer(parts=list(saved.parts), usage=saved.usage, finish_reason=saved.finish_reason)
        if call is not None and call.state is CallState.UNKNOWN and not self.may_repeat:
            return Answer(error=ErrorInfo(code=ErrorCode.CALL_UNKNOWN, parameters={"model": model.label}))
        return None

    def record_answer(self, name: str, model: ModelEntry, call: ToolCallPart) -> None:
        """Record a call to the model as answered with this tool call, at no cost."""
        saved = CallAnswer(parts=(call,), usage=TokenUsage(), finish_reason="STOP")
        self.known[name] = self._new(name, model).model_copy(update={"state": CallState.DONE, "answer": saved})

    def queue(self, name: str, model: ModelEntry) -> None:
        """Record that the call is about to be made, or waits for its next attempt."""
        call = self.known.get(name)
        if call is None:
            self._unwritten.add(name)
            self.known[name] = self._new(name, model)
            return
        if name in self._reserved:
            # Its database row already has this state.
            self._reserved.discard(name)
            return
        self.journal.change(self._keep(call, state=CallState.QUEUED))

    async def send(self, name: str, about_usd: float = 0.0) -> None:
        """Record that the call is being sent; send it only after this returns.

        Until it ends, other turns count `about_usd` as reserved."""
        call = self.known[name]
        call = self._keep(call, state=CallState.SENT, attempts=call.attempts + 1, reserved_usd=about_usd)
        is_new = name in self._unwritten
        self._unwritten.discard(name)
        await self.journal.send(call, is_new=is_new)

    def end(self, name: str, answer: Answer, price_usd: float, *, is_repeatable: bool) -> None:
        """Record how the call ended; a call that `is_repeatable` may always be repeated without consent."""
        if self.sponsored is not None:
            self.sponsored.charge(price_usd)
        if answer.error is None:
            saved = CallAnswer(parts=tuple(answer.parts), usage=answer.usage, finish_reason=answer.finish_reason)
            update = {"state": CallState.DONE, "answer": saved, "error_code": None}
        else:
            # A requested picture may have been generated and charged although the answer never arrived.
            is_unknown = not is_repeatable and answer.error.charged is Charge.MAYBE
            update = {"state": CallState.UNKNOWN if is_unknown else CallState.FAILED, "error_code": answer.error.code}
        self.journal.change(self._keep(self.known[name], price_usd=price_usd, **update))

    def discard_answer(self, name: str, code: ErrorCode) -> None:
        """Record that an answer was unusable: its cost stays, and the call is made again next time."""
        call = self.known.get(name)
        if call is not None and call.state is CallState.DONE:
            self.journal.change(self._keep(call, state=CallState.FAILED, answer=None, error_code=code))

    def cancel(self, name: str) -> None:
        """Record that the call was cancelled before its answer; a call that was never sent leaves no row."""
        if name not in self._unwritten:
            self.journal.change(self._keep(self.known[name], state=CallState.CANCELLED))

    def _new(self, name: str, model: ModelEntry) -> CallRecord:
        return CallRecord(conversation_id=self.conversation_id, turn_id=self.turn_id, name=name, model=model.id)

    def _keep(self, call: CallRecord, **update: object) -> CallRecord:
        self.known[call.name] = changed = call.model_copy(update={"updated_at": datetime.now(UTC), **update})
        return changed


# Compared by identity: two reservations of the same amount are different reservations.
@dataclass(eq=False)
class Reservation:
    """The maximum cost of a running call; `paid_usd` is its actual cost, once known."""

    most_usd: float
    paid_usd: float | None = None


@dataclass
class TurnBudget:
    """The budget of one turn, in US dollars: its maximum, the paid amount, and the reservations of running calls.

    No call is sent that could cost more than the rest.
    """

    limit_usd: float = float("inf")
    paid_usd: float = 0.0
    more_usd: float = 0.0
    """The amount that is added when the user lets the turn continue."""
    _held: list[Reservation] = field(default_factory=list)

    @property
    def is_limited(self) -> bool:
        """Whether the turn has a maximum."""
        return self.limit_usd != float("inf")

    @property
    def left_usd(self) -> float:
        """The rest of the maximum that is neither paid nor reserved by running calls."""
        return self.limit_usd - self.paid_usd - sum(one.most_usd for one in self._held) + A_TRIFLE_USD

    def raise_limit_to(self, price_usd: float) -> None:
        """Let the turn spend up to `price_usd` more, after the user was told this and agreed."""
        self.limit_usd = max(self.limit_usd, self.paid_usd + price_usd)

    @contextmanager
    def reserving(self, most_usd: float) -> Iterator[Reservation]:
        """Reserve the maximum cost of a call until it ends; if its cost is unknown, the maximum counts as paid."""
        reservation = Reservation(most_usd)
        self._held.append(reservation)
        try:
            yield reservation
        finally:
            self._held.remove(reservation)
            self.paid_usd += most_usd if reservation.paid_usd is None else reservation.paid_usd

    def refusal(self) -> ErrorInfo:
        """Return the error that ends a turn when the next call could exceed its maximum."""
        amounts: dict[str, str | int | float] = {
            "maximum": format_usd(self.limit_usd),
            "spent": format_usd(self.paid_usd),
            "more": f"{ceil(self.more_usd * 100) / 100:.2f}",
        }
        return ErrorInfo(code=ErrorCode.MAXIMUM_REACHED, parameters=amounts)

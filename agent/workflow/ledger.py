"""The money of a turn: its paid calls as the journal has them, and what it may still pay."""

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
    """The paid calls of one turn: which are answered already, and which must not be made again unasked.

    With `may_repeat` the person has said that calls of unknown outcome are made again. `sponsored` is what they are
    paid from where somebody else pays.
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
        """Free the handles of pictures that never came, when the turn asks for none any more."""
        if any(call.handle is not None for call in self.known.values()):
            self.journal.release(self.turn_id)

    async def reserve(self, names: Sequence[str], models: Sequence[ModelEntry], base: str | None) -> None:
        """Settle the handles of pictures that are about to be asked for, in the order of their calls' names."""
        calls = [self.known.get(name) or self._new(name, model) for name, model in zip(names, models, strict=True)]
        handles = await self.journal.reserve(calls, base)
        for call in calls:
            self.known[call.name] = call.model_copy(update={"handle": handles[call.name]})
            if call.state is CallState.QUEUED:
                self._reserved.add(call.name)

    def answered(self, name: str, model: ModelEntry) -> Answer | None:
        """Return what is known of the call without making it: its answer, or that its outcome is unknown."""
        call = self.known.get(name)
        if call is not None and call.state is CallState.DONE and call.answer is not None:
            heard = call.answer
            return Answer(parts=list(heard.parts), usage=heard.usage, finish_reason=heard.finish_reason)
        if call is not None and call.state is CallState.UNKNOWN and not self.may_repeat:
            return Answer(error=ErrorInfo(code=ErrorCode.CALL_UNKNOWN, parameters={"model": model.label}))
        return None

    def record_answer(self, name: str, model: ModelEntry, call: ToolCallPart) -> None:
        """Take a call of the model's as answered with this, for nothing."""
        heard = CallAnswer(parts=(call,), usage=TokenUsage(), finish_reason="STOP")
        self.known[name] = self._new(name, model).model_copy(update={"state": CallState.DONE, "answer": heard})

    def queue(self, name: str, model: ModelEntry) -> None:
        """Note that the call is about to be made, or waits for its next try."""
        call = self.known.get(name)
        if call is None:
            self._unwritten.add(name)
            self.known[name] = self._new(name, model)
            return
        if name in self._reserved:
            # Its row says so already.
            self._reserved.discard(name)
            return
        self._keep(call, state=CallState.QUEUED)
        self.journal.change(self.known[name])

    async def send(self, name: str, about_usd: float = 0.0) -> None:
        """Put on record that the call leaves now; its bytes may leave when this returns. While it is on its way others
        count `about_usd`."""
        attempts = self.known[name].attempts + 1
        self._keep(self.known[name], state=CallState.SENT, attempts=attempts, reserved_usd=about_usd)
        is_new = name in self._unwritten
        self._unwritten.discard(name)
        await self.journal.send(self.known[name], is_new=is_new)

    def end(self, name: str, answer: Answer, price_usd: float, *, is_repeatable: bool) -> None:
        """Note how the call ended; one that `is_repeatable` is made again without asking, whatever became of it."""
        if self.sponsored is not None:
            self.sponsored.charge(price_usd)
        if answer.error is None:
            heard = CallAnswer(parts=tuple(answer.parts), usage=answer.usage, finish_reason=answer.finish_reason)
            self._keep(self.known[name], state=CallState.DONE, answer=heard, price_usd=price_usd, error_code=None)
        else:
            code = answer.error.code
            # A picture that was asked for may have been painted and charged although the answer never came.
            is_unknown = not is_repeatable and answer.error.charged is Charge.MAYBE
            state = CallState.UNKNOWN if is_unknown else CallState.FAILED
            self._keep(self.known[name], state=state, price_usd=price_usd, error_code=code)
        self.journal.change(self.known[name])

    def discard_answer(self, name: str, code: ErrorCode) -> None:
        """Note that an answer was of no use: it cost what it cost, and the next time the call is made anew."""
        call = self.known.get(name)
        if call is not None and call.state is CallState.DONE:
            self._keep(call, state=CallState.FAILED, answer=None, error_code=code)
            self.journal.change(self.known[name])

    def cancel(self, name: str) -> None:
        """Note that the call was given up before its answer came; one that never left leaves no row."""
        if name in self._unwritten:
            return
        self._keep(self.known[name], state=CallState.CANCELLED)
        self.journal.change(self.known[name])

    def _new(self, name: str, model: ModelEntry) -> CallRecord:
        return CallRecord(conversation_id=self.conversation_id, turn_id=self.turn_id, name=name, model=model.id)

    def _keep(self, call: CallRecord, **update: object) -> None:
        self.known[call.name] = call.model_copy(update={"updated_at": datetime.now(UTC), **update})


# Two of the same amount are two: the one that has ended is taken out, not its like.
@dataclass(eq=False)
class Reservation:
    """The worst case of a call that is under way; `paid_usd` is what it cost, once that is known."""

    most_usd: float
    paid_usd: float | None = None


@dataclass
class TurnBudget:
    """The money of one turn, in US dollars: its maximum, what was paid of it, and what calls under way may cost.

    No call leaves that could cost more than is left.
    """

    limit_usd: float = float("inf")
    paid_usd: float = 0.0
    more_usd: float = 0.0
    """How much further the turn may go when the person lets it go on."""
    _held: list[Reservation] = field(default_factory=list)

    @property
    def is_limited(self) -> bool:
        """Whether there is a maximum."""
        return self.limit_usd != float("inf")

    @property
    def left_usd(self) -> float:
        """What no call under way can need any more."""
        return self.limit_usd - self.paid_usd - sum(one.most_usd for one in self._held) + A_TRIFLE_USD

    def raise_limit_to(self, price_usd: float) -> None:
        """Let the turn pay so much from now on, when the person was told so and agreed."""
        self.limit_usd = max(self.limit_usd, self.paid_usd + price_usd)

    @contextmanager
    def reserving(self, most_usd: float) -> Iterator[Reservation]:
        """Set the worst case of a call aside until it has ended; one that never told what it cost keeps it."""
        reservation = Reservation(most_usd)
        self._held.append(reservation)
        try:
            yield reservation
        finally:
            self._held.remove(reservation)
            self.paid_usd += most_usd if reservation.paid_usd is None else reservation.paid_usd

    def refusal(self) -> ErrorInfo:
        """Return that the next call could pass the maximum, as the end of a turn."""
        amounts: dict[str, str | int | float] = {
            "maximum": format_usd(self.limit_usd),
            "spent": format_usd(self.paid_usd),
            "more": f"{ceil(self.more_usd * 100) / 100:.2f}",
        }
        return ErrorInfo(code=ErrorCode.MAXIMUM_REACHED, parameters=amounts)

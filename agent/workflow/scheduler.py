"""The scheduler of turns: one running turn per conversation, a short queue behind it, conversations concurrently.

The turns of a conversation run in order of arrival, across all processes that use the same home (`storage.turns`).
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from functools import partial
from importlib.metadata import version

from pydantic import JsonValue, SecretStr

from agent.conversation import Conversation, Turn, TurnState
from agent.errors import AivistaError, ErrorCode, RequestRefused
from agent.events import Step, ThoughtLog, TurnFailed, TurnPaused, TurnStopped, undecided
from agent.redaction import secrets_of
from agent.report import log_report, turn_report
from agent.requests import Decision, TurnRequest
from agent.spending import turn_estimate
from agent.storage.journal import CallRecord
from agent.storage.quota import NEARLY_FULL
from agent.storage.turns import ConversationBusy, ConversationChanged, TurnKnown
from agent.telemetry import telemetry_of
from agent.workflow.deps import Deps, TurnServices, today
from agent.workflow.ledger import Ledger, TurnBudget
from agent.workflow.live import LiveTurn, RecentTurns
from agent.workflow.preparing import kept_uploads, prepare
from agent.workflow.replay import follow_record
from agent.workflow.sponsoring import SponsoredBudget
from agent.workflow.state import TurnRecord, first_progress
from agent.workflow.tracing import Tracer
from agent.workflow.turn import Runner, before, can_go_on

MAX_WAITING = 10
# How often to check whether another process cancelled a turn of this one.
_LOOK_FOR_STOPS_S = 0.25
# A process that dies leaves the queue without a notice, so the queue is checked this often.
_LOOK_AGAIN_S = 1.0
_LOGGED_BYTES = 64 << 10

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Identity:
    """A turn's conversation, owner, API key, and sponsored budget, if any."""

    conversation_id: str
    owner: str
    key: SecretStr | None
    sponsored: SponsoredBudget | None = None


@dataclass
class _QueuedTurn:
    """A turn before its start: its request, its place in the conversation's queue, and its dependencies.

    The request has KeptUploads once its pictures are stored. The place is set if the turn had to wait, the dependencies
    once it is prepared."""

    request_id: str | None = None
    request: TurnRequest | None = None
    place: int | None = None
    prepared: Deps | None = None


_Work = Callable[[_Identity, LiveTurn, _QueuedTurn], Awaitable[None]]


class TurnScheduler:
    """The running turns of a studio."""

    def __init__(self, services: TurnServices) -> None:
        self._services = services
        self._live: dict[str, list[LiveTurn]] = defaultdict(list)
        self._requests: dict[tuple[str, str, str | None], LiveTurn] = {}
        self._recent = RecentTurns()
        self._stop_timer: asyncio.TimerHandle | None = None
        self._telemetry = telemetry_of(services.settings)
        self._runner = Runner(services.records.db)

    async def finish(self, grace_s: float) -> None:
        """Wait at most `grace_s` seconds for running turns, then `aclose`. Queued turns end immediately.

        Call it after `TurnServices.closing` is set.
        """
        await asyncio.gather(*(live.cut_off() for live in self._all_live() if live.turn_id is None))
        at_work = [asyncio.create_task(live.wait()) for live in self._all_live()]
        try:
            if at_work:
                await asyncio.wait(at_work, timeout=grace_s)
        finally:
            # Also when the caller of `finish` is cancelled.
            for waiting in at_work:
                waiting.cancel()
            await self.aclose()

    async def aclose(self) -> None:
        """Interrupt running turns and record their progress; the next start resumes them."""
        await asyncio.gather(*(live.cut_off() for live in self._all_live()))

    async def settle(self) -> None:
        """Flush the pending checkpoints and traces, after all turns have ended."""
        await self._runner.settle()
        if self._telemetry is not None:
            # Flush pending trace writes first: they export the spans of the last turns.
            await self._services.records.traces.settled()
            await asyncio.to_thread(self._telemetry.close)

    def _all_live(self) -> list[LiveTurn]:
        return [one for turns in self._live.values() for one in turns]

    def running(self, conversation_id: str, owner: str) -> list[LiveTurn]:
        """Return the running and queued turns of a conversation, the oldest first."""
        return [live for live in self._live.get(conversation_id, []) if live.owner == owner and not live.is_done]

    def find(self, conversation_id: str, turn_id: str, owner: str) -> LiveTurn | None:
        """Return a running turn, or one that ended within the last ten minutes."""
        running = (one for one in self.running(conversation_id, owner) if one.turn_id == turn_id)
        return next(running, None) or self._recent.find(conversation_id, turn_id, owner)

    def place_of(self, request_id: str, owner: str) -> str | None:
        """Return the id of the conversation with a running or queued turn of this request in this process."""
        return next((key for key, whose, name in self._requests if (whose, name) == (owner, request_id)), None)

    def busy(self, owner: str) -> frozenset[str]:
        """Return the ids of an owner's conversations that have a running or queued turn."""
        return frozenset(key for key, turns in self._live.items() for live in turns if live.owner == owner)

    def is_known(self, conversation_id: str, request: TurnRequest, owner: str) -> bool:
        """Return whether the conversation has a turn of this request, queued, running or recorded."""
        if not request.request_id:
            return False
        is_live = (conversation_id, owner, request.request_id) in self._requests
        return is_live or self._services.records.requested_turn(conversation_id, request.request_id) is not None

    def start(
        self, conversation_id: str, request: TurnRequest, owner: str, key: SecretStr | None, *, is_again: bool = False
    ) -> LiveTurn:
        """Start a turn, or return the active turn of the same request.

        With `is_again` the user sends it again after a failure: a used-up cap or an open circuit breaker does not
        refuse it again.
        """
        name = (conversation_id, owner, request.request_id)
        if name in self._requests:
            return self._requests[name]

        async def work(who: _Identity, live: LiveTurn, entry: _QueuedTurn) -> None:
            entry.request = entry.request or request
            await self._begin(who, entry.request, live, entry, is_again=is_again)

        live = self._enqueue(_Identity(conversation_id, owner, key), _QueuedTurn(request.request_id), work)
        if request.request_id:
            self._requests[name] = live
        return live

    def resume(
        self,
        conversation_id: str,
        turn_id: str,
        owner: str,
        key: SecretStr | None,
        *,
        decision: Decision | None = None,
        may_repeat: bool = True,
    ) -> LiveTurn:
        """Resume a paused turn: a failed or interrupted one, or one with a plan and the user's decision about it.

        With `may_repeat` the user requested it, and calls with an unknown outcome are repeated.
        """

        async def work(who: _Identity, live: LiveTurn, entry: _QueuedTurn) -> None:
            await self._resume(who, turn_id, decision, live, entry, may_repeat=may_repeat)

        asks = decision is None or decision.run
        return self._enqueue(_Identity(conversation_id, owner, key), _QueuedTurn(), work, asks=asks, goes_on=turn_id)

    def can_go_on(self, conversation: Conversation, turn: Turn, key: SecretStr | None) -> bool:
        """Return whether the turn is paused, is the newest of the shown branch, and its provider is available."""
        is_newest = bool(conversation.turns) and conversation.turns[-1].id == turn.id
        has_provider = not turn.provider or turn.provider == self._services.provider_name(key)
        return is_newest and has_provider and can_go_on(turn)

    def _enqueue(
        self, who: _Identity, entry: _QueuedTurn, work: _Work, *, asks: bool = True, goes_on: str | None = None
    ) -> LiveTurn:
        """Start a turn's task, which waits for the earlier turns of its conversation.

        `asks` says that it starts something new, for `TurnServices.sponsored`.
        """
        turns = self._live[who.conversation_id]

        async def queued(live: LiveTurn) -> None:
            if self._services.closing.is_set():
                raise RequestRefused(ErrorCode.STUDIO_CLOSING)
            try:
                if not live.is_first.is_set():
                    await self._join_queue(who, live, entry)
                    await live.is_first.wait()
                await self._run_when_free(who, live, entry, work, asks=asks)
            finally:
                if entry.place is not None:
                    await self._services.records.turns.leave_queue(entry.place)

        async def on_stop(live: LiveTurn) -> TurnStopped | TurnPaused:
            if live.cut.is_set():
                return await self._record_cut(entry.prepared)
            if entry.prepared is not None:
                # A turn that is not recorded yet, because another turn went first, leaves no record.
                with suppress(RequestRefused):
                    await self._runner.record_stop(entry.prepared)
            return TurnStopped()

        before = self._recent.find(who.conversation_id, goes_on, who.owner) if goes_on is not None else None
        live = LiveTurn(who.conversation_id, who.owner, queued, on_stop, self._forget, goes_on=goes_on, before=before)
        turns.append(live)
        if turns[0] is live:
            live.is_first.set()
        self._look_for_stops_soon()
        return live

    async def _join_queue(self, who: _Identity, live: LiveTurn, entry: _QueuedTurn) -> None:
        """Take a place in the conversation's queue in the database, which other processes see.

        Raises RequestRefused(QUEUE_FULL).
        """
        place = await self._services.records.turns.join_queue(who.conversation_id, entry.request_id, MAX_WAITING)
        if place.id is None and not place.same_request:
            raise RequestRefused(ErrorCode.QUEUE_FULL, count=MAX_WAITING)
        entry.place = place.id
        live.publish(_behind(max(1, place.ahead)))

    async def _run_when_free(
        self, who: _Identity, live: LiveTurn, entry: _QueuedTurn, work: _Work, *, asks: bool
    ) -> None:
        """Run the work once no other process's turn is ahead; if the turn already exists, replay it from its record."""
        room = self._services.room
        while True:
            slot = room.slot(live.publish) if room is not None else nullcontext()
            try:
                async with slot, self._services.sponsored(who.owner, who.key, asks) as sponsored:
                    await work(replace(who, sponsored=sponsored), live, entry)
                    return
            except ConversationBusy:
                pass
            except ConversationChanged:
                continue
            except TurnKnown as known:
                entry.prepared = None
                records = self._services.records
                async for event in follow_record(records, who.conversation_id, who.owner, known.turn_id):
                    live.publish(event)
                return
            finally:
                if entry.prepared is not None:
                    entry.prepared.trace.close()
            entry.prepared = None
            await self._wait_for_others(who, live, entry)

    async def _wait_for_others(self, who: _Identity, live: LiveTurn, entry: _QueuedTurn) -> None:
        """Wait until no turn of another process is ahead of this one."""
        records, announced = self._services.records, 0
        while True:
            seen = records.changes()
            if entry.place is None:
                await self._join_queue(who, live, entry)
            if entry.place is None:
                # The same request is queued in another process: its turn is replayed as soon as it is recorded.
                assert entry.request_id is not None
                known = records.requested_turn(who.conversation_id, entry.request_id)
                if known is not None:
                    raise TurnKnown(known)
            else:
                ahead = await records.turns.ahead(who.conversation_id, entry.place)
                if ahead is None:
                    # Cancelled by another process, so this task cancels itself.
                    live.stopped.set()
                    raise asyncio.CancelledError
                if not ahead:
                    return
                if ahead != announced:
                    live.publish(_behind(ahead))
                    announced = ahead
            await records.changed(seen, _LOOK_AGAIN_S)

    def _look_for_stops_soon(self) -> None:
        if self._stop_timer is None:
            self._stop_timer = asyncio.get_running_loop().call_later(_LOOK_FOR_STOPS_S, self._look_for_stops)

    def _look_for_stops(self) -> None:
        """Cancel the turns that another process asked to stop, and schedule the next check while any turn exists."""
        self._stop_timer = None
        if not self._live:
            return
        to_stop = frozenset(self._services.records.turns_to_stop())
        for live in self._all_live():
            if live.turn_id in to_stop and not live.is_done:
                self._services.keep_alive(live.stop())
        self._look_for_stops_soon()

    async def _record_cut(self, deps: Deps | None) -> TurnPaused:
        # A turn that is not recorded yet cannot be resumed.
        if deps is None:
            raise RequestRefused(ErrorCode.STUDIO_CLOSING)
        try:
            await self._runner.record_cut(deps)
        except RequestRefused:
            raise RequestRefused(ErrorCode.STUDIO_CLOSING) from None
        return TurnPaused(turn_id=deps.turn.id, is_cut=True)

    async def _begin(
        self, who: _Identity, request: TurnRequest, live: LiveTurn, entry: _QueuedTurn, *, is_again: bool
    ) -> None:
        services, entry.prepared = self._services, None
        conversation = await services.records.conversations.get(who.conversation_id, who.owner)
        if request.request_id:
            known = services.records.requested_turn(conversation.id, request.request_id)
            if known is not None:
                raise TurnKnown(known)
        used = await services.quota.check(who.owner, new_pictures=len(request.images) or 1)
        if used >= NEARLY_FULL:
            live.publish(ThoughtLog(step=Step.NEARLY_FULL, parameters={"percent": int(used * 100)}))
        request = replace(request, settings=await services.under_caps(request.settings, who.owner))
        if request.instead_of is not None:
            # A paused turn at the end of the branch that it leaves stays paused there.
            conversation = before(conversation, request.instead_of)
        count = len(request.images)
        handles = await services.records.conversations.next_handles(conversation.id, count) if count else []
        turn, uploads = await prepare(request, conversation, services.images, services.provider_name(who.key), handles)
        turn = turn.model_copy(update={"maximum_usd": await self._maximum_usd(conversation, turn, request)})
        # If the turn has to be prepared again, its stored pictures are not decoded again.
        entry.request = replace(request, images=kept_uploads(request, uploads)) if uploads else request
        deps = await self._deps(who, conversation, turn, live, may_repeat=is_again)
        if request.repeats is not None:
            deps.ledger.record_answer("planner:1", deps.text_model, request.repeats)
        # Before the first write: a turn cancelled while it is being recorded must not stay recorded as running.
        entry.prepared = deps
        await services.records.turns.begin(
            conversation.id, turn, uploads, prepared_at=conversation.version, place=entry.place
        )
        entry.place = None
        await self._supersede_resting(conversation)
        await self._runner.begin(deps, live)
        await self._log_failure(who, deps, live)

    async def _maximum_usd(self, conversation: Conversation, turn: Turn, request: TurnRequest) -> float | None:
        """Return the maximum cost of the turn: the user's budget, else the lower of estimate and shown maximum.

        None when prices are unknown or everything is free."""
        services = self._services
        if turn.settings.budget_usd is not None:
            return turn.settings.budget_usd
        marked = {turn.editing, *turn.references, *(one.handle for one in turn.uploads)} - {None, ""}
        guess = turn_estimate(
            services.catalogue,
            turn.provider,
            (await services.tools()).values(),
            conversation,
            turn.settings,
            today(),
            text=turn.text,
            characters=len(turn.text),
            pictures=len(marked),
            masks=len(turn.masked) or int(turn.has_area),
        )
        if guess.unpriced or guess.most_usd <= 0:
            return None
        return guess.most_usd if request.maximum_usd is None else min(guess.most_usd, request.maximum_usd)

    async def _resume(
        self,
        who: _Identity,
        turn_id: str,
        decision: Decision | None,
        live: LiveTurn,
        entry: _QueuedTurn,
        *,
        may_repeat: bool,
    ) -> None:
        services, entry.prepared = self._services, None
        conversation = await services.records.conversations.get(who.conversation_id, who.owner)
        turn = conversation.turn(turn_id)
        if turn is None or not self.can_go_on(conversation, turn, who.key):
            if decision is None and turn is not None and not can_go_on(turn):
                # Another request has already resumed it.
                raise TurnKnown(turn.id)
            raise RequestRefused(ErrorCode.PLAN_GONE if decision is not None else ErrorCode.CANNOT_GO_ON)
        deps = await self._deps(who, before(conversation, turn.id), turn, live, may_repeat=may_repeat)
        if decision is None and may_repeat:
            deps.budget.raise_limit_to(deps.budget.more_usd)
        entry.prepared = deps
        try:
            await services.records.turns.take_up(conversation.id, turn, place=entry.place)
        except TurnKnown:
            if decision is not None:
                raise RequestRefused(ErrorCode.PLAN_GONE) from None
            raise
        entry.place = None
        try:
            await self._runner.go_on(deps, live, decision)
        except AivistaError:
            # It did not progress, so it stays paused as before.
            await services.records.turns.finish(conversation.id, turn)
            raise
        await self._log_failure(who, deps, live)

    async def _supersede_resting(self, conversation: Conversation) -> None:
        """Close the paused turn before a new one, because the conversation continues without it."""
        last = conversation.turns[-1] if conversation.turns else None
        if last is None or not can_go_on(last):
            return
        if last.state is TurnState.WAITING:
            # A pending plan is dropped, and pending calls are refused.
            update = {"state": TurnState.STOPPED, "components": tuple(map(undecided, last.components))}
            await self._services.records.turns.finish(conversation.id, last.model_copy(update=update))
        self._services.records.journal.release(last.id)
        self._runner.forget(last.id)

    async def report(
        self, conversation: Conversation, turn: Turn, key: SecretStr | None, limit_bytes: int
    ) -> dict[str, JsonValue]:
        """Return the debug report of a turn, without API keys and picture bytes."""
        services = self._services
        calls = list((await services.records.journal.calls(turn.id)).values())
        steps = await services.records.traces.steps(conversation.id, [turn.id])
        return await asyncio.to_thread(
            turn_report,
            conversation,
            turn,
            calls,
            secrets=self._secrets(key),
            trace=steps,
            versions={"langgraph": version("langgraph")},
            limit_bytes=limit_bytes,
        )

    async def _log_failure(self, who: _Identity, deps: Deps, live: LiveTurn) -> None:
        """Log the report of a turn if the turn or one of its steps failed."""
        if not isinstance(live.last, TurnFailed) and not deps.trace.had_error:
            return
        conversation = await self._services.records.conversations.get(who.conversation_id, who.owner)
        turn = conversation.turn(deps.turn.id)
        if turn is None:
            return
        try:
            log_report(await self.report(conversation, turn, who.key, _LOGGED_BYTES))
        except AivistaError as error:
            # The user has already seen the failure itself.
            _log.error("a step of a turn failed and no report of it can be made: %s", error)

    async def _deps(
        self, who: _Identity, conversation: Conversation, turn: Turn, live: LiveTurn, *, may_repeat: bool
    ) -> Deps:
        services = self._services
        is_new, traces = turn.state is TurnState.RUNNING, services.records.traces
        first = 1 if is_new else await traces.next_number(conversation.id, turn.id)
        started_s = time.monotonic() - turn.seconds
        calls = {} if is_new else await services.records.journal.calls(turn.id)
        return Deps(
            services=services,
            conversation=conversation,
            turn=turn,
            provider=await services.provider(who.key),
            provider_name=services.provider_name(who.key),
            publish=live.publish,
            tools=await services.tools(),
            key_fingerprint=self._fingerprint(who.key),
            ledger=Ledger(services.records.journal, conversation.id, turn.id, calls, may_repeat, who.sponsored),
            sponsored=who.sponsored,
            budget=_turn_budget(turn, calls.values()),
            record=TurnRecord(first_progress(turn.messages[0])),
            stopped=live.stopped,
            cut=live.cut,
            started_s=started_s,
            trace=Tracer(
                conversation.id,
                turn.id,
                traces,
                lambda step: None if live.has_ended else live.publish(step),
                self._secrets(who.key),
                started_s,
                first,
                partial(self._telemetry.export, conversation.id) if self._telemetry is not None else None,
            ),
        )

    def _secrets(self, key: SecretStr | None) -> list[SecretStr]:
        return [*secrets_of(self._services.settings), *([key] if key else [])]

    def _fingerprint(self, key: SecretStr | None) -> str:
        """Return a hash that identifies the provider and its key without revealing the key."""
        used = self._services.settings.gemini_api_key if key is None else key
        secret = f"{self._services.provider_name(key)}:{used.get_secret_value() if used else ''}"
        return hashlib.sha256(secret.encode()).hexdigest()

    def _forget(self, live: LiveTurn) -> None:
        self._live[live.conversation_id].remove(live)
        self._recent.keep(live)
        for notify in live.when_ended:
            self._services.keep_alive(notify(live))
        # From now on a repeated request finds the turn in the records; one that was never recorded may run again.
        self._requests = {name: one for name, one in self._requests.items() if one is not live}
        left = self._live[live.conversation_id]
        if not left:
            del self._live[live.conversation_id]
            return
        left[0].is_first.set()
        for place, other in enumerate(left[1:], 1):
            if isinstance(other.last, ThoughtLog) and other.last.step is Step.WAITING:
                other.publish(_behind(place))


def _turn_budget(turn: Turn, calls: Iterable[CallRecord]) -> TurnBudget:
    """Return the budget of a new turn, or of one that resumes after these calls."""
    if turn.maximum_usd is None:
        return TurnBudget()
    paid_usd = max(turn.price_usd, sum(call.price_usd for call in calls))
    return TurnBudget(turn.maximum_usd, paid_usd, more_usd=turn.maximum_usd)


def _behind(count: int) -> ThoughtLog:
    """Return the line that says how many turns of the conversation are ahead of this one."""
    return ThoughtLog(step=Step.WAITING, parameters={"count": count})

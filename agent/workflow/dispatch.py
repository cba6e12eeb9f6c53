"""Turns on their way in: one at a time in a conversation, a few in line behind it, conversations side by side."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

from pydantic import JsonValue, SecretStr

from agent.conversation import Conversation, Turn, TurnState
from agent.errors import AivistaError, ErrorCode, RequestRefused
from agent.events import Step, ThoughtLog, TurnFailed, TurnPaused, TurnStopped
from agent.fetching.reading import PageReader
from agent.plans import Decision
from agent.providers.base import Provider
from agent.providers.catalogue import Catalogue
from agent.redaction import secrets_of
from agent.report import log_report, turn_report
from agent.requests import TurnRequest
from agent.sandbox.runner import Sandbox
from agent.settings import Settings, TurnSettings
from agent.storage.answer_cache import AnswerCache, fingerprint_of
from agent.storage.cache import HistoryImageCache
from agent.storage.checkpoints import Checkpoints
from agent.storage.conversations import ConversationStore
from agent.storage.images import ImageStore
from agent.storage.styles import StyleLibrary
from agent.telemetry import telemetry_of
from agent.tools.base import Tool
from agent.workflow.checkpointed import VALUES
from agent.workflow.deps import Deps
from agent.workflow.graph import turn_graph
from agent.workflow.ledger import Ledger
from agent.workflow.lending import Loan
from agent.workflow.live import LiveTurn
from agent.workflow.pledges import Pledges
from agent.workflow.preparing import prepare
from agent.workflow.replay import told_again
from agent.workflow.retrying import Breakers, Patience
from agent.workflow.tracing import Tracer
from agent.workflow.turn import Runner, before, can_go_on, superseded, taken_up
from agent.workflow.waiting_room import WaitingRoom

MAX_WAITING = 3
_LOGGED_BYTES = 64 << 10

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class House:
    """What every turn of a studio works with. `provider` and `provider_name` go by the person's key; `under_caps` adds
    to a turn's settings the caps that its owner, or else the operator, has chosen. `lend` is what somebody else pays a
    turn of an owner's with this key from, None where nobody does; one that asks for nothing new is not refused. `tools`
    is asked at each turn for what it may call. Once `closing` is set no turn begins."""

    settings: Settings
    catalogue: Catalogue
    images: ImageStore
    records: ConversationStore
    cache: HistoryImageCache
    styles: StyleLibrary
    under_caps: Callable[[TurnSettings, str], Awaitable[TurnSettings]]
    provider: Callable[[SecretStr | None], Awaitable[Provider]]
    provider_name: Callable[[SecretStr | None], str]
    lend: Callable[[str, SecretStr | None, bool], AbstractAsyncContextManager[Loan | None]]
    keep_alive: Callable[[Coroutine[Any, Any, Any]], asyncio.Task[Any]]
    tools: Callable[[], Awaitable[Mapping[str, Tool]]]
    reader: PageReader
    sandbox: Sandbox
    answers: AnswerCache | None = None
    room: WaitingRoom | None = None
    breakers: Breakers = field(default_factory=Breakers)
    closing: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass(frozen=True)
class _Who:
    """Whose turn it is, in which conversation, with which key, and what somebody else pays it from."""

    conversation_id: str
    owner: str
    key: SecretStr | None
    loan: Loan | None = None


_Work = Callable[[_Who, LiveTurn, list[Deps]], Awaitable[None]]


class Dispatch:
    """The running turns of a studio."""

    def __init__(self, house: House) -> None:
        self._house = house
        self._live: dict[str, list[LiveTurn]] = defaultdict(list)
        self._requests: dict[tuple[str, str, str | None], LiveTurn] = {}
        # A lock lives as long as a turn that uses it: conversations come and go by the thousand.
        self._order: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._allotting: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._pledges = Pledges()
        self._opening = asyncio.Lock()
        self._telemetry = telemetry_of(house.settings)
        self._runner: Runner | None = None

    async def finish(self, grace_s: float) -> None:
        """Wait for the turns at work, at most so long, then `aclose`. Those in line never begin, and are told at once.

        To be called once `House.closing` is set.
        """
        await asyncio.gather(*(live.cut_off() for live in self._all_live() if live.turn_id is None))
        at_work = [asyncio.create_task(live.wait()) for live in self._all_live()]
        try:
            if at_work:
                await asyncio.wait(at_work, timeout=grace_s)
        finally:
            # Whoever waits here may lose patience.
            for waiting in at_work:
                waiting.cancel()
            await self.aclose()

    async def aclose(self) -> None:
        """End running turns, on record as far as they came; the next start has them go on."""
        await asyncio.gather(*(live.cut_off() for live in self._all_live()))

    async def close_checkpoints(self) -> None:
        """Close the checkpoints, when nothing runs any more."""
        if self._runner is not None:
            await self._runner.checkpoints.aclose()
        if self._telemetry is not None:
            # What the last turns left to be told goes along.
            await self._house.records.traces.settled()
            await asyncio.to_thread(self._telemetry.close)

    def _all_live(self) -> list[LiveTurn]:
        return [one for turns in self._live.values() for one in turns]

    def running(self, conversation_id: str, owner: str) -> list[LiveTurn]:
        """Return the turns at work or in line in a conversation, the oldest first."""
        return [live for live in self._live.get(conversation_id, []) if live.owner == owner and not live.is_done]

    def busy(self, owner: str) -> frozenset[str]:
        """Return the conversations of an owner that a turn is at work in, or waits for."""
        return frozenset(key for key, turns in self._live.items() for live in turns if live.owner == owner)

    def allotting(self, conversation_id: str) -> asyncio.Lock:
        """Return what guards the giving of handles in a conversation."""
        return self._allotting.setdefault(conversation_id, asyncio.Lock())

    def begin(self, conversation_id: str, request: TurnRequest, owner: str, key: SecretStr | None) -> LiveTurn:
        """Start a turn, or return the one that was started by the same request."""
        name = (conversation_id, owner, request.request_id)
        if name in self._requests:
            return self._requests[name]

        async def work(who: _Who, live: LiveTurn, prepared: list[Deps]) -> None:
            await self._begin(who, request, live, prepared)

        live = self._line_up(_Who(conversation_id, owner, key), work)
        if request.request_id:
            self._requests[name] = live
        return live

    def go_on(
        self,
        conversation_id: str,
        turn_id: str,
        owner: str,
        key: SecretStr | None,
        *,
        decision: Decision | None = None,
        may_repeat: bool = True,
    ) -> LiveTurn:
        """Take up a turn that rests: failed, interrupted, or with a plan and the person's decision about it.

        With `may_repeat` the person has said so, and a call of unknown outcome is made again.
        """

        async def work(who: _Who, live: LiveTurn, prepared: list[Deps]) -> None:
            await self._go_on(who, turn_id, decision, live, prepared, may_repeat=may_repeat)

        asks = decision is None or decision.run
        return self._line_up(_Who(conversation_id, owner, key), work, asks=asks)

    async def switch(self, conversation_id: str, turn_id: str, owner: str) -> Conversation:
        """Return the conversation with another branch shown, the one that holds the turn.

        Raises RequestRefused(CONVERSATION_BUSY) while a turn runs or waits in line, TURN_NOT_FOUND.
        """
        if self.running(conversation_id, owner):
            raise RequestRefused(ErrorCode.CONVERSATION_BUSY)
        # One that begins just now finds the branch that is shown then.
        async with self._order.setdefault(conversation_id, asyncio.Lock()):
            return await self._house.records.switch_branch(conversation_id, turn_id, owner)

    def can_go_on(self, conversation: Conversation, turn: Turn, key: SecretStr | None) -> bool:
        """Return whether the turn rests as the newest of the branch that is shown, and its provider is there."""
        is_newest = bool(conversation.turns) and conversation.turns[-1].id == turn.id
        has_provider = not turn.provider or turn.provider == self._house.provider_name(key)
        return is_newest and has_provider and can_go_on(turn)

    def _line_up(self, who: _Who, work: _Work, *, asks: bool = True) -> LiveTurn:
        """Start a turn's task: it waits for those of its conversation that came before. `asks` is for `House.lend`."""
        prepared: list[Deps] = []
        turns = self._live[who.conversation_id]
        order = self._order.setdefault(who.conversation_id, asyncio.Lock())

        async def in_line(live: LiveTurn) -> None:
            if len(turns) > MAX_WAITING + 1:
                raise RequestRefused(ErrorCode.QUEUE_FULL, count=len(turns) - 1)
            if self._house.closing.is_set():
                raise RequestRefused(ErrorCode.STUDIO_CLOSING)
            if order.locked():
                live.publish(_behind(max(1, turns.index(live))))
            async with order, self._house.lend(who.owner, who.key, asks) as loan, self._seat(live):
                try:
                    await work(replace(who, loan=loan), live, prepared)
                finally:
                    for deps in prepared:
                        self._pledges.let_go(deps.turn.id)
                        deps.trace.close()

        async def on_stop(live: LiveTurn) -> TurnStopped | TurnPaused:
            if live.cut.is_set():
                return await self._record_cut(prepared, live)
            if prepared:
                await (await self._opened()).record_stop(prepared[0], live)
            return TurnStopped()

        live = LiveTurn(who.conversation_id, who.owner, in_line, on_stop, self._forget)
        turns.append(live)
        return live

    def _seat(self, live: LiveTurn) -> AbstractAsyncContextManager[None]:
        return self._house.room.seat(live.publish) if self._house.room is not None else nullcontext()

    async def _record_cut(self, prepared: list[Deps], live: LiveTurn) -> TurnPaused:
        try:
            await (await self._opened()).record_cut(prepared[0], live)
        except (IndexError, RequestRefused):
            # Not on record yet, so there is nothing that could go on.
            raise RequestRefused(ErrorCode.STUDIO_CLOSING) from None
        return TurnPaused(turn_id=prepared[0].turn.id, is_cut=True)

    async def _begin(self, who: _Who, request: TurnRequest, live: LiveTurn, prepared: list[Deps]) -> None:
        house, runner = self._house, await self._opened()
        conversation = await house.records.get(who.conversation_id, who.owner)
        if request.request_id:
            known = await house.records.requested_turn(conversation.id, request.request_id)
            turn = await house.records.turn(conversation.id, known) if known is not None else None
            if turn is not None:
                for event in told_again(conversation, turn):
                    live.publish(event)
                return
        request = replace(request, settings=await house.under_caps(request.settings, who.owner))
        # Uploads get their handles here: a late picture of the turn before must not take the same.
        allotting = self.allotting(who.conversation_id)
        async with allotting:
            conversation = await house.records.get(who.conversation_id, who.owner)
            if request.instead_of is not None:
                # A turn that rests at the end of the branch it leaves goes on resting there.
                conversation = before(conversation, request.instead_of)
            turn, uploads = await prepare(request, conversation, house.images, house.provider_name(who.key))
            deps = await self._deps(who, conversation, turn, live, allotting)
            # Before the first write: a turn stopped while it is recorded must not stay there as running.
            prepared.append(deps)
            await house.records.begin_turn(conversation.id, turn, uploads)
        await self._leave_behind(conversation, runner)
        await runner.begin(deps, live)
        await self._log_failure(who, deps, live)

    async def _go_on(
        self,
        who: _Who,
        turn_id: str,
        decision: Decision | None,
        live: LiveTurn,
        prepared: list[Deps],
        *,
        may_repeat: bool,
    ) -> None:
        house, runner = self._house, await self._opened()
        conversation = await house.records.get(who.conversation_id, who.owner)
        turn = conversation.turn(turn_id)
        if turn is None or not self.can_go_on(conversation, turn, who.key):
            raise RequestRefused(ErrorCode.PLAN_GONE if decision is not None else ErrorCode.CANNOT_GO_ON)
        allotting = self.allotting(who.conversation_id)
        deps = await self._deps(who, before(conversation, turn.id), turn, live, allotting, may_repeat=may_repeat)
        prepared.append(deps)
        await house.records.finish_turn(conversation.id, taken_up(turn))
        try:
            await runner.go_on(deps, live, decision)
        except AivistaError:
            # It never moved: it rests where it did.
            await house.records.finish_turn(conversation.id, turn)
            raise
        await self._log_failure(who, deps, live)

    async def _leave_behind(self, conversation: Conversation, runner: Runner) -> None:
        """Let go of the turn before a new one, if it rested: the conversation goes on without it."""
        last = conversation.turns[-1] if conversation.turns else None
        if last is None or not can_go_on(last):
            return
        left = superseded(last)
        if left is not None:
            await self._house.records.finish_turn(conversation.id, left)
        runner.forget(last)

    async def report(
        self, conversation: Conversation, turn: Turn, key: SecretStr | None, limit_bytes: int
    ) -> dict[str, JsonValue]:
        """Return what happened in a turn, for whoever shall mend it: no key, no byte of a picture."""
        house = self._house
        calls = list((await house.records.journal.calls(turn.id)).values())
        steps = await house.records.traces.steps(conversation.id, [turn.id])
        versions = {"aivista": version("aivista"), "langgraph": version("langgraph")}
        return await asyncio.to_thread(
            turn_report,
            conversation,
            turn,
            calls,
            secrets=self._secrets(key),
            timings=turn.timings,
            trace=steps,
            versions=versions,
            limit_bytes=limit_bytes,
        )

    async def _log_failure(self, who: _Who, deps: Deps, live: LiveTurn) -> None:
        """Print the report of a turn to the log, if it failed, or any of its steps."""
        if not isinstance(live.last, TurnFailed) and not deps.trace.had_error:
            return
        conversation = await self._house.records.get(who.conversation_id, who.owner)
        turn = conversation.turn(deps.turn.id)
        if turn is None:
            return
        try:
            log_report(await self.report(conversation, turn, who.key, _LOGGED_BYTES))
        except AivistaError as error:
            # The person has been told of the failure itself.
            _log.error("a step of a turn failed and no report of it can be made: %s", error)

    async def _deps(
        self,
        who: _Who,
        conversation: Conversation,
        turn: Turn,
        live: LiveTurn,
        allotting: asyncio.Lock,
        *,
        may_repeat: bool = False,
    ) -> Deps:
        house = self._house
        is_new, traces = turn.state is TurnState.RUNNING, house.records.traces
        first = 1 if is_new else await traces.next_number(conversation.id, turn.id)
        started_s = time.monotonic() - turn.seconds
        calls = {} if is_new else await house.records.journal.calls(turn.id)
        return Deps(
            conversation=conversation,
            turn=turn,
            provider=await house.provider(who.key),
            provider_name=house.provider_name(who.key),
            catalogue=house.catalogue,
            images=house.images,
            records=house.records,
            cache=house.cache,
            styles=house.styles,
            allotting=allotting,
            publish=live.publish,
            tools=await house.tools(),
            reader=house.reader,
            sandbox=house.sandbox,
            answers=house.answers,
            key_fingerprint=self._fingerprint(who.key),
            ledger=Ledger(house.records.journal, conversation.id, turn.id, calls, may_repeat, who.loan),
            image_timeout_s=house.settings.image_timeout_s,
            patience=Patience(budget_s=house.settings.retry_budget_s),
            breakers=house.breakers,
            pledges=self._pledges,
            loan=who.loan,
            keep_alive=house.keep_alive,
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

    async def _opened(self) -> Runner:
        async with self._opening:
            if self._runner is None:
                checkpoints = await Checkpoints.opened(self._home, VALUES)
                await checkpoints.keep_only(await self._house.records.resting_turns())
                self._runner = Runner(turn_graph(self._house.settings.patiences, checkpoints), checkpoints)
            return self._runner

    def _secrets(self, key: SecretStr | None) -> list[SecretStr]:
        return [*secrets_of(self._house.settings), *([key] if key else [])]

    def _fingerprint(self, key: SecretStr | None) -> str:
        used = self._house.settings.gemini_api_key if key is None else key
        return fingerprint_of(self._house.provider_name(key), used or None)

    @property
    def _home(self) -> Path:
        return self._house.settings.home

    def _forget(self, live: LiveTurn) -> None:
        self._live[live.conversation_id].remove(live)
        # From now on the record tells of it, as it has become since; and a request that never got there may run.
        self._requests = {name: one for name, one in self._requests.items() if one is not live}
        left = self._live[live.conversation_id]
        for place, other in enumerate(left):
            if place and isinstance(other.last, ThoughtLog) and other.last.step is Step.WAITING:
                other.publish(_behind(place))
        if not left:
            del self._live[live.conversation_id]


def _behind(count: int) -> ThoughtLog:
    """Return how many turns of the conversation go before this one."""
    return ThoughtLog(step=Step.WAITING, parameters={"count": count})

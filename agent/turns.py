"""The turns of a studio: start, decide, retry, follow, cancel, and read from the records."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from pydantic import JsonValue, SecretStr

from agent.conversation import Conversation, Turn, TurnState
from agent.errors import ErrorCode, RequestRefused
from agent.events import TurnEvent
from agent.messages import whole_characters
from agent.providers.catalogue import Catalogue, ModelRole
from agent.report import LIMIT_BYTES
from agent.requests import Decision, TurnRequest
from agent.settings import OPERATOR, TurnSettings
from agent.spending import Estimate, turn_estimate
from agent.storage.images import ImageStore
from agent.storage.records import Records
from agent.workflow.replay import follow_record, repeated, replay_events, request_of
from agent.workflow.sponsoring import TurnRateLimiter

if TYPE_CHECKING:
    from agent.storage.turns import RunningTurn
    from agent.workflow.live import LiveTurn
    from agent.workflow.scheduler import TurnScheduler

# Another process normally stops a turn within a second of the request.
_STOP_S = 5.0


class Turns:
    """The turns of a studio, running and recorded."""

    def __init__(
        self,
        records: Records,
        images: ImageStore,
        catalogue: Catalogue,
        rate: TurnRateLimiter | None,
        *,
        key_of: Callable[[str, SecretStr | None], SecretStr | None],
        provider_name: Callable[[], str],
        scheduler: Callable[[], TurnScheduler],
    ) -> None:
        self._records = records
        self._images = images
        self._catalogue = catalogue
        self._rate = rate
        self._key_of = key_of
        self._provider_name = provider_name
        self._new_scheduler = scheduler
        self.scheduler: TurnScheduler | None = None

    def _started(self) -> TurnScheduler:
        """Return the scheduler, created on first use because LangGraph takes a large part of a second to import."""
        if self.scheduler is None:
            self.scheduler = self._new_scheduler()
        return self.scheduler

    def start(
        self, conversation_id: str, request: TurnRequest, *, owner: str = "local", key: SecretStr | None = None
    ) -> LiveTurn:
        """Start a turn, or follow the turn of the same request. Raises RequestRefused(TOO_MANY_TURNS)."""
        scheduler = self._started()
        if not scheduler.is_known(conversation_id, request, owner):
            self._count(owner)
        return scheduler.start(conversation_id, request, owner, self._key_of(owner, key))

    def decide(
        self,
        conversation_id: str,
        turn_id: str,
        decision: Decision,
        *,
        owner: str = "local",
        key: SecretStr | None = None,
    ) -> LiveTurn:
        """Run or drop the plan of a waiting turn. Raises RequestRefused(TOO_MANY_TURNS); dropping counts as no turn."""
        if decision.run:
            self._count(owner)
        key = self._key_of(owner, key)
        return self._started().resume(conversation_id, turn_id, owner, key, decision=decision)

    async def retry(
        self, conversation_id: str, turn_id: str, *, owner: str = "local", key: SecretStr | None = None
    ) -> LiveTurn:
        """Resume a failed or interrupted turn where it failed, or send its request again as a new turn.

        Raises RequestRefused when the conversation or the turn does not exist, and RequestRefused(TOO_MANY_TURNS).
        """
        conversation, turn = await self._shown_turn(conversation_id, turn_id, owner)
        self._count(owner)
        scheduler, key = self._started(), self._key_of(owner, key)
        if scheduler.can_go_on(conversation, turn, key):
            return scheduler.resume(conversation_id, turn_id, owner, key)
        request = await request_of(conversation, turn, self._images)
        return scheduler.start(conversation_id, request, owner, key, is_again=True)

    def _count(self, owner: str) -> None:
        if self._rate is not None and owner != OPERATOR:
            self._rate.enter(owner)

    async def attach(self, conversation_id: str, owner: str = "local") -> AsyncIterator[TurnEvent]:
        """Follow the running turn of a conversation; see `Studio.attach`."""
        running = self._running(conversation_id, owner)
        if running:
            async for _, event in running[0].follow(running[0].before):
                yield event
            return
        try:
            conversation = await self._records.conversations.get(conversation_id, owner)
        except RequestRefused:
            return
        # A turn of the shown branch that is recorded as running: another process runs it.
        turn = next((one for one in reversed(conversation.turns) if one.state is TurnState.RUNNING), None)
        if turn is not None:
            async for event in follow_record(self._records, conversation_id, owner, turn.id):
                yield event

    async def cancel(self, conversation_id: str, owner: str = "local", turn_id: str | None = None) -> bool:
        """Stop all running and queued turns of the conversation, or only `turn_id`; see `Studio.cancel`."""
        running = [one for one in self._running(conversation_id, owner) if turn_id in (None, one.turn_id)]
        for live in reversed(running):
            await live.stop()
        return await self._stop_elsewhere(conversation_id, owner, turn_id) or bool(running)

    async def _stop_elsewhere(self, conversation_id: str, owner: str, turn_id: str | None) -> bool:
        try:
            await self._records.conversations.get(conversation_id, owner)
        except RequestRefused:
            return False
        if not await self._records.turns.request_stop(conversation_id, turn_id):
            return False
        until_s = time.monotonic() + _STOP_S
        while time.monotonic() < until_s:
            seen = self._records.changes()
            if not await self._records.turns.is_running(conversation_id):
                break
            await self._records.changed(seen, _STOP_S)
        return True

    async def resume_abandoned(self, abandoned: RunningTurn) -> None:
        """Resume a turn whose process died. Calls with an unknown outcome are not repeated."""
        try:
            conversation = await self._records.conversations.of_any_owner(abandoned.conversation_id)
        except RequestRefused:
            # Deleted meanwhile.
            return
        turn, key = conversation.turn(abandoned.turn_id), self._key_of(conversation.owner, None)
        if turn is not None and self._started().can_go_on(conversation, turn, key):
            self._started().resume(conversation.id, turn.id, conversation.owner, key, may_repeat=False)

    def busy(self, owner: str) -> frozenset[str]:
        """Return the ids of an owner's conversations that have a running or queued turn in this process."""
        return self.scheduler.busy(owner) if self.scheduler is not None else frozenset()

    def _running(self, conversation_id: str, owner: str) -> list[LiveTurn]:
        return self.scheduler.running(conversation_id, owner) if self.scheduler is not None else []

    def running(self, conversation_id: str, owner: str = "local") -> LiveTurn | None:
        """Return the conversation's oldest running or queued turn in this process, if there is one."""
        return next(iter(self._running(conversation_id, owner)), None)

    def is_running(self, conversation_id: str, owner: str = "local") -> bool:
        """Return whether the conversation has a running or queued turn in this process."""
        return self.running(conversation_id, owner) is not None

    def count(self, conversation_id: str, owner: str = "local") -> int:
        """Return how many turns of the conversation are running or queued in this process."""
        return len(self._running(conversation_id, owner))

    def find(self, conversation_id: str, turn_id: str, owner: str = "local") -> LiveTurn | None:
        """Return a running turn, or one that ended less than ten minutes ago, to follow from any event.

        None for an older turn, and for a turn that another process ran: `on_record` replays those.
        """
        return self.scheduler.find(conversation_id, turn_id, owner) if self.scheduler is not None else None

    async def on_record(self, conversation_id: str, turn_id: str, owner: str = "local") -> tuple[TurnEvent, ...]:
        """Return the events of a recorded turn of the shown branch. Raises RequestRefused when there is none."""
        conversation, turn = await self._shown_turn(conversation_id, turn_id, owner)
        return tuple(replay_events(conversation, turn))

    async def conversation_of_request(self, request_id: str, owner: str = "local") -> str | None:
        """Return the id of the owner's newest conversation that has a turn with this `request_id`.

        The turn may be queued, running or finished, in any process. None without one, and for a deleted conversation.
        """
        request_id = whole_characters(request_id)
        found = self.scheduler.place_of(request_id, owner) if self.scheduler is not None else None
        return found or await self._records.conversations.of_request(request_id, owner)

    async def request_of(self, conversation_id: str, turn_id: str, owner: str = "local") -> TurnRequest:
        """Return the request of a turn of the shown branch, so that the user can edit and resend it.

        Raises RequestRefused when the turn does not exist, and when the file of one of its pictures is gone.
        """
        conversation, turn = await self._shown_turn(conversation_id, turn_id, owner)
        return await request_of(conversation, turn, self._images)

    async def _shown_turn(self, conversation_id: str, turn_id: str, owner: str) -> tuple[Conversation, Turn]:
        """Return a conversation and a turn of its shown branch. Raises RequestRefused."""
        conversation = await self._records.conversations.get(conversation_id, owner)
        turn = conversation.turn(turn_id)
        if turn is None:
            raise RequestRefused(ErrorCode.TURN_NOT_FOUND)
        return conversation, turn

    async def repeated(
        self, conversation_id: str, handle: str, owner: str = "local", *, difference: str = ""
    ) -> TurnRequest | None:
        """Return a request that generates a picture again: the same prompt, references and parameters.

        `difference` is added to the prompt. None for a picture that cannot be generated again this way. Raises
        RequestRefused when the picture does not exist, and when the file of one of its references is gone.
        """
        conversation = await self._records.conversations.get(conversation_id, owner)
        pro = self._catalogue.model(ModelRole.IMAGE_PRO, self._provider_name())
        return await repeated(conversation, handle, self._images, pro.id, difference)

    async def report(
        self, conversation_id: str, turn_id: str, *, owner: str = "local", key: SecretStr | None = None
    ) -> dict[str, JsonValue]:
        """Return the debug report of a turn: everything that happened, without API keys and picture bytes.

        Raises RequestRefused(CONVERSATION_NOT_FOUND) when the owner has no such turn.
        """
        conversation = await self._records.conversations.get(conversation_id, owner)
        turn = await self._records.conversations.turn(conversation.id, turn_id)
        if turn is None:
            raise RequestRefused(ErrorCode.CONVERSATION_NOT_FOUND)
        return await self._started().report(conversation, turn, key, LIMIT_BYTES)

    def estimate(
        self,
        settings: TurnSettings,
        *,
        text: str = "",
        characters: int = 0,
        pictures: int = 0,
        masks: int = 0,
        has_mask: bool = False,
        conversation: Conversation | None = None,
        provider_name: str | None = None,
    ) -> Estimate:
        """Return the likely cost of a turn with these settings, and its maximum; the turn asks before exceeding that.

        `pictures` counts the uploaded and the marked pictures; `masks` counts the masks among them (the deprecated
        `has_mask` means one). `characters` is the length of the whole message when `text` is only a part of it.
        """
        return turn_estimate(
            self._catalogue,
            self._provider_name() if provider_name is None else provider_name,
            None,
            conversation,
            settings,
            datetime.now(UTC).date(),
            text=text,
            characters=max(characters, len(text)),
            pictures=pictures,
            masks=masks or int(has_mask),
        )

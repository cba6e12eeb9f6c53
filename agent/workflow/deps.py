"""What turns work with and do not change: the services of their studio; and of each its conversation as it was at its
start, its models and its money."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from functools import cached_property
from typing import Any, TypeVar

from pydantic import SecretStr

from agent.conversation import Conversation, EditHistory, Turn
from agent.events import Component, Step, TargetNote, ThoughtLog, TurnEvent, component_events
from agent.fetching.page_reader import PageReader
from agent.messages import TokenUsage
from agent.providers.base import Provider
from agent.providers.catalogue import Catalogue, ModelEntry, ModelRole
from agent.sandbox.runner import Sandbox
from agent.settings import SearchPolicy, Settings, TurnSettings
from agent.storage.cache import ByteCache
from agent.storage.images import ImageStore, ModelPictures
from agent.storage.quota import Quota
from agent.storage.records import Records
from agent.storage.styles import StyleLibrary
from agent.storage.workspace import WorkspaceStore
from agent.tools.base import Tool, ToolContext
from agent.tools.trust import Trust, trust_before, trust_of
from agent.wording.requests import requested_search_in_words
from agent.workflow.concurrency import ConcurrencyLimiter
from agent.workflow.ledger import Ledger, TurnBudget
from agent.workflow.model_answers import CircuitBreakers
from agent.workflow.sponsoring import SponsoredBudget
from agent.workflow.state import Spend, TurnProgress, TurnRecord, added_so_far
from agent.workflow.tracing import Tracer


@dataclass(frozen=True)
class TurnServices:
    """What every turn of a studio works with. `provider` and `provider_name` go by the person's key; `under_caps`
    adds to a turn's settings the caps that its owner, or else the operator, has chosen. `quota` is how much each
    owner may keep. `sponsored` is what somebody else pays a turn of an owner's with this key from, None where
    nobody does; one that asks for nothing new is not refused. `keep_alive` runs a coroutine that must outlive a turn (a
    picture that was paid for). `tools` is asked at each turn for what it may call; `reader` reads the web for all of
    them, and `sandbox` runs their programs. `answers` is there when the operator wants the planner's answers reused.
    Once `closing` is set no turn begins."""

    settings: Settings
    catalogue: Catalogue
    images: ImageStore
    records: Records
    cache: ByteCache
    styles: StyleLibrary
    quota: Quota
    under_caps: Callable[[TurnSettings, str], Awaitable[TurnSettings]]
    provider: Callable[[SecretStr | None], Awaitable[Provider]]
    provider_name: Callable[[SecretStr | None], str]
    sponsored: Callable[[str, SecretStr | None, bool], AbstractAsyncContextManager[SponsoredBudget | None]]
    keep_alive: Callable[[Coroutine[Any, Any, Any]], asyncio.Task[Any]]
    tools: Callable[[], Awaitable[Mapping[str, Tool]]]
    reader: PageReader
    sandbox: Sandbox
    answers: ByteCache | None
    room: ConcurrencyLimiter | None
    breakers: CircuitBreakers
    closing: asyncio.Event


@dataclass(frozen=True)
class Deps:
    """The surroundings of one turn.

    `conversation` is the history before the turn, also when the turn goes on after it was cut off. `publish` gives an
    event to the listeners, past LangGraph's custom stream, which takes each event through a queue and eight steps of
    the event loop. `stopped` is set when the person stops, `cut` when the studio ends under the turn, `settled` when a
    turn that ended early is on record. `tools` are what the planner may call beside pictures and searches; answers that
    are reused belong to a key by `key_fingerprint`. Every call and every node goes through `trace`, and what a node
    says and pays through `record`. `sponsored` is what somebody else pays the turn from, and `budget` has what is left
    of its maximum.
    """

    services: TurnServices
    conversation: Conversation
    turn: Turn
    provider: Provider
    provider_name: str
    publish: Callable[[TurnEvent], None]
    ledger: Ledger
    tools: Mapping[str, Tool]
    key_fingerprint: str
    sponsored: SponsoredBudget | None
    budget: TurnBudget
    stopped: asyncio.Event
    cut: asyncio.Event
    started_s: float
    trace: Tracer
    record: TurnRecord
    settled: asyncio.Event = field(default_factory=asyncio.Event)

    @cached_property
    def text_model(self) -> ModelEntry:
        """The text model that the person chose."""
        return self.services.catalogue.model(ModelRole(self.turn.settings.text_model), self.provider_name)

    @property
    def budget_usd(self) -> float:
        """The most that the turn may cost, chosen or lent; infinity where nothing was said."""
        told = (self.turn.settings.budget_usd, self.sponsored.most_usd if self.sponsored else None)
        return min((one for one in told if one is not None), default=float("inf"))

    @property
    def may_search(self) -> bool:
        """Whether the agent itself may search: the person permits it, the policy leaves it to the agent, it can."""
        settings = self.turn.settings
        return (
            settings.allow_search
            and settings.search_policy != SearchPolicy.IMAGE_ONLY
            and self.text_model.has_grounding
        )

    @property
    def may_ground(self) -> bool:
        """Whether the image model may search: under `both` only when the words ask for search and verification."""
        settings = self.turn.settings
        if not settings.allow_search or not self.text_model.has_grounding:
            return False
        if settings.search_policy == SearchPolicy.BOTH:
            return requested_search_in_words(self.turn.text)
        return settings.search_policy == SearchPolicy.IMAGE_ONLY

    @property
    def elapsed_s(self) -> float:
        """Seconds since the turn began."""
        return time.monotonic() - self.started_s

    async def conversation_now(self) -> Conversation:
        """Return the conversation as it is on record now, with what this turn has put there."""
        return await self.services.records.conversations.get(self.conversation.id, self.conversation.owner)

    def tool_context(self, state: TurnProgress) -> ToolContext:
        """Return what a tool of this turn may reach, as far as the turn has come."""
        return ToolContext(
            conversation=self.conversation,
            images=ModelPictures(self.services.images),
            originals=self.services.images,
            cache=self.services.cache,
            trust=self.trust(state),
            workspace=WorkspaceStore(self.services.records.db).of(self.conversation.id, self.conversation.owner),
            fetcher=self.services.reader,
            sandbox=self.services.sandbox,
            uploads=self.turn.uploads,
        )

    def trust(self, state: TurnProgress) -> Trust:
        """Return what the turn knows by now of what came from outside: read from what the model is given."""
        return trust_of(self._trust_before, self.turn, added_so_far(state), state["components"])

    def edit_history(self, state: TurnProgress) -> EditHistory:
        """Return which pictures were the one to change, with what the person said of it in this turn; none of before
        it where they want a new picture."""
        history = self._history_before
        for component in state["components"]:
            if isinstance(component, TargetNote):
                known = {picture.handle: picture for picture in self.conversation.all_pictures}
                history = history.after(component.change, known)
        return history

    @cached_property
    def _history_before(self) -> EditHistory:
        return EditHistory() if self.turn.starts_anew else self.conversation.edit_history

    @cached_property
    def _trust_before(self) -> Trust:
        return trust_before(self.conversation.turns)

    def spend(self, model: ModelEntry, usage: TokenUsage, *answered: str) -> Spend:
        """Return what a call cost at today's prices; `answered` is its name where it was answered."""
        return Spend(usage=usage, price_usd=model.price_usd(usage, today()), calls=answered)


Shown = TypeVar("Shown", bound=Component)


def today() -> date:
    """Return the date by which prices and prompts go (UTC)."""
    return datetime.now(UTC).date()


def emit(deps: Deps, event: TurnEvent) -> None:
    """Give an event to everyone who follows the turn."""
    deps.record.show(event)
    deps.publish(event)


def show(deps: Deps, component: Shown) -> Shown:
    """Tell what a component shows, and return it for the record."""
    for event in component_events(component):
        emit(deps, event)
    return component


def say(deps: Deps, step: Step, **parameters: str | int | float) -> None:
    """Tell what the agent is doing now, and keep it for the record."""
    line = ThoughtLog(step=step, parameters=parameters, at_s=round(deps.elapsed_s, 3))
    deps.record.say(line)
    emit(deps, line)

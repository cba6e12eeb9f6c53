"""The dependencies of turns: the services of the studio, and for each turn its initial conversation, models and budget.

Turns use these objects and do not replace them."""

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
from agent.workflow.state import Spend, TurnProgress, TurnRecord
from agent.workflow.tracing import Tracer


@dataclass(frozen=True)
class TurnServices:
    """The services that all turns of a studio share.

    `provider` and `provider_name` depend on the user's key; `under_caps` adds the caps of the owner, or else of the
    operator, to a turn's settings. `quota` limits how much each owner may store. `sponsored` gives the sponsor's budget
    for an owner's turn with this key, None without a sponsor; only new turns can be refused. `keep_alive` runs a
    coroutine that must outlive its turn (for a paid picture). `tools` is called for each turn and returns its tools;
    `reader` fetches web pages for all of them, and `sandbox` runs their programs. `answers` is set when the operator
    wants answers of the planner to be reused. Once `closing` is set, no turn starts."""

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
    """The dependencies of one turn.

    `conversation` is the history before the turn, also when the turn resumes after an interruption. `publish` sends an
    event directly to the listeners; LangGraph's custom stream would take each event through a queue and eight steps of
    the event loop. `stopped` is set when the user cancels, `cut` when the studio ends during the turn, `settled` when a
    turn that ended early is recorded. `tools` are what the planner may call in addition to image generation and search;
    `key_fingerprint` ties reused answers to an API key. Every call and every node goes through `trace`, and the output
    and payments of a node go through `record`. `sponsored` is the sponsor's budget for the turn, if any, and `budget`
    has the rest of the turn's maximum.
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
        """The text model that the user chose."""
        return self.services.catalogue.model(ModelRole(self.turn.settings.text_model), self.provider_name)

    @property
    def budget_usd(self) -> float:
        """The maximum cost of the turn by the user's setting or the sponsor's budget; infinity without either."""
        limits = (self.turn.settings.budget_usd, self.sponsored.most_usd if self.sponsored else None)
        return min((one for one in limits if one is not None), default=float("inf"))

    @property
    def may_search(self) -> bool:
        """Whether the agent itself may search: the user and the policy allow it, and the text model can search."""
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
        """The seconds since the turn began."""
        return time.monotonic() - self.started_s

    async def conversation_now(self) -> Conversation:
        """Return the currently recorded conversation, including what this turn has recorded."""
        return await self.services.records.conversations.get(self.conversation.id, self.conversation.owner)

    def tool_context(self, state: TurnProgress) -> ToolContext:
        """Return the context for a tool call at this point of the turn."""
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
        """Return the current trust state: which content from outside the model has received."""
        added = [*state["messages"], *state["answers"].values()]
        return trust_of(self._trust_before, self.turn, added, state["components"])

    def edit_history(self, state: TurnProgress) -> EditHistory:
        """Return the edit targets including this turn's moves; without earlier ones if the user wants a new picture."""
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
        """Return the cost of a call at today's prices; `answered` is its name if it was answered."""
        return Spend(usage=usage, price_usd=model.price_usd(usage, today()), calls=answered)


Shown = TypeVar("Shown", bound=Component)


def today() -> date:
    """Return today's date in UTC, which prices and prompts use."""
    return datetime.now(UTC).date()


def emit(deps: Deps, event: TurnEvent) -> None:
    """Record an event and publish it to the turn's listeners."""
    deps.record.show(event)
    deps.publish(event)


def show(deps: Deps, component: Shown) -> Shown:
    """Emit the events of a component, and return the component for the record."""
    for event in component_events(component):
        emit(deps, event)
    return component


def say(deps: Deps, step: Step, **parameters: str | int | float) -> None:
    """Emit and record a line about what the agent is doing now."""
    line = ThoughtLog(step=step, parameters=parameters, at_s=round(deps.elapsed_s, 3))
    deps.record.say(line)
    emit(deps, line)

"""Conversations in a studio that the tests of a file share, with the strict Gemini server behind it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from pydantic import SecretStr

from agent import (
    Component,
    Conversation,
    Decision,
    ErrorInfo,
    Picture,
    PictureReady,
    Plan,
    PlanCard,
    PlanEdit,
    PlanReady,
    Receipt,
    StoredPicture,
    Studio,
    TextDelta,
    TraceStep,
    Turn,
    TurnEvent,
    TurnFailed,
    TurnRequest,
    TurnSettings,
    TurnStarted,
    UploadSource,
)
from tests.support.gemini import KEY
from tests.support.scenes import of_type, only
from tests.support.waiting import until
from tests.wire_server import Answer, Brain, GeminiServer, WireRequest

Event = TypeVar("Event", bound=TurnEvent)
Script = Answer | Brain | Sequence[Answer | Brain] | None
_KEY = SecretStr(KEY)


@dataclass(frozen=True)
class TurnResult:
    """What came of a turn: its events, its record (None where there is none), and what the models received for it."""

    events: list[TurnEvent]
    turn: Turn | None
    requests: list[WireRequest]

    @property
    def id(self) -> str:
        """The id of the turn."""
        return only(self.events, TurnStarted).turn_id

    @property
    def words(self) -> str:
        """What the agent said."""
        return "".join(event.text for event in of_type(self.events, TextDelta))

    @property
    def pictures(self) -> list[Picture]:
        """The pictures that were made, in the order in which they came."""
        return [event.picture for event in of_type(self.events, PictureReady)]

    @property
    def picture(self) -> Picture:
        """The one picture that was made."""
        [picture] = self.pictures
        return picture

    @property
    def receipt(self) -> Receipt:
        """The receipt of the one picture that was made."""
        assert self.picture.receipt is not None
        return self.picture.receipt

    @property
    def failure(self) -> ErrorInfo:
        """Why the turn failed."""
        return only(self.events, TurnFailed).error

    @property
    def record(self) -> Turn:
        """The turn on record, where there is to be one."""
        assert self.turn is not None
        return self.turn

    @property
    def components(self) -> Sequence[Component]:
        """What the turn shows."""
        return self.record.components

    def one(self, kind: type[Event]) -> Event:
        """Return the one event of a kind."""
        return only(self.events, kind)

    def painted(self) -> list[WireRequest]:
        """Return what the image models received."""
        return [request for request in self.requests if request.kind == "image"]


@dataclass(frozen=True)
class Talk:
    """A conversation of an owner who has no other."""

    studio: Studio
    models: GeminiServer
    id: str
    owner: str

    async def say(
        self, text: str, *images: UploadSource, plan: Script = None, image: Script = None, **chosen: Any
    ) -> TurnResult:
        """Run a turn to its end or rest.

        `plan` is what the text models answer, one after the other, and `image` what the image models do. What is
        chosen belongs to the request (`editing`, `mask`, …) or else to its settings; nothing is reviewed unless asked.
        """
        before = self._script(plan, image)
        return await self._result([event async for event in self.run(text, *images, **chosen)], before)

    async def follow(
        self, on_event: Callable[[TurnEvent], Awaitable[object]], text: str, *, plan: Script = None, **chosen: Any
    ) -> TurnResult:
        """Run a turn, and do something about each event before the next one is heard."""
        before, events = self._script(plan, chosen.pop("image", None)), list[TurnEvent]()
        async for event in self.run(text, **chosen):
            events.append(event)
            await on_event(event)
        return await self._result(events, before)

    async def send(self, request: TurnRequest, plan: Script = None, image: Script = None) -> TurnResult:
        """Run a request as it is."""
        before = self._script(plan, image)
        events = self.studio.run_turn(self.id, request, owner=self.owner, key=_KEY)
        return await self._result([event async for event in events], before)

    async def stop_at(
        self, kind: type[TurnEvent], text: str, held: int = 0, plan: Script = None, image: Script = None, **chosen: Any
    ) -> TurnResult:
        """Run a turn and press Stop at its first event of a kind, when the models hold `held` answers."""
        before, events, stopping = self._script(plan, image), [], None
        async for event in self.run(text, **chosen):
            events.append(event)
            if isinstance(event, kind) and stopping is None:
                await asyncio.to_thread(self.models.wait_for_held, held)
                stopping = asyncio.create_task(self.studio.cancel(self.id, self.owner))
        assert stopping is not None
        assert await stopping
        return await self._result(events, before)

    async def decide(
        self, turn: TurnResult | Turn, *edits: PlanEdit, run: bool = True, plan: Script = None, image: Script = None
    ) -> TurnResult:
        """Run the plan of a turn, changed perhaps, or drop it."""
        before, decision = self._script(plan, image), Decision(run=run, edits=edits)
        events = self.studio.decide(self.id, turn.id, decision, owner=self.owner, key=_KEY)
        return await self._result([event async for event in events], before)

    async def retry(
        self, turn: TurnResult | Turn, plan: Script = None, image: Script = None, key: SecretStr = _KEY
    ) -> TurnResult:
        """Have a turn that failed, or was cut off, go on."""
        before = self._script(plan, image)
        events = self.studio.retry(self.id, turn.id, owner=self.owner, key=key)
        return await self._result([event async for event in events], before)

    def run(self, text: str, *images: UploadSource, key: SecretStr = _KEY, **chosen: Any) -> Any:
        """Return the stream of a turn, nothing scripted for it."""
        names = {"editing", "references", "roles", "mask", "expand", "request_id", "instead_of", "maximum_usd"}
        asked = {name: chosen.pop(name) for name in names & chosen.keys()}
        settings = TurnSettings.model_validate({"review": "off", **chosen})
        request = TurnRequest(text=text, images=images, settings=settings, **asked)
        return self.studio.run_turn(self.id, request, owner=self.owner, key=key)

    async def another(self) -> Talk:
        """Return a further conversation of the same owner."""
        return replace(self, id=(await self.studio.conversations.create(self.owner)).id)

    async def kept(self) -> Conversation:
        """Return the conversation as it is on record."""
        return await self.studio.conversations.get(self.id, self.owner)

    async def picture(self, handle: str) -> StoredPicture:
        """Return a picture with its file."""
        return await self.studio.picture(self.id, handle, self.owner)

    async def calls(self, turn: TurnResult | Turn) -> list[Any]:
        """Return what the report of a turn says of its calls, the oldest first."""
        report: dict[str, Any] = await self.studio.turns.report(self.id, turn.id, owner=self.owner)
        calls: list[Any] = report["calls"]
        return calls

    async def trace(self, turn: TurnResult | Turn | None = None) -> tuple[TraceStep, ...]:
        """Return the steps of a turn on record, or of all of them."""
        return await self.studio.trace(self.id, turn.id if turn else None, owner=self.owner)

    async def rests(self) -> None:
        """Return when no turn of it is at work."""
        await until(lambda: not self.studio.turns.is_running(self.id, self.owner))

    def _script(self, plan: Script, image: Script) -> int:
        for script, add in ((plan, self.models.on_text), (image, self.models.on_image)):
            if script is not None:
                add(*(script if isinstance(script, Sequence) else [script]))
        return len(self.models.requests)

    async def _result(self, events: list[TurnEvent], before: int) -> TurnResult:
        turns = (await self.kept()).turns
        ids = {getattr(event, "turn_id", None) for event in events}
        turn = next((turn for turn in turns if turn.id in ids), None)
        return TurnResult(events, turn, self.models.requests[before:])


def card(turn: TurnResult | Turn) -> PlanCard:
    """Return the turn's card of plans."""
    [found] = [one for one in turn.components if isinstance(one, PlanCard)]
    return found


def planned(turn: TurnResult) -> Plan:
    """Return the one plan that a turn shows before it rests."""
    [plan] = turn.one(PlanReady).plans
    return plan

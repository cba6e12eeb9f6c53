"""Small pictures, scripted calls and turns that are run to their end."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from PIL import Image
from pydantic import JsonValue

from agent import Expansion, Mask, Settings, Studio, TextDelta, ToolCallPart, TurnEvent, TurnRequest, TurnSettings
from tests.adapters.fetcher import PageReader
from tests.adapters.models import Line, Painting, PictureBytes, Script, ScriptedProvider
from tests.adapters.tools import Tool
from tests.support.pixels import encoded

Event = TypeVar("Event", bound=TurnEvent)


def png(width: int = 64, height: int = 36, colour: str = "red") -> bytes:
    """Return a picture of one colour."""
    return encoded(Image.new("RGB", (width, height), colour))


def generate(prompt: str = "a red fox", **arguments: JsonValue) -> ToolCallPart:
    """Return the planner's call for a picture."""
    return ToolCallPart(name="generate_image", arguments={"prompt": prompt, "confidence": 0.9, **arguments})


def picture(width: int = 1376, height: int = 768, colour: str = "red", signature: bytes | None = None) -> Line:
    """Return an image model's answer with one picture."""
    return Line((Painting(png(width, height, colour), signature=signature),))


@dataclass
class Scene:
    """A studio with a scripted provider, and what it was asked."""

    settings: Settings
    text: Script = ()
    pictures: Script = ()
    tools: Sequence[Tool] = ()
    reader: PageReader | None = None
    providers: list[ScriptedProvider] = field(default_factory=list)

    def studio(self) -> Studio:
        """Return a studio that plays the scripts."""

        def make(store: PictureBytes) -> ScriptedProvider:
            self.providers.append(ScriptedProvider(store, text=self.text, pictures=self.pictures))
            return self.providers[-1]

        return Studio(self.settings, provider=make, tools=self.tools, reader=self.reader)

    @property
    def provider(self) -> ScriptedProvider:
        """The provider of the newest studio."""
        return self.providers[-1]


async def run(
    studio: Studio,
    conversation_id: str,
    text: str,
    *images: bytes,
    editing: str | None = None,
    references: tuple[str, ...] = (),
    mask: Mask | Sequence[Mask] | None = None,
    expand: Expansion | None = None,
    **settings: object,
) -> list[TurnEvent]:
    """Run one turn to its end and return its events."""
    request = TurnRequest(
        text=text,
        images=images,
        settings=TurnSettings.model_validate(settings),
        editing=editing,
        references=references,
        mask=mask,
        expand=expand,
    )
    return [event async for event in studio.run_turn(conversation_id, request)]


async def stop_at(studio: Studio, conversation_id: str, text: str, kind: type[TurnEvent]) -> list[TurnEvent]:
    """Run a turn, press Stop at its first event of a kind, and return all its events."""
    events: list[TurnEvent] = []
    stopping: asyncio.Task[bool] | None = None
    async for event in studio.run_turn(conversation_id, TurnRequest(text=text)):
        events.append(event)
        if isinstance(event, kind) and stopping is None:
            stopping = asyncio.create_task(studio.cancel(conversation_id))
    assert stopping is not None
    assert await stopping
    return events


def of_type(events: list[TurnEvent], kind: type[Event]) -> list[Event]:
    """Return the events of one kind, in order."""
    return [event for event in events if isinstance(event, kind)]


def only(events: list[TurnEvent], kind: type[Event]) -> Event:
    """Return the one event of a kind."""
    found = of_type(events, kind)
    assert len(found) == 1, found
    return found[0]


def words(events: list[TurnEvent]) -> str:
    """Return what the agent said."""
    return "".join(event.text for event in of_type(events, TextDelta))

"""Pictures of one request that come in another order than they were asked for: they stand in the order of the request,
for the person, for the agent, and for the next change."""

from __future__ import annotations

import asyncio
import io

from PIL import Image

from agent.components import SmartCanvas
from agent.events import PictureReady, TurnDone
from agent.settings import Settings, TurnSettings
from agent.studio import Studio, TurnRequest
from tests.adapters.scripted import Asked, Hold, Line, Painting, calls
from tests.support.scenes import Scene, generate, of_type, png, run

COLOURS = ("red", "lime", "blue")


class Backwards:
    """An image model that lets the last one asked answer first."""

    def __init__(self) -> None:
        self.gates = [asyncio.Event() for _ in COLOURS]
        self.gates[-1].set()
        self.asked = 0

    def __call__(self, asked: Asked) -> Line:
        self.asked += 1
        if self.asked > len(COLOURS):
            return Line((Painting(png(1376, 768, "white")),))
        place = self.asked - 1
        return Line((Hold(self.gates[place]), Painting(png(1376, 768, COLOURS[place]))))


async def colour(studio: Studio, conversation_id: str, handle: str) -> str:
    stored = await studio.picture(conversation_id, handle)
    with Image.open(io.BytesIO(stored.data)) as image:
        red, green, blue = image.convert("RGB").getpixel((9, 9))  # type: ignore[misc]
    return {(255, 0, 0): "red", (0, 255, 0): "lime", (0, 0, 255): "blue"}[red, green, blue]


async def test_they_stand_in_the_order_of_the_request_everywhere(settings: Settings) -> None:
    model = Backwards()
    again = generate(prompt="the same at night", action="edit", reference_mode="LAST_GENERATED")
    text = [calls(generate(number_of_images=3)), calls(again)]
    scene = Scene(settings, text=text, pictures=model)
    arrived: list[str] = []
    async with scene.studio() as studio:
        conversation = await studio.new_conversation()
        request = TurnRequest(text="three foxes", settings=TurnSettings(review=False))
        async for event in studio.run_turn(conversation.id, request):
            if isinstance(event, PictureReady):
                arrived.append(event.picture.handle)
                assert event.picture.handle == f"#{event.index + 1}", "each stands in the place it was asked for"
                model.gates[event.index - 1].set()
        kept = await studio.conversation(conversation.id)
        assert arrived == ["#3", "#2", "#1"]
        assert [one.handle for one in kept.pictures] == ["#1", "#2", "#3"]
        assert tuple([await colour(studio, conversation.id, one.handle) for one in kept.pictures]) == COLOURS
        assert [one for one in kept.turns[0].components if isinstance(one, SmartCanvas)] == [
            SmartCanvas(handles=("#1", "#2", "#3"))
        ]
        events = await run(studio, conversation.id, "the last one at night", review=False)
        assert isinstance(events[-1], TurnDone), events[-1]
        told = next(one for one in reversed(scene.provider.asked) if one.request is None).messages
        listed = "".join(message.text for message in told)
        assert "#1 (painted here; a red fox), #2 (painted here; a red fox), #3 (painted here; a red fox)" in listed
        # The newest is the last one that was asked for, not the last to arrive.
        assert "When no picture is named, #3 is the one to change." in listed
        [made] = of_type(events, PictureReady)
        assert (made.picture.handle, made.picture.parents) == ("#3b", ("#3",))

"""A studio on the strict Gemini server: what the tests of whole turns over real HTTP begin with."""

from __future__ import annotations

from typing import Any

from pydantic import SecretStr

from agent import PictureReady, Settings, Studio, TurnDone, TurnEvent
from tests.support.scenes import of_type, run
from tests.wire_server import Call, GeminiServer, PictureAnswer, Text

KEY = "AIzaSyNobodysKeyForTheTests00000000001"
SMALL = PictureAnswer(width=64, height=36)
# A picture that passes its review.
REVIEWED = Text('{"score": 0.9, "checklist": [], "lettering": "", "feedback": "Good.", "suggestions": []}')


def on_gemini(settings: Settings, url: str, key: str = KEY, **changes: Any) -> Settings:
    """Return the settings with a key, the server's address, and whatever else is to be different."""
    return settings.model_copy(update={"gemini_api_key": SecretStr(key), "gemini_base_url": url, **changes})


def paint(prompt: str = "a red fox", **arguments: Any) -> Call:
    """Return the planner's call for a picture, some words before it."""
    return Call("generate_image", {"prompt": prompt, "confidence": 0.9, **arguments}, text_before="Here it comes.")


def search(query: str = "How high is the tower?") -> Call:
    """Return the planner's call for a search."""
    return Call("web_search", {"query": query})


async def draw(server: GeminiServer, studio: Studio, conversation_id: str, text: str, **arguments: Any) -> str:
    """Run a turn that makes one picture and breaks no rule; return the picture's handle."""
    server.on_text(paint(text, **arguments))
    server.on_image(SMALL)
    events = await run(studio, conversation_id, text)
    assert server.violations == []
    assert isinstance(events[-1], TurnDone), events[-1]
    [ready] = of_type(events, PictureReady)
    return ready.picture.handle


def spoken(events: list[TurnEvent]) -> str:
    """Return everything the events say, as a listener gets it."""
    return "\n".join(event.model_dump_json() for event in events)

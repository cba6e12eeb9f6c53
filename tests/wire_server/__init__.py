"""A strict Gemini API on this machine: real HTTP for the real SDK, scripted by the test."""

from __future__ import annotations

from tests.wire_server.answers import (
    Blocked,
    Call,
    Calls,
    Cut,
    Empty,
    Events,
    Finish,
    Garbage,
    Grounding,
    HttpError,
    MalformedCall,
    MidStreamError,
    Search,
    Text,
)
from tests.wire_server.picture_answers import CorruptPicture, PictureAnswer, TextOnly
from tests.wire_server.process import GeminiProcess
from tests.wire_server.records import Disconnect
from tests.wire_server.refusals import Violation, error_body, key_body, quota_body
from tests.wire_server.request import WireRequest
from tests.wire_server.script import Brain
from tests.wire_server.server import GeminiServer
from tests.wire_server.steps import Answer
from tests.wire_server.timing import Delay, DelayBetweenChunks, Hold

__all__ = [
    "Answer",
    "Blocked",
    "Brain",
    "Call",
    "Calls",
    "CorruptPicture",
    "Cut",
    "Delay",
    "DelayBetweenChunks",
    "Disconnect",
    "Empty",
    "Events",
    "Finish",
    "Garbage",
    "GeminiProcess",
    "GeminiServer",
    "Grounding",
    "Hold",
    "HttpError",
    "MalformedCall",
    "MidStreamError",
    "PictureAnswer",
    "Search",
    "Text",
    "TextOnly",
    "Violation",
    "WireRequest",
    "error_body",
    "key_body",
    "quota_body",
]

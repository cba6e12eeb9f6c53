"""A strict Gemini API on this machine: real HTTP for the real SDK, scripted by the test."""

# The names that tests use.
# ruff: noqa: F401
from __future__ import annotations

from tests.wire_server.answers import (
    Answer,
    Blocked,
    Call,
    Calls,
    CorruptPicture,
    Cut,
    DelayBetweenChunks,
    Empty,
    Events,
    Finish,
    Garbage,
    Grounding,
    Hold,
    HttpError,
    MalformedCall,
    MidStreamError,
    PictureAnswer,
    Search,
    Text,
    TextOnly,
)
from tests.wire_server.refusals import Violation, error_body, key_body, quota_body
from tests.wire_server.request import WireRequest
from tests.wire_server.server import Brain, GeminiProcess, GeminiServer
from tests.wire_server.serving import Disconnect

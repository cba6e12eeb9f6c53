"""A strict server of OpenAI's API on this machine: real HTTP for the real SDK, scripted by the test."""

from __future__ import annotations

from tests.openai_server.answers import (
    Call,
    Calls,
    Cut,
    Events,
    HttpError,
    MidStreamError,
    Picture,
    PictureAt,
    Raw,
    Text,
)
from tests.openai_server.request import ChatRequest, PictureRequest, error_body
from tests.openai_server.server import OpenAIServer
from tests.wire_server.answers import Answer, Hold
from tests.wire_server.refusals import Violation

__all__ = [
    "Answer",
    "Call",
    "Calls",
    "ChatRequest",
    "Cut",
    "Events",
    "Hold",
    "HttpError",
    "MidStreamError",
    "OpenAIServer",
    "Picture",
    "PictureAt",
    "PictureRequest",
    "Raw",
    "Text",
    "Violation",
    "error_body",
]

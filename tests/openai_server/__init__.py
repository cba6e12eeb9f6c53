"""A strict server of OpenAI's API on this machine: real HTTP for the real SDK, scripted by the test."""

# The names that tests use.
# ruff: noqa: F401
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

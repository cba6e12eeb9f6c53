"""Models that say what a test has written."""

from __future__ import annotations

from agent.providers.base import ChatOptions, Embedding, ImageRequest, PictureBytes, Provider, ToolDeclaration
from agent.providers.scripted import Asked, Hold, Line, Painting, Script, ScriptedProvider, calls, finds, says

__all__ = [
    "Asked",
    "ChatOptions",
    "Embedding",
    "Hold",
    "ImageRequest",
    "Line",
    "Painting",
    "PictureBytes",
    "Provider",
    "Script",
    "ScriptedProvider",
    "ToolDeclaration",
    "calls",
    "finds",
    "says",
]

"""Models that say what a test has written."""

from __future__ import annotations

from agent.providers.base import ChatOptions, Embedding, ImageRequest, PictureBytes, Provider, ToolDeclaration
from agent.providers.scripted import Asked, Hold, Line, Painting, Script, ScriptedProvider, calls, finds, says

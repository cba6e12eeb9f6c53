"""The providers that speak to a server."""

from __future__ import annotations

from agent.providers.gemini import GeminiProvider
from agent.providers.openai_compatible import OpenAIProvider
from agent.providers.openai_tags import TagSplitter, read_calls
from agent.providers.pool import NO_KEY, ProviderPool

__all__ = [
    "NO_KEY",
    "GeminiProvider",
    "OpenAIProvider",
    "ProviderPool",
    "TagSplitter",
    "read_calls",
]

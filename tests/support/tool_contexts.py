"""What a tool is given, over real stores, outside of a turn."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

from agent import ToolContext
from agent.fetching.reading import PageReader
from agent.sandbox.runner import Sandbox
from agent.storage.cache import HistoryImageCache
from agent.storage.conversations import ConversationStore
from agent.storage.images import ImageStore
from agent.storage.model_pictures import ModelPictures
from agent.storage.workspace import Limits, WorkspaceStore
from agent.tools.trust import Trust


@contextlib.asynccontextmanager
async def tool_context(home: Path, limits: Limits | None = None) -> AsyncIterator[ToolContext]:
    """Give the context of a tool in an empty conversation of ann's, its workspace within the limits."""
    images = ImageStore(home)
    store, cache = ConversationStore(home, images), HistoryImageCache(home, free_space_floor_bytes=0)
    await store.open()
    conversation = await store.create("ann")
    yield ToolContext(
        conversation=conversation,
        images=ModelPictures(images),
        originals=images,
        cache=cache,
        trust=Trust(),
        workspace=WorkspaceStore(store, limits or Limits()).of(conversation.id, "ann"),
        fetcher=PageReader(),
        sandbox=Sandbox(wall_s=30.0),
    )
    await cache.aclose()
    await store.aclose()

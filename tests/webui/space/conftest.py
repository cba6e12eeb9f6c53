"""Clones of the project with a Spacefile of the test's own, and turns of a Space's visitors."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from pathlib import Path

import pytest

from agent.events import TurnEvent
from agent.studio import Studio
from webui.space.limited import PURSE

ROOT = Path(__file__).parents[3]
LEAST = 'title = "Foxes & Co: 狐"\nemoji = "🦊"\ncolor_from = "red"\ncolor_to = "gray"\n'

Clone = Callable[..., Path]


@pytest.fixture
def clone(tmp_path: Path) -> Clone:
    """Return a function that makes a clone with further lines in its Spacefile; small ones hold hardly any source."""

    def make(more: str = "", *, is_small: bool = True) -> Path:
        root = tmp_path / "clone"
        root.mkdir(exist_ok=True)
        for name in ("pyproject.toml", "requirements.lock", "agent", "webui"):
            if (root / name).exists():
                continue
            if is_small and "." not in name:
                (root / name).mkdir()
                (root / name / "__init__.py").write_text(f'"""{name}"""\n', "utf-8")
            else:
                os.symlink(ROOT / name, root / name)
        (root / "Spacefile").write_text(LEAST + more, "utf-8")
        return root

    return make


async def all_of(events: AsyncIterator[TurnEvent]) -> list[TurnEvent]:
    """Return every event of a turn."""
    return [event async for event in events]


async def leave(events: AsyncIterator[TurnEvent]) -> None:
    """Close a page on its first event."""
    await anext(events)
    assert isinstance(events, AsyncGenerator)
    await events.aclose()


async def settled(studio: Studio) -> None:
    """Wait for what outlives a turn."""
    for task in list(studio._kept):
        await task


async def purse(studio: Studio) -> float:
    """Return what of the owner's was spent today."""
    return (await studio.spend.day(PURSE)).price_usd

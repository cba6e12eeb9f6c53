"""What is kept of the calls of a turn: the journal's rows, and the checkpoints beside them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from langgraph.checkpoint.base import empty_checkpoint

from agent import Value
from agent.moved import MOVED
from agent.storage.checkpoints import NAME as CHECKPOINTS
from agent.storage.checkpoints import Checkpoints
from agent.storage.journal import CallRecord, CallState
from agent.workflow.checkpointed import VALUES
from agent.workflow.live import KEPT_S, RecentTurns
from agent.workflow.sponsoring import SPONSOR_ACCOUNT, WINDOW_S, TurnRateLimiter


class ForeignValue(Value):
    """Something that a checkpoint of ours never holds; `made` tells of every one that was."""

    made: ClassVar[list[str]] = []

    text: str

    def model_post_init(self, context: Any) -> None:
        """Note that there is one more."""
        self.made.append(self.text)


async def foreign_values_made_of_a_checkpoint(home: Path, *, is_allowed: bool) -> list[str]:
    """Write a checkpoint with a value of a type that is not ours, read it, and return what was made of it."""
    await _write(home, ForeignValue(text="rm -rf"))
    ForeignValue.made.clear()
    await _read(home, (*VALUES, *([ForeignValue] if is_allowed else [])))
    return ForeignValue.made


async def kept_of_an_earlier_version(home: Path, value: Any, module: str) -> Any:
    """Write a checkpoint as when the value's type stood in another module, and return what is read of it now."""
    kind = type(value)
    now, kind.__module__ = kind.__module__, module
    try:
        await _write(home, value)
    finally:
        kind.__module__ = now
    return await _read(home, VALUES)


_CONFIG: Any = {"configurable": {"thread_id": "t1", "checkpoint_ns": ""}}


async def _write(home: Path, value: Any) -> None:
    writer = await Checkpoints.opened(home, (*VALUES, ForeignValue))
    kept: Any = {**empty_checkpoint(), "channel_values": {"branch:to:executor": None, "value": value}}
    await writer.aput(_CONFIG, kept, {"source": "loop", "step": 1}, {})
    await writer.aclose()


async def _read(home: Path, values: Sequence[type]) -> Any:
    reader = await Checkpoints.opened(home, values)
    found = await reader.aget_tuple(_CONFIG)
    await reader.aclose()
    assert found is not None
    return found.checkpoint["channel_values"]["value"]

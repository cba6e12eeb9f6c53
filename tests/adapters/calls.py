"""What is kept of the calls of a turn: the journal's rows, and the checkpoints beside them."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

from langgraph.checkpoint.base import empty_checkpoint

from agent import Value
from agent.storage.checkpoints import NAME as CHECKPOINTS
from agent.storage.checkpoints import Checkpoints
from agent.storage.journal import CallRecord, CallState, Heard
from agent.workflow.checkpointed import VALUES
from agent.workflow.sponsoring import SPONSOR_ACCOUNT, WINDOW_S, TurnRateLimiter

__all__ = [
    "CHECKPOINTS",
    "SPONSOR_ACCOUNT",
    "WINDOW_S",
    "CallRecord",
    "CallState",
    "Heard",
    "TurnRateLimiter",
    "foreign_values_made_of_a_checkpoint",
]


class ForeignValue(Value):
    """Something that a checkpoint of ours never holds; `made` tells of every one that was."""

    made: ClassVar[list[str]] = []

    text: str

    def model_post_init(self, context: Any) -> None:
        """Note that there is one more."""
        self.made.append(self.text)


async def foreign_values_made_of_a_checkpoint(home: Path, *, is_allowed: bool) -> list[str]:
    """Write a checkpoint with a value of a type that is not ours, read it, and return what was made of it."""
    config: Any = {"configurable": {"thread_id": "t1", "checkpoint_ns": ""}}
    generous = await Checkpoints.opened(home, (*VALUES, ForeignValue))
    foreign = {"branch:to:executor": None, "foreign": ForeignValue(text="rm -rf")}
    kept: Any = {**empty_checkpoint(), "channel_values": foreign}
    await generous.aput(config, kept, {"source": "loop", "step": 1}, {})
    await generous.aclose()
    ForeignValue.made.clear()
    reader = await Checkpoints.opened(home, (*VALUES, *([ForeignValue] if is_allowed else [])))
    await reader.aget_tuple(config)
    await reader.aclose()
    return ForeignValue.made

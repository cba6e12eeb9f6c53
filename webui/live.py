"""A running turn as a value: what its events have shown so far."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TypeAlias, assert_never

from agent.components import AgentMessage, SearchNote
from agent.errors import ErrorInfo
from agent.events import (
    PaintingStarted,
    PictureFailed,
    PictureReady,
    SearchFound,
    TextDelta,
    ThoughtLog,
    TurnDone,
    TurnEvent,
    TurnFailed,
    TurnStarted,
    TurnStopped,
)
from agent.messages import ImagePart
from agent.pictures import Picture

Ending: TypeAlias = TurnDone | TurnFailed | TurnStopped


@dataclass(frozen=True)
class Painting:
    """Pictures being made: one frame for each, empty until its picture (or the reason for none) has come."""

    asked: PaintingStarted
    frames: tuple[Picture | ErrorInfo | None, ...]

    def with_frame(self, index: int, content: Picture | ErrorInfo) -> Painting:
        """Return the painting with one frame filled."""
        frames = list(self.frames) + [None] * (index + 1 - len(self.frames))
        frames[index] = content
        return replace(self, frames=tuple(frames))


LiveBlock: TypeAlias = AgentMessage | SearchNote | Painting


@dataclass(frozen=True)
class LiveTurn:
    """What a running turn shows: the person's words and pictures, then the agent's blocks in order.

    `step` is what the agent is doing now and `turn_id` is empty until the turn is on record.
    """

    text: str
    named: tuple[str, ...] = ()
    uploads: tuple[ImagePart, ...] = ()
    turn_id: str = ""
    step: ThoughtLog | None = None
    blocks: tuple[LiveBlock, ...] = ()
    ending: Ending | None = None

    @property
    def is_on_record(self) -> bool:
        """Whether the turn is stored, so that it shows after a reload."""
        return bool(self.turn_id)

    @property
    def pictures(self) -> tuple[Picture, ...]:
        """The pictures that have come so far."""
        paintings = (block for block in self.blocks if isinstance(block, Painting))
        return tuple(frame for painting in paintings for frame in painting.frames if isinstance(frame, Picture))

    @property
    def answer(self) -> str:
        """The agent's words so far."""
        return "\n\n".join(block.text for block in self.blocks if isinstance(block, AgentMessage))


def advance_all(turn: LiveTurn, events: Iterable[TurnEvent]) -> LiveTurn:
    """Return the turn after the events."""
    for event in events:
        turn = advance(turn, event)
    return turn


def advance(turn: LiveTurn, event: TurnEvent) -> LiveTurn:
    """Return the turn after one event."""
    match event:
        case TurnStarted():
            return replace(turn, turn_id=event.turn_id, uploads=event.uploads)
        case ThoughtLog():
            return replace(turn, step=event)
        case TextDelta():
            return replace(turn, blocks=_with_words(turn.blocks, event.text))
        case SearchFound():
            note = SearchNote(sources=event.sources, suggestions_html=event.suggestions_html)
            return replace(turn, blocks=(*turn.blocks, note))
        case PaintingStarted():
            return replace(turn, blocks=(*turn.blocks, Painting(event, (None,) * event.count)))
        case PictureReady():
            return _with_frame(turn, event.index, event.picture)
        case PictureFailed():
            return _with_frame(turn, event.index, event.error)
        case TurnFailed() | TurnStopped() | TurnDone():
            return replace(turn, ending=event, step=None)
        case _:
            assert_never(event)


def _with_words(blocks: tuple[LiveBlock, ...], text: str) -> tuple[LiveBlock, ...]:
    if blocks and isinstance(last := blocks[-1], AgentMessage):
        return (*blocks[:-1], AgentMessage(text=last.text + text))
    return (*blocks, AgentMessage(text=text))


def _with_frame(turn: LiveTurn, index: int, content: Picture | ErrorInfo) -> LiveTurn:
    for place in range(len(turn.blocks) - 1, -1, -1):
        block = turn.blocks[place]
        if isinstance(block, Painting):
            blocks = (*turn.blocks[:place], block.with_frame(index, content), *turn.blocks[place + 1 :])
            return replace(turn, blocks=blocks)
    return turn

"""A running turn as a value: what its events have shown so far."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TypeAlias, assert_never

from agent import (
    ActionPanel,
    AgentMessage,
    AskBack,
    Component,
    ConsentAsked,
    ConsentCard,
    ErrorInfo,
    FailureNote,
    ImagePart,
    InterruptedNote,
    PaintingStarted,
    Picture,
    PictureFailed,
    PictureReady,
    PictureReviewed,
    PlanCard,
    PlanReady,
    QuestionAsked,
    Review,
    SearchFound,
    SearchNote,
    StepKind,
    Steps,
    StepTraced,
    StoppedNote,
    TargetChanged,
    TargetNote,
    TextDelta,
    ThoughtDelta,
    ThoughtLog,
    Turn,
    TurnDone,
    TurnEvent,
    TurnFailed,
    TurnPaused,
    TurnStarted,
    TurnStopped,
)
from webui.features.thread.steps import Usual

Ending: TypeAlias = TurnDone | TurnFailed | TurnStopped | TurnPaused
# Blocks that end a turn; they change when the turn resumes.
_OF_THE_END = (Steps, ActionPanel, FailureNote, InterruptedNote, StoppedNote)


@dataclass(frozen=True)
class Painting:
    """Pictures being made: one frame for each, empty until its picture, or the reason for none, has come."""

    asked: PaintingStarted
    frames: tuple[Picture | ErrorInfo | None, ...]

    def with_frame(self, index: int, content: Picture | ErrorInfo) -> Painting:
        """Return the painting with one frame filled."""
        frames = list(self.frames) + [None] * (index + 1 - len(self.frames))
        frames[index] = content
        return replace(self, frames=tuple(frames))

    def has_room(self, index: int, content: Picture | ErrorInfo) -> bool:
        """Whether the frame is empty or holds the same picture: a finished picture is not replaced by another."""
        held = self.frames[index] if index < len(self.frames) else None
        return not isinstance(held, Picture) or (isinstance(content, Picture) and content.handle == held.handle)

    def with_review(self, handle: str, review: Review) -> Painting:
        """Return the painting with the review of one of its pictures."""
        frames = (
            one.model_copy(update={"review": review}) if isinstance(one, Picture) and one.handle == handle else one
            for one in self.frames
        )
        return replace(self, frames=tuple(frames))


LiveBlock: TypeAlias = Component | Painting


@dataclass(frozen=True)
class ShownTurn:
    """What a running turn shows: the user's message, then the agent's blocks in order.

    `step` is what the agent is doing now, None before the first step and while it answers in words. `turn_id` is empty
    until the turn is recorded. `earlier` is what a resumed turn had shown before it paused. `beside` are the turns of
    all versions of the message, if there are several, with this one as the newest (empty while it has no id).
    `tools_done` counts the completed tool calls. `usual` is the expected time of its pictures, if known; `thoughts` are
    the model's thoughts since its last words.
    """

    text: str
    named: tuple[str, ...] = ()
    uploads: tuple[ImagePart, ...] = ()
    turn_id: str = ""
    earlier: tuple[Component, ...] = ()
    step: ThoughtLog | None = None
    thoughts: str = ""
    blocks: tuple[LiveBlock, ...] = ()
    ending: Ending | None = None
    beside: tuple[str, ...] = ()
    tools_done: int = 0
    usual: Usual | None = None

    @property
    def painting(self) -> Painting | None:
        """The newest pictures that are being made, if any are."""
        paintings = [block for block in self.blocks if isinstance(block, Painting)]
        return paintings[-1] if paintings and None in paintings[-1].frames else None

    @property
    def is_on_record(self) -> bool:
        """Whether the turn is recorded, so that it shows after a reload."""
        return bool(self.turn_id)

    @property
    def has_gone_back(self) -> bool:
        """Whether the turn made another picture the one to change."""
        return any(isinstance(block, TargetNote) and block.change.has_moved for block in self.blocks)

    @property
    def pictures(self) -> tuple[Picture, ...]:
        """The pictures that have come so far."""
        paintings = (block for block in self.blocks if isinstance(block, Painting))
        return tuple(frame for painting in paintings for frame in painting.frames if isinstance(frame, Picture))


def resumed(turn: Turn, decided: PlanCard | ConsentCard | None = None) -> ShownTurn:
    """Return a recorded turn that resumes: what it has shown so far, with the decision about what waited.

    The decision is recorded at the end of the turn; without `decided`, a plan counts as run.
    """
    kept = (one for one in turn.components if not isinstance(one, _OF_THE_END))
    earlier = tuple(_decided(one, decided) for one in kept)
    named = (*((turn.editing,) if turn.editing else ()), *turn.references)
    return ShownTurn(turn.text, named, turn.uploads, turn.id, earlier)


def _decided(one: Component, decided: PlanCard | ConsentCard | None) -> Component:
    if not isinstance(one, PlanCard | ConsentCard) or one.state != "pending":
        return one
    if decided is not None and type(one) is type(decided):
        return decided
    return one.model_copy(update={"state": "run" if isinstance(one, PlanCard) else "refused"})


def advance_all(turn: ShownTurn, events: Iterable[TurnEvent]) -> ShownTurn:
    """Return the turn after the events."""
    for event in events:
        turn = advance(turn, event)
    return turn


def advance(turn: ShownTurn, event: TurnEvent) -> ShownTurn:
    """Return the turn after one event."""
    match event:
        case TurnStarted() if turn.turn_id == event.turn_id:
            return replace(turn, uploads=event.uploads or turn.uploads)
        case TurnStarted():
            # A turn that was sent again as another has shown nothing yet.
            return replace(turn, turn_id=event.turn_id, uploads=event.uploads, earlier=())
        case ThoughtLog():
            return replace(turn, step=event)
        case TextDelta():
            # What it thought has led to this.
            return replace(turn, blocks=_with_words(turn.blocks, event.text), step=None, thoughts="")
        case ThoughtDelta():
            return replace(turn, thoughts=turn.thoughts + event.text)
        case SearchFound():
            return _with(turn, SearchNote(sources=event.sources, suggestions_html=event.suggestions_html))
        case PaintingStarted():
            return _with(turn, Painting(event, (None,) * event.count))
        case PictureReady():
            return _with_frame(turn, event.index, event.picture)
        case PictureFailed():
            return _with_frame(turn, event.index, event.error)
        case PictureReviewed():
            blocks = (
                block.with_review(event.handle, event.review) if isinstance(block, Painting) else block
                for block in turn.blocks
            )
            return replace(turn, blocks=tuple(blocks))
        case QuestionAsked():
            return _with(turn, AskBack(question=event.question, subject=event.subject))
        case TargetChanged():
            return _with(turn, TargetNote(change=event))
        case PlanReady():
            return _with(turn, PlanCard(plans=event.plans))
        case ConsentAsked():
            return _with(turn, ConsentCard(asks=event.asks))
        case StepTraced():
            # The trace pane shows it, from the record. A tool may have changed the files.
            is_tool = event.step.kind is StepKind.TOOL
            return replace(turn, tools_done=turn.tools_done + 1) if is_tool else turn
        case TurnFailed():
            note = FailureNote(error=event.error, node=event.node, rewordings=event.rewordings)
            return replace(_with(turn, note), ending=event)
        case TurnStopped():
            return replace(_with(turn, StoppedNote()), ending=event)
        case TurnDone() | TurnPaused():
            return replace(turn, ending=event)
        case _:
            assert_never(event)


def _with(turn: ShownTurn, block: LiveBlock) -> ShownTurn:
    return replace(turn, blocks=(*turn.blocks, block))


def _with_words(blocks: tuple[LiveBlock, ...], text: str) -> tuple[LiveBlock, ...]:
    if blocks and isinstance(last := blocks[-1], AgentMessage):
        return (*blocks[:-1], AgentMessage(text=last.text + text))
    return (*blocks, AgentMessage(text=text))


def _with_frame(turn: ShownTurn, index: int, content: Picture | ErrorInfo) -> ShownTurn:
    for place in range(len(turn.blocks) - 1, -1, -1):
        block = turn.blocks[place]
        if isinstance(block, Painting) and block.has_room(index, content):
            blocks = (*turn.blocks[:place], block.with_frame(index, content), *turn.blocks[place + 1 :])
            return replace(turn, blocks=blocks)
        if isinstance(block, Painting):
            again = block.asked.model_copy(update={"count": 1})
            return _with(turn, Painting(again, (content,)))
    return turn

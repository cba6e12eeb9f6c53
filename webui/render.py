"""Pure: what a turn shows. Events and stored components become the blocks of the thread, without Gradio."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Literal, TypeAlias, assert_never

from agent.components import (
    AgentMessage,
    Component,
    FailureNote,
    SearchNote,
    SmartCanvas,
    Steps,
    StoppedNote,
)
from agent.conversation import Conversation, Turn
from agent.errors import ErrorInfo
from agent.events import TurnDone, TurnFailed, TurnStopped
from agent.messages import ImagePart
from agent.pictures import Picture
from webui import cards
from webui.cards import THREAD_EDGE_PX, View
from webui.live import Ending, LiveBlock, LiveTurn, Painting
from webui.markdown import safe_markdown
from webui.receipts import folded_receipt

Role: TypeAlias = Literal["user", "assistant"]


@dataclass(frozen=True)
class Prose:
    """Words shown as Markdown by the page, whose sanitiser they pass."""

    role: Role
    text: str


@dataclass(frozen=True)
class Card:
    """A trusted piece of HTML of ours."""

    role: Role
    html: str


Block: TypeAlias = Prose | Card


def render_conversation(view: View, conversation: Conversation, *, without: str = "") -> list[Block]:
    """Return the thread of a stored conversation; `without` names a running turn that is shown live instead."""
    pictures = {picture.handle: picture for picture in conversation.pictures}
    return [block for turn in conversation.turns if turn.id != without for block in render_turn(view, turn, pictures)]


def render_turn(view: View, turn: Turn, pictures: Mapping[str, Picture]) -> list[Block]:
    """Return the blocks of a stored turn."""
    named = (*((turn.editing,) if turn.editing else ()), *turn.references)
    blocks = _said(view, turn.text, named, turn.uploads)
    for component in turn.components:
        blocks += _component(view, component, pictures, turn.id)
    return blocks


def render_live(view: View, turn: LiveTurn, seconds: float) -> list[Block]:
    """Return the blocks of a running turn; `seconds` is how long it has run."""
    blocks = _said(view, turn.text, turn.named, turn.uploads) if _is_shown(turn) else []
    now = Card("assistant", cards.live_line(view.words, turn.step, seconds)) if turn.ending is None else None
    for block in turn.blocks:
        if now is not None and isinstance(block, Painting):
            blocks.append(now)
            now = None
        blocks += _live_block(view, block)
    if now is not None:
        blocks.append(now)
    return blocks + _ending(view, turn.ending, turn.turn_id)


def _is_shown(turn: LiveTurn) -> bool:
    """A message refused before it was stored goes back to the composer and leaves no bubble."""
    return turn.is_on_record or not isinstance(turn.ending, TurnFailed)


def _said(view: View, text: str, named: Sequence[str], uploads: Sequence[ImagePart]) -> list[Block]:
    shown: list[ImagePart | str] = [*named, *(upload for upload in uploads if upload.handle)]
    blocks: list[Block] = [Card("user", cards.thumbs(view, shown))] if shown else []
    if text.strip():
        blocks.append(Prose("user", safe_markdown(text)))
    return blocks


def _live_block(view: View, block: LiveBlock) -> list[Block]:
    match block:
        case AgentMessage():
            return _prose(block.text)
        case SearchNote():
            return [_search_note(view, block)]
        case Painting():
            return [Card("assistant", cards.gallery(view, _frames(view, block)))]
        case _:
            assert_never(block)


def _frames(view: View, painting: Painting) -> list[str]:
    figures = []
    for number, frame in enumerate(painting.frames, start=1):
        match frame:
            case None:
                figures.append(cards.pending_frame(view.words, painting.asked.width, painting.asked.height))
            case ErrorInfo():
                figures.append(cards.failed_frame(view.words, number, frame))
            case Picture():
                figures.append(figure(view, frame))
            case _:
                assert_never(frame)
    return figures


def _ending(view: View, ending: Ending | None, turn_id: str) -> list[Block]:
    match ending:
        case None | TurnDone():
            return []
        case TurnStopped():
            return [Card("assistant", cards.stopped(view.words))]
        case TurnFailed():
            return [Card("assistant", cards.failure(view, ending.error, turn_id))]
        case _:
            assert_never(ending)


def _component(view: View, component: Component, pictures: Mapping[str, Picture], turn_id: str) -> list[Block]:
    match component:
        case AgentMessage():
            return _prose(component.text)
        case Steps():
            return [Card("assistant", cards.steps(view.words, component.lines, component.seconds))]
        case SmartCanvas():
            known = [pictures[handle] for handle in component.handles if handle in pictures]
            return [Card("assistant", cards.gallery(view, [figure(view, one) for one in known]))] if known else []
        case SearchNote():
            return [_search_note(view, component)]
        case FailureNote():
            return [Card("assistant", cards.failure(view, component.error, turn_id))]
        case StoppedNote():
            return [Card("assistant", cards.stopped(view.words))]
        case _:
            assert_never(component)


def _prose(text: str) -> list[Block]:
    return [Prose("assistant", safe_markdown(text))] if text.strip() else []


def _search_note(view: View, note: SearchNote) -> Card:
    return Card("assistant", cards.search_note(view, note.sources, note.suggestions_html))


def figure(view: View, picture: Picture) -> str:
    """Return a picture in the thread: its frame, its buttons, its receipt."""
    words, handle = view.words, picture.handle
    ratio = f"{picture.image.width or 1}/{picture.image.height or 1}"
    note = words("picture.sketch") if picture.receipt and picture.receipt.is_sketch else ""
    if picture.after_stop:
        note = words("picture.after_stop")
    return (
        f'<figure class="pic"><button type="button" class="frame" data-act="view" data-arg="{escape(handle)}" '
        f'title="{escape(words("action.open", handle=handle))}" style="aspect-ratio:{ratio}">'
        f'<img src="{view.url(handle, THREAD_EDGE_PX)}" alt="{escape(cards.picture_alt(words, picture))}">'
        f"{cards.tag(handle, note)}</button>"
        f"<figcaption>{cards.picture_actions(view, handle)}{folded_receipt(view, picture)}</figcaption></figure>"
    )

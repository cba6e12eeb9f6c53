"""What a turn shows. Events and stored components become the HTML of the thread; nothing is asked and nothing kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from html import escape
from typing import Literal, NamedTuple, TypeAlias, assert_never

from markupsafe import Markup

from agent import (
    ActionPanel,
    AgentMessage,
    AskBack,
    Component,
    ConsentCard,
    Conversation,
    ErrorInfo,
    FailureNote,
    ImagePart,
    InterruptedNote,
    Outcome,
    Picture,
    PlanCard,
    SearchNote,
    SmartCanvas,
    Source,
    Steps,
    StoppedNote,
    TargetNote,
    TextPart,
    Turn,
    TurnDone,
    TurnFailed,
    TurnPaused,
    TurnState,
    TurnStopped,
)
from webui import cards, notices
from webui.cards import ALONE, Place, View
from webui.features.viewer.actions import action_panel, picture_actions
from webui.features.viewer.receipt import receipt_html
from webui.icons import icon
from webui.live import Ending, LiveBlock, LiveTurn, Painting
from webui.markdown import markdown_html, own_words_html
from webui.notices import asked, target_sentence
from webui.picture_notes import blank_mark, blank_note, earlier_attempts, edit_lines, folded_review
from webui.shell.patches import Patch
from webui.shell.templates import render
from webui.step_lines import folded_thoughts, live_line, steps
from webui.thumbnails import thread_picture
from webui.waiting_cards import closed_consent, closed_plan, open_consent, open_plan

Role: TypeAlias = Literal["user", "assistant"]
# The turn that is not on record yet: its place in the page has this name.
UNRECORDED = "now"


class Block(NamedTuple):
    """A piece of a turn: HTML of ours. Where `name` is empty, it is told from others by its place."""

    role: Role
    html: str
    name: str = ""


class Article(NamedTuple):
    """A turn as an element of the thread: what the person said, and by its id each of the agent's blocks."""

    id: str
    said: str
    told: dict[str, str]

    @property
    def html(self) -> str:
        """The element. `data-is` tells one look of it from another."""
        blocks = "".join(self.told.values())
        said = f'<div class="user" id="{self.id}-said">{self.said}</div>' if self.said else ""
        inside = f'{said}<div class="bot" id="{self.id}-told">{blocks}</div>'
        look = blake2b(inside.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
        return f'<article class="turn" id="{self.id}" data-is="{look}" data-merge>{inside}</article>'


def article_id(turn_id: str) -> str:
    """Return the id of a turn's element."""
    return f"turn-{escape(turn_id or UNRECORDED)}"


def article(turn_id: str, blocks: Sequence[Block]) -> Article:
    """Return the element of a turn."""
    name, told = article_id(turn_id), dict[str, str]()
    for block in blocks:
        if block.role == "assistant":
            place = f"{name}-{block.name or len(told)}"
            told[place] = f'<div class="block" id="{place}" data-merge>{block.html}</div>'
    return Article(name, "".join(one.html for one in blocks if one.role == "user"), told)


def changes(before: Article | None, now: Article) -> list[Patch]:
    """Return what makes the element of a turn another: only the blocks that are new, changed or gone."""
    if before is None or (before.id, before.said) != (now.id, now.said):
        return [Patch(id=now.id, html=now.html, parent="thread")]
    patches, following = [Patch(id=one) for one in before.told if one not in now.told], ""
    for name, html in reversed(now.told.items()):
        if before.told.get(name) != html:
            patches.append(Patch(id=name, html=html, parent=f"{now.id}-told", before=following))
        following = name
    return patches


# Of the first records the turn's end alone says how its last step ended.
_OUTCOMES: dict[TurnState, Outcome] = {TurnState.FAILED: "failed", TurnState.STOPPED: "stopped"}


@dataclass(frozen=True)
class _Place:
    """Where a component stands: in which turn, how far that came, which pictures it may show, which sources its words
    may refer to, and what the models said of their thinking."""

    view: View
    turn_id: str
    state: TurnState
    pictures: Mapping[str, Picture]
    sources: tuple[Source, ...] = ()
    thoughts: str = ""


def render_conversation(
    view: View, conversation: Conversation, *, without: str = "", is_at_rest: bool = True
) -> list[Article]:
    """Return the turns of a stored conversation; `without` names a running turn that is shown live instead."""
    pictures = {picture.handle: picture for picture in conversation.pictures}
    is_busy = bool(without) or not is_at_rest
    return [
        article(turn.id, render_turn(view, turn, pictures, beside=conversation.forks.get(turn.id, ()), is_busy=is_busy))
        for turn in conversation.turns
        if turn.id != without
    ]


def render_turn(
    view: View,
    turn: Turn,
    pictures: Mapping[str, Picture],
    *,
    beside: Sequence[str] = (),
    is_busy: bool = False,
) -> list[Block]:
    """Return the blocks of a stored turn.

    `beside` are the turns of all versions of its words, if there are several; while a turn is at work (`is_busy`)
    they can neither be switched nor said otherwise.
    """
    place = _Place(view, turn.id, turn.state, pictures, _sources(turn.components), _thoughts(turn))
    named = (*((turn.editing,) if turn.editing else ()), *turn.references)
    blocks = _said(view, turn.text, named, turn.uploads)
    blocks.append(Block("user", _said_tools(view, turn.id, turn.text, beside, is_busy=is_busy)))
    if place.thoughts.strip() and not any(isinstance(one, Steps) for one in turn.components):
        # A turn of nothing but words has no other record of what was done.
        blocks.append(Block("assistant", folded_thoughts(view.words, place.thoughts)))
    for component in turn.components:
        blocks += _component(place, component)
    answer = "\n\n".join(one.text for one in turn.components if isinstance(one, AgentMessage)).strip()
    if answer and turn.state is not TurnState.RUNNING:
        blocks.append(Block("assistant", render("thread/told-tools.html", view.words, answer=answer), "copy"))
    return blocks


def _said_tools(view: View, turn_id: str, text: str, beside: Sequence[str], *, is_busy: bool) -> str:
    """Return what stands under the person's words. `beside` are the turns of all versions, the oldest first; `turn_id`
    is empty while the turn has none yet."""
    count = len(beside)
    at = beside.index(turn_id) if turn_id in beside else count - 1
    return render(
        "thread/said-tools.html",
        view.words,
        turn_id=turn_id,
        text=text,
        is_busy=is_busy,
        count=count,
        number=at + 1,
        previous=beside[at - 1] if at > 0 else "",
        next=beside[at + 1] if at + 1 < count else "",
    )


def render_live(
    view: View, turn: LiveTurn, seconds: float, pictures: Mapping[str, Picture] | None = None
) -> list[Block]:
    """Return the blocks of a running turn; `seconds` is how long it has run, `pictures` are the conversation's."""
    place = _Place(view, turn.turn_id, TurnState.RUNNING, pictures or {}, sources=_sources(turn.earlier))
    blocks: list[Block] = []
    if _is_shown(turn):
        blocks += _said(view, turn.text, turn.named, turn.uploads)
        blocks.append(Block("user", _said_tools(view, turn.turn_id, turn.text, turn.beside, is_busy=True)))
    for component in turn.earlier:
        blocks += _component(place, component)
    line = live_line(view.words, turn.step, seconds, turn.tools_done, turn.usual, turn.thoughts)
    now = Block("assistant", line, "live") if turn.ending is None else None
    for block in turn.blocks:
        if now is not None and isinstance(block, Painting):
            blocks.append(now)
            now = None
        blocks += _live_block(view, turn, block, place.pictures)
    if now is not None:
        blocks.append(now)
    return blocks + _ending(view, turn.ending, turn.turn_id)


def _is_shown(turn: LiveTurn) -> bool:
    """A message refused before it was stored goes back to the composer and leaves no bubble."""
    return turn.is_on_record or not isinstance(turn.ending, TurnFailed)


def _said(view: View, text: str, named: Sequence[str], uploads: Sequence[ImagePart]) -> list[Block]:
    sent = {upload.handle: upload for upload in uploads if upload.handle}
    # A picture may be marked in the very message it came with: it is shown once, in the place it was sent in.
    shown: list[ImagePart | str] = [*(handle for handle in named if handle not in sent), *sent.values()]
    blocks: list[Block] = [Block("user", cards.thumbs(view, shown))] if shown else []
    if text.strip():
        blocks.append(Block("user", f'<div class="md">{own_words_html(text)}</div>'))
    return blocks


def _live_block(view: View, turn: LiveTurn, block: LiveBlock, pictures: Mapping[str, Picture]) -> list[Block]:
    match block:
        case AgentMessage():
            return _prose(view, block.text, _sources(turn.blocks))
        case SearchNote():
            return [_search_note(view, block)]
        case Painting():
            width, height = block.asked.width, block.asked.height
            return [Block("assistant", cards.gallery(view, _frames(view, block), width, height))]
        case PlanCard():
            is_ready = isinstance(turn.ending, TurnPaused)
            return [Block("assistant", open_plan(view, block.plans, turn.turn_id, is_ready=is_ready))]
        case ConsentCard():
            is_ready = isinstance(turn.ending, TurnPaused)
            return [Block("assistant", open_consent(view, block.asks, turn.turn_id, is_ready=is_ready))]
        case AskBack():
            return [Block("assistant", asked(view, block.question, block.subject, _newest(pictures)))]
        case TargetNote():
            return [_target_note(view, block, pictures)]
        case _:
            assert_never(block)


def _newest(pictures: Mapping[str, Picture]) -> str:
    *_, newest = ("", *pictures)
    return newest


def _frames(view: View, painting: Painting) -> list[str]:
    figures = []
    places = _places([frame.handle if isinstance(frame, Picture) else "" for frame in painting.frames])
    for number, (frame, place) in enumerate(zip(painting.frames, places, strict=True), start=1):
        match frame:
            case None:
                figures.append(cards.pending_frame(view.words, painting.asked.width, painting.asked.height))
            case ErrorInfo():
                figures.append(cards.failed_frame(view.words, number, frame))
            case Picture():
                model = _model(frame)
                figures.append(figure(view, frame, place, model if model != painting.asked.model_label else ""))
            case _:
                assert_never(frame)
    return figures


def _ending(view: View, ending: Ending | None, turn_id: str) -> list[Block]:
    match ending:
        case None | TurnDone() | TurnPaused():
            return []
        case TurnStopped():
            return [Block("assistant", notices.stopped(view.words))]
        case TurnFailed():
            return [Block("assistant", notices.failure(view, ending.error, turn_id, ending.rewordings))]
        case _:
            assert_never(ending)


def _component(place: _Place, component: Component) -> list[Block]:
    view = place.view
    match component:
        case AgentMessage():
            return _prose(view, component.text, place.sources)
        case Steps():
            outcome = component.outcome or _OUTCOMES.get(place.state, "done")
            return [Block("assistant", steps(view.words, component.lines, component.seconds, outcome, place.thoughts))]
        case SmartCanvas():
            return _canvas(place, component)
        case ActionPanel() if component.handle not in place.pictures:
            return []
        case ActionPanel():
            return [Block("assistant", action_panel(view, component))]
        case PlanCard():
            return [_plan(place, component)]
        case ConsentCard():
            return [_consent(place, component)]
        case AskBack():
            return [Block("assistant", asked(view, component.question, component.subject, _newest(place.pictures)))]
        case TargetNote():
            return [_target_note(view, component, place.pictures)]
        case SearchNote():
            return [_search_note(view, component)]
        case FailureNote():
            return [Block("assistant", notices.failure(view, component.error, place.turn_id, component.rewordings))]
        case InterruptedNote():
            return [Block("assistant", notices.interrupted(view, component.may_have_been_charged, place.turn_id))]
        case StoppedNote():
            return [Block("assistant", notices.stopped(view.words))]
        case _:
            assert_never(component)


def _target_note(view: View, note: TargetNote, pictures: Mapping[str, Picture]) -> Block:
    """Return which picture is the one to change now, and the picture itself."""
    said = f'<p class="target">{icon("undo-2", 15)}<span>{escape(target_sentence(view.words, note.change))}</span></p>'
    picture = pictures.get(note.change.handle) if note.change.has_moved else None
    shown = cards.gallery(view, [figure(view, picture)]) if picture is not None else ""
    return Block("assistant", said + shown)


def _canvas(place: _Place, canvas: SmartCanvas) -> list[Block]:
    pictures = _known(place, canvas.handles)
    # Of a turn that is over every picture is there, unless it was deleted since.
    gone = [one for one in canvas.handles if one not in place.pictures and place.state is not TurnState.RUNNING]
    deleted = [Block("assistant", cards.deleted(place.view.words, gone))] if gone else []
    if not pictures:
        return [*deleted]
    places = _places([one.handle for one in pictures])
    models = list(map(_model, pictures))
    # Side by side it matters who painted which.
    notes = models if len(set(models)) > 1 else [""] * len(models)
    figures = [figure(place.view, *one) for one in zip(pictures, places, notes, strict=True)]
    first = pictures[0].image
    html = cards.gallery(place.view, figures, first.width or 1, first.height or 1) + earlier_attempts(
        place.view, _known(place, canvas.earlier)
    )
    return [Block("assistant", html), *deleted]


def _places(handles: Sequence[str]) -> list[Place]:
    """Return where each picture of a request stands; the handle of one that has not come is empty."""
    current = next((at for at, handle in enumerate(handles) if handle), 0)
    pair = " ".join(handles) if len(handles) == 2 and all(handles) else ""
    is_sheet = len(handles) > 1
    return [Place(is_sheet, at == current, pair) for at in range(len(handles))]


def _known(place: _Place, handles: Sequence[str]) -> list[Picture]:
    return [place.pictures[handle] for handle in handles if handle in place.pictures]


def _plan(place: _Place, card: PlanCard) -> Block:
    if card.state == "pending" and place.state is TurnState.WAITING:
        return Block("assistant", open_plan(place.view, card.plans, place.turn_id))
    # A plan goes on record as decided with the end of its turn; until then the turn at work says that it was run.
    was_run = card.state == "run" or (card.state == "pending" and place.state is TurnState.RUNNING)
    return Block("assistant", closed_plan(place.view, card.plans, was_run=was_run))


def _consent(place: _Place, card: ConsentCard) -> Block:
    if card.state == "pending" and place.state is TurnState.WAITING:
        return Block("assistant", open_consent(place.view, card.asks, place.turn_id))
    return Block("assistant", closed_consent(place.view, card))


def _prose(view: View, text: str, sources: Sequence[Source]) -> list[Block]:
    if not text.strip():
        return []
    return [
        Block("assistant", f'<div class="md">{markdown_html(text, sources, view.words("builtin.copy_code"))}</div>')
    ]


def _sources(shown: Sequence[Component | LiveBlock]) -> tuple[Source, ...]:
    """Return what the words of a turn may refer to by its number."""
    return next((one.sources for one in shown if isinstance(one, SearchNote) and one.sources), ())


def _search_note(view: View, note: SearchNote) -> Block:
    links = Markup(cards.source_links(note.sources))  # noqa: S704
    html = render("thread/sources.html", view.words, links=links, suggestions=note.suggestions_html)
    return Block("assistant", html)


def _thoughts(turn: Turn) -> str:
    """Return what the models of a turn said of their thinking."""
    parts = (part for message in turn.messages for part in message.parts)
    return "\n\n".join(part.text for part in parts if isinstance(part, TextPart) and part.is_thought)


def _model(picture: Picture) -> str:
    return picture.receipt.model_label if picture.receipt else ""


def figure(view: View, picture: Picture, place: Place = ALONE, model: str = "") -> str:
    """Return a picture in the thread: its frame, its buttons, its receipt, its review; with a `model` to be told apart
    by, that name stands on the picture."""
    words, handle = view.words, picture.handle
    width, height = picture.image.width or 1, picture.image.height or 1
    ratio, shape = f"{width}/{height}", width / height
    note = words("picture.sketch") if picture.receipt and picture.receipt.is_sketch else model
    if picture.after_stop:
        note = words("picture.after_stop")
    current, label = (" now" if place.is_in_sheet and place.is_current else ""), ""
    if place.is_in_sheet:
        label = cards.tag(handle, is_on_picture=False)
    skipped = "" if place.is_current else ' tabindex="-1"'
    actions = picture_actions(view, picture, place)
    return (
        f'<figure class="pic{current}" style="--shape:{shape:.4f}">'
        f'<button type="button" class="frame" data-act="view" data-arg="{escape(handle)}" '
        f'title="{escape(words("action.open", handle=handle))}" style="aspect-ratio:{ratio}"{skipped}>'
        f"{thread_picture(view, picture, cards.picture_alt(words, picture), is_in_sheet=place.is_in_sheet)}"
        f"{blank_mark(words, picture)}{cards.tag(handle, note)}</button>"
        f"<figcaption>{blank_note(view, picture)}{label}{actions}{receipt_html(view, picture, is_folded=True)}"
        f"{folded_review(view, picture)}{edit_lines(view, picture)}</figcaption></figure>"
    )

"""HTML of turns and of what surrounds them: the top bar, and the first page in place of a thread. Events and stored
components become HTML; this module calls no model and stores nothing."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from html import escape
from itertools import pairwise
from typing import NamedTuple, assert_never

from markupsafe import Markup
from pydantic import JsonValue

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
    LostRecords,
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
    TurnFailed,
    TurnState,
    best_picture,
)
from webui.features.thread.live import LiveBlock, Painting, ShownTurn
from webui.features.thread.markdown import markdown_html, own_words_html
from webui.features.thread.plans import closed_consent, closed_plan, open_consent, open_plan
from webui.features.thread.steps import asked, failure, folded_thoughts, live_line, steps, target_sentence
from webui.features.viewer import action_panel, picture_actions
from webui.features.viewer.receipt import edit_lines, receipt_html, shown_review
from webui.shell.templates import Patch, render
from webui.spend import price
from webui.view import THREAD_EDGE_PX, View, picture_alt
from webui.words import Words

# The name of the element of a turn that is not recorded yet.
UNRECORDED = "now"
# Longer edges: of frames in a contact sheet, of a picture as wide as the thread, and of the same on a high-density
# screen.
_EDGES_PX = (336, 672, THREAD_EDGE_PX)
# Columns of a contact sheet on a wide page and on a phone, by the number of pictures; the last entry holds for more.
_COLUMNS = {2: (2, 2), 3: (3, 3), 4: (2, 2), 5: (3, 3), 6: (3, 3), 7: (4, 2), 8: (4, 2)}
# In the first records only the end of the turn says how its last step ended.
_OUTCOMES: dict[TurnState, Outcome] = {TurnState.FAILED: "failed", TurnState.STOPPED: "stopped"}
# Turns that come with a conversation; earlier ones come when the user scrolls up.
TURNS_AT_ONCE = 12


class Block(NamedTuple):
    """Something that the agent said or made. A block without a `name` is identified by its position."""

    html: Markup
    name: str = ""


class Article(NamedTuple):
    """A turn as an element of the thread: the user's message, and the agent's blocks by id."""

    id: str
    said: Markup
    blocks: dict[str, Markup]

    @property
    def html(self) -> Markup:
        """The HTML of the element. `data-is` is a digest that tells one state of it from another."""
        said = Markup('<div class="user" id="{}-said">{}</div>').format(self.id, self.said) if self.said else Markup()
        blocks = Markup('<div class="bot" id="{}-blocks">{}</div>').format(self.id, Markup().join(self.blocks.values()))
        look = blake2b((said + blocks).encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
        shown = Markup('<article class="turn" id="{}" data-is="{}" data-merge>{}{}</article>')
        return shown.format(self.id, look, said, blocks)

    @property
    def patch(self) -> Patch:
        """The patch that shows the element, as the newest of the thread if it is not there yet."""
        return Patch(id=self.id, html=self.html, parent="thread")


def article_id(turn_id: str) -> str:
    """Return the id of a turn's element."""
    return f"turn-{escape(turn_id or UNRECORDED)}"


def article(turn_id: str, blocks: Sequence[Block], said: Markup | None = None) -> Article:
    """Return the element of a turn."""
    name, by_id = article_id(turn_id), dict[str, Markup]()
    for block in blocks:
        place = f"{name}-{block.name or len(by_id)}"
        by_id[place] = Markup('<div class="block" id="{}" data-merge>{}</div>').format(place, block.html)
    return Article(name, said or Markup(), by_id)


def changes(before: Article | None, now: Article) -> list[Patch]:
    """Return the patches that turn one state of a turn's element into another: blocks that are new, changed or gone."""
    if before is None or (before.id, before.said) != (now.id, now.said):
        return [now.patch]
    patches, following = [Patch(id=one) for one in before.blocks if one not in now.blocks], ""
    for name, html in reversed(now.blocks.items()):
        if before.blocks.get(name) != html:
            patches.append(Patch(id=name, html=html, parent=f"{now.id}-blocks", before=following))
        following = name
    return patches


@dataclass(frozen=True)
class _Place:
    """The surroundings of a component: its turn and the turn's state, the pictures it may show, the sources it may
    refer to, and the models' thoughts."""

    view: View
    turn_id: str
    state: TurnState
    pictures: Mapping[str, Picture]
    sources: tuple[Source, ...] = ()
    thoughts: str = ""

    @property
    def newest(self) -> str:
        """The handle of the newest picture, or empty."""
        *_, newest = ("", *self.pictures)
        return newest

    @property
    def is_open(self) -> bool:
        """Whether the user is to decide about what waits, now or once the turn pauses."""
        return self.state in (TurnState.WAITING, TurnState.RUNNING)

    def known(self, handles: Sequence[str]) -> list[Picture]:
        """Return those of the named pictures that exist."""
        return [self.pictures[handle] for handle in handles if handle in self.pictures]


def render_turns(
    view: View, conversation: Conversation, turns: Sequence[Turn], *, without: str, is_busy: bool
) -> list[Article]:
    """Return these turns of a stored conversation; `without` names a running turn that is shown live instead. While
    any turn is running, the conversation `is_busy`."""
    pictures = {picture.handle: picture for picture in conversation.pictures}
    return [
        render_turn(view, turn, pictures, beside=conversation.forks.get(turn.id, ()), is_busy=is_busy)
        for turn in turns
        if turn.id != without
    ]


def render_turn(
    view: View, turn: Turn, pictures: Mapping[str, Picture], *, beside: Sequence[str], is_busy: bool
) -> Article:
    """Return a stored turn.

    `beside` are the turns of all versions of its message, if there are several; while a turn is running (`is_busy`)
    they can neither be switched nor edited.
    """
    place = _Place(view, turn.id, turn.state, pictures, _sources(turn.components), _thoughts(turn))
    named = (*((turn.editing,) if turn.editing else ()), *turn.references)
    blocks = [Block(html) for one in turn.components for html in _component(place, one)]
    if place.thoughts.strip() and not any(isinstance(one, Steps) for one in turn.components):
        # A turn of text alone has no other record of what was done.
        blocks.insert(0, Block(folded_thoughts(view.words, place.thoughts)))
    answer = "\n\n".join(one.text for one in turn.components if isinstance(one, AgentMessage)).strip()
    if answer and turn.state is not TurnState.RUNNING:
        blocks.append(Block(view.render("thread/answer-tools.html", answer=answer), "copy"))
    return article(
        turn.id, blocks, _person_block(view, turn.id, turn.text, named, turn.uploads, beside, is_busy=is_busy)
    )


def render_live(view: View, turn: ShownTurn, seconds: float, pictures: Mapping[str, Picture] | None = None) -> Article:
    """Return a running turn; `seconds` is how long it has run, `pictures` are the conversation's."""
    shown = (*turn.earlier, *turn.blocks)
    place = _Place(view, turn.turn_id, TurnState.RUNNING, pictures or {}, sources=_sources(shown))
    blocks = list[Block]()
    line = live_line(
        view.words, turn.step, seconds, turn.tools_done, turn.usual, turn.thoughts, has_blocks=bool(turn.blocks)
    )
    now = [Block(line, "live")] if turn.ending is None else []
    for one in shown:
        if isinstance(one, Painting):
            blocks += [*now, Block(_painting(view, one))]
            now = []
        else:
            blocks += [Block(html) for html in _component(place, one)]
    blocks += now
    # A message that was refused before it was stored goes back to the composer and leaves no bubble.
    is_shown = turn.is_on_record or not isinstance(turn.ending, TurnFailed)
    said = _person_block(view, turn.turn_id, turn.text, turn.named, turn.uploads, turn.beside, is_busy=True)
    return article(turn.turn_id, blocks, said if is_shown else None)


def _person_block(
    view: View,
    turn_id: str,
    text: str,
    named: Sequence[str],
    uploads: Sequence[ImagePart],
    beside: Sequence[str],
    *,
    is_busy: bool,
) -> Markup:
    """Return the user's message with its pictures and actions. `beside` are the turns of all its versions, the
    oldest first; `turn_id` is empty until the turn has one."""
    sent = [upload.handle for upload in uploads if upload.handle]
    count = len(beside)
    at = beside.index(turn_id) if turn_id in beside else count - 1
    return view.render(
        "thread/message.html",
        # A picture may be marked in the message that brought it: it is shown once, in the position of the upload.
        handles=[*(handle for handle in named if handle not in sent), *dict.fromkeys(sent)],
        words=own_words_html(text) if text.strip() else "",
        turn_id=turn_id,
        text=text,
        is_busy=is_busy,
        count=count,
        number=at + 1,
        previous=beside[at - 1] if at > 0 else "",
        next=beside[at + 1] if at + 1 < count else "",
    )


def _component(place: _Place, component: Component) -> Iterator[Markup]:
    view, words = place.view, place.view.words
    match component:
        case AgentMessage():
            if component.text.strip():
                written = markdown_html(component.text, place.sources, words("builtin.copy_code"))
                yield Markup('<div class="md">{}</div>').format(written)
        case Steps():
            outcome = component.outcome or _OUTCOMES.get(place.state, "done")
            yield steps(words, component.lines, component.seconds, outcome, place.thoughts)
        case SmartCanvas():
            yield from _canvas(place, component)
        case ActionPanel():
            if component.handle in place.pictures:
                yield action_panel(view, component)
        case PlanCard():
            if component.state == "pending" and place.is_open:
                yield open_plan(view, component.plans, place.turn_id, is_ready=place.state is TurnState.WAITING)
            else:
                yield closed_plan(view, component.plans, was_run=component.state == "run")
        case ConsentCard():
            if component.state == "pending" and place.is_open:
                yield open_consent(view, component.asks, place.turn_id, is_ready=place.state is TurnState.WAITING)
            else:
                yield closed_consent(view, component)
        case AskBack():
            yield asked(view, component.question, component.subject, place.newest)
        case TargetNote():
            change = component.change
            picture = place.pictures.get(change.handle) if change.has_moved else None
            shown = _sheet(view, [picture]) if picture is not None else ""
            yield view.render("thread/target.html", said=target_sentence(words, change), picture=shown)
        case SearchNote():
            yield view.render("thread/sources.html", sources=component.sources, suggestions=component.suggestions_html)
        case FailureNote():
            yield failure(view, component.error, place.turn_id, component.rewordings)
        case InterruptedNote():
            count = component.may_have_been_charged
            yield view.render("thread/interrupted.html", count=count, turn_id=place.turn_id)
        case StoppedNote():
            yield view.render("thread/stopped.html")
        case _:
            assert_never(component)


def _painting(view: View, painting: Painting) -> Markup:
    asked = painting.asked

    def other(picture: Picture) -> str:
        return _model(picture) if _model(picture) != asked.model_label else ""

    return _sheet(view, painting.frames, asked.width, asked.height, other)


def _canvas(place: _Place, canvas: SmartCanvas) -> Iterator[Markup]:
    view, pictures = place.view, place.known(canvas.handles)
    if pictures:
        # Side by side, it matters which model painted which picture.
        is_told = len(set(map(_model, pictures))) > 1
        first = pictures[0].image
        best = best_picture(pictures)
        sheet = _sheet(view, pictures, first.width, first.height, _model if is_told else None, best)
        tries = [(one.handle, shown_review(view.words, one.review)) for one in place.known(canvas.earlier)]
        yield sheet + view.render("thread/attempts.html", attempts=tries)
    # When a turn is over, all its pictures exist, unless one was deleted since.
    gone = [one for one in canvas.handles if one not in place.pictures and place.state is not TurnState.RUNNING]
    if gone:
        yield view.render("thread/deleted.html", handles=gone)


def _sheet(
    view: View,
    frames: Sequence[Picture | ErrorInfo | None],
    width: int | None = None,
    height: int | None = None,
    note_of: Callable[[Picture], str] | None = None,
    best: Picture | None = None,
) -> Markup:
    """Return the pictures of one request: one as wide as the thread, several as a contact sheet. A frame is None while
    its picture is being made, and holds the reason when it could not be made.

    `width` and `height` are those of the first picture: a sheet has equal frames, into which other shapes are fitted.
    `note_of` returns the label on a picture. Of a sheet, the details of one picture are shown at a time: those of the
    `best`, which the next message changes, else of the first.
    """
    handles = [one.handle if isinstance(one, Picture) else "" for one in frames]
    current = best.handle if best is not None else next(filter(None, handles), "")
    # Of exactly two, both are compared.
    pair = " ".join(handles) if len(handles) == 2 and all(handles) else ""
    is_sheet = len(frames) > 1
    shown = [
        _figure(
            view, one, note_of(one) if note_of else "", pair, is_in_sheet=is_sheet, is_current=one.handle == current
        )
        if isinstance(one, Picture)
        else one
        for one in frames
    ]
    columns = _COLUMNS.get(len(frames), _COLUMNS[8])
    return view.render("thread/sheet.html", frames=shown, width=width or 1, height=height or 1, columns=columns)


def _figure(view: View, picture: Picture, note: str, pair: str, *, is_in_sheet: bool, is_current: bool) -> Markup:
    """Return a picture in the thread: its frame, actions, receipt and review. The browser is offered the sizes that
    a screen may need, none larger than the picture itself."""
    words, image = view.words, picture.image
    width, height = image.width or THREAD_EDGE_PX, image.height or THREAD_EDGE_PX
    longer = max(width, height)
    offered = [edge for smaller, edge in pairwise((0, *_EDGES_PX)) if smaller < longer]
    sizes = [(view.url(picture.handle, edge), max(1, round(width * min(edge, longer) / longer))) for edge in offered]
    if picture.receipt and picture.receipt.is_sketch:
        note = words("picture.sketch")
    return view.render(
        "thread/picture.html",
        picture=picture,
        note=words("picture.after_stop") if picture.after_stop else note,
        sizes=sizes,
        alt=picture_alt(words, picture),
        is_in_sheet=is_in_sheet,
        is_current=is_current,
        actions=picture_actions(view, picture, pair),
        receipt=receipt_html(view, picture, is_folded=True),
        shown=shown_review(words, picture.review),
        edit=edit_lines(view, picture),
    )


def _sources(shown: Sequence[Component | LiveBlock]) -> tuple[Source, ...]:
    """Return the sources that the text of a turn may refer to by number."""
    return next((one.sources for one in shown if isinstance(one, SearchNote) and one.sources), ())


def _thoughts(turn: Turn) -> str:
    """Return the thoughts of the models of a turn."""
    parts = (part for message in turn.messages for part in message.parts)
    return "\n\n".join(part.text for part in parts if isinstance(part, TextPart) and part.is_thought)


def _model(picture: Picture) -> str:
    return picture.receipt.model_label if picture.receipt else ""


# The top bar, the thread, and the first page in its place


def log_html(words: Words, conversation: Conversation | None, articles: Sequence[Article], *, is_live: bool) -> Markup:
    """Return the element of the thread. Only its script changes it, by `thread_update` and the stream of a turn."""
    live = Markup(" data-live") if is_live else ""
    come, earlier = newest(articles), _earlier_of(words, articles)
    shown = Markup(
        '<div id="log" role="log" aria-live="off" tabindex="0"><div id="thread" data-version="{}"{}>{}{}</div></div>'
    )
    return shown.format(_version(conversation), live, earlier, Markup().join(one.html for one in come))


def _version(conversation: Conversation | None) -> int | str:
    return conversation.version if conversation is not None else ""


def newest(articles: Sequence[Article]) -> Sequence[Article]:
    """Return the turns that come with a conversation."""
    return articles[-TURNS_AT_ONCE:]


def _earlier_of(words: Words, articles: Sequence[Article]) -> str:
    return earlier_html(words) if len(articles) > TURNS_AT_ONCE else ""


def earlier_html(words: Words) -> Markup:
    """Return the button that loads earlier turns; it is pressed by itself when it comes into sight."""
    shown = Markup('<button type="button" class="b line" id="earlier" data-thread="earlier">{}</button>')
    return shown.format(words("thread.earlier"))


def thread_update(
    words: Words, conversation: Conversation | None, articles: Sequence[Article], *, followed: str, is_answer: bool
) -> dict[str, JsonValue]:
    """Return the update of the thread for the page's script: the conversation's version, the newest turns in order,
    whether there are more, the running turn to be `followed`, and whether this `is_answer` to what the page has
    sent."""
    shown = newest(articles)
    return {
        "at": time.monotonic_ns(),
        "conversation": conversation.id if conversation is not None else "",
        "version": _version(conversation),
        "turns": [one.id for one in shown],
        "patches": [one.patch.model_dump(exclude_defaults=True) for one in shown],
        "earlier": _earlier_of(words, articles),
        "followed": followed,
        "is_answer": is_answer,
    }


def top_html(
    words: Words, conversation: Conversation | None, *, is_sketch: bool, spent_usd: float, opened_at: int
) -> Markup:
    """Return the top bar: title, number of pictures, cost, sketch mode, and the menu.

    `opened_at` is a stamp that changes whenever a conversation is opened.
    """
    facts = [words("top.sketch")] if is_sketch else []
    if conversation and conversation.pictures:
        facts.append(words.counted("top.pictures", len(conversation.pictures)))
    if spent_usd:
        facts.append(price(words, spent_usd))
    return render("thread/top.html", words, conversation=conversation, facts=facts, opened_at=opened_at)


# The examples of the first page: an icon each, and whether it needs a picture.
_EXAMPLES = {
    "fox": ("paintbrush", False),
    "poster": ("coffee", False),
    "city": ("sunset", False),
    "photo": ("sun", True),
    "crop": ("crop", True),
    "letters": ("type", True),
}


@dataclass(frozen=True)
class Example:
    """An example of the first page: its prompt, and whether it needs a picture."""

    text: str
    needs_picture: bool


def example_of(words: Words, name: str) -> Example | None:
    """Return the example of that name in the visitor's language, or None."""
    return Example(words(f"example.{name}_text"), _EXAMPLES[name][1]) if name in _EXAMPLES else None


def welcome_html(words: Words, *, is_sketch: bool, is_kept: bool, is_shared: bool, lost: LostRecords | None) -> Markup:
    """Return the first page: how to add a key (without one), the question, and examples.

    Without `is_kept`, it warns that nothing survives a restart. Where the studio `is_shared`, a script shows the hint
    for browsers without cookies. If records were `lost`, it says where they are and which backups exist.
    """
    return render(
        "thread/welcome.html",
        words,
        is_sketch=is_sketch,
        is_kept=is_kept,
        is_shared=is_shared,
        lost=lost,
        examples=[(name, *of_it) for name, of_it in _EXAMPLES.items()],
    )

"""The actions of buttons that no pane has for itself: `data-act` names the action, `data-arg` is its argument.

They open conversations, fill the composer, and begin turns without Send.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from difflib import SequenceMatcher
from html import escape
from typing import Annotated, Literal

from markupsafe import Markup
from pydantic import Field

from agent import (
    NO_PICTURE,
    AivistaError,
    Conversation,
    ErrorCode,
    PromptToExpand,
    RequestRefused,
    Turn,
    TurnRequest,
    Value,
    check_request,
)
from webui.features.composer import ChosenSettings
from webui.features.styles import SAMPLE_NAME, sample_picture, title_of
from webui.features.thread.live import ShownTurn, resumed
from webui.features.thread.render import example_of
from webui.features.viewer import (
    PAINTING,
    PanelAmounts,
    PanelPress,
    amounts_sentence,
    canvas_html,
    compare_html,
    empty_canvas_html,
    pair,
    pressed_sentence,
    read_pair,
)
from webui.screen import LISTED, THREAD, Updates
from webui.shell.actions import MAX_REFERENCES, Context, Feature, PageState, roles_of
from webui.shell.templates import Reply, render
from webui.spend import MessageFacts, chosen_estimate, dollars, estimate_html, maximum_token
from webui.turns import Turns
from webui.whole_json import read_value

# The longest text fits.
page = Feature("page", most_bytes=4 << 20)
_LONGEST_BESIDE = 6000
DiffKind = Literal["same", "added", "removed"]
DiffPiece = tuple[DiffKind, str]
# Texts that repeat themselves would take seconds to compare beyond this; they are shown as wholly new.
_MOST_PAIRS = 400_000

# A word, a Chinese character or a punctuation mark, each with the space before it.
_TOKEN = re.compile(r"\s*(?:[\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]|[^\W_]+(?:['’_-][^\W_]+)*|\S)")


class Arg(Value):
    """The argument of a button."""

    arg: str = Field(default="", max_length=1 << 20)


# What the page shows: a conversation as it is on record now, one picture, or two compared


class EndedTurn(Value):
    """A turn that has ended, by its id (empty when it was never recorded), and the ids of the requests that the page
    keeps until it knows what became of them."""

    turn: str = Field(max_length=64)
    kept: tuple[Annotated[str, Field(max_length=128)], ...] = Field(default=(), max_length=20)


@page.action
async def open_(at: Context, asked: Arg) -> Reply:
    """Open a conversation with its settings, or a new one."""
    return at.reply(await opened(at, asked.arg))


async def opened(at: Context, conversation_id: str, *, has_chips: bool = True) -> Updates:
    """Return the screen with a conversation and its settings, or with a new one."""
    conversation = await at.screen.conversation(at.visitor, conversation_id)
    chips = await at.screen.chips_of(at.visitor, conversation) if has_chips else {}
    thread = at.screen.thread(at.visitor, conversation)
    return {**await at.screen.opened(at.visitor, conversation), THREAD: thread, **chips}


@page.action
async def refresh(at: Context) -> Reply:
    """Show changes of the open conversation that were made elsewhere."""
    conversation = await at.conversation()
    if conversation is None:
        return Reply()
    frame = await at.screen.frame(at.visitor, conversation)
    return at.reply({**frame, THREAD: at.screen.thread(at.visitor, conversation)})


@page.action
async def ended(at: Context, over: EndedTurn) -> Reply:
    """Update what surrounds a turn that has ended."""
    return at.reply(await Turns(at).end(over.turn, over.kept))


@page.action
async def changed(at: Context, asked: Arg) -> Reply:
    """Update the thread and the bar above it after pictures of the conversation were deleted or restored; `arg` names
    those on the stage.

    A deleted picture is removed from the stage, and its marks from the composer.
    """
    screen, visitor, place, conversation = at.screen, at.visitor, at.state, await at.conversation()
    if conversation is None:
        return Reply()
    there = {picture.handle for picture in conversation.all_pictures}
    updates = {
        THREAD: screen.thread(visitor, conversation),
        "top": await screen.top(visitor, conversation),
        **screen.next_target(visitor, conversation),
    }
    if not there.issuperset(asked.arg.split()):
        updates["canvas"] = empty_canvas_html(at.words)
    if not {place.editing, *place.references} - {"", NO_PICTURE} <= there:
        kept = tuple(handle for handle in place.references if handle in there)
        editing = place.editing if place.editing in there else ""
        updates |= screen.context(at.view, editing, kept, place.given_roles)
    return at.reply(updates)


@page.action
async def view(at: Context, asked: Arg) -> Reply:
    """Open a picture."""
    return await _shown(at, lambda one: canvas_html(at.view, one, one.picture(asked.arg)))


@page.action
async def compare(at: Context, asked: Arg) -> Reply:
    """Compare two pictures, or one with its best counterpart."""
    return await _shown(at, lambda one: compare_html(at.view, one, *pair(one, *read_pair(asked.arg))))


async def _shown(at: Context, html: Callable[[Conversation], str]) -> Reply:
    conversation = await at.conversation()
    if conversation is None:
        return Reply()
    try:
        return at.reply({"canvas": html(conversation)})
    except RequestRefused:
        return Reply()


# What the composer holds and works on: marked pictures, settings with their price, a draft, an expanded prompt


@page.action
async def edit_words(at: Context, turn: Arg) -> Reply:
    """Put the text of a turn into the composer."""
    conversation = await at.conversation()
    found = conversation.turn(turn.arg) if conversation is not None else None
    return at.reply(at.screen.wording(found.text if found else ""))


@page.action
async def edit(at: Context, picture: Arg) -> Reply:
    """Mark a picture as the one to change, or `NO_PICTURE`."""
    references = tuple(one for one in at.state.references if one != picture.arg)
    return await _marked(at, picture.arg, picture.arg, references)


@page.action
async def drop(at: Context, picture: Arg) -> Reply:
    """Remove a mark."""
    editing = "" if at.state.editing == picture.arg else at.state.editing
    return await _marked(at, picture.arg, editing, tuple(one for one in at.state.references if one != picture.arg))


@page.action
async def reference(at: Context, picture: Arg) -> Reply:
    """Mark a picture as a reference."""
    references = at.state.references
    if picture.arg != at.state.editing:
        references = (*(one for one in references if one != picture.arg), picture.arg)[-MAX_REFERENCES:]
    return await _marked(at, picture.arg, at.state.editing, references)


async def _marked(at: Context, handle: str, editing: str, references: tuple[str, ...]) -> Reply:
    """Return the composer's line, or the refusal for a picture that does not exist, for example after another tab
    deleted it."""
    if handle != NO_PICTURE:
        conversation = await at.conversation()
        if conversation is None or conversation.picture(handle).handle != handle:
            return Reply()
    return at.reply(at.screen.context(at.view, editing, references, at.state.given_roles))


@page.action
async def set_(at: Context, asked: Arg) -> Reply:
    """Set a setting: `arg` holds its name and value."""
    name, _, value = asked.arg.partition(" ")
    try:
        changed = ChosenSettings.model_validate({**at.state.chosen.model_dump(), name: value})
        changed.turn_settings()
    except ValueError:
        return Reply()
    return at.reply(at.screen.narrowed(at.visitor, changed.model_dump(), fixed=name))


@page.action
async def reset(at: Context) -> Reply:
    """Leave every setting to the agent."""
    return at.reply(at.screen.chips(at.visitor, ChosenSettings(allow_search=at.state.chosen.allow_search)))


@page.action
async def use_preset(at: Context, asked: Arg) -> Reply:
    """Apply the settings of a preset."""
    preset = await at.screen.studio().preferences.presets.find(at.visitor.owner, asked.arg)
    return at.reply(at.screen.chips(at.visitor, ChosenSettings.of(preset.settings)))


@page.action
async def models(at: Context) -> Reply:
    """Show what the key in use can do, when the page is idle and after the key or a cap changed."""
    key = at.screen.key_to_test(at.visitor)
    if key is not None:
        # Asking for the list of models costs nothing.
        await at.screen.studio().keys.listed(key)
    frame = await at.screen.frame(at.visitor, await at.conversation())
    return at.reply({**at.screen.narrowed(at.visitor, at.state.chosen.model_dump()), **frame})


class PriceQuery(Value):
    """The `MessageFacts` of a message, as the page's script wrote them."""

    beside: str = Field(default="", max_length=_LONGEST_BESIDE)


@page.action
async def price(at: Context, query: PriceQuery) -> Reply:
    """Show the price of a message."""
    catalogue, chosen, conversation = at.screen.studio().catalogue, at.state.chosen, await at.conversation()
    facts = read_value(MessageFacts, query.beside)
    guess = chosen_estimate(catalogue, at.screen.provider(at.visitor), chosen, facts, conversation)
    shown = estimate_html(at.words, guess, query.beside, maximum_token(guess, chosen))
    return at.reply({"cost": shown})


@page.action
async def restore(at: Context, draft: PageState) -> Reply:
    """Restore the settings and marks of a draft, for pictures that still exist."""
    # Another conversation may be open by now.
    if draft.conversation != at.state.conversation:
        return Reply()
    conversation, updates = await at.conversation(), Updates()
    # A draft of another version may hold values that are no longer offered.
    with suppress(ValueError):
        chosen = ChosenSettings.model_validate(draft.chips)
        if draft.chips and chosen.turn_settings():
            updates = at.screen.chips(at.visitor, chosen)
    known = {picture.handle for picture in conversation.all_pictures} if conversation is not None else set()
    editing = draft.editing if draft.editing in {*known, NO_PICTURE} else ""
    references = tuple(one for one in dict.fromkeys(draft.references) if one in known and one != editing)
    if conversation is not None and (editing or references):
        updates |= at.screen.context(at.view, editing, references, roles_of(draft.roles, references))
    return at.reply(updates)


class Words(Value):
    """The prompt to expand. `files` counts the files in the box; `is_painted` says that a part of a picture is
    masked."""

    text: str = Field(max_length=1_000_000)
    files: int = Field(default=0, ge=0, le=1000)
    is_painted: bool = False


@page.action
async def expand(at: Context, asked: Words) -> Reply:
    """Expand a prompt, and show it beside the user's own; nothing is sent."""
    settings = at.state.chosen.turn_settings()
    wanted = PromptToExpand(
        text=asked.text,
        text_model=settings.text_model,
        pictures=_pictures(asked, at.state),
        aspect_ratio=settings.aspect_ratio,
        number_of_images=settings.number_of_images,
    )
    studio = at.screen.studio()
    try:
        written = await studio.expand_prompt(wanted, at.visitor.owner, at.screen.sessions.key(at.visitor))
    except AivistaError as error:
        return _expanded(at, at.words.error(error.info), is_bad=True)
    if written.by == "nobody":
        return _expanded(at, at.words("expanded.only_new"))
    if written.text == asked.text.strip():
        return _expanded(at, at.words("expanded.same"))
    by = at.words("expanded.by_rules")
    if written.by == "model":
        by = at.words("expanded.by_model", model=written.label, price=dollars(written.price_usd))
    pieces = await asyncio.to_thread(word_diff, asked.text.strip(), written.text)
    return _expanded(at, text=written.text, by=by, difference=diff_html(pieces))


def _expanded(at: Context, line: str = "", *, is_bad: bool = False, **shown: str) -> Reply:
    """Return what is shown above the composer: one line, or the expanded prompt beside the user's own."""
    html = render("composer/expanded.html", at.words, line=line, is_bad=is_bad, **shown)
    # The foot of the rail shows what was spent.
    return at.reply({"expanded": html, LISTED: {}})


def _pictures(asked: Words, state: PageState) -> Literal["none", "beside", "change"]:
    """Return the role of the attached pictures: one is to be changed, or they go along."""
    if asked.is_painted or state.editing not in ("", NO_PICTURE):
        return "change"
    return "beside" if state.references or asked.files else "none"


# How a turn begins without Send: examples, retries, plans, buttons under a picture, edited messages


@page.action
async def try_example(at: Context, asked: Arg) -> Reply:
    """Run an example of the first page where that is free; elsewhere put it into the composer."""
    example = example_of(at.words, asked.arg)
    if example is None:
        return Reply()
    if not at.screen.is_sketch(at.visitor):
        return at.reply(at.screen.wording(example.text))
    images = [(SAMPLE_NAME, await asyncio.to_thread(sample_picture))] if example.needs_picture else []
    return at.reply(await Turns(at).say(example.text, images=images))


@page.action
async def try_style(at: Context, asked: Arg) -> Reply:
    """Repaint a picture in a style: the one marked to be changed, else the newest of the conversation."""
    style = await at.screen.studio().styles.get(asked.arg, at.visitor.owner)
    conversation = await at.conversation()
    handles = [picture.handle for picture in conversation.pictures] if conversation else []
    if not handles:
        return Reply()
    handle = at.state.editing if at.state.editing in handles else handles[-1]
    return at.reply(await Turns(at).say(at.words("styles.try_said", title=title_of(at.words, style)), handle))


@page.action
async def panel(at: Context, asked: Arg) -> Reply:
    """Carry out a button under a picture."""
    press = read_value(PanelPress, asked.arg)
    if press is None:
        return Reply()
    if press.action not in PAINTING:
        return at.reply(await Turns(at).say(pressed_sentence(at.words, press), press.handle))
    return at.reply(await Turns(at).paint_again(press))


@page.action
async def panel_apply(at: Context, asked: Arg) -> Reply:
    """Adjust a picture by its sliders."""
    amounts = read_value(PanelAmounts, asked.arg)
    if amounts is None:
        return Reply()
    return at.reply(await Turns(at).say(amounts_sentence(at.words, amounts), amounts.handle))


@page.action
async def paint_now(at: Context) -> Reply:
    """Have the agent paint instead of asking more questions."""
    return at.reply(await Turns(at).say(at.words("question.paint_now_said")))


@page.action
async def retry(at: Context, turn: Arg) -> Reply:
    """Resume a failed or interrupted turn."""
    return at.reply(await Turns(at).retry(turn.arg))


@page.action
async def run_plan(at: Context, asked: Arg) -> Reply:
    """Run a plan, with the user's changes."""
    return at.reply(await Turns(at).run_plan(asked.arg))


@page.action
async def drop_plan(at: Context, turn: Arg) -> Reply:
    """Drop a plan."""
    return at.reply(await Turns(at).decide(turn.arg, is_allowed=False))


@page.action
async def allow_calls(at: Context, turn: Arg) -> Reply:
    """Allow waiting tool calls."""
    return at.reply(await Turns(at).decide(turn.arg, is_allowed=True))


@page.action
async def refuse_calls(at: Context, turn: Arg) -> Reply:
    """Refuse waiting tool calls; the agent goes on without them."""
    return at.reply(await Turns(at).decide(turn.arg, is_allowed=False))


@page.action
async def grow_mask(at: Context, picture: Arg) -> Reply:
    """Grow the mask of an edit."""
    await at.screen.studio().edits.grow_mask(at.state.conversation, picture.arg, at.visitor.owner)
    return await _edited(at)


@page.action
async def keep_only(at: Context, picture: Arg) -> Reply:
    """Keep only the masked part of an edit."""
    await at.screen.studio().edits.keep_only(at.state.conversation, picture.arg, at.visitor.owner)
    return await _edited(at)


@page.action
async def keep_transparency(at: Context, picture: Arg) -> Reply:
    """Give an edit the transparency of its base picture."""
    await at.screen.studio().edits.keep_transparency(at.state.conversation, picture.arg, at.visitor.owner)
    return await _edited(at)


@page.action
async def keep_edit(at: Context, picture: Arg) -> Reply:
    """Keep an edit as it is."""
    await at.screen.studio().edits.keep(at.state.conversation, picture.arg, True, at.visitor.owner)
    return await _edited(at)


@page.action
async def discard_edit(at: Context, picture: Arg) -> Reply:
    """Discard an edit."""
    await at.screen.studio().edits.keep(at.state.conversation, picture.arg, False, at.visitor.owner)
    return await _edited(at)


async def _edited(at: Context) -> Reply:
    return at.reply(await opened(at, at.state.conversation, has_chips=False))


class EditedMessage(Value):
    """A turn and its new text. The studio checks what a message may hold."""

    turn: str = Field(max_length=64)
    text: str = Field(max_length=1 << 20)


@page.action
async def edit_message(at: Context, asked: EditedMessage) -> Reply:
    """Send a turn again with another text and everything else unchanged. It becomes a new branch."""
    studio, conversation, owner = at.screen.studio(), await at.conversation(), at.visitor.owner
    if conversation is None:
        return Reply()
    if studio.turns.is_running(conversation.id, owner):
        raise RequestRefused(ErrorCode.CONVERSATION_BUSY)
    turn = conversation.turn(asked.turn)
    if turn is None:
        raise RequestRefused(ErrorCode.TURN_NOT_FOUND)
    check_request(asked.text, len(turn.uploads))
    original = await studio.turns.request_of(conversation.id, turn.id, owner)
    request = replace(original, text=asked.text, instead_of=turn.id)
    live, before = _live(conversation, turn, request), _before(conversation, turn)
    return at.reply(await Turns(at).begin(before, request, live))


@page.action
async def switch(at: Context, turn: Arg) -> Reply:
    """Show another branch: the thread and the bar above it. The composer keeps what it works on."""
    conversation = await at.conversation()
    if conversation is None:
        return Reply()
    conversations = at.screen.studio().conversations
    switched = await conversations.switch_branch(conversation.id, turn.arg, at.visitor.owner)
    thread = at.screen.thread(at.visitor, switched)
    return at.reply({THREAD: thread, **await at.screen.frame(at.visitor, switched)})


def _before(conversation: Conversation, turn: Turn) -> Conversation:
    """Return the conversation up to where the turn began; its pictures stay, because the new text may name them."""
    at = next(place for place, one in enumerate(conversation.turns) if one.id == turn.id)
    return conversation.model_copy(update={"turns": conversation.turns[:at]})


def _live(conversation: Conversation, turn: Turn, request: TurnRequest) -> ShownTurn:
    """Return the new turn before its first event, as the newest version of the message."""
    was, versions = resumed(turn), conversation.forks.get(turn.id, (turn.id,))
    return ShownTurn(request.text, was.named, was.uploads, beside=(*versions, ""))


# Comparison of two texts by words, or by characters in languages without spaces


def word_diff(before: str, after: str) -> list[DiffPiece]:
    """Return the pieces in reading order, removed ones before those that replace them.

    All but the removed pieces, joined, are `after`; all but the added ones are `before`, except for its spaces.
    """
    old, new = _TOKEN.findall(before.strip()), _TOKEN.findall(after.strip())
    pieces: list[DiffPiece] = []
    for removed, added, same in _changes(old, new):
        step: list[DiffPiece] = [("removed", "".join(removed)), ("added", "".join(added)), ("same", "".join(same))]
        pieces += [(kind, text) for kind, text in step if text]
    return pieces


def diff_html(pieces: Sequence[DiffPiece]) -> Markup:
    """Return the pieces as HTML: added text as <ins>, removed text as <del>."""
    marks = {"added": "ins", "removed": "del"}
    parts = []
    for kind, text in pieces:
        # The space before a word is not marked: it would be underlined.
        space, words = text[: len(text) - len(text.lstrip())], escape(text.lstrip())
        parts.append(space + (f"<{marks[kind]}>{words}</{marks[kind]}>" if kind in marks else words))
    return Markup("".join(parts))  # noqa: S704  its texts are escaped


def _changes(old: list[str], new: list[str]) -> Iterator[tuple[list[str], list[str], list[str]]]:
    """Yield the removed, the added, and then the equal tokens.

    A short word between two changes counts as changed: a phrase that is torn apart cannot be read.
    """
    plain = [token.strip() for token in old], [token.strip() for token in new]
    if len(old) * len(new) > _MOST_PAIRS:
        yield old, new, []
        return
    steps = SequenceMatcher(None, *plain, autojunk=False).get_opcodes()
    removed: list[str] = []
    added: list[str] = []
    for at, (kind, first, last, start, end) in enumerate(steps):
        around = {step[0] for step in (*steps[max(0, at - 1) : at], *steps[at + 1 : at + 2])}
        is_torn = 0 < at < len(steps) - 1 and around != {"insert"} and _is_scrap(new[start:end])
        if kind == "equal" and not is_torn:
            yield removed, added, new[start:end]
            removed, added = [], []
        else:
            removed, added = removed + old[first:last], added + new[start:end]
    yield removed, added, []


def _is_scrap(tokens: Sequence[str]) -> bool:
    words = [token for token in tokens if token.strip().isalnum()]
    return len(tokens) <= 2 and len(words) <= 1 and sum(len(word.strip()) for word in words) <= 3

"""What the composer holds and works on: marked pictures, settings with their price, a draft, a prompt written out."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Literal

from pydantic import Field

from agent import NO_PICTURE, AivistaError, ExpandedPrompt, PromptToExpand, Value
from webui.features.composer import Chosen
from webui.features.page import Arg, page
from webui.screen import LISTED
from webui.shell.actions import MAX_REFERENCES, Context, Handle, roles_of
from webui.shell.patches import Reply
from webui.shell.templates import render
from webui.spend import chosen_estimate, dollars, estimate_html, maximum_told, read_beside
from webui.word_diff import diff_html, word_diff

_LONGEST_BESIDE = 6000


@page.action
async def edit_words(at: Context, turn: Arg) -> Reply:
    """Put the words that a turn was sent with into the composer."""
    conversation = await at.conversation()
    found = conversation.turn(turn.arg) if conversation is not None else None
    return at.reply(at.screen.wording(found.text if found else ""))


@page.action
async def edit(at: Context, picture: Arg) -> Reply:
    """Mark a picture to be changed, or `NO_PICTURE`."""
    references = tuple(one for one in at.place.references if one != picture.arg)
    return await _marked(at, picture.arg, picture.arg, references)


@page.action
async def drop(at: Context, picture: Arg) -> Reply:
    """Take a mark away."""
    editing = "" if at.place.editing == picture.arg else at.place.editing
    return await _marked(at, picture.arg, editing, tuple(one for one in at.place.references if one != picture.arg))


@page.action
async def reference(at: Context, picture: Arg) -> Reply:
    """Mark a picture as a reference."""
    references = at.place.references
    if picture.arg != at.place.editing:
        references = (*(one for one in references if one != picture.arg), picture.arg)[-MAX_REFERENCES:]
    return await _marked(at, picture.arg, at.place.editing, references)


async def _marked(at: Context, handle: str, editing: str, references: tuple[str, ...]) -> Reply:
    """Return the composer's line; of a picture that is not there, as it may be after another tab deleted it, what is
    wrong."""
    if handle != NO_PICTURE:
        conversation = await at.conversation()
        if conversation is None or conversation.picture(handle).handle != handle:
            return Reply()
    return at.reply(at.screen.context(at.view, editing, references, at.place.given_roles))


@page.action
async def set_(at: Context, asked: Arg) -> Reply:
    """Choose a value of a setting: `arg` names both."""
    name, _, value = asked.arg.partition(" ")
    try:
        changed = Chosen.model_validate({**at.place.chosen.model_dump(), name: value})
        changed.turn_settings()
    except ValueError:
        return Reply()
    return at.reply(at.screen.narrowed(at.visitor, changed.model_dump(), fixed=name))


@page.action
async def reset(at: Context) -> Reply:
    """Leave every setting to the agent."""
    return at.reply(at.screen.chips(at.visitor, Chosen(allow_search=at.place.chosen.allow_search)))


@page.action
async def use_preset(at: Context, asked: Arg) -> Reply:
    """Choose what a preset says."""
    preset = await at.screen.studio().preferences.presets.find(at.visitor.owner, asked.arg)
    return at.reply(at.screen.chips(at.visitor, Chosen.of(preset.settings)))


@page.action
async def models(at: Context) -> Reply:
    """Show what the key in use is good for, when the page rests and when another key or cap was chosen."""
    key = at.screen.key_in_use(at.visitor)
    if key is not None and at.screen.takes_keys(at.visitor):
        # The list of what it is offered costs nothing.
        await at.screen.studio().keys.listed(key)
    frame = await at.screen.frame(at.visitor, await at.conversation())
    return at.reply({**at.screen.narrowed(at.visitor, at.place.chosen.model_dump()), **frame})


class Beside(Value):
    """What stands beside the words, as `read_beside` reads it."""

    beside: str = Field(default="", max_length=_LONGEST_BESIDE)


@page.action
async def price(at: Context, told: Beside) -> Reply:
    """Show what a message would cost."""
    catalogue, chosen, conversation = at.screen.studio().catalogue, at.place.chosen, await at.conversation()
    guess = chosen_estimate(catalogue, at.screen.provider(at.visitor), chosen, read_beside(told.beside), conversation)
    shown = estimate_html(at.words, guess, told.beside, maximum_told(guess, chosen))
    return at.reply({"cost": shown})


class Draft(Value):
    """A draft as the page kept it; its words are not in it."""

    conversation: str = Field(default="", max_length=64)
    chips: Mapping[str, str | bool] = Field(default_factory=dict)
    editing: str = Field(default="", max_length=16)
    references: tuple[Handle, ...] = Field(default=(), max_length=MAX_REFERENCES)
    roles: dict[Handle, str] = Field(default_factory=dict, max_length=MAX_REFERENCES)

    @property
    def chosen(self) -> Chosen | None:
        """What its settings say; None for none, and for what this page does not offer."""
        try:
            chosen = Chosen.model_validate(self.chips)
            chosen.turn_settings()
        except ValueError:
            return None
        return chosen if self.chips else None


@page.action
async def restore(at: Context, draft: Draft) -> Reply:
    """Give the composer the settings and the marks of a draft, of pictures that are still there."""
    # What is open may be another conversation by now.
    if draft.conversation != at.place.conversation:
        return Reply()
    conversation, chosen = await at.conversation(), draft.chosen
    updates = at.screen.chips(at.visitor, chosen) if chosen is not None else {}
    known = {picture.handle for picture in conversation.all_pictures} if conversation is not None else set()
    editing = draft.editing if draft.editing in {*known, NO_PICTURE} else ""
    references = tuple(one for one in dict.fromkeys(draft.references) if one in known and one != editing)
    if conversation is not None and (editing or references):
        updates |= at.screen.context(at.view, editing, references, roles_of(draft.roles, references))
    return at.reply(updates)


class Words(Value):
    """What is to be written out. `ticket` comes back with the answer; `files` counts those in the box, and
    `is_painted` says that a part of a picture is marked."""

    ticket: str = Field(max_length=40)
    text: str = Field(max_length=1_000_000)
    files: int = Field(default=0, ge=0, le=1000)
    is_painted: bool = False


@page.action
async def expand(at: Context, asked: Words) -> Reply:
    """Write a prompt out, to be shown beside the person's own words; nothing is sent."""
    settings = at.place.chosen.turn_settings()
    wanted = PromptToExpand(
        text=asked.text,
        text_model=settings.text_model,
        pictures=_pictures(asked, at.place.editing, at.place.references),
        aspect_ratio=settings.aspect_ratio,
        number_of_images=settings.number_of_images,
    )
    studio = at.screen.studio()
    writing = studio.keep_alive(studio.expand_prompt(wanted, at.visitor.owner, at.screen.sessions.key(at.visitor)))
    try:
        # Whoever leaves meanwhile has paid for it: it is put on record all the same.
        written: ExpandedPrompt = await asyncio.shield(writing)
    except AivistaError as error:
        return _fuller(at, asked, at.words.error(error.info), is_bad=True)
    if written.by == "nobody":
        return _fuller(at, asked, at.words("fuller.only_new"))
    if written.text == asked.text.strip():
        return _fuller(at, asked, at.words("fuller.same"))
    by = at.words("fuller.by_rules")
    if written.by == "model":
        by = at.words("fuller.by_model", model=written.label, price=dollars(written.price_usd))
    pieces = await asyncio.to_thread(word_diff, asked.text.strip(), written.text)
    return _fuller(at, asked, text=written.text, by=by, difference=diff_html(pieces))


def _fuller(at: Context, asked: Words, line: str = "", *, is_bad: bool = False, **shown: str) -> Reply:
    """Return what is shown above the composer: one line, or the prompt beside the person's own."""
    html = render("composer/fuller.html", at.words, ticket=asked.ticket, line=line, is_bad=is_bad, **shown)
    # The rail's foot tells what was spent.
    return at.reply({"fuller": html, LISTED: {}})


def _pictures(asked: Words, editing: str, references: tuple[str, ...]) -> Literal["none", "beside", "change"]:
    """Return what the pictures that go along are for: one is to be changed, or they lie beside the words."""
    if editing or asked.is_painted:
        return "change"
    return "beside" if references or asked.files else "none"

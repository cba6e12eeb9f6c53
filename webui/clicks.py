"""What a click on one of our own buttons does: the act and its argument come from the page and are checked here."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field

import gradio as gr
from pydantic import ValidationError

from agent import NO_PICTURE, AivistaError, Conversation, ReferenceRole, RequestRefused, Value
from webui.features.styles.finding import title_of
from webui.features.viewer import canvas_html, compare_html, pair, read_pair
from webui.features.viewer.actions import PAINTING, amounts_sentence, pressed_sentence, read_amounts, read_press
from webui.panels.chat import Wish, wish_of
from webui.panels.composer import Chosen
from webui.redrawing import OnPage, redrawn
from webui.roles import chosen_roles, read_choice
from webui.sample_picture import NAME as SAMPLE_NAME
from webui.sample_picture import sample_picture
from webui.screen import Screen, Updates
from webui.sessions import Visitor
from webui.streams import TurnEnds
from webui.tabs import Tab
from webui.turns import Turns, words_of_turn

MAX_REFERENCES = 14


class Click(Value):
    """A click as the page sends it; anything else is ignored."""

    act: str
    arg: str = ""


@dataclass(frozen=True)
class Context:
    """What the composer works on, a picture to change and pictures to lean on, by handle, with what some of those are
    for, and what its chips say."""

    conversation_id: str = ""
    editing: str = ""
    references: tuple[str, ...] = ()
    roles: Mapping[str, ReferenceRole] = field(default_factory=dict)
    chosen: Chosen = field(default_factory=Chosen)


def read_click(data: object) -> Click | None:
    """Return the click, or None when the page sent something else."""
    try:
        return Click.model_validate(data)
    except ValidationError:
        return None


def read_references(text: str | None) -> tuple[str, ...]:
    """Return the handles in the hidden field of references, at most `MAX_REFERENCES`."""
    return tuple(dict.fromkeys((text or "").split()))[:MAX_REFERENCES]


@dataclass(frozen=True)
class Clicks:
    """Answers clicks with updates of the page."""

    screen: Screen
    turns: Turns

    async def answer(self, visitor: Visitor, tab: Tab, click: Click, context: Context) -> Updates:
        """Return what the click changes; unknown acts change nothing."""
        turns, where = self.turns, context.conversation_id
        match click.act:
            case "new" | "open":
                opened = click.arg if click.act == "open" else ""
                if opened != where:
                    tab.leave(where)
                return await self.open(visitor, tab, opened)
            case "edit_words":
                conversation = await self.screen.conversation(visitor, where)
                return self.screen.wording(words_of_turn(conversation, click.arg))
            case "view":
                return await self._view(visitor, where, click.arg)
            case "compare":
                return await self._compare(visitor, where, click.arg)
            case "edit" | "reference" | "drop":
                return await self._mark(visitor, click, context)
            case "changed":
                on_page = OnPage(read_references(click.arg), context.editing, context.references, context.roles)
                return await redrawn(self.screen, visitor, where, on_page)
            case "role":
                return self._role(visitor, click, context)
            case "use_preset" | "set" | "reset":
                return await self._settings(visitor, click, context.chosen)
            case "ended":
                return await TurnEnds(self.screen).end(visitor, tab, where, click.arg)
            case "try_style":
                return await self._try_style(visitor, tab, click.arg, context)
            case "try_wish" if wish := wish_of(visitor.words, click.arg):
                return await self._try(visitor, tab, wish, context)
            case "refresh" if click.arg == where and not tab.has_just_left(where):
                return await self._refresh(visitor, tab, where)
            case "retry":
                return await turns.retry(visitor, tab, where, click.arg)
            case "run_plan":
                return await turns.run_plan(visitor, tab, where, click.arg)
            case "drop_plan" | "allow_calls" | "refuse_calls":
                return await turns.decide(visitor, tab, where, click.arg, is_allowed=click.act == "allow_calls")
            case "panel" if (press := read_press(click.arg)) and press.action in PAINTING:
                return await turns.paint_again(visitor, tab, where, press, context.chosen)
            case "panel" if press := read_press(click.arg):
                said = pressed_sentence(visitor.words, press)
                return await turns.say(visitor, tab, where, said, press.handle, context.chosen)
            case "panel_apply" if amounts := read_amounts(click.arg):
                said = amounts_sentence(visitor.words, amounts)
                return await turns.say(visitor, tab, where, said, amounts.handle, context.chosen)
            case "paint_now":
                return await turns.say(
                    visitor, tab, where, visitor.words("question.paint_now_said"), "", context.chosen
                )
            case "grow_mask" | "keep_only" | "keep_transparency" | "keep_edit" | "discard_edit":
                return await self._edit(visitor, tab, click, where)
            case _:
                return {}

    async def _try(self, visitor: Visitor, tab: Tab, wish: Wish, context: Context) -> Updates:
        """Run an example of the first page where that is free; elsewhere it only fills the composer."""
        if not self.screen.is_sketch(visitor):
            return self.screen.wording(wish.text)
        images = [(SAMPLE_NAME, await asyncio.to_thread(sample_picture))] if wish.needs_picture else []
        where, chosen = context.conversation_id, context.chosen
        return await self.turns.say(visitor, tab, where, wish.text, "", chosen, images)

    async def _try_style(self, visitor: Visitor, tab: Tab, style_id: str, context: Context) -> Updates:
        """Repaint in a style the picture that is marked to be changed, else the newest of the conversation."""
        try:
            style = await self.screen.studio().styles.get(style_id, visitor.owner)
        except AivistaError as error:
            gr.Warning(visitor.words.error(error.info))
            return {}
        conversation = await self.screen.conversation(visitor, context.conversation_id)
        handles = [picture.handle for picture in conversation.pictures] if conversation else []
        if not handles:
            return {}
        handle = context.editing if context.editing in handles else handles[-1]
        said = visitor.words("styles.try_said", title=title_of(visitor.words, style))
        return await self.turns.say(visitor, tab, context.conversation_id, said, handle, context.chosen)

    async def _edit(self, visitor: Visitor, tab: Tab, click: Click, conversation_id: str) -> Updates:
        """Do what a button under an edit says, and show the conversation as it is then."""
        studio, place = self.screen.studio(), (conversation_id, click.arg)
        try:
            match click.act:
                case "grow_mask":
                    await studio.edits.grow_mask(*place, visitor.owner)
                case "keep_only":
                    await studio.edits.keep_only(*place, visitor.owner)
                case "keep_transparency":
                    await studio.edits.keep_transparency(*place, visitor.owner)
                case _:
                    await studio.edits.keep(*place, click.act == "keep_edit", visitor.owner)
        except AivistaError as error:
            gr.Warning(visitor.words.error(error.info))
            return {}
        return await self.open(visitor, tab, conversation_id, has_chips=False)

    async def open(self, visitor: Visitor, tab: Tab, conversation_id: str, *, has_chips: bool = True) -> Updates:
        """Return the screen with a conversation and its chips, or with a new one."""
        tab.take_over()
        return await self.opened(visitor, await self.screen.conversation(visitor, conversation_id), has_chips=has_chips)

    async def _refresh(self, visitor: Visitor, tab: Tab, conversation_id: str) -> Updates:
        """Return what came to the open conversation without this tab."""
        ticket = tab.ticket
        conversation = await self.screen.conversation(visitor, conversation_id)
        if conversation is None:
            return {}
        frame = await self.screen.frame(visitor, conversation)
        if not tab.holds(ticket):
            return {}
        return {**frame, self.screen.panels.chat.thread: self.screen.thread(visitor, conversation)}

    async def opened(self, visitor: Visitor, conversation: Conversation | None, *, has_chips: bool = True) -> Updates:
        """Return the screen with a conversation and its chips, or with a new one."""
        chips = self.screen.chips_of(visitor, conversation) if has_chips else {}
        return {**await self.screen.opened(visitor, conversation), **chips}

    async def _view(self, visitor: Visitor, conversation_id: str, handle: str) -> Updates:
        conversation = await self.screen.conversation(visitor, conversation_id)
        if conversation is None:
            return {}
        try:
            picture = conversation.picture(handle)
        except RequestRefused:
            return {}
        view = self.screen.view(visitor, conversation.id)
        return {self.screen.panels.canvas: canvas_html(view, conversation, picture)}

    async def _compare(self, visitor: Visitor, conversation_id: str, argument: str) -> Updates:
        conversation = await self.screen.conversation(visitor, conversation_id)
        if conversation is None:
            return {}
        try:
            first, second = pair(conversation, *read_pair(argument))
        except RequestRefused:
            return {}
        view = self.screen.view(visitor, conversation.id)
        return {self.screen.panels.canvas: compare_html(view, conversation, first, second)}

    async def _mark(self, visitor: Visitor, click: Click, context: Context) -> Updates:
        conversation = await self.screen.conversation(visitor, context.conversation_id)
        if click.arg != NO_PICTURE:
            try:
                known = conversation is not None and conversation.picture(click.arg).handle == click.arg
            except RequestRefused as error:
                # Another tab may have deleted what this one still shows.
                gr.Warning(visitor.words.error(error.info))
                known = False
            if not known:
                return {}
        editing, references = context.editing, context.references
        if click.act == "drop":
            editing = "" if editing == click.arg else editing
            references = tuple(handle for handle in references if handle != click.arg)
        elif click.act == "edit":
            editing, references = click.arg, tuple(handle for handle in references if handle != click.arg)
        elif click.arg != editing:
            references = (*(handle for handle in references if handle != click.arg), click.arg)[-MAX_REFERENCES:]
        view = self.screen.view(visitor, context.conversation_id)
        return self.screen.context(view, editing, references, context.roles)

    async def _settings(self, visitor: Visitor, click: Click, chosen: Chosen) -> Updates:
        """Return the settings as a preset or a button beside them says, or automatic; others change nothing."""
        name, _, value = click.arg.partition(" ")
        try:
            match click.act:
                case "use_preset":
                    preset = await self.screen.studio().preferences.presets.find(visitor.owner, click.arg)
                    return self.screen.chips(visitor, Chosen.of(preset.settings))
                case "set":
                    changed = Chosen.model_validate({**chosen.model_dump(), name: value})
                    changed.turn_settings()
                    return self.screen.narrowed(visitor, changed.model_dump(), fixed=name)
                case _:
                    return self.screen.chips(visitor, Chosen(allow_search=chosen.allow_search))
        except AivistaError as error:
            gr.Warning(visitor.words.error(error.info))
        except ValueError:
            pass
        return {}

    def _role(self, visitor: Visitor, click: Click, context: Context) -> Updates:
        choice = read_choice(click.arg)
        if choice is None or choice.handle not in context.references:
            return {}
        view, roles = self.screen.view(visitor, context.conversation_id), chosen_roles(context.roles, choice)
        return self.screen.context(view, context.editing, context.references, roles)

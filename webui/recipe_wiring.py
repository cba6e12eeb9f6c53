"""Recipes at work: of files that are about to be sent, and of the receipts under pictures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import gradio as gr
from pydantic import Field, ValidationError

from agent import (
    AivistaError,
    Conversation,
    ForeignRecipe,
    FoundRecipe,
    Picture,
    Receipt,
    Recipe,
    Turn,
    TurnRequest,
    TurnSettings,
    Value,
)
from webui.clicks import Clicks
from webui.features.viewer.receipt import asked_pixels, repainter
from webui.panels import recipes as panel
from webui.panels.composer import AUTO, Chosen
from webui.panels.recipes import RecipesPanel
from webui.recipes import MAX_FOUND_CHARACTERS, chosen_as, read_told
from webui.redrawing import thread
from webui.screen import Screen, Updates
from webui.sessions import Visitor
from webui.tabs import Tab
from webui.turns import Turns

_QUIET: dict[str, Any] = {"show_progress": "hidden", "show_progress_on": [], "api_visibility": "private"}
_AT_ONCE = 64


class RecipeClick(Value):
    """A click as the page sends it; anything else is ignored. `told` is what was found in a file, `arg` a handle."""

    act: str
    arg: str = Field(default="", max_length=64)
    told: str = Field(default="", max_length=MAX_FOUND_CHARACTERS)


def read_recipe_click(data: object) -> RecipeClick | None:
    """Return the click, or None when the page sent something else."""
    try:
        return RecipeClick.model_validate(data)
    except ValidationError:
        return None


@dataclass(frozen=True)
class At:
    """Where the click was: the conversation that is open, what the composer holds, what its chips say."""

    conversation_id: str = ""
    message: Mapping[str, Any] | None = None
    chosen: Chosen = field(default_factory=Chosen)

    @property
    def text(self) -> str:
        """The words in the composer."""
        return str((self.message or {}).get("text") or "")

    @property
    def files(self) -> list[Any]:
        """The files in the composer."""
        return list((self.message or {}).get("files") or [])


@dataclass(frozen=True)
class Recipes:
    """Answers the clicks with updates of the page."""

    screen: Screen
    panel: RecipesPanel

    async def answer(self, visitor: Visitor, tab: Tab, click: RecipeClick, at: At) -> Updates:
        """Return what the click changes; unknown acts change nothing, what cannot be done is told in a sentence."""
        try:
            if click.told:
                return await self._of_file(visitor, tab, click.act, read_told(click.told), at)
            return await self._of_receipt(visitor, tab, click, at)
        except AivistaError as error:
            gr.Warning(visitor.words.error(error.info))
            return {}

    async def _of_file(self, visitor: Visitor, tab: Tab, act: str, found: FoundRecipe, at: At) -> Updates:
        """Return what a click on the card does with what a file says."""
        match act, found:
            case "found", _:
                known = isinstance(found, Recipe) and await self._known(visitor, found) is not None
                return {self.panel.card: panel.card_html(visitor.words, found, is_known=known)}
            case "read", Recipe() | ForeignRecipe():
                return {self.screen.panels.canvas: panel.recipe_html(visitor.words, found)}
            case "restore", Recipe():
                chosen = chosen_as(found.settings, found, at.chosen)
                # A single file is the one that says so: it was brought for what it says.
                files = at.files if len(at.files) > 1 else []
                return self._in_composer(visitor, chosen, found.words or found.prompt, files)
            case "take_prompt", ForeignRecipe():
                files = at.files if len(at.files) > 1 else []
                return {self.screen.panels.composer.message: gr.update(value={"text": found.prompt, "files": files})}
            case "branch", Recipe():
                return await self._branch(visitor, tab, found, at)
            case _:
                return {}

    async def _known(self, visitor: Visitor, recipe: Recipe) -> tuple[str, str] | None:
        return await self.screen.studio().recipes.find(visitor.owner, recipe)

    async def _branch(self, visitor: Visitor, tab: Tab, recipe: Recipe, at: At) -> Updates:
        """Go on from the picture where it is known, else from the file itself, with what it was made from in words."""
        box, known = self.screen.panels.composer.message, await self._known(visitor, recipe)
        if known is None:
            said = visitor.words("recipe.branch_said", words=" ".join((recipe.words or recipe.prompt).split())[:500])
            has_words = bool(recipe.words or recipe.prompt) and not at.text.strip()
            return {box: gr.update(value={"text": said, "files": at.files}) if has_words else gr.skip()}
        conversation_id, handle = known
        opened = await Clicks(self.screen, Turns(self.screen)).open(visitor, tab, conversation_id)
        marked = self.screen.context(self.screen.view(visitor, conversation_id), handle, ())
        files = at.files if len(at.files) > 1 else []
        return {**opened, **marked, box: gr.update(value={"text": at.text, "files": files})}

    async def _of_receipt(self, visitor: Visitor, tab: Tab, click: RecipeClick, at: At) -> Updates:
        """Return what a button of a receipt does."""
        conversation = await self.screen.conversation(visitor, at.conversation_id)
        if conversation is None or click.act not in ("reuse", "keep", "other_model", "upscale"):
            return {}
        picture = conversation.picture(click.arg)
        receipt = picture.receipt
        if receipt is None:
            return {}
        if click.act == "keep":
            await self.screen.studio().recipes.keep_shortfall(conversation.id, picture.handle, visitor.owner)
            return thread(
                self.screen, visitor, await self.screen.conversation(visitor, conversation.id) or conversation
            )
        if click.act == "upscale":
            return await self._enlarge(visitor, tab, conversation, picture, at)
        turn = await self.screen.studio().recipes.turn_of(conversation.id, picture.handle, visitor.owner)
        if turn is None:
            return {}
        if click.act == "reuse":
            return self._in_composer(visitor, chosen_as(turn.settings, None, at.chosen), turn.text, at.files)
        return await self._with_other_model(visitor, tab, conversation, turn, receipt)

    def _in_composer(self, visitor: Visitor, chosen: Chosen, text: str, files: Sequence[Any]) -> Updates:
        """Return the chips as chosen, as far as the models in use obey, and the words in the box."""
        composer = self.screen.panels.composer
        updates = self.screen.chips(visitor, chosen)
        can_search = bool(updates[composer.allow_search].get("visible"))
        updates[composer.allow_search] |= {"value": chosen.allow_search and can_search}
        updates[composer.confirm] |= {"value": chosen.confirm}
        return {**updates, composer.message: gr.update(value={"text": text, "files": list(files)})}

    async def _enlarge(
        self, visitor: Visitor, tab: Tab, conversation: Conversation, picture: Picture, at: At
    ) -> Updates:
        """Have the picture painted again at the size that was asked; a sketch is enlarged as it is."""
        receipt, words = picture.receipt, visitor.words
        offer = repainter(self.screen.offers(visitor), receipt) if receipt else None
        pixels = asked_pixels(receipt) if receipt else None
        chosen, said = at.chosen.model_copy(update={"number_of_images": "1"}), ""
        if receipt is not None and offer is not None:
            size = receipt.asked_resolution or AUTO
            ratio = receipt.asked_aspect_ratio or AUTO
            chosen = chosen.model_copy(update={"image_model": offer.name, "resolution": size, "aspect_ratio": ratio})
            said = words("receipt.repaint_said", handle=picture.handle, size=size)
        elif pixels is not None:
            chosen = chosen.model_copy(update={"resolution": AUTO, "aspect_ratio": AUTO})
            said = words("receipt.enlarge_said", width=pixels[0], height=pixels[1])
        return await Turns(self.screen).say(visitor, tab, conversation.id, said, picture.handle, chosen)

    async def _with_other_model(
        self, visitor: Visitor, tab: Tab, conversation: Conversation, turn: Turn, receipt: Receipt
    ) -> Updates:
        """Send the turn's words once more, on the same pictures, to the image model that did not paint it."""
        others = [one for one in self.screen.offers(visitor) if one.label != receipt.model_label]
        if not others:
            return {}
        offer = others[0]
        settings = turn.settings.model_copy(
            update={
                "image_model": offer.name,
                "aspect_ratio": _obeyed(turn.settings.aspect_ratio, offer.aspect_ratios),
                "resolution": _obeyed(turn.settings.resolution, offer.resolutions),
            }
        )
        return await Turns(self.screen).begin(visitor, tab, conversation, _same_wish(turn, settings))


def _obeyed(value: str | None, offered: Sequence[str]) -> str | None:
    return value if value in offered else None


def _same_wish(turn: Turn, settings: TurnSettings) -> TurnRequest:
    """Return the turn's wish with other settings. What was sent along has a handle by now, and is named by it."""
    sent = [upload.handle for upload in turn.uploads if upload.handle and upload.handle != turn.editing]
    references = tuple(dict.fromkeys((*turn.references, *sent)))
    return TurnRequest(
        text=turn.text, settings=settings, editing=turn.asked_editing, references=references, roles=dict(turn.roles)
    )


def wire_recipes(screen: Screen, recipes: RecipesPanel, tab: gr.State) -> None:
    """Let the card and the receipts call their handlers."""
    answering, composer = Recipes(screen, recipes), screen.panels.composer

    async def act(
        request: gr.Request,
        event: gr.EventData,
        tab: Tab,
        message: dict[str, Any] | None,
        conversation: str,
        **chips: Any,
    ) -> Updates:
        click = read_recipe_click(event._data)
        if click is None:
            return screen.nothing()
        at = At(conversation, message, Chosen.model_validate(chips))
        return await answering.answer(screen.sessions.visitor(request), tab, click, at) or screen.nothing()

    recipes.bus.click(
        act,
        None,
        [*screen.panels.outputs, recipes.card],
        inputs_kwargs={
            "tab": tab,
            "message": composer.message,
            "conversation": composer.conversation,
            **composer.settings,
        },
        concurrency_limit=_AT_ONCE,
        trigger_mode="multiple",
        **_QUIET,
    )

"""Recipes: those in files that are about to be sent, and those of receipts under pictures.

The content of a file is untrusted: none of it becomes an address or a button. The page receives it as a value with
known fields and sends it back with a click; it is validated both times.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TypeAlias

from markupsafe import Markup
from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from agent import (
    Conversation,
    ForeignRecipe,
    FoundRecipe,
    Picture,
    Receipt,
    Recipe,
    RecipeRefusal,
    RecipeSettings,
    ReferenceRole,
    RefusedRecipe,
    Turn,
    TurnRequest,
    TurnSettings,
    Value,
    read_recipe,
    upload_limit_megabytes,
)
from webui.features.composer import AUTO, ChosenSettings
from webui.features.page import opened
from webui.features.viewer.receipt import asked_pixels, changes_text, repainter
from webui.http.sessions import NO_STORE, ImageJobs, Sessions, Visitor, as_text, body_of, visitor_route
from webui.screen import THREAD, Updates
from webui.shell.actions import Context, Feature
from webui.shell.templates import Reply, render
from webui.spend import price
from webui.turns import Turns
from webui.whole_json import read_value
from webui.words import Words

recipes = Feature("recipes", routes=lambda screen: recipe_routes(screen.sessions), most_bytes=4 << 20)
_WORDS_ON_CARD = 160
MAX_FOUND_CHARACTERS = 2 << 20
_Painted: TypeAlias = tuple[Conversation, Picture, Receipt]


class FileFinding(Value):
    """What the route found in a file; `is_written` says that the box holds text."""

    told: str = Field(max_length=MAX_FOUND_CHARACTERS)
    is_written: bool = False

    @property
    def found(self) -> FoundRecipe:
        """The recipe that was found; None when the page sent something else."""
        kept = read_value(Found, self.told)
        return kept.found if kept is not None else None


class Of(Value):
    """The picture whose receipt is meant."""

    arg: str = Field(max_length=64)


@recipes.action
async def found(at: Context, file: FileFinding) -> Reply:
    """Show the card for what a file says."""
    what = file.found
    known = isinstance(what, Recipe) and await _known(at, what) is not None
    return at.reply({"recipe": card_html(at.words, what, is_known=known)})


@recipes.action
async def read(at: Context, file: FileFinding) -> Reply:
    """Show all that a file says."""
    what = file.found
    return at.reply({"canvas": recipe_html(at.words, what)}) if isinstance(what, Recipe | ForeignRecipe) else Reply()


@recipes.action
async def restore(at: Context, file: FileFinding) -> Reply:
    """Put the settings and the prompt of a recipe into the composer."""
    what = file.found
    if not isinstance(what, Recipe):
        return Reply()
    chosen = chosen_as(what.settings, what, at.state.chosen)
    return _without_file(at.reply(_in_composer(at, chosen, what.words or what.prompt)))


@recipes.action
async def take_prompt(at: Context, file: FileFinding) -> Reply:
    """Put the prompt of another program's recipe into the composer."""
    what = file.found
    return _without_file(at.reply(at.screen.wording(what.prompt))) if isinstance(what, ForeignRecipe) else Reply()


@recipes.action
async def branch(at: Context, file: FileFinding) -> Reply:
    """Continue from the picture if the studio knows it, else from the file itself, with its prompt in words."""
    what = file.found
    if not isinstance(what, Recipe):
        return Reply()
    known = await _known(at, what)
    if known is None:
        sentence = at.words("recipe.branch_said", words=" ".join((what.words or what.prompt).split())[:500])
        has_words = bool(what.words or what.prompt) and not file.is_written
        return at.reply(at.screen.wording(sentence)) if has_words else Reply()
    conversation_id, handle = known
    marked = at.screen.context(at.screen.view(at.visitor, conversation_id), handle, ())
    return _without_file(at.reply({**await opened(at, conversation_id), **marked}))


@recipes.action
async def keep(at: Context, picture: Of) -> Reply:
    """Accept a picture that is smaller than was asked."""
    await at.screen.studio().recipes.keep_shortfall(at.state.conversation, picture.arg, at.visitor.owner)
    return at.reply({THREAD: at.screen.thread(at.visitor, await at.conversation())})


@recipes.action
async def upscale(at: Context, asked: Of) -> Reply:
    """Paint a picture again at the size that was asked; a sketch is enlarged as it is."""
    painted = await _painted(at, asked)
    if painted is None:
        return Reply()
    conversation, picture, receipt = painted
    offer, pixels = repainter(at.screen.offers(at.visitor), receipt), asked_pixels(receipt)
    chosen, sentence = at.state.chosen.model_copy(update={"number_of_images": "1"}), ""
    if offer is not None:
        size = receipt.asked_resolution or AUTO
        ratio = receipt.asked_aspect_ratio or AUTO
        chosen = chosen.model_copy(update={"image_model": offer.name, "resolution": size, "aspect_ratio": ratio})
        sentence = at.words("receipt.repaint_said", handle=picture.handle, size=size)
    elif pixels is not None:
        chosen = chosen.model_copy(update={"resolution": AUTO, "aspect_ratio": AUTO})
        sentence = at.words("receipt.enlarge_said", width=pixels[0], height=pixels[1])
    return at.reply(await Turns(at).say(sentence, picture.handle, chosen, conversation=conversation))


@recipes.action
async def reuse(at: Context, asked: Of) -> Reply:
    """Put the settings and the prompt of a picture's turn into the composer."""
    turn = await _turn(at, await _painted(at, asked))
    if turn is None:
        return Reply()
    return at.reply(_in_composer(at, chosen_as(turn.settings, None, at.state.chosen), turn.text))


@recipes.action
async def other_model(at: Context, asked: Of) -> Reply:
    """Send the turn's prompt again, on the same pictures, to the image model that did not paint it."""
    painted = await _painted(at, asked)
    turn = await _turn(at, painted)
    if painted is None or turn is None:
        return Reply()
    conversation, _, receipt = painted
    request = _to_another_model(at, turn, receipt)
    return at.reply(await Turns(at).begin(conversation, request)) if request is not None else Reply()


async def _painted(at: Context, asked: Of) -> _Painted | None:
    """Return the picture with its conversation and its receipt; None for an upload, or without a conversation."""
    conversation = await at.conversation()
    picture = conversation.picture(asked.arg) if conversation is not None else None
    if conversation is None or picture is None or picture.receipt is None:
        return None
    return conversation, picture, picture.receipt


async def _turn(at: Context, painted: _Painted | None) -> Turn | None:
    if painted is None:
        return None
    conversation, picture, _ = painted
    return await at.screen.studio().recipes.turn_of(conversation.id, picture.handle, at.visitor.owner)


async def _known(at: Context, recipe: Recipe) -> tuple[str, str] | None:
    return await at.screen.studio().recipes.find(at.visitor.owner, recipe)


def _without_file(reply: Reply) -> Reply:
    """Return the reply, with the event that removes a single file from the message: it was dropped for its recipe."""
    return reply.model_copy(update={"events": {**reply.events, "recipe-taken": True}})


def _in_composer(at: Context, chosen: ChosenSettings, text: str) -> Updates:
    """Return the settings, as far as the models in use accept them, and the prompt, as updates of the composer."""
    return {**at.screen.chips(at.visitor, chosen), **at.screen.wording(text)}


def _to_another_model(at: Context, turn: Turn, receipt: Receipt) -> TurnRequest | None:
    """Return the turn's request for the other model. Attachments have handles by now, and are named by them."""
    others = [one for one in at.screen.offers(at.visitor) if one.label != receipt.model_label]
    if not others:
        return None
    offer, asked = others[0], turn.settings
    obeyed = {
        "image_model": offer.name,
        "aspect_ratio": _obeyed(asked.aspect_ratio, offer.aspect_ratios),
        "resolution": _obeyed(asked.resolution, offer.resolutions),
    }
    settings: TurnSettings = asked.model_copy(update=obeyed)
    sent = [upload.handle for upload in turn.uploads if upload.handle and upload.handle != turn.editing]
    references = tuple(dict.fromkeys((*turn.references, *sent)))
    return TurnRequest(
        text=turn.text, settings=settings, editing=turn.asked_editing, references=references, roles=dict(turn.roles)
    )


def _obeyed(value: str | None, offered: Sequence[str]) -> str | None:
    return value if value in offered else None


# What is shown of a recipe


def card_html(words: Words, found: FoundRecipe, *, is_known: bool) -> Markup:
    """Return the card for what a file says; `is_known` when the picture is one of the visitor's own."""
    match found:
        case Recipe():
            kind, said = "own", _summary(words, found)
        case ForeignRecipe(prompt=""):
            kind, said = "foreign", words("recipe.foreign")
        case ForeignRecipe():
            kind, said = "foreign", words("recipe.foreign_said", words=_shortened(found.prompt))
        case RefusedRecipe():
            kind, said = "", words("recipe.newer" if found.reason is RecipeRefusal.NEWER else "recipe.damaged")
        case None:
            return Markup()
    has_prompt = isinstance(found, ForeignRecipe) and bool(found.prompt)
    return render("recipes/card.html", words, said=said, kind=kind, is_known=is_known, has_prompt=has_prompt)


def recipe_html(words: Words, found: Recipe | ForeignRecipe) -> Markup:
    """Return all that a file says, for the stage."""
    if isinstance(found, ForeignRecipe):
        return render("recipes/whole.html", words, foreign=found, lead=words("recipe.foreign_lead"))
    own = _own(words, found)
    return render("recipes/whole.html", words, recipe=found, foreign=None, lead=words("recipe.lead"), **own)


def _summary(words: Words, recipe: Recipe) -> str:
    """Return the picture in one sentence: the prompt, the model, and what was asked."""
    shown = _shortened(recipe.words or recipe.prompt)
    quoted = words("recipe.quoted", words=shown) if shown else ""
    model = words.model(recipe.model_label or recipe.model)
    parts = (quoted, model, recipe.asked_aspect_ratio, recipe.asked_resolution)
    listed = words("recipe.join").join(filter(None, parts))
    return words("recipe.found", recipe=listed or f"{recipe.width}×{recipe.height}")


def _shortened(text: str) -> str:
    plain = " ".join(text.split())
    return plain if len(plain) <= _WORDS_ON_CARD else f"{plain[: _WORDS_ON_CARD - 1].rstrip()}…"


def _own(words: Words, recipe: Recipe) -> dict[str, object]:
    """Return the facts of our own recipe that the template shows besides its fields."""
    known = set(ReferenceRole)
    roles = [words(f"role.{one.role}") if one.role in known else one.role for one in recipe.parents]
    asked = " ".join(part for part in (recipe.asked_resolution, recipe.asked_aspect_ratio) if part)
    got = f"{recipe.width}×{recipe.height}" if recipe.width and recipe.height else ""
    notes = ((recipe.made_with_ai, "recipe.with_ai"), (recipe.is_shortened, "recipe.shortened"))
    return {
        "changes": changes_text(words, recipe.changes),
        "model": words.model(recipe.model_label or recipe.model),
        "got": " → ".join(part for part in (asked, got) if part),
        "parents": " · ".join(f"{one.handle} {role}".strip() for one, role in zip(recipe.parents, roles, strict=True)),
        "price": price(words, recipe.price_usd) if recipe.prompt else "",
        "time": words("receipt.seconds", seconds=f"{recipe.seconds:.1f}") if recipe.seconds else "",
        "notes": " ".join(words(key) for is_so, key in notes if is_so),
    }


# A file that is dropped


class Found(Value):
    """What was found in a file, of one kind."""

    recipe: Recipe | None = None
    foreign: ForeignRecipe | None = None
    refused: RefusedRecipe | None = None

    @property
    def found(self) -> FoundRecipe:
        """What it is."""
        return self.recipe or self.foreign or self.refused


def found_of(found: FoundRecipe) -> Found | None:
    """Return what was found as the page keeps it; None when nothing was."""
    match found:
        case Recipe():
            return Found(recipe=found)
        case ForeignRecipe():
            return Found(foreign=found)
        case RefusedRecipe():
            return Found(refused=found)
        case None:
            return None


def chosen_as(
    settings: TurnSettings | RecipeSettings | None, recipe: Recipe | None, now: ChosenSettings
) -> ChosenSettings:
    """Return the settings of the turn, and the current ones where it says nothing.

    Without recorded settings, what was asked for is used. Values that no model in use accepts are left out later.
    """
    if settings is None:
        ratio = recipe.asked_aspect_ratio if recipe else None
        size = recipe.asked_resolution if recipe else None
        return now.model_copy(update={"aspect_ratio": ratio or AUTO, "resolution": size or AUTO})
    return now.model_copy(update=ChosenSettings.of(settings).model_dump(include=set(type(settings).model_fields)))


def recipe_routes(sessions: Sessions) -> list[Route]:
    """Return the route `POST /aivista/recipe`: the bytes of a file in, JSON of its recipe out.

    204 when the file has none, 413 when it is larger than a picture may be, 429 for a client with too many requests.
    Nothing is kept.
    """
    bench = ImageJobs(places=2)

    async def read(request: Request, visitor: Visitor) -> Response:
        limit = upload_limit_megabytes(visitor.owner)
        # Read the body before anything asks whether the client is still connected: that would swallow its first part.
        data = await body_of(request, limit << 20)
        if data is None:
            return as_text(visitor.words("builtin.too_large", limit=limit), 413)

        async def work() -> Response:
            found = found_of(await asyncio.to_thread(read_recipe, data))
            if found is None:
                return Response(status_code=204, headers=NO_STORE)
            return Response(found.model_dump_json(exclude_none=True), media_type="application/json", headers=NO_STORE)

        return await bench.run(request, visitor, work)

    return [visitor_route("/aivista/recipe", sessions, read, method="POST")]

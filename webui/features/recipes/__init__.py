"""Recipes at work: of files that are about to be sent, and of the receipts under pictures."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import Field

from agent import (
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
from webui.features.composer import AUTO, Chosen
from webui.features.page.opening import opened
from webui.features.recipes.cards import card_html, recipe_html
from webui.features.recipes.reading import MAX_FOUND_CHARACTERS, chosen_as, read_told, recipe_routes
from webui.features.viewer.receipt import asked_pixels, repainter
from webui.screen import THREAD, Updates
from webui.shell.actions import Context, Feature
from webui.shell.patches import Reply
from webui.turns import Turns

recipes = Feature("recipes", routes=lambda screen: recipe_routes(screen.sessions), most_bytes=4 << 20)


class Told(Value):
    """What was found in a file, as the route told it; `is_written` says that words stand in the box."""

    told: str = Field(max_length=MAX_FOUND_CHARACTERS)
    is_written: bool = False

    @property
    def found(self) -> FoundRecipe:
        """What it is."""
        return read_told(self.told)


class Of(Value):
    """The picture whose receipt is meant."""

    arg: str = Field(max_length=64)


@recipes.action
async def found(at: Context, file: Told) -> Reply:
    """Show the card of what a file says."""
    what = file.found
    known = isinstance(what, Recipe) and await _known(at, what) is not None
    return at.reply({"recipe": card_html(at.words, what, is_known=known)})


@recipes.action
async def read(at: Context, file: Told) -> Reply:
    """Show all that a file says."""
    match file.found:
        case Recipe() | ForeignRecipe() as what:
            return at.reply({"canvas": recipe_html(at.words, what)})
        case _:
            return Reply()


@recipes.action
async def restore(at: Context, file: Told) -> Reply:
    """Put the settings and the words of a recipe into the composer."""
    what = file.found
    if not isinstance(what, Recipe):
        return Reply()
    chosen = chosen_as(what.settings, what, at.place.chosen)
    return _without_file(at.reply(_in_composer(at, chosen, what.words or what.prompt)))


@recipes.action
async def take_prompt(at: Context, file: Told) -> Reply:
    """Put the prompt of another program's recipe into the composer."""
    what = file.found
    return _without_file(at.reply(at.screen.wording(what.prompt))) if isinstance(what, ForeignRecipe) else Reply()


@recipes.action
async def branch(at: Context, file: Told) -> Reply:
    """Go on from the picture where it is known, else from the file itself, with what it was made from in words."""
    what = file.found
    if not isinstance(what, Recipe):
        return Reply()
    known = await _known(at, what)
    if known is None:
        said = at.words("recipe.branch_said", words=" ".join((what.words or what.prompt).split())[:500])
        has_words = bool(what.words or what.prompt) and not file.is_written
        return at.reply(at.screen.wording(said)) if has_words else Reply()
    conversation_id, handle = known
    marked = at.screen.context(at.screen.view(at.visitor, conversation_id), handle, ())
    return _without_file(at.reply({**await opened(at, conversation_id), **marked}))


@recipes.action
async def keep(at: Context, picture: Of) -> Reply:
    """Keep a picture that is smaller than was asked."""
    await at.screen.studio().recipes.keep_shortfall(at.place.conversation, picture.arg, at.visitor.owner)
    return at.reply({THREAD: at.screen.thread(at.visitor, await at.conversation())})


@recipes.action
async def upscale(at: Context, asked: Of) -> Reply:
    """Have a picture painted again at the size that was asked; a sketch is enlarged as it is."""
    conversation, picture = await _picture(at, asked)
    receipt = picture.receipt if picture is not None else None
    if conversation is None or picture is None or receipt is None:
        return Reply()
    offer, pixels = repainter(at.screen.offers(at.visitor), receipt), asked_pixels(receipt)
    chosen, said = at.place.chosen.model_copy(update={"number_of_images": "1"}), ""
    if offer is not None:
        size = receipt.asked_resolution or AUTO
        ratio = receipt.asked_aspect_ratio or AUTO
        chosen = chosen.model_copy(update={"image_model": offer.name, "resolution": size, "aspect_ratio": ratio})
        said = at.words("receipt.repaint_said", handle=picture.handle, size=size)
    elif pixels is not None:
        chosen = chosen.model_copy(update={"resolution": AUTO, "aspect_ratio": AUTO})
        said = at.words("receipt.enlarge_said", width=pixels[0], height=pixels[1])
    return at.reply(await Turns(at).say(said, picture.handle, chosen, conversation=conversation))


@recipes.action
async def reuse(at: Context, asked: Of) -> Reply:
    """Put the settings and the words of a picture's turn into the composer."""
    turn = await _turn(at, asked)
    if turn is None:
        return Reply()
    return at.reply(_in_composer(at, chosen_as(turn.settings, None, at.place.chosen), turn.text))


@recipes.action
async def other_model(at: Context, asked: Of) -> Reply:
    """Send the turn's words once more, on the same pictures, to the image model that did not paint it."""
    conversation, picture = await _picture(at, asked)
    turn = await _turn(at, asked)
    if conversation is None or picture is None or picture.receipt is None or turn is None:
        return Reply()
    request = _to_another_model(at, turn, picture.receipt)
    if request is None:
        return Reply()
    return at.reply(await Turns(at).begin(conversation, request))


async def _picture(at: Context, asked: Of) -> tuple[Conversation | None, Picture | None]:
    conversation = await at.conversation()
    return conversation, conversation.picture(asked.arg) if conversation is not None else None


async def _turn(at: Context, asked: Of) -> Turn | None:
    conversation, picture = await _picture(at, asked)
    if conversation is None or picture is None or picture.receipt is None:
        return None
    return await at.screen.studio().recipes.turn_of(conversation.id, picture.handle, at.visitor.owner)


async def _known(at: Context, recipe: Recipe) -> tuple[str, str] | None:
    return await at.screen.studio().recipes.find(at.visitor.owner, recipe)


def _without_file(reply: Reply) -> Reply:
    """Return the reply with which a single file leaves the message: it was brought for what it says."""
    return reply.model_copy(update={"events": {**reply.events, "recipe-taken": True}})


def _in_composer(at: Context, chosen: Chosen, text: str) -> Updates:
    """Return the settings as chosen, as far as the models in use obey, and the words in the box."""
    return {**at.screen.chips(at.visitor, chosen), **at.screen.wording(text)}


def _to_another_model(at: Context, turn: Turn, receipt: Receipt) -> TurnRequest | None:
    """Return the turn's request for the other model. What was sent along has a handle by now, and is named by it."""
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

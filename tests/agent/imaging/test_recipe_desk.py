"""Pictures taken away with their recipe, without, or as they came; and found again by one."""

from __future__ import annotations

import io
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from PIL import Image

from agent import ErrorCode, RequestRefused
from tests.adapters.recipes import Recipe, RecipeService, pixels_digest, read_recipe
from tests.adapters.records import ConversationStore, GalleryQuery
from tests.support.galleries import Filled, filled


@pytest.fixture
async def records(tmp_path: Path) -> AsyncIterator[Filled]:
    async with filled(tmp_path) as records:
        yield records


def desk_of(records: Filled) -> RecipeService:
    return RecipeService(records.store, records.images)


def recipe_in(data: bytes) -> Recipe:
    found = read_recipe(data)
    assert isinstance(found, Recipe)
    return found


def pixels(data: bytes) -> bytes:
    with Image.open(io.BytesIO(data)) as picture:
        return picture.convert("RGBA").tobytes()


async def test_a_picture_taken_away_tells_its_recipe_and_shows_the_same_pixels(records: Filled) -> None:
    conversation = await records.conversation(title="Autumn")
    await records.add(conversation, "a fox, painted", words="draw a fox")
    desk = desk_of(records)
    original = await desk.original(conversation, "#1", "local")
    carrying = await desk.with_recipe(conversation, "#1", "local")
    recipe = recipe_in(carrying.data)
    assert (recipe.words, recipe.prompt, recipe.conversation_title) == ("draw a fox", "a fox, painted", "Autumn")
    assert recipe.settings is not None
    assert recipe.settings.image_model == "pro"
    assert recipe.pixels_digest == pixels_digest(original.data) == pixels_digest(carrying.data)
    assert recipe.file_digest == original.picture.image.digest
    assert pixels(carrying.data) == pixels(original.data)
    assert read_recipe(original.data) is None


async def test_a_recipe_leads_back_to_its_picture_else_to_what_it_was_made_from(records: Filled) -> None:
    conversation = await records.conversation()
    await records.add(conversation)
    base = await records.add(conversation, prompt=None)
    await records.add(conversation, details={"parents": ("#2",)})
    desk = desk_of(records)
    recipe = recipe_in((await desk.with_recipe(conversation, "#3", "local")).data)
    assert await desk.find("local", recipe) == (conversation, "#3")
    elsewhere = recipe.model_copy(update={"file_digest": "f" * 64})
    assert await desk.find("local", elsewhere) == (conversation, "#2")
    await records.gallery.delete("local", [base])
    assert await desk.find("local", elsewhere) is None


async def test_a_kept_shortfall_stays_kept(records: Filled) -> None:
    conversation = await records.conversation()
    await records.add(conversation)
    await desk_of(records).keep_shortfall(conversation, "#1", "local")
    assert (await records.store.get(conversation, "local")).picture("#1").shortfall_kept
    anew = ConversationStore(records.home, records.images)
    await anew.open()
    assert (await anew.get(conversation, "local")).picture("#1").shortfall_kept
    await anew.aclose()
    page = await records.gallery.page("local", GalleryQuery())
    assert page.items[0].picture.shortfall_kept
    with pytest.raises(RequestRefused):
        await desk_of(records).keep_shortfall(conversation, "#9", "local")


async def test_what_cannot_be_taken_apart_is_not_called_clean_and_its_turn_is_found(records: Filled) -> None:
    conversation = await records.conversation(turn_id="t-first")
    await records.add(conversation, data=b"\x89PNG\r\n\x1a\nbroken")
    desk = desk_of(records)
    with pytest.raises(RequestRefused) as refused:
        await desk.clean(conversation, "#1", "local")
    assert refused.value.code is ErrorCode.PICTURE_UNREADABLE
    # With its recipe it is to be had all the same, as it is.
    assert (await desk.with_recipe(conversation, "#1", "local")).data == b"\x89PNG\r\n\x1a\nbroken"
    turn = await desk.turn_of(conversation, "#1", "local")
    assert turn is not None
    assert turn.id == "t-first"

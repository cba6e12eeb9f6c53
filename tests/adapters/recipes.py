"""Recipes in pictures: how a picture was made, as its file tells it."""

from __future__ import annotations

from typing import Any

from pydantic_core import to_jsonable_python

from agent import ForeignRecipe, Recipe, RecipeRefusal, RecipeService, RecipeSettings, RefusedRecipe, read_recipe
from agent.imaging.provenance import clean, embed, has_credentials, recipe_of
from agent.imaging.provenance.containers import exif_of, read_exif
from agent.imaging.provenance.foreign import foreign_recipe, read_graph
from agent.imaging.provenance.recipe import (
    LONG_TEXT_CHARACTERS,
    MAX_RECIPE_BYTES,
    ForeignTool,
    ParentDigest,
    RecipeChange,
    RecipeFact,
    RecipeMargins,
    RecipeSource,
    RecipeStyle,
    SourceType,
    is_ours,
    parameters_text,
    to_json,
)


def recipe_in(data: bytes) -> Any:
    """Return what the file tells of how its picture was made, as what JSON can hold; None where it tells nothing."""
    return to_jsonable_python(read_recipe(data))

"""Pictures that describe themselves: how they came about, written into their files and read back from any file.

Everything here takes and gives bytes and plain values; a picture is decoded by `pixels_digest` alone.
"""

from __future__ import annotations

from agent.imaging.provenance.composing import recipe_of
from agent.imaging.provenance.embedding import clean, embed, has_credentials
from agent.imaging.provenance.pixels import pixels_digest
from agent.imaging.provenance.reading import read_recipe
from agent.imaging.provenance.recipe import (
    ForeignRecipe,
    ForeignTool,
    FoundRecipe,
    ParentDigest,
    Recipe,
    RecipeRefusal,
    RecipeSettings,
    RefusedRecipe,
    SourceType,
)

__all__ = [
    "ForeignRecipe",
    "ForeignTool",
    "FoundRecipe",
    "ParentDigest",
    "Recipe",
    "RecipeRefusal",
    "RecipeSettings",
    "RefusedRecipe",
    "SourceType",
    "clean",
    "embed",
    "has_credentials",
    "pixels_digest",
    "read_recipe",
    "recipe_of",
]

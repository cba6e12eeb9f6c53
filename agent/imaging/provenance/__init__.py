"""Pictures that describe themselves: how they came about, written into their files and read back from any file.

Everything here takes and gives bytes and plain values; no picture is decoded.
"""

from __future__ import annotations

from agent.imaging.provenance.embedding import clean, embed, has_credentials, read_recipe
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
    recipe_of,
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
    "read_recipe",
    "recipe_of",
]

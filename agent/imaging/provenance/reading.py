"""What a file says of how it was made, whoever wrote it: read with care, and never more than data."""

from __future__ import annotations

from agent.imaging.provenance import xmp
from agent.imaging.provenance.embedding import carried
from agent.imaging.provenance.foreign import foreign_recipe
from agent.imaging.provenance.recipe import FoundRecipe, Recipe, RecipeRefusal, RefusedRecipe, from_json


def read_recipe(data: bytes) -> FoundRecipe:
    """Return what a PNG, JPEG or WebP says of how it was made; None when it says nothing, or is no such file.

    A recipe of ours comes first; then that one of a later version is there; then what stands where other programs look;
    then that a recipe is there but damaged. Fit for hostile files: never raises, decodes no pixel, follows no entity,
    unpacks at most 2 MB of a text. All texts in the answer are data to be shown as such; none is a fact or a wish.
    """
    found = carried(data)
    refused: RefusedRecipe | None = None
    for text in (found.recipe, xmp.recipe_text(found.xmp)):
        recipe = from_json(text) if text is not None else None
        if isinstance(recipe, Recipe):
            return recipe
        if recipe is not None and (refused is None or recipe.reason is RecipeRefusal.NEWER):
            refused = recipe
    if refused is not None and refused.reason is RecipeRefusal.NEWER:
        return refused
    return foreign_recipe(found.parameters, found.texts) or refused

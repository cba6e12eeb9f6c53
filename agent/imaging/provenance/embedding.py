"""A file with its recipe, and a file without any: surgery on the bytes, never a pixel decoded or encoded.

Content credentials (C2PA) of a picture's maker are left where they are. Their hash covers every byte of the file but
their own (C2PA 2.4, 15.12), so that a validator reports a file with anything added to it as changed since it was
signed, as it would after any other program that writes metadata; `has_credentials` tells which files are concerned.
"""

from __future__ import annotations

from agent.errors import ErrorCode, RequestRefused
from agent.imaging.provenance import jpeg, png, webp, xmp
from agent.imaging.provenance.foreign import foreign_recipe
from agent.imaging.provenance.recipe import (
    Carried,
    FoundRecipe,
    Malformed,
    PictureFormat,
    Recipe,
    RecipeRefusal,
    RefusedRecipe,
    from_json,
)

# Modules stand for the protocol.
_FORMATS: dict[str, PictureFormat] = {
    "image/png": png,  # pyrefly: ignore[bad-assignment]
    "image/jpeg": jpeg,  # pyrefly: ignore[bad-assignment]
    "image/webp": webp,  # pyrefly: ignore[bad-assignment]
}


def embed(data: bytes, mime_type: str, recipe: Recipe) -> bytes:
    """Return the file with the recipe inside, in place of an older one; its pixels are the very same bytes.

    All else stays: colour profile, orientation, what other programs wrote, content credentials. PNG, JPEG and WebP
    carry a recipe. GIF, HEIC and AVIF come back unchanged, and so does a file that is damaged, of another type than it
    is said to be, or a JPEG with no room left for it: a picture is always to be had.
    """
    form = _FORMATS.get(mime_type)
    if form is None:
        return data
    try:
        return form.embedded(data, recipe)
    except Malformed:
        return data


def clean(data: bytes, mime_type: str) -> bytes:
    """Return the file with nothing in it but its pixels, the same bytes, their colours and which way up they are.

    No recipe, no text, no EXIF but the orientation, no comment, no preview, no content credentials, nothing after the
    picture's end; the colour profile stays because it changes the look.

    Raises RequestRefused(PICTURE_UNREADABLE) for a file that is damaged or no PNG, JPEG or WebP: what cannot be taken
    apart cannot be called clean.
    """
    form = _FORMATS.get(mime_type)
    try:
        if form is not None:
            return form.cleaned(data)
        detail = f"{mime_type} is not taken apart"
    except Malformed as error:
        detail = str(error)
    raise RequestRefused(ErrorCode.PICTURE_UNREADABLE, name="The picture", provider_detail=detail)


def has_credentials(data: bytes) -> bool:
    """Return whether the file holds content credentials (C2PA), which are no longer valid once anything is added."""
    return carried(data).has_credentials


def carried(data: bytes) -> Carried:
    """Return what the file carries beside its pixels; the bytes decide what kind of file it is. Never raises."""
    form = next((one for one in _FORMATS.values() if data.startswith(one.SIGNATURE)), None)
    return form.carried(data) if form else Carried()


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

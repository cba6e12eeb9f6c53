"""The provenance of pictures: a recipe is embedded in a picture's file, and recipes are read back from any file.

All functions work on bytes and plain values; no pixel is decoded or encoded. A file is a list of blocks (`containers`),
so reading, embedding and cleaning use the same code for all kinds of files.

`embed` keeps content credentials (C2PA) of the picture's maker. Their hash covers every byte of the file except their
own (C2PA 2.4, 15.12), so a validator reports the file as changed after signing once anything is added, as with any
program that writes metadata. `has_credentials` tells which files are affected.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from agent.errors import ErrorCode, RequestRefused
from agent.imaging.provenance import xmp
from agent.imaging.provenance.containers import CONTAINERS, Block, Container, Exif, Kind, Malformed, exif_of, read_exif
from agent.imaging.provenance.foreign import foreign_recipe
from agent.imaging.provenance.recipe import (
    ForeignRecipe,
    FoundRecipe,
    Recipe,
    RecipeRefusal,
    RecipeSettings,
    RefusedRecipe,
    from_json,
    is_ours,
    parameters_text,
    recipe_of,
    shortened,
    to_json,
)

__all__ = [
    "ForeignRecipe",
    "FoundRecipe",
    "Recipe",
    "RecipeRefusal",
    "RecipeSettings",
    "RefusedRecipe",
    "clean",
    "embed",
    "has_credentials",
    "read_recipe",
    "recipe_of",
]

# Limits (characters of a text, items of a list) that are tried in turn when a file has little room.
_SHORTER = ((8000, 8), (4000, 8), (1000, 4), (200, 0))


def embed(data: bytes, mime_type: str, recipe: Recipe) -> bytes:
    """Return the file with the recipe embedded, replacing an older one; the bytes of the pixels do not change.

    Everything else stays: colour profile, orientation, metadata of other programs, content credentials. PNG, JPEG and
    WebP carry a recipe. GIF, HEIC and AVIF are returned unchanged, and so is a file that is damaged or of another type
    than `mime_type`, and a JPEG without room for a recipe: a download never fails because of the recipe.
    """
    container = CONTAINERS.get(mime_type)
    try:
        return _embedded(container, data, recipe) if container else data
    except Malformed:
        return data


def _embedded(container: Container, data: bytes, recipe: Recipe) -> bytes:
    blocks = list(container.split(data))
    place = container.place(blocks)
    packets = [block for block in blocks if block.kind is Kind.XMP][: container.most]
    replaced = [*packets, *(block for block in blocks if block.kind is Kind.RECIPE)]
    added: list[tuple[Kind, bytes]] = []
    parameters = parameters_text(recipe)
    # `parameters` or EXIF of another program are kept; ours are not added then.
    if container.has_texts:
        texts = [block for block in blocks if block.kind is Kind.PARAMETERS]
        ours = [block for block in texts if is_ours(block.text)]
        replaced += ours
        if parameters and len(ours) == len(texts):
            added.append((Kind.PARAMETERS, parameters.encode()))
        added.append((Kind.RECIPE, to_json(recipe).encode()))
    else:
        exif = [block for block in blocks if block.kind is Kind.EXIF][: container.most]
        known = read_exif(exif[0].value) if exif else Exif()
        if not known.is_foreign:
            replaced += exif
            if ours_in_exif := exif_of(known.orientation, parameters):
                added.append((Kind.EXIF, ours_in_exif))
    existing = packets[0].value if packets else b""
    added.append((Kind.XMP, _packet(existing, recipe, container.max_packet_bytes)))
    gone = {id(block) for block in replaced}
    before, after = ([one for one in part if id(one) not in gone] for part in (blocks[:place], blocks[place:]))
    return container.join([*before, *(container.made(*one) for one in added), *after])


def _packet(existing: bytes, recipe: Recipe, most_bytes: int) -> bytes:
    """Return the packet with as much of the recipe as fits. Raises Malformed when not even the shortest form fits."""
    for fitting in (recipe, *(shortened(recipe, *limits) for limits in _SHORTER)):
        packet = xmp.written(existing, fitting, to_json(fitting))
        if len(packet) <= most_bytes:
            return packet
    raise Malformed("no room for a recipe")


def clean(data: bytes, mime_type: str) -> bytes:
    """Return the file with only its pixels (the same bytes), colour information and orientation.

    Removed are recipe, texts, EXIF except the orientation, comments, preview, content credentials, and anything after
    the picture's end, such as a second picture. The colour profile stays because it changes the look.

    Raises RequestRefused(PICTURE_UNREADABLE) for a file that is damaged or not PNG, JPEG or WebP: a file that cannot
    be parsed cannot be called clean.
    """
    container = CONTAINERS.get(mime_type)
    try:
        if container is not None:
            return container.join(list(_cleaned(container, data)))
        detail = f"{mime_type} is not taken apart"
    except Malformed as error:
        detail = str(error)
    raise RequestRefused(ErrorCode.PICTURE_UNREADABLE, name="The picture", provider_detail=detail)


def _cleaned(container: Container, data: bytes) -> Iterator[Block]:
    has_exif = False
    for block in container.split(data):
        if block.kind is Kind.PIXELS:
            yield Block(Kind.PIXELS, container.bare(block))
        elif block.kind is Kind.EXIF and not has_exif:
            # Only the first EXIF block counts, even if it has no orientation.
            has_exif = True
            if turned := exif_of(read_exif(block.value).orientation, ""):
                yield container.made(Kind.EXIF, turned)


def has_credentials(data: bytes) -> bool:
    """Return whether the file has content credentials (C2PA), which become invalid once anything is added."""
    return any(block.kind is Kind.CREDENTIALS for block in _blocks(data))


def _blocks(data: bytes) -> Iterator[Block]:
    """Yield the blocks of any file; for a damaged file, those before the damage. Never raises."""
    container = next((one for one in CONTAINERS.values() if data.startswith(one.signature)), None)
    with contextlib.suppress(Malformed):
        yield from container.split(data) if container else ()


def read_recipe(data: bytes) -> FoundRecipe:
    """Return the recipe that a PNG, JPEG or WebP contains; None when it has none, or is no such file.

    In order of priority: our recipe; the refusal of one of a later version; the data of another program; the refusal
    of a damaged recipe. Safe for hostile files: never raises, decodes no pixel, expands no entity, decompresses at
    most 2 MB of a text. All texts in the result are data to display, never facts or instructions.
    """
    ours: bytes | None = None
    packet, parameters, texts = b"", "", dict[str, str]()
    has_texts = data.startswith(CONTAINERS["image/png"].signature)
    # The first block of each kind counts, unless it is empty.
    for block in _blocks(data):
        if block.kind is Kind.RECIPE:
            ours = ours or block.value
        elif block.kind is Kind.XMP:
            packet = packet or block.value
        elif block.kind is Kind.PARAMETERS:
            parameters = parameters or block.text
        elif block.kind is Kind.EXIF and not has_texts:
            parameters = parameters or read_exif(block.value).comment
        elif block.kind is Kind.TEXT:
            texts.setdefault(block.keyword, block.text)
    refused: RefusedRecipe | None = None
    for text in (ours, xmp.recipe_text(packet)):
        recipe = from_json(text) if text is not None else None
        if isinstance(recipe, Recipe):
            return recipe
        if recipe is not None and (refused is None or recipe.reason is RecipeRefusal.NEWER):
            refused = recipe
    if refused is not None and refused.reason is RecipeRefusal.NEWER:
        return refused
    return foreign_recipe(parameters, texts) or refused

"""Pictures that describe themselves: how they came about, written into their files and read back from any file.

Everything here takes and gives bytes and plain values; no picture is decoded, no pixel encoded. A file is a list of
blocks (`containers`), and reading, embedding and cleaning are the same for all kinds of files.

Content credentials (C2PA) of a picture's maker are left where they are. Their hash covers every byte of the file but
their own (C2PA 2.4, 15.12), so that a validator reports a file with anything added to it as changed since it was
signed, as it would after any other program that writes metadata; `has_credentials` tells which files are concerned.
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
    ForeignTool,
    FoundRecipe,
    ParentDigest,
    Recipe,
    RecipeRefusal,
    RecipeSettings,
    RefusedRecipe,
    SourceType,
    from_json,
    is_ours,
    parameters_text,
    recipe_of,
    shortened,
    to_json,
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

# Characters of a text and items of a list, tried one after the other where a file has little room.
_SHORTER = ((8000, 8), (4000, 8), (1000, 4), (200, 0))


def embed(data: bytes, mime_type: str, recipe: Recipe) -> bytes:
    """Return the file with the recipe inside, in place of an older one; its pixels are the very same bytes.

    All else stays: colour profile, orientation, what other programs wrote, content credentials. PNG, JPEG and WebP
    carry a recipe. GIF, HEIC and AVIF come back unchanged, and so does a file that is damaged, of another type than it
    is said to be, or a JPEG with no room left for it: a picture is always to be had.
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
    # The `parameters`, or the EXIF, of another program stay in place of ours.
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
    return container.join([*before, *(container.made(*told) for told in added), *after])


def _packet(existing: bytes, recipe: Recipe, most_bytes: int) -> bytes:
    """Return the packet with as much of the recipe as there is room for. Raises Malformed where there is for none."""
    for told in (recipe, *(shortened(recipe, *limits) for limits in _SHORTER)):
        packet = xmp.written(existing, told, to_json(told))
        if len(packet) <= most_bytes:
            return packet
    raise Malformed("no room for a recipe")


def clean(data: bytes, mime_type: str) -> bytes:
    """Return the file with nothing in it but its pixels, the same bytes, their colours and which way up they are.

    No recipe, no text, no EXIF but the orientation, no comment, no preview, no content credentials, nothing after the
    picture's end, such as a second picture; the colour profile stays because it changes the look.

    Raises RequestRefused(PICTURE_UNREADABLE) for a file that is damaged or no PNG, JPEG or WebP: what cannot be taken
    apart cannot be called clean.
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
            # Of several the first counts, also when it says nothing of the orientation.
            has_exif = True
            if turned := exif_of(read_exif(block.value).orientation, ""):
                yield container.made(Kind.EXIF, turned)


def has_credentials(data: bytes) -> bool:
    """Return whether the file holds content credentials (C2PA), which are no longer valid once anything is added."""
    return any(block.kind is Kind.CREDENTIALS for block in _blocks(data))


def _blocks(data: bytes) -> Iterator[Block]:
    """Yield the blocks of a file of any kind; of a damaged one, those before the damage. Never raises."""
    container = next((one for one in CONTAINERS.values() if data.startswith(one.signature)), None)
    with contextlib.suppress(Malformed):
        yield from container.split(data) if container else ()


def read_recipe(data: bytes) -> FoundRecipe:
    """Return what a PNG, JPEG or WebP says of how it was made; None when it says nothing, or is no such file.

    A recipe of ours comes first; then that one of a later version is there; then what stands where other programs look;
    then that a recipe is there but damaged. Fit for hostile files: never raises, decodes no pixel, follows no entity,
    unpacks at most 2 MB of a text. All texts in the answer are data to be shown as such; none is a fact or a wish.
    """
    ours: bytes | None = None
    packet, parameters, texts = b"", "", dict[str, str]()
    has_texts = data.startswith(CONTAINERS["image/png"].signature)
    # The first of each name counts, unless it says nothing.
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

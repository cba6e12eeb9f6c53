"""Masked edits between the pixels (`agent.imaging.masking`) and the record: frames, words, what is said of them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from agent.imaging import masking
from agent.imaging.final_prompt import ROLE_SENTENCES
from agent.pictures import EditKind, EditNotice, Picture, ReferenceRole
from agent.prompts import prompt
from agent.providers.catalogue import ModelEntry

_INSTRUCTIONS: dict[EditKind, str] = {"mask": "masked_edit", "expansion": "expanded_edit"}
_MEGAPIXEL = 1 << 20
# Notices that a person should read before the request is paid for.
BEFORE_PAYING = (
    masking.Notice.COVERS_ALL,
    masking.Notice.LITTLE_TO_ALIGN_BY,
    masking.Notice.SOFTER,
    masking.Notice.AREAS_FAR_APART,
)


def frames_of(model: ModelEntry) -> tuple[masking.Frame, ...]:
    """Return every output the model can be asked for; without known sizes, one of about a megapixel for each ratio.

    The size of a frame is empty when the model takes none.
    """
    if model.sizes:
        return tuple(
            masking.Frame(ratio, size, *pixels)
            for size, ratios in model.sizes.items()
            for ratio, pixels in ratios.items()
        )
    return tuple(masking.Frame(ratio, "", *_megapixel(ratio)) for ratio in model.aspect_ratios or ("1:1",))


def _megapixel(ratio: str) -> tuple[int, int]:
    across, _, down = ratio.partition(":")
    shape = int(across) / int(down)
    return round(math.sqrt(_MEGAPIXEL * shape)), round(math.sqrt(_MEGAPIXEL / shape))


def instructed(
    wish: str, kind: EditKind, marker: str, others: Sequence[Picture], roles: Mapping[str, ReferenceRole]
) -> str:
    """Return the prompt of an edit that may change a part alone: the wish, then what is shown and what must stay.

    Image 1 is what was cut out of the picture, Image 2 the same with the part marked, `others` come after them. All of
    it stands in the block that goes when the pictures are no longer shown.
    """
    told = [prompt(_INSTRUCTIONS[kind]).replace("{marker}", marker)]
    for place, picture in enumerate(others, 3):
        role = roles.get(picture.handle)
        told.append(f"Image {place} is {picture.handle}." + (f" {ROLE_SENTENCES[role]}" if role else ""))
    return "\n".join((f"{wish}\n\n[IMAGES]", *told, "[/IMAGES]"))


def codes_before_paying(said: Iterable[EditNotice]) -> tuple[str, ...]:
    """Return the names of what should be known before the request is paid for."""
    return tuple(one.code for one in said if one.code in BEFORE_PAYING)


def needs_consent(said: Iterable[EditNotice]) -> bool:
    """Return whether the person should see the plan before it is paid for, wanted or not."""
    return any(one.code == masking.Notice.LITTLE_TO_ALIGN_BY for one in said)

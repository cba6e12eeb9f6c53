"""The recipe of a picture on record: what its receipt says, and what its pixels come from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from pydantic import SecretStr

from agent.imaging.provenance.recipe import (
    ParentDigest,
    Recipe,
    RecipeFact,
    RecipeSettings,
    RecipeSource,
    RecipeStyle,
    SourceType,
)
from agent.messages import ImageOrigin
from agent.pictures import Picture, Receipt
from agent.redaction import without_homes, without_secrets
from agent.settings import ReferenceMode, TurnSettings

_MADE_WITH_AI = frozenset({SourceType.TRAINED, SourceType.COMPOSITE})


def recipe_of(
    picture: Picture,
    settings: TurnSettings | None,
    parents: Iterable[Picture] = (),
    *,
    conversation_title: str = "",
    reference_mode: ReferenceMode | None = None,
    secrets: Sequence[SecretStr] = (),
) -> Recipe:
    """Return the recipe of a picture that was made with these settings; an upload's tells little more than its origin.

    `parents` are what it was made from and their own parents, in any order; all pictures of the conversation will do.
    Only the further ones tell whether an adjusted picture was a photo. Texts are told without secrets (these, and
    whatever looks like one) and without the paths of home folders.
    """
    known = {one.handle: one for one in parents}
    source = source_type(picture, known)
    told: dict[str, object] = {
        "width": picture.image.width or 0,
        "height": picture.image.height or 0,
        "parents": _parents(picture, known),
        "created_at": picture.created_at,
        "file_digest": picture.image.digest,
        "handle": picture.handle,
        "conversation_title": _safe(conversation_title, secrets),
        "source_type": source,
        "made_with_ai": source in _MADE_WITH_AI,
    }
    if picture.receipt is not None:
        told |= _of_receipt(picture.receipt, secrets) | _of_edit(picture, picture.receipt)
        told["settings"] = _settings(settings, reference_mode) if settings else None
    return Recipe.model_validate(told)


def source_type(picture: Picture, known: Mapping[str, Picture]) -> SourceType | None:
    """Return what the picture's pixels come from, or None for an upload and for one that was only adjusted from it.

    An adjustment, and a sketch of another picture, are what their base is. A part pasted into a picture that no model
    made, or whose origin is unknown, makes a composite.
    """
    has_pasted_part = False
    # The way up is as long as there are pictures, and ends even where hostile records go in a ring.
    for _ in range(len(known) + 1):
        receipt = picture.receipt
        if receipt is None or picture.image.origin is ImageOrigin.UPLOADED:
            break
        is_painted = not receipt.is_exact and not receipt.is_sketch
        if is_painted and not _is_pasted(picture):
            return SourceType.TRAINED
        has_pasted_part = has_pasted_part or is_painted
        if receipt.is_sketch and not picture.parents and not has_pasted_part:
            return SourceType.ALGORITHMIC
        base = known.get(picture.parents[0]) if picture.parents else None
        if base is None:
            break
        picture = base
    return SourceType.COMPOSITE if has_pasted_part else None


def _is_pasted(picture: Picture) -> bool:
    return picture.edit is not None and picture.edit.verdict != "refused"


def _parents(picture: Picture, known: Mapping[str, Picture]) -> tuple[ParentDigest, ...]:
    references = picture.receipt.references if picture.receipt else ()
    roles = {reference.handle: str(reference.role) for reference in references}
    digests = {handle: one.image.digest for handle, one in known.items()}
    handles = dict.fromkeys((*picture.parents, *roles))
    return tuple(
        ParentDigest(handle=handle, digest=digests.get(handle, ""), role=roles.get(handle, "")) for handle in handles
    )


def _of_receipt(receipt: Receipt, secrets: Sequence[SecretStr]) -> dict[str, object]:
    return {
        "words": _safe(receipt.user_text, secrets),
        "prompt": _safe(receipt.prompt, secrets),
        "model": _safe(receipt.model, secrets),
        "model_label": _safe(receipt.model_label, secrets),
        "asked_aspect_ratio": receipt.asked_aspect_ratio,
        "asked_resolution": receipt.asked_resolution,
        "width": receipt.width,
        "height": receipt.height,
        "styles": [RecipeStyle(name=_safe(one.name, secrets), similarity=one.similarity) for one in receipt.styles],
        "facts": [
            RecipeFact(item=_safe(one.item, secrets), source=_safe(one.source, secrets)) for one in receipt.facts
        ],
        "sources": [
            RecipeSource(title=_safe(one.title, secrets), url=_safe(one.url, secrets)) for one in receipt.sources
        ],
        "price_usd": receipt.price_usd,
        "seconds": receipt.seconds,
        "is_sketch": receipt.is_sketch,
    }


def _of_edit(picture: Picture, receipt: Receipt) -> dict[str, object]:
    if receipt.is_exact:
        return {"edit": "adjustment", "changes": [one.model_dump() for one in receipt.changes]}
    # An answer that was refused is itself the picture: nothing of another one is in it.
    if picture.edit is None or not _is_pasted(picture):
        return {}
    margins = picture.edit.margins
    return {"edit": picture.edit.kind, "margins": margins.model_dump() if margins else None}


def _settings(settings: TurnSettings, mode: ReferenceMode | None) -> RecipeSettings:
    return RecipeSettings(
        text_model=settings.text_model,
        image_model=settings.image_model,
        aspect_ratio=settings.aspect_ratio,
        resolution=settings.resolution,
        number_of_images=settings.number_of_images,
        allow_search=settings.allow_search,
        search_policy=settings.search_policy,
        reference_mode=mode,
    )


def _safe(text: str, secrets: Sequence[SecretStr]) -> str:
    return without_homes(without_secrets(text, secrets))

"""An edit that may change only a part of a picture: planned before it is paid for, pasted when the answer is there.

The plan is made anew wherever it is needed, after a crash too: the same turn always gives the same one. Pixels are
worked on in threads, two edits at a time in the whole process.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import ParamSpec, TypeVar

from agent.conversation import MaskedPicture
from agent.errors import ErrorCode, ProviderFailure, RequestRefused
from agent.imaging import masking
from agent.imaging.contract import NormalizedRequest
from agent.imaging.edits import frame_mask, frames_of, notices_of, placement_of
from agent.messages import ImageOrigin, ImagePart
from agent.pictures import MAX_MASK_MEGABYTES, EditKind, EditRecord, Margins, Picture, PixelSize
from agent.providers.catalogue import ModelEntry
from agent.storage.images import ImageStore
from agent.workflow.deps import Deps

P = ParamSpec("P")
T = TypeVar("T")

PNG = "image/png"
# What is cut out of the picture and its marked copy stand in the place of one reference.
PLACES_NEEDED = 2
_AT_ONCE = 2
_REFUSED = {
    masking.MaskProblem.EMPTY: ErrorCode.MASK_EMPTY,
    masking.MaskProblem.UNREADABLE: ErrorCode.MASK_UNREADABLE,
    masking.MaskProblem.WRONG_RATIO: ErrorCode.MASK_WRONG_SHAPE,
}


@dataclass(frozen=True)
class PartEdit:
    """The edit of a part, ready to be asked for. `base` and `mask` are those of `EditRecord`.

    `shown` is what the image model is shown of the picture, `frame_mask` what of that may change.
    """

    kind: EditKind
    plan: masking.EditPlan
    base: ImagePart
    mask: ImagePart
    shown: tuple[ImagePart, ...]
    frame_mask: ImagePart
    margins: Margins | None = None

    @property
    def size(self) -> tuple[int, int]:
        """Width and height of the picture it will give."""
        return self.plan.width, self.plan.height

    def fitted(self, request: NormalizedRequest) -> NormalizedRequest:
        """Return the request with the frame that fits the part: what is chosen for whole pictures does not count."""
        frame = self.plan.frame
        filled = {**request.filled, "aspect_ratio": "default", "resolution": "default"}
        update = {"aspect_ratio": frame.ratio, "resolution": frame.size or None, "filled": filled}
        return request.model_copy(update=update)


@dataclass(frozen=True)
class Finished:
    """What came of an answer: the picture to show, the answer itself where it was not pasted, and the record."""

    image: ImagePart
    record: EditRecord


async def plan_part(deps: Deps, picture: Picture, model: ModelEntry) -> PartEdit:
    """Return the edit of the part that the turn's person marked in the picture. Without a mask of it the first one
    counts, which is of the picture that is marked to be changed.

    Raises RequestRefused when the model cannot do it or the picture's file cannot be read.
    """
    takes_mask = model.takes_masks
    if not takes_mask and not (model.has_edits and model.max_references >= PLACES_NEEDED):
        raise RequestRefused(ErrorCode.PART_NOT_SUPPORTED, model=model.label)
    original = await deps.images.read(picture.image)
    masked = deps.turn.mask_of(picture.handle)
    plan = await _planned(deps, masked, original, model, is_in_place=takes_mask)
    if isinstance(plan, masking.MaskRefusal):
        if plan.problem is masking.MaskProblem.NO_FRAME:
            raise RequestRefused(ErrorCode.PART_NOT_SUPPORTED, model=model.label)
        raise RequestRefused(ErrorCode.PICTURE_UNREADABLE, name=picture.handle)
    frame = (plan.frame.width_px, plan.frame.height_px)
    crop = await stored(deps.images, plan.crop, frame)
    # A model that takes masks needs no tint to see where.
    shown = (crop,) if takes_mask else (crop, await stored(deps.images, plan.marked, frame))
    size = (plan.width, plan.height)
    return PartEdit(
        kind="expansion" if deps.turn.margins else "mask",
        plan=plan,
        base=await stored(deps.images, plan.original, size) if deps.turn.margins else picture.image,
        mask=masked.mask if masked else await stored(deps.images, plan.mask.data, size),
        shown=shown,
        frame_mask=await stored(deps.images, await in_thread(frame_mask, plan), frame),
        margins=deps.turn.margins,
    )


async def _planned(
    deps: Deps, masked: MaskedPicture | None, original: bytes, model: ModelEntry, *, is_in_place: bool
) -> masking.EditPlan | masking.MaskRefusal:
    turn, frames = deps.turn, frames_of(model)
    feather_px = masking.DEFAULT_FEATHER_PX
    if masked is not None:
        mask = await read_mask(deps.images, masked.mask)
        feather_px = feather_px if masked.feather_px is None else float(masked.feather_px)
        return await in_thread(masking.plan_edit, original, mask, frames, feather_px, is_in_place=is_in_place)
    assert turn.margins is not None
    margins = masking.Margins(**turn.margins.model_dump())
    return await in_thread(masking.plan_expansion, original, margins, frames, feather_px)


async def finish_part(deps: Deps, part: PartEdit, answer: ImagePart) -> Finished:
    """Return what came of the model's answer: pasted, or left as it is when it shows something else.

    Raises ProviderFailure(BROKEN_PICTURE) for an answer that cannot be read.
    """
    plan, frame = part.plan, (part.plan.frame.width_px, part.plan.frame.height_px)
    outcome = await in_thread(masking.finish_edit, plan, await deps.images.read(answer))
    if isinstance(outcome, masking.MaskRefusal):
        raise ProviderFailure(ErrorCode.BROKEN_PICTURE, provider_detail=outcome.problem.value)
    record = EditRecord(
        kind=part.kind,
        verdict=outcome.judgement.verdict.value,
        reason=outcome.judgement.reason.value,
        base=part.base,
        mask=part.mask,
        raw=answer.model_copy(update={"thought_signature": None, "signed_by": None}),
        margins=part.margins,
        notices=notices_of(plan.notices),
        placement=placement_of(plan.box, frame, plan.feather_px, outcome.aligned) if outcome.aligned else None,
    )
    return await recorded(deps.images, record, outcome)


async def recorded(images: ImageStore, record: EditRecord, outcome: masking.EditOutcome) -> Finished:
    """Return the record with all that the outcome says, its pictures stored; nothing pasted gives the raw answer."""
    judged, size = outcome.judgement, (record.base.width or 0, record.base.height or 0)
    grown = outcome.grown_mask
    update = {
        "verdict": judged.verdict.value,
        "reason": judged.reason.value,
        "correlation": judged.correlation,
        "tile_share": judged.tile_share,
        "tiles": judged.tiles,
        "shift_px": judged.shift_px,
        "scale": judged.scale,
        "turn_deg": judged.turn_deg,
        "changed_outside": outcome.changed_outside,
        "outside": outcome.outside,
        "spill_px": outcome.spill_px,
        "grown_mask": await stored(images, grown.data, (grown.width, grown.height)) if grown else None,
        "before": await stored(images, outcome.before) if outcome.before else None,
        "after": await stored(images, outcome.after) if outcome.after else None,
        "notices": record.notices + notices_of(outcome.notices),
    }
    image = await stored(images, outcome.composite, size) if outcome.composite else record.raw
    return Finished(image, record.model_copy(update=update))


async def stored(images: ImageStore, png: bytes, size: tuple[int, int] | None = None) -> ImagePart:
    """Return the reference to a PNG, which is in the store now."""
    part = await images.write(png, PNG, ImageOrigin.EDITED)
    update = {"bit_depth": 16 if png[24:25] == b"\x10" else 8}
    return part.model_copy(update=update | ({"width": size[0], "height": size[1]} if size else {}))


def pixel_size(image: ImagePart) -> PixelSize:
    """Return the pixels and bits of a picture; zeros while its size is unknown."""
    return PixelSize(width=image.width or 0, height=image.height or 0, bit_depth=image.bit_depth)


async def take_mask(images: ImageStore, image: bytes, picture: Picture) -> ImagePart:
    """Return a person's mask at the picture's own size, stored. Raises RequestRefused with who must act."""
    size = (picture.image.width or 1, picture.image.height or 1)
    mask = await mask_of(image, size, picture.handle)
    return await stored(images, mask.data, size)


async def mask_of(image: bytes, size: tuple[int, int], name: str) -> masking.Mask:
    """Return a person's mask at the size (width, height) of the picture they call `name`. Raises as `take_mask`."""
    if len(image) > MAX_MASK_MEGABYTES << 20:
        raise RequestRefused(ErrorCode.MASK_TOO_LARGE, limit=MAX_MASK_MEGABYTES)
    mask = await in_thread(masking.read_mask, image, size)
    if isinstance(mask, masking.MaskRefusal):
        raise RequestRefused(_REFUSED[mask.problem], handle=name)
    return mask


async def read_mask(images: ImageStore, mask: ImagePart) -> masking.Mask:
    """Return a mask from the store."""
    return masking.Mask(mask.width or 0, mask.height or 0, await images.read(mask))


async def in_thread(work: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
    """Run work on pixels beside the event loop."""
    return await asyncio.get_running_loop().run_in_executor(_workers(), functools.partial(work, *arguments, **named))


@functools.cache
def _workers() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="masked-edits")

"""Masked edits, which change only a part of a picture: planned before payment, pasted when the answer arrives.

The plan is recomputed whenever it is needed, also after a crash: the same turn always gives the same plan. Pixels are
processed in threads, two edits at a time in the whole process.

Unrequested changes of an edit without a mask are measured during the review. Later edits of a picture, after its turn,
need no model and cost nothing, because the model's answer is recorded.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import ParamSpec, TypeVar

from agent.adjusting import Adjustment
from agent.adjusting.applying import adjusted
from agent.conversation import Conversation, MaskedPicture, Turn, TurnState
from agent.errors import AivistaError, ErrorCode, ProviderFailure, RequestRefused
from agent.events import SmartCanvas
from agent.imaging import masking
from agent.imaging.contract import ROLE_SENTENCES, NormalizedRequest
from agent.messages import ImageOrigin, ImagePart, TokenUsage
from agent.pictures import (
    MAX_MASK_MEGABYTES,
    DriftRecord,
    EditKind,
    EditRecord,
    Judgement,
    Margins,
    Picture,
    PixelSize,
    Reduction,
    ReductionKind,
    ReferenceRole,
)
from agent.pixels import Flags, Raster, with_alpha_of
from agent.prompts import prompt
from agent.providers.catalogue import ModelEntry
from agent.requests import Mask
from agent.storage.images import ImageStore
from agent.storage.records import Records
from agent.workflow.deps import Deps
from agent.workflow.state import Work

P = ParamSpec("P")
T = TypeVar("T")

_INSTRUCTIONS: dict[EditKind, str] = {"mask": "masked_edit", "expansion": "expanded_edit"}
_BEFORE_PAYING = (
    masking.Notice.COVERS_ALL,
    masking.Notice.LITTLE_TO_ALIGN_BY,
    masking.Notice.SOFTER,
    masking.Notice.AREAS_FAR_APART,
)
_MEGAPIXEL = 1 << 20
# The crop of the picture and its marked copy: the model must accept both in place of one reference.
PLACES_NEEDED = 2
_AT_ONCE = 2
_REFUSED = {
    masking.MaskProblem.EMPTY: ErrorCode.MASK_EMPTY,
    masking.MaskProblem.UNREADABLE: ErrorCode.MASK_UNREADABLE,
    masking.MaskProblem.WRONG_RATIO: ErrorCode.MASK_WRONG_SHAPE,
}
# Only finished turns are amended: a running turn writes its components at its end, a paused one when it resumes.
_OVER = frozenset({TurnState.DONE, TurnState.STOPPED, TurnState.FAILED})
logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class PartEdit:
    """A prepared masked edit or expansion. `base` and `mask` are as in `EditRecord`.

    `shown` are the images of the picture that the image model receives.
    """

    kind: EditKind
    plan: masking.EditPlan
    base: ImagePart
    mask: ImagePart
    shown: tuple[ImagePart, ...]
    margins: Margins | None = None

    @property
    def size(self) -> tuple[int, int]:
        """The width and height of the resulting picture."""
        return self.plan.width, self.plan.height

    @property
    def codes_before_paying(self) -> tuple[str, ...]:
        """The codes of the notices to show before payment."""
        return tuple(one.code for one in self.plan.notices if one.code in _BEFORE_PAYING)

    @property
    def needs_consent(self) -> bool:
        """Whether the user must see the plan before payment, whatever their setting."""
        return masking.Notice.LITTLE_TO_ALIGN_BY in self.codes_before_paying

    def instructed(self, prompt_text: str, others: Sequence[Picture], roles: Mapping[str, ReferenceRole]) -> str:
        """Return the prompt as sent: the request, then a description of the images and of what must stay unchanged.

        Image 1 is the crop of the picture, Image 2 the same with the part marked, `others` follow. The description is
        in an [IMAGES] block, which is removed when the pictures are no longer sent.
        """
        lines = [prompt(_INSTRUCTIONS[self.kind]).replace("{marker}", self.plan.marker)]
        for place, picture in enumerate(others, 3):
            role = roles.get(picture.handle)
            lines.append(f"Image {place} is {picture.handle}." + (f" {ROLE_SENTENCES[role]}" if role else ""))
        return "\n".join((f"{prompt_text}\n\n[IMAGES]", *lines, "[/IMAGES]"))

    def fitted(self, request: NormalizedRequest) -> NormalizedRequest:
        """Return the request with the frame that fits the part, in place of the shape chosen for whole pictures."""
        if self.plan.is_in_place:
            return request
        frame = self.plan.frame
        filled = {**request.filled, "aspect_ratio": "default", "resolution": "default"}
        update = {"aspect_ratio": frame.ratio, "resolution": frame.size or None, "filled": filled}
        return request.model_copy(update=update)


@dataclass(frozen=True)
class Finished:
    """The result of a masked edit: the picture to show (the raw answer if it was not pasted), and the record."""

    image: ImagePart
    record: EditRecord


async def plan_part(deps: Deps, picture: Picture, model: ModelEntry) -> PartEdit:
    """Return the prepared edit of the part that the user marked in the picture.

    A picture without a mask of its own uses the first mask, which belongs to the picture marked to be changed. Raises
    RequestRefused when the model does not support it or the picture's file cannot be read.
    """
    takes_mask = model.takes_masks
    if not takes_mask and not (model.has_edits and model.max_references >= PLACES_NEEDED):
        raise RequestRefused(ErrorCode.PART_NOT_SUPPORTED, model=model.label)
    original = await deps.services.images.read(picture.image)
    masked, margins, frames = deps.turn.mask_of(picture.handle), deps.turn.margins, _frames_of(model)
    try:
        if masked is not None:
            mask, feather_px = await _read_mask(deps.services.images, masked.mask), _feather_px(masked.feather_px)
            plan = await _in_thread(masking.plan_edit, original, mask, frames, feather_px, is_in_place=takes_mask)
        else:
            assert margins is not None
            plan = await _in_thread(masking.plan_expansion, original, margins, frames, is_in_place=takes_mask)
    except masking.MaskRefused as refused:
        if refused.problem is masking.MaskProblem.NO_FRAME:
            raise RequestRefused(ErrorCode.PART_NOT_SUPPORTED, model=model.label) from None
        raise RequestRefused(ErrorCode.PICTURE_UNREADABLE, name=picture.handle) from None
    size, frame = (plan.width, plan.height), (plan.frame.width_px, plan.frame.height_px)
    base = await stored(deps.services.images, plan.original, size) if margins else picture.image
    # A model that accepts masks needs no marked copy.
    cut = () if takes_mask else (plan.crop, plan.marked)
    return PartEdit(
        kind="expansion" if margins else "mask",
        plan=plan,
        base=base,
        mask=masked.mask if masked else await stored(deps.services.images, plan.mask.data, size),
        shown=tuple([await stored(deps.services.images, one, frame) for one in cut]) or (base,),
        margins=margins,
    )


def _frames_of(model: ModelEntry) -> tuple[masking.Frame, ...]:
    """Return every output size of the model; without known sizes, one of about a megapixel for each ratio.

    The size of a frame is empty when the model has no size parameter.
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


def _feather_px(chosen: float | None) -> float:
    return masking.DEFAULT_FEATHER_PX if chosen is None else float(chosen)


async def adjust_part(images: ImageStore, base: ImagePart, masked: MaskedPicture, adjustment: Adjustment) -> Finished:
    """Return the picture adjusted only inside its mask, without a model.

    Raises RequestRefused for a picture or a mask that cannot be read.
    """

    def change(picture: Raster, area: Flags) -> Raster:
        return adjusted(picture, adjustment, area)

    original, mask = await images.read(base), await _read_mask(images, masked.mask)
    try:
        outcome = await _in_thread(masking.change_inside, original, mask, change, _feather_px(masked.feather_px))
    except masking.MaskRefused:
        raise RequestRefused(ErrorCode.PICTURE_UNREADABLE, name=masked.handle) from None
    record = EditRecord(**dict(outcome.judgement), kind="mask", base=base, mask=masked.mask, raw=base)
    return await _recorded(images, record, outcome)


async def finish_part(deps: Deps, part: PartEdit, answer: ImagePart) -> Finished:
    """Return the model's answer pasted into the picture, or unchanged when it shows something else.

    Raises ProviderFailure(BROKEN_PICTURE) for an answer that cannot be read.
    """
    try:
        outcome = await _in_thread(masking.finish_edit, part.plan, await deps.services.images.read(answer))
    except masking.MaskRefused as refused:
        raise ProviderFailure(ErrorCode.BROKEN_PICTURE, provider_detail=refused.problem.value) from None
    record = EditRecord(
        **dict(outcome.judgement),
        kind=part.kind,
        base=part.base,
        mask=part.mask,
        raw=answer.unsigned(),
        margins=part.margins,
        notices=part.plan.notices,
    )
    return await _recorded(deps.services.images, record, outcome)


async def _recorded(images: ImageStore, record: EditRecord, outcome: masking.EditOutcome) -> Finished:
    """Store the images of the outcome and complete the record; if nothing was pasted, the image is the raw answer."""
    grown, size = outcome.grown_mask, (record.base.width or 0, record.base.height or 0)
    update = {
        "placement": outcome.placement,
        "changed_outside": outcome.changed_outside,
        "outside": outcome.outside,
        "spill_px": outcome.spill_px,
        "grown_mask": await stored(images, grown.data, (grown.width, grown.height)) if grown else None,
        "before": await stored(images, outcome.before) if outcome.before else None,
        "after": await stored(images, outcome.after) if outcome.after else None,
        "notices": record.notices + outcome.notices,
    }
    image = await stored(images, outcome.composite, size) if outcome.composite else record.raw
    if outcome.placement is None:
        # There is no separate answer to keep: the resulting picture itself is recorded as the raw answer.
        update["raw"] = image
    return Finished(image, record.model_copy(update=update))


async def stored(images: ImageStore, png: bytes, size: tuple[int, int] | None = None) -> ImagePart:
    """Store a PNG and return the reference to it."""
    part = await images.write(png, "image/png", ImageOrigin.EDITED)
    update = {"bit_depth": 16 if png[24:25] == b"\x10" else 8}
    return part.model_copy(update=update | ({"width": size[0], "height": size[1]} if size else {}))


def pixel_size(image: ImagePart) -> PixelSize:
    """Return the size and bit depth of a picture; a size of 0 means unknown."""
    return PixelSize(width=image.width or 0, height=image.height or 0, bit_depth=image.bit_depth)


async def mask_of(image: bytes, size: tuple[int, int], name: str) -> masking.Mask:
    """Return a user's mask at the size (width, height) of the picture, which errors call `name`.

    Raises RequestRefused for an unusable mask.
    """
    if len(image) > MAX_MASK_MEGABYTES << 20:
        raise RequestRefused(ErrorCode.MASK_TOO_LARGE, limit=MAX_MASK_MEGABYTES)
    try:
        return await _in_thread(masking.read_mask, image, size)
    except masking.MaskRefused as refused:
        raise RequestRefused(_REFUSED[refused.problem], handle=name) from None


async def _read_mask(images: ImageStore, mask: ImagePart) -> masking.Mask:
    """Return a mask from the store."""
    return masking.Mask(mask.width or 0, mask.height or 0, await images.read(mask))


async def _in_thread(work: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
    """Run pixel work in a thread."""
    return await asyncio.get_running_loop().run_in_executor(_workers(), functools.partial(work, *arguments, **named))


@functools.cache
def _workers() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="masked-edits")


async def note_drifts(works: Iterable[Work], deps: Deps) -> None:
    """Record how each of the works' newest pictures differs from its base. It never fails a turn.

    Skipped are pictures without a base, masked edits (`Picture.edit`), and pictures of a model that works on the base's
    own pixels.
    """
    handles = [one.handle for work in works if not work.request.model.works_on_originals for one in work.newest()]
    conversation = await deps.conversation_now()
    edited = [one for one in conversation.all_pictures if one.handle in handles and _is_due(one)]
    found = await asyncio.gather(*(_note(deps, conversation, one) for one in edited), return_exceptions=True)
    for picture, failure in zip(edited, found, strict=True):
        if isinstance(failure, AivistaError):
            logger.warning("what changed in %s cannot be told: %s", picture.handle, failure)
        elif isinstance(failure, Exception):
            logger.error("what changed in %s cannot be told", picture.handle, exc_info=failure)


def _is_due(picture: Picture) -> bool:
    is_edit = picture.image.origin is ImageOrigin.EDITED and bool(picture.parents)
    return is_edit and picture.edit is None and picture.drift is None


async def _note(deps: Deps, conversation: Conversation, picture: Picture) -> None:
    base = conversation.picture(picture.parents[0])
    drift = await _measured(deps.services.images, base, picture)
    if drift is not None:
        await deps.services.records.conversations.update_picture(conversation.id, picture.handle, drift=drift)


async def _measured(images: ImageStore, base: Picture, picture: Picture) -> DriftRecord | None:
    """Return the differences between the picture and its base, or None when one of them cannot be decoded."""
    before, after = await images.read(base.image), await images.read(picture.image)
    try:
        drift = await _in_thread(masking.drift, before, after)
    except masking.MaskRefused:
        return None
    return DriftRecord(
        base=base.handle,
        is_comparable=drift.is_comparable,
        changed=await stored(images, drift.changed.data, (drift.changed.width, drift.changed.height)),
        changed_share=drift.changed_share,
        shift_px=drift.shift_px,
        scale=drift.scale,
        turn_deg=drift.turn_deg,
        ratio_change=drift.ratio_change,
    )


@dataclass(frozen=True)
class LaterEdits:
    """The edits that a user makes to an existing picture without a model.

    Each method returns a picture, and raises RequestRefused when there is no such conversation or picture."""

    records: Records
    images: ImageStore
    _adding: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def grow_mask(self, conversation_id: str, handle: str, owner: str = "local") -> Picture:
        """Return a new picture: the same answer pasted with a larger mask, which covers what exceeded the first one.

        Raises RequestRefused for a picture that is no masked edit, or whose change stays within its mask.
        """
        started_s = time.monotonic()
        picture = (await self.records.conversations.get(conversation_id, owner)).picture(handle)
        edit = picture.edit
        if edit is None:
            raise RequestRefused(ErrorCode.NOT_A_PART_EDIT, handle=picture.handle)
        if edit.grown_mask is None or edit.placement is None:
            raise RequestRefused(ErrorCode.NOTHING_TO_GROW, handle=picture.handle)
        base, answer = await self.images.read(edit.base), await self.images.read(edit.raw)
        mask = await _read_mask(self.images, edit.grown_mask)
        judged = Judgement(**{name: getattr(edit, name) for name in Judgement.model_fields})
        try:
            outcome = await _in_thread(masking.regrow, base, answer, mask, edit.placement, judged)
        except masking.MaskRefused:
            raise RequestRefused(ErrorCode.NOTHING_TO_GROW, handle=picture.handle) from None
        update = {"mask": edit.grown_mask, "grown_from": picture.handle, "is_kept": None, "notices": ()}
        finished = await _recorded(self.images, edit.model_copy(update=update), outcome)
        made = finished.image, finished.record, picture.parents
        return await self._add(conversation_id, owner, picture, *made, started_s)

    async def keep_only(
        self, conversation_id: str, handle: str, owner: str = "local", *, mask: Mask | None = None
    ) -> Picture:
        """Return a new picture: the original, with the edited picture only inside the mask.

        Without a mask, the changed area is used: content that only moved or lost sharpness is restored from the
        original.

        Raises RequestRefused for a picture without an original, one that is not comparable to it, or one that changed
        nothing.
        """
        started_s = time.monotonic()
        conversation = await self.records.conversations.get(conversation_id, owner)
        picture = conversation.picture(handle)
        if not picture.parents or picture.image.origin is not ImageOrigin.EDITED:
            raise RequestRefused(ErrorCode.NOT_COMPARABLE, handle=picture.handle)
        base = conversation.picture(picture.parents[0])
        if mask is None:
            area = await self._changed(base, picture)
        else:
            size = (base.image.width or 1, base.image.height or 1)
            area = await stored(self.images, (await mask_of(mask.image, size, base.handle)).data, size)
        feather_px = _feather_px(mask.feather_px if mask else None)
        before, after = await self.images.read(base.image), await self.images.read(picture.image)
        part = await _read_mask(self.images, area)
        try:
            outcome = await _in_thread(masking.keep_only, before, after, part, feather_px)
        except masking.MaskRefused:
            raise RequestRefused(ErrorCode.NOT_COMPARABLE, handle=picture.handle) from None
        if outcome.composite is None:
            raise RequestRefused(ErrorCode.NOT_COMPARABLE, handle=picture.handle)
        record = EditRecord(
            **dict(outcome.judgement),
            kind="kept_part",
            base=base.image,
            mask=area,
            raw=picture.image,
            grown_from=picture.handle,
        )
        finished = await _recorded(self.images, record, outcome)
        full, used = pixel_size(base.image), pixel_size(picture.image)
        is_less = used.width * used.height < full.width * full.height or used.bit_depth < full.bit_depth
        taken = (Reduction(kind=ReductionKind.PART, handle=base.handle, full=full, used=used),) if is_less else ()
        made = finished.image, finished.record, (base.handle, picture.handle)
        return await self._add(conversation_id, owner, picture, *made, started_s, taken)

    async def keep_transparency(self, conversation_id: str, handle: str, owner: str = "local") -> Picture:
        """Return a new picture: an opaque edit with the transparency of its original.

        Raises RequestRefused for a picture that lost no transparency, or whose file cannot be read.
        """
        started_s = time.monotonic()
        conversation = await self.records.conversations.get(conversation_id, owner)
        picture = conversation.picture(handle)
        reductions = picture.receipt.reductions if picture.receipt else ()
        lost = next((one for one in reductions if one.kind is ReductionKind.TRANSPARENCY), None)
        if lost is None:
            raise RequestRefused(ErrorCode.NO_TRANSPARENCY_LOST, handle=picture.handle)
        base = conversation.picture(lost.handle)
        before, after = await self.images.read(base.image), await self.images.read(picture.image)
        data = await _in_thread(with_alpha_of, after, before)
        size = (picture.image.width or 0, picture.image.height or 0)
        image = await stored(self.images, data, size)
        left = tuple(one for one in reductions if one != lost)
        made = image, None, (base.handle, picture.handle)
        return await self._add(conversation_id, owner, picture, *made, started_s, left)

    async def keep(self, conversation_id: str, handle: str, is_kept: bool, owner: str = "local") -> Picture:
        """Record the user's decision about a masked edit, kept or discarded, and return the picture.

        Raises RequestRefused for a picture that is no masked edit, or was not pasted.
        """
        picture = (await self.records.conversations.get(conversation_id, owner)).picture(handle)
        if picture.edit is None or picture.edit.verdict == "refused":
            raise RequestRefused(ErrorCode.NOT_A_PART_EDIT, handle=picture.handle)
        edit = picture.edit.model_copy(update={"is_kept": is_kept})
        await self.records.conversations.update_picture(conversation_id, picture.handle, edit=edit)
        return picture.model_copy(update={"edit": edit})

    async def _changed(self, base: Picture, picture: Picture) -> ImagePart:
        """Return the mask of everything that the picture changed.

        Raises RequestRefused(NOT_COMPARABLE or NOTHING_CHANGED)."""
        drift = picture.drift or await _measured(self.images, base, picture)
        if drift is None or not drift.is_comparable:
            raise RequestRefused(ErrorCode.NOT_COMPARABLE, handle=picture.handle)
        if not drift.changed_share:
            raise RequestRefused(ErrorCode.NOTHING_CHANGED, handle=picture.handle)
        return drift.changed

    async def _add(
        self,
        conversation_id: str,
        owner: str,
        source: Picture,
        image: ImagePart,
        edit: EditRecord | None,
        parents: tuple[str, ...],
        started_s: float,
        reductions: tuple[Reduction, ...] | None = None,
    ) -> Picture:
        """Record the new picture in the turn of its source, below the components of that turn.

        If the same picture already exists, because a button was pressed twice, return that one. Without `reductions`
        it has those of its source.
        """
        size: dict[str, object] = {"width": image.width or 0, "height": image.height or 0, "bit_depth": image.bit_depth}
        if reductions is not None:
            size["reductions"] = reductions
        seconds = round(time.monotonic() - started_s, 3)
        free = {"usage": TokenUsage(), "price_usd": 0.0, "seconds": seconds, "sources": (), "shortfalls": ()}
        asked = {"asked_aspect_ratio": None, "asked_resolution": f"{size['width']}×{size['height']}"}
        receipt = source.receipt
        picture = Picture(
            # Assigned when the picture is recorded.
            handle="",
            image=image.model_copy(update={"origin": ImageOrigin.EDITED}),
            turn_id=source.turn_id,
            created_at=datetime.now(UTC),
            parents=parents,
            receipt=receipt.model_copy(update={**size, **free, **asked, "mime_type": "image/png"}) if receipt else None,
            alt=source.alt,
            edit=edit,
        )
        async with self._adding:
            for one in (await self.records.conversations.get(conversation_id, owner)).pictures:
                if (one.image.digest, one.parents) == (image.digest, parents):
                    return one
            picture = await self.records.conversations.add_picture(conversation_id, picture, base=parents[0])

        def with_it(turn: Turn) -> Turn | None:
            if turn.state not in _OVER:
                return None
            return turn.model_copy(update={"components": (*turn.components, SmartCanvas(handles=(picture.handle,)))})

        await self.records.turns.amend(conversation_id, picture.turn_id, with_it)
        return picture

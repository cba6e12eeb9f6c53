"""An edit that may change only a part of a picture: planned before it is paid for, pasted when the answer is there.

The plan is made anew wherever it is needed, after a crash too: the same turn always gives the same one. Pixels are
worked on in threads, two edits at a time in the whole process.

What an edit without a mask changed that nobody asked for is found out beside the review. What is done with an edited
picture after its turn asks nobody and costs nothing: the answer is on record.
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
# What is cut out of the picture and its marked copy stand in the place of one reference.
PLACES_NEEDED = 2
_AT_ONCE = 2
_REFUSED = {
    masking.MaskProblem.EMPTY: ErrorCode.MASK_EMPTY,
    masking.MaskProblem.UNREADABLE: ErrorCode.MASK_UNREADABLE,
    masking.MaskProblem.WRONG_RATIO: ErrorCode.MASK_WRONG_SHAPE,
}
# A turn at work writes its components itself when it ends; one that rests is written by whoever takes it up.
_OVER = frozenset({TurnState.DONE, TurnState.STOPPED, TurnState.FAILED})
logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class PartEdit:
    """The edit of a part, ready to be asked for. `base` and `mask` are those of `EditRecord`.

    `shown` is what the image model is shown of the picture.
    """

    kind: EditKind
    plan: masking.EditPlan
    base: ImagePart
    mask: ImagePart
    shown: tuple[ImagePart, ...]
    margins: Margins | None = None

    @property
    def size(self) -> tuple[int, int]:
        """Width and height of the picture it will give."""
        return self.plan.width, self.plan.height

    @property
    def codes_before_paying(self) -> tuple[str, ...]:
        """The names of what should be known before the request is paid for."""
        return tuple(one.code for one in self.plan.notices if one.code in _BEFORE_PAYING)

    @property
    def needs_consent(self) -> bool:
        """Whether the person should see the plan before it is paid for, wanted or not."""
        return masking.Notice.LITTLE_TO_ALIGN_BY in self.codes_before_paying

    def instructed(self, wish: str, others: Sequence[Picture], roles: Mapping[str, ReferenceRole]) -> str:
        """Return the prompt as sent: the wish, then what is shown and what must stay.

        Image 1 is what was cut out of the picture, Image 2 the same with the part marked, `others` come after them. All
        of it stands in the block that goes when the pictures are no longer shown.
        """
        told = [prompt(_INSTRUCTIONS[self.kind]).replace("{marker}", self.plan.marker)]
        for place, picture in enumerate(others, 3):
            role = roles.get(picture.handle)
            told.append(f"Image {place} is {picture.handle}." + (f" {ROLE_SENTENCES[role]}" if role else ""))
        return "\n".join((f"{wish}\n\n[IMAGES]", *told, "[/IMAGES]"))

    def fitted(self, request: NormalizedRequest) -> NormalizedRequest:
        """Return the request with the frame that fits the part: what is chosen for whole pictures does not count."""
        if self.plan.is_in_place:
            return request
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
    original = await deps.services.images.read(picture.image)
    masked = deps.turn.mask_of(picture.handle)
    try:
        plan = await _planned(deps, masked, original, model, is_in_place=takes_mask)
    except masking.MaskRefused as refused:
        if refused.problem is masking.MaskProblem.NO_FRAME:
            raise RequestRefused(ErrorCode.PART_NOT_SUPPORTED, model=model.label) from None
        raise RequestRefused(ErrorCode.PICTURE_UNREADABLE, name=picture.handle) from None
    size, frame = (plan.width, plan.height), (plan.frame.width_px, plan.frame.height_px)
    base = await stored(deps.services.images, plan.original, size) if deps.turn.margins else picture.image
    # A model that takes masks needs no tint to see where.
    cut = () if takes_mask else (plan.crop, plan.marked)
    return PartEdit(
        kind="expansion" if deps.turn.margins else "mask",
        plan=plan,
        base=base,
        mask=masked.mask if masked else await stored(deps.services.images, plan.mask.data, size),
        shown=tuple([await stored(deps.services.images, one, frame) for one in cut]) or (base,),
        margins=deps.turn.margins,
    )


async def _planned(
    deps: Deps, masked: MaskedPicture | None, original: bytes, model: ModelEntry, *, is_in_place: bool
) -> masking.EditPlan:
    turn, frames = deps.turn, _frames_of(model)
    if masked is not None:
        mask, feather_px = await _read_mask(deps.services.images, masked.mask), _feather_px(masked)
        return await _in_thread(masking.plan_edit, original, mask, frames, feather_px, is_in_place=is_in_place)
    assert turn.margins is not None
    return await _in_thread(masking.plan_expansion, original, turn.margins, frames, is_in_place=is_in_place)


def _frames_of(model: ModelEntry) -> tuple[masking.Frame, ...]:
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


def _feather_px(masked: MaskedPicture) -> float:
    return masking.DEFAULT_FEATHER_PX if masked.feather_px is None else float(masked.feather_px)


async def adjust_part(images: ImageStore, base: ImagePart, masked: MaskedPicture, adjustment: Adjustment) -> Finished:
    """Return the picture adjusted inside its mask alone, by no model.

    Raises RequestRefused for a picture or a mask that cannot be read.
    """

    def change(picture: Raster, area: Flags) -> Raster:
        return adjusted(picture, adjustment, area)

    original, mask = await images.read(base), await _read_mask(images, masked.mask)
    try:
        outcome = await _in_thread(masking.change_inside, original, mask, change, _feather_px(masked))
    except masking.MaskRefused:
        raise RequestRefused(ErrorCode.PICTURE_UNREADABLE, name=masked.handle) from None
    record = EditRecord(**dict(outcome.judgement), kind="mask", base=base, mask=masked.mask, raw=base)
    return await _recorded(images, record, outcome)


async def finish_part(deps: Deps, part: PartEdit, answer: ImagePart) -> Finished:
    """Return what came of the model's answer: pasted, or left as it is when it shows something else.

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
    """Return the record with all that the outcome says, its pictures stored; nothing pasted gives the raw answer."""
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
        # Nothing was laid over the picture: what came is the picture itself.
        update["raw"] = image
    return Finished(image, record.model_copy(update=update))


async def stored(images: ImageStore, png: bytes, size: tuple[int, int] | None = None) -> ImagePart:
    """Return the reference to a PNG, which is in the store now."""
    part = await images.write(png, "image/png", ImageOrigin.EDITED)
    update = {"bit_depth": 16 if png[24:25] == b"\x10" else 8}
    return part.model_copy(update=update | ({"width": size[0], "height": size[1]} if size else {}))


def pixel_size(image: ImagePart) -> PixelSize:
    """Return the pixels and bits of a picture; zeros while its size is unknown."""
    return PixelSize(width=image.width or 0, height=image.height or 0, bit_depth=image.bit_depth)


async def _take_mask(images: ImageStore, image: bytes, picture: Picture) -> ImagePart:
    """Return a person's mask at the picture's own size, stored. Raises RequestRefused with who must act."""
    size = (picture.image.width or 1, picture.image.height or 1)
    mask = await mask_of(image, size, picture.handle)
    return await stored(images, mask.data, size)


async def mask_of(image: bytes, size: tuple[int, int], name: str) -> masking.Mask:
    """Return a person's mask at the size (width, height) of the picture they call `name`. Raises as `_take_mask`."""
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
    """Run work on pixels beside the event loop."""
    return await asyncio.get_running_loop().run_in_executor(_workers(), functools.partial(work, *arguments, **named))


@functools.cache
def _workers() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="masked-edits")


async def note_drifts(works: Iterable[Work], deps: Deps) -> None:
    """Put on record what each of the works' newest pictures changed of the one it was made from. It never fails a turn.

    Left out: pictures made anew, those whose mask kept the rest (`Picture.edit`), and those of a model that works on
    the picture's own pixels.
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
    """Return what the picture changed of its base, or None when one of them cannot be read as pixels."""
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
    """What a person does with a picture that is there, without any model. Each returns a picture, and raises
    RequestRefused where there is no such conversation or picture."""

    records: Records
    images: ImageStore
    _adding: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def grow_mask(self, conversation_id: str, handle: str, owner: str = "local") -> Picture:
        """Return a new picture: the same answer under the mask that takes in what went beyond the first one.

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
        """Return a new picture: the one it was made from, with the edited one in the mask alone.

        Without a mask that is all that changed: what moved, or only lost its sharpness, is the original's again.

        Raises RequestRefused for a picture that was made from none, or shows too little of it, or changed nothing.
        """
        started_s = time.monotonic()
        conversation = await self.records.conversations.get(conversation_id, owner)
        picture = conversation.picture(handle)
        if not picture.parents or picture.image.origin is not ImageOrigin.EDITED:
            raise RequestRefused(ErrorCode.NOT_COMPARABLE, handle=picture.handle)
        base = conversation.picture(picture.parents[0])
        area = await _take_mask(self.images, mask.image, base) if mask else await self._changed(base, picture)
        feather_px = float(mask.feather_px) if mask and mask.feather_px is not None else masking.DEFAULT_FEATHER_PX
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
        """Return a new picture: an opaque one as see-through as the one that it was made from.

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
        """Return the masked edit with the person's decision about it on record: kept or discarded.

        Raises RequestRefused for a picture that is no masked edit, or was not pasted.
        """
        picture = (await self.records.conversations.get(conversation_id, owner)).picture(handle)
        if picture.edit is None or picture.edit.verdict == "refused":
            raise RequestRefused(ErrorCode.NOT_A_PART_EDIT, handle=picture.handle)
        edit = picture.edit.model_copy(update={"is_kept": is_kept})
        await self.records.conversations.update_picture(conversation_id, picture.handle, edit=edit)
        return picture.model_copy(update={"edit": edit})

    async def _changed(self, base: Picture, picture: Picture) -> ImagePart:
        """Return the mask of all that the picture changed."""
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
        """Put the new picture on record in the turn of the one it was made of, below what that turn showed before; one
        that is there already, of a button pressed twice, stays the only one.

        Without other `reductions` it has those of its source.
        """
        size: dict[str, object] = {"width": image.width or 0, "height": image.height or 0, "bit_depth": image.bit_depth}
        if reductions is not None:
            size["reductions"] = reductions
        seconds = round(time.monotonic() - started_s, 3)
        free = {"usage": TokenUsage(), "price_usd": 0.0, "seconds": seconds, "sources": (), "shortfalls": ()}
        asked = {"asked_aspect_ratio": None, "asked_resolution": f"{size['width']}×{size['height']}"}
        receipt = source.receipt
        picture = Picture(
            # Given when it is recorded.
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

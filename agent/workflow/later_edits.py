"""What is done with an edited picture after its turn: its mask grown, a part of it kept, an unsure one decided about.

Nobody is asked and nothing is paid: the answer is on record.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, datetime

from agent.conversation import Conversation, Turn, TurnState
from agent.errors import ErrorCode, RequestRefused
from agent.events import SmartCanvas
from agent.imaging import masking
from agent.imaging.edits import placement_of, regrown
from agent.messages import ImageOrigin, ImagePart, TokenUsage
from agent.pictures import EditRecord, Picture, Reduction, ReductionKind
from agent.pixels import with_alpha_of
from agent.requests import Mask
from agent.storage.conversations import ConversationStore
from agent.storage.images import ImageStore
from agent.workflow.drifting import measured
from agent.workflow.masked import in_thread, pixel_size, read_mask, recorded, stored, take_mask

# A turn at work writes its components itself when it ends; one that rests is written by whoever takes it up.
_OVER = frozenset({TurnState.DONE, TurnState.STOPPED, TurnState.FAILED})


@dataclass(frozen=True)
class _Pictures:
    """The pictures of one conversation."""

    conversation_id: str
    owner: str
    records: ConversationStore
    images: ImageStore

    async def conversation(self) -> Conversation:
        return await self.records.get(self.conversation_id, self.owner)


@dataclass(frozen=True)
class LaterEdits:
    """What a person does with a picture that is there, without any model. Each returns a picture, and raises
    RequestRefused where there is no such conversation or picture."""

    records: ConversationStore
    images: ImageStore

    def _of(self, conversation_id: str, owner: str) -> _Pictures:
        return _Pictures(conversation_id, owner, self.records, self.images)

    async def grow_mask(self, conversation_id: str, handle: str, owner: str = "local") -> Picture:
        """Return a new picture: the same answer under the mask that takes in what went beyond the first one.

        Raises RequestRefused for a picture that is no masked edit, or whose change stays within its mask.
        """
        pictures = self._of(conversation_id, owner)
        started_s = time.monotonic()
        picture = (await pictures.conversation()).picture(handle)
        edit = picture.edit
        if edit is None:
            raise RequestRefused(ErrorCode.NOT_A_PART_EDIT, handle=picture.handle)
        if edit.grown_mask is None or edit.placement is None:
            raise RequestRefused(ErrorCode.NOTHING_TO_GROW, handle=picture.handle)
        base, answer = await pictures.images.read(edit.base), await pictures.images.read(edit.raw)
        mask = await read_mask(pictures.images, edit.grown_mask)
        outcome = await in_thread(regrown, edit, edit.placement, base, answer, mask)
        if isinstance(outcome, masking.MaskRefusal):
            raise RequestRefused(ErrorCode.NOTHING_TO_GROW, handle=picture.handle)
        update = {"mask": edit.grown_mask, "grown_from": picture.handle, "is_kept": None, "notices": ()}
        finished = await recorded(pictures.images, edit.model_copy(update=update), outcome)
        return await _add(
            pictures, picture, finished.image, finished.record, picture.parents, time.monotonic() - started_s
        )

    async def keep_only(
        self, conversation_id: str, handle: str, owner: str = "local", *, mask: Mask | None = None
    ) -> Picture:
        """Return a new picture: the one it was made from, with the edited one in the mask alone.

        Without a mask that is all that changed: what moved, or only lost its sharpness, is the original's again.

        Raises RequestRefused for a picture that was made from none, or shows too little of it, or changed nothing.
        """
        pictures = self._of(conversation_id, owner)
        started_s = time.monotonic()
        conversation = await pictures.conversation()
        picture = conversation.picture(handle)
        if not picture.parents or picture.image.origin is not ImageOrigin.EDITED:
            raise RequestRefused(ErrorCode.NOT_COMPARABLE, handle=picture.handle)
        base = conversation.picture(picture.parents[0])
        area = await take_mask(pictures.images, mask.image, base) if mask else await _changed(pictures, base, picture)
        feather_px = float(mask.feather_px) if mask and mask.feather_px is not None else masking.DEFAULT_FEATHER_PX
        before, after = await pictures.images.read(base.image), await pictures.images.read(picture.image)
        part = await read_mask(pictures.images, area)
        outcome = await in_thread(masking.keep_only, before, after, part, feather_px)
        if isinstance(outcome, masking.MaskRefusal) or outcome.composite is None or outcome.aligned is None:
            raise RequestRefused(ErrorCode.NOT_COMPARABLE, handle=picture.handle)
        size = (part.width, part.height)
        record = EditRecord(
            kind="kept_part",
            verdict=outcome.judgement.verdict.value,
            reason=outcome.judgement.reason.value,
            base=base.image,
            mask=area,
            raw=picture.image,
            placement=placement_of(masking.Box(0, 0, *size), size, feather_px, outcome.aligned),
            grown_from=picture.handle,
        )
        finished = await recorded(pictures.images, record, outcome)
        full, used = pixel_size(base.image), pixel_size(picture.image)
        is_less = used.width * used.height < full.width * full.height or used.bit_depth < full.bit_depth
        taken = (Reduction(kind=ReductionKind.PART, handle=base.handle, full=full, used=used),) if is_less else ()
        seconds = time.monotonic() - started_s
        return await _add(
            pictures, picture, finished.image, finished.record, (base.handle, picture.handle), seconds, taken
        )

    async def keep_transparency(self, conversation_id: str, handle: str, owner: str = "local") -> Picture:
        """Return a new picture: an opaque one as see-through as the one that it was made from.

        Raises RequestRefused for a picture that lost no transparency, or whose file cannot be read.
        """
        pictures = self._of(conversation_id, owner)
        started_s = time.monotonic()
        conversation = await pictures.conversation()
        picture = conversation.picture(handle)
        reductions = picture.receipt.reductions if picture.receipt else ()
        lost = next((one for one in reductions if one.kind is ReductionKind.TRANSPARENCY), None)
        if lost is None:
            raise RequestRefused(ErrorCode.NO_TRANSPARENCY_LOST, handle=picture.handle)
        base = conversation.picture(lost.handle)
        before, after = await pictures.images.read(base.image), await pictures.images.read(picture.image)
        data = await in_thread(with_alpha_of, after, before)
        size = (picture.image.width or 0, picture.image.height or 0)
        image = await stored(pictures.images, data, size)
        left = tuple(one for one in reductions if one != lost)
        parents = (base.handle, picture.handle)
        return await _add(pictures, picture, image, None, parents, time.monotonic() - started_s, left)

    async def keep(self, conversation_id: str, handle: str, is_kept: bool, owner: str = "local") -> Picture:
        """Return the masked edit with the person's decision about it on record: kept or discarded.

        Raises RequestRefused for a picture that is no masked edit, or was not pasted.
        """
        pictures = self._of(conversation_id, owner)
        picture = (await pictures.conversation()).picture(handle)
        if picture.edit is None or picture.edit.verdict == "refused":
            raise RequestRefused(ErrorCode.NOT_A_PART_EDIT, handle=picture.handle)
        edit = picture.edit.model_copy(update={"is_kept": is_kept})
        await pictures.records.set_edit(pictures.conversation_id, picture.handle, edit)
        return picture.model_copy(update={"edit": edit})


async def _changed(pictures: _Pictures, base: Picture, picture: Picture) -> ImagePart:
    """Return the mask of all that the picture changed."""
    drift = picture.drift or await measured(pictures.images, base, picture)
    if drift is None or not drift.is_comparable:
        raise RequestRefused(ErrorCode.NOT_COMPARABLE, handle=picture.handle)
    if not drift.changed_share:
        raise RequestRefused(ErrorCode.NOTHING_CHANGED, handle=picture.handle)
    return drift.changed


async def _add(
    pictures: _Pictures,
    source: Picture,
    image: ImagePart,
    edit: EditRecord | None,
    parents: tuple[str, ...],
    seconds: float,
    reductions: tuple[Reduction, ...] | None = None,
) -> Picture:
    """Put the new picture on record, in the turn of the one it was made of; without other `reductions` with its."""
    size: dict[str, object] = {"width": image.width or 0, "height": image.height or 0, "bit_depth": image.bit_depth}
    if reductions is not None:
        size["reductions"] = reductions
    free = {"usage": TokenUsage(), "price_usd": 0.0, "seconds": round(seconds, 3), "sources": (), "shortfalls": ()}
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
    picture = await pictures.records.add_picture(pictures.conversation_id, picture, base=parents[0])
    await _show(pictures, picture)
    return picture


async def _show(pictures: _Pictures, picture: Picture) -> None:
    """Have the thread show the picture below what its turn showed before."""

    def with_it(turn: Turn) -> Turn | None:
        if turn.state not in _OVER:
            return None
        return turn.model_copy(update={"components": (*turn.components, SmartCanvas(handles=(picture.handle,)))})

    await pictures.records.amend_turn(pictures.conversation_id, picture.turn_id, with_it)

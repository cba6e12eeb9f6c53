"""The drift guard: what an edit without a mask changed that nobody asked for, found out beside the review.

It never fails a turn: a picture that cannot be compared is on record without it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable

from agent.conversation import Conversation
from agent.errors import AivistaError
from agent.imaging import masking
from agent.messages import ImageOrigin
from agent.pictures import DriftRecord, Picture
from agent.storage.images import ImageStore
from agent.workflow.deps import Deps
from agent.workflow.masked import in_thread, stored
from agent.workflow.state import Work

logger = logging.getLogger(__name__)


async def note_drifts(works: Iterable[Work], deps: Deps) -> None:
    """Put on record what each of the works' newest pictures changed of the one it was made from.

    Left out: pictures made anew, those whose mask kept the rest (`Picture.edit`), and those of a model that works on
    the picture's own pixels.
    """
    handles = [one.handle for work in works if not work.request.model.works_on_originals for one in work.newest()]
    conversation = await deps.records.get(deps.conversation.id, deps.conversation.owner)
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
    drift = await measured(deps.images, base, picture)
    if drift is not None:
        await deps.records.set_drift(conversation.id, picture.handle, drift)


async def measured(images: ImageStore, base: Picture, picture: Picture) -> DriftRecord | None:
    """Return what the picture changed of its base, or None when one of them cannot be read as pixels."""
    before, after = await images.read(base.image), await images.read(picture.image)
    drift = await in_thread(masking.drift, before, after)
    if isinstance(drift, masking.MaskRefusal):
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

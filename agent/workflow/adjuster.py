"""The adjuster: a wish for nothing but light, colour or frame is carried out exactly, in the studio, by no model.

Nothing is asked of anyone and nothing is paid. What the person locked is about what is painted, so an adjustment keeps
the picture's own shape and size unless the words change them.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from langgraph.types import Command

from agent.adjusting import Adjustment, Change, ChangeKind, describe, read_adjustment
from agent.adjusting.applying import apply_adjustment
from agent.adjusting.framing import framed_size
from agent.components import SmartCanvas
from agent.conversation import Conversation, Turn
from agent.events import PaintingStarted, PictureReady, Step
from agent.history_images import placeholder
from agent.imaging.handles import allot_handle, handles_in
from agent.messages import ImageOrigin, ImagePart, PromptMessage, Role, TextPart
from agent.pictures import EXACT_ADJUSTMENT, EXACT_ADJUSTMENT_LABEL, Picture, Receipt, Reference
from agent.workflow.deps import Deps, TurnRuntime, emit, say
from agent.workflow.results import next_steps
from agent.workflow.state import TurnProgress

# Where another node has the name of a paid call: by it a turn that goes on finds what it made before.
_NAME = "adjustment"

_TOLD: dict[ChangeKind, str] = {
    ChangeKind.BRIGHTER: "brightness +{amount:g}",
    ChangeKind.DARKER: "brightness -{amount:g}",
    ChangeKind.MORE_CONTRAST: "contrast +{amount:g}",
    ChangeKind.LESS_CONTRAST: "contrast -{amount:g}",
    ChangeKind.MORE_SATURATION: "saturation +{amount:g}",
    ChangeKind.LESS_SATURATION: "saturation -{amount:g}",
    ChangeKind.BLACK_AND_WHITE: "black and white",
    ChangeKind.WARMER: "warmth +{amount:g}",
    ChangeKind.COOLER: "warmth -{amount:g}",
    ChangeKind.SHARPER: "sharpness +{amount:g}",
    ChangeKind.SOFTER: "sharpness -{amount:g}",
    ChangeKind.TURNED_RIGHT: "turned right by {amount:g} degrees",
    ChangeKind.TURNED_LEFT: "turned left by {amount:g} degrees",
    ChangeKind.FLIPPED_HORIZONTALLY: "left and right swapped",
    ChangeKind.FLIPPED_VERTICALLY: "top and bottom swapped",
    ChangeKind.CROPPED_TO_RATIO: "cropped to {ratio}",
    ChangeKind.CROPPED: "cropped",
}


@dataclass(frozen=True)
class AdjustmentWish:
    """What is to be adjusted, and the picture that is meant."""

    adjustment: Adjustment
    base: ImagePart


@dataclass(frozen=True)
class _Made:
    """The adjusted picture as it is stored, and how long it took."""

    image: ImagePart
    seconds: float


def adjustment_wish(turn: Turn, conversation: Conversation) -> AdjustmentWish | None:
    """Return what the turn asks for when that is an adjustment alone and it is clear of which picture, else None.

    `conversation` is the history before the turn. What is marked, named and sent with the message must all be one
    picture; with none of it the newest picture is meant, when only one was shown last.
    """
    if turn.references or turn.has_area:
        return None
    adjustment = read_adjustment(turn.text)
    base = _meant(turn, conversation) if adjustment is not None else None
    return AdjustmentWish(adjustment, base) if adjustment is not None and base is not None else None


async def adjuster(state: TurnProgress, runtime: TurnRuntime) -> Command[Literal["presenter"]]:
    """Adjust the picture that is meant, exactly and without a model, and put the result on record."""
    deps = runtime.context
    wish = adjustment_wish(deps.turn, deps.conversation)
    assert wish is not None
    handle = wish.base.handle or ""
    steps = [say(runtime, Step.ADJUSTING, base=handle)]
    width, height = framed_size(wish.base.width or 1, wish.base.height or 1, wish.adjustment)
    emit(runtime, PaintingStarted(count=1, width=width, height=height, model_label=EXACT_ADJUSTMENT_LABEL))
    picture = await _record(deps, wish, await _make(deps, wish))
    emit(runtime, PictureReady(index=0, picture=picture))
    steps.append(say(runtime, Step.ADJUSTED, base=handle, handle=picture.handle))
    return Command(
        goto="presenter",
        update={
            "steps": steps,
            "messages": [told(wish, picture)],
            "components": [SmartCanvas(handles=(picture.handle,)), next_steps(picture.handle)],
        },
    )


def told(wish: AdjustmentWish, picture: Picture) -> PromptMessage:
    """Return how the text model hears of it in later turns: in words, with the placeholder to see the picture by."""
    done = ", ".join(_TOLD[change.kind].format(**change.model_dump()) for change in describe(wish.adjustment))
    note = f"[The studio adjusted {wish.base.handle} exactly: {done}. The result is {picture.handle}.]"
    return PromptMessage(role=Role.MODEL, parts=(TextPart(text=f"{note} {placeholder(picture.image)}"),))


def _meant(turn: Turn, conversation: Conversation) -> ImagePart | None:
    known = {picture.handle: picture.image for picture in conversation.all_pictures}
    known |= {upload.handle: upload for upload in turn.uploads if upload.handle}
    pointed = {*handles_in(turn.text), *(upload.handle or "" for upload in turn.uploads)}
    pointed |= {turn.editing} if turn.editing else set()
    meant = list(pointed) or _shown_last(conversation)
    return known.get(meant[0]) if len(meant) == 1 else None


def _shown_last(conversation: Conversation) -> Sequence[str]:
    """Return the pictures the newest turn that has any showed: the best of its attempts, not those sent back."""
    if not conversation.pictures:
        return ()
    turn_id = conversation.pictures[-1].turn_id
    own = [one.handle for one in conversation.pictures if one.turn_id == turn_id and not one.is_set_aside]
    components = (component for turn in conversation.turns if turn.id == turn_id for component in turn.components)
    canvases = [component for component in components if isinstance(component, SmartCanvas)]
    shown = [handle for canvas in canvases for handle in canvas.handles if handle in own]
    return shown or own


async def _make(deps: Deps, wish: AdjustmentWish) -> _Made:
    started_s = time.monotonic()
    data = await deps.images.read(wish.base)
    adjusted = await asyncio.to_thread(apply_adjustment, data, wish.adjustment)
    image = await deps.images.write(adjusted.data, adjusted.mime_type, ImageOrigin.EDITED)
    size = {"width": adjusted.width, "height": adjusted.height}
    return _Made(image.model_copy(update=size), time.monotonic() - started_s)


async def _record(deps: Deps, wish: AdjustmentWish, made: _Made) -> Picture:
    async with deps.allotting:
        now = await deps.records.get(deps.conversation.id, deps.conversation.owner)
        recorded = next((one for one in now.all_pictures if one.turn_id == deps.turn.id and one.call == _NAME), None)
        if recorded is not None:
            # The turn goes on after a crash: this picture was already on record.
            return recorded
        base = now.picture(wish.base.handle or "")
        handle = allot_handle(now.handles, base=base.handle)
        picture = Picture(
            handle=handle,
            image=made.image.model_copy(update={"handle": handle}),
            turn_id=deps.turn.id,
            created_at=datetime.now(UTC),
            parents=(base.handle,),
            receipt=_receipt(deps.turn, base, describe(wish.adjustment), made),
            alt=base.alt,
            call=_NAME,
        )
        await deps.records.add_picture(deps.conversation.id, picture)
    return picture


def _receipt(turn: Turn, base: Picture, changes: tuple[Change, ...], made: _Made) -> Receipt:
    return Receipt(
        prompt="",
        user_text=turn.text,
        model=EXACT_ADJUSTMENT,
        model_label=EXACT_ADJUSTMENT_LABEL,
        asked_aspect_ratio=None,
        asked_resolution=None,
        width=made.image.width or 0,
        height=made.image.height or 0,
        mime_type=made.image.mime_type,
        references=(Reference(handle=base.handle),),
        seconds=round(made.seconds, 3),
        changes=changes,
    )

"""The adjuster: carries out requests for only light, colour, effects or frame exactly, without an image model.

Successive adjustments of a picture are combined: their parameters are added and applied once, to the original picture.
Warmer and then colder by the same amount returns the original bytes.

The planner can also call for an adjustment: then no image model is called either, and the picture costs nothing. The
user's locks apply only to generated pictures, so an adjustment keeps the picture's shape and size unless the text
changes them. With a mask, only the pixels inside it are adjusted; all others stay as they are.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from datetime import UTC, datetime

from agent.adjusting import Adjustment, ChangeKind, describe, read_adjustment
from agent.adjusting.applying import apply_adjustment, framed_size, with_fixed_crops
from agent.conversation import Conversation, MaskedPicture, Turn
from agent.errors import ErrorCode, ToolArgumentError
from agent.events import (
    ActionPanel,
    Component,
    PaintingStarted,
    PanelAction,
    PanelButton,
    PanelSetting,
    PanelSlider,
    PictureReady,
    SmartCanvas,
    Step,
    TargetNote,
)
from agent.history_images import placeholder
from agent.imaging.arguments import ImageAction, parse_arguments
from agent.messages import ImageOrigin, ImagePart, PromptMessage, Role, TextPart, ToolCallPart
from agent.pictures import EXACT_ADJUSTMENT, EXACT_ADJUSTMENT_LABEL, EditRecord, Picture, Receipt, Reference, handles_in
from agent.workflow.deps import Deps, emit, say
from agent.workflow.masked import adjust_part
from agent.workflow.state import Next, TurnProgress

# In place of the name of a paid call: a resumed turn finds its picture by this name.
_NAME = "adjustment"
_IN_AMOUNTS = (
    "adjust_parameters is done exactly by the studio, so prompt must name amounts and nothing else, such as `warmth "
    "+30, contrast -10`, `blur 40`, `sepia`, `black and white`, `crop to 1:1`, `resize to 800x600` or `rotate 90 "
    "degrees clockwise`; for anything else the action is edit_image"
)

_ACTIONS: tuple[PanelAction, ...] = ("regenerate", "vary", "edit", "more_contrast", "warmer")
_SETTINGS: tuple[PanelSetting, ...] = ("brightness", "contrast", "saturation", "warmth", "sharpness")
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
    ChangeKind.INVERTED: "colours inverted",
    ChangeKind.SEPIA: "sepia",
    ChangeKind.BLURRED: "blur {amount:g}",
    ChangeKind.PIXELATED: "pixelate {amount:g}",
    ChangeKind.TURNED_RIGHT: "turned right by {amount:g} degrees",
    ChangeKind.TURNED_LEFT: "turned left by {amount:g} degrees",
    ChangeKind.FLIPPED_HORIZONTALLY: "left and right swapped",
    ChangeKind.FLIPPED_VERTICALLY: "top and bottom swapped",
    ChangeKind.CROPPED_TO_RATIO: "cropped to {ratio}",
    ChangeKind.CROPPED: "cropped",
    ChangeKind.RESIZED: "resized to {ratio}",
    ChangeKind.RESIZED_WIDE: "resized to {amount:g} pixels wide",
    ChangeKind.RESIZED_HIGH: "resized to {amount:g} pixels high",
    ChangeKind.SCALED: "scaled to {amount:g}%",
}


@dataclass(frozen=True)
class AdjustmentRequest:
    """An adjustment and the picture to adjust; with a mask, only the pixels inside it."""

    adjustment: Adjustment
    base: ImagePart
    masked: MaskedPicture | None = None

    @property
    def done(self) -> str:
        """The description of the adjustment for models."""
        changes = ", ".join(_TOLD[change.kind].format(**change.model_dump()) for change in describe(self.adjustment))
        return f"{changes}, inside the mask alone" if self.masked is not None else changes


@dataclass(frozen=True)
class _CombinedAdjustment:
    """The sum of all adjustments since `original`, including the requested one."""

    adjustment: Adjustment
    original: ImagePart


@dataclass(frozen=True)
class _Made:
    """The adjusted picture in the store, the duration, and the record of an adjustment inside a mask."""

    image: ImagePart
    seconds: float
    edit: EditRecord | None = None


def adjustment_request(
    turn: Turn, conversation: Conversation, words: str = "", target: str | None = None
) -> AdjustmentRequest | None:
    """Return the turn's adjustment if it asks only for one and the picture is unambiguous, else None.

    `conversation` is the history before the turn. The marked, named and uploaded pictures must be one and the same;
    without any, the conversation's `edit_target` is used. If the turn went back to another picture, that one is the
    `target`, and `words` are the rest of the text.
    """
    if turn.references or turn.margins or turn.more_masks:
        return None
    words, masked = words or turn.text, next(iter(turn.masked), None)
    adjustment = _read(words, masked)
    if adjustment is None:
        return None
    target = target or (None if turn.starts_anew else conversation.edit_target)
    pointed = {*handles_in(words), *(upload.handle for upload in turn.uploads), turn.editing} - {None, ""}
    meant = list(pointed) or [target]
    base = _known(turn, conversation).get(meant[0] or "") if len(meant) == 1 else None
    return AdjustmentRequest(adjustment, base, masked) if base is not None else None


def _known(turn: Turn, conversation: Conversation) -> dict[str, ImagePart]:
    """Return the pictures that a turn can adjust, by handle."""
    known = {picture.handle: picture.image for picture in conversation.all_pictures}
    return known | {upload.handle: upload for upload in turn.uploads if upload.handle}


def _read(words: str, masked: MaskedPicture | None) -> Adjustment | None:
    """Return the adjustment if the text asks only for that, else None; inside a mask no frame can change."""
    adjustment = read_adjustment(words, of_part=masked is not None)
    return None if adjustment is not None and masked is not None and adjustment.has_frame else adjustment


def called_adjustment(call: ToolCallPart, deps: Deps, target: str | None) -> AdjustmentRequest | None:
    """Return the adjustment that a planner's call asks for, None when it asks for anything else.

    `target` is the default picture when the call names none. Expansions and sketches are left to the image model.
    Raises ToolArgumentError when the call names no adjustment, or there is no picture.
    """
    arguments = parse_arguments(call.arguments)
    if arguments.action is not ImageAction.ADJUST or deps.turn.margins or deps.text_model.is_sketch:
        return None
    handle = next(iter(arguments.handles), None) or deps.turn.editing or target
    masked = next((one for one in deps.turn.masked if one.handle == handle), None)
    if deps.turn.masked and masked is None:
        return None
    known = _known(deps.turn, deps.conversation)
    if handle is None or handle not in known:
        there = ", ".join(known) or "none yet"
        raise ToolArgumentError(ErrorCode.NO_PICTURE_TO_CHANGE, action=arguments.action.value, known=there)
    adjustment = _read(arguments.prompt, masked) or _read(deps.turn.text, masked)
    if adjustment is None:
        raise ToolArgumentError(ErrorCode.BAD_TOOL_ARGUMENTS, name=call.name, problem=_IN_AMOUNTS)
    return AdjustmentRequest(adjustment, known[handle], masked)


async def adjusted(request: AdjustmentRequest, name: str, deps: Deps) -> tuple[Picture, _CombinedAdjustment]:
    """Adjust and record the picture under the call name `name`; return it and its total adjustment."""
    handle = request.base.handle or ""
    say(deps, Step.ADJUSTING, base=handle)
    width, height = framed_size(request.base.width or 1, request.base.height or 1, request.adjustment)
    emit(deps, PaintingStarted(count=1, width=width, height=height, model_label=EXACT_ADJUSTMENT_LABEL))
    found = deps.conversation.adjusted_from(handle) if request.masked is None else None
    if found is not None and found[1].adds_up_with(request.adjustment):
        original, before = found[0].image, found[1]
        fixed = with_fixed_crops(before, original.width or 1, original.height or 1)
        total = _CombinedAdjustment(fixed.combine(request.adjustment), original)
    else:
        total = _CombinedAdjustment(request.adjustment, request.base)
    picture = await _record(deps, request, total, await _make(deps, total, request.masked), name)
    emit(deps, PictureReady(index=0, picture=picture))
    say(deps, Step.ADJUSTED, base=handle, handle=picture.handle)
    return picture, total


def shown(picture: Picture, total: _CombinedAdjustment) -> list[Component]:
    """Return the components of an adjusted picture: the picture and its follow-up actions."""
    # After an adjustment that is masked or final (an effect, another size), the next one starts from this picture.
    so_far = None if picture.edit is not None or total.adjustment.is_final else total.adjustment
    return [SmartCanvas(handles=(picture.handle,)), next_steps(picture.handle, so_far)]


def next_steps(handle: str, adjusted: Adjustment | None = None) -> ActionPanel:
    """Return the follow-up actions for a picture. `adjusted` is the adjustment it already has."""
    adjusted = adjusted or Adjustment()
    return ActionPanel(
        handle=handle,
        buttons=tuple(PanelButton(action=one) for one in _ACTIONS),
        sliders=tuple(PanelSlider(setting=one, amount=getattr(adjusted, one)) for one in _SETTINGS),
    )


async def adjuster(state: TurnProgress, deps: Deps) -> Next:
    """Adjust the requested picture exactly, without a model, and record the result."""
    notes = [component for component in state["components"] if isinstance(component, TargetNote)]
    request = adjustment_request(
        deps.turn, deps.conversation, state["words"], notes[-1].change.handle if notes else None
    )
    assert request is not None
    picture, total = await adjusted(request, _NAME, deps)
    # For the text model in later turns, with a placeholder of the picture.
    note = f"[The studio adjusted {request.base.handle} exactly: {request.done}. The result is {picture.handle}.]"
    message = PromptMessage(role=Role.MODEL, parts=(TextPart(text=f"{note} {placeholder(picture.image)}"),))
    return Next("presenter", {"messages": [message], "components": shown(picture, total)})


async def _make(deps: Deps, total: _CombinedAdjustment, masked: MaskedPicture | None) -> _Made:
    started_s = time.monotonic()
    original = total.original
    if masked is not None:
        finished = await adjust_part(deps.services.images, original, masked, total.adjustment)
        return _Made(finished.image, time.monotonic() - started_s, finished.record)
    data = await deps.services.images.read(original)
    if total.adjustment.is_identity:
        # The adjustments cancel out: the new picture has the bytes of the original.
        image = await deps.services.images.write(data, original.mime_type, ImageOrigin.EDITED)
        size = {"width": original.width, "height": original.height, "bit_depth": original.bit_depth}
    else:
        adjusted = await asyncio.to_thread(apply_adjustment, data, total.adjustment)
        image = await deps.services.images.write(adjusted.data, adjusted.mime_type, ImageOrigin.EDITED)
        size = {"width": adjusted.width, "height": adjusted.height, "bit_depth": adjusted.bit_depth}
    return _Made(image.model_copy(update=size), time.monotonic() - started_s)


async def _record(
    deps: Deps, request: AdjustmentRequest, total: _CombinedAdjustment, made: _Made, name: str
) -> Picture:
    now = await deps.conversation_now()
    base = now.picture(request.base.handle or "")
    receipt = Receipt(
        prompt="",
        user_text=deps.turn.text,
        model=EXACT_ADJUSTMENT,
        model_label=EXACT_ADJUSTMENT_LABEL,
        asked_aspect_ratio=None,
        asked_resolution=None,
        width=made.image.width or 0,
        height=made.image.height or 0,
        mime_type=made.image.mime_type,
        bit_depth=made.image.bit_depth,
        references=(Reference(handle=total.original.handle or ""),),
        seconds=round(made.seconds, 3),
        changes=describe(total.adjustment),
        # Later adjustments cannot be added to one inside a mask.
        adjustment=None if made.edit is not None else total.adjustment,
    )
    picture = Picture(
        # Assigned when the picture is recorded.
        handle="",
        image=made.image,
        turn_id=deps.turn.id,
        created_at=datetime.now(UTC),
        parents=(base.handle,),
        receipt=receipt,
        alt=base.alt,
        call=name,
        edit=made.edit,
    )
    # When the turn resumes after a crash, this returns the picture that is already recorded.
    return await deps.services.records.conversations.add_picture(deps.conversation.id, picture, base=base.handle)

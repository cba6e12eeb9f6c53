"""A masked edit on a model without mask support: what to send, and how to use the answer.

Call `plan_edit` before the request, `finish_edit` with its answer, and `regrow` to use the same answer under another
mask. Expanding a picture works the same way: the new part is the mask, and every pixel of the original is preserved.
For an edit without a mask, `drift` measures its changes and `keep_only` keeps a part of it.
Each function takes about a second of CPU time: run it in a thread.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from agent.errors import RequestRefused
from agent.imaging.masking import alignment, compositing, crops, masks, overlay, verdicts
from agent.imaging.masking.alignment import Matrix
from agent.imaging.masking.crops import Crop
from agent.imaging.masking.overlay import Fit, Surface
from agent.imaging.masking.values import (
    DEFAULT_FEATHER_PX,
    Box,
    Drift,
    EditOutcome,
    EditPlan,
    Frame,
    Mask,
    MaskProblem,
    MaskRefused,
    Notice,
    Reason,
)
from agent.pictures import MAX_MEGAPIXELS, MAX_SIDE_PX, EditNotice, Judgement, Margins, Placement
from agent.pixels import Bytes, Flags, Raster, encode_png, open_picture, read_rgb, shown_rgb

LEAST_FEATHER_PX, MOST_FEATHER_PX = 2.0, 32.0
_BEYOND_SAID = 0.02


def plan_edit(
    original: bytes,
    mask: Mask,
    frames: Sequence[Frame],
    feather_px: float = DEFAULT_FEATHER_PX,
    *,
    is_in_place: bool = False,
) -> EditPlan:
    """Return what to send to change the area that the mask marks.

    `original` is any stored picture; 16 bits and alpha are kept, although 8-bit RGB is sent. `frames` are the model's
    legal outputs in all their sizes; about a megapixel is requested unless that would be more than 1.25 times coarser
    than the picture. One request edits all areas of the mask. The plan's notices contain the warnings to show before
    payment: nothing outside the mask, little to align by, a softer result. A model that edits the pixels it is given
    (`is_in_place`) gets the whole picture unchanged.

    Raises MaskRefused for an unreadable picture, a mask of another size, an empty mask, and when there is no frame.
    """
    picture = _read(original)
    values = _values(mask, picture)
    if is_in_place:
        return _in_place(original, picture, mask, feather_px)
    crop = crops.chosen_crop(masks.box_of(values), picture.width, picture.height, frames)
    if crop is None:
        raise MaskRefused(MaskProblem.NO_FRAME)
    return planned(original, picture, mask, values, crop, frames, masks.areas_of(values), feather_px)


def _in_place(original: bytes, picture: Raster, mask: Mask, feather_px: float) -> EditPlan:
    """Return the plan of an edit in place: nothing is cropped, aligned or colour-corrected."""
    size = (picture.width, picture.height)
    box, frame = Box(0, 0, *size), Frame("", "", *size)
    return EditPlan(original, mask, *size, box, frame, feather_px=_feather(feather_px), is_in_place=True)


def change_inside(
    original: bytes, mask: Mask, change: Callable[[Raster, Flags], Raster], feather_px: float = DEFAULT_FEATHER_PX
) -> EditOutcome:
    """Return the original with its own pixels changed inside the mask only, without aligning any answer.

    `change` gets the picture and flags (height, width) of the area, and must keep size and bit depth; its changes
    outside the area are ignored. Raises MaskRefused as `plan_edit` does.
    """
    picture = _read(original)
    values = _values(mask, picture)
    feather_px = _feather(feather_px) * picture.width / crops.work_size(picture.width, picture.height)[0]
    made = compositing.replaced(picture, values, change(picture, values > 0), feather_px)
    composite = encode_png(made)
    return EditOutcome(
        Judgement(verdict="good", reason=Reason.SAME_PICTURE, correlation=1.0, tile_share=1.0),
        composite,
        changed_outside=compositing.changed_outside(picture, open_picture(composite), values),
        outside=int((values == 0).sum()),
        notices=() if (made.pixels != picture.pixels).any() else (_notice(Notice.NOTHING_CHANGED),),
    )


def _values(mask: Mask, picture: Raster) -> Bytes:
    """Return the values of the picture's mask, not all of which are 0."""
    if (mask.width, mask.height) != (picture.width, picture.height):
        raise MaskRefused(MaskProblem.WRONG_RATIO)
    values = masks.unpacked(mask)
    if not values.any():
        raise MaskRefused(MaskProblem.EMPTY)
    return values


def _read(data: bytes, problem: MaskProblem = MaskProblem.PICTURE_UNREADABLE) -> Raster:
    try:
        return open_picture(data)
    except RequestRefused:
        raise MaskRefused(problem) from None


def _feather(feather_px: float) -> float:
    return min(max(feather_px, LEAST_FEATHER_PX), MOST_FEATHER_PX)


def planned(
    original: bytes,
    picture: Raster,
    mask: Mask,
    values: Bytes,
    crop: Crop,
    frames: Sequence[Frame],
    areas: Sequence[Box],
    feather_px: float,
) -> EditPlan:
    """Return the plan of an edit for this crop; `values` are the mask's, `areas` the boxes that could go alone."""
    sent = crops.cut(picture, crop)
    area = crops.in_frame(values, crop.box, (crop.frame.width_px, crop.frame.height_px))
    shown, marker = crops.marked(sent, area)
    return EditPlan(
        original=original,
        mask=mask,
        width=picture.width,
        height=picture.height,
        box=crop.box,
        frame=crop.frame,
        crop=encode_png(Raster(sent)),
        marked=encode_png(Raster(shown)),
        marker=marker,
        notices=tuple(_notices(picture, values, crop, areas, frames, sent)),
        feather_px=_feather(feather_px),
    )


def finish_edit(plan: EditPlan, answer: bytes) -> EditOutcome:
    """Return the outcome of the model's answer, which may have any size and type.

    When the verdict is `refused`, there is no composite: the original stays, and the answer may be shown beside it.
    Otherwise the composite differs from the original only inside the mask; this is counted on the decoded file.

    Raises MaskRefused for an unreadable answer.
    """
    part = _read(answer, MaskProblem.ANSWER_UNREADABLE)
    if plan.is_in_place:
        return change_inside(plan.original, plan.mask, lambda _picture, _area: part, plan.feather_px)
    frame = (plan.frame.width_px, plan.frame.height_px)
    surface = Surface.over(open_picture(plan.original), plan.box, crops.work_size(*frame))
    values = masks.unpacked(plan.mask)
    pixels = shown_rgb(part.pixels, part.profile)
    fit = overlay.aligned(surface, values, pixels)
    return outcome(surface, values, pixels, fit, overlay.placed(surface, fit, frame, plan.feather_px))


def regrow(original: bytes, answer: bytes, mask: Mask, placement: Placement, judgement: Judgement) -> EditOutcome:
    """Return the outcome of an already aligned answer under another mask, without a new request.

    Colours are matched again around the new border; the placement stays. Raises MaskRefused for an empty mask, a mask
    of another size, and a mask that extends beyond the part that the model was shown.
    """
    picture = open_picture(original)
    values = _values(mask, picture)
    box = Box(*placement.box)
    if not box.holds(masks.box_of(values)):
        raise MaskRefused(MaskProblem.BEYOND_THE_ANSWER)
    surface = Surface.over(picture, box, placement.work)
    return outcome(surface, values, read_rgb(answer), overlay.fit_of(placement, judgement), placement)


def outcome(surface: Surface, values: Bytes, answer: Bytes, fit: Fit, placement: Placement) -> EditOutcome:
    """Return the pasted picture as a file with its counts and notices; a refused answer is not pasted."""
    judgement, outside = fit.judgement, int((values == 0).sum())
    if judgement.verdict == "refused":
        return EditOutcome(judgement, placement=placement, outside=outside)
    made = overlay.paste(surface, values, answer, fit, placement.feather_px)
    composite = encode_png(made.picture)
    is_unsure = judgement.verdict == "unsure"
    notices = []
    if made.spill_px:
        notices.append(_notice(Notice.SPILLS, pixels=made.spill_px))
    if made.is_unchanged and judgement.reason != Reason.COVERS_ALL:
        notices.append(_notice(Notice.NOTHING_CHANGED))
    return EditOutcome(
        judgement=judgement,
        composite=composite,
        placement=placement,
        # Counted on the encoded file, so that a change outside the mask by paste or encoder cannot go unnoticed.
        changed_outside=compositing.changed_outside(surface.picture, open_picture(composite), values),
        outside=outside,
        spill_px=made.spill_px,
        grown_mask=masks.packed(_grown_within(values, made.spill_px, surface.box)) if made.spill_px else None,
        before=overlay.preview(surface.picture, surface) if is_unsure else None,
        after=overlay.preview(made.picture, surface) if is_unsure else None,
        notices=tuple(notices),
    )


def _notice(notice: Notice, **parameters: float | str) -> EditNotice:
    return EditNotice(code=notice.value, parameters=parameters)


def _grown_within(values: Bytes, pixels: int, box: Box) -> Bytes:
    wider = masks.widened(values, pixels)
    kept = wider.copy()
    height, width = values.shape
    seen = box.within(Box(0, 0, width, height))
    kept[: seen.top] = kept[seen.bottom :] = 0
    kept[:, : seen.left] = kept[:, seen.right :] = 0
    return np.maximum(kept, values)


def _notices(
    picture: Raster, values: Bytes, crop: Crop, areas: Sequence[Box], frames: Sequence[Frame], sent: Bytes
) -> list[EditNotice]:
    notices = []
    if values.all():
        notices.append(_notice(Notice.COVERS_ALL))
    else:
        size = crops.work_size(crop.frame.width_px, crop.frame.height_px)
        outside = 255 - crops.in_frame(values, crop.box, size, beyond=255)
        tiles = verdicts.textured_tiles(overlay.fitted(sent, size), outside)
        if tiles < verdicts.TILES_NEEDED:
            notices.append(_notice(Notice.LITTLE_TO_ALIGN_BY, tiles=tiles, needed=verdicts.TILES_NEEDED))
    if crop.softness > crops.MAX_SOFTNESS:
        notices.append(_softer(picture, crop, areas, frames))
    inside = crop.box.within(Box(0, 0, picture.width, picture.height))
    beyond = 1 - inside.width * inside.height / (crop.box.width * crop.box.height)
    if beyond > _BEYOND_SAID:
        notices.append(_notice(Notice.BEYOND_THE_PICTURE, share=round(beyond, 3)))
    return notices


def _softer(picture: Raster, crop: Crop, areas: Sequence[Box], frames: Sequence[Frame]) -> EditNotice:
    factor = round(crop.softness, 2)
    alone = [crops.chosen_crop(area, picture.width, picture.height, frames) for area in areas[:8]]
    finest = max((each.softness for each in alone if each), default=crop.softness)
    if len(areas) > 1 and finest <= crop.softness / crops.MAX_SOFTNESS:
        return _notice(Notice.AREAS_FAR_APART, areas=len(areas), factor=factor)
    return _notice(Notice.SOFTER, factor=factor)


def margins_for(width: int, height: int, ratio: float) -> Margins:
    """Return the margins to add evenly on both sides of one axis to give the picture this ratio of width to height."""
    across, down = round(height * ratio) - width, round(width / ratio) - height
    if across > 0:
        return Margins(left=across // 2, right=across - across // 2)
    down = max(0, down)
    return Margins(top=down // 2, bottom=down - down // 2)


def plan_expansion(
    original: bytes,
    margins: Margins | float,
    frames: Sequence[Frame],
    feather_px: float = DEFAULT_FEATHER_PX,
    *,
    is_in_place: bool = False,
) -> EditPlan:
    """Return what to send to expand a picture; `margins` are in pixels, or the target ratio of width to height.

    The plan's original is the larger canvas, on which the picture's edge is extended and blurred; finish it like any
    edit. The model is shown the whole canvas, or only the new part with its surroundings if that would be too coarse.

    Raises MaskRefused for an unreadable picture, negative margins or nothing to add, a canvas larger than the limits,
    and when there is no frame.
    """
    picture = _read(original)
    sides = margins if isinstance(margins, Margins) else margins_for(picture.width, picture.height, margins)
    canvas_size = (picture.width + sides.left + sides.right, picture.height + sides.top + sides.bottom)
    if min(sides.left, sides.right, sides.top, sides.bottom) < 0 or canvas_size == (picture.width, picture.height):
        raise MaskRefused(MaskProblem.NOTHING_TO_ADD)
    if max(canvas_size) > MAX_SIDE_PX or canvas_size[0] * canvas_size[1] > MAX_MEGAPIXELS * 1_000_000:
        raise MaskRefused(MaskProblem.TOO_LARGE)
    pixels = crops.continued(picture.pixels, sides.top, sides.bottom, sides.left, sides.right)
    canvas = Raster(pixels, picture.profile)
    values = np.full((canvas.height, canvas.width), 255, np.uint8)
    values[sides.top : sides.top + picture.height, sides.left : sides.left + picture.width] = 0
    if is_in_place:
        return _in_place(encode_png(canvas), canvas, masks.packed(values), feather_px)
    crop = crops.whole_crop(*canvas_size, frames)
    if crop is not None and crop.softness > crops.MAX_SOFTNESS:
        crop = crops.chosen_crop(masks.box_of(values), *canvas_size, frames)
    if crop is None:
        raise MaskRefused(MaskProblem.NO_FRAME)
    whole = [Box(0, 0, *canvas_size)]
    return planned(encode_png(canvas), canvas, masks.packed(values), values, crop, frames, whole, feather_px)


_EDGE_PX = 3
# This share of the tiles that both pictures show must be alike; with unrelated pictures it stays below 0.1.
_COMPARABLE_SHARE = 0.3
_LEAST_SHOWN = 0.25


def drift(original: bytes, edited: bytes) -> Drift:
    """Return how the edited picture differs from the original: the changed area, and the shift and zoom.

    Parts that the edited picture no longer shows are not marked as changed. Raises MaskRefused for unreadable pictures.
    """
    surface, answer = _whole(original, edited)
    size = surface.size
    everywhere = np.full(size[::-1], 255, np.uint8)
    small, nominals = overlay.fitted(answer, size), overlay.nominal_maps(answer, size)
    template, moving = alignment.normalised(surface.sent), alignment.normalised(small)
    found = alignment.align(surface.sent, small, template, moving, everywhere, nominals)
    judgement = verdicts.judged(surface.sent, small, template, moving, everywhere, found.matrix, nominals)
    comparable = alignment.inside_answer(found.matrix, everywhere.shape, _EDGE_PX)
    is_comparable = _is_comparable(judgement, comparable)
    changed = everywhere
    if is_comparable:
        bends = alignment.bends_of(template, moving, everywhere, found.matrix)
        shown = alignment.seen_through(small, found.matrix, bends)
        correction = compositing.colour_correction(surface.sent, shown, everywhere, comparable)
        changed = overlay.changed_area(surface.sent, overlay.true_colours(correction, shown), comparable)
    return _drift_of(surface, answer, found.matrix, changed, is_comparable, judgement)


def keep_only(original: bytes, edited: bytes, area: Mask, feather_px: float = DEFAULT_FEATHER_PX) -> EditOutcome:
    """Return the original with the edited picture in this area only, aligned by everything outside the area.

    Raises MaskRefused for unreadable pictures, an empty area, and an area of another size than the original.
    """
    surface, answer = _whole(original, edited)
    values, size = _values(area, surface.picture), (surface.picture.width, surface.picture.height)
    fit = overlay.aligned(surface, values, answer)
    return outcome(surface, values, answer, fit, overlay.placed(surface, fit, size, feather_px))


def _whole(original: bytes, edited: bytes) -> tuple[Surface, Bytes]:
    """Return the surface of the whole original, and the edited picture as 8-bit RGB."""
    picture, answer = _read(original), _read(edited, MaskProblem.ANSWER_UNREADABLE)
    size = (picture.width, picture.height)
    surface = Surface.over(picture, Box(0, 0, *size), crops.work_size(*size))
    return surface, shown_rgb(answer.pixels, answer.profile)


def _is_comparable(judgement: Judgement, comparable: Bytes) -> bool:
    if float((comparable > 0).mean()) < _LEAST_SHOWN:
        return False
    if judgement.reason == Reason.LITTLE_TO_ALIGN_BY:
        return judgement.correlation >= verdicts.TRUSTED_CORRELATION
    return judgement.tile_share >= _COMPARABLE_SHARE


def _drift_of(
    surface: Surface, answer: Bytes, matrix: Matrix, changed: Bytes, is_comparable: bool, judgement: Judgement
) -> Drift:
    picture, size = surface.picture, surface.size
    large = crops.in_frame(changed, Box(0, 0, *size), (picture.width, picture.height))
    height, width = answer.shape[:2]
    # The map refers to the answer resized to the frame: the real zoom follows from the answer's real shape.
    true = np.diag([width / size[0], height / size[1]]) @ matrix[:, :2]
    zoom = math.sqrt(abs(float(np.linalg.det(true))) / (width * height / (size[0] * size[1])))
    (across, down), _, turn_deg = alignment.parts(matrix, *size)
    factor = picture.width / size[0]
    return Drift(
        changed=masks.packed(large),
        changed_share=float((changed > 0).mean()),
        shift_px=(across * factor, down * factor),
        scale=zoom,
        turn_deg=turn_deg,
        ratio_change=(width / height) / (picture.width / picture.height),
        is_comparable=is_comparable,
        judgement=judgement,
    )

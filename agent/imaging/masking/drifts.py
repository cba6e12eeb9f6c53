"""What an edit without a mask did to a picture, and how to keep only a part of it."""

from __future__ import annotations

import math

import numpy as np

from agent.errors import RequestRefused
from agent.imaging.masking import alignment, colour, crops, edits, laying, masks, spills, verdicts, wobble
from agent.imaging.masking.alignment import Matrix
from agent.imaging.masking.laying import Surface
from agent.imaging.masking.values import (
    DEFAULT_FEATHER_PX,
    Box,
    Drift,
    EditOutcome,
    Judgement,
    Mask,
    MaskProblem,
    MaskRefusal,
    Reason,
    Verdict,
)
from agent.pixels import Bytes, open_picture, read_rgb

_EDGE_PX = 3.0
# Of the tiles that both pictures show, so many must be alike; other pictures stay below 0.1.
_COMPARABLE_SHARE = 0.3
_LEAST_SHOWN = 0.25


def drift(original: bytes, edited: bytes) -> Drift | MaskRefusal:
    """Return how the edited picture differs from the original: what changed, and how it was shifted and zoomed.

    What the edited picture no longer shows is not marked as changed. Refused: pictures that cannot be read.
    """
    try:
        surface = _whole(original)
    except RequestRefused:
        return MaskRefusal(MaskProblem.PICTURE_UNREADABLE)
    try:
        answer = read_rgb(edited)
    except RequestRefused:
        return MaskRefusal(MaskProblem.ANSWER_UNREADABLE)
    size = (surface.work_width, surface.work_height)
    everywhere = np.full(size[::-1], 255, np.uint8)
    small, nominals = laying.fitted(answer, size), laying.nominal_maps(answer, size)
    template, moving = alignment.normalised(surface.sent), alignment.normalised(small)
    found = alignment.align(surface.sent, small, template, moving, everywhere, nominals)
    is_plausible = alignment.is_plausible(found.matrix, nominals, *size)
    judgement = verdicts.judged(surface.sent, small, template, moving, everywhere, found, is_plausible)
    comparable = alignment.inside_answer(found.matrix, everywhere.shape, _EDGE_PX)
    is_comparable = _is_comparable(judgement, comparable)
    changed = everywhere
    if is_comparable:
        bends = wobble.bends_of(template, moving, everywhere, found.matrix)
        changed = _changed(surface, small, found.matrix, bends, comparable)
    return _told(surface, answer, found.matrix, changed, is_comparable, judgement)


def keep_only(
    original: bytes, edited: bytes, area: Mask, feather_px: float = DEFAULT_FEATHER_PX
) -> EditOutcome | MaskRefusal:
    """Return the original with the edited picture in this area alone, aligned by all the rest.

    Refused: pictures that cannot be read, an empty area, one of another size than the original.
    """
    try:
        surface = _whole(original)
    except RequestRefused:
        return MaskRefusal(MaskProblem.PICTURE_UNREADABLE)
    try:
        answer = read_rgb(edited)
    except RequestRefused:
        return MaskRefusal(MaskProblem.ANSWER_UNREADABLE)
    width, height = surface.picture.width, surface.picture.height
    if (area.width, area.height) != (width, height):
        numbers = {"mask_width": area.width, "mask_height": area.height, "width": width, "height": height}
        return MaskRefusal(MaskProblem.WRONG_RATIO, numbers)
    values = masks.unpacked(area)
    if not values.any():
        return MaskRefusal(MaskProblem.EMPTY)
    kept = laying.aligned(surface, values, answer, edited)
    if kept.judgement.verdict is Verdict.REFUSED:
        return EditOutcome(kept.judgement, aligned=kept, outside=int((values == 0).sum()))
    return edits.outcome(surface, values, answer, kept, feather_px)


def _whole(original: bytes) -> Surface:
    picture = open_picture(original)
    box = Box(0, 0, picture.width, picture.height)
    return Surface.over(picture, box, crops.work_size(picture.width, picture.height))


def _is_comparable(judgement: Judgement, comparable: Bytes) -> bool:
    if float((comparable > 0).mean()) < _LEAST_SHOWN:
        return False
    if judgement.reason is Reason.LITTLE_TO_ALIGN_BY:
        return judgement.correlation >= verdicts.TRUSTED_CORRELATION
    return judgement.tile_share >= _COMPARABLE_SHARE


def _changed(surface: Surface, small: Bytes, matrix: Matrix, bends: wobble.Bends | None, comparable: Bytes) -> Bytes:
    shown = wobble.seen_through(small, matrix, bends)
    nowhere = np.full(comparable.shape, 255, np.uint8)
    correction = colour.correction(surface.sent, shown, nowhere, comparable)
    return spills.changed_area(surface.sent, laying.true_colours(correction, shown), comparable)


def _told(
    surface: Surface, answer: Bytes, matrix: Matrix, changed: Bytes, is_comparable: bool, judgement: Judgement
) -> Drift:
    picture = surface.picture
    size = (surface.work_width, surface.work_height)
    share = float((changed > 0).mean())
    large = crops.in_frame(changed, Box(0, 0, *size), (picture.width, picture.height))
    height, width = answer.shape[:2]
    # The map leads into the answer fitted to the frame: its true shape tells the true zoom.
    true = np.diag([width / size[0], height / size[1]]) @ matrix[:, :2]
    zoom = math.sqrt(abs(float(np.linalg.det(true))) / (width * height / (size[0] * size[1])))
    (across, down), _, turn_deg = alignment.parts(matrix, *size)
    factor = picture.width / size[0]
    return Drift(
        changed=masks.packed(large),
        changed_share=share,
        shift_px=(across * factor, down * factor),
        scale=zoom,
        turn_deg=turn_deg,
        ratio_change=(width / height) / (picture.width / picture.height),
        is_comparable=is_comparable,
        judgement=judgement,
    )

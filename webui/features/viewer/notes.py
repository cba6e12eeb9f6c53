"""What is told under a picture: what a look at it found, what came of an edit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from markupsafe import Markup

from agent import DriftRecord, EditRecord, Picture, PixelSize, Reduction, ReductionKind, Review
from webui.view import View
from webui.words import Words

_LOOKS = {
    True: ("check", "review.met", "met"),
    False: ("x", "review.not_met", "missed"),
    None: ("circle-dashed", "review.not_looked", "unlooked"),
}
# Below these an edit is called true to its original: less is not seen, and within what can be measured.
_SHIFT_PX = 0.5
_ZOOM = 0.005
# Beyond it, pixels of the two pictures cannot be laid over each other.
_SAME_SHAPE = 0.03


def review_text(words: Words, review: Review) -> str:
    """Return what a look came to: of what was asked for and looked at, how much is there. Never a score."""
    looked = review.looked_at
    if _is_studios_own(review):
        names = dict.fromkeys(words(f"check.{item.check}") for item in review.checklist if item.check)
        return words("review.checked", names=words("did.join").join(names))
    if review.score is None:
        return words("review.none")
    if not looked:
        return words("review.title")
    return words("review.of", met=sum(item.is_met is True for item in looked), count=len(looked))


class ReviewShown(NamedTuple):
    """What a review found, to be shown: the colour and the icon of its badge, what that says, what stands beside it,
    and whether there is more to unfold. `by` says who looked."""

    review: Review
    tone: str
    icon: str
    text: str
    tally: str
    feedback: str
    by: str

    @property
    def looks(self) -> Mapping[bool | None, tuple[str, str, str]]:
        """The icon, the key of the words and the class of what was met, not met, and not looked at."""
        return _LOOKS

    @property
    def has_more(self) -> bool:
        """Whether anything unfolds."""
        return bool(self.review.checklist or self.review.lettering or self.feedback or self.review.suggestions)


def shown_review(words: Words, review: Review | None) -> ReviewShown | None:
    """Return what is shown of a review: its badge's colour says what its icon and its words say, too."""
    if review is None:
        return None
    is_own = _is_studios_own(review)
    tone, symbol = ("short", "triangle-alert") if review.has_shortcomings else ("passed", "circle-check")
    if review.score is None or is_own:
        tone, symbol = "unseen", "circle-dashed"
    by = words("review.by", model=review.model_label) if review.model_label else ""
    return ReviewShown(
        review,
        tone,
        symbol,
        review_text(words, review),
        _tally(words, review),
        "" if is_own else review.feedback,
        words("review.by_studio") if is_own else by,
    )


def _is_studios_own(review: Review) -> bool:
    """Whether no model looked: the first records hold such checks of ratio, size and lettering with a score."""
    return not review.model_label and bool(review.checklist) and all(item.check for item in review.checklist)


def _tally(words: Words, review: Review) -> str:
    """Return what stands beside the badge: what was not looked at, or the one sentence of a review without a list."""
    if _is_studios_own(review):
        return ""
    unseen = len(review.checklist) - len(review.looked_at)
    if review.looked_at:
        parts = [words("review.as_asked"), words.counted("review.unseen", unseen) if unseen else ""]
        return words("did.join").join(part for part in parts if part)
    return review.feedback


class Line(NamedTuple):
    """A line under a picture; of each of its `buttons` what it does, the key of its words, and its icon."""

    tone: str
    icon: str
    text: str
    buttons: Sequence[tuple[str, str, str]] = ()


def edit_lines(view: View, picture: Picture) -> Markup:
    """Return the lines under a picture: what came of an edit, and where less than a picture's own size or bit depth
    was used; empty where there is nothing to say.
    """
    words, receipt = view.words, picture.receipt
    reduced = [_reduction(words, one) for one in (receipt.reductions if receipt else ())]
    came: list[Line] = []
    if picture.edit is not None:
        came = _edit(words, picture.edit, has_numbers=bool(reduced))
    elif picture.drift is not None:
        came = [_drift(words, picture.drift)]
    return view.render("thread/edit.html", groups=(came, reduced), handle=picture.handle)


def reduction_text(words: Words, reduction: Reduction) -> str:
    """Return in a sentence where less than all of a picture was used."""
    full, used = size_text(words, reduction.full), size_text(words, reduction.used)
    if reduction.kind is ReductionKind.SHAPE:
        full, used = (f"{one.width}×{one.height}" for one in (reduction.full, reduction.used))
    return words(f"reduction.{reduction.kind}", handle=reduction.handle, full=full, used=used)


def size_text(words: Words, size: PixelSize) -> str:
    """Return pixels and bits as a person reads them."""
    return words("reduction.size", width=size.width, height=size.height, bits=size.bit_depth)


def notice_lines(words: Words, codes: Sequence[str]) -> list[Line]:
    """Return what should be known before a masked edit is paid for."""
    return [Line("short", "triangle-alert", words(f"notice.{code}")) for code in codes]


def _reduction(words: Words, reduction: Reduction) -> Line:
    is_flat = reduction.kind is ReductionKind.TRANSPARENCY
    back = [("keep_transparency", "edit.keep_transparency", "undo-2")] if is_flat else []
    return Line("short", "scaling", reduction_text(words, reduction), back)


def _edit(words: Words, edit: EditRecord, *, has_numbers: bool) -> list[Line]:
    """Return the lines of an edit of a part; `has_numbers` when it is told elsewhere how much softer that is."""
    lines = _verdict(words, edit)
    if edit.spill_px and edit.grown_mask is not None and not edit.is_set_aside:
        spills = words("edit.spills", pixels=edit.spill_px)
        lines.append(Line("short", "triangle-alert", spills, [("grow_mask", "edit.grow", "expand")]))
    # The spill has a line of its own, with its number and what to do.
    told_elsewhere = {"spills", *(("softer",) if has_numbers else ())}
    return lines + notice_lines(words, [one.code for one in edit.notices if one.code not in told_elsewhere])


def _verdict(words: Words, edit: EditRecord) -> list[Line]:
    if edit.is_kept is False:
        return [Line("unseen", "ban", words("edit.discarded"), [("keep_edit", "edit.keep_after_all", "undo-2")])]
    if edit.verdict == "refused":
        return [Line("short", "triangle-alert", words("edit.refused"))]
    lines = []
    if edit.outside:
        counted = words("edit.exact", changed=f"{edit.changed_outside:,}", outside=f"{edit.outside:,}")
        lines = [Line("passed" if not edit.changed_outside else "short", "shield-check", counted)]
    if edit.verdict == "unsure" and edit.is_kept is None:
        choice = [
            ("compare", "edit.look", "git-compare"),
            ("keep_edit", "edit.keep", "check"),
            ("discard_edit", "edit.discard", "trash"),
        ]
        lines.append(Line("short", "triangle-alert", words("edit.unsure"), choice))
    return lines


def _drift(words: Words, drift: DriftRecord) -> Line:
    if not drift.is_comparable:
        return Line("short", "triangle-alert", words("edit.another", handle=drift.base))
    if abs(drift.ratio_change - 1) > _SAME_SHAPE:
        return Line("unseen", "git-compare", words("edit.reshaped", handle=drift.base))
    told = words("edit.changed", share=f"{drift.changed_share:.0%}", handle=drift.base)
    shift = max(abs(drift.shift_px[0]), abs(drift.shift_px[1]))
    if shift >= _SHIFT_PX or abs(drift.scale - 1) >= _ZOOM:
        told += " " + words("edit.drifted", pixels=f"{shift:.1f}", zoom=f"{drift.scale:.3f}")
    keep = [("keep_only", "edit.keep_only", "crop")] if drift.changed_share else []
    return Line("unseen", "git-compare", told, keep)

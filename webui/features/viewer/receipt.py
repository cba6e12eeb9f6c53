"""HTML under a picture: its receipt (asked against got, in one line and in full, with what can be done about it),
its review, and the result of an edit."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from markupsafe import Markup

from agent import (
    AdjustmentChange,
    DriftRecord,
    EditRecord,
    MissingStyleReason,
    Picture,
    PixelSize,
    Receipt,
    Reduction,
    ReductionKind,
    ReferenceRole,
    Review,
    shape_of,
)
from webui.features.composer import REFERENCE_MODES
from webui.spend import price
from webui.view import Offer, View
from webui.words import Words

# `2K` means as many pixels as a square of 2048.
_THOUSANDS = re.compile(r"[1-9]\d?K")
_LOOKS = {
    True: ("check", "review.met", "met"),
    False: ("x", "review.not_met", "missed"),
    None: ("circle-dashed", "review.not_looked", "unlooked"),
}
# Below these values an edit counts as faithful: less is invisible, and within the error of measurement.
_SHIFT_PX = 0.5
_ZOOM = 0.005
# Above it, the pixels of the two pictures cannot be compared.
_SAME_SHAPE = 0.03


def receipt_line(words: Words, receipt: Receipt) -> str:
    """Return the receipt in one line: model, ratio, size asked and pixels got, price, seconds, sources."""
    size = f"{receipt.width}×{receipt.height}"
    if receipt.asked_resolution and not receipt.is_sketch:
        size = f"{receipt.asked_resolution} → {size}"
    parts = [words.model(receipt.model_label), changes_text(words, receipt.changes)]
    parts += [receipt.asked_aspect_ratio or "", size, price(words, receipt.price_usd)]
    parts.append(words("receipt.seconds", seconds=f"{receipt.seconds:.0f}") if receipt.seconds >= 1 else "")
    parts.append(words.counted("receipt.source_count", len(receipt.sources)) if receipt.sources else "")
    return " · ".join(part for part in parts if part)


def receipt_html(view: View, picture: Picture, *, is_folded: bool = False) -> Markup:
    """Return all rows of the picture's receipt and its buttons; empty for an upload.

    A folded receipt is a line that unfolds to the whole. Below it stands what was asked and not delivered, and what can
    be done about it, until the user accepts it.
    """
    words, receipt, edit, image = view.words, picture.receipt, picture.edit, picture.image
    if receipt is None:
        return Markup()
    asked = " ".join(part for part in (receipt.asked_resolution, receipt.asked_aspect_ratio) if part)
    shape = shape_of(receipt.width, receipt.height)
    got = f"{receipt.width}×{receipt.height}{f' ({shape})' if shape else ''}"
    roles = {str(role): words(f"role.{role}") for role in ReferenceRole} if receipt.references else {}
    drawn, missing = words("receipt.style_drawn"), receipt.missing_style
    outside = ""
    if edit is not None and edit.outside and not edit.is_set_aside:
        outside = words("receipt.changed", changed=f"{edit.changed_outside:,}", outside=f"{edit.outside:,}")
    is_another = len(view.offers) > 1 and receipt.prompt and not receipt.is_sketch and edit is None
    return view.render(
        "viewer/receipt.html",
        picture=picture,
        receipt=receipt,
        is_folded=is_folded,
        line=receipt_line(words, receipt),
        changes=changes_text(words, receipt.changes),
        own_words=receipt.user_text if receipt.user_text.strip() != receipt.prompt.strip() else "",
        model_name=words.model(receipt.model_label),
        got=f"{asked} → {got}" if asked else got,
        shortfalls=_shortfalls(words, receipt),
        format=words("receipt.bytes", type=image.mime_type, bytes=f"{image.size_bytes:,}", bits=image.bit_depth),
        reduced=[reduction_text(words, one) for one in receipt.reductions],
        referred=" · ".join(f"{one.handle} {roles.get(one.role, one.role)}".strip() for one in receipt.references),
        reference_mode=_reference_mode(words, receipt),
        # No style phrase went into the prompt of a sketch; its look is drawn.
        styles=[(one.name, drawn if receipt.is_sketch else "; ".join(one.phrases)) for one in receipt.styles],
        missing=words(f"style_missing.{missing.reason}", style=missing.requested) if missing else "",
        # A style that the agent chose by itself and the library does not have is only mentioned in the rows.
        is_missed=missing and (missing.is_asked_for or missing.reason is not MissingStyleReason.UNKNOWN),
        facts=[(fact.item, fact.source) for fact in receipt.facts],
        captions=[
            words("receipt.written" if one.is_written else "receipt.not_written", words=one.text)
            for one in receipt.captions
        ],
        review=_review(words, picture),
        outside=outside,
        tokens=_tokens(words, receipt),
        price=price(words, receipt.price_usd),
        time=words("receipt.seconds", seconds=f"{receipt.seconds:.1f}") if receipt.seconds else "",
        has_other_model=is_another,
        can_repaint=repainter(view.offers, receipt) is not None,
        can_enlarge=asked_pixels(receipt) is not None,
    )


def repainter(offers: Sequence[Offer], receipt: Receipt) -> Offer | None:
    """Return the image model that can paint the picture again at the size that was asked and not delivered.

    None for a sketch, whose model has one size, and where no model in use has that size.
    """
    if "resolution" not in receipt.shortfalls or receipt.is_sketch:
        return None
    size, ratio = receipt.asked_resolution, receipt.asked_aspect_ratio
    able = (one for one in offers if size in one.resolutions and (ratio is None or ratio in one.aspect_ratios))
    return next(able, None)


def asked_pixels(receipt: Receipt) -> tuple[int, int] | None:
    """Return the pixels that a sketch is enlarged to: in its own ratio, as long as the size that was asked for.

    None when no size was missed, or the size has no pixels of its own (`2K`, `4K` or `1024×768` have).
    """
    if "resolution" not in receipt.shortfalls or not receipt.is_sketch or not receipt.width or not receipt.height:
        return None
    wide, _, high = (receipt.asked_resolution or "").partition("×")
    if wide.isdecimal() and high.isdecimal():
        return int(wide), int(high)
    if not _THOUSANDS.fullmatch(wide):
        return None
    scale = int(wide[:-1]) * 1024 / (receipt.width * receipt.height) ** 0.5
    return round(receipt.width * scale), round(receipt.height * scale)


def changes_text(words: Words, changes: Sequence[AdjustmentChange]) -> str:
    """Return the changes of an exact adjustment, in words."""
    parts = (words(f"change.{one.kind}", amount=f"{one.amount:g}", ratio=one.ratio) for one in changes)
    return words("did.join").join(parts)


def _reference_mode(words: Words, receipt: Receipt) -> str:
    """Return which pictures the user had shown to the model; empty where the agent chose."""
    if receipt.asked_reference_mode is None:
        return ""
    count = f" ×{receipt.asked_reference_count}" if receipt.asked_reference_count else ""
    return words(REFERENCE_MODES[receipt.asked_reference_mode]) + count


def _review(words: Words, picture: Picture) -> str:
    """Return the result of the review and what is missing, or that there was no review."""
    review = picture.review
    if review is None:
        is_sketch = picture.receipt is not None and picture.receipt.is_sketch
        return words("review.none_sketch" if is_sketch else "review.none")
    missed = [item.wish for item in review.checklist if item.is_met is False and not item.check]
    missing = words("receipt.missed", wishes="; ".join(missed)) if missed else ""
    return " · ".join(part for part in (review_text(words, review), missing) if part)


def _tokens(words: Words, receipt: Receipt) -> str:
    usage = receipt.usage
    if not usage.total_tokens:
        return ""
    out = usage.output_tokens + usage.thought_tokens
    counted = {"prompt": f"{usage.prompt_tokens:,}", "image": f"{usage.image_tokens:,}", "output": f"{out:,}"}
    kinds = [words("receipt.token_line", **counted)]
    more = (
        (usage.thought_tokens, "receipt.token_thoughts"),
        (usage.cached_tokens, "receipt.token_cached"),
        (usage.tool_tokens, "receipt.token_tools"),
        (usage.search_queries, "receipt.token_searches"),
    )
    return " · ".join([*kinds, *(words.counted(key, count) for count, key in more if count)])


def _shortfalls(words: Words, receipt: Receipt) -> str:
    """Return what was asked and not delivered, in words."""
    keys = (f"receipt.short_{name}" for name in receipt.shortfalls)
    return words("did.join").join(words(key) if key in words.table else key for key in keys)


# What a review found, and what came of an edit


def review_text(words: Words, review: Review) -> str:
    """Return the result of a review: how many of the requested and checked things are there. Never a score."""
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
    """What is shown of a review: colour, icon and text of its badge, the text beside it, and whether there is more
    to unfold. `by` says who reviewed."""

    review: Review
    tone: str
    icon: str
    text: str
    tally: str
    feedback: str
    by: str

    @property
    def looks(self) -> Mapping[bool | None, tuple[str, str, str]]:
        """Icon, text key and CSS class for met, not met, and not checked."""
        return _LOOKS

    @property
    def has_more(self) -> bool:
        """Whether anything unfolds."""
        return bool(self.review.checklist or self.review.lettering or self.feedback or self.review.suggestions)


def shown_review(words: Words, review: Review | None) -> ReviewShown | None:
    """Return what is shown of a review. The badge's icon and text say the same as its colour."""
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
    """Whether no model reviewed: the first records hold such checks of ratio, size and lettering with a score."""
    return not review.model_label and bool(review.checklist) and all(item.check for item in review.checklist)


def _tally(words: Words, review: Review) -> str:
    """Return the text beside the badge: what was not checked, or the only sentence of a review without a list."""
    if _is_studios_own(review):
        return ""
    unseen = len(review.checklist) - len(review.looked_at)
    if review.looked_at:
        parts = [words("review.as_asked"), words.counted("review.unseen", unseen) if unseen else ""]
        return words("did.join").join(part for part in parts if part)
    return review.feedback


class Line(NamedTuple):
    """A line under a picture; for each of its `buttons` the action, the key of its label, and its icon."""

    tone: str
    icon: str
    text: str
    buttons: Sequence[tuple[str, str, str]] = ()


def edit_lines(view: View, picture: Picture) -> Markup:
    """Return the lines under a picture: the result of an edit, and where less than the picture's own size or bit
    depth was used; empty when there is nothing to say."""
    words, receipt = view.words, picture.receipt
    reduced = [_reduction(words, one) for one in (receipt.reductions if receipt else ())]
    came: list[Line] = []
    if picture.edit is not None:
        came = _edit(words, picture.edit, has_numbers=bool(reduced))
    elif picture.drift is not None:
        came = [_drift(words, picture.drift)]
    return view.render("thread/edit.html", groups=(came, reduced), handle=picture.handle)


def reduction_text(words: Words, reduction: Reduction) -> str:
    """Return a sentence that says where less than all of a picture was used."""
    full, used = size_text(words, reduction.full), size_text(words, reduction.used)
    if reduction.kind is ReductionKind.SHAPE:
        full, used = (f"{one.width}×{one.height}" for one in (reduction.full, reduction.used))
    return words(f"reduction.{reduction.kind}", handle=reduction.handle, full=full, used=used)


def size_text(words: Words, size: PixelSize) -> str:
    """Return pixels and bits as people read them."""
    return words("reduction.size", width=size.width, height=size.height, bits=size.bit_depth)


def notice_lines(words: Words, codes: Sequence[str]) -> list[Line]:
    """Return what should be known before a masked edit is paid for."""
    return [Line("short", "triangle-alert", words(f"notice.{code}")) for code in codes]


def _reduction(words: Words, reduction: Reduction) -> Line:
    is_flat = reduction.kind is ReductionKind.TRANSPARENCY
    back = [("keep_transparency", "edit.keep_transparency", "undo-2")] if is_flat else []
    return Line("short", "scaling", reduction_text(words, reduction), back)


def _edit(words: Words, edit: EditRecord, *, has_numbers: bool) -> list[Line]:
    """Return the lines of a masked edit; `has_numbers` when another line already says how much softer the part is."""
    lines = _verdict(words, edit)
    if edit.spill_px and edit.grown_mask is not None and not edit.is_set_aside:
        spills = words("edit.spills", pixels=edit.spill_px)
        lines.append(Line("short", "triangle-alert", spills, [("grow_mask", "edit.grow", "expand")]))
    # The spill has a line of its own, with its number and what to do. A lack of structure to align by is told before
    # painting, and afterwards is a doubt of the verdict.
    told_elsewhere = {"spills", "little_to_align_by", *(("softer",) if has_numbers else ())}
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
    text = words("edit.changed", share=f"{drift.changed_share:.0%}", handle=drift.base)
    shift = max(abs(drift.shift_px[0]), abs(drift.shift_px[1]))
    if shift >= _SHIFT_PX or abs(drift.scale - 1) >= _ZOOM:
        text += " " + words("edit.drifted", pixels=f"{shift:.1f}", zoom=f"{drift.scale:.3f}")
    keep = [("keep_only", "edit.keep_only", "crop")] if drift.changed_share else []
    return Line("unseen", "git-compare", text, keep)

"""The receipt of a picture as HTML: asked against got, in one line and in full, and what can be done about it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from markupsafe import Markup

from agent import AdjustmentChange, MissingStyleReason, Picture, Receipt, ReferenceRole, shape_of
from webui.features.composer import REFERENCE_MODES
from webui.features.viewer.notes import reduction_text, review_text
from webui.view import Offer, View
from webui.words import Words

# `2K` is as many pixels as a square of 2048 has.
_THOUSANDS = re.compile(r"[1-9]\d?K")


def price(words: Words, dollars: float) -> str:
    """Return an amount as a person reads it: whole cents, more digits below one cent, `free` for nothing."""
    if dollars <= 0:
        return words("receipt.free")
    return f"${dollars:.2f}" if dollars >= 0.01 else f"${dollars:.4f}"


def receipt_line(words: Words, receipt: Receipt) -> str:
    """Return the receipt in one line: model, ratio, size asked and pixels got, price, seconds, sources."""
    size = f"{receipt.width}×{receipt.height}"
    if receipt.asked_resolution and not receipt.is_sketch:
        size = f"{receipt.asked_resolution} → {size}"
    parts = [_model(words, receipt), changes_text(words, receipt.changes)]
    parts += [receipt.asked_aspect_ratio or "", size, price(words, receipt.price_usd)]
    parts.append(words("receipt.seconds", seconds=f"{receipt.seconds:.0f}") if receipt.seconds >= 1 else "")
    parts.append(words.counted("receipt.source_count", len(receipt.sources)) if receipt.sources else "")
    return " · ".join(part for part in parts if part)


def receipt_html(view: View, picture: Picture, *, is_folded: bool = False) -> Markup:
    """Return every row of the picture's receipt and its buttons; empty for an upload.

    One that is folded is a line which unfolds to the whole. Below it stands, until the person is content with it, what
    was asked and not delivered, and what can be done about it.
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
        model_name=_model(words, receipt),
        got=f"{asked} → {got}" if asked else got,
        shortfalls=_shortfalls(words, receipt),
        format=words("receipt.bytes", type=image.mime_type, bytes=f"{image.size_bytes:,}", bits=image.bit_depth),
        reduced=[reduction_text(words, one) for one in receipt.reductions],
        referred=" · ".join(f"{one.handle} {roles.get(one.role, one.role)}".strip() for one in receipt.references),
        reference_mode=_reference_mode(words, receipt),
        # In a sketch no phrase went into the prompt, and the look is drawn.
        styles=[(one.name, drawn if receipt.is_sketch else "; ".join(one.phrases)) for one in receipt.styles],
        missing=words(f"style_missing.{missing.reason}", style=missing.requested) if missing else "",
        # A style that the agent thought of by itself, and the library has not, is told among the rows alone.
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

    None for a sketch, whose model has one size, and where no model in use has that one.
    """
    if "resolution" not in receipt.shortfalls or receipt.is_sketch:
        return None
    size, ratio = receipt.asked_resolution, receipt.asked_aspect_ratio
    able = (one for one in offers if size in one.resolutions and (ratio is None or ratio in one.aspect_ratios))
    return next(able, None)


def asked_pixels(receipt: Receipt) -> tuple[int, int] | None:
    """Return the pixels a sketch is enlarged to: of its own ratio, as long as the size that was asked for.

    None when no size was missed, or it has no pixels of its own (`2K`, `4K` or `1024×768` have).
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


def _model(words: Words, receipt: Receipt) -> str:
    """Return the model's name on the page; what the studio does itself has a name in every language."""
    if receipt.is_exact:
        return words("receipt.exact")
    return words("composer.sketch") if receipt.is_sketch else receipt.model_label


def changes_text(words: Words, changes: Sequence[AdjustmentChange]) -> str:
    """Return what an exact adjustment did, in words."""
    said = (words(f"change.{one.kind}", amount=f"{one.amount:g}", ratio=one.ratio) for one in changes)
    return words("did.join").join(said)


def _reference_mode(words: Words, receipt: Receipt) -> str:
    """Return which pictures the person had shown to the model; empty where the agent chose."""
    if receipt.asked_reference_mode is None:
        return ""
    count = f" ×{receipt.asked_reference_count}" if receipt.asked_reference_count else ""
    return words(REFERENCE_MODES[receipt.asked_reference_mode]) + count


def _review(words: Words, picture: Picture) -> str:
    """Return what the look came to and what is missing; that nobody looked, where nobody did."""
    review = picture.review
    if review is None:
        is_sketch = picture.receipt is not None and picture.receipt.is_sketch
        return words("review.none_sketch" if is_sketch else "review.none")
    missed = [item.wish for item in review.checklist if item.is_met is False and not item.check]
    told = words("receipt.missed", wishes="; ".join(missed)) if missed else ""
    return " · ".join(part for part in (review_text(words, review), told) if part)


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

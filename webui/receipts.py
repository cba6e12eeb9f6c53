"""The receipt of a picture as HTML: asked against got, in one line and in full, and what can be done about it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape

from agent import (
    AdjustmentChange,
    MissingStyle,
    MissingStyleReason,
    Picture,
    Receipt,
    ReferenceRole,
    shape_of,
)
from webui.cards import View, button, source_links
from webui.icons import icon
from webui.offers import Offer
from webui.panels.composer import REFERENCE_MODES
from webui.picture_notes import reduction_text, review_text
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


def folded_receipt(view: View, picture: Picture) -> str:
    """Return the receipt under a picture: its line, which unfolds to the whole; empty for an upload.

    Below it, until the person is content with it, what was asked and not delivered, and what can be done about it.
    """
    receipt = picture.receipt
    if receipt is None:
        return ""
    line = escape(receipt_line(view.words, receipt))
    return (
        f'<details class="receipt"><summary><span>{line}</span>{icon("chevron-down", 14)}</summary>'
        f"{whole_receipt(view, picture)}</details>{_shortfall(view, picture, receipt)}"
        f"{missing_style_line(view.words, receipt)}"
    )


def whole_receipt(view: View, picture: Picture) -> str:
    """Return every row of the picture's receipt and its buttons; empty for an upload."""
    receipt = picture.receipt
    if receipt is None:
        return ""
    return receipt_rows(view, receipt, picture) + _buttons(view, picture, receipt)


def receipt_rows(view: View, receipt: Receipt, picture: Picture | None = None) -> str:
    """Return every row of the receipt; those about the file, the review and the mask only with the picture."""
    words = view.words
    said = receipt.user_text if receipt.user_text.strip() != receipt.prompt.strip() else ""
    rows = [
        (words("receipt.changes"), escape(changes_text(words, receipt.changes))),
        (words("receipt.prompt"), _said(receipt.prompt)),
        (words("receipt.words"), _said(said)),
        (words("receipt.model"), f"{escape(_model(words, receipt))} <code>{escape(receipt.model)}</code>"),
        (words("receipt.got"), _got(words, receipt)),
        (words("receipt.format"), _format(words, picture)),
        (words("receipt.reduced"), "<br>".join(escape(reduction_text(words, one)) for one in receipt.reductions)),
        (words("receipt.avoided"), _said(receipt.asked_negative_prompt)),
        (words("receipt.references"), _references(words, receipt)),
        (words("receipt.reference_mode"), _reference_mode(words, receipt)),
        (words("receipt.styles"), _styles(words, receipt)),
        (words("receipt.facts"), _facts(receipt)),
        (words("receipt.sources"), source_links(receipt.sources)),
        (words("receipt.lettering"), _captions(words, receipt)),
        (words("receipt.review"), _review(words, picture)),
        (words("receipt.outside"), _outside(words, picture)),
        (words("receipt.tokens"), _tokens(words, receipt)),
        (words("receipt.price"), escape(price(words, receipt.price_usd))),
        (words("receipt.time"), _time(words, receipt)),
        (words("receipt.attempts"), str(receipt.attempts) if receipt.prompt else ""),
        (words("receipt.finish"), escape(receipt.finish_reason)),
    ]
    return "<dl>" + "".join(f"<dt>{escape(name)}</dt><dd>{value}</dd>" for name, value in rows if value) + "</dl>"


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


def _shortfall(view: View, picture: Picture, receipt: Receipt) -> str:
    """Return the line about what was not delivered, with the ways on; empty when there is nothing to say."""
    if not receipt.shortfalls or picture.shortfall_kept:
        return ""
    words, handle = view.words, picture.handle
    buttons = button(
        "retry",
        words("receipt.ask_again"),
        "refresh-cw",
        "line",
        arg=picture.turn_id,
        price=view.turn_price,
    )
    size = receipt.asked_resolution or ""
    if repainter(view.offers, receipt) is not None:
        label, why = words("receipt.repaint", size=size), words("receipt.repaint_title")
        buttons += _recipe_button("upscale", label, "image-upscale", handle, why)
    elif asked_pixels(receipt) is not None:
        buttons += _recipe_button(
            "upscale", words("receipt.enlarge"), "image-upscale", handle, words("receipt.enlarge_title")
        )
    buttons += _recipe_button("keep", words("receipt.keep"), "check", handle)
    return (
        f'<p class="edit-line short shortfall">{icon("triangle-alert", 14)}<span>{_shortfalls(words, receipt)}</span>'
        f"{buttons}</p>"
    )


def _buttons(view: View, picture: Picture, receipt: Receipt) -> str:
    """Return what can be done with a receipt: begin from it again, or let the other model have a try."""
    words, handle = view.words, picture.handle
    if not receipt.user_text.strip():
        return ""
    shown = _recipe_button("reuse", words("receipt.reuse"), "rotate-ccw", handle)
    if len(view.offers) > 1 and receipt.prompt and not receipt.is_sketch and picture.edit is None:
        shown += _recipe_button("other_model", words("receipt.other_model"), "arrow-left-right", handle)
    return f'<div class="receipt-acts">{shown}</div>'


def _recipe_button(act: str, label: str, icon_name: str, handle: str, title: str = "") -> str:
    named = f' title="{escape(title)}"' if title else ""
    return (
        f'<button type="button" class="b line" data-recipe="{act}" data-arg="{escape(handle)}"{named}>'
        f"{icon(icon_name, 15)}<span>{escape(label)}</span></button>"
    )


def _said(text: str) -> str:
    return f"<span class='said'>{escape(text)}</span>" if text.strip() else ""


def _model(words: Words, receipt: Receipt) -> str:
    """Return the model's name on the page; what the studio does itself has a name in every language."""
    if receipt.is_exact:
        return words("receipt.exact")
    return words("composer.sketch") if receipt.is_sketch else receipt.model_label


def changes_text(words: Words, changes: Sequence[AdjustmentChange]) -> str:
    """Return what an exact adjustment did, in words."""
    said = (words(f"change.{one.kind}", amount=f"{one.amount:g}", ratio=one.ratio) for one in changes)
    return words("did.join").join(said)


def _got(words: Words, receipt: Receipt) -> str:
    asked = " ".join(part for part in (receipt.asked_resolution, receipt.asked_aspect_ratio) if part)
    shape = shape_of(receipt.width, receipt.height)
    got = f"{receipt.width}×{receipt.height}{f' ({shape})' if shape else ''}"
    text = escape(f"{asked} → {got}" if asked else got)
    if receipt.shortfalls:
        return f"{text} <span class='short'>{icon('triangle-alert', 13)}{_shortfalls(words, receipt)}</span>"
    return f"{text} <span class='ok'>{icon('check', 13)}{escape(words('receipt.as_asked'))}</span>"


def _format(words: Words, picture: Picture | None) -> str:
    if picture is None:
        return ""
    image = picture.image
    told = words("receipt.bytes", type=image.mime_type, bytes=f"{image.size_bytes:,}", bits=image.bit_depth)
    return escape(told)


def _references(words: Words, receipt: Receipt) -> str:
    named = " · ".join(escape(f"{one.handle} {_role(words, one.role)}".strip()) for one in receipt.references)
    if receipt.left_out:
        left_out = escape(words.counted("receipt.left_out", receipt.left_out))
        named = f"{named} <span class='short'>{left_out}</span>"
    return named


def _reference_mode(words: Words, receipt: Receipt) -> str:
    """Return which pictures the person had shown to the model; empty where the agent chose."""
    if receipt.asked_reference_mode is None:
        return ""
    count = f" ×{receipt.asked_reference_count}" if receipt.asked_reference_count else ""
    return escape(words(REFERENCE_MODES[receipt.asked_reference_mode]) + count)


def _role(words: Words, role: str) -> str:
    return words(f"role.{role}") if role in set(ReferenceRole) else role


def _styles(words: Words, receipt: Receipt) -> str:
    """Return the styles with what went into the prompt for them; in a sketch none of it did, and the look is drawn."""
    told = []
    for style in receipt.styles:
        phrases = escape(words("receipt.style_drawn") if receipt.is_sketch else "; ".join(style.phrases))
        told.append(f"{escape(style.name)}{f' <small>{phrases}</small>' if phrases else ''}")
    if receipt.missing_style is not None:
        told.append(f"<span class='short'>{escape(missing_style_sentence(words, receipt.missing_style))}</span>")
    return "<br>".join(told)


_MISSING_STYLES = {
    MissingStyleReason.UNKNOWN: "style_missing.unknown",
    MissingStyleReason.NOT_DRAWN: "style_missing.not_drawn",
    MissingStyleReason.LATE: "style_missing.late",
    MissingStyleReason.FAILED: "style_missing.failed",
}


def missing_style_sentence(words: Words, missing: MissingStyle) -> str:
    """Return why a style that was asked for is not among those of the picture."""
    return words(_MISSING_STYLES[missing.reason], style=missing.requested)


def missing_style_line(words: Words, receipt: Receipt) -> str:
    """Return the line under a picture about a style that it lacks; empty where the person asked for none of the kind.

    A style that the agent thought of by itself, and the library has not, stands on the receipt alone.
    """
    missing = receipt.missing_style
    if missing is None or not (missing.is_asked_for or missing.reason is not MissingStyleReason.UNKNOWN):
        return ""
    said = escape(missing_style_sentence(words, missing))
    return f'<p class="edit-line short style-missing">{icon("palette", 14)}<span>{said}</span></p>'


def _facts(receipt: Receipt) -> str:
    return "<br>".join(f"{escape(fact.item)} <small>{escape(fact.source)}</small>" for fact in receipt.facts)


def _review(words: Words, picture: Picture | None) -> str:
    """Return what the look came to and what is missing; that nobody looked, where nobody did."""
    if picture is None:
        return ""
    review = picture.review
    if review is None:
        is_sketch = picture.receipt is not None and picture.receipt.is_sketch
        return escape(words("review.none_sketch" if is_sketch else "review.none"))
    missed = [item.wish for item in review.checklist if item.is_met is False and not item.check]
    told = words("receipt.missed", wishes="; ".join(missed)) if missed else ""
    return escape(" · ".join(part for part in (review_text(words, review), told) if part))


def _captions(words: Words, receipt: Receipt) -> str:
    """Return the words a sketch was to hold, and whether it does."""
    said = (
        words("receipt.written" if one.is_written else "receipt.not_written", words=one.text)
        for one in receipt.captions
    )
    return "<br>".join(map(escape, said))


def _outside(words: Words, picture: Picture | None) -> str:
    edit = picture.edit if picture else None
    if edit is None or not edit.outside or edit.is_set_aside:
        return ""
    return escape(words("receipt.changed", changed=f"{edit.changed_outside:,}", outside=f"{edit.outside:,}"))


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
    return escape(" · ".join([*kinds, *(words.counted(key, count) for count, key in more if count)]))


def _time(words: Words, receipt: Receipt) -> str:
    return escape(words("receipt.seconds", seconds=f"{receipt.seconds:.1f}")) if receipt.seconds else ""


def _shortfalls(words: Words, receipt: Receipt) -> str:
    """Return what was asked and not delivered, in words."""
    keys = (f"receipt.short_{name}" for name in receipt.shortfalls)
    return escape(words("did.join").join(words(key) if key in words.table else key for key in keys))

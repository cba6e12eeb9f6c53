"""The receipt of a picture as HTML: asked against got, in one line and in full, and what can be done about it."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from agent.adjusting import Change
from agent.pictures import EXACT_ADJUSTMENT, Picture, Receipt, ReferenceRole, shape_of
from webui.cards import View, button, source_links
from webui.icons import icon
from webui.offers import Offer
from webui.review_cards import score_text
from webui.words import Words


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
        (words("receipt.references"), _references(words, receipt)),
        (words("receipt.styles"), _styles(receipt)),
        (words("receipt.facts"), _facts(receipt)),
        (words("receipt.sources"), source_links(receipt.sources)),
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
    edge = {"1K": 1024, "2K": 2048, "4K": 4096}.get(wide)
    if edge is None:
        return None
    scale = edge / (receipt.width * receipt.height) ** 0.5
    return round(receipt.width * scale), round(receipt.height * scale)


def _shortfall(view: View, picture: Picture, receipt: Receipt) -> str:
    """Return the line about what was not delivered, with the ways on; empty when there is nothing to say."""
    if not receipt.shortfalls or picture.shortfall_kept:
        return ""
    words, handle = view.words, picture.handle
    buttons = button("retry", words("receipt.ask_again"), "refresh-cw", "line", arg=picture.turn_id)
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
    if receipt.model == EXACT_ADJUSTMENT:
        return words("receipt.exact")
    return words("composer.sketch") if receipt.is_sketch else receipt.model_label


def changes_text(words: Words, changes: Sequence[Change]) -> str:
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
    return escape(words("receipt.bytes", type=image.mime_type, bytes=f"{image.size_bytes:,}"))


def _references(words: Words, receipt: Receipt) -> str:
    named = " · ".join(escape(f"{one.handle} {_role(words, one.role)}".strip()) for one in receipt.references)
    if receipt.left_out:
        left_out = escape(words("receipt.left_out", count=receipt.left_out))
        named = f"{named} <span class='short'>{left_out}</span>"
    return named


def _role(words: Words, role: str) -> str:
    return words(f"role.{role}") if role in set(ReferenceRole) else role


def _styles(receipt: Receipt) -> str:
    told = []
    for style in receipt.styles:
        phrases = escape("; ".join(style.phrases))
        told.append(f"{escape(style.name)}{f' <small>{phrases}</small>' if phrases else ''}")
    return "<br>".join(told)


def _facts(receipt: Receipt) -> str:
    return "<br>".join(f"{escape(fact.item)} <small>{escape(fact.source)}</small>" for fact in receipt.facts)


def _review(words: Words, picture: Picture | None) -> str:
    """Return the score and what is not met; empty for a picture that nobody looked at."""
    if picture is None or picture.review is None:
        return ""
    missed = [
        words(f"check.{item.check}") if item.check else item.wish
        for item in picture.review.checklist
        if not item.is_met
    ]
    told = words("receipt.missed", wishes="; ".join(missed)) if missed else ""
    return escape(" · ".join(part for part in (score_text(words, picture.review), told) if part))


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
    return escape(" · ".join([*kinds, *(words(key, count=f"{count:,}") for count, key in more if count)]))


def _time(words: Words, receipt: Receipt) -> str:
    return escape(words("receipt.seconds", seconds=f"{receipt.seconds:.1f}")) if receipt.seconds else ""


def _shortfalls(words: Words, receipt: Receipt) -> str:
    """Return what was asked and not delivered, in words."""
    keys = (f"receipt.short_{name}" for name in receipt.shortfalls)
    return escape(words("did.join").join(words(key) if key in words.table else key for key in keys))

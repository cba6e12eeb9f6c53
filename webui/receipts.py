"""The receipt of a picture as HTML: asked against got, in one line and in full."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from agent.adjusting import Change
from agent.pictures import EXACT_ADJUSTMENT, Picture, Receipt, ReferenceRole
from webui.cards import View, source_links
from webui.icons import icon
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
    """Return the receipt under a picture: its line, which unfolds to the whole; empty for an upload."""
    receipt = picture.receipt
    if receipt is None:
        return ""
    is_short = bool(receipt.shortfalls)
    line = escape(receipt_line(view.words, receipt))
    warning = (
        f'<span class="short">{icon("triangle-alert", 13)}{_shortfalls(view.words, receipt)}</span>' if is_short else ""
    )
    return (
        f'<details class="receipt"><summary><span>{line}</span>{warning}{icon("chevron-down", 14)}</summary>'
        f"{receipt_rows(view, receipt)}</details>"
    )


def receipt_rows(view: View, receipt: Receipt) -> str:
    """Return every row of the receipt."""
    words = view.words
    rows = [
        (words("receipt.changes"), escape(changes_text(words, receipt.changes))),
        (words("receipt.prompt"), f"<span class='said'>{escape(receipt.prompt)}</span>" if receipt.prompt else ""),
        (words("receipt.model"), f"{escape(_model(words, receipt))} <code>{escape(receipt.model)}</code>"),
        (words("receipt.got"), _got(words, receipt)),
        (words("receipt.references"), _references(words, receipt)),
        (words("receipt.styles"), " · ".join(escape(style.name) for style in receipt.styles)),
        (words("receipt.facts"), _facts(receipt)),
        (words("receipt.sources"), source_links(receipt.sources)),
        (words("receipt.tokens"), _tokens(words, receipt)),
        (words("receipt.price"), escape(price(words, receipt.price_usd))),
        (words("receipt.attempts"), str(receipt.attempts) if receipt.attempts > 1 else ""),
        (words("receipt.finish"), escape(receipt.finish_reason)),
    ]
    return "<dl>" + "".join(f"<dt>{escape(name)}</dt><dd>{value}</dd>" for name, value in rows if value) + "</dl>"


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
    got = f"{receipt.width}×{receipt.height}"
    text = escape(f"{asked} → {got}" if asked else got)
    if receipt.shortfalls:
        return f"{text} <span class='short'>{icon('triangle-alert', 13)}{_shortfalls(words, receipt)}</span>"
    return f"{text} <span class='ok'>{icon('check', 13)}{escape(words('receipt.as_asked'))}</span>"


def _references(words: Words, receipt: Receipt) -> str:
    named = " · ".join(escape(f"{one.handle} {_role(words, one.role)}".strip()) for one in receipt.references)
    if receipt.left_out:
        left_out = escape(words("receipt.left_out", count=receipt.left_out))
        named = f"{named} <span class='short'>{left_out}</span>"
    return named


def _role(words: Words, role: str) -> str:
    return words(f"role.{role}") if role in set(ReferenceRole) else role


def _facts(receipt: Receipt) -> str:
    return "<br>".join(f"{escape(fact.item)} <small>{escape(fact.source)}</small>" for fact in receipt.facts)


def _tokens(words: Words, receipt: Receipt) -> str:
    usage = receipt.usage
    if not usage.total_tokens:
        return ""
    out = usage.output_tokens + usage.thought_tokens
    return escape(
        words(
            "receipt.token_line",
            prompt=f"{usage.prompt_tokens:,}",
            image=f"{usage.image_tokens:,}",
            output=f"{out:,}",
        )
    )


def _shortfalls(words: Words, receipt: Receipt) -> str:
    """Return what was asked and not delivered, in words."""
    keys = (f"receipt.short_{name}" for name in receipt.shortfalls)
    return escape(words("did.join").join(words(key) if key in words.table else key for key in keys))

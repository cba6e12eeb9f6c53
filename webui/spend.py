"""Prices as the page shows them: before Send, on a plan, and at the foot of the rail."""

from __future__ import annotations

from datetime import UTC, datetime
from hashlib import sha256
from math import ceil, inf
from typing import Any, Literal

from markupsafe import Markup
from pydantic import Field

from agent import (
    MAX_PICTURES_PER_MESSAGE,
    CapPassed,
    Catalogue,
    Conversation,
    Estimate,
    EstimatePart,
    ModelEntry,
    PartKind,
    Preferences,
    SpendSums,
    Value,
    expand_prompt_price,
    format_usd,
    needs_no_model,
    turn_estimate,
)
from webui.features.composer import ChosenSettings
from webui.shell.templates import render
from webui.view import IMAGE_MODEL_ROLES
from webui.words import Words

# A range whose ends are nearer than this is shown as one price.
_ONE_PRICE = 1.25
_MOST_CHARACTERS = 2_000_000
_LONGEST_TEXT = 2000
_MOST_BESIDE = 200


def dollars(amount: float) -> str:
    """Return an amount as text: whole cents, with more digits below one cent."""
    return f"${format_usd(amount)}"


def price(words: Words, amount: float) -> str:
    """Return a price as text, `free` for nothing."""
    return dollars(amount) if amount > 0 else words("receipt.free")


def dollars_up(amount: float) -> str:
    """Return a maximum as text, rounded up: to whole cents, and below ten cents to tenths of a cent."""
    tenths = ceil(amount * 1000 - 1e-6)
    if tenths >= 100 or tenths % 10 == 0:
        return dollars(ceil(tenths / 10) / 100)
    return f"${tenths / 1000:.3f}"


class MessageFacts(Value):
    """What a message consists of besides its text, as the page's script counts it: its length in steps, the files in
    the box, the marked pictures, and how many of them have a mask. `about` is the picture that the text alone would
    change; empty unless it is a single one."""

    characters: int = Field(default=0, ge=0, le=_MOST_CHARACTERS)
    files: int = Field(default=0, ge=0, le=_MOST_BESIDE)
    marked: int = Field(default=0, ge=0, le=_MOST_BESIDE)
    masks: int = Field(default=0, ge=0, le=MAX_PICTURES_PER_MESSAGE)
    text: str = Field(default="", max_length=_LONGEST_TEXT)
    about: Literal["", "target", "picture", "part"] = ""


def chosen_estimate(
    catalogue: Catalogue,
    provider: str,
    chosen: ChosenSettings,
    beside: MessageFacts | None = None,
    conversation: Conversation | None = None,
) -> Estimate:
    """Return the likely cost of a message with these settings today, and its maximum.

    Raises ValueError for values that the composer does not offer.
    """
    more = beside or MessageFacts()
    if more.about and needs_no_model(more.text, more.about):
        return Estimate()
    return turn_estimate(
        catalogue,
        provider,
        None,
        conversation,
        chosen.turn_settings(),
        datetime.now(UTC).date(),
        text=more.text,
        characters=more.characters,
        pictures=more.marked + more.files,
        masks=more.masks,
    )


def button_prices(catalogue: Catalogue, provider: str) -> dict[str, str]:
    """Return the maximum prices of buttons: `turn` for a message that is sent once more, and by the model's id for one
    repainted picture. Also the likely price of a message with each model, by `setting:value`.

    Left out where it is free or the price is unknown.
    """

    def guess(**chosen: Any) -> Estimate:
        return chosen_estimate(catalogue, provider, ChosenSettings(**chosen))

    turn, text = guess(), (PartKind.TEXT, PartKind.THINKING)
    prices = {
        "turn": _at_most(turn),
        "text_model:flash": _likely(turn, *text),
        "text_model:thinking": _likely(guess(text_model="thinking"), *text),
    }
    for name, role in IMAGE_MODEL_ROLES.items():
        prices[f"image_model:{name}"] = _likely(guess(image_model=name, number_of_images="1"), PartKind.PICTURES)
        prices[catalogue.model(role, provider).id] = _at_most(guess(image_model=name))
    return {name: price for name, price in prices.items() if price}


def _at_most(guess: Estimate) -> str:
    return dollars_up(guess.most_usd) if guess.most_usd > 0 and not guess.unpriced else ""


def _likely(guess: Estimate, *kinds: PartKind) -> str:
    amount = sum(part.high_usd for part in guess.parts if part.kind in kinds)
    return f"≈ {dollars(amount)}" if amount > 0 and not guess.unpriced else ""


def maximum_token(guess: Estimate, chosen: ChosenSettings) -> str:
    """Return the maximum as the page keeps it, with a digest of the settings that it was computed for; empty for
    none."""
    return f"{_sign_of(chosen)} {guess.most_usd!r}" if guess.most_usd > 0 else ""


def shown_maximum(token: str, chosen: ChosenSettings) -> float | None:
    """Return the maximum that the page shows, as written by `maximum_token`; None if it was for other settings."""
    sign, _, amount = token.partition(" ")
    try:
        most_usd = float(amount)
    except ValueError:
        return None
    return most_usd if sign == _sign_of(chosen) and 0 < most_usd < inf else None


def _sign_of(chosen: ChosenSettings) -> str:
    return sha256(chosen.model_dump_json().encode()).hexdigest()[:16]


def estimate_html(words: Words, guess: Estimate, beside: str = "", maximum: str = "") -> Markup:
    """Return the price before Send: free, a range with its maximum, or unknown; with its parts as a tooltip.

    A price that depends on more than the text carries those facts, for the script to compare. The script sends back
    `maximum`, as `maximum_token` wrote it.
    """
    if guess.unpriced:
        most = maximum = ""
        shown, why = "—", words("spend.unknown", models=words("did.join").join(guess.unpriced))
    else:
        most = words("spend.at_most", amount=dollars_up(guess.most_usd))
        shown, why = _range(guess.low_usd, guess.high_usd), "\n".join((most, *_breakdown(words, guess)))
    return render(
        "composer/price.html",
        words,
        is_free=guess.is_free,
        shown=shown,
        why=why,
        beside=beside,
        most=most,
        maximum=maximum,
    )


def expand_price(words: Words, model: ModelEntry) -> str:
    """Return the price of having a text model expand a prompt."""
    if model.is_sketch:
        return words("aids.expand_rules")
    if not model.prices:
        return words("aids.expand_unpriced", model=model.label)
    return words(
        "aids.expand_price", model=model.label, price=dollars(expand_prompt_price(model, datetime.now(UTC).date()))
    )


def cap_sentence(words: Words, cap: CapPassed) -> str:
    """Return which cap would be exceeded, and by how much."""
    key = f"spend.passes_{cap.cap}"
    amounts = {"cap": cap.cap_usd, "over": cap.over_usd, "spent": cap.spent_usd, "price": cap.price_usd}
    return words(key, **{name: dollars(amount) for name, amount in amounts.items()})


def spend_html(words: Words, sums: SpendSums, caps: Preferences) -> Markup:
    """Return the foot of the rail: this month's spend and, with a daily cap, how much of it is used."""
    cap = caps.cap_day_usd
    used = 1.0 if not cap else min(1.0, sums.day_usd / cap)
    return render("conversations/spend.html", words, sums=sums, cap=cap, used=used, dollars=dollars)


def _range(low: float, high: float) -> str:
    if low <= 0 or high > low * _ONE_PRICE:
        return f"{dollars(low)}–{dollars(high).lstrip('$')}"
    return f"≈ {dollars(high)}"


def _breakdown(words: Words, guess: Estimate) -> list[str]:
    lines = [words("spend.title")]
    for part in guess.parts:
        name = _pictures(words, part) if part.kind is PartKind.PICTURES else words(f"spend.{part.kind}")
        lines.append(words("spend.part", name=name, amount=_range(part.low_usd, part.high_usd)))
    if any(part.kind is PartKind.REVIEW and part.most_usd > 0 for part in guess.parts):
        lines.append(words("spend.again"))
    return [*lines, words("spend.most", amount=dollars_up(guess.most_usd))]


def _pictures(words: Words, part: EstimatePart) -> str:
    size = f" {part.resolution}" if part.resolution else ""
    return words.counted("spend.pictures", part.count, model=f"{part.label}{size}")

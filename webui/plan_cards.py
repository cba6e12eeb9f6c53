"""The card of a plan: to be run, changed or dropped while it waits, and to be read afterwards."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape

from agent import Plan
from webui.cards import View, button, thumbs
from webui.edit_cards import notice_lines
from webui.features.viewer.receipt import price
from webui.icons import icon
from webui.offers import Offer
from webui.spend import cap_lines, dollars_up
from webui.words import Words

COUNTS = (1, 2, 3, 4)


def open_plan(view: View, plans: Sequence[Plan], turn_id: str, *, is_ready: bool = True) -> str:
    """Return the card of a plan that waits, its values in fields.

    The page's script reads the fields when Run is pressed. Until `is_ready` the plan is not on record yet and cannot
    be decided about.
    """
    words = view.words
    buttons = button(
        "run_plan", words("plan.run"), "brush", "solid", arg=turn_id, is_off=not is_ready, price=_most(view, plans)
    )
    buttons += button("drop_plan", words("plan.drop"), "", "line", arg=turn_id, is_off=not is_ready)
    fields = (_fields(view, plan, number, len(plans)) for number, plan in enumerate(plans, 1))
    # What is typed before the card is shown again would be lost.
    requests = "".join(fields if is_ready else (one.replace("<fieldset ", "<fieldset disabled ", 1) for one in fields))
    planned = f'<span class="planned" hidden>{escape(words("plan.as_planned"))} </span>'
    return (
        f'<section class="card plan" role="group" aria-label="{escape(words("plan.title"))}">'
        f"<h3>{icon('list-checks', 18)}{escape(words('plan.title'))}</h3>{requests}{cap_lines(words, plans)}"
        f'<footer>{buttons}<span class="grow"></span><span class="cost">{planned}{escape(_estimate(words, plans))}'
        "</span></footer></section>"
    )


def closed_plan(view: View, plans: Sequence[Plan], *, was_run: bool) -> str:
    """Return a plan that was decided about, folded: what was run, or what was not painted."""
    words = view.words
    head = words("plan.was_run") if was_run else words("plan.was_dropped")
    facts = _line(plans[0]) if len(plans) == 1 else words("plan.requests", count=len(plans))
    listed = "".join(f"<dl>{_rows(view, plan)}</dl>" for plan in plans)
    return (
        f'<details class="plan-past"><summary>{icon("list-checks" if was_run else "ban", 15)}'
        f"<b>{escape(head)}</b><span>{escape(facts)}</span>{icon('chevron-down', 14)}</summary>{listed}</details>"
    )


def offer_of(offers: Sequence[Offer], name: str) -> Offer | None:
    """Return what the model of a plan offers; the only one there is stands for every name."""
    return next((one for one in offers if one.name == name), offers[0] if len(offers) == 1 else None)


def _fields(view: View, plan: Plan, number: int, of: int) -> str:
    words, offers = view.words, view.offers
    legend = ""
    if of > 1:
        estimate = _estimate(words, [plan])
        legend = f"<legend>{escape(words('plan.request', number=number))} <small>{escape(estimate)}</small></legend>"
    models = [one.name for one in offers] if len(offers) > 1 else []
    missing = {one.name: words.error(one.problem) for one in offers if one.problem is not None}
    model = (
        _select(words("composer.image_model"), "model", plan.model, models, words=words, missing=missing)
        if models
        else _fixed(words("composer.image_model"), _label(words, plan))
    )
    ratios = _select(
        words("composer.aspect_ratio"), "aspect_ratio", plan.aspect_ratio, _offered(offers, "ratio"), offers=offers
    )
    sizes = ""
    if plan.resolution is not None:
        sizes = _select(
            words("composer.resolution"), "resolution", plan.resolution, _offered(offers, "size"), offers=offers
        )
    counts = _select(words("composer.count"), "number_of_images", str(plan.number_of_images), map(str, COUNTS))
    return (
        f'<fieldset data-call="{plan.call}">{legend}<label class="wide"><span>{escape(words("plan.prompt"))}</span>'
        f'<textarea name="prompt" rows="3" dir="auto" required>{escape(plan.prompt)}</textarea>'
        f'</label><div class="picks">{model}{ratios}{sizes}{counts}</div>{_pictures(view, plan)}'
        f"{_notices(words, plan)}</fieldset>"
    )


def _notices(words: Words, plan: Plan) -> str:
    told = notice_lines(words, plan.notices)
    return f'<div class="edit">{told}</div>' if told else ""


def _offered(offers: Sequence[Offer], what: str) -> list[str]:
    every = (one.aspect_ratios if what == "ratio" else one.resolutions for one in offers)
    return list(dict.fromkeys(value for values in every for value in values))


def _select(
    label: str,
    name: str,
    chosen: str,
    values: Iterable[str],
    *,
    words: Words | None = None,
    offers: Sequence[Offer] = (),
    missing: Mapping[str, str] | None = None,
) -> str:
    """Return a field with a choice, or the value alone where there is no other.

    `data-for` names the models that obey a value, for the page's script. A value in `missing` cannot be chosen, for the
    reason there.
    """
    cells, listed = [], list(dict.fromkeys((*values, chosen)))
    if len(listed) == 1:
        return _fixed(label, chosen)
    for value in listed:
        models = " ".join(one.name for one in offers if value in (*one.aspect_ratios, *one.resolutions))
        kept = f' data-for="{models}"' if models else ""
        text = words("composer.flash_pro" if value == "both" else f"composer.{value}") if words is not None else value
        mark = " selected" if value == chosen else ""
        off = f' disabled title="{escape(missing[value])}"' if missing and value in missing and not mark else ""
        cells.append(f'<option value="{escape(value)}"{kept}{mark}{off}>{escape(text)}</option>')
    return f'<label><span>{escape(label)}</span><select name="{name}">{"".join(cells)}</select></label>'


def _fixed(label: str, value: str) -> str:
    return f"<p><span>{escape(label)}</span><b>{escape(value)}</b></p>"


def _pictures(view: View, plan: Plan) -> str:
    shown = [(view.words("composer.editing"), [plan.editing] if plan.editing else [])]
    shown.append((view.words("composer.references"), [one for one in plan.references if one != plan.editing]))
    return "".join(
        f'<div class="uses"><span>{escape(name)}</span>{thumbs(view, handles)}</div>'
        for name, handles in shown
        if handles
    )


def _rows(view: View, plan: Plan) -> str:
    words = view.words
    rows = [
        (words("plan.prompt"), plan.prompt),
        (words("composer.image_model"), _label(words, plan)),
        (words("composer.aspect_ratio"), plan.aspect_ratio),
        (words("composer.resolution"), plan.resolution or ""),
        (words("composer.count"), str(plan.number_of_images)),
        (words("composer.editing"), plan.editing or ""),
        (words("composer.references"), " ".join(plan.references)),
    ]
    return "".join(f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in rows if value)


def _line(plan: Plan) -> str:
    parts = (plan.model_label, plan.aspect_ratio, plan.resolution or "", f"×{plan.number_of_images}")
    return " · ".join(part for part in parts if part)


def _label(words: Words, plan: Plan) -> str:
    return plan.model_label or words("composer.auto")


def _most(view: View, plans: Sequence[Plan]) -> str:
    """Return what running the plans may cost at most; nothing where they cost nothing."""
    if not sum(plan.price_usd for plan in plans):
        return ""
    told = [cap.price_usd for plan in plans for cap in plan.caps if cap.cap == "turn"]
    return dollars_up(max(told)) if told else view.turn_price


def _estimate(words: Words, plans: Sequence[Plan]) -> str:
    """Return what the plans would cost and, of a single one, how long it would take."""
    dollars = sum(plan.price_usd for plan in plans)
    shown = price(words, dollars)
    each = [one for plan in plans for one in plan.prices] if len(plans) == 1 else []
    apart = " + ".join(f"{one.model_label} {price(words, one.price_usd)}" for one in each)
    parts = [f"≈ {shown}" if dollars > 0 else shown, *([apart] if apart else [])]
    if len(plans) == 1 and plans[0].seconds >= 1:
        parts.append(words("receipt.seconds", seconds=f"{plans[0].seconds:.0f}"))
    return " · ".join(parts)

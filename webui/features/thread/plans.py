"""What waits for the user: the card of a plan to run, change or drop, and the card of tool calls to allow, folded
once decided. Also the decision about a plan as the page sends it: parsed strictly, and checked against the models."""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

from markupsafe import Markup
from pydantic import JsonValue

from agent import (
    Ask,
    ConsentCard,
    Decision,
    ErrorCode,
    Plan,
    PlanEdit,
    RequestRefused,
    Value,
    check_request,
    host_of,
    is_blank_text,
    plain_text,
)
from webui.features.composer import COUNTS, model_name
from webui.features.viewer.receipt import notice_lines
from webui.spend import cap_sentence, dollars_up, price
from webui.view import Offer, View
from webui.words import Words

# Control, format, private-use and unassigned characters, and unusual line separators.
_NOT_PLAIN = re.compile(r"[^\n\t -~]")
_UNSEEN = frozenset({"Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp"})


class _Option(NamedTuple):
    """A choice. `models` names the models that accept it, for the page's script; one with a `problem` is disabled."""

    value: str
    text: str
    models: str = ""
    problem: str = ""


class _Pick(NamedTuple):
    """A field with choices; with a single choice it is shown as a fact."""

    label: str
    name: str
    chosen: str
    options: Sequence[_Option]


def open_plan(view: View, plans: Sequence[Plan], turn_id: str, *, is_ready: bool) -> Markup:
    """Return the card of a waiting plan, with its values in fields.

    The page's script reads the fields when Run is pressed. Until `is_ready`, the plan is not recorded and cannot be
    decided about, and nothing can be typed: it would be lost when the card is shown again.
    """
    words = view.words
    requests = [
        {
            "plan": plan,
            "legend": words("plan.request", number=number) if len(plans) > 1 else "",
            "estimate": _estimate(words, [plan]),
            "picks": _picks(view, plan),
            "uses": _uses(words, plan),
            "notices": notice_lines(words, plan.notices),
        }
        for number, plan in enumerate(plans, 1)
    ]
    return view.render(
        "thread/plan.html",
        requests=requests,
        turn_id=turn_id,
        is_ready=is_ready,
        estimate=_estimate(words, plans),
        price=_most(view, plans),
        caps=[cap_sentence(words, cap) for cap in dict.fromkeys(cap for plan in plans for cap in plan.caps)],
    )


def closed_plan(view: View, plans: Sequence[Plan], *, was_run: bool) -> Markup:
    """Return the card of a decided plan, folded: what was run, or what was not painted."""
    words = view.words
    facts = _line(words, plans[0]) if len(plans) == 1 else words("plan.requests", count=len(plans))
    rows = [_rows(words, plan) for plan in plans]
    return view.render("thread/plan-past.html", was_run=was_run, facts=facts, plans=rows)


def open_consent(view: View, asks: Sequence[Ask], turn_id: str, *, is_ready: bool = True) -> Markup:
    """Return the card of waiting calls. Until `is_ready` they are not recorded and cannot be decided about.

    *Allow* is disabled until the end of the arguments has been in sight (thread.js); `data-card` identifies these
    arguments.
    """
    name = hashlib.sha256("\n".join(ask.arguments for ask in asks).encode("utf-8", "replace")).hexdigest()[:16]
    asked = [_asked(view.words, ask) for ask in asks]
    return view.render("thread/consent.html", turn_id=turn_id, name=name, is_ready=is_ready, asks=asked)


def closed_consent(view: View, card: ConsentCard) -> Markup:
    """Return the card of decided calls, folded."""
    words = view.words
    names = words("did.join").join(dict.fromkeys(ask.tool for ask in card.asks))
    asked = [_asked(words, ask) for ask in card.asks]
    return view.render("thread/consent-past.html", is_allowed=card.is_allowed, names=names, asks=asked)


def _picks(view: View, plan: Plan) -> list[_Pick]:
    words, offers = view.words, view.offers
    if len(offers) > 1:
        problems = {one.name: words.error(one.problem) for one in offers if one.problem is not None}
        listed = dict.fromkeys((*(one.name for one in offers), plan.model))
        named = [_Option(one, model_name(words, one), "", problems.get(one, "")) for one in listed]
    else:
        named = [_Option(plan.model, _label(words, plan))]
    picks = [_Pick(words("composer.image_model"), "model", plan.model, named)]
    ratios = (ratio for one in offers for ratio in one.aspect_ratios)
    picks.append(_pick(words("composer.aspect_ratio"), "aspect_ratio", plan.aspect_ratio, ratios, offers))
    if plan.resolution is not None:
        sizes = (size for one in offers for size in one.resolutions)
        picks.append(_pick(words("composer.resolution"), "resolution", plan.resolution, sizes, offers))
    picks.append(_pick(words("composer.count"), "number_of_images", str(plan.number_of_images), COUNTS))
    return picks


def _pick(label: str, name: str, chosen: str, values: Iterable[str], offers: Sequence[Offer] = ()) -> _Pick:
    return _Pick(
        label,
        name,
        chosen,
        [
            _Option(one, one, " ".join(of.name for of in offers if one in (*of.aspect_ratios, *of.resolutions)))
            for one in dict.fromkeys((*values, chosen))
        ],
    )


def _uses(words: Words, plan: Plan) -> list[tuple[str, list[str]]]:
    """Return the pictures that a plan works on, with their roles."""
    uses = [(words("composer.editing"), [plan.editing] if plan.editing else [])]
    uses.append((words("composer.references"), [one for one in plan.references if one != plan.editing]))
    return [(name, handles) for name, handles in uses if handles]


def _rows(words: Words, plan: Plan) -> list[tuple[str, str]]:
    rows = [
        (words("plan.prompt"), plan.prompt),
        (words("composer.image_model"), _label(words, plan)),
        (words("composer.aspect_ratio"), plan.aspect_ratio),
        (words("composer.resolution"), plan.resolution or ""),
        (words("composer.count"), str(plan.number_of_images)),
        (words("composer.editing"), plan.editing or ""),
        (words("composer.references"), " ".join(plan.references)),
    ]
    return [row for row in rows if row[1]]


def _line(words: Words, plan: Plan) -> str:
    parts = (words.model(plan.model_label), plan.aspect_ratio, plan.resolution or "", f"×{plan.number_of_images}")
    return " · ".join(part for part in parts if part)


def _label(words: Words, plan: Plan) -> str:
    return words.model(plan.model_label) or words("composer.auto")


def _most(view: View, plans: Sequence[Plan]) -> str:
    """Return the maximum price of running the plans; empty when they are free."""
    if not sum(plan.price_usd for plan in plans):
        return ""
    maxima = [cap.price_usd for plan in plans for cap in plan.caps if cap.cap == "turn"]
    return dollars_up(max(maxima)) if maxima else view.turn_price


def _estimate(words: Words, plans: Sequence[Plan]) -> str:
    """Return the likely price of the plans and, for a single one, the likely time."""
    dollars = sum(plan.price_usd for plan in plans)
    shown = price(words, dollars)
    each = [one for plan in plans for one in plan.prices] if len(plans) == 1 else []
    apart = " + ".join(f"{words.model(one.model_label)} {price(words, one.price_usd)}" for one in each)
    parts = [f"≈ {shown}" if dollars > 0 else shown, *([apart] if apart else [])]
    if len(plans) == 1 and plans[0].seconds >= 1:
        parts.append(words("receipt.seconds", seconds=f"{plans[0].seconds:.0f}"))
    return " · ".join(parts)


def _asked(words: Words, ask: Ask) -> dict[str, object]:
    """Return a call with the reason for asking and all of its arguments, every character of them visible."""
    arguments = _arguments(ask.arguments)
    if ask.reason == "costs_money":
        # A question about cost shows the cap and the amount.
        cost = dict(arguments)
        cap = words("consent.cap_day" if cost.get("cap") == "day" else "consent.cap_conversation")
        arguments = [
            (words("consent.about"), f"≈ ${cost.get('about_usd', '?')}"),
            (cap, f"${cost.get('cap_usd', '?')}"),
        ]
    elif ask.reason == "foreign_address":
        host = host_of(next((value for name, value in arguments if name == "url"), ""))
        arguments += [(words("consent.server"), host)] if host else []
    rows = [(_seen(name), _seen(value)) for name, value in arguments]
    return {"tool": ask.tool, "why": words(f"consent.{ask.reason}"), "rows": rows}


def _seen(text: str) -> list[tuple[str, str]]:
    """Return the text in pieces, each followed by the code point of a character that is invisible or changes the
    direction of its neighbours; empty after the last piece."""
    pieces, at = [], 0
    for match in _NOT_PLAIN.finditer(text):
        if _is_unseen(match[0]):
            pieces.append((text[at : match.start()], f"U+{ord(match[0]):04X}"))
            at = match.end()
    return [*pieces, (text[at:], "")]


@lru_cache(maxsize=4096)
def _is_unseen(sign: str) -> bool:
    return unicodedata.category(sign) in _UNSEEN or plain_text(sign) == ""


def _arguments(text: str) -> list[tuple[str, str]]:
    """Return the names and values of the arguments, verbatim; anything but an object is shown as it is."""
    try:
        read: JsonValue = json.loads(text)
    except ValueError:
        return [("", text)]
    if not isinstance(read, dict):
        return [("", text)]
    return [
        (name, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
        for name, value in read.items()
    ]


class RunPlan(Value):
    """Run was pressed: the turn of the plan, and the values of its fields."""

    turn: str
    edits: tuple[PlanEdit, ...] = ()


def decision_to_run(words: Words, run: RunPlan, plans: Sequence[Plan], offers: Sequence[Offer]) -> Decision:
    """Return the decision with the values that were really changed.

    Raises RequestRefused for an unknown plan, for an empty or too long prompt, and for a value that the model does not
    accept; the setting is named in the visitor's language.
    """
    known = {plan.call: plan for plan in plans}
    edits = []
    for edit in run.edits:
        plan = known.get(edit.call)
        if plan is None:
            raise RequestRefused(ErrorCode.PLAN_GONE)
        given = edit.model_dump(exclude={"call"}, exclude_none=True)
        differing = {name: value for name, value in given.items() if value != getattr(plan, name)}
        changed = PlanEdit.model_validate({"call": edit.call, **differing})
        _check(words, changed, plan, offers)
        edits.append(changed)
    return Decision(run=True, edits=tuple(edit for edit in edits if edit != PlanEdit(call=edit.call)))


def after(plans: Sequence[Plan], decision: Decision, offers: Sequence[Offer]) -> tuple[Plan, ...]:
    """Return the plans as decided."""
    labels = {one.name: one.label for one in offers}
    edits = {edit.call: edit.model_dump(exclude_none=True) for edit in decision.edits}
    for edit in edits.values():
        edit |= {"model_label": labels[edit["model"]], "prices": ()} if edit.get("model") in labels else {}
    return tuple(plan.model_copy(update=edits.get(plan.call, {})) for plan in plans)


def _check(words: Words, edit: PlanEdit, plan: Plan, offers: Sequence[Offer]) -> None:
    if edit.prompt is not None:
        if is_blank_text(edit.prompt):
            raise RequestRefused(ErrorCode.NOTHING_SENT)
        check_request(edit.prompt, 0)
    name = edit.model or plan.model
    # A single model stands for every name.
    offer = next((one for one in offers if one.name == name), offers[0] if len(offers) == 1 else None)
    if edit.model is not None and (offer is None or offer.name != edit.model):
        choices = ", ".join(one.label for one in offers)
        raise _unsupported(plan.model_label, words("composer.image_model"), edit.model, choices)
    # Painted by both models, each must accept it.
    obeying = list(offers) if name == "both" else [offer] if offer is not None else []
    # A new model must accept the unchanged values of the plan, too.
    ratio = edit.aspect_ratio or (plan.aspect_ratio if edit.model else None)
    size = edit.resolution or (plan.resolution if edit.model else None)
    for one in obeying:
        if ratio is not None and ratio not in one.aspect_ratios:
            raise _unsupported(one.label, words("composer.aspect_ratio"), ratio, ", ".join(one.aspect_ratios))
        if size is not None and size not in one.resolutions:
            raise _unsupported(one.label, words("composer.resolution"), size, ", ".join(one.resolutions) or "—")


def _unsupported(model: str, setting: str, value: str, choices: str) -> RequestRefused:
    return RequestRefused(
        ErrorCode.SETTING_NOT_SUPPORTED, model=model, setting=setting, value=value[:40], choices=choices
    )

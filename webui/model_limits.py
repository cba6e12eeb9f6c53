"""The models that a key cannot use: greyed in the composer's chips, with the reason. What was chosen stays chosen."""

from __future__ import annotations

import json
from collections.abc import Mapping
from html import escape

from agent import Catalogue, ErrorInfo, KeyDiagnosis, ModelRole
from webui.cards import button
from webui.icons import icon
from webui.notices import next_step
from webui.words import Words

# The chips' values, by the chip, and the role of the model that each stands for.
_ROLES = {
    "text_model": {"flash": ModelRole.FLASH, "thinking": ModelRole.THINKING},
    "image_model": {"flash": ModelRole.IMAGE_FLASH, "pro": ModelRole.IMAGE_PRO},
}
Limits = Mapping[str, Mapping[str, ErrorInfo]]
"""Why a value of a chip cannot be chosen, by chip and value."""
NONE: Limits = {}


def limits_of(catalogue: Catalogue, diagnosis: KeyDiagnosis | None) -> Limits:
    """Return which values of the chips `text_model` and `image_model` the key has no model for; both image models side
    by side need both."""
    if diagnosis is None:
        return NONE
    found: dict[str, dict[str, ErrorInfo]] = {}
    for chip, roles in _ROLES.items():
        why = {value: diagnosis.why_not(catalogue.keyed(role).id) for value, role in roles.items()}
        missing = {value: reason for value, reason in why.items() if reason is not None}
        if chip == "image_model" and missing:
            missing["both"] = next(iter(missing.values()))
        found[chip] = missing
    return {chip: missing for chip, missing in found.items() if missing}


def limits_html(words: Words, limits: Limits, *, is_unknown: bool = False) -> str:
    """Return one line on what is greyed and why, with what the page's script needs: the reason by the name shown.

    Nothing where the key can use everything; where nobody knows yet (`is_unknown`), a sign for the script to ask.
    """
    if not limits:
        return "<span data-ask hidden></span>" if is_unknown else ""
    named = {
        chip: {_name(words, value): words.error(_told(words, value, info)) for value, info in missing.items()}
        for chip, missing in limits.items()
    }
    lines = "".join(f"<span>{one}</span>" for one in _lines(words, limits))
    settings = button("settings", words("action.settings"), "", "line")
    return (
        f'<div class="limits" role="note" data-limits="{escape(json.dumps(named, ensure_ascii=False))}">'
        f"{icon('info', 14)}<p>{lines}</p>{settings}</div>"
    )


def _lines(words: Words, limits: Limits) -> list[str]:
    """Return a sentence for each reason, with the models that it is the reason for."""
    by_code: dict[str, tuple[ErrorInfo, list[str]]] = {}
    for chip, missing in limits.items():
        for value, info in missing.items():
            if value != "both":
                name = words("limits.name", chip=words(f"limits.{chip}"), model=_name(words, value))
                by_code.setdefault(info.code.value, (info, []))[1].append(name)
    return [_line(words, info, names) for info, names in by_code.values()]


def _line(words: Words, info: ErrorInfo, names: list[str]) -> str:
    told = info.model_copy(update={"parameters": {**info.parameters, "model": words("did.join").join(names)}})
    return f"{escape(words.error(told))} {next_step(words, info.code)}".strip()


def _told(words: Words, value: str, info: ErrorInfo) -> ErrorInfo:
    return info.model_copy(update={"parameters": {**info.parameters, "model": _name(words, value)}})


def _name(words: Words, value: str) -> str:
    return words("composer.flash_pro" if value == "both" else f"composer.{value}")

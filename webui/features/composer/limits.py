"""The models that a key cannot use: greyed in the composer's chips, with the reason. What was chosen stays chosen."""

from __future__ import annotations

from collections.abc import Mapping

from markupsafe import Markup

from agent import Catalogue, ErrorInfo, KeyDiagnosis, ModelRole
from webui.features.thread.notices import next_step
from webui.shell.templates import render
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


def limits_html(words: Words, limits: Limits, *, is_unknown: bool = False) -> Markup:
    """Return one line on what is greyed and why, with what the page's script needs: the reason by the name shown.

    Nothing where the key can use everything; where nobody knows yet (`is_unknown`), a sign for the script to ask.
    """
    named = {
        chip: {_name(words, value): words.error(_told(info, _name(words, value))) for value, info in missing.items()}
        for chip, missing in limits.items()
    }
    by_code: dict[str, tuple[ErrorInfo, list[str]]] = {}
    for chip, missing in limits.items():
        for value, info in missing.items():
            if value != "both":
                name = words("limits.name", chip=words(f"limits.{chip}"), model=_name(words, value))
                by_code.setdefault(info.code.value, (info, []))[1].append(name)
    lines = [
        (words.error(_told(info, words("did.join").join(names))), next_step(words, info.code))
        for info, names in by_code.values()
    ]
    return render("composer/limits.html", words, named=named, lines=lines, is_unknown=is_unknown)


def _told(info: ErrorInfo, model: str) -> ErrorInfo:
    return info.model_copy(update={"parameters": {**info.parameters, "model": model}})


def _name(words: Words, value: str) -> str:
    return words("composer.flash_pro" if value == "both" else f"composer.{value}")

"""A style as a form: its fields as text, the text as a style, and what is wrong with it in the visitor's words."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from agent import ErrorCode, ErrorInfo, Style
from webui.words import Words

# A name with one such letter is a Chinese one.
_FIRST_IDEOGRAPH = "\u2e80"
_COMMAS = re.compile(r"[,，、;；\n]")
# What the library says is wrong, and the key of the sentence that says it on the page.
_SAID = (
    (re.compile("too short"), "styles.problem_short"),
    (re.compile("square brackets"), "styles.problem_brackets"),
    (re.compile("cannot be shown"), "styles.problem_characters"),
    (re.compile("it is empty"), "styles.problem_empty"),
    (re.compile("needs a name"), "styles.problem_name"),
    (re.compile(r"at most (?P<limit>\d+) character"), "styles.problem_long"),
    (re.compile(r"at most (?P<limit>\d+) item"), "styles.problem_many"),
    (re.compile(r"at least 1 item"), "styles.problem_phrases"),
    (re.compile(r"larger than (?P<limit>\d+) MB"), "styles.problem_large"),
    (re.compile("Invalid JSON"), "styles.problem_json"),
    (re.compile("Field required"), "styles.problem_missing"),
)
_PLACES = frozenset({"name", "aliases", "description", "phrases", "negative", "tags"})


def fields_of(style: Style | None, language: str) -> dict[str, str]:
    """Return what the form shows of a style; empty fields for a new one.

    One language is enough: it stands first, that of the page where the style has both.
    """
    if style is None:
        return dict.fromkeys(_NAMES, "")
    names, told = (style.name.en, style.name.zh), (style.description.en, style.description.zh)
    first = 1 if (language == "zh-CN" and names[1]) or not names[0] else 0
    return {
        "name": names[first],
        "description": told[first],
        "other_name": names[1 - first],
        "other_description": told[1 - first],
        "aliases": ", ".join((*style.aliases.en, *style.aliases.zh)),
        "phrases": "\n".join(style.phrases),
        "negative": "\n".join(style.negative),
        "tags": ", ".join(style.tags),
    }


_NAMES = ("name", "description", "other_name", "other_description", "aliases", "phrases", "negative", "tags")


def draft_fields(form: Mapping[str, str], before: Style | None = None) -> dict[str, object]:
    """Return the fields of a style that a form says; what the form does not show stays as it was `before`.

    Which language the name is in, its letters tell.
    """
    aliases = _listed(form.get("aliases", ""))
    name, other = form.get("name", "").strip(), form.get("other_name", "").strip()
    told, other_told = form.get("description", ""), form.get("other_description", "")
    first, second = ("zh", "en") if _is_chinese(name or told) else ("en", "zh")
    return {
        "name": {first: name, second: other},
        "aliases": {
            "en": [alias for alias in aliases if not _is_chinese(alias)],
            "zh": [alias for alias in aliases if _is_chinese(alias)],
        },
        "loose": before.loose if before else (),
        "description": {first: told, second: other_told},
        "phrases": _lines(form.get("phrases", "")),
        "negative": _lines(form.get("negative", "")),
        "tags": _listed(form.get("tags", "")),
    }


def refusal(words: Words, info: ErrorInfo) -> str:
    """Return why something was not kept, in one sentence of the visitor's language."""
    if info.code is not ErrorCode.STYLES_REFUSED:
        return words.error(info)
    place, separator, said = str(info.parameters.get("problem", "")).partition(": ")
    if not separator or not re.fullmatch(r"[\w.]+", place):
        place, said = "", str(info.parameters.get("problem", ""))
    where = _where(words, place.split("."))
    problem = _problem(words, said)
    told = words("styles.problem_where", where=where, problem=problem) if where else problem
    return words.error(info.model_copy(update={"parameters": {**info.parameters, "problem": told}}))


def _where(words: Words, parts: Sequence[str]) -> str:
    """Return which style of a file, and which of its fields."""
    named = [words(f"styles.form_{part}") for part in parts if part in _PLACES][:1]
    is_numbered = len(parts) > 1 and parts[0] == "styles" and parts[1].isdigit()
    numbered = [words("styles.problem_number", number=int(parts[1]) + 1)] if is_numbered else []
    return words("styles.problem_join").join([*numbered, *named])


def _problem(words: Words, said: str) -> str:
    for pattern, key in _SAID:
        if match := pattern.search(said):
            return words(key, **match.groupdict())
    return words("styles.problem_other")


def _listed(text: str) -> list[str]:
    return list(dict.fromkeys(part.strip() for part in _COMMAS.split(text) if part.strip()))


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


def _is_chinese(text: str) -> bool:
    return any(letter >= _FIRST_IDEOGRAPH for letter in text)

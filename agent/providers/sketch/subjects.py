"""Read what to draw from a request: subject, description and style; or that a picture is to be painted again.

The mark in a prompt that tells which take it is, is written and read here too.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from agent import wording
from agent.pictures import handles_in, without_handles
from agent.providers.sketch.phrases import blank_quoted, find_count, fold, without_count, without_ratio

_MAX_SUBJECT_CHARACTERS = 160

_PUNCTUATION = r"[\s,，。.!！?？;；:：、]*"


def find_subject(text: str) -> tuple[str, str]:
    """Return the subject for a caption and the full description, both empty when the text has none."""
    description = _without_asking(text)
    if _drawing("empty", form=r"^(?:{}|\s)*$").match(description):
        return "", ""
    subject = re.sub(r"\s+", " ", _without_ratio_and_tail(description)) or description
    if len(subject) > _MAX_SUBJECT_CHARACTERS:
        subject = subject[: _MAX_SUBJECT_CHARACTERS - 1].rsplit(" ", 1)[0].rstrip(" ,，。") + "…"
    return subject, description


def find_style(folded: str) -> str:
    """Return the style that the folded text names, in English, or an empty string."""
    styles = wording.section("en", "painted_styles")
    return next((name for name in styles if wording.pattern(f"painted_styles.{name}").search(folded)), "")


def _without_ratio_and_tail(text: str) -> str:
    """Return the text without words for shape and count, and without loose punctuation at its ends."""
    kept = without_ratio(text)
    kept = re.sub(r"\s*[,，]\s*(?=[,，。.]|$)", "", kept)
    return _without_end(kept).strip(" ,，。.;；:：、")


def _without_asking(text: str) -> str:
    words = _without_opening(" ".join(text.split()))
    words = _drawing("asking").sub("", words, count=1)
    words = without_count(_without_opening(words))
    words = wording.pattern("drawing.afterwards").sub("", words)
    words = wording.pattern("drawing.about", form=r"^\s*(?:{}|[:：,，])\s*").sub("", words)
    for language in wording.LANGUAGES:
        words = _drawing("kind", language).sub("", words)
    return _without_ratio_and_tail(_drawing("kind_end").sub("", _without_end(words)))


def _without_opening(text: str) -> str:
    return _drawing("polite", form="^(?:{})+").sub("", text)


def _without_end(text: str) -> str:
    return _drawing("polite_end", form=f"{_PUNCTUATION}(?:{{}})?{_PUNCTUATION}$").sub("", text)


def _drawing(name: str, *languages: str, form: str = "{}") -> re.Pattern[str]:
    return wording.pattern(f"drawing.{name}", *languages, flags=re.IGNORECASE, form=form)


# ---- repeating a request


class RetakeKind(StrEnum):
    """AGAIN paints the request again, VARIATION also with another arrangement."""

    AGAIN = "again"
    VARIATION = "variation"


@dataclass(frozen=True)
class Retake:
    """A request to paint an earlier request again. The first of `handles` names a picture of that one."""

    kind: RetakeKind
    number_of_images: int | None = None
    handles: tuple[str, ...] = ()


@dataclass(frozen=True)
class Take:
    """The number of a picture's take of its request, starting at 1."""

    number: int = 1
    is_variation: bool = False

    @property
    def mark(self) -> str:
        """The mark in a prompt; empty for the first take."""
        if self.number == 1 and not self.is_variation:
            return ""
        return f"[{RetakeKind.VARIATION if self.is_variation else 'take'} {self.number}]"


FIRST_TAKE = Take()
_MARK = re.compile(r"\[(take|variation) ([1-9]\d{0,3})\]", re.IGNORECASE)


def read_retake(text: str) -> Retake | None:
    """Return the retake that the whole sentence asks for; None when it asks for anything else or more."""
    language = "zh" if wording.is_chinese(text) else "en"
    folded = without_handles(fold(blank_quoted(text)), wording.section(language, "again")["it"])
    words = _without_end(_without_opening(("" if language == "zh" else " ").join(folded.split())))
    kind = next((kind for kind in RetakeKind if wording.pattern(f"again.{kind}").fullmatch(words)), None)
    return Retake(kind, find_count(words), handles_in(text)) if kind and words else None


def read_take(prompt: str) -> Take:
    """Return the take that the prompt asks for."""
    match = _MARK.search(prompt)
    if match is None:
        return FIRST_TAKE
    return Take(int(match[2]), is_variation=match[1].lower() == RetakeKind.VARIATION)


def without_take(prompt: str) -> str:
    """Return the prompt without its take mark."""
    return _MARK.sub(" ", prompt).strip()

"""The words the image model gets: the prompt, what to avoid, the facts in one block, and which picture is which."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from agent.pictures import Fact, Picture, ReferenceRole

_FACTS_TAG = re.compile(r"\[\s*(/?)\s*FACTS\s*\]", re.IGNORECASE)
_LEGEND = re.compile(r"\s*\[IMAGES\].*?\[/IMAGES\]", re.DOTALL)
_BLANK_LINE = re.compile(r"\n\s*\n")

ROLE_SENTENCES: dict[ReferenceRole, str] = {
    ReferenceRole.SUBJECT: "Subject: show this very subject, recognisably the same, and nothing else of the image.",
    ReferenceRole.PRODUCT: "Product: show this very product, its shape, material, colours and lettering unchanged.",
    ReferenceRole.FACE: "Face: give the person this face, recognisably the same, not the clothes or the surroundings.",
    ReferenceRole.STYLE: "Style: take only its colours and brushwork, not its content.",
    ReferenceRole.PALETTE: "Palette: take only its colours, neither its content nor its technique.",
    ReferenceRole.POSE: "Pose: take only the posture and gesture, not who or what is shown.",
    ReferenceRole.LAYOUT: "Layout: take only where things stand and how large, not what they are.",
    ReferenceRole.BACKGROUND: "Background: take it as the place behind everything, without what stands before it.",
    ReferenceRole.TEXT: "Text: take over its lettering, letter by letter, and nothing else of the image.",
}


def compose(
    prompt: str,
    negative_prompt: str | None,
    facts: Sequence[Fact],
    references: Sequence[Picture],
    roles: Mapping[str, ReferenceRole] | None = None,
) -> str:
    """Return the prompt as sent.

    The `[FACTS]` block stands in it exactly once with facts and not at all without, whatever blocks the planner or a
    web page wrote. The legend names the pictures in the order they are shown, when there are several, the words
    speak of one by its handle, or one has a role (`roles`, by handle).
    """
    roles = roles or {}
    text = without_facts(without_legend(prompt))
    if negative_prompt and negative_prompt.strip():
        text += f"\n\nAvoid: {without_facts(without_legend(negative_prompt))}"
    if facts:
        lines = "\n".join(f"- {_one_line(fact.item)} ({_one_line(fact.source)})" for fact in facts)
        text += f"\n\n[FACTS]\n{lines}\n[/FACTS]"
    if len(references) > 1 or any(picture.handle in text or picture.handle in roles for picture in references):
        text += "\n\n" + _legend(references, roles)
    return text


def without_legend(prompt: str) -> str:
    """Return the prompt without the list of its pictures, as it goes back when those are no longer shown."""
    return _LEGEND.sub("", prompt).strip()


def without_facts(text: str) -> str:
    """Return the text without any `[FACTS]` block: nested, unfinished, doubled or in another case.

    A block that is never closed ends at the next blank line. When nothing would be left, only the tags go.
    """
    kept = text
    # Again until none is left: what a removal brings together may read as a tag itself.
    while _FACTS_TAG.search(kept):
        kept = _without_first_block(kept)
    return kept.strip() or _without_tags(text).strip()


def _without_first_block(text: str) -> str:
    opening = _FACTS_TAG.search(text)
    if opening is None or opening[1]:
        return _FACTS_TAG.sub(" ", text, count=1)
    end = _end_of_block(text, opening)
    return f"{text[: opening.start()].rstrip(' ')} {text[end:].lstrip(' ')}"


def _end_of_block(text: str, opening: re.Match[str]) -> int:
    depth, last_closing = 1, None
    for tag in _FACTS_TAG.finditer(text, opening.end()):
        depth += -1 if tag[1] else 1
        last_closing = tag.end() if tag[1] else last_closing
        if depth == 0:
            return tag.end()
    if last_closing is not None:
        return last_closing
    blank = _BLANK_LINE.search(text, opening.end())
    return blank.start() if blank else len(text)


def _without_tags(text: str) -> str:
    while _FACTS_TAG.search(text):
        text = _FACTS_TAG.sub(" ", text)
    return text


def _one_line(text: str) -> str:
    # A fact comes from the web: it must not open or close the block.
    return " ".join(_without_tags(text).split())


def _legend(references: Sequence[Picture], roles: Mapping[str, ReferenceRole]) -> str:
    lines = []
    for place, picture in enumerate(references, 1):
        role = roles.get(picture.handle)
        lines.append(f"Image {place} is {picture.handle}." + (f" {ROLE_SENTENCES[role]}" if role else ""))
    return "\n".join(("[IMAGES]", *lines, "[/IMAGES]"))

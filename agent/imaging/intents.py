"""Whether the planner was sure enough of a `generate_image` call to paint, and the notes about a painted mask.

Also whether a model's answer claims a picture that no call made: "I've created a picture for you!", 图片已经画好了, a
call written as text, or a link to a picture that does not exist. Use this only when the user asked for something and no
picture came: talk about existing pictures must not count as a claim. An answer to a question therefore never counts.
"""

from __future__ import annotations

import re

from agent import wording
from agent.imaging.arguments import GenerateImageArgs, ImageAction
from agent.pictures import Margins

UNSURE_AT = 0.5
"""A call with this confidence or less is not painted."""


def is_unsure(arguments: GenerateImageArgs, *, has_mask: bool = False) -> bool:
    """Return whether the user must be asked first; a call without a confidence counts as sure.

    With a mask the action is known, so an `unknown` action does not count.
    """
    is_doubtful = arguments.confidence is not None and arguments.confidence <= UNSURE_AT
    return is_doubtful or (arguments.action is ImageAction.UNKNOWN and not has_mask)


def holds_question(text: str) -> bool:
    """Return whether the text asks a question; a planner's text before a call often only says what will be painted."""
    return wording.pattern("claim.question", flags=re.MULTILINE).search(text) is not None


def mask_note(handle: str) -> str:
    """Return the note in the user's message that tells the planner about a mask painted over a picture."""
    return f"[The person painted a mask over {handle}.]"


def expansion_note(handle: str, width: int, height: int, margins: Margins) -> str:
    """Return the note in the user's message that says how far a picture of this size grows on each side."""
    sides = (
        ("left", margins.left / width),
        ("right", margins.right / width),
        ("top", margins.top / height),
        ("bottom", margins.bottom / height),
    )
    grown = ", ".join(f"{share:.0%} at the {side}" for side, share in sides if share)
    stays = "What it shows stays as it is; only the new part is painted."
    return f"[The person marked {handle} to be made larger beyond its edges: {grown}. {stays}]"


_SPELLED = re.compile(
    r"\bgenerate_image\b|<\s*/?\s*(?:tool_call|function_call|function|tool_code|invoke)\b|```\s*tool_(?:code|call)"
    r"|\bdefault_api\b|\[/?TOOL_CALLS?\]|\{\s*\"(?:name|action|tool|function|prompt)\"\s*:",
    re.IGNORECASE,
)
_LINKED = re.compile(
    r"!\[[^\]]*\]\([^)]+\)|\]\((?:sandbox|attachment):[^)]*\)|<img\b|https?://\S+\.(?:png|jpe?g|webp|gif)\b",
    re.IGNORECASE,
)
_CLAUSE = re.compile(r"[^.!?。！？;；\n]+(?:[.!?。！？;；]+|$|(?=\n))")


def claims_a_picture(answer: str, prompt_text: str) -> bool:
    """Return whether the answer states or suggests that a picture was made.

    False when the wish is a question, because a question is answered with text.
    """
    if holds_question(prompt_text):
        return False
    shown = (_SPELLED, _LINKED, wording.pattern("claim.placeholder", flags=re.IGNORECASE))
    return any(one.search(answer) for one in shown) or any(_is_claim(match[0]) for match in _CLAUSE.finditer(answer))


def _is_claim(clause: str) -> bool:
    """Return whether a sentence claims a picture; not when it denies the claim, or states a wish or plan before it."""
    for language in wording.LANGUAGES:
        found = wording.pattern("claim.claimed", language, flags=re.IGNORECASE).search(clause)
        denied = wording.pattern("claim.denied", language, flags=re.IGNORECASE)
        if found is not None and not denied.search(clause[: found.end()]):
            return True
    return False

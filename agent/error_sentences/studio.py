"""What is said of the studio itself and the machine it runs on."""

from __future__ import annotations

from agent.error_codes import Actor, ErrorCode
from agent.error_sentences.sentence import Sentence

STUDIO: dict[ErrorCode, Sentence] = {
    ErrorCode.DISK_FULL: (
        Actor.OPERATOR,
        False,
        "The disk of the studio's machine is full. Please free some space; nothing was lost.",
    ),
    ErrorCode.STORAGE_BROKEN: (Actor.OPERATOR, False, "The studio's records cannot be read or written ({detail})."),
    ErrorCode.BAD_SETTING: (Actor.OPERATOR, False, "{name} is {value!r}: {problem}."),
    ErrorCode.DESIGN_RULE_BROKEN: (
        Actor.US,
        False,
        "The studio stopped itself: {rule}. Please send us the debug report.",
    ),
    ErrorCode.INTERNAL: (
        Actor.US,
        True,
        "Something in the studio failed. Your words and pictures are kept; please try again.",
    ),
}

"""What is said of a page of the web, or of the address it should have been at."""

from __future__ import annotations

from agent.error_codes import Actor, ErrorCode
from agent.error_sentences.sentence import Sentence

PAGES: dict[ErrorCode, Sentence] = {
    ErrorCode.ADDRESS_REFUSED: (
        Actor.MODEL,
        False,
        "{name} is not an address of the public web that may be asked for: {problem}.",
    ),
    ErrorCode.PAGE_UNREADABLE: (Actor.MODEL, False, "What {name} sends cannot be read: {problem}."),
    ErrorCode.PAGE_REFUSED: (Actor.MODEL, False, "{name} does not give this page out (HTTP {status})."),
    ErrorCode.PAGE_UNREACHABLE: (Actor.NETWORK, True, "{name} cannot be reached: {problem}. Please try again later."),
    ErrorCode.PAGE_TOO_SLOW: (
        Actor.NETWORK,
        True,
        "{name} did not send its page within {seconds} s. Please try again later.",
    ),
}

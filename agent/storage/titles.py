"""A conversation's title: at first the text's first words, then the model's subject, then the user's own title."""

from __future__ import annotations

import re
from collections.abc import Iterator

from agent.conversation import Turn, TurnState
from agent.errors import ErrorCode, RequestRefused
from agent.messages import ToolCallPart

MAX_TITLE_CHARACTERS = 120
_SHOWN_CHARACTERS = 48
# The planner's call for a picture; that tool is declared in a layer above this one.
_PICTURE_CALL = "generate_image"
# A picture's handle says nothing about its content.
_HANDLE = re.compile(r"#[0-9]+[a-z]*")
_NO_SUBJECT = frozenset({"", "auto", "default", "none", "null", "unknown"})


def title_of(text: str) -> str:
    """Return the first words of a text as a title, cut between words where possible."""
    words = _one_line(text[:1000])
    if len(words) <= _SHOWN_CHARACTERS:
        return words
    cut = words[:_SHOWN_CHARACTERS]
    return (cut.rsplit(" ", 1)[0] if " " in cut[_SHOWN_CHARACTERS // 2 :] else cut).rstrip() + "…"


def subject_title(turn: Turn) -> str:
    """Return the title from a conversation's first turn: the model's name for the picture it planned.

    Empty while the turn runs, for a later turn, and when no picture was planned.
    """
    if turn.parent is not None or turn.state is TurnState.RUNNING:
        return ""
    subject = next(_subjects(turn), "").rstrip(".。 ")
    first = subject.partition(" ")[0]
    # A name that has its own capitals, such as iPhone, keeps them.
    return title_of(subject[:1].title() + subject[1:] if first.islower() else subject)


def checked_title(title: str) -> str:
    """Return the user's title on one line. Raises RequestRefused(TITLE_EMPTY, TITLE_TOO_LONG)."""
    words = _one_line(title)
    if not words:
        raise RequestRefused(ErrorCode.TITLE_EMPTY)
    if len(words) > MAX_TITLE_CHARACTERS:
        raise RequestRefused(ErrorCode.TITLE_TOO_LONG, length=len(words), limit=MAX_TITLE_CHARACTERS)
    return words


def _subjects(turn: Turn) -> Iterator[str]:
    """Yield the subjects of the planned pictures, those of the newest message first."""
    for message in reversed(turn.messages):
        for part in message.parts:
            if isinstance(part, ToolCallPart) and part.name == _PICTURE_CALL:
                subject = part.arguments.get("subject")
                words = _one_line(subject) if isinstance(subject, str) else ""
                if words.casefold() not in _NO_SUBJECT and not _HANDLE.fullmatch(words):
                    yield words


def _one_line(text: str) -> str:
    return " ".join(text.replace("\0", " ").split())

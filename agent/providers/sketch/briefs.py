"""Reads messages: what was asked last, which pictures are at hand, and which of them is to be changed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from pydantic import JsonValue

from agent.messages import ImagePart, PromptMessage, Role, TextPart, ToolResultPart
from agent.providers.sketch.retakes import Take, read_take

MAX_WISH_CHARACTERS = 4000
_PLACEHOLDER = "[Picture:history_"
_BLOCK = re.compile(r"\[([A-Z][A-Z _]{2,30})\].*?\[/\1\]", re.DOTALL)
_BRACKETED = re.compile(r"\[Picture:[^\]]*\](?:\s*\([^)]*\))?|\[(?:take|variant|seed|variation)\s*\d+\]", re.IGNORECASE)
# What the studio tells of the person's own marks; people write no such sentence in brackets.
_NOTE = re.compile(r"\[The person (?:marked|painted|sent|went back) [^\[\]\n]*\]")
_MASK = re.compile(r"\[The person painted a mask over (#\d{1,6}[a-z]{0,3})\.\]")
_MARKED = re.compile(r"\[The person marked (#\d{1,6}[a-z]{0,3}) as the picture to change\.\]")
_ANEW = "[The person marked no picture to change:"
_WENT_BACK = re.compile(r"\[The person went back to (#\d{1,6}[a-z]{0,3}) first: it is the picture to change\.\]")
_GROWN = re.compile(r"\[The person marked (#\d{1,6}[a-z]{0,3}) to be made larger beyond its edges:[^\[\]\n]*\]")
_LABEL = r"(?:image|picture|reference|photo|input|图片?|参考图?|图像)\s*(?:#?\d+[a-z]?|[一二三四五六])"
_LEGEND = re.compile(
    rf"^[ \t]*(?:[-*•]\s*)?{_LABEL}\s*(?:[:：=]\s*(?:#\d[^\n]*)?|(?:is|shows|是|为)\s*(?:the picture\s*)?#\d[^\n]*)$"
    r"|^[ \t]*(?:references?|pictures?|images?|参考图|图片说明)\s*[:：]\s*$",
    re.IGNORECASE | re.MULTILINE,
)
_EXTRA_LINE = re.compile(
    r"^[ \t]*(?:avoid|negative prompt|do not (?:show|include)|without|style phrases?|避免|不要出现"
    r"|负面提示词?)\s*[:：].*$",
    re.IGNORECASE | re.MULTILINE,
)


def last_prompt(messages: Sequence[PromptMessage]) -> PromptMessage | None:
    """Return the newest message of the person, or None."""
    return next((message for message in reversed(messages) if message.role is Role.PROMPT), None)


def wish_text(message: PromptMessage) -> str:
    """Return the person's own words: without facts, legends of pictures, placeholders and notes of what they marked."""
    joined = _written(message)
    for pattern in (_NOTE, _BLOCK, _BRACKETED, _LEGEND, _EXTRA_LINE):
        joined = pattern.sub(" ", joined)
    lines = (line.strip() for line in joined.splitlines())
    return "\n".join(line for line in lines if line)[:MAX_WISH_CHARACTERS]


def take_of(message: PromptMessage) -> Take:
    """Return which take of its wish a prompt asks for."""
    return read_take(_written(message))


def marked_picture(message: PromptMessage) -> str:
    """Return the handle of the picture that the person marked to be changed or grown or painted over, or went back to;
    nothing without any."""
    written = _written(message)
    found = (pattern.search(written) for pattern in (_MASK, _GROWN, _MARKED, _WENT_BACK))
    return next((match[1] for match in found if match), "")


def starts_anew(message: PromptMessage) -> bool:
    """Whether the person wants a new picture, whatever there was before."""
    return _ANEW in _written(message)


def masked_pictures(message: PromptMessage) -> list[str]:
    """Return the handles of the pictures that the person painted a mask over."""
    return _MASK.findall(_written(message))


def is_to_grow(message: PromptMessage) -> bool:
    """Whether the person wants more of the picture beyond its edges."""
    return _GROWN.search(_written(message)) is not None


def has_pictures(messages: Sequence[PromptMessage]) -> bool:
    """Whether the history holds a picture, in full or as a placeholder."""
    return any(_holds_picture(message) for message in messages)


def newest_is_upload(messages: Sequence[PromptMessage]) -> bool:
    """Whether the newest picture of the history was added by the person rather than made here."""
    newest = next((message for message in reversed(messages) if _holds_picture(message)), None)
    return newest is not None and newest.role is Role.PROMPT


def base_picture(messages: Sequence[PromptMessage], handles: Sequence[str]) -> ImagePart | None:
    """Return the picture to change: the one named first, else the first of the last prompt, else the newest."""
    shown = [image for message in messages for image in _pictures(message)]
    named = next((image for handle in handles for image in shown if image.handle == handle), None)
    if named is not None:
        return named
    prompt = last_prompt(messages)
    if prompt is not None and prompt.images:
        return prompt.images[0]
    return shown[-1] if shown else None


def tool_problem(message: PromptMessage) -> str:
    """Return the error that a tool answered with, in its own words, or an empty text."""
    for part in message.parts:
        if isinstance(part, ToolResultPart) and part.is_error:
            return next(_sentences(list(part.content.values())), part.name)
    return ""


def _written(message: PromptMessage) -> str:
    texts = [part.text for part in message.parts if isinstance(part, TextPart) and not part.is_thought]
    return "\n".join(texts)[: MAX_WISH_CHARACTERS * 4]


def _sentences(values: Sequence[JsonValue]) -> Iterator[str]:
    for value in values:
        if isinstance(value, str):
            yield value
        elif isinstance(value, list):
            yield from _sentences(value)


def _holds_picture(message: PromptMessage) -> bool:
    return bool(_pictures(message)) or any(
        _PLACEHOLDER in (part.text if isinstance(part, TextPart) else str(part.content))
        for part in message.parts
        if isinstance(part, TextPart | ToolResultPart)
    )


def _pictures(message: PromptMessage) -> list[ImagePart]:
    found: list[ImagePart] = []
    for part in message.parts:
        if isinstance(part, ImagePart) and not part.is_thought:
            found.append(part)
        elif isinstance(part, ToolResultPart):
            found += part.images
    return found

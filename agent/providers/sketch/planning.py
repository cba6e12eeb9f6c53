"""Read the messages and write the call: the newest request, the available pictures, and the one to change.

Also finds the request that painted a picture, so that it can be painted again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from agent.messages import ImagePart, PromptMessage, Role, TextPart, ToolCallPart, ToolResultPart
from agent.pictures import handles_in
from agent.providers.base import ToolDeclaration
from agent.providers.sketch.intent import MAX_CHARACTERS, Draw, Edit, Talk, Topic
from agent.providers.sketch.operations import Restyle
from agent.providers.sketch.subjects import Retake, RetakeKind, Take, find_subject, read_take, without_take
from agent.settings import ReferenceMode

_NOTHING_SAID = PromptMessage(role=Role.PROMPT, parts=())
_PLACEHOLDER = "[Picture:history_"
_BLOCK = re.compile(r"\[([A-Z][A-Z _]{2,30})\].*?\[/\1\]", re.DOTALL)
_BRACKETED = re.compile(r"\[Picture:[^\]]*\](?:\s*\([^)]*\))?|\[(?:take|variant|seed|variation)\s*\d+\]", re.IGNORECASE)
# The studio's notes about the user's marks; users write no such sentence in brackets.
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


def last_prompt(messages: Sequence[PromptMessage]) -> PromptMessage:
    """Return the user's newest message, or an empty one."""
    return next((one for one in reversed(messages) if one.role is Role.PROMPT), _NOTHING_SAID)


def person_text(message: PromptMessage) -> str:
    """Return the user's own words: without facts, picture legends, placeholders and notes about marks."""
    joined = _written(message)
    for pattern in (_NOTE, _BLOCK, _BRACKETED, _LEGEND, _EXTRA_LINE):
        joined = pattern.sub(" ", joined)
    lines = (line.strip() for line in joined.splitlines())
    return "\n".join(line for line in lines if line)[:MAX_CHARACTERS]


def take_of(message: PromptMessage) -> Take:
    """Return the take that a prompt asks for."""
    return read_take(_written(message))


def marked_picture(message: PromptMessage) -> str:
    """Return the handle of the picture that the user masked, marked to change or extend, or went back to; else ""."""
    written = _written(message)
    found = (pattern.search(written) for pattern in (_MASK, _GROWN, _MARKED, _WENT_BACK))
    return next((match[1] for match in found if match), "")


def starts_anew(message: PromptMessage) -> bool:
    """Whether the user wants a new picture, independent of earlier ones."""
    return _ANEW in _written(message)


def masked_pictures(message: PromptMessage) -> list[str]:
    """Return the handles of the pictures that the user masked."""
    return _MASK.findall(_written(message))


def is_to_grow(message: PromptMessage) -> bool:
    """Whether the user wants to extend the picture beyond its edges."""
    return _GROWN.search(_written(message)) is not None


def has_pictures(messages: Sequence[PromptMessage]) -> bool:
    """Whether the history contains a picture, in full or as a placeholder."""
    return any(_holds_picture(message) for message in messages)


def newest_is_upload(messages: Sequence[PromptMessage]) -> bool:
    """Whether the newest picture of the history was uploaded rather than made here."""
    newest = next((message for message in reversed(messages) if _holds_picture(message)), None)
    return newest is not None and newest.role is Role.PROMPT


def base_picture(messages: Sequence[PromptMessage], handles: Sequence[str]) -> ImagePart | None:
    """Return the picture to change: the first named one, else the first of the last prompt, else the newest."""
    shown = [image for message in messages for image in _pictures(message)]
    named = next((image for handle in handles for image in shown if image.handle == handle), None)
    if named is not None:
        return named
    if images := last_prompt(messages).images:
        return images[0]
    return shown[-1] if shown else None


def tool_problem(message: PromptMessage) -> str:
    """Return the error message of a tool's result, or an empty string."""
    for part in message.parts:
        if isinstance(part, ToolResultPart) and part.is_error:
            return next(_sentences(list(part.content.values())), part.name)
    return ""


def _written(message: PromptMessage) -> str:
    texts = [part.text for part in message.parts if isinstance(part, TextPart) and not part.is_thought]
    return "\n".join(texts)[: MAX_CHARACTERS * 4]


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


# ---- the call, with the names in its declaration

_GENERATE_IMAGE = "generate_image"
# The possible names of each kind of request in the declaration's `action`; the first one that it has is used.
_DRAWING_ACTIONS = ("generate_image", "generate")
# The user may write more than a call may contain.
_MOST_CHARACTERS, _FEW_CHARACTERS = {"prompt": 30_000}, 1_000
_ADJUSTING = ("adjust_parameters", "adjust", "edit")


def image_call(
    intent: Draw | Edit, text: str, tools: Sequence[ToolDeclaration], *, is_upload: bool
) -> ToolCallPart | None:
    """Return the call for a request, or None when `generate_image` is not declared.

    `text` is the user's own sentence; an edit contains it so that the painter reads the same operations from it.
    `is_upload` says that the newest picture was uploaded. Arguments that the declaration does not have, or whose value
    is not among its choices, are left out.
    """
    declared = next((tool for tool in tools if tool.name == _GENERATE_IMAGE), None)
    if declared is None:
        return None
    arguments = _drawing(intent) if isinstance(intent, Draw) else _editing(intent, text, is_upload=is_upload)
    properties = declared.parameters.get("properties")
    known = properties if isinstance(properties, dict) else {}
    kept = {
        name: value[: _MOST_CHARACTERS.get(name, _FEW_CHARACTERS)] if isinstance(value, str) else value
        for name, value in arguments.items()
        if value is not None and name in known and _is_allowed(value, known[name])
    }
    action = _action(known.get("action"), _DRAWING_ACTIONS if isinstance(intent, Draw) else _ADJUSTING)
    return ToolCallPart(name=_GENERATE_IMAGE, arguments={**({"action": action} if action else {}), **kept})


def _drawing(intent: Draw) -> dict[str, JsonValue]:
    return {
        "subject": intent.subject,
        "style": intent.style or None,
        "confidence": 0.9,
        "prompt": f"{intent.description} {intent.take.mark}".strip(),
        "aspect_ratio": intent.aspect_ratio,
        "number_of_images": intent.number_of_images,
        "handles": list(intent.handles) or None,
    }


def _editing(intent: Edit, text: str, *, is_upload: bool) -> dict[str, JsonValue]:
    named = handles_in(text)
    if intent.handles and named and named[0] != intent.handles[0]:
        # The first picture that the text names is the one to change.
        text = f"{intent.handles[0]}: {text}"
    mode = ReferenceMode.USER_UPLOADED_ONLY if is_upload else ReferenceMode.LAST_GENERATED
    return {
        "confidence": 0.95,
        "prompt": text,
        "style": next((one.name for one in intent.operations if isinstance(one, Restyle)), None),
        "aspect_ratio": intent.aspect_ratio,
        "number_of_images": intent.number_of_images,
        "reference_mode": mode.value,
        "handles": list(intent.handles) or None,
    }


def _action(schema: JsonValue, names: Sequence[str]) -> str | None:
    if not isinstance(schema, dict):
        return None
    choices = schema.get("enum")
    if not isinstance(choices, list):
        return names[0]
    return next((name for name in names if name in choices), None)


def _is_allowed(value: JsonValue, schema: JsonValue) -> bool:
    choices = schema.get("enum") if isinstance(schema, dict) else None
    return not isinstance(choices, list) or value in choices


# ---- the request behind a picture

_LETTERS = re.compile(r"[a-z]+$")


@dataclass(frozen=True)
class _Painting:
    """A call for pictures, and the handles of the pictures that it produced."""

    arguments: dict[str, JsonValue]
    handles: tuple[str, ...]

    @property
    def is_new(self) -> bool:
        """Whether the picture was made from text rather than from another picture."""
        action = self.arguments.get("action")
        return action is None or action in _DRAWING_ACTIONS

    @property
    def prompt(self) -> str:
        return self._text("prompt")

    @property
    def last_take(self) -> int:
        count = self.arguments.get("number_of_images")
        return read_take(self.prompt).number + max(1, count if isinstance(count, int) else 1, len(self.handles)) - 1

    def drawn(self, take: Take, retake: Retake, handle: str, *, was_changed: bool) -> Draw:
        description = without_take(self.prompt)
        return Draw(
            subject=self._text("subject") or find_subject(description)[0] or description[:120],
            description=description,
            style=self._text("style"),
            aspect_ratio=self._text("aspect_ratio") or None,
            number_of_images=retake.number_of_images,
            take=take,
            retaken=handle,
            was_changed=was_changed,
        )

    def _text(self, name: str) -> str:
        value = self.arguments.get(name)
        return value.strip() if isinstance(value, str) else ""


def paint_again(retake: Retake, messages: Sequence[PromptMessage], *, is_upload: bool) -> Draw | Talk:
    """Return the request behind the picture as its next take; Talk(NEVER_PAINTED) when there is none.

    The picture is the first that `retake` names, else the last one made, unless the newest is an upload. A picture made
    by editing leads back to the first of its family, without the edits.
    """
    paintings = list(_paintings(messages))
    newest = next((painting.handles[-1] for painting in reversed(paintings) if painting.handles), "")
    handle = retake.handles[0] if retake.handles else "" if is_upload else newest
    first = _LETTERS.sub("", handle)
    painting = _painting_of(handle, paintings) or _painting_of(first, paintings)
    if painting is None or not without_take(painting.prompt):
        return Talk(Topic.NEVER_PAINTED)
    intent = without_take(painting.prompt)
    takes = [one.last_take for one in paintings if one.is_new and without_take(one.prompt) == intent]
    take = Take(max(takes) + 1, is_variation=retake.kind is RetakeKind.VARIATION)
    return painting.drawn(take, retake, handle, was_changed=handle not in painting.handles)


def _painting_of(handle: str, paintings: Sequence[_Painting]) -> _Painting | None:
    return next((one for one in reversed(paintings) if one.is_new and handle in one.handles), None)


def _paintings(messages: Sequence[PromptMessage]) -> Iterator[_Painting]:
    """Yield the calls for pictures, oldest first; a call's result is in the next message, at the same position."""
    for index, message in enumerate(messages):
        calls = [part for part in message.parts if isinstance(part, ToolCallPart)]
        following = messages[index + 1] if index + 1 < len(messages) else None
        answering = following.parts if following is not None and following.role is Role.TOOL else ()
        answers = [part for part in answering if isinstance(part, ToolResultPart)]
        for place, call in enumerate(calls):
            if call.name == _GENERATE_IMAGE:
                yield _Painting(call.arguments, _handles(answers[place]) if place < len(answers) else ())


def _handles(result: ToolResultPart) -> tuple[str, ...]:
    pictures = result.content.get("pictures")
    listed = pictures if isinstance(pictures, list) else []
    listed_handles = [picture.get("handle") for picture in listed if isinstance(picture, dict)]
    shown = [image.handle for image in result.images]
    return tuple(dict.fromkeys(handle for handle in (*listed_handles, *shown) if isinstance(handle, str)))

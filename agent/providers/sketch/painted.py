"""Which wish painted a picture, found in the calls of the conversation, so that it can be painted once more."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from agent.messages import PromptMessage, Role, ToolCallPart, ToolResultPart
from agent.providers.sketch.calls import DRAWING_ACTIONS, GENERATE_IMAGE
from agent.providers.sketch.retakes import Retake, RetakeKind, Take, read_take, without_take
from agent.providers.sketch.subjects import find_subject
from agent.providers.sketch.wishes import Draw, Talk, Topic

_LETTERS = re.compile(r"[a-z]+$")


@dataclass(frozen=True)
class _Painting:
    """A call that asked for pictures, and the handles of those that came."""

    arguments: dict[str, JsonValue]
    handles: tuple[str, ...]

    @property
    def is_new(self) -> bool:
        """Whether the picture came from words rather than from another picture."""
        action = self.arguments.get("action")
        return action is None or action in DRAWING_ACTIONS

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
    """Return the wish behind the picture as its next take; words when no wish of this conversation painted it.

    The picture is the first that `retake` names, else the one made last unless the newest is an upload. One that
    was made by changing another leads back to the first of its family, without the changes.
    """
    paintings = list(_paintings(messages))
    newest = next((painting.handles[-1] for painting in reversed(paintings) if painting.handles), "")
    handle = retake.handles[0] if retake.handles else "" if is_upload else newest
    first = _LETTERS.sub("", handle)
    painting = _painting_of(handle, paintings) or _painting_of(first, paintings)
    if painting is None or not without_take(painting.prompt):
        return Talk(Topic.NEVER_PAINTED)
    wish = without_take(painting.prompt)
    takes = [one.last_take for one in paintings if one.is_new and without_take(one.prompt) == wish]
    take = Take(max(takes) + 1, is_variation=retake.kind is RetakeKind.VARIATION)
    return painting.drawn(take, retake, handle, was_changed=handle not in painting.handles)


def _painting_of(handle: str, paintings: Sequence[_Painting]) -> _Painting | None:
    return next((one for one in reversed(paintings) if one.is_new and handle in one.handles), None)


def _paintings(messages: Sequence[PromptMessage]) -> Iterator[_Painting]:
    """Yield the calls for pictures, oldest first; a call's answer stands in the next message, at the same place."""
    for index, message in enumerate(messages):
        calls = [part for part in message.parts if isinstance(part, ToolCallPart)]
        following = messages[index + 1] if index + 1 < len(messages) else None
        answers = _results(following) if following is not None and following.role is Role.TOOL else []
        for place, call in enumerate(calls):
            if call.name == GENERATE_IMAGE:
                yield _Painting(call.arguments, _handles(answers[place]) if place < len(answers) else ())


def _results(message: PromptMessage) -> list[ToolResultPart]:
    return [part for part in message.parts if isinstance(part, ToolResultPart)]


def _handles(result: ToolResultPart) -> tuple[str, ...]:
    pictures = result.content.get("pictures")
    listed = pictures if isinstance(pictures, list) else []
    told = [picture.get("handle") for picture in listed if isinstance(picture, dict)]
    shown = [image.handle for image in result.images]
    return tuple(dict.fromkeys(handle for handle in (*told, *shown) if isinstance(handle, str)))

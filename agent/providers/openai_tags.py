"""Tools and thoughts in a model's words, for servers that do not take them apart themselves.

A model without tools of its own is told of them in its instructions and calls them between `<tool_call>` tags, as
many open models were taught to; a thinking one may write its thoughts between `<think>` tags.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from agent.messages import ToolCallPart
from agent.providers.base import ToolDeclaration

THINK = "think"
TOOL_CALL = "tool_call"


def tools_in_words(tools: Sequence[ToolDeclaration]) -> str:
    """Return the instructions that stand for the declaration of tools."""
    declared = "\n".join(
        json.dumps({"name": tool.name, "description": tool.description, "parameters": tool.parameters})
        for tool in tools
    )
    return (
        "You can call these tools, described by the JSON schema of their arguments:\n"
        f"{declared}\n"
        "To call one, end your answer with a line of exactly this form, and wait for its result:\n"
        f'<{TOOL_CALL}>{{"name": "the tool", "arguments": {{}}}}</{TOOL_CALL}>'
    )


def call_in_words(call: ToolCallPart) -> str:
    """Return a call of the past as the model would have written it."""
    written = json.dumps({"name": call.name, "arguments": call.arguments}, ensure_ascii=False)
    return f"<{TOOL_CALL}>{written}</{TOOL_CALL}>"


def read_calls(text: str) -> list[ToolCallPart] | None:
    """Return the calls that stood between tags, one after the other, or None when they are garbled."""
    decoder = json.JSONDecoder(strict=False)
    calls: list[ToolCallPart] = []
    text = text.strip()
    while text:
        try:
            written, end = decoder.raw_decode(text)
        except ValueError:
            return None
        call = _call(written)
        if call is None:
            return None
        calls.append(call)
        text = text[end:].lstrip()
    return calls


def _call(written: object) -> ToolCallPart | None:
    if not isinstance(written, dict):
        return None
    name, arguments = written.get("name"), written.get("arguments") or {}
    if not isinstance(name, str) or not name or not isinstance(arguments, dict):
        return None
    return ToolCallPart(name=name, arguments=arguments)


class TagSplitter:
    """Takes a streamed text apart at its tags. What may be the beginning of a tag is held back until it is clear."""

    def __init__(self, *tags: str) -> None:
        self._openings = {f"<{tag}>": tag for tag in tags}
        self._inside = ""
        self._held = ""

    def feed(self, text: str) -> Iterator[tuple[str, str]]:
        """Yield pairs of a tag and the text within it; outside of any the tag is empty."""
        self._held += text
        while self._held:
            marks = {f"</{self._inside}>": ""} if self._inside else self._openings
            found = min(((self._held.find(mark), mark) for mark in marks if mark in self._held), default=None)
            if found is None:
                yield from self._release(len(self._held) - self._possible_beginning(marks))
                return
            place, mark = found
            yield from self._release(place)
            self._held = self._held[len(mark) :]
            self._inside = marks[mark]

    def end(self) -> Iterator[tuple[str, str]]:
        """Yield what was held back."""
        yield from self._release(len(self._held))

    def _release(self, count: int) -> Iterator[tuple[str, str]]:
        released, self._held = self._held[:count], self._held[count:]
        if released:
            yield self._inside, released

    def _possible_beginning(self, marks: dict[str, str]) -> int:
        """Return how many characters at the end may be the beginning of a tag."""
        longest = max(map(len, marks), default=0) - 1
        sizes = range(min(longest, len(self._held)), 0, -1)
        return next((size for size in sizes if any(mark.startswith(self._held[-size:]) for mark in marks)), 0)

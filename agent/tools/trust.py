"""What a turn has taken in from outside, and what follows from it: which calls wait for the person's click.

What comes from the web, a file or a tool is data. Once it is in the turn, the turn is tainted until the person's next
message: an instruction hidden in it must not be able to send anything out, to overwrite anything, or to spend much.
Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from pydantic import Field, JsonValue

from agent.fetching.urls import normalized
from agent.messages import Value
from agent.untrusted import plain

MOST_URLS = 2000
MOST_CHARACTERS = 64_000
_CUT = " [truncated]"

_URL = re.compile(r"https?://[^\s<>\"'`\\^{}|\u3000-\u303f\uff00-\uffef]+", re.I)
_TRAILING = ".,;:!?)]*_~"


class Trust(Value):
    """What is known of a turn so far. `urls` are the addresses that stood in what came from outside, as `normalized`
    writes them, and `used` counts the calls of each tool."""

    is_tainted: bool = False
    urls: tuple[str, ...] = ()
    used: dict[str, int] = Field(default_factory=dict)

    def after(self, source: str, urls: Iterable[str]) -> Trust:
        """Return what is known once something from a source has come into the turn; an empty source is our own."""
        if not source:
            return self
        known = dict.fromkeys([*self.urls, *comparable(urls)])
        return self.model_copy(update={"is_tainted": True, "urls": tuple(known)[:MOST_URLS]})

    def counted(self, names: Iterable[str]) -> Trust:
        """Return what is known after calls of these tools."""
        used = dict(self.used)
        for name in names:
            used[name] = used.get(name, 0) + 1
        return self.model_copy(update={"used": used})


def comparable(urls: Iterable[str]) -> tuple[str, ...]:
    """Return the addresses in the one spelling in which they are compared, without those that may never be read."""
    return tuple(filter(None, map(normalized, urls)))


def urls_in(text: str) -> tuple[str, ...]:
    """Return the web addresses that stand in a text, as they stand there, without what ends a sentence."""
    found = (match[0] for match in _URL.finditer(text))
    return tuple(dict.fromkeys(_without_ending(one) for one in found))


def _without_ending(url: str) -> str:
    while url and url[-1] in _TRAILING:
        if url[-1] == ")" and url.count("(") >= url.count(")"):
            break
        url = url[:-1]
    return url


def framed(content: Mapping[str, JsonValue], source: str) -> dict[str, JsonValue]:
    """Return what a tool found as it goes to the model: capped, and what came from outside marked as such and without
    characters that nobody sees."""
    if not source:
        return _Capped(MOST_CHARACTERS).taken_from(content)
    shown = _Capped(MOST_CHARACTERS, is_outside=True).taken_from(content)
    return {**shown, "untrusted": True, "source": plain(source)[:2048]}


class _Capped:
    """Copies JSON and cuts its words where there would be too many in all."""

    def __init__(self, room: int, *, is_outside: bool = False) -> None:
        self._room = room
        self._is_outside = is_outside

    def taken_from(self, content: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
        return {self._text(key): self._value(value) for key, value in content.items() if self._room > 0}

    def _value(self, value: JsonValue) -> JsonValue:
        match value:
            case str():
                return self._text(value)
            case list():
                return [self._value(one) for one in value if self._room > 0]
            case dict():
                return self.taken_from(value)
            case _:
                self._room -= 8
                return value

    def _text(self, text: str) -> str:
        # Cut first: of ten megabytes only what can be kept is looked at.
        cut = text[: max(0, self._room)]
        shown = (plain(cut) if self._is_outside else cut) + (_CUT if len(cut) < len(text) else "")
        self._room -= len(shown) + 4
        return shown

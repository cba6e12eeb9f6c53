"""What the model has before it that came from outside, and what follows: which calls wait for the person's click.

Nothing is remembered beside the record: it is read from the very messages that the model is given, each time. A page,
the result of a search, an answer of an MCP server and a file from outside are marked in their tool's result
(`framed`); an upload is a picture of that origin; an imported turn is marked as one. So it cannot be forgotten, by a
restart, a retry, a branch or a copy, while the model still has it before it. It holds for all that follows in the
conversation, too: what the model wrote after reading a page may carry the page's words on. Pure.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from pydantic import JsonValue

from agent.conversation import Turn
from agent.events import Component, SearchNote
from agent.fetching.urls import host_of, normalized
from agent.messages import ContentPart, ImageOrigin, ImagePart, PromptMessage, ToolResultPart, Value
from agent.untrusted import plain_text

MOST_CHARACTERS = 64_000
READ_URL = "read_url"
_CUT = " [truncated]"
_MARK = "untrusted"

_URL = re.compile(r"https?://[^\s<>\"'`\\^{}|\u3000-\u303f\uff00-\uffef]+", re.I)
# A person writes `example.org/page` without its scheme.
_BARE = re.compile(
    r"(?<![\w@./:-])(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z]{2,24}(?![\w-])(?:[/?#][^\s<>\"'`\\^{}|\u3000-\u303f\uff00-\uffef]*)?",
    re.I,
)
_TRAILING = ".,;:!?)]*_~"


class Trust(Value):
    """What a turn knows of what came from outside.

    It `is_tainted` when anything of it is before the model. `urls` are the addresses that may be read without a click,
    as `normalized` writes them.
    """

    is_tainted: bool = False
    urls: frozenset[str] = frozenset()


def trust_before(turns: Sequence[Turn]) -> Trust:
    """Return what is known of the turns before one, in its branch; of pages read then no address is left to be read."""
    return Trust(
        is_tainted=any(one.is_imported or _brings_outside(_parts(one.messages), one.components) for one in turns),
        urls=frozenset(url for one in turns for url in _named_in(one, one.components)),
    )


def trust_of(
    before: Trust, turn: Turn, added: Sequence[PromptMessage | ToolResultPart], shown: Sequence[Component]
) -> Trust:
    """Return what is known in a turn, after those `before` it, of what it has `added` to the history and `shown`."""
    parts = list(_parts(added))
    return Trust(
        is_tainted=before.is_tainted or _brings_outside(parts, shown),
        urls=before.urls.union(_named_in(turn, shown), _of_sites_read(parts)),
    )


def uses_of_tools(messages: Sequence[PromptMessage]) -> Counter[str]:
    """Return how often each tool was called in messages."""
    return Counter(part.name for part in _parts(messages) if isinstance(part, ToolResultPart))


def is_from_outside(part: ContentPart) -> bool:
    """Whether a part of a message holds something that came from outside of the studio."""
    match part:
        case ImagePart():
            return part.origin is ImageOrigin.UPLOADED
        case ToolResultPart():
            return part.content.get(_MARK) is True or any(map(is_from_outside, part.images))
        case _:
            return False


def _brings_outside(parts: Iterable[ContentPart], shown: Sequence[Component]) -> bool:
    # A picture that was painted after a search holds what was found.
    return any(map(is_from_outside, parts)) or any(isinstance(one, SearchNote) for one in shown)


def _parts(added: Iterable[PromptMessage | ToolResultPart]) -> Iterator[ContentPart]:
    for one in added:
        if isinstance(one, PromptMessage):
            yield from one.parts
        else:
            yield one


def _named_in(turn: Turn, shown: Sequence[Component]) -> Iterator[str]:
    """Yield the addresses that the person said in a turn, and those of what was found by searching: the search's own,
    never one that a model wrote down. Whose words an import holds nobody knows."""
    if turn.is_imported:
        return
    yield from comparable(urls_in(turn.text))
    yield from comparable(_with_schemes(turn.text))
    notes = (one for one in shown if isinstance(one, SearchNote))
    yield from comparable(source.url for note in notes for source in note.sources)


def _of_sites_read(parts: Sequence[ContentPart]) -> frozenset[str]:
    """Return the addresses that a page of the same site names which was read in this turn, as the model was told it."""
    found: set[str] = set()
    for part in parts:
        if isinstance(part, ToolResultPart) and part.name == READ_URL and not part.is_error:
            site = _site_of(normalized(str(part.content.get("url", ""))))
            named = comparable(url for text in _texts(dict(part.content)) for url in urls_in(text))
            found.update(url for url in named if site and _site_of(url) == site)
    return frozenset(found)


def _site_of(url: str) -> str:
    """Return what two addresses have in common when they are of one site: the host, with or without `www.`."""
    return host_of(url).removeprefix("www.") if url else ""


def _texts(value: JsonValue) -> Iterator[str]:
    match value:
        case str():
            yield value
        case list():
            for one in value:
                yield from _texts(one)
        case dict():
            for one in value.values():
                yield from _texts(one)


def comparable(urls: Iterable[str]) -> tuple[str, ...]:
    """Return the addresses in the one spelling in which they are compared, without those that may never be read."""
    return tuple(filter(None, map(normalized, urls)))


def urls_in(text: str) -> tuple[str, ...]:
    """Return the web addresses that stand in a text, as they stand there, without what ends a sentence."""
    found = (match[0] for match in _URL.finditer(text))
    return tuple(dict.fromkeys(_without_ending(one) for one in found))


def _with_schemes(text: str) -> Iterator[str]:
    """Yield the addresses that a person wrote without their scheme, with either."""
    for match in _BARE.finditer(text):
        bare = _without_ending(match[0])
        yield f"https://{bare}"
        yield f"http://{bare}"


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
    return {**shown, _MARK: True, "source": plain_text(source)[:2048]}


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
        shown = (plain_text(cut) if self._is_outside else cut) + (_CUT if len(cut) < len(text) else "")
        self._room -= len(shown) + 4
        return shown

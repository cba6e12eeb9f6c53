"""Which external content is in the model's context, and therefore which calls wait for the user's click.

No separate state is kept: the answer is computed each time from the messages that the model gets. A page, a search
result, an answer of an MCP server and an untrusted file are marked in their tool's result (`framed`); an upload is a
picture with that origin; an imported turn is marked as imported. So a restart, a retry, a branch or a copy cannot lose
the information while the content is still in the model's context. A taint also holds for the rest of the conversation,
because text that the model wrote after reading a page may repeat the page's text. All functions are pure.
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
# Users write `example.org/page` without the scheme.
_BARE = re.compile(
    r"(?<![\w@./:-])(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z]{2,24}(?![\w-])(?:[/?#][^\s<>\"'`\\^{}|\u3000-\u303f\uff00-\uffef]*)?",
    re.I,
)
_TRAILING = ".,;:!?)]*_~"


class Trust(Value):
    """The external content of a turn.

    `is_tainted` says that external content is in the model's context. `urls` are the addresses that may be read without
    a click, as spelled by `normalized`.
    """

    is_tainted: bool = False
    urls: frozenset[str] = frozenset()


def trust_before(turns: Sequence[Turn]) -> Trust:
    """Return the trust after the earlier turns of a branch; links of pages read in those turns are not allowed."""
    return Trust(
        is_tainted=any(one.is_imported or _brings_outside(_parts(one.messages), one.components) for one in turns),
        urls=frozenset(url for one in turns for url in _named_in(one, one.components)),
    )


def trust_of(
    before: Trust, turn: Turn, added: Sequence[PromptMessage | ToolResultPart], shown: Sequence[Component]
) -> Trust:
    """Return the trust in a turn: that `before` it, with what the turn has `added` to the history and `shown`."""
    parts = list(_parts(added))
    return Trust(
        is_tainted=before.is_tainted or _brings_outside(parts, shown),
        urls=before.urls.union(_named_in(turn, shown), _of_sites_read(parts)),
    )


def uses_of_tools(messages: Sequence[PromptMessage]) -> Counter[str]:
    """Return how often each tool was called in the messages."""
    return Counter(part.name for part in _parts(messages) if isinstance(part, ToolResultPart))


def is_from_outside(part: ContentPart) -> bool:
    """Return whether a part of a message contains external content."""
    match part:
        case ImagePart():
            return part.origin is ImageOrigin.UPLOADED
        case ToolResultPart():
            return part.content.get(_MARK) is True or any(map(is_from_outside, part.images))
        case _:
            return False


def _brings_outside(parts: Iterable[ContentPart], shown: Sequence[Component]) -> bool:
    # A picture that was painted after a search may contain what was found.
    return any(map(is_from_outside, parts)) or any(isinstance(one, SearchNote) for one in shown)


def _parts(added: Iterable[PromptMessage | ToolResultPart]) -> Iterator[ContentPart]:
    for one in added:
        if isinstance(one, PromptMessage):
            yield from one.parts
        else:
            yield one


def _named_in(turn: Turn, shown: Sequence[Component]) -> Iterator[str]:
    """Yield the addresses that the user wrote in a turn, and those found by a search.

    For a search they are its own sources, never an address that a model wrote. An imported turn yields none, because
    the author of its text is unknown.
    """
    if turn.is_imported:
        return
    yield from comparable(urls_in(turn.text))
    without_scheme = (_without_ending(match[0]) for match in _BARE.finditer(turn.text))
    yield from comparable(f"{scheme}://{bare}" for bare in without_scheme for scheme in ("https", "http"))
    notes = (one for one in shown if isinstance(one, SearchNote))
    yield from comparable(source.url for note in notes for source in note.sources)


def _of_sites_read(parts: Sequence[ContentPart]) -> frozenset[str]:
    """Return the addresses in pages read in this turn that belong to the same site as their page."""
    found: set[str] = set()
    for part in parts:
        if isinstance(part, ToolResultPart) and part.name == READ_URL and not part.is_error:
            site = _site_of(normalized(str(part.content.get("url", ""))))
            named = comparable(url for text in _texts(dict(part.content)) for url in urls_in(text))
            found.update(url for url in named if site and _site_of(url) == site)
    return frozenset(found)


def _site_of(url: str) -> str:
    """Return the site of an address: its host without `www.`."""
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
    """Return the addresses in their canonical spelling, without those that are never allowed."""
    return tuple(filter(None, map(normalized, urls)))


def urls_in(text: str) -> tuple[str, ...]:
    """Return the web addresses in a text as they are written, without trailing punctuation."""
    return tuple(dict.fromkeys(_without_ending(match[0]) for match in _URL.finditer(text)))


def _without_ending(url: str) -> str:
    while url and url[-1] in _TRAILING:
        if url[-1] == ")" and url.count("(") >= url.count(")"):
            break
        url = url[:-1]
    return url


def framed(content: Mapping[str, JsonValue], source: str) -> dict[str, JsonValue]:
    """Return the content of a tool's answer as it is sent to the model, cut to the limit.

    External content is marked as untrusted and cleaned of invisible characters.
    """
    shown = _Capped(is_outside=bool(source)).taken_from(content)
    return {**shown, _MARK: True, "source": plain_text(source)[:2048]} if source else shown


class _Capped:
    """A copier of JSON that cuts texts when the total would be too long."""

    def __init__(self, *, is_outside: bool) -> None:
        self._room = MOST_CHARACTERS
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
        # Cut before cleaning, so that of ten megabytes only a small part is processed.
        cut = text[: max(0, self._room)]
        shown = (plain_text(cut) if self._is_outside else cut) + (_CUT if len(cut) < len(text) else "")
        self._room -= len(shown) + 4
        return shown

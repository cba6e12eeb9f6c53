"""Convert the answers of OpenAI-compatible servers to our chunks, and classify how they end. Pure; stores nothing.

The code assumes little: servers differ in what they leave out, send as null or number wrongly.
"""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import httpx2

from agent.errors import Charge, ErrorCode, ErrorInfo
from agent.messages import CompletionChunk, TextPart, TokenUsage, ToolCallPart
from agent.pictures import mime_type_of
from agent.providers.catalogue import ModelEntry
from agent.providers.openai_wire import THINK, TOOL_CALL, TagSplitter, Wire, read_calls

# The meaning of each finish reason; None is a good end. Unknown ones are judged by what arrived.
TEXT_ENDS: dict[str, ErrorCode | None] = {
    "stop": None,
    "tool_calls": None,
    "function_call": None,
    "length": ErrorCode.ANSWER_TOO_LONG,
    "content_filter": ErrorCode.ANSWER_BLOCKED,
    "insufficient_system_resource": ErrorCode.OVERLOADED,
    "error": ErrorCode.UNKNOWN_REASON,
}


# ---- text


@dataclass
class _Call:
    """A call that is being streamed: its id, its name, and its arguments so far."""

    index: int | None
    call_id: str | None
    name: str = ""
    arguments: str = ""


@dataclass
class _Calls:
    """The calls of an answer, assembled from their streamed pieces."""

    begun: list[_Call] = field(default_factory=list)

    def add(self, delta: Wire) -> None:
        """Add a piece. Some servers number every call 0 or not at all: then a new id or name starts a new call."""
        index = delta.get("index") if isinstance(delta.get("index"), int) else None
        call_id = _string(delta.get("id")) or None
        function = _object(delta.get("function"))
        name = _string(function.get("name"))
        call = self._of(index, call_id, name)
        if call is None:
            call = _Call(index, call_id)
            self.begun.append(call)
        call.call_id = call.call_id or call_id
        call.name = call.name or name
        arguments = function.get("arguments")
        call.arguments += json.dumps(arguments) if isinstance(arguments, dict) else _string(arguments)

    def _of(self, index: int | None, call_id: str | None, name: str) -> _Call | None:
        if index is None:
            latest = self.begun[-1] if self.begun else None
            is_new = bool(name) and (call_id is None or latest is None or call_id != latest.call_id)
            return None if is_new else latest
        of_index = [call for call in self.begun if call.index == index]
        if not of_index or (call_id and of_index[-1].call_id and call_id != of_index[-1].call_id):
            return None
        return of_index[-1]

    def parts(self) -> list[ToolCallPart] | None:
        """Return the calls in order, or None when one is malformed."""
        parts = []
        for call in self.begun:
            arguments = _arguments(call.arguments)
            if arguments is None or not call.name:
                return None
            parts.append(ToolCallPart(name=call.name, arguments=arguments, call_id=call.call_id))
        return parts


class ChatReader:
    """Converts the events of one streamed answer to chunks, and classifies its end.

    `read` takes each event as it comes; `end` yields what is known only after the stream, including the calls.
    """

    def __init__(self, model: ModelEntry, service: str) -> None:
        self._model = model
        self._service = service
        self._splitter = TagSplitter(THINK) if model.has_tools else TagSplitter(THINK, TOOL_CALL)
        self._calls = _Calls()
        self._calls_in_words = ""
        self._has_text = False
        self._finish_reason: str | None = None
        self._usage: Wire = {}

    def read(self, event: Wire) -> Iterator[CompletionChunk]:
        """Yield the thoughts and text of the event; an empty chunk when it has neither.

        The empty chunk is a sign of life: the model may take minutes to write a call.
        """
        yield from list(self._chunks_of(event)) or [CompletionChunk()]

    def _chunks_of(self, event: Wire) -> Iterator[CompletionChunk]:
        self._usage = _object(event.get("usage")) or self._usage
        choice = _object(next(iter(_list(event.get("choices"))), None))
        delta = _object(choice.get("delta"))
        yield from self._thought(_string(delta.get("reasoning_content")) or _string(delta.get("reasoning")))
        for text in (_words(delta.get("content")), _string(delta.get("refusal"))):
            if text:
                yield from self._split(self._splitter.feed(text))
        for call in _list(delta.get("tool_calls")):
            self._calls.add(_object(call))
        self._finish_reason = _string(choice.get("finish_reason")) or self._finish_reason

    def end(self) -> Iterator[CompletionChunk]:
        """Yield the calls, then the usage, the finish reason and the problem, if any."""
        yield from self._split(self._splitter.end())
        calls = self._calls.parts()
        in_words = read_calls(self._calls_in_words)
        problem = self._problem(calls is None or in_words is None)
        if problem is None:
            for call in (calls or []) + (in_words or []):
                yield CompletionChunk(part=call)
        yield CompletionChunk(usage=self.usage, finish_reason=self._finish_reason, error=problem)

    @property
    def usage(self) -> TokenUsage | None:
        """The tokens of the answer so far; None while the server has not reported any."""
        return usage_from_wire(self._usage) if self._usage else None

    def _split(self, pieces: Iterator[tuple[str, str]]) -> Iterator[CompletionChunk]:
        for tag, text in pieces:
            if tag == THINK:
                yield from self._thought(text)
            elif tag == TOOL_CALL:
                self._calls_in_words += text
            else:
                # Many models begin with empty lines, especially after their thoughts.
                shown = text if self._has_text else text.lstrip()
                if shown:
                    self._has_text = True
                    yield CompletionChunk(part=TextPart(text=shown))

    def _thought(self, text: str) -> Iterator[CompletionChunk]:
        # Marked with the model's id: some models need their own thoughts sent back.
        if text:
            yield CompletionChunk(part=TextPart(text=text, is_thought=True, signed_by=self._model.id))

    def _problem(self, is_garbled: bool) -> ErrorInfo | None:
        has_answer = self._has_text or bool(self._calls.begun or self._calls_in_words)
        code = TEXT_ENDS.get(self._finish_reason or "")
        if code is None and not has_answer:
            code = ErrorCode.EMPTY_ANSWER
        elif code is None and self._finish_reason is None:
            code = ErrorCode.ANSWER_UNFINISHED
        elif code is None and is_garbled:
            code = ErrorCode.MALFORMED_CALL
        if code is None:
            return None
        parameters = {"reason": self._finish_reason or "", "service": self._service, "model": self._model.label}
        # Without a token count, it is unknown whether it was charged.
        charge = Charge.MAYBE if self.usage is None or code.charge is Charge.MAYBE else Charge.YES
        return ErrorInfo(code=code, parameters={**parameters}, charge=charge)


def usage_from_wire(usage: Wire) -> TokenUsage:
    """Return the token counts by kind, of a text or image call; missing counts are 0."""
    prompt = _object(usage.get("prompt_tokens_details")) or _object(usage.get("input_tokens_details"))
    cached = _count(prompt.get("cached_tokens")) or _count(usage.get("prompt_cache_hit_tokens"))
    thoughts = _count(_object(usage.get("completion_tokens_details")).get("reasoning_tokens"))
    return TokenUsage(
        prompt_tokens=_count(usage.get("prompt_tokens")) or _count(usage.get("input_tokens")),
        cached_tokens=cached,
        output_tokens=max(0, _count(usage.get("completion_tokens")) - thoughts),
        thought_tokens=thoughts,
        image_tokens=_count(usage.get("output_tokens")),
    )


# ---- pictures


@dataclass(frozen=True, slots=True)
class ArrivedPicture:
    """A received picture that is not in the store yet."""

    data: bytes
    mime_type: str


def read_picture(answer: Wire, base_url: str) -> ArrivedPicture | str | ErrorInfo:
    """Return the picture from the answer of an image call, its address on the same server, or why there is none."""
    found = _object(next(iter(_list(answer.get("data"))), None))
    encoded, url = _string(found.get("b64_json")), _string(found.get("url"))
    if encoded or url.startswith("data:"):
        return _decoded(encoded or url)
    if not url:
        return ErrorInfo(code=ErrorCode.NO_PICTURE, parameters={"reason": "no data"})
    address = _address_at_home(url, base_url)
    # An answer must not make the studio contact other machines, for example in its own network.
    reason = {"reason": "its file is on another server"}
    return address or ErrorInfo(code=ErrorCode.NO_PICTURE, parameters=reason)


def picture_of(data: bytes) -> ArrivedPicture | ErrorInfo:
    """Return the bytes with the picture type of their signature, or BROKEN_PICTURE."""
    mime_type = mime_type_of(data)
    return ArrivedPicture(data, mime_type) if mime_type else ErrorInfo(code=ErrorCode.BROKEN_PICTURE)


def _decoded(encoded: str) -> ArrivedPicture | ErrorInfo:
    if encoded.startswith("data:"):
        encoded = encoded.partition(",")[2]
    try:
        return picture_of(b64decode("".join(encoded.split()), validate=True))
    except ValueError:
        return ErrorInfo(code=ErrorCode.BROKEN_PICTURE)


def _address_at_home(url: str, base_url: str) -> str | None:
    """Return the absolute address if it is on the same server, parsed by the client that will use it, so both agree."""
    home = httpx2.URL(base_url)
    try:
        address = home.join(url)
    except (httpx2.InvalidURL, ValueError):
        return None
    is_at_home = (address.scheme, address.host, address.port) == (home.scheme, home.host, home.port)
    return str(address) if is_at_home and not address.userinfo else None


# ---- untrusted values


def _object(value: Any) -> Wire:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _string(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _count(value: Any) -> int:
    return value if isinstance(value, int) and value > 0 else 0


def _words(content: Any) -> str:
    """Return the text of a delta; some servers send it in parts."""
    if isinstance(content, list):
        return "".join(_string(_object(part).get("text")) for part in content)
    return _string(content)


def _arguments(text: str) -> Wire | None:
    if not text.strip():
        return {}
    try:
        arguments = json.loads(text, strict=False)
    except ValueError:
        return None
    return arguments if isinstance(arguments, dict) else None

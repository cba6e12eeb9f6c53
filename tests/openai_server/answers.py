"""What the server can be told to answer: good answers, odd ones, and everything that can go wrong."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

import orjson

from tests.openai_server.request import ChatRequest, PictureRequest
from tests.wire_server.answers import Answer
from tests.wire_server.pictures import paint
from tests.wire_server.refusals import Json
from tests.wire_server.serving import Event, HangUp, Response, Step

USAGE: Json = {
    "prompt_tokens": 40,
    "completion_tokens": 12,
    "total_tokens": 52,
    "prompt_tokens_details": {"cached_tokens": 8},
    "completion_tokens_details": {"reasoning_tokens": 5},
}
PICTURE_USAGE: Json = {
    "input_tokens": 30,
    "output_tokens": 1056,
    "total_tokens": 1086,
    "input_tokens_details": {"text_tokens": 30, "image_tokens": 0},
}


Request = ChatRequest | PictureRequest


def _chunk(delta: Json, finish_reason: str | None = None) -> Event:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
    return Event({"object": "chat.completion.chunk", "id": "1", "choices": [choice], "usage": None})


def _end() -> Iterator[Step]:
    yield Event({"object": "chat.completion.chunk", "id": "1", "choices": [], "usage": USAGE})
    yield Event(b"[DONE]")


def _pieces(text: str, count: int) -> list[str]:
    size = max(1, -(-len(text) // count))
    return [text[start : start + size] for start in range(0, len(text), size)]


@dataclass(frozen=True)
class Text(Answer):
    """A text in so many pieces, after thoughts perhaps, under the field that the server has for them."""

    text: str
    chunks: int = 3
    thoughts: str = ""
    thoughts_field: str = "reasoning_content"
    finish_reason: str | None = "stop"

    def steps(self, request: Request) -> Iterator[Step]:
        yield _chunk({"role": "assistant", "content": ""})
        if self.thoughts:
            for piece in _pieces(self.thoughts, 2):
                yield _chunk({self.thoughts_field: piece, "content": None})
        for piece in _pieces(self.text, self.chunks):
            yield _chunk({"content": piece})
        yield _chunk({}, self.finish_reason)
        yield from _end()


@dataclass(frozen=True)
class Call:
    """One function call."""

    name: str
    arguments: Json = field(default_factory=dict)
    id: str = ""
    raw: str | None = None

    @property
    def written(self) -> str:
        """The arguments as the wire has them."""
        return orjson.dumps(self.arguments).decode() if self.raw is None else self.raw


@dataclass(frozen=True)
class Calls(Answer):
    """Function calls, their arguments in pieces.

    `numbering` is how the server tells them apart: by `index`, or with every index `zero` or `none` as some do.
    """

    calls: Sequence[Call]
    text_before: str = ""
    thoughts: str = ""
    numbering: Literal["index", "zero", "none"] = "index"
    finish_reason: str = "tool_calls"

    def steps(self, request: Request) -> Iterator[Step]:
        yield _chunk({"role": "assistant", "content": None})
        if self.thoughts:
            yield _chunk({"reasoning_content": self.thoughts})
        if self.text_before:
            yield _chunk({"content": self.text_before})
        for place, call in enumerate(self.calls):
            call_id = call.id or f"call_{getattr(request, 'number', 0)}_{place}"
            pieces = _pieces(call.written, 3) or [""]
            first = {"id": call_id, "type": "function", "function": {"name": call.name, "arguments": pieces[0]}}
            yield self._delta(place, first)
            for piece in pieces[1:]:
                yield self._delta(place, {"function": {"arguments": piece}})
        yield _chunk({}, self.finish_reason)
        yield from _end()

    def _delta(self, place: int, delta: Json) -> Event:
        index = {"index": {"index": place, "zero": 0, "none": None}[self.numbering]}
        return _chunk({"tool_calls": [delta if self.numbering == "none" else index | delta]})


@dataclass(frozen=True)
class Events(Answer):
    """Events as they are, then `[DONE]`."""

    events: Sequence[Json | bytes]

    def steps(self, request: Request) -> Iterator[Step]:
        yield from map(Event, self.events)
        yield Event(b"[DONE]")


@dataclass(frozen=True)
class Raw(Answer):
    """A whole response as it is, whatever was asked."""

    body: Json | bytes
    status: int = 200

    def steps(self, request: Request) -> Iterator[Step]:
        yield Response(self.status, self.body)


@dataclass(frozen=True)
class HttpError(Answer):
    """An error status with the API's body, or another one."""

    status: int
    message: str = "no"
    code: str | None = None
    body: Json | bytes | None = None
    headers: dict[str, str] = field(default_factory=dict)

    def steps(self, request: Request) -> Iterator[Step]:
        error = {"message": self.message, "type": "some_error", "param": None, "code": self.code}
        yield Response(self.status, {"error": error} if self.body is None else self.body, self.headers)


@dataclass(frozen=True)
class MidStreamError(Answer):
    """A text that breaks off with an error in an event."""

    after_chunks: int
    event: Json

    def steps(self, request: Request) -> Iterator[Step]:
        yield from list(Text("one two three four", chunks=4).steps(request))[: self.after_chunks]
        yield Event(self.event)


@dataclass(frozen=True)
class Cut(Answer):
    """A text whose connection breaks after so many chunks."""

    after_chunks: int

    def steps(self, request: Request) -> Iterator[Step]:
        yield from list(Text("one two three four", chunks=4).steps(request))[: self.after_chunks]
        yield HangUp()


@dataclass(frozen=True)
class Picture(Answer):
    """A picture of the size asked for, as base64."""

    mime_type: str = "image/png"
    usage: Json | None = None

    def steps(self, request: Request) -> Iterator[Step]:
        assert isinstance(request, PictureRequest)
        data = paint(*request.size, self.mime_type, f"{request.prompt} {request.number}")
        body: Json = {"created": 1, "data": [{"b64_json": base64.b64encode(data).decode()}]}
        if self.usage is not None:
            body["usage"] = self.usage
        yield Response(200, body)


@dataclass(frozen=True)
class PictureAt(Answer):
    """A picture told by its address; `{server}` in it is the server itself, where `/files/` holds pictures."""

    url: str = "{server}/files/one.png"

    def steps(self, request: Request) -> Iterator[Step]:
        url = self.url.replace("{server}", f"http://{request.headers['host']}")
        yield Response(200, {"created": 1, "data": [{"url": url}]})

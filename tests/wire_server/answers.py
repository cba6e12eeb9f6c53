"""What a text model can be told to answer, and everything that can go wrong with any model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import orjson

from tests.wire_server.refusals import INTERNAL, OVERLOADED, Json, error_body
from tests.wire_server.signatures import CALL_BYTES, TEXT_BYTES
from tests.wire_server.steps import Answer, Asked, Failure, HangUp, Piece, Raw, Step, Whole

_CHIP = (
    "<style>.chip { border: solid 1px; border-radius: 16px; padding: 5px 16px; }</style>\n"
    '<div class="container"><a class="chip" href="https://vertexaisearch.cloud.google.com/'
    'grounding-api-redirect/suggested">QUERY</a></div>'
)


@dataclass(frozen=True)
class Text(Answer):
    """A text in so many chunks.

    `signed` says where the signature rides: `empty_part` (a last, empty text part, as Gemini 3 streams it),
    `last_text`, or `none`.
    """

    text: str
    chunks: int | None = None
    signed: str = "empty_part"
    thoughts: str = ""
    finish_reason: str = "STOP"

    def steps(self, asked: Asked) -> Iterator[Step]:
        yield from thinking(asked, self.thoughts)
        pieces = split(self.text, self.chunks)
        for text in pieces[:-1]:
            yield Piece(({"text": text},))
        last = {"text": pieces[-1]}
        if self.signed == "empty_part":
            yield Piece((last,))
            last = {"text": ""}
        if self.signed != "none":
            last = asked.signed(last, TEXT_BYTES)
        yield Piece((last,), finish_reason=self.finish_reason)


@dataclass(frozen=True)
class Call(Answer):
    """A function call, whole in one chunk, signed; then an empty text and STOP."""

    name: str
    args: Json = field(default_factory=dict)
    text_before: str = ""
    id: str | None = None
    thoughts: str = ""

    def steps(self, asked: Asked) -> Iterator[Step]:
        return Calls([self], self.text_before, self.thoughts).steps(asked)

    def part(self) -> Json:
        """Return the unsigned part."""
        call: Json = {"name": self.name, "args": self.args}
        return {"functionCall": call if self.id is None else {"id": self.id, **call}}


@dataclass(frozen=True)
class Calls(Answer):
    """Parallel function calls: only the first is signed."""

    calls: Sequence[Call]
    text_before: str = ""
    thoughts: str = ""

    def steps(self, asked: Asked) -> Iterator[Step]:
        yield from thinking(asked, self.thoughts)
        if self.text_before:
            for text in split(self.text_before, None):
                yield Piece(({"text": text},))
        first, *others = (call.part() for call in self.calls)
        yield Piece((asked.signed(first, CALL_BYTES), *others))
        yield Piece(({"text": ""},), finish_reason="STOP")


@dataclass(frozen=True)
class Grounding:
    """What Google's search adds to an answer. Sources are (title, address); supports are (text, source numbers)."""

    sources: Sequence[tuple[str, str]] = (("example.org", "https://vertexaisearch.cloud.google.com/redirect/1"),)
    queries: Sequence[str] = ("a query",)
    suggestions_html: str | None = None
    supports: Sequence[tuple[str, Sequence[int]]] = ()
    image_queries: Sequence[str] = ()

    def metadata(self, answer: str = "") -> Json:
        """Return the groundingMetadata; places in the answer are counted in UTF-8 bytes."""
        html = self.suggestions_html
        if html is None:
            html = _CHIP.replace("QUERY", self.queries[0] if self.queries else "")
        found: Json = {"webSearchQueries": list(self.queries)}
        if self.image_queries:
            found["imageSearchQueries"] = list(self.image_queries)
        if html:
            found["searchEntryPoint"] = {"renderedContent": html}
        if self.sources:
            found["groundingChunks"] = [{"web": {"uri": uri, "title": title}} for title, uri in self.sources]
        if self.supports:
            found["groundingSupports"] = [self._support(answer, text, numbers) for text, numbers in self.supports]
        return found

    @staticmethod
    def _support(answer: str, text: str, numbers: Sequence[int]) -> Json:
        start = len(answer[: answer.index(text)].encode())
        segment = {"startIndex": start, "endIndex": start + len(text.encode()), "text": text}
        return {"segment": segment, "groundingChunkIndices": list(numbers)}


@dataclass(frozen=True)
class Search(Answer):
    """A grounded answer: the text (a JSON value is written out), with the metadata on its last chunk."""

    facts: Any
    sources: Sequence[tuple[str, str]] = Grounding.sources
    queries: Sequence[str] = Grounding.queries
    suggestions_html: str | None = None
    supports: Sequence[tuple[str, Sequence[int]]] = ()
    chunks: int | None = None

    def steps(self, asked: Asked) -> Iterator[Step]:
        text = self.facts if isinstance(self.facts, str) else orjson.dumps(self.facts).decode()
        grounding = Grounding(self.sources, self.queries, self.suggestions_html, self.supports)
        for piece in split(text, self.chunks):
            yield Piece(({"text": piece},), grounding={})
        last = asked.signed({"text": ""}, TEXT_BYTES)
        yield Piece((last,), finish_reason="STOP", grounding=grounding.metadata(text))


@dataclass(frozen=True)
class Finish(Answer):
    """An answer that ends for this reason, HTTP 200: without parts unless there is a text before."""

    reason: str
    message: str | None = None
    text_before: str = ""

    def steps(self, asked: Asked) -> Iterator[Step]:
        if self.text_before:
            yield Piece(({"text": self.text_before},))
        yield Piece((), finish_reason=self.reason, finish_message=self.message)


@dataclass(frozen=True)
class MalformedCall(Answer):
    """The model tried to call a function and wrote nonsense."""

    message: str = "Malformed function call: print(default_api.generate_image(prompt="

    def steps(self, asked: Asked) -> Iterator[Step]:
        return Finish("MALFORMED_FUNCTION_CALL", self.message).steps(asked)


@dataclass(frozen=True)
class Empty(Answer):
    """STOP, and nothing said; with `has_empty_part` there is a part without content."""

    has_empty_part: bool = False

    def steps(self, asked: Asked) -> Iterator[Step]:
        yield Piece(({},) if self.has_empty_part else (), finish_reason="STOP")


@dataclass(frozen=True)
class Blocked(Answer):
    """The prompt itself was blocked: promptFeedback and no candidates, HTTP 200."""

    reason: str = "PROHIBITED_CONTENT"
    message: str | None = None

    def steps(self, asked: Asked) -> Iterator[Step]:
        feedback = {"blockReason": self.reason}
        if self.message:
            feedback["blockReasonMessage"] = self.message
        yield Whole({"promptFeedback": feedback})


@dataclass(frozen=True)
class HttpError(Answer):
    """An error answer: a body as given, or made from the status and the message."""

    status: int
    message: str = ""
    body: Json | bytes | None = None
    headers: dict[str, str] = field(default_factory=dict)

    def steps(self, asked: Asked) -> Iterator[Step]:
        usual = {500: INTERNAL, 503: OVERLOADED}.get(self.status, "Request contains an invalid argument.")
        body = self.body if self.body is not None else error_body(self.status, self.message or usual)
        yield Failure(self.status, body, self.headers)


@dataclass(frozen=True)
class MidStreamError(Answer):
    """Some text, then an error where the next chunk should be."""

    after_chunks: int = 2
    status: int = 503
    message: str = OVERLOADED

    def steps(self, asked: Asked) -> Iterator[Step]:
        for number in range(self.after_chunks):
            yield Piece(({"text": f"piece {number} "},))
        yield Failure(self.status, error_body(self.status, self.message))


@dataclass(frozen=True)
class Cut(Answer):
    """The first chunks of another answer (a long text by default), then the connection closes."""

    after_chunks: int = 2
    answer: Answer | None = None

    def steps(self, asked: Asked) -> Iterator[Step]:
        answer = self.answer or Text("word " * (self.after_chunks + 5), chunks=self.after_chunks + 5)
        sent = 0
        for step in answer.steps(asked):
            if sent >= self.after_chunks:
                break
            yield step
            sent += isinstance(step, Piece)
        yield HangUp()


@dataclass(frozen=True)
class Garbage(Answer):
    """Bytes that are no JSON where the answer should be, after so many proper chunks."""

    data: bytes = b"<html><body>502 Bad Gateway"
    after_chunks: int = 0

    def steps(self, asked: Asked) -> Iterator[Step]:
        for number in range(self.after_chunks):
            yield Piece(({"text": f"piece {number} "},))
        yield Raw(self.data)


@dataclass(frozen=True)
class Events(Answer):
    """Events as they are, JSON or bytes, whatever the API would send; then the end of the stream, as HTTP has it."""

    events: Sequence[Any]

    def steps(self, asked: Asked) -> Iterator[Step]:
        for event in self.events:
            yield Raw(event if isinstance(event, bytes) else orjson.dumps(event))


def split(text: str, chunks: int | None) -> list[str]:
    """Return the text in so many pieces of about the same length; three when not said, fewer of a short text."""
    count = min(3, max(1, len(text))) if chunks is None else chunks
    if count < 1 or count > max(1, len(text)):
        raise ValueError(f"a text of {len(text)} characters cannot come in {count} chunks")
    ends = [len(text) * number // count for number in range(count + 1)]
    return [text[start:end] for start, end in pairwise(ends)]


def thinking(asked: Asked, thoughts: str) -> Iterator[Step]:
    """Yield the thoughts when the request wants to see them. Thoughts carry no signature."""
    if thoughts and asked.request.shows_thoughts:
        yield Piece(({"text": thoughts, "thought": True},))

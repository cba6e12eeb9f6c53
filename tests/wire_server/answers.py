"""What a model can be told to answer: words and pictures, everything that can go wrong, and how long it takes."""

from __future__ import annotations

import base64
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice, pairwise
from random import Random
from typing import Any, ClassVar

import orjson

from tests.wire_server.models import nearest_ratio, pixels
from tests.wire_server.pictures import look_at, paint
from tests.wire_server.refusals import INTERNAL, OVERLOADED, Json, error_body
from tests.wire_server.request import WireRequest
from tests.wire_server.serving import Event, HangUp, Pause, Response, WaitForRelease
from tests.wire_server.signatures import CALL_BYTES, HUGE_BYTES, PICTURE_BYTES, TEXT_BYTES, Ledger


@dataclass(frozen=True)
class Piece:
    """One chunk of a candidate: its parts, and on the last one why it ended.

    Without parts the content has only a role, as a refused picture's has.
    """

    parts: tuple[Json, ...] = ()
    finish_reason: str | None = None
    finish_message: str | None = None
    grounding: Json | None = None
    image_tokens: int = 0
    has_details: bool = True


@dataclass(frozen=True)
class Whole:
    """A response said in full, but for the usage and the model's name."""

    body: Json


Step = Piece | Whole | Event | Pause | WaitForRelease | HangUp | Response


@dataclass(frozen=True)
class Asked:
    """What an answer may look at: the request, and the ledger that signs its parts. With `dice` its tokens are counted
    as those of recorded answers: they differ from one to the next."""

    request: WireRequest
    ledger: Ledger
    answer_id: str
    dice: Random | None = None

    def signed(self, part: Json, size_bytes: int) -> Json:
        """Return the part with a signature of this size; of size 0, without."""
        if size_bytes <= 0:
            return part
        return self.ledger.sign(part, self.request.model, self.answer_id, size_bytes)


class Answer(ABC):
    """One scripted answer."""

    is_for_images: ClassVar[bool] = False

    @abstractmethod
    def steps(self, asked: Any, /) -> Iterator[Any]:
        """Yield what happens, in order; what is asked depends on the server's API."""


_CHIP = (
    "<style>.chip { border: solid 1px; border-radius: 16px; padding: 5px 16px; }</style>\n"
    '<div class="container"><a class="chip" href="https://vertexaisearch.cloud.google.com/'
    'grounding-api-redirect/suggested">QUERY</a></div>'
)


@dataclass(frozen=True)
class Text(Answer):
    """A text in so many chunks; its signature rides on a last, empty text part, as Gemini 3 streams it."""

    text: str
    chunks: int | None = None
    is_signed: bool = True
    thoughts: str = ""
    finish_reason: str = "STOP"

    def steps(self, asked: Asked) -> Iterator[Step]:
        yield from thinking(asked, self.thoughts)
        pieces = split(self.text, self.chunks)
        for text in pieces[:-1]:
            yield Piece(({"text": text},))
        last = {"text": pieces[-1]}
        if self.is_signed:
            yield Piece((last,))
            last = asked.signed({"text": ""}, TEXT_BYTES)
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
    """What Google's search adds to an answer. Sources are (title, address)."""

    sources: Sequence[tuple[str, str]] = (("example.org", "https://vertexaisearch.cloud.google.com/redirect/1"),)
    queries: Sequence[str] = ("a query",)
    suggestions_html: str | None = None
    image_queries: Sequence[str] = ()

    def metadata(self) -> Json:
        """Return the groundingMetadata."""
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
        return found


@dataclass(frozen=True)
class Search(Answer):
    """A grounded answer: the text (a JSON value is written out), with the metadata on its last chunk."""

    facts: Any
    sources: Sequence[tuple[str, str]] = Grounding.sources
    queries: Sequence[str] = Grounding.queries
    suggestions_html: str | None = None
    chunks: int | None = None

    def steps(self, asked: Asked) -> Iterator[Step]:
        text = self.facts if isinstance(self.facts, str) else orjson.dumps(self.facts).decode()
        grounding = Grounding(self.sources, self.queries, self.suggestions_html)
        for piece in split(text, self.chunks):
            yield Piece(({"text": piece},), grounding={})
        last = asked.signed({"text": ""}, TEXT_BYTES)
        yield Piece((last,), finish_reason="STOP", grounding=grounding.metadata())


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
        yield Response(self.status, body, self.headers)


@dataclass(frozen=True)
class MidStreamError(Answer):
    """Some text, then an error where the next chunk should be."""

    after_chunks: int = 2
    status: int = 503
    message: str = OVERLOADED

    def steps(self, asked: Asked) -> Iterator[Step]:
        for number in range(self.after_chunks):
            yield Piece(({"text": f"piece {number} "},))
        yield Response(self.status, error_body(self.status, self.message))


@dataclass(frozen=True)
class Cut(Answer):
    """The first chunks of another answer (a long text by default), then the connection closes."""

    after_chunks: int = 2
    answer: Answer | None = None

    def steps(self, asked: Asked) -> Iterator[Step]:
        answer = self.answer or Text("word " * (self.after_chunks + 5), chunks=self.after_chunks + 5)
        yield from islice(answer.steps(asked), self.after_chunks)
        yield HangUp()


@dataclass(frozen=True)
class Garbage(Answer):
    """Bytes that are no JSON where the answer should be, after so many proper chunks."""

    data: bytes = b"<html><body>502 Bad Gateway"
    after_chunks: int = 0

    def steps(self, asked: Asked) -> Iterator[Step]:
        for number in range(self.after_chunks):
            yield Piece(({"text": f"piece {number} "},))
        yield Event(self.data)


@dataclass(frozen=True)
class Events(Answer):
    """Events as they are, JSON or bytes, whatever the API would send; then the end of the stream, as HTTP has it."""

    events: Sequence[Any]

    def steps(self, asked: Asked) -> Iterator[Step]:
        yield from map(Event, self.events)


# Pictures.


@dataclass(frozen=True)
class PictureAnswer(Answer):
    """A generated picture, as big as was asked unless told otherwise, signed as image models sign.

    `data` gives the picture's bytes; `is_huge` gives the signatures their real weight of 1.2 MB of base64 each;
    `drafts` come first as thoughts when thoughts were asked for; `count` is how many pictures the one answer brings.
    `is_thought` marks them as thoughts; `declared` is the type that they are said to have. Without `has_details` its
    tokens are counted, but not as those of a picture.
    """

    is_for_images: ClassVar[bool] = True

    width: int | None = None
    height: int | None = None
    text_before: str = ""
    text_after: str = ""
    mime: str = "image/jpeg"
    data: bytes | None = None
    signature_bytes: int = PICTURE_BYTES
    is_huge: bool = False
    count: int = 1
    drafts: int = 0
    is_thought: bool = False
    declared: str | None = None
    thoughts: str = ""
    grounding: Grounding | None = None
    has_details: bool = True

    def steps(self, asked: Asked) -> Iterator[Step]:
        size_bytes = HUGE_BYTES if self.is_huge else self.signature_bytes
        yield from thinking(asked, self.thoughts)
        for number in range(self.drafts if asked.request.shows_thoughts else 0):
            yield Piece(({**self._part(asked, f"draft {number}"), "thought": True},))
        if self.text_before:
            yield Piece((asked.signed({"text": self.text_before}, size_bytes),))
        tokens = asked.request.known_model.image_tokens.get(_size(asked.request), 1120)
        for number in range(self.count):
            part = self._part(asked, f"{number}")
            part = {**part, "thought": True} if self.is_thought else asked.signed(part, size_bytes)
            yield Piece((part,), image_tokens=tokens, has_details=self.has_details)
        if self.text_after:
            yield Piece(({"text": self.text_after},))
        metadata = self.grounding.metadata() if self.grounding else None
        yield Piece(({"text": ""},), finish_reason="STOP", grounding=metadata)

    def _part(self, asked: Asked, name: str) -> Json:
        data = self.data
        if data is None:
            width, height = _frame(asked.request)
            subject = f"{asked.request.prompt} {asked.request.number} {name}"
            data = paint(self.width or width, self.height or height, self.mime, subject)
        return {"inlineData": {"mimeType": self.declared or self.mime, "data": base64.b64encode(data).decode()}}


@dataclass(frozen=True)
class CorruptPicture(Answer):
    """A picture that breaks off halfway, properly signed."""

    is_for_images: ClassVar[bool] = True

    def steps(self, asked: Asked) -> Iterator[Step]:
        whole = paint(256, 256, "image/jpeg", asked.request.prompt)
        return PictureAnswer(data=whole[: len(whole) // 2]).steps(asked)


@dataclass(frozen=True)
class TextOnly(Answer):
    """Words instead of a picture, ending in STOP: a refusal, or a question back."""

    is_for_images: ClassVar[bool] = True

    text: str = "I can't create that picture."

    def steps(self, asked: Asked) -> Iterator[Step]:
        return Text(self.text, is_signed=False).steps(asked)


# Answers that take their time.


@dataclass(frozen=True)
class DelayBetweenChunks(Answer):
    """Another answer, with so many seconds between its chunks."""

    seconds: float
    answer: Answer

    def steps(self, asked: Asked) -> Iterator[Step]:
        for number, step in enumerate(self.answer.steps(asked)):
            if number:
                yield Pause(self.seconds)
            yield step


@dataclass(frozen=True)
class Hold(Answer):
    """Another answer, which stops after so many chunks until the test calls `release`: no sleeping needed."""

    answer: Answer
    after_chunks: int = 0

    def steps(self, asked: Any) -> Iterator[Any]:
        for sent, step in enumerate(self.answer.steps(asked)):
            if sent == self.after_chunks:
                yield WaitForRelease()
            yield step


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


def _size(request: WireRequest) -> str:
    size: str = request.config.get("imageConfig", {}).get("imageSize", "1K")
    return size


def _frame(request: WireRequest) -> tuple[int, int]:
    """Return the pixels asked for; without a ratio, the last input picture's, else a square."""
    ratio = request.config.get("imageConfig", {}).get("aspectRatio")
    if ratio is None:
        ratio = "1:1"
        inputs = request.blobs
        facts = look_at(inputs[-1][1]["data"]) if inputs else None
        if facts is not None:
            ratio = nearest_ratio(facts.width, facts.height, request.known_model.ratios)
    return pixels(ratio, _size(request))

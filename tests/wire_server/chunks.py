"""From an answer's pieces to the JSON of the wire: candidates, growing usage, the answer's id."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from json import dumps
from math import log
from random import Random

from tests.wire_server.answers import Piece, Step, Whole
from tests.wire_server.models import Kind
from tests.wire_server.refusals import Json
from tests.wire_server.request import WireRequest
from tests.wire_server.serving import Event, Response

_PROMPT_PICTURE_TOKENS = 1120
_THOUGHT_TOKENS = {Kind.TEXT: 48, Kind.IMAGE: 174}
_SEARCH_TOKENS = 102
# Middle and width of the thoughts of a model that thinks little, and of one that thinks much.
_THOUGHTS = {
    (Kind.TEXT, False): (130, 0.7),
    (Kind.TEXT, True): (1100, 0.5),
    (Kind.IMAGE, False): (250, 0.5),
    (Kind.IMAGE, True): (600, 0.5),
}
_LARGEST_TOKENS, _ANSWER_TOKENS = 1120, 300


class Writer:
    """Turns the pieces of one answer into responses; every one carries the usage so far."""

    def __init__(self, request: WireRequest, answer_id: str, dice: Random | None = None) -> None:
        self._model = request.model
        self._answer_id = answer_id
        self._text_tokens, self._picture_tokens = prompt_tokens(request)
        self._search_tokens = _SEARCH_TOKENS if request.has_search else 0
        self._thought_tokens = _THOUGHT_TOKENS.get(request.kind, 0)
        self._characters = 0
        self._image_tokens = 0
        self._has_details = True
        self._said_tokens = 0
        if dice is not None:
            self._roll(dice, request)

    def _roll(self, dice: Random, request: WireRequest) -> None:
        """Count as recorded answers do: functions in the prompt, thoughts that differ, words beside a picture."""
        declared = sum(len(dumps(tool)) for tool in request.normal.get("tools", []))
        self._text_tokens += declared // 4
        middle, width = _THOUGHTS[request.kind, "HIGH" in str(request.config.get("thinkingConfig"))]
        self._thought_tokens = round(dice.lognormvariate(log(middle), width))
        if request.kind is Kind.IMAGE:
            self._said_tokens = dice.randint(50, 400)
        if self._search_tokens:
            self._search_tokens = dice.randint(80, 600)
        # A picture counts for its own tokens within the limit.
        limit = request.config.get("maxOutputTokens")
        if limit is not None:
            room = limit - self._said_tokens - (_LARGEST_TOKENS if request.kind is Kind.IMAGE else _ANSWER_TOKENS)
            self._thought_tokens = max(0, min(self._thought_tokens, room))

    def events(self, steps: Iterable[Step]) -> Iterator[Step]:
        """Yield the steps of streamGenerateContent: an event for each piece."""
        for step in steps:
            match step:
                case Piece():
                    yield Event(self._chunk(step))
                case Whole(body):
                    yield Event(self._whole(body))
                case _:
                    yield step

    def response(self, steps: Iterable[Step]) -> Iterator[Step]:
        """Yield the steps of generateContent: what takes time or fails as it is, then all pieces as one response."""
        pieces: list[Piece] = []
        body: Json | bytes | None = None
        for step in steps:
            match step:
                case Piece():
                    pieces.append(step)
                case Whole(said):
                    body = self._whole(said)
                case Event(data):
                    body = data
                case _:
                    yield step
        yield Response(200, body if body is not None else self._joined(pieces))

    def _chunk(self, piece: Piece) -> Json:
        for part in piece.parts:
            self._characters += len(part.get("text", "")) + 40 * ("functionCall" in part)
        self._image_tokens += piece.image_tokens
        self._has_details = self._has_details and piece.has_details
        candidate = {
            "content": ({"parts": list(piece.parts)} if piece.parts else {}) | {"role": "model"},
            "finishReason": piece.finish_reason,
            "finishMessage": piece.finish_message,
            "index": 0,
            "groundingMetadata": piece.grounding,
        }
        return self._enveloped({"candidates": [{name: told for name, told in candidate.items() if told is not None}]})

    def _whole(self, body: Json) -> Json:
        self._thought_tokens = 0
        return self._enveloped(body)

    def _joined(self, pieces: list[Piece]) -> Json:
        """Return all pieces as one response; unsigned texts that follow each other are one."""
        parts: list[Json] = []
        for part in (part for piece in pieces for part in piece.parts):
            if part == {"text": ""}:
                continue
            if set(part) == {"text"} and parts and set(parts[-1]) == {"text"}:
                parts[-1] = {"text": parts[-1]["text"] + part["text"]}
            else:
                parts.append(part)
        last = pieces[-1]
        tokens = sum(piece.image_tokens for piece in pieces)
        return self._chunk(Piece(tuple(parts), last.finish_reason, last.finish_message, last.grounding, tokens))

    def _enveloped(self, body: Json) -> Json:
        told = {"usageMetadata": self._usage(), "modelVersion": self._model, "responseId": self._answer_id}
        return {**body, **told}

    def _usage(self) -> Json:
        prompt = self._text_tokens + self._picture_tokens
        answer = (self._characters + 3) // 4 + self._image_tokens + self._said_tokens
        details: list[Json] = [{"modality": "TEXT", "tokenCount": self._text_tokens}]
        if self._picture_tokens:
            details.append({"modality": "IMAGE", "tokenCount": self._picture_tokens})
        usage: Json = {
            "promptTokenCount": prompt,
            "candidatesTokenCount": answer,
            "totalTokenCount": prompt + answer + self._thought_tokens + self._search_tokens,
            "promptTokensDetails": details,
        }
        if self._image_tokens and self._has_details:
            usage["candidatesTokensDetails"] = [{"modality": "IMAGE", "tokenCount": self._image_tokens}]
        if self._search_tokens:
            usage["toolUsePromptTokenCount"] = self._search_tokens
            usage["toolUsePromptTokensDetails"] = [{"modality": "TEXT", "tokenCount": self._search_tokens}]
        if self._thought_tokens:
            usage["thoughtsTokenCount"] = self._thought_tokens
        usage["serviceTier"] = "standard"
        return usage


def prompt_tokens(request: WireRequest) -> tuple[int, int]:
    """Return how many tokens the texts and the pictures of a request count for."""
    body = request.normal.get("generateContentRequest") or request.normal
    parts = [part for content in body.get("contents", []) for part in content.get("parts", [])]
    system = body.get("systemInstruction", {}).get("parts", [])
    characters = sum(len(part.get("text", "")) for part in (*parts, *system))
    pictures = sum("inlineData" in part for part in parts)
    pictures += sum(len(part.get("functionResponse", {}).get("parts", [])) for part in parts)
    return characters // 4 + 1, pictures * _PROMPT_PICTURE_TOKENS

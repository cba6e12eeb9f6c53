"""From pieces to the JSON of the wire: candidates, growing usage, the answer's id."""

from __future__ import annotations

from tests.wire_server.models import Kind
from tests.wire_server.refusals import Json
from tests.wire_server.request import WireRequest
from tests.wire_server.steps import Piece, Whole

_PROMPT_PICTURE_TOKENS = 1120
_THOUGHT_TOKENS = {Kind.TEXT: 48, Kind.IMAGE: 174}
_SEARCH_TOKENS = 102


class Writer:
    """Turns the pieces of one answer into responses; every one carries the usage so far."""

    def __init__(self, request: WireRequest, answer_id: str) -> None:
        self._model = request.model
        self._answer_id = answer_id
        self._text_tokens, self._picture_tokens = prompt_tokens(request)
        self._search_tokens = _SEARCH_TOKENS if request.has_search else 0
        self._thought_tokens = _THOUGHT_TOKENS.get(request.kind, 0)
        self._characters = 0
        self._image_tokens = 0

    def chunk(self, piece: Piece) -> Json:
        """Return the response that brings this piece."""
        for part in piece.parts:
            self._characters += len(part.get("text", "")) + 40 * ("functionCall" in part)
        self._image_tokens += piece.image_tokens
        content: Json = {"role": "model"}
        if piece.parts:
            content = {"parts": list(piece.parts), "role": "model"}
        candidate: Json = {"content": content}
        if piece.finish_reason is not None:
            candidate["finishReason"] = piece.finish_reason
        if piece.finish_message is not None:
            candidate["finishMessage"] = piece.finish_message
        candidate["index"] = 0
        if piece.grounding is not None:
            candidate["groundingMetadata"] = piece.grounding
        return self.envelope({"candidates": [candidate]})

    def whole(self, step: Whole) -> Json:
        """Return a response said in full, with the usage of its prompt."""
        self._thought_tokens = 0
        return self.envelope(step.body)

    def unary(self, pieces: list[Piece]) -> Json:
        """Return all pieces as the one response of generateContent; unsigned texts that follow each other are one."""
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
        return self.chunk(Piece(tuple(parts), last.finish_reason, last.finish_message, last.grounding, tokens))

    def envelope(self, body: Json) -> Json:
        """Return the body with usage, model and id."""
        return {
            **body,
            "usageMetadata": self._usage(),
            "modelVersion": self._model,
            "responseId": self._answer_id,
        }

    def _usage(self) -> Json:
        prompt = self._text_tokens + self._picture_tokens
        answer = (self._characters + 3) // 4 + self._image_tokens
        details: list[Json] = [{"modality": "TEXT", "tokenCount": self._text_tokens}]
        if self._picture_tokens:
            details.append({"modality": "IMAGE", "tokenCount": self._picture_tokens})
        usage: Json = {
            "promptTokenCount": prompt,
            "candidatesTokenCount": answer,
            "totalTokenCount": prompt + answer + self._thought_tokens + self._search_tokens,
            "promptTokensDetails": details,
        }
        if self._image_tokens:
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

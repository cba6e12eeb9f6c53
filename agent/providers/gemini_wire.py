"""Convert messages and settings to the Gemini API, and its streamed answers to our chunks and error codes.

Pure functions: nothing here makes a call, opens a file or stores anything.

Google's rules for thought signatures: a signature is sent back byte for byte, in its own part and position, to the
model that issued it; the first function call of a step needs one; a picture in a model turn needs its own.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from google.genai import types

from agent.errors import Charge, DesignRuleBroken, ErrorCode, ErrorInfo
from agent.messages import (
    CompletionChunk,
    GroundingPart,
    ImagePart,
    PromptMessage,
    Role,
    SignedPart,
    Source,
    TextPart,
    TokenUsage,
    ToolCallPart,
    ToolResultPart,
)
from agent.pictures import mime_type_of
from agent.providers.base import ChatOptions, ImageRequest, ToolDeclaration
from agent.providers.catalogue import IMAGE_ROLES, ModelEntry
from agent.providers.gemini_connection import RawEvents

# Google's documented placeholder for a function call made by another model: its signature is not checked.
DUMMY_SIGNATURE = b"skip_thought_signature_validator"

# An API object as JSON. The SDK's own types would be validated and walked twice for every message of the history
# (measured: 11 ms for 40 short ones); JSON passes through unchanged.
Wire: TypeAlias = dict[str, Any]


def to_wire(
    model: ModelEntry,
    messages: Sequence[PromptMessage],
    picture_bytes: Mapping[str, bytes],
    signatures: Mapping[str, bytes] = {},
) -> list[Wire]:
    """Return the contents of a request for this model.

    `picture_bytes` maps digests to the bytes of pictures, `signatures` to large signatures. A part whose signature is
    missing there is sent without one. Thoughts and grounding are left out. A picture in a model turn without this
    model's own signature moves to the user content that follows. The results of one step's calls share one content, in
    order.
    """
    writer = _ContentsWriter(model, picture_bytes, signatures)
    for message in messages:
        writer.add(message)
    return writer.finish()


class _ContentsWriter:
    """Collects contents. `_waiting` holds user parts for a later content: moved pictures, and pictures of tools."""

    def __init__(self, model: ModelEntry, picture_bytes: Mapping[str, bytes], signatures: Mapping[str, bytes]) -> None:
        self._model = model
        self._bytes = picture_bytes
        self._signatures = signatures
        self._contents: list[Wire] = []
        self._last_role: Role | None = None
        self._waiting: list[Wire] = []

    def add(self, message: PromptMessage) -> None:
        match message.role:
            case Role.MODEL:
                self._flush()
                self._append(Role.MODEL, self._model_parts(message))
            case Role.TOOL:
                self._append(Role.TOOL, self._result_parts(message))
            case Role.PROMPT:
                if self._last_role is Role.TOOL:
                    self._flush()
                waiting, self._waiting = self._waiting, []
                self._append(Role.PROMPT, [*waiting, *self._prompt_parts(message)])

    def finish(self) -> list[Wire]:
        self._flush()
        return self._contents

    def _append(self, role: Role, parts: list[Wire]) -> None:
        if not parts:
            return
        if role is self._last_role and role is not Role.MODEL:
            self._contents[-1]["parts"].extend(parts)
            return
        self._contents.append({"role": "model" if role is Role.MODEL else "user", "parts": parts})
        self._last_role = role

    def _flush(self) -> None:
        waiting, self._waiting = self._waiting, []
        self._append(Role.TOOL if self._last_role is Role.TOOL else Role.PROMPT, waiting)

    def _prompt_parts(self, message: PromptMessage) -> list[Wire]:
        parts = []
        for part in message.parts:
            if isinstance(part, TextPart) and part.text and not part.is_thought:
                parts.append({"text": part.text})
            elif isinstance(part, ImagePart) and not part.is_thought:
                parts.append(self._picture(part))
        return parts

    def _model_parts(self, message: PromptMessage) -> list[Wire]:
        parts = []
        calls = 0
        for part in message.parts:
            match part:
                case TextPart(is_thought=False):
                    signature = self._own_signature(part)
                    if part.text or signature:
                        parts.append(_signed({"text": part.text}, signature))
                case ToolCallPart():
                    signature = self._own_signature(part) or (None if calls else DUMMY_SIGNATURE)
                    calls += 1
                    call = {"name": part.name, "args": part.arguments} | _named_call(part.call_id)
                    parts.append(_signed({"functionCall": call}, signature))
                case ImagePart(is_thought=False):
                    signature = self._own_signature(part)
                    (parts if signature else self._waiting).append(self._picture(part, signature))
                case _:
                    pass
        return parts

    def _result_parts(self, message: PromptMessage) -> list[Wire]:
        results = []
        for part in message.parts:
            if isinstance(part, ToolResultPart):
                results.append(self._result(part))
            elif isinstance(part, TextPart) and part.text:
                self._waiting.append({"text": part.text})
            elif isinstance(part, ImagePart):
                self._waiting.append(self._picture(part))
        return results

    def _result(self, part: ToolResultPart) -> Wire:
        response: Wire = {"name": part.name, "response": part.content} | _named_call(part.call_id)
        pictures = [self._picture(image) for image in part.images]
        if pictures and self._model.has_image_tool_results:
            response["parts"] = pictures
        else:
            self._waiting.extend(pictures)
        return {"functionResponse": response}

    def _picture(self, image: ImagePart, signature: bytes | None = None) -> Wire:
        blob = {"mimeType": image.mime_type, "data": b64encode(self._bytes[image.digest]).decode("ascii")}
        return _signed({"inlineData": blob}, signature)

    def _own_signature(self, part: SignedPart) -> bytes | None:
        if part.signed_by != self._model.id:
            return None
        return part.thought_signature or self._signatures.get(part.signature_digest or "")


def _signed(part: Wire, signature: bytes | None) -> Wire:
    if signature:
        part["thoughtSignature"] = b64encode(signature).decode("ascii")
    return part


def _named_call(call_id: str | None) -> Wire:
    return {"id": call_id} if call_id else {}


def chat_settings(model: ModelEntry, tools: Sequence[ToolDeclaration], options: ChatOptions) -> Wire:
    """Return the body of a text call without its contents.

    Raises DesignRuleBroken when functions and the search would share a request, or the model cannot search.
    """
    if tools and options.google_search:
        raise DesignRuleBroken(
            ErrorCode.DESIGN_RULE_BROKEN, rule="functions and the Google search are never in one request"
        )
    generation = _thinking(model, options.thinking_level, shows_thoughts=options.shows_thoughts)
    if options.max_output_tokens is not None:
        generation["maxOutputTokens"] = options.max_output_tokens
    if options.response_schema is not None:
        generation |= {"responseMimeType": "application/json", "responseJsonSchema": options.response_schema}
    body: Wire = {"generationConfig": generation}
    if options.system:
        body["systemInstruction"] = {"parts": [{"text": options.system}]}
    if options.google_search:
        body["tools"] = [_search(model)]
    elif tools:
        declared = [
            {"name": tool.name, "description": tool.description, "parametersJsonSchema": tool.parameters}
            for tool in tools
        ]
        body["tools"] = [{"functionDeclarations": declared}]
        # VALIDATED is AUTO with the schema enforced: the model cannot call a function that was never declared.
        body["toolConfig"] = {"functionCallingConfig": {"mode": "VALIDATED"}}
    return body


def image_settings(request: ImageRequest) -> Wire:
    """Return the body of an image call without its contents; it has only the settings that were chosen.

    Raises DesignRuleBroken when grounding is requested from a model without it.
    """
    generation = _thinking(request.model, None) | {"responseModalities": ["TEXT", "IMAGE"]}
    chosen = {"aspectRatio": request.aspect_ratio, "imageSize": request.resolution}
    image = {name: value for name, value in chosen.items() if value is not None}
    if image:
        generation["imageConfig"] = image
    if request.max_output_tokens is not None:
        generation["maxOutputTokens"] = request.max_output_tokens
    body: Wire = {"generationConfig": generation}
    if request.use_grounding:
        body["tools"] = [_search(request.model)]
    return body


def _search(model: ModelEntry) -> Wire:
    if not model.has_grounding:
        raise DesignRuleBroken(ErrorCode.DESIGN_RULE_BROKEN, rule=f"{model.id} has no Google search")
    return {"googleSearch": {"searchTypes": {"webSearch": {}, "imageSearch": {}}} if model.has_image_search else {}}


def _thinking(model: ModelEntry, level: str | None, *, shows_thoughts: bool = False) -> Wire:
    chosen = level if level in model.thinking_levels else model.thinking_level
    return {"thinkingConfig": {"thinkingLevel": chosen.upper(), "includeThoughts": shows_thoughts}} if chosen else {}


# ---- answers

_LONGEST_QUOTE = 300
_LONGEST_REASON = 200

# The meaning of each finish reason of the API for a text answer; None is a good end.
TEXT_ENDS: dict[str, ErrorCode | None] = {
    "STOP": None,
    "FINISH_REASON_UNSPECIFIED": None,
    "MAX_TOKENS": ErrorCode.ANSWER_TOO_LONG,
    "CONTINUATION": ErrorCode.ANSWER_TOO_LONG,
    "SAFETY": ErrorCode.ANSWER_BLOCKED,
    "RECITATION": ErrorCode.ANSWER_BLOCKED,
    "BLOCKLIST": ErrorCode.ANSWER_BLOCKED,
    "PROHIBITED_CONTENT": ErrorCode.ANSWER_BLOCKED,
    "SPII": ErrorCode.ANSWER_BLOCKED,
    "MODEL_ARMOR": ErrorCode.ANSWER_BLOCKED,
    "ESCALATION": ErrorCode.ANSWER_BLOCKED,
    "PUP_LIMITED_DISABLED": ErrorCode.ACCOUNT_LIMITED,
    "OTHER": ErrorCode.UNKNOWN_REASON,
    "LANGUAGE": ErrorCode.LANGUAGE_UNSUPPORTED,
    "MALFORMED_FUNCTION_CALL": ErrorCode.MALFORMED_CALL,
    "UNEXPECTED_TOOL_CALL": ErrorCode.MALFORMED_CALL,
    "TOO_MANY_TOOL_CALLS": ErrorCode.TOOL_LOOP,
    "MALFORMED_RESPONSE": ErrorCode.MALFORMED_CALL,
    "MISSING_THOUGHT_SIGNATURE": ErrorCode.SIGNATURE_REJECTED,
    "IMAGE_SAFETY": ErrorCode.PICTURE_BLOCKED,
    "IMAGE_PROHIBITED_CONTENT": ErrorCode.PICTURE_BLOCKED,
    "IMAGE_RECITATION": ErrorCode.PICTURE_RECITATION,
    "IMAGE_OTHER": ErrorCode.NO_PICTURE,
    "NO_IMAGE": ErrorCode.NO_PICTURE,
}

# The same for an image model that returned no picture, with the differences.
PICTURE_ENDS: dict[str, ErrorCode | None] = TEXT_ENDS | {
    **{reason: ErrorCode.PICTURE_BLOCKED for reason, code in TEXT_ENDS.items() if code is ErrorCode.ANSWER_BLOCKED},
    "RECITATION": ErrorCode.PICTURE_RECITATION,
}


@dataclass(frozen=True, slots=True)
class ArrivedPicture:
    """A received picture that is not in the store yet."""

    data: bytes
    mime_type: str
    thought_signature: bytes | None


class AnswerReader:
    """Converts the responses of one streamed answer to chunks, and classifies its end.

    `read` takes each response as it comes; `end` yields what is known only after the stream. `events` has the data that
    the SDK leaves out of the responses.
    """

    def __init__(self, model: ModelEntry, events: RawEvents | None = None) -> None:
        self._model_id = model.id
        self._model_label = model.label
        self._events = events or RawEvents()
        self._paints = model.role in IMAGE_ROLES
        self._usage: types.GenerateContentResponseUsageMetadata | None = None
        self._finish_reason: str | None = None
        self._feedback: types.GenerateContentResponsePromptFeedback | None = None
        self._quote = ""
        self._has_answer = False
        self._has_picture = False
        self._draft: ArrivedPicture | None = None
        # The same words searched on the web and among images are two queries, both charged.
        self._queries: dict[tuple[str, str], None] = {}
        self._sources: dict[str, Source] = {}
        self._suggestions_html = ""

    def read(self, response: types.GenerateContentResponse) -> Iterator[CompletionChunk | ArrivedPicture]:
        """Yield the parts of the response in order; draft pictures (thoughts) are held back, unknown kinds dropped."""
        if response.usage_metadata is not None:
            self._usage = response.usage_metadata
        if response.prompt_feedback is not None:
            self._feedback = response.prompt_feedback
        if not response.candidates:
            return
        candidate, *others = response.candidates
        if candidate.finish_reason is not None:
            self._finish_reason = candidate.finish_reason.value
        if candidate.grounding_metadata is not None:
            self._note_grounding(candidate.grounding_metadata)
        if candidate.content is not None:
            for part in candidate.content.parts or ():
                piece = self._part(part)
                if piece is not None:
                    yield piece
        # Nobody requests a second candidate, but a picture in one was paid for.
        for part in (part for other in others if other.content for part in other.content.parts or ()):
            if (picture := self._picture(part)) is not None:
                yield picture

    def only_draft(self) -> ArrivedPicture | None:
        """Return the last draft if no other picture came: whatever its label, it was paid for.

        Call it after the stream and before `end`.
        """
        if self._has_picture or self._draft is None:
            return None
        self._has_answer = self._has_picture = True
        return self._draft

    def end(self) -> Iterator[CompletionChunk]:
        """Yield the grounding, if any, then the last chunk: usage, finish reason and the problem, if any."""
        sources = self._sources | {url: one for url, one in self._events.citations.items() if url not in self._sources}
        if self._queries or sources or self._suggestions_html:
            grounding = GroundingPart(
                queries=tuple(dict.fromkeys(query for _, query in self._queries)),
                sources=tuple(sources.values()),
                suggestions_html=self._suggestions_html,
            )
            yield CompletionChunk(part=grounding)
        yield CompletionChunk(usage=self.usage, finish_reason=self._finish_reason, error=self._problem())

    @property
    def usage(self) -> TokenUsage | None:
        """The usage of the answer so far, including its searches; None while the API has not reported any."""
        usage = usage_from_wire(self._usage, has_picture=self._has_picture) if self._usage is not None else None
        if self._queries:
            usage = (usage or TokenUsage()) + TokenUsage(search_queries=len(self._queries))
        return usage

    def _part(self, part: types.Part) -> CompletionChunk | ArrivedPicture | None:
        if part.function_call is not None:
            self._has_answer = True
            call = ToolCallPart(
                name=part.function_call.name or "",
                arguments=part.function_call.args or {},
                call_id=part.function_call.id or None,
                thought_signature=part.thought_signature,
                signed_by=self._model_id if part.thought_signature else None,
            )
            return CompletionChunk(part=call)
        if part.inline_data is not None:
            return self._picture(part)
        if part.text is not None and (part.text or part.thought_signature):
            return self._text(part.text, part.thought_signature, bool(part.thought))
        return None

    def _text(self, text: str, signature: bytes | None, is_thought: bool) -> CompletionChunk:
        if text and not is_thought:
            self._has_answer = True
            if len(self._quote) < _LONGEST_QUOTE:
                self._quote += text
        signed_by = self._model_id if signature else None
        # Built without validation and with every field: this runs for each piece of streamed text.
        words = TextPart.model_construct(
            type="text",
            text=text,
            is_thought=is_thought,
            thought_signature=signature,
            signature_digest=None,
            signed_by=signed_by,
        )
        return CompletionChunk.model_construct(part=words, usage=None, finish_reason=None, error=None)

    def _picture(self, part: types.Part) -> ArrivedPicture | None:
        blob = part.inline_data
        if blob is None or not blob.data:
            return None
        is_labelled = (blob.mime_type or "").startswith("image/")
        mime_type = blob.mime_type if is_labelled else mime_type_of(blob.data)
        if mime_type is None:
            return None
        picture = ArrivedPicture(blob.data, mime_type, part.thought_signature)
        if part.thought:
            self._draft = picture
            return None
        self._has_answer = self._has_picture = True
        return picture

    def _note_grounding(self, metadata: types.GroundingMetadata) -> None:
        for kind, queries in (("web", metadata.web_search_queries), ("image", metadata.image_search_queries)):
            self._queries.update(dict.fromkeys((kind, query) for query in queries or () if query))
        for chunk in metadata.grounding_chunks or ():
            source = _source(chunk)
            if source is not None:
                self._sources.setdefault(source.url, source)
        if metadata.search_entry_point is not None and metadata.search_entry_point.rendered_content:
            self._suggestions_html = metadata.search_entry_point.rendered_content

    def _problem(self) -> ErrorInfo | None:
        if self._paints and self._has_picture:
            return None
        if self._finish_reason is None:
            return self._without_an_end()
        reason, has_all = self._finish_reason, self._has_answer and not self._paints
        ends = PICTURE_ENDS if self._paints else TEXT_ENDS
        # A reason that is not in this table is judged by what arrived.
        code = ends.get(reason, None if has_all else ErrorCode.UNKNOWN_REASON)
        if code is not None:
            return self._failed(code, self._events.finish_message, reason=reason)
        if self._paints and self._quote:
            text = self._quote.strip()[:_LONGEST_QUOTE]
            return self._failed(ErrorCode.TEXT_INSTEAD_OF_PICTURE, "", text=text)
        if not self._has_answer:
            return self._failed(ErrorCode.EMPTY_ANSWER, self._events.finish_message)
        return None

    def _without_an_end(self) -> ErrorInfo:
        """Return the problem of an answer that arrived completely over HTTP, but without a finish reason."""
        feedback = self._feedback
        message = (feedback.block_reason_message if feedback is not None else None) or self._events.finish_message
        if feedback is not None and feedback.block_reason is not None:
            return self._failed(ErrorCode.PROMPT_BLOCKED, message, reason=feedback.block_reason.value)
        if self._has_answer:
            return self._failed(ErrorCode.ANSWER_UNFINISHED, message, model=self._model_label)
        if message:
            return self._failed(ErrorCode.UNKNOWN_REASON, message)
        return self._failed(ErrorCode.EMPTY_ANSWER, "")

    def _failed(self, code: ErrorCode, message: str, **parameters: str) -> ErrorInfo:
        if code is ErrorCode.UNKNOWN_REASON and message:
            # There is no other explanation: show the API's own words.
            parameters["reason"] = ": ".join(one for one in (self._finish_reason, message) if one)[:_LONGEST_REASON]
        # Without a token count, it is unknown whether it was charged.
        charge = Charge.MAYBE if self._usage is None or code.charge is Charge.MAYBE else Charge.YES
        return ErrorInfo(code=code, parameters={**parameters}, provider_detail=message, charge=charge)


def usage_from_wire(usage: types.GenerateContentResponseUsageMetadata, *, has_picture: bool) -> TokenUsage:
    """Return the token counts by kind; the API includes a picture's tokens in the candidates' count.

    It normally lists them by modality as well. If it does not although a picture came, all candidate tokens without a
    listed modality count as the picture's.
    """
    details = usage.candidates_tokens_details or ()
    pictures = sum(one.token_count or 0 for one in details if one.modality is types.MediaModality.IMAGE)
    if has_picture and not pictures:
        pictures = max(0, (usage.candidates_token_count or 0) - sum(one.token_count or 0 for one in details))
    return TokenUsage.model_construct(
        prompt_tokens=usage.prompt_token_count or 0,
        cached_tokens=usage.cached_content_token_count or 0,
        tool_tokens=usage.tool_use_prompt_token_count or 0,
        output_tokens=max(0, (usage.candidates_token_count or 0) - pictures),
        thought_tokens=usage.thoughts_token_count or 0,
        image_tokens=pictures,
    )


def _source(chunk: types.GroundingChunk) -> Source | None:
    if chunk.web is not None:
        url, title = chunk.web.uri, chunk.web.title or chunk.web.domain
    elif chunk.image is not None:
        url, title = chunk.image.source_uri, chunk.image.title or chunk.image.domain
    elif chunk.maps is not None:
        url, title = chunk.maps.uri, chunk.maps.title
    else:
        return None
    if not url or not url.startswith(("https://", "http://")):
        return None
    return Source(title=title or url, url=url)

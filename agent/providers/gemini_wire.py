"""Our messages and settings in the Gemini API's shapes: pure functions, no call and no file is opened here.

The rules of thought signatures are Google's: a signature goes back byte for byte, in its own part at its own place,
to the model that issued it; the first function call of a step needs one; a picture in a model turn needs its own.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from agent.errors import DesignRuleBroken, ErrorCode
from agent.messages import ImagePart, PromptMessage, Role, SignedPart, TextPart, ToolCallPart, ToolResultPart
from agent.providers.base import ChatOptions, ImageRequest, ToolDeclaration
from agent.providers.catalogue import ModelEntry

# Google's documented stand-in for a function call that another model made: its signature is not checked.
DUMMY_SIGNATURE = b"skip_thought_signature_validator"

# An object of the API as its JSON. The SDK's own types would be checked and walked twice for every message of the
# history (measured: 11 ms for 40 short ones); JSON passes through it as it is.
Wire: TypeAlias = dict[str, Any]


def pictures_to_send(messages: Iterable[PromptMessage]) -> dict[str, ImagePart]:
    """Return every picture whose bytes `to_wire` needs, once each, by digest."""
    wanted: dict[str, ImagePart] = {}
    for message in messages:
        for part in message.parts:
            if isinstance(part, ToolResultPart):
                wanted.update((image.digest, image) for image in part.images)
        wanted.update((image.digest, image) for image in message.images)
    return wanted


def to_wire(model: ModelEntry, messages: Sequence[PromptMessage], picture_bytes: Mapping[str, bytes]) -> list[Wire]:
    """Return the contents of a request for this model; `picture_bytes` holds the bytes by digest.

    Thoughts and grounding are left out. A picture in a model turn without this model's own signature stands in the
    user content that follows. Results of one step's calls share one content, in order.
    """
    writer = _ContentsWriter(model, picture_bytes)
    for message in messages:
        writer.add(message)
    return writer.finish()


class _ContentsWriter:
    """Collects contents. `_waiting` are user parts that stand after what comes now: moved pictures, tools' pictures."""

    def __init__(self, model: ModelEntry, picture_bytes: Mapping[str, bytes]) -> None:
        self._model = model
        self._bytes = picture_bytes
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
        return part.thought_signature or None if part.signed_by == self._model.id else None


def _signed(part: Wire, signature: bytes | None) -> Wire:
    if signature:
        part["thoughtSignature"] = b64encode(signature).decode("ascii")
    return part


def _named_call(call_id: str | None) -> Wire:
    return {"id": call_id} if call_id else {}


def chat_settings(model: ModelEntry, tools: Sequence[ToolDeclaration], options: ChatOptions) -> Wire:
    """Return all of a text call's body but its contents.

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
        body["tools"] = [{"functionDeclarations": [_declaration(tool) for tool in tools]}]
        # VALIDATED is AUTO with the schema enforced: the model cannot call a function that was never declared.
        body["toolConfig"] = {"functionCallingConfig": {"mode": "VALIDATED"}}
    return body


def image_settings(request: ImageRequest) -> Wire:
    """Return all of an image call's body but its contents; only the settings that were chosen are in it.

    Raises DesignRuleBroken when grounding is asked of a model that has none.
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


def _declaration(tool: ToolDeclaration) -> Wire:
    return {"name": tool.name, "description": tool.description, "parametersJsonSchema": tool.parameters}

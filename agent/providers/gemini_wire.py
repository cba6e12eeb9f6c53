"""Our messages and settings in the Gemini API's shapes: pure functions, no call and no file is opened here.

The rules of thought signatures are Google's: a signature goes back byte for byte, in its own part at its own place,
to the model that issued it; the first function call of a step needs one; a picture in a model turn needs its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from google.genai import types

from agent.errors import DesignRuleBroken
from agent.messages import ImagePart, PromptMessage, Role, SignedPart, TextPart, ToolCallPart, ToolResultPart
from agent.providers.base import ChatOptions, ImageRequest, ToolDeclaration
from agent.providers.catalogue import ModelEntry

# Google's documented stand-in for a function call that another model made: its signature is not checked.
DUMMY_SIGNATURE = b"skip_thought_signature_validator"


def pictures_to_send(messages: Iterable[PromptMessage]) -> dict[str, ImagePart]:
    """Return every picture whose bytes `to_wire` needs, once each, by digest."""
    wanted: dict[str, ImagePart] = {}
    for message in messages:
        for part in message.parts:
            if isinstance(part, ToolResultPart):
                wanted.update((image.digest, image) for image in part.images)
        wanted.update((image.digest, image) for image in message.images)
    return wanted


def to_wire(
    model: ModelEntry, messages: Sequence[PromptMessage], picture_bytes: Mapping[str, bytes]
) -> list[types.Content]:
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
        self._contents: list[types.Content] = []
        self._last_role: Role | None = None
        self._waiting: list[types.Part] = []

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

    def finish(self) -> list[types.Content]:
        self._flush()
        return self._contents

    def _append(self, role: Role, parts: list[types.Part]) -> None:
        if not parts:
            return
        if role is self._last_role and role is not Role.MODEL:
            self._contents[-1] = types.Content(role="user", parts=[*(self._contents[-1].parts or ()), *parts])
            return
        self._contents.append(types.Content(role="model" if role is Role.MODEL else "user", parts=parts))
        self._last_role = role

    def _flush(self) -> None:
        waiting, self._waiting = self._waiting, []
        self._append(Role.TOOL if self._last_role is Role.TOOL else Role.PROMPT, waiting)

    def _prompt_parts(self, message: PromptMessage) -> list[types.Part]:
        parts = []
        for part in message.parts:
            if isinstance(part, TextPart) and part.text and not part.is_thought:
                parts.append(types.Part(text=part.text))
            elif isinstance(part, ImagePart) and not part.is_thought:
                parts.append(self._picture(part))
        return parts

    def _model_parts(self, message: PromptMessage) -> list[types.Part]:
        parts = []
        calls = 0
        for part in message.parts:
            match part:
                case TextPart(is_thought=False):
                    signature = self._own_signature(part)
                    if part.text or signature:
                        parts.append(types.Part(text=part.text, thought_signature=signature))
                case ToolCallPart():
                    signature = self._own_signature(part) or (None if calls else DUMMY_SIGNATURE)
                    calls += 1
                    call = types.FunctionCall(name=part.name, args=part.arguments, id=part.call_id)
                    parts.append(types.Part(function_call=call, thought_signature=signature))
                case ImagePart(is_thought=False):
                    signature = self._own_signature(part)
                    (parts if signature else self._waiting).append(self._picture(part, signature))
                case _:
                    pass
        return parts

    def _result_parts(self, message: PromptMessage) -> list[types.Part]:
        results = []
        for part in message.parts:
            if isinstance(part, ToolResultPart):
                results.append(self._result(part))
            elif isinstance(part, TextPart) and part.text:
                self._waiting.append(types.Part(text=part.text))
            elif isinstance(part, ImagePart):
                self._waiting.append(self._picture(part))
        return results

    def _result(self, part: ToolResultPart) -> types.Part:
        inside = None
        if part.images and self._model.has_image_tool_results:
            inside = [
                types.FunctionResponsePart(
                    inline_data=types.FunctionResponseBlob(mime_type=image.mime_type, data=self._bytes[image.digest])
                )
                for image in part.images
            ]
        else:
            self._waiting.extend(self._picture(image) for image in part.images)
        response = types.FunctionResponse(name=part.name, response=part.content, id=part.call_id, parts=inside)
        return types.Part(function_response=response)

    def _picture(self, image: ImagePart, signature: bytes | None = None) -> types.Part:
        blob = types.Blob(mime_type=image.mime_type, data=self._bytes[image.digest])
        return types.Part(inline_data=blob, thought_signature=signature)

    def _own_signature(self, part: SignedPart) -> bytes | None:
        return part.thought_signature or None if part.signed_by == self._model.id else None


def chat_config(
    model: ModelEntry, tools: Sequence[ToolDeclaration], options: ChatOptions
) -> types.GenerateContentConfig:
    """Return the configuration of a text call.

    Raises DesignRuleBroken when functions and the search would share a request, or the model cannot search.
    """
    if tools and options.google_search:
        raise DesignRuleBroken("functions and the Google search are never in one request")
    if options.google_search and not model.has_grounding:
        raise DesignRuleBroken(f"{model.id} has no Google search")
    config = _plain_config(model, options.thinking_level)
    if options.system:
        config.system_instruction = options.system
    if options.google_search:
        config.tools = [types.Tool(google_search=types.GoogleSearch())]
    elif tools:
        config.tools = [types.Tool(function_declarations=[_declaration(tool) for tool in tools])]
        # VALIDATED is AUTO with the schema enforced: the model cannot call a function that was never declared.
        mode = types.FunctionCallingConfigMode.VALIDATED
        config.tool_config = types.ToolConfig(function_calling_config=types.FunctionCallingConfig(mode=mode))
    if options.response_schema is not None:
        config.response_mime_type = "application/json"
        config.response_json_schema = options.response_schema
    return config


def image_config(request: ImageRequest) -> types.GenerateContentConfig:
    """Return the configuration of an image call; only the settings that were chosen are in it.

    Raises DesignRuleBroken when grounding is asked of a model that has none.
    """
    model = request.model
    config = _plain_config(model, None)
    config.response_modalities = ["TEXT", "IMAGE"]
    if request.aspect_ratio or request.resolution:
        config.image_config = types.ImageConfig(aspect_ratio=request.aspect_ratio, image_size=request.resolution)
    if request.use_grounding:
        if not model.has_grounding:
            raise DesignRuleBroken(f"{model.id} has no Google search")
        search = types.GoogleSearch()
        if model.has_image_search:
            search.search_types = types.SearchTypes(web_search=types.WebSearch(), image_search=types.ImageSearch())
        config.tools = [types.Tool(google_search=search)]
    return config


def _plain_config(model: ModelEntry, thinking_level: str | None) -> types.GenerateContentConfig:
    config = types.GenerateContentConfig(
        automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
        automatic_continuation=False,
    )
    level = thinking_level if thinking_level in model.thinking_levels else model.thinking_level
    if level is not None:
        config.thinking_config = types.ThinkingConfig(
            thinking_level=types.ThinkingLevel(level.upper()), include_thoughts=False
        )
    return config


def _declaration(tool: ToolDeclaration) -> types.FunctionDeclaration:
    return types.FunctionDeclaration(
        name=tool.name, description=tool.description, parameters_json_schema=tool.parameters
    )

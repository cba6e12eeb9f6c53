"""Convert messages and settings to OpenAI's API: pure functions that make no call and open no file.

There is one API but many servers. The output follows the strictest of them: calls and results are paired by id and
adjacent, and user and model take turns (the chat templates of Mistral's models refuse anything else, and any call id
that is not nine letters or digits).
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from agent.errors import DesignRuleBroken, ErrorCode, RequestRefused
from agent.messages import ImageOrigin, ImagePart, PromptMessage, Role, TextPart, ToolCallPart, ToolResultPart
from agent.providers.base import ChatOptions, ImageRequest, ToolDeclaration
from agent.providers.catalogue import JsonMode, ModelEntry

# An API object as JSON.
Wire: TypeAlias = dict[str, Any]

# Inserted as the model's answer when the user's message directly follows a tool's result.
_BETWEEN = "OK."
# OpenAI's own limit.
_LONGEST_ID = 40
_NO_RESULT = json.dumps({"error": "There was no result."})
_ORIGINS = {ImageOrigin.UPLOADED: "uploaded", ImageOrigin.GENERATED: "generated", ImageOrigin.EDITED: "edited"}
_ENDINGS = {"image/png": "png", "image/jpeg": "jpg", "image/webp": "webp", "image/gif": "gif"}


# ---- text


def chat_body(
    model: ModelEntry,
    messages: Sequence[PromptMessage],
    tools: Sequence[ToolDeclaration],
    options: ChatOptions,
    picture_bytes: Mapping[str, bytes],
) -> Wire:
    """Return the body of a streamed text call. Raises DesignRuleBroken when a web search is requested."""
    if options.google_search:
        raise DesignRuleBroken(ErrorCode.DESIGN_RULE_BROKEN, rule=f"{model.id} has no Google search")
    body: Wire = {
        "model": model.id,
        "messages": to_wire(model, messages, _system(model, tools, options), picture_bytes),
        "stream": True,
    }
    if model.has_stream_usage:
        body["stream_options"] = {"include_usage": True}
    if tools and model.has_tools:
        body["tools"] = [{"type": "function", "function": tool.model_dump()} for tool in tools]
    level = options.thinking_level if options.thinking_level in model.thinking_levels else model.thinking_level
    if level:
        body["reasoning_effort"] = level
    if options.max_output_tokens is not None:
        body[model.limit_field] = options.max_output_tokens
    if options.response_schema is not None and model.json_mode is JsonMode.OBJECT:
        body["response_format"] = {"type": "json_object"}
    elif options.response_schema is not None and model.json_mode is JsonMode.SCHEMA:
        schema = {"name": "answer", "schema": options.response_schema}
        body["response_format"] = {"type": "json_schema", "json_schema": schema}
    return body


def _system(model: ModelEntry, tools: Sequence[ToolDeclaration], options: ChatOptions) -> str:
    texts = [options.system]
    if tools and not model.has_tools:
        texts.append(_tools_in_words(tools))
    if options.response_schema is not None and model.json_mode is not JsonMode.SCHEMA:
        # The prompt must contain the word JSON: otherwise DeepSeek's JSON mode writes blanks without end.
        schema = json.dumps(options.response_schema, ensure_ascii=False)
        texts.append(f"Answer with one JSON object of this JSON schema, and nothing else:\n{schema}")
    return "\n\n".join(text for text in texts if text)


def to_wire(
    model: ModelEntry, messages: Sequence[PromptMessage], system: str, picture_bytes: Mapping[str, bytes]
) -> list[Wire]:
    """Return the messages of a text call; `picture_bytes` maps digests to bytes.

    Grounding and other models' thoughts are left out, and so are signatures, which are Google's. A picture in a model's
    message or a tool's result moves to the next user message; for a model without vision it becomes a line of text.
    Every call has an id and one result.
    """
    writer = _MessagesWriter(model, messages, picture_bytes)
    if system:
        writer.written.append({"role": "system", "content": system})
    for message in messages:
        writer.add(message)
    return writer.finish()


@dataclass(frozen=True)
class _OpenCall:
    """A call without a result yet: the call with its own id, if any, and the id with which it is sent."""

    call: ToolCallPart
    wire_id: str


class _MessagesWriter:
    """Collects messages. `_waiting` holds parts for the next user message: pictures that other messages cannot hold."""

    def __init__(
        self, model: ModelEntry, messages: Sequence[PromptMessage], picture_bytes: Mapping[str, bytes]
    ) -> None:
        self.written: list[Wire] = []
        self._model = model
        self._bytes = picture_bytes
        self._open: list[_OpenCall] = []
        self._waiting: list[Wire] = []
        parts = (part for message in messages for part in message.parts)
        self._ids = {part.call_id for part in parts if isinstance(part, ToolCallPart) and part.call_id}
        self._ids_made = 0

    def add(self, message: PromptMessage) -> None:
        match message.role:
            case Role.PROMPT:
                self._flush(self._prompt_parts(message))
            case Role.MODEL:
                self._flush([])
                self._add_answer(message)
            case Role.TOOL:
                self._add_results(message)

    def finish(self) -> list[Wire]:
        self._flush([])
        for message in self.written:
            # Pure text becomes one string: many servers accept parts only together with a picture.
            if message["role"] == "user" and all(part["type"] == "text" for part in message["content"]):
                message["content"] = "\n".join(part["text"] for part in message["content"])
        return self.written

    @property
    def _last_role(self) -> str:
        return self.written[-1]["role"] if self.written else ""

    def _flush(self, parts: list[Wire]) -> None:
        """Add missing results of open calls, then the user's message."""
        for waiting in self._open:
            self._add_result(waiting, _NO_RESULT)
        self._open = []
        parts, self._waiting = [*self._waiting, *parts], []
        if not parts:
            return
        if self._last_role == "tool":
            self.written.append({"role": "assistant", "content": _BETWEEN})
        if self._last_role == "user":
            self.written[-1]["content"].extend(parts)
        else:
            self.written.append({"role": "user", "content": parts})

    def _prompt_parts(self, message: PromptMessage) -> list[Wire]:
        parts = []
        for part in message.parts:
            if isinstance(part, TextPart) and part.text and not part.is_thought:
                parts.append(_text(part.text))
            elif isinstance(part, ImagePart) and not part.is_thought:
                parts.append(self._picture(part))
        return parts

    def _add_answer(self, message: PromptMessage) -> None:
        calls = [part for part in message.parts if isinstance(part, ToolCallPart)]
        text = message.text
        if calls and not self._model.has_tools:
            text = "\n".join([*([text] if text else []), *(_call_in_words(call) for call in calls)])
        self._waiting += [self._picture(image) for image in message.images]
        if not text and not calls:
            return
        if self._last_role == "assistant":
            # Never two assistant messages in a row: join the model's second answer to the first.
            answer = self.written[-1]
            answer["content"] = "\n\n".join(filter(None, (answer["content"], text)))
        else:
            answer = {"role": "assistant", "content": text}
            self.written.append(answer)
        if calls:
            self._add_calls(answer, message, calls)

    def _add_calls(self, answer: Wire, message: PromptMessage, calls: list[ToolCallPart]) -> None:
        ids: list[str] = []
        for call in calls:
            own = call.call_id or ""
            ids.append(own if own and own not in ids and len(own) <= _LONGEST_ID else self._new_id())
        self._open = [_OpenCall(call, wire_id) for call, wire_id in zip(calls, ids, strict=True)]
        if not self._model.has_tools:
            return
        answer["tool_calls"] = [_call(open_call) for open_call in self._open]
        if self._model.returns_thoughts:
            # This model's own thoughts before its call; for other models' calls, servers require an empty text.
            thoughts = [part for part in message.parts if isinstance(part, TextPart) and part.is_thought]
            own_thoughts = [part.text for part in thoughts if part.signed_by == self._model.id]
            answer["reasoning_content"] = "".join(own_thoughts)

    def _add_results(self, message: PromptMessage) -> None:
        for part in message.parts:
            if isinstance(part, ToolResultPart):
                content = json.dumps(part.content, ensure_ascii=False)
                waiting = self._take_open(part)
                if waiting is None:
                    self._waiting.append(_text(f"Result of {part.name}: {content}"))
                else:
                    self._add_result(waiting, content, part.images)
            elif isinstance(part, TextPart) and part.text:
                self._waiting.append(_text(part.text))
            elif isinstance(part, ImagePart):
                self._waiting.append(self._picture(part))

    def _add_result(self, waiting: _OpenCall, content: str, images: Sequence[ImagePart] = ()) -> None:
        pictures = []
        for image in images:
            pictures += [_text(f"Picture {image.handle}:")] if image.handle and self._model.has_vision else []
            pictures.append(self._picture(image))
        if not self._model.has_tools:
            self._waiting += [_text(f"Result of {waiting.call.name}: {content}"), *pictures]
        elif pictures and self._model.has_image_tool_results:
            self._add_tool_message(waiting, [_text(content), *pictures])
        else:
            self._add_tool_message(waiting, content)
            self._waiting += pictures

    def _add_tool_message(self, waiting: _OpenCall, content: str | list[Wire]) -> None:
        self.written.append({"role": "tool", "tool_call_id": waiting.wire_id, "content": content})

    def _take_open(self, result: ToolResultPart) -> _OpenCall | None:
        """Return the call that this result answers: the one with its id, else the first with its name."""
        if result.call_id:
            fitting = [one for one in self._open if one.call.call_id == result.call_id]
        else:
            fitting = [one for one in self._open if one.call.name == result.name]
        if not fitting:
            return None
        self._open.remove(fitting[0])
        return fitting[0]

    def _new_id(self) -> str:
        while (made := f"call{self._ids_made:05d}") in self._ids:
            self._ids_made += 1
        self._ids.add(made)
        return made

    def _picture(self, image: ImagePart) -> Wire:
        if not self._model.has_vision:
            size = f", {image.width}×{image.height}" if image.width and image.height else ""
            name = f"Picture {image.handle}" if image.handle else "A picture"
            return _text(f"[{name}, {_ORIGINS[image.origin]}{size}. You cannot see pictures.]")
        data = b64encode(self._bytes[image.digest]).decode("ascii")
        return {"type": "image_url", "image_url": {"url": f"data:{image.mime_type};base64,{data}"}}


def _text(text: str) -> Wire:
    return {"type": "text", "text": text}


def _call(open_call: _OpenCall) -> Wire:
    arguments = json.dumps(open_call.call.arguments, ensure_ascii=False)
    function = {"name": open_call.call.name, "arguments": arguments}
    return {"id": open_call.wire_id, "type": "function", "function": function}


# ---- pictures


def pictures_to_show(request: ImageRequest) -> list[ImagePart]:
    """Return the pictures that an image model receives, in the order of the prompt's legend, each once.

    Raises RequestRefused when the model cannot edit pictures.
    """
    images = {image.digest: image for message in request.messages for image in message.images}
    if images and not request.model.has_edits:
        raise RequestRefused(ErrorCode.TOO_MANY_REFERENCES, model=request.model.label, limit=0, count=len(images))
    return list(images.values())


def image_body(request: ImageRequest) -> dict[str, str | int]:
    """Return the fields of an image call; it has only the settings that were chosen.

    Raises DesignRuleBroken when a web search is requested.
    """
    if request.use_grounding:
        raise DesignRuleBroken(ErrorCode.DESIGN_RULE_BROKEN, rule=f"{request.model.id} has no Google search")
    body: dict[str, str | int] = {"model": request.model.id, "prompt": request.messages[-1].text, "n": 1}
    pixels = request.model.pixels(request.aspect_ratio, request.resolution) if request.aspect_ratio else None
    if pixels is not None and request.model.size_field == "size":
        body["size"] = f"{pixels[0]}x{pixels[1]}"
    elif request.aspect_ratio and request.model.size_field == "aspect_ratio":
        body["aspect_ratio"] = request.aspect_ratio
    if request.model.has_response_format:
        body["response_format"] = "b64_json"
    return body


def image_files(
    images: Sequence[ImagePart], data: Sequence[bytes], field: str
) -> list[tuple[str, tuple[str, bytes, str]]]:
    """Return the pictures as files of a form, all in the same field, each with a name and its type."""
    return [
        (field, (f"image{place}.{_ENDINGS.get(image.mime_type, 'png')}", one, image.mime_type))
        for place, (image, one) in enumerate(zip(images, data, strict=True), 1)
    ]


# ---- tools and thoughts in a model's text, for servers that do not separate them

# A model without native tools gets their description in its instructions and calls them between `<tool_call>` tags, as
# many open models were trained to; a thinking model may write its thoughts between `<think>` tags.
THINK = "think"
TOOL_CALL = "tool_call"


def _tools_in_words(tools: Sequence[ToolDeclaration]) -> str:
    """Return the instructions that replace the declaration of tools."""
    declared = "\n".join(json.dumps(tool.model_dump()) for tool in tools)
    return (
        "You can call these tools, described by the JSON schema of their arguments:\n"
        f"{declared}\n"
        "To call one, end your answer with a line of exactly this form, and wait for its result:\n"
        f'<{TOOL_CALL}>{{"name": "the tool", "arguments": {{}}}}</{TOOL_CALL}>'
    )


def _call_in_words(call: ToolCallPart) -> str:
    """Return a past call in the form in which the model would have written it."""
    written = json.dumps({"name": call.name, "arguments": call.arguments}, ensure_ascii=False)
    return f"<{TOOL_CALL}>{written}</{TOOL_CALL}>"


def read_calls(text: str) -> list[ToolCallPart] | None:
    """Return the calls from between the tags, one after the other, or None when they are malformed."""
    decoder = json.JSONDecoder(strict=False)
    calls: list[ToolCallPart] = []
    text = text.strip()
    while text:
        try:
            written, end = decoder.raw_decode(text)
        except ValueError:
            return None
        call = _call_of(written)
        if call is None:
            return None
        calls.append(call)
        text = text[end:].lstrip()
    return calls


def _call_of(written: object) -> ToolCallPart | None:
    if not isinstance(written, dict):
        return None
    name, arguments = written.get("name"), written.get("arguments") or {}
    if not isinstance(name, str) or not name or not isinstance(arguments, dict):
        return None
    return ToolCallPart(name=name, arguments=arguments)


class TagSplitter:
    """Splits a streamed text at its tags. Text that may be the start of a tag is held back until that is clear."""

    def __init__(self, *tags: str) -> None:
        self._openings = {f"<{tag}>": tag for tag in tags}
        self._inside = ""
        self._held = ""

    def feed(self, text: str) -> Iterator[tuple[str, str]]:
        """Yield pairs of a tag and the text inside it; outside of any tag, the tag is empty."""
        self._held += text
        while self._held:
            marks = {f"</{self._inside}>": ""} if self._inside else self._openings
            found = min(((self._held.find(mark), mark) for mark in marks if mark in self._held), default=None)
            if found is None:
                yield from self._release(len(self._held) - self._possible_beginning(marks))
                return
            place, mark = found
            yield from self._release(place)
            self._held = self._held[len(mark) :]
            self._inside = marks[mark]

    def end(self) -> Iterator[tuple[str, str]]:
        """Yield the text that was held back."""
        yield from self._release(len(self._held))

    def _release(self, count: int) -> Iterator[tuple[str, str]]:
        released, self._held = self._held[:count], self._held[count:]
        if released:
            yield self._inside, released

    def _possible_beginning(self, marks: dict[str, str]) -> int:
        """Return how many characters at the end may be the start of a tag."""
        longest = max(map(len, marks)) - 1
        sizes = range(min(longest, len(self._held)), 0, -1)
        return next((size for size in sizes if any(mark.startswith(self._held[-size:]) for mark in marks)), 0)

"""Rules of this API: each is one that some server of it holds its clients to."""

from __future__ import annotations

import base64
import json
import re
from typing import Any

from tests.openai_server.models import ServedModel
from tests.openai_server.request import FormFile, Refused, refuse, text_of
from tests.wire_server.pictures import look_at
from tests.wire_server.refusals import Json

_FIELDS = {"model", "messages", "stream", "tools", "response_format", "reasoning_effort"}
_MESSAGE_FIELDS = {
    "system": {"role", "content"},
    "user": {"role", "content"},
    "assistant": {"role", "content", "tool_calls", "reasoning_content"},
    "tool": {"role", "content", "tool_call_id"},
}
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_LONGEST_ID = 40


def check_chat(body: Json, model: ServedModel) -> None:
    """Refuse a body that some server would not take for this model."""
    if "max_tokens" in body and model.limit_field != "max_tokens":
        told = (
            f"Unsupported parameter: 'max_tokens' is not supported with this model. Use '{model.limit_field}' instead."
        )
        raise Refused("unknown_field", told, code="unsupported_parameter")
    usage = {"stream_options"} if model.has_stream_usage else set()
    if unknown := set(body) - _FIELDS - usage - {model.limit_field}:
        raise Refused("unknown_field", f"Unrecognized request argument supplied: {min(unknown)}")
    counts = not usage or body.get("stream_options") == {"include_usage": True}
    refuse(body.get("stream") is not True or not counts, "stream", "This server streams, and counts what it can.")
    limit = body.get(model.limit_field, 1)
    refuse(type(limit) is not int or limit < 1, "limit", f"{model.limit_field} must be a number of tokens")
    messages: Any = body.get("messages")
    refuse(not isinstance(messages, list) or not messages, "messages", "messages must be a list with something in it")
    for number, message in enumerate(messages):
        role = message.get("role") if isinstance(message, dict) else None
        if role not in _MESSAGE_FIELDS:
            raise Refused("role", f"messages[{number}].role: {role!r} is not one of {sorted(_MESSAGE_FIELDS)}")
        if unknown := set(message) - _MESSAGE_FIELDS[role]:
            raise Refused("unknown_field", f"messages[{number}]: {min(unknown)} is not a field of {role}")
        refuse(role == "system" and number > 0, "order", "The system's message must be the first.")
        content = message.get("content")
        if role == "user" and isinstance(content, list):
            _check_parts(content, number, model)
        elif not isinstance(content, str):
            raise Refused("content", f"messages[{number}].content must be a string")
        elif not content.strip() and not (role == "assistant" and message.get("tool_calls")):
            raise Refused("content", f"messages[{number}].content must not be empty")
        if role == "assistant":
            _check_answer(message, number, model)
    # Held to turns, as the chat templates of Mistral's models do.
    spoken = [m["role"] for m in messages if m["role"] in ("user", "assistant") and not m.get("tool_calls")]
    sentence = "After the optional system message, conversation roles must alternate user/assistant/user/assistant"
    refuse(any((role == "user") != (place % 2 == 0) for place, role in enumerate(spoken)), "order", sentence)
    roles = [message["role"] for message in messages if message["role"] != "system"]
    refuse(roles[0] != "user", "order", "The person speaks first.")
    refuse(roles[-1] not in ("user", "tool"), "order", "Expected last role user or tool.")
    _check_pairing(messages)
    _check_tools(body.get("tools"), model)
    _check_format(body.get("response_format"), messages, model)
    effort = body.get("reasoning_effort", "low")
    refuse(effort not in ("low", "high", "max"), "reasoning_effort", "reasoning_effort must be low, high or max")


def _check_parts(parts: list[Any], number: int, model: ServedModel) -> None:
    kinds = [part.get("type") for part in parts if isinstance(part, dict)]
    if "image_url" not in kinds:
        raise Refused("content", f"messages[{number}].content: parts are taken where there is a picture among them")
    for part in parts:
        match part:
            case {"type": "text", "text": str(text), **rest} if text and not rest:
                pass
            case {"type": "image_url", "image_url": {"url": str(url), **more}, **rest} if not rest and not more:
                _check_picture(url, model)
            case _:
                raise Refused("content", f"messages[{number}].content: {part!r:.80} is not a part")


def _check_picture(url: str, model: ServedModel) -> None:
    refuse(not model.has_vision, "vision", f"{model.name} is not a multimodal model")
    match = re.fullmatch(r"data:(image/\w+);base64,([A-Za-z0-9+/]+=*)", url)
    facts = look_at(match[2]) if match else None
    refuse(match is None or facts is None, "picture", "image_url.url must be a readable picture as a data URL")
    assert match
    assert facts
    refuse(facts.mime_type != match[1], "picture", f"The picture is {facts.mime_type}, not {match[1]}")


def _check_answer(message: Json, number: int, model: ServedModel) -> None:
    calls = message.get("tool_calls")
    if "reasoning_content" in message and not (model.wants_thoughts and isinstance(message["reasoning_content"], str)):
        raise Refused("thoughts", f"messages[{number}].reasoning_content is not taken by {model.name}")
    if calls is None:
        return
    refuse(not model.has_tools, "tools", f"{model.name} does not support tools")
    if model.wants_thoughts and "reasoning_content" not in message:
        raise Refused("thoughts", "The reasoning_content in the thinking mode must be passed back to the API.")
    refuse(not isinstance(calls, list) or not calls, "tool_calls", f"messages[{number}].tool_calls must not be empty")
    for call in calls:
        _check_call(call, f"messages[{number}].tool_calls")
    ids = [call["id"] for call in calls]
    if len(set(ids)) != len(ids):
        raise Refused("tool_call_id", f"messages[{number}].tool_calls: two calls have the id {max(ids, key=ids.count)}")


def _check_call(call: Any, path: str) -> None:
    match call:
        case {
            "id": str(call_id),
            "type": "function",
            "function": {"name": str(name), "arguments": str(arguments), **more},
            **rest,
        } if not rest and not more:
            pass
        case _:
            raise Refused("tool_calls", f"{path}: {call!r:.80} is not a call")
    if not 1 <= len(call_id) <= _LONGEST_ID:
        raise Refused("tool_call_id", f"{path}: an id has 1 to {_LONGEST_ID} characters, not {len(call_id)}")
    refuse(not _NAME.fullmatch(name), "tool_calls", f"{path}: {name!r} is not the name of a function")
    try:
        given = json.loads(arguments)
    except ValueError as fault:
        raise Refused("tool_calls", f"{path}: arguments are not JSON") from fault
    refuse(not isinstance(given, dict), "tool_calls", f"{path}: arguments are not an object")


def _check_pairing(messages: list[Json]) -> None:
    waiting: list[str] = []
    for number, message in enumerate(messages):
        if message["role"] == "tool":
            if message.get("tool_call_id") not in waiting:
                sentence = "messages with role 'tool' must be a response to a preceding message with 'tool_calls'"
                raise Refused("tool_call_id", f"messages[{number}]: {sentence}")
            waiting.remove(message["tool_call_id"])
            continue
        if waiting:
            sentence = "an assistant message with 'tool_calls' must be followed by tool messages to each tool_call_id"
            raise Refused("tool_call_id", f"messages[{number}]: {sentence}; missing: {waiting}")
        waiting = [call["id"] for call in message.get("tool_calls") or []]
    refuse(waiting, "tool_call_id", f"these calls have no result: {waiting}")


def _check_tools(tools: Any, model: ServedModel) -> None:
    if tools is None:
        return
    refuse(not model.has_tools, "tools", f"{model.name} does not support tools")
    refuse(not isinstance(tools, list) or not tools, "tools", "tools must not be empty")
    names = []
    for tool in tools:
        match tool:
            case {
                "type": "function",
                "function": {"name": str(name), "description": str(), "parameters": {"type": "object"}, **more},
                **rest,
            } if _NAME.fullmatch(name) and not more and not rest:
                names.append(name)
            case _:
                raise Refused("tools", f"{tool!r:.80} is not a function")
    if len(set(names)) != len(names):
        raise Refused("tools", f"{max(names, key=names.count)} is declared twice")


def _check_format(wanted: Any, messages: list[Json], model: ServedModel) -> None:
    match wanted:
        case None:
            return
        case {"type": "json_schema", "json_schema": {"name": str(name), "schema": {"type": "object"}, **more}, **rest}:
            if model.json_mode != "schema" or not _NAME.fullmatch(name) or more or rest:
                raise Refused("response_format", f"This response_format type is unavailable for {model.name}")
        case {"type": "json_object", **rest} if not rest:
            if model.json_mode != "object":
                raise Refused("response_format", "'response_format.type' must be 'json_schema' or 'text'")
            if "json" not in "\n".join(map(text_of, messages)).lower():
                raise Refused("response_format", "Prompt must contain the word 'json' in some form")
        case _:
            raise Refused("response_format", f"{wanted!r:.80} is not a response_format")


# Pictures.

_ENDINGS = {"image/png": ".png", "image/jpeg": ".jpg", "image/webp": ".webp"}


def check_generation(body: Json, model: ServedModel) -> dict[str, str]:
    """Return the fields of a JSON body as text. Raises Refused when the model would not take it."""
    refuse(not isinstance(body.get("n", 1), int), "n", "n must be a number")
    fields = {name: _as_text(name, value) for name, value in body.items()}
    _check_fields(fields, model)
    return fields


def check_edit(fields: dict[str, str], files: list[FormFile], model: ServedModel) -> None:
    """Refuse a form that the model would not take."""
    refuse(not model.has_edits, "edits", f"{model.name} changes no pictures")
    _check_fields(fields, model)
    refuse(model.image_field not in {file.field for file in files}, "image", model.wants_pictures)
    for file in files:
        refuse(file.field != model.image_field, "image", f"Several pictures come under {model.image_field}")
        if not file.name.endswith(_ENDINGS.get(file.mime_type, "no type")):
            raise Refused("image", f"{file.name} is said to be {file.mime_type or 'nothing'}")
        facts = look_at(base64.b64encode(file.data).decode())
        is_right = facts is not None and facts.mime_type == file.mime_type
        refuse(not is_right, "image", f"{file.name} is {facts}, not {file.mime_type}")


def _as_text(name: str, value: Any) -> str:
    refuse(not isinstance(value, int if name == "n" else str), "type", f"{name} is {type(value).__name__}")
    return str(value)


def _check_fields(fields: dict[str, str], model: ServedModel) -> None:
    if unknown := set(fields) - {"model", "prompt", "n", "response_format"} - {model.size_field}:
        raise Refused("unknown_field", model.unknown.format(min(unknown)), code="unknown_parameter")
    refuse(not fields.get("prompt", "").strip(), "prompt", "Missing required parameter: 'prompt'.")
    refuse(fields.get("n", "1") != "1", "n", "One picture at a time.")
    if (size := fields.get(model.size_field)) and size not in model.sizes:
        raise Refused("size", f"Invalid size '{size}'. Supported sizes are {', '.join(model.sizes)}.")
    if "response_format" in fields:
        if not model.has_response_format:
            raise Refused("unknown_field", "Unknown parameter: 'response_format'.", code="unknown_parameter")
        if fields["response_format"] not in ("b64_json", "url"):
            raise Refused("response_format", f"Invalid value: '{fields['response_format']}'.")

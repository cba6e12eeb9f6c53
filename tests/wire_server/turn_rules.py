"""Rules of the conversation: who speaks when, what a part may be, which result answers which call."""

from __future__ import annotations

from tests.wire_server.fields import snake
from tests.wire_server.refusals import Json, Refused

_DATA = (
    "text",
    "inlineData",
    "fileData",
    "functionCall",
    "functionResponse",
    "executableCode",
    "codeExecutionResult",
    "toolCall",
    "toolResponse",
)
_USERS_DATA = frozenset({"text", "inlineData", "fileData", "functionResponse"})
_BAD_ROLE = "Please use a valid role: user, model."
_COUNT = (
    "Please ensure that the number of function response parts is equal to the number of function call parts "
    "of the function call turn."
)
_RESPONSE_WITHOUT_CALL = (
    "Please ensure that function response turn comes immediately after a function call turn. And the number of "
    "function response parts should be equal to number of function call parts of the function call turn."
)
_CALL_WITHOUT_RESPONSE = (
    "Please ensure that function call turn comes immediately after a user turn or after a function response turn "
    "and is followed by its function response turn."
)


def check_contents(contents: list[Json]) -> None:
    """Refuse a conversation out of order, or one with a part the API does not take."""
    if not contents:
        raise Refused("empty_contents", "* GenerateContentRequest.contents: contents is not specified\n")
    for number, content in enumerate(contents):
        if content.get("role") not in ("user", "model"):
            raise Refused("role", _BAD_ROLE)
        _check_parts(content, f"GenerateContentRequest.contents[{number}]")
    if contents[0]["role"] != "user":
        raise Refused("turn_order", "Please ensure that multiturn requests start with a user turn.")
    if contents[-1]["role"] != "user":
        raise Refused(
            "turn_order", "Please ensure that multiturn requests end with a user role or a function response."
        )
    _check_pairing(contents)


def check_system(content: Json | None) -> None:
    """Refuse a system instruction that is anything but text."""
    if content is None:
        return
    parts = content.get("parts", [])
    if not parts or any(set(part) != {"text"} or not part["text"] for part in parts):
        raise Refused("system_instruction", "System instruction must have text parts only.")


def _check_parts(content: Json, path: str) -> None:
    parts = content.get("parts")
    if not parts:
        raise Refused("empty_parts", f"* {path}.parts: contents.parts must not be empty.\n")
    for number, part in enumerate(parts):
        where = f"{path}.parts[{number}]"
        data = [name for name in _DATA if name in part]
        if len(data) > 1:
            sentence = f"Invalid value at '{where}' (oneof), oneof field 'data' is already set. Cannot set"
            raise Refused("part_data", f"{sentence} '{snake(data[1])}'")
        if not data or (data == ["text"] and not part["text"] and "thoughtSignature" not in part):
            raise Refused("part_data", f"* {where}.data: required oneof field 'data' must have one initialized field\n")
        _check_owner(content["role"], part, data[0])
        _check_call(part, where)


def _check_owner(role: str, part: Json, data: str) -> None:
    if role == "user" and data not in _USERS_DATA:
        raise Refused("part_owner", f"A user turn may not have a {snake(data)} part.")
    if role == "user" and ("thoughtSignature" in part or "thought" in part):
        raise Refused("part_owner", "A user turn may not have a thought or a thought_signature.")
    if role == "model" and data == "functionResponse":
        raise Refused("part_owner", "Function response parts belong in a user turn.")


def _check_call(part: Json, where: str) -> None:
    for field in ("functionCall", "functionResponse"):
        if field in part and not part[field].get("name"):
            raise Refused("part_data", f"* {where}.{snake(field)}.name: Name cannot be empty.\n")
    if "functionResponse" in part and "response" not in part["functionResponse"]:
        raise Refused("part_data", f"* {where}.function_response.response: required field is not set\n")


def _check_pairing(contents: list[Json]) -> None:
    pending: list[Json] = []
    for content in contents:
        responses = [part["functionResponse"] for part in content["parts"] if "functionResponse" in part]
        if content["role"] == "model":
            # A streamed answer may come back as several model contents; its calls are one step all the same.
            pending += [part["functionCall"] for part in content["parts"] if "functionCall" in part]
            continue
        if responses and not pending:
            raise Refused("function_pairing", _RESPONSE_WITHOUT_CALL)
        if pending and not responses:
            raise Refused("function_pairing", _CALL_WITHOUT_RESPONSE)
        if len(responses) != len(pending):
            raise Refused("function_pairing", _COUNT)
        for call, response in zip(pending, responses, strict=True):
            _check_pair(call, response)
        pending = []


def _check_pair(call: Json, response: Json) -> None:
    if call["name"] != response["name"]:
        sentence = f"Function response `{response['name']}` does not match function call `{call['name']}` in its place."
        raise Refused("function_pairing", sentence)
    if call.get("id") != response.get("id"):
        sentence = f"Function response `{response['name']}` does not carry the id of its function call."
        raise Refused("function_pairing", sentence)

"""Every rule of the API but those of tools: a parsed body is judged against those of its method."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from tests.wire_server.fields import normalized, snake
from tests.wire_server.models import MAX_PICTURES, Kind, WireModel
from tests.wire_server.pictures import look_at
from tests.wire_server.refusals import Json, Refused, refuse
from tests.wire_server.request import WireRequest
from tests.wire_server.signatures import Ledger, decoded, is_dummy
from tests.wire_server.tool_rules import check_schema, check_tools

_SHAPES = {
    "generateContent": "GenerateContentRequest",
    "streamGenerateContent": "GenerateContentRequest",
    "countTokens": "CountTokensRequest",
    "embedContent": "EmbedContentRequest",
    "batchEmbedContents": "BatchEmbedContentsRequest",
}


def normal_body(method: str, body: object) -> Json:
    """Return the body in camelCase. Raises Refused on a field the method does not have."""
    return normalized(body, _SHAPES[method])


def check(request: WireRequest, ledger: Ledger) -> list[str]:
    """Refuse what the API refuses; return the design rules broken by what the API would have taken."""
    if request.method in ("embedContent", "batchEmbedContents"):
        check_embedding(request.normal, request.known_model)
        return []
    body = request.normal
    if request.method == "countTokens":
        body = body.get("generateContentRequest") or body
    check_contents(body.get("contents", []))
    check_system(body.get("systemInstruction"))
    notes = check_tools(body, request.known_model)
    check_config(body, request.known_model)
    check_pictures(body.get("contents", []), request.known_model)
    check_signatures(body.get("contents", []), request.known_model, ledger)
    return notes


def check_embedding(body: Json, model: WireModel) -> None:
    """Refuse texts without text, another model's name inside, and a length of vector the model does not have."""
    requests: list[Json] = body.get("requests", [body])
    refuse(not requests, "empty_contents", "* BatchEmbedContentsRequest.requests: requests must not be empty\n")
    for entry in requests:
        if entry.get("model", f"models/{model.name}") != f"models/{model.name}":
            raise Refused("embedding", "The model of every request must be the model of the batch.")
        if not any(part.get("text") or "inlineData" in part for part in entry.get("content", {}).get("parts", [])):
            raise Refused("empty_contents", "* EmbedContentRequest.content: contents is not specified\n")
        if not 1 <= entry.get("outputDimensionality", model.dimensions) <= model.dimensions:
            raise Refused("embedding", f"output_dimensionality must be between 1 and {model.dimensions}")


# The conversation: who speaks when, what a part may be, which result answers which call.

_DATA = (
    *("text", "inlineData", "fileData", "functionCall", "functionResponse"),
    *("executableCode", "codeExecutionResult", "toolCall", "toolResponse"),
)
_USERS_DATA = frozenset({"text", "inlineData", "fileData", "functionResponse"})
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
    refuse(not contents, "empty_contents", "* GenerateContentRequest.contents: contents is not specified\n")
    for number, content in enumerate(contents):
        refuse(content.get("role") not in ("user", "model"), "role", "Please use a valid role: user, model.")
        _check_parts(content, f"GenerateContentRequest.contents[{number}]")
    refuse(contents[0]["role"] != "user", "turn_order", "Please ensure that multiturn requests start with a user turn.")
    sentence = "Please ensure that multiturn requests end with a user role or a function response."
    refuse(contents[-1]["role"] != "user", "turn_order", sentence)
    _check_pairing(contents)


def check_system(content: Json | None) -> None:
    """Refuse a system instruction that is anything but text."""
    if content is None:
        return
    parts = content.get("parts", [])
    if not parts or any(set(part) != {"text"} or not part["text"] for part in parts):
        raise Refused("system_instruction", "System instruction must have text parts only.")


def _check_parts(content: Json, path: str) -> None:
    parts: list[Json] = content.get("parts", [])
    refuse(not parts, "empty_parts", f"* {path}.parts: contents.parts must not be empty.\n")
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
    refuse(role == "user" and data not in _USERS_DATA, "part_owner", f"A user turn may not have a {snake(data)} part.")
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
        refuse(responses and not pending, "function_pairing", _RESPONSE_WITHOUT_CALL)
        refuse(pending and not responses, "function_pairing", _CALL_WITHOUT_RESPONSE)
        refuse(len(responses) != len(pending), "function_pairing", _COUNT)
        for call, response in zip(pending, responses, strict=True):
            if call["name"] != response["name"]:
                names = f"Function response `{response['name']}` does not match function call `{call['name']}`"
                raise Refused("function_pairing", f"{names} in its place.")
            if call.get("id") != response.get("id"):
                sentence = f"Function response `{response['name']}` does not carry the id of its function call."
                raise Refused("function_pairing", sentence)
        pending = []


# generationConfig and safetySettings: what each model takes, and what no model takes any more.

# Deprecated for Gemini 3 and later: the API ignores or refuses them, the design never sends them.
_SCHEMAS = ("responseSchema", "responseJsonSchema", "_responseJsonSchema")
_HARMS = (
    *("HARASSMENT", "HATE_SPEECH", "SEXUALLY_EXPLICIT", "DANGEROUS_CONTENT", "CIVIC_INTEGRITY"),
    *("IMAGE_HATE", "IMAGE_DANGEROUS_CONTENT", "IMAGE_HARASSMENT", "IMAGE_SEXUALLY_EXPLICIT"),
)
_CATEGORIES = frozenset(f"HARM_CATEGORY_{harm}" for harm in _HARMS)
_THRESHOLDS = frozenset({"BLOCK_LOW_AND_ABOVE", "BLOCK_MEDIUM_AND_ABOVE", "BLOCK_ONLY_HIGH", "BLOCK_NONE", "OFF"})


def check_config(body: Json, model: WireModel) -> None:
    """Refuse a setting the model does not have, and one out of its range."""
    config: Json = body.get("generationConfig", {})
    for name in ("temperature", "topP", "topK"):
        refuse(name in config, "deprecated_setting", f"{snake(name)} is not supported for this model")
    refuse("candidateCount" in config, "candidate_count", "Multiple candidates is not enabled for this model")
    _check_thinking(config.get("thinkingConfig", {}), model)
    modalities = {str(name).upper() for name in config.get("responseModalities", [])}
    if "IMAGE" in modalities and model.kind is Kind.TEXT:
        raise Refused("modalities", "Model does not support the requested response modalities: image")
    refuse(modalities - {"TEXT", "IMAGE"}, "modalities", "Model does not support the requested response modalities")
    schemas = [config[name] for name in _SCHEMAS if name in config]
    mime_type = config.get("responseMimeType", "text/plain")
    if model.kind is Kind.IMAGE and (schemas or mime_type != "text/plain"):
        raise Refused("schema_on_image_model", "JSON mode is not enabled for this model")
    sentence = "* GenerateContentRequest.generation_config.response_schema: only allowed for `application/json`\n"
    refuse(schemas and mime_type != "application/json", "schema", sentence)
    for schema in schemas:
        check_schema(schema, "GenerateContentRequest.generation_config.response_schema")
    if "imageConfig" in config or model.kind is Kind.IMAGE:
        asked: Json = config.get("imageConfig", {})
        refuse(model.kind is Kind.TEXT, "image_config", "Image generation is not enabled for this model")
        if "IMAGE" not in {str(name).upper() for name in config.get("responseModalities", [])}:
            raise Refused("modalities", "The response modalities of an image model must contain IMAGE")
        ratio, size = asked.get("aspectRatio"), asked.get("imageSize")
        if ratio is not None and ratio not in model.ratios:
            raise Refused("image_config", f"Invalid aspect_ratio {ratio}: use one of {', '.join(sorted(model.ratios))}")
        if size is not None and size not in model.sizes:
            sizes = ", ".join(sorted(model.sizes)) or "none"
            raise Refused("image_config", f"Invalid image_size {size}: this model has {sizes}")
    for setting in body.get("safetySettings", []):
        if setting.get("category") not in _CATEGORIES or setting.get("threshold") not in _THRESHOLDS:
            raise Refused("safety_setting", "Invalid value at 'safety_settings'")


def _check_thinking(config: Json, model: WireModel) -> None:
    if not config:
        return
    if "thinkingBudget" in config:
        raise Refused("deprecated_setting", "thinking_budget is not supported for this model: use thinking_level")
    refuse(not model.thinking_levels, "thinking", f"Thinking is not enabled for models/{model.name}")
    level = config.get("thinkingLevel", "").upper()
    if level and level not in model.thinking_levels:
        raise Refused("thinking", f"Thinking level {level} is not supported for this model.")


# The pictures sent: their type, that they can be read, and how many a model looks at.

_PICTURES = frozenset({"image/png", "image/jpeg", "image/webp"})
# Taken by the API, not opened here.
_UNOPENED = frozenset(
    {"image/heic", "image/heif", "application/pdf", "text/plain", "video/mp4", "audio/wav", "audio/mp3"}
)
_IN_RESULTS = _PICTURES | {"application/pdf", "text/plain"}
_UNREADABLE = (
    "Unable to process input image. Please retry or report in "
    "https://developers.generativeai.google/guide/troubleshooting"
)


def check_pictures(contents: list[Json], model: WireModel) -> None:
    """Refuse data that is not what it says, and more pictures than an image model takes."""
    count = 0
    for blob, is_in_result in _blobs(contents):
        mime_type = blob.get("mimeType", "")
        taken = _IN_RESULTS if is_in_result else _PICTURES | _UNOPENED
        refuse(mime_type not in taken, "mime_type", f"Unsupported MIME type: {mime_type}")
        if mime_type in _PICTURES:
            count += 1
            _check_picture(blob)
        elif decoded(blob.get("data", "")) is None:
            raise Refused("base64", "Invalid value at 'inline_data.data' (TYPE_BYTES), Base64 decoding failed")
    if model.kind is Kind.IMAGE and count > MAX_PICTURES:
        raise Refused("too_many_pictures", f"This model takes at most {MAX_PICTURES} images, {count} were sent")


def _check_picture(blob: Json) -> None:
    data = blob.get("data", "")
    if decoded(data) is None:
        raise Refused("base64", "Invalid value at 'inline_data.data' (TYPE_BYTES), Base64 decoding failed")
    facts = look_at(data)
    if facts is None:
        raise Refused("unreadable_picture", _UNREADABLE)
    refuse(facts.mime_type != blob["mimeType"], "mime_type", "Provided image is not valid")


def _blobs(contents: list[Json]) -> Iterator[tuple[Json, bool]]:
    for content in contents:
        for part in content["parts"]:
            if "inlineData" in part:
                yield part["inlineData"], False
            for answer in part.get("functionResponse", {}).get("parts", []):
                if "inlineData" in answer:
                    yield answer["inlineData"], True


# Thought signatures: where one is owed, and that each given is its part's own.

_CALL = (
    "Function call is missing a thought_signature in functionCall parts. This is required for tools to work "
    "correctly, and missing thought_signature may lead to degraded model performance. Additional data, function call "
    "`default_api:{name}` , position {position}. Please refer to "
    "https://ai.google.dev/gemini-api/docs/thought-signatures for more details."
)
_PART = "{kind} part is missing a thought_signature in content position {content}, part position {part}."

# A part with its places in the request: of its content and of itself, both from 1.
Placed = tuple[int, int, Json]


def check_signatures(contents: list[Json], model: WireModel, ledger: Ledger) -> None:
    """Refuse a part that lost its signature where one is owed, and any signature that is not the part's own."""
    start = current_turn(contents)
    seen: set[bytes] = set()
    places: dict[str, int] = {}
    for turn in _model_turns(contents):
        if turn[0][0] > start:
            _check_first_call(turn)
        has_picture = any(_is_picture(part) for _, _, part in turn)
        spoken = [placed for placed in turn if not placed[2].get("thought")]
        if has_picture and model.kind is Kind.IMAGE and spoken and "text" in spoken[0][2]:
            _demand(spoken[0], "Text")
        for placed in turn:
            if _is_picture(placed[2]):
                _demand(placed, "Image")
        for _, _, part in turn:
            signature = part.get("thoughtSignature")
            if signature is None or ("functionCall" in part and is_dummy(signature)):
                continue
            ledger.check(part, model.name, seen, places)


def current_turn(contents: list[Json]) -> int:
    """Return the place, from 1, of the last user content that brings no function response."""
    place = 0
    for number, content in enumerate(contents, 1):
        is_response = any("functionResponse" in part for part in content["parts"])
        if content["role"] == "user" and not is_response:
            place = number
    return place


def _model_turns(contents: list[Json]) -> Iterator[list[Placed]]:
    """Yield the parts of each model turn; contents that follow each other are one turn."""
    numbered = enumerate(contents, 1)
    for role, group in groupby(numbered, key=lambda entry: entry[1]["role"]):
        if role == "model":
            yield [(place, i, part) for place, content in group for i, part in enumerate(content["parts"], 1)]


def _check_first_call(turn: list[Placed]) -> None:
    for place, _, part in turn:
        if "functionCall" in part:
            if not part.get("thoughtSignature"):
                name = part["functionCall"]["name"]
                raise Refused("signature_missing", _CALL.format(name=name, position=place))
            return


def _demand(placed: Placed, kind: str) -> None:
    content, part, value = placed
    refuse(not value.get("thoughtSignature"), "signature_missing", _PART.format(kind=kind, content=content, part=part))


def _is_picture(part: Json) -> bool:
    return "inlineData" in part and str(part["inlineData"].get("mimeType", "")).startswith("image/")

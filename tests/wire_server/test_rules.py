"""Every rule of the server fires, with the API's own words where they are known, and is put on record."""

from __future__ import annotations

import base64
from io import BytesIO
from typing import Any

import pytest
from PIL import Image

from tests.wire_server import GeminiServer, Text
from tests.wire_server.raw import BANANA, FLASH, Raw

Json = dict[str, Any]
LITE = "gemini-3.1-flash-lite-image"
PRO = "gemini-3-pro-image"
OLD = "gemini-2.5-flash-image"


def picture(kind: str = "PNG", size: tuple[int, int] = (8, 8)) -> str:
    buffer = BytesIO()
    Image.new("RGB", size, "red").save(buffer, kind)
    return base64.b64encode(buffer.getvalue()).decode()


def inline(data: str | None = None, mime_type: str = "image/png") -> Json:
    return {"inlineData": {"mimeType": mime_type, "data": picture() if data is None else data}}


def user(*parts: Json | str) -> Json:
    return {"role": "user", "parts": [{"text": part} if isinstance(part, str) else part for part in parts]}


def model(*parts: Json | str) -> Json:
    return {**user(*parts), "role": "model"}


def call(name: str = "draw", **fields: Any) -> Json:
    return {
        "functionCall": {"name": name, "args": {}, **fields},
        "thoughtSignature": "skip_thought_signature_validator",
    }


def result(name: str = "draw", **fields: Any) -> Json:
    return {"functionResponse": {"name": name, "response": {"ok": True}, **fields}}


def asking(*contents: Json, **top: Any) -> Json:
    return {"contents": list(contents) or [user("hi")], **top}


def painting(image_config: Json | None = None, *contents: Json, **config: Any) -> Json:
    settings = {"responseModalities": ["TEXT", "IMAGE"], **config}
    if image_config is not None:
        settings["imageConfig"] = image_config
    return asking(*contents, generationConfig=settings)


def declaring(*declarations: Json, **top: Any) -> Json:
    return asking(tools=[{"functionDeclarations": list(declarations)}], **top)


def schema(**properties: Any) -> Json:
    return {"name": "draw", "parametersJsonSchema": {"type": "object", "properties": properties}}


DRAW = {"name": "draw", "description": "Draws."}
SEARCH: Json = {"googleSearch": {}}

TAKEN = {
    "a system instruction": (FLASH, asking(systemInstruction={"parts": [{"text": "Be kind."}]})),
    "snake case": (FLASH, asking(generation_config={"thinking_config": {"thinking_level": "low"}})),
    "the SDK's mixed case": (
        FLASH,
        asking(generationConfig={"thinkingConfig": {"include_thoughts": True, "thinking_level": "HIGH"}}),
    ),
    "two users in a row": (FLASH, asking(user("hi"), user("there"))),
    "a picture of the person": (FLASH, asking(user(inline(), "what is it?"))),
    "a base64url picture without padding": (
        FLASH,
        asking(user(inline(picture().replace("+", "-").replace("/", "_").rstrip("=")))),
    ),
    "a call and its result": (FLASH, asking(user("hi"), model(call()), user(result()))),
    "parallel calls": (FLASH, asking(user("hi"), model(call(), call("look")), user(result(), result("look")))),
    "a call with an id": (FLASH, asking(user("hi"), model(call(id="1")), user(result(id="1")))),
    "a streamed call as two contents": (FLASH, asking(user("hi"), model("On it."), model(call()), user(result()))),
    "a picture in a result": (
        FLASH,
        asking(
            user("hi"),
            model(call()),
            user(result(parts=[{"inline_data": {"mime_type": "image/png", "data": picture()}}])),
        ),
    ),
    "a full schema": (
        FLASH,
        declaring(
            schema(
                ratio={"type": "string", "enum": ["1:1"]},
                names={"type": "array", "items": {"type": "string"}},
                seed={"anyOf": [{"type": "integer"}, {"type": "null"}]},
            )
        ),
    ),
    "a forced call": (
        FLASH,
        declaring(DRAW, toolConfig={"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["draw"]}}),
    ),
    "a search": (FLASH, asking(tools=[SEARCH])),
    "JSON of a schema": (
        FLASH,
        asking(generationConfig={"responseMimeType": "application/json", "responseJsonSchema": {"type": "object"}}),
    ),
    "safety settings": (
        FLASH,
        asking(safetySettings=[{"category": "HARM_CATEGORY_HARASSMENT", "threshold": "BLOCK_NONE"}]),
    ),
    "fourteen references": (BANANA, painting(None, user("mix", *[inline()] * 14))),
    "a tall banana": (BANANA, painting({"aspectRatio": "1:8", "imageSize": "4K"})),
    "image search on a banana": (
        BANANA,
        {**painting(), "tools": [{"googleSearch": {"searchTypes": {"image_search": {}}}}]},
    ),
    "web search on Pro": (PRO, {**painting(), "tools": [SEARCH]}),
    "an old model without a size": (OLD, painting({"aspectRatio": "16:9"})),
}

REFUSED = {
    "unknown field at the top": ("unknown_field", FLASH, asking(seed=1), 'Unknown name "seed": Cannot find field.'),
    "unknown setting": (
        "unknown_field",
        FLASH,
        asking(generationConfig={"seeds": 1}),
        "Unknown name \"seeds\" at 'generation_config'",
    ),
    "unknown tool": ("unknown_field", FLASH, asking(tools=[{"google": {}}]), "at 'tools[0]'"),
    "unknown part": ("unknown_field", FLASH, asking(user({"image": "x"})), "at 'contents[0].parts[0]'"),
    "one field in both cases": (
        "unknown_field",
        FLASH,
        asking(generationConfig={"maxOutputTokens": 1, "max_output_tokens": 1}),
        "Repeated field",
    ),
    "contents that are no list": ("wrong_type", FLASH, {"contents": "hi"}, "Invalid value at 'contents'"),
    "a text that is a number": ("wrong_type", FLASH, asking(user({"text": 1})), "contents[0].parts[0].text"),
    "a Boolean where a number belongs": (
        "wrong_type",
        FLASH,
        asking(generationConfig={"seed": True}),
        "generation_config.seed",
    ),
    "temperature": ("deprecated_setting", FLASH, asking(generationConfig={"temperature": 1}), "temperature"),
    "top_p": ("deprecated_setting", FLASH, asking(generationConfig={"topP": 0.5}), "top_p"),
    "top_k": ("deprecated_setting", FLASH, asking(generationConfig={"top_k": 1}), "top_k"),
    "thinking_budget": (
        "deprecated_setting",
        FLASH,
        asking(generationConfig={"thinkingConfig": {"thinkingBudget": 0}}),
        "thinking_budget",
    ),
    "candidate_count": (
        "candidate_count",
        BANANA,
        painting(candidateCount=2),
        "Multiple candidates is not enabled for this model",
    ),
    "thinking on an old model": (
        "thinking",
        OLD,
        painting(thinkingConfig={"thinkingLevel": "high"}),
        "Thinking is not enabled for models/gemini-2.5-flash-image",
    ),
    "minimal thinking on Flash": (
        "thinking",
        FLASH,
        asking(generationConfig={"thinkingConfig": {"thinkingLevel": "minimal"}}),
        "Thinking level MINIMAL is not supported",
    ),
    "no contents": ("empty_contents", FLASH, {"contents": []}, "contents is not specified"),
    "no parts": ("empty_parts", FLASH, asking(user()), "contents[0].parts: contents.parts must not be empty."),
    "a role of its own": (
        "role",
        FLASH,
        asking({"role": "system", "parts": [{"text": "x"}]}),
        "Please use a valid role",
    ),
    "no role": ("role", FLASH, asking({"parts": [{"text": "x"}]}), "Please use a valid role"),
    "the model first": ("turn_order", FLASH, asking(model("hi"), user("ho")), "start with a user turn"),
    "a prefilled answer": ("turn_order", FLASH, asking(user("hi"), model("Sure,")), "end with a user role"),
    "an empty text": ("part_data", FLASH, asking(user("")), "must have one initialized field"),
    "an empty part": ("part_data", FLASH, asking(user({})), "must have one initialized field"),
    "two things in one part": ("part_data", FLASH, asking(user({"text": "x", **inline()})), "already set"),
    "a call without a name": ("part_data", FLASH, asking(user("x"), model(call("")), user(result())), "Name cannot"),
    "a result without a response": (
        "part_data",
        FLASH,
        asking(user("x"), model(call()), user({"functionResponse": {"name": "draw"}})),
        "function_response.response",
    ),
    "a signature of the person": (
        "part_owner",
        FLASH,
        asking(user({"text": "x", "thoughtSignature": "eA=="})),
        "may not have a thought",
    ),
    "a call of the person": ("part_owner", FLASH, asking(user(call())), "function_call"),
    "a result of the model": ("part_owner", FLASH, asking(user("x"), model(result()), user("y")), "user turn"),
    "a system instruction with a picture": (
        "system_instruction",
        FLASH,
        asking(systemInstruction={"parts": [inline()]}),
        "text parts only",
    ),
    "a result without a call": ("function_pairing", FLASH, asking(user(result())), "function response turn comes"),
    "a call without a result": (
        "function_pairing",
        FLASH,
        asking(user("x"), model(call()), user("y")),
        "function call turn comes",
    ),
    "one result for two calls": (
        "function_pairing",
        FLASH,
        asking(user("x"), model(call(), call("look")), user(result())),
        "number of function response parts is equal",
    ),
    "two results for one call": (
        "function_pairing",
        FLASH,
        asking(user("x"), model(call()), user(result(), result())),
        "number of function response parts is equal",
    ),
    "interleaved calls and results": (
        "function_pairing",
        FLASH,
        asking(user("x"), model(call()), user(result("look")), model(call("look")), user(result())),
        "does not match",
    ),
    "results in another order": (
        "function_pairing",
        FLASH,
        asking(user("x"), model(call(), call("look")), user(result("look"), result())),
        "does not match",
    ),
    "a result with another id": (
        "function_pairing",
        FLASH,
        asking(user("x"), model(call(id="1")), user(result(id="2"))),
        "does not carry the id",
    ),
    "a result without its id": (
        "function_pairing",
        FLASH,
        asking(user("x"), model(call(id="1")), user(result())),
        "does not carry the id",
    ),
    "search and functions": (
        "mixed_tools",
        FLASH,
        asking(tools=[SEARCH, {"functionDeclarations": [DRAW]}]),
        "Please enable tool_config.include_server_side_tool_invocations to use Built-in tools with Function calling.",
    ),
    "an empty tool": ("empty_tool", FLASH, asking(tools=[{}]), "exactly one kind"),
    "functions on an image model": (
        "functions_on_image_model",
        BANANA,
        {**painting(), "tools": [{"functionDeclarations": [DRAW]}]},
        "Function calling is not enabled for this model",
    ),
    "search on Lite": ("search_on_model", LITE, {**painting(), "tools": [SEARCH]}, "not enabled for this model"),
    "image search on Pro": (
        "search_on_model",
        PRO,
        {**painting(), "tools": [{"googleSearch": {"searchTypes": {"imageSearch": {}}}}]},
        "Image search is not enabled",
    ),
    "a mode without functions": (
        "function_calling_config",
        FLASH,
        asking(toolConfig={"functionCallingConfig": {"mode": "AUTO"}}),
        "set without function_declarations",
    ),
    "a mode there is not": (
        "function_calling_config",
        FLASH,
        declaring(DRAW, toolConfig={"functionCallingConfig": {"mode": "OFTEN"}}),
        "OFTEN",
    ),
    "allowed names in mode AUTO": (
        "function_calling_config",
        FLASH,
        declaring(DRAW, toolConfig={"functionCallingConfig": {"mode": "AUTO", "allowedFunctionNames": ["draw"]}}),
        "only when function calling mode is ANY",
    ),
    "an allowed name nobody declared": (
        "function_calling_config",
        FLASH,
        declaring(DRAW, toolConfig={"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["look"]}}),
        "not declared",
    ),
    "a name with a space": ("declaration", FLASH, declaring({"name": "draw it"}), "Invalid function name."),
    "a name too long": ("declaration", FLASH, declaring({"name": "d" * 65}), "Invalid function name."),
    "the same function twice": (
        "declaration",
        FLASH,
        declaring(DRAW, DRAW),
        "Duplicate function declaration found: draw",
    ),
    "both kinds of schema": (
        "declaration",
        FLASH,
        declaring({**schema(), "parameters": {"type": "object"}}),
        "mutually exclusive",
    ),
    "arguments that are a string": (
        "declaration",
        FLASH,
        declaring({"name": "draw", "parameters": {"type": "STRING"}}),
        "type OBJECT",
    ),
    "a schema of no type": ("schema", FLASH, declaring(schema(x={"description": "x"})), "properties[x].type"),
    "a type there is not": ("schema", FLASH, declaring(schema(x={"type": "text"})), "is not a type"),
    "an array of nothing": ("schema", FLASH, declaring(schema(x={"type": "array"})), "items: missing field"),
    "an empty enum": ("schema", FLASH, declaring(schema(x={"type": "string", "enum": []})), "enum: cannot be empty"),
    "a keyword the API does not know": (
        "schema",
        FLASH,
        declaring(schema(x={"type": "string", "const": "x"})),
        'Unknown name "const"',
    ),
    "a required property nobody has": (
        "schema",
        FLASH,
        declaring({"name": "draw", "parametersJsonSchema": {"type": "object", "required": ["x"]}}),
        "required[0]: property is not defined",
    ),
    "a flaw deep in a schema": (
        "schema",
        FLASH,
        declaring(schema(x={"type": "array", "items": {"anyOf": [{"type": "array"}]}})),
        "properties[x].items.anyOf[0].items",
    ),
    "a schema without JSON": (
        "schema",
        FLASH,
        asking(generationConfig={"responseSchema": {"type": "object"}}),
        "application/json",
    ),
    "a response schema that is none": (
        "schema",
        FLASH,
        asking(generationConfig={"responseMimeType": "application/json", "responseSchema": {"type": "array"}}),
        "items: missing field",
    ),
    "JSON of an image model": (
        "schema_on_image_model",
        BANANA,
        painting(responseMimeType="application/json"),
        "JSON mode is not enabled",
    ),
    "a schema for an image model": (
        "schema_on_image_model",
        BANANA,
        painting(responseSchema={"type": "object"}),
        "JSON mode is not enabled",
    ),
    "pictures of a text model": (
        "modalities",
        FLASH,
        asking(generationConfig={"responseModalities": ["IMAGE"]}),
        "does not support the requested response modalities",
    ),
    "sound": ("modalities", BANANA, painting(responseModalities=["IMAGE", "AUDIO"]), "response modalities"),
    "an image model asked for words": ("modalities", BANANA, asking(), "must contain IMAGE"),
    "a frame for a text model": (
        "image_config",
        FLASH,
        asking(generationConfig={"imageConfig": {"aspectRatio": "1:1"}}),
        "Image generation is not enabled",
    ),
    "a ratio of nobody": ("image_config", BANANA, painting({"aspectRatio": "2:1"}), "Invalid aspect_ratio 2:1"),
    "a banana's ratio on Pro": ("image_config", PRO, painting({"aspectRatio": "1:8"}), "Invalid aspect_ratio"),
    "a size with a small k": ("image_config", BANANA, painting({"imageSize": "2k"}), "Invalid image_size 2k"),
    "512 on a banana": ("image_config", BANANA, painting({"imageSize": "512"}), "Invalid image_size"),
    "2K on Lite": ("image_config", LITE, painting({"imageSize": "2K"}), "Invalid image_size"),
    "any size on an old model": ("image_config", OLD, painting({"imageSize": "1K"}), "this model has none"),
    "a harm there is not": (
        "safety_setting",
        FLASH,
        asking(safetySettings=[{"category": "HARM_CATEGORY_BOREDOM", "threshold": "OFF"}]),
        "safety_settings",
    ),
    "fifteen references": ("too_many_pictures", BANANA, painting(None, user("mix", *[inline()] * 15)), "at most 14"),
    "a GIF": (
        "mime_type",
        FLASH,
        asking(user(inline(picture("GIF"), "image/gif"))),
        "Unsupported MIME type: image/gif",
    ),
    "a JPEG called PNG": ("mime_type", FLASH, asking(user(inline(picture("JPEG")))), "Provided image is not valid"),
    "a picture that breaks off": (
        "unreadable_picture",
        FLASH,
        asking(user(inline(base64.b64encode(base64.b64decode(picture("PNG", (90, 90)))[:-60]).decode()))),
        "Unable to process input image.",
    ),
    "no picture at all": (
        "unreadable_picture",
        FLASH,
        asking(user("x"), model(call()), user(result(parts=[inline("eHh4")]))),
        "Unable to process input image.",
    ),
    "no base64": ("base64", FLASH, asking(user(inline("%%%"))), "Base64 decoding failed"),
    "no base64 in a document": ("base64", FLASH, asking(user(inline("%%%", "application/pdf"))), "Base64"),
}


@pytest.mark.parametrize("name", TAKEN)
def test_a_proper_request_is_taken(server: GeminiServer, raw: Raw, name: str) -> None:
    model_name, body = TAKEN[name]
    response = raw.post(body, model_name)
    assert response.status_code == 200, response.text
    assert server.violations == []


@pytest.mark.parametrize("name", REFUSED)
def test_a_broken_rule_is_a_400_and_on_record(server: GeminiServer, raw: Raw, name: str) -> None:
    rule, model_name, body, words = REFUSED[name]
    response = raw.post(body, model_name)
    error = response.json()["error"]
    assert (response.status_code, error["code"], error["status"]) == (400, 400, "INVALID_ARGUMENT")
    assert words in error["message"]
    (violation,) = server.violations
    assert (violation.rule, violation.message, violation.request_number) == (rule, error["message"], 1)


def test_search_and_functions_with_the_flag_are_answered_but_on_record(server: GeminiServer, raw: Raw) -> None:
    tools = [SEARCH, {"functionDeclarations": [DRAW]}]
    response = raw.post(asking(tools=tools, toolConfig={"includeServerSideToolInvocations": True}))
    assert response.status_code == 200
    assert [violation.rule for violation in server.violations] == ["mixed_tools"]


def test_a_refused_request_uses_up_no_answer(server: GeminiServer, raw: Raw) -> None:
    server.on_text(Text("kept"))
    raw.post(asking(user("")))
    assert server.remaining == 1
    assert raw.parts(asking())[0]["text"] == "kept"


def test_a_refusal_on_the_stream_is_plain_json_of_type_event_stream(raw: Raw) -> None:
    response = raw.post(asking(user("")), method="streamGenerateContent")
    assert response.status_code == 400
    assert response.headers["content-type"] == "text/event-stream"
    assert response.json()["error"]["code"] == 400

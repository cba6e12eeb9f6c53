"""Every rule of the server fires, with the API's own words where they are known, and is put on record."""

from __future__ import annotations

import base64
from io import BytesIO
from typing import Any

from PIL import Image

from tests.support.cases import each_case
from tests.support.tables import filled, table
from tests.wire_server import GeminiServer, Text
from tests.wire_server.conftest import BANANA, FLASH, HI, PRO, Raw

Json = dict[str, Any]
RULES = table("wire_rules")
MODELS = {
    "flash": FLASH,
    "banana": BANANA,
    "lite": "gemini-3.1-flash-lite-image",
    "pro": PRO,
    "old": "gemini-2.5-flash-image",
}


def picture(kind: str = "PNG", size: tuple[int, int] = (8, 8)) -> str:
    buffer = BytesIO()
    Image.new("RGB", size, "red").save(buffer, kind)
    return base64.b64encode(buffer.getvalue()).decode()


def call(name: str = "draw", **fields: Any) -> Json:
    signature = "skip_thought_signature_validator"
    return {"functionCall": {"name": name, "args": {}, **fields}, "thoughtSignature": signature}


def result(name: str = "draw") -> Json:
    return {"functionResponse": {"name": name, "response": {"ok": True}}}


PNG = {"inlineData": {"mimeType": "image/png", "data": picture()}}
WORDS: Json = {
    "$hi": HI["contents"][0],
    "$x": {"role": "user", "parts": [{"text": "x"}]},
    "$png": PNG,
    "$fourteen": [{"text": "mix"}, *[PNG] * 14],
    "$fifteen": [{"text": "mix"}, *[PNG] * 15],
    "$png data": picture(),
    "$url-safe data": picture().replace("+", "-").replace("/", "_").rstrip("="),
    "$gif data": picture("GIF"),
    "$jpeg data": picture("JPEG"),
    "$half a png": base64.b64encode(base64.b64decode(picture("PNG", (90, 90)))[:-60]).decode(),
    "$call": call(),
    "$call 1": call(id="1"),
    "$look": call("look"),
    "$result": result(),
    "$looked": result("look"),
    "$draw": {"name": "draw", "description": "Draws."},
    "$both": ["TEXT", "IMAGE"],
    "$long name": "d" * 65,
}


def asking(body: Json) -> Json:
    asked: Json = HI | filled(body, WORDS)
    return asked


@each_case(("name", "model", "body"), RULES["taken"])
def test_a_proper_request_is_taken(server: GeminiServer, raw: Raw, name: str, model: str, body: Json) -> None:
    response = raw.post(asking(body), MODELS[model])
    assert response.status_code == 200, response.text
    assert server.violations == []


@each_case(("name", "rule", "model", "body", "words"), RULES["refused"])
def test_a_broken_rule_is_a_400_and_on_record(
    server: GeminiServer, raw: Raw, name: str, rule: str, model: str, body: Json, words: str
) -> None:
    server.clear()
    response = raw.post(asking(body), MODELS[model])
    error = response.json()["error"]
    assert (response.status_code, error["code"], error["status"]) == (400, 400, "INVALID_ARGUMENT")
    assert words in error["message"]
    (violation,), (request,) = server.violations, server.requests
    assert (violation.rule, violation.message, violation.request_number) == (rule, error["message"], request.number)


@each_case(("path", "content", "status", "rule", "words"), RULES["refused_at_the_door"])
def test_paths_keys_and_bodies_are_held_to(
    server: GeminiServer, raw: Raw, path: str, content: str, status: int, rule: str, words: str
) -> None:
    server.clear()
    url = server.url + path.replace("FLASH", f"/v1beta/models/{FLASH}")
    headers = {"content-type": "text/plain" if content == "hi" else "application/json"}
    response = raw.http.post(url, content=content, headers=headers) if content else raw.http.post(url, json=HI)
    assert response.status_code == status
    assert words in response.json()["error"]["message"]
    assert rules(server) == [rule]


def rules(server: GeminiServer) -> list[str]:
    return [violation.rule for violation in server.violations]


def test_a_missing_key_is_a_400_of_its_own_reason(server: GeminiServer, raw: Raw) -> None:
    response = raw.post(HI, headers={"x-goog-api-key": ""})
    error = response.json()["error"]
    assert (response.status_code, error["details"][0]["reason"]) == (400, "API_KEY_INVALID")
    assert error["message"] == "API key not valid. Please pass a valid API key."
    assert rules(server) == ["api_key"]


def test_a_page_of_models_that_cannot_be_asked_for_is_refused(server: GeminiServer, raw: Raw) -> None:
    beyond = base64.b64encode(b"models:999").decode()
    for path in ("?pageToken=nonsense", f"?pageToken={beyond}", "?pageSize=many", "/gemini:nothing", "/nobody"):
        assert raw.http.get(f"{server.url}/v1beta/models{path}").status_code in (400, 404)
    assert rules(server) == ["page_token", "page_token", "page_size", "path", "unknown_model"]


def test_a_body_over_the_limit_is_refused(raw: Raw) -> None:
    with GeminiServer(max_body_bytes=1_000_000) as small:
        body = {"contents": [{"role": "user", "parts": [{"text": "x" * 3_000_000}]}]}
        error = raw.post(body, url=small.url).json()["error"]
        assert error["message"] == "Request payload size exceeds the limit: 1000000 bytes."
        assert rules(small) == ["body_too_big"]
        assert raw.post(HI, url=small.url).status_code == 200


@each_case(("method", "model", "body", "rule"), RULES["refused_of_other_methods"])
def test_embedding_and_counting_have_rules_as_well(
    server: GeminiServer, raw: Raw, method: str, model: str, body: Json, rule: str
) -> None:
    server.clear()
    assert raw.post(filled(body, WORDS), model, method).status_code == (400 if rule else 200)
    assert rules(server) == [rule] * bool(rule)


def test_search_and_functions_with_the_flag_are_answered_but_on_record(server: GeminiServer, raw: Raw) -> None:
    tools = [{"googleSearch": {}}, {"functionDeclarations": [WORDS["$draw"]]}]
    response = raw.post(HI | {"tools": tools, "toolConfig": {"includeServerSideToolInvocations": True}})
    assert response.status_code == 200
    assert rules(server) == ["mixed_tools"]


def test_a_refused_request_is_kept_uses_up_no_answer_and_is_plain_json_on_the_stream(
    server: GeminiServer, raw: Raw
) -> None:
    server.on_text(Text("kept"))
    response = raw.post({"contents": [], "nonsense": 1}, method="streamGenerateContent")
    assert (response.status_code, response.json()["error"]["code"]) == (400, 400)
    assert response.headers["content-type"] == "text/event-stream"
    assert [request.body for request in server.requests] == [{"contents": [], "nonsense": 1}]
    assert server.remaining == 1
    assert raw.parts(HI)[0]["text"] == "kept"

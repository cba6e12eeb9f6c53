"""The server is as strict as it says: each rule refuses what breaks it, and takes what does not."""

from __future__ import annotations

import base64
import contextlib
import io
import json
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
from PIL import Image

from tests.openai_server import HttpError, OpenAIServer
from tests.support.cases import each_case
from tests.support.tables import filled, table

KEY = "a-key"


def png() -> bytes:
    out = io.BytesIO()
    Image.new("RGB", (4, 4), "red").save(out, "PNG")
    return out.getvalue()


DATA = base64.b64encode(png()).decode()
PICTURE = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{DATA}"}}
MISNAMED = {"type": "image_url", "image_url": {"url": f"data:image/jpeg;base64,{DATA}"}}
ELSEWHERE = {"type": "image_url", "image_url": {"url": "http://127.0.0.1/one.png"}}
CALL = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
TOOL = {"type": "function", "function": {"name": "look", "description": "", "parameters": {"type": "object"}}}
HELLO = {"role": "user", "content": "Hello"}
CALLING = {"role": "assistant", "content": "", "tool_calls": [CALL]}
RESULT = {"role": "tool", "tool_call_id": "c1", "content": "{}"}
GOOD: dict[str, Any] = {
    "model": "talker",
    "messages": [HELLO],
    "stream": True,
    "stream_options": {"include_usage": True},
}
RULES = table("openai_rules")
WORDS = {
    **{"$hello": HELLO, "$calling": CALLING, "$result": RESULT, "$call": CALL, "$tool": TOOL, "$long id": "x" * 41},
    **{"$picture": PICTURE, "$misnamed": MISNAMED, "$elsewhere": ELSEWHERE},
}


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    with OpenAIServer(key=KEY) as running:
        yield running


@pytest.fixture
def http(server: OpenAIServer) -> Iterator[httpx2.Client]:
    with httpx2.Client(base_url=server.url, headers={"authorization": f"Bearer {KEY}"}, trust_env=False) as client:
        yield client


@each_case("change", RULES["taken"])
def test_what_every_server_takes_is_taken(server: OpenAIServer, http: httpx2.Client, change: dict[str, Any]) -> None:
    answer = http.post("/chat/completions", json=GOOD | filled(change, WORDS))
    assert answer.status_code == 200
    assert answer.text.endswith("data: [DONE]\n\n")
    assert server.violations == []


@each_case(("change", "rule"), RULES["refused"])
def test_what_some_server_refuses_is_refused(
    server: OpenAIServer, http: httpx2.Client, change: dict[str, Any], rule: str
) -> None:
    server.violations.clear()
    answer = http.post("/chat/completions", json=GOOD | filled(change, WORDS))
    assert answer.status_code in (400, 404)
    assert answer.json()["error"]["message"]
    assert [violation.rule for violation in server.violations] == [rule]


PAINT = {"model": "painter", "prompt": "a fox", "n": 1, "size": "1024x1024", "response_format": "b64_json"}


def test_a_picture_comes_in_the_size_asked_for(server: OpenAIServer, http: httpx2.Client) -> None:
    body = http.post("/images/generations", json=PAINT | {"size": "1536x1024"}).json()
    with Image.open(io.BytesIO(base64.b64decode(body["data"][0]["b64_json"]))) as picture:
        assert picture.size == (1536, 1024)
    assert server.violations == []


@each_case(("change", "rule"), RULES["refused_pictures"])
def test_a_generation_that_some_server_refuses_is_refused(
    server: OpenAIServer, http: httpx2.Client, change: dict[str, Any], rule: str
) -> None:
    server.violations.clear()
    assert http.post("/images/generations", json=PAINT | change).status_code in (400, 404)
    assert [violation.rule for violation in server.violations] == [rule]


@each_case(
    ("field", "file", "change", "rule"),
    [
        ("image[]", ("a.png", png(), "image/png"), {}, None),
        ("image", ("a.png", png(), "image/png"), {}, "image"),
        ("image[]", ("a.jpg", png(), "image/png"), {}, "image"),
        ("image[]", ("a.jpg", png(), "image/jpeg"), {}, "image"),
        ("image[]", ("a.png", b"no picture", "image/png"), {}, "image"),
        ("image[]", ("a.png", png(), "image/png"), {"model": "sign-painter"}, "edits"),
        ("image[]", ("a.png", png(), "image/png"), {"prompt": ""}, "prompt"),
        ("mask", ("a.png", png(), "image/png"), {}, "image"),
    ],
)
def test_an_edit_is_a_form_with_files(
    server: OpenAIServer,
    http: httpx2.Client,
    field: str,
    file: tuple[str, bytes, str],
    change: dict[str, str],
    rule: str | None,
) -> None:
    server.violations.clear()
    fields = {"model": "painter", "prompt": "darker", **change}
    answer = http.post("/images/edits", data=fields, files=[(field, file)])
    assert answer.status_code == (200 if rule is None else 400)
    assert [violation.rule for violation in server.violations] == ([] if rule is None else [rule])


@each_case(
    ("body", "content_type", "rule"),
    [
        (b"", "multipart/form-data; boundary=x", "form"),
        (b"--x\r\nno head--x--", "multipart/form-data; boundary=x", "form"),
        (b"--x\r\n\r\nno name\r\n--x--\r\n", "multipart/form-data; boundary=x", "form"),
        (b"{}", "application/json", "content_type"),
    ],
)
def test_what_is_no_form_is_refused(
    server: OpenAIServer, http: httpx2.Client, body: bytes, content_type: str, rule: str
) -> None:
    server.violations.clear()
    http.post("/images/edits", content=body, headers={"content-type": content_type})
    assert [violation.rule for violation in server.violations] == [rule]


@each_case(
    ("path", "headers", "rule"),
    [
        ("/chat/completions", {"authorization": "Bearer another"}, "key"),
        ("/chat/completions", {"openai-organization": "org"}, "header"),
        ("/completions", {}, "path"),
    ],
)
def test_keys_headers_and_paths_are_held_to(
    server: OpenAIServer, http: httpx2.Client, path: str, headers: dict[str, str], rule: str
) -> None:
    server.violations.clear()
    http.post(path, json=GOOD, headers=headers)
    assert [violation.rule for violation in server.violations] == [rule]


def test_a_server_without_a_key_refuses_to_be_given_one() -> None:
    with OpenAIServer() as server, httpx2.Client(trust_env=False) as http:
        given = {"authorization": f"Bearer {KEY}"}
        assert http.post(f"{server.url}/chat/completions", json=GOOD, headers=given).status_code == 401
        assert http.post(f"{server.url}/chat/completions", json=GOOD).status_code == 200


def test_a_scripted_failure_breaks_no_rule(server: OpenAIServer, http: httpx2.Client) -> None:
    server.on_chat(HttpError(503, "busy"))
    assert http.post("/chat/completions", content=json.dumps(GOOD)).status_code == 415
    assert http.post("/chat/completions", json=GOOD).json()["error"]["message"] == "busy"
    assert [violation.rule for violation in server.violations] == ["content_type"]


def test_a_fault_of_the_tests_own_brain_is_raised_on_leaving() -> None:
    def broken(_: object) -> None:
        raise LookupError("the test's own")

    server = OpenAIServer()
    server.on_chat(broken)
    with pytest.raises(LookupError):
        _ask_once(server)


def _ask_once(server: OpenAIServer) -> None:
    with server, httpx2.Client(trust_env=False) as http, contextlib.suppress(httpx2.HTTPError):
        http.post(f"{server.url}/chat/completions", json=GOOD)

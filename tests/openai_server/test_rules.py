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


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    with OpenAIServer(key=KEY) as running:
        yield running


@pytest.fixture
def http(server: OpenAIServer) -> Iterator[httpx2.Client]:
    with httpx2.Client(base_url=server.url, headers={"authorization": f"Bearer {KEY}"}, trust_env=False) as client:
        yield client


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"messages": [{"role": "system", "content": "Be kind."}, HELLO]},
        {"messages": [HELLO, {"role": "assistant", "content": "Hi"}, HELLO]},
        {"messages": [HELLO, CALLING, RESULT], "tools": [TOOL]},
        {"messages": [HELLO, CALLING, RESULT, {"role": "assistant", "content": "Hi"}, HELLO]},
        {"model": "seer", "messages": [{"role": "user", "content": [{"type": "text", "text": "?"}, PICTURE]}]},
        {"response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": {"type": "object"}}}},
        {
            "model": "deepseek-flash",
            "messages": [{"role": "user", "content": "In JSON"}, {**CALLING, "reasoning_content": ""}, RESULT],
            "response_format": {"type": "json_object"},
            "reasoning_effort": "max",
        },
    ],
)
def test_what_every_server_takes_is_taken(server: OpenAIServer, http: httpx2.Client, change: dict[str, Any]) -> None:
    answer = http.post("/chat/completions", json=GOOD | change)
    assert answer.status_code == 200
    assert answer.text.endswith("data: [DONE]\n\n")
    assert server.violations == []


def spoken(*messages: dict[str, Any]) -> dict[str, Any]:
    return {"messages": list(messages)}


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"temperature": 1}, "unknown_field"),
        ({"stream": False}, "stream"),
        ({"stream_options": {}}, "stream"),
        ({"model": "nobody"}, "model"),
        ({"model": "painter"}, "model"),
        (spoken(), "messages"),
        (spoken({"role": "model", "content": "x"}), "role"),
        (spoken({**HELLO, "name": "x"}), "unknown_field"),
        (spoken({"role": "user", "content": ""}), "content"),
        (spoken({"role": "user", "content": None}), "content"),
        (spoken({"role": "user", "content": [{"type": "text", "text": "x"}]}), "content"),
        (spoken({"role": "user", "content": [PICTURE]}), "vision"),
        ({"model": "seer"} | spoken({"role": "user", "content": [PICTURE, {"type": "text", "text": ""}]}), "content"),
        ({"model": "seer"} | spoken({"role": "user", "content": [ELSEWHERE]}), "picture"),
        ({"model": "seer"} | spoken({"role": "user", "content": [MISNAMED]}), "picture"),
        (spoken(HELLO, {"role": "system", "content": "x"}), "order"),
        (spoken(HELLO, HELLO), "order"),
        (spoken({"role": "assistant", "content": "x"}, HELLO), "order"),
        (spoken(HELLO, {"role": "assistant", "content": "x"}), "order"),
        (spoken(HELLO, CALLING, RESULT, HELLO), "order"),
        (spoken(CALLING, RESULT), "order"),
        (spoken(HELLO, CALLING), "order"),
        (spoken(HELLO, CALLING, {"role": "assistant", "content": "x"}, HELLO), "tool_call_id"),
        (spoken(HELLO, CALLING, RESULT, RESULT), "tool_call_id"),
        (spoken(HELLO, CALLING, {**RESULT, "tool_call_id": "c2"}), "tool_call_id"),
        (spoken(HELLO, {**CALLING, "tool_calls": [CALL, CALL]}, RESULT), "tool_call_id"),
        (spoken(HELLO, {**CALLING, "tool_calls": [{**CALL, "id": "x" * 41}]}, RESULT), "tool_call_id"),
        (spoken(HELLO, {**CALLING, "tool_calls": []}, HELLO), "content"),
        (spoken(HELLO, {**CALLING, "tool_calls": [{**CALL, "type": "x"}]}, RESULT), "tool_calls"),
        (
            spoken(
                HELLO,
                {**CALLING, "tool_calls": [{**CALL, "function": {"name": "look", "arguments": "{"}}]},
                RESULT,
            ),
            "tool_calls",
        ),
        (spoken(HELLO, {**CALLING, "reasoning_content": "x"}, RESULT), "thoughts"),
        ({"model": "deepseek-flash"} | spoken(HELLO, CALLING, RESULT), "thoughts"),
        ({"model": "simple"} | spoken(HELLO, CALLING, RESULT), "tools"),
        ({"model": "simple", "tools": [TOOL]}, "tools"),
        ({"tools": []}, "tools"),
        ({"tools": [TOOL, TOOL]}, "tools"),
        ({"tools": [{"type": "web_search"}]}, "tools"),
        ({"response_format": {"type": "json_object"}}, "response_format"),
        ({"response_format": {"type": "text"}}, "response_format"),
        ({"model": "deepseek-flash", "response_format": {"type": "json_object"}}, "response_format"),
        ({"reasoning_effort": "extreme"}, "reasoning_effort"),
    ],
)
def test_what_some_server_refuses_is_refused(
    server: OpenAIServer, http: httpx2.Client, change: dict[str, Any], rule: str
) -> None:
    answer = http.post("/chat/completions", json=GOOD | change)
    assert answer.status_code in (400, 404)
    assert answer.json()["error"]["message"]
    assert [violation.rule for violation in server.violations] == [rule]


PAINT = {"model": "painter", "prompt": "a fox", "n": 1, "size": "1024x1024", "response_format": "b64_json"}


def test_a_picture_comes_in_the_size_asked_for(server: OpenAIServer, http: httpx2.Client) -> None:
    body = http.post("/images/generations", json=PAINT | {"size": "1536x1024"}).json()
    with Image.open(io.BytesIO(base64.b64decode(body["data"][0]["b64_json"]))) as picture:
        assert picture.size == (1536, 1024)
    assert server.violations == []


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"prompt": " "}, "prompt"),
        ({"prompt": 1}, "type"),
        ({"n": 2}, "n"),
        ({"n": "1"}, "n"),
        ({"size": "1000x1000"}, "size"),
        ({"seed": "1"}, "unknown_field"),
        ({"response_format": "png"}, "response_format"),
        ({"model": "gpt-image-2"}, "unknown_field"),
        ({"model": "talker"}, "model"),
    ],
)
def test_a_generation_that_some_server_refuses_is_refused(
    server: OpenAIServer, http: httpx2.Client, change: dict[str, Any], rule: str
) -> None:
    assert http.post("/images/generations", json=PAINT | change).status_code in (400, 404)
    assert [violation.rule for violation in server.violations] == [rule]


@pytest.mark.parametrize(
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
    fields = {"model": "painter", "prompt": "darker", **change}
    answer = http.post("/images/edits", data=fields, files=[(field, file)])
    assert answer.status_code == (200 if rule is None else 400)
    assert [violation.rule for violation in server.violations] == ([] if rule is None else [rule])


@pytest.mark.parametrize(
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
    http.post("/images/edits", content=body, headers={"content-type": content_type})
    assert [violation.rule for violation in server.violations] == [rule]


@pytest.mark.parametrize(
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

"""The server is as strict as it says: each rule refuses what breaks it, and takes what does not."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
from PIL import Image

from tests.openai_server import HttpError, OpenAIServer
from tests.support.cases import each_case
from tests.support.prompts import png
from tests.support.tables import filled, table

KEY = "a-key"
PNG = png()
DATA = base64.b64encode(PNG).decode()
CALL = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
HELLO = {"role": "user", "content": "Hello"}
WORDS = {
    "$hello": HELLO,
    "$calling": {"role": "assistant", "content": "", "tool_calls": [CALL]},
    "$result": {"role": "tool", "tool_call_id": "c1", "content": "{}"},
    "$call": CALL,
    "$tool": {"type": "function", "function": {"name": "look", "description": "", "parameters": {"type": "object"}}},
    "$long id": "x" * 41,
    "$picture": {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{DATA}"}},
    "$misnamed": {"type": "image_url", "image_url": {"url": f"data:image/jpeg;base64,{DATA}"}},
    "$elsewhere": {"type": "image_url", "image_url": {"url": "http://127.0.0.1/one.png"}},
}
USAGE = {"include_usage": True}
GOOD: dict[str, Any] = {"model": "talker", "messages": [HELLO], "stream": True, "stream_options": USAGE}
PAINT = {"model": "painter", "prompt": "a fox", "n": 1, "size": "1024x1024", "response_format": "b64_json"}
CHAT, GENERATE, EDIT = "/chat/completions", "/images/generations", "/images/edits"
RULES = table("openai_rules")
FORM = {"content-type": "multipart/form-data; boundary=x"}


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    with OpenAIServer(key=KEY) as running:
        yield running


@pytest.fixture
def http(server: OpenAIServer) -> Iterator[httpx2.Client]:
    with httpx2.Client(base_url=server.url, headers={"authorization": f"Bearer {KEY}"}, trust_env=False) as client:
        yield client


def broken(server: OpenAIServer) -> list[str]:
    """Return the rules broken since the last time."""
    rules = [violation.rule for violation in server.violations]
    server.violations.clear()
    return rules


@each_case("change", RULES["taken"])
def test_what_every_server_takes_is_taken(server: OpenAIServer, http: httpx2.Client, change: dict[str, Any]) -> None:
    answer = http.post(CHAT, json=GOOD | filled(change, WORDS))
    assert answer.status_code == 200
    assert answer.text.endswith("data: [DONE]\n\n")
    assert broken(server) == []


@each_case(
    ("path", "good", "change", "rule"),
    [
        *((CHAT, GOOD, *row) for row in RULES["refused"]),
        *((GENERATE, PAINT, *row) for row in RULES["refused_pictures"]),
    ],
)
def test_what_some_server_refuses_is_refused(
    server: OpenAIServer, http: httpx2.Client, path: str, good: dict[str, Any], change: dict[str, Any], rule: str
) -> None:
    answer = http.post(path, json=good | filled(change, WORDS))
    assert answer.status_code in (400, 404)
    assert answer.json()["error"]["message"]
    assert broken(server) == [rule]


def test_a_picture_comes_in_the_size_asked_for_and_a_scripted_failure_breaks_no_rule(
    server: OpenAIServer, http: httpx2.Client
) -> None:
    body = http.post(GENERATE, json=PAINT | {"size": "1536x1024"}).json()
    with Image.open(io.BytesIO(base64.b64decode(body["data"][0]["b64_json"]))) as picture:
        assert picture.size == (1536, 1024)
    server.on_chat(HttpError(503, "busy"))
    assert http.post(CHAT, json=GOOD).json()["error"]["message"] == "busy"
    assert broken(server) == []


@each_case(
    ("field", "file", "change", "rules"),
    [
        ("image[]", ("a.png", PNG, "image/png"), {}, []),
        ("image", ("a.png", PNG, "image/png"), {}, ["image"]),
        ("image[]", ("a.jpg", PNG, "image/png"), {}, ["image"]),
        ("image[]", ("a.jpg", PNG, "image/jpeg"), {}, ["image"]),
        ("image[]", ("a.png", b"no picture", "image/png"), {}, ["image"]),
        ("image[]", ("a.png", PNG, "image/png"), {"model": "sign-painter"}, ["edits"]),
        ("image[]", ("a.png", PNG, "image/png"), {"prompt": ""}, ["prompt"]),
        ("mask", ("a.png", PNG, "image/png"), {}, ["image"]),
    ],
)
def test_an_edit_is_a_form_with_files(
    server: OpenAIServer, http: httpx2.Client, field: str, file: Any, change: dict[str, str], rules: list[str]
) -> None:
    answer = http.post(EDIT, data={"model": "painter", "prompt": "darker", **change}, files=[(field, file)])
    assert answer.status_code == (400 if rules else 200)
    assert broken(server) == rules
    assert [one.data == file[1] for one in server.pictures[-1].files] == [True]


PART = b'--x\r\nContent-Disposition: form-data; name="prompt"\r\n\r\na fox\r\n'
MODEL = b'--x\r\nContent-Disposition: form-data; name="model"\r\n\r\npainter\r\n'


@each_case(
    ("path", "sent", "headers", "rule"),
    [
        (EDIT, b"", FORM, "form"),
        (EDIT, PART, FORM, "form"),
        (EDIT, b"--x\r\nContent-Type: text/plain\r\n\r\nno name\r\n--x--\r\n", FORM, "form"),
        (EDIT, PART * 2 + b"--x--\r\n", FORM, "form"),
        (EDIT, PART + b"--x--\r\n", FORM, "model"),
        (EDIT, MODEL + PART + b"--x--\r\n", FORM, "image"),
        (EDIT, b"{}", {"content-type": "application/json"}, "content_type"),
        (CHAT, b"{}", {}, "content_type"),
        (CHAT, b"{", {"content-type": "application/json"}, "json"),
        (CHAT, [], {}, "json"),
        (CHAT, GOOD, {"authorization": "Bearer another"}, "key"),
        (CHAT, GOOD, {"openai-organization": "org"}, "header"),
        ("/completions", GOOD, {}, "path"),
    ],
)
def test_forms_keys_headers_and_paths_are_held_to(
    server: OpenAIServer, http: httpx2.Client, path: str, sent: Any, headers: dict[str, str], rule: str
) -> None:
    content: dict[str, Any] = {"content" if isinstance(sent, bytes) else "json": sent}
    http.post(path, headers=headers, **content)
    assert broken(server) == [rule]


def test_a_server_without_a_key_refuses_to_be_given_one() -> None:
    with OpenAIServer() as server, httpx2.Client(trust_env=False) as http:
        given = {"authorization": f"Bearer {KEY}"}
        assert http.post(f"{server.url}{CHAT}", json=GOOD, headers=given).status_code == 401
        assert http.post(f"{server.url}{CHAT}", json=GOOD).status_code == 200

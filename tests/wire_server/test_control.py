"""The server in its own process, scripted over HTTP."""

from __future__ import annotations

import base64
import signal
import sys
import urllib.error
from collections.abc import Iterator
from typing import Any

import pytest
from google import genai
from google.genai import types

from tests.support.cases import each_case
from tests.support.lines import read_line, running
from tests.support.waiting import PATIENCE_S
from tests.wire_server import Answer, Call, Calls, GeminiProcess, Grounding, Hold, PictureAnswer, Text, WireRequest
from tests.wire_server.control import answer_from_json
from tests.wire_server.raw import BANANA, FLASH, HI, Raw
from tests.wire_server.server import ROOT


def shouting(request: WireRequest) -> Answer:
    """Say the prompt back, louder."""
    return Text(request.prompt.upper())


@pytest.fixture(scope="module")
def process() -> Iterator[GeminiProcess]:
    with GeminiProcess() as running:
        yield running


@pytest.fixture
def sdk(process: GeminiProcess) -> Iterator[genai.Client]:
    process.control(clear=True, always_text={"kind": "Text", "text": "Always."})
    options = types.HttpOptions(base_url=process.url, api_version="v1beta", timeout=20_000)
    with genai.Client(api_key="a-key", http_options=options) as client:
        yield client


def test_a_brain_can_be_named_on_the_command_line(raw: Raw) -> None:
    with GeminiProcess("--text-brain", f"{__name__}:shouting") as running:
        assert raw.parts(HI, url=running.url)[0]["text"] == "HI"


def test_answers_are_queued_over_http(process: GeminiProcess, sdk: genai.Client) -> None:
    state = process.control(on_text=[{"kind": "Text", "text": "Hi there.", "chunks": 4}])
    assert state["remaining"] == 1
    texts = [chunk.text or "" for chunk in sdk.models.generate_content_stream(model=FLASH, contents="hi")]
    assert (len(texts), "".join(texts)) == (5, "Hi there.")
    assert sdk.models.generate_content(model=FLASH, contents="hi").text == "Always."
    assert process.read("state")["remaining"] == 0


def test_what_was_seen_is_read_over_http(process: GeminiProcess, sdk: genai.Client, raw: Raw) -> None:
    paint = types.GenerateContentConfig(response_modalities=["IMAGE"])
    (part,) = sdk.models.generate_content(model=BANANA, contents="a fox", config=paint).parts or []
    assert part.inline_data
    assert part.thought_signature
    picture = types.Part.from_bytes(data=part.inline_data.data or b"", mime_type="image/jpeg")
    reference = types.Content(role="user", parts=[picture, types.Part(text="bluer")])
    sdk.models.generate_content(model=BANANA, contents=reference, config=paint)
    first, second = process.read("requests")
    assert (first["model"], first["method"], first["kind"]) == (BANANA, "generateContent", "image")
    assert "characters" in second["body"]["contents"][0]["parts"][0]["inlineData"]["data"]
    whole = process.read("requests?full=1")[1]["body"]["contents"][0]["parts"][0]["inlineData"]["data"]
    assert base64.urlsafe_b64decode(whole) == part.inline_data.data
    assert process.read("state")["bytes"] == first["size_bytes"] + second["size_bytes"]
    assert process.read("violations") == []
    raw.post(HI, url=process.url, headers={"x-goog-api-key": ""})
    assert [violation["rule"] for violation in process.read("violations")] == ["api_key"]


def test_a_key_is_rejected_over_http(process: GeminiProcess, raw: Raw) -> None:
    process.control(reject=["spent-key"])
    response = raw.post(HI, url=process.url, headers={"x-goog-api-key": "spent-key"})
    assert (response.status_code, response.json()["error"]["details"][0]["reason"]) == (400, "API_KEY_INVALID")


@each_case("number", [signal.SIGINT, signal.SIGTERM])
def test_the_process_ends_when_told_even_twice(number: signal.Signals) -> None:
    with running([sys.executable, "-m", "tests.wire_server"], cwd=ROOT) as (child, errors):
        assert read_line(child, errors).startswith("http://127.0.0.1:")
        child.send_signal(number)
        child.send_signal(number)
        assert child.wait(PATIENCE_S) == 0
        errors.seek(0)
        assert errors.read() == ""


@each_case(
    "orders",
    [
        *({"on_text": [answer]} for answer in ({"kind": "Song"}, {"kind": "Text", "words": "hi"}, {"text": "hi"})),
        {"sing": True},
    ],
)
def test_orders_that_make_no_sense_are_a_400(process: GeminiProcess, orders: dict[str, Any]) -> None:
    with pytest.raises(urllib.error.HTTPError) as caught:
        process.control(**orders)
    with caught.value as response:
        assert response.code == 400


@each_case(
    ("written", "answer"),
    [
        ({"kind": "Text", "text": "hi", "chunks": 2}, Text("hi", chunks=2)),
        (
            {"kind": "Calls", "calls": [{"name": "draw", "args": {"answer": 1}}]},
            Calls([Call("draw", {"answer": 1})]),
        ),
        (
            {"kind": "PictureAnswer", "data": {"base64": "eA=="}, "grounding": {"queries": ["fox"]}},
            PictureAnswer(data=b"x", grounding=Grounding(queries=["fox"])),
        ),
        (
            {"kind": "Hold", "answer": {"kind": "Text", "text": "hi"}, "after_chunks": 1},
            Hold(Text("hi"), after_chunks=1),
        ),
    ],
)
def test_every_answer_can_be_written_in_json(written: dict[str, Any], answer: Answer) -> None:
    assert answer_from_json(written) == answer

"""The server as a test uses it: HTTP itself, answers as the real SDK reads them, holding, keys, and its own process."""

from __future__ import annotations

import contextlib
import json
import math
import signal
import socket
import sys
import urllib.error
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.client import parse_headers
from io import BytesIO
from typing import Any

import httpx2
import pytest
from google import genai
from google.genai import errors, types
from PIL import Image

from tests.support.cases import each_case
from tests.support.lines import read_line, running
from tests.support.waiting import PATIENCE_S
from tests.wire_server import (
    Answer,
    Call,
    Calls,
    Finish,
    GeminiProcess,
    GeminiServer,
    Hold,
    PictureAnswer,
    Search,
    Text,
    TextOnly,
    WireRequest,
    key_body,
    quota_body,
)
from tests.wire_server.answers import Asked, Piece, Step
from tests.wire_server.conftest import BANANA, FLASH, HI, PRO, Raw
from tests.wire_server.server import ROOT

BODY = json.dumps(HI).encode()
HEAD = (
    f"POST /v1beta/models/{FLASH}:generateContent HTTP/1.1\r\nHost: here\r\nx-goog-api-key: k\r\n"
    "Content-Type: application/json\r\n"
).encode()
REQUEST = HEAD + b"Content-Length: %d\r\n\r\n" % len(BODY) + BODY


# HTTP itself, byte by byte.


def said(server: GeminiServer, *pieces: bytes, count: int = 1) -> list[str]:
    """Send pieces on one connection; return the texts of the responses, and "" when the server closes after them."""
    texts = []
    with socket.create_connection(("127.0.0.1", int(server.url.rpartition(":")[2])), timeout=10) as line:
        for piece in pieces:
            line.sendall(piece)
        with line.makefile("rb") as coming:
            for _ in range(count):
                assert coming.readline() in (b"HTTP/1.1 200 OK\r\n", b"")
                body = coming.read(int(parse_headers(coming).get("content-length", 0)))
                texts.append(json.loads(body)["candidates"][0]["content"]["parts"][0]["text"] if body else "")
    return texts


def test_a_connection_takes_requests_in_small_pieces_chunked_sent_ahead_and_to_be_its_last(
    server: GeminiServer,
) -> None:
    assert said(server, *(REQUEST[start : start + 7] for start in range(0, len(REQUEST), 7))) == ["Hello."]
    server.on_text(Text("first"), Text("second"))
    assert said(server, REQUEST + REQUEST, count=2) == ["first", "second"]
    chunks = (b"5\r\n" + BODY[:5] + b"\r\n", b"%x;note=1\r\n" % len(BODY[5:]) + BODY[5:] + b"\r\n", b"0\r\n\r\n")
    closing = REQUEST.replace(b"Host:", b"Connection: close\r\nHost:")
    chunked = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
    assert said(server, chunked, *chunks, closing, count=3) == ["Hello.", "Hello.", ""]
    assert [request.size_bytes for request in server.requests] == [len(BODY)] * 5


@each_case("nonsense", [b"x" * 200_000, b"hello there\r\n\r\n", HEAD + b"Content-Length: many\r\n\r\n"])
def test_what_is_no_http_ends_the_connection(server: GeminiServer, nonsense: bytes) -> None:
    with contextlib.suppress(ConnectionResetError, BrokenPipeError):
        assert said(server, nonsense) == [""]
    assert server.requests == []


# Answers, as the real SDK reads them.


def stream(sdk: genai.Client, model: str = FLASH, **config: Any) -> tuple[list[Any], list[types.Part]]:
    """Return the chunks of an answer, and their parts."""
    settings = types.GenerateContentConfig(**config)
    chunks = list(sdk.models.generate_content_stream(model=model, contents="a fox", config=settings))
    return chunks, [part for chunk in chunks for part in chunk.parts or []]


def test_a_text_comes_in_as_many_chunks_as_said_and_a_signed_empty_one_and_its_usage_grows(
    server: GeminiServer, sdk: genai.Client
) -> None:
    server.on_text(Text("0123456789" * 10, chunks=50))
    chunks, (*texts, last) = stream(sdk)
    assert [part.text for part in texts] == [f"{n:02}"[-2:] for n in (1, 23, 45, 67, 89)] * 10
    assert (last.text, bool(last.thought_signature)) == ("", True)
    assert [chunk.candidates[0].finish_reason for chunk in chunks] == [None] * 50 + [types.FinishReason.STOP]
    counts = [chunk.usage_metadata.candidates_token_count for chunk in chunks]
    assert counts == sorted(counts)
    assert counts[0] < counts[-1]
    usage = chunks[-1].usage_metadata
    spent = usage.prompt_token_count + usage.candidates_token_count + usage.thoughts_token_count
    assert usage.total_token_count == spent


def test_thoughts_calls_and_searches_come_as_they_do_from_the_api(server: GeminiServer, sdk: genai.Client) -> None:
    calls = Calls([Call("draw", {"what": "fox"}), Call("draw", {"what": "hen"}, id="c2")], text_before="On it.")
    search = Search({"facts": []}, [("zoo.de", "https://zoo.de/1")], ["fox"], "<b>fox</b>")
    server.on_text(*[Text("yes", thoughts="Let me see.")] * 2, calls, search)
    server.on_image(PictureAnswer(drafts=2))
    thinking = types.ThinkingConfig(include_thoughts=True, thinking_level="high")
    assert [stream(sdk, thinking_config=wanted)[1][0].thought for wanted in (thinking, None)] == [True, None]
    *words, first, second, _ = stream(sdk)[1]
    assert "".join(part.text or "" for part in words) == "On it."
    signed = [(part.function_call, bool(part.thought_signature)) for part in (first, second)]
    assert [(call and (call.args, call.id), is_signed) for call, is_signed in signed] == [
        (({"what": "fox"}, None), True),
        (({"what": "hen"}, "c2"), False),
    ]
    last = stream(sdk, tools=[types.Tool(google_search=types.GoogleSearch())])[0][-1]
    found = last.candidates[0].grounding_metadata
    assert (found.web_search_queries, found.search_entry_point.rendered_content) == (["fox"], "<b>fox</b>")
    assert found.grounding_chunks[0].web == types.GroundingChunkWeb(uri="https://zoo.de/1", title="zoo.de")
    assert last.usage_metadata.tool_use_prompt_token_count
    _, parts = stream(sdk, BANANA, response_modalities=["IMAGE"], thinking_config=thinking)
    pictures = [(bool(part.thought), bool(part.thought_signature)) for part in parts if part.inline_data]
    assert pictures == [(True, False), (True, False), (False, True)]


def test_events_are_framed_as_the_api_frames_them(server: GeminiServer, raw: Raw) -> None:
    response = raw.post(HI, method="streamGenerateContent")
    assert response.headers["content-type"] == "text/event-stream"
    *events, rest = response.content.split(b"\r\n\r\n")
    assert rest == b""
    assert all(event.startswith(b'data: {"candidates"') for event in events)
    # The SDK leaves the finish message out, so it is read from the wire.
    server.on_text(Finish("SAFETY", "No.", text_before="Well"))
    refused = raw.post(HI).json()["candidates"][0]
    assert (refused["finishMessage"], refused["content"]["parts"]) == ("No.", [{"text": "Well"}])


@each_case(
    ("ratio", "size", "pixels", "tokens"),
    [
        ("16:9", "1K", (1376, 768), 1120),
        ("9:16", "2K", (1536, 2752), 1680),
        ("1:1", "4K", (4096, 4096), 2520),
        (None, None, (1024, 1024), 1120),
    ],
)
def test_a_picture_has_exactly_the_pixels_asked_for(
    sdk: genai.Client, ratio: str | None, size: str | None, pixels: tuple[int, int], tokens: int
) -> None:
    frame = types.ImageConfig(aspect_ratio=ratio, image_size=size)
    config = types.GenerateContentConfig(response_modalities=["IMAGE"], image_config=frame)
    answer: Any = sdk.models.generate_content(model=BANANA, contents="a fox", config=config)
    (part,) = answer.parts
    with Image.open(BytesIO(part.inline_data.data)) as picture:
        picture.load()
        assert (picture.size, picture.format) == (pixels, "JPEG")
    assert part.thought_signature
    assert [one.token_count for one in answer.usage_metadata.candidates_tokens_details] == [tokens]


def test_a_batch_embeds_each_text_as_a_unit_vector(raw: Raw) -> None:
    name = "gemini-embedding-2"
    requests = [{"model": f"models/{name}", "content": {"parts": [{"text": text}]}} for text in ("fox", "fox", "hen")]
    answer = raw.post({"requests": requests}, name, "batchEmbedContents").json()
    fox, again, hen = (entry["values"] for entry in answer["embeddings"])
    assert (answer["usageMetadata"]["promptTokenCount"], len(fox), round(math.hypot(*fox), 6)) == (3, 3072, 1)
    assert fox == again != hen


def test_models_are_listed_in_pages_that_lead_on_and_tokens_are_counted(raw: Raw, sdk: genai.Client) -> None:
    first = raw.http.get(f"{raw.url}/v1beta/models?pageSize=5").json()
    last = raw.http.get(f"{raw.url}/v1beta/models?pageSize=1000&pageToken={first['nextPageToken']}").json()
    assert "nextPageToken" not in last
    names = [model.name for model in sdk.models.list(config={"page_size": 3})]
    assert len(names) == len(set(names)) == 5 + len(last["models"])
    model = sdk.models.get(model=FLASH)
    assert (model.input_token_limit, model.output_token_limit) == (1_048_576, 65_536)
    with pytest.raises(errors.ClientError, match="models/none is not found"):
        sdk.models.get(model="none")
    few, many = (sdk.models.count_tokens(model=FLASH, contents="fox " * n).total_tokens or 0 for n in (1, 100))
    assert 0 < few < many
    answer: Any = sdk.models.generate_content(model=FLASH, contents="hi", config={"max_output_tokens": 1})
    assert (answer.candidates[0].finish_reason, answer.text) == ("MAX_TOKENS", None)


# What a test scripts, and what it is told.


def test_the_queue_goes_before_the_brain_and_the_brain_before_the_default(server: GeminiServer, raw: Raw) -> None:
    server.on_text(lambda request: Text("from the brain"))
    server.script(TextOnly("for a painter"), Text("from the queue"))
    assert [raw.parts(HI)[0]["text"] for _ in range(2)] == ["from the queue", "from the brain"]
    assert server.remaining == 1  # each kind of model has a queue of its own
    server.on_text(lambda request: None)
    assert raw.parts(HI)[0]["text"] == "Hello."
    raw.post({"contents": []})
    server.clear()
    assert (server.requests, server.violations, server.remaining) == ([], [], 0)


class HalfAnAnswer(Answer):
    """Says one word and fails."""

    def steps(self, asked: Asked) -> Iterator[Step]:
        yield Piece(({"text": "Well"},))
        raise LookupError("lost for words")


def test_a_failing_brain_or_answer_fails_the_test(raw: Raw) -> None:
    """Before anything was said it is a 500, afterwards the answer breaks off."""

    def failing(request: WireRequest) -> Answer:
        raise LookupError("no idea")

    with pytest.raises(LookupError, match="no idea"), GeminiServer(text=failing) as server:
        assert raw.post(HI, url=server.url).status_code == 500
    with (
        pytest.raises(LookupError, match="lost for words"),
        GeminiServer(text=lambda _: HalfAnAnswer()) as server,
        contextlib.suppress(httpx2.RemoteProtocolError),
    ):
        pytest.fail(raw.post(HI, method="streamGenerateContent", url=server.url).text)


def test_a_release_lets_go_of_what_is_held_or_of_the_next_that_comes(server: GeminiServer, raw: Raw) -> None:
    server.on_text(Hold(Text("early")), Hold(Text("late")), Hold(Text("never")))
    server.release()
    assert raw.parts(HI)[0]["text"] == "early"
    with ThreadPoolExecutor(1) as pool:
        coming = pool.submit(raw.parts, HI)
        server.wait_for_held()
        server.release()
        assert coming.result(PATIENCE_S)[0]["text"] == "late"
        # The server ends with an answer under way.
        with GeminiServer() as other:
            other.on_text(Hold(Text("never")))
            lost = pool.submit(raw.post, HI, url=other.url)
            other.wait_for_held()
        assert isinstance(lost.exception(PATIENCE_S), httpx2.TransportError)
        assert other.disconnects == []


def test_a_client_that_leaves_in_the_middle_is_noticed(server: GeminiServer, raw: Raw) -> None:
    with pytest.raises(TimeoutError, match="still not so"):
        server.wait_for_disconnect(timeout_s=0.01)
    server.on_text(Hold(Text("a long story", chunks=5), after_chunks=2))
    url = f"{server.url}/v1beta/models/{FLASH}:streamGenerateContent?alt=sse"
    with raw.http.stream("POST", url, json=HI):
        server.wait_for_held()
    left = server.wait_for_disconnect()
    assert (left.model, left.method, left.chunks_sent) == (FLASH, "streamGenerateContent", 2)
    assert server.violations == []


def test_a_request_is_kept_with_its_size_and_without_its_key(server: GeminiServer, sdk: genai.Client, raw: Raw) -> None:
    config = types.GenerateContentConfig(system_instruction="Be kind.")
    sdk.models.generate_content(model=FLASH, contents="a fox", config=config)
    (request,) = server.requests
    assert (request.model, request.method, request.number) == (FLASH, "generateContent", 1)
    assert request.body["contents"] == [{"role": "user", "parts": [{"text": "a fox"}]}]
    assert (request.prompt, request.system) == ("a fox", "Be kind.")
    assert request.size_bytes == int(request.headers["content-length"])
    assert "a-key" not in repr(request)
    with GeminiServer(keeps_bodies=False) as light:
        raw.post(HI, url=light.url)
        assert [(one.body, one.size_bytes > 0) for one in light.requests] == [({}, True)]


def test_what_a_key_may_not_have_is_refused_and_breaks_no_rule(server: GeminiServer, sdk: genai.Client) -> None:
    server.withhold(PRO)
    server.deny_model(FLASH, quota_body("day", limit=0))
    listed = {model.name for model in sdk.models.list()}
    assert (f"models/{PRO}" in listed, f"models/{FLASH}" in listed) == (False, True)
    for model, words in ((PRO, f"models/{PRO} is not found"), (FLASH, "limit: 0")):
        with pytest.raises(errors.ClientError, match=words):
            sdk.models.generate_content(model=model, contents="hi")
    server.clear()
    assert sdk.models.generate_content(model=FLASH, contents="hi").text == "Hello."
    server.deny_key(key_body("SERVICE_DISABLED", "The API is disabled."))
    with pytest.raises(errors.ClientError, match="The API is disabled"):
        list(sdk.models.list())
    server.clear()
    server.reject_key("a-key")
    with pytest.raises(errors.ClientError, match="API key not valid"):
        list(sdk.models.list())
    assert server.violations == []


# The server in a process of its own, scripted over HTTP.


def shouting(request: WireRequest) -> Answer:
    """Say the prompt back, louder."""
    return Text(request.prompt.upper())


def test_a_process_is_scripted_and_read_over_http(raw: Raw) -> None:
    with GeminiProcess("--text-brain", f"{__name__}:shouting") as process:
        state = process.control(on_text=[{"kind": "Text", "text": "Hi there.", "chunks": 4}])
        assert state["remaining"] == 1
        assert [raw.parts(HI, url=process.url)[0]["text"] for _ in range(2)] == ["Hi there.", "HI"]
        held = {"kind": "Hold", "answer": {"kind": "PictureAnswer", "data": {"base64": "eA=="}}}
        process.control(on_image=[held], deny_model={FLASH: quota_body()})
        with ThreadPoolExecutor(1) as pool:
            painting = HI | {"generationConfig": {"responseModalities": ["IMAGE"]}}
            coming = pool.submit(raw.parts, painting, BANANA, url=process.url)
            process.release()
            assert coming.result(PATIENCE_S)[0]["inlineData"]["data"] == "eA=="
        long = {"contents": [{"role": "user", "parts": [{"text": "x" * 3000}]}]}
        assert raw.post(long, url=process.url).status_code == 429
        assert raw.post(long | painting, BANANA, url=process.url, headers={"x-goog-api-key": ""}).status_code == 400
        raw.parts(long | {"generationConfig": painting["generationConfig"]}, BANANA, url=process.url)
        assert [request["kind"] for request in process.read("requests")] == ["text", "text", "image", "image"]
        assert "3000 characters" in process.read("requests")[-1]["body"]["contents"][0]["parts"][0]["text"]
        assert [violation["rule"] for violation in process.read("violations")] == ["api_key"]
        for order in ({"on_text": [{"kind": "Song"}]}, {"on_text": [{"kind": "Text", "words": "hi"}]}, {"sing": True}):
            with pytest.raises(urllib.error.HTTPError, match="400") as refused:
                process.control(**order)
            refused.value.close()
        assert process.control(clear=True) == {"requests": 0, "held": 0, "remaining": 0, "faults": []}


@each_case("number", [signal.SIGINT, signal.SIGTERM])
def test_the_process_ends_when_told_even_twice(number: signal.Signals) -> None:
    with running([sys.executable, "-m", "tests.wire_server"], cwd=ROOT) as (child, errors):
        assert read_line(child, errors).startswith("http://127.0.0.1:")
        child.send_signal(number)
        child.send_signal(number)
        assert child.wait(PATIENCE_S) == 0
        errors.seek(0)
        assert errors.read() == ""


def test_a_port_in_use_is_an_error_at_once(server: GeminiServer) -> None:
    port = int(server.url.rpartition(":")[2])
    with pytest.raises(OSError, match="in use"), GeminiServer(port=port):
        pass

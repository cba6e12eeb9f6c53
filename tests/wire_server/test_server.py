"""The server as a test uses it: its script and brains, faults, holding, clients that leave, keys, and what is kept."""

from __future__ import annotations

import math
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx2
import pytest
from google import genai
from google.genai import errors, types

from tests.support.waiting import PATIENCE_S
from tests.wire_server import (
    Answer,
    Delay,
    DelayBetweenChunks,
    Finish,
    GeminiServer,
    Hold,
    Text,
    WireRequest,
    key_body,
    quota_body,
)
from tests.wire_server.raw import FLASH, HI, Raw
from tests.wire_server.steps import Asked, Piece, Step

PRO = "gemini-3-pro-image"


def test_the_queue_goes_before_the_brain_and_the_brain_before_the_default(server: GeminiServer, raw: Raw) -> None:
    server.on_text(lambda request: Text("from the brain"), Text("from the queue"))
    server.on_image(Finish("NO_IMAGE"))
    assert [raw.parts(HI)[0]["text"] for _ in range(2)] == ["from the queue", "from the brain"]
    assert server.remaining == 1  # each kind of model has a queue of its own
    server.on_text(lambda request: None)
    assert raw.parts(HI)[0]["text"] == "Hello."
    server.on_text(Delay(0.01, DelayBetweenChunks(0.01, Text("one two three", chunks=3))), Text("never asked for"))
    assert raw.parts(HI)[0]["text"] == "one two three"
    raw.post({"contents": []})
    server.clear()
    assert (server.requests, server.violations, server.remaining) == ([], [], 0)
    assert raw.parts(HI)[0]["text"] == "Hello."


class HalfAnAnswer(Answer):
    """Says one word and fails."""

    def steps(self, asked: Asked) -> Iterator[Step]:
        yield Piece(({"text": "Well"},))
        raise LookupError("lost for words")


def test_a_failing_brain_or_answer_fails_the_test(raw: Raw) -> None:
    def failing(request: WireRequest) -> Answer:
        raise LookupError("no idea")

    for method, brain, words in (
        ("generateContent", failing, "no idea"),
        ("streamGenerateContent", lambda request: HalfAnAnswer(), "lost for words"),
    ):
        with pytest.raises(LookupError, match=words), GeminiServer(text=brain) as server:
            _assert_fails(server, raw, method)


def _assert_fails(server: GeminiServer, raw: Raw, method: str) -> None:
    """Before anything was said it is a 500, afterwards the answer breaks off."""
    if method == "generateContent":
        assert raw.post(HI, method=method, url=server.url).status_code == 500
    else:
        with pytest.raises(httpx2.RemoteProtocolError):
            raw.post(HI, method=method, url=server.url)
    assert server.violations == []


def test_a_release_that_comes_before_the_request_lets_that_one_answer_pass(server: GeminiServer, raw: Raw) -> None:
    server.on_text(Hold(Text("early")), Hold(Text("late")))
    server.release()
    assert raw.parts(HI)[0]["text"] == "early"
    with ThreadPoolExecutor(1) as pool:
        coming = pool.submit(raw.parts, HI)
        server.wait_for_held()
        server.release()
        assert coming.result(10)[0]["text"] == "late"


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


def test_the_server_ends_with_an_answer_under_way(raw: Raw) -> None:
    with ThreadPoolExecutor(1) as pool:
        with GeminiServer() as server:
            server.on_text(Hold(Text("never")))
            coming = pool.submit(raw.post, HI, url=server.url)
            server.wait_for_held()
        assert isinstance(coming.exception(PATIENCE_S), httpx2.TransportError)
        assert server.disconnects == []


def test_a_port_in_use_is_an_error_at_once(server: GeminiServer) -> None:
    port = int(server.url.rpartition(":")[2])
    with pytest.raises(OSError, match="in use"), GeminiServer(port=port):
        pass


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


# What answers without a script.


def test_tokens_are_counted_and_few_are_too_few_for_an_answer(sdk: genai.Client) -> None:
    few, many = (sdk.models.count_tokens(model=FLASH, contents="fox " * n).total_tokens or 0 for n in (1, 100))
    assert 0 < few < many
    answer = sdk.models.generate_content(model=FLASH, contents="hi", config={"max_output_tokens": 1})
    assert [one.finish_reason for one in answer.candidates or []] == ["MAX_TOKENS"]
    assert answer.text is None


def test_embeddings_are_unit_vectors_that_tell_texts_apart(sdk: genai.Client, raw: Raw) -> None:
    config = types.EmbedContentConfig(output_dimensionality=256)

    def vector(text: str) -> list[float]:
        answer = sdk.models.embed_content(model="gemini-embedding-001", contents=text, config=config)
        assert answer.embeddings
        return answer.embeddings[0].values or []

    def likeness(one: list[float], other: list[float]) -> float:
        return sum(a * b for a, b in zip(one, other, strict=True))

    soft, wash, neon = map(vector, ("soft watercolour", "watercolour wash", "neon city"))
    assert [len(one) for one in (soft, wash, neon)] == [256] * 3
    assert all(math.isclose(math.hypot(*one), 1, rel_tol=1e-6) for one in (soft, wash, neon))
    assert likeness(soft, wash) > likeness(soft, neon)
    # A batch embeds each text, at the model's own length.
    name = "gemini-embedding-2"
    requests = [{"model": f"models/{name}", "content": {"parts": [{"text": text}]}} for text in ("fox", "fox", "hen")]
    answer = raw.post({"requests": requests}, name, "batchEmbedContents").json()
    fox, again, hen = (entry["values"] for entry in answer["embeddings"])
    assert (answer["usageMetadata"]["promptTokenCount"], len(fox)) == (3, 3072)
    assert fox == again != hen


def test_models_are_listed_in_pages_that_lead_on_and_described(raw: Raw, sdk: genai.Client) -> None:
    first = raw.http.get(f"{raw.url}/v1beta/models?pageSize=5").json()
    assert len(first["models"]) == 5
    last = raw.http.get(f"{raw.url}/v1beta/models?pageSize=1000&pageToken={first['nextPageToken']}").json()
    assert "nextPageToken" not in last
    names = [model.name for model in sdk.models.list(config={"page_size": 3})]
    assert len(names) == len(set(names)) == 5 + len(last["models"])
    model = sdk.models.get(model=FLASH)
    assert model.supported_actions == ["generateContent", "streamGenerateContent", "countTokens"]
    assert (model.input_token_limit, model.output_token_limit) == (1_048_576, 65_536)
    with pytest.raises(errors.ClientError, match="models/none is not found"):
        sdk.models.get(model="none")


# Keys and what they may do.


def test_a_model_that_is_withheld_is_not_found_and_one_that_is_denied_is_refused(
    server: GeminiServer, sdk: genai.Client
) -> None:
    server.withhold(PRO)
    server.deny_model(FLASH, quota_body("day", limit=0))
    listed = {model.name for model in sdk.models.list()}
    assert (f"models/{PRO}" in listed, f"models/{FLASH}" in listed) == (False, True)
    for model, code, words in ((PRO, 404, f"models/{PRO} is not found"), (FLASH, 429, "limit: 0")):
        with pytest.raises(errors.ClientError, match=words) as caught:
            sdk.models.generate_content(model=model, contents="hi")
        assert caught.value.code == code
    assert server.violations == []
    server.clear()
    assert sdk.models.generate_content(model=FLASH, contents="hi").text == "Hello."


def test_a_key_that_is_denied_is_refused_everything(server: GeminiServer, sdk: genai.Client) -> None:
    server.deny_key(key_body("SERVICE_DISABLED", "The API is disabled."))
    for ask in (lambda: list(sdk.models.list()), lambda: sdk.models.generate_content(model=FLASH, contents="hi")):
        with pytest.raises(errors.ClientError, match="The API is disabled") as caught:
            ask()
        assert caught.value.code == 403
    assert server.violations == []

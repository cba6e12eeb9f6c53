"""Paths, keys and models; counting, embedding and listing."""

from __future__ import annotations

import math
from typing import Any

import httpx2
import pytest
from google import genai
from google.genai import errors, types

from tests.wire_server import GeminiServer
from tests.wire_server.raw import BANANA, FLASH, Raw

HI: dict[str, Any] = {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}


@pytest.mark.parametrize(
    ("path", "model"),
    [
        ("/v1beta/models/gemini-9-neon:generateContent", "gemini-9-neon"),
        ("/v1/models/gemini-flash-latest:generateContent", "gemini-flash-latest"),
        (f"/v1/models/{BANANA}:generateContent", BANANA),
        ("/v1beta/models/gemini-embedding-2:generateContent", "gemini-embedding-2"),
        (f"/v1beta/models/{FLASH}:batchEmbedContents", FLASH),
        (f"/v1beta/models/{FLASH}:predict", FLASH),
    ],
)
def test_a_model_the_version_or_method_lacks_is_a_404(server: GeminiServer, raw: Raw, path: str, model: str) -> None:
    response = raw.http.post(server.url + path, json=HI)
    version, method = path.split("/")[1], path.rpartition(":")[2]
    assert response.status_code == 404
    assert response.json()["error"]["message"] == (
        f"models/{model} is not found for API version {version}, or is not supported for {method}. "
        "Call ModelService.ListModels to see the list of available models and their supported methods."
    )
    assert [violation.rule for violation in server.violations] == ["unknown_model"]


def test_a_retired_model_says_so(server: GeminiServer, raw: Raw) -> None:
    response = raw.post(HI, "gemini-3-pro-preview")
    assert response.status_code == 404
    assert "models/gemini-3-pro-preview is no longer available" in response.json()["error"]["message"]
    assert [violation.rule for violation in server.violations] == ["retired_model"]


@pytest.mark.parametrize("path", ["/", "/v1beta", f"/v2/models/{FLASH}:generateContent", f"/v1beta/models/{FLASH}"])
def test_another_path_is_a_404(server: GeminiServer, raw: Raw, path: str) -> None:
    assert raw.http.post(server.url + path, json=HI).status_code == 404
    assert [violation.rule for violation in server.violations] == ["path"]


def test_streaming_without_sse_is_refused(server: GeminiServer, raw: Raw) -> None:
    response = raw.http.post(f"{server.url}/v1beta/models/{FLASH}:streamGenerateContent", json=HI)
    assert response.status_code == 400
    assert [violation.rule for violation in server.violations] == ["path"]


def test_a_missing_key_is_a_400_of_its_own_reason(server: GeminiServer) -> None:
    response = httpx2.post(f"{server.url}/v1beta/models/{FLASH}:generateContent", json=HI, trust_env=False)
    error = response.json()["error"]
    assert response.status_code == 400
    assert error["message"] == "API key not valid. Please pass a valid API key."
    assert error["details"][0]["reason"] == "API_KEY_INVALID"
    assert [violation.rule for violation in server.violations] == ["api_key"]


def test_a_rejected_key_breaks_no_rule(server: GeminiServer, sdk: genai.Client) -> None:
    server.reject_key("a-key")
    with pytest.raises(errors.ClientError, match="API key not valid") as caught:
        sdk.models.generate_content(model=FLASH, contents="hi")
    assert caught.value.code == 400
    assert server.violations == []


def test_a_key_in_the_url_is_refused(server: GeminiServer, raw: Raw) -> None:
    response = raw.http.post(f"{server.url}/v1beta/models/{FLASH}:generateContent?key=a-key", json=HI)
    assert response.status_code == 400
    assert [violation.rule for violation in server.violations] == ["key_in_url"]


@pytest.mark.parametrize("content", [b"{", b"[]", b'"hi"'])
def test_a_body_that_is_no_json_object_is_refused(server: GeminiServer, raw: Raw, content: bytes) -> None:
    headers = {"content-type": "application/json"}
    url = f"{server.url}/v1beta/models/{FLASH}:generateContent"
    response = raw.http.post(url, content=content, headers=headers)
    assert response.status_code == 400
    assert response.json()["error"]["message"].startswith("Invalid JSON payload received.")
    assert [violation.rule for violation in server.violations] == ["json"]


def test_a_body_of_another_type_is_refused(server: GeminiServer, raw: Raw) -> None:
    response = raw.http.post(f"{server.url}/v1beta/models/{FLASH}:generateContent", data={"contents": "hi"})
    assert response.status_code == 400
    assert [violation.rule for violation in server.violations] == ["content_type"]


def test_a_body_over_the_limit_is_refused(raw: Raw) -> None:
    with GeminiServer(max_body_bytes=1_000_000) as small:
        big = {"contents": [{"role": "user", "parts": [{"text": "x" * 3_000_000}]}]}
        url = f"{small.url}/v1beta/models/{FLASH}:generateContent"
        response = raw.http.post(url, json=big)
        assert response.json()["error"]["message"] == "Request payload size exceeds the limit: 1000000 bytes."
        assert [violation.rule for violation in small.violations] == ["body_too_big"]
        assert raw.http.post(url, json=HI).status_code == 200


def test_a_request_is_kept_with_its_size_and_without_its_key(server: GeminiServer, sdk: genai.Client) -> None:
    config = types.GenerateContentConfig(system_instruction="Be kind.")
    sdk.models.generate_content(model=FLASH, contents="a fox", config=config)
    (request,) = server.requests
    assert (request.model, request.method, request.number) == (FLASH, "generateContent", 1)
    assert request.body["contents"] == [{"role": "user", "parts": [{"text": "a fox"}]}]
    assert (request.prompt, request.system) == ("a fox", "Be kind.")
    assert request.size_bytes == int(request.headers["content-length"])
    assert "a-key" not in repr(request)


def test_a_refused_request_is_kept_too(server: GeminiServer, raw: Raw) -> None:
    raw.post({"contents": [], "nonsense": 1})
    assert [request.body for request in server.requests] == [{"contents": [], "nonsense": 1}]


def test_bodies_are_not_kept_when_only_sizes_matter(raw: Raw) -> None:
    with GeminiServer(keeps_bodies=False) as server:
        raw.http.post(f"{server.url}/v1beta/models/{FLASH}:generateContent", json=HI)
        (request,) = server.requests
        assert request.body == {}
        assert request.size_bytes > 0


def test_tokens_are_counted(sdk: genai.Client) -> None:
    few = sdk.models.count_tokens(model=FLASH, contents="fox").total_tokens or 0
    many = sdk.models.count_tokens(model=FLASH, contents="fox " * 100).total_tokens or 0
    assert 0 < few < many


def test_counting_follows_the_rules_of_contents(server: GeminiServer, raw: Raw) -> None:
    inner = {"generateContentRequest": {"model": f"models/{FLASH}", **HI}}
    assert raw.post(inner, method="countTokens").json()["totalTokens"] > 0
    assert raw.post({"contents": []}, method="countTokens").status_code == 400
    assert [violation.rule for violation in server.violations] == ["empty_contents"]


def test_embeddings_are_unit_vectors_that_tell_texts_apart(sdk: genai.Client) -> None:
    texts = ["soft watercolour", "watercolour wash", "neon city"]
    config = types.EmbedContentConfig(output_dimensionality=256)
    vectors = []
    for text in texts:
        answer = sdk.models.embed_content(model="gemini-embedding-001", contents=text, config=config)
        assert answer.embeddings
        vectors.append(answer.embeddings[0].values or [])
    assert [len(vector) for vector in vectors] == [256, 256, 256]
    assert all(math.isclose(math.hypot(*vector), 1, rel_tol=1e-6) for vector in vectors)
    assert _likeness(vectors[0], vectors[1]) > _likeness(vectors[0], vectors[2])


def _likeness(one: list[float], other: list[float]) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True))


def test_a_batch_embeds_each_text_at_the_models_own_length(raw: Raw) -> None:
    name = "gemini-embedding-2"
    requests = [{"model": f"models/{name}", "content": {"parts": [{"text": text}]}} for text in ("fox", "fox", "hen")]
    answer = raw.post({"requests": requests}, name, "batchEmbedContents").json()
    first, second, third = (entry["values"] for entry in answer["embeddings"])
    assert answer["usageMetadata"]["promptTokenCount"] == 3
    assert len(first) == 3072
    assert first == second
    assert first != third


@pytest.mark.parametrize(
    ("rule", "entry"),
    [
        ("embedding", {"model": "models/other", "content": {"parts": [{"text": "x"}]}}),
        ("embedding", {"content": {"parts": [{"text": "x"}]}, "outputDimensionality": 4000}),
        ("empty_contents", {"content": {"parts": [{"text": ""}]}}),
        ("unknown_field", {"contents": {"parts": [{"text": "x"}]}}),
    ],
)
def test_a_wrong_embedding_request_is_refused(server: GeminiServer, raw: Raw, rule: str, entry: dict[str, Any]) -> None:
    assert raw.post({"requests": [entry]}, "gemini-embedding-2", "batchEmbedContents").status_code == 400
    assert [violation.rule for violation in server.violations] == [rule]


def test_models_are_listed_and_described(sdk: genai.Client) -> None:
    names = {model.name for model in sdk.models.list()}
    assert {f"models/{FLASH}", f"models/{BANANA}"} <= names
    assert sdk.models.get(model=FLASH).supported_actions == ["generateContent", "streamGenerateContent", "countTokens"]
    with pytest.raises(errors.ClientError, match="models/none is not found"):
        sdk.models.get(model="none")

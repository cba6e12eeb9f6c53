"""What a key is offered and denied, and what is counted, embedded, listed and kept."""

from __future__ import annotations

import math

import pytest
from google import genai
from google.genai import errors, types

from tests.wire_server import GeminiServer, key_body, quota_body
from tests.wire_server.raw import FLASH, HI, Raw

PRO = "gemini-3-pro-image"


def test_a_request_is_kept_with_its_size_and_without_its_key(server: GeminiServer, sdk: genai.Client) -> None:
    config = types.GenerateContentConfig(system_instruction="Be kind.")
    sdk.models.generate_content(model=FLASH, contents="a fox", config=config)
    (request,) = server.requests
    assert (request.model, request.method, request.number) == (FLASH, "generateContent", 1)
    assert request.body["contents"] == [{"role": "user", "parts": [{"text": "a fox"}]}]
    assert (request.prompt, request.system) == ("a fox", "Be kind.")
    assert request.size_bytes == int(request.headers["content-length"])
    assert "a-key" not in repr(request)


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


def test_models_are_listed_in_pages_that_lead_on(raw: Raw, sdk: genai.Client) -> None:
    first = raw.http.get(f"{raw.url}/v1beta/models?pageSize=5").json()
    assert len(first["models"]) == 5
    last = raw.http.get(f"{raw.url}/v1beta/models?pageSize=1000&pageToken={first['nextPageToken']}").json()
    assert "nextPageToken" not in last
    names = [model.name for model in sdk.models.list(config={"page_size": 3})]
    assert len(names) == len(set(names)) == 5 + len(last["models"])


def test_a_model_is_described_with_its_limits_and_methods(sdk: genai.Client) -> None:
    model = sdk.models.get(model=FLASH)
    assert model.supported_actions == ["generateContent", "streamGenerateContent", "countTokens"]
    assert (model.input_token_limit, model.output_token_limit) == (1_048_576, 65_536)
    with pytest.raises(errors.ClientError, match="models/none is not found"):
        sdk.models.get(model="none")


def test_a_model_that_is_withheld_is_not_listed_and_not_found(server: GeminiServer, sdk: genai.Client) -> None:
    server.withhold(PRO)
    assert f"models/{PRO}" not in {model.name for model in sdk.models.list()}
    with pytest.raises(errors.ClientError, match=f"models/{PRO} is not found") as caught:
        sdk.models.generate_content(model=PRO, contents="hi")
    assert caught.value.code == 404
    assert server.violations == []


def test_a_model_that_is_denied_is_listed_and_refused(server: GeminiServer, sdk: genai.Client) -> None:
    server.deny_model(FLASH, quota_body("day", limit=0))
    assert f"models/{FLASH}" in {model.name for model in sdk.models.list()}
    with pytest.raises(errors.ClientError, match="limit: 0"):
        sdk.models.generate_content(model=FLASH, contents="hi")
    server.clear()
    assert sdk.models.generate_content(model=FLASH, contents="hi").text == "Hello."


def test_a_key_that_is_denied_is_refused_everything(server: GeminiServer, sdk: genai.Client) -> None:
    server.deny_key(key_body("SERVICE_DISABLED", "The API is disabled."))
    for ask in (lambda: list(sdk.models.list()), lambda: sdk.models.generate_content(model=FLASH, contents="hi")):
        with pytest.raises(errors.ClientError, match="The API is disabled") as caught:
            ask()
        assert caught.value.code == 403
    assert server.violations == []


def test_a_few_tokens_are_too_few_for_an_answer_and_use_up_no_script(server: GeminiServer, sdk: genai.Client) -> None:
    answer = sdk.models.generate_content(model=FLASH, contents="hi", config={"max_output_tokens": 1})
    assert answer.candidates is not None
    assert answer.candidates[0].finish_reason == "MAX_TOKENS"
    assert answer.text is None
    assert server.remaining == 0

"""What a key is offered and what it is denied, as the test declares it."""

from __future__ import annotations

from typing import Any

import pytest
from google import genai
from google.genai import errors

from tests.wire_server import GeminiServer, key_body, quota_body
from tests.wire_server.raw import FLASH, Raw

PRO = "gemini-3-pro-image"


def listed(raw: Raw, query: str = "") -> dict[str, Any]:
    body: dict[str, Any] = raw.http.get(f"{raw.url}/v1beta/models{query}").json()
    return body


def test_models_are_listed_in_pages_that_lead_on(raw: Raw, sdk: genai.Client) -> None:
    first = listed(raw, "?pageSize=5")
    assert len(first["models"]) == 5
    last = listed(raw, f"?pageSize=1000&pageToken={first['nextPageToken']}")
    assert "nextPageToken" not in last
    names = [model.name for model in sdk.models.list(config={"page_size": 3})]
    assert len(names) == len(set(names)) == 5 + len(last["models"])


@pytest.mark.parametrize(("query", "rule"), [("?pageToken=nonsense", "page_token"), ("?pageSize=many", "page_size")])
def test_a_page_that_cannot_be_asked_for_is_refused(server: GeminiServer, raw: Raw, query: str, rule: str) -> None:
    assert raw.http.get(f"{server.url}/v1beta/models{query}").status_code == 400
    assert [violation.rule for violation in server.violations] == [rule]


def test_a_model_is_described_with_its_limits_and_methods(sdk: genai.Client) -> None:
    model = sdk.models.get(model=FLASH)
    assert (model.input_token_limit, model.output_token_limit) == (1_048_576, 65_536)
    assert "generateContent" in (model.supported_actions or [])


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

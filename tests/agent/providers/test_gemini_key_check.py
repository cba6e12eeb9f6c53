"""What a key is good for, asked of the strict server through Google's own SDK."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from typing import Any

import pytest
from pydantic import SecretStr

from agent import ErrorCode, ErrorInfo
from tests.adapters.catalogue import ModelEntry, ModelRole, load_catalogue
from tests.adapters.providers import GeminiConnection, KeyDiagnosis, KeyStatusCache, check_key
from tests.support import broken_servers as broken
from tests.support.cases import each_case
from tests.wire_server import GeminiServer, error_body, key_body, quota_body

KEY = "AIzaSyNobodysKeyForTheTests00000000001"
FLASH, BANANA, PRO = "gemini-3.8-flash", "gemini-nano-banana-2.1", "gemini-3-pro-image"
ROLES = (ModelRole.FLASH, ModelRole.THINKING, ModelRole.IMAGE_FLASH, ModelRole.IMAGE_PRO)
MODELS = [load_catalogue().model(role, "gemini") for role in ROLES]


@pytest.fixture
async def connection(server: GeminiServer) -> AsyncIterator[GeminiConnection]:
    async with aclosing(GeminiConnection(KEY, base_url=server.url)) as opened:
        yield opened


async def problem_of(key: str, url: str) -> ErrorCode | None:
    """Return what a check of every model finds wrong with the key itself."""
    async with aclosing(GeminiConnection(key, base_url=url)) as connection:
        diagnosis = await check_key(connection, MODELS, tries_models=True)
    return diagnosis.problem.code if diagnosis.problem else None


def of(diagnosis: KeyDiagnosis, role: ModelRole) -> ErrorCode | None:
    standing = next(one for one in diagnosis.models if one.role is role)
    return standing.problem.code if standing.problem else None


async def test_a_good_key_is_tried_with_one_token_of_each_model_and_no_picture(
    server: GeminiServer, connection: GeminiConnection
) -> None:
    diagnosis = await check_key(connection, MODELS, tries_models=True)
    assert diagnosis.is_whole
    assert [(one.model_id, one.is_tried) for one in diagnosis.models] == [(model.id, True) for model in MODELS]
    assert sorted(request.model for request in server.requests) == sorted(model.id for model in MODELS)
    assert {request.config["maxOutputTokens"] for request in server.requests} == {1}
    assert server.violations == []


async def test_the_list_alone_costs_no_call_and_finds_what_is_not_offered(
    server: GeminiServer, connection: GeminiConnection
) -> None:
    server.withhold(PRO)
    diagnosis = await check_key(connection, MODELS, tries_models=False)
    assert of(diagnosis, ModelRole.IMAGE_PRO) is ErrorCode.MODEL_NOT_OFFERED
    assert of(diagnosis, ModelRole.IMAGE_FLASH) is None
    assert not any(one.is_tried for one in diagnosis.models)
    assert server.requests == []


_NO_BILLING = quota_body("day", limit=0, model=PRO)


@each_case(
    ("body", "code", "is_usable"),
    [
        (_NO_BILLING, ErrorCode.BILLING_REQUIRED, False),
        (quota_body("day", limit=100, model=PRO), ErrorCode.QUOTA_EXHAUSTED, False),
        (quota_body("minute"), ErrorCode.RATE_LIMITED, True),
        (error_body(404, f"models/{PRO} is not found for API version v1beta"), ErrorCode.MODEL_NOT_OFFERED, False),
        (error_body(403, "The caller does not have permission"), ErrorCode.KEY_FORBIDDEN, False),
        (error_body(503, "This model is currently experiencing high demand."), ErrorCode.OVERLOADED, True),
        (error_body(500, "An internal error has occurred."), ErrorCode.PROVIDER_ERROR, True),
        (error_body(400, "Model does not support the requested response modalities"), None, True),
    ],
)
async def test_what_stands_in_the_way_of_one_model_is_found_by_trying_it(
    server: GeminiServer, connection: GeminiConnection, body: Any, code: ErrorCode | None, is_usable: bool
) -> None:
    server.clear()
    server.deny_model(PRO, body)
    diagnosis = await check_key(connection, MODELS, tries_models=True)
    assert diagnosis.problem is None
    assert of(diagnosis, ModelRole.IMAGE_PRO) is code
    assert [of(diagnosis, role) for role in ROLES[:3]] == [None, None, None]
    assert (diagnosis.why_not(PRO) is None) is is_usable
    assert diagnosis.why_not("gemini-nobody") is None


_REFERRER = "Requests from referer <empty> are blocked."
_SERVICE = "Requests to this API generativelanguage.googleapis.com method google.ai.ListModels are blocked."
_DISABLED = "Generative Language API has not been used in project 1234567890 before or it is disabled."
_LOCATION = error_body(400, "User location is not supported for the API use.")
_LOCATION["error"]["status"] = "FAILED_PRECONDITION"


@each_case(
    ("body", "code"),
    [
        (key_body("API_KEY_INVALID", "API key not valid. Please pass a valid API key.", 400), ErrorCode.KEY_INVALID),
        (error_body(403, "Your API key was reported as leaked. Please use another API key."), ErrorCode.KEY_LEAKED),
        (
            key_body("CONSUMER_SUSPENDED", f"Permission denied: Consumer 'api_key:{KEY}' has been suspended."),
            ErrorCode.KEY_SUSPENDED,
        ),
        (error_body(403, "Your project has been denied access. Please contact support."), ErrorCode.KEY_SUSPENDED),
        (key_body("API_KEY_HTTP_REFERRER_BLOCKED", _REFERRER), ErrorCode.KEY_RESTRICTED),
        (key_body("API_KEY_SERVICE_BLOCKED", _SERVICE), ErrorCode.KEY_WITHOUT_API),
        (key_body("SERVICE_DISABLED", _DISABLED), ErrorCode.API_DISABLED),
        (_LOCATION, ErrorCode.REGION_UNSUPPORTED),
        (error_body(429, "Your prepayment credits are depleted."), ErrorCode.CREDITS_USED_UP),
        (error_body(407, "Proxy Authentication Required"), ErrorCode.PROXY_FAILED),
    ],
)
async def test_what_is_wrong_with_the_key_itself_is_told_once_and_without_it(
    server: GeminiServer, connection: GeminiConnection, body: Any, code: ErrorCode
) -> None:
    server.clear()
    server.deny_key(body)
    diagnosis = await check_key(connection, MODELS, tries_models=True)
    assert diagnosis.problem is not None
    assert diagnosis.problem.code is code
    assert diagnosis.models == ()
    assert KEY not in diagnosis.model_dump_json()
    assert "?" not in diagnosis.problem.message
    assert server.requests == []


async def test_a_fault_of_the_key_that_only_a_call_finds_is_told_once(server: GeminiServer) -> None:
    for model in MODELS:
        server.deny_model(model.id, _LOCATION)
    assert await problem_of(KEY, server.url) is ErrorCode.REGION_UNSUPPORTED


async def test_a_network_that_is_down_says_so_and_greys_nothing() -> None:
    with broken.refusing() as url:
        async with aclosing(GeminiConnection(KEY, base_url=url)) as nowhere:
            diagnosis = await check_key(nowhere, MODELS, tries_models=True)
    assert diagnosis.problem is not None
    assert diagnosis.problem.code is ErrorCode.CONNECTION_FAILED
    assert diagnosis.why_not(PRO) is None


async def test_what_cannot_be_a_key_is_refused_before_anything_is_sent(server: GeminiServer) -> None:
    assert await problem_of("", server.url) is ErrorCode.KEY_MISSING
    assert await problem_of("我的密钥", server.url) is ErrorCode.KEY_INVALID
    assert server.requests == []


class Desk:
    """A desk on the strict server, its clock in the test's hands."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.now_s = 0.0
        self.asked: list[bool] = []
        self.desk = KeyStatusCache(load_catalogue(), self._check, lambda: self.now_s)

    async def _check(self, key: SecretStr, models: Sequence[ModelEntry], /, *, tries_models: bool) -> KeyDiagnosis:
        self.asked.append(tries_models)
        async with aclosing(GeminiConnection(key.get_secret_value(), base_url=self.url)) as connection:
            return await check_key(connection, models, tries_models=tries_models)

    def why_not(self, key: SecretStr, model: str) -> ErrorInfo | None:
        """Return what is known to stand in the way of a model."""
        known = self.desk.known(key)
        assert known is not None
        return known.why_not(model)


async def test_what_a_test_found_is_known_for_an_hour_and_only_of_that_key(server: GeminiServer) -> None:
    held, key = Desk(server.url), SecretStr(KEY)
    server.deny_model(PRO, _NO_BILLING)
    assert held.desk.known(key) is None
    tested = await held.desk.test(key)
    assert held.desk.known(key) == tested == await held.desk.listed(key)
    assert held.asked == [True]
    assert held.desk.known(SecretStr("another")) is None
    assert held.desk.known(None) is None
    held.now_s = 3601
    assert held.desk.known(key) is None
    assert (await held.desk.listed(key)).why_not(PRO) is None
    assert held.asked == [True, False]
    assert KEY not in repr(vars(held.desk))


async def test_a_network_that_failed_is_asked_again_the_next_time(server: GeminiServer) -> None:
    held, key = Desk(server.url), SecretStr(KEY)
    server.deny_key(error_body(407, "Proxy Authentication Required"))
    assert (await held.desk.test(key)).problem is not None
    assert held.desk.known(key) is None
    server.clear()
    assert (await held.desk.listed(key)).problem is None


def test_what_a_turn_finds_of_a_key_is_remembered_and_of_a_model_forgotten_as_soon_as_that_one_answers() -> None:
    held, key, roles = Desk("http://127.0.0.1:9"), SecretStr(KEY), (ModelRole.IMAGE_FLASH, ModelRole.IMAGE_PRO)
    busy = ErrorInfo(code=ErrorCode.OVERLOADED, parameters={"model": "Pro"})
    assert not held.desk.record_failure(key, busy, roles)
    assert held.desk.known(key) is None
    billing = ErrorInfo(code=ErrorCode.BILLING_REQUIRED, parameters={"model": "Flash"})
    assert held.desk.record_failure(key, billing, roles)
    assert held.why_not(key, BANANA) == billing
    # The text model is called Flash as well.
    assert held.why_not(key, FLASH) is None
    assert held.desk.record_failure(key, billing.model_copy(update={"parameters": {"model": "Pro"}}), roles)
    assert held.why_not(key, PRO) is not None
    assert held.why_not(key, BANANA) == billing
    assert not held.desk.clear(key, ())
    assert not held.desk.clear(key, [FLASH])
    assert held.desk.clear(key, [FLASH, PRO])
    assert (held.why_not(key, PRO), held.why_not(key, BANANA)) == (None, billing)
    assert not held.desk.clear(key, [PRO])
    assert held.desk.record_failure(key, ErrorInfo(code=ErrorCode.KEY_LEAKED), roles)
    assert held.why_not(key, FLASH) is not None
    assert held.desk.clear(key, [PRO])
    assert held.desk.known(key) is None
    assert not held.desk.clear(key, [PRO])
    assert not held.desk.record_failure(SecretStr("other"), ErrorInfo(code=ErrorCode.BILLING_REQUIRED), roles)

"""The connections to Gemini: the SDK's client on our own HTTP client, for one key.

Failures of a call become the studio's own errors: no text of them contains the key.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import AsyncGenerator, Awaitable, Mapping
from contextlib import aclosing
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, TypeVar
from urllib.parse import urlsplit

import httpx2
from google import genai
from google.genai import errors, types
from pydantic import SecretStr

from agent.errors import AivistaError, ErrorCode, KeyProblem, SettingsError
from agent.messages import CompletionChunk, Source
from agent.providers.catalogue import ModelEntry, override_variable
from agent.providers.http_failures import (
    LIMITS,
    Endpoint,
    EventReader,
    ProviderCall,
    close_with_body,
    in_sentence,
    is_web_page,
    may_have_been_charged,
    rate_limited,
    retry_after_s,
    status_failure,
    timeouts,
    transport_failure,
    trusted,
    unexplained,
    without_keys,
    wrong_address,
)

T = TypeVar("T")

DEFAULT_BASE_URL = "https://generativelanguage.googleapis.com/"


class RawEvents:
    """The data in the events of a streamed answer that google-genai 3.4 drops or cannot read.

    `finish_message` is the API's explanation of why the answer ended, `citations` are the works it quotes, and `error`
    is the event that reported a failure. Only events that contain one of these names are parsed as JSON, so that
    pictures are not parsed.
    """

    _NAMED = (b'"finishMessage"', b'"citationMetadata"', b'"error"')

    def __init__(self) -> None:
        self.finish_message = ""
        self.citations: dict[str, Source] = {}
        self.error: dict[str, Any] | None = None
        self._reader = EventReader()

    def feed(self, data: bytes) -> None:
        """Take the next bytes of the answer's body."""
        for event in self._reader.feed(data):
            if any(name in event for name in self._NAMED):
                self._read_event(event)

    def _read_event(self, event: bytes) -> None:
        try:
            data = json.loads(event)
        except ValueError:
            return
        if not isinstance(data, dict):
            return
        if "error" in data:
            self.error = data
        for candidate in _objects(data.get("candidates"))[:1]:
            message = candidate.get("finishMessage")
            if isinstance(message, str):
                self.finish_message = message
            self._read_citations(candidate.get("citationMetadata"))

    def _read_citations(self, metadata: object) -> None:
        # Both names occur in the API's own documentation.
        cited = metadata if isinstance(metadata, dict) else {}
        for one in _objects(cited.get("citationSources")) + _objects(cited.get("citations")):
            url, title = one.get("uri"), one.get("title")
            if isinstance(url, str) and url.startswith(("https://", "http://")):
                named = title if isinstance(title, str) and title else urlsplit(url).hostname or url
                self.citations.setdefault(url, Source(title=named, url=url))


def _objects(value: object) -> list[dict[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


@dataclass(slots=True)
class GeminiCall:
    """One running request: its read timeout, its HTTP response, and the events that the SDK leaves out.

    `response` is set once the HTTP response has begun; `events` is filled for a streamed one.
    """

    read_timeout_s: float
    response: httpx2.Response | None = None
    events: RawEvents = field(default_factory=RawEvents)
    started_s: float = field(default_factory=time.monotonic)


# The SDK builds and sends the request itself; through this, its HTTP client knows the current call.
_CALL: ContextVar[GeminiCall] = ContextVar("gemini_call")


class _Response(httpx2.Response):
    """A response that also feeds its bytes to the call's events as they are read."""

    def __init__(self, response: httpx2.Response, events: RawEvents) -> None:
        super().__init__(
            response.status_code,
            headers=response.headers,
            stream=response.stream,
            request=response.request,
            extensions=response.extensions,
        )
        self._events = events

    async def aiter_bytes(self, chunk_size: int | None = None) -> AsyncGenerator[bytes, None]:
        async with aclosing(super().aiter_bytes(chunk_size)) as body:
            async for data in body:
                self._events.feed(data)
                yield data
        # The last event may lack the final empty line; the SDK reads it anyway.
        self._events.feed(b"\n\n")


class _HttpClient(httpx2.AsyncClient):
    """The HTTP client under the SDK: it sets each call's timeouts and records the events of streamed answers."""

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        call = _CALL.get()
        # The SDK's single timeout would also be sent as the server's deadline for the whole answer, so it stays unset.
        request.extensions = {**request.extensions, "timeout": timeouts(call.read_timeout_s).as_dict()}
        response = await super().send(request, **options)
        if options.get("stream"):
            response = _Response(response, call.events)
        call.response = response
        return response


def gemini_http() -> httpx2.AsyncClient:
    """Return an HTTP client for connections to Gemini, whatever their keys."""
    # Redirects are not followed: the key would be sent to any host they name.
    return _HttpClient(verify=trusted(), limits=LIMITS, event_hooks={"response": [close_with_body]})


class GeminiConnection:
    """Gemini behind one key: on its own connections, kept alive until `aclose`, or on those of `http`."""

    def __init__(
        self,
        api_key: str,
        *,
        base_url: str | None = None,
        api_version: str = "v1beta",
        http: httpx2.AsyncClient | None = None,
    ) -> None:
        self._key = SecretStr(api_key.strip())
        base_url = base_url or DEFAULT_BASE_URL
        self._endpoint = Endpoint(
            base_url=base_url,
            service="Google",
            api="Gemini API",
            key=self._key,
            url_variable="GOOGLE_GEMINI_BASE_URL",
            key_variable="GEMINI_API_KEY",
            is_usual=base_url == DEFAULT_BASE_URL,
        )
        self._api_version = api_version
        self._shared = http
        self._http: httpx2.AsyncClient | None = None
        self._client: genai.Client | None = None

    def client(self) -> genai.Client:
        """Return the SDK's client. Raises KeyProblem or SettingsError before anything is sent."""
        if self._client is not None:
            return self._client
        # The key is never in a local variable here: exception reports may show those.
        if not self._key.get_secret_value():
            raise KeyProblem(ErrorCode.KEY_MISSING)
        if not _may_be_a_key(self._key.get_secret_value()):
            raise KeyProblem(ErrorCode.KEY_INVALID)
        try:
            url = urlsplit(self._endpoint.base_url)
        except ValueError:
            url = urlsplit("")
        if url.scheme not in ("https", "http") or not url.hostname:
            problem = "it must be an address like https://example.org"
            raise SettingsError(self._endpoint.url_variable, self._endpoint.base_url, problem)
        if self._shared is None:
            self._http = gemini_http()
        # An explicit async client keeps the SDK from using aiohttp; the sync client, and the `ssl` argument for its web
        # sockets, keep it from reading the machine's certificates twice more.
        options = types.HttpOptions(
            base_url=self._endpoint.base_url,
            api_version=self._api_version,
            httpx_async_client=self._shared or self._http,
            async_client_args={"ssl": trusted()},
            httpx_client=httpx2.Client(transport=httpx2.BaseTransport()),
        )
        self._client = genai.Client(api_key=self._key.get_secret_value(), vertexai=False, http_options=options)
        return self._client

    async def attend(self, work: Awaitable[T], call: GeminiCall, model: ModelEntry) -> T:
        """Return the result of the SDK's work for this call; every failure is raised as an error of `agent.errors`.

        Not a context manager: its frame would keep the SDK's exception, and the key that it may quote.
        """
        token = _CALL.set(call)
        try:
            return await work
        except Exception as error:
            # Not chained: an exception of the HTTP client may quote the header with the key.
            raise self._failure(error, call, model) from None
        finally:
            _CALL.reset(token)

    def _failure(self, error: Exception, call: GeminiCall, model: ModelEntry) -> AivistaError:
        provider_call = ProviderCall(
            endpoint=self._endpoint,
            model=model,
            model_variable=override_variable(model.role),
            read_timeout_s=call.read_timeout_s,
            keys=(self._key,),
            started_s=call.started_s,
        )
        response = call.response
        page = _web_page_failure(response, provider_call) if response is not None else None
        return page or failure_of(error, provider_call, has_response=response is not None, event=call.events.error)

    def cleaned(self, chunk: CompletionChunk) -> CompletionChunk:
        """Return the chunk with the texts of its failure shortened, without the key, markup and hidden characters."""
        return without_keys(chunk, (self._key,))

    async def aclose(self) -> None:
        """Close its own connections."""
        if self._http is not None:
            await self._http.aclose()
        if self._client is not None:
            self._client.close()


def _may_be_a_key(key: str) -> bool:
    """Return whether the key is valid in a header and is no token of the Live API."""
    return key.isascii() and key.isprintable() and " " not in key and not key.startswith("auth_tokens/")


# ---- failures

# The API's reasons when a key, or its project, may not make calls at all.
_KEY_REASONS = {
    "API_KEY_INVALID": ErrorCode.KEY_INVALID,
    "API_KEY_HTTP_REFERRER_BLOCKED": ErrorCode.KEY_RESTRICTED,
    "API_KEY_IP_ADDRESS_BLOCKED": ErrorCode.KEY_RESTRICTED,
    "API_KEY_ANDROID_APP_BLOCKED": ErrorCode.KEY_RESTRICTED,
    "API_KEY_IOS_APP_BLOCKED": ErrorCode.KEY_RESTRICTED,
    "API_KEY_SERVICE_BLOCKED": ErrorCode.KEY_WITHOUT_API,
    "SERVICE_DISABLED": ErrorCode.API_DISABLED,
    "CONSUMER_SUSPENDED": ErrorCode.KEY_SUSPENDED,
    "BILLING_DISABLED": ErrorCode.BILLING_REQUIRED,
}
# Without a reason, the message tells it. The first match counts: an expired key has the reason of an invalid one.
_KEY_SENTENCES = (
    (re.compile(r"api key (has )?expired", re.IGNORECASE), ErrorCode.KEY_EXPIRED),
    (re.compile(r"reported as leaked", re.IGNORECASE), ErrorCode.KEY_LEAKED),
    (re.compile(r"api key not (valid|found)", re.IGNORECASE), ErrorCode.KEY_INVALID),
    (re.compile(r"has been suspended|project has been denied access", re.IGNORECASE), ErrorCode.KEY_SUSPENDED),
    (re.compile(r"requests from .{0,200}are blocked", re.IGNORECASE), ErrorCode.KEY_RESTRICTED),
    (re.compile(r"requests to this api .{0,300}are blocked", re.IGNORECASE), ErrorCode.KEY_WITHOUT_API),
    (re.compile(r"has not been used in project|it is disabled", re.IGNORECASE), ErrorCode.API_DISABLED),
    (re.compile(r"location is not supported", re.IGNORECASE), ErrorCode.REGION_UNSUPPORTED),
)
# The meaning of a 400 for the user; a message without a match means a bug in the studio's request.
_TOO_LONG = re.compile(r"token count.{0,80}exceeds|exceeds the maximum number of tokens", re.IGNORECASE)
_TOO_LARGE = re.compile(r"(payload|request).{0,20}size.{0,40}(exceeds|limit)|entity too large", re.IGNORECASE)
_BAD_PICTURE = re.compile(r"(unable to process|could not process).{0,20}image|image is not valid", re.IGNORECASE)
_UNFIT = re.compile(r"(is not|are not|isn't) (enabled|supported|available) for|does not support", re.IGNORECASE)


def failure_of(
    error: Exception, call: ProviderCall, *, has_response: bool, event: Mapping[str, Any] | None = None
) -> AivistaError:
    """Return our failure for an error of the SDK or its HTTP client; no text of it contains the key.

    `has_response` says that an HTTP response had begun: then even an error inside the SDK is due to the provider's
    answer. `event` is the event of a streamed answer that reported an error, if any.
    """
    if event is not None:
        return _from_event(event, call)
    if isinstance(error, errors.APIError):
        return _from_api(error, call)
    if isinstance(error, httpx2.HTTPError | httpx2.InvalidURL):
        return transport_failure(error, call)
    # With a response, the SDK could not read the answer; without one, the studio or the SDK failed before sending.
    code = ErrorCode.ANSWER_UNREADABLE if has_response else ErrorCode.NOT_SENT
    return call.failure(code, f"{type(error).__name__}: {error}")


def _web_page_failure(response: httpx2.Response, call: ProviderCall) -> AivistaError | None:
    """Return WRONG_ADDRESS when a successful answer is a web page; else None."""
    kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    is_page = response.status_code == 200 and kind in ("text/html", "application/xhtml+xml")
    return wrong_address(response.status_code, "", call) if is_page else None


def _from_event(event: Mapping[str, Any], call: ProviderCall) -> AivistaError:
    """Return the failure that an event of an answer reports: the call had begun, so it may have been charged."""
    error_object = event.get("error")
    body = error_object if isinstance(error_object, dict) else {"message": str(error_object)}
    status = body.get("code")
    if not isinstance(status, int) or not 400 <= status < 600:
        return unexplained(_message(body), call)
    return may_have_been_charged(_from_body(status, body, {}, call))


def _from_api(error: errors.APIError, call: ProviderCall) -> AivistaError:
    headers: Mapping[str, str] = getattr(error.response, "headers", None) or {}
    details, status = error.details, error.code if isinstance(error.code, int) else 500
    if isinstance(details, dict) and isinstance(details.get("error"), dict):
        return _from_body(status, details["error"], headers, call)
    return _from_elsewhere(status, details, headers, call)


def _message(body: Mapping[str, Any]) -> str:
    return str(body.get("message") or body.get("status") or "")


def _from_body(status: int, body: Mapping[str, Any], headers: Mapping[str, str], call: ProviderCall) -> AivistaError:
    """Return the failure reported by the API itself: `body` is its error object."""
    message = _message(body)
    # The API's error about the key itself.
    from_sentence = next((code for pattern, code in _KEY_SENTENCES if pattern.search(message)), None)
    reasons = (_KEY_REASONS.get(str(entry.get("reason"))) for entry in _objects(body.get("details")))
    key_code = from_sentence or next((code for code in reasons if code is not None), None)
    match status:
        case 429:
            return _quota_failure(body, message, headers, call)
        case 400 | 401 | 403 if key_code is not None:
            return call.failure(key_code, message, model=call.model.label)
        case 401:
            return call.failure(ErrorCode.KEY_INVALID, message)
        case 403 if not re.search(r"cached ?content|\bfile\b", message, re.IGNORECASE):
            return call.failure(ErrorCode.KEY_FORBIDDEN, message, model=call.model.label)
        case 404 if call.model.id in message or re.search(r"\bmodels?\b", message, re.IGNORECASE):
            parameters = {"model": call.model.id, "variable": call.model_variable}
            return call.failure(ErrorCode.MODEL_NOT_FOUND, message, **parameters)
        case _:
            by_status = status_failure(status, message, headers, call)
            return by_status or _rejection(body, message, call)


def _from_elsewhere(status: int, body: object, headers: Mapping[str, str], call: ProviderCall) -> AivistaError:
    """Return the failure of an answer without the API's form: of a gateway, a proxy, or another server."""
    fields = body if isinstance(body, dict) else {"message": body}
    message = str(next((fields[name] for name in ("message", "detail", "error", "status") if fields.get(name)), ""))
    by_status = status_failure(status, message, headers, call)
    if by_status is not None:
        return by_status
    if status == 429:
        return rate_limited(retry_after_s(headers), message, call)
    if is_web_page(message) or status in (404, 405, 410):
        return wrong_address(status, message, call)
    if status in (401, 403):
        code = ErrorCode.KEY_INVALID if status == 401 else ErrorCode.KEY_FORBIDDEN
        return call.failure(code, message, model=call.model.label)
    return _rejection({}, message, call)


def _rejection(body: Mapping[str, Any], message: str, call: ProviderCall) -> AivistaError:
    model = call.model.label
    if body.get("status") == "FAILED_PRECONDITION" and "billing" in message.lower():
        return call.failure(ErrorCode.BILLING_REQUIRED, message, model=model)
    if re.search(r"thought[_ ]signature", message, re.IGNORECASE):
        return call.failure(ErrorCode.SIGNATURE_REJECTED, message)
    if _TOO_LONG.search(message):
        return call.failure(ErrorCode.CONTEXT_TOO_LONG, message, model=model)
    if _TOO_LARGE.search(message):
        return call.failure(ErrorCode.REQUEST_TOO_LARGE, message)
    if _BAD_PICTURE.search(message):
        return call.failure(ErrorCode.PICTURE_REJECTED, message)
    detail = in_sentence(message, call)
    if _UNFIT.search(message):
        parameters = {"model": call.model.id, "variable": call.model_variable, "detail": detail}
        return call.failure(ErrorCode.MODEL_UNFIT, message, **parameters)
    return call.failure(ErrorCode.REQUEST_REJECTED, message, detail=detail)


def _quota_failure(
    body: Mapping[str, Any], message: str, headers: Mapping[str, str], call: ProviderCall
) -> AivistaError:
    violations = [entry for part in _objects(body.get("details")) for entry in _objects(part.get("violations"))]
    model = call.model.label
    if re.search(r"credits are depleted", message, re.IGNORECASE):
        return call.failure(ErrorCode.CREDITS_USED_UP, message)
    # `limit: 0` means that the key has no quota for the model: waiting does not help.
    has_none = re.search(r"limit: 0(?![\d.])|doesn't have a free quota tier", message)
    if has_none or any(str(entry.get("quotaValue")) == "0" for entry in violations):
        return call.failure(ErrorCode.BILLING_REQUIRED, message, model=model)
    names = " ".join(f"{entry.get('quotaId')} {entry.get('quotaMetric')}" for entry in violations)
    if re.search(r"per_?day", f"{names} {message}", re.IGNORECASE):
        return call.failure(ErrorCode.QUOTA_EXHAUSTED, message, model=model)
    hints = [str(entry.get("retryDelay", "")).removesuffix("s") for entry in _objects(body.get("details"))]
    hints.extend(re.findall(r"retry in ([\d.]+\d)s", message))
    delay_s = next((float(hint) for hint in hints if re.fullmatch(r"\d{1,9}(\.\d+)?", hint)), None)
    return rate_limited(retry_after_s(headers) if delay_s is None else delay_s, message, call)

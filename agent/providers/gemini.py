"""Gemini through Google's SDK: the call, its connections and its errors.

Importing this module loads the SDK (about half a second), so the studio imports it when the first key is used.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import httpx2
from google import genai
from google.genai import errors, types
from pydantic import SecretStr

from agent.errors import (
    AivistaError,
    ErrorCode,
    KeyProblem,
    NetworkFailure,
    ProviderFailure,
    RateLimited,
    SettingsError,
)
from agent.messages import CompletionChunk, ImageOrigin, PromptMessage
from agent.providers.base import PLAIN, ChatOptions, ImageRequest, PictureBytes, ToolDeclaration
from agent.providers.catalogue import ModelEntry, override_variable
from agent.providers.gemini_answer import AnswerReader, ArrivedPicture
from agent.providers.gemini_wire import Wire, chat_settings, image_settings, pictures_to_send, to_wire

DEFAULT_BASE_URL = "https://generativelanguage.googleapis.com/"

_CONNECT_TIMEOUT_S = 10.0
# The whole body counts: 14 reference pictures on a slow line take minutes, and Stop works all the while.
_WRITE_TIMEOUT_S = 300.0
_LONGEST_DETAIL = 500
# The SDK insists on contents of its own; ours replace them in the body.
_PLACEHOLDER = "-"


@dataclass(slots=True)
class _Call:
    """One request under way: how long a read may take, and the HTTP response once it has begun."""

    read_timeout_s: float
    response: httpx2.Response | None = None


# The SDK builds and sends the request itself; this is how its HTTP client knows which call it works for.
_CALL: ContextVar[_Call] = ContextVar("gemini_call")


class GeminiProvider:
    """Gemini's text and image models behind one key.

    Connections are kept alive until `aclose`, and belong to the event loop of the first call. A generator that is
    closed or cancelled ends its request at once. Nothing is tried twice here.
    """

    def __init__(
        self,
        api_key: str,
        pictures: PictureBytes,
        *,
        base_url: str | None = None,
        api_version: str = "v1beta",
        text_timeout_s: float = 60,
        image_timeout_s: float = 300,
    ) -> None:
        self._key = SecretStr(api_key.strip())
        self._pictures = pictures
        self._base_url = base_url or DEFAULT_BASE_URL
        self._api_version = api_version
        self._text_timeout_s = text_timeout_s
        self._image_timeout_s = image_timeout_s
        self._http: httpx2.AsyncClient | None = None
        self._client: genai.Client | None = None

    def stream(
        self,
        model: ModelEntry,
        messages: Sequence[PromptMessage],
        tools: Sequence[ToolDeclaration] = (),
        options: ChatOptions = PLAIN,
    ) -> AsyncGenerator[CompletionChunk, None]:
        """Stream the text model's answer; see `ChatModel.stream`."""
        return self._answer(model, messages, chat_settings(model, tools, options), self._text_timeout_s, {})

    def generate(self, request: ImageRequest) -> AsyncGenerator[CompletionChunk, None]:
        """Stream the image model's answer; a picture is in the store before its chunk is given."""
        settings = image_settings(request)
        # Without a deadline of its own the server may give up before the picture is ready.
        headers = {"X-Server-Timeout": str(math.ceil(self._image_timeout_s))}
        return self._answer(request.model, request.messages, settings, self._image_timeout_s, headers)

    async def aclose(self) -> None:
        """Close the connections."""
        if self._http is not None:
            await self._http.aclose()
        if self._client is not None:
            self._client.close()

    async def _answer(
        self,
        model: ModelEntry,
        messages: Sequence[PromptMessage],
        settings: Wire,
        read_timeout_s: float,
        headers: dict[str, str],
    ) -> AsyncGenerator[CompletionChunk, None]:
        models = self._open().aio.models
        wanted = pictures_to_send(messages)
        picture_bytes = {digest: await self._pictures.read(image) for digest, image in wanted.items()}
        config = _config({"contents": to_wire(model, messages, picture_bytes), **settings}, headers)
        call = _Call(read_timeout_s)
        reader = AnswerReader(model)
        responses = await models.generate_content_stream(model=model.id, contents=_PLACEHOLDER, config=config)
        try:
            while (response := await self._next(responses, call, model)) is not None:
                for piece in reader.read(response):
                    yield await self._stored(piece, model) if isinstance(piece, ArrivedPicture) else piece
            for chunk in reader.end():
                yield chunk
        except AivistaError:
            # A cut answer was billed as far as it came.
            if reader.usage is not None:
                yield CompletionChunk(usage=reader.usage)
            raise
        finally:
            # Closing the SDK's outermost generator leaves the inner ones, and the connection, to the garbage collector.
            if call.response is not None:
                await call.response.aclose()

    async def _next(
        self, responses: AsyncIterator[types.GenerateContentResponse], call: _Call, model: ModelEntry
    ) -> types.GenerateContentResponse | None:
        token = _CALL.set(call)
        try:
            return await anext(responses, None)
        except Exception as error:
            # Not chained: an exception of the HTTP client may quote the header that holds the key.
            raise _as_ours(error, model, call.read_timeout_s, self._key.get_secret_value()) from None
        finally:
            _CALL.reset(token)

    async def _stored(self, picture: ArrivedPicture, model: ModelEntry) -> CompletionChunk:
        image = await self._pictures.write(picture.data, picture.mime_type, ImageOrigin.GENERATED)
        signature = picture.thought_signature
        signed = {"thought_signature": signature, "signed_by": model.id if signature else None}
        return CompletionChunk(part=image.model_copy(update=signed))

    def _open(self) -> genai.Client:
        if self._client is not None:
            return self._client
        key = self._key.get_secret_value()
        if not key:
            raise KeyProblem(ErrorCode.KEY_MISSING)
        if not (key.isascii() and key.isprintable()) or " " in key or key.startswith("auth_tokens/"):
            raise KeyProblem(ErrorCode.KEY_INVALID)  # no header takes it, or it is a token of the Live API
        _check_base_url(self._base_url)
        # Redirects are not followed: the key would go to whatever host they name.
        self._http = httpx2.AsyncClient(
            limits=httpx2.Limits(max_connections=None, max_keepalive_connections=20, keepalive_expiry=30),
            event_hooks={"request": [_set_timeouts], "response": [_note_response]},
        )
        # Its own async client keeps the SDK from using aiohttp, the sync one from preparing a second TLS context.
        options = types.HttpOptions(
            base_url=self._base_url,
            api_version=self._api_version,
            httpx_async_client=self._http,
            httpx_client=httpx2.Client(transport=httpx2.BaseTransport()),
        )
        self._client = genai.Client(api_key=key, vertexai=False, http_options=options)
        return self._client


def _check_base_url(base_url: str) -> None:
    try:
        url = urlsplit(base_url)
    except ValueError:
        url = urlsplit("")
    if url.scheme not in ("https", "http") or not url.hostname:
        raise SettingsError("GOOGLE_GEMINI_BASE_URL", base_url, "it must be an address like https://example.org")


def _config(body: Wire, headers: dict[str, str]) -> types.GenerateContentConfigDict:
    return {
        "automatic_function_calling": {"disable": True},
        "automatic_continuation": False,
        # The body as it is to be sent; what the SDK builds of its own arguments is overwritten by it.
        "http_options": {"extra_body": body, "headers": headers},
    }


async def _set_timeouts(request: httpx2.Request) -> None:
    # The SDK's one timeout is also sent as the server's deadline for the whole answer, so it is left unset.
    timeout = httpx2.Timeout(
        connect=_CONNECT_TIMEOUT_S, read=_CALL.get().read_timeout_s, write=_WRITE_TIMEOUT_S, pool=_CONNECT_TIMEOUT_S
    )
    request.extensions = {**request.extensions, "timeout": timeout.as_dict()}


async def _note_response(response: httpx2.Response) -> None:
    _CALL.get().response = response


# ---- errors


def _as_ours(error: Exception, model: ModelEntry, read_timeout_s: float, key: str) -> AivistaError:
    """Return the failure that stands for the SDK's or its HTTP client's; no text of it holds the key."""
    if isinstance(error, errors.APIError):
        return _from_api(error, model, read_timeout_s, key)
    detail = _without_key(f"{type(error).__name__}: {error}", key)
    match error:
        case httpx2.ReadTimeout():
            return _timed_out(model, read_timeout_s, detail)
        case httpx2.ConnectError() | httpx2.TimeoutException() | httpx2.ProxyError():
            return NetworkFailure(ErrorCode.CONNECTION_FAILED, provider_detail=detail)
        case httpx2.LocalProtocolError():
            return ProviderFailure(ErrorCode.REQUEST_REJECTED, provider_detail=detail, detail=detail[:200])
        case httpx2.HTTPError():
            return NetworkFailure(ErrorCode.STREAM_CUT, provider_detail=detail)
        case _:
            # What came was not what the API sends: the SDK could not read it.
            return ProviderFailure(ErrorCode.PROVIDER_ERROR, provider_detail=detail, status=200)


def _from_api(error: errors.APIError, model: ModelEntry, read_timeout_s: float, key: str) -> AivistaError:
    body = _body(error)
    detail = _without_key(str(body.get("message") or error.message or error.status or ""), key)
    match error.code:
        case 429:
            return _quota_failure(error, body, model, detail)
        case 403:
            if _speaks_of_location(detail):
                return KeyProblem(ErrorCode.REGION_UNSUPPORTED, provider_detail=detail)
            return KeyProblem(ErrorCode.KEY_FORBIDDEN, provider_detail=detail, model=model.id)
        case 401:
            return KeyProblem(ErrorCode.KEY_INVALID, provider_detail=detail)
        case 404:
            return ProviderFailure(
                ErrorCode.MODEL_NOT_FOUND,
                provider_detail=detail,
                model=model.id,
                variable=override_variable(model.role),
            )
        case 408 | 504:
            return _timed_out(model, read_timeout_s, detail)
        case 499:
            return NetworkFailure(ErrorCode.STREAM_CUT, provider_detail=detail)
        case 503:
            return ProviderFailure(ErrorCode.OVERLOADED, provider_detail=detail, model=model.label)
        case code if code is not None and 400 <= code < 500:
            return _rejection(body, model, detail)
        case code:
            return ProviderFailure(ErrorCode.PROVIDER_ERROR, provider_detail=detail, status=code or "?")


def _rejection(body: Mapping[str, Any], model: ModelEntry, detail: str) -> AivistaError:
    reasons = {str(entry.get("reason")) for entry in _details(body)}
    if "API_KEY_INVALID" in reasons or re.search(r"api key (not valid|expired|not found)", detail, re.IGNORECASE):
        return KeyProblem(ErrorCode.KEY_INVALID, provider_detail=detail)
    if body.get("status") == "FAILED_PRECONDITION" and "billing" in detail.lower():
        return KeyProblem(ErrorCode.BILLING_REQUIRED, provider_detail=detail, model=model.label)
    if _speaks_of_location(detail):
        return KeyProblem(ErrorCode.REGION_UNSUPPORTED, provider_detail=detail)
    if re.search(r"thought[_ ]signature", detail, re.IGNORECASE):
        return ProviderFailure(ErrorCode.SIGNATURE_REJECTED, provider_detail=detail)
    return ProviderFailure(ErrorCode.REQUEST_REJECTED, provider_detail=detail, detail=detail[:200])


def _quota_failure(error: errors.APIError, body: Mapping[str, Any], model: ModelEntry, detail: str) -> AivistaError:
    violations = [entry for part in _details(body) for entry in part.get("violations") or () if isinstance(entry, dict)]
    # `limit: 0` is a key without any quota for the model: waiting does not help.
    if any(str(entry.get("quotaValue")) == "0" for entry in violations) or re.search(r"limit: 0(?![\d.])", detail):
        return KeyProblem(ErrorCode.BILLING_REQUIRED, provider_detail=detail, model=model.label)
    names = " ".join(f"{entry.get('quotaId')} {entry.get('quotaMetric')}" for entry in violations)
    if re.search(r"per_?day", f"{names} {detail}", re.IGNORECASE):
        return KeyProblem(ErrorCode.QUOTA_EXHAUSTED, provider_detail=detail, model=model.label)
    return RateLimited(_retry_after_s(error, body, detail), detail)


def _retry_after_s(error: errors.APIError, body: Mapping[str, Any], detail: str) -> float | None:
    headers = getattr(error.response, "headers", None) or {}
    hints = [str(entry.get("retryDelay", "")).removesuffix("s") for entry in _details(body)]
    hints.append(str(headers.get("retry-after", "")))
    hints.extend(re.findall(r"retry in ([\d.]+\d)s", detail))
    for hint in hints:
        if re.fullmatch(r"\d+(\.\d+)?", hint):
            return float(hint)
    return None


def _timed_out(model: ModelEntry, read_timeout_s: float, detail: str) -> ProviderFailure:
    seconds = f"{read_timeout_s:g}"
    return ProviderFailure(ErrorCode.PROVIDER_TIMEOUT, provider_detail=detail, model=model.label, seconds=seconds)


def _speaks_of_location(detail: str) -> bool:
    return "location is not supported" in detail.lower()


def _body(error: errors.APIError) -> dict[str, Any]:
    """Return the error object of the response; a body that is none (HTML, text) gives what the SDK made of it."""
    body = error.details
    if isinstance(body, dict):
        inner = body.get("error")
        return inner if isinstance(inner, dict) else body
    return {"message": body if isinstance(body, str) else json.dumps(body)}


def _details(body: Mapping[str, Any]) -> list[dict[str, Any]]:
    details = body.get("details")
    return [entry for entry in details if isinstance(entry, dict)] if isinstance(details, list) else []


def _without_key(text: str, key: str) -> str:
    """Return the text on one line, cut, with this key and whatever looks like one blacked out."""
    hidden = text.replace(key, "[key]") if key else text
    hidden = re.sub(r"AIza[\w-]{10,}", "[key]", hidden)
    return " ".join(hidden.split())[:_LONGEST_DETAIL]

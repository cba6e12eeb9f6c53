"""The connections to Gemini: the SDK's client on an HTTP client of our own, for one key."""

from __future__ import annotations

import json
import time
from collections.abc import AsyncGenerator, Awaitable
from contextlib import aclosing
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, TypeVar
from urllib.parse import urlsplit

import httpx2
from google import genai
from google.genai import types
from pydantic import SecretStr

from agent.errors import AivistaError, ErrorCode, ErrorInfo, KeyProblem, SettingsError
from agent.messages import Source
from agent.providers.catalogue import ModelEntry, override_variable
from agent.providers.gemini_failures import failure_of, web_page_failure
from agent.providers.http_failures import Asked, Endpoint, close_with_body, info_without_keys, trusted

T = TypeVar("T")

DEFAULT_BASE_URL = "https://generativelanguage.googleapis.com/"

_CONNECT_TIMEOUT_S = 10.0
# The whole body counts: 14 reference pictures on a slow line take minutes, and Stop works all the while.
_WRITE_TIMEOUT_S = 300.0


class RawEvents:
    """What the events of a streamed answer say that google-genai 3.4 drops, or cannot read.

    `finish_message` is why the answer ended in the API's own words, `citations` are the works it quotes, and `error` is
    the event that told a failure. Only events that name one of these are read as JSON, so that a picture is not.
    """

    _NAMED = (b'"finishMessage"', b'"citationMetadata"', b'"error"')

    def __init__(self) -> None:
        self.finish_message = ""
        self.citations: dict[str, Source] = {}
        self.error: dict[str, Any] | None = None
        self._line = bytearray()
        self._event: list[bytes] = []

    def feed(self, data: bytes) -> None:
        """Take the next bytes of the answer's body."""
        *ends, rest = data.split(b"\n")
        for end in ends:
            self._line += end
            self._read_line(bytes(self._line).rstrip(b"\r"))
            self._line.clear()
        self._line += rest

    def _read_line(self, line: bytes) -> None:
        if line.startswith(b"data:"):
            self._event.append(line[5:])
        elif not line and self._event:
            event, self._event = b"\n".join(self._event), []
            if any(name in event for name in self._NAMED):
                self._read_event(event)

    def _read_event(self, event: bytes) -> None:
        try:
            told = json.loads(event)
        except ValueError:
            return
        if not isinstance(told, dict):
            return
        if "error" in told:
            self.error = told
        for candidate in _objects(told.get("candidates"))[:1]:
            message = candidate.get("finishMessage")
            if isinstance(message, str):
                self.finish_message = message
            self._read_citations(candidate.get("citationMetadata"))

    def _read_citations(self, metadata: object) -> None:
        # Both names occur in the API's own pages.
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
    """One request under way: how long a read may take, the HTTP response once it has begun, and what the events of a
    streamed one say that the SDK leaves out."""

    read_timeout_s: float
    response: httpx2.Response | None = None
    events: RawEvents = field(default_factory=RawEvents)
    started_s: float = field(default_factory=time.monotonic)


# The SDK builds and sends the request itself; this is how its HTTP client knows which call it works for.
_CALL: ContextVar[GeminiCall] = ContextVar("gemini_call")


class _Response(httpx2.Response):
    """A response whose bytes also go to the call it belongs to, as they are read."""

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
        # The last event may lack the empty line that ends one; the SDK reads it all the same.
        self._events.feed(b"\n\n")


class _HttpClient(httpx2.AsyncClient):
    """The HTTP client under the SDK: it sets each call's own timeouts, and lets the call hear what is streamed."""

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        call = _CALL.get()
        # The SDK's one timeout is also sent as the server's deadline for the whole answer, so it is left unset.
        timeout = httpx2.Timeout(
            connect=_CONNECT_TIMEOUT_S, read=call.read_timeout_s, write=_WRITE_TIMEOUT_S, pool=_CONNECT_TIMEOUT_S
        )
        request.extensions = {**request.extensions, "timeout": timeout.as_dict()}
        response = await super().send(request, **options)
        if options.get("stream"):
            response = _Response(response, call.events)
        call.response = response
        return response


class GeminiConnection:
    """Connections kept alive until `aclose`, which belong to the event loop of the first call."""

    def __init__(self, api_key: str, *, base_url: str | None = None, api_version: str = "v1beta") -> None:
        self._key = SecretStr(api_key.strip())
        self._base_url = base_url or DEFAULT_BASE_URL
        self._api_version = api_version
        self._http: httpx2.AsyncClient | None = None
        self._client: genai.Client | None = None

    def client(self) -> genai.Client:
        """Return the SDK's client. Raises KeyProblem or SettingsError before anything is sent."""
        if self._client is not None:
            return self._client
        # Never in a local variable here: reports of an exception may show those.
        if not self._key.get_secret_value():
            raise KeyProblem(ErrorCode.KEY_MISSING)
        if not _may_be_a_key(self._key.get_secret_value()):
            raise KeyProblem(ErrorCode.KEY_INVALID)
        _check_base_url(self._base_url)
        # Redirects are not followed: the key would go to whatever host they name.
        self._http = _HttpClient(
            verify=trusted(),
            limits=httpx2.Limits(max_connections=None, max_keepalive_connections=20, keepalive_expiry=30),
            event_hooks={"response": [close_with_body]},
        )
        # Its own async client keeps the SDK from using aiohttp; the sync one and `ssl`, which it takes for its web
        # sockets, keep it from reading the machine's certificates twice more.
        options = types.HttpOptions(
            base_url=self._base_url,
            api_version=self._api_version,
            httpx_async_client=self._http,
            async_client_args={"ssl": trusted()},
            httpx_client=httpx2.Client(transport=httpx2.BaseTransport()),
        )
        self._client = genai.Client(api_key=self._key.get_secret_value(), vertexai=False, http_options=options)
        return self._client

    async def attend(self, work: Awaitable[T], call: GeminiCall, model: ModelEntry) -> T:
        """Return what the SDK's work for this call brings; whatever fails in it is raised as one of `agent.errors`.

        Not a context manager: the frame of one would keep the SDK's exception, and the key it may quote.
        """
        token = _CALL.set(call)
        try:
            return await work
        except Exception as error:
            # Not chained: an exception of the HTTP client may quote the header that holds the key.
            raise self._failure(error, call, model) from None
        finally:
            _CALL.reset(token)

    def _failure(self, error: Exception, call: GeminiCall, model: ModelEntry) -> AivistaError:
        asked, response = self.asked(call, model), call.response
        page = web_page_failure(response, asked) if response is not None else None
        return page or failure_of(error, asked, has_response=response is not None, event=call.events.error)

    def asked(self, call: GeminiCall, model: ModelEntry) -> Asked:
        """Return what a call asks of whom, for the sentence of its failure."""
        endpoint = Endpoint(
            base_url=self._base_url,
            service="Google",
            api="Gemini API",
            key=self._key,
            url_variable="GOOGLE_GEMINI_BASE_URL",
            key_variable="GEMINI_API_KEY",
            is_usual=self._base_url == DEFAULT_BASE_URL,
        )
        return Asked(
            endpoint=endpoint,
            model=model,
            model_variable=override_variable(model.role),
            read_timeout_s=call.read_timeout_s,
            keys=(self._key,),
            started_s=call.started_s,
        )

    def cleaned(self, info: ErrorInfo) -> ErrorInfo:
        """Return the failure of an answer with its texts cut, without the key, markup and hidden characters."""
        return info_without_keys(info, (self._key,))

    async def aclose(self) -> None:
        """Close the connections."""
        if self._http is not None:
            await self._http.aclose()
        if self._client is not None:
            self._client.close()


def _may_be_a_key(key: str) -> bool:
    """Return whether a header takes it and it is no token of the Live API."""
    return key.isascii() and key.isprintable() and " " not in key and not key.startswith("auth_tokens/")


def _check_base_url(base_url: str) -> None:
    try:
        url = urlsplit(base_url)
    except ValueError:
        url = urlsplit("")
    if url.scheme not in ("https", "http") or not url.hostname:
        raise SettingsError("GOOGLE_GEMINI_BASE_URL", base_url, "it must be an address like https://example.org")

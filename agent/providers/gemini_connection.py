"""The connections to Gemini: the SDK's client on an HTTP client of our own, for one key."""

from __future__ import annotations

import ssl
from collections.abc import Awaitable
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from typing import TypeVar
from urllib.parse import urlsplit

import httpx2
from google import genai
from google.genai import types
from pydantic import SecretStr

from agent.errors import ErrorCode, KeyProblem, SettingsError
from agent.providers.catalogue import ModelEntry
from agent.providers.gemini_failures import failure_of, without_key

T = TypeVar("T")

DEFAULT_BASE_URL = "https://generativelanguage.googleapis.com/"

_CONNECT_TIMEOUT_S = 10.0
# The whole body counts: 14 reference pictures on a slow line take minutes, and Stop works all the while.
_WRITE_TIMEOUT_S = 300.0


@dataclass(slots=True)
class GeminiCall:
    """One request under way: how long a read may take, and the HTTP response once it has begun."""

    read_timeout_s: float
    response: httpx2.Response | None = None


# The SDK builds and sends the request itself; this is how its HTTP client knows which call it works for.
_CALL: ContextVar[GeminiCall] = ContextVar("gemini_call")


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
        self._http = httpx2.AsyncClient(
            verify=_tls(),
            limits=httpx2.Limits(max_connections=None, max_keepalive_connections=20, keepalive_expiry=30),
            event_hooks={"request": [_set_timeouts], "response": [_note_response]},
        )
        # Its own async client keeps the SDK from using aiohttp; the sync one and `ssl`, which it takes for its web
        # sockets, keep it from reading the machine's certificates twice more.
        options = types.HttpOptions(
            base_url=self._base_url,
            api_version=self._api_version,
            httpx_async_client=self._http,
            async_client_args={"ssl": _tls()},
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
            raise failure_of(error, model, call.read_timeout_s, self._key.get_secret_value()) from None
        finally:
            _CALL.reset(token)

    def without_key(self, text: str) -> str:
        """Return the text on one line, cut, with the key and whatever looks like one blacked out."""
        return without_key(text, self._key.get_secret_value())

    async def aclose(self) -> None:
        """Close the connections."""
        if self._http is not None:
            await self._http.aclose()
        if self._client is not None:
            self._client.close()


@cache
def _tls() -> ssl.SSLContext:
    """Return what every connection trusts: reading the machine's certificates takes longer than a client's start."""
    return httpx2.create_ssl_context()


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


async def _set_timeouts(request: httpx2.Request) -> None:
    # The SDK's one timeout is also sent as the server's deadline for the whole answer, so it is left unset.
    timeout = httpx2.Timeout(
        connect=_CONNECT_TIMEOUT_S, read=_CALL.get().read_timeout_s, write=_WRITE_TIMEOUT_S, pool=_CONNECT_TIMEOUT_S
    )
    request.extensions = {**request.extensions, "timeout": timeout.as_dict()}


async def _note_response(response: httpx2.Response) -> None:
    _CALL.get().response = response

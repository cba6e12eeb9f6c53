"""Failures between the studio and a model's server as the studio's own errors, for every provider.

No error text contains a key, and a server's messages are cleaned and shortened before they are used. What all
connections to such servers share is here too: their settings, and the reading of a streamed answer's events.
"""

from __future__ import annotations

import html
import re
import ssl
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cache
from math import ceil
from types import AsyncGeneratorType
from urllib.parse import urlsplit

import httpx2
from pydantic import SecretStr

from agent.errors import AivistaError, Charge, DesignRuleBroken, ErrorCode, SettingsError
from agent.messages import CompletionChunk
from agent.providers.catalogue import ModelEntry
from agent.untrusted import plain_text

_LONGEST_DETAIL = 500
_LONGEST_IN_SENTENCE = 200
# The keys of Google, of OpenAI, and of similar servers.
_KEYS = re.compile(r"AIza[\w-]{10,}|AQ\.[\w-]{20,}|\b(?:sk|gsk|pk|rk)-[\w-]{8,}|(?<=Bearer )\S+")
LIMITS = httpx2.Limits(max_connections=None, max_keepalive_connections=20, keepalive_expiry=30)
_CONNECT_TIMEOUT_S = 10.0
# The limit is for the whole body: 14 reference pictures on a slow line take minutes, and Stop still works.
_WRITE_TIMEOUT_S = 300.0


@cache
def trusted() -> ssl.SSLContext:
    """Return the TLS context of every connection; cached, since loading the certificates is slow."""
    return httpx2.create_ssl_context()


def timeouts(read_timeout_s: float) -> httpx2.Timeout:
    """Return the timeouts of a call's steps."""
    return httpx2.Timeout(
        connect=_CONNECT_TIMEOUT_S, read=read_timeout_s, write=_WRITE_TIMEOUT_S, pool=_CONNECT_TIMEOUT_S
    )


def netloc(base_url: str) -> str:
    """Return the host and port of an address, without user name and password."""
    return urlsplit(base_url).netloc.rpartition("@")[2]


class EventReader:
    """Splits the body of a streamed answer into the data of its server-sent events.

    Not by `aiter_lines`: that also breaks a line at characters that a text may contain, such as U+2028.
    """

    def __init__(self) -> None:
        self._line = bytearray()
        self._data: list[bytes] = []

    def feed(self, piece: bytes) -> Iterator[bytes]:
        """Yield the data of each event that these next bytes of the body complete."""
        *ends, rest = piece.split(b"\n")
        for end in ends:
            self._line += end
            line = bytes(self._line).rstrip(b"\r")
            self._line.clear()
            if line.startswith(b"data:"):
                self._data.append(line[5:].removeprefix(b" "))
            elif not line:
                if any(self._data):
                    yield b"\n".join(self._data)
                self._data.clear()
        self._line += rest


async def close_with_body(response: httpx2.Response) -> None:
    """Make the generator that reads a response end when the response is closed; a hook of an HTTP client.

    When the SDKs stop early, they leave it to the garbage collector, which may run after the event loop is gone.
    """
    if isinstance(response.stream, httpx2.AsyncByteStream):
        response.stream = _Body(response.stream)


class _Body(httpx2.AsyncByteStream):
    def __init__(self, stream: httpx2.AsyncByteStream) -> None:
        self._stream = stream
        self._parts: AsyncIterator[bytes] | None = None

    def __aiter__(self) -> AsyncIterator[bytes]:
        self._parts = aiter(self._stream)
        return self._parts

    async def aclose(self) -> None:
        await self._stream.aclose()
        if isinstance(self._parts, AsyncGeneratorType) and not self._parts.ag_running:
            await self._parts.aclose()


@dataclass(frozen=True)
class Endpoint:
    """A server of models, the key that only it receives, and the variables that configure it.

    `service` is its name in a message, and `api` the API it should have; `is_usual` says that the name alone also
    identifies its address.
    """

    base_url: str
    service: str
    api: str
    key: SecretStr | None
    url_variable: str
    key_variable: str
    is_usual: bool = False

    @property
    def address(self) -> str:
        """The server's host and port."""
        return netloc(self.base_url)

    @property
    def reached(self) -> str:
        """The name of the network destination in a message."""
        return self.service if self.is_usual else self.address


@dataclass(frozen=True)
class ProviderCall:
    """The data of a call for its failure message, which never contains any of the `keys`."""

    endpoint: Endpoint
    model: ModelEntry
    model_variable: str
    read_timeout_s: float
    keys: Sequence[SecretStr]
    path: str = ""
    started_s: float = field(default_factory=time.monotonic)

    @property
    def paints(self) -> bool:
        """Whether the call is for a picture."""
        return self.path.startswith("/images/")

    @property
    def waited_s(self) -> str:
        """The seconds since the call was sent, formatted for a message."""
        tenths = ceil((time.monotonic() - self.started_s) * 10)
        return f"{tenths / 10:g}" if tenths < 100 else f"{tenths / 10:.0f}"

    def clean(self, text: str) -> str:
        """Return foreign text on one line: shortened, without keys, markup and invisible characters."""
        return clean(text, self.keys)

    def failure(self, code: ErrorCode, message: str = "", **parameters: str | int | float) -> AivistaError:
        """Return a failure of this call; `message` is the message of the server or the HTTP client."""
        filled: dict[str, str | int | float] = {"service": self.endpoint.service, **parameters}
        return code.kind(code, provider_detail=self.clean(message), **filled)


def clean(text: str, keys: Sequence[SecretStr]) -> str:
    """Return the text on one line: shortened, without keys (given or look-alike), markup and hidden characters."""
    for key in keys:
        secret = key.get_secret_value()
        text = text.replace(secret, "[key]") if secret else text
    text = _KEYS.sub("[key]", text)
    if is_web_page(text):
        # Only the words of the page are left, without its code and its tags.
        without_code = re.sub(r"(?is)<(script|style)\b.*?(</\1\s*>|$)", " ", text)
        text = html.unescape(re.sub(r"(?s)<[^>]*>?", " ", without_code))
    return " ".join(plain_text(text).split())[:_LONGEST_DETAIL]


def without_keys(chunk: CompletionChunk, keys: Sequence[SecretStr]) -> CompletionChunk:
    """Return the chunk with the texts of its failure, which are the server's or the model's, cleaned."""
    if (info := chunk.error) is None:
        return chunk
    cleaned = {name: clean(value, keys) if isinstance(value, str) else value for name, value in info.parameters.items()}
    update = {"parameters": cleaned, "provider_detail": clean(info.provider_detail, keys)}
    return chunk.model_copy(update={"error": info.model_copy(update=update)})


def may_have_been_charged(error: AivistaError) -> AivistaError:
    """Mark the failure as one of a call that had begun: the provider may charge for the work until then."""
    error.info = error.info.model_copy(update={"charge": Charge.MAYBE})
    return error


def transport_failure(error: Exception, call: ProviderCall) -> AivistaError:
    """Return our failure for an error of the HTTP client."""
    message = f"{type(error).__name__}: {error}"
    model, there = call.model.label, call.endpoint.reached
    match error:
        case httpx2.ReadTimeout():
            seconds = f"{call.read_timeout_s:g}"
            return call.failure(ErrorCode.PROVIDER_TIMEOUT, message, model=model, seconds=seconds)
        case httpx2.ProxyError():
            return call.failure(ErrorCode.PROXY_FAILED, message, service=there)
        case httpx2.ConnectError() if "CERTIFICATE_VERIFY_FAILED" in message:
            return call.failure(ErrorCode.CERTIFICATE_FAILED, message, service=there)
        case httpx2.ConnectError() if "[SSL" in message:
            address, variable = call.endpoint.address, call.endpoint.url_variable
            return call.failure(ErrorCode.TLS_FAILED, message, address=address, variable=variable)
        case httpx2.ConnectError() | httpx2.ConnectTimeout() | httpx2.PoolTimeout():
            return call.failure(ErrorCode.CONNECTION_FAILED, message, service=there)
        case httpx2.WriteError() | httpx2.WriteTimeout():
            return call.failure(ErrorCode.SENDING_FAILED, message, service=there)
        case httpx2.UnsupportedProtocol() | httpx2.InvalidURL():
            problem = "it must be an address like https://example.org"
            return SettingsError(call.endpoint.url_variable, call.endpoint.base_url, problem)
        case httpx2.LocalProtocolError():
            return DesignRuleBroken(
                ErrorCode.DESIGN_RULE_BROKEN, rule="it was about to send a request that HTTP does not allow"
            )
        case httpx2.DecodingError():
            return call.failure(ErrorCode.ANSWER_UNREADABLE, message)
        case httpx2.RemoteProtocolError() if not re.search("disconnected|closed", message):
            # The other side does not speak HTTP.
            return call.failure(ErrorCode.ANSWER_UNREADABLE, message)
        case _:
            return call.failure(ErrorCode.STREAM_CUT, message)


def status_failure(status: int, message: str, headers: Mapping[str, str], call: ProviderCall) -> AivistaError | None:
    """Return the failure for an HTTP status with a fixed meaning, or None when the body must decide."""
    model = call.model.label
    match status:
        case _ if 300 <= status < 400:
            return _redirected(headers, call)
        case 407:
            return call.failure(ErrorCode.PROXY_FAILED, message)
        case 408 | 504:
            parameters = {"model": model, "status": status, "seconds": call.waited_s}
            return call.failure(ErrorCode.PROVIDER_GAVE_UP, message, **parameters)
        case 413:
            return call.failure(ErrorCode.REQUEST_TOO_LARGE, message)
        case 503 | 529:
            hint_s = retry_after_s(headers)
            waiting = {} if hint_s is None else {"seconds": max(1, ceil(hint_s))}
            return call.failure(ErrorCode.OVERLOADED, message, model=model, **waiting)
        case _ if status in (409, 499) or status >= 500:
            return call.failure(ErrorCode.PROVIDER_ERROR, message, status=status)
        case _:
            return None


def rate_limited(hint_s: float | None, message: str, call: ProviderCall) -> AivistaError:
    """Return that the server wants fewer requests, with its waiting time, if it gives one."""
    if hint_s is None:
        return call.failure(ErrorCode.SLOW_DOWN, message)
    return call.failure(ErrorCode.RATE_LIMITED, message, seconds=max(1, ceil(hint_s)))


def wrong_address(status: int, message: str, call: ProviderCall) -> AivistaError:
    """Return that the address does not lead to the API: a wrong address, or a proxy or firewall in between."""
    endpoint = call.endpoint
    parameters = {"address": endpoint.address, "variable": endpoint.url_variable, "api": endpoint.api}
    return call.failure(ErrorCode.WRONG_ADDRESS, message, **parameters, status=status)


def unexplained(message: str, call: ProviderCall) -> AivistaError:
    """Return that a started answer ended with an error that has no other information than this message."""
    reason = in_sentence(message, call) or "error"
    return may_have_been_charged(call.failure(ErrorCode.UNKNOWN_REASON, message, reason=reason))


def _redirected(headers: Mapping[str, str], call: ProviderCall) -> AivistaError:
    # Redirects are not followed: the key would be sent to any host they name.
    target = urlsplit(headers.get("location", ""))
    named = f"{target.scheme}://{target.netloc.rpartition('@')[2]}" if target.netloc else call.clean(target.path)[:80]
    endpoint = call.endpoint
    parameters = {"address": endpoint.address, "variable": endpoint.url_variable, "target": named or "?"}
    return call.failure(ErrorCode.REDIRECTED, **parameters)


def in_sentence(message: str, call: ProviderCall) -> str:
    """Return the server's message, short enough for a sentence."""
    return call.clean(message)[:_LONGEST_IN_SENTENCE]


def is_web_page(text: str) -> bool:
    """Return whether this is HTML, which no model API returns."""
    return bool(re.search(r"^\s*<[a-z!?][^<]*>|<(!doctype|html|head|body)\b", text[:_LONGEST_DETAIL], re.IGNORECASE))


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """Return the server's requested waiting time, from `Retry-After` in seconds or as a date, else None.

    A date is compared with the server's own clock if it sends one, because ours may be wrong.
    """
    for name, per_second in (("retry-after-ms", 1000), ("retry-after", 1)):
        hint = headers.get(name, "").strip()
        if re.fullmatch(r"\d{1,9}(\.\d+)?", hint):
            return float(hint) / per_second
    at = _date(headers.get("retry-after", ""))
    if at is None:
        return None
    now = _date(headers.get("date", "")) or datetime.now(UTC)
    return max(0.0, (at - now).total_seconds())


def _date(text: str) -> datetime | None:
    try:
        at = parsedate_to_datetime(text)
    except (ValueError, TypeError):
        return None
    return at if at.tzinfo is not None else at.replace(tzinfo=UTC)

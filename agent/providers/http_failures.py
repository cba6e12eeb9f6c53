"""What goes wrong between the studio and a model's server, in the studio's own errors: the same for every provider.

No text of an error holds a key, and what a server says is cleaned and cut before it goes into one. Beside it stands
what all connections to such servers have in common.
"""

from __future__ import annotations

import html
import re
import ssl
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cache
from math import ceil
from types import AsyncGeneratorType
from urllib.parse import urlsplit

import httpx2
from pydantic import SecretStr

from agent.errors import AivistaError, Charge, DesignRuleBroken, ErrorCode, ErrorInfo, SettingsError
from agent.providers.catalogue import ModelEntry
from agent.untrusted import plain_text

_LONGEST_DETAIL = 500
_LONGEST_IN_SENTENCE = 200
# Google's keys, OpenAI's and those of servers like it.
_KEYS = re.compile(r"AIza[\w-]{10,}|AQ\.[\w-]{20,}|\b(?:sk|gsk|pk|rk)-[\w-]{8,}|(?<=Bearer )\S+")
LIMITS = httpx2.Limits(max_connections=None, max_keepalive_connections=20, keepalive_expiry=30)
_CONNECT_TIMEOUT_S = 10.0
# The whole body counts: 14 reference pictures on a slow line take minutes, and Stop works all the while.
_WRITE_TIMEOUT_S = 300.0


@cache
def trusted() -> ssl.SSLContext:
    """Return what every connection trusts: reading the machine's certificates takes longer than a client's start."""
    return httpx2.create_ssl_context()


def timeouts(read_timeout_s: float) -> httpx2.Timeout:
    """Return how long a call waits for each of its steps."""
    return httpx2.Timeout(
        connect=_CONNECT_TIMEOUT_S, read=read_timeout_s, write=_WRITE_TIMEOUT_S, pool=_CONNECT_TIMEOUT_S
    )


def netloc(base_url: str) -> str:
    """Return the host and port of an address."""
    return urlsplit(base_url).netloc.rpartition("@")[2]


async def close_with_body(response: httpx2.Response) -> None:
    """Have the generator that reads a response end when the response is closed, as a hook of an HTTP client.

    The SDKs leave it to the garbage collector when they stop early, which may come when the event loop is gone.
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
    """A server of models, the key that only it gets, and the variables an operator would change.

    `service` is its name in a sentence, and `api` what it should speak; `is_usual` says that the name tells where it
    is, too.
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
        """What is reached over the network, in a sentence."""
        return self.service if self.is_usual else self.address


@dataclass(frozen=True)
class ProviderCall:
    """What was asked of whom, for the sentence of a failure; `keys` are never in one."""

    endpoint: Endpoint
    model: ModelEntry
    model_variable: str
    read_timeout_s: float
    keys: Sequence[SecretStr]
    path: str = ""
    started_s: float = field(default_factory=time.monotonic)

    @property
    def paints(self) -> bool:
        """Whether a picture was asked for."""
        return self.path.startswith("/images/")

    @property
    def waited_s(self) -> str:
        """The seconds since the call left, as a sentence gives them."""
        tenths = ceil((time.monotonic() - self.started_s) * 10)
        return f"{tenths / 10:g}" if tenths < 100 else f"{tenths / 10:.0f}"

    def clean(self, text: str) -> str:
        """Return what somebody else says on one line: cut, without keys, markup and characters that nobody sees."""
        return clean(text, self.keys)

    def failure(self, code: ErrorCode, said: str = "", **parameters: str | int | float) -> AivistaError:
        """Return a failure of this call; `said` is what the server or the HTTP client says of it."""
        told: dict[str, str | int | float] = {"service": self.endpoint.service, **parameters}
        return code.kind(code, provider_detail=self.clean(said), **told)


def clean(text: str, keys: Sequence[SecretStr]) -> str:
    """Return the text on one line: cut, without keys (these, and what looks like one), markup, hidden characters."""
    for key in keys:
        secret = key.get_secret_value()
        text = text.replace(secret, "[key]") if secret else text
    text = _KEYS.sub("[key]", text)
    if is_web_page(text):
        text = _words_of_page(text)
    return " ".join(plain_text(text).split())[:_LONGEST_DETAIL]


def info_without_keys(info: ErrorInfo, keys: Sequence[SecretStr]) -> ErrorInfo:
    """Return the failure of an answer, whose texts are the server's or the model's own, cleaned."""
    told = {name: clean(value, keys) if isinstance(value, str) else value for name, value in info.parameters.items()}
    return info.model_copy(update={"parameters": told, "provider_detail": clean(info.provider_detail, keys)})


def may_have_been_charged(error: AivistaError) -> AivistaError:
    """Return the failure as one of a call that had begun: the provider may charge for what it did until then."""
    error.info = error.info.model_copy(update={"charge": Charge.MAYBE})
    return error


def transport_failure(error: Exception, asked: ProviderCall) -> AivistaError:
    """Return the failure that stands for one of the HTTP client's."""
    said = f"{type(error).__name__}: {error}"
    model, there = asked.model.label, asked.endpoint.reached
    match error:
        case httpx2.ReadTimeout():
            seconds = f"{asked.read_timeout_s:g}"
            return asked.failure(ErrorCode.PROVIDER_TIMEOUT, said, model=model, seconds=seconds)
        case httpx2.ProxyError():
            return asked.failure(ErrorCode.PROXY_FAILED, said, service=there)
        case httpx2.ConnectError() if "CERTIFICATE_VERIFY_FAILED" in said:
            return asked.failure(ErrorCode.CERTIFICATE_FAILED, said, service=there)
        case httpx2.ConnectError() if "[SSL" in said:
            address, variable = asked.endpoint.address, asked.endpoint.url_variable
            return asked.failure(ErrorCode.TLS_FAILED, said, address=address, variable=variable)
        case httpx2.ConnectError() | httpx2.ConnectTimeout() | httpx2.PoolTimeout():
            return asked.failure(ErrorCode.CONNECTION_FAILED, said, service=there)
        case httpx2.WriteError() | httpx2.WriteTimeout():
            return asked.failure(ErrorCode.SENDING_FAILED, said, service=there)
        case httpx2.UnsupportedProtocol() | httpx2.InvalidURL():
            problem = "it must be an address like https://example.org"
            return SettingsError(asked.endpoint.url_variable, asked.endpoint.base_url, problem)
        case httpx2.LocalProtocolError():
            return DesignRuleBroken(
                ErrorCode.DESIGN_RULE_BROKEN, rule="it was about to send a request that HTTP does not allow"
            )
        case httpx2.DecodingError():
            return asked.failure(ErrorCode.ANSWER_UNREADABLE, said)
        case httpx2.RemoteProtocolError() if not re.search("disconnected|closed", said):
            # Whoever answers there does not speak HTTP.
            return asked.failure(ErrorCode.ANSWER_UNREADABLE, said)
        case _:
            return asked.failure(ErrorCode.STREAM_CUT, said)


def status_failure(status: int, said: str, headers: Mapping[str, str], asked: ProviderCall) -> AivistaError | None:
    """Return the failure that an HTTP status stands for whoever answers, or None when only the body tells."""
    model = asked.model.label
    match status:
        case _ if 300 <= status < 400:
            return _redirected(headers, asked)
        case 407:
            return asked.failure(ErrorCode.PROXY_FAILED, said)
        case 408 | 504:
            told = {"model": model, "status": status, "seconds": asked.waited_s}
            return asked.failure(ErrorCode.PROVIDER_GAVE_UP, said, **told)
        case 413:
            return asked.failure(ErrorCode.REQUEST_TOO_LARGE, said)
        case 503 | 529:
            return overloaded(said, headers, asked)
        case 409 | 499:
            return asked.failure(ErrorCode.PROVIDER_ERROR, said, status=status)
        case _ if status >= 500:
            return asked.failure(ErrorCode.PROVIDER_ERROR, said, status=status)
        case _:
            return None


def overloaded(said: str, headers: Mapping[str, str], asked: ProviderCall) -> AivistaError:
    """Return that the model has no room; when the server says for how long, that is waited out."""
    hint_s = retry_after_s(headers)
    told: dict[str, str | int | float] = {"model": asked.model.label}
    if hint_s is not None:
        told["seconds"] = max(1, ceil(hint_s))
    return asked.failure(ErrorCode.OVERLOADED, said, **told)


def rate_limited(hint_s: float | None, said: str, asked: ProviderCall) -> AivistaError:
    """Return that the server wants fewer requests, and when to come back where it says so."""
    if hint_s is None:
        return asked.failure(ErrorCode.SLOW_DOWN, said)
    return asked.failure(ErrorCode.RATE_LIMITED, said, seconds=max(1, ceil(hint_s)))


def wrong_address(status: int, said: str, asked: ProviderCall) -> AivistaError:
    """Return that something else than the API answers there: a wrong address, or a proxy or firewall in between."""
    endpoint = asked.endpoint
    told = {"address": endpoint.address, "variable": endpoint.url_variable, "api": endpoint.api}
    return asked.failure(ErrorCode.WRONG_ADDRESS, said, **told, status=status)


def unexplained(said: str, asked: ProviderCall) -> AivistaError:
    """Return that an answer which had begun ended with an error that says no more than these words."""
    reason = in_sentence(said, asked) or "error"
    return may_have_been_charged(asked.failure(ErrorCode.UNKNOWN_REASON, said, reason=reason))


def _redirected(headers: Mapping[str, str], asked: ProviderCall) -> AivistaError:
    # Redirects are not followed: the key would go to whatever host they name.
    target = urlsplit(headers.get("location", ""))
    named = f"{target.scheme}://{target.netloc.rpartition('@')[2]}" if target.netloc else asked.clean(target.path)[:80]
    endpoint = asked.endpoint
    told = {"address": endpoint.address, "variable": endpoint.url_variable, "target": named or "?"}
    return asked.failure(ErrorCode.REDIRECTED, **told)


def in_sentence(said: str, asked: ProviderCall) -> str:
    """Return what a server says, short enough to stand in a sentence."""
    return asked.clean(said)[:_LONGEST_IN_SENTENCE]


def is_web_page(text: str) -> bool:
    """Return whether this is HTML, which no API of models answers with."""
    return bool(re.search(r"^\s*<[a-z!?][^<]*>|<(!doctype|html|head|body)\b", text[:_LONGEST_DETAIL], re.IGNORECASE))


def _words_of_page(page: str) -> str:
    without_code = re.sub(r"(?is)<(script|style)\b.*?(</\1\s*>|$)", " ", page)
    return html.unescape(re.sub(r"(?s)<[^>]*>?", " ", without_code))


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """Return how long the server wants us to wait: `Retry-After` in seconds or as a date, else None.

    A date is held against the server's own clock where it gives one: ours may be wrong.
    """
    milliseconds, hint = headers.get("retry-after-ms", "").strip(), headers.get("retry-after", "").strip()
    if re.fullmatch(r"\d{1,9}(\.\d+)?", milliseconds):
        return float(milliseconds) / 1000
    if re.fullmatch(r"\d{1,9}(\.\d+)?", hint):
        return float(hint)
    at = _date(hint)
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

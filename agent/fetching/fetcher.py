"""The guarded fetcher: one page of the public web, or one sentence that says why not.

Every hop of a redirect is checked as the first address was. Nothing is carried from one request to the next: no
cookies, no referrer, no credentials, and no proxy of the environment, which would dial for us what we may not.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import time
from dataclasses import dataclass
from functools import cached_property
from types import TracebackType
from typing import Self

import httpcore2

from agent.errors import ErrorCode, NetworkFailure, ToolArgumentError
from agent.fetching.charsets import decoded
from agent.fetching.dialling import Guard, GuardedBackend
from agent.fetching.media import PDF, charset_of, is_markup, readable_type, unreadable
from agent.fetching.urls import WebUrl, followed, refused, web_url

_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_HEADERS = (
    (b"User-Agent", b"Mozilla/5.0 (compatible; Aivista)"),
    (b"Accept", b"text/html,application/xhtml+xml,text/*;q=0.9,application/json,application/xml,application/pdf"),
    (b"Accept-Encoding", b"identity"),
)
_CONNECTIONS = 16


@dataclass(frozen=True)
class FetchLimits:
    """How long a page may take and how much of it is read. `overall_s` holds for all hops together."""

    connect_s: float = 5.0
    read_s: float = 8.0
    overall_s: float = 15.0
    max_bytes: int = 3_000_000
    max_hops: int = 5


@dataclass(frozen=True)
class FetchedPage:
    """What an address gave: its text in Unicode, or the bytes of a PDF.

    `url` is where it was found after all redirects. Of a longer page `content` is the beginning.
    """

    url: str
    media_type: str
    content: str | bytes
    is_truncated: bool = False


class Fetcher:
    """Fetches pages; to be used as a context. One serves any number of callers at once."""

    def __init__(
        self,
        guard: Guard | None = None,
        limits: FetchLimits | None = None,
        *,
        ssl_context: ssl.SSLContext | None = None,
    ) -> None:
        self._limits = limits or FetchLimits()
        self._guard = guard or Guard()
        self._ssl_context = ssl_context
        self._timeouts = {
            "connect": self._limits.connect_s,
            "read": self._limits.read_s,
            "write": self._limits.read_s,
            "pool": self._limits.overall_s,
        }

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close what is still open."""
        if "_pool" in vars(self):
            await self._pool.aclose()

    @cached_property
    def _pool(self) -> httpcore2.AsyncConnectionPool:
        # Made when first needed, since reading the certificates takes time. No connection outlives its page: each one
        # is dialled anew, and what one page left open cannot meet another.
        return httpcore2.AsyncConnectionPool(
            ssl_context=self._ssl_context or httpcore2.default_ssl_context(),
            max_connections=_CONNECTIONS,
            max_keepalive_connections=0,
            network_backend=GuardedBackend(self._guard),
        )

    async def fetch(self, url: str) -> FetchedPage:
        """Return the page at an address.

        Raises ToolArgumentError when the address may not be asked for, does not give the page out, or gives what
        cannot be read; NetworkFailure when it is out of reach or too slow. The sentence names the host that was
        asked for and nothing that came from it.
        """
        asked, started_s = web_url(url), time.monotonic()
        try:
            async with asyncio.timeout(self._limits.overall_s):
                return await self._fetch(asked)
        except (TimeoutError, httpcore2.TimeoutException) as error:
            seconds = max(1, round(time.monotonic() - started_s))
            detail = type(error).__name__
            raise NetworkFailure(
                ErrorCode.PAGE_TOO_SLOW, provider_detail=detail, name=asked.host, seconds=seconds
            ) from error
        except (httpcore2.NetworkError, httpcore2.ProtocolError, ValueError) as error:
            raise _out_of_reach(asked.host, error) from error

    async def _fetch(self, asked: WebUrl) -> FetchedPage:
        place, answer = asked, await self._hop(asked, asked.host)
        try:
            for _ in range(self._limits.max_hops):
                if isinstance(answer, FetchedPage):
                    break
                place = followed(place, answer)
                answer = await self._hop(place, asked.host)
        except ToolArgumentError as error:
            if error.code is ErrorCode.ADDRESS_REFUSED:
                raise refused(asked.host, "it leads on to an address that is none") from error
            raise
        if isinstance(answer, FetchedPage):
            return answer
        raise unreadable(asked.host, "it leads on and on, with too many redirects")

    async def _hop(self, place: WebUrl, name: str) -> FetchedPage | str:
        """Return the page, or the redirect's location as it was sent; `name` is for the sentences."""
        url = httpcore2.URL(
            scheme=place.scheme.encode(), host=place.host.encode(), port=place.port, target=place.target.encode()
        )
        sent = [(b"Host", place.authority.encode()), *_HEADERS]
        async with self._pool.stream("GET", url, headers=sent, extensions={"timeout": self._timeouts}) as response:
            headers = _Headers(response.headers)
            if response.status in _REDIRECTS:
                return headers.location
            if not 200 <= response.status < 300:
                raise ToolArgumentError(ErrorCode.PAGE_REFUSED, name=name, status=response.status)
            if headers.encoding.strip().lower() not in ("", "identity"):
                raise unreadable(name, "it is packed, which was not asked for")
            data = bytearray()
            async with contextlib.aclosing(response.aiter_stream()) as chunks:
                async for chunk in chunks:
                    data += chunk
                    if len(data) > self._limits.max_bytes:
                        break
        read = bytes(data[: self._limits.max_bytes])
        return _page(place, headers.content_type, read, len(data) > len(read), name)


class _Headers:
    """The headers of an answer that are looked at."""

    def __init__(self, headers: list[tuple[bytes, bytes]]) -> None:
        self._values = {name.lower(): value for name, value in reversed(headers)}

    def _text(self, name: bytes) -> str:
        value = self._values.get(name, b"")
        try:
            return value.decode("utf-8")
        except UnicodeDecodeError:
            return value.decode("latin-1")

    @property
    def location(self) -> str:
        return self._text(b"location")

    @property
    def encoding(self) -> str:
        return self._text(b"content-encoding")

    @property
    def content_type(self) -> str:
        return self._text(b"content-type")


def _page(place: WebUrl, declared: str, data: bytes, is_cut: bool, name: str) -> FetchedPage:
    media_type = readable_type(declared, data, name)
    if media_type == PDF:
        if is_cut:
            raise unreadable(name, "the PDF is too large")
        return FetchedPage(str(place), media_type, data)
    text = decoded(data, charset_of(declared), is_markup=is_markup(media_type))
    return FetchedPage(str(place), media_type, text, is_cut)


def _out_of_reach(host: str, error: Exception) -> NetworkFailure:
    match error:
        case httpcore2.ConnectError() if isinstance(error.__context__, ssl.SSLError):
            problem = "its certificate or its encryption does not hold"
        case httpcore2.ConnectError():
            problem = "it has no address, or nobody answers there"
        case httpcore2.NetworkError():
            problem = "the connection broke"
        case _:
            problem = "it does not answer as a web server does"
    detail = f"{type(error).__name__}: {error}"[:200]
    return NetworkFailure(ErrorCode.PAGE_UNREACHABLE, provider_detail=detail, name=host, problem=problem)

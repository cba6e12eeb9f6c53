"""The guarded fetcher: returns one page of the public web, or raises an error with one sentence that says why not.

Every hop of a redirect is checked like the first address. Requests share no state: no cookies, no referrer and no
credentials. The proxy of the environment is not used, because it would connect to addresses that we refuse.
"""

from __future__ import annotations

import asyncio
import codecs
import contextlib
import re
import ssl
import time
from dataclasses import dataclass
from functools import cached_property
from types import TracebackType
from typing import Self

import httpx2

from agent.errors import ErrorCode, NetworkFailure, ToolArgumentError
from agent.fetching.guarded_transport import Guard, GuardedTransport
from agent.fetching.urls import WebUrl, refused, resolve_link, web_url

HTML = "text/html"
PDF = "application/pdf"
_HEAD_BYTES = 1024
_TEXT = re.compile(r"text/[\w.+-]+|application/(?:json|xml|[\w.-]+\+(?:json|xml))", re.ASCII)
_LOOKS_LIKE_HTML = re.compile(rb"\s*(?:<!--.*?-->\s*)?<(?:!doctype\s+html|html|head|body|title|meta)\b", re.I | re.S)
# The only parts of an unsupported media type that are quoted: our messages must not contain text of the page.
_NAMED_KINDS = frozenset({"image", "audio", "video", "font"})


def unreadable(name: str, problem: str) -> ToolArgumentError:
    """Return the error for an answer that cannot be read."""
    return ToolArgumentError(ErrorCode.PAGE_UNREADABLE, name=name, problem=problem)


def readable_type(declared: str, data: bytes, name: str) -> str:
    """Return the media type of an answer, in lower case and without parameters; if it declares none, it is sniffed.

    Text of every kind, JSON, XML and PDF can be read. Raises ToolArgumentError for other types, and when the content
    does not match the declared type. `name` is used in the error message.
    """
    head = data[:_HEAD_BYTES]
    media_type = declared.partition(";")[0].strip().lower() or _looked_at(head)
    if media_type == PDF:
        if b"%PDF-" not in head:
            raise unreadable(name, "it calls itself a PDF and is none")
        return PDF
    if not _TEXT.fullmatch(media_type):
        kind = media_type.partition("/")[0]
        raise unreadable(name, f"it is not text but {kind}" if kind in _NAMED_KINDS else "it is not text")
    if b"\0" in head:
        raise unreadable(name, "it is binary")
    return media_type


def is_html(media_type: str) -> bool:
    """Return whether the media type is that of a web page."""
    return media_type in {HTML, "application/xhtml+xml"}


def _looked_at(head: bytes) -> str:
    if head.startswith(b"%PDF-"):
        return PDF
    if _LOOKS_LIKE_HTML.match(head.removeprefix(b"\xef\xbb\xbf")):
        return HTML
    return "application/xml" if head.lstrip().startswith(b"<?xml") else "text/plain"


# The labels of the WHATWG Encoding Standard that pages use. An explicit list, because Python also has codecs that a
# page must not choose, such as punycode, utf-7 and unicode_escape.
_CODECS = {
    label: codec
    for codec, labels in {
        "utf-8": "utf-8 utf8 unicode-1-1-utf-8",
        "utf-16-le": "utf-16 utf-16le unicode",
        "utf-16-be": "utf-16be",
        "gb18030": "gb2312 gbk gb18030 gb_2312-80 x-gbk cp936 chinese",
        "big5hkscs": "big5 big5-hkscs cn-big5 x-x-big5",
        "cp1252": "iso-8859-1 iso8859-1 latin1 latin-1 ascii us-ascii windows-1252 cp1252 ansi_x3.4-1968",
        "cp1250": "windows-1250 cp1250",
        "cp1251": "windows-1251 cp1251",
        "cp1253": "windows-1253 cp1253",
        "cp1254": "windows-1254 cp1254 iso-8859-9 latin5",
        "cp1255": "windows-1255 cp1255",
        "cp1256": "windows-1256 cp1256",
        "cp1257": "windows-1257 cp1257",
        "cp1258": "windows-1258 cp1258",
        "cp874": "windows-874 tis-620 iso-8859-11",
        "cp932": "shift_jis shift-jis sjis x-sjis windows-31j ms_kanji",
        "euc_jp": "euc-jp x-euc-jp",
        "iso2022_jp": "iso-2022-jp",
        "cp949": "euc-kr ks_c_5601-1987 korean windows-949",
        "koi8_r": "koi8-r koi8",
        "koi8_u": "koi8-u",
        "mac_roman": "macintosh x-mac-roman",
        "iso8859_2": "iso-8859-2 latin2",
        "iso8859_3": "iso-8859-3",
        "iso8859_4": "iso-8859-4",
        "iso8859_5": "iso-8859-5",
        "iso8859_6": "iso-8859-6",
        "iso8859_7": "iso-8859-7",
        "iso8859_8": "iso-8859-8",
        "iso8859_10": "iso-8859-10",
        "iso8859_13": "iso-8859-13",
        "iso8859_14": "iso-8859-14",
        "iso8859_15": "iso-8859-15 latin-9",
        "iso8859_16": "iso-8859-16",
    }.items()
    for label in labels.split()
}
_MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_NAMED_INSIDE = re.compile(rb"<(?:meta|\?xml)\b[^>]*?(?:charset|encoding)\s*=\s*[\"']?([\w.:-]{1,40})", re.I)
# UTF-8 first. Strict GB 2312 requires bytes above 0xA0 in pairs, which is rare in Western text.
_GUESSES = ("utf-8", "gb2312")


def decoded(data: bytes, charset: str, *, is_markup: bool) -> str:
    """Return the text of a page; undecodable bytes become U+FFFD.

    The character set comes from the first of: a byte order mark; `charset` (from the server); the page itself, if it
    is markup; else UTF-8, GB 2312 and Windows-1252, which accepts everything, are tried. A truncated character at the
    end is dropped.
    """
    for mark, codec in _MARKS:
        if data.startswith(mark):
            return _read(data[len(mark) :], codec, "replace")
    named = _CODECS.get(charset) or (_named_inside(data) if is_markup else None)
    if named:
        return _read(data, named, "replace")
    for codec in _GUESSES:
        try:
            return _read(data, codec, "strict")
        except UnicodeDecodeError:
            continue
    return _read(data, "cp1252", "replace")


def _named_inside(data: bytes) -> str | None:
    found = _NAMED_INSIDE.search(data[:_HEAD_BYTES])
    codec = _CODECS.get(found[1].decode("ascii").lower()) if found else None
    # The declaration was readable as ASCII, so the page cannot be UTF-16.
    return "utf-8" if codec and codec.startswith("utf-16") else codec


def _read(data: bytes, codec: str, errors: str) -> str:
    # `final` is False, so a character that is cut off at the end is dropped.
    return codecs.getincrementaldecoder(codec)(errors).decode(data)


_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_HEADERS = {
    "User-Agent": "Mozilla/5.0 (compatible; Aivista)",
    "Accept": "text/html,application/xhtml+xml,text/*;q=0.9,application/json,application/xml,application/pdf",
    "Accept-Encoding": "identity",
}


@dataclass(frozen=True)
class FetchLimits:
    """The limits of time and size for a page. `overall_s` applies to all hops together."""

    connect_s: float = 5.0
    read_s: float = 8.0
    overall_s: float = 15.0
    max_bytes: int = 3_000_000
    max_hops: int = 5


@dataclass(frozen=True)
class FetchedPage:
    """The page at an address: its text in Unicode, or the bytes of a PDF.

    `url` is its address after all redirects. When `is_truncated` is set, `content` is only the beginning.
    """

    url: str
    media_type: str
    content: str | bytes
    is_truncated: bool = False


class Fetcher:
    """A fetcher of pages, used as an async context manager. One instance serves many callers at the same time."""

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
        patience = httpx2.Timeout(self._limits.read_s, connect=self._limits.connect_s, pool=self._limits.overall_s)
        self._timeout = patience.as_dict()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the transport if it was used."""
        if "_transport" in vars(self):
            await self._transport.aclose()

    @cached_property
    def _transport(self) -> GuardedTransport:
        # Created on first use, because reading the certificates takes time. No connection is reused, so one page
        # cannot influence another through an open connection.
        return GuardedTransport(self._guard, ssl_context=self._ssl_context, keeps_connections=False)

    async def fetch(self, url: str) -> FetchedPage:
        """Return the page at an address.

        Raises ToolArgumentError when the address is not allowed, the server refuses the page, or the content cannot be
        read; NetworkFailure when the host is unreachable or too slow. The message contains the requested address or
        host, but nothing that came from the server.
        """
        asked, started_s = web_url(url), time.monotonic()
        try:
            async with asyncio.timeout(self._limits.overall_s):
                return await self._fetch(asked)
        except (TimeoutError, httpx2.TimeoutException) as error:
            seconds = max(1, round(time.monotonic() - started_s))
            raise NetworkFailure(
                ErrorCode.PAGE_TOO_SLOW, provider_detail=type(error).__name__, name=asked.host, seconds=seconds
            ) from error
        except (httpx2.NetworkError, httpx2.ProtocolError, ValueError) as error:
            raise _out_of_reach(asked.host, error) from error

    async def _fetch(self, asked: WebUrl) -> FetchedPage:
        place, answer = asked, await self._hop(asked, asked.host)
        try:
            for _ in range(self._limits.max_hops):
                if isinstance(answer, FetchedPage):
                    break
                place = resolve_link(place, answer)
                answer = await self._hop(place, asked.host)
        except ToolArgumentError as error:
            if error.code is ErrorCode.ADDRESS_REFUSED:
                raise refused(asked.host, "it leads on to an address that is none") from error
            raise
        if isinstance(answer, FetchedPage):
            return answer
        raise unreadable(asked.host, "it leads on and on, with too many redirects")

    async def _hop(self, place: WebUrl, name: str) -> FetchedPage | str:
        """Return the page, or the location of a redirect as it was sent; `name` is used in error messages."""
        sent = httpx2.Request(
            "GET",
            f"{place.scheme}://{place.authority}",
            headers={"Host": place.authority, **_HEADERS},
            # Send exactly the checked target: httpx2 would encode the path of a URL again.
            extensions={"timeout": self._timeout, "target": place.target.encode()},
        )
        response = await self._transport.handle_async_request(sent)
        async with contextlib.aclosing(response), contextlib.aclosing(response.aiter_raw()) as chunks:
            if response.status_code in _REDIRECTS:
                return _header(response, "location")
            if not 200 <= response.status_code < 300:
                raise ToolArgumentError(ErrorCode.PAGE_REFUSED, name=name, status=response.status_code)
            if _header(response, "content-encoding").strip().lower() not in ("", "identity"):
                raise unreadable(name, "it is packed, which was not asked for")
            data = bytearray()
            async for chunk in chunks:
                data += chunk
                if len(data) > self._limits.max_bytes:
                    break
        read = bytes(data[: self._limits.max_bytes])
        return _page(place, _header(response, "content-type"), read, len(data) > len(read), name)


def _header(response: httpx2.Response, name: str) -> str:
    """Return the first header with this name, or ""."""
    return next(iter(response.headers.get_list(name)), "")


def _page(place: WebUrl, declared: str, data: bytes, is_cut: bool, name: str) -> FetchedPage:
    media_type = readable_type(declared, data, name)
    if media_type == PDF:
        if is_cut:
            raise unreadable(name, "the PDF is too large")
        return FetchedPage(str(place), media_type, data)
    named = re.search(r";\s*charset\s*=\s*[\"']?([\w.:-]{1,40})", declared, re.ASCII | re.IGNORECASE)
    is_markup = is_html(media_type) or media_type.endswith(("/xml", "+xml"))
    text = decoded(data, named[1].lower() if named else "", is_markup=is_markup)
    return FetchedPage(str(place), media_type, text, is_cut)


def _out_of_reach(host: str, error: Exception) -> NetworkFailure:
    match error:
        case httpx2.ConnectError() if error.__cause__ and isinstance(error.__cause__.__context__, ssl.SSLError):
            problem = "its certificate or its encryption does not hold"
        case httpx2.ConnectError():
            problem = "it has no address, or nobody answers there"
        case httpx2.NetworkError():
            problem = "the connection broke"
        case _:
            problem = "it does not answer as a web server does"
    detail = f"{type(error).__name__}: {error}"[:200]
    return NetworkFailure(ErrorCode.PAGE_UNREACHABLE, provider_detail=detail, name=host, problem=problem)

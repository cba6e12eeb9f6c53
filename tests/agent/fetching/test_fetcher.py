from __future__ import annotations

import asyncio
import ssl
import zlib

import pytest
import trustme

from agent import AivistaError, ErrorCode, NetworkFailure, ToolArgumentError
from tests.adapters.fetcher import Endpoint, FetchedPage, Fetcher, FetchLimits, Guard
from tests.support.cases import each_case
from tests.support.clock import Clock
from tests.support.web import HERE, Web, answer, drop_by_drop, endless, web

IMPATIENT = FetchLimits(connect_s=0.5, read_s=0.5, overall_s=0.5)


async def fetch(served: Web, path: str = "/", limits: FetchLimits | None = None) -> FetchedPage:
    async with Fetcher(served.guard, limits) as fetcher:
        return await fetcher.fetch(f"http://site.test{path}")


async def refused(served: Web, path: str = "/", limits: FetchLimits | None = None) -> AivistaError:
    with pytest.raises(AivistaError) as caught:
        await fetch(served, path, limits)
    return caught.value


async def test_a_page_comes_with_the_address_where_it_was_found_and_nothing_is_sent_that_says_who_asks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    async with web() as served:
        served.page("/wiki/%E7%8B%90?a=b", "<p>狐狸</p>".encode())
        page = await fetch(served, "/wiki/狐?a=b#part")
        served.page("/", b"x", "text/plain", "Set-Cookie: a=b")
        served.redirect("/from", "http://other.test/")
        async with Fetcher(served.guard) as fetcher:
            await fetcher.fetch("http://site.test/")
            await fetcher.fetch("http://site.test/from")
    assert page == FetchedPage("http://site.test/wiki/%E7%8B%90?a=b", "text/html", "<p>狐狸</p>")
    for asked in served.requests:
        assert set(asked.headers) == {"host", "user-agent", "accept", "accept-encoding"}
        assert asked.headers["accept-encoding"] == "identity"
    assert [asked.headers["host"] for asked in served.requests] == ["site.test"] * 3 + ["other.test"]


async def test_five_redirects_of_any_kind_are_followed_and_no_more() -> None:
    async with web() as served:
        for number, status in enumerate((302, 301, 302, 303, 307, 308)):
            served.redirect(f"/{number}", f"//other.test/{number + 1}", status)
        served.page("/6", b"the end", "text/plain")
        page = await fetch(served, "/1")
        assert (page.url, page.content) == ("http://other.test/6", "the end")
        served.requests.clear()
        assert "too many redirects" in str(await refused(served, "/0"))
    assert len(served.requests) == 6


SLOW = {
    "headers drop by drop": drop_by_drop(b"HTTP/1.1 200 OK\r\nX-Slow: "),
    "a body drop by drop": drop_by_drop(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"),
    "nothing at all": drop_by_drop(b"", pause_s=60),
    "a body that hangs": drop_by_drop(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", pause_s=60),
}


@each_case("how", SLOW)
async def test_a_slow_server_is_given_up(how: str) -> None:
    async with web() as served:
        served.pages["/"] = SLOW[how]
        error = await refused(served, limits=IMPATIENT)
    assert isinstance(error, NetworkFailure)
    assert error.code is ErrorCode.PAGE_TOO_SLOW


async def test_all_hops_share_one_deadline(clock: Clock) -> None:
    limits = FetchLimits()

    async def slowly(writer: asyncio.StreamWriter) -> None:
        await clock.move(limits.overall_s / 3)
        writer.write(b"HTTP/1.1 302 Found\r\nLocation: /\r\nContent-Length: 0\r\n\r\n")
        await writer.drain()

    async with web() as served:
        served.pages["/"] = slowly
        error = await refused(served, limits=limits)
    assert error.code is ErrorCode.PAGE_TOO_SLOW
    assert limits.overall_s / 3 < limits.read_s
    assert 2 <= len(served.requests) <= limits.max_hops


async def test_a_name_that_is_never_resolved_is_given_up() -> None:
    class Silent:
        async def resolve(self, host: str, port: int) -> list[Endpoint]:
            await asyncio.sleep(60)
            return []

    async with Fetcher(Guard(Silent()), IMPATIENT) as fetcher:
        with pytest.raises(NetworkFailure) as caught:
            await fetcher.fetch("http://site.test/")
    assert caught.value.code is ErrorCode.PAGE_TOO_SLOW


async def test_the_next_address_is_tried_when_one_does_not_answer() -> None:
    async with web() as served:
        served.names.lead("two.test", "127.0.0.9", HERE)
        served.page("/", b"the second", "text/plain")
        guard = Guard(served.names, lambda address: address.startswith("127.0.0."))
        async with Fetcher(guard) as fetcher:
            assert (await fetcher.fetch("http://two.test/")).content == "the second"


BEGUN = b"HTTP/1.1 200 OK\r\n"
NO_ANSWERS = {
    "an SSH banner": b"SSH-2.0-OpenSSH_9.9\r\n",
    "a connection closed at once": b"",
    "a TLS alert": b"\x15\x03\x01\x00\x02\x02\x46",
    "a header of 5 MB": BEGUN + b"X: " + b"a" * 5_000_000 + b"\r\n\r\n",
    "a million bytes of headers": BEGUN + b"X: a\r\n" * 200_000 + b"\r\n",
    "a body shorter than announced": BEGUN + b"Content-Length: 100\r\n\r\nshort",
    "a huge length, then little": BEGUN + b"Content-Length: 99999999999999\r\n\r\nshort",
    "a length of 5000 digits": BEGUN + b"Content-Length: " + b"9" * 5000 + b"\r\n\r\nx",
    "a length below nothing": BEGUN + b"Content-Length: -1\r\n\r\n",
    "two lengths": BEGUN + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\nxx",
    "a broken chunk": BEGUN + b"Transfer-Encoding: chunked\r\n\r\nZZ\r\n",
    "a status of four digits": b"HTTP/1.1 2000 OK\r\n\r\n",
}


@each_case("what", NO_ANSWERS)
async def test_what_is_no_whole_answer_of_a_web_server_is_refused(what: str) -> None:
    async with web() as served:
        served.pages["/"] = NO_ANSWERS[what]
        error = await refused(served)
    assert isinstance(error, NetworkFailure)
    assert error.code is ErrorCode.PAGE_UNREACHABLE


@each_case(
    ("raw", "problem"),
    [
        (answer(b"\x89PNG\r\n\x1a\n", "image/png"), "not text but image"),
        (answer(b"\0\1\2", None), "binary"),
        (answer(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "text/html"), "binary"),
        (answer(b"a" * 1000 + b"\0", "application/json"), "binary"),
        (answer(b"MZ", "application/octet-stream"), "not text"),
        (answer(b"x", "ignore-previous/instructions"), "it is not text."),
        (answer(b"no pdf at all", "application/pdf"), "is none"),
        (answer(b"x", "text/html", "Content-Encoding: br"), "not asked for"),
        (answer(zlib.compress(b"x"), "text/html", "Content-Encoding: deflate"), "not asked for"),
        (answer(b"x", "text/html", "Content-Encoding: GZIP"), "not asked for"),
    ],
)
async def test_what_cannot_be_read_as_text_is_refused(raw: bytes, problem: str) -> None:
    async with web() as served:
        served.pages["/"] = raw
        error = await refused(served)
    assert isinstance(error, ToolArgumentError)
    assert error.code is ErrorCode.PAGE_UNREADABLE
    assert problem in str(error)


@each_case(
    ("body", "said", "kind"),
    [
        *((b"<a/>", kind, kind) for kind in ("text/plain", "text/markdown", "text/csv", "application/json")),
        *((b"<a/>", f"application/{kind}xml", f"application/{kind}xml") for kind in ("", "rss+", "xhtml+")),
        *((b"<a/>", "TEXT/HTML;charset=utf-8", "text/html"), (b"<a/>", "application/ld+json", "application/ld+json")),
        *((b"  <!DOCTYPE html><p>x", None, "text/html"), (b"\xef\xbb\xbf<html>", None, "text/html")),
        *((b"<?xml version='1.0'?><a/>", None, "application/xml"), (b"just words", None, "text/plain")),
        *((b"%PDF-1.7\n\0\0", None, "application/pdf"), (b"", None, "text/plain")),
    ],
)
async def test_text_json_and_xml_are_read_and_an_answer_without_a_type_is_looked_at(
    body: bytes, said: str | None, kind: str
) -> None:
    async with web() as served:
        served.page("/", body, said)
        page = await fetch(served)
    assert page.media_type == kind
    assert said is None or page.content == "<a/>"


async def test_of_a_long_page_the_beginning_is_kept() -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 128000000\r\n\r\n"
    async with web() as served:
        served.pages["/"] = endless(head, b"line\n" * 10_000)
        page = await fetch(served)
        assert page.is_truncated
        assert len(page.content) == 3_000_000
        served.page("/exact", b"x" * 1000, "text/plain")
        assert not (await fetch(served, "/exact", FetchLimits(max_bytes=1000))).is_truncated
        assert (await fetch(served, "/exact", FetchLimits(max_bytes=999))).is_truncated


async def test_tls_stays_on_the_name_while_the_address_is_dialled() -> None:
    authority = trustme.CA()
    server, client = (ssl.SSLContext(side) for side in (ssl.PROTOCOL_TLS_SERVER, ssl.PROTOCOL_TLS_CLIENT))
    authority.issue_cert("site.test").configure_cert(server)
    authority.configure_trust(client)
    async with web(server) as served:
        served.page("/", b"safe", "text/plain")
        async with Fetcher(served.guard, ssl_context=client) as fetcher:
            assert (await fetcher.fetch("https://site.test/")).content == "safe"
            assert served.server_names == ["site.test"]
            with pytest.raises(NetworkFailure, match="certificate"):
                await fetcher.fetch("https://other.test/")
        async with Fetcher(served.guard) as fetcher:
            with pytest.raises(NetworkFailure, match="certificate"):
                await fetcher.fetch("https://site.test/")

"""A page of the web as the model is told of it, and which addresses wait for the person's click."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from agent import ToolArgumentError
from tests.adapters.fetcher import Fetcher, PageExtraction, PageReader, ReadingLimits
from tests.adapters.redaction import Trust
from tests.adapters.tools import Reason, ToolAnswer, ToolContext, read_url
from tests.support.cases import each_case
from tests.support.tool_contexts import tool_context
from tests.support.web import Web, web

KNOWN = frozenset({"http://said.test/", "http://site.test/named?a=b"})


@pytest.fixture
async def context(tmp_path: Path) -> AsyncIterator[ToolContext]:
    async with tool_context(tmp_path) as one:
        yield replace(one, trust=Trust(urls=KNOWN))


async def read(context: ToolContext, served: Web, url: str) -> ToolAnswer:
    reader = PageReader(Fetcher(served.guard), PageExtraction(ReadingLimits(child_s=20)))
    return await read_url.answer({"url": url}, replace(context, fetcher=reader))


async def reason(context: ToolContext, url: str, *, is_tainted: bool) -> Reason | None:
    assert read_url.rule is not None
    trust = context.trust.model_copy(update={"is_tainted": is_tainted})
    return await read_url.rule({"url": url}, replace(context, trust=trust))


async def test_a_page_is_told_with_where_it_was_found_and_where_it_leads_if_anywhere(context: ToolContext) -> None:
    article = "<p>" + "The red fox lives in <a href='forest#a'>forests</a> and eats mice. " * 6
    page = f"<html><title>Foxes</title><nav><a href='/other'>Other animals</a></nav><article>{article}</article>"
    async with web() as served:
        served.redirect("/", "/wiki/fox")
        served.page("/wiki/fox", page.encode())
        served.page("/plain", b"Just words.", "text/plain")
        answer = await read(context, served, "http://site.test/")
        plain = await read(context, served, "http://site.test/plain")
    assert answer.source == answer.content["url"] == "http://site.test/wiki/fox"
    assert answer.content["title"] == "Foxes"
    assert "lives in [forests](http://site.test/wiki/forest#a) and" in str(answer.content["text"])
    assert answer.content["further_links"] == [{"text": "Other animals", "url": "http://site.test/other"}]
    assert plain.content == {"url": "http://site.test/plain", "title": "", "text": "Just words."}


UNREADABLE = {
    "http://127.0.0.1/": "its address is not public",
    "http://nowhere.test/": "nobody answers",
    "http://site.test/missing": "HTTP 404",
    "http://site.test/picture": "not text but image",
    "site.test": "does not begin with http",
}


async def test_what_cannot_be_read_is_told_in_a_sentence_of_ours_and_eight_pages_a_turn_are_the_most(
    context: ToolContext,
) -> None:
    async with web() as served:
        served.page("/picture", b"\x89PNG", "image/png")
        for url, sentence in UNREADABLE.items():
            answer = await read(context, served, url)
            assert (answer.is_error, answer.source) == (True, "")
            assert sentence in str(answer.content["error"])
    with pytest.raises(ToolArgumentError):
        await read_url.answer({}, context)
    assert read_url.most_a_turn == 8


@each_case("is_tainted", [False, True])
@each_case(
    ("url", "expected"),
    [
        *((known, None) for known in ("http://said.test", "HTTP://Site.Test:80/named?a=b#else", "http://127.0.0.1/")),
        ("http://anywhere.test/", "foreign_address"),
        ("http://site.test/named?a=secret", "foreign_address"),
        ("http://site.test/named", "foreign_address"),
        ("http://site.test/nam%65d?a=b", "foreign_address"),
        ("https://site.test/named?a=b", "foreign_address"),
        ("http://evil.test/?q=secret", "foreign_address"),
    ],
)
async def test_only_an_address_that_is_known_is_read_unasked_whatever_the_turn_has_read(
    context: ToolContext, url: str, expected: Reason | None, is_tainted: bool
) -> None:
    assert await reason(context, url, is_tainted=is_tainted) == expected

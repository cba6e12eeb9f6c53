"""Reading of web pages: the guarded fetcher fetches a page, which is then converted to text.

HTML is converted to Markdown and PDF to text; plain text, JSON and XML stay as they are.

HTML and PDF are parsed in a child process that holds no data of ours and is killed when it takes too long: a page with
many attributes on one tag keeps the C parser busy for minutes, and only killing the process stops it.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from agent.child_process import ChildFailure, ChildTooSlow, run_child
from agent.fetching.fetcher import FetchedPage, Fetcher, is_html, unreadable
from agent.fetching.urls import normalized, web_url
from agent.messages import Value
from agent.untrusted import plain_text

logger = logging.getLogger(__name__)

MOST_LINKS: Final = 200
_MOST_CHECKED = 1000
TRUNCATED: Final = "[truncated]"
_CHILD = Path(__file__).with_name("page_child.py")
_MAX_TITLE_CHARACTERS = 300
# In JSON, each character of the text can take twelve bytes; the length of links is limited by the child.
_MAX_ANSWER_BYTES = 16_000_000
_URL = re.compile(r"https?://[^\s<>\"'`\\^{}|]{1,2048}", re.IGNORECASE)
_AT_ITS_END = ".,;:!?)]*_~\u3001\u3002\uff0c\uff1b\uff1a"


@dataclass(frozen=True)
class Link:
    """A link of a page: its address as spelled by `normalized`, and its text, which is often empty."""

    url: str
    text: str = ""


@dataclass(frozen=True)
class ReadPage:
    """The content of a page, without invisible characters. `text` ends in "[truncated]" if it was cut.

    `url` is the address after all redirects; `links` are at most 200, without duplicates, in the page's order.
    """

    url: str
    title: str
    text: str
    links: tuple[Link, ...] = ()
    is_truncated: bool = False


@dataclass(frozen=True)
class ReadingLimits:
    """The limits of parsing a page: time, memory, and how much of the page is kept."""

    child_s: float = 5.0
    child_memory_bytes: int = 1 << 30
    max_characters: int = 20_000
    max_pdf_pages: int = 100
    children: int = 2


class _Answer(Value):
    """The child's answer: the content of the page, or the problem."""

    text: str = ""
    title: str = ""
    links: tuple[tuple[str, str], ...] = ()
    is_truncated: bool = False
    problem: str = ""


class PageExtraction:
    """A converter of fetched pages; a few are converted at the same time."""

    def __init__(self, limits: ReadingLimits | None = None) -> None:
        self._limits = limits or ReadingLimits()
        self._places = asyncio.Semaphore(self._limits.children)

    async def read(self, page: FetchedPage) -> ReadPage:
        """Return the content of a page. Raises ToolArgumentError when it cannot be parsed, or not in time."""
        match page.content:
            case bytes():
                answer = await self._in_child(page, "pdf", page.content)
            case str() if is_html(page.media_type):
                answer = await self._in_child(page, "html", page.content.encode("utf-8", "replace"))
            case str() as text:
                found = islice(_URL.finditer(text), _MOST_CHECKED)
                answer = _Answer(text=text, links=tuple((one[0].rstrip(_AT_ITS_END), "") for one in found))
        # Cut before and after cleaning, so that of a page of three megabytes only a small part is processed.
        limit = self._limits.max_characters
        whole = answer.text
        text = plain_text(whole[: 2 * limit]).strip()
        is_cut = page.is_truncated or answer.is_truncated or len(text) > limit or len(whole) > 2 * limit
        if is_cut:
            text = f"{text[:limit].rstrip()}\n\n{TRUNCATED}"
        title = " ".join(plain_text(answer.title[: 4 * _MAX_TITLE_CHARACTERS]).split())
        return ReadPage(page.url, title[:_MAX_TITLE_CHARACTERS], text, _links(answer.links), is_cut)

    async def _in_child(self, page: FetchedPage, kind: str, data: bytes) -> _Answer:
        limits, name = self._limits, web_url(page.url).host
        job = {
            "kind": kind,
            "url": page.url,
            "paths": _packages(),
            "max_characters": 2 * limits.max_characters,
            "max_pages": limits.max_pdf_pages,
            "memory_bytes": limits.child_memory_bytes,
            "cpu_s": int(limits.child_s) + 2,
        }
        work = json.dumps(job).encode() + b"\n" + data
        try:
            async with self._places:
                written = await run_child(_CHILD, work, limit_s=limits.child_s, max_answer_bytes=_MAX_ANSWER_BYTES)
            answer = _Answer.model_validate_json(written)
        except ChildTooSlow:
            raise unreadable(name, "it takes too long to take apart") from None
        except (ChildFailure, ValidationError) as error:
            logger.warning("The child that reads pages failed: %s", type(error).__name__, exc_info=error)
            raise unreadable(name, "it breaks what takes it apart") from None
        if answer.problem:
            raise unreadable(name, answer.problem)
        return answer


def _packages() -> list[str]:
    """Return the import path for the child: our own `sys.path`, but never the current folder."""
    return [path for path in sys.path if path and Path(path).is_dir()]


def _links(found: Iterable[tuple[str, str]]) -> tuple[Link, ...]:
    links: dict[str, Link] = {}
    # Each check takes time on the event loop, also of an address that is refused.
    for url, text in islice(found, _MOST_CHECKED):
        spelled = normalized(url)
        if spelled and spelled not in links:
            links[spelled] = Link(spelled, plain_text(text).strip())
        if len(links) == MOST_LINKS:
            break
    return tuple(links.values())


class PageReader:
    """The reader of web pages for one studio."""

    def __init__(self, fetcher: Fetcher | None = None, extraction: PageExtraction | None = None) -> None:
        self._fetcher = fetcher or Fetcher()
        self._extraction = extraction or PageExtraction()

    async def read(self, url: str) -> ReadPage:
        """Return the content of the page at an address.

        Raises ToolArgumentError when the address is not allowed or the page cannot be read, and NetworkFailure when it
        is unreachable or too slow; the message contains no text of the page.
        """
        return await self._extraction.read(await self._fetcher.fetch(url))

    async def aclose(self) -> None:
        """Close every connection."""
        await self._fetcher.aclose()

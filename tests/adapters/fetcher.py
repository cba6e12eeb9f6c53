"""Pages of the web, fetched with care."""

from __future__ import annotations

from agent.fetching.addresses import is_public
from agent.fetching.charsets import decoded
from agent.fetching.children import ChildFailure, ChildTooSlow, run_child
from agent.fetching.dialling import Endpoint, Guard, GuardedBackend, SystemResolver
from agent.fetching.extraction import Link, PageExtraction, ReadingLimits, ReadPage
from agent.fetching.fetcher import FetchedPage, Fetcher, FetchLimits
from agent.fetching.reading import PageReader
from agent.fetching.transport import GuardedTransport
from agent.fetching.urls import MAX_URL_CHARACTERS, followed, normalized, web_url

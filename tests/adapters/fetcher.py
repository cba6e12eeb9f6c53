"""Pages of the web, fetched with care."""

from __future__ import annotations

from agent.child_process import ChildFailure, ChildTooSlow, run_child
from agent.fetching.fetcher import FetchedPage, Fetcher, FetchLimits, decoded
from agent.fetching.guarded_transport import Endpoint, Guard, GuardedBackend, GuardedTransport, SystemResolver
from agent.fetching.page_reader import Link, PageExtraction, PageReader, ReadingLimits, ReadPage
from agent.fetching.urls import MAX_URL_CHARACTERS, is_public, normalized, resolve_link, web_url

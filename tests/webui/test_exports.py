"""Taking archives in where there is not room for all of it: nothing is written that the disk has no reserve for."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import httpx
from starlette.applications import Starlette

from agent import OPERATOR, Settings, Studio
from tests.adapters.archives import ArchiveLimits
from webui.features.conversations import export_routes
from webui.http.sessions import COOKIE, Sessions
from webui.words import load_words

ZIP, SESSIONS = {"Content-Type": "application/zip"}, Sessions(b"s" * 32, is_shared=True)


def browser(studio: Studio, owner: str | None = None, limits: ArchiveLimits | None = None) -> httpx.AsyncClient:
    app = Starlette(routes=export_routes(lambda: studio, SESSIONS, limits, lambda folder: 1 << 30))
    cookies = {COOKIE: SESSIONS.new_cookie(owner)}
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1", cookies=cookies)


async def pieces(size: int) -> AsyncIterator[bytes]:
    for _ in range(64):
        yield b"x" * (size // 64)


async def test_what_leaves_no_reserve_or_is_too_large_is_refused_before_and_while_it_comes(tmp_path: Path) -> None:
    size = 4 << 20
    async with Studio(Settings(home=tmp_path)) as studio:
        # The operator's reserve is smaller.
        for owner, said in ((None, "error.disk_full"), (OPERATOR, "error.archive_unreadable")):
            async with browser(studio, owner) as page:
                for content in (b"x" * size, pieces(size)):
                    answer = await page.post("/import", content=content, headers=ZIP)
                    assert answer.json()["text"] == load_words("en")(said)
        async with browser(studio, limits=ArchiveLimits(archive_bytes=1000)) as page:
            for content in (b"x" * 1024, pieces(1024)):
                assert (await page.post("/import", content=content, headers=ZIP)).status_code == 413
    assert [path for folder in ("exports", "imports") for path in (tmp_path / folder).glob("*")] == []

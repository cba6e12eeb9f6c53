"""Conversations as files over HTTP: for their owner, under a good name, and none is left on the disk."""

from __future__ import annotations

import io
import zipfile
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware

from agent.archive.format import Limits
from agent.settings import OPERATOR, Settings
from agent.studio import Studio, TurnRequest
from webui.exports import export_routes
from webui.guard import Guard, HostRules
from webui.sessions import COOKIE, LANGUAGE_COOKIE, Sessions
from webui.words import load_words

ZIP = {"Content-Type": "application/zip"}


@pytest.fixture
async def studio(tmp_path: Path) -> AsyncIterator[Studio]:
    async with Studio(Settings(home=tmp_path)) as opened:
        yield opened


class Browser:
    """A visitor of a shared link, with a cookie of their own unless told otherwise."""

    def __init__(
        self,
        studio: Studio,
        limits: Limits | None = None,
        *,
        has_cookie: bool = True,
        owner: str | None = None,
        free_bytes: int = 1 << 40,
    ) -> None:
        self.sessions = Sessions(b"s" * 32, is_shared=True)
        cookie = self.sessions.new_cookie(owner)
        self.owner = owner or self.sessions.owner(self.sessions.token_of(cookie))
        app = Starlette(
            routes=export_routes(lambda: studio, self.sessions, limits, lambda folder: free_bytes),
            middleware=[Middleware(Guard, rules=HostRules(is_loopback=True), sessions=self.sessions)],
        )
        self.http = httpx.AsyncClient(
            transport=httpx.ASGITransport(app),
            base_url="http://127.0.0.1:7860",
            cookies={COOKIE: cookie} if has_cookie else {},
        )


async def painted(studio: Studio, owner: str, text: str = "draw a red fox in the snow") -> str:
    conversation = await studio.new_conversation(owner)
    async for _ in studio.run_turn(conversation.id, TurnRequest(text), owner=owner):
        pass
    return conversation.id


def left_over(studio: Studio) -> list[Path]:
    return [path for folder in ("exports", "imports") for path in (studio.settings.home / folder).glob("*")]


async def test_an_archive_is_saved_under_a_good_name_and_taken_in_again(studio: Studio) -> None:
    ann = Browser(studio)
    key = await painted(studio, ann.owner)
    sent = await ann.http.get(f"/export/{key}")
    assert sent.status_code == 200
    assert sent.headers["cache-control"] == "no-store"
    assert sent.headers["content-disposition"].startswith('attachment; filename="aivista-')
    assert sent.headers["content-type"] == "application/zip"
    answer = (await ann.http.post("/import", content=sent.content, headers=ZIP)).json()
    assert answer["isDone"]
    assert answer["text"] == "1 conversation came in."
    assert len((await studio.conversation(answer["conversation"], ann.owner)).pictures) == 1
    assert left_over(studio) == []


async def test_a_web_page_holds_its_pictures_and_markdown_has_them_beside_it(studio: Studio) -> None:
    ann = Browser(studio)
    key = await painted(studio, ann.owner)
    page = await ann.http.get(f"/export/{key}?kind=html")
    assert page.headers["content-disposition"].startswith("attachment")
    assert page.headers["content-security-policy"] == "default-src 'none'; sandbox"
    assert page.text.count('<img src="data:image/') == 1
    assert "draw a red fox in the snow" in page.text
    folder = zipfile.ZipFile(io.BytesIO((await ann.http.get(f"/export/{key}?kind=md")).content))
    [picture] = [name for name in folder.namelist() if name != "conversation.md"]
    assert f"]({picture})" in folder.read("conversation.md").decode()
    assert folder.read(picture)
    assert left_over(studio) == []


async def test_markdown_without_a_picture_is_one_file(studio: Studio) -> None:
    ann = Browser(studio)
    sent = await ann.http.get(f"/export/{await painted(studio, ann.owner, 'hello')}?kind=md")
    assert '.md"' in sent.headers["content-disposition"]
    assert sent.text.startswith("# ")


async def test_all_conversations_go_into_one_archive(studio: Studio) -> None:
    ann = Browser(studio)
    for text in ("hello", "hello again"):
        await painted(studio, ann.owner, text)
    sent = await ann.http.get("/export")
    answer = (await ann.http.post("/import", content=sent.content, headers=ZIP)).json()
    assert answer["text"] == "2 conversations came in."


async def test_nobody_gets_what_is_somebody_elses(studio: Studio) -> None:
    ann, bob = Browser(studio), Browser(studio)
    key = await painted(studio, ann.owner)
    refused = await bob.http.get(f"/export/{key}")
    assert refused.status_code == 404
    assert refused.headers["content-type"].startswith("text/plain")
    stranger = Browser(studio, has_cookie=False)
    assert (await stranger.http.get(f"/export/{key}")).status_code == 403
    assert (await stranger.http.get("/export")).status_code == 403
    assert (await stranger.http.post("/import", content=b"", headers=ZIP)).status_code == 403


async def test_another_site_can_send_nothing(studio: Studio) -> None:
    ann = Browser(studio)
    foreign = await ann.http.post("/import", content=b"x", headers={**ZIP, "Origin": "https://evil.example"})
    assert foreign.status_code == 403
    form = await ann.http.post("/import", content=b"x", headers={"Content-Type": "text/plain"})
    assert form.status_code == 403


async def test_what_is_no_archive_is_refused_in_the_visitors_language(studio: Studio) -> None:
    ann = Browser(studio)
    ann.http.cookies.set(LANGUAGE_COOKIE, "zh-CN")
    refused = await ann.http.post("/import", content=b"this is no archive", headers=ZIP)
    answer = refused.json()
    assert refused.status_code == 422
    assert not answer["isDone"]
    assert answer["text"] == load_words("zh-CN")("error.archive_unreadable")
    assert left_over(studio) == []


async def test_what_is_too_large_is_refused_before_and_while_it_arrives(studio: Studio) -> None:
    ann = Browser(studio, Limits(archive_bytes=1000))
    announced = await ann.http.post("/import", content=b"x" * 1001, headers=ZIP)

    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(11):
            yield b"x" * 100

    streamed = await ann.http.post("/import", content=pieces(), headers=ZIP)
    assert (announced.status_code, streamed.status_code) == (413, 413)
    assert announced.json()["text"] == streamed.json()["text"]
    assert left_over(studio) == []


async def test_a_visitors_archive_may_be_smaller_than_the_operators(studio: Studio) -> None:
    announced = {**ZIP, "Content-Length": str(257 << 20)}
    refused = await Browser(studio).http.post("/import", content=b"x", headers=announced)
    assert refused.status_code == 413
    assert "256 MB" in refused.json()["text"]
    taken = await Browser(studio, owner=OPERATOR).http.post("/import", content=b"x", headers=announced)
    assert taken.json()["text"] == load_words("en")("error.archive_unreadable")


@pytest.mark.parametrize("is_announced", [True, False])
async def test_an_archive_that_leaves_the_disk_no_reserve_is_not_taken_in(studio: Studio, is_announced: bool) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(4):
            yield b"x" * (1 << 20)

    def content() -> bytes | AsyncIterator[bytes]:
        return b"x" * (4 << 20) if is_announced else pieces()

    ann = Browser(studio, free_bytes=1 << 30)
    refused = await ann.http.post("/import", content=content(), headers=ZIP)
    assert refused.json()["text"] == load_words("en")("error.disk_full")
    # There is enough for whoever runs the studio.
    own = Browser(studio, owner=OPERATOR, free_bytes=1 << 30)
    taken = await own.http.post("/import", content=content(), headers=ZIP)
    assert taken.json()["text"] == load_words("en")("error.archive_unreadable")
    assert left_over(studio) == []

"""The addresses of the files panel over a real studio: each owner's files alone, and every answer readable."""

from __future__ import annotations

import io
import zipfile
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware

from agent.errors import RequestRefused
from agent.settings import Settings
from agent.studio import Studio
from webui.file_routes import Bin, file_routes
from webui.guard import Guard, HostRules
from webui.sessions import COOKIE, Sessions

BEGIN = "http://127.0.0.1:7860/aivista/files"
PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 20


@dataclass(frozen=True)
class Desk:
    """Somebody's browser at a studio, with a conversation of theirs."""

    client: httpx.AsyncClient
    studio: Studio
    conversation: str

    async def get(self, path: str, **asked: str) -> httpx.Response:
        return await self.client.get(f"{self.conversation}/{path}", params=asked)

    async def post(self, path: str, **body: Any) -> httpx.Response:
        return await self.client.post(f"{self.conversation}/{path}", json=body)

    async def write(self, name: str, text: str, version: int | None = None) -> dict[str, Any]:
        answer = await self.post("write", name=name, text=text, version=version)
        assert answer.status_code == 200, answer.text
        file: dict[str, Any] = answer.json()["file"]
        return file

    async def upload(self, name: str, data: bytes, **more: str) -> httpx.Response:
        return await self.client.post(f"{self.conversation}/upload", params={"name": name, **more}, content=data)

    async def names(self) -> list[str]:
        return [one["name"] for one in (await self.get("list")).json()["files"]]


def browser(studio: Studio, sessions: Sessions, cookie: str | None, language: str = "en") -> httpx.AsyncClient:
    app = Starlette(
        routes=file_routes(lambda: studio, sessions),
        middleware=[Middleware(Guard, rules=HostRules(is_loopback=True), sessions=sessions)],
    )
    return httpx.AsyncClient(
        transport=httpx.ASGITransport(app),
        base_url="http://127.0.0.1:7860/aivista/files/",
        cookies={COOKIE: cookie} if cookie is not None else {},
        headers={"Accept-Language": language},
    )


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(home=tmp_path / "home", retry_budget_s=0)


@pytest.fixture
async def desk(settings: Settings) -> AsyncIterator[Desk]:
    sessions = Sessions(b"s" * 32)
    async with Studio(settings) as studio, browser(studio, sessions, sessions.new_cookie()) as client:
        yield Desk(client, studio, (await studio.new_conversation()).id)


async def test_a_text_is_saved_and_read_again(desk: Desk) -> None:
    saved = await desk.write("notes/狐.py", "print('rot')\r\n", 0)
    assert saved.items() >= {"name": "notes/狐.py", "size": 14, "by": "person", "language": "python"}.items()
    read = (await desk.get("read", name="notes/狐.py")).json()
    assert (read["kind"], read["text"], read["file"]) == ("text", "print('rot')\r\n", saved)
    assert (await desk.get("list")).json() == {"files": [saved]}


async def test_what_was_changed_meanwhile_is_not_written_over(desk: Desk) -> None:
    first = await desk.write("plan.md", "mine", 0)
    await desk.studio.workspace(desk.conversation).write("plan.md", "the agent's", by="agent")
    late = await desk.post("write", name="plan.md", text="mine again", version=first["version"])
    assert late.status_code == 409
    assert late.json()["code"] == "file_changed"
    assert "changed or deleted meanwhile" in late.json()["error"]
    compared = (await desk.post("compare", name="plan.md", text="mine again\n")).json()["html"]
    assert "<del>− mine again</del>" in compared
    assert "<ins>+ the agent&#x27;s</ins>" in compared


async def test_pictures_are_shown_by_their_bytes_and_all_else_is_kept(desk: Desk) -> None:
    await desk.upload("photo.txt", PNG)
    await desk.upload("evil.png", b"<script>alert(1)</script>")
    shown, kept = await desk.get("raw", name="photo.txt"), await desk.get("raw", name="evil.png")
    assert (shown.headers["content-type"], "content-disposition" in shown.headers) == ("image/png", False)
    assert kept.headers["content-type"] == "application/octet-stream"
    assert kept.headers["content-disposition"].startswith("attachment;")
    for answer in (shown, kept):
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "sandbox" in answer.headers["content-security-policy"]
    taken = await desk.get("raw", name="photo.txt", download="1")
    assert (taken.content, taken.headers["content-type"]) == (PNG, "application/octet-stream")


async def test_a_name_of_any_script_is_downloaded_under_it(desk: Desk) -> None:
    await desk.write("notes/狐 rot.md", "x", 0)
    answer = await desk.get("raw", name="notes/狐 rot.md", download="1")
    assert answer.headers["content-disposition"] == (
        "attachment; filename=\"_ rot.md\"; filename*=UTF-8''%E7%8B%90%20rot.md"
    )


async def test_an_upload_replaces_only_when_it_is_told_to(desk: Desk) -> None:
    assert (await desk.upload("a.bin", b"\0one")).status_code == 200
    assert (await desk.upload("a.bin", b"\0two")).json()["code"] == "file_changed"
    assert (await desk.upload("a.bin", b"\0two", replace="1")).status_code == 200
    assert (await desk.get("raw", name="a.bin")).content == b"\0two"


async def test_a_file_that_is_too_large_is_refused_by_name(desk: Desk) -> None:
    answer = await desk.upload("big.bin", b"x" * ((1 << 20) + 5))
    assert answer.status_code == 413
    assert answer.json()["error"] == "big.bin is larger than 1 MB. Please make it smaller, or split it."
    assert (await desk.upload("full.bin", b"x" * (1 << 20))).status_code == 200


async def test_all_files_are_packed_with_their_folders(desk: Desk) -> None:
    await desk.write("notes/a.md", "one", 0)
    await desk.upload("b.bin", b"\0\1")
    answer = await desk.get("zip")
    with zipfile.ZipFile(io.BytesIO(answer.content)) as archive:
        assert {name: archive.read(name) for name in archive.namelist()} == {"notes/a.md": b"one", "b.bin": b"\0\1"}
    assert answer.headers["content-disposition"].startswith('attachment; filename="aivista-files-')


async def test_a_file_is_renamed_and_a_taken_name_is_refused(desk: Desk) -> None:
    await desk.write("a.md", "one", 0)
    await desk.write("b.md", "two", 0)
    assert (await desk.post("rename", name="a.md", new_name="c/a.md")).json()["file"]["name"] == "c/a.md"
    taken = await desk.post("rename", name="b.md", new_name="C/A.md")
    assert (taken.status_code, taken.json()["code"]) == (409, "file_name_taken")
    assert await desk.names() == ["b.md", "c/a.md"]


async def test_deleted_files_come_back_as_they_were(desk: Desk) -> None:
    workspace = desk.studio.workspace(desk.conversation)
    await workspace.write("page.md", "from the web", by="agent", is_untrusted=True)
    await desk.write("mine.md", "ours", 0)
    deleted = (await desk.post("delete", names=["page.md", "mine.md", "none.md"])).json()
    assert deleted["said"] == "2 files deleted."
    assert await desk.names() == []
    stranger = await desk.studio.new_conversation()
    wrong = await desk.client.post(f"{stranger.id}/undelete", json={"token": deleted["token"]})
    assert wrong.status_code == 404
    assert (await desk.post("undelete", token=deleted["token"])).status_code == 200
    page, mine = await workspace.read("page.md"), await workspace.read("mine.md")
    assert (page.content, page.written_by, page.is_untrusted) == (b"from the web", "agent", True)
    assert (mine.content, mine.written_by, mine.is_untrusted) == (b"ours", "person", False)
    assert (await desk.post("undelete", token=deleted["token"])).status_code == 404


async def test_the_bin_keeps_what_there_is_room_for(desk: Desk) -> None:
    await desk.upload("big.bin", b"x" * (1 << 20))
    file, thrown = await desk.studio.workspace(desk.conversation).read("big.bin"), Bin()
    first = thrown.put("local", "c", [file] * 20)
    second = thrown.put("local", "c", [file] * 20)
    assert len(thrown.files("local", "c", second)) == 20
    with pytest.raises(RequestRefused, match="There is no file"):
        thrown.files("local", "c", first)


async def test_a_program_is_run_and_what_it_says_is_text(desk: Desk) -> None:
    await desk.write("a.js", "console.log('<b>bold</b>'); writeFile('out/a.txt', 'x'); 6 * 7", 0)
    html = (await desk.post("run", name="a.js")).json()["html"]
    assert "&lt;b&gt;bold&lt;/b&gt;" in html
    assert "<b>bold" not in html
    assert 'data-name="out/a.txt"' in html
    assert ">\n42</pre>" in html
    written = await desk.studio.workspace(desk.conversation).read("out/a.txt")
    assert (written.written_by, written.text) == ("person", "x")


async def test_files_before_the_first_message_begin_a_conversation_that_is_listed(desk: Desk) -> None:
    answer = await desk.client.post(BEGIN, json={"name": "notes/plan.md"})
    begun = answer.json()["conversation"]
    assert [(one.id, one.title) for one in await desk.studio.conversations()] == [(begun, "plan.md")]
    assert (await desk.client.post(BEGIN, json={"name": "../up"})).status_code == 400
    assert len(await desk.studio.conversations()) == 1


@pytest.mark.parametrize("name", ["../up.md", "", "a//b", "x" * 200, "a\0b", "/etc/passwd"])
async def test_a_name_that_cannot_be_is_refused_in_a_sentence(desk: Desk, name: str) -> None:
    answer = await desk.post("write", name=name, text="x")
    assert answer.status_code == 400
    assert answer.json()["error"]
    assert await desk.names() == []


@pytest.mark.parametrize("path", ["write", "rename", "delete", "undelete", "compare", "run"])
@pytest.mark.parametrize("body", [b"", b"[]", b'{"name": 1}', b"\xff", b'{"name": "a", "text": "x", "more": 1}'])
async def test_what_cannot_be_read_is_one_sentence(desk: Desk, path: str, body: bytes) -> None:
    answer = await desk.client.post(f"{desk.conversation}/{path}", content=body)
    assert answer.status_code == 400
    assert answer.json() == {"error": "This request could not be read. Please reload the page."}


async def test_without_our_cookie_nothing_is_told(desk: Desk) -> None:
    await desk.write("a.md", "one", 0)
    async with browser(desk.studio, Sessions(b"s" * 32), None) as stranger:
        for path in ("list", "read?name=a.md", "raw?name=a.md", "zip"):
            answer = await stranger.get(f"{desk.conversation}/{path}")
            assert answer.status_code == 403
            assert "one" not in answer.text
        assert (await stranger.post(f"{desk.conversation}/delete", json={"names": ["a.md"]})).status_code == 403
    assert await desk.names() == ["a.md"]


async def test_on_a_shared_link_each_visitor_has_their_own(settings: Settings) -> None:
    sessions = Sessions(b"s" * 32, is_shared=True)
    async with Studio(settings) as studio:
        async with browser(studio, sessions, sessions.new_cookie()) as ann:
            begun = (await ann.post(BEGIN, json={"name": "a.md"})).json()["conversation"]
            await ann.post(f"{begun}/write", json={"name": "a.md", "text": "hers"})
        async with browser(studio, sessions, sessions.new_cookie(), language="zh") as ben:
            for path in ("list", "read?name=a.md", "raw?name=a.md", "zip"):
                answer = await ben.get(f"{begun}/{path}")
                assert answer.status_code == 404
                assert answer.json()["error"] == "这段对话已不存在。请新建一个。"
            assert (await ben.post(f"{begun}/run", json={"name": "a.md"})).status_code == 404

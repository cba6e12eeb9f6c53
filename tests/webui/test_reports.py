"""The report as a file: for its owner, as an attachment, kept by no cache."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from pydantic import JsonValue, SecretStr
from starlette.applications import Starlette
from starlette.middleware import Middleware

from agent.conversation import Conversation
from agent.errors import ErrorCode, RequestRefused, StorageFailure
from agent.report import report_text, turn_report
from agent.storage.conversations import ConversationStore
from agent.storage.images import ImageStore
from tests.support.children import run_child
from tests.support.histories import begun_turn, finished
from webui.guard import Guard, HostRules
from webui.reports import report_routes
from webui.sessions import COOKIE, Sessions

NOT_HERS = "There is no such report."


class Records:
    """Reports from real records, as the studio writes them."""

    def __init__(self, store: ConversationStore) -> None:
        self.store = store

    async def report(
        self, conversation_id: str, turn_id: str, owner: str = "local", key: SecretStr | None = None
    ) -> dict[str, JsonValue]:
        conversation = await self.store.get(conversation_id, owner)
        for turn in conversation.turns:
            if turn.id == turn_id:
                return turn_report(conversation, turn, (), secrets=[key] if key else [])
        raise RequestRefused(ErrorCode.CONVERSATION_NOT_FOUND)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[ConversationStore]:
    opened = ConversationStore(tmp_path, ImageStore(tmp_path))
    await opened.open()
    yield opened
    await opened.aclose()


def browser(store: ConversationStore, sessions: Sessions, cookie: str | None) -> httpx.AsyncClient:
    app = Starlette(
        routes=report_routes(lambda: Records(store), sessions),
        middleware=[Middleware(Guard, rules=HostRules(is_loopback=True), sessions=sessions)],
    )
    cookies = {COOKIE: cookie} if cookie is not None else {}
    return httpx.AsyncClient(
        transport=httpx.ASGITransport(app), base_url="http://127.0.0.1:7860", cookies=cookies, follow_redirects=False
    )


def sessions(*, is_shared: bool = False) -> Sessions:
    return Sessions(b"s" * 32, is_shared=is_shared)


async def recorded(store: ConversationStore, owner: str = "local", text: str = "draw a red fox") -> Conversation:
    conversation = await store.create(owner)
    turn = begun_turn("t1", text)
    await store.begin_turn(conversation.id, turn)
    await store.finish_turn(conversation.id, finished(turn))
    return await store.get(conversation.id, owner)


async def test_the_owner_gets_the_report_as_a_file_that_no_cache_keeps(store: ConversationStore) -> None:
    ours = sessions()
    kept = await recorded(store, text="画一只狐狸")
    async with browser(store, ours, ours.new_cookie()) as page:
        answer = await page.get(f"/aivista/report/{kept.id}/t1.json")
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["content-disposition"] == 'attachment; filename="aivista-report-t1.json"'
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["content-security-policy"] == "default-src 'none'; sandbox"
    assert answer.content.decode() == report_text(turn_report(kept, kept.turns[0], ()))
    assert json.loads(answer.content)["said"]["text"] == "画一只狐狸"


@pytest.mark.parametrize("cookie", [None, "", "forged.0123", "0" * 32])
async def test_nobody_without_our_cookie_gets_a_report(store: ConversationStore, cookie: str | None) -> None:
    kept = await recorded(store)
    async with browser(store, sessions(), cookie) as page:
        answer = await page.get(f"/aivista/report/{kept.id}/t1.json")
    assert answer.status_code == 403
    assert answer.headers["cache-control"] == "no-store"
    assert "fox" not in answer.text


async def test_on_a_shared_link_a_visitor_gets_only_their_own(store: ConversationStore) -> None:
    ours = sessions(is_shared=True)
    one, two = ours.new_cookie(), ours.new_cookie()
    kept = await recorded(store, ours.owner(ours.token_of(one)))
    async with browser(store, ours, one) as page:
        assert (await page.get(f"/aivista/report/{kept.id}/t1.json")).status_code == 200
    async with browser(store, ours, two) as page:
        answer = await page.get(f"/aivista/report/{kept.id}/t1.json")
    assert (answer.status_code, answer.text) == (404, NOT_HERS)


@pytest.mark.parametrize(
    "path", ["{id}/t2.json", "nowhere/t1.json", "{id}/..json", "{id}/%00.json", "{id}/t1.json.json"]
)
async def test_what_is_not_there_is_not_found(store: ConversationStore, path: str) -> None:
    ours = sessions()
    kept = await recorded(store)
    async with browser(store, ours, ours.new_cookie()) as page:
        answer = await page.get("/aivista/report/" + path.format(id=kept.id))
        assert (answer.status_code, answer.text) == (404, NOT_HERS)
        assert (await page.get(f"/aivista/report/{kept.id}/t1")).status_code == 404
        assert (await page.post(f"/aivista/report/{kept.id}/t1.json")).status_code == 405


async def test_a_name_with_quotes_and_lines_cannot_change_the_headers(store: ConversationStore) -> None:
    ours = sessions()
    conversation = await store.create("local")
    await store.begin_turn(conversation.id, begun_turn('t"\r\nx: y狐'))
    async with browser(store, ours, ours.new_cookie()) as page:
        answer = await page.get(f"/aivista/report/{conversation.id}/t%22%0D%0Ax%3A%20y%E7%8B%90.json")
    assert answer.status_code == 200
    assert answer.headers["content-disposition"] == 'attachment; filename="aivista-report-txy.json"'
    assert "x" not in answer.headers


async def test_records_that_cannot_be_read_are_told_in_a_sentence(tmp_path: Path) -> None:
    class Broken(Records):
        async def report(
            self, conversation_id: str, turn_id: str, owner: str = "local", key: SecretStr | None = None
        ) -> dict[str, JsonValue]:
            raise StorageFailure(ErrorCode.DISK_FULL)

    ours = sessions()
    app = Starlette(routes=report_routes(lambda: Broken(ConversationStore(tmp_path, ImageStore(tmp_path))), ours))
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(
        transport=transport, base_url="http://127.0.0.1", cookies={COOKIE: ours.new_cookie()}
    ) as page:
        answer = await page.get("/aivista/report/c1/t1.json")
    assert answer.status_code == 500
    assert answer.text == StorageFailure(ErrorCode.DISK_FULL).info.message


def test_the_command_lets_no_key_into_its_log_nor_into_the_web_servers(tmp_path: Path) -> None:
    code = """
import logging, sys
from pathlib import Path
from pydantic import SecretStr
from agent.settings import Settings
from webui.cli import _prepare_log
from webui.kept_key import KeptKey

KeptKey(Path(sys.argv[1])).keep(SecretStr("the-one-that-is-kept"))
_prepare_log(Settings(home=Path(sys.argv[1]), gemini_api_key=SecretStr("a-key-of-no-shape")))
import uvicorn
uvicorn.Config(app=None, log_level="warning")
logging.getLogger("agent.somewhere").error("it was %s", "a-key-of-no-shape")
logging.getLogger("agent.somewhere").error("and %s", "the-one-that-is-kept")
try:
    raise ValueError("no a-key-of-no-shape")
except ValueError:
    logging.getLogger("uvicorn.error").exception("Exception in ASGI application")
"""
    child = run_child(code, str(tmp_path))
    assert "ERROR agent.somewhere: it was [secret]" in child.stderr
    assert "ERROR agent.somewhere: and [secret]" in child.stderr
    assert "the-one-that-is-kept" not in child.stderr + child.stdout
    assert "ValueError: no [secret]" in child.stderr
    assert "a-key-of-no-shape" not in child.stderr + child.stdout

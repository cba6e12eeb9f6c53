"""Hosts, origins, the cookie and the headers of the page."""

from __future__ import annotations

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route
from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect

from tests.support.cases import each_case
from webui.guard import Guard, HostRules
from webui.sessions import COOKIE, Sessions


def client(
    *, is_loopback: bool = True, names: frozenset[str] = frozenset(), host: str = "127.0.0.1:7860"
) -> TestClient:
    async def page(_: Request) -> Response:
        return HTMLResponse("<p>page</p>")

    async def write(_: Request) -> Response:
        return JSONResponse({"ok": True})

    rules = HostRules(is_loopback=is_loopback)
    rules.names |= names
    app = Starlette(
        routes=[Route("/", page), Route("/write", write, methods=["POST"])],
        middleware=[Middleware(Guard, rules=rules, sessions=Sessions(b"s" * 32))],
    )
    return TestClient(app, base_url=f"http://{host}")


@pytest.mark.parametrize("host", ["127.0.0.1:7860", "localhost:7860", "LOCALHOST", "[::1]:7860"])
def test_a_loopback_studio_answers_to_its_own_names(host: str) -> None:
    assert client().get("/", headers={"host": host}).status_code == 200


@pytest.mark.parametrize("host", ["evil.test", "127.0.0.1.evil.test", "evil.test:7860", ""])
def test_a_loopback_studio_does_not_answer_to_a_name_that_merely_points_at_it(host: str) -> None:
    assert client().get("/", headers={"host": host}).status_code == 403


def test_a_studio_on_the_network_that_knows_no_name_answers_to_any() -> None:
    assert client(is_loopback=False).get("/", headers={"host": "studio.lan"}).status_code == 200


@each_case("origin", ["http://evil.test", "null", "http://127.0.0.1:9999", "https://127.0.0.1.evil.test"])
@each_case("is_loopback", [True, False])
def test_another_site_cannot_write(origin: str, is_loopback: bool) -> None:
    answer = client(is_loopback=is_loopback).post("/write", headers={"origin": origin})
    assert answer.status_code == 403


def test_a_web_socket_from_elsewhere_is_closed() -> None:
    with (
        pytest.raises(WebSocketDisconnect) as closed,
        client().websocket_connect("/queue", headers={"host": "evil.test"}),
    ):
        pass
    assert closed.value.code == 1008


def test_our_own_page_and_scripts_can_write() -> None:
    assert client().post("/write", headers={"origin": "http://127.0.0.1:7860"}).status_code == 200
    assert client().post("/write").status_code == 200


def test_the_page_behind_the_share_link_can_write() -> None:
    shared = client(names=frozenset({"abc.gradio.live"}))
    assert shared.post("/write", headers={"origin": "https://abc.gradio.live"}).status_code == 200
    assert shared.get("/", headers={"host": "abc.gradio.live"}).status_code == 200


def test_the_page_gives_one_cookie_and_keeps_it() -> None:
    browser = client()
    first = browser.get("/")
    given = first.headers["set-cookie"]
    assert given.startswith(f"{COOKIE}=")
    assert "HttpOnly" in given
    assert "SameSite=Lax" in given
    assert "set-cookie" not in browser.get("/").headers


def test_only_pages_give_a_cookie_and_the_policy() -> None:
    answer = client().post("/write")
    assert "set-cookie" not in answer.headers
    assert "content-security-policy" not in answer.headers
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_the_page_may_show_pictures_from_here_only() -> None:
    policy = client().get("/").headers["content-security-policy"]
    assert "img-src 'self' data: blob:" in policy
    assert "object-src 'none'" in policy

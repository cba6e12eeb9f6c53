"""The studio below a path of another site: a proxy shows it at `/studio/`, and has other things at `/`."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from lxml import html
from playwright.sync_api import Page, expect

from tests.page import PageProcess
from tests.page.hands import attach, expect_loaded, expect_ready, expect_rest, pictures, say

ROOT = "/studio"
# Others come, by a password.
SHARED = ("--host", "0.0.0.0", "--password", "word")


@contextmanager
def proxy(studio: PageProcess, *, strips: bool, says: bool, elsewhere: list[str]) -> Iterator[str]:
    """Show the studio at `/studio/` and give the address of that site; `elsewhere` is what it was asked beside it.

    It takes the path off where it `strips`, and tells it in `X-Forwarded-Prefix` where it `says`.
    """

    class Handler(BaseHTTPRequestHandler):
        def _pass_on(self) -> None:
            if not self.path.startswith((f"{ROOT}/", f"{ROOT}?")) and self.path != ROOT:
                elsewhere.append(self.path)
                self.send_error(404)
                return
            body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
            asked = HTTPConnection(urlsplit(studio.url).netloc, timeout=60)
            headers = {**dict(self.headers), "Connection": "close"} | ({"X-Forwarded-Prefix": ROOT} if says else {})
            path = (self.path.removeprefix(ROOT) or "/") if strips else self.path
            asked.request(self.command, path, body, headers)
            answer = asked.getresponse()
            self.send_response(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in ("connection", "transfer-encoding"):
                    self.send_header(name, value)
            self.send_header("Connection", "close")
            self.end_headers()
            while part := answer.read1(65536):
                self.wfile.write(part)
                self.wfile.flush()
            asked.close()

        do_GET = do_POST = do_HEAD = _pass_on

        def log_message(self, format: str, *_told: Any) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        serving = threading.Thread(target=server.serve_forever)
        serving.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            serving.join()


def test_the_studio_works_below_a_path_that_a_proxy_tells(page: Page, photo: Path, tmp_path: Path) -> None:
    elsewhere: list[str] = []
    with (
        PageProcess(*SHARED, home=tmp_path, environment={"AIVISTA_BEHIND_PROXY": "on"}) as studio,
        proxy(studio, strips=True, says=True, elsewhere=elsewhere) as site,
    ):
        page.goto(f"{site}{ROOT}/")
        page.get_by_label("Password").fill("word")
        page.keyboard.press("Enter")
        expect_ready(page)
        assert page.url.startswith(f"{site}{ROOT}/")
        say(page, "draw a boat")
        expect(pictures(page)).to_have_count(1)
        expect_loaded(pictures(page).first)
        expect_rest(page)
        attach(page, photo)
        page.reload()
        expect_ready(page)
        expect(pictures(page)).to_have_count(1)
        assert {one["path"] for one in page.context.cookies() if one["name"] != "aivista_lang"} == {f"{ROOT}/"}
    assert [one for one in elsewhere if one != "/favicon.ico"] == []


@pytest.mark.parametrize("way", ["flag", "variable"])
def test_a_path_that_is_told_at_the_start_is_taken_off_whether_a_proxy_does_so_or_not(tmp_path: Path, way: str) -> None:
    flags, variables = (("--root-path", f"{ROOT}/"), {}) if way == "flag" else ((), {"AIVISTA_ROOT_PATH": ROOT})
    elsewhere: list[str] = []
    with (
        PageProcess(*SHARED, *flags, home=tmp_path, environment=variables) as studio,
        proxy(studio, strips=way == "flag", says=False, elsewhere=elsewhere) as site,
        httpx.Client(follow_redirects=True, trust_env=False) as client,
    ):
        client.post(f"{site}{ROOT}/login", data={"username": "aivista", "password": "word"})
        shown = client.get(f"{site}{ROOT}{'/' if way == 'flag' else ''}?lang=en")
        assert str(shown.url) == f"{site}{ROOT}/?lang=en"
        document = html.fromstring(shown.content)
        document.make_links_absolute(str(shown.url))
        asked = [link for one, _, link, _ in document.iterlinks() if one.tag in ("script", "link") and site in link]
        assert len(asked) > 3
        assert {client.get(link).status_code for link in asked} == {200}
        assert {cookie.path for cookie in client.cookies.jar} == {f"{ROOT}/"}
    assert elsewhere == []

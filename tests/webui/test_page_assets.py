"""What the page is made of comes as files that a browser keeps: named by what is in them, announced with the page."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.testclient import TestClient

import webui
from webui.page_assets import SCRIPTS, STYLES, Asset, Preloads, asset_routes, head_html, script, stylesheet

ASSETS = Path(webui.__file__).parent / "assets"


@pytest.fixture
def client() -> TestClient:
    async def page(request: Request) -> PlainTextResponse:
        return PlainTextResponse("page", 401 if "shut" in request.query_params else 200)

    routes = [*asset_routes(), Route("/", page), Route("/other", page)]
    return TestClient(Starlette(routes=routes, middleware=[Middleware(Preloads)]))


def test_every_script_and_every_style_is_part_of_the_page() -> None:
    assert sorted({*SCRIPTS, "language"}) == sorted(one.stem for one in ASSETS.glob("*.js"))
    assert sorted({*STYLES, "motion"}) == sorted(one.stem for one in ASSETS.glob("*.css"))


@pytest.mark.parametrize("asset", [stylesheet(), script()], ids=["styles", "scripts"])
def test_a_file_is_kept_for_good_under_a_name_of_its_content(client: TestClient, asset: Asset) -> None:
    answer = client.get(f"/{asset.path}")
    assert answer.content == asset.data
    assert answer.headers["content-type"].startswith(asset.media_type)
    assert "immutable" in answer.headers["cache-control"]
    assert re.fullmatch(r"aivista/page/studio-[0-9a-f]{16}\.(css|js)", asset.path)


@pytest.mark.parametrize("name", ["studio.css", "studio-0000000000000000.js", "..%2fframe.css", "frame.css"])
def test_no_other_name_leads_anywhere(client: TestClient, name: str) -> None:
    assert client.get(f"/aivista/page/{name}").status_code == 404


def test_the_page_announces_its_files_and_nothing_else_does(client: TestClient) -> None:
    told = client.get("/").headers["link"]
    assert f"<{stylesheet().path}>; rel=preload; as=style" in told
    assert f"<{script().path}>; rel=preload; as=script" in told
    assert "link" not in client.get("/other").headers
    assert "link" not in client.get("/?shut").headers


def test_the_head_is_short_and_names_the_files() -> None:
    head = head_html("zh-CN")
    assert len(head) < 6000
    assert f'<link rel="stylesheet" href="{stylesheet().path}">' in head
    assert f'<script src="{script().path}"></script>' in head
    assert '<meta name="aivista-language" content="zh-CN">' in head
    assert "aivista-language" not in head_html().split("<script>")[0]

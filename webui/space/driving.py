"""A running Space used once, as a visitor and as a stranger would: over HTTP, and with Chromium where there is one."""

from __future__ import annotations

import io
import shutil
from collections.abc import Mapping
from importlib import import_module, util
from typing import Any

import httpx2
from PIL import Image

from webui.space.place import EMBEDDERS

WISH = "Draw a red fox in the snow, watercolour"
_CHROMIUMS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
_PATIENCE_S = 60


class Fault(Exception):
    """What is wrong with the Space, in one sentence."""


def drive(url: str, host: str, *, is_kept: bool) -> str:
    """Use the Space at a local address that is known as `host`; return what was done.

    Raises Fault at the first thing that is not as it must be.
    """
    proxied = {"Host": host, "X-Forwarded-Proto": "https", "X-Forwarded-Host": host}
    with httpx2.Client(base_url=url, timeout=_PATIENCE_S) as http:
        _check_page(http, proxied)
        _check_strangers(http, proxied)
    size = _paint(url)
    done = f"the page, two strangers, a picture of {size[0]} × {size[1]} pixels"
    if (chromium := _chromium()) is None:
        return f"{done}; no Chromium here"
    _look(url, chromium, is_kept=is_kept)
    return f"{done}, the page in Chromium"


def _check_page(http: httpx2.Client, proxied: Mapping[str, str]) -> None:
    page = http.get("/", headers=dict(proxied))
    _require(page.status_code == 200, f"the page answers with {page.status_code}")
    cookie = page.headers.get("set-cookie", "")
    for mark in ("HttpOnly", "SameSite=None", "Secure", "Partitioned"):
        _require(mark in cookie, f"the cookie is not marked {mark}")
    policy = page.headers.get("content-security-policy", "")
    _require(all(site in policy for site in EMBEDDERS), "Hugging Face may not show the page inside of its own")
    _require("http://127.0.0.1" not in page.text, "the page names an address of this machine")


def _check_strangers(http: httpx2.Client, proxied: Mapping[str, str]) -> None:
    status = http.get("/", headers={"Host": "elsewhere.example"}).status_code
    _require(status == 403, f"a foreign host name is answered with {status}")
    files = {"files": ("a.txt", b"x", "text/plain")}
    foreign = http.post("/gradio_api/upload", files=files, headers={**proxied, "Origin": "https://elsewhere.example"})
    _require(foreign.status_code == 403, f"a foreign page's upload is answered with {foreign.status_code}")


def _paint(url: str) -> tuple[int, int]:
    """Say one wish through the endpoint `/chat`; return the size of the picture in pixels."""
    gradio_client: Any = import_module("gradio_client")
    client = gradio_client.Client(url, verbose=False)
    try:
        answer = client.predict(message={"text": WISH, "files": []}, api_name="/chat")
    finally:
        client.close()
    _require(bool(answer["done"]) and not answer["error"], f"the turn failed: {answer['error']}")
    _require(len(answer["pictures"]) == 1, f"{len(answer['pictures'])} pictures came instead of one")
    got = httpx2.get(answer["pictures"][0]["url"], timeout=_PATIENCE_S)
    _require(got.status_code == 200, f"the picture's link answers with {got.status_code}")
    with Image.open(io.BytesIO(got.content)) as picture:
        picture.load()
        return picture.size


def _chromium() -> str | None:
    if util.find_spec("playwright") is None:
        return None
    return next(filter(None, map(shutil.which, _CHROMIUMS)), None)


def _look(url: str, chromium: str, *, is_kept: bool) -> None:
    """Open the page, say the wish and wait for the picture. Raises Fault when it does not come."""
    playwright: Any = import_module("playwright.sync_api")
    with playwright.sync_playwright() as running:
        browser = running.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        try:
            page = browser.new_page(locale="en")
            page.goto(url)
            page.wait_for_selector(".welcome")
            _require((page.locator(".unkept").count() == 0) == is_kept, "it is not told whether anything is kept")
            page.locator("#box textarea").fill(WISH)
            page.locator("#box textarea").press("Enter")
            page.wait_for_selector("#chat img", timeout=_PATIENCE_S * 1000)
        except playwright.Error as error:
            raise Fault(f"the page in Chromium: {error.message.splitlines()[0]}") from None
        finally:
            browser.close()


def _require(is_so: bool, otherwise: str) -> None:
    if not is_so:
        raise Fault(otherwise)

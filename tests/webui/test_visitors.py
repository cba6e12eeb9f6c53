"""A studio that others reach, as two of them and its operator use it: nothing of one is another's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.adapters.webui import COOKIE
from tests.page import PageProcess
from tests.webui.hostile import Stranger
from tests.wire_server import GeminiProcess

# The package brings no types.
gradio_client: Any = import_module("gradio_client")


@pytest.fixture(scope="module")
def public(gemini: GeminiProcess, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PageProcess]:
    environment = {"GEMINI_API_KEY": "AIza-operators-own-0001", "GOOGLE_GEMINI_BASE_URL": gemini.url}
    with PageProcess("--host", "0.0.0.0", home=tmp_path_factory.mktemp("home"), environment=environment) as page:
        yield page


@pytest.fixture(scope="module")
def operator(public: PageProcess) -> Iterator[httpx2.Client]:
    link = public.read_line().rpartition(" ")[2]
    with browser(public) as own:
        assert own.get(link).status_code == 200
        yield own


@contextmanager
def browser(page: PageProcess) -> Iterator[httpx2.Client]:
    """Open a browser that has opened the page, with the cookie it got there."""
    with httpx2.Client(base_url=page.url, timeout=60, follow_redirects=True, trust_env=False) as client:
        assert client.get("/", headers={"Accept": "text/html"}).status_code == 200
        yield client


def say(page: PageProcess, text: str, client: httpx2.Client | None = None, conversation: str = "") -> dict[str, Any]:
    """Send a message as this browser, or as a script without a cookie; return the last answer."""
    headers = {"Cookie": f"{COOKIE}={client.cookies[COOKIE]}"} if client is not None else {}
    script = gradio_client.Client(page.url, verbose=False, headers=headers)
    try:
        answer = script.predict(message={"text": text, "files": []}, conversation=conversation, api_name="/chat")
    finally:
        script.close()
    assert isinstance(answer, dict)
    return answer


def test_visitors_draw_without_the_operators_key_and_the_operator_with_it_and_out_of_their_sight(
    public: PageProcess, operator: httpx2.Client, gemini: GeminiProcess
) -> None:
    gemini.control(clear=True)
    with browser(public) as ada:
        link = say(public, "draw a fox", ada)["pictures"][0]["url"]
        assert gemini.read("requests") == []
        # A link that was signed for a picture opens it to whoever has it, whatever their cookie.
        assert operator.get(link).headers["content-type"].startswith("image/")
        assert operator.get(link.replace("sig=", "sig=0")).status_code == 404
        drawn = say(public, "draw a fox", operator)
        assert (drawn["error"], gemini.read("requests") != []) == (None, True)
        for one, status in ((operator, 200), (ada, 404)):
            assert one.get(f"/aivista/trace/{drawn['conversation']}.json").status_code == status


def test_a_key_that_is_lent_to_visitors_is_tried_out_for_none_of_them(gemini: GeminiProcess, tmp_path: Path) -> None:
    environment = {"GEMINI_API_KEY": "AIza-operators-own-0001", "GOOGLE_GEMINI_BASE_URL": gemini.url}
    with PageProcess("--host", "0.0.0.0", "--visitors-spend", "1", home=tmp_path, environment=environment) as page:
        gemini.control(clear=True)
        stranger = Stranger(page.url)
        assert "Enter a key first." in str(stranger.act("settings.test")["s-verdict"])
        assert gemini.read("requests") == []
        assert "$" in str(stranger.act("page.price")["cost"]), "it is lent"
        stranger.close()


def test_a_script_without_a_cookie_goes_on_by_a_name_that_an_id_does_not_tell(public: PageProcess) -> None:
    first = say(public, "draw a fox")["conversation"]
    conversation, _, cookie = first.partition(":")
    assert cookie
    again = say(public, "warmer", conversation=first)
    assert (again["error"], again["conversation"]) == (None, first)
    for wrong in (conversation, f"{conversation}:x.y"):
        assert say(public, "warmer", conversation=wrong)["error"]["code"] == "conversation_not_found"

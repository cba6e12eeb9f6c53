"""A studio that others reach, as two of them and its operator use it: nothing of one is another's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.adapters.programs import COOKIE
from tests.page import PageProcess
from tests.webui.hostile import Stranger
from tests.wire_server import GeminiProcess

# The package brings no types.
gradio_client: Any = import_module("gradio_client")


@pytest.fixture(scope="module")
def public(gemini: GeminiProcess, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PageProcess]:
    environment = {
        "GEMINI_API_KEY": "AIza-operators-own-0001",
        "GOOGLE_GEMINI_BASE_URL": gemini.url,
        "AIVISTA_API_TOKENS": "ada:a-token-of-ada-01,ben:a-token-of-ben-01",
    }
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


def price_of(visitor: Stranger) -> int:
    """Return how many amounts of money the price before Send names."""
    return str(visitor.press("cost-bus", None)["cost"]).count("$")


def turn_of(client: httpx2.Client, conversation: str) -> str:
    """Return the id of the newest turn, as the trace of the page tells it."""
    return str(client.get(f"/aivista/trace/{conversation}").json()["turns"][-1]["id"])


def test_no_id_of_one_visitor_works_for_another(public: PageProcess) -> None:
    with browser(public) as ada, browser(public) as ben:
        mine = say(public, "draw a fox", ada)
        conversation = mine["conversation"]
        turn = turn_of(ada, conversation)
        whose = {
            f"/media/{conversation}/1": "picture",
            f"/media/{conversation}/1?size=200": "thumbnail",
            f"/media/{conversation}/1?download=1": "file",
            f"/export/{conversation}?format=zip": "archive",
            f"/aivista/trace/{conversation}": "trace",
            f"/aivista/report/{conversation}/{turn}.json": "report",
            f"/aivista/preview/{conversation}/1?contrast=20": "preview",
        }
        for path, thing in whose.items():
            assert ada.get(path).status_code == 200, (path, ada.get(path).text[:200])
            for answer in (ben.get(path), httpx2.get(f"{public.url}{path}", trust_env=False)):
                assert answer.status_code in (403, 404), (thing, answer.status_code)
                assert answer.headers["content-type"].startswith(("text/plain", "application/json"))
        theirs = say(public, "and now?", ben, conversation)
        assert theirs["error"]["code"] == "conversation_not_found"
        assert ada.get("/aivista/gallery/page").json() != ben.get("/aivista/gallery/page").json()
        assert "fox" not in ben.get("/aivista/gallery/page").text
        # A link that was signed for a picture opens it to whoever has it, whatever their cookie.
        link = mine["pictures"][0]["url"]
        assert ben.get(link).headers["content-type"].startswith("image/")
        assert ben.get(link.replace("sig=", "sig=0")).status_code == 404


def test_visitors_draw_without_the_operators_key_and_the_operator_with_it(
    public: PageProcess, operator: httpx2.Client, gemini: GeminiProcess
) -> None:
    gemini.control(clear=True)
    with browser(public) as ada:
        assert say(public, "draw a fox", ada)["pictures"]
        assert ada.get("/aivista/gallery/page", params={"words": "fox"}).json()["found"] == 1
    assert gemini.read("requests") == []
    assert say(public, "draw a fox", operator)["error"] is None
    assert gemini.read("requests") != []


def test_a_key_that_is_lent_to_visitors_is_tried_out_for_none_of_them(gemini: GeminiProcess, tmp_path: Path) -> None:
    environment = {"GEMINI_API_KEY": "AIza-operators-own-0001", "GOOGLE_GEMINI_BASE_URL": gemini.url}
    with PageProcess("--host", "0.0.0.0", "--visitors-spend", "1", home=tmp_path, environment=environment) as page:
        gemini.control(clear=True)
        stranger = Stranger(page.url)
        assert "Type a key first." in str(stranger.press("s-test", None)["s-verdict"])
        assert gemini.read("requests") == []
        assert price_of(stranger) > 0, "it is lent"
        stranger.close()


def test_the_operator_has_what_is_kept_there_and_visitors_have_not(
    public: PageProcess, operator: httpx2.Client
) -> None:
    conversation = say(public, "draw an owl", operator)["conversation"]
    assert operator.get(f"/aivista/trace/{conversation}").status_code == 200
    with browser(public) as ada:
        assert ada.get(f"/aivista/trace/{conversation}").status_code == 404


def test_a_script_without_a_cookie_goes_on_by_a_name_that_an_id_does_not_tell(public: PageProcess) -> None:
    first = say(public, "draw a fox")
    conversation, _, cookie = first["conversation"].partition(":")
    assert cookie
    again = say(public, "warmer", conversation=first["conversation"])
    assert again["error"] is None
    assert again["conversation"] == first["conversation"]
    assert say(public, "warmer", conversation=conversation)["error"]["code"] == "conversation_not_found"
    assert say(public, "warmer", conversation=f"{conversation}:x.y")["error"]["code"] == "conversation_not_found"


def test_a_token_of_one_program_opens_nothing_of_another(public: PageProcess) -> None:
    with httpx2.Client(base_url=f"{public.url}/api/v1", trust_env=False, timeout=60) as api:
        ada, ben = ({"Authorization": f"Bearer a-token-of-{name}-01"} for name in ("ada", "ben"))
        assert api.get("/conversations").status_code == 401
        mine = api.post("/conversations", json={}, headers=ada).json()["id"]
        assert api.get(f"/conversations/{mine}", headers=ada).status_code == 200
        for method, path in (
            ("GET", f"/conversations/{mine}"),
            ("DELETE", f"/conversations/{mine}"),
            ("POST", f"/conversations/{mine}/turns"),
            ("GET", f"/conversations/{mine}/pictures/1"),
        ):
            body = {"text": "hello"} if path.endswith("turns") else None
            answer = api.request(method, path, headers=ben, json=body)
            assert answer.status_code == 404, (method, path, answer.text)
            assert answer.headers["content-type"] == "application/problem+json"
        assert api.get(f"/conversations/{mine}", headers=ada).status_code == 200

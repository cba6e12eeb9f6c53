"""Who may ask: tokens, owners who try each other's every id, foreign pages, hostile bodies, and too many requests."""

from __future__ import annotations

import json
import re
import stat
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from pydantic import SecretStr

from agent.errors import SettingsError
from agent.redaction import secrets_of
from agent.settings import Settings
from tests.support.api import (
    ANNA,
    BEN,
    TOKENS,
    Served,
    begun,
    painted,
    paints,
    png,
    sent,
    served,
    stream,
    talks,
    words,
)
from tests.wire_server import GeminiServer, Text
from webui.api.mounting import open_door
from webui.api.rates import Buckets
from webui.api.tokens import TOKENS_FILE, TokenFile, TokenNameRefused, Tokens
from webui.sessions import Sessions

CANARY = "AIzaSyCanaryOfTheVisitors0000000000001"
FORM_WITHOUT_REQUEST = b'--x\r\nContent-Disposition: form-data; name="text"\r\n\r\na\r\n--x--\r\n'
PLACEHOLDER = re.compile(r"\{(\w+)(?::path)?\}")


@pytest.fixture
async def shared(tmp_path: Path) -> AsyncIterator[Served]:
    lines = [paints(said="A fox."), *talks("One.", "Two.")]
    async with served(tmp_path, text=lines, pictures=[painted()], api_tokens=TOKENS) as one:
        yield one


def bytes_below(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


async def schema(one: Served) -> dict[str, Any]:
    async with one.client() as anyone:
        found: dict[str, Any] = (await anyone.get("/api/v1/openapi.json")).json()
    return found


def calls_of(paths: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for path, methods in paths.items():
        for method in methods:
            yield method.upper(), path


async def test_the_schema_names_our_routes_alone_and_documents_each(shared: Served) -> None:
    found = await schema(shared)
    assert all(path.startswith(("/api/v1/", "/v1/")) for path in found["paths"])
    operations = [one for methods in found["paths"].values() for one in methods.values()]
    assert len(operations) > 35
    assert all(one["summary"] and one.get("description") for one in operations)
    assert len({one["operationId"] for one in operations}) == len(operations)
    written = json.dumps(found)
    kept = found["components"]["schemas"]
    named = set(re.findall(r"#/components/schemas/([\w.-]+)", written))
    assert named <= set(kept)
    assert {"TurnBody", "Problem", "PictureView"} <= set(kept)


async def test_no_route_answers_without_a_token(shared: Served) -> None:
    found = await schema(shared)
    for token in (None, "no-token-of-anybody", f"{ANNA}x"):
        async with shared.client(token) as stranger:
            for method, path in calls_of(found["paths"]):
                answer = await stranger.request(method, PLACEHOLDER.sub("x", path))
                assert answer.status_code == 401, (method, path)
                assert answer.headers["www-authenticate"] == "Bearer"
                assert ANNA not in answer.text


async def test_two_owners_try_each_others_every_id(shared: Served) -> None:
    async with shared.client(ANNA) as anna, shared.client(BEN) as ben:
        hers, his = await begun(anna, "Hers"), await begun(ben, "His")
        events = await sent(anna, hers, "a fox", settings={"review": "off"})
        await anna.put(f"/api/v1/conversations/{hers}/files/a.txt", content="secret")
        style = (await anna.post("/api/v1/styles", json={"name": {"en": "My own"}, "phrases": ["x"]})).json()["id"]
        upload = (await anna.post("/api/v1/uploads", files={"file": ("a.png", png())})).json()["id"]
        picture = (await anna.get("/api/v1/gallery")).json()["items"][0]["id"]
        before = (await anna.get(f"/api/v1/conversations/{hers}")).json()
        ids = {"conversation_id": hers, "turn_id": events[0].data["turn_id"], "handle": "1", "name": "a.txt"}
        ids |= {"style_id": style}
        bodies = {"decision": {"run": True}, "turns": {"text": "hello"}}
        bodies["styles/{style_id}"] = {"name": {"en": "Mine now"}, "phrases": ["x"]}
        for method, path in calls_of((await schema(shared))["paths"]):
            if not PLACEHOLDER.search(path) or (path.endswith("{style_id}") and method == "POST"):
                continue
            body = next((body for end, body in bodies.items() if path.endswith(end)), {"title": "Mine now"})
            url = PLACEHOLDER.sub(lambda name: ids[name[1]], path)
            last_event = {"Last-Event-ID": events[0].id}
            answer = await ben.request(method, url, json=body, headers=last_event)
            assert answer.status_code == 404, (method, path, answer.text)
        own = f"/api/v1/conversations/{his}"
        stolen = await ben.get(f"{own}/events", headers={"Last-Event-ID": events[0].id})
        assert stolen.status_code == 204
        stolen = await ben.post(f"{own}/turns", json={"text": "what is it?", "images": [upload]})
        assert (stolen.status_code, stolen.json()["code"]) == (404, "upload_gone")
        assert (await ben.get("/api/v1/gallery", params={"similar_to": picture})).status_code == 404
        assert (await ben.get("/api/v1/gallery", params={"conversation_id": hers})).json()["items"] == []
        assert (await ben.get("/api/v1/usage", params={"conversation_id": hers})).status_code == 404
        assert (await ben.get("/api/v1/usage")).json()["day"]["total_tokens"] == 0
        listed = (await ben.get("/api/v1/conversations")).json()["conversations"]
        assert [one["id"] for one in listed] == [his]
        assert (await anna.get(f"/api/v1/conversations/{hers}")).json() == before
        assert (await anna.get(f"/api/v1/styles/{style}")).json()["name"]["en"] == "My own"


async def test_pages_of_other_sites_and_other_names_for_this_host_are_turned_away(tmp_path: Path) -> None:
    async with served(tmp_path, text=[]) as one, one.client() as client:
        foreign = await client.post("/api/v1/conversations", headers={"Origin": "http://evil.test"})
        assert foreign.status_code == 403
        rebound = await client.get("/api/v1/conversations", headers={"Host": "evil.test"})
        assert rebound.status_code == 403
        assert (await client.get("/api/v1/conversations")).json() == {"conversations": []}


@pytest.mark.parametrize(
    ("body", "content_type", "status"),
    [
        (b"", "application/json", 422),
        (b"{", "application/json", 422),
        (b"[" * 100_000, "application/json", 422),
        (b'{"text": ' + b"1" * 10_000 + b"}", "application/json", 422),
        (b'{"text": "a", "owner": "ben"}', "application/json", 422),
        (b'{"text": "a", "settings": {"budget_usd": NaN}}', "application/json", 422),
        (b'{"text": "a", "settings": {"number_of_images": 1000}}', "application/json", 422),
        (b'{"text": "a", "expand": {"handle": "#1", "left": Infinity}}', "application/json", 422),
        (b'{"text": "a", "images": ["/etc/passwd"]}', "application/json", 400),
        (b'{"text": "a", "images": ["https://example.org/a.png"]}', "application/json", 400),
        (b'{"text": "a", "editing": "#99"}', "application/json", 404),
        (b"no form", "multipart/form-data; boundary=x", 422),
        (b"no form", "multipart/form-data", 422),
        (FORM_WITHOUT_REQUEST, "multipart/form-data; boundary=x", 422),
    ],
)
@pytest.mark.asyncio(loop_scope="module")
async def test_a_body_that_fits_nothing_is_refused_and_not_quoted(
    body: bytes, content_type: str, status: int, quiet: httpx.AsyncClient
) -> None:
    conversation = await begun(quiet)
    headers = {"Content-Type": content_type}
    answer = await quiet.post(f"/api/v1/conversations/{conversation}/turns", content=body, headers=headers)
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    problem = answer.json()
    assert {"type", "title", "status", "detail", "code"} <= problem.keys()
    assert problem["status"] == status
    assert len(answer.content) < 5000
    assert "Traceback" not in answer.text


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/api/v1/conversations/{}/turns", '{"text": "a fox \\ud83d"}'),
        ("/api/v1/chat", '{"messages": [["human", "a fox \\uDE00"]]}'),
        ("/v1/images/generations", '{"prompt": "a fox \\ud83d"}'),
    ],
)
async def test_half_a_character_is_taken_as_a_sign_that_nobody_knows(tmp_path: Path, path: str, body: str) -> None:
    async with served(tmp_path) as one, one.client() as client:
        headers = {"Content-Type": "application/json"}
        answer = await client.post(path.format(await begun(client)), content=body, headers=headers)
        assert answer.status_code == 200, answer.text
        items = (await client.get("/api/v1/conversations")).json()["conversations"]
        assert [item["title"] for item in items] == ["A fox \ufffd"]


async def test_half_a_character_in_a_form_or_a_title_is_no_obstacle(tmp_path: Path) -> None:
    async with served(tmp_path) as one, one.client() as client:
        conversation = await begun(client)
        form = {"request": (None, r'{"text": "a fox \ud83d"}')}
        assert (await client.post(f"/api/v1/conversations/{conversation}/turns", files=form)).status_code == 200
        # A whole one stays whole, and what only looks like an escape stays as it is.
        body, headers = r'{"title": "\ud83e\udd8a \\ud83d \ud83d"}', {"Content-Type": "application/json"}
        named = await client.patch(f"/api/v1/conversations/{conversation}", content=body, headers=headers)
        assert named.json()["title"] == "🦊 \\ud83d \ufffd"


@pytest.mark.asyncio(loop_scope="module")
async def test_more_than_fits_is_refused_before_it_is_read_and_while_it_comes(quiet: httpx.AsyncClient) -> None:
    declared = await quiet.post("/api/v1/conversations", content=b" " * (3 << 20))
    assert (declared.status_code, declared.json()["code"]) == (413, "body_too_large")

    async def endless() -> AsyncIterator[bytes]:
        for _ in range(40):
            yield b" " * 100_000

    streamed = await quiet.post("/api/v1/styles", content=endless(), headers={"Content-Type": "application/json"})
    assert (streamed.status_code, streamed.json()["code"]) == (413, "body_too_large")


@pytest.mark.asyncio(loop_scope="module")
async def test_what_is_not_there_is_said_in_the_callers_language(quiet: httpx.AsyncClient) -> None:
    chinese = {"Accept-Language": "zh-CN,zh;q=0.9"}
    missing = await quiet.get("/api/v1/nothing", headers=chinese)
    assert (missing.status_code, missing.json()["code"]) == (404, "no_such_address")
    assert "地址" in missing.json()["detail"]
    wrong = await quiet.request("TRACE", "/api/v1/conversations")
    assert wrong.status_code == 405
    assert "GET" in wrong.headers["Allow"]
    openai = (await quiet.get("/v1/nothing")).json()
    assert openai["error"]["code"] == "no_such_address"


async def test_each_owner_has_a_rate_of_requests_and_of_turns(tmp_path: Path) -> None:
    rates: dict[str, Any] = {"api_requests_per_minute": 4.0, "api_turns_per_minute": 1.0, "api_tokens": TOKENS}
    async with (
        served(tmp_path, text=talks("One.", "Two."), **rates) as one,
        one.client(ANNA) as anna,
        one.client(BEN) as ben,
    ):
        conversation = await begun(anna)
        assert words(await sent(anna, conversation, "hello")) == "One."
        again = await anna.post(f"/api/v1/conversations/{conversation}/turns", json={"text": "hello"})
        assert (again.status_code, again.json()["code"]) == (429, "too_many_requests")
        assert 1 <= int(again.headers["retry-after"]) <= 60
        assert (await anna.get("/api/v1/conversations")).status_code == 200
        assert (await anna.get("/api/v1/conversations")).status_code == 429
        assert (await ben.get("/api/v1/conversations")).status_code == 200


def test_the_callers_language_wins_and_the_operators_is_for_those_who_name_none(tmp_path: Path) -> None:
    door = open_door(lambda: pytest.fail("not asked"), Sessions(b"s" * 32), Settings(home=tmp_path), "zh-CN")
    assert door.words({}).language == "zh-CN"
    assert door.words({"accept-language": "en-GB"}).language == "en"


@pytest.mark.parametrize(
    ("is_public", "has_password", "owner"),
    [(False, False, "local"), (True, False, None), (False, True, None), (True, True, None)],
)
def test_no_token_is_needed_where_nobody_else_comes_and_no_password_is_asked_for(
    is_public: bool, has_password: bool, owner: str | None, tmp_path: Path
) -> None:
    settings = Settings(home=tmp_path, is_public=is_public)
    door = open_door(lambda: pytest.fail("not asked"), Sessions(b"s" * 32), settings, has_password=has_password)
    assert door.tokens.owner("") == owner


def test_a_bucket_fills_at_its_rate() -> None:
    now_s = 0.0
    buckets = Buckets(2, clock=lambda: now_s)
    assert [buckets.take("anna") for _ in range(3)] == [0, 0, 30]
    now_s = 30
    assert [buckets.take("anna"), buckets.take("anna")] == [0, 30]
    assert buckets.take("ben") == 0


async def test_a_callers_own_key_serves_that_request_alone_and_is_nowhere_kept(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with GeminiServer() as gemini:
        gemini.on_text(Text("Gemini says hello."))
        async with served(tmp_path, gemini_base_url=gemini.url) as one, one.client() as client:
            conversation = await begun(client)
            path = f"/api/v1/conversations/{conversation}/turns"
            body = {"text": "hello"}
            with_key = await stream(client, "POST", path, json=body, headers={"X-Gemini-Api-Key": CANARY})
            assert words(with_key) == "Gemini says hello."
            asked = len(gemini.requests)
            without = await sent(client, conversation, "a red circle")
            assert without[-1].data["state"] == "done"
            assert len(gemini.requests) == asked
            bad = await client.get("/api/v1/usage", headers={"X-Gemini-Api-Key": "two words"})
            assert (bad.status_code, "two words" in bad.text) == (422, False)
            trace = await client.get(f"/api/v1/conversations/{conversation}/trace")
            assert CANARY not in trace.text
    assert CANARY not in caplog.text
    kept = bytes_below(tmp_path)
    assert kept
    assert [name for name, data in kept.items() if CANARY.encode() in data] == []


# Tokens.


def test_a_token_is_told_once_kept_as_a_hash_and_known_at_once(tmp_path: Path) -> None:
    file = TokenFile(tmp_path)
    tokens = Tokens(file, {}, is_open=True)
    assert tokens.owner("") == "local"
    token = TokenFile(tmp_path).new("anna")
    assert (tokens.owner(""), tokens.owner(f"Bearer {token}"), tokens.owner(f"Basic {token}")) == (
        None,
        "token-anna",
        None,
    )
    kept = tmp_path / TOKENS_FILE
    assert token not in kept.read_text()
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    with pytest.raises(TokenNameRefused, match="already"):
        file.new("anna")
    assert file.remove("anna") is True
    assert tokens.owner(f"Bearer {token}") is None
    assert file.remove("anna") is False


@pytest.mark.parametrize("name", ["", "Anna", "1st", "../x", "a b", "a" * 33, "local\n"])
def test_a_name_that_no_token_can_have_is_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(TokenNameRefused):
        TokenFile(tmp_path).new(name)


def test_a_file_of_tokens_that_cannot_be_read_lets_nobody_in(tmp_path: Path) -> None:
    (tmp_path / TOKENS_FILE).write_text("garbage")
    tokens = Tokens(TokenFile(tmp_path), {}, is_open=True)
    assert tokens.owner("") is None
    assert tokens.owner("Bearer garbage") is None


def test_the_name_local_is_the_pages_owner_and_a_public_host_is_closed_without_a_token(tmp_path: Path) -> None:
    given = {"local": SecretStr("a-token-of-the-operator")}
    assert Tokens(TokenFile(tmp_path), given, is_open=False).owner("bearer  a-token-of-the-operator") == "local"
    assert Tokens(TokenFile(tmp_path), {}, is_open=False).owner("") is None


def test_tokens_are_read_from_the_environment_and_never_quoted() -> None:
    settings = Settings.from_env({"AIVISTA_API_TOKENS": f"anna:{ANNA}, ben:{BEN}"}, home=Path("home"))
    assert {name: token.get_secret_value() for name, token in settings.api_tokens.items()} == {"anna": ANNA, "ben": BEN}
    assert ANNA not in repr(settings)
    # What the log, reports and traces are cleaned of.
    assert {token.get_secret_value() for token in secrets_of(settings)} == {ANNA, BEN}
    for wrong in (ANNA, f"Anna:{ANNA}", "anna:short-secret", f"anna:{ANNA},anna:{BEN}", f"anna:{ANNA} x", f":{ANNA}"):
        with pytest.raises(SettingsError, match="AIVISTA_API_TOKENS") as caught:
            Settings.from_env({"AIVISTA_API_TOKENS": wrong}, home=Path("home"))
        assert "secret" not in str(caught.value)
        assert ANNA not in str(caught.value)

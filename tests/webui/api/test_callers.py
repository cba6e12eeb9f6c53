"""Who may ask: tokens, owners who try each other's every id, foreign pages, hostile bodies, and too many requests."""

from __future__ import annotations

import json
import re
import stat
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from pydantic import SecretStr

from agent import Settings, SettingsError, StorageFailure, secrets_of
from tests.support.api import ANNA, BEN, TOKENS, Served, begun, painted, paints, png, sent, served, stream, talks, words
from tests.support.cases import each_case
from tests.support.tables import table
from tests.wire_server import GeminiServer, Text
from webui.api.app import api_application
from webui.api.auth import TOKENS_FILE, Buckets, Callers, TokenFile, TokenNameRefused
from webui.http.sessions import Sessions

CANARY = "AIzaSyCanaryOfTheVisitors0000000000001"
PLACEHOLDER = re.compile(r"\{(\w+)(?::path)?\}")


@pytest.fixture
async def shared(tmp_path: Path) -> AsyncIterator[Served]:
    lines = [paints(said="A fox."), *talks("One.", "Two.")]
    async with served(tmp_path, text=lines, pictures=[painted()], api_tokens=TOKENS) as one:
        yield one


def bytes_below(folder: Path) -> list[bytes]:
    return [path.read_bytes() for path in folder.rglob("*") if path.is_file()]


async def schema(one: Served) -> dict[str, Any]:
    async with one.client() as anyone:
        found: dict[str, Any] = (await anyone.get("/api/v1/openapi.json")).json()
    return found


def calls_of(paths: dict[str, Any]) -> list[tuple[str, str]]:
    return [(method.upper(), path) for path, methods in paths.items() for method in methods]


async def test_the_schema_documents_our_routes_alone_and_none_answers_without_a_token(shared: Served) -> None:
    found = await schema(shared)
    assert all(path.startswith(("/api/v1/", "/v1/")) for path in found["paths"])
    operations = [one for methods in found["paths"].values() for one in methods.values()]
    assert len(operations) > 35
    assert all(one["summary"] and one.get("description") for one in operations)
    assert len({one["operationId"] for one in operations}) == len(operations)
    kept = set(found["components"]["schemas"])
    assert set(re.findall(r"#/components/schemas/([\w.-]+)", json.dumps(found))) <= kept
    assert {"TurnBody", "Problem", "PictureView"} <= kept
    for token in (None, "no-token-of-anybody", f"{ANNA}x"):
        async with shared.client(token) as stranger:
            for method, path in calls_of(found["paths"]):
                answer = await stranger.request(method, PLACEHOLDER.sub("x", path))
                assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer"), (method, path)
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
        bodies: dict[str, Any] = {"decision": {"run": True}, "turns": {"text": "hello"}}
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


FORM_WITHOUT_REQUEST = '--x\r\nContent-Disposition: form-data; name="text"\r\n\r\na\r\n--x--\r\n'
BODIES = [
    (FORM_WITHOUT_REQUEST, "multipart/form-data; boundary=x", 422),
    *table("api_requests")["bodies"],
    ("[" * 100_000, "", 422),
    ('{"text": ' + "1" * 10_000 + "}", "", 422),
]


@pytest.mark.asyncio(loop_scope="module")
@each_case(("body", "content_type", "status"), BODIES)
async def test_a_body_that_fits_nothing_is_refused_and_not_quoted(
    body: str, content_type: str, status: int, quiet: httpx.AsyncClient
) -> None:
    path = f"/api/v1/conversations/{await begun(quiet)}/turns"
    answer = await quiet.post(path, content=body, headers={"Content-Type": content_type or "application/json"})
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json"), answer.text
    problem = answer.json()
    assert {"type", "title", "status", "detail", "code"} <= problem.keys()
    assert problem["status"] == status
    assert len(answer.content) < 5000
    assert "Traceback" not in answer.text


async def test_half_a_character_is_taken_as_a_sign_that_nobody_knows(tmp_path: Path) -> None:
    headers = {"Content-Type": "application/json"}
    async with served(tmp_path) as one, one.client() as client:
        conversation = await begun(client)
        for path, body in table("api_requests")["half_characters"]:
            answer = await client.post(path.format(conversation), content=body, headers=headers)
            assert answer.status_code == 200, answer.text
        form = {"request": (None, r'{"text": "a fox \ud83d"}')}
        turns = f"/api/v1/conversations/{await begun(client)}/turns"
        assert (await client.post(turns, files=form)).status_code == 200
        items = (await client.get("/api/v1/conversations")).json()["conversations"]
        assert [item["title"] for item in items] == ["A fox \ufffd"] * 4
        # A whole one stays whole, and what only looks like an escape stays as it is.
        body = r'{"title": "\ud83e\udd8a \\ud83d \ud83d"}'
        named = await client.patch(f"/api/v1/conversations/{conversation}", content=body, headers=headers)
        assert named.json()["title"] == "🦊 \\ud83d \ufffd"


@pytest.mark.asyncio(loop_scope="module")
async def test_what_is_not_there_or_does_not_fit_is_refused_in_the_callers_language(quiet: httpx.AsyncClient) -> None:
    missing = await quiet.get("/api/v1/nothing", headers={"Accept-Language": "zh-CN,zh;q=0.9"})
    assert (missing.status_code, missing.json()["code"]) == (404, "no_such_address")
    assert "地址" in missing.json()["detail"]
    wrong = await quiet.request("TRACE", "/api/v1/conversations")
    assert (wrong.status_code, "GET" in wrong.headers["Allow"]) == (405, True)
    assert (await quiet.get("/v1/nothing")).json()["error"]["code"] == "no_such_address"
    # An address in which a line ends is one below /api/v1 as well.
    ended = await quiet.get("/api/v1/styles/a%0Ab")
    assert (ended.status_code, ended.json()["code"]) == (404, "style_not_found")

    async def endless() -> AsyncIterator[bytes]:
        for _ in range(40):
            yield b" " * 100_000

    declared = await quiet.post("/api/v1/conversations", content=b" " * (3 << 20))
    streamed = await quiet.post("/api/v1/styles", content=endless(), headers={"Content-Type": "application/json"})
    for answer in (declared, streamed):
        assert (answer.status_code, answer.json()["code"]) == (413, "body_too_large")


async def test_each_owner_has_a_rate_of_requests_and_of_turns(tmp_path: Path) -> None:
    rates: dict[str, Any] = {"api_requests_per_minute": 4.0, "api_turns_per_minute": 1.0, "api_tokens": TOKENS}
    lines, path = talks("One.", "Two."), "/api/v1/conversations"
    async with served(tmp_path, text=lines, **rates) as one, one.client(ANNA) as anna, one.client(BEN) as ben:
        conversation = await begun(anna)
        assert words(await sent(anna, conversation, "hello")) == "One."
        again = await anna.post(f"{path}/{conversation}/turns", json={"text": "hello"})
        assert (again.status_code, again.json()["code"]) == (429, "too_many_requests")
        assert 1 <= int(again.headers["retry-after"]) <= 60
        assert [(await client.get(path)).status_code for client in (anna, anna, ben)] == [200, 429, 200]


def test_no_token_is_needed_where_nobody_else_comes_and_no_password_is_asked_for(tmp_path: Path) -> None:
    sessions = Sessions(b"s" * 32)
    for is_public, has_password in ((False, False), (True, False), (False, True), (True, True)):
        settings = Settings(home=tmp_path, is_public=is_public)
        api = api_application(lambda: pytest.fail("not asked"), sessions, settings, "zh-CN", has_password=has_password)
        assert api.state.api.callers.owner("") == (None if is_public or has_password else "local")
        assert api.state.api.words({}).language == "zh-CN"
        assert api.state.api.words({"accept-language": "en-GB"}).language == "en"


def test_a_bucket_fills_at_its_rate() -> None:
    now_s = 0.0
    buckets = Buckets(2, clock=lambda: now_s)
    assert [buckets.take("anna") for _ in range(3)] == [0, 0, 30]
    now_s = 30
    assert [buckets.take("anna"), buckets.take("anna")] == [0, 30]
    assert buckets.take("ben") == 0


async def test_a_callers_own_key_serves_one_request_and_is_not_kept(
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
    assert [data for data in kept if CANARY.encode() in data] == []


def test_a_token_is_told_once_kept_as_a_hash_and_known_at_once(tmp_path: Path) -> None:
    file = TokenFile(tmp_path)
    tokens = Callers(file, {}, 60, is_open=True)
    assert tokens.owner("") == "local"
    token = TokenFile(tmp_path).new("anna")
    told = [tokens.owner(one) for one in ("", f"Bearer {token}", f"Basic {token}")]
    assert told == [None, "token-anna", None]
    kept = tmp_path / TOKENS_FILE
    assert (token in kept.read_text(), stat.S_IMODE(kept.stat().st_mode)) == (False, 0o600)
    with pytest.raises(TokenNameRefused, match="already"):
        file.new("anna")
    for name in ("", "Anna", "1st", "../x", "a b", "a" * 33, "local\n"):
        with pytest.raises(TokenNameRefused):
            file.new(name)
    assert [file.remove("anna"), tokens.owner(f"Bearer {token}"), file.remove("anna")] == [True, None, False]
    # Tokens that are made at the same moment are all kept.
    names = [f"robot-{number}" for number in range(8)]
    with ThreadPoolExecutor(8) as threads:
        assert len(set(threads.map(lambda name: TokenFile(tmp_path).new(name), names))) == 8
    assert sorted(file.hashes()) == names


def test_a_file_of_tokens_that_cannot_be_read_lets_nobody_in_and_local_is_the_pages_owner(tmp_path: Path) -> None:
    file, given = TokenFile(tmp_path), {"local": SecretStr("a-token-of-the-operator")}
    assert Callers(file, given, 60, is_open=False).owner("bearer  a-token-of-the-operator") == "local"
    assert Callers(file, {}, 60, is_open=False).owner("") is None
    (tmp_path / TOKENS_FILE).write_text("garbage")
    tokens = Callers(file, {}, 60, is_open=True)
    assert [tokens.owner(one) for one in ("", "Bearer garbage")] == [None, None]
    # Nor is it written over: somebody may mend it.
    for change in (file.new, file.remove):
        with pytest.raises(StorageFailure, match="is damaged"):
            change("anna")
    assert (tmp_path / TOKENS_FILE).read_text() == "garbage"


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

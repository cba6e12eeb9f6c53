"""Every way an answer can end, over real HTTP through the real SDKs: code, who must act, retry or not, charged or not.

A row names what is served, and what comes of it for an answer in words and for a picture. Where a row has one outcome
it is that of both. The last tests hold that the tables miss nothing that the SDKs know.
"""

from __future__ import annotations

import asyncio
import base64
import gc
import inspect
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack, aclosing, nullcontext
from functools import partial
from pathlib import Path
from types import AsyncGeneratorType
from typing import Any, NamedTuple

import httpx2
import pytest
from google.genai import errors, types
from pydantic import SecretStr

from agent import Actor, AivistaError, Charge, CompletionChunk, ErrorInfo
from tests import openai_server as openai_wire
from tests import wire_server
from tests.adapters.models import (
    TEXT_ENDS,
    Endpoint,
    ModelEntry,
    ModelRole,
    ProviderCall,
    as_ours,
    failure_of,
    load_catalogue,
)
from tests.openai_server import OpenAIServer
from tests.support import broken_servers as broken
from tests.support.cases import each_case
from tests.support.desks import at_gemini, at_openai
from tests.support.prompts import prompt
from tests.support.tables import filled, table
from tests.wire_server import Blocked, Finish, GeminiServer, HttpError, Text, error_body, key_body, quota_body

# The SDK warns of values that it does not know; they are here on purpose.
pytestmark = pytest.mark.filterwarnings("ignore:OF_NEXT_YEAR is not a valid")

KEY = "AIzaSyNobodysKeyForTheTests00000000002"
FLASH = load_catalogue().model(ModelRole.FLASH, "gemini")
PAINTER = load_catalogue().model(ModelRole.IMAGE_FLASH, "gemini")
# How long a server may be silent: shorter than any patience where that is what is served, else longer than any test.
SHORT_S, LONG_S = 0.4, 60.0

CHARGES = {"free": Charge.NO, "paid": Charge.YES, "perhaps": Charge.MAYBE}


class End(NamedTuple):
    """What came of a call."""

    code: str
    who: Actor
    again: bool
    charged: Charge


TABLE = table("endings")
WIRE, OPENAI_WIRE = vars(wire_server), vars(openai_wire)


def end(written: str) -> End | None:
    """Return the end that a table names by its code and what it costs."""
    if written == "good":
        return None
    code, charged = written.split(" ")
    who, again = TABLE["ends"][code]
    return End(code, Actor(who), again == "again", CHARGES[charged])


def needed(written: str) -> End:
    found = end(written)
    assert found is not None
    return found


def page(status: int, title: str, error: Callable[..., Any] = HttpError) -> Any:
    """A web page in the place of the API's answer."""
    text = f"<!DOCTYPE html><html><head><title>{title}</title><style>p {{}}</style></head><p>{title}</p></html>"
    return error(status, body=text.encode(), headers={"content-type": "text/html; charset=utf-8"})


def failed(status: int, message: str, name: str = "") -> HttpError:
    """An error of the API's own, of this kind."""
    body = error_body(status, message)
    if name:
        body["error"]["status"] = name
    return HttpError(status, body=body)


# Answers that a table names by what they are, and words that stand for something in them.
SHORT: dict[str, Callable[..., Any]] = {
    "page": page,
    "failed": failed,
    "key": lambda status, reason, message: HttpError(status, body=key_body(reason, message, status)),
    "quota": lambda **fields: HttpError(429, body=quota_body(**fields)),
}


def answer(written: Any, kinds: dict[str, Any]) -> Any:
    """Return what a table serves: an answer of the server, or a server that breaks off."""
    if isinstance(written, str):
        name = written.removeprefix("broken ")
        return partial(broken.speaking, getattr(broken, name)) if name.isupper() else getattr(broken, name)
    fields = {name: value_of(value, kinds) for name, value in written.items() if name != "kind"}
    made = kinds | SHORT
    if kinds is OPENAI_WIRE:
        made["page"] = partial(page, error=openai_wire.HttpError)
    return made[written["kind"]](**fields)


def value_of(value: Any, kinds: dict[str, Any]) -> Any:
    match value:
        case {"bytes": text}:
            return text.encode()
        case {"base64": text}:
            return base64.b64decode(text)
        case {"kind": _}:
            return answer(value, kinds)
        case dict():
            return {name: value_of(one, kinds) for name, one in value.items()}
        case list():
            return [value_of(one, kinds) for one in value]
    return filled(value, {"$quota": quota_body("minute", retry_s=34.0), "$key": KEY})


async def ending(chunks: AsyncIterator[CompletionChunk]) -> ErrorInfo | None:
    """Return how a call ended, whichever way it says so."""
    last: ErrorInfo | None = None
    try:
        async for chunk in chunks:
            last = chunk.error
    except AivistaError as error:
        return error.info
    return last


def outcome(info: ErrorInfo | None) -> End | None:
    return End(info.code.value, info.actor, info.can_retry, info.charged) if info is not None else None


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


class Api(NamedTuple):
    """One of the two APIs: what serves it, and what asks it."""

    wire: Any
    server: Callable[[], Any]
    desk: Callable[..., Any]
    talker: str
    painter: str
    path: str = ""


GEMINI = Api(wire_server, GeminiServer, at_gemini, FLASH.id, PAINTER.id)
OPENAI = Api(openai_wire, partial(OpenAIServer, key=KEY), at_openai, "talker", "painter", "/v1")


async def asked_of(api: Api, served: Any, *, for_picture: bool) -> ErrorInfo | None:
    patience_s = SHORT_S if isinstance(served, api.wire.Hold) else LONG_S
    options: dict[str, Any] = {"text_timeout_s": patience_s, "image_timeout_s": patience_s}
    is_answer = isinstance(served, api.wire.Answer)
    with ExitStack() as stack:
        server = stack.enter_context(api.server())
        if is_answer:
            for serve in (server.on_text, server.on_image) if api is GEMINI else (server.on_chat, server.on_picture):
                serve(served)
        else:
            options["base_url"] = stack.enter_context(served()) + api.path
        async with api.desk(server, key=KEY, **options) as desk:
            ask, model = (desk.painting, api.painter) if for_picture else (desk.stream, api.talker)
            async with aclosing(ask(model, prompt("a fox"))) as chunks:
                info = await ending(chunks)
        asked = server.requests if api is GEMINI else [*server.chats, *server.pictures]
        assert len(asked) == is_answer, "nothing is tried twice here"
        return info


async def comes_to(api: Api, served: Any, expected: End | None, *, for_picture: bool) -> None:
    """Assert what comes of a call, and that what is told of it quotes no key and leaves nothing open."""
    info = await asked_of(api, served, for_picture=for_picture)
    assert outcome(info) == expected
    if info is not None:
        assert "?" not in info.message
        assert api is GEMINI or "Google" not in info.message
        assert KEY not in info.model_dump_json()


def rows(name: str, kinds: dict[str, Any], *more: tuple[Any, ...]) -> list[Any]:
    """Return each row once for words and once for a picture."""
    served = [(row[0], answer(row[1], kinds), *row[2:]) for row in TABLE[name]] + list(more)
    return [
        pytest.param(one, end(written), for_picture, id=f"{name}, {'picture' if for_picture else 'words'}")
        for name, one, *ends in served
        for written, for_picture in ((ends[0], False), (ends[-1], True))
        if written != "-"
    ]


FINISHED = [(f"finish {name}", Finish(name, "because"), *ends) for name, *ends in TABLE["finishes"]]
BLOCKS = [reason.value for reason in types.BlockedReason] + ["OF_NEXT_YEAR"]
BLOCKED = [(f"block {reason}", Blocked(reason, "because"), "prompt_blocked paid") for reason in BLOCKS]


@each_case(("served", "expected", "for_picture"), rows("gemini", WIRE, *FINISHED, *BLOCKED))
async def test_gemini(served: Any, expected: End | None, for_picture: bool) -> None:
    await comes_to(GEMINI, served, expected, for_picture=for_picture)


# The same for a server of OpenAI's API. What it calls a stream is one only for words.
ENDED = [
    (f"finish {name}", openai_wire.Text("Once", finish_reason=name), ends, "-")
    for name, ends in TABLE["openai_finishes"]
]


@each_case(("served", "expected", "for_picture"), rows("openai", OPENAI_WIRE, *ENDED))
async def test_a_server_of_openais_api(served: Any, expected: End | None, for_picture: bool) -> None:
    await comes_to(OPENAI, served, expected, for_picture=for_picture)


# A proxy between the studio and the server.


async def test_a_proxy_that_lets_nothing_through_or_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    elsewhere = partial(nullcontext, "https://models.example.org")
    for status in (b"403 Forbidden", b"407 Proxy Authentication Required", b"502 Bad Gateway"):
        with broken.speaking(b"HTTP/1.1 " + status + b"\r\ncontent-length: 0\r\n\r\n") as proxy:
            monkeypatch.setenv("HTTPS_PROXY", proxy)
            for api in (GEMINI, OPENAI):
                await comes_to(api, elsewhere, end("proxy_failed free"), for_picture=False)
    with broken.refusing() as proxy:
        monkeypatch.setenv("HTTPS_PROXY", proxy)
        await comes_to(GEMINI, elsewhere, end("connection_failed free"), for_picture=True)


# Exceptions that no server of ours can bring about, each by its class: what it means whenever it is raised.

HTTP_EXCEPTIONS = {name: needed(written) for name, written in TABLE["http_exceptions"].items()}
# Of those that read a response that is not there, or twice: mistakes of whoever uses the client, never of the network.
MISUSES = {
    *("CookieConflict", "RequestNotRead", "ResponseNotRead", "StreamClosed", "StreamConsumed", "StreamError"),
    "SSEError",
}
# Before anything was answered the SDK itself is at fault; afterwards what came is.
SDK_ERRORS = {"APIError", "ClientError", "ServerError"}
SDK_EXCEPTIONS = {
    *("UnknownFunctionCallArgumentError", "UnsupportedFunctionError", "FunctionInvocationError"),
    *("UnknownApiResponseError", "ContinuationInterruptedError", "ExperimentalWarning"),
}


def exceptions_of(module: Any) -> dict[str, type[Exception]]:
    return {
        name: one
        for name, one in inspect.getmembers(module, inspect.isclass)
        if issubclass(one, Exception) and not name.startswith("_")
    }


def asked(model: ModelEntry = FLASH) -> ProviderCall:
    where: dict[str, Any] = {"base_url": "https://models.example.org", "service": "models.example.org", "api": "API"}
    endpoint = Endpoint(**where, key=SecretStr(KEY), url_variable="THE_URL", key_variable="THE_KEY")
    return ProviderCall(endpoint, model, "THE_MODEL", 60.0, [SecretStr(KEY)], "/chat/completions")


def made(kind: type[Exception]) -> Exception:
    """Return an exception that quotes the key, whatever it wants to be made of."""
    error = kind.__new__(kind)
    Exception.__init__(error, f"no {KEY}")
    return error


def test_the_tables_miss_nothing_that_the_sdk_knows() -> None:
    assert set(exceptions_of(httpx2)) == {*HTTP_EXCEPTIONS, *MISUSES}
    assert set(exceptions_of(errors)) == SDK_ERRORS | SDK_EXCEPTIONS
    reasons = {reason.value for reason in types.FinishReason}
    assert {name for name, *_ in TABLE["finishes"]} == {*reasons, "OF_NEXT_YEAR"}
    assert {name for name, _ in TABLE["openai_finishes"]} == {*TEXT_ENDS, "of_next_year"}


def test_every_exception_of_the_http_client_and_of_the_sdk_has_its_meaning() -> None:
    found = []
    for name, expected in HTTP_EXCEPTIONS.items():
        error = made(exceptions_of(httpx2)[name])
        found.append((name, failure_of(error, asked(), has_response=True).info, expected))
        found.append((name, as_ours(error, asked()).info, expected))
    for name in sorted(SDK_EXCEPTIONS):
        error = exceptions_of(errors)[name](f"no {KEY}")
        found.append((name, failure_of(error, asked(), has_response=True).info, needed("answer_unreadable perhaps")))
        found.append((name, failure_of(error, asked(), has_response=False).info, needed("not_sent free")))
    assert [(name, info) for name, info, end in found if outcome(info) != end or KEY in info.model_dump_json()] == []


async def test_aiohttp_is_never_used_even_where_it_is_installed(tmp_path: Path) -> None:
    """Google's SDK takes it whenever it can be imported, and asks twice by itself when a connection breaks."""
    stand_in = tmp_path / "aiohttp"
    stand_in.mkdir()
    (stand_in / "__init__.py").write_text(
        "import types\n"
        "class ClientSession:\n    def __init__(self, *a, **k): raise SystemExit('aiohttp was used')\n"
        "def __getattr__(name):\n    return type(name, (Exception,), {})\n"
    )
    program = """
import asyncio, sys
from tests.agent.providers.test_endings import FLASH, prompt
from tests.support.shelf import Shelf
from agent.providers.gemini import GeminiProvider
import google.genai._api_client as sdk
assert sdk.has_aiohttp

async def main(url):
    provider = GeminiProvider("AIzaSyNobodysKey", Shelf(), base_url=url)
    said = [chunk.part.text async for chunk in provider.stream(FLASH, [prompt("a fox")]) if chunk.part is not None]
    await provider.aclose()
    print("".join(said))

asyncio.run(main(sys.argv[1]))
"""
    with GeminiServer() as server:
        server.on_text(Text("Here I am."))
        command = [sys.executable, "-c", program, server.url]
        where: dict[str, Any] = {"cwd": Path(__file__).parents[3], "env": {"PYTHONPATH": f"{tmp_path}:.", "PATH": ""}}
        run = partial(subprocess.run, command, capture_output=True, text=True, check=False, **where)
        ran = await asyncio.to_thread(run)
    assert (ran.stdout.strip(), ran.returncode) == ("Here I am.", 0), ran.stderr


# The words of what is told.


async def told(served: Any, *, for_picture: bool = True) -> ErrorInfo:
    info = await asked_of(GEMINI, served, for_picture=for_picture)
    assert info is not None
    return info


async def test_a_refusal_and_an_unknown_reason_are_told_in_the_providers_own_words() -> None:
    message = "Model failed to generate content due to internal error."
    for for_picture in (False, True):
        info = await told(Finish("OTHER", message), for_picture=for_picture)
        assert f"for an unknown reason (OTHER: {message})" in info.message
        assert "policy" not in info.message
    message = "The model output could not be generated. Support code: 42876398."
    info = await told(Finish("IMAGE_SAFETY", message))
    assert (info.parameters["reason"], info.provider_detail) == ("IMAGE_SAFETY", message)


async def test_a_wrong_address_is_told_with_its_variable_and_the_words_of_the_page() -> None:
    info = await told(page(404, "Not here &amp; not there"), for_picture=False)
    assert "GOOGLE_GEMINI_BASE_URL" in info.message
    assert "AIVISTA_MODEL" not in info.message
    assert "<" not in info.provider_detail
    assert "Not here & not there" in info.provider_detail


async def test_an_answer_given_up_at_once_names_no_time_that_nobody_waited() -> None:
    for served in (failed(504, "Deadline expired before operation could complete."), failed(408, "Request timeout")):
        info = await told(served)
        assert float(str(info.parameters["seconds"])) < LONG_S
        assert f"{LONG_S:g} s" not in info.message


@each_case(
    ("headers", "seconds"),
    [
        ({"Retry-After": "7"}, 7),
        ({"Retry-After": "2.2"}, 3),
        ({"Date": "Mon, 23 Nov 2026 10:00:00 GMT", "Retry-After": "Mon, 23 Nov 2026 10:00:04 GMT"}, 4),
        # The server's own clock counts, whatever ours says.
        ({"Date": "Thu, 01 Jan 2015 10:00:00 GMT", "Retry-After": "Thu, 01 Jan 2015 10:05:00 GMT"}, 300),
        ({"Date": "Mon, 23 Nov 2026 10:00:00 GMT", "Retry-After": "Mon, 23 Nov 2026 09:00:00 GMT"}, 1),
        ({"Retry-After": "soon"}, None),
        ({"Retry-After": "-5"}, None),
        ({}, None),
    ],
)
@each_case("status", [429, 503])
async def test_both_apis_say_when_to_come_back(status: int, headers: dict[str, str], seconds: int | None) -> None:
    for api in (GEMINI, OPENAI):
        info = await asked_of(api, api.wire.HttpError(status, "busy", headers=headers), for_picture=False)
        assert info is not None
        assert info.parameters.get("seconds") == seconds


def open_bodies() -> list[AsyncGeneratorType[Any, Any]]:
    """Return what still reads from a connection."""
    found = [one for one in gc.get_objects() if isinstance(one, AsyncGeneratorType)]
    return [one for one in found if one.ag_frame is not None and "httpcore2" in one.ag_code.co_filename]


async def test_what_reads_an_answer_ends_with_the_call_and_not_when_memory_is_tidied_up() -> None:
    early = [
        (GEMINI, wire_server.TextOnly("No picture today."), True),
        (GEMINI, wire_server.MidStreamError(after_chunks=1, status=500, message="over"), False),
        (GEMINI, wire_server.Garbage(b"<html>"), False),
        (OPENAI, openai_wire.MidStreamError(after_chunks=1, event={"error": {"message": "over"}}), False),
        (OPENAI, openai_wire.Text("a fox"), False),
    ]
    gc.collect()
    gc.disable()
    try:
        for api, served, for_picture in early:
            before = open_bodies()
            await asked_of(api, served, for_picture=for_picture)
            await asyncio.sleep(0.01)
            assert [one for one in open_bodies() if one not in before] == [], served
    finally:
        gc.enable()

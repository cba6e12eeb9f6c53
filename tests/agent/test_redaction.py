"""No secret stays: in text, in JSON, in what real HTTP clients log; and what is none stays readable."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import quote, quote_plus

import httpx
import httpx2
import pytest
import uvicorn.logging
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue, SecretStr

from agent import OpenAISettings, Settings
from tests.adapters.records import (
    HIDDEN,
    TOO_DEEP,
    RedactingFilter,
    object_without_secrets,
    secrets_of,
    without_homes,
    without_secrets,
)
from tests.support.cases import each_case
from tests.support.waiting import join

# The part that must be found nowhere.
CANARY = "CANARYcanaryCANARY7x7"
GOOGLE = f"AIzaSy{CANARY}0123456789ab"
NEW_GOOGLE = f"AQ.{CANARY}_0123456789-abcdefghijkl"

SHAPES = {
    "google": f"key {GOOGLE} was suspended",
    "google, new": f"('{NEW_GOOGLE}',)",
    "google in a word": f"xx{GOOGLE}",
    "openai": f"sk-{CANARY}",
    "openai, project": f"sk-proj-{CANARY}_x-y",
    "openai behind a quoted end of line": f"a\\nsk-{CANARY}",
    "openai behind an escape": f"key%3Dsk-{CANARY}",
    "openai behind an escaped letter": f"\\u72d0sk-{CANARY}",
    "groq": f"gsk-{CANARY}",
    "hugging face": f"hf_{CANARY}",
    "github": f"ghp_{CANARY}",
    "oauth": f"ya29.{CANARY}",
    "ephemeral": f"auth_tokens/{CANARY}",
    "json web token": f"eyJ{CANARY}.{CANARY}.{CANARY}",
    "bearer": f"Authorization: Bearer {CANARY}",
    "bearer alone": f"Bearer {CANARY[:6]}",
    "bearer in lower case": f"bearer {CANARY}",
    "bearer in a URL": f"Bearer%20{CANARY}",
    "basic": f"authorization: Basic {CANARY}==",
    "header": f"x-goog-api-key: {CANARY}",
    "header in capitals": f"X-Goog-Api-Key:{CANARY}",
    "header in a dict": f"{{'x-goog-api-key': '{CANARY}', 'a': 'b'}}",
    "header in bytes": f"[(b'x-goog-api-key', b'{CANARY}'), (b'a', b'b')]",
    "header in JSON": f'{{"x-goog-api-key": "{CANARY}"}}',
    "header in JSON in JSON": json.dumps(json.dumps({"x-goog-api-key": CANARY})),
    "authorization in bytes": f"(b'Authorization', b'Bearer {CANARY}')",
    "variable": f"GEMINI_API_KEY={CANARY}",
    "argument": f"Client(api_key='{CANARY}')",
    "brackets": f"password=({CANARY}[1])",
    "cookie": f"Cookie: aivista_session={CANARY}; b={CANARY}\r\nhost: x",
    "cookie in bytes": f"(b'set-cookie', b'a={CANARY}; Path=/')",
    "query": f"GET https://example.org/v1?key={CANARY}&alt=sse",
    "second of a query": f"/v1?alt=sse&key={CANARY} HTTP/1.1",
    "query of HTML": f"/v1?alt=sse&amp;key={CANARY}",
    "token of a query": f"?access_token={CANARY}#x",
    "query in a query": "?url=" + quote(f"https://h/?a=1&key={CANARY}&b=2", safe=""),
    "link": f"/media/c/1?owner=local&until=9&sig={CANARY}",
    "signed storage": f"?X-Goog-Signature={CANARY}&x=1",
    "name and password": f"postgresql://aivista:{CANARY}@db.example/x",
    "password with an at": f"redis://:p@{CANARY}@db",
    "password with a hash": f"redis://u:#{CANARY}@db",
    "token as a name": f"https://{CANARY}@git.example/x.git",
}

HARMLESS = [
    "A fox in the snow, 16:9, at 4K.",
    "一只红狐狸, https://example.org/a?page=2&size=3#part",
    "the ring bearer walks into the dark forest",
    "a risk-averse-person and an ask-me-anything-page on a desk-lamp-with-legs",
    "Basic colours, a low-key=light picture and a keyboard",
    "mail fox@example.org or see https://example.org/@fox and http://127.0.0.1:7860/x@y",
    "the headers authorization and cookie are hidden",
    "prompt_tokens=12 total_tokens: 34, token count 5",
    "history_0123456789abcdef0123456789abcdef and " + "f" * 64,
    "postgresql://db.example/aivista",
    "critic:#3",
    "{'monkey': 'George'}",
]


def test_what_looks_like_a_secret_is_hidden() -> None:
    found = {case: without_secrets(text) for case, text in SHAPES.items()}
    assert {case: hidden for case, hidden in found.items() if CANARY[:6] in hidden or HIDDEN not in hidden} == {}
    assert {case: hidden for case, hidden in found.items() if without_secrets(hidden) != hidden} == {}


def test_what_looks_like_a_secret_is_hidden_amid_a_text() -> None:
    found = {case: without_secrets(f"before it\n{text}\nafter it") for case, text in SHAPES.items()}
    assert {case: hidden for case, hidden in found.items() if CANARY[:6] in hidden} == {}
    around = re.compile(r"before it\n.*after it", re.DOTALL)
    assert {case: hidden for case, hidden in found.items() if not around.fullmatch(hidden)} == {}


def test_what_is_no_secret_stays() -> None:
    assert [text for text in HARMLESS if without_secrets(text) != text] == []
    assert [text for text in HARMLESS if without_homes(text) != text] == []


def test_the_rest_of_an_address_stays() -> None:
    assert without_secrets("https://h.example/v1/m:go?key=abc&alt=sse 400") == (
        "https://h.example/v1/m:go?key=[secret]&alt=sse 400"
    )
    assert without_secrets("postgresql://u:p@db.example/x") == "postgresql://[secret]@db.example/x"
    assert without_secrets('{"authorization": "Bearer abc", "n": 1}') == '{"authorization": "Bearer [secret]", "n": 1}'


@pytest.mark.parametrize("value", ["pa ss/wörd&x", 'quo"te\\s', "line\nend", "a+b=c/d==", "狐狸的钥匙"])
def test_a_known_value_is_hidden_in_every_spelling(value: str) -> None:
    secret = SecretStr(value)
    spellings = [value, quote(value), quote(value, safe=""), json.dumps(value), json.dumps([value]), repr(value)]
    spellings += [repr(value.encode()), json.dumps(value, ensure_ascii=False), quote_plus(value)]
    spellings.append("http://h/" + quote(value, safe="!$&'()*+,/:;=@~"))
    for spelling in spellings:
        hidden = without_secrets(f"a {spelling} b", [secret])
        assert HIDDEN in hidden, spelling
        for part in (value, quote(value, safe=""), json.dumps(value)[1:-1], repr(value.encode())[2:-1]):
            assert part not in hidden, spelling
        assert without_secrets(hidden, [secret]) == hidden


def test_the_longer_of_two_values_goes_first() -> None:
    secrets = [SecretStr("hunter2"), SecretStr("hunter2-and-more"), SecretStr("")]
    assert without_secrets("it is hunter2-and-more.", secrets) == "it is [secret]."


def test_a_key_that_is_a_short_word_is_hidden_only_where_it_stands_alone() -> None:
    assert without_secrets("an x in a box, key 'x'.", [SecretStr("x")]) == "an [secret] in a box, key '[secret]'."
    secret = [SecretStr("secret")]
    once = without_secrets("the secret is secret", secret)
    assert once == "the [secret] is [secret]" == without_secrets(once, secret)


@given(st.text(max_size=200), st.sampled_from(sorted(SHAPES.values())), st.text(max_size=30))
def test_a_secret_is_hidden_after_any_text_and_hiding_again_changes_nothing(before: str, shape: str, name: str) -> None:
    text = f"{before}\n{shape} {name}"
    secrets = [SecretStr(name)] if len(name) > 3 else []
    hidden = without_secrets(text, secrets)
    assert CANARY not in hidden
    assert without_secrets(hidden, secrets) == hidden


@each_case("piece", ["a", "://", "://a:", ":", "eyJ", "key", "?", "&key", "Bearer ", "cookie: ", "\\", "AQ."])
def test_a_quarter_of_a_megabyte_of_anything_is_read_in_one_go(piece: str) -> None:
    text = piece * (250_000 // len(piece))
    assert len(without_homes(without_secrets(text))) > 0


# JSON

DEEP: dict[str, JsonValue] = {
    "list": [{"url": f"https://h/?key={CANARY}"}, [[GOOGLE]], 1, 2.5, None, True],
    GOOGLE: "a name",
    NEW_GOOGLE: "another name",
    "headers": {"Authorization": CANARY, "X-Goog-Api-Key": CANARY, "Accept": "text/html"},
    "settings": {"gemini_api_key": CANARY, "password": CANARY, "token": CANARY, "token_count": "3", "api_key": None},
    "usage": {"prompt_tokens": 3, "token": 4},
    "known": "it is hunter2 indeed",
}


def test_secrets_are_hidden_in_names_and_values_at_every_depth() -> None:
    before = json.dumps(DEEP)
    hidden: Any = object_without_secrets(DEEP, [SecretStr("hunter2")])
    text = json.dumps(hidden)
    assert CANARY not in text
    assert "hunter2" not in text
    assert list(hidden) == ["list", HIDDEN, f"{HIDDEN} 2", "headers", "settings", "usage", "known"]
    assert hidden["list"] == [{"url": "https://h/?key=[secret]"}, [[HIDDEN]], 1, 2.5, None, True]
    assert hidden["headers"] == {"Authorization": HIDDEN, "X-Goog-Api-Key": HIDDEN, "Accept": "text/html"}
    assert hidden["settings"]["token_count"] == "3"
    assert hidden["settings"]["api_key"] is None
    assert hidden["usage"] == {"prompt_tokens": 3, "token": 4}
    assert object_without_secrets(hidden) == hidden
    assert json.dumps(DEEP) == before, "what was given is not changed"


def test_json_of_any_depth_is_taken() -> None:
    deep: JsonValue = GOOGLE
    for _ in range(100_000):
        deep = [deep]
    assert TOO_DEEP in json.dumps(object_without_secrets({"a": deep}))


JSON = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False) | st.text() | st.sampled_from(sorted(SHAPES.values())),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text() | st.sampled_from([GOOGLE, "api_key", "url"]), inner, max_size=4)
    ),
    max_leaves=20,
)


@given(JSON)
def test_any_json_stays_json_without_secrets(value: JsonValue) -> None:
    hidden = object_without_secrets({"any": value})
    assert CANARY not in json.dumps(hidden, ensure_ascii=False)
    assert object_without_secrets(hidden) == hidden


# Homes


def test_our_own_home_is_a_tilde(monkeypatch: pytest.MonkeyPatch) -> None:
    # Whoever runs the tests may have one that looks like anyone's.
    monkeypatch.setenv("HOME", "/srv/ada")
    home = Path.home()
    assert without_homes(f"open {home / 'aivista' / 'x.db'}: no") == f"open ~{home.root}aivista{home.root}x.db: no"
    assert without_homes(f"'{home}'") == "'~'"
    assert without_homes(f"{home}less") == f"{home}less"


@each_case(
    ("text", "short"),
    [
        ("/home/ada/x.py", "~/x.py"),
        ("File '/Users/ada/x.py', line 3", "File '~/x.py', line 3"),
        ("file:///home/ada/x", "file://~/x"),
        ("cwd=/home/ada", "cwd=~"),
        ("C:\\Users\\Ada Lovelace\\x.py", "~\\x.py"),
        ("C:\\\\Users\\\\ada\\\\x.py", "~\\\\x.py"),
        ("c:/Users/ada/x", "~/x"),
        ("https://example.org/home/ada/x", "https://example.org/home/ada/x"),
        ("/srv/home/ada/x", "/srv/home/ada/x"),
    ],
)
def test_anyones_home_is_a_tilde(text: str, short: str) -> None:
    assert without_homes(text) == short
    assert without_homes(short) == short


def test_the_secrets_of_the_settings_are_all_of_their_keys(tmp_path: Path) -> None:
    assert secrets_of(Settings(home=tmp_path)) == ()
    openai = OpenAISettings(
        base_url="http://h", text_model="t", api_key=SecretStr("two"), image_api_key=SecretStr("three")
    )
    settings = Settings(home=tmp_path, gemini_api_key=SecretStr("one"), openai=openai)
    assert [secret.get_secret_value() for secret in secrets_of(settings)] == ["one", "two", "three"]


# Logs


@contextmanager
def log(
    *secrets: str, name: str | None = "tests.redaction", formatter: logging.Formatter | None = None
) -> Iterator[tuple[logging.Logger, Callable[[], str]]]:
    """Give a logger whose handler hides secrets, and what it wrote."""
    written = io.StringIO()
    handler = logging.StreamHandler(written)
    handler.setFormatter(formatter or logging.Formatter("%(levelname)s %(name)s %(message)s"))
    handler.addFilter(RedactingFilter(lambda: [SecretStr(secret) for secret in secrets]))
    logger = logging.getLogger(name)
    before = (logger.level, logger.propagate)
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    logger.propagate = False
    try:
        yield logger, written.getvalue
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before[0])
        logger.propagate = before[1]


class Url:
    """An argument that is no text and shows a secret."""

    def __str__(self) -> str:
        return f"https://h/?key={CANARY}"


def test_a_secret_is_hidden_in_messages_and_arguments_of_every_kind() -> None:
    with log("hunter2") as (logger, written):
        logger.info("plain %s", GOOGLE)
        logger.info("split ?key=%s&n=%d", CANARY, 3)
        logger.info("object %s and %r", Url(), [GOOGLE])
        logger.info("bytes %s", GOOGLE.encode())
        logger.info("named %(a)s %(b)d", {"a": GOOGLE, "b": 7})
        logger.info("no arguments, 100% hunter2")
        logger.info("nothing %s %.1f %5d", "to hide", 2.25, 42)
    lines = written().splitlines()
    assert CANARY not in written()
    assert "hunter2" not in written()
    assert lines[1].endswith("split ?key=[secret]&n=3")
    assert lines[4].endswith("named [secret] 7")
    assert lines[5].endswith("100% [secret]")
    assert lines[6].endswith("nothing to hide 2.2    42")


def test_a_message_that_cannot_be_put_together_is_written_without_its_secret(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with log() as (logger, written):
        for broken in ("one %s two %s", "none"):
            logger.info(broken, GOOGLE)
        logger.info("number %d", GOOGLE)
        logger.info("%(missing)s", {"a": GOOGLE})
    assert len(written().splitlines()) == 4
    assert CANARY not in written() + capsys.readouterr().err
    assert "one %s two %s" in written()


def test_a_secret_is_hidden_in_tracebacks_and_stacks() -> None:
    with log() as (logger, written):
        try:
            try:
                raise ValueError(f"no {GOOGLE}")
            except ValueError as error:
                raise RuntimeError(f"Bearer {CANARY}") from error
        except RuntimeError:
            logger.exception("it failed", stack_info=True)
        logger.error("and again", exc_info=KeyError("harmless"))
    assert CANARY not in written()
    assert "RuntimeError: Bearer [secret]" in written()
    assert "ValueError: no [secret]" in written()
    assert "Stack (most recent call last)" in written()
    assert "KeyError: 'harmless'" in written()


def test_the_web_servers_own_formatters_still_work() -> None:
    access = uvicorn.logging.AccessFormatter("%(client_addr)s %(request_line)s %(status_code)s", use_colors=False)
    with log(formatter=access) as (logger, written):
        target = f"/gradio_api/x?key={CANARY}&a=1"
        logger.info('%s - "%s %s HTTP/%s" %d', "127.0.0.1:1", "GET", target, "1.1", 200)
    assert written() == "127.0.0.1:1 GET /gradio_api/x?key=[secret]&a=1 HTTP/1.1 200 OK\n"
    default = uvicorn.logging.DefaultFormatter("%(message)s", use_colors=True)
    with log(formatter=default) as (logger, written):
        logger.error("running on %s", Url(), extra={"color_message": "running in colour on %s"})
    assert written() == "running in colour on https://h/?key=[secret]\n"


def test_the_secrets_are_asked_for_at_each_record() -> None:
    known: list[SecretStr] = []
    redacting = RedactingFilter(lambda: known)
    seen = []
    for _ in range(2):
        record = logging.LogRecord("x", logging.INFO, "x.py", 1, "hunter2", None, None)
        assert redacting.filter(record)
        seen.append(record.getMessage())
        known.append(SecretStr("hunter2"))
    assert seen == ["hunter2", HIDDEN]
    assert "hunter2" not in repr(vars(redacting)) + repr(redacting)


class Unspeakable:
    def __repr__(self) -> str:
        raise RuntimeError("this object is closed")


def test_an_argument_that_cannot_be_written_does_not_break_the_caller() -> None:
    with log() as (logger, written):
        logger.info("%s and %s", Unspeakable(), "a word")
    assert "Unspeakable" in written()
    assert "a word" in written()


class Echo(BaseHTTPRequestHandler):
    """Answers with headers that quote a key, as a server that is set up badly does."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.send_response(400, f"no {GOOGLE}")
        self.send_header("x-goog-api-key", self.headers.get("x-goog-api-key", ""))
        self.send_header("www-authenticate", f"Bearer {CANARY}")
        self.send_header("set-cookie", f"session={CANARY}; Path=/")
        self.send_header("location", f"https://user:{CANARY}@h/?key={CANARY}")
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing on the terminal."""


@pytest.fixture(scope="module")
def echo() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Echo)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    join(thread)
    server.server_close()


@pytest.mark.parametrize("client", [httpx, httpx2], ids=["httpx", "httpx2"])
def test_no_key_reaches_the_log_of_an_http_client_at_debug(echo: str, client: ModuleType) -> None:
    raw = io.StringIO()
    plain = logging.StreamHandler(raw)

    def ask() -> None:
        headers = {"x-goog-api-key": "canary-of-no-shape", "authorization": f"Bearer {CANARY}"}
        with client.Client() as http:
            http.get(f"{echo}/v1/models?alt=sse&key={CANARY}", headers=headers)
            with pytest.raises(client.LocalProtocolError):
                http.get(echo, headers={"x-goog-api-key": "canary-of-no-shape\nand more"})

    async def ask_async() -> None:
        async with client.AsyncClient() as http:
            await http.get(f"{echo}/?key={CANARY}", headers={"x-goog-api-key": "canary-of-no-shape"})

    with log("canary-of-no-shape", name=None) as (_, written):
        ask()
        asyncio.run(ask_async())
    hidden = written()
    # Without the filter it is all there: the test could fail.
    logging.getLogger().addHandler(plain)
    logging.getLogger().setLevel(logging.DEBUG)
    try:
        ask()
    finally:
        logging.getLogger().removeHandler(plain)
        logging.getLogger().setLevel(logging.WARNING)
    for secret in (CANARY, "canary-of-no-shape"):
        assert secret in raw.getvalue()
        assert secret not in hidden
    name = client.__name__.replace("httpx", "httpcore")
    assert f"DEBUG {name}.http11 receive_response_headers.complete" in hidden
    assert f"INFO {client.__name__} HTTP Request: GET {echo}/v1/models?alt=sse&key=[secret]" in hidden
    assert "Illegal header value b'[secret]" in hidden

"""A key goes to Google's header and nowhere else: not into files, logs, events, sentences or representations."""

from __future__ import annotations

import logging
import os
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from pydantic import SecretStr

from agent.errors import AivistaError, ErrorCode
from agent.events import TurnDone, TurnEvent, TurnFailed
from agent.messages import PromptMessage, Role, TextPart
from agent.settings import Settings
from agent.studio import Studio
from tests.adapters.catalogue import ModelRole, load_catalogue
from tests.adapters.providers import GeminiProvider
from tests.adapters.records import ImageStore
from tests.support.gemini import SMALL, on_gemini, paint, search, spoken
from tests.support.scenes import png, run
from tests.wire_server import (
    Answer,
    Blocked,
    Cut,
    Finish,
    Garbage,
    GeminiServer,
    Hold,
    HttpError,
    MidStreamError,
    Search,
    Text,
    TextOnly,
    WireRequest,
    error_body,
)

# The part that must be found nowhere, in each shape that Google gives its keys.
CANARY = "CANARYcanaryCANARY7x7"
KEYS = [f"AIzaSy{CANARY}0123456789ab", f"AQ.{CANARY}_0123456789-abcdefghijkl"]


@pytest.fixture
def server() -> Iterator[GeminiServer]:
    with GeminiServer() as running:
        yield running


@contextmanager
def everything_logged() -> Iterator[Callable[[], str]]:
    """Set every logger to DEBUG and give what was logged as text, arguments and tracebacks included."""
    lines: list[str] = []
    formatter = logging.Formatter("%(levelname)s %(name)s %(message)s")

    class Ear(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(f"{formatter.format(record)} {record.args!r}")

    loggers = [logging.getLogger(), *(logging.getLogger(name) for name in list(logging.root.manager.loggerDict))]
    before = [(logger, logger.level, logger.disabled) for logger in loggers]
    ear = Ear(logging.DEBUG)
    logging.getLogger().addHandler(ear)
    for logger in loggers:
        logger.setLevel(logging.DEBUG)
        logger.disabled = False
    try:
        yield lambda: "\n".join(lines)
    finally:
        logging.getLogger().removeHandler(ear)
        for logger, level, was_disabled in before:
            logger.setLevel(level)
            logger.disabled = was_disabled


def told(error: BaseException) -> str:
    """Return everything that a log or a report shows of an exception, our own frames with their local variables."""
    shown = traceback.TracebackException.from_exception(error, capture_locals=True)
    local = [str(frame.locals) for frame in shown.stack if f"{os.sep}tests{os.sep}" not in frame.filename]
    assert local
    return "".join([*local, *traceback.format_exception(error), repr(error), str(error)])


def expect_no_key_in_files(settings: Settings) -> None:
    files = [path for path in settings.home.rglob("*") if path.is_file()]
    assert any(path.name == "aivista.db" for path in files)
    found = [path for path in files if CANARY.encode() in path.read_bytes() or CANARY in path.name]
    assert found == []


def expect_no_key_in_objects(studio: Studio, settings: Settings) -> None:
    shown = [repr(one) for one in (studio, settings, settings.model_dump(), vars(studio), vars(studio).values())]
    for part in vars(studio).values():
        shown += [repr(part), repr(getattr(part, "__dict__", ""))]
    assert not [one for one in shown if CANARY in one]


def echo(key: str) -> dict[str, tuple[str, Answer]]:
    """Return failures that quote the key: the kind of call they meet, and the answer."""
    sentence = f"Consumer 'api_key:{key}' is not what it was; see https://example.org/?key={key}&x=1."
    body = error_body(400, sentence, [{"@type": "x", "reason": "R", "metadata": {"key": key}}])
    return {
        "400": ("text", HttpError(400, sentence)),
        "400 with details": ("text", HttpError(400, body=body)),
        "401": ("text", HttpError(401, sentence)),
        "403 of a picture": ("image", HttpError(403, sentence)),
        "404": ("image", HttpError(404, sentence)),
        "429": ("text", HttpError(429, sentence)),
        "500 of a search": ("search", HttpError(500, sentence)),
        "503": ("image", HttpError(503, sentence)),
        "502 in HTML": ("text", HttpError(502, body=f"<html>{key}</html>".encode())),
        "in the stream": ("text", MidStreamError(after_chunks=2, status=500, message=sentence)),
        "garbage": ("text", Garbage(f"<html>{key}</html>".encode())),
        "garbage for a picture": ("image", Garbage(f"{key} {key}".encode())),
        "finish message": ("text", Finish("SAFETY", message=sentence)),
        "finish message of a picture": ("image", Finish("IMAGE_OTHER", message=sentence)),
        "block message": ("text", Blocked("OTHER", message=sentence)),
        "words instead of a picture": ("image", TextOnly(sentence)),
    }


def script(server: GeminiServer, place: str, answer: Answer) -> None:
    def text(request: WireRequest) -> Answer:
        if place == "text" or request.has_search:
            return answer
        return paint() if place == "image" else search()

    server.on_text(text)
    server.on_image(lambda request: answer)


@pytest.mark.parametrize("key", KEYS, ids=["AIza", "AQ"])
async def test_a_conversation_that_works_leaves_no_trace_of_the_key(
    server: GeminiServer, settings: Settings, key: str
) -> None:
    server.on_text(search(), Search({"facts": [], "prompt_draft": ""}), paint(), Text("You see a fox."))
    server.on_image(SMALL)
    gemini = on_gemini(settings, server.url, key)
    events: list[TurnEvent] = []
    with everything_logged() as logged:
        async with Studio(gemini) as studio:
            conversation = await studio.new_conversation()
            events += await run(studio, conversation.id, "a fox", png(), allow_search=True)
            events += await run(studio, conversation.id, "What do I see?")
            assert len([event for event in events if isinstance(event, TurnDone)]) == 2
            assert (await studio.keys.test(SecretStr(key))).is_whole
            expect_no_key_in_files(gemini)  # with the journal of the database still open
            expect_no_key_in_objects(studio, gemini)
        assert "httpcore" in logged() or "httpx" in logged(), "the HTTP client was heard"
        assert CANARY not in logged()
    assert CANARY not in spoken(events)
    assert CANARY not in "".join(str(request.headers) + str(request.body) for request in server.requests)
    expect_no_key_in_files(gemini)


@pytest.mark.parametrize("case", echo(""))
@pytest.mark.parametrize("key", KEYS, ids=["AIza", "AQ"])
async def test_a_failure_that_quotes_the_key_is_kept_and_told_without_it(
    server: GeminiServer, settings: Settings, key: str, case: str
) -> None:
    place, answer = echo(key)[case]
    script(server, place, answer)
    gemini = on_gemini(settings, server.url, key)
    with everything_logged() as logged:
        async with Studio(gemini) as studio:
            conversation = await studio.new_conversation()
            events = await run(studio, conversation.id, "a fox", png(), allow_search=place == "search")
            assert isinstance(events[-1], TurnFailed)
            kept = await studio.conversation(conversation.id)
            expect_no_key_in_objects(studio, gemini)
        assert CANARY not in logged()
    assert CANARY not in spoken(events)
    assert CANARY not in repr(events[-1]) + events[-1].error.message
    assert CANARY not in kept.model_dump_json()
    expect_no_key_in_files(gemini)


async def test_a_key_of_a_visitor_is_kept_out_as_the_operators_is(server: GeminiServer, settings: Settings) -> None:
    key = KEYS[0]
    server.reject_key(key)
    gemini = settings.model_copy(update={"gemini_base_url": server.url})
    with everything_logged() as logged:
        async with Studio(gemini) as studio:
            conversation = await studio.new_conversation()
            refused = (await studio.keys.test(SecretStr(key))).problem
            assert refused is not None
            assert refused.code is ErrorCode.KEY_INVALID
            events = await run(studio, conversation.id, "draw a fox")
            assert isinstance(events[-1], TurnDone)  # sketch: the key was only tried
            expect_no_key_in_objects(studio, gemini)
        assert CANARY not in logged()
    assert CANARY not in spoken(events) + repr(refused)
    expect_no_key_in_files(gemini)


@pytest.mark.parametrize("how", ["refused", "cut", "timeout", "nowhere", "unusable"])
async def test_no_exception_of_the_provider_shows_the_key(server: GeminiServer, settings: Settings, how: str) -> None:
    key = f"{KEYS[0]} " + "é" if how == "unusable" else KEYS[0]
    answers = {
        "refused": HttpError(403, f"no {key}"),
        "cut": Cut(after_chunks=1),
        "timeout": Hold(Text("late")),
    }
    if how in answers:
        server.on_text(answers[how])
    url = "http://127.0.0.1:9" if how == "nowhere" else server.url
    provider = GeminiProvider(key, ImageStore(settings.home), base_url=url, text_timeout_s=0.2)
    model = load_catalogue({}).model(ModelRole.FLASH, "gemini")
    ask = [PromptMessage(role=Role.PROMPT, parts=(TextPart(text="hi"),))]
    with pytest.raises(AivistaError) as caught:
        [chunk async for chunk in provider.stream(model, ask)]
    assert CANARY not in told(caught.value)
    assert CANARY not in repr(provider) + repr(vars(provider)) + repr(caught.value.info)
    await provider.aclose()


def test_no_representation_of_settings_shows_the_key(settings: Settings) -> None:
    environ: dict[str, Any] = {"GEMINI_API_KEY": KEYS[0], "AIVISTA_HOME": str(settings.home)}
    read = Settings.from_env(environ)
    assert read.gemini_api_key is not None
    shown = [repr(read), str(read), read.model_dump_json(), repr(read.model_dump()), repr(read.gemini_api_key)]
    assert not [one for one in shown if CANARY in one]

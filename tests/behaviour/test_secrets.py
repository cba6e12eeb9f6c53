"""A key goes to Google's header and nowhere else: not into files, logs, events, sentences or representations."""

from __future__ import annotations

import logging
import os
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from agent import AivistaError, ErrorCode, PromptMessage, Role, Settings, TextPart, TurnDone
from tests.adapters.models import GeminiProvider, ModelRole, load_catalogue
from tests.adapters.records import ImageStore
from tests.behaviour.conftest import OpenTalk
from tests.behaviour.talk import Talk
from tests.support.gemini import SMALL, paint, search, spoken
from tests.support.scenes import png
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


def expect_no_key_in_files(home: Path) -> None:
    files = [path for path in home.rglob("*") if path.is_file()]
    assert any(path.name == "aivista.db" for path in files)
    assert [path for path in files if CANARY.encode() in path.read_bytes() or CANARY in path.name] == []


def expect_no_key_in_objects(talk: Talk) -> None:
    studio, settings = talk.studio, talk.studio.settings
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


@pytest.mark.parametrize("key", KEYS, ids=["AIza", "AQ"])
async def test_a_conversation_that_works_leaves_no_trace_of_the_key(open_talk: OpenTalk, key: str) -> None:
    with everything_logged() as logged:
        async with open_talk(gemini_api_key=SecretStr(key)) as talk:
            plan = [search(), Search({"facts": [], "prompt_draft": ""}), paint()]
            turn = await talk.say("a fox", png(), plan=plan, image=SMALL, allow_search=True, key=None)
            later = await talk.say("What do I see?", plan=Text("You see a fox."), key=SecretStr(key))
            assert [type(one.events[-1]) for one in (turn, later)] == [TurnDone] * 2
            assert (await talk.studio.keys.test(SecretStr(key))).is_whole
            expect_no_key_in_files(talk.studio.settings.home)  # with the journal of the database still open
            expect_no_key_in_objects(talk)
            sent = [str(request.headers) + str(request.body) for request in talk.models.requests]
        assert "httpcore" in logged() or "httpx" in logged(), "the HTTP client was heard"
        assert CANARY not in logged()
    assert CANARY not in spoken([*turn.events, *later.events]) + "".join(sent)
    expect_no_key_in_files(talk.studio.settings.home)


async def test_a_failure_that_quotes_the_key_is_kept_and_told_without_it(
    open_talk: OpenTalk, subtests: pytest.Subtests
) -> None:
    key = KEYS[1]
    with everything_logged() as logged:
        for case, (place, answer) in echo(key).items():

            def text(request: WireRequest, place: str = place, answer: Answer = answer) -> Answer:
                if place == "text" or request.has_search:
                    return answer
                return paint() if place == "image" else search()

            # A studio for each: one pauses a model that failed too often.
            with subtests.test(case):
                async with open_talk(gemini_api_key=SecretStr(key)) as talk:
                    image = (lambda _, answer=answer: answer) if place == "image" else None
                    said = {"allow_search": place == "search", "key": None}
                    turn = await talk.say("a fox", png(), plan=text, image=image, **said)
                    error, kept = turn.failure, await talk.kept()
                    expect_no_key_in_objects(talk)
                assert CANARY not in spoken(turn.events) + repr(turn.events[-1]) + error.message
                assert CANARY not in kept.model_dump_json()
                expect_no_key_in_files(talk.studio.settings.home)
        assert CANARY not in logged()


async def test_a_key_of_a_visitor_is_kept_out_as_the_operators_is(open_talk: OpenTalk) -> None:
    key = SecretStr(KEYS[0])
    with everything_logged() as logged:
        async with open_talk(gemini_api_key=None) as talk:
            talk.models.reject_key(KEYS[0])
            refused = (await talk.studio.keys.test(key)).problem
            assert refused is not None
            assert refused.code is ErrorCode.KEY_INVALID
            turn = await talk.say("draw a fox", key=None)
            assert isinstance(turn.events[-1], TurnDone)  # sketch: the key was only tried
            expect_no_key_in_objects(talk)
        assert CANARY not in logged()
    assert CANARY not in spoken(turn.events) + repr(refused)
    expect_no_key_in_files(talk.studio.settings.home)


def told(error: BaseException) -> str:
    """Return everything that a log or a report shows of an exception, our own frames with their local variables."""
    shown = traceback.TracebackException.from_exception(error, capture_locals=True)
    local = [str(frame.locals) for frame in shown.stack if f"{os.sep}tests{os.sep}" not in frame.filename]
    assert local
    return "".join([*local, *traceback.format_exception(error), repr(error), str(error)])


@pytest.mark.parametrize("how", ["refused", "cut", "timeout", "nowhere", "unusable"])
async def test_no_exception_of_the_provider_shows_the_key(tmp_path: Path, how: str) -> None:
    key = f"{KEYS[0]} " + "é" if how == "unusable" else KEYS[0]
    answers = {"refused": HttpError(403, f"no {key}"), "cut": Cut(after_chunks=1), "timeout": Hold(Text("late"))}
    with GeminiServer(text=lambda _: answers.get(how)) as server:
        url = "http://127.0.0.1:9" if how == "nowhere" else server.url
        provider = GeminiProvider(key, ImageStore(tmp_path), base_url=url, text_timeout_s=0.2)
        model = load_catalogue({}).model(ModelRole.FLASH, "gemini")
        ask = [PromptMessage(role=Role.PROMPT, parts=(TextPart(text="hi"),))]
        with pytest.raises(AivistaError) as caught:
            [chunk async for chunk in provider.stream(model, ask)]
        await provider.aclose()
    assert CANARY not in told(caught.value)
    assert CANARY not in repr(provider) + repr(vars(provider)) + repr(caught.value.info)


def test_no_representation_of_settings_shows_the_key(tmp_path: Path) -> None:
    environ: dict[str, Any] = {"GEMINI_API_KEY": KEYS[0], "AIVISTA_HOME": str(tmp_path)}
    read = Settings.from_env(environ)
    assert read.gemini_api_key is not None
    shown = [repr(read), str(read), read.model_dump_json(), repr(read.model_dump()), repr(read.gemini_api_key)]
    assert not [one for one in shown if CANARY in one]

"""What a studio writes to its standard error: codes and ids of what failed, and no word of anybody's."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.page import PageProcess
from tests.wire_server import GeminiProcess

WORDS = "xyzzy-plugh-of-the-person"
ANSWER = "frobnicate-of-the-model"
KEY = "AIza-operators-own-0001"
REFUSED = {"kind": "HttpError", "status": 400, "message": WORDS}
PAINT = {"kind": "Call", "name": "generate_image", "args": {"prompt": f"a fox, {ANSWER}"}, "text_before": ANSWER}
FAILURES: dict[str, dict[str, Any]] = {
    "the text model is overloaded": {"on_text": [{"kind": "HttpError", "status": 503, "message": WORDS}] * 2},
    "the text model refuses the request": {"on_text": [REFUSED]},
    "the prompt is blocked": {"on_text": [{"kind": "Blocked"}]},
    "the answer is garbage": {"on_text": [{"kind": "Garbage"}] * 2},
    "the answer is cut": {"on_text": [{"kind": "Cut", "answer": {"kind": "Text", "text": ANSWER, "chunks": 3}}] * 2},
    "a call that no tool answers to": {
        "on_text": [{"kind": "Call", "name": "no_such_tool", "args": {"x": ANSWER}}, REFUSED]
    },
    "the picture fails": {"on_text": [PAINT], "on_image": [{"kind": "HttpError", "status": 500, "message": WORDS}]},
    "the picture is blocked": {"on_text": [PAINT], "on_image": [{"kind": "Blocked"}]},
}


@pytest.fixture(scope="module")
def gemini() -> Iterator[GeminiProcess]:
    with GeminiProcess() as server:
        yield server


@pytest.fixture(scope="module")
def studio(gemini: GeminiProcess, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PageProcess]:
    environment = {"GEMINI_API_KEY": KEY, "GOOGLE_GEMINI_BASE_URL": gemini.url}
    with PageProcess(home=tmp_path_factory.mktemp("log") / "home", environment=environment) as running:
        yield running


def chat(studio: PageProcess, **body: Any) -> str:
    """Say something to the studio, and return all that it answered."""
    headers = {"Origin": studio.url}
    with httpx.stream("POST", f"{studio.url}/api/v1/chat", json=body, headers=headers, timeout=60) as answer:
        return "".join(answer.iter_text())


@pytest.mark.parametrize("failure", FAILURES)
def test_a_failure_is_told_without_the_words_it_was_about(
    studio: PageProcess, gemini: GeminiProcess, failure: str
) -> None:
    gemini.control(clear=True, **FAILURES[failure])
    before = len(studio.errors)
    answered = chat(studio, messages=[["human", f"draw {WORDS}"]])
    told = studio.errors[before:]
    assert "failed" in answered
    assert WORDS not in told
    assert ANSWER not in told
    assert KEY not in told
    [line] = [one for one in told.splitlines() if "agent.report" in one]
    assert json.loads(line.partition("agent.report: ")[2])["turn"]["id"]


@pytest.mark.parametrize(
    "body",
    [
        {"messages": [["human", [WORDS]]]},
        {"messages": [["human", WORDS]], "settings": {"aspect_ratio": WORDS}},
        {"messages": [["human", f"make #{WORDS} brighter, and #77"]]},
        {"messages": [["human", WORDS * 100_000]]},
        {WORDS: WORDS},
    ],
    ids=["no text", "a ratio that is none", "a handle that is none", "too long", "an unknown field"],
)
def test_a_request_that_is_refused_leaves_none_of_its_words(studio: PageProcess, body: dict[str, Any]) -> None:
    before = len(studio.errors)
    chat(studio, **body)
    assert WORDS not in studio.errors[before:]

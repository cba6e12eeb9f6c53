"""What a studio writes to its standard error: codes and ids of what failed, and no word of anybody's."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.page import PageProcess
from tests.support.cases import each_case
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


def chat(gemini_studio: PageProcess, **body: Any) -> str:
    """Say something to the studio, and return all that it answered."""
    headers = {"Origin": gemini_studio.url}
    with httpx.stream("POST", f"{gemini_studio.url}/api/v1/chat", json=body, headers=headers, timeout=60) as answer:
        return "".join(answer.iter_text())


@pytest.mark.skipif(os.name != "posix", reason="modes are POSIX's")
@each_case(
    ("kind", "told"), [("link", "cannot be read"), ("folder", "cannot be read"), ("open", "could be read by others")]
)
def test_a_kept_key_that_is_not_private_is_told_once_and_keeps_no_page_from_opening(
    tmp_path: Path, kind: str, told: str
) -> None:
    home, elsewhere = tmp_path / kind, tmp_path / "elsewhere"
    home.mkdir()
    elsewhere.write_text(KEY)
    elsewhere.chmod(0o644)
    path = home / "gemini.key"
    if kind == "link":
        path.symlink_to(elsewhere)
    elif kind == "folder":
        path.mkdir()
    else:
        elsewhere.rename(path)
    with PageProcess(home=home) as page:
        for _ in range(2):
            assert httpx.get(page.url, timeout=60).status_code == 200
        assert page.errors.count(f"gemini.key {told}") == page.errors.count("\n") == 1


@each_case("failure", FAILURES)
def test_a_failure_is_told_without_its_words(gemini_studio: PageProcess, gemini: GeminiProcess, failure: str) -> None:
    gemini.control(clear=True, **FAILURES[failure])
    before = len(gemini_studio.errors)
    answered = chat(gemini_studio, messages=[["human", f"draw {WORDS}"]])
    told = gemini_studio.errors[before:]
    assert "failed" in answered
    assert [secret for secret in (WORDS, ANSWER, KEY) if secret in told] == []
    [line] = [one for one in told.splitlines() if "agent.report" in one]
    assert json.loads(line.partition("agent.report: ")[2])["turn"]["id"]


@each_case(
    "body",
    [
        {"messages": [["human", [WORDS]]]},
        {"messages": [["human", WORDS]], "settings": {"aspect_ratio": WORDS}},
        {"messages": [["human", f"make #{WORDS} brighter, and #77"]]},
        {"messages": [["human", WORDS * 100_000]]},
        {WORDS: WORDS},
    ],
)
def test_a_request_that_is_refused_leaves_none_of_its_words(gemini_studio: PageProcess, body: dict[str, Any]) -> None:
    before = len(gemini_studio.errors)
    chat(gemini_studio, **body)
    assert WORDS not in gemini_studio.errors[before:]

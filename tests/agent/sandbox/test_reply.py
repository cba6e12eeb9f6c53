"""What a child says is read as hostile: anything but a plain answer is none."""

from __future__ import annotations

import json

from pydantic import JsonValue

from tests.adapters.sandbox import Protection, Spoken, read_reply
from tests.support.cases import each_case

ANSWER: dict[str, JsonValue] = {"has_limits": True, "unfiltered": "", "stopped": "", "state": "done", "result": [1]}


def with_result(text: str) -> bytes:
    return json.dumps(ANSWER).replace("[1]", text).encode()


def test_a_plain_answer_is_read_and_says_what_protects() -> None:
    protections = {(True, ""): Protection.SECCOMP, (True, "refused"): Protection.PROCESS_LIMITS}
    for (has_limits, unfiltered), protection in {**protections, (False, "none"): Protection.ENGINE_LIMITS}.items():
        said = {**ANSWER, "has_limits": has_limits, "unfiltered": unfiltered}
        reply = read_reply(Spoken(json.dumps(said).encode()))
        assert reply is not None
        assert (reply.result, reply.written, reply.protection) == ([1], {}, protection)


@each_case(
    "data",
    [
        b"",
        b"null",
        b"[]",
        b"{}",
        b"\xff\xfe",
        json.dumps(ANSWER).encode()[:-1],
        json.dumps(ANSWER).encode() * 2,
        json.dumps({**ANSWER, "extra": 1}).encode(),
        json.dumps({**ANSWER, "state": "forged"}).encode(),
        json.dumps({**ANSWER, "console": [{"level": "alert", "text": "x"}]}).encode(),
        json.dumps({**ANSWER, "written": {"name": 1}}).encode(),
        json.dumps({**ANSWER, "read": "name"}).encode(),
        with_result("NaN"),
        with_result("[1e999]"),
        with_result('"\\ud800"'),
        with_result("[" * 5000 + "]" * 5000),
        with_result("9" * 5000),
    ],
)
def test_anything_else_is_no_answer(data: bytes) -> None:
    assert read_reply(Spoken(data)) is None

"""The debug report of a turn: everything somebody who helps must know, and nothing that nobody may know."""

from __future__ import annotations

import json
import logging
import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from agent import (
    AgentMessage,
    Conversation,
    ErrorCode,
    ErrorInfo,
    FailureNote,
    Picture,
    PromptMessage,
    Review,
    Role,
    Settings,
    Step,
    Steps,
    Studio,
    TextPart,
    ThoughtLog,
    ToolCallPart,
    ToolResultPart,
    Turn,
    TurnFailed,
    TurnState,
    report_text,
)
from agent.redaction import HIDDEN
from agent.report import LIMIT_BYTES, log_report, turn_report
from agent.storage.journal import CallRecord, CallState
from tests.support.cases import each_case
from tests.support.gemini import on_gemini, paint
from tests.support.histories import NOW, begun_turn, finished, image_part, picture
from tests.support.scenes import png, run
from tests.wire_server import GeminiServer, HttpError

CANARY = "CANARYcanaryCANARY7x7"
GOOGLE = f"AIzaSy{CANARY}0123456789ab"
SECRET = SecretStr(f"a secret/of & no shape {CANARY}")


def call(name: str, after_s: float = 0.0, **changes: Any) -> CallRecord:
    """Return a call of the turn `t2` that began `after_s` seconds after the turn."""
    at = NOW + timedelta(seconds=after_s)
    times: dict[str, Any] = {"created_at": at, "updated_at": at + timedelta(seconds=1.25)}
    values: dict[str, Any] = {"turn_id": "t2", "model": "text-model", "state": CallState.DONE, "attempts": 1}
    paid: dict[str, Any] = {"price_usd": 0.002, **values, **changes}
    return CallRecord(conversation_id="c1", name=name, **times, **paid)


def failed_turn(turn_id: str = "t2", **changes: Any) -> Turn:
    """Return a turn that painted a picture and failed with the next."""
    error = ErrorInfo(code=ErrorCode.OVERLOADED, parameters={"model": "Flash"}, provider_detail="503: try again")
    lines = [ThoughtLog(step=Step.THINKING, at_s=0.5), ThoughtLog(step=Step.PAINTING, parameters={"count": 2}, at_s=2)]
    update = {
        "state": TurnState.FAILED,
        "provider": "gemini",
        "request_id": "r1",
        "components": (
            Steps(lines=tuple(lines), seconds=7.25),
            AgentMessage(text="Here it comes."),
            FailureNote(error=error, node="executor"),
        ),
    }
    return finished(begun_turn(turn_id, uploads=(image_part("#1"),))).model_copy(update={**update, **changes})


def conversation_of(*turns: Turn, pictures: tuple[Picture, ...] = ()) -> Conversation:
    return Conversation(
        id="c1", owner="visitor-1", title="x", created_at=NOW, updated_at=NOW, turns=turns, pictures=pictures
    )


def report_of(turn: Turn, *calls: CallRecord, pictures: tuple[Picture, ...] = (), **more: Any) -> Any:
    """Return the report of a turn that is its conversation's only one."""
    return turn_report(conversation_of(turn, pictures=pictures), turn, calls, **more)


def talk(text: str, turn_id: str = "t2") -> Turn:
    """Return a turn in which the agent says a text."""
    messages = (
        PromptMessage(role=Role.PROMPT, parts=(TextPart(text=f"{turn_id} asks"),)),
        PromptMessage(role=Role.MODEL, parts=(TextPart(text=text),)),
    )
    return begun_turn(turn_id).model_copy(update={"messages": messages, "state": TurnState.DONE})


def last_text(report: dict[str, Any]) -> str:
    text = report["messages"][-1]["parts"][0]["text"]
    assert isinstance(text, str)
    return text


def test_the_steps_have_their_times() -> None:
    report = report_of(failed_turn())
    assert report["steps"] == [
        {"step": "thinking", "at_s": 0.5, "seconds": 1.5, "parameters": {}},
        {"step": "painting", "at_s": 2.0, "seconds": 5.25, "parameters": {"count": 2}},
    ]
    # An archive from elsewhere may hold a list without steps.
    assert report_of(failed_turn(components=(Steps(lines=(), seconds=1),)))["steps"] == []


def test_no_secret_is_in_the_report_wherever_it_was() -> None:
    raw = SECRET.get_secret_value()
    home = str(Path.home() / "aivista")
    arguments: Any = {GOOGLE: [{"url": f"https://u:{CANARY}@h/?key={CANARY}"}], "api_key": CANARY, "at": home}
    content: Any = {"headers": {"x-goog-api-key": CANARY}, "text": f"Bearer {CANARY} {raw}"}
    error = ErrorInfo(code=ErrorCode.REQUEST_REJECTED, parameters={"detail": GOOGLE}, provider_detail=f"no {raw}")
    messages = (
        PromptMessage(role=Role.PROMPT, parts=(TextPart(text=f"my key is {GOOGLE}"),)),
        PromptMessage(role=Role.MODEL, parts=(ToolCallPart(name=raw, arguments=arguments, call_id=GOOGLE),)),
        PromptMessage(role=Role.TOOL, parts=(ToolResultPart(name="t", content=content, is_error=True),)),
    )
    lines = (ThoughtLog(step=Step.TOOL, parameters={"name": raw, GOOGLE: GOOGLE}),)
    components = (Steps(lines=lines, seconds=1), FailureNote(error=error, node="planner"))
    update = {"text": f"{raw} and {GOOGLE}", "messages": messages, "components": components}
    turn = begun_turn("t2").model_copy(update=update)
    made = picture("#2", "t2")
    assert made.receipt is not None
    receipt = made.receipt.model_copy(update={"prompt": GOOGLE, "user_text": SECRET.get_secret_value()})
    review = Review(score=0.5, feedback=f"key={CANARY} ?key={CANARY}".removeprefix(f"key={CANARY} "), lettering=GOOGLE)
    made = made.model_copy(update={"receipt": receipt, "review": review, "call": GOOGLE})
    calls = [call(f"{GOOGLE}:1", model=SECRET.get_secret_value())]
    versions = {"gradio": GOOGLE, "home": str(Path.home())}
    report = report_of(turn, *calls, pictures=(made,), secrets=[SECRET], versions=versions)
    text = report_text(report)
    assert CANARY not in text
    assert text.count(HIDDEN) >= 15
    assert str(Path.home()) + "/" not in text
    assert "~/aivista" in text
    assert json.loads(text)["messages"][2]["parts"][0]["is_error"] is True


def test_data_in_a_text_is_told_by_its_length() -> None:
    base64 = "iVBORw0KGgo" * 200
    wrapped = "\n".join("QUJD" * 19 for _ in range(9))
    said = f"a data:image/png;base64,{base64}= b {base64} c\n{wrapped}\n\nd"
    turn = talk(said)
    text = last_text(report_of(turn))
    assert "iVBOR" not in text
    assert "QUJD" not in text
    assert text.startswith("a [2223 characters of data] b [2200 characters of data] c\n[")
    assert text.endswith("d")


def test_long_texts_and_lists_say_what_was_cut_from_them() -> None:
    words = "many words " * 5000
    turn = talk(words)
    asked = PromptMessage(
        role=Role.MODEL, parts=(ToolCallPart(name="t", arguments={"numbers": list(range(3000)), "n": float("nan")}),)
    )
    turn = turn.model_copy(update={"messages": (*turn.messages, asked)})
    report = report_of(turn)
    said = report["messages"][1]["parts"][0]["text"]
    assert said.startswith("many words many")
    assert said.endswith("words many words ")
    assert "[…35000 characters left out…]" in said
    arguments = report["messages"][2]["parts"][0]["arguments"]
    assert arguments["numbers"][-2:] == [1999, "[1000 more]"]
    assert arguments["n"] == "nan"
    assert report["left_out"] == {"messages": 0, "cuts": 2}


def test_of_a_long_history_the_newest_messages_are_kept_and_the_others_counted() -> None:
    turns = [talk(f"answer {number} " + "word " * 400, f"t{number}") for number in range(300)]
    report: Any = turn_report(conversation_of(*turns), turns[-1], ())
    assert LIMIT_BYTES * 0.9 < len(report_text(report).encode()) <= LIMIT_BYTES
    kept = report["messages"]
    assert report["left_out"] == {"messages": 600 - len(kept), "cuts": 0}
    assert last_text(report).startswith("answer 299 ")
    whole: Any = turn_report(conversation_of(*turns), turns[-1], (), limit_bytes=1 << 30)
    assert whole["left_out"]["messages"] == 0
    assert kept == whole["messages"][-len(kept) :]


HUGE: dict[str, dict[str, Any]] = {
    "one text": {"messages": (PromptMessage(role=Role.MODEL, parts=(TextPart(text="狐 " * 300_000),)),)},
    "many parts": {"messages": (PromptMessage(role=Role.MODEL, parts=(TextPart(text="some words " * 10),) * 6_000),)},
    "what was typed": {"text": "words " * 200_000},
    "many steps": {
        "components": (Steps(lines=(ThoughtLog(step=Step.TOOL, parameters={"name": "x" * 99}),) * 6_000, seconds=1),)
    },
}


@each_case("limit_bytes", [0, 16 << 10, 64 << 10, LIMIT_BYTES])
@each_case("case", HUGE)
def test_the_report_never_exceeds_its_size(case: str, limit_bytes: int) -> None:
    turn = begun_turn("t2").model_copy(update=HUGE[case])
    calls = [call(f"executor:{number}", number, price_usd=0.1) for number in range(300)]
    pictures = tuple(picture(f"#{number}", "t2") for number in range(40))
    report = report_of(turn, *calls, pictures=pictures, limit_bytes=limit_bytes)
    text = report_text(report)
    assert len(text.encode()) <= max(limit_bytes, 16 << 10)
    assert json.loads(text)["turn"]["id"] == "t2"
    assert report["left_out"]["cuts"] > 0


def test_the_log_is_told_of_a_failure_in_one_line_of_codes(caplog: pytest.LogCaptureFixture) -> None:
    turn = failed_turn(text="two\nlines\u2028 狐狸")
    log_report(report_of(turn))
    [record] = caplog.records
    assert record.levelno == logging.ERROR
    assert len(record.getMessage().splitlines()) == 1
    told = json.loads(record.getMessage())
    assert (told["turn"]["id"], told["error"]["code"]) == (turn.id, "overloaded")
    assert "lines" not in record.getMessage()
    assert "message" not in record.getMessage()


async def test_the_report_of_a_real_failure_tells_all_but_the_key(settings: Settings) -> None:
    with GeminiServer() as server:
        server.on_text(paint("a red fox"))
        server.on_image(HttpError(503, f"Consumer 'api_key:{GOOGLE}' is over its limit"))
        gemini = on_gemini(settings, server.url, GOOGLE)
        async with Studio(gemini) as studio:
            conversation = await studio.conversations.create()
            events = await run(studio, conversation.id, f"Put my fox into the snow, key {GOOGLE}", png())
            assert isinstance(events[-1], TurnFailed)
            kept = await studio.conversations.get(conversation.id)
    report: Any = turn_report(kept, kept.turns[-1], ())
    assert report["error"]["code"] == "overloaded"
    assert report["error"]["node"] == "executor"
    assert "is over its limit" in report["error"]["provider_detail"]
    assert report["said"]["text"] == f"Put my fox into the snow, key {HIDDEN}"
    assert [message["role"] for message in report["messages"]][:2] == ["prompt", "model"]
    assert report["steps"][0]["step"] == "thinking"
    assert CANARY not in report_text(report)
    assert not re.search(r'"[^"]{2001,}"', report_text(report))

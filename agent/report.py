"""The debug report of a turn: requests, answers, durations and costs, without secrets.

Pictures are references, signatures are lengths. It is JSON in a fixed order, written for people to read.
"""

from __future__ import annotations

import json
import logging
import platform
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from itertools import takewhile

from pydantic import JsonValue, SecretStr

from agent.conversation import Conversation, Turn
from agent.events import FailureNote, Steps
from agent.messages import PromptMessage
from agent.pictures import Picture
from agent.redaction import object_without_secrets, without_homes
from agent.storage.journal import CallRecord
from agent.trace import Cutter, Json, TraceStep, image_json, message_json, usage_json
from agent.version import program_version

REPORT_VERSION = 2
LIMIT_BYTES = 512 << 10
_LEAST_BYTES = 16 << 10
_COUNTS_BYTES = 64
_DROPPED_IN_ORDER = ("trace", "pictures", "steps", "calls", "said", "settings", "error", "versions")
# Limits for characters per text and entries per list, tried in this order until the report fits with its newest
# message. The smallest limit still keeps a whole digest.
_CUTS = ((20_000, 2_000), (4_000, 200), (500, 40), (100, 12), (80, 4))
_DATA_URL = re.compile(r"data:[\w.+-]{1,64}/[\w.+-]{1,64}(?:;[\w=.-]{1,64})*,[\w+/=%-]*", re.ASCII)
_DATA = re.compile(r"[\w+/-]{256,}={0,2}|(?:[\w+/-]{60,255}(?:\r?\n|(?:\\r)?\\n| )){3,}[\w+/-]*={0,2}", re.ASCII)
_PLAIN_NAME = re.compile(r"[\w:.#-]{1,48}", re.ASCII)

_log = logging.getLogger(__name__)


def turn_report(
    conversation: Conversation,
    turn: Turn,
    calls: Sequence[CallRecord],
    *,
    secrets: Sequence[SecretStr] = (),
    trace: Sequence[TraceStep] = (),
    versions: Mapping[str, str] | None = None,
    limit_bytes: int = LIMIT_BYTES,
) -> Json:
    """Return the report; its text from `report_text` has at most `limit_bytes` (at least 16 KiB).

    `turn` replaces its recorded version in the conversation; later turns are left out. Only this turn's `calls` are
    used; `trace` are its steps. `secrets`, and everything that looks like a secret, are hidden in names and values;
    home directories become `~`. `versions` are added to those of Aivista and Python. If the report is too long, the
    newest messages are kept; `left_out` counts the other messages, and the cut texts and lists, which are marked.
    """
    frame: Json = {
        "report": REPORT_VERSION,
        "versions": {"aivista": program_version(), "python": platform.python_version(), **(versions or {})},
        "platform": platform.platform(),
        "conversation": conversation.id,
        "turn": _turn(turn),
        "error": _error(turn),
        "said": {
            "text": turn.text,
            "uploads": [image_json(image) for image in turn.uploads],
            "editing": turn.editing,
            "references": list(turn.references),
        },
        "settings": turn.settings.model_dump(mode="json"),
        "steps": _steps(turn),
        "calls": _calls(turn, calls, conversation.all_pictures),
        "pictures": [_picture(picture) for picture in conversation.all_pictures if picture.turn_id == turn.id],
        "trace": _trace(trace),
        "left_out": {"messages": 0, "cuts": 0},
        "messages": [],
    }
    # The history up to the turn, oldest first, each message with its turn.
    before = takewhile(lambda one: one.id != turn.id, conversation.turns)
    messages = [(one, message) for one in (*before, turn) for message in one.messages]
    return _fitted(object_without_secrets(frame, secrets), messages, secrets, max(limit_bytes, _LEAST_BYTES))


def report_text(report: Json) -> str:
    """Return the report as the text of a JSON file."""
    return json.dumps(report, ensure_ascii=False, indent=2, allow_nan=False) + "\n"


def log_report(report: Json) -> None:
    """Log one line of JSON that says which turn failed, where, and with which error codes.

    It contains no text of the user or of a model, because other people may read the log. The full report is only for
    the owner of the conversation.
    """
    turn, error = _object(report.get("turn")), _object(report.get("error"))
    steps = [(step, _object(step.get("error"))) for step in _objects(report.get("trace"))]
    codes: Json = {
        "conversation": report.get("conversation"),
        "turn": {name: turn.get(name) for name in ("id", "state", "provider", "seconds", "price_usd")},
        "error": {name: error.get(name) for name in ("code", "node", "who_must_act", "charged")} if error else None,
        "steps": [
            {"name": _plain_name(step.get("name")), "code": failed.get("code")} for step, failed in steps if failed
        ],
        "calls": [
            {name: call.get(name) for name in ("model", "state", "error_code", "attempts", "seconds")}
            | {"name": _plain_name(call.get("name"))}
            for call in _objects(report.get("calls"))
        ],
        "versions": report.get("versions"),
    }
    _log.error("%s", json.dumps(codes, allow_nan=False))


def _object(value: JsonValue) -> Json:
    return value if isinstance(value, dict) else {}


def _objects(value: JsonValue) -> list[Json]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _plain_name(name: JsonValue) -> str:
    """Return the name of a step or call if it is plain, else `?`: a model may invent a tool name with any text."""
    return name if isinstance(name, str) and _PLAIN_NAME.fullmatch(name) else "?"


def _turn(turn: Turn) -> Json:
    return {
        "id": turn.id,
        "state": turn.state.value,
        "provider": turn.provider,
        "request_id": turn.request_id,
        "started_at": _time(turn.started_at),
        "seconds": round(turn.seconds, 3),
        "price_usd": turn.price_usd,
        "tokens": usage_json(turn.usage),
    }


def _error(turn: Turn) -> Json | None:
    """Return the failure of the turn from its last FailureNote, None without one."""
    note = next((one for one in reversed(turn.components) if isinstance(one, FailureNote)), None)
    if note is None:
        return None
    error = note.error
    return {
        "code": error.code.value,
        "sentence": error.message,
        "node": note.node,
        "provider_detail": error.provider_detail,
        "who_must_act": error.actor.value,
        "can_retry": error.can_retry,
        "charged": error.charged.value,
        "parameters": dict(error.parameters),
    }


def _steps(turn: Turn) -> list[JsonValue]:
    """Return each step with its start and the seconds until the next step, or until the end of its list."""
    steps: list[JsonValue] = []
    for component in turn.components:
        if not isinstance(component, Steps):
            continue
        ends = [*(line.at_s for line in component.lines[1:]), component.seconds]
        for line, end in zip(component.lines, ends, strict=False):
            seconds = round(max(0.0, end - line.at_s), 3)
            parameters: Json = dict(line.parameters)
            steps.append({"step": line.step.value, "at_s": line.at_s, "seconds": seconds, "parameters": parameters})
    return steps


def _calls(turn: Turn, calls: Sequence[CallRecord], pictures: Sequence[Picture]) -> list[JsonValue]:
    mine = sorted((call for call in calls if call.turn_id == turn.id), key=lambda call: (call.created_at, call.name))
    receipts = {picture.call: picture.receipt for picture in pictures if picture.call and picture.turn_id == turn.id}
    reported: list[JsonValue] = []
    for call in mine:
        receipt = receipts.get(call.name)
        # The journal keeps the answer only until the turn ends; for an image call the receipt remains.
        usage = call.answer.usage if call.answer else receipt.usage if receipt else None
        reported.append(
            {
                "name": call.name,
                "node": call.name.partition(":")[0],
                "model": call.model,
                "state": call.state.value,
                "attempts": call.attempts,
                "started_at": _time(call.created_at),
                "ended_at": _time(call.updated_at),
                "seconds": round((call.updated_at - call.created_at).total_seconds(), 3),
                "tokens": usage_json(usage) if usage else None,
                "price_usd": call.price_usd,
                "error_code": call.error_code.value if call.error_code else None,
            }
        )
    return reported


def _picture(picture: Picture) -> Json:
    return {
        **image_json(picture.image),
        "handle": picture.handle,
        "call": picture.call,
        "round": picture.round,
        "parents": list(picture.parents),
        "after_stop": picture.after_stop,
        "receipt": picture.receipt.model_dump(mode="json") if picture.receipt else None,
        "review": picture.review.model_dump(mode="json") if picture.review else None,
    }


def _trace(steps: Sequence[TraceStep]) -> list[JsonValue]:
    """Return the steps without the system prompt and the history, which is in the report's messages."""
    listed: list[JsonValue] = []
    for step in steps:
        one = step.model_dump(mode="json")
        messages = step.sent.get("messages")
        sent = {name: value for name, value in step.sent.items() if name not in ("system", "messages")}
        sent |= {"messages": len(messages)} if isinstance(messages, list) else {}
        listed.append({**one, "usage": usage_json(step.usage), "sent": sent})
    return listed


def _time(when: datetime) -> str:
    return when.astimezone(UTC).isoformat(timespec="milliseconds")


def _fitted(
    frame: Json, messages: Sequence[tuple[Turn, PromptMessage]], secrets: Sequence[SecretStr], limit_bytes: int
) -> Json:
    """Return the report with the weakest cuts that let the newest message fit, and with as many messages as fit."""

    def clean(number: int) -> Json:
        turn, message = messages[number]
        return object_without_secrets({"turn": turn.id, **message_json(message)}, secrets)

    newest = [clean(-1)] if messages else []
    for characters, entries in _CUTS:
        cutter = Cutter(characters, entries, _readable)
        short = {name: cutter.cut(value) for name, value in frame.items()}
        kept = [cutter.cut(message) for message in newest]
        left_bytes = limit_bytes - _size(short) - _size(kept) - _COUNTS_BYTES
        if left_bytes >= 0:
            break
    else:
        kept = []
        for name in _DROPPED_IN_ORDER:
            if _size(short) + _COUNTS_BYTES <= limit_bytes:
                break
            short[name] = None
    cuts = cutter.cuts
    for number in reversed(range(len(messages) - 1) if kept else ()):
        message = cutter.cut(clean(number))
        left_bytes -= _size(message)
        if left_bytes < 0:
            break
        kept.append(message)
        cuts = cutter.cuts
    left_out: Json = {"messages": len(messages) - len(kept), "cuts": cuts}
    return {**short, "left_out": left_out, "messages": list(reversed(kept))}


def _size(value: JsonValue) -> int:
    # Two levels of nesting, to count the indentation that a message has in the report.
    return len(report_text({"": {"": value}}).encode())


def _readable(text: str) -> str:
    """Return the text without encoded data and home directories."""
    return without_homes(_DATA.sub(_data_length, _DATA_URL.sub(_data_length, text)))


def _data_length(found: re.Match[str]) -> str:
    return f"[{len(found[0])} characters of data]"

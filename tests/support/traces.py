"""What the trace says was sent, and what the strict server took, in the same form."""

from __future__ import annotations

import hashlib
from base64 import b64decode
from collections.abc import Iterable, Iterator
from datetime import timedelta
from typing import Any

from agent import StepKind, TraceStep
from tests.support.histories import NOW
from tests.wire_server import WireRequest

Told = tuple[str, ...]


def on_the_wire(request: WireRequest) -> list[Told]:
    """Return the parts of a request's contents, in order; of a picture the digest of its bytes."""
    return list(_wire_parts(part for content in request.contents for part in content.get("parts", [])))


def _wire_parts(parts: Iterable[dict[str, Any]]) -> Iterator[Told]:
    for part in parts:
        if part.get("text"):
            yield "text", part["text"]
        if "inlineData" in part:
            yield "image", hashlib.sha256(b64decode(part["inlineData"]["data"])).hexdigest()
        if "functionCall" in part:
            yield "tool_call", part["functionCall"]["name"], repr(part["functionCall"]["args"])
        if "functionResponse" in part:
            yield "tool_result", part["functionResponse"]["name"], repr(part["functionResponse"]["response"])
            yield from _wire_parts(part["functionResponse"].get("parts", []))


def on_record(step: TraceStep) -> list[Told]:
    """Return the parts of what a model was sent, without those that never leave: thoughts, searches' grounds."""
    messages: Any = step.sent["messages"]
    found: list[Told] = []
    for part in (part for message in messages for part in message["parts"]):
        match part["type"]:
            case "text" if part["text"] and not part.get("is_thought"):
                found.append(("text", part["text"]))
            case "image" if not part.get("is_thought"):
                found.append(("image", part["digest"]))
            case "tool_call":
                found.append(("tool_call", part["name"], repr(part["arguments"])))
            case "tool_result":
                found.append(("tool_result", part["name"], repr(part["content"])))
                found += [("image", image["digest"]) for image in part["images"]]
    return found


def traced(number: int = 1, turn_id: str = "t1", kind: StepKind = StepKind.MODEL, **changes: Any) -> TraceStep:
    """Return a step that began `number` seconds into a turn and took one."""
    values: dict[str, Any] = {
        "turn_id": turn_id,
        "number": number,
        "kind": kind,
        "node": "planner",
        "name": f"planner:{number}",
        "began_at": NOW + timedelta(seconds=number),
        "at_s": float(number),
        "seconds": 1.0,
        "sent": {"system": "Be kind.", "messages": [{"role": "prompt", "parts": [{"type": "text", "text": "a fox"}]}]},
        "came": {"parts": [{"type": "text", "text": "Here."}]},
    }
    return TraceStep(**{**values, **changes})

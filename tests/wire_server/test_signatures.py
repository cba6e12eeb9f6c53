"""Thought signatures: given out, demanded back on their own part, refused when anything about them changed."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

import pytest

from tests.support.cases import each_case
from tests.wire_server import Call, Calls, GeminiServer, PictureAnswer, Text
from tests.wire_server.conftest import BANANA, FLASH, PRO, Raw

Json = dict[str, Any]
ARGON = "gemini-4-argon"
CORRUPTED = "Corrupted thought signature."
INVALID = "Invalid thought signature."
MISSING = (
    "Function call is missing a thought_signature in functionCall parts. This is required for tools to work "
    "correctly, and missing thought_signature may lead to degraded model performance. Additional data, function "
    "call `default_api:draw` , position {}. Please refer to "
    "https://ai.google.dev/gemini-api/docs/thought-signatures for more details."
)
UNSIGNED = "{} part is missing a thought_signature in content position 2, part position {}."
DUMMY = "skip_thought_signature_validator"
OTHER_DUMMY = "context_engineering_is_the_way_to_go"
PAINTING: Json = {"generationConfig": {"responseModalities": ["TEXT", "IMAGE"]}}
RESULT = {"functionResponse": {"name": "draw", "response": {"ok": True}}}
ASK: Json = {"role": "user", "parts": [{"text": "a fox"}]}
AGAIN: Json = {"role": "user", "parts": [{"text": "bluer"}]}
ANSWERED: Json = {"role": "user", "parts": [RESULT]}
BOTH_ANSWERED: Json = {"role": "user", "parts": [RESULT, RESULT]}


def turn(*parts: Json) -> Json:
    return {"role": "model", "parts": list(parts)}


def bare(part: Json) -> Json:
    return {name: value for name, value in part.items() if name != "thoughtSignature"}


def signed(part: Json, signature: str) -> Json:
    return {**part, "thoughtSignature": signature}


def respelled(part: Json) -> Json:
    """Return a call whose arguments come in another order, and whose signature comes in the other alphabet."""
    signature = part["thoughtSignature"].replace("+", "-").replace("/", "_").rstrip("=")
    return {"functionCall": {"args": {"size": 2, "what": "fox"}, "name": "draw"}, "thoughtSignature": signature}


def with_a_changed_bit(part: Json) -> Json:
    data = bytearray(base64.b64decode(part["thoughtSignature"]))
    data[-1] ^= 1
    return signed(part, base64.b64encode(data).decode())


# How a call comes back; how a text does, in two parts; and the two parts of a painted turn.
CALLS: list[tuple[Callable[[Json], Json], str, str]] = [
    (lambda call: call, FLASH, ""),
    (respelled, FLASH, ""),
    (bare, FLASH, MISSING.format(2)),
    (lambda call: signed(call, "AAAA"), FLASH, CORRUPTED),
    (lambda call: signed(call, "not base64!"), FLASH, CORRUPTED),
    (with_a_changed_bit, FLASH, CORRUPTED),
    (lambda call: {**call, "functionCall": {"name": "draw", "args": {"what": "hen"}}}, FLASH, CORRUPTED),
    (lambda call: call, ARGON, INVALID),
]
TEXTS: list[tuple[Callable[[Json, Json], list[Json]], str]] = [
    (lambda text, empty: [text, empty], ""),
    (lambda text, empty: [text], ""),
    (lambda text, empty: [signed(text, empty["thoughtSignature"])], CORRUPTED),
    *((lambda text, empty, broken=broken: [signed(text, broken)], CORRUPTED) for broken in ("AAAA", "not base64!", "")),
]
PAINTED: list[tuple[Callable[[Json, Json], list[Json]], str, str]] = [
    (lambda text, picture: [turn(text, picture)], BANANA, ""),
    (lambda text, picture: [turn(picture)], BANANA, ""),
    (lambda text, picture: [turn(text, bare(picture))], BANANA, UNSIGNED.format("Image", 2)),
    (lambda text, picture: [turn(bare(text), picture)], BANANA, UNSIGNED.format("Text", 1)),
    (lambda text, picture: [turn(bare(picture))], FLASH, UNSIGNED.format("Image", 1)),
    (lambda text, picture: [turn(text, picture)], PRO, INVALID),
    (lambda text, picture: [turn(signed(picture, DUMMY))], BANANA, CORRUPTED),
    (lambda text, picture: [turn(picture, text)], BANANA, CORRUPTED),
    (lambda text, picture: [turn(text, picture), AGAIN, turn(text, picture)], BANANA, CORRUPTED),
    # The same picture in a user turn owes nothing.
    (lambda text, picture: [{"role": "user", "parts": [bare(picture)]}], PRO, ""),
]


class Asking:
    """Sends conversations; returns what was refused about them, or nothing."""

    def __init__(self, server: GeminiServer, raw: Raw) -> None:
        self._server, self._raw = server, raw

    def given(self, answer: Any) -> list[Json]:
        """Return the parts of an answer that is scripted."""
        self._server.script(answer)
        is_painted = answer.is_for_images
        return self._raw.parts({"contents": [ASK], **(PAINTING if is_painted else {})}, BANANA if is_painted else FLASH)

    def refusal(self, *contents: Json, model: str = FLASH) -> str:
        self._server.violations.clear()
        body = {"contents": list(contents)} | ({} if model in (FLASH, ARGON) else PAINTING)
        response = self._raw.post(body, model)
        assert response.status_code == (400 if self._server.violations else 200)
        message: str = response.json().get("error", {}).get("message", "")
        return message


@pytest.fixture
def asking(server: GeminiServer, raw: Raw) -> Asking:
    return Asking(server, raw)


@each_case(("change", "model", "expected"), CALLS)
def test_a_call_comes_back_with_its_own_signature(
    asking: Asking, change: Callable[[Json], Json], model: str, expected: str
) -> None:
    [call, *_] = asking.given(Call("draw", {"what": "fox", "size": 2}))
    assert asking.refusal(ASK, turn(change(call)), ANSWERED, model=model) == expected


@each_case(("change", "expected"), TEXTS)
def test_a_text_signature_is_optional_but_stays_on_its_empty_part(
    asking: Asking, change: Callable[[Json, Json], list[Json]], expected: str
) -> None:
    assert asking.refusal(ASK, turn(*change(*asking.given(Text("Hello.")))), AGAIN) == expected


@each_case(("change", "model", "expected"), PAINTED)
def test_a_painted_turn_comes_back_whole_and_once(
    asking: Asking, change: Callable[[Json, Json], list[Json]], model: str, expected: str
) -> None:
    parts = asking.given(PictureAnswer(64, 64, text_before="Here it is."))
    assert asking.refusal(ASK, *change(*parts), AGAIN, model=model) == expected


def test_another_picture_may_not_have_a_pictures_signature(asking: Asking) -> None:
    [picture], [other] = asking.given(PictureAnswer(64, 64)), asking.given(PictureAnswer(64, 64))
    moved = signed(other, picture["thoughtSignature"])
    assert asking.refusal(ASK, turn(moved), AGAIN, model=BANANA) == CORRUPTED


def test_each_step_of_the_turn_owes_its_own_and_a_call_of_an_earlier_turn_may_have_lost_it(asking: Asking) -> None:
    first, second = (asking.given(Call("draw", {"what": what}))[0] for what in ("fox", "hen"))
    assert asking.refusal(ASK, turn(first), ANSWERED, turn(second), ANSWERED) == ""
    assert asking.refusal(ASK, turn(first), ANSWERED, turn(bare(second)), ANSWERED) == MISSING.format(4)
    assert asking.refusal(ASK, turn(bare(first)), ANSWERED, turn({"text": "Done."}), AGAIN) == ""


def test_only_the_first_of_parallel_calls_owes_one(asking: Asking) -> None:
    first, second, *_ = asking.given(Calls([Call("draw", {"n": 1}), Call("draw", {"n": 2})]))
    assert asking.refusal(ASK, turn(first, second), BOTH_ANSWERED) == ""
    moved = signed(second, first["thoughtSignature"])
    assert asking.refusal(ASK, turn(moved, bare(first)), BOTH_ANSWERED) == CORRUPTED


@each_case("dummy", [DUMMY, OTHER_DUMMY, *(base64.b64encode(one.encode()).decode() for one in (DUMMY, OTHER_DUMMY))])
def test_a_dummy_passes_on_a_call_bare_or_encoded(asking: Asking, dummy: str) -> None:
    foreign = signed({"functionCall": {"name": "draw", "args": {}}}, dummy)
    assert asking.refusal(ASK, turn(foreign), ANSWERED) == ""

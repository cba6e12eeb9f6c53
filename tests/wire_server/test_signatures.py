"""Thought signatures: given out, demanded back on their own part, refused when anything about them changed."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

import pytest
from google import genai
from google.genai import types

from tests.support.cases import each_case
from tests.wire_server import Call, Calls, GeminiServer, PictureAnswer, Text
from tests.wire_server.conftest import BANANA, FLASH, Raw

Json = dict[str, Any]
ARGON = "gemini-4-argon"
PRO = "gemini-3-pro-image"
CORRUPTED = "Corrupted thought signature."
INVALID = "Invalid thought signature."
MISSING = (
    "Function call is missing a thought_signature in functionCall parts. This is required for tools to work "
    "correctly, and missing thought_signature may lead to degraded model performance. Additional data, function "
    "call `default_api:draw` , position 2. Please refer to "
    "https://ai.google.dev/gemini-api/docs/thought-signatures for more details."
)
UNSIGNED = "{} part is missing a thought_signature in content position 2, part position {}."
PAINTING = {"generationConfig": {"responseModalities": ["TEXT", "IMAGE"]}}
RESULT = {"functionResponse": {"name": "draw", "response": {"ok": True}}}
ASK: Json = {"role": "user", "parts": [{"text": "a fox"}]}
AGAIN: Json = {"role": "user", "parts": [{"text": "bluer"}]}
ANSWERED: Json = {"role": "user", "parts": [RESULT]}


def turn(*parts: Json) -> Json:
    return {"role": "model", "parts": list(parts)}


def without_signature(part: Json) -> Json:
    return {name: value for name, value in part.items() if name != "thoughtSignature"}


def refusal(raw: Raw, body: Json, model: str = FLASH) -> str:
    response = raw.post(body, model)
    assert response.status_code == 400, response.text
    message: str = response.json()["error"]["message"]
    return message


@pytest.fixture
def call(server: GeminiServer, raw: Raw) -> Json:
    server.on_text(Call("draw", {"what": "fox", "size": 2}))
    return raw.parts({"contents": [ASK]})[0]


@pytest.fixture
def painted(server: GeminiServer, raw: Raw) -> list[Json]:
    """A text and a picture, both signed."""
    server.on_image(PictureAnswer(64, 64, text_before="Here it is."))
    return raw.parts({"contents": [ASK], **PAINTING}, BANANA)


def signed(part: Json, signature: str) -> Json:
    return {**part, "thoughtSignature": signature}


def with_a_changed_bit(signature: str) -> str:
    data = bytearray(base64.b64decode(signature))
    data[-1] ^= 1
    return base64.b64encode(data).decode()


@each_case(
    ("change", "model", "expected"),
    [
        (lambda call: call, FLASH, ""),
        # Neither the order of the arguments nor the alphabet of base64 matters.
        (
            lambda call: {
                "functionCall": {"args": {"size": 2, "what": "fox"}, "name": "draw"},
                "thoughtSignature": call["thoughtSignature"].replace("+", "-").replace("/", "_").rstrip("="),
            },
            FLASH,
            "",
        ),
        (without_signature, FLASH, MISSING),
        (lambda call: signed(call, "AAAA"), FLASH, CORRUPTED),
        (lambda call: signed(call, "not base64!"), FLASH, CORRUPTED),
        (lambda call: signed(call, with_a_changed_bit(call["thoughtSignature"])), FLASH, CORRUPTED),
        (lambda call: {**call, "functionCall": {"name": "draw", "args": {"what": "hen"}}}, FLASH, CORRUPTED),
        (lambda call: {**call, "functionCall": {"name": "draw", "args": {}}}, FLASH, CORRUPTED),
        (lambda call: call, ARGON, INVALID),
    ],
)
def test_a_call_comes_back_with_its_own_signature(
    server: GeminiServer, raw: Raw, call: Json, change: Callable[[Json], Json], model: str, expected: str
) -> None:
    body = {"contents": [ASK, turn(change(call)), ANSWERED]}
    if expected:
        assert refusal(raw, body, model) == expected
    else:
        raw.parts(body, model)
        assert server.violations == []


@each_case("broken", ["AAAA", "not base64!", ""])
def test_an_unknown_signature_of_a_text_is_corrupted(raw: Raw, broken: str) -> None:
    assert refusal(raw, {"contents": [ASK, turn(signed({"text": "Hello."}, broken)), AGAIN]}) == CORRUPTED


@each_case(
    ("change", "model", "expected"),
    [
        (lambda text, picture: [turn(text, picture)], BANANA, ""),
        (lambda text, picture: [turn(picture)], BANANA, ""),
        (lambda text, picture: [turn(text, without_signature(picture))], BANANA, UNSIGNED.format("Image", 2)),
        (lambda text, picture: [turn(without_signature(text), picture)], BANANA, UNSIGNED.format("Text", 1)),
        (lambda text, picture: [turn(without_signature(picture))], FLASH, UNSIGNED.format("Image", 1)),
        (lambda text, picture: [turn(text, picture)], PRO, INVALID),
        (lambda text, picture: [turn(signed(picture, "skip_thought_signature_validator"))], BANANA, CORRUPTED),
        (lambda text, picture: [turn(picture, text)], BANANA, CORRUPTED),
        (lambda text, picture: [turn(text, picture), AGAIN, turn(text, picture)], BANANA, CORRUPTED),
    ],
)
def test_a_painted_turn_comes_back_whole_and_once(
    server: GeminiServer,
    raw: Raw,
    painted: list[Json],
    change: Callable[[Json, Json], list[Json]],
    model: str,
    expected: str,
) -> None:
    body = {"contents": [ASK, *change(*painted), AGAIN], **({} if model == FLASH else PAINTING)}
    if expected:
        assert refusal(raw, body, model) == expected
    else:
        raw.parts(body, model)
        assert server.violations == []


def test_each_step_of_the_turn_owes_its_own_and_a_call_of_an_earlier_turn_may_have_lost_it(
    server: GeminiServer, raw: Raw, call: Json
) -> None:
    server.on_text(Call("draw", {"what": "hen"}))
    second = raw.parts({"contents": [ASK, turn(call), ANSWERED]})[0]
    raw.parts({"contents": [ASK, turn(call), ANSWERED, turn(second), ANSWERED]})
    message = refusal(raw, {"contents": [ASK, turn(call), ANSWERED, turn(without_signature(second)), ANSWERED]})
    assert "position 4" in message
    raw.parts({"contents": [ASK, turn(without_signature(call)), ANSWERED, turn({"text": "Done."}), AGAIN]})


def test_only_the_first_of_parallel_calls_owes_one(server: GeminiServer, raw: Raw) -> None:
    server.on_text(Calls([Call("draw", {"n": 1}), Call("draw", {"n": 2})]))
    first, second = raw.parts({"contents": [ASK]})
    both = {"role": "user", "parts": [RESULT, RESULT]}
    raw.parts({"contents": [ASK, turn(first, second), both]})
    moved = signed(second, first["thoughtSignature"])
    assert refusal(raw, {"contents": [ASK, turn(moved, without_signature(first)), both]}) == CORRUPTED


@each_case("dummy", ["skip_thought_signature_validator", "context_engineering_is_the_way_to_go"])
def test_a_dummy_passes_on_a_call_bare_or_encoded(raw: Raw, dummy: str) -> None:
    for signature in (dummy, base64.urlsafe_b64encode(dummy.encode()).decode()):
        foreign = signed({"functionCall": {"name": "draw", "args": {}}}, signature)
        raw.parts({"contents": [ASK, turn(foreign), ANSWERED]})


def test_a_text_signature_is_optional_but_stays_on_its_empty_part(server: GeminiServer, raw: Raw) -> None:
    server.on_text(Text("Hello."))
    text, empty = raw.parts({"contents": [ASK]})
    raw.parts({"contents": [ASK, turn(text, empty), AGAIN]})
    raw.parts({"contents": [ASK, turn(text), AGAIN]})
    merged = signed(text, empty["thoughtSignature"])
    assert refusal(raw, {"contents": [ASK, turn(merged), AGAIN]}) == CORRUPTED


def test_the_same_picture_in_a_user_turn_owes_nothing_and_another_may_not_have_its_signature(
    server: GeminiServer, raw: Raw, painted: list[Json]
) -> None:
    reference = {"role": "user", "parts": [without_signature(painted[1]), {"text": "bluer"}]}
    raw.parts({"contents": [reference], **PAINTING}, PRO)
    server.on_image(PictureAnswer(64, 64))
    (other,) = raw.parts({"contents": [ASK], **PAINTING}, BANANA)
    moved = signed(other, painted[1]["thoughtSignature"])
    assert refusal(raw, {"contents": [ASK, turn(moved), AGAIN], **PAINTING}, BANANA) == CORRUPTED


def content(role: str, *parts: types.Part) -> types.Content:
    return types.Content(role=role, parts=list(parts))


def test_what_was_signed_makes_the_round_trip_through_the_sdk(server: GeminiServer, sdk: genai.Client) -> None:
    server.on_image(PictureAnswer(text_before="Here.", is_huge=True))
    config = types.GenerateContentConfig(response_modalities=["TEXT", "IMAGE"])
    ask, again = content("user", types.Part(text="a fox")), content("user", types.Part(text="bluer"))
    first = sdk.models.generate_content(model=BANANA, contents=[ask], config=config)
    contents = [ask, content("model", *first.parts or []), again]
    assert sdk.models.generate_content(model=BANANA, contents=contents, config=config).parts
    assert server.requests[-1].size_bytes > 2_400_000
    # A streamed call comes back as it came.
    server.on_text(Call("draw", {"what": "fox"}, id="call-1", text_before="On it."))
    chunks = list(sdk.models.generate_content_stream(model=FLASH, contents="a fox"))
    parts = [part for chunk in chunks for part in chunk.parts or [] if part.text or part.function_call]
    result = types.FunctionResponse(name="draw", id="call-1", response={"ok": True})
    contents = [ask, content("model", *parts), content("user", types.Part(function_response=result))]
    assert sdk.models.generate_content(model=FLASH, contents=contents).text == "Hello."
    assert server.violations == []

"""Rules of thought signatures: where one is owed, and that each given is its part's own."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from tests.wire_server.models import Kind, WireModel
from tests.wire_server.refusals import Json, Refused
from tests.wire_server.signatures import Ledger, is_dummy

_CALL = (
    "Function call is missing a thought_signature in functionCall parts. This is required for tools to work "
    "correctly, and missing thought_signature may lead to degraded model performance. Additional data, function call "
    "`default_api:{name}` , position {position}. Please refer to "
    "https://ai.google.dev/gemini-api/docs/thought-signatures for more details."
)
_PART = "{kind} part is missing a thought_signature in content position {content}, part position {part}."

# A part with its places in the request: of its content and of itself, both from 1.
Placed = tuple[int, int, Json]


def check_signatures(contents: list[Json], model: WireModel, ledger: Ledger) -> None:
    """Refuse a part that lost its signature where one is owed, and any signature that is not the part's own."""
    start = current_turn(contents)
    seen: set[bytes] = set()
    places: dict[str, int] = {}
    for turn in _model_turns(contents):
        if turn[0][0] > start:
            _check_first_call(turn)
        _check_pictures(turn, model)
        for _, _, part in turn:
            signature = part.get("thoughtSignature")
            if signature is None or ("functionCall" in part and is_dummy(signature)):
                continue
            ledger.check(part, model.name, seen, places)


def current_turn(contents: list[Json]) -> int:
    """Return the place, from 1, of the last user content that brings no function response."""
    place = 0
    for number, content in enumerate(contents, 1):
        is_response = any("functionResponse" in part for part in content["parts"])
        if content["role"] == "user" and not is_response:
            place = number
    return place


def _model_turns(contents: list[Json]) -> Iterator[list[Placed]]:
    """Yield the parts of each model turn; contents that follow each other are one turn."""
    numbered = enumerate(contents, 1)
    for role, group in groupby(numbered, key=lambda entry: entry[1]["role"]):
        if role == "model":
            yield [(place, i, part) for place, content in group for i, part in enumerate(content["parts"], 1)]


def _check_first_call(turn: list[Placed]) -> None:
    for place, _, part in turn:
        if "functionCall" in part:
            if not part.get("thoughtSignature"):
                name = part["functionCall"]["name"]
                raise Refused("signature_missing", _CALL.format(name=name, position=place))
            return


def _check_pictures(turn: list[Placed], model: WireModel) -> None:
    has_picture = any(_is_picture(part) for _, _, part in turn)
    spoken = [placed for placed in turn if not placed[2].get("thought")]
    if has_picture and model.kind is Kind.IMAGE and spoken and "text" in spoken[0][2]:
        _demand(spoken[0], "Text")
    for placed in turn:
        if _is_picture(placed[2]):
            _demand(placed, "Image")


def _demand(placed: Placed, kind: str) -> None:
    content, part, value = placed
    if not value.get("thoughtSignature"):
        raise Refused("signature_missing", _PART.format(kind=kind, content=content, part=part))


def _is_picture(part: Json) -> bool:
    return "inlineData" in part and str(part["inlineData"].get("mimeType", "")).startswith("image/")

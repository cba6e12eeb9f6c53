"""JSON from outside, looked at before it is parsed: how large it is, how deep, and how many values it holds."""

from __future__ import annotations

import re
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from agent.archive.format import ArchiveLimits
from agent.archive.refusals import archive_too_large, inconsistent

Model = TypeVar("Model", bound=BaseModel)

# One sign of structure and all that stands before it. Possessive, so that nothing is looked at twice.
_NEXT_SIGN = re.compile(rb'(?:"(?:[^"\\]++|\\.)*+"|[^"\[\]{},]++)*+([\[\]{},])', re.DOTALL)
_STEPS = {b"[": 1, b"{": 1, b"]": -1, b"}": -1, b",": 0}


def parsed(data: bytes, model: type[Model], name: str, limits: ArchiveLimits) -> Model:
    """Return the value of a JSON file of an archive.

    Raises RequestRefused: too large, too deep, or not of that model; `name` is the file's, for the sentence.
    """
    check_json(data, name, limits)
    try:
        return model.model_validate_json(data)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise inconsistent(name, f"{place}: {first['msg']}") from error


def check_json(data: bytes, name: str, limits: ArchiveLimits) -> None:
    """Return when the JSON can be parsed without filling the memory. Raises RequestRefused."""
    if len(data) > limits.json_bytes:
        raise archive_too_large(limits.json_bytes)
    depth = values = place = 0
    # Where a string never ends there is no next sign, and the parser says so.
    while sign := _NEXT_SIGN.match(data, place):
        step = _STEPS[sign[1]]
        place, depth, values = sign.end(), depth + step, values + (step >= 0)
        if depth > limits.json_depth:
            raise inconsistent(name, "too deep")
        if values > limits.json_values:
            raise inconsistent(name, "too many values")

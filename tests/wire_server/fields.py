"""Every field the API has: a request is walked once, unknown names are refused, all names become camelCase."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from tests.support.tables import table
from tests.wire_server.refusals import Json, Refused, unknown_field

# Field by field of each message, what it holds.
SHAPES: dict[str, dict[str, str]] = {
    shape: {name: kind for kind, names in fields.items() for name in names.split()}
    for shape, fields in table("wire_fields").items()
}


def normalized(body: object, shape: str = "GenerateContentRequest") -> Json:
    """Return the request with every name of the API in camelCase and nulls left out. Raises Refused."""
    return _message(body, shape, "")


def _message(value: object, shape: str, path: str) -> Json:
    if not isinstance(value, dict):
        raise _wrong_type(path, shape)
    fields = SHAPES[shape]
    found: Json = {}
    for key, item in value.items():
        name = camel(key)
        if name not in fields:
            raise unknown_field(key, path)
        if name in found:
            raise Refused("unknown_field", f"Invalid JSON payload received. Repeated field '{snake(name)}'.")
        if item is not None:
            found[name] = _value(item, fields[name], f"{path}.{snake(name)}" if path else snake(name))
    return found


def _value(item: object, kind: str, path: str) -> Any:
    if kind.startswith("["):
        if not isinstance(item, list):
            raise _wrong_type(path, kind)
        return [_value(member, kind[1:-1], f"{path}[{i}]") for i, member in enumerate(item)]
    if kind in SHAPES:
        return _message(item, kind, path)
    expected = {"string": str, "boolean": bool, "number": (int, float), "object": dict}.get(kind)
    is_number_but_boolean = kind == "number" and isinstance(item, bool)
    if expected is not None and (not isinstance(item, expected) or is_number_but_boolean):
        raise _wrong_type(path, kind)
    return item


def _wrong_type(path: str, kind: str) -> Refused:
    return Refused("wrong_type", f"Invalid value at '{path or 'request'}' ({kind})")


@cache
def camel(name: str) -> str:
    """Return a snake_case name as camelCase; a leading underscore stays."""
    return re.sub(r"(?<=[a-zA-Z0-9])_([a-z0-9])", lambda match: match[1].upper(), name)


@cache
def snake(name: str) -> str:
    """Return a camelCase name as the API's error messages spell it."""
    return re.sub(r"(?<=[a-z0-9])([A-Z])", lambda match: "_" + match[1].lower(), name)

"""The schemas of servers' tools, in the keywords that the models' providers take.

A schema is copied, never passed on: references are put in their place, what cannot be said is left out (so that the
model may send what the server then refuses), and words from outside are shortened and stripped.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pydantic import JsonValue

from agent.untrusted import plain_text

MAX_SCHEMA_CHARACTERS = 24_000
_MAX_NODES = 600
_MAX_DEPTH = 12
_DESCRIPTION_CHARACTERS = 400
_NAME_CHARACTERS = 128

_TYPES = frozenset({"string", "number", "integer", "boolean", "array", "object", "null"})
_NUMBERS = ("minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties")
# A schema that says nothing: the providers want a type nevertheless.
_ANYTHING: dict[str, JsonValue] = {"type": ["string", "number", "boolean", "object"]}

_Schema = dict[str, JsonValue]


class UnusableSchema(ValueError):
    """The schema cannot be told to a model; the message says why."""


def reduced(schema: Mapping[str, Any]) -> _Schema:
    """Return the schema of a tool's arguments: an object of the keywords that every provider takes.

    Raises UnusableSchema for one that is not an object's, points elsewhere, hides characters in a name, or is too long.
    """
    if schema.get("type", "object") != "object":
        raise UnusableSchema("its arguments are not an object")
    copied = _Copy(schema).of({**schema, "type": "object"}, ())
    if copied is None or copied.get("type") != "object":
        raise UnusableSchema("its arguments are not an object")
    for choice in ("anyOf", "oneOf"):
        copied.pop(choice, None)
    if len(json.dumps(copied, ensure_ascii=False)) > MAX_SCHEMA_CHARACTERS:
        raise UnusableSchema("its schema is too large")
    return {"properties": {}, **copied}


class _Copy:
    """Copies a schema; `seen` on the way are the references it is inside of."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self._nodes = 0

    def of(self, schema: Any, seen: tuple[str, ...], depth: int = 0) -> _Schema | None:
        """Return the copy, or None for a schema that nothing fits."""
        self._nodes += 1
        if self._nodes > _MAX_NODES or depth > _MAX_DEPTH:
            raise UnusableSchema("its schema is too large")
        if schema is False:
            return None
        if not isinstance(schema, dict):
            return dict(_ANYTHING)
        if "$ref" in schema:
            return self._referred(schema["$ref"], seen, depth)
        schema = self._with_all_of(schema, seen)
        copied = self._words(schema) | self._kind(schema)
        copied |= {name: schema[name] for name in _NUMBERS if _is_number(schema.get(name))}
        for name, limit in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
            if _is_number(schema.get(name)):
                copied.setdefault(limit, schema[name])
        self._add_members(copied, schema, seen, depth)
        if not {"type", "anyOf", "enum"} & set(copied):
            copied |= _ANYTHING
        return copied

    def _referred(self, reference: object, seen: tuple[str, ...], depth: int) -> _Schema | None:
        if not isinstance(reference, str) or not reference.startswith("#"):
            raise UnusableSchema("its schema points to another document")
        if reference in seen or reference == "#":
            # Round in a circle: how deep the model may go on is not said.
            return {"type": "object"}
        target: Any = self._root
        for part in reference.removeprefix("#/").split("/"):
            name = part.replace("~1", "/").replace("~0", "~")
            target = target.get(name) if isinstance(target, dict) else None
        if not isinstance(target, dict):
            raise UnusableSchema("its schema points to a part that it does not have")
        return self.of(target, (*seen, reference), depth + 1)

    def _with_all_of(self, schema: dict[str, Any], seen: tuple[str, ...]) -> dict[str, Any]:
        """Return the schema with the members of `allOf` laid over each other: what all of them ask for together."""
        members = schema.get("allOf")
        if not isinstance(members, list):
            return schema
        whole = {name: value for name, value in schema.items() if name != "allOf"}
        for member in members[:_MAX_DEPTH]:
            one = self._referred(member["$ref"], seen, 0) if isinstance(member, dict) and "$ref" in member else member
            if not isinstance(one, dict):
                continue
            properties = {**_mapping(whole.get("properties")), **_mapping(one.get("properties"))}
            required = [*_list(whole.get("required")), *_list(one.get("required"))]
            whole = {**one, **whole}
            if properties:
                whole["properties"] = properties
            if required:
                whole["required"] = required
        return whole

    def _words(self, schema: Mapping[str, Any]) -> _Schema:
        told: _Schema = {}
        description = schema.get("description")
        if isinstance(description, str) and (shown := " ".join(plain_text(description).split())):
            told["description"] = shown[:_DESCRIPTION_CHARACTERS]
        for name in ("format", "pattern"):
            value = schema.get(name)
            if isinstance(value, str) and len(value) <= _NAME_CHARACTERS and plain_text(value) == value:
                told[name] = value
        return told

    def _kind(self, schema: Mapping[str, Any]) -> _Schema:
        kind = schema.get("type")
        kinds = [one for one in (kind if isinstance(kind, list) else [kind]) if one in _TYPES]
        choices = [schema["const"]] if "const" in schema else _list(schema.get("enum"))
        choices = [one for one in choices if _is_scalar(one)][:_MAX_NODES]
        if any(isinstance(one, str) and plain_text(one) != one for one in choices):
            raise UnusableSchema("its schema hides characters in a value")
        found: _Schema = {"enum": choices} if choices else {}
        if not kinds and choices and all(isinstance(one, str) for one in choices):
            kinds = ["string"]
        if not kinds and not choices:
            kinds = ["object"] if "properties" in schema else ["array"] if "items" in schema else []
        if kinds:
            found["type"] = kinds[0] if len(kinds) == 1 else list(kinds)
        return found

    def _add_members(self, copied: _Schema, schema: Mapping[str, Any], seen: tuple[str, ...], depth: int) -> None:
        kinds = copied.get("type")
        kinds = kinds if isinstance(kinds, list) else [kinds]
        if "object" in kinds and "properties" in schema:
            properties = self._properties(_mapping(schema["properties"]), seen, depth)
            copied["properties"] = properties
            required = [one for one in _list(schema.get("required")) if isinstance(one, str) and one in properties]
            if required:
                copied["required"] = list(dict.fromkeys(required))
        if "object" in kinds and isinstance(schema.get("additionalProperties"), bool):
            copied["additionalProperties"] = schema["additionalProperties"]
        if "array" in kinds:
            copied["items"] = self.of(schema.get("items"), seen, depth + 1) or dict(_ANYTHING)
        choices = [one for name in ("anyOf", "oneOf") for one in _list(schema.get(name))]
        members: list[JsonValue] = [one for choice in choices if (one := self.of(choice, seen, depth + 1)) is not None]
        if members:
            copied["anyOf"] = members

    def _properties(self, given: Mapping[str, Any], seen: tuple[str, ...], depth: int) -> _Schema:
        properties: _Schema = {}
        for name, member in given.items():
            if plain_text(name) != name or not 0 < len(name) <= _NAME_CHARACTERS:
                raise UnusableSchema("its schema has a name that cannot be shown")
            copied = self.of(member, seen, depth + 1)
            if copied is not None:
                properties[name] = copied
        return properties


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_scalar(value: object) -> bool:
    return value is None or isinstance(value, str | int | float | bool)


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _mapping(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}

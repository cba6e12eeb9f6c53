"""Fills a JSON form: the smallest value that fits a simple schema."""

from __future__ import annotations

from pydantic import JsonValue

_MAX_DEPTH = 12
_TITLES = {"title", "prompt", "prompt_draft", "subject", "query", "name", "summary"}
_MAX_TITLE_CHARACTERS = 60


def fill_form(schema: dict[str, JsonValue], text: str) -> JsonValue:
    """Return a value of the schema: `text` where a title or prompt is asked for, else the least that is allowed."""
    return _fill(schema, text, "", schema.get("$defs") or schema.get("definitions"), 0)


def _fill(schema: JsonValue, text: str, name: str, definitions: JsonValue, depth: int) -> JsonValue:
    if not isinstance(schema, dict) or depth > _MAX_DEPTH:
        return None
    chosen = _resolved(schema, definitions)
    if "const" in chosen:
        return chosen["const"]
    options = chosen.get("enum")
    if isinstance(options, list) and options:
        return options[0]
    kind = _kind(chosen)
    if kind == "object":
        return _fill_object(chosen, text, definitions, depth)
    if kind == "array":
        count = chosen.get("minItems")
        items = chosen.get("items")
        return [_fill(items, text, name, definitions, depth + 1) for _ in range(count if isinstance(count, int) else 0)]
    if kind in {"integer", "number"}:
        least = chosen.get("minimum")
        return least if isinstance(least, int | float) else 0
    return {"boolean": False, "null": None}.get(kind, _words(chosen, text, name))


def _fill_object(schema: dict[str, JsonValue], text: str, definitions: JsonValue, depth: int) -> JsonValue:
    properties = schema.get("properties")
    if not isinstance(properties, dict):
        return {}
    return {name: _fill(inner, text, name, definitions, depth + 1) for name, inner in properties.items()}


def _words(schema: dict[str, JsonValue], text: str, name: str) -> str:
    words = " ".join(text.split())[:_MAX_TITLE_CHARACTERS] if name in _TITLES else ""
    longest, shortest = schema.get("maxLength"), schema.get("minLength")
    if isinstance(longest, int):
        words = words[:longest]
    return words.ljust(shortest, "-") if isinstance(shortest, int) else words


def _resolved(schema: dict[str, JsonValue], definitions: JsonValue) -> dict[str, JsonValue]:
    reference = schema.get("$ref")
    if isinstance(reference, str) and isinstance(definitions, dict):
        found = definitions.get(reference.rsplit("/", 1)[-1])
        return found if isinstance(found, dict) else {}
    for word in ("anyOf", "oneOf", "allOf"):
        choices = schema.get(word)
        if isinstance(choices, list) and choices and isinstance(choices[0], dict):
            return _resolved(choices[0], definitions)
    return schema


def _kind(schema: dict[str, JsonValue]) -> str:
    kind = schema.get("type")
    if isinstance(kind, list):
        kind = kind[0] if kind else None
    if isinstance(kind, str):
        return kind.lower()
    return "object" if "properties" in schema else "string"

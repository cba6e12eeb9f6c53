"""JSON Schemas of what the tools take and answer, as short as they can be: clients hand them to models."""

from __future__ import annotations

from typing import Any, Literal

from agent import Value


def schema_of(model: type[Value], mode: Literal["validation", "serialization"]) -> dict[str, Any]:
    """Return the schema of a value without pydantic's titles and our docstrings; fields keep their descriptions."""
    schema = model.model_json_schema(mode=mode)
    for one in (schema, *schema.get("$defs", {}).values()):
        one.pop("description", None)
    found: dict[str, Any] = _untitled(schema)
    return found


def _untitled(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_untitled(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    # A field may be named `title`: then it is a schema, not a text.
    return {key: _untitled(one) for key, one in schema.items() if key != "title" or not isinstance(one, str)}

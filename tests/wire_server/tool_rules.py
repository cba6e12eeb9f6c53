"""Rules of tools: what a declaration is, and which tools may stand in one request."""

from __future__ import annotations

import re
from typing import Any

from tests.wire_server.models import Kind, WireModel
from tests.wire_server.refusals import Json, Refused, refuse

_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}")
_NAME_RULE = (
    "Invalid function name. Must start with a letter or an underscore. Must be alphameric (a-z, A-Z, 0-9), "
    "underscores (_), dots (.), colons (:), or dashes (-), with a maximum length of 64."
)
_MIXED = "Please enable tool_config.include_server_side_tool_invocations to use Built-in tools with Function calling."
_TYPES = frozenset({"string", "number", "integer", "boolean", "array", "object", "null"})
# The keywords the API documents, and those it is known to ignore in peace.
_KEYWORDS = {
    *("$id", "$defs", "$ref", "$anchor", "type", "format", "title", "description", "enum", "items", "prefixItems"),
    *("minItems", "maxItems", "minimum", "maximum", "anyOf", "oneOf", "properties", "additionalProperties", "required"),
    *("propertyOrdering", "default", "pattern", "minLength", "maxLength", "minProperties", "maxProperties", "example"),
    "nullable",
}


def check_tools(body: Json, model: WireModel) -> list[str]:
    """Refuse tools the model does not take; return the design rule broken by a mix the API allows."""
    tools: list[Json] = body.get("tools", [])
    declared = [entry for tool in tools for entry in tool.get("functionDeclarations", [])]
    built_in = any(set(tool) - {"functionDeclarations"} for tool in tools)
    config: Json = body.get("toolConfig", {})
    refuse(any(not tool for tool in tools), "empty_tool", "Each tool must declare exactly one kind of tool.")
    if declared and model.kind is Kind.IMAGE:
        raise Refused("functions_on_image_model", "Function calling is not enabled for this model")
    for number, entry in enumerate(declared):
        _check_declaration(entry, f"GenerateContentRequest.tools[0].function_declarations[{number}]")
    names = [entry["name"] for entry in declared]
    if len(set(names)) != len(names):
        raise Refused("declaration", f"Duplicate function declaration found: {max(names, key=names.count)}")
    searches = [tool["googleSearch"] for tool in tools if "googleSearch" in tool]
    refuse(searches and not model.has_search, "search_on_model", "Search as tool is not enabled for this model")
    kinds = searches[0].get("searchTypes", {}) if searches else {}
    if "imageSearch" in kinds and not model.has_image_search:
        raise Refused("search_on_model", "Image search is not enabled for this model")
    _check_calling_config(config.get("functionCallingConfig"), names)
    if not (declared and built_in):
        return []
    refuse(not config.get("includeServerSideToolInvocations"), "mixed_tools", _MIXED)
    return ["google_search and function declarations in one request: the design keeps them in two."]


def _check_calling_config(config: Json | None, names: list[str]) -> None:
    if config is None:
        return
    refuse(not names, "function_calling_config", "Function calling config is set without function_declarations.")
    mode = config.get("mode", "AUTO").upper()
    if mode not in {"MODE_UNSPECIFIED", "AUTO", "ANY", "NONE", "VALIDATED"}:
        raise Refused("function_calling_config", f"Invalid value at 'tool_config.function_calling_config.mode': {mode}")
    allowed = config.get("allowedFunctionNames", [])
    sentence = "Please set allowed_function_names only when function calling mode is ANY."
    refuse(allowed and mode not in ("ANY", "VALIDATED"), "function_calling_config", sentence)
    if unknown := set(allowed) - set(names):
        sentence = f"allowed_function_names contains names that are not declared: {sorted(unknown)}"
        raise Refused("function_calling_config", sentence)


def _check_declaration(entry: Json, path: str) -> None:
    refuse(not _NAME.fullmatch(entry.get("name", "")), "declaration", f"* {path}.name: {_NAME_RULE}\n")
    if "parameters" in entry and "parametersJsonSchema" in entry:
        raise Refused("declaration", f"* {path}: parameters and parameters_json_schema are mutually exclusive\n")
    schema = entry.get("parametersJsonSchema", entry.get("parameters"))
    if schema is None:
        return
    if str(schema.get("type", "")).lower() != "object":
        raise Refused("declaration", f"* {path}.parameters: schema must be of type OBJECT\n")
    check_schema(schema, f"{path}.parameters")


def check_schema(schema: Any, path: str) -> None:
    """Refuse what is no JSON schema the API understands."""
    refuse(not isinstance(schema, dict), "schema", f"* {path}: must be an object\n")
    if unknown := set(schema) - _KEYWORDS:
        raise Refused("schema", f"Invalid JSON payload received. Unknown name \"{min(unknown)}\" at '{path}'")
    kinds = schema.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    refuse(any(str(kind).lower() not in _TYPES for kind in kinds), "schema", f"* {path}.type: {kinds} is not a type\n")
    if not kinds and not {"$ref", "anyOf", "oneOf", "enum"} & set(schema):
        raise Refused("schema", f"* {path}.type: must be specified\n")
    if "array" in kinds and "items" not in schema and "prefixItems" not in schema:
        raise Refused("schema", f"* {path}.items: missing field.\n")
    refuse("enum" in schema and not schema["enum"], "schema", f"* {path}.enum: cannot be empty\n")
    properties = schema.get("properties", {})
    for number, name in enumerate(schema.get("required", [])):
        refuse(name not in properties, "schema", f"* {path}.required[{number}]: property is not defined\n")
    for name, member in properties.items():
        check_schema(member, f"{path}.properties[{name}]")
    if isinstance(schema.get("items"), dict):
        check_schema(schema["items"], f"{path}.items")
    for choice in ("anyOf", "oneOf", "prefixItems"):
        for number, member in enumerate(schema.get(choice, [])):
            check_schema(member, f"{path}.{choice}[{number}]")
    for name, member in schema.get("$defs", {}).items():
        check_schema(member, f"{path}.$defs[{name}]")

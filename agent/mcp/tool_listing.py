"""The listed tools of a server in a form that is safe for a model: named by us, texts cleaned and cut, schema reduced.

A schema is copied, never passed on: references are resolved, unsupported parts are dropped (so the model may send
arguments that the server then rejects), and external texts are shortened and cleaned.

Fingerprints of the tools, as they were first seen or last allowed, are stored in one small private file in the home
folder: a server writes its own descriptions, and a tool that was once reviewed must not change unnoticed.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import math
import re
import threading
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mcp_types import Tool as ListedTool
from pydantic import JsonValue, TypeAdapter, ValidationError

from agent.messages import Value
from agent.providers.base import ToolDeclaration
from agent.storage.private_files import locked_file, storage_failure, write_private_file
from agent.untrusted import plain_text

MAX_SCHEMA_CHARACTERS = 24_000
_MAX_NODES = 600
_MAX_DEPTH = 12
_ARGUMENT_DESCRIPTION_CHARACTERS = 400
_ARGUMENT_NAME_CHARACTERS = 128

_TYPES = frozenset({"string", "number", "integer", "boolean", "array", "object", "null"})
_NUMBERS = ("minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties")
# For a schema without constraints: the providers require a type.
_ANYTHING: dict[str, JsonValue] = {"type": ["string", "number", "boolean", "object"]}

_Schema = dict[str, JsonValue]


class UnusableSchema(ValueError):
    """The schema cannot be given to a model; the message says why."""


def reduced(schema: Mapping[str, Any]) -> _Schema:
    """Return the schema of a tool's arguments: an object with only the keywords that every provider supports.

    Raises UnusableSchema when it is not an object's, refers to another document, hides characters in a name or value,
    or is too large.
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
    """A copier of a schema; `seen` are the references that are being resolved."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self._nodes = 0

    def of(self, schema: Any, seen: tuple[str, ...], depth: int = 0) -> _Schema | None:
        """Return the copy, or None for a schema that no value matches."""
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
            # A cycle: replace it with a plain object, without a limit of depth.
            return {"type": "object"}
        # Beside the limit of depth, which starts anew with each `allOf`.
        if len(seen) > _MAX_DEPTH:
            raise UnusableSchema("its schema is too large")
        target: Any = self._root
        for part in reference.removeprefix("#/").split("/"):
            name = part.replace("~1", "/").replace("~0", "~")
            target = target.get(name) if isinstance(target, dict) else None
        if not isinstance(target, dict):
            raise UnusableSchema("its schema points to a part that it does not have")
        return self.of(target, (*seen, reference), depth + 1)

    def _with_all_of(self, schema: dict[str, Any], seen: tuple[str, ...]) -> dict[str, Any]:
        """Return the schema merged with the members of its `allOf`."""
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
        copied: _Schema = {}
        description = schema.get("description")
        if isinstance(description, str) and (shown := " ".join(plain_text(description).split())):
            copied["description"] = shown[:_ARGUMENT_DESCRIPTION_CHARACTERS]
        for name in ("format", "pattern"):
            value = schema.get(name)
            if isinstance(value, str) and len(value) <= _ARGUMENT_NAME_CHARACTERS and plain_text(value) == value:
                copied[name] = value
        return copied

    def _kind(self, schema: Mapping[str, Any]) -> _Schema:
        kind = schema.get("type")
        kinds = [one for one in (kind if isinstance(kind, list) else [kind]) if isinstance(one, str) and one in _TYPES]
        choices = [schema["const"]] if "const" in schema else _list(schema.get("enum"))
        choices = [one for one in choices if one is None or isinstance(one, str | bool) or _is_number(one)][:_MAX_NODES]
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
            if plain_text(name) != name or not 0 < len(name) <= _ARGUMENT_NAME_CHARACTERS:
                raise UnusableSchema("its schema has a name that cannot be shown")
            copied = self.of(member, seen, depth + 1)
            if copied is not None:
                properties[name] = copied
        return properties


def _is_number(value: object) -> bool:
    # Servers may send 1e999 or NaN, which no request to a provider can hold.
    is_finite = isinstance(value, int) or (isinstance(value, float) and math.isfinite(value))
    return is_finite and not isinstance(value, bool)


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _mapping(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


MAX_NAME_CHARACTERS = 64
_LEGAL = re.compile(r"[a-zA-Z][a-zA-Z0-9_]{0,63}")
_DIGEST_CHARACTERS = 8
_DESCRIPTION_CHARACTERS = 1200
_NAME_CHARACTERS = 256
_SHOWN_CHARACTERS = 80


@dataclass(frozen=True)
class Offer:
    """A tool of a server: its name on the server, its declaration for the model, and its fingerprint when listed.

    `is_read_only` is the server's own claim. `fingerprint` changes with everything that the model, or the rule about
    clicks, depends on.
    """

    server: str
    tool: str
    declaration: ToolDeclaration
    is_read_only: bool
    fingerprint: str


def offers_of(
    server: str, listed: Sequence[ListedTool], wanted: Sequence[str] | None, taken: Collection[str]
) -> tuple[tuple[Offer, ...], tuple[str, ...]]:
    """Return the tools that can be offered, in the server's order, and for the log those that cannot, with the reason.

    `wanted` are the names that the operator chose, None for all; `taken` are names that no server's tool may have.
    """
    found: dict[str, Offer] = {}
    left_out: list[str] = []
    for one in listed:
        if wanted is not None and one.name not in wanted:
            continue
        try:
            offer = _offer(server, one, taken)
        except UnusableSchema as problem:
            left_out.append(f"{one.name[:_SHOWN_CHARACTERS]!r} ({problem})")
        else:
            found.setdefault(offer.declaration.name, offer)
    known = {one.name for one in listed}
    left_out += [f"{name!r} (it has none of that name)" for name in wanted or () if name not in known]
    return tuple(found.values()), tuple(left_out)


def _offer(server: str, listed: ListedTool, taken: Collection[str]) -> Offer:
    if not 0 < len(listed.name) <= _NAME_CHARACTERS or plain_text(listed.name) != listed.name:
        raise UnusableSchema("its name cannot be shown")
    description = plain_text(listed.description or "").strip()
    if len(description) > _DESCRIPTION_CHARACTERS:
        description = description[:_DESCRIPTION_CHARACTERS].rstrip() + "…"
    declaration = ToolDeclaration(
        name=offered_name(server, listed.name, taken),
        description=f"The tool {listed.name} of the server {server}. {description}".strip(),
        parameters=reduced(listed.input_schema),
    )
    is_read_only = listed.annotations is not None and listed.annotations.read_only_hint is True
    # The hint is included: a tool that suddenly declares itself read-only would otherwise need no click any more.
    whole = [listed.name, listed.description, listed.input_schema, is_read_only]
    fingerprint = hashlib.sha256(json.dumps(whole, sort_keys=True).encode()).hexdigest()
    return Offer(server, listed.name, declaration, is_read_only, fingerprint)


def offered_name(server: str, tool: str, taken: Collection[str]) -> str:
    """Return `server_tool`, or a name that ends in a digest when that is not legal or is already taken.

    The name depends only on the arguments: a call that waits for the user for days still means the same tool, whatever
    other servers there are.
    """
    whole = f"{server.replace('-', '_')}_{tool}"
    if _LEGAL.fullmatch(whole) and whole not in taken:
        return whole
    digest = hashlib.sha256(f"{server}\n{tool}".encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST_CHARACTERS]
    stem = re.sub(r"[^a-zA-Z0-9]+", "_", whole)[: MAX_NAME_CHARACTERS - _DIGEST_CHARACTERS - 1]
    return f"{stem.rstrip('_')}_{digest}"


_NAME = "mcp_tools.json"
# A server that keeps renaming its tools must not fill the disk: the tools seen longest ago are forgotten.
_MOST_TOOLS = 512

_log = logging.getLogger(__name__)


class Pin(Value):
    """The accepted fingerprint of a tool (`known`), and the one that the user was last asked about (`asked`)."""

    known: str
    asked: str = ""


_FILE = TypeAdapter(dict[str, dict[str, Pin]])


class Pins:
    """The fingerprints of every server's tools, by the names of server and tool.

    When the file cannot be written, the pins hold for this run: the failure is logged, and no call fails.
    """

    def __init__(self, home: Path) -> None:
        self._path = home / _NAME
        self._kept: dict[str, dict[str, Pin]] = {}
        self._lock = threading.Lock()

    async def see(self, server: str, fingerprints: Mapping[str, str]) -> None:
        """Pin the current fingerprints of tools that were never seen before."""
        pins = {name: Pin(known=one) for name, one in fingerprints.items()}
        await asyncio.to_thread(self._change, server, pins, is_first_sight=True)

    def is_changed(self, server: str, tool: str, fingerprint: str) -> bool:
        """Return whether the tool has changed since it was first seen or last allowed."""
        return self._pin(server, tool).known != fingerprint

    async def ask(self, server: str, tool: str, fingerprint: str) -> None:
        """Record that the user is asked about the tool with this fingerprint."""
        pin = self._pin(server, tool).model_copy(update={"asked": fingerprint})
        await asyncio.to_thread(self._change, server, {tool: pin})

    async def allow(self, server: str, tool: str, fingerprint: str) -> bool:
        """Return whether the tool may run with this fingerprint; pin it if the user was last asked about this one."""
        pin = self._pin(server, tool)
        if pin.known == fingerprint:
            return True
        if pin.asked != fingerprint:
            return False
        await asyncio.to_thread(self._change, server, {tool: Pin(known=fingerprint)})
        return True

    def _pin(self, server: str, tool: str) -> Pin:
        return self._kept.get(server, {}).get(tool, Pin(known=""))

    def _change(self, server: str, pins: Mapping[str, Pin], *, is_first_sight: bool = False) -> None:
        with self._lock, ExitStack() as alone:
            # Without the lock, write anyway: at worst the user is asked once more.
            with suppress(OSError):
                alone.enter_context(locked_file(self._path))
            # Also keep the tools that another studio with this home folder has seen since.
            for name, pinned in self._read().items():
                self._kept[name] = {**pinned, **self._kept.get(name, {})}
            before = self._kept.get(server, {})
            known = {**pins, **before} if is_first_sight else {**before, **pins}
            # The tools seen just now come last, because only the last _MOST_TOOLS are kept.
            after = {tool: known[tool] for tool in (*(one for one in before if one not in pins), *pins)}
            if after == before:
                return
            self._kept[server] = dict(list(after.items())[-_MOST_TOOLS:])
            plain = _FILE.dump_python(self._kept, exclude_defaults=True)
            try:
                write_private_file(self._path, json.dumps(plain, indent=1).encode())
            except OSError as error:
                problem = storage_failure(error)
                _log.warning("%s cannot be written and holds until the end of this run: %s", _NAME, problem)

    def _read(self) -> dict[str, dict[str, Pin]]:
        try:
            return _FILE.validate_json(self._path.read_bytes())
        except FileNotFoundError:
            return {}
        except OSError as error:
            _log.warning("%s cannot be read: %s", _NAME, error.strerror)
        except ValidationError:
            _log.warning("%s is unreadable and counts as empty", _NAME)
        return {}

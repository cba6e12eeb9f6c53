"""The format and its page are what the code writes, and no field of a value is forgotten."""

from __future__ import annotations

import json
import re
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from agent.conversation import Turn, WholeConversation, WorkspaceFile
from agent.errors import RequestRefused
from agent.pictures import Picture
from tests.adapters.archives import (
    MIME_OF_SUFFIX,
    SUFFIXES,
    ArchivedConversation,
    ArchivedPicture,
    ArchivedTurn,
    ArchivedWorkspaceFile,
    Limits,
    Manifest,
    check_json,
    is_file_name,
    is_folder_name,
    json_schema,
    parsed,
)
from tests.agent.archive.format_page import COMMAND, PAGE, page
from tests.agent.archive.shelf import contents, kept_turns, place
from tests.support.cases import each_case
from tests.support.tables import table


def test_the_page_is_the_one_the_code_makes() -> None:
    assert PAGE.read_text("utf-8") == page(), f"the format has changed: raise VERSION, then run `{COMMAND}`"


@pytest.mark.parametrize(
    ("value", "archived", "stays_at_home", "of_the_archive"),
    [
        (Turn, ArchivedTurn, {"request_id", "maximum_usd", "is_imported"}, {"signatures"}),
        (Picture, ArchivedPicture, set(), {"signatures", "is_starred", "tags"}),
        (WorkspaceFile, ArchivedWorkspaceFile, {"content"}, {"digest", "size_bytes"}),
        (WholeConversation, ArchivedConversation, {"starred", "tags"}, set()),
    ],
)
def test_an_archive_holds_every_field_but_those_that_must_stay_at_home(
    value: type[BaseModel], archived: type[BaseModel], stays_at_home: set[str], of_the_archive: set[str]
) -> None:
    assert archived.model_fields.keys() - of_the_archive == value.model_fields.keys() - stays_at_home


KINDS: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
}


async def test_what_is_written_is_what_the_schema_describes(tmp_path: Path) -> None:
    here = place(tmp_path)
    [key] = await here.keep(kept_turns())
    files = contents((await here.archive.export_conversation(key, "local")).path)
    schema = json_schema()
    for name, kind in (("manifest.json", "Manifest"), ("conversations/0001/conversation.json", "ArchivedConversation")):
        assert list(described(json.loads(files[name]), {"$ref": f"#/$defs/{kind}"}, schema["$defs"])) == []


def described(value: Any, schema: Any, known: dict[str, Any], place: str = "") -> Any:
    """Yield the places of a JSON value that a schema does not describe, as far as this schema goes."""
    if "$ref" in schema:
        schema = known[schema["$ref"].rpartition("/")[2]]
    if choices := schema.get("anyOf", schema.get("oneOf")):
        found = [list(described(value, one, known, place)) for one in choices]
        yield from min(found, key=len)
    elif "const" in schema:
        yield from [] if value == schema["const"] else [place]
    elif "enum" in schema:
        yield from [] if value in schema["enum"] else [place]
    elif schema.get("type") == "object":
        if not isinstance(value, dict):
            yield place
            return
        fields = schema.get("properties", {})
        further = schema.get("additionalProperties", True)
        yield from (f"{place}.{name} is missing" for name in schema.get("required", ()) if name not in value)
        for name, one in value.items():
            if name in fields:
                yield from described(one, fields[name], known, f"{place}.{name}")
            elif further is False:
                yield f"{place}.{name}"
            elif isinstance(further, dict):
                yield from described(one, further, known, f"{place}.{name}")
    elif schema.get("type") == "array":
        if not isinstance(value, list):
            yield place
            return
        firsts = schema.get("prefixItems", [])
        for at, one in enumerate(value):
            yield from described(one, firsts[at] if firsts else schema.get("items", {}), known, f"{place}.{at}")
    elif "type" in schema:
        yield from [] if isinstance(value, KINDS[schema["type"]]) else [place]
        if isinstance(value, str) and "pattern" in schema and not re.search(schema["pattern"], value):
            yield place


def test_every_suffix_has_its_type() -> None:
    assert tuple(MIME_OF_SUFFIX) == SUFFIXES


@each_case(("name", "is_known"), table("archive_attacks")["file_names"])
def test_no_other_name_is_known(name: str, is_known: bool) -> None:
    assert is_file_name(name) is is_known
    assert not is_folder_name(name)


MEGABYTES = 20 << 20


@each_case(
    "data",
    [
        b'"' * MEGABYTES,
        b'"' + b'\\"' * (MEGABYTES // 2),
        b"\\" * MEGABYTES,
        b'["' + b"x" * MEGABYTES,
        b'["a",' * (MEGABYTES // 5),
        b"[" * MEGABYTES,
        b"[[]," * (MEGABYTES // 4),
        b'{"":' * (MEGABYTES // 4),
        b"1," * (MEGABYTES // 2),
    ],
)
def test_json_of_an_enemy_costs_little_memory_before_it_is_refused(data: bytes) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(RequestRefused):
            parsed(data, Manifest, "manifest.json", Limits(json_values=100_000))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < MEGABYTES // 4


@given(value=st.recursive(st.text() | st.integers(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))
def test_json_is_counted_as_it_is(value: object) -> None:
    data = json.dumps(value, ensure_ascii=False).encode()
    deep = depth_of(value)
    check_json(data, "x", Limits(json_depth=deep, json_values=signs_of(value)))
    for limits in (Limits(json_depth=deep - 1), Limits(json_values=signs_of(value) - 1)):
        if deep:
            with pytest.raises(RequestRefused):
                check_json(data, "x", limits)


def depth_of(value: object) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return 0 if inner is None else 1 + max(map(depth_of, inner), default=0)


def signs_of(value: object) -> int:
    inner = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else None
    return 0 if inner is None else 1 + max(0, len(inner) - 1) + sum(map(signs_of, inner))

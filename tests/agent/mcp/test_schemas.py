"""Schemas of servers' tools are told to models in the keywords that every provider takes, or not at all."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.adapters.tools import Pins, UnusableSchema, offered_name, reduced
from tests.support.cases import each_case
from tests.support.tables import table
from tests.wire_server.tool_rules import _NAME, check_schema


def told(**properties: Any) -> dict[str, Any]:
    """Return the properties as the model is told them; the whole is one that the wire takes."""
    whole = told_whole({"type": "object", "properties": properties})
    members: dict[str, Any] = whole["properties"]
    return members


def told_whole(schema: dict[str, Any]) -> dict[str, Any]:
    known = reduced(schema)
    check_schema(known, "parameters")
    return known


def test_what_every_provider_knows_is_told_as_it_is_and_no_arguments_as_an_empty_object() -> None:
    member = {"type": "string", "description": "Where.", "enum": ["a", "b"], "minLength": 1, "pattern": "^[ab]$"}
    assert told(place=member) == {"place": member}
    for nothing in ({}, {"type": "object", "anyOf": [{"required": ["a"]}]}):
        assert told_whole(nothing) == {"type": "object", "properties": {}}


@each_case(("member", "known"), table("mcp_schemas")["members"])
def test_what_no_provider_knows_is_said_otherwise_or_left_out(member: Any, known: dict[str, Any]) -> None:
    assert told(it=member) == {"it": known}


def test_references_are_put_in_their_place_and_circles_are_cut() -> None:
    schema = {
        "type": "object",
        "properties": {"tree": {"$ref": "#/$defs/Node"}, "name": {"$ref": "#/definitions/Na~1me"}},
        "required": ["tree", "gone"],
        "$defs": {"Node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}, "whole": {"$ref": "#"}}}},
        "definitions": {"Na/me": {"type": "string"}},
    }
    assert told_whole(schema) == {
        "type": "object",
        "properties": {
            "tree": {"type": "object", "properties": {"next": {"type": "object"}, "whole": {"type": "object"}}},
            "name": {"type": "string"},
        },
        "required": ["tree"],
    }


def nested(depth: int) -> dict[str, Any]:
    inner: dict[str, Any] = {"type": "string"}
    for _ in range(depth):
        inner = {"type": "object", "properties": {"a": inner}}
    return inner


def doubling(levels: int) -> dict[str, Any]:
    """Return a small schema that is twice as large at each level, once its references are followed."""
    both = {f"d{n}": {"properties": {side: {"$ref": f"#/$defs/d{n + 1}"} for side in "ab"}} for n in range(levels)}
    return {"type": "object", "properties": {"a": {"$ref": "#/$defs/d0"}}, "$defs": {**both, f"d{levels}": {}}}


def chained(length: int) -> dict[str, Any]:
    """Return a schema in which each definition is all of the next one."""
    links = {f"c{n}": {"allOf": [{"$ref": f"#/$defs/c{n + 1}"}]} for n in range(length)}
    return {"properties": {"a": {"$ref": "#/$defs/c0"}}, "$defs": {**links, f"c{length}": {}}}


TOO_LARGE = (
    {"properties": {f"p{n}": {"type": "string"} for n in range(700)}},
    {"properties": {f"{n:03}{'x' * 120}": {"type": "string"} for n in range(200)}},
    nested(40),
    doubling(11),
    chained(500),
)


@each_case(("schema", "problem"), [*table("mcp_schemas")["refused"], *((one, "too large") for one in TOO_LARGE)])
def test_what_cannot_be_told_is_refused(schema: dict[str, Any], problem: str) -> None:
    with pytest.raises(UnusableSchema, match=problem):
        reduced(schema)


OURS = frozenset({"view_image", "web_search"})


def test_a_plain_name_follows_the_servers_and_another_one_is_made_legal_and_never_one_of_ours() -> None:
    assert offered_name("files", "read_file", OURS) == "files_read_file"
    assert offered_name("my-files", "read_file", OURS) == "my_files_read_file"
    for tool in ("read.file", "read-file", "读", "x" * 80, "", "a b"):
        name = offered_name("files", tool, OURS)
        assert _NAME.fullmatch(name)
        assert name.startswith("files")
        assert name != offered_name("files", f"{tool}.", OURS)
    assert offered_name("view", "image", OURS) not in OURS
    assert offered_name("web", "search", OURS).startswith("web_search_")


@given(st.text(max_size=100), st.text(max_size=100))
def test_no_two_tools_of_a_server_have_one_name(one: str, other: str) -> None:
    names = offered_name("s", one, OURS), offered_name("s", other, OURS)
    assert (names[0] == names[1]) is (one == other)
    assert all(_NAME.fullmatch(name) for name in names)


async def test_a_tool_is_as_it_was_first_seen_until_what_was_asked_about_is_allowed(tmp_path: Path) -> None:
    pins = Pins(tmp_path)
    await pins.see("files", {"read": "old"})
    await pins.see("files", {"read": "new", "write": "w"})
    for one in (pins, later := Pins(tmp_path)):
        await one.see("files", {})
        changed = [
            ("files", "read", "old"),
            ("files", "read", "new"),
            ("files", "write", "w"),
            ("other", "read", "old"),
        ]
        assert [one.is_changed(*each) for each in changed] == [False, True, False, True]
    assert not await later.allow("files", "read", "new")
    await later.ask("files", "read", "new")
    pins = Pins(tmp_path)
    await pins.see("files", {"read": "new"})
    assert [await pins.allow("files", "read", one) for one in ("newer", "new")] == [False, True]
    assert [pins.is_changed("files", "read", one) for one in ("new", "old")] == [False, True]
    # Two studios of one home keep what the other has seen.
    for one, server in ((pins, "mail"), (later, "maps")):
        await one.see(server, {"find": "old"})
    third = Pins(tmp_path)
    await third.see("mail", {"find": "new"})
    assert [third.is_changed(server, "find", "new") for server in ("mail", "maps")] == [True, True]
    assert not third.is_changed("maps", "find", "old")


async def test_the_file_is_private_small_and_one_that_is_broken_counts_as_empty(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    pins, path = Pins(tmp_path), tmp_path / "mcp_tools.json"
    for round_ in range(4):
        await pins.see("files", {f"tool {round_} {number}": "x" * 64 for number in range(400)})
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert path.stat().st_size < 100_000, "a server that invents names for ever does not fill the disk"
    assert not pins.is_changed("files", "tool 3 399", "x" * 64)
    path.write_text("{", "utf-8")
    pins = Pins(tmp_path)
    await pins.see("files", {"tool 3 399": "new"})
    assert not pins.is_changed("files", "tool 3 399", "new")
    assert "counts as empty" in caplog.text

"""The format and its page are what the code writes, and no field of a value is forgotten."""

from __future__ import annotations

import json
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from agent import Picture, RequestRefused, Turn, WholeConversation, WorkspaceFile
from tests.adapters.archives import (
    MIME_OF_SUFFIX,
    SUFFIXES,
    ArchivedConversation,
    ArchivedPicture,
    ArchivedTurn,
    ArchivedWorkspaceFile,
    ArchiveLimits,
    Manifest,
    check_json,
    is_file_name,
    is_folder_name,
    parsed,
)
from tests.agent.archive.format_page import COMMAND, PAGE, page
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
            parsed(data, Manifest, "manifest.json", ArchiveLimits(json_values=100_000))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < MEGABYTES // 4


@given(value=st.recursive(st.text() | st.integers(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))
def test_json_is_counted_as_it_is(value: object) -> None:
    data = json.dumps(value, ensure_ascii=False).encode()
    deep = depth_of(value)
    check_json(data, "x", ArchiveLimits(json_depth=deep, json_values=signs_of(value)))
    for limits in (ArchiveLimits(json_depth=deep - 1), ArchiveLimits(json_values=signs_of(value) - 1)):
        if deep:
            with pytest.raises(RequestRefused):
                check_json(data, "x", limits)


def depth_of(value: object) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return 0 if inner is None else 1 + max(map(depth_of, inner), default=0)


def signs_of(value: object) -> int:
    inner = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else None
    return 0 if inner is None else 1 + max(0, len(inner) - 1) + sum(map(signs_of, inner))

"""The page on the archive's format: its words are written by hand, its numbers and its schema are the code's."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from tests.adapters.archives import FORMAT, SUFFIXES, VERSION, ArchiveLimits, json_schema
from tests.adapters.records import WorkspaceLimits

PAGE = Path(__file__).parents[2] / "docs" / "archive-format.md"


def page() -> str:
    """Return the page with what the code says now. Whoever changes the schema raises the version."""
    limits, workspace = ArchiveLimits(), WorkspaceLimits()
    text = PAGE.read_text("utf-8")
    for told in (
        f"`{FORMAT}`, version {VERSION}.",
        f"at most {workspace.files}, {workspace.file_bytes >> 20} MB each and",
        f"{workspace.total_bytes >> 20} MB in all.",
        f"At most {limits.files:,} files, {limits.file_bytes >> 20} MB each, {limits.archive_bytes >> 20:,} MB in all,",
        f"no more than {limits.ratio} times the size",
        f"(or {limits.ratio_from_bytes >> 20} MB); a list of files of {limits.directory_bytes >> 20} MB;",
        f"{limits.json_bytes >> 20} MB of JSON, {limits.json_values:,} values in it,",
        f"{limits.json_depth} levels.",
    ):
        text, count = re.subn(re.sub(r"\d[\d,]*", r"\\d[\\d,]*", re.escape(told)), told, text)
        assert count == 1, f"the page does not say: {told}"
    assert all(f"`{suffix}`" in text for suffix in SUFFIXES)
    return text[: text.index("```json\n")] + f"```json\n{_written(json_schema())}\n```\n"


def _written(value: Any, indent: str = "") -> str:
    """Return JSON in which whatever fits into a line stands on one."""
    line = json.dumps(value, ensure_ascii=False)
    if len(indent) + len(line) <= 110 or not isinstance(value, dict | list):
        return line
    inner = f"{indent}  "
    items = (
        [f"{json.dumps(key)}: {_written(one, inner)}" for key, one in value.items()]
        if isinstance(value, dict)
        else [_written(one, inner) for one in value]
    )
    first, last = "{}" if isinstance(value, dict) else "[]"
    return f"{first}\n" + ",\n".join(f"{inner}{item}" for item in items) + f"\n{indent}{last}"

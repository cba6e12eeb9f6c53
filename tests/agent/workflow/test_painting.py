"""Asked against got."""

from __future__ import annotations

from agent.workflow.painting import shortfalls
from tests.support.cases import each_case


@each_case(
    ("asked", "got", "resolution", "missing"),
    [
        ((1376, 768), (1376, 768), "1K", ()),
        ((5504, 3072), (1376, 768), "4K", ("resolution",)),
        ((1376, 768), (1024, 1024), "1K", ("aspect_ratio",)),
        ((2752, 1536), (1024, 1024), "2K", ("aspect_ratio", "resolution")),
        ((1376, 768), (2752, 1536), "1K", ()),
        ((1376, 768), (640, 360), None, ()),
        ((1376, 768), (1380, 770), "1K", ()),
    ],
)
def test_what_was_asked_and_did_not_come_is_named(
    asked: tuple[int, int], got: tuple[int, int], resolution: str | None, missing: tuple[str, ...]
) -> None:
    assert shortfalls(asked, got, resolution) == missing

"""How much a visitor may keep: told before it is reached, refused beyond it, free again once the trash is empty."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agent import ErrorCode, RequestRefused, Settings, Step, Studio, ThoughtLog, TurnEvent, TurnFailed, TurnRequest
from tests.support.turns import send

USED_UP = ErrorCode.VISITOR_QUOTA_USED_UP


def studio_of(home: Path, **limits: Any) -> Studio:
    return Studio(Settings(home=home, **limits))


async def drawn(studio: Studio, owner: str, count: int) -> tuple[str, list[list[TurnEvent]]]:
    """Return a new conversation and the events of so many wishes in it."""
    key = (await studio.conversations.create(owner)).id
    return key, [await send(studio, key, TurnRequest("draw a boat"), owner) for _ in range(count)]


def refusal(events: list[TurnEvent]) -> ErrorCode | None:
    return events[-1].error.code if isinstance(events[-1], TurnFailed) else None


async def test_a_visitor_is_told_before_it_is_full_and_refused_then_and_the_operator_never(tmp_path: Path) -> None:
    async with studio_of(tmp_path, visitor_limit_pictures=5) as studio:
        key, turns = await drawn(studio, "visitor", 6)
        told = [
            line.parameters["percent"]
            for events in turns
            for line in events
            if isinstance(line, ThoughtLog) and line.step is Step.NEARLY_FULL
        ]
        assert told == [80, 100]
        assert [refusal(events) for events in turns] == [None] * 5 + [USED_UP]
        assert len((await studio.conversations.get(key, "visitor")).pictures) == 5
        _, own = await drawn(studio, "local", 6)
        assert [refusal(events) for events in own] == [None] * 6


async def test_what_is_in_the_trash_counts_until_that_is_empty(tmp_path: Path) -> None:
    async with studio_of(tmp_path, visitor_limit_pictures=2) as studio:
        key, _ = await drawn(studio, "visitor", 2)
        await studio.conversations.delete(key, "visitor")
        _, (refused,) = await drawn(studio, "visitor", 1)
        assert refusal(refused) is USED_UP
        await studio.conversations.empty_trash("visitor")
        _, (events,) = await drawn(studio, "visitor", 1)
        assert refusal(events) is None


async def test_the_bytes_of_pictures_files_and_words_count(tmp_path: Path) -> None:
    async with studio_of(tmp_path, visitor_limit_bytes=3 << 20) as studio:
        key, _ = await drawn(studio, "visitor", 1)
        files = studio.files(key, "visitor")
        await files.write("notes.txt", b"x" * 1_000_000, by="person")
        with pytest.raises(RequestRefused) as refused:
            await files.write("more.txt", b"x" * 1_000_000, by="person")
        assert refused.value.code is USED_UP
        assert [file.name for file in await files.list()] == ["notes.txt"]


async def test_a_copy_and_an_archive_need_room_as_well(tmp_path: Path) -> None:
    async with studio_of(tmp_path, visitor_limit_pictures=5) as studio:
        key, _ = await drawn(studio, "visitor", 3)
        with pytest.raises(RequestRefused) as refused:
            await studio.conversations.duplicate(key, "visitor")
        assert refused.value.code is USED_UP
        exported = await studio.archive.export_conversation(key, "visitor")
        before = await studio.conversations.list("visitor")
        with pytest.raises(RequestRefused) as refused:
            await studio.archive.import_archive(exported.path, "visitor")
        assert refused.value.code is USED_UP
        assert await studio.conversations.list("visitor") == before
        report = await studio.archive.import_archive(exported.path, "local")
        assert [one.picture_count for one in report.conversations] == [3]

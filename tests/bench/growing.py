"""A small home beside a large one: rows written at once, the same questions to both in turn, and their table."""

from __future__ import annotations

import sqlite3
import statistics
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from agent import ImageOrigin, ImagePart, Picture, Receipt
from tests.adapters.records import picture_row
from tests.bench.measuring import in_turn, spread, timed

TARGET = 3.0


@dataclass(frozen=True)
class Grown:
    """A question and how long it took with few and with many, in seconds."""

    name: str
    few: Sequence[float]
    many: Sequence[float]


async def asked_of_both(
    name: str, few: Callable[[], Awaitable[object]], many: Callable[[], Awaitable[object]], runs: int
) -> Grown:
    """Ask a small and a large home, alternately."""
    return Grown(name, *await in_turn(lambda: timed(few), lambda: timed(many), runs, warm_up=5))


def as_markdown(what: str, few: str, many: str, results: Sequence[Grown]) -> str:
    """Return a row for each question."""
    rows = [f"| {what} | {few} | {many} | ratio | target |", "| --- | --- | --- | --- | --- |"]
    for one in results:
        ratio = statistics.median(one.many) / statistics.median(one.few)
        times = f"{spread(one.few, 1000, ' ms')} | {spread(one.many, 1000, ' ms')}"
        rows.append(f"| {one.name} | {times} | {ratio:.2f}x | ≤ {TARGET:.0f}x |")
    return "\n".join(rows)


def picture_of(key: str, handle: str, turn_id: str, made_at: datetime, **told: Any) -> dict[str, Any]:
    """Return the row of a picture in a conversation; `told` goes to its receipt, and `digest` to its file."""
    digest = told.pop("digest")
    size = {"width": told["width"], "height": told["height"], "mime_type": "image/png"}
    file = {"digest": digest, "md5": digest[:32], "size_bytes": 1, "origin": ImageOrigin.GENERATED, "handle": handle}
    unasked = {"model": "m", "model_label": "M", "asked_aspect_ratio": None, "asked_resolution": None}
    receipt = Receipt.model_validate({**unasked, **size, **told})
    image = ImagePart.model_validate({**file, **size})
    picture = Picture(handle=handle, image=image, turn_id=turn_id, created_at=made_at, receipt=receipt)
    return {**picture_row(key, picture, None, ()), "owner": "local", "created_at": made_at}


def insert(database: sqlite3.Connection, table: str, rows: Sequence[dict[str, Any]]) -> None:
    """Put rows of the same columns into a table."""
    names = list(rows[0])
    statement = f"INSERT INTO {table} ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})"
    database.executemany(statement, [[_stored(row[name]) for name in names] for row in rows])


def _stored(value: object) -> object:
    return value.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S.%f") if isinstance(value, datetime) else value

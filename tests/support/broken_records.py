"""Records that nobody can read for a while: whatever a studio asks of them fails in a way that it did not foresee."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path


@contextlib.contextmanager
def broken_records(home: Path) -> Iterator[None]:
    """For as long as the block lasts the tables of a home are not where a studio looks for them."""
    away = [(name, f"{name}_away") for name in ("conversations", "turns", "pictures")]
    _rename(home, away)
    yield
    _rename(home, [(elsewhere, name) for name, elsewhere in away])


def _rename(home: Path, names: Sequence[tuple[str, str]]) -> None:
    with contextlib.closing(sqlite3.connect(home / "aivista.db")) as database:
        database.execute("PRAGMA legacy_alter_table=ON")
        for name, other in names:
            database.execute(f"ALTER TABLE {name} RENAME TO {other}")
        database.commit()

"""The LanceDB folders of a home: whether they can be read, and what the gallery's need not know any more. Blocks."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from agent.storage.vectors import FOLDER, VectorTables

STYLES, GALLERY = Path("styles") / "index", FOLDER

_log = logging.getLogger(__name__)


def unreadable_tables(home: Path, folder: Path) -> list[str]:
    """Return the tables below the folder that cannot be read, with the kind of failure; the rows' names are read."""
    return [told for name in _tables(home / folder) if (told := _failure_of(home / folder, name)) is not None]


def _failure_of(folder: Path, name: str) -> str | None:
    import lancedb

    try:
        table: Any = lancedb.connect(str(folder)).open_table(name)
        table.search().select(["id"]).limit(None).to_arrow()
    except Exception as error:  # LanceDB raises RuntimeError, ValueError, OSError and Rust's panics alike
        return f"{folder.parent.name}/{folder.name}/{name} ({type(error).__name__})"
    return None


def forget_pictures(home: Path, living: set[int], *, is_dry_run: bool) -> int:
    """Remove the gallery's vectors of pictures that are gone; return how many. A table that fails is left alone."""
    tables = VectorTables(home)
    count = 0
    try:
        for name in _tables(home / GALLERY):
            gone = tables.known(name) - living
            count += len(gone)
            if not is_dry_run:
                tables.forget(name, gone)
    except Exception as error:  # as above
        _log.warning("the index of pictures keeps what it knows: %s", type(error).__name__)
    finally:
        tables.close()
    return count


def _tables(folder: Path) -> Iterator[str]:
    yield from sorted(path.stem for path in folder.glob("*.lance") if path.is_dir())

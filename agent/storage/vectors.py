"""Vectors of styles in LanceDB: a folder that is thrown away whole when it fails. Every call blocks."""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import shutil
from array import array
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from agent.errors import ErrorCode, StorageFailure
from agent.library import Style
from agent.messages import Value
from agent.storage.private_files import make_private_folder, storage_failure

T = TypeVar("T")

# Another process may still read the version before this one.
_OLD_VERSIONS_LIVE = timedelta(hours=1)
_ABOUT = b"aivista"
# How the system says that there is no room; LanceDB has no error numbers.
_NO_ROOM = ("No space left", "File too large", "quota exceeded")

_log = logging.getLogger(__name__)


def _data(rows: list[dict[str, Any]], dimension: int, about: Value) -> Any:
    """Return rows as a table of theirs: numbers, texts, and vectors of this length; its schema carries the note."""
    import pyarrow  # type: ignore[import-untyped]  # it has no types of its own

    kinds = {int: pyarrow.int64(), str: pyarrow.string()}
    fields = [(name, kinds.get(type(value))) for name, value in rows[0].items() if name != "vector"]
    fields.append(("vector", pyarrow.list_(pyarrow.float32(), dimension)))
    metadata = {_ABOUT: about.model_dump_json().encode()}
    return pyarrow.Table.from_pylist(rows, schema=pyarrow.schema(fields, metadata=metadata))


def _has_no_room(error: Exception) -> bool:
    return any(words in str(error) for words in _NO_ROOM)


# All that people call a style would drown what it looks like.
_EMBEDDED_ALIASES = 8


class EmbeddingModel(Value):
    """Which model made vectors, and how long they are: those of two models are not comparable."""

    id: str
    dimension: int


@dataclass(frozen=True)
class Shelf:
    """Styles that belong together, and the name of their table."""

    name: str
    styles: tuple[Style, ...]

    @cached_property
    def content(self) -> str:
        """The digest of all that is searched in them."""
        return digest_of(json.dumps([style.model_dump(mode="json") for style in self.styles], ensure_ascii=False))


class AboutTable(Value):
    """What a table was made from. `background` and `foreground` are cosines; see `MeaningScale`."""

    content: str
    model: EmbeddingModel
    background: tuple[float, ...] = ()
    foreground: tuple[float, ...] = ()


class StyleIndex:
    """The tables of styles below one folder, each with a note of what it was made from. It is opened when first needed,
    made anew whole when it fails, and its failures are told in our words. Use one thread.

    Everything but `close` is called within `guarded`.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._database: Any = None

    def guarded(self, work: Callable[[], T]) -> T:
        """Return what the work returns; after a failure throw everything away and try once more.

        Raises StorageFailure.
        """
        try:
            return work()
        except Exception as error:  # LanceDB raises RuntimeError, ValueError, OSError and Rust's panics alike
            if _has_no_room(error):
                # What is there is still good.
                raise StorageFailure(ErrorCode.DISK_FULL) from error
            _log.warning("the index of styles is made anew: %s", type(error).__name__)
            self._throw_away()
        try:
            return work()
        except StorageFailure:
            raise
        except Exception as error:
            raise self._failure(error) from error

    def about(self, name: str) -> AboutTable | None:
        """Return what the table was made from, or None where there is none of ours."""
        table = self._table(name)
        metadata = (table.schema.metadata or {}) if table is not None else {}
        try:
            return AboutTable.model_validate_json(metadata[_ABOUT])
        except (KeyError, ValidationError):
            return None

    def build(self, shelf: Shelf, about: AboutTable, vectors: Mapping[str, Sequence[float]]) -> None:
        """Make the shelf's table anew, with a vector for each style by its id."""
        rows = [
            {"id": style.id, "digest": digest_of(text_of(style)), "vector": vectors[style.id]} for style in shelf.styles
        ]
        table = self._create(shelf.name, _data(rows, about.model.dimension, about))
        table.optimize(cleanup_older_than=_OLD_VERSIONS_LIVE)

    def vectors(self, name: str) -> dict[str, array[float]]:
        """Return the vectors of the table by the digest of the text they stand for."""
        rows = self._table(name).search().select(["digest", "vector"]).limit(None).to_arrow().to_pylist()
        return {row["digest"]: array("f", row["vector"]) for row in rows}

    def by_meaning(self, name: str, vector: Sequence[float], limit: int) -> dict[str, float]:
        """Return the cosines of the styles whose vectors point most the same way, by their ids."""
        query = self._table(name).search(list(vector), vector_column_name="vector").distance_type("cosine")
        rows = query.select(["id", "_distance"]).limit(limit).to_list()
        return {row["id"]: 1.0 - float(row["_distance"]) for row in rows}

    def close(self) -> None:
        """Let go of the files."""
        self._database = None

    def _table(self, name: str) -> Any:
        """Return the table of that name, None where there is none."""
        # LanceDB's own list of tables comes in pages.
        is_there = (self._folder / f"{name}.lance").is_dir()
        return self._opened().open_table(name) if is_there else None

    def _create(self, name: str, data: Any) -> Any:
        """Return a table with this data and no other."""
        # Asked to overwrite what is not there, LanceDB prints a warning.
        mode = "overwrite" if self._table(name) is not None else "create"
        return self._opened().create_table(name, data=data, mode=mode)

    def _opened(self) -> Any:
        if self._database is None:
            # LanceDB takes a second to import: only what needs it waits for it.
            import lancedb

            make_private_folder(self._folder)
            self._database = lancedb.connect(str(self._folder))
        return self._database

    def _throw_away(self) -> None:
        self.close()
        with contextlib.suppress(OSError):
            shutil.rmtree(self._folder)

    def _failure(self, error: Exception) -> StorageFailure:
        if _has_no_room(error):
            return StorageFailure(ErrorCode.DISK_FULL)
        if isinstance(error, OSError) and error.errno is not None:
            return storage_failure(error)
        # The text of LanceDB's own errors is full of paths.
        return StorageFailure(ErrorCode.STORAGE_BROKEN, detail=f"the index of styles: {type(error).__name__}")


def text_of(style: Style) -> str:
    """Return what is embedded of a style: its names and what it looks like."""
    names = [*style.names, *style.aliases.en[:_EMBEDDED_ALIASES], *style.aliases.zh[:_EMBEDDED_ALIASES]]
    return "\n".join(filter(None, (", ".join(names), style.description.en, style.description.zh)))


def digest_of(text: str) -> str:
    """Return the name under which a text's vector is known."""
    return hashlib.sha256(text.encode()).hexdigest()

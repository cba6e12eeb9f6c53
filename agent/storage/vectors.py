"""Vectors in LanceDB, in two folders: of the styles, and of pictures (a table for how they look, and one for what is
said of them by each embedding model). Either is thrown away whole when it fails, and vectors of words were paid
for. Every call blocks.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import shutil
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from pydantic import ValidationError

from agent.errors import ErrorCode, StorageFailure
from agent.library import Style
from agent.messages import Value
from agent.storage.private_files import make_private_folder, storage_failure

T = TypeVar("T")
About = TypeVar("About", bound=Value)

# Another process may still read the version before this one.
_OLD_VERSIONS_LIVE = timedelta(hours=1)
_ABOUT = b"aivista"
# How the system says that there is no room; LanceDB has no error numbers.
_NO_ROOM = ("No space left", "File too large", "quota exceeded")

_log = logging.getLogger(__name__)


class LanceFolder:
    """Tables below one folder, each with a note of what it was made from. It is opened when first needed, made anew
    whole when it fails, and its failures are told in our words. Use one thread.

    `called` is what the log calls the folder. Everything but `close` is called within `guarded`.
    """

    def __init__(self, folder: Path, called: str) -> None:
        self._folder = folder
        self._called = called
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
            _log.warning("%s is made anew: %s", self._called, type(error).__name__)
            self._throw_away()
        try:
            return work()
        except StorageFailure:
            raise
        except Exception as error:
            raise self._failure(error) from error

    def close(self) -> None:
        """Let go of the files."""
        self._database = None

    def _table(self, name: str) -> Any:
        """Return the table of that name, None where there is none."""
        # LanceDB's own list of tables comes in pages.
        is_there = (self._folder / f"{name}.lance").is_dir()
        return self._opened().open_table(name) if is_there else None

    def _note(self, name: str, kind: type[About]) -> About | None:
        """Return what the table was made from, None where there is none of ours."""
        table = self._table(name)
        metadata = (table.schema.metadata or {}) if table is not None else {}
        try:
            return kind.model_validate_json(metadata[_ABOUT])
        except (KeyError, ValidationError):
            return None

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
        return StorageFailure(ErrorCode.STORAGE_BROKEN, detail=f"{self._called}: {type(error).__name__}")


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


class StyleIndex(LanceFolder):
    """The LanceDB folder: tables made from styles, thrown away and made anew rather than mended."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, "the index of styles")

    def about(self, name: str) -> AboutTable | None:
        """Return what the table was made from, or None where there is none of ours."""
        return self._note(name, AboutTable)

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


def text_of(style: Style) -> str:
    """Return what is embedded of a style: its names and what it looks like."""
    names = [*style.names, *style.aliases.en[:_EMBEDDED_ALIASES], *style.aliases.zh[:_EMBEDDED_ALIASES]]
    return "\n".join(filter(None, (", ".join(names), style.description.en, style.description.zh)))


def digest_of(text: str) -> str:
    """Return the name under which a text's vector is known."""
    return hashlib.sha256(text.encode()).hexdigest()


FOLDER = Path("gallery") / "index"
# Each addition is a file of its own: so many are put together into one.
_ADDITIONS_BEFORE_TIDYING = 32


class AboutVectors(Value):
    """What a table's vectors are: how long, whose, and the cosine that unlike things reach (`background`)."""

    dimension: int
    model: EmbeddingModel | None = None
    background: float = 0.0


class VectorRow(NamedTuple):
    """A vector: the picture's id, the name of whose it is, and the digest of what it was made from."""

    id: int
    owner: str
    content: str
    vector: Sequence[float]


class Near(NamedTuple):
    """A picture that was found, the digest of what its vector was made from, and the cosine."""

    id: int
    content: str
    cosine: float


class VectorTables(LanceFolder):
    """The LanceDB folder of the gallery. Every call blocks: use one thread. Call everything within `guarded`."""

    def __init__(self, home: Path) -> None:
        super().__init__(home / FOLDER, "the index of pictures")
        self._known: dict[str, set[int]] = {}
        self._additions = 0

    def about(self, name: str) -> AboutVectors | None:
        """Return what the table holds, None where there is none of ours."""
        return self._note(name, AboutVectors)

    def add(self, name: str, about: AboutVectors, rows: Sequence[VectorRow]) -> None:
        """Add vectors; those of the same pictures before are replaced. A table of another kind is made anew."""
        if not rows:
            return
        data = _data([row._asdict() for row in rows], about.dimension, about)
        kept = self.about(name)
        if kept is None or (kept.dimension, kept.model) != (about.dimension, about.model):
            self._create(name, data)
            self._known[name] = set()
        else:
            self.forget(name, {row.id for row in rows})
            self._table(name).add(data)
        self.known(name).update(row.id for row in rows)
        self._additions += 1
        if self._additions % _ADDITIONS_BEFORE_TIDYING == 0:
            self._table(name).optimize(cleanup_older_than=_OLD_VERSIONS_LIVE)

    def known(self, name: str) -> set[int]:
        """Return the ids of the pictures that have a vector in the table. They are read once."""
        if name not in self._known:
            table = self._table(name)
            columns = table.search().select(["id"]).limit(None).to_arrow() if table is not None else None
            self._known[name] = set(columns["id"].to_pylist()) if columns is not None else set()
        return self._known[name]

    def vector_of(self, name: str, picture_id: int, content: str) -> list[float] | None:
        """Return the vector of a picture, None where there is none made from this content."""
        if picture_id not in self.known(name):
            return None
        where = f"id = {picture_id} AND content = '{_checked(content)}'"
        rows = self._table(name).search().where(where).select(["vector"]).limit(1).to_arrow().to_pylist()
        return list(rows[0]["vector"]) if rows else None

    def nearest(self, name: str, owner: str, vector: Sequence[float], limit: int) -> list[Near]:
        """Return the owner's pictures whose vectors point most the same way, the nearest first."""
        table = self._table(name)
        if table is None:
            return []
        query = table.search(list(vector), vector_column_name="vector").distance_type("cosine")
        rows = query.where(f"owner = '{_checked(owner)}'", prefilter=True).select(["id", "content", "_distance"])
        found = (Near(row["id"], row["content"], 1.0 - float(row["_distance"])) for row in rows.limit(limit).to_list())
        # Two processes may have added the same picture.
        return list({one.id: one for one in found}.values())

    def forget(self, name: str, ids: Iterable[int]) -> None:
        """Remove the vectors of these pictures: new ones are made when they are missed."""
        gone = sorted(self.known(name) & set(ids))
        if gone:
            self._table(name).delete(f"id IN ({', '.join(map(str, gone))})")
            self.known(name).difference_update(gone)

    def close(self) -> None:
        """Let go of the files."""
        super().close()
        self._known = {}


def table_of_model(model: EmbeddingModel) -> str:
    """Return the name of the table that holds this model's vectors and no other's."""
    return f"said_{hashlib.sha256(f'{model.dimension}:{model.id}'.encode()).hexdigest()[:24]}"


def _checked(name: str) -> str:
    """Return a name that is part of a query. Raises ValueError for any but a hexadecimal one."""
    if not name or not set(name) <= set("0123456789abcdef"):
        raise ValueError("not a name of the index")
    return name

"""Vectors of pictures in LanceDB: a table for how they look, and one for what is said of them by each embedding model.

The folder is not that of the styles: either is thrown away whole when it fails, and vectors of words were paid for.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from agent.messages import Value
from agent.storage.lance_folder import OLD_VERSIONS_LIVE, LanceFolder, schema_metadata
from agent.storage.style_table import EmbeddingModel

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
        import pyarrow  # type: ignore[import-untyped]  # it has no types of its own

        if not rows:
            return
        fields = [("id", pyarrow.int64()), ("owner", pyarrow.string()), ("content", pyarrow.string())]
        fields.append(("vector", pyarrow.list_(pyarrow.float32(), about.dimension)))
        schema = pyarrow.schema(fields, metadata=schema_metadata(about))
        data = pyarrow.Table.from_pylist([row._asdict() for row in rows], schema=schema)
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
            self._table(name).optimize(cleanup_older_than=OLD_VERSIONS_LIVE)

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

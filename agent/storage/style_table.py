"""The vectors of styles in LanceDB. Every call blocks."""

from __future__ import annotations

import hashlib
import json
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from agent.library import Style
from agent.messages import Value
from agent.storage.lance_folder import OLD_VERSIONS_LIVE, LanceFolder, schema_metadata

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
        import pyarrow  # type: ignore[import-untyped]  # it has no types of its own

        columns = [pyarrow.field(column, pyarrow.string()) for column in ("id", "digest")]
        columns.append(pyarrow.field("vector", pyarrow.list_(pyarrow.float32(), about.model.dimension)))
        schema = pyarrow.schema(columns, metadata=schema_metadata(about))
        rows = [
            {"id": style.id, "digest": digest_of(text_of(style)), "vector": vectors[style.id]} for style in shelf.styles
        ]
        table = self._create(shelf.name, pyarrow.Table.from_pylist(rows, schema=schema))
        table.optimize(cleanup_older_than=OLD_VERSIONS_LIVE)

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

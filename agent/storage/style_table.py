"""Styles in LanceDB: full text by n-grams, and vectors where there are some. Every call blocks."""

from __future__ import annotations

import hashlib
import json
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from agent.messages import Value
from agent.storage.lance_folder import OLD_VERSIONS_LIVE, LanceFolder, schema_metadata
from agent.storage.style_values import Style
from agent.storage.style_words import gapped, plain

# Two letters so that Chinese is found, three so that English is told apart.
_NGRAMS = (2, 3)
_LONGEST_QUERY = 1000


class EmbeddingModel(Value):
    """Which model made vectors, and how long they are: those of two models are not comparable."""

    id: str
    dimension: int


@dataclass(frozen=True)
class Shelf:
    """Styles that stand in one table of that name."""

    name: str
    styles: tuple[Style, ...]

    @cached_property
    def content(self) -> str:
        """The digest of all that the table holds, vectors apart."""
        return digest_of(json.dumps([_row(style) for style in self.styles], ensure_ascii=False))


class AboutTable(Value):
    """What a table was made from. `background` and `foreground` are cosines; see `MeaningScale`."""

    content: str
    model: EmbeddingModel | None = None
    background: tuple[float, ...] = ()
    foreground: tuple[float, ...] = ()


class StyleIndex(LanceFolder):
    """The LanceDB folder: tables made from styles, thrown away and made anew rather than mended."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, "the index of styles")

    def about(self, name: str) -> AboutTable | None:
        """Return what the table was made from, or None where there is none of ours."""
        return self._note(name, AboutTable)

    def build(
        self, shelf: Shelf, about: AboutTable | None = None, vectors: Mapping[str, Sequence[float]] | None = None
    ) -> None:
        """Make the shelf's table anew; `vectors` are by style id, one for each when `about` names their model."""
        import pyarrow  # type: ignore[import-untyped]  # it has no types of its own
        from lancedb.index import FTS

        about = about or AboutTable(content=shelf.content)
        columns = [pyarrow.field(column, pyarrow.string()) for column in ("id", "names", "phrases", "digest")]
        if about.model is not None:
            columns.append(pyarrow.field("vector", pyarrow.list_(pyarrow.float32(), about.model.dimension)))
        schema = pyarrow.schema(columns, metadata=schema_metadata(about))
        rows = [_row(style) | ({"vector": vectors[style.id]} if vectors else {}) for style in shelf.styles]
        data = pyarrow.Table.from_pylist(rows, schema=schema)
        table = self._create(shelf.name, data)
        shortest, longest = _NGRAMS
        words = FTS(
            base_tokenizer="ngram",
            ngram_min_length=shortest,
            ngram_max_length=longest,
            stem=False,
            remove_stop_words=False,
        )
        for column in ("names", "phrases"):
            table.create_index(column, config=words, replace=True)
        table.optimize(cleanup_older_than=OLD_VERSIONS_LIVE)

    def drop(self, name: str) -> None:
        """Remove the table, if there is one."""
        if self._table(name) is not None:
            self._opened().drop_table(name)

    def vectors(self, name: str) -> dict[str, array[float]]:
        """Return the vectors of the table by the digest of the text they stand for."""
        rows = self._table(name).search().select(["digest", "vector"]).limit(None).to_arrow().to_pylist()
        return {row["digest"]: array("f", row["vector"]) for row in rows}

    def by_words(self, name: str, text: str, limit: int) -> list[str]:
        """Return the ids of styles whose names or phrases share n-grams with the text, the closest first."""
        table, query = self._table(name), _query(plain(text))
        found: dict[str, None] = {}
        for column in ("names", "phrases"):
            rows = table.search(query, query_type="fts", fts_columns=column).select(["id", "_score"]).limit(limit)
            found.update(dict.fromkeys(row["id"] for row in rows.to_list()))
        return list(found)

    def by_meaning(self, name: str, vector: Sequence[float], limit: int) -> dict[str, float]:
        """Return the cosines of the styles whose vectors point most the same way, by their ids."""
        query = self._table(name).search(list(vector), vector_column_name="vector").distance_type("cosine")
        rows = query.select(["id", "_distance"]).limit(limit).to_list()
        return {row["id"]: 1.0 - float(row["_distance"]) for row in rows}


def text_of(style: Style) -> str:
    """Return what is embedded of a style: its names and what it looks like."""
    names = [*style.names, *style.aliases.en, *style.aliases.zh]
    return "\n".join(filter(None, (", ".join(names), style.description.en, style.description.zh)))


def digest_of(text: str) -> str:
    """Return the name under which a text's vector is known."""
    return hashlib.sha256(text.encode()).hexdigest()


def _row(style: Style) -> dict[str, Any]:
    names = plain(" | ".join((*style.names, *style.aliases.en, *style.aliases.zh, *style.loose)))
    return {
        "id": style.id,
        "names": f"{names} {gapped(names)}",
        "phrases": plain(" | ".join(style.phrases)),
        "digest": digest_of(text_of(style)),
    }


def _query(text: str) -> str:
    """Return both ends of a long text: a style is named at the one or the other."""
    half = _LONGEST_QUERY // 2
    ends = text if len(text) <= _LONGEST_QUERY else f"{text[:half]} {text[-half:]}"
    return f"{ends} {gapped(ends)}"

"""Find styles by meaning: an embedding model makes their vectors, and LanceDB stores these.

The LanceDB folder can always be rebuilt from the styles: after a failure it is deleted as a whole.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import shutil
import statistics
from array import array
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from agent.cancellation import shielded
from agent.errors import AivistaError, ErrorCode, StorageFailure
from agent.library import Style
from agent.messages import Value
from agent.storage.embedding import PLAIN_WISHES, EmbeddingModel, ModelPauses, TextEmbedder, cosines, embedded
from agent.storage.private_files import make_private_folder, storage_failure
from agent.storage.style_match import FLOOR, StyleSet, digest_of

T = TypeVar("T")

# Another process may still read the previous version.
_OLD_VERSIONS_LIVE = timedelta(hours=1)
_ABOUT = b"aivista"
# The system's messages for a full disk; LanceDB gives no error numbers.
_NO_ROOM = ("No space left", "File too large", "quota exceeded")
# All aliases of a style would outweigh the description of its look.
_EMBEDDED_ALIASES = 8
_NAMING_WISHES = ("a fox in the style of {en}", "{zh}风格的一座小城")
_NAMED_EVERY = 4
_MOST_CANDIDATES = 12
_SUREST = 0.95

_log = logging.getLogger(__name__)


class MeaningScale(Value):
    """Where a model's cosines begin to mean something.

    Every model has its own scale: with one, a cosine of 0.7 is chance, with another it is certainty. So the library
    measures it: 0.6 on its scale is a little above what any wish without a style reaches with any style, 0.95 is what
    the clearest quarter of wishes that name a style reach with that style.
    """

    usual: float
    chance: float
    sure: float

    @classmethod
    def measured(cls, background: Sequence[float], foreground: Sequence[float]) -> MeaningScale | None:
        """Return the scale, or None for a model that cannot tell a named style from none.

        `background` are the highest cosines of wishes without a style, `foreground` those of wishes with their own
        style.
        """
        if not background or len(foreground) < 2:
            return None
        clearest = statistics.quantiles(foreground, n=4, method="inclusive")[2]
        usual, highest = statistics.median(background), max(background)
        # The few sample wishes are not the worst possible ones.
        scale = cls(usual=usual, chance=highest + (highest - usual) / 2, sure=clearest)
        return scale if scale.sure > scale.chance else None

    def similarity(self, cosine: float) -> float:
        """Return the similarity, from 0 to 0.95: only a match by name is surer."""
        if cosine > self.chance:
            part = (cosine - self.chance) / (self.sure - self.chance)
            return min(_SUREST, FLOOR + (_SUREST - FLOOR) * part)
        # A cosine at chance level gives no match.
        low = max(0.0, 2 * self.usual - self.chance)
        return max(0.0, (FLOOR - 0.01) * (cosine - low) / max(self.chance - low, 1e-9))


class _About(Value):
    """What a table was made from. `background` and `foreground` are cosines; see `MeaningScale`."""

    content: str
    model: EmbeddingModel
    background: tuple[float, ...] = ()
    foreground: tuple[float, ...] = ()


class _Tables:
    """The vector tables, one for each set of styles, in one folder, each with a note of its source data.

    The database is opened on first use. Every call blocks and must run within `guarded`.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._database: Any = None

    def guarded(self, work: Callable[[], T]) -> T:
        """Return the result of the work; after a failure delete the whole folder and try once more.

        Raises StorageFailure.
        """
        try:
            return work()
        except Exception as error:  # LanceDB raises RuntimeError, ValueError, OSError and Rust's panics alike
            failure = _failure_of(error)
            if failure.code is ErrorCode.DISK_FULL:
                # The existing data is still good.
                raise failure from error
            _log.warning("the index of styles is made anew: %s", type(error).__name__)
        self.close()
        with contextlib.suppress(OSError):
            shutil.rmtree(self._folder)
        try:
            return work()
        except Exception as error:
            raise _failure_of(error) from error

    def about(self, name: str) -> _About | None:
        """Return what the table was made from; None when there is no table of ours."""
        table = self._table(name)
        try:
            return _About.model_validate_json((table.schema.metadata or {})[_ABOUT]) if table is not None else None
        except (KeyError, ValidationError):
            return None

    def build(self, name: str, about: _About, rows: Sequence[Mapping[str, Any]]) -> None:
        """Create or overwrite a table of these rows: the `id` of a style, the `digest` of its text, its `vector`."""
        import pyarrow  # type: ignore[import-untyped]  # it has no types of its own

        vector = pyarrow.list_(pyarrow.float32(), about.model.dimension)
        fields = [("id", pyarrow.string()), ("digest", pyarrow.string()), ("vector", vector)]
        schema = pyarrow.schema(fields, metadata={_ABOUT: about.model_dump_json().encode()})
        # LanceDB prints a warning when it must overwrite a table that does not exist.
        mode = "overwrite" if self._table(name) is not None else "create"
        data = pyarrow.Table.from_pylist(rows, schema=schema)
        self._opened().create_table(name, data=data, mode=mode).optimize(cleanup_older_than=_OLD_VERSIONS_LIVE)

    def vectors(self, name: str) -> dict[str, array[float]]:
        """Return the vectors of the table by the digest of their text."""
        rows = self._table(name).search().select(["digest", "vector"]).limit(None).to_arrow().to_pylist()
        return {row["digest"]: array("f", row["vector"]) for row in rows}

    def closest(self, name: str, vector: Sequence[float]) -> list[tuple[str, float]]:
        """Return the ids of the styles with the closest vectors, and their cosines."""
        query = self._table(name).search(list(vector), vector_column_name="vector").distance_type("cosine")
        rows = query.select(["id", "_distance"]).limit(_MOST_CANDIDATES).to_list()
        return [(row["id"], 1.0 - float(row["_distance"])) for row in rows]

    def close(self) -> None:
        """Close the database."""
        self._database = None

    def _table(self, name: str) -> Any:
        """Return the table of that name, or None."""
        # LanceDB's own list of tables is paged.
        is_there = (self._folder / f"{name}.lance").is_dir()
        return self._opened().open_table(name) if is_there else None

    def _opened(self) -> Any:
        if self._database is None:
            # LanceDB takes a second to import: only its users should wait for it.
            import lancedb

            make_private_folder(self._folder)
            self._database = lancedb.connect(str(self._folder))
        return self._database


def _failure_of(error: Exception) -> StorageFailure:
    if any(words in str(error) for words in _NO_ROOM):
        return StorageFailure(ErrorCode.DISK_FULL)
    if isinstance(error, OSError) and error.errno is not None:
        return storage_failure(error)
    # The text of LanceDB's own errors contains paths.
    return StorageFailure(ErrorCode.STORAGE_BROKEN, detail=f"the index of styles: {type(error).__name__}")


# Two keys of one model are two embedders: one may succeed where the other fails.
_Key = tuple[int, tuple[str, ...]]


class StyleVectors:
    """Similarity by meaning with a given embedding model; the tables are rebuilt when the model changes.

    The model's scale is measured with the first set of styles.
    """

    def __init__(self, folder: Path) -> None:
        self._tables = _Tables(folder)
        # A thread of its own: other searches should not wait until LanceDB is loaded.
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="style-vectors")
        self._building = asyncio.Lock()
        self._under_way: dict[_Key, asyncio.Task[None]] = {}
        self._pauses = ModelPauses()

    async def similarities(
        self, style_sets: Sequence[StyleSet], request: str, embedder: TextEmbedder, patience_s: float
    ) -> dict[str, float] | None:
        """Return the similarities of the closest styles by id, or None when the model gives no answer now.

        Work that takes longer than `patience_s` goes on without the caller, and is ready for the next search. Raises
        StorageFailure.
        """
        if embedder in self._pauses:
            return None
        try:
            async with asyncio.timeout(patience_s):
                await shielded(self._preparation(style_sets, embedder))
                [vector] = await embedded([request], embedder)
        except TimeoutError:
            _log.warning("the embedding model %s takes too long; styles are found by their names", embedder.model_id)
            return None
        except StorageFailure:
            raise
        except (AivistaError, ValueError) as error:
            self._pauses.begin(embedder)
            _log.warning("the embedding model %s failed; styles are found by their names: %s", embedder.model_id, error)
            return None
        return await self._guarded(lambda: self._closest(style_sets, vector, EmbeddingModel.of(embedder)))

    async def is_ready(self, style_set: StyleSet, embedder: TextEmbedder) -> bool:
        """Whether the table of this set of styles holds this model's vectors. Raises StorageFailure."""
        return await self._guarded(lambda: self._known_vectors(style_set, EmbeddingModel.of(embedder))) is None

    async def prepare(self, style_set: StyleSet, embedder: TextEmbedder) -> None:
        """Embed the set of styles by which the model's scale is measured, unless tables are being built already.

        Raises AivistaError when the model or the disk fails, ValueError when the answer is not vectors.
        """
        if not self._building.locked():
            await shielded(self._preparation([style_set], embedder))

    async def warm_up(self, style_set: StyleSet) -> None:
        """Load LanceDB and the table of this set of styles."""
        await self._guarded(lambda: self._tables.about(style_set.name))

    async def aclose(self) -> None:
        """Cancel pending preparations and close the files."""
        tasks = list(self._under_way.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.to_thread(self._thread.shutdown)
        self._tables.close()

    def _preparation(self, style_sets: Sequence[StyleSet], embedder: TextEmbedder) -> asyncio.Task[None]:
        key = (id(embedder), tuple(style_set.content for style_set in style_sets))
        task = self._under_way.get(key)
        if task is None:
            task = self._under_way[key] = asyncio.create_task(self._prepare(style_sets, embedder))
            task.add_done_callback(lambda _: self._under_way.pop(key, None))
        return task

    async def _prepare(self, style_sets: Sequence[StyleSet], embedder: TextEmbedder) -> None:
        model = EmbeddingModel.of(embedder)
        async with self._building:
            for style_set in style_sets:
                known = await self._guarded(lambda: self._known_vectors(style_set, model))  # noqa: B023  # awaited at once
                if known is not None:
                    about, rows = await _made(style_set, known, embedder, is_measure=style_set is style_sets[0])
                    await self._guarded(lambda: self._tables.build(style_set.name, about, rows))  # noqa: B023

    def _known_vectors(self, style_set: StyleSet, model: EmbeddingModel) -> dict[str, array[float]] | None:
        """Return the vectors that the table already has from this very model, or None when it is up to date."""
        about = self._tables.about(style_set.name)
        if about is None or about.model != model:
            return {}
        return None if about.content == style_set.content else self._tables.vectors(style_set.name)

    def _closest(
        self, style_sets: Sequence[StyleSet], vector: Sequence[float], model: EmbeddingModel
    ) -> dict[str, float] | None:
        notes = [self._tables.about(style_set.name) for style_set in style_sets]
        for style_set, about in zip(style_sets, notes, strict=True):
            if about is None or about.model != model or about.content != style_set.content:
                return None
        scale = MeaningScale.measured(notes[0].background, notes[0].foreground) if notes[0] else None
        if scale is None:
            return {}
        near = [one for style_set in style_sets for one in self._tables.closest(style_set.name, vector)]
        return {style_id: scale.similarity(cosine) for style_id, cosine in near}

    async def _guarded(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._tables.guarded, work)


def _text_of(style: Style) -> str:
    """Return the text that is embedded for a style: its names and its description."""
    names = [*style.names, *style.aliases.en[:_EMBEDDED_ALIASES], *style.aliases.zh[:_EMBEDDED_ALIASES]]
    return "\n".join(filter(None, (", ".join(names), style.description.en, style.description.zh)))


async def _made(
    style_set: StyleSet, known: dict[str, array[float]], embedder: TextEmbedder, *, is_measure: bool
) -> tuple[_About, list[dict[str, Any]]]:
    """Return the note and the rows of a table for a set of styles.

    Only texts that are not in `known` are embedded. With `is_measure`, the model's scale is measured as well.
    """
    texts = [_text_of(style) for style in style_set.styles]
    missing = [text for text in texts if digest_of(text) not in known]
    for text, vector in zip(missing, await embedded(missing, embedder), strict=True):
        known[digest_of(text)] = array("f", vector)
    rows = [
        {"id": style.id, "digest": digest_of(text), "vector": known[digest_of(text)]}
        for style, text in zip(style_set.styles, texts, strict=True)
    ]
    about = _About(content=style_set.content, model=EmbeddingModel.of(embedder))
    if is_measure:
        # How close wishes without a style come to any style, and wishes that name a style to that style.
        naming = [
            (template.format(en=style.name.en, zh=style.name.zh), place)
            for place, style in list(enumerate(style_set.styles))[::_NAMED_EVERY]
            for template in _NAMING_WISHES
        ]
        asked = await embedded([*PLAIN_WISHES, *(text for text, _ in naming)], embedder)
        near = await asyncio.to_thread(cosines, asked, [row["vector"] for row in rows])
        plain, named = near[: len(PLAIN_WISHES)], near[len(PLAIN_WISHES) :]
        about = about.model_copy(
            update={
                "background": tuple(max(row) for row in plain),
                "foreground": tuple(row[place] for row, (_, place) in zip(named, naming, strict=True)),
            }
        )
    return about, rows

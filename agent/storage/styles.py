"""The style library: curated and own styles, found by name, by description and by meaning."""

from __future__ import annotations

import asyncio
import contextlib
import io
import logging
import secrets
import shutil
import time
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import Any, TypeVar

from cachetools import LRUCache, TTLCache
from pydantic import TypeAdapter, ValidationError

from agent.cancellation import on_thread
from agent.errors import ErrorCode, RequestRefused
from agent.library import Style, StyleDraft, StyleFile, StyleMatch
from agent.storage.embedding import EmbeddingModel, TextEmbedder
from agent.storage.private_files import (
    aside_path,
    file_state,
    locked_file,
    owner_key,
    storage_failure,
    translated_os_errors,
    write_private_file,
)
from agent.storage.style_match import FLOOR, LONGEST_WISH, StyleDescriptions, StyleSet, find_style, find_styles
from agent.storage.style_vectors import StyleVectors
from agent.style_look import StyleLook

MOST_STYLES = 200
MAX_STYLE_IMAGE_BYTES = 1 << 20
_MOST_OWNERS = 64
_MOST_SEARCHES = 256

T = TypeVar("T")
_STYLES = TypeAdapter(tuple[Style, ...])
_log = logging.getLogger(__name__)

# The curated styles


@lru_cache(maxsize=1)
def curated_styles() -> tuple[Style, ...]:
    """Return every curated style, family by family."""
    beside = {"described", "look"}
    return tuple(Style.model_validate({key: row[key] for key in row.keys() - beside}) for row in _rows())


@lru_cache(maxsize=1)
def curated_descriptions() -> dict[str, tuple[str, ...]]:
    """Return how people describe each style without its name, in both languages, by style id."""
    return {row["id"]: (*row["described"]["en"], *row["described"]["zh"]) for row in _rows()}


@lru_cache(maxsize=1)
def curated_looks() -> dict[str, StyleLook]:
    """Return the drawing rules of each style, by style id."""
    return {row["id"]: StyleLook.model_validate(row["look"]) for row in _rows()}


def _rows() -> list[dict[str, Any]]:
    folder = resources.files("agent.storage") / "style_data"
    files = sorted((file for file in folder.iterdir() if file.name.endswith(".toml")), key=lambda file: file.name)
    return [row for file in files for row in tomllib.loads(file.read_text(encoding="utf-8"))["style"]]


@lru_cache(maxsize=1)
def _curated() -> StyleSet:
    return StyleSet("curated", curated_styles())


@lru_cache(maxsize=1)
def _descriptions() -> StyleDescriptions:
    return StyleDescriptions(curated_styles(), curated_descriptions())


def find_curated(text: str) -> tuple[Style, str] | None:
    """Return the curated style that a request asks for and the words that name it; None when it asks for none.

    The words are empty when the request describes the style. Blocks: for a moment the first time, then for about a
    millisecond.
    """
    found = find_style(_curated(), _descriptions(), text)
    return next((style, found[1]) for style in curated_styles() if style.id == found[0]) if found else None


# Own styles


class OwnStyles:
    """The styles that users wrote: a private file for each owner, always written whole.

    Every call blocks and may raise StorageFailure.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._read: LRUCache[str, tuple[object, StyleSet]] = LRUCache(_MOST_OWNERS)

    def style_set(self, owner: str) -> StyleSet:
        """Return the owner's styles, the oldest first; an unreadable file is set aside."""
        key = owner_key(owner)
        path = self._folder / f"{key}.json"
        state = file_state(path)
        known = self._read.get(key)
        if known is None or state is None or known[0] != state:
            known = self._read[key] = state, StyleSet(f"own_{key}", self._styles_in(path))
        return known[1]

    def change(self, owner: str, change: Callable[[tuple[Style, ...]], tuple[Style, ...]]) -> None:
        """Replace the owner's styles by the result of `change`. Raises RequestRefused(TOO_MANY_STYLES)."""
        with self._locked():
            self._write(owner, change(self.style_set(owner).styles))

    def hand_over(self, owner: str, new_owner: str) -> None:
        """Move an owner's styles to another owner.

        Styles whose name the new owner already uses stay, and so do the newest ones when there is not enough room.
        """
        with self._locked():
            theirs, ours = self.style_set(new_owner).styles, self.style_set(owner).styles
            names = {_name_key(style) for style in theirs}
            given = [style for style in ours if _name_key(style) not in names][: MOST_STYLES - len(theirs)]
            if given:
                self._write(new_owner, (*theirs, *given))
                self._write(owner, tuple(style for style in ours if style not in given))

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        """Lock the styles between reading and writing, against other threads and processes."""
        with translated_os_errors(), locked_file(self._folder / "styles"):
            yield

    def _styles_in(self, path: Path) -> tuple[Style, ...]:
        try:
            return _STYLES.validate_json(path.read_bytes())
        except FileNotFoundError:
            return ()
        except OSError as error:
            raise storage_failure(error) from error
        except ValidationError:
            aside = aside_path(path)
            with contextlib.suppress(OSError):
                path.rename(aside)
            _log.warning("own styles were unreadable and have been set aside as %s", aside.name)
            return ()

    def _write(self, owner: str, styles: tuple[Style, ...]) -> None:
        if len(styles) > MOST_STYLES:
            raise RequestRefused(ErrorCode.TOO_MANY_STYLES, limit=MOST_STYLES)
        write_private_file(self._folder / f"{owner_key(owner)}.json", _STYLES.dump_json(styles))


def _draft_of(fields: StyleDraft | Mapping[str, object]) -> StyleDraft:
    """Return the style draft for a form's fields. Raises RequestRefused."""
    try:
        return fields if isinstance(fields, StyleDraft) else StyleDraft.model_validate(fields)
    except ValidationError as error:
        raise RequestRefused(ErrorCode.STYLES_REFUSED, problem=_problem_of(error)) from None


def _drafts_of(data: bytes) -> tuple[StyleDraft, ...]:
    """Return the styles of an exported file. Raises RequestRefused."""
    if len(data) > MAX_STYLE_IMAGE_BYTES:
        raise RequestRefused(ErrorCode.STYLES_REFUSED, problem=f"it is larger than {MAX_STYLE_IMAGE_BYTES >> 20} MB")
    try:
        file = StyleFile.model_validate_json(data)
    except ValidationError as error:
        raise RequestRefused(ErrorCode.STYLES_REFUSED, problem=_problem_of(error)) from None
    if len(file.styles) > MOST_STYLES:
        raise RequestRefused(ErrorCode.TOO_MANY_STYLES, limit=MOST_STYLES)
    return file.styles


def _problem_of(error: ValidationError) -> str:
    """Return the first validation problem and its place; of the input, only field names appear in it."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    place = ".".join(part if isinstance(part, str) and part.isidentifier() else str(part)[:20] for part in first["loc"])
    problem = first["msg"].removeprefix("Value error, ")
    return f"{place}: {problem}"[:200] if place else problem[:200]


def _with_id(draft: StyleDraft, style_id: str | None = None) -> Style:
    return Style(**dict(draft), id=style_id or f"own-{secrets.token_hex(6)}", is_own=True)


def _name_key(draft: StyleDraft) -> str:
    return draft.title.casefold()


def _with(others: Sequence[Style], style: Style, place: int) -> tuple[Style, ...]:
    """Return the styles with this one inserted at a position. Raises RequestRefused(STYLE_NAME_TAKEN)."""
    if any(_name_key(other) == _name_key(style) for other in others):
        raise RequestRefused(ErrorCode.STYLE_NAME_TAKEN, name=style.title)
    return (*others[:place], style, *others[place:])


def _without(styles: Sequence[Style], style_id: str) -> tuple[tuple[Style, ...], int]:
    """Return the styles without this one, and its former position. Raises RequestRefused(STYLE_NOT_FOUND)."""
    for place, style in enumerate(styles):
        if style.id == style_id:
            return (*styles[:place], *styles[place + 1 :]), place
    raise RequestRefused(ErrorCode.STYLE_NOT_FOUND)


# The library


class StyleLibrary:
    """Styles in `<home>/styles`; own styles belong to their owner, and nobody else finds them.

    Own styles are files, always written whole. Names and descriptions are searched in memory. The vectors of an
    embedding model are stored in LanceDB tables beside the files and are rebuilt whenever the styles or the model
    change; LanceDB is loaded at the first search with such a model. Every call raises StorageFailure when the disk or
    LanceDB fails. Search results are cached for `ttl_s`, measured by `clock` in seconds; a search does not wait longer
    than `patience_s` for an embedding model.
    """

    def __init__(
        self, home: Path, *, ttl_s: float = 300.0, patience_s: float = 3.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._own = OwnStyles(home / "styles" / "own")
        self._vectors = StyleVectors(home / "styles" / "index")
        # Earlier versions cached searches here.
        self._old_cache = home / "cache" / "styles"
        self._searches: TTLCache[tuple[object, ...], list[StyleMatch]] = TTLCache(_MOST_SEARCHES, ttl_s, clock)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="styles")
        self._patience_s = patience_s

    # Finding

    async def search(
        self,
        text: str,
        limit: int = 3,
        floor: float = FLOOR,
        *,
        owner: str = "local",
        embedder: TextEmbedder | None = None,
        is_style: bool = False,
    ) -> list[StyleMatch]:
        """Return the styles that the text names or describes, the surest first; none below `floor`.

        `is_style` says that the text is only about a style ("noir", as a model gives it), so that words which could
        also mean things are taken for a style. With an embedder, styles with the same meaning are found too; while the
        model fails, is late or has no vectors of the library yet, only names and descriptions are searched. The same
        search within `ttl_s` is answered from the cache.
        """
        request = text.strip()
        if not request or limit < 1:
            return []
        half = LONGEST_WISH // 2
        request = request if len(request) <= LONGEST_WISH else f"{request[:half]}\n{request[-half:]}"
        model = EmbeddingModel.of(embedder) if embedder is not None else None

        def asked() -> tuple[list[StyleSet], tuple[object, ...]]:
            style_sets = self._style_sets(owner)
            contents = [style_set.content for style_set in style_sets]
            return style_sets, (model, limit, floor, is_style, request, *contents)

        style_sets, key = await self._call(asked)
        known = self._searches.get(key)
        if known is not None:
            return list(known)
        meaning: Mapping[str, float] | None = {}
        if embedder is not None:
            meaning = await self._vectors.similarities(style_sets, request, embedder, self._patience_s)
        by_meaning = meaning or {}
        found = await self._call(
            lambda: find_styles(
                style_sets, _descriptions(), request, by_meaning, limit=limit, floor=floor, is_style=is_style
            )
        )
        if meaning is not None:
            self._searches[key] = found
        return list(found)

    async def has_meaning(self, embedder: TextEmbedder) -> bool:
        """Whether the model's vectors of the curated styles are stored, so that a search embeds little more."""
        return await self._vectors.is_ready(await self._call(_curated), embedder)

    async def learn_meaning(self, embedder: TextEmbedder) -> None:
        """Embed the curated styles with the model: some 10,000 tokens in three calls, kept on disk for every owner.

        Raises AivistaError when the model fails, ValueError when its answer is not vectors.
        """
        await self._vectors.prepare(await self._call(_curated), embedder)

    async def warm_up(self, owner: str = "local", *, with_meaning: bool = False) -> None:
        """Load in advance what a search needs; with meaning, load LanceDB too."""
        await self._call(lambda: shutil.rmtree(self._old_cache, ignore_errors=True))
        await self._call(lambda: [_descriptions(), *(style_set.names for style_set in self._style_sets(owner))])
        if with_meaning:
            await self._vectors.warm_up(await self._call(_curated))

    def _style_sets(self, owner: str) -> list[StyleSet]:
        own = self._own.style_set(owner)
        return [_curated(), own] if own.styles else [_curated()]

    def drawn(self, style_id: str, picture: bytes, side_px: int) -> bytes | None:
        """Return the picture drawn by a curated style's rules, as WebP; None for a style without rules. Blocks.

        The longer side is at most `side_px`.
        """
        look = curated_looks().get(style_id)
        if look is None:
            return None
        import numpy as np
        from PIL import Image

        from agent.style_rendering import render_in_style

        sink = io.BytesIO()
        with Image.open(io.BytesIO(picture)) as image:
            image.thumbnail((side_px, side_px))
            drawn = render_in_style(np.asarray(image.convert("RGB")), look)
        Image.fromarray(drawn).save(sink, "WEBP", quality=80)
        return sink.getvalue()

    # Own styles

    async def all(self, owner: str = "local") -> tuple[Style, ...]:
        """Return every style that the owner can use: their own, then the curated ones."""
        return await self._call(lambda: (*self._own.style_set(owner).styles, *curated_styles()))

    async def get(self, style_id: str, owner: str = "local") -> Style:
        """Return the style. Raises RequestRefused(STYLE_NOT_FOUND)."""
        found = next((style for style in await self.all(owner) if style.id == style_id), None)
        if found is None:
            raise RequestRefused(ErrorCode.STYLE_NOT_FOUND)
        return found

    async def add(self, fields: StyleDraft | Mapping[str, object], owner: str = "local") -> Style:
        """Store a new style of the owner, from a draft or from a form's fields.

        Raises RequestRefused when the fields make no valid style, the name is taken, or the library is full.
        """
        style = _with_id(_draft_of(fields))
        await self._call(lambda: self._own.change(owner, lambda kept: _with(kept, style, len(kept))))
        return style

    async def edit(self, style_id: str, fields: StyleDraft | Mapping[str, object], owner: str = "local") -> Style:
        """Replace one of the owner's styles. Raises RequestRefused, also for a curated one."""
        style = _with_id(_draft_of(fields), style_id)

        def edited(kept: tuple[Style, ...]) -> tuple[Style, ...]:
            others, place = _without(kept, style_id)
            return _with(others, style, place)

        await self._call(lambda: self._own.change(owner, edited))
        return style

    async def delete(self, style_id: str, owner: str = "local") -> None:
        """Remove one of the owner's styles. Raises RequestRefused, also for a curated one."""
        await self._call(lambda: self._own.change(owner, lambda kept: _without(kept, style_id)[0]))

    async def import_styles(self, data: bytes, owner: str = "local") -> tuple[Style, ...]:
        """Store the styles of an exported file and return them; one with the same name is replaced.

        Stores all of them or none. Raises RequestRefused, with the reason, for an invalid file.
        """
        taken: list[Style] = []

        def merged(kept: tuple[Style, ...]) -> tuple[Style, ...]:
            by_name = {_name_key(style): style for style in kept}
            for draft in _drafts_of(data):
                known = by_name.get(_name_key(draft))
                taken.append(_with_id(draft, known.id if known else None))
                by_name[_name_key(draft)] = taken[-1]
            return tuple(by_name.values())

        await self._call(lambda: self._own.change(owner, merged))
        return tuple(taken)

    async def hand_over(self, owner: str, new_owner: str) -> None:
        """Move an owner's styles to another owner, as far as there is room."""
        await self._call(lambda: self._own.hand_over(owner, new_owner))

    async def export_styles(self, owner: str = "local") -> bytes:
        """Return the owner's styles as a JSON file."""
        own = await self._call(lambda: self._own.style_set(owner).styles)
        return StyleFile(styles=tuple(style.draft for style in own)).model_dump_json(indent=2).encode()

    async def aclose(self) -> None:
        """Finish pending work and close the files."""
        await self._vectors.aclose()
        await asyncio.to_thread(self._thread.shutdown)

    async def _call(self, work: Callable[[], T]) -> T:
        return await on_thread(self._thread, work)

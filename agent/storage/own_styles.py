"""The styles that people wrote, a private file for each owner: what LanceDB holds of them can be made anew from it."""

from __future__ import annotations

import contextlib
import hashlib
import logging
import secrets
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from agent.errors import ErrorCode, RequestRefused
from agent.library import Style, StyleDraft, StyleFile
from agent.storage.private_files import file_state, locked_file, storage_failure, write_private_file

MOST_STYLES = 200
MAX_STYLE_IMAGE_BYTES = 1 << 20

_STYLES = TypeAdapter(tuple[Style, ...])

_log = logging.getLogger(__name__)


class OwnStyles:
    """Own styles in `folder`. Every call blocks, and may raise StorageFailure."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._read: dict[Path, tuple[object, tuple[Style, ...]]] = {}

    def all(self, owner: str) -> tuple[Style, ...]:
        """Return the owner's styles, the oldest first; a file that cannot be read is set aside."""
        path = self._path(owner)
        state = file_state(path)
        try:
            if path not in self._read or self._read[path][0] != state:
                self._read[path] = (state, _STYLES.validate_json(path.read_bytes()))
            return self._read[path][1]
        except FileNotFoundError:
            return ()
        except OSError as error:
            raise storage_failure(error) from error
        except ValidationError:
            self._set_aside(path)
            return ()

    def add(self, draft: StyleDraft, owner: str) -> Style:
        """Keep a new style. Raises RequestRefused for a name that is taken, or one style too many."""
        with self._locked():
            kept = self.all(owner)
            _refuse_taken_name(draft, kept)
            style = _with_id(draft)
            self._write(owner, (*kept, style))
            return style

    def edit(self, style_id: str, draft: StyleDraft, owner: str) -> Style:
        """Replace what a style says. Raises RequestRefused for one that is gone, or a name that is taken."""
        with self._locked():
            kept = self.all(owner)
            others = tuple(style for style in kept if style.id != style_id)
            if len(others) == len(kept):
                raise RequestRefused(ErrorCode.STYLE_NOT_FOUND)
            _refuse_taken_name(draft, others)
            changed = _with_id(draft, style_id)
            self._write(owner, tuple(changed if style.id == style_id else style for style in kept))
            return changed

    def delete(self, style_id: str, owner: str) -> None:
        """Remove a style. Raises RequestRefused for one that is gone."""
        with self._locked():
            kept = self.all(owner)
            others = tuple(style for style in kept if style.id != style_id)
            if len(others) == len(kept):
                raise RequestRefused(ErrorCode.STYLE_NOT_FOUND)
            self._write(owner, others)

    def hand_over(self, owner: str, new_owner: str) -> None:
        """Give an owner's styles to another one, who keeps their own of the same name; the newest stay for want of
        room."""
        with self._locked():
            theirs = self.all(new_owner)
            names = {_name_key(style) for style in theirs}
            coming = [style for style in self.all(owner) if _name_key(style) not in names]
            given = coming[: MOST_STYLES - len(theirs)]
            if given:
                self._write(new_owner, (*theirs, *given))
                self._write(owner, tuple(coming[len(given) :]))

    def take_in(self, data: bytes, owner: str) -> tuple[Style, ...]:
        """Keep every style of an exported file and return them; one of the same name is replaced.

        All of them or none. Raises RequestRefused for a file that is not one, too large, or damaged.
        """
        with self._locked():
            merged = {_name_key(style): style for style in self.all(owner)}
            taken = []
            for draft in drafts_of(data):
                known = merged.get(_name_key(draft))
                merged[_name_key(draft)] = style = _with_id(draft, known.id if known else None)
                taken.append(style)
            self._write(owner, tuple(merged.values()))
            return tuple(taken)

    def file_of(self, owner: str) -> bytes:
        """Return the owner's styles as a file that `take_in` reads."""
        file = StyleFile(styles=tuple(style.draft for style in self.all(owner)))
        return file.model_dump_json(indent=2).encode()

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        """Let nobody else change the styles between reading and writing them, in this process or another one."""
        try:
            with locked_file(self._folder / "styles"):
                yield
        except OSError as error:
            raise storage_failure(error) from error

    def _write(self, owner: str, styles: Sequence[Style]) -> None:
        if len(styles) > MOST_STYLES:
            raise RequestRefused(ErrorCode.TOO_MANY_STYLES, limit=MOST_STYLES)
        try:
            write_private_file(self._path(owner), _STYLES.dump_json(tuple(styles)))
        except OSError as error:
            raise storage_failure(error) from error

    def _path(self, owner: str) -> Path:
        return self._folder / f"{owner_key(owner)}.json"

    def _set_aside(self, path: Path) -> None:
        aside = path.with_name(f"{path.name}.unreadable-{datetime.now(UTC).strftime('%Y%m%dT%H%M%S%fZ')}")
        with contextlib.suppress(OSError):
            path.rename(aside)
        _log.warning("own styles were unreadable and have been set aside as %s", aside.name)


def owner_key(owner: str) -> str:
    """Return the owner's name for files and tables: no path or query can be made of it."""
    return hashlib.sha256(owner.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def draft_of(fields: Mapping[str, object]) -> StyleDraft:
    """Return the style that these fields of a form make. Raises RequestRefused."""
    try:
        return StyleDraft.model_validate(fields)
    except ValidationError as error:
        raise RequestRefused(ErrorCode.STYLES_REFUSED, problem=problem_of(error)) from None


def drafts_of(data: bytes) -> tuple[StyleDraft, ...]:
    """Return the styles of an exported file. Raises RequestRefused."""
    if len(data) > MAX_STYLE_IMAGE_BYTES:
        raise RequestRefused(ErrorCode.STYLES_REFUSED, problem=f"it is larger than {MAX_STYLE_IMAGE_BYTES >> 20} MB")
    try:
        file = StyleFile.model_validate_json(data)
    except ValidationError as error:
        raise RequestRefused(ErrorCode.STYLES_REFUSED, problem=problem_of(error)) from None
    if len(file.styles) > MOST_STYLES:
        raise RequestRefused(ErrorCode.TOO_MANY_STYLES, limit=MOST_STYLES)
    return file.styles


def problem_of(error: ValidationError) -> str:
    """Return the first thing that is wrong, and where; nothing of the input but its field names."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    place = ".".join(part if isinstance(part, str) and part.isidentifier() else str(part)[:20] for part in first["loc"])
    said = first["msg"].removeprefix("Value error, ")
    return f"{place}: {said}"[:200] if place else said[:200]


def _with_id(draft: StyleDraft, style_id: str | None = None) -> Style:
    return Style(**dict(draft), id=style_id or f"own-{secrets.token_hex(6)}", is_own=True)


def _name_key(draft: StyleDraft) -> str:
    return draft.title.casefold()


def _refuse_taken_name(draft: StyleDraft, others: Sequence[Style]) -> None:
    if any(_name_key(style) == _name_key(draft) for style in others):
        raise RequestRefused(ErrorCode.STYLE_NAME_TAKEN, name=draft.title)

"""Each user's caps, defaults of new conversations, and presets: private files with an entry per owner."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

from pydantic import OnErrorOmit, TypeAdapter, ValidationError

from agent.errors import ErrorCode, RequestRefused
from agent.library import Preferences, Preset
from agent.settings import OPERATOR, Settings, TurnSettings
from agent.storage.private_files import file_state, locked_file, translated_os_errors, write_private_file

# On a shared link everybody with a cookie is an owner: the entry with the oldest change is dropped first.
_MOST_OWNERS = 2000
MOST_PRESETS = 40
MAX_PRESET_NAME_CHARACTERS = 60

# A preset that this version cannot read is left out: the others are still good.
_PRESETS_FILE: TypeAdapter[dict[str, tuple[Preset, ...]]] = TypeAdapter(dict[str, tuple[OnErrorOmit[Preset], ...]])


class PresetStore:
    """The presets of every owner, in order of creation. Every change may raise StorageFailure."""

    def __init__(self, home: Path) -> None:
        self._file = OwnerFile(home / "presets.json", _PRESETS_FILE)

    async def of(self, owner: str) -> tuple[Preset, ...]:
        """Return the owner's presets."""
        return await self._file.of(owner) or ()

    async def find(self, owner: str, preset_id: str) -> Preset:
        """Return one of the owner's presets. Raises RequestRefused(PRESET_NOT_FOUND)."""
        return _one(await self.of(owner), preset_id)

    async def save(self, owner: str, name: str, settings: TurnSettings) -> Preset:
        """Save settings under a name; a preset with that name is replaced in place.

        Raises RequestRefused: PRESET_NAME_INVALID, TOO_MANY_PRESETS.
        """
        wanted = Preset(id=secrets.token_hex(6), name=checked_name(name), settings=settings)

        def put(kept: tuple[Preset, ...]) -> tuple[Preset, ...]:
            if not any(_same_name(one, wanted.name) for one in kept):
                return _with(kept, wanted)
            return tuple(
                wanted.model_copy(update={"id": one.id}) if _same_name(one, wanted.name) else one for one in kept
            )

        kept = await self._change(owner, put)
        return next(one for one in kept if _same_name(one, wanted.name))

    async def rename(self, owner: str, preset_id: str, name: str) -> Preset:
        """Rename a preset. Raises RequestRefused: PRESET_NAME_INVALID, PRESET_NAME_TAKEN, PRESET_NOT_FOUND."""
        wanted = checked_name(name)

        def renamed(kept: tuple[Preset, ...]) -> tuple[Preset, ...]:
            _one(kept, preset_id)
            if any(one.id != preset_id and _same_name(one, wanted) for one in kept):
                raise RequestRefused(ErrorCode.PRESET_NAME_TAKEN, name=wanted)
            return tuple(one.model_copy(update={"name": wanted}) if one.id == preset_id else one for one in kept)

        return _one(await self._change(owner, renamed), preset_id)

    async def delete(self, owner: str, preset_id: str) -> Preset:
        """Delete a preset and return it for `restore`. Raises RequestRefused(PRESET_NOT_FOUND)."""
        gone: list[Preset] = []

        def without(kept: tuple[Preset, ...]) -> tuple[Preset, ...]:
            gone.append(_one(kept, preset_id))
            return tuple(one for one in kept if one.id != preset_id)

        await self._change(owner, without)
        return gone[-1]

    async def restore(self, owner: str, preset: Preset) -> None:
        """Restore a deleted preset. Raises RequestRefused: PRESET_NAME_TAKEN, TOO_MANY_PRESETS."""

        def back(kept: tuple[Preset, ...]) -> tuple[Preset, ...]:
            if any(one.id == preset.id or _same_name(one, preset.name) for one in kept):
                raise RequestRefused(ErrorCode.PRESET_NAME_TAKEN, name=preset.name)
            return _with(kept, preset)

        await self._change(owner, back)

    async def hand_over(self, owner: str, new_owner: str) -> None:
        """Copy an owner's presets to another owner, as far as there is room; those with a name in use are skipped."""
        given = await self.of(owner)

        def joined(kept: tuple[Preset, ...]) -> tuple[Preset, ...]:
            coming = [one for one in given if not any(_same_name(theirs, one.name) for theirs in kept)]
            return (*kept, *coming)[:MOST_PRESETS]

        if given:
            await self._change(new_owner, joined)

    async def _change(self, owner: str, work: Callable[[tuple[Preset, ...]], tuple[Preset, ...]]) -> tuple[Preset, ...]:
        return await self._file.change(owner, lambda kept: work(kept or ()))


def checked_name(name: str) -> str:
    """Return the name on one line, without surrounding space. Raises RequestRefused(PRESET_NAME_INVALID)."""
    plain = " ".join(name.split())
    if not plain or len(plain) > MAX_PRESET_NAME_CHARACTERS or not plain.isprintable():
        raise RequestRefused(ErrorCode.PRESET_NAME_INVALID, limit=MAX_PRESET_NAME_CHARACTERS)
    return plain


def _one(kept: tuple[Preset, ...], preset_id: str) -> Preset:
    found = next((one for one in kept if one.id == preset_id), None)
    if found is None:
        raise RequestRefused(ErrorCode.PRESET_NOT_FOUND)
    return found


def _with(kept: tuple[Preset, ...], preset: Preset) -> tuple[Preset, ...]:
    if len(kept) >= MOST_PRESETS:
        raise RequestRefused(ErrorCode.TOO_MANY_PRESETS, limit=MOST_PRESETS)
    return (*kept, preset)


def _same_name(preset: Preset, name: str) -> bool:
    return preset.name.casefold() == name.casefold()


_log = logging.getLogger(__name__)

T = TypeVar("T")

# The prefix of owners that only a cookie identifies.
VISITOR = "visitor-"


class OwnerFile(Generic[T]):
    """A file with an entry per owner, for the 2000 whose entry changed last.

    The operator's entry is never dropped, and visitors' entries are dropped before those of users with an account:
    anybody can create any number of visitors. The file is read again after any process has written it, and is changed
    under a lock. A file with invalid content counts as empty, and is renamed to `….bad` at the next write.
    """

    def __init__(self, path: Path, adapter: TypeAdapter[dict[str, T]]) -> None:
        self._path = path
        self._adapter = adapter
        self._kept: tuple[object, dict[str, T]] | None = None

    async def of(self, owner: str) -> T | None:
        """Return the owner's entry, or None when there is none or the file cannot be read."""
        if self._kept is None or self._kept[0] != file_state(self._path):
            await asyncio.to_thread(self._load)
        return self._kept[1].get(owner) if self._kept is not None else None

    async def change(self, owner: str, work: Callable[[T | None], T]) -> T:
        """Replace the owner's entry by the result of `work`, and return it once it is persisted.

        When `work` raises, the file stays as it was. Raises StorageFailure.
        """
        return await asyncio.to_thread(self._change_now, owner, work)

    async def hand_over(self, owner: str, new_owner: str) -> None:
        """Copy an owner's entry to another owner who has none. Raises StorageFailure."""
        given = await self.of(owner)
        if given is not None:
            await self.change(new_owner, lambda kept: given if kept is None else kept)

    def _load(self) -> None:
        # Taken before reading: a concurrent write is then noticed next time.
        state = file_state(self._path)
        try:
            self._kept = state, self._read() or {}
        except OSError as error:
            # The next attempt may succeed.
            _log.warning("%s cannot be read: %s", self._path.name, error.strerror)

    def _change_now(self, owner: str, work: Callable[[T | None], T]) -> T:
        with translated_os_errors(), locked_file(self._path):
            found = self._read()
            kept = found or {}
            entry = work(kept.pop(owner, None))
            newest = _newest({**kept, owner: entry})
            if found is None:
                os.replace(self._path, self._path.with_name(f"{self._path.name}.bad"))
            plain = self._adapter.dump_python(newest, mode="json")
            write_private_file(self._path, json.dumps(plain, indent=1).encode())
            self._kept = file_state(self._path), newest
            return entry

    def _read(self) -> dict[str, T] | None:
        """Return the entries, or None when the file's content is invalid. Raises OSError."""
        try:
            return self._adapter.validate_json(self._path.read_bytes())
        except FileNotFoundError:
            return {}
        except ValidationError:
            _log.warning("%s is unreadable and counts as empty", self._path.name)
            return None


def _newest(kept: dict[str, T]) -> dict[str, T]:
    """Return the entries without the surplus ones; the newest entries come last."""
    *old, _ = kept
    visitors_first = sorted((one for one in old if one != OPERATOR), key=lambda one: not one.startswith(VISITOR))
    gone = set(visitors_first[: max(0, len(kept) - _MOST_OWNERS)])
    return {owner: entry for owner, entry in kept.items() if owner not in gone}


class PreferenceStore:
    """The preferences of every owner; the operator's settings are the default. `presets` holds the presets."""

    def __init__(self, settings: Settings) -> None:
        self.presets = PresetStore(settings.home)
        self._file = OwnerFile(settings.home / "preferences.json", TypeAdapter(dict[str, Preferences]))
        self._defaults = OwnerFile(settings.home / "defaults.json", TypeAdapter(dict[str, TurnSettings | None]))
        self._default = Preferences(
            cap_conversation_usd=settings.cap_conversation_usd, cap_day_usd=settings.cap_day_usd
        )

    async def of(self, owner: str) -> Preferences:
        """Return the owner's preferences, or the operator's defaults."""
        chosen = await self._file.of(owner)
        return self._default if chosen is None else chosen

    async def keep(self, owner: str, chosen: Preferences) -> None:
        """Persist the owner's preferences. Raises StorageFailure."""
        await self._file.change(owner, lambda _: chosen)

    async def defaults(self, owner: str) -> TurnSettings | None:
        """Return the settings with which the owner's new conversations begin, or None."""
        return await self._defaults.of(owner)

    async def keep_defaults(self, owner: str, settings: TurnSettings | None) -> None:
        """Persist the settings with which the owner's new conversations begin, or None. Raises StorageFailure."""
        await self._defaults.change(owner, lambda _: settings)

    async def hand_over(self, owner: str, new_owner: str) -> None:
        """Copy an owner's choices to another owner, whose own choices stay. Raises StorageFailure."""
        await self.presets.hand_over(owner, new_owner)
        for file in (self._file, self._defaults):
            await file.hand_over(owner, new_owner)

    async def applied(self, settings: TurnSettings, owner: str) -> TurnSettings:
        """Return the settings of a turn, with the owner's caps where the settings have none."""
        chosen = await self.of(owner)
        missing = {name: value for name, value in chosen if value is not None and getattr(settings, name) is None}
        return settings.model_copy(update=missing) if missing else settings

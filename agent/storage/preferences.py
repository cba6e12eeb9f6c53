"""What a person chose for good: their caps, what a new conversation begins with, and their presets. Private files with
an entry for each owner."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Generic, TypeVar

from pydantic import BeforeValidator, TypeAdapter, ValidationError

from agent.errors import ErrorCode, RequestRefused
from agent.library import Preferences, Preset
from agent.settings import OPERATOR, Settings, TurnSettings
from agent.storage.private_files import file_state, locked_file, storage_failure, write_private_file

# On a shared link everybody with a cookie is an owner: whoever chose longest ago is forgotten first.
_MOST_OWNERS = 2000
MOST_PRESETS = 40
MAX_PRESET_NAME_CHARACTERS = 60

_PRESETS_NAME = "presets.json"


def _readable(value: object) -> object:
    """Return a list without the presets that this version cannot read: the others are still good."""
    return [one for one in value if _is_preset(one)] if isinstance(value, list) else value


def _is_preset(value: object) -> bool:
    try:
        Preset.model_validate(value)
    except ValidationError:
        return False
    return True


_Presets = Annotated[tuple[Preset, ...], BeforeValidator(_readable)]
_PRESETS_FILE: TypeAdapter[dict[str, tuple[Preset, ...]]] = TypeAdapter(dict[str, _Presets])


class PresetStore:
    """The presets of every owner, each in the order in which they were made. Every change raises StorageFailure."""

    def __init__(self, home: Path) -> None:
        self._file = OwnerFile(home / _PRESETS_NAME, _PRESETS_FILE, _MOST_OWNERS)

    async def of(self, owner: str) -> tuple[Preset, ...]:
        """Return the owner's presets."""
        return await self._file.of(owner) or ()

    async def find(self, owner: str, preset_id: str) -> Preset:
        """Return one of the owner's. Raises RequestRefused(PRESET_NOT_FOUND)."""
        return _one(await self.of(owner), preset_id)

    async def save(self, owner: str, name: str, settings: TurnSettings) -> Preset:
        """Keep settings under a name; what had that name is replaced, and keeps its place.

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
        """Give one another name. Raises RequestRefused: PRESET_NAME_INVALID, PRESET_NAME_TAKEN, PRESET_NOT_FOUND."""
        wanted = checked_name(name)

        def renamed(kept: tuple[Preset, ...]) -> tuple[Preset, ...]:
            _one(kept, preset_id)
            if any(one.id != preset_id and _same_name(one, wanted) for one in kept):
                raise RequestRefused(ErrorCode.PRESET_NAME_TAKEN, name=wanted)
            return tuple(one.model_copy(update={"name": wanted}) if one.id == preset_id else one for one in kept)

        return _one(await self._change(owner, renamed), preset_id)

    async def delete(self, owner: str, preset_id: str) -> Preset:
        """Return one after it was deleted: `restore` brings it back. Raises RequestRefused(PRESET_NOT_FOUND)."""
        gone: list[Preset] = []

        def without(kept: tuple[Preset, ...]) -> tuple[Preset, ...]:
            gone.append(_one(kept, preset_id))
            return tuple(one for one in kept if one.id != preset_id)

        await self._change(owner, without)
        return gone[-1]

    async def restore(self, owner: str, preset: Preset) -> None:
        """Bring a deleted one back. Raises RequestRefused: PRESET_NAME_TAKEN, TOO_MANY_PRESETS."""

        def back(kept: tuple[Preset, ...]) -> tuple[Preset, ...]:
            if any(one.id == preset.id or _same_name(one, preset.name) for one in kept):
                raise RequestRefused(ErrorCode.PRESET_NAME_TAKEN, name=preset.name)
            return _with(kept, preset)

        await self._change(owner, back)

    async def hand_over(self, owner: str, new_owner: str) -> None:
        """Give an owner's presets to another one, as many as there is room for; their own of the same name stay."""
        given = await self.of(owner)

        def joined(kept: tuple[Preset, ...]) -> tuple[Preset, ...]:
            coming = [one for one in given if not any(_same_name(theirs, one.name) for theirs in kept)]
            return (*kept, *coming)[:MOST_PRESETS]

        if given:
            await self._change(new_owner, joined)

    async def _change(self, owner: str, work: Callable[[tuple[Preset, ...]], tuple[Preset, ...]]) -> tuple[Preset, ...]:
        return await self._file.change(owner, lambda kept: work(kept or ()))


def checked_name(name: str) -> str:
    """Return the name in one line, without space around it. Raises RequestRefused(PRESET_NAME_INVALID)."""
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

# How the names of owners begin whom only a cookie tells apart.
VISITOR = "visitor-"


class OwnerFile(Generic[T]):
    """The entries of all owners, of the `most_owners` that changed theirs last.

    The operator's is never let go of, and visitors' go before those of people with an account: anybody who comes can
    make themselves as many visitors as they like. The file is read again once it was written, by this process or by
    another one, and changed by one of them at a time. One whose words make no sense counts as empty, and is put aside
    as `….bad` when it is written anew.
    """

    def __init__(self, path: Path, adapter: TypeAdapter[dict[str, T]], most_owners: int) -> None:
        self._path = path
        self._adapter = adapter
        self._most_owners = most_owners
        self._kept: tuple[object, dict[str, T]] | None = None

    async def of(self, owner: str) -> T | None:
        """Return the owner's entry, None when there is none, or while the file cannot be read."""
        if self._kept is None or self._kept[0] != file_state(self._path):
            await asyncio.to_thread(self._load)
        return self._kept[1].get(owner) if self._kept is not None else None

    async def change(self, owner: str, work: Callable[[T | None], T]) -> T:
        """Put what `work` makes of the owner's entry in its place, and return it; it survives a restart then.

        What `work` raises leaves the file as it was. Raises StorageFailure.
        """
        return await asyncio.to_thread(self._change_now, owner, work)

    async def hand_over(self, owner: str, new_owner: str) -> None:
        """Give an owner's entry to another one who has none. Raises StorageFailure."""
        given = await self.of(owner)
        if given is not None:
            await self.change(new_owner, lambda kept: given if kept is None else kept)

    def _load(self) -> None:
        # Before it is read: what is written meanwhile is read the next time.
        state = file_state(self._path)
        try:
            self._kept = state, self._read() or {}
        except OSError as error:
            # Perhaps it can be read the next time.
            _log.warning("%s cannot be read: %s", self._path.name, error.strerror)

    def _change_now(self, owner: str, work: Callable[[T | None], T]) -> T:
        try:
            with locked_file(self._path):
                found = self._read()
                kept = found or {}
                entry = work(kept.pop(owner, None))
                newest = _newest({**kept, owner: entry}, self._most_owners)
                if found is None:
                    os.replace(self._path, self._path.with_name(f"{self._path.name}.bad"))
                write_private_file(
                    self._path, json.dumps(self._adapter.dump_python(newest, mode="json"), indent=1).encode()
                )
                self._kept = file_state(self._path), newest
                return entry
        except OSError as error:
            raise storage_failure(error) from error

    def _read(self) -> dict[str, T] | None:
        """Return the entries, None when the file's words make no sense. Raises OSError."""
        try:
            return self._adapter.validate_json(self._path.read_bytes())
        except FileNotFoundError:
            return {}
        except ValidationError:
            _log.warning("%s is unreadable and counts as empty", self._path.name)
            return None


def _newest(kept: dict[str, T], most: int) -> dict[str, T]:
    """Return the entries without those that are too many; the last ones are the newest."""
    *old, _ = kept
    visitors_first = sorted((one for one in old if one != OPERATOR), key=lambda one: not one.startswith(VISITOR))
    gone = set(visitors_first[: max(0, len(kept) - most)])
    return {owner: entry for owner, entry in kept.items() if owner not in gone}


_NAME = "preferences.json"
_DEFAULTS = "defaults.json"


_FILE = TypeAdapter(dict[str, Preferences])
_DEFAULTS_FILE = TypeAdapter(dict[str, TurnSettings | None])


class PreferenceStore:
    """The preferences of every owner; whoever has chosen nothing has the operator's. `presets` are theirs as well."""

    def __init__(self, settings: Settings) -> None:
        self.presets = PresetStore(settings.home)
        self._file = OwnerFile(settings.home / _NAME, _FILE, _MOST_OWNERS)
        self._defaults = OwnerFile(settings.home / _DEFAULTS, _DEFAULTS_FILE, _MOST_OWNERS)
        self._default = Preferences(
            cap_conversation_usd=settings.cap_conversation_usd, cap_day_usd=settings.cap_day_usd
        )

    async def of(self, owner: str) -> Preferences:
        """Return what the owner chose, else the operator's."""
        chosen = await self._file.of(owner)
        return self._default if chosen is None else chosen

    async def keep(self, owner: str, chosen: Preferences) -> None:
        """Keep what the owner chose; it survives a restart when this returns. Raises StorageFailure."""
        await self._file.change(owner, lambda _: chosen)

    async def defaults(self, owner: str) -> TurnSettings | None:
        """Return the settings that the owner has every new conversation begin with, if they chose any."""
        return await self._defaults.of(owner)

    async def keep_defaults(self, owner: str, settings: TurnSettings | None) -> None:
        """Keep what the owner has every new conversation begin with, None for nothing. Raises StorageFailure."""
        await self._defaults.change(owner, lambda _: settings)

    async def hand_over(self, owner: str, new_owner: str) -> None:
        """Give what an owner chose to another one, who keeps what they chose themselves. Raises StorageFailure."""
        await self.presets.hand_over(owner, new_owner)
        for file in (self._file, self._defaults):
            await file.hand_over(owner, new_owner)

    async def applied(self, settings: TurnSettings, owner: str) -> TurnSettings:
        """Return the settings of a turn with the owner's caps where they name none."""
        chosen = await self.of(owner)
        missing = {name: value for name, value in chosen if value is not None and getattr(settings, name) is None}
        return settings.model_copy(update=missing) if missing else settings

"""A person's presets: settings of a turn under a name of their own, in a private file beside the preferences."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

from pydantic import BeforeValidator, TypeAdapter, ValidationError

from agent.errors import ErrorCode, RequestRefused
from agent.library import Preset
from agent.settings import TurnSettings
from agent.storage.owner_file import OwnerFile

MOST_PRESETS = 40
MAX_PRESET_NAME_CHARACTERS = 60

_NAME = "presets.json"
# As many owners as have preferences; whoever changed theirs longest ago is forgotten first.
_MOST_OWNERS = 2000


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
_FILE: TypeAdapter[dict[str, tuple[Preset, ...]]] = TypeAdapter(dict[str, _Presets])


class PresetStore:
    """The presets of every owner, each in the order in which they were made. Every change raises StorageFailure."""

    def __init__(self, home: Path) -> None:
        self._file = OwnerFile(home / _NAME, _FILE, _MOST_OWNERS)

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

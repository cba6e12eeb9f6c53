"""What a person chose for good: their caps, what a new conversation begins with, and their presets. Private files with
an entry for each owner."""

from __future__ import annotations

from pydantic import TypeAdapter

from agent.library import Preferences
from agent.settings import Settings, TurnSettings
from agent.storage.owner_file import OwnerFile
from agent.storage.presets import PresetStore

_NAME = "preferences.json"
_DEFAULTS = "defaults.json"
# On a shared link everybody with a cookie is an owner: whoever chose longest ago is forgotten first.
_MOST_OWNERS = 2000


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

    async def applied(self, settings: TurnSettings, owner: str) -> TurnSettings:
        """Return the settings of a turn with the owner's caps where they name none."""
        chosen = await self.of(owner)
        missing = {name: value for name, value in chosen if value is not None and getattr(settings, name) is None}
        return settings.model_copy(update=missing) if missing else settings

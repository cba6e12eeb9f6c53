"""What a person chose for good: their caps. One small private file below the home, a line for each owner."""

from __future__ import annotations

import asyncio
import json
import logging
import threading

from pydantic import Field, TypeAdapter, ValidationError

from agent.messages import Value
from agent.settings import Settings, TurnSettings
from agent.storage.private_files import storage_failure, write_private_file

_NAME = "preferences.json"
# On a shared link everybody with a cookie is an owner: whoever chose longest ago is forgotten first.
_MOST_OWNERS = 2000

_log = logging.getLogger(__name__)


class Preferences(Value):
    """The caps that a person is asked at, in US dollars; None is no cap."""

    cap_conversation_usd: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    cap_day_usd: float | None = Field(default=None, ge=0, allow_inf_nan=False)


_FILE = TypeAdapter(dict[str, Preferences])


class PreferenceStore:
    """The preferences of every owner; whoever has chosen nothing has the operator's.

    The file is read when first needed and again before each change. One that cannot be read counts as empty.
    """

    def __init__(self, settings: Settings) -> None:
        self._path = settings.home / _NAME
        self._default = Preferences(
            cap_conversation_usd=settings.cap_conversation_usd, cap_day_usd=settings.cap_day_usd
        )
        self._kept: dict[str, Preferences] | None = None
        self._lock = threading.Lock()

    async def of(self, owner: str) -> Preferences:
        """Return what the owner chose, else the operator's."""
        if self._kept is None:
            await asyncio.to_thread(self._load)
        return (self._kept or {}).get(owner, self._default)

    async def keep(self, owner: str, chosen: Preferences) -> None:
        """Keep what the owner chose; it survives a restart when this returns. Raises StorageFailure."""
        await asyncio.to_thread(self._keep_now, owner, chosen)

    async def applied(self, settings: TurnSettings, owner: str) -> TurnSettings:
        """Return the settings of a turn with the owner's caps where they name none."""
        chosen = await self.of(owner)
        missing = {name: value for name, value in chosen if value is not None and getattr(settings, name) is None}
        return settings.model_copy(update=missing) if missing else settings

    def _load(self) -> None:
        with self._lock:
            if self._kept is None:
                self._kept = self._read()

    def _keep_now(self, owner: str, chosen: Preferences) -> None:
        with self._lock:
            kept = self._read()
            kept.pop(owner, None)
            kept[owner] = chosen
            newest = dict(list(kept.items())[-_MOST_OWNERS:])
            data = json.dumps(_FILE.dump_python(newest, mode="json"), indent=1).encode()
            try:
                write_private_file(self._path, data)
            except OSError as error:
                raise storage_failure(error) from error
            self._kept = newest

    def _read(self) -> dict[str, Preferences]:
        try:
            return _FILE.validate_json(self._path.read_bytes())
        except FileNotFoundError:
            return {}
        except OSError as error:
            _log.warning("%s cannot be read: %s", _NAME, error.strerror)
        except ValidationError:
            _log.warning("%s is unreadable and counts as empty", _NAME)
        return {}

"""What the tools of servers were like when they were first seen, or last allowed: a changed one is asked about again.

One small private file below the home. A description is what a server says of itself; one that was looked at once must
not become another unnoticed.
"""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from collections.abc import Mapping
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from agent.errors import StorageFailure
from agent.messages import Value
from agent.storage.private_files import storage_failure, write_private_file

_NAME = "mcp_tools.json"
# A server that gives its tools new names for ever must not fill the disk; those it named longest ago are forgotten.
_MOST_TOOLS = 512

_log = logging.getLogger(__name__)


class Pin(Value):
    """The fingerprint of a tool that may be called as before, and the one that the person was asked about last."""

    known: str
    asked: str = ""


_FILE = TypeAdapter(dict[str, dict[str, Pin]])


class Pins:
    """The fingerprints of every server's tools, by the server's name and the tool's.

    What cannot be written is kept for this run: it is told to the log, and no call fails by it.
    """

    def __init__(self, home: Path) -> None:
        self._path = home / _NAME
        self._kept: dict[str, dict[str, Pin]] | None = None
        self._lock = threading.Lock()

    async def see(self, server: str, fingerprints: Mapping[str, str]) -> None:
        """Pin the tools that were never seen before as they are now."""
        pins = {name: Pin(known=one) for name, one in fingerprints.items()}
        await asyncio.to_thread(self._change, server, pins, is_first_sight=True)

    def is_changed(self, server: str, tool: str, fingerprint: str) -> bool:
        """Return whether the tool is not what it was when it was seen first, or allowed last."""
        return self._pin(server, tool).known != fingerprint

    async def ask(self, server: str, tool: str, fingerprint: str) -> None:
        """Note that the person is asked about the tool as it is now."""
        pin = self._pin(server, tool).model_copy(update={"asked": fingerprint})
        await asyncio.to_thread(self._change, server, {tool: pin})

    async def allow(self, server: str, tool: str, fingerprint: str) -> bool:
        """Return whether the tool may run as it is now, and pin it when the person has just allowed it so."""
        pin = self._pin(server, tool)
        if pin.known == fingerprint:
            return True
        if pin.asked != fingerprint:
            return False
        await asyncio.to_thread(self._change, server, {tool: Pin(known=fingerprint)})
        return True

    def _pin(self, server: str, tool: str) -> Pin:
        return (self._kept or {}).get(server, {}).get(tool, Pin(known=""))

    def _change(self, server: str, pins: Mapping[str, Pin], *, is_first_sight: bool = False) -> None:
        with self._lock:
            if self._kept is None:
                self._kept = self._read()
            before = self._kept.get(server, {})
            known = {**pins, **before} if is_first_sight else {**before, **pins}
            # What was seen just now comes last, and is what is kept.
            after = {tool: known[tool] for tool in (*(one for one in before if one not in pins), *pins)}
            if after == before:
                return
            kept = dict(list(after.items())[-_MOST_TOOLS:])
            self._kept = {**self._kept, server: kept}
            try:
                self._write(self._kept)
            except StorageFailure as error:
                _log.warning("%s cannot be written and holds until the end of this run: %s", _NAME, error)

    def _write(self, kept: Mapping[str, Mapping[str, Pin]]) -> None:
        plain = {
            server: {tool: pin.model_dump(exclude_defaults=True) for tool, pin in tools.items()}
            for server, tools in kept.items()
        }
        try:
            write_private_file(self._path, json.dumps(plain, indent=1).encode())
        except OSError as error:
            raise storage_failure(error) from error

    def _read(self) -> dict[str, dict[str, Pin]]:
        try:
            return _FILE.validate_json(self._path.read_bytes())
        except FileNotFoundError:
            return {}
        except OSError as error:
            _log.warning("%s cannot be read: %s", _NAME, error.strerror)
        except ValidationError:
            _log.warning("%s is unreadable and counts as empty", _NAME)
        return {}

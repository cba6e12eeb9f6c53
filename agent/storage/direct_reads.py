"""Single values read from the database on the event loop itself: for so little a change of thread would cost more.

A reader of SQLite's log ahead waits for nobody. A database elsewhere would be asked over the network: whoever calls
these awaits them already.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

_NAME = "aivista.db"
_VERSION = "SELECT version FROM conversations WHERE id = ?"
_TO_STOP = "SELECT id FROM turns WHERE runner = ? AND is_stop_requested = 1"
_OF_REQUEST = "SELECT id FROM turns WHERE conversation_id = ? AND request_id = ?"


class DirectReads:
    """Reads from the database of a home, which is there already. None says that it could not be told just now."""

    def __init__(self, home: Path) -> None:
        self._connection = sqlite3.connect(home / _NAME, timeout=0.0, isolation_level=None, check_same_thread=False)
        self._connection.execute("PRAGMA query_only=ON")

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def version(self, conversation_id: str) -> int | None:
        """Return the version of a conversation, None also where there is none."""
        found: int | None = self._one(_VERSION, conversation_id)
        return found

    def turn_of_request(self, conversation_id: str, request_id: str) -> str | None:
        """Return the turn that was sent under this name, None also where there is none."""
        found: str | None = self._one(_OF_REQUEST, conversation_id, request_id)
        return found

    def turns_to_stop(self, runner: str) -> tuple[str, ...]:
        """Return the turns of a process that somebody stopped in another one."""
        return tuple(row[0] for row in self._rows(_TO_STOP, runner))

    def changes(self) -> int | None:
        """Return a number that is another one after anybody has written to the database."""
        found: int | None = self._one("PRAGMA data_version")
        return found

    def _one(self, statement: str, *values: str) -> Any:
        rows = self._rows(statement, *values)
        return rows[0][0] if rows else None

    def _rows(self, statement: str, *values: str) -> list[Any]:
        try:
            # All of them: a statement that is not read to its end keeps the log from being folded in.
            return self._connection.execute(statement, values).fetchall()
        except sqlite3.Error:
            # Locked for a moment, or broken: whoever asks takes the way that tells why.
            return []

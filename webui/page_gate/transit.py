"""The folder that files pass through on their way from a browser: whose they are, and how much of it each may fill."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

KEPT_S = 2 * 3600.0
_MOST_BYTES = 4 << 30
_MOST_BYTES_OF_ONE = 400 << 20


@dataclass(frozen=True)
class _Sent:
    name: str
    size_bytes: int
    at_s: float


@dataclass
class Transit:
    """The uploads below a folder. After `KEPT_S` they are gone; `clock` tells Unix seconds.

    A file belongs to whoever has sent it: its path can be told from its content, so that knowing it proves nothing.
    """

    folder: Path
    most_bytes: int = _MOST_BYTES
    most_bytes_of_one: int = _MOST_BYTES_OF_ONE
    clock: Callable[[], float] = time.time
    _sent: list[_Sent] = field(default_factory=list)
    _senders: dict[str, set[str]] = field(default_factory=dict)

    def room_of(self, name: str) -> int:
        """Return how many bytes somebody may send now, of what they may in all."""
        now = self.clock()
        self._sent = [one for one in self._sent if now - one.at_s < KEPT_S]
        return self.most_bytes_of_one - sum(one.size_bytes for one in self._sent if one.name == name)

    def room(self) -> int:
        """Return how many bytes fit into the folder. Blocks: what is too old is removed first, whoever left it."""
        now, taken = self.clock(), 0
        for entry in _files(self.folder):
            with suppress(OSError):
                state = entry.stat(follow_symlinks=False)
                if now - state.st_mtime > KEPT_S:
                    os.unlink(entry.path)
                else:
                    taken += state.st_size
        self._senders = {path: names for path, names in self._senders.items() if os.path.exists(path)}
        return self.most_bytes - taken

    def note(self, name: str, size_bytes: int) -> None:
        """Count what somebody has sent, whether it came to its end or not."""
        self._sent.append(_Sent(name, size_bytes, self.clock()))

    def keep(self, name: str, path: str) -> None:
        """Remember whose a file is; several may have sent the same."""
        self._senders.setdefault(os.path.realpath(path), set()).add(name)

    def is_of(self, path: str, name: str) -> bool:
        """Whether a file is theirs, or was not sent by anybody: that one Gradio looks after."""
        senders = self._senders.get(os.path.realpath(path))
        return senders is None or name in senders


def _files(folder: Path) -> Iterator[os.DirEntry[str]]:
    try:
        entries = list(os.scandir(folder))
    except OSError:
        return
    for entry in entries:
        if entry.is_dir(follow_symlinks=False):
            yield from _files(Path(entry.path))
        else:
            yield entry

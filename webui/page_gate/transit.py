"""The folder that files pass through on their way from a browser: whose they are, and how much of it each may fill."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import anyio.to_thread

from webui.page_gate.comers import Comer

KEPT_S = 2 * 3600.0
_MOST_BYTES = 4 << 30
_MOST_BYTES_OF_ONE = 400 << 20
# Less than all even for a crowd whose addresses are not known: something is left for the operator.
_OF_ONE_ADDRESS, _OF_UNKNOWN = 4, 8


@dataclass
class Sending:
    """An upload: from whom, and how large it is; while it is under way, how large it may become."""

    name: str
    crowd: str
    size_bytes: int
    at_s: float
    is_under_way: bool = True


@dataclass
class _Kept:
    at_s: float
    names: set[str] = field(default_factory=set)


@dataclass
class Transit:
    """The uploads below a folder. After `KEPT_S` they are gone; `clock` tells Unix seconds.

    A file belongs to whoever has sent it: its path can be told from its content, so that knowing it proves nothing.
    All but the scan of the folder is for the event loop alone.
    """

    folder: Path
    most_bytes: int = _MOST_BYTES
    most_bytes_of_one: int = _MOST_BYTES_OF_ONE
    clock: Callable[[], float] = time.time
    _sent: list[Sending] = field(default_factory=list)
    _kept: dict[str, _Kept] = field(default_factory=dict)

    async def room(self) -> int:
        """Return how many bytes fit into the folder. What is too old is removed first, whoever left it."""
        taken = await anyio.to_thread.run_sync(_cleared, self.folder, self.clock() - KEPT_S)
        since = self.clock() - KEPT_S
        self._sent = [one for one in self._sent if one.is_under_way or one.at_s > since]
        # A file that was sent again meanwhile is young again, however old the scan found it.
        self._kept = {path: one for path, one in self._kept.items() if one.at_s > since}
        return self.most_bytes - taken - sum(one.size_bytes for one in self._sent if one.is_under_way)

    def room_of(self, comer: Comer) -> int:
        """Return how many bytes somebody may send now, of what they and their crowd may in all."""
        since = self.clock() - KEPT_S
        sent = [one for one in self._sent if one.is_under_way or one.at_s > since]
        own = sum(one.size_bytes for one in sent if one.name == comer.name)
        crowd = sum(one.size_bytes for one in sent if one.crowd == comer.crowd)
        times = _OF_UNKNOWN if comer.address is None else _OF_ONE_ADDRESS
        return min(self.most_bytes_of_one - own, self.most_bytes_of_one * times - crowd)

    def begin(self, comer: Comer, most_bytes: int) -> Sending:
        """Count what somebody begins to send as though all of it were there: others send at the same time."""
        sending = Sending(comer.name, comer.crowd, most_bytes, self.clock())
        self._sent.append(sending)
        return sending

    def end(self, sending: Sending, size_bytes: int) -> None:
        """Count what has come of it, whether it came to its end or not."""
        sending.size_bytes, sending.at_s, sending.is_under_way = size_bytes, self.clock(), False

    def keep(self, name: str, path: str) -> None:
        """Remember whose a file is; several may have sent the same."""
        kept = self._kept.setdefault(os.path.realpath(path), _Kept(self.clock()))
        kept.at_s = self.clock()
        kept.names.add(name)

    def is_of(self, path: str, name: str) -> bool:
        """Whether a file is theirs: they sent it. What lies elsewhere Gradio looks after."""
        try:
            found = os.path.realpath(path)
        except ValueError:
            # A NUL, or half of a character: no file is called so.
            return False
        if not Path(found).is_relative_to(self.folder):
            return True
        kept = self._kept.get(found)
        return kept is not None and name in kept.names


def _cleared(folder: Path, before_s: float) -> int:
    """Remove what is older; return the size of the rest."""
    taken = 0
    for entry in _files(folder):
        with suppress(OSError):
            state = entry.stat(follow_symlinks=False)
            if state.st_mtime < before_s:
                os.unlink(entry.path)
            else:
                taken += state.st_size
    return taken


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

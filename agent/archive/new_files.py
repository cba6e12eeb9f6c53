"""Which files of the studio's home an import brought, so that they can go again when it comes to nothing."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Set
from pathlib import Path

_FOLDERS = ("pictures", "blobs")


class NewFiles:
    """Files named by digests that were not there before. Calls block: run them on a thread."""

    def __init__(self, home: Path, digests: Iterable[str]) -> None:
        self._home = home
        self._digests = [digest for digest in digests if not any(self._files_of(digest))]

    def remove(self, spared: Set[str]) -> None:
        """Remove the files that came since, with what was made from them, but for those of some digests."""
        for digest in self._digests:
            for path in self._files_of(digest) if digest not in spared else ():
                with contextlib.suppress(OSError):
                    path.unlink()

    def _files_of(self, digest: str) -> list[Path]:
        return [path for name in _FOLDERS for path in (self._home / name / digest[:2]).glob(f"{digest}*")]

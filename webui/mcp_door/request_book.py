"""In which conversation a request was begun: a client that calls again, even after a restart, is led back there."""

from __future__ import annotations

import hashlib
import os
import time
from pathlib import Path

from agent import make_private_folder, storage_failure, write_private_file

_FOLDER = "mcp_requests"
_KEPT_S = 7 * 24 * 3600.0
_WRITING_S = 0.05


class RequestBook:
    """One small file for each request that began a conversation, so that several servers can share a home.

    Requests of a week ago are forgotten. Every call touches the disk: call it in a thread.
    """

    def __init__(self, home: Path) -> None:
        self._folder = home / _FOLDER

    def conversation_of(self, owner: str, request_id: str) -> str | None:
        """Return the conversation that the request began, None for a new one. Raises StorageFailure."""
        try:
            return self._path(owner, request_id).read_text("ascii") or None
        except FileNotFoundError:
            return None
        except OSError as error:
            raise storage_failure(error) from error

    def begin(self, owner: str, request_id: str, conversation_id: str) -> str:
        """Return the conversation that the request belongs to: this one, or that of whoever was first.

        Raises StorageFailure.
        """
        path = self._path(owner, request_id)
        try:
            make_private_folder(path.parent)
            try:
                descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            except FileExistsError:
                return self._first(path, conversation_id)
            with open(descriptor, "wb") as file:
                file.write(conversation_id.encode("ascii"))
                file.flush()
                os.fsync(descriptor)
        except OSError as error:
            raise storage_failure(error) from error
        return conversation_id

    def forget_old(self) -> None:
        """Remove the requests of more than a week ago. What cannot be removed stays."""
        before_s = time.time() - _KEPT_S
        try:
            for path in self._folder.iterdir():
                if path.stat().st_mtime < before_s:
                    path.unlink(missing_ok=True)
        except OSError:
            return

    def _first(self, path: Path, conversation_id: str) -> str:
        """Return what stands in a file that is there already."""
        written = path.read_text("ascii")
        if not written:
            # It is being written this moment, or its writer died before the turn began.
            time.sleep(_WRITING_S)
            written = path.read_text("ascii")
        if not written:
            write_private_file(path, conversation_id.encode("ascii"))
        return written or conversation_id

    def _path(self, owner: str, request_id: str) -> Path:
        name = hashlib.sha256(f"{owner}\n{request_id}".encode("utf-8", "surrogatepass")).hexdigest()
        return self._folder / name

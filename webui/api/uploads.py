"""Pictures and masks that were sent ahead, to be named in a turn: in memory, for an hour, for their owner alone."""

from __future__ import annotations

import base64
import binascii
import re
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from agent import MAX_MESSAGE_MEGABYTES, OPERATOR
from webui.api.problems import RefusalCode, Refused

KEPT_S = 3600.0
# The studio's owner may send a whole message ahead, anybody else three pictures.
MOST_BYTES_OF_OPERATOR = MAX_MESSAGE_MEGABYTES << 20
MOST_BYTES_OF_ONE_OWNER = 64 << 20
MOST_BYTES = 512 << 20
_DATA_URL = re.compile(r"data:image/[a-z0-9.+-]{1,40}(?:;[a-z0-9=._-]{1,40})*;base64,", re.IGNORECASE)
_UPLOAD_ID = re.compile(r"up_[0-9a-f]{32}")


@dataclass(frozen=True)
class Upload:
    """A file that was sent ahead."""

    owner: str
    name: str
    data: bytes
    until_s: float


@dataclass
class Uploads:
    """The uploads of every owner; when there is no room, the owner's oldest go first. `clock` tells seconds."""

    clock: Callable[[], float] = time.time
    _kept: dict[str, Upload] = field(default_factory=dict)

    def put(self, owner: str, name: str, data: bytes) -> tuple[str, float]:
        """Return the id under which the owner names the file, and until when, as a Unix time."""
        now = self.clock()
        self._kept = {one: kept for one, kept in self._kept.items() if kept.until_s > now}
        upload_id = f"up_{secrets.token_hex(16)}"
        self._kept[upload_id] = Upload(owner, name, data, now + KEPT_S)
        own = [one for one, kept in self._kept.items() if kept.owner == owner]
        self._make_room(own, MOST_BYTES_OF_OPERATOR if owner == OPERATOR else MOST_BYTES_OF_ONE_OWNER)
        self._make_room(list(self._kept), MOST_BYTES)
        return upload_id, now + KEPT_S

    def get(self, owner: str, upload_id: str) -> Upload:
        """Return the owner's upload. Raises Refused(UPLOAD_GONE)."""
        found = self._kept.get(upload_id)
        if found is None or found.owner != owner or found.until_s <= self.clock():
            raise Refused(RefusalCode.UPLOAD_GONE, id=upload_id[:40])
        return found

    def read(self, owner: str, written: str) -> tuple[str, bytes]:
        """Return name and bytes of what a request names: an upload, or a data URL, whose name is empty.

        Raises Refused: UPLOAD_GONE; DATA_URLS_ONLY for any other address, which is never fetched.
        """
        if _UPLOAD_ID.fullmatch(written):
            upload = self.get(owner, written)
            return upload.name, upload.data
        return "", data_of(written)

    def _make_room(self, names: list[str], most_bytes: int) -> None:
        # The newest stays whatever its size: one file is smaller than the room.
        while len(names) > 1 and sum(len(self._kept[name].data) for name in names) > most_bytes:
            del self._kept[names.pop(0)]


def data_of(url: str) -> bytes:
    """Return the bytes of a picture's data URL. Raises Refused(DATA_URLS_ONLY)."""
    head = _DATA_URL.match(url)
    if head is None:
        raise Refused(RefusalCode.DATA_URLS_ONLY)
    try:
        return base64.b64decode(url[head.end() :], validate=True)
    except (binascii.Error, ValueError):
        raise Refused(RefusalCode.DATA_URLS_ONLY) from None

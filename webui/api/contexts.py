"""Which conversation a context that a caller sends is: contexts by digest, each a place where a turn can follow.

A caller of the direct mode sends the whole context with every call. Played as it comes, it would have the pictures sent
anew each time, and would lose what only a conversation has: thought signatures, facts, handles, receipts, lineage. So
the first context that is seen becomes a conversation: each message of the person's a turn, each picture an upload with
a handle. When a turn has ended there, the digest of what the caller will send next (the context, the person's message,
the answer as it was streamed) names the place after it. A call that repeats exactly that goes on there, and history
pictures are placeholders and are recalled as in any conversation, because it is one.

A place is taken when it is used: of two calls with the same context, the second gets a conversation of its own made
from what it sent. A turn that failed or was stopped gives its place back, and the next try stands instead of it. A
context that was changed by a letter, and one that is older than the process, is a new conversation.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from agent import ContextMessage

_MOST = 2000


@dataclass(frozen=True)
class Place:
    """Where a turn can follow in a conversation: after the turn `newest`, or, when that one failed, instead of it."""

    conversation_id: str
    newest: str | None
    is_instead: bool = False


@dataclass
class Contexts:
    """The places that contexts name; the oldest are forgotten first."""

    _places: dict[tuple[str, str], Place] = field(default_factory=dict)

    def take(self, owner: str, digest: str) -> Place | None:
        """Return the place that a context names, which from now on is the caller's alone."""
        found = self._places.get((owner, digest))
        if found is not None:
            self._places = {name: place for name, place in self._places.items() if place is not found}
        return found

    def keep(self, owner: str, digests: Iterable[str], place: Place) -> None:
        """Have these contexts name the place."""
        for digest in digests:
            self._places.pop((owner, digest), None)
            self._places[owner, digest] = place
        while len(self._places) > _MOST:
            del self._places[next(iter(self._places))]


def digest_of(told: Sequence[ContextMessage]) -> str:
    """Return the digest of a context. How its words are spaced makes no difference; its pictures count by content."""
    return digest_of_lines([line_of(one.is_person, one.text, map(sha256_of, picture_bytes(one))) for one in told])


def digest_of_lines(lines: Sequence[str]) -> str:
    """Return the digest of messages that are lines already."""
    return hashlib.sha256("\n".join(lines).encode("utf-8", "surrogatepass")).hexdigest()


def line_of(is_person: bool, text: str, picture_digests: Iterable[str]) -> str:
    """Return what of a message counts for the digest."""
    return json.dumps([is_person, " ".join(text.split()), list(picture_digests)])


def picture_bytes(told: ContextMessage) -> list[bytes]:
    """Return the bytes of the message's pictures."""
    return [data for _, data in told.pictures]


def sha256_of(data: bytes) -> str:
    """Return the digest of a picture's bytes, which is its name in the image store as well."""
    return hashlib.sha256(data).hexdigest()

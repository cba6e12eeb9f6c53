"""What the server remembers of one open tab: who may write to it now, and what to give back to its composer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Returned:
    """Words and files that go back into the composer after a failure."""

    text: str
    files: Sequence[str] = ()

    @property
    def value(self) -> dict[str, object]:
        """The composer's value."""
        return {"text": self.text, "files": list(self.files)}


@dataclass
class Tab:
    """One open tab.

    A tab shows one stream at a time: whoever opens a conversation or sends a message takes over, and a stream that no
    longer holds the newest ticket stops writing.
    """

    ticket: int = 0
    returned: Returned | None = None

    def take_over(self) -> int:
        """Return a new ticket; all older ones are void."""
        self.ticket += 1
        return self.ticket

    def holds(self, ticket: int) -> bool:
        """Whether a stream with this ticket may still write."""
        return self.ticket == ticket

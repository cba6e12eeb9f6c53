"""What the server remembers of one open tab: who may write to it now, and what to give back to its composer."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

ECHO_S = 1.0
LEFT_S = 3.0
MOST_REQUEST_IDS = 20


@dataclass(frozen=True)
class Returned:
    """Words and files that go back into the composer after a failure."""

    text: str
    files: Sequence[str] = ()

    @property
    def value(self) -> dict[str, object]:
        """The composer's value."""
        return {"text": self.text, "files": list(self.files)}

    @property
    def unused(self) -> Returned | None:
        """What goes back after an answer that changed no picture, if anything does: what was painted over it."""
        return None


@dataclass
class Tab:
    """One open tab.

    A tab shows one stream at a time: whoever opens a conversation or sends a message takes over, and a stream that no
    longer holds the newest ticket stops writing. `streaming` is the ticket of the stream that it shows; `is_filled`
    says that the page's first fill was sent; `shown_turns` are the newest of those that it showed as they happened.
    """

    ticket: int = 0
    streaming: int | None = None
    is_filled: bool = False
    returned: Returned | None = None
    sent: Returned | None = None
    sent_at_s: float = 0.0
    request_ids: tuple[str, ...] = ()
    shown_turns: tuple[str, ...] = ()
    told_maximum: tuple[str, float] | None = None
    """The maximum that was last told beside Send, and a sign of the chips that it was told for."""
    left: tuple[str, float] = ("", 0.0)
    """The conversation that was open before this one, and when it was left."""

    def leave(self, conversation_id: str) -> None:
        """Remember that another conversation is opened in the place of this one."""
        self.left = conversation_id, time.monotonic()

    def has_just_left(self, conversation_id: str) -> bool:
        """Whether this conversation was open a moment ago: what was asked of it may still be on its way."""
        left, at_s = self.left
        return left == conversation_id and time.monotonic() - at_s < LEFT_S

    def take_over(self) -> int:
        """Return a new ticket; all older ones are void."""
        self.ticket += 1
        return self.ticket

    def holds(self, ticket: int) -> bool:
        """Whether a stream with this ticket may still write."""
        return self.ticket == ticket

    @property
    def is_streaming(self) -> bool:
        """Whether the tab shows a turn as it happens."""
        return self.streaming == self.ticket

    def has_shown(self, turn_id: str) -> None:
        """Remember that this tab shows a turn as it happens."""
        if turn_id and turn_id not in self.shown_turns:
            self.shown_turns = (*self.shown_turns, turn_id)[-MOST_REQUEST_IDS:]

    def is_repeated(self, request_id: str) -> bool:
        """Whether this press was sent already: the page gives one that was not taken yet the same id again."""
        is_known = request_id in self.request_ids
        self.request_ids = (*self.request_ids, request_id)[-MOST_REQUEST_IDS:]
        return is_known

    def is_echo(self, message: Returned, now_s: float) -> bool:
        """Whether this is the message just sent once more: Enter pressed twice before the composer was cleared."""
        is_same = message == self.sent and now_s - self.sent_at_s < ECHO_S
        self.sent, self.sent_at_s = message, now_s
        return is_same

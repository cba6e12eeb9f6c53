"""What the server remembers of open tabs: what each has sent, and what to give back to its composer."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from agent import TurnEvent

ECHO_S = 1.0
LEFT_S = 3.0
MOST_REQUEST_IDS = 20
MOST_UNDERWAY = 20
MOST_TABS = 2000


class Underway(Protocol):
    """A turn as the agent tells it."""

    @property
    def turn_id(self) -> str | None:
        """Its id, once it is on record."""
        ...

    @property
    def is_done(self) -> bool:
        """Whether its last event is there."""
        ...

    @property
    def before(self) -> int:
        """How many events were told before this part of it."""
        ...

    @property
    def events(self) -> Sequence[TurnEvent]:
        """What it has told."""
        ...


@dataclass(frozen=True)
class Returned:
    """What Send took out of the composer and of the painter, and what goes back after a failure."""

    text: str
    files: Sequence[str] = ()
    mask: str = ""
    expand: str = ""

    @property
    def value(self) -> dict[str, object]:
        """The composer's value."""
        return {"text": self.text, "files": list(self.files)}

    @property
    def unused(self) -> Returned | None:
        """What goes back after an answer that changed no picture: what was painted, if anything was. The agent asked
        back, and the next message is about the same part."""
        return Returned("", (), self.mask, self.expand) if self.mask or self.expand else None


@dataclass
class Tab:
    """One open tab. `ticket` is another one whenever a conversation is opened or a turn begins, and `underway` are the
    turns that it began, with what was sent for them."""

    ticket: int = 0
    underway: tuple[tuple[Underway, Returned | None], ...] = ()
    returned: Returned | None = None
    sent: Returned | None = None
    sent_at_s: float = 0.0
    request_ids: tuple[str, ...] = ()
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

    def begins(self, turn: Underway, sent: Returned | None) -> None:
        """Remember a turn that this tab began, and what was sent for it."""
        self.underway = (*self.underway, (turn, sent))[-MOST_UNDERWAY:]

    def ended(self, turn_id: str) -> tuple[Underway | None, Returned | None]:
        """Return a turn that this tab began and that is over, and what was sent for it; by its id, or without one the
        first that never was on record."""
        found = next((one for one in self.underway if (one[0].turn_id or "") == turn_id and one[0].is_done), None)
        if found is None:
            return None, None
        self.underway = tuple(one for one in self.underway if one is not found)
        return found

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


@dataclass
class Tabs:
    """The tabs of all visitors, each by the name that it has given itself; those that were not heard of for longest are
    forgotten."""

    _tabs: OrderedDict[tuple[str, str], Tab] = field(default_factory=OrderedDict)

    def of(self, owner: str, name: str) -> Tab:
        """Return a visitor's tab; of one without a name nothing is remembered."""
        if not name:
            return Tab()
        tab = self._tabs.setdefault((owner, name), Tab())
        self._tabs.move_to_end((owner, name))
        if len(self._tabs) > MOST_TABS:
            self._tabs.popitem(last=False)
        return tab

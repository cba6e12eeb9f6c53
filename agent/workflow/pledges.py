"""What turns are about to pay for pictures, and have been asked for: others count it before any answer has come.

It is known in this process only; what the turns of another one may come to is reserved in the database.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from weakref import WeakValueDictionary


@dataclass
class Pledge:
    """What one turn has taken upon itself, in US dollars: what is still to be asked for, and by call what was asked
    and not answered yet."""

    owner: str
    conversation_id: str
    due_usd: float = 0.0
    asked: dict[object, float] = field(default_factory=dict)

    @property
    def price_usd(self) -> float:
        """All of it."""
        return self.due_usd + sum(self.asked.values())


class Pledges:
    """The pledges of the running turns, by turn. `fulfilled` counts how often something of one was paid or let go of:
    from then on it is, or is not, among what was spent."""

    def __init__(self) -> None:
        self.fulfilled = 0
        self._pledges: dict[str, Pledge] = {}
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def weighing(self, owner: str) -> asyncio.Lock:
        """Return what is held from reading what the owner has spent until the pledge stands: one turn at a time."""
        return self._locks.setdefault(owner, asyncio.Lock())

    def give(self, turn_id: str, owner: str, conversation_id: str, price_usd: float) -> None:
        """Pledge so much in the turn's name, in place of what it has not asked for yet."""
        pledge = self._pledges.setdefault(turn_id, Pledge(owner, conversation_id))
        self.fulfilled += pledge.due_usd > price_usd
        pledge.due_usd = price_usd
        self._tidy(turn_id)

    @contextmanager
    def asking(self, turn_id: str, price_usd: float) -> Iterator[None]:
        """Hold a part of the turn's pledge, or all that is left of it, until its call has been answered."""
        pledge = self._pledges.get(turn_id)
        if pledge is None:
            yield
            return
        # Not by its name: when the turn is retried, a call of the same name may still be under way.
        call, part = object(), min(price_usd, pledge.due_usd)
        pledge.due_usd -= part
        pledge.asked[call] = part
        try:
            yield
        finally:
            self.fulfilled += 1
            del pledge.asked[call]
            self._tidy(turn_id)

    def let_go(self, turn_id: str) -> None:
        """Forget what the turn has not asked for. What it has asked for is paid, whatever becomes of the turn."""
        pledge = self._pledges.get(turn_id)
        if pledge is not None:
            self.fulfilled += 1
            pledge.due_usd = 0.0
            self._tidy(turn_id)

    def of_others(self, owner: str, turn_id: str) -> dict[str, Pledge]:
        """Return the pledges of the owner's other turns, by turn."""
        return {name: one for name, one in self._pledges.items() if one.owner == owner and name != turn_id}

    def _tidy(self, turn_id: str) -> None:
        if self._pledges[turn_id].price_usd <= 0 and not self._pledges[turn_id].asked:
            del self._pledges[turn_id]

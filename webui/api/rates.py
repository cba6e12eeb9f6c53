"""How often an owner may ask: a bucket each, filled at a steady rate."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

_MOST_OWNERS = 10_000


@dataclass
class Buckets:
    """A bucket for each owner that holds what may be asked in a minute, and is full at first. `clock` tells seconds."""

    per_minute: float
    clock: Callable[[], float] = time.monotonic
    _levels: dict[str, tuple[float, float]] = field(default_factory=dict)

    @property
    def most(self) -> float:
        """How much a full bucket holds: at least one, or nothing could ever be taken."""
        return max(1.0, self.per_minute)

    def take(self, owner: str) -> float:
        """Take one from the owner's bucket; return 0, or in how many seconds there will be one."""
        now = self.clock()
        level = self._level(owner, now)
        if level < 1:
            return (1 - level) * 60 / self.per_minute
        self._levels[owner] = (level - 1, now)
        if len(self._levels) > _MOST_OWNERS:
            self._levels = {one: kept for one, kept in self._levels.items() if self._level(one, now) < self.most}
        return 0.0

    def _level(self, owner: str, now: float) -> float:
        level, then = self._levels.get(owner, (self.most, now))
        return min(self.most, level + (now - then) * self.per_minute / 60)

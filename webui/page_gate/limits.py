"""How much strangers may ask: how often, and how many at once of what takes long and fills the disk."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from webui.api.auth import Buckets
from webui.page_gate.comers import Comer

_EVENTS_A_MINUTE, _UPLOADS_A_MINUTE = 300.0, 60.0
# Behind one address may be an office; where addresses are not known, everybody is in one crowd.
_OF_ONE_ADDRESS, _OF_UNKNOWN = 5, 20
_WAIT_S = 5


@dataclass(frozen=True)
class Rate:
    """How often one visitor may ask something, all behind one address together, and all whose address is not known."""

    own: Buckets
    of_address: Buckets
    of_unknown: Buckets

    @classmethod
    def of(cls, per_minute: float) -> Rate:
        """Return the rate for so much from one visitor."""
        return cls(Buckets(per_minute), Buckets(per_minute * _OF_ONE_ADDRESS), Buckets(per_minute * _OF_UNKNOWN))

    def wait_s(self, comer: Comer) -> float:
        """Count what they ask; return 0, or in how many seconds they may ask again."""
        wait_s = self.own.take(comer.name)
        if wait_s > 0:
            return wait_s
        crowd = self.of_unknown if comer.address is None else self.of_address
        return crowd.take(comer.crowd)


@dataclass
class AtWork:
    """What takes long and is under way: one for a visitor, a few for all of their crowd."""

    _names: set[str] = field(default_factory=set)
    _crowds: Counter[str] = field(default_factory=Counter)

    @contextmanager
    def one(self, comer: Comer) -> Iterator[float]:
        """Give 0 and count one more for as long as this is open, or give in how many seconds to ask again."""
        most = _OF_UNKNOWN if comer.address is None else _OF_ONE_ADDRESS
        if comer.name in self._names or self._crowds[comer.crowd] >= most:
            yield _WAIT_S
            return
        self._names.add(comer.name)
        self._crowds[comer.crowd] += 1
        try:
            yield 0
        finally:
            self._names.discard(comer.name)
            self._crowds[comer.crowd] -= 1
            # A Counter keeps what it counted down to nothing.
            self._crowds += Counter()


@dataclass
class Limits:
    """What one visitor may ask, and their crowd; the operator is not held by them."""

    events: Rate = field(default_factory=lambda: Rate.of(_EVENTS_A_MINUTE))
    uploads: Rate = field(default_factory=lambda: Rate.of(_UPLOADS_A_MINUTE))
    at_work: AtWork = field(default_factory=AtWork)

"""How often the password may be tried: ever more slowly by one who guesses, and never closed to anybody else.

Wrong tries are counted by client: by a cookie that says "was let in before", else by address and visitor's cookie.
After a few, that client alone waits, longer each time. Whoever cannot be told from others (no public address and no
cookie) is never turned away for what others did. What bounds the guessing of all together is the pace at which tries
are looked at: beyond it they wait in a line, those who were in before first, then those who can be told apart, with the
fewest wrong tries first. So a new client goes before those who guess, and the right password opens whatever others try.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count

from webui.api.auth import Buckets

FREE_TRIES = 5
LONGEST_PAUSE_S = 300.0
# Of all clients together, and of those whose address has used up what an address may.
TRIES_A_SECOND, TRIES_AT_ONCE = 10.0, 40
SLOW_TRIES_A_SECOND = 0.5
TRIES_OF_AN_ADDRESS_A_MINUTE = 20.0
TRIES_OF_THE_UNKNOWN_A_MINUTE = 300.0
MOST_WAITING = 64
LONGEST_WAIT_S = 10.0
_MOST_CLIENTS = 10_000
_FORGOTTEN_S = 3600.0


@dataclass(frozen=True)
class Client:
    """Who tries: `name` tells them from others, empty where nothing does; `address` is None where it is not known.
    One who `was_in` before has a cookie of ours that says so."""

    name: str
    address: str | None
    was_in: bool = False


@dataclass
class _Wrong:
    tries: int
    at_s: float

    def pause_s(self) -> float:
        return 0.0 if self.tries < FREE_TRIES else min(2.0 ** (self.tries - FREE_TRIES), LONGEST_PAUSE_S)


class _Line:
    """Lets so many a second go on, and `at_once` after a rest; the others wait, the lowest rank first."""

    def __init__(self, per_s: float, at_once: float) -> None:
        self._per_s = per_s
        self._most = at_once
        self._level = at_once
        self._at_s = 0.0
        self._numbers = count()
        self._waiting: list[tuple[tuple[int, int], int, asyncio.Future[bool]]] = []
        self._timer: asyncio.TimerHandle | None = None

    async def wait(self, rank: tuple[int, int]) -> bool:
        """Return True when it is one's turn; False when the line is too long, or it took too long."""
        loop = asyncio.get_running_loop()
        self._fill(loop.time())
        if self._level >= 1 and not self._waiting:
            self._level -= 1
            return True
        mine = (rank, next(self._numbers), loop.create_future())
        self._waiting.append(mine)
        if len(self._waiting) > MOST_WAITING:
            last = max(self._waiting)
            self._waiting.remove(last)
            last[2].set_result(False)
        self._go_on()
        try:
            return await asyncio.wait_for(mine[2], LONGEST_WAIT_S)
        except TimeoutError:
            return False
        finally:
            if mine in self._waiting:
                self._waiting.remove(mine)

    def _fill(self, now_s: float) -> None:
        self._level = min(self._most, self._level + (now_s - self._at_s) * self._per_s)
        self._at_s = now_s

    def _go_on(self) -> None:
        if self._timer is not None:
            return
        loop = asyncio.get_running_loop()
        self._fill(loop.time())
        while self._waiting and self._level >= 1:
            first = min(self._waiting)
            self._waiting.remove(first)
            if not first[2].done():
                self._level -= 1
                first[2].set_result(True)
        if self._waiting:
            self._timer = loop.call_later((1 - self._level) / self._per_s, self._again)

    def _again(self) -> None:
        self._timer = None
        self._go_on()


@dataclass
class SignInLimits:
    """Counts the tries of every client. `clock` tells seconds; `pace` makes all of it faster, for tests."""

    clock: Callable[[], float] = time.monotonic
    pace: float = 1.0
    _wrong: OrderedDict[str, _Wrong] = field(default_factory=OrderedDict)

    def __post_init__(self) -> None:
        self._line = _Line(TRIES_A_SECOND * self.pace, TRIES_AT_ONCE)
        self._slow = _Line(SLOW_TRIES_A_SECOND * self.pace, 1)
        self._of_address = Buckets(TRIES_OF_AN_ADDRESS_A_MINUTE)
        self._of_unknown = Buckets(TRIES_OF_THE_UNKNOWN_A_MINUTE)

    def pause_s(self, client: Client) -> float:
        """Return in how many seconds this client may try again, 0 for now."""
        wrong = self._wrong.get(client.name) if client.name else None
        return max(0.0, wrong.at_s + wrong.pause_s() - self.clock()) if wrong is not None else 0.0

    async def turn(self, client: Client) -> bool:
        """Return True when a try of this client is to be looked at, after a wait perhaps; False when too many wait."""
        wrong = self._wrong.get(client.name)
        rank = (0 if client.was_in else 1 if client.name else 2, wrong.tries if wrong is not None else 0)
        is_crowded = not client.was_in and self._bucket(client).take(client.address or "") > 0
        return await (self._slow if is_crowded else self._line).wait(rank)

    def failed(self, client: Client) -> None:
        """Count a wrong try."""
        if not client.name:
            return
        now = self.clock()
        wrong = self._wrong.pop(client.name, None)
        tries = wrong.tries if wrong is not None and now - wrong.at_s < _FORGOTTEN_S else 0
        self._wrong[client.name] = _Wrong(tries + 1, now)
        if len(self._wrong) > _MOST_CLIENTS:
            self._wrong.popitem(last=False)

    def succeeded(self, client: Client) -> None:
        """Forget the wrong tries of one who knew the password in the end."""
        self._wrong.pop(client.name, None)

    def _bucket(self, client: Client) -> Buckets:
        return self._of_unknown if client.address is None else self._of_address

"""What a turn may still pay: no call leaves that could cost more than is left of the maximum."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import ceil

from agent.errors import ErrorCode, ErrorInfo
from agent.spending import A_TRIFLE_USD, format_usd


# Two of the same amount are two: the one that has ended is taken out, not its like.
@dataclass(eq=False)
class Held:
    """The worst case of a call that is under way; `paid_usd` is what it cost, once that is known."""

    most_usd: float
    paid_usd: float | None = None


@dataclass
class Purse:
    """The money of one turn, in US dollars: its maximum, what was paid of it, and what calls under way may cost."""

    limit_usd: float = float("inf")
    paid_usd: float = 0.0
    more_usd: float = 0.0
    """How much further the turn may go when the person lets it go on."""
    _held: list[Held] = field(default_factory=list)

    @property
    def is_limited(self) -> bool:
        """Whether there is a maximum."""
        return self.limit_usd != float("inf")

    @property
    def left_usd(self) -> float:
        """What no call under way can need any more."""
        return self.limit_usd - self.paid_usd - sum(one.most_usd for one in self._held) + A_TRIFLE_USD

    def raise_to_hold(self, price_usd: float) -> None:
        """Let the turn pay so much from now on, when the person was told so and agreed."""
        self.limit_usd = max(self.limit_usd, self.paid_usd + price_usd)

    @contextmanager
    def holding(self, most_usd: float) -> Iterator[Held]:
        """Set the worst case of a call aside until it has ended; one that never told what it cost keeps it."""
        held = Held(most_usd)
        self._held.append(held)
        try:
            yield held
        finally:
            self._held.remove(held)
            self.paid_usd += most_usd if held.paid_usd is None else held.paid_usd

    def refusal(self) -> ErrorInfo:
        """Return that the next call could pass the maximum, as the end of a turn."""
        amounts: dict[str, str | int | float] = {
            "maximum": format_usd(self.limit_usd),
            "spent": format_usd(self.paid_usd),
            "more": f"{ceil(self.more_usd * 100) / 100:.2f}",
        }
        return ErrorInfo(code=ErrorCode.MAXIMUM_REACHED, parameters=amounts)

"""What would be painted, before it is: the plan the person may run, edit or drop, and what the agent asks back."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from agent.messages import Asked, Value

Question = Literal["empty", "unsure", "which_part", "no_mask", "not_painted"]


class ModelPrice(Value):
    """What one of the image models of a plan would cost, in US dollars."""

    model_label: str
    price_usd: float


class CapPassed(Value):
    """A cap that the pictures of a plan would pass: what is spent of it so far, and about what they cost, in US
    dollars. The conversation's counts every branch, the day's every conversation of the owner's. The turn's is the
    maximum that was told before it was sent: of that one `price_usd` is the most that the pictures can cost."""

    cap: Literal["conversation", "day", "turn"]
    cap_usd: float
    spent_usd: float
    price_usd: float

    @property
    def over_usd(self) -> float:
        """By how much it would be passed."""
        return self.spent_usd + self.price_usd - self.cap_usd


class Plan(Value):
    """One request for pictures as it would be sent. `call` is its place among those of the turn.

    `model` is the image model's name in the page, `flash`, `pro` or, one beside the other, `both`: then `prices` are
    those of each, and `number_of_images` counts those of each. `price_usd` an estimate for all its pictures, a
    review of each included. `notices` are what should be known of a masked edit before it is paid for; the page has a
    sentence for each under `notice.<code>`. `caps` are those that all plans shown with it would pass together: whoever
    runs it lets this turn go on beyond them.
    """

    call: int
    prompt: str
    model: str
    model_label: str
    aspect_ratio: str
    resolution: str | None = None
    number_of_images: int = 1
    references: tuple[str, ...] = ()
    editing: str | None = None
    price_usd: float = 0.0
    seconds: float = 0.0
    prices: tuple[ModelPrice, ...] = ()
    notices: tuple[str, ...] = ()
    caps: tuple[CapPassed, ...] = ()


class Ask(Value):
    """A call of a tool that waits for the person: its place among the turn's calls, why it waits, and its `arguments`
    word for word, as JSON. The page has a sentence for each reason under `consent.<reason>`."""

    call: int
    tool: str
    reason: str
    arguments: str


class PlanEdit(Asked):
    """What the person changed in a plan before it runs; None leaves a value as it was planned."""

    call: int = 0
    prompt: str | None = Field(default=None, min_length=1)
    model: Literal["flash", "pro", "both"] | None = None
    aspect_ratio: str | None = None
    resolution: str | None = None
    number_of_images: int | None = Field(default=None, ge=1, le=4)


class Decision(Asked):
    """What the person decided about a plan: run it, with changes perhaps, or drop it; or about calls that wait for
    them: let them run or not."""

    run: bool
    edits: tuple[PlanEdit, ...] = ()

"""The spending caps in a turn, checked before the first model call, before pictures, and before another round.

Without caps nothing is read. Sketches and exact adjustments are free and never need a question. Amounts that other
turns in any process are about to spend count as spent: a turn reserves its amount in the transaction that reads the
spending.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil
from typing import TypeVar

from agent.errors import ErrorCode, ErrorInfo
from agent.events import CapPassed
from agent.library import SoFar
from agent.spending import A_TRIFLE_USD, Caps, answer_price, caps_of, format_usd, left_usd, passed, used_up
from agent.storage.spend import SpendBook
from agent.workflow.deps import Deps, today
from agent.workflow.state import TurnProgress

T = TypeVar("T")

_CODES = {"day": ErrorCode.BUDGET_USED_UP, "conversation": ErrorCode.CONVERSATION_BUDGET_USED_UP}


async def caps_passed(state: TurnProgress, deps: Deps, price_usd: float, *, may_paint: bool) -> tuple[CapPassed, ...]:
    """Return the caps that pictures of this price would exceed now, unless the user agreed to that in this turn.

    If there are none and the turn `may_paint`, the price is reserved before another turn of the owner is checked.
    """
    if price_usd <= 0 or _has_painted(state):
        return ()
    spent_usd = state["spend"].price_usd

    def choose(so_far: SoFar) -> tuple[tuple[CapPassed, ...], float]:
        found = passed(_caps(state, deps), so_far + spent_usd, price_usd)
        return found, spent_usd + price_usd if may_paint and not found else 0.0

    return await _weighed(deps, choose)


def maximum_passed(state: TurnProgress, deps: Deps, needed_usd: float, most_usd: float) -> tuple[CapPassed, ...]:
    """Return the turn's maximum if the pictures alone could cost more than the rest of it.

    A user who runs a plan has seen its maximum with reviews and repaints, `most_usd`, so the turn may spend that.
    """
    budget, decided = deps.budget, state["decision"]
    if not budget.is_limited or _has_painted(state):
        return ()
    if decided is not None and decided.run and state["plan"] is not None:
        budget.raise_limit_to(most_usd)
    if needed_usd <= budget.left_usd:
        return ()
    return (CapPassed(cap="turn", cap_usd=budget.limit_usd, spent_usd=budget.paid_usd, price_usd=most_usd),)


def beyond_sponsored_budget(state: TurnProgress, deps: Deps, price_usd: float = 0.0) -> ErrorInfo | None:
    """Return an error if the turn's cost plus this price exceeds the sponsored budget, else None.

    It stops pictures and further text calls. The user is not asked to agree, because it is not their money."""
    sponsored, all_usd = deps.sponsored, state["spend"].price_usd + price_usd
    if sponsored is None or all_usd <= sponsored.most_usd + A_TRIFLE_USD or _has_painted(state):
        return None
    # Rounded up, so that the price is not displayed as equal to the cap.
    amounts: dict[str, str | int | float] = {
        "cap": format_usd(sponsored.most_usd),
        "price": f"{ceil(all_usd * 100) / 100:.2f}",
    }
    return ErrorInfo(code=ErrorCode.TURN_TOO_DEAR, parameters=amounts)


async def _weighed(deps: Deps, choose: Callable[[SoFar], tuple[T, float]]) -> T:
    """Return the choice of `choose`, and reserve its price, so that the owner's other turns count it from now on."""
    spending = SpendBook(deps.services.records.db)
    if caps_of(deps.turn.settings):
        return await spending.weigh(deps.conversation.owner, deps.conversation.id, deps.turn.id, choose)
    # Without caps there is nothing to read.
    chosen, price_usd = choose(SoFar())
    spending.reserve(deps.turn.id, price_usd)
    return chosen


async def spent_within_caps(
    state: TurnProgress, deps: Deps, spent_usd: float, choose: Callable[[float], tuple[T, float]]
) -> T:
    """Call `choose` with the US dollars that the turn may still spend under the caps, and return its choice.

    The turn itself has spent `spent_usd`. The price that `choose` returns replaces the turn's earlier reservation."""

    def weighed(so_far: SoFar) -> tuple[T, float]:
        chosen, price_usd = choose(left_usd(_caps(state, deps), so_far + spent_usd))
        return chosen, spent_usd + price_usd

    return await _weighed(deps, weighed)


async def cap_in_the_way(state: TurnProgress, deps: Deps) -> CapPassed | None:
    """Return the used-up cap that prevents even the first text call of a turn, with the approximate price of that call.

    If the user resumes the turn afterwards, they have agreed to the call.
    """
    caps = caps_of(deps.turn.settings)
    is_first = state["planner_steps"] == 0 and not deps.ledger.known and not deps.ledger.may_repeat
    if not caps or not is_first or not deps.text_model.prices:
        return None
    cap = used_up(caps, await _so_far(deps, 0.0))
    if cap is None:
        return None
    turn = deps.turn
    price_usd = answer_price(
        turn.settings, deps.text_model, today(), characters=len(turn.text), shown=len(turn.uploads)
    )
    return cap.model_copy(update={"price_usd": price_usd})


def refused_by_cap(cap: CapPassed) -> ErrorInfo:
    """Return the error that ends a turn because a cap is used up."""
    amounts: dict[str, str | int | float] = {"cap": format_usd(cap.cap_usd), "spent": format_usd(cap.spent_usd)}
    return ErrorInfo(code=_CODES[cap.cap], parameters=amounts)


async def is_any_cap_used_up(state: TurnProgress, deps: Deps) -> bool:
    """Return whether a cap is used up, including this turn's own spending."""
    caps = caps_of(deps.turn.settings)
    return bool(caps) and used_up(caps, await _so_far(deps, state["spend"].price_usd)) is not None


def _caps(state: TurnProgress, deps: Deps) -> Caps:
    """Return the caps for the turn; none if the user ran a plan that stated which cap it would exceed."""
    plan = state["plan"] if state["decision"] is not None else None
    has_agreed = plan is not None and any(cap.cap != "turn" for one in plan.plans for cap in one.caps)
    return Caps() if has_agreed else caps_of(deps.turn.settings)


def _has_painted(state: TurnProgress) -> bool:
    # The critic already checked the caps for another round.
    return any(work.attempts for work in state["works"].values())


async def _so_far(deps: Deps, own_usd: float) -> SoFar:
    """Return the spending for each cap, including the turn's own `own_usd` and the reservations of other turns."""
    spending = SpendBook(deps.services.records.db)
    return await spending.before(deps.conversation.owner, deps.conversation.id, deps.turn.id) + own_usd

"""The caps at work in a turn: what is left of them before a model is called, before pictures, before another round.

Without caps nothing is read. What the studio itself draws or adjusts is never asked about. Two turns that ask in the
very same moment do not see each other's pictures yet.
"""

from __future__ import annotations

from agent.errors import ErrorCode, ErrorInfo
from agent.plans import CapPassed
from agent.providers.catalogue import IMAGE_ROLES
from agent.spending import SoFar, caps_of, left_usd, passed, picture_price, used_up
from agent.storage.spend import SpendBook, UnderWay
from agent.workflow.deps import Deps, today
from agent.workflow.state import TurnProgress

_CODES = {"day": ErrorCode.BUDGET_USED_UP, "conversation": ErrorCode.CONVERSATION_BUDGET_USED_UP}


async def caps_passed(state: TurnProgress, deps: Deps, price_usd: float) -> tuple[CapPassed, ...]:
    """Return the caps that pictures of this price would pass now, unless the person has agreed to it in this turn."""
    caps = caps_of(deps.turn.settings)
    if not caps or price_usd <= 0 or has_agreed(state) or _has_painted(state):
        return ()
    return passed(caps, await _so_far(deps, state["spend"].price_usd), price_usd)


async def left_of_caps(state: TurnProgress, deps: Deps, spent_usd: float) -> float:
    """Return what the turn, which has spent so much itself, may spend before it would pass a cap, in US dollars."""
    caps = caps_of(deps.turn.settings)
    if not caps or has_agreed(state):
        return float("inf")
    return left_usd(caps, await _so_far(deps, spent_usd))


async def refused_by_cap(state: TurnProgress, deps: Deps) -> ErrorInfo | None:
    """Return why not even words are asked of a model: a cap is used up, and the turn has asked for nothing yet.

    When the person has the turn go on after that, they have agreed to it.
    """
    caps = caps_of(deps.turn.settings)
    is_first = state["planner_steps"] == 0 and not deps.ledger.known and not deps.ledger.may_repeat
    if not caps or not is_first or not deps.text_model.prices:
        return None
    cap = used_up(caps, await _so_far(deps, 0.0))
    if cap is None:
        return None
    amounts: dict[str, str | int | float] = {"cap": f"{cap.cap_usd:.2f}", "spent": f"{cap.spent_usd:.2f}"}
    return ErrorInfo(code=_CODES[cap.cap], parameters=amounts)


def has_agreed(state: TurnProgress) -> bool:
    """Return whether the person was told which cap would be passed, and runs the plan all the same."""
    plan = state["plan"]
    return state["decision"] is not None and plan is not None and any(one.caps for one in plan.plans)


def _has_painted(state: TurnProgress) -> bool:
    # Another round was weighed by the critic.
    return any(work.attempts for work in state["works"].values())


async def _so_far(deps: Deps, own_usd: float) -> SoFar:
    """Return what has been spent of each cap, the turn's own `own_usd` included."""
    caps, book = caps_of(deps.turn.settings), SpendBook(deps.records)
    here = whole_day = UnderWay()
    if caps.conversation_usd is not None:
        here = await book.conversation_before(deps.conversation.id, deps.conversation.owner, deps.turn.id)
    if caps.day_usd is not None:
        whole_day = await book.day_before(deps.conversation.owner, deps.turn.id)
    return SoFar(conversation_usd=_counted(deps, here), day_usd=_counted(deps, whole_day)) + own_usd


def _counted(deps: Deps, found: UnderWay) -> float:
    """Return the dollars, with about what the pictures cost that are being painted now."""
    asked = (deps.catalogue.by_id(name) for name in found.models)
    painting = [model for model in asked if model is not None and model.role in IMAGE_ROLES]
    return found.spent_usd + sum(picture_price(model, None, today()) for model in painting)

"""Consent: a call that something from outside may have put into the model's mouth waits for the person's click.

The person sees the arguments, all of them. The turn rests by LangGraph's interrupt, on a checkpoint, as a plan does.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import NamedTuple

from langgraph.types import Command, interrupt

from agent.conversation import TurnState
from agent.errors import ToolArgumentError
from agent.events import Ask, CapPassed, ConsentCard
from agent.messages import ToolCallPart, ToolResultPart
from agent.requests import Decision
from agent.tools.base import Tool, ToolContext
from agent.workflow.deps import TurnRuntime, show
from agent.workflow.presenter import finished_turn
from agent.workflow.routing import Target
from agent.workflow.state import TurnProgress

MOST_SHOWN_CHARACTERS = 200_000
# What is asked about is no call of the planner's: the planner itself has not been asked yet.
_NO_CALL = -1


class Needed(NamedTuple):
    """What of some calls waits for the person: what they are asked, in order, and by its place each call that is too
    long for anybody to be asked about."""

    asks: tuple[Ask, ...]
    too_long: frozenset[int]


async def needs_click(calls: Mapping[int, ToolCallPart], tools: Mapping[str, Tool], context: ToolContext) -> Needed:
    """Return which of the calls wait for the person, each with the reason; none where all may run."""
    asks: list[Ask] = []
    too_long: set[int] = set()
    for index, call in calls.items():
        tool = tools.get(call.name)
        if tool is None or tool.rule is None:
            continue
        try:
            reason = await tool.rule(call.arguments, context)
        except ToolArgumentError:
            # It is answered with what is wrong with it, and runs nothing.
            continue
        if reason is None:
            continue
        shown = json.dumps(call.arguments, ensure_ascii=False, indent=1)
        if len(shown) > MOST_SHOWN_CHARACTERS:
            too_long.add(index)
        else:
            asks.append(Ask(call=index, tool=call.name, reason=reason, arguments=shown))
    return Needed(tuple(asks), frozenset(too_long))


async def asked_first(
    state: TurnProgress, runtime: TurnRuntime, asks: tuple[Ask, ...], refused: Mapping[int, ToolResultPart]
) -> Command[Target]:
    """Put the question on record, show it, and lead to where the turn rests; calls that are `refused` are answered."""
    deps = runtime.context
    card = ConsentCard(asks=asks)
    waiting = finished_turn(deps, {**state, "consent": card}, TurnState.WAITING)
    await deps.records.finish_turn(deps.conversation.id, waiting)
    return Command(goto="consent", update={"consent": show(runtime, card), "answers": {**state["answers"], **refused}})


async def asked_about_cost(state: TurnProgress, runtime: TurnRuntime, cap: CapPassed) -> Command[Target]:
    """Ask the person whether the text model may be paid at all: their cap of zero asks before every cent."""
    told = {"about_usd": round(cap.price_usd, 6), "cap": cap.cap, "cap_usd": cap.cap_usd}
    model = runtime.context.text_model.label
    ask = Ask(call=_NO_CALL, tool=model, reason="costs_money", arguments=json.dumps(told, indent=1))
    return await asked_first(state, runtime, (ask,), {})


async def consent(state: TurnProgress, runtime: TurnRuntime) -> Command[Target]:
    """Rest until the person decides; then the calls run, or are answered with their refusal."""
    decided = Decision.model_validate(interrupt(None))
    card = state["consent"] or ConsentCard(asks=())
    how = "allowed" if decided.run else "refused"
    card = card.model_copy(update={"state": how})
    if any(ask.call == _NO_CALL for ask in card.asks):
        if decided.run:
            return Command(goto="planner", update={"consent": None})
        return Command(goto="presenter", update={"consent": None, "components": [card]})
    return Command(goto="tools", update={"consent": card})

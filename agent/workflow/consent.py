"""Consent: a call that something from outside may have put into the model's mouth waits for the person's click.

The person sees the exact arguments. The turn rests by LangGraph's interrupt, on a checkpoint, as a plan does.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from langgraph.types import Command, interrupt

from agent.components import ConsentCard
from agent.conversation import TurnState
from agent.errors import ToolArgumentError
from agent.events import ConsentAsked
from agent.messages import ToolCallPart
from agent.plans import Ask, Decision
from agent.tools.base import Tool, ToolContext
from agent.workflow.deps import TurnRuntime, emit
from agent.workflow.presenter import finished_turn
from agent.workflow.routing import Target
from agent.workflow.state import TurnProgress

_SHOWN_CHARACTERS = 20_000


async def needs_click(
    calls: Mapping[int, ToolCallPart], tools: Mapping[str, Tool], context: ToolContext
) -> tuple[Ask, ...]:
    """Return the calls that wait for the person, in order, each with the reason; none where all may run."""
    asks: list[Ask] = []
    for index, call in calls.items():
        tool = tools.get(call.name)
        if tool is None or tool.rule is None:
            continue
        try:
            reason = await tool.rule(call.arguments, context)
        except ToolArgumentError:
            # It is answered with what is wrong with it, and runs nothing.
            continue
        if reason is not None:
            shown = json.dumps(call.arguments, ensure_ascii=False, indent=1)
            asks.append(Ask(call=index, tool=call.name, reason=reason, arguments=shown[:_SHOWN_CHARACTERS]))
    return tuple(asks)


async def asked_first(state: TurnProgress, runtime: TurnRuntime, asks: tuple[Ask, ...]) -> Command[Target]:
    """Put the question on record, show it, and lead to where the turn rests."""
    deps = runtime.context
    card = ConsentCard(asks=asks)
    waiting = finished_turn(deps, {**state, "consent": card}, TurnState.WAITING)
    await deps.records.finish_turn(deps.conversation.id, waiting)
    emit(runtime, ConsentAsked(asks=asks))
    return Command(goto="consent", update={"consent": card})


async def consent(state: TurnProgress, runtime: TurnRuntime) -> Command[Target]:
    """Rest until the person decides; then the calls run, or are answered with their refusal."""
    decided = Decision.model_validate(interrupt(None))
    card = state["consent"] or ConsentCard(asks=())
    how = "allowed" if decided.run else "refused"
    return Command(goto="tools", update={"consent": card.model_copy(update={"state": how})})

"""The tool node: runs the planner's tool calls concurrently, and returns the results in the order of the calls.

A call that content from outside may have injected waits for the user's consent; the user sees all its arguments. The
turn pauses by LangGraph's interrupt, on a checkpoint, as for a plan.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Mapping, Sequence

from agent.conversation import TurnState
from agent.errors import AivistaError, ErrorCode, ErrorInfo, ToolArgumentError
from agent.events import Ask, CapPassed, Component, ConsentCard, Step, TargetChanged, TargetNote
from agent.imaging.arguments import GENERATE_IMAGE
from agent.messages import ToolCallPart, ToolResultPart
from agent.requests import Decision
from agent.tools.base import Tool, ToolAnswer, ToolContext, error_result, failed
from agent.tools.trust import framed, uses_of_tools
from agent.workflow.deps import Deps, say, show
from agent.workflow.presenter import put_on_record
from agent.workflow.state import Next, TurnProgress, serving_node, settle

logger = logging.getLogger(__name__)

_OBJECT_CHARACTERS = 120
_MOST_SHOWN_CHARACTERS = 200_000
# The question is not about a call of the planner: the planner itself has not been called yet.
_NO_CALL = -1
_DECLINED = "The person was asked and did not allow it. Go on without it, and do not call it again."
_TOO_LONG_TO_ASK = (
    f"This call needs the person's click, and its arguments have more than {_MOST_SHOWN_CHARACTERS} characters, "
    "which nobody can be asked to read. Call it with less."
)


async def tools(state: TurnProgress, deps: Deps) -> Next:
    """Run every tool called in this step; an invalid call gets an error message that the model can correct.

    If one of the calls needs consent, none runs before the user has decided. A turn that resumes by itself after its
    process died asks again, because the allowed calls may already have run.
    """
    context = deps.tool_context(state)
    called = {i: call for i, call in enumerate(state["calls"]) if serving_node(call) == "tools"}
    mine = {i: call for i, call in called.items() if i not in state["answers"]}
    refusals = _over_limit(state, called, deps.tools)
    decided = state["consent"]
    if decided is None or (decided.is_allowed and not deps.ledger.may_repeat):
        asks, too_long = await _needs_click({i: mine[i] for i in mine if i not in refusals}, deps.tools, context)
        refusals |= dict.fromkeys(too_long, _TOO_LONG_TO_ASK)
        if asks:
            refused = {i: error_result(mine[i], _TOO_LONG_TO_ASK) for i in too_long}
            return await _asked_first(state, deps, asks, refused)
    elif not decided.is_allowed:
        refusals |= dict.fromkeys((ask.call for ask in decided.asks), _DECLINED)
    for call in mine.values():
        say(deps, Step.TOOL, **_step_parameters(call, deps.tools.get(call.name)))
    answering = ((call, _answer(call, deps.tools, context, refusals.get(i))) for i, call in mine.items())
    answers = await asyncio.gather(*(_traced(deps, call, answer) for call, answer in answering))
    target, update = settle(state, {i: result for i, (_, result) in zip(mine, answers, strict=True)})
    components: list[Component] = [decided] if decided is not None else []
    before = deps.edit_history(state).target or ""
    for answer, _ in answers:
        if answer.target:
            change = TargetChanged(move="back_to", handle=answer.target, before=before)
            components.append(show(deps, TargetNote(change=change)))
            before = answer.target
    return Next(target, {**update, "consent": None, "components": components})


def _over_limit(state: TurnProgress, calls: Mapping[int, ToolCallPart], tools: Mapping[str, Tool]) -> dict[int, str]:
    """Return the error messages for the calls of tools that have reached their limit per turn."""
    used = uses_of_tools(state["messages"])
    over: dict[int, str] = {}
    for index, call in calls.items():
        most = tools[call.name].most_a_turn if call.name in tools else None
        if most is not None and used[call.name] >= most:
            over[index] = f"{call.name} can be called {most} times in a turn. Go on with what you have."
        used[call.name] += 1
    return over


async def _answer(
    call: ToolCallPart, tools: Mapping[str, Tool], context: ToolContext, refusal: str | None
) -> ToolAnswer:
    tool = tools.get(call.name)
    if tool is None:
        known = ", ".join([GENERATE_IMAGE, *(name for name, one in tools.items() if one.is_offered)])
        return failed(ErrorInfo(code=ErrorCode.UNKNOWN_TOOL, parameters={"name": call.name, "known": known}).message)
    if refusal is not None:
        return failed(refusal)
    try:
        return await tool.answer(call.arguments, context)
    except AivistaError as error:
        return failed(error.info.message)
    except Exception:
        # A broken tool must not fail the turn: the model receives an error, and the log has the traceback.
        logger.exception("the tool %s failed", call.name)
        return failed(f"{call.name} failed. Go on without it.")


async def _traced(
    deps: Deps, call: ToolCallPart, answering: Awaitable[ToolAnswer]
) -> tuple[ToolAnswer, ToolResultPart]:
    """Return the tool's answer, and the result for the model, which becomes a step of the trace."""
    with deps.trace.tool(call) as step:
        answer = await answering
        result = ToolResultPart(
            name=call.name,
            call_id=call.call_id,
            content=framed(answer.content, answer.source),
            images=answer.images,
            is_error=answer.is_error,
        )
        step.result(result)
    return answer, result


def _step_parameters(call: ToolCallPart, tool: Tool | None) -> dict[str, str]:
    """Return the parameters of the step line for a call; a tool of an MCP server appears with its name there.

    Its `object` is the first non-empty text argument, shortened.
    """
    texts = (" ".join(value.split()) for value in call.arguments.values() if isinstance(value, str))
    line = {"name": call.name, "object": next(filter(None, texts), "")[:_OBJECT_CHARACTERS]}
    return line if tool is None or not tool.server else {**line, "name": tool.own_name, "server": tool.server}


async def _needs_click(
    calls: Mapping[int, ToolCallPart], tools: Mapping[str, Tool], context: ToolContext
) -> tuple[list[Ask], list[int]]:
    """Return the questions to the user with their reasons, and the indices of calls that are too long to ask about."""
    asks: list[Ask] = []
    too_long: list[int] = []
    for index, call in calls.items():
        tool = tools.get(call.name)
        if tool is None or tool.rule is None:
            continue
        try:
            reason = await tool.rule(call.arguments, context)
        except ToolArgumentError:
            # Invalid arguments need no consent: the call gets an error and runs nothing.
            continue
        if reason is None:
            continue
        shown = json.dumps(call.arguments, ensure_ascii=False, indent=1)
        if len(shown) > _MOST_SHOWN_CHARACTERS:
            too_long.append(index)
        else:
            asks.append(Ask(call=index, tool=call.name, reason=reason, arguments=shown))
    return asks, too_long


async def _asked_first(
    state: TurnProgress, deps: Deps, asks: Sequence[Ask], refused: Mapping[int, ToolResultPart]
) -> Next:
    """Record and show the questions, and pause the turn at `consent`; `refused` are results of refused calls."""
    card = ConsentCard(asks=tuple(asks))
    await put_on_record(deps, {**state, "consent": card}, TurnState.WAITING)
    return Next("consent", {"consent": show(deps, card), "answers": {**state["answers"], **refused}})


async def asked_about_cost(state: TurnProgress, deps: Deps, cap: CapPassed) -> Next:
    """Ask the user whether the text model may be paid at all, because their cap of zero asks before every cent."""
    cost = {"about_usd": round(cap.price_usd, 6), "cap": cap.cap, "cap_usd": cap.cap_usd}
    model = deps.text_model.label
    ask = Ask(call=_NO_CALL, tool=model, reason="costs_money", arguments=json.dumps(cost, indent=1))
    return await _asked_first(state, deps, [ask], {})


async def consent(state: TurnProgress, deps: Deps, answer: object) -> Next:
    """Pause until the user decides; then the calls run, or are refused."""
    decided = Decision.model_validate(answer)
    card = state["consent"] or ConsentCard(asks=())
    card = card.model_copy(update={"state": "allowed" if decided.run else "refused"})
    if any(ask.call == _NO_CALL for ask in card.asks):
        if decided.run:
            return Next("planner", {"consent": None})
        return Next("presenter", {"consent": None, "components": [card]})
    return Next("tools", {"consent": card})

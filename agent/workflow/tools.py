"""The tool node: runs what the planner called, side by side, and answers in the order of the calls."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Mapping

from langgraph.types import Command

from agent.errors import AivistaError, ErrorCode, ErrorInfo
from agent.events import Step
from agent.messages import ToolCallPart, ToolResultPart
from agent.tools.base import Tool, ToolAnswer, ToolContext, failed
from agent.tools.trust import Trust, framed, urls_in
from agent.workflow.consent import asked_first, needs_click
from agent.workflow.deps import Deps, TurnRuntime, say
from agent.workflow.routing import Target, serving_node, settle
from agent.workflow.state import TurnProgress

logger = logging.getLogger(__name__)

_OBJECT_CHARACTERS = 120


async def tools(state: TurnProgress, runtime: TurnRuntime) -> Command[Target]:
    """Run every tool called in this step; a wrong call is answered with a sentence that the model can mend.

    Where one of them needs the person's click, none runs before they have decided. A turn that goes on by itself after
    its process died asks again: what was allowed once may have run already.
    """
    deps = runtime.context
    context = deps.tool_context(state["trust"])
    mine = {i: call for i, call in enumerate(state["calls"]) if serving_node(call) == "tools"}
    may_have_run = state["consent"] is not None and state["consent"].is_allowed and not deps.ledger.may_repeat
    if state["consent"] is None or may_have_run:
        waiting = await needs_click(mine, deps.tools, context)
        if waiting:
            return await asked_first(state, runtime, waiting)
    refused = (
        {ask.call for ask in state["consent"].asks} if state["consent"] and not state["consent"].is_allowed else set()
    )
    over = _over_limit(mine, deps.tools, context.trust)
    steps = [say(runtime, Step.TOOL, **_told(call, deps.tools.get(call.name))) for call in mine.values()]
    answering = ((call, _answer(i, call, deps.tools, context, refused, over)) for i, call in mine.items())
    answers = await asyncio.gather(*(_traced(deps, call, answer) for call, answer in answering))
    trust = state["trust"].counted(call.name for call in mine.values())
    results: dict[int, ToolResultPart] = {}
    for i, (answer, result) in zip(mine, answers, strict=True):
        trust = trust.after(answer.source, (*answer.urls, *_urls_of(answer)))
        results[i] = result
    target, update = settle(state, results)
    card = [state["consent"]] if state["consent"] is not None else []
    return Command(
        goto=target, update={**update, "steps": steps, "trust": trust, "consent": None, "components": [*card]}
    )


def _over_limit(calls: Mapping[int, ToolCallPart], tools: Mapping[str, Tool], trust: Trust) -> set[int]:
    """Return the calls of tools that were called as often as one turn may."""
    used = Counter(trust.used)
    over: set[int] = set()
    for index, call in calls.items():
        most = tools[call.name].most_a_turn if call.name in tools else None
        if most is not None and used[call.name] >= most:
            over.add(index)
        used[call.name] += 1
    return over


async def _answer(
    index: int,
    call: ToolCallPart,
    tools: Mapping[str, Tool],
    context: ToolContext,
    refused: set[int],
    over: set[int],
) -> ToolAnswer:
    tool = tools.get(call.name)
    if tool is None:
        known = ", ".join(["generate_image", *tools])
        return failed(ErrorInfo(code=ErrorCode.UNKNOWN_TOOL, parameters={"name": call.name, "known": known}).message)
    if index in refused:
        return failed("The person was asked and did not allow it. Go on without it, and do not call it again.")
    if index in over:
        return failed(f"{call.name} can be called {tool.most_a_turn} times in a turn. Go on with what you have.")
    try:
        return await tool.answer(call.arguments, context)
    except AivistaError as error:
        return failed(error.info.message)
    except Exception:
        # A tool that breaks must not take the turn with it; the model is told, and the log has the whole of it.
        logger.exception("the tool %s failed", call.name)
        return failed(f"{call.name} failed. Go on without it.")


async def _traced(
    deps: Deps, call: ToolCallPart, answering: Awaitable[ToolAnswer]
) -> tuple[ToolAnswer, ToolResultPart]:
    """Return what the tool answered, and what the model is given of it, which is a step of the trace."""
    with deps.trace.tool(call) as step:
        answer = await answering
        result = _result(call, answer)
        step.result(result)
    return answer, result


def _result(call: ToolCallPart, answer: ToolAnswer) -> ToolResultPart:
    return ToolResultPart(
        name=call.name,
        call_id=call.call_id,
        content=framed(answer.content, answer.source),
        images=answer.images,
        is_error=answer.is_error,
    )


def _urls_of(answer: ToolAnswer) -> tuple[str, ...]:
    """Return the addresses that stand in the words themselves of what came from outside."""
    if not answer.source:
        return ()
    return tuple(url for text in answer.content.values() if isinstance(text, str) for url in urls_in(text))


def _told(call: ToolCallPart, tool: Tool | None) -> dict[str, str]:
    """Return what the line of steps says of a call; a server's tool goes by the name it has there."""
    line = {"name": call.name, "object": _object(call)}
    return line if tool is None or not tool.server else {**line, "name": tool.own_name, "server": tool.server}


def _object(call: ToolCallPart) -> str:
    """Return what a call is about, for the line that tells of it: the first of its arguments that is a short text."""
    for value in call.arguments.values():
        if isinstance(value, str) and value.strip():
            return " ".join(value.split())[:_OBJECT_CHARACTERS]
    return ""

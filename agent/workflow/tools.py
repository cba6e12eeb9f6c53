"""The tool node: runs what the planner called, side by side, and answers in the order of the calls."""

from __future__ import annotations

import asyncio

from langgraph.types import Command

from agent.errors import ErrorCode, ErrorInfo, ToolArgumentError
from agent.events import Step
from agent.messages import ToolCallPart, ToolResultPart
from agent.tools.base import ToolContext, error_result
from agent.tools.registry import TOOLS
from agent.workflow.deps import TurnRuntime, say
from agent.workflow.routing import Target, serving_node, settle
from agent.workflow.state import TurnProgress


async def tools(state: TurnProgress, runtime: TurnRuntime) -> Command[Target]:
    """Run every tool called in this step; a wrong call is answered with a sentence that the model can mend."""
    deps = runtime.context
    context = ToolContext(deps.conversation, deps.images, deps.cache)
    mine = {i: call for i, call in enumerate(state["calls"]) if serving_node(call) == "tools"}
    steps = [say(runtime, Step.TOOL, name=call.name) for call in mine.values()]
    results = await asyncio.gather(*(_run(call, context) for call in mine.values()))
    target, update = settle(state, dict(zip(mine, results, strict=True)))
    return Command(goto=target, update={**update, "steps": steps})


async def _run(call: ToolCallPart, context: ToolContext) -> ToolResultPart:
    tool = TOOLS.get(call.name)
    if tool is None:
        known = ", ".join(["generate_image", *TOOLS])
        info = ErrorInfo(code=ErrorCode.UNKNOWN_TOOL, parameters={"name": call.name, "known": known})
        return error_result(call, info.message)
    try:
        result = await tool.run(call.arguments, context)
    except ToolArgumentError as error:
        return error_result(call, error.info.message)
    return result.model_copy(update={"name": call.name, "call_id": call.call_id})

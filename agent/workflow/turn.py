"""A turn from the person's message to its last event, once it is that conversation's turn to go."""

from __future__ import annotations

from typing import Any

from agent.conversation import Turn, TurnState
from agent.events import TurnStarted
from agent.messages import ContentPart, PromptMessage, Role, TextPart
from agent.workflow.deps import Deps
from agent.workflow.graph import turn_graph
from agent.workflow.live import LiveTurn, Progress
from agent.workflow.presenter import finished_turn
from agent.workflow.state import first_progress

# A turn takes at most 16 planner steps, each with at most a search, tools and pictures after it.
_RECURSION_LIMIT = 80


async def run_graph(deps: Deps, live: LiveTurn) -> None:
    """Run the turn through the graph and publish what happens."""
    first = first_progress(deps.turn.messages[0])
    progress = live.progress = Progress(first)
    live.publish(TurnStarted(turn_id=deps.turn.id, uploads=deps.turn.uploads))
    stream = turn_graph().astream(first, {"recursion_limit": _RECURSION_LIMIT}, context=deps, stream_mode="updates")
    chunk: Any
    async for chunk in stream:
        for update in chunk.values():
            if update:
                progress.take_update(update)


async def record_stop(deps: Deps, live: LiveTurn) -> None:
    """Put a stopped turn on record as far as it came."""
    progress = live.progress or Progress(first_progress(deps.turn.messages[0]))
    turn = finished_turn(deps, progress.stopped(), TurnState.STOPPED)
    await deps.records.finish_turn(deps.conversation.id, turn)
    deps.settled.set()


def prompt_message(turn: Turn) -> PromptMessage:
    """Return the person's message: words, what they marked in the page, then the uploads."""
    parts: list[ContentPart] = [TextPart(text=turn.text)] if turn.text else []
    if turn.editing:
        parts.append(TextPart(text=f"[The person marked {turn.editing} as the picture to change.]"))
    if turn.references:
        parts.append(TextPart(text=f"[The person marked as references: {', '.join(turn.references)}.]"))
    return PromptMessage(role=Role.PROMPT, parts=(*parts, *turn.uploads))

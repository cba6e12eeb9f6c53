"""The retriever: looks up the styles that a request names and adds their phrases to its prompt.

It can fail without failing the turn: the prompt then goes on unchanged.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Literal

from langgraph.types import Command

from agent.errors import AivistaError
from agent.events import Step
from agent.imaging.arguments import GenerateImageArgs
from agent.storage.style_values import StyleMatch
from agent.workflow.deps import Deps, TurnRuntime, say
from agent.workflow.routing import named_style
from agent.workflow.state import TurnProgress

logger = logging.getLogger(__name__)

TIMEOUT_S = 5.0


async def retriever(state: TurnProgress, runtime: TurnRuntime) -> Command[Literal["executor"]]:
    """Find the styles of each request that names one, and go on to the executor."""
    found: dict[int, list[StyleMatch]] = {}
    for index, call in enumerate(state["calls"]):
        style = named_style(call)
        # The sketch model paints by the plain words of a wish: phrases for a real model would only confuse it.
        if style and runtime.context.provider_name != "sketch":
            found[index] = await _search(runtime.context, style)
    names = list(dict.fromkeys(match.style.title for matches in found.values() for match in matches))
    steps = [say(runtime, Step.STYLES, count=len(names), names=", ".join(names))] if names else []
    return Command(goto="executor", update={"styles": found, "steps": steps})


def with_styles(arguments: GenerateImageArgs, matches: Sequence[StyleMatch]) -> GenerateImageArgs:
    """Return the arguments with the phrases of the styles in the prompt, and what they avoid with the negatives."""
    if not matches:
        return arguments
    lines = [f"{match.style.title}: {', '.join(match.style.phrases)}." for match in matches]
    avoided = [arguments.negative_prompt or "", *(phrase for match in matches for phrase in match.style.negative)]
    return arguments.model_copy(
        update={
            "prompt": arguments.prompt + "\n\nStyle:\n" + "\n".join(lines),
            "negative_prompt": ", ".join(dict.fromkeys(phrase for phrase in avoided if phrase)) or None,
        }
    )


async def _search(deps: Deps, style: str) -> list[StyleMatch]:
    try:
        return await asyncio.wait_for(deps.styles.search(style, owner=deps.conversation.owner), TIMEOUT_S)
    except (AivistaError, TimeoutError) as error:
        logger.warning("the style library failed, the prompt goes on without it: %s", error or "too slow")
        return []

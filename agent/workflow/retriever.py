"""The retriever: looks up the styles that a request names and adds their phrases to its prompt.

Styles are found by their names first, which costs nothing. Only a wish that no name answers is put to the embedding
model, where the provider has one; until that model has read the library, in the background and once for every owner,
the names are gone by alone.

It can fail without failing the turn: the prompt then goes on unchanged.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Literal

from langgraph.errors import NodeError
from langgraph.types import Command

from agent.errors import AivistaError
from agent.events import Step
from agent.imaging.arguments import GenerateImageArgs
from agent.storage.style_values import StyleMatch
from agent.storage.styles import SURELY_NAMED
from agent.workflow.deps import Deps, TurnRuntime, say
from agent.workflow.meaning import learn_styles, meter_of
from agent.workflow.routing import named_style
from agent.workflow.state import Spend, TurnProgress

logger = logging.getLogger(__name__)


async def retriever(state: TurnProgress, runtime: TurnRuntime) -> Command[Literal["executor"]]:
    """Find the styles of each request that names one, and go on to the executor."""
    found: dict[int, list[StyleMatch]] = {}
    spend = Spend()
    for index, call in enumerate(state["calls"]):
        style = named_style(call)
        # The sketch model paints by the plain words of a wish: phrases for a real model would only confuse it.
        if style and runtime.context.provider_name != "sketch":
            name = f"embedding:{state['planner_steps']}.{index}"
            found[index], spent = await _search(runtime.context, name, style)
            spend += spent
    names = list(dict.fromkeys(match.style.title for matches in found.values() for match in matches))
    steps = [say(runtime, Step.STYLES, count=len(names), names=", ".join(names))] if names else []
    return Command(goto="executor", update={"styles": found, "steps": steps, "spend": spend})


def unstyled(state: TurnProgress, error: NodeError) -> Command[Literal["executor"]]:
    """Go on without styles when the retriever failed or took too long."""
    logger.warning("the style library failed, the prompt goes on without it: %s", _told(error.error))
    return Command(goto="executor", update={"styles": {}})


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


async def _search(deps: Deps, name: str, style: str) -> tuple[list[StyleMatch], Spend]:
    named: list[StyleMatch] = []
    try:
        named = await deps.styles.search(style, owner=deps.conversation.owner)
        if named and named[0].similarity >= SURELY_NAMED:
            return named, Spend()
        return await _search_meaning(deps, name, style, named)
    except AivistaError as error:
        logger.warning("the style library failed, the prompt goes on without it: %s", _told(error))
        return named, Spend()


async def _search_meaning(deps: Deps, name: str, style: str, named: list[StyleMatch]) -> tuple[list[StyleMatch], Spend]:
    """Return what the embedding model adds to the styles found by name, and what it cost."""
    meter = meter_of(deps, name)
    if meter is None:
        return named, Spend()
    if not await deps.styles.has_meaning(meter):
        reader = meter_of(deps, f"{name}.library") or meter
        deps.keep_alive(learn_styles(deps, reader))
        return named, Spend()
    found = await deps.styles.search(style, owner=deps.conversation.owner, embedder=meter)
    return found, deps.spend(meter.model, meter.usage)


def _told(error: BaseException) -> str:
    return str(error) or type(error).__name__

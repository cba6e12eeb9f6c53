"""Other words for a wish that was refused: asked of the text model where that is sensible, else found by rules."""

from __future__ import annotations

import asyncio
import json
import logging

from pydantic import JsonValue

from agent.errors import Actor, ErrorCode, ErrorInfo
from agent.events import Step, ThoughtLog
from agent.messages import PromptMessage, Role, TextPart
from agent.prompts import prompt
from agent.providers.base import ChatOptions
from agent.providers.catalogue import ModelRole
from agent.workflow.asking import ask_text
from agent.workflow.capping import is_any_cap_used_up
from agent.workflow.deps import Deps, TurnRuntime, say
from agent.workflow.rewording_rules import reworded_by_rule
from agent.workflow.state import Spend, TurnProgress

_log = logging.getLogger(__name__)

_PATIENCE_S = 8.0
_MOST = 3
_SHORTEST, _LONGEST = 3, 400
_LONGEST_WISH = 2000
_SCHEMA: dict[str, JsonValue] = {
    "type": "object",
    "properties": {"rewordings": {"type": "array", "items": {"type": "string"}}},
    "required": ["rewordings"],
}


async def reworded(
    state: TurnProgress, runtime: TurnRuntime, error: ErrorInfo
) -> tuple[tuple[str, ...], Spend, list[ThoughtLog]]:
    """Return other wishes that the policy may allow, what asking for them cost, and what was said of it.

    There are none for a failure that no other words would mend, nor for a message without words.
    """
    deps = runtime.context
    wish = deps.turn.text.strip()
    if not wish or not _is_refusal(error):
        return (), Spend(), []
    if not await _may_ask(state, deps):
        return reworded_by_rule(wish, error.code), Spend(), []
    steps = [say(runtime, Step.REWORDING)]
    offers, spend = await _asked(state, deps, wish, error)
    return offers if offers is not None else reworded_by_rule(wish, error.code), spend, steps


def _is_refusal(error: ErrorInfo) -> bool:
    return error.actor is Actor.POLICY or error.code is ErrorCode.TEXT_INSTEAD_OF_PICTURE


async def _may_ask(state: TurnProgress, deps: Deps) -> bool:
    """Return whether the text model is asked: it has read these words without objection, and money is left for it.

    Words that it refused itself are not sent to it once more.
    """
    if state["failed_node"] != "executor" or deps.text_model.is_sketch:
        return False
    if state["spend"].price_usd >= deps.budget_usd:
        return False
    return not await is_any_cap_used_up(state, deps)


async def _asked(state: TurnProgress, deps: Deps, wish: str, error: ErrorInfo) -> tuple[tuple[str, ...] | None, Spend]:
    model = deps.catalogue.model(ModelRole.FLASH, deps.provider_name)
    options = ChatOptions(
        system=prompt("rewording"), response_schema=_SCHEMA, thinking_level=next(iter(model.thinking_levels), None)
    )
    told = f"Refused: {error.refused or 'output'}. Reason given: {error.parameters.get('reason', 'none')}."
    parts = (TextPart(text=f'{told}\nThe person\'s words:\n"""\n{wish[:_LONGEST_WISH]}\n"""'),)
    messages = [PromptMessage(role=Role.PROMPT, parts=parts)]
    try:
        async with asyncio.timeout(_PATIENCE_S):
            answer = await ask_text(deps, f"rewording:{state['planner_steps']}", messages, (), options, model=model)
    except TimeoutError:
        return None, Spend()
    except Exception:
        # A turn that failed must reach its end, whatever goes wrong with a courtesy.
        _log.exception("other words could not be asked for")
        return None, Spend()
    spend = deps.spend(model, answer.usage)
    return (None if answer.error is not None else read_rewordings(answer.text, wish)), spend


def read_rewordings(text: str, wish: str) -> tuple[str, ...] | None:
    """Return the wishes in a model's answer, at most three; None when nothing in it can be taken for a list of them.

    An empty list is an answer: nothing lawful is left of the wish.
    """
    start, end = text.find("{"), text.rfind("}")
    try:
        raw = json.loads(text[start : end + 1], strict=False) if 0 <= start < end else None
    except (ValueError, RecursionError):
        return None
    listed = raw.get("rewordings") if isinstance(raw, dict) else None
    if not isinstance(listed, list):
        return None
    lines = (" ".join(one.split()) for one in listed if isinstance(one, str))
    same = " ".join(wish.split()).casefold()
    kept = [one for one in lines if _SHORTEST <= len(one) <= _LONGEST and one.casefold() != same]
    offers = tuple(dict.fromkeys(kept))[:_MOST]
    return offers if offers or not listed else None

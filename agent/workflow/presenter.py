"""The presenter: converts the results of a turn into components and records the turn in the conversation.

For a prompt that was refused by a policy it offers rewordings: from the text model where sensible, else from rules.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import re
from contextlib import suppress

from pydantic import JsonValue

from agent import wording
from agent.conversation import Turn, TurnState
from agent.errors import Actor, ErrorCode, ErrorInfo, StorageFailure
from agent.events import (
    AskBack,
    Component,
    ConsentCard,
    FailureNote,
    Outcome,
    PlanCard,
    SmartCanvas,
    Step,
    Steps,
    StoppedNote,
    TargetNote,
    TurnDone,
    TurnFailed,
    undecided,
)
from agent.messages import PromptMessage, Role, TextPart, ToolCallPart
from agent.prompts import prompt
from agent.providers.base import ChatOptions
from agent.providers.catalogue import ModelRole
from agent.tools.base import error_result
from agent.workflow.deps import Deps, emit, say
from agent.workflow.model_answers import json_in
from agent.workflow.model_calls import ask_text
from agent.workflow.spending_caps import is_any_cap_used_up
from agent.workflow.state import Leftovers, Next, TurnProgress, with_update

_RECORDED_AGAIN_S = 5.0
_OUTCOMES = (SmartCanvas, FailureNote, StoppedNote, PlanCard, ConsentCard, AskBack, TargetNote)

_STEP_OUTCOMES: dict[TurnState, Outcome] = {TurnState.FAILED: "failed", TurnState.STOPPED: "stopped"}

_NOT_DONE = {
    TurnState.WAITING: "Not done yet: the person was asked and has not decided.",
    TurnState.FAILED: "It failed.",
}


async def presenter(state: TurnProgress, deps: Deps) -> Next:
    """Record the finished turn and emit TurnDone."""
    deps.ledger.release()
    turn = await put_on_record(deps, state, TurnState.DONE)
    emit(deps, TurnDone(turn_id=turn.id, usage=turn.usage, price_usd=turn.price_usd, seconds=turn.seconds))
    return Next(None, {})


async def failure(state: TurnProgress, deps: Deps) -> Next:
    """Record the failed turn with all its results, and emit TurnFailed with the error and rewordings."""
    error, node, left = state["error"], state["failed_node"], state["leftovers"]
    assert error is not None
    rewordings = await _reworded(state, deps, error)
    note = FailureNote(error=error, node=node, rewordings=rewordings)
    shown: TurnProgress = {"messages": [*left.messages], "components": [*left.components, note]}
    turn = finished_turn(deps, with_update(deps.record.so_far(), shown), TurnState.FAILED)
    try:
        await deps.services.records.turns.finish(deps.conversation.id, turn)
    except StorageFailure:
        # The user must see why the turn failed, not that the full disk prevents its record.
        deps.services.keep_alive(_recorded_later(deps, turn))
    deps.settled.set()
    emit(deps, TurnFailed(error=error, node=node, rewordings=rewordings))
    return Next("retrial", {})


async def _recorded_later(deps: Deps, turn: Turn) -> None:
    while True:
        await asyncio.sleep(_RECORDED_AGAIN_S)
        with suppress(StorageFailure):
            await deps.services.records.turns.finish(deps.conversation.id, turn)
            return


async def retrial(state: TurnProgress, deps: Deps, answer: object) -> Next:
    """Pause until the user resumes the turn, then run the failed node again."""
    return Next(state["failed_node"], {"error": None, "failed_node": "", "leftovers": Leftovers()})


async def put_on_record(deps: Deps, state: TurnProgress, how: TurnState) -> Turn:
    """Record the turn as returned by `finished_turn`."""
    turn = finished_turn(deps, state, how)
    await deps.services.records.turns.finish(deps.conversation.id, turn)
    return turn


def finished_turn(deps: Deps, state: TurnProgress, how: TurnState) -> Turn:
    """Return the turn in the form for the record: messages without open calls, components in reading order.

    A stopped turn's pending plan is dropped, and its pending calls are refused.
    """
    # A provider refuses the whole history if it contains calls without results.
    reason = _NOT_DONE.get(how, "Stopped before it was done.")
    open_calls = [part for part in state["messages"][-1].parts if isinstance(part, ToolCallPart)]
    results = tuple(error_result(call, reason) for call in open_calls)
    refusals = [PromptMessage(role=Role.TOOL, parts=results)] if results else []
    components = _in_reading_order(state, deps.elapsed_s, how)
    return deps.turn.model_copy(
        update={
            "state": how,
            "messages": (*state["messages"], *refusals),
            "components": tuple(map(undecided, components)) if how is TurnState.STOPPED else components,
            "usage": state["spend"].usage,
            "price_usd": state["spend"].price_usd,
            "seconds": round(deps.elapsed_s, 3),
        }
    )


def _in_reading_order(state: TurnProgress, seconds: float, how: TurnState) -> tuple[Component, ...]:
    """Return the components with the steps between the text and its results; a turn with only text needs no steps."""
    components = [*state["components"], *([state["consent"]] if state["consent"] is not None else [])]
    at = next((i for i, one in enumerate(components) if isinstance(one, _OUTCOMES)), len(components))
    if state["plan"] is not None:
        components.insert(at, state["plan"])
    if len(state["steps"]) > 1:
        # Concurrent work may add its lines out of order.
        lines = tuple(sorted(state["steps"], key=lambda line: line.at_s))
        steps = Steps(lines=lines, seconds=round(seconds, 3), outcome=_STEP_OUTCOMES.get(how, "done"))
        components.insert(at, steps)
    return tuple(components)


_LONGEST_BY_RULE = 300
_MOST = 3
_LEAST_LETTERS = 3
_FORMS: dict[ErrorCode, tuple[str, ...]] = {
    ErrorCode.PICTURE_RECITATION: ("own_style", "own_cast", "other_view"),
    ErrorCode.TEXT_INSTEAD_OF_PICTURE: ("plainly", "calm", "invented"),
}
_OTHERWISE = ("calm", "invented", "place")
_log = logging.getLogger(__name__)

_PATIENCE_S = 8.0
_SHORTEST, _LONGEST = 3, 400
_LONGEST_WISH = 2000
_SCHEMA: dict[str, JsonValue] = {
    "type": "object",
    "properties": {"rewordings": {"type": "array", "items": {"type": "string"}}},
    "required": ["rewordings"],
}


async def _reworded(state: TurnProgress, deps: Deps, error: ErrorInfo) -> tuple[str, ...]:
    """Return alternative prompts that the policy may allow.

    Empty for a failure that other words cannot solve, and for a message without text.
    """
    prompt_text = deps.turn.text.strip()
    is_refusal = error.actor is Actor.POLICY or error.code is ErrorCode.TEXT_INSTEAD_OF_PICTURE
    if not prompt_text or not is_refusal:
        return ()
    offers = None
    if await _may_ask(state, deps):
        say(deps, Step.REWORDING)
        offers = await _asked(state, deps, prompt_text, error)
    return offers if offers is not None else reworded_by_rule(prompt_text, error.code)


async def _may_ask(state: TurnProgress, deps: Deps) -> bool:
    """Return whether to ask the text model: it accepted this text before, and there is budget for the call.

    Text that it refused itself is not sent to it again.
    """
    if state["failed_node"] != "executor" or deps.text_model.is_sketch:
        return False
    if state["spend"].price_usd >= deps.budget_usd:
        return False
    return not await is_any_cap_used_up(state, deps)


async def _asked(state: TurnProgress, deps: Deps, prompt_text: str, error: ErrorInfo) -> tuple[str, ...] | None:
    model = deps.services.catalogue.model(ModelRole.FLASH, deps.provider_name)
    options = ChatOptions(
        system=prompt("rewording"), response_schema=_SCHEMA, thinking_level=next(iter(model.thinking_levels), None)
    )
    refusal = f"Refused: {error.refused or 'output'}. Reason given: {error.parameters.get('reason', 'none')}."
    parts = (TextPart(text=f'{refusal}\nThe person\'s words:\n"""\n{prompt_text[:_LONGEST_WISH]}\n"""'),)
    messages = [PromptMessage(role=Role.PROMPT, parts=parts)]
    try:
        async with asyncio.timeout(_PATIENCE_S):
            answer = await ask_text(deps, f"rewording:{state['planner_steps']}", messages, (), options, model=model)
    except TimeoutError:
        return None
    except Exception:
        # A failed turn must end properly, even if this optional call fails.
        _log.exception("other words could not be asked for")
        return None
    return None if answer.error is not None else read_rewordings(answer.text, prompt_text)


def read_rewordings(text: str, prompt_text: str) -> tuple[str, ...] | None:
    """Return the prompts in a model's answer, at most three; None when the answer contains no usable list.

    An empty list is a valid answer: no lawful version of the prompt exists.
    """
    listed = (json_in(text) or {}).get("rewordings")
    if not isinstance(listed, list):
        return None
    lines = (" ".join(one.split()) for one in listed if isinstance(one, str))
    same = " ".join(prompt_text.split()).casefold()
    kept = [one for one in lines if _SHORTEST <= len(one) <= _LONGEST and one.casefold() != same]
    offers = tuple(dict.fromkeys(kept))[:_MOST]
    return offers if offers or not listed else None


def reworded_by_rule(prompt_text: str, code: ErrorCode) -> tuple[str, ...]:
    """Return two or three alternative prompts by rules: they omit what is most often refused, and disguise nothing.

    Empty if nothing requestable is left, or if the prompt describes something done to a person: removing single words
    would break such a sentence."""
    plain = " ".join(prompt_text.split())[:_LONGEST_BY_RULE].strip(" .,;:!?。，；：！？")
    # For minors together with sexual content, nothing is offered.
    if (_says("sexual", plain) and _says("young", plain)) or _says("done", plain):
        return ()
    core = _without_touchy(plain)
    if sum(char.isalnum() for char in core) < _LEAST_LETTERS:
        return ()
    language = "zh" if wording.is_chinese(plain) else "en"
    asking = wording.pattern("rewording.asking", language, flags=re.IGNORECASE)
    offers = []
    for form in _FORMS.get(code, _OTHERWISE):
        text = wording.section(language, "rewording")["forms"][form]
        # A form with its own verb does not repeat the user's "draw".
        inner = core if text.startswith("{wish}") else asking.sub("", core)
        offers.append(text.format(wish=inner))
    return tuple(offers[:_MOST])


@functools.cache
def _left_out() -> tuple[tuple[re.Pattern[str], str], ...]:
    return tuple(
        (re.compile(wording.expand(language, "rewording", words), re.IGNORECASE), instead)
        for language in wording.LANGUAGES
        for words, instead in wording.section(language, "rewording")["left_out"]
    )


def _says(name: str, text: str) -> bool:
    return wording.pattern(f"rewording.{name}", flags=re.IGNORECASE).search(text) is not None


def _without_touchy(text: str) -> str:
    for pattern, instead in _left_out():
        text = pattern.sub(instead, text)
    text = re.sub(r"\s+([,.;:])", r"\1", " ".join(text.split()))
    text = re.sub(r"([,;，；])(?:\s*[,;，；])+", r"\1", text)
    return text.strip(" .,;:，；。：")

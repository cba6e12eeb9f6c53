"""The presenter: turns what a turn brought into components and writes the turn to the conversation.

A wish that was refused is offered in other words: asked of the text model where that is sensible, else found by rules.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress

from langgraph.types import Command, interrupt
from pydantic import JsonValue

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
    ThoughtLog,
    TurnDone,
    TurnFailed,
)
from agent.messages import PromptMessage, Role, TextPart, ToolCallPart, ToolResultPart
from agent.prompts import prompt
from agent.providers.base import ChatOptions
from agent.providers.catalogue import ModelRole
from agent.providers.sketch.phrases import is_chinese
from agent.workflow.asking import ask_text
from agent.workflow.capping import is_any_cap_used_up
from agent.workflow.deps import Deps, TurnRuntime, emit, say
from agent.workflow.hearing import json_in
from agent.workflow.state import Leftovers, Spend, TurnProgress

_RECORDED_AGAIN_S = 5.0
_OUTCOMES = (SmartCanvas, FailureNote, StoppedNote, PlanCard, ConsentCard, AskBack, TargetNote)

_STEP_OUTCOMES: dict[TurnState, Outcome] = {TurnState.FAILED: "failed", TurnState.STOPPED: "stopped"}

_NOT_DONE = defaultdict(
    lambda: "Stopped before it was done.",
    {TurnState.WAITING: "Not done yet: the person was asked and has not decided.", TurnState.FAILED: "It failed."},
)


async def presenter(state: TurnProgress, runtime: TurnRuntime) -> TurnProgress:
    """Write the finished turn and say so."""
    runtime.context.ledger.release()
    turn = await put_on_record(runtime.context, state, TurnState.DONE)
    emit(runtime, TurnDone(turn_id=turn.id, usage=turn.usage, price_usd=turn.price_usd, seconds=turn.seconds))
    return {}


async def failure(state: TurnProgress, runtime: TurnRuntime) -> TurnProgress:
    """Write the failed turn with all it brought, and say what happened and who must act."""
    error, node, left = state["error"], state["failed_node"], state["leftovers"]
    assert error is not None
    rewordings, spend, steps = await _reworded(state, runtime, error)
    note = FailureNote(error=error, node=node, rewordings=rewordings)
    failed: TurnProgress = {
        **state,
        "messages": [*state["messages"], *left.messages],
        "components": [*state["components"], *left.components, note],
        "spend": state["spend"] + spend,
        "steps": [*state["steps"], *steps],
    }
    turn = finished_turn(runtime.context, failed, TurnState.FAILED)
    try:
        await runtime.context.records.turns.finish(runtime.context.conversation.id, turn)
    except StorageFailure:
        # What the person is told is why it failed, not that the full disk takes no record of that.
        runtime.context.keep_alive(_recorded_later(runtime.context, turn))
    runtime.context.settled.set()
    emit(runtime, TurnFailed(error=error, node=node, rewordings=rewordings))
    # A turn that goes on from here has paid for them, too.
    return {"spend": spend, "steps": steps}


async def _recorded_later(deps: Deps, turn: Turn) -> None:
    while True:
        await asyncio.sleep(_RECORDED_AGAIN_S)
        with suppress(StorageFailure):
            await deps.records.turns.finish(deps.conversation.id, turn)
            return


async def retrial(state: TurnProgress, runtime: TurnRuntime) -> Command[str]:
    """Rest until the person has the turn go on, then run the node that failed once more."""
    interrupt(None)
    return Command(goto=state["failed_node"], update={"error": None, "failed_node": "", "leftovers": Leftovers()})


async def put_on_record(deps: Deps, state: TurnProgress, how: TurnState) -> Turn:
    """Write the turn as `finished_turn` returns it."""
    turn = finished_turn(deps, state, how)
    await deps.records.turns.finish(deps.conversation.id, turn)
    return turn


def finished_turn(deps: Deps, state: TurnProgress, how: TurnState) -> Turn:
    """Return the turn as it goes on record: messages without open calls, components in reading order."""
    return deps.turn.model_copy(
        update={
            "state": how,
            "messages": tuple(_answer_open_calls(state["messages"], _NOT_DONE[how])),
            "components": _in_reading_order(state, deps.elapsed_s, how),
            "usage": state["spend"].usage,
            "price_usd": state["spend"].price_usd,
            "seconds": round(deps.elapsed_s, 3),
            "timings": tuple(state["timings"]),
        }
    )


def _answer_open_calls(messages: Sequence[PromptMessage], reason: str) -> list[PromptMessage]:
    """Return the messages with every call answered: one that was cut off gets `reason` as its error.

    A model's message whose calls have no results makes the provider refuse the whole history.
    """
    if not messages or messages[-1].role is not Role.MODEL:
        return list(messages)
    calls = [part for part in messages[-1].parts if isinstance(part, ToolCallPart)]
    if not calls:
        return list(messages)
    results = tuple(
        ToolResultPart(name=call.name, call_id=call.call_id, content={"error": reason}, is_error=True) for call in calls
    )
    return [*messages, PromptMessage(role=Role.TOOL, parts=results)]


def _in_reading_order(state: TurnProgress, seconds: float, how: TurnState) -> tuple[Component, ...]:
    """Put the line of steps between the words and what came of them; a turn of words alone needs none."""
    components = [*state["components"], *([state["consent"]] if state["consent"] is not None else [])]
    if state["plan"] is not None:
        at = next((i for i, one in enumerate(components) if isinstance(one, _OUTCOMES)), len(components))
        components.insert(at, state["plan"])
    if len(state["steps"]) > 1:
        # Work that was done side by side is told of when all of it is over.
        lines = tuple(sorted(state["steps"], key=lambda line: line.at_s))
        steps = Steps(lines=lines, seconds=round(seconds, 3), outcome=_STEP_OUTCOMES.get(how, "done"))
        at = next((i for i, one in enumerate(components) if isinstance(one, _OUTCOMES)), len(components))
        components.insert(at, steps)
    return tuple(components)


_LONGEST_BY_RULE = 300
_MOST = 3
_LEAST_LETTERS = 3
_SEXUAL = r"naked|nude|nudity|topless|undressed|sexy|sexual|sexually|erotic|porn\w*|lingerie|nsfw|seductive(?:ly)?"
_GORY = r"bloody(?! mary)|bloodied|bleeding|gory"
_THINGS = (
    r"blood|gore|corpses?|dead bod(?:y|ies)|wounds?|(?<!glue )guns?|rifles?|pistols?|weapons?|bombs?|grenades?"
    r"|explosives?|suicide|terrorists?|cocaine|heroin|drugs"
)
# Each deed as it is said of whoever does it now: those words have another in their place.
_DOING = r"(?:kill|murder|stabb|behead|tortur)ing"
_DOES = r"(?:kill|murder|stab|behead|torture)s"
_DO = r"kill|murder|stab|behead|torture"
_DONE_ENGLISH = re.compile(r"\b(?:killed|murdered|stabbed|beheaded|tortured)\b", re.IGNORECASE)
# A thing goes with the words that lead to it and to nothing else; a word that only describes one goes alone.
_LEAD = r"(?:\b(?:with|holding|carrying|covered in|full of|and|of)\s+)?(?:\b(?:a|an|the|his|her|their|some)\s+)?"
_ENGLISH = (
    (re.compile(rf"{_LEAD}\b(?:{_THINGS})\b", re.IGNORECASE), ""),
    (re.compile(rf"\b(?:{_SEXUAL}|{_GORY})\b", re.IGNORECASE), ""),
    (re.compile(rf"\b(?:{_DOING})\b", re.IGNORECASE), "facing"),
    (re.compile(rf"\b(?:{_DOES})\b", re.IGNORECASE), "faces"),
    (re.compile(rf"\b(?:{_DO})\b", re.IGNORECASE), "face"),
)
_SEXUAL_ENGLISH = re.compile(rf"\b(?:{_SEXUAL})\b", re.IGNORECASE)
_YOUNG_ENGLISH = re.compile(
    r"\b(?:child(?:ren)?|kids?|girls?|boys?|teens?|teenagers?|schoolgirls?|schoolboys?|toddlers?|bab(?:y|ies)|minors?"
    r"|underage)\b",
    re.IGNORECASE,
)
_SEXUAL_CHINESE = re.compile(r"裸体|裸露|全裸|半裸|赤裸|性感|色情|情色|诱惑|内衣")
_IN_CHINESE = (
    (
        re.compile(
            r"(?:拿着|握着|带着|举着)?(?:一把|一支|一颗)?"
            r"(?:手枪|步枪|枪支|(?<![标水焊胶])枪|武器|炸弹|手榴弹|炸药)的?"
        ),
        "",
    ),
    (
        re.compile(rf"(?:{_SEXUAL_CHINESE.pattern}|血腥|鲜血|流血|血迹|尸体|伤口|自杀|恐怖分子|可卡因|海洛因|毒品)的?"),
        "",
    ),
    (re.compile(r"杀死|杀害|谋杀|砍头|刺杀|折磨"), "面对"),
)
_DONE_CHINESE = re.compile(r"被[^，。；]{0,6}(?:杀死|杀害|谋杀|砍头|刺杀|折磨)")
_YOUNG_CHINESE = re.compile(r"儿童|孩子|小孩|女孩|男孩|少女|少年|幼女|学生妹|婴儿|未成年")
_ASKING = re.compile(r"^(?:please\s+)?(?:draw|paint|make|create|generate|show)(?:\s+me)?\s+", re.IGNORECASE)
_ASKING_CHINESE = re.compile(r"^(?:请)?(?:帮我)?(?:画|绘制|生成|做)(?:一张|一幅|一个)?")
_CALM = ("{wish}, peaceful and suitable for everyone", "{wish}，画面平和，适合所有人观看")
_INVENTED = ("{wish}, as an illustration with invented characters, nobody real", "{wish}，插画风格，人物全部虚构")
_PLACE = ("Only the place and the mood of this, without people: {wish}", "只画场景和气氛，不要人物：{wish}")
_OWN_STYLE = ("{wish}, in a style of its own that follows no known work", "{wish}，用全新的风格，不参照任何已有作品")
_OWN_CAST = (
    "{wish}, with characters, names and signs that are all newly invented",
    "{wish}，人物、名称和标志全部重新设计",
)
_OTHER_VIEW = ("{wish}, seen from an unusual side and composed anew", "{wish}，换一个少见的视角，重新构图")
_PLAINLY = ("Draw one picture, without any words in answer: {wish}", "直接画一张图，不用文字回答：{wish}")
_FORMS: dict[ErrorCode, tuple[tuple[str, str], ...]] = {
    ErrorCode.PICTURE_RECITATION: (_OWN_STYLE, _OWN_CAST, _OTHER_VIEW),
    ErrorCode.TEXT_INSTEAD_OF_PICTURE: (_PLAINLY, _CALM, _INVENTED),
}
_OTHERWISE = (_CALM, _INVENTED, _PLACE)
_log = logging.getLogger(__name__)

_PATIENCE_S = 8.0
_SHORTEST, _LONGEST = 3, 400
_LONGEST_WISH = 2000
_SCHEMA: dict[str, JsonValue] = {
    "type": "object",
    "properties": {"rewordings": {"type": "array", "items": {"type": "string"}}},
    "required": ["rewordings"],
}


async def _reworded(
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
    listed = (json_in(text) or {}).get("rewordings")
    if not isinstance(listed, list):
        return None
    lines = (" ".join(one.split()) for one in listed if isinstance(one, str))
    same = " ".join(wish.split()).casefold()
    kept = [one for one in lines if _SHORTEST <= len(one) <= _LONGEST and one.casefold() != same]
    offers = tuple(dict.fromkeys(kept))[:_MOST]
    return offers if offers or not listed else None


def reworded_by_rule(wish: str, code: ErrorCode) -> tuple[str, ...]:
    """Return two or three other wishes, or none where nothing is left that could be asked for, or a sentence would
    break: of what was done to somebody no single word can be exchanged. What is most often refused is left out; nothing
    is disguised."""
    said = " ".join(wish.split())[:_LONGEST_BY_RULE].strip(" .,;:!?。，；：！？")
    if _is_beyond_rewording(said) or _DONE_ENGLISH.search(said) or _DONE_CHINESE.search(said):
        return ()
    core = _without_touchy(said)
    if sum(char.isalnum() for char in core) < _LEAST_LETTERS:
        return ()
    language = 1 if is_chinese(said) else 0
    asking = (_ASKING, _ASKING_CHINESE)[language]
    offers = []
    for form in _FORMS.get(code, _OTHERWISE):
        text = form[language]
        # A form that says what to draw itself does not repeat it.
        inner = core if text.startswith("{wish}") else asking.sub("", core)
        offers.append(text.format(wish=inner))
    return tuple(offers[:_MOST])


def _is_beyond_rewording(said: str) -> bool:
    """Return whether the wish brings the young and the sexual together: no other words of it are offered."""
    is_sexual = _SEXUAL_ENGLISH.search(said) or _SEXUAL_CHINESE.search(said)
    return bool(is_sexual and (_YOUNG_ENGLISH.search(said) or _YOUNG_CHINESE.search(said)))


def _without_touchy(said: str) -> str:
    text = said
    for pattern, instead in (*_ENGLISH, *_IN_CHINESE):
        text = pattern.sub(instead, text)
    text = re.sub(r"\s+([,.;:])", r"\1", " ".join(text.split()))
    text = re.sub(r"([,;，；])(?:\s*[,;，；])+", r"\1", text)
    return text.strip(" .,;:，；。：")

"""The planner: one streamed call of the text model with functions only. It talks, asks back, and calls tools.

Of the history it sees the newest turns, whole, with earlier pictures as placeholders.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from hashlib import sha256
from itertools import groupby

from pydantic import JsonValue, ValidationError

from agent.conversation import Conversation, Turn
from agent.errors import ErrorCode, ErrorInfo, ToolArgumentError
from agent.events import AgentMessage, FailureNote, SearchNote, SmartCanvas, Step, TextDelta, ThoughtDelta
from agent.history_images import replace_history_images
from agent.imaging.arguments import GENERATE_IMAGE
from agent.imaging.contract import declaration, parse_arguments
from agent.imaging.intents import claims_a_picture, holds_question, is_unsure
from agent.messages import (
    ContentPart,
    ImageOrigin,
    ImagePart,
    PromptMessage,
    Role,
    SignedPart,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)
from agent.pictures import Picture
from agent.prompts import prompt
from agent.providers.base import ChatOptions, ToolDeclaration
from agent.storage.journal import CallAnswer
from agent.tools.base import error_result
from agent.workflow.deps import Deps, emit, say, show, today
from agent.workflow.image_requests import refused_by_locks
from agent.workflow.model_answers import Answer, OnText
from agent.workflow.model_calls import ask_text
from agent.workflow.reception import asked_back
from agent.workflow.searcher import WEB_SEARCH
from agent.workflow.spending_caps import beyond_sponsored_budget, cap_in_the_way, refused_by_cap
from agent.workflow.state import SEARCH, Leftovers, Next, Target, TurnProgress, next_target, settle
from agent.workflow.tools import asked_about_cost
from agent.workflow.tracing import TextRequest

ASK_INSTEAD = (
    "Nothing was painted, because you were not sure what is wanted. Ask the person one short question about it, in "
    "their language, and call nothing."
)
_NOTHING_PAINTED = (
    "[The studio: no picture was made, because generate_image was not called. If the person wants one, call it now. If "
    "not, answer them without claiming one.]"
)
# In characters of an argument, by the call: a picture's prompt, what else a picture or a search is asked for with.
_PROMPT_CHARACTERS = 32_000
_MOST_CHARACTERS = {GENERATE_IMAGE: 2_000, SEARCH: 2_000}
# Files and programs have limits of their own, which are below this one.
_ANY_CHARACTERS = 4_000_000
_KEPT_CHARACTERS = 500
_MAX_STEPS = 16
# Part of every name of a kept answer: raise it when the form of what is kept changes.
_FORM = 2
_MAX_SAME_CALLS = 3
# Faster than a screen draws; each event costs as much as reading several chunks.
_PAUSE_S = 0.012
# Steps of the event loop from the node to whoever follows the turn.
_HOPS = 2
# What is listed of earlier pictures: how many, and how much of what each shows.
MOST_PICTURES = 48
_ALT_CHARACTERS = 70
_MAX_MESSAGES = 50
# Sent again, such a message would have every later turn declined with it: the provider judges the history as a whole.
_DECLINED = frozenset({ErrorCode.PROMPT_BLOCKED, ErrorCode.REQUEST_REJECTED})


async def planner(state: TurnProgress, deps: Deps) -> Next:
    """Ask the text model what to do next, stream its words, and go where its calls lead.

    Nothing is asked by a new turn when a cap is used up or no image model can obey the person's settings, nor by one
    that has cost more than is lent for it; a cap of zero has the person asked each time. A call that the planner wrote
    too long is not carried out: it is told so.
    """
    is_first = state["planner_steps"] == 0
    refusal = beyond_sponsored_budget(state, deps) or (refused_by_locks(deps) if is_first else None)
    cap = await cap_in_the_way(state, deps) if refusal is None else None
    if cap is not None and cap.cap_usd == 0:
        return await asked_about_cost(state, deps, cap)
    refusal = refused_by_cap(cap) if cap is not None else refusal
    if refusal is not None:
        return Next("failure", {"error": refusal, "failed_node": "planner"})
    say(deps, Step.THINKING)
    answer, is_reused = await _ask(deps, f"planner:{state['planner_steps'] + 1}", state)
    answer, too_long = _without_the_too_long(answer)
    if is_reused:
        say(deps, Step.REUSED)
    update: TurnProgress = {"messages": [answer.message] if answer.parts else []}
    if answer.text:
        update["components"] = [AgentMessage(text=answer.text), *_quoted(answer, deps)]
    counts = _count(state["call_counts"], answer.calls)
    steps = state["planner_steps"] + 1
    error = answer.error or _overrun(steps, counts, answer)
    if error is not None:
        left = Leftovers(messages=tuple(update.pop("messages", ())), components=tuple(update.pop("components", ())))
        return Next("failure", {**update, "leftovers": left, "error": error, "failed_node": "planner"})
    _announce_understood(answer.calls, deps)
    planned: TurnProgress = {**state, "calls": answer.calls, "answers": too_long}
    if _only_claims(state, deps, answer):
        target, further = _claimed(state["claims"], deps)
    else:
        target, further = _without_the_unsure(planned, answer, deps)
    update["messages"] += further.pop("messages", [])
    update["components"] = update.get("components", []) + further.pop("components", [])
    return Next(
        target,
        {
            **update,
            "calls": answer.calls,
            "answers": too_long,
            "planner_steps": steps,
            "call_counts": counts,
            **further,
        },
    )


async def _ask(deps: Deps, name: str, state: TurnProgress) -> tuple[Answer, bool]:
    # What came with the message, or is marked in it, is what it is about.
    is_clear = bool(deps.turn.uploads or deps.turn.editing)
    target = None if is_clear else deps.edit_history(state).target
    messages = _model_view(deps, state["messages"], target=target, words=state["words"])
    tools = _declared_tools(deps)
    options = ChatOptions(system=_system_prompt(deps), shows_thoughts=True)

    def tell(text: str, is_thought: bool) -> None:
        emit(deps, ThoughtDelta(text=text) if is_thought else TextDelta(text=text))

    async with TextFlow(tell) as flow:
        answer, is_reused = await _ask_or_reuse(deps, name, messages, tools, options, flow.take)
        if _was_rejected_for_signatures(answer):
            messages = _without_old_signatures(messages)
            answer = await ask_text(deps, f"{name}.unsigned", messages, tools, options, flow.take)
    return answer, is_reused


def _quoted(answer: Answer, deps: Deps) -> list[SearchNote]:
    """Show the works that the words quote, where the model names them."""
    sources = answer.grounding.sources if answer.grounding else ()
    return [show(deps, SearchNote(sources=sources))] if sources else []


def _was_rejected_for_signatures(answer: Answer) -> bool:
    return answer.error is not None and answer.error.code is ErrorCode.SIGNATURE_REJECTED and not answer.parts


def _declared_tools(deps: Deps) -> list[ToolDeclaration]:
    """Return what the planner may call: `web_search` only when the agent itself may search."""
    tools = [declaration(deps.services.catalogue, deps.provider_name, may_ground=deps.may_ground)]
    tools += [tool.declaration for tool in deps.tools.values() if tool.is_offered]
    if deps.may_search:
        tools.append(WEB_SEARCH)
    return tools


def _system_prompt(deps: Deps) -> str:
    """Return the planner's instructions for the permissions of this turn."""
    rules = []
    if deps.may_search:
        rules.append(prompt("search_allowed"))
    if deps.may_ground:
        rules.append(prompt("search_both" if deps.may_search else "search_by_painter"))
    search = "\n" + "\n".join(rules) + "\n" if rules else ""
    return prompt("planner").replace("{today}", today().isoformat()).replace("{search}", search)


def _only_claims(state: TurnProgress, deps: Deps, answer: Answer) -> bool:
    """Return whether the answer claims a picture in a turn that has called nothing: what a tool did may be told."""
    has_called = bool(answer.calls) or any(message.role is Role.TOOL for message in state["messages"])
    return not has_called and claims_a_picture(answer.text, deps.turn.text)


def _announce_understood(calls: Sequence[ToolCallPart], deps: Deps) -> None:
    """Tell what was understood of the wish, where the model says so."""
    for call in calls:
        named = (call.arguments.get(name) for name in ("subject", "style") if call.name == GENERATE_IMAGE)
        wish = ", ".join(one.strip() for one in named if isinstance(one, str) and one.strip())
        if wish:
            say(deps, Step.UNDERSTOOD, wish=wish[:120])


def _count(before: dict[str, int], calls: list[ToolCallPart]) -> dict[str, int]:
    now = Counter(f"{call.name} {json.dumps(call.arguments, sort_keys=True)}" for call in calls)
    return dict(Counter(before) + now)


def _overrun(steps: int, counts: dict[str, int], answer: Answer) -> ErrorInfo | None:
    if not answer.calls:
        return None
    if steps >= _MAX_STEPS or max(counts.values(), default=0) >= _MAX_SAME_CALLS:
        return ErrorInfo(code=ErrorCode.TOO_MANY_STEPS, parameters={"steps": steps})
    return None


async def _ask_or_reuse(
    deps: Deps,
    name: str,
    messages: Sequence[PromptMessage],
    tools: Sequence[ToolDeclaration],
    options: ChatOptions,
    on_text: OnText,
) -> tuple[Answer, bool]:
    """Return the text model's answer, and whether it was there already. What is reused costs nothing again."""
    if deps.services.answers is None:
        return await ask_text(deps, name, messages, tools, options, on_text), False
    key = _key_of(deps, messages, tools, options)
    cached = _cached_answer(await deps.services.answers.get(key))
    if cached is not None:
        answer = Answer(parts=list(cached.parts), finish_reason=cached.finish_reason)
        with deps.trace.call(name, deps.text_model, TextRequest(messages, tools, options)) as step:
            step.answer(answer, 0.0, "cache")
        if answer.text:
            await on_text(answer.text, False)
        return answer, True
    answer = await ask_text(deps, name, messages, tools, options, on_text)
    if answer.error is None:
        kept = CallAnswer(parts=tuple(answer.parts), usage=answer.usage, finish_reason=answer.finish_reason)
        await deps.services.answers.put(key, kept.model_dump_json().encode())
    return answer, False


def _key_of(
    deps: Deps, messages: Sequence[PromptMessage], tools: Sequence[ToolDeclaration], options: ChatOptions
) -> str:
    """Return the name under which the answer to a request is kept: the SHA-256 of all that it depends on.

    The owner is part of it, so that nothing of one visitor answers another, and so is the fingerprint of the provider's
    key. A picture counts by its digest, a thought signature by its bytes.
    """
    told = [one.model_dump(mode="json") for one in (*messages, *tools, options)]
    request = [_FORM, deps.conversation.owner, deps.key_fingerprint, deps.text_model.id, len(messages), told]
    return sha256(json.dumps(request, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def _cached_answer(kept: bytes | None) -> CallAnswer | None:
    """Return the answer that is kept, None where there is no whole one."""
    try:
        answer = CallAnswer.model_validate_json(kept or b"")
    except ValidationError:
        return None
    return answer if answer.parts else None


def _without_the_too_long(answer: Answer) -> tuple[Answer, dict[int, ToolResultPart]]:
    """Return the answer with its overlong arguments cut, and what the calls that had one are answered with.

    The call stays in the history, so that the model can mend it, but not at its full length: it would be sent, and
    paid, with every later request. One that was cut is not the one that the model signed, so it goes without signature.
    """
    problems = {index: problem for index, call in enumerate(answer.calls) if (problem := _problem(call))}
    if not problems:
        return answer, {}
    calls = answer.calls
    shorter = {id(calls[index]): _shortened(calls[index]) for index in problems}
    parts: list[ContentPart] = [shorter.get(id(part), part) for part in answer.parts]
    refused = {index: error_result(calls[index], problem) for index, problem in problems.items()}
    return replace(answer, parts=parts), refused


def _problem(call: ToolCallPart) -> str:
    """Return what is wrong with the call's length, or nothing."""
    for name, value in call.arguments.items():
        length, most = _length(value), _most(call.name, name)
        if length > most:
            return (
                f"{call.name} was not carried out: its {name} has {length} characters, and at most {most} are taken. "
                "Call it again with less."
            )
    return ""


def _shortened(call: ToolCallPart) -> ToolCallPart:
    arguments = {
        name: _cut(value) if _length(value) > _most(call.name, name) else value
        for name, value in call.arguments.items()
    }
    return call.unsigned().model_copy(update={"arguments": arguments})


def _most(call: str, argument: str) -> int:
    is_prompt = call == GENERATE_IMAGE and argument == "prompt"
    return _PROMPT_CHARACTERS if is_prompt else _MOST_CHARACTERS.get(call, _ANY_CHARACTERS)


def _length(value: JsonValue) -> int:
    return len(value) if isinstance(value, str) else len(json.dumps(value))


def _cut(value: JsonValue) -> JsonValue:
    return (value if isinstance(value, str) else json.dumps(value))[:_KEPT_CHARACTERS] + " …"


def _without_the_unsure(state: TurnProgress, answer: Answer, deps: Deps) -> tuple[Target, TurnProgress]:
    """Return where the planner's calls lead and the update, once those it is not sure of are answered with a no.

    `state` holds the calls, and what some are answered with already; its `unsure_calls` are those of earlier steps of
    the turn.
    """
    calls = state["calls"]
    has_mask = deps.turn.has_area
    waiting = [index for index in range(len(calls)) if index not in state["answers"]]
    unsure = [index for index in waiting if _is_unsure(calls[index], has_mask=has_mask)]
    if not unsure:
        return settle(state, {}) if state["answers"] else (next_target(calls, answered=()), {})
    answers: dict[int, ToolResultPart] = {index: error_result(calls[index], ASK_INSTEAD) for index in unsure}
    target, update = settle(state, answers)
    update["unsure_calls"] = state["unsure_calls"] + len(unsure)
    if len(unsure) < len(calls):
        return target, update
    if holds_question(answer.text):
        # The turn ends with the question that the planner asked in words beside its call.
        return "presenter", update
    if not state["unsure_calls"]:
        return "planner", update
    asked = asked_back(deps, "unsure", _subject(calls, unsure))
    update["messages"] = update.get("messages", []) + asked["messages"]
    update["components"] = asked["components"]
    return "presenter", update


def _claimed(claims_so_far: int, deps: Deps) -> tuple[Target, TurnProgress]:
    """Return where an answer leads that claims a picture which no call made: the planner is asked once more, then the
    person is told."""
    if not claims_so_far:
        note = PromptMessage(role=Role.PROMPT, parts=(TextPart(text=_NOTHING_PAINTED),))
        return "planner", {"messages": [note], "claims": 1}
    return "presenter", asked_back(deps, "not_painted")


def _is_unsure(call: ToolCallPart, *, has_mask: bool) -> bool:
    if call.name != GENERATE_IMAGE:
        return False
    try:
        return is_unsure(parse_arguments(call.arguments), has_mask=has_mask)
    except ToolArgumentError:
        # The executor answers it with the sentence from which the planner can mend it.
        return False


def _subject(calls: Sequence[ToolCallPart], unsure: Sequence[int]) -> str:
    named = (calls[index].arguments.get("subject") for index in unsure)
    return next((one.strip()[:80] for one in named if isinstance(one, str) and one.strip()), "")


class TextFlow:
    """Gathers streamed words and hands them on, none later than a few milliseconds after it came.

    Use it as an async context manager: leaving hands on what is left.
    """

    def __init__(self, hand_on: Callable[[str, bool], None]) -> None:
        self._hand_on = hand_on
        self._waiting: list[str] = []
        self._timer: asyncio.TimerHandle | None = None
        self._are_thoughts = False
        self._is_first = True

    async def __aenter__(self) -> TextFlow:
        return self

    async def __aexit__(self, *_: object) -> None:
        self._flush()

    async def take(self, text: str, is_thought: bool = False) -> None:
        """Take more words, or thoughts. The first ones are handed on before this returns."""
        if is_thought != self._are_thoughts:
            self._flush()
            self._are_thoughts = is_thought
        self._waiting.append(text)
        if self._is_first:
            self._is_first = False
            self._flush()
            # Chunks that lie ready in the socket are read without a pause: the listeners would wait for the last one.
            for _ in range(_HOPS):
                await asyncio.sleep(0)
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_PAUSE_S, self._flush)

    def _flush(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._waiting:
            self._hand_on("".join(self._waiting), self._are_thoughts)
            self._waiting.clear()


def _model_view(
    deps: Deps, added: Sequence[PromptMessage], *, target: str | None, words: str
) -> tuple[PromptMessage, ...]:
    """Return the messages for the text model: the window of the past, then what this turn has added.

    Pictures before the newest prompt are placeholders; those of the newest prompt are named by their handles, and a
    listing of the earlier ones goes with it, which says that `target` is the one to change. It is not kept: what comes
    before the newest prompt stays the same from turn to turn, which is cheaper. When the person went back to `target`
    in this message, `words` are what else they asked for, and stand instead of all of theirs.
    """
    past = _newest_messages(deps.conversation.turns, _MAX_MESSAGES - len(added))
    now = [_after_going_back(added[0], deps.turn.text, words, target), *added[1:]] if words and target else added
    seen = [*past, *_with_listing(now, pictures_listing(deps.conversation, target))]
    return tuple(_with_handles(message) for message in replace_history_images(seen))


def _newest_messages(turns: Sequence[Turn], limit: int) -> list[PromptMessage]:
    """Return the messages of the newest turns that fit into `limit`, oldest first.

    A turn is taken whole or not at all, so that no call is cut from its result. Of a turn that the planner's model
    declined to read only the uploads are left.
    """
    taken: list[tuple[PromptMessage, ...]] = []
    room = limit
    for turn in reversed(turns):
        messages = _of_declined(turn) if _was_declined(turn) else turn.messages
        room -= len(messages)
        if room < 0:
            break
        taken.append(messages)
    return [message for messages in reversed(taken) for message in messages]


def _after_going_back(prompt: PromptMessage, said: str, words: str, target: str) -> PromptMessage:
    """Return the person's message without the words by which they went back, and with a note of where to."""
    parts = [TextPart(text=words) if part == TextPart(text=said) else part for part in prompt.parts]
    note = TextPart(text=f"[The person went back to {target} first: it is the picture to change.]")
    return prompt.model_copy(update={"parts": (*parts[:1], note, *parts[1:])})


def _with_listing(added: Sequence[PromptMessage], listing: str) -> Sequence[PromptMessage]:
    if not listing or not added:
        return added
    prompt = added[0]
    return (prompt.model_copy(update={"parts": (*prompt.parts, TextPart(text=listing))}), *added[1:])


def _was_declined(turn: Turn) -> bool:
    notes = (component for component in turn.components if isinstance(component, FailureNote))
    return any(note.node == "planner" and note.error.code in _DECLINED for note in notes)


def _of_declined(turn: Turn) -> tuple[PromptMessage, ...]:
    return (PromptMessage(role=Role.PROMPT, parts=turn.uploads),) if turn.uploads else ()


def _without_old_signatures(messages: Sequence[PromptMessage]) -> tuple[PromptMessage, ...]:
    """Return the messages with no thought signature left, for the one retry after the provider rejected some."""
    return tuple(message.model_copy(update={"parts": tuple(map(_unsigned, message.parts))}) for message in messages)


def _unsigned(part: ContentPart) -> ContentPart:
    return part.unsigned() if isinstance(part, SignedPart) and part.is_signed else part


def _with_handles(message: PromptMessage) -> PromptMessage:
    if message.role is not Role.PROMPT or not message.images:
        return message
    parts: list[ContentPart] = []
    for part in message.parts:
        if isinstance(part, ImagePart) and part.handle:
            parts.append(TextPart(text=f"Picture {part.handle}:"))
        parts.append(part)
    return message.model_copy(update={"parts": tuple(parts)})


def pictures_listing(conversation: Conversation, target: str | None = None) -> str:
    """Return the pictures from before this turn, oldest first, a line for each message of the person that brought any;
    nothing when there is none.

    Of more than `MOST_PICTURES` the newest are listed. Who made each, from which, and what it shows, in brackets. The
    last line says which one is changed when none is named (`target`).
    """
    pictures = conversation.pictures[-MOST_PICTURES:]
    if not pictures:
        return ""
    canvases = [one for turn in conversation.turns for one in turn.components if isinstance(one, SmartCanvas)]
    folded = {handle for canvas in canvases for handle in canvas.earlier}
    lines = [
        ", ".join(_described(picture, is_folded=picture.handle in folded) for picture in group)
        for _, group in groupby(pictures, key=lambda picture: picture.turn_id)
    ]
    left_out = len(conversation.pictures) - len(pictures)
    head = [f"({left_out} earlier pictures are not listed)"] if left_out else []
    now = [f"When no picture is named, {target} is the one to change."] if target else []
    return "\n".join(("[PICTURES]", *head, *lines, *now, "[/PICTURES]"))


def _described(picture: Picture, *, is_folded: bool) -> str:
    told = [_origin(picture)]
    if is_folded:
        told.append("an attempt that a review sent back")
    if picture.is_set_aside:
        told.append("set aside")
    # It stands in a block of brackets, and may come from a file's name or a page of the web.
    text = " ".join(picture.alt.translate(str.maketrans("[]()", "    ")).split())
    if text:
        told.append(text if len(text) <= _ALT_CHARACTERS else text[: _ALT_CHARACTERS - 1].rstrip() + "…")
    return f"{picture.handle} ({'; '.join(told)})"


def _origin(picture: Picture) -> str:
    match picture.image.origin:
        case ImageOrigin.UPLOADED:
            return "uploaded by the person"
        case ImageOrigin.GENERATED:
            return "painted here"
        case ImageOrigin.EDITED:
            is_exact = picture.receipt is not None and picture.receipt.is_exact
            verb = "adjusted" if is_exact else "changed"
            return f"{verb} here from {picture.parents[0]}" if picture.parents else f"{verb} here"

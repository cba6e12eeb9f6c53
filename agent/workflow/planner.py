"""The planner: one streamed call of the text model with only functions as tools; it answers, asks back, or calls them.

It receives the newest complete turns of the history, with placeholders for earlier pictures.
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
from agent.events import AgentMessage, Component, FailureNote, SearchNote, SmartCanvas, Step, TextDelta, ThoughtDelta
from agent.history_images import replace_history_images
from agent.imaging.arguments import GENERATE_IMAGE, parse_arguments
from agent.imaging.contract import declaration
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
# Limits in characters of an argument: for an image prompt, and for other arguments by the name of the call.
_PROMPT_CHARACTERS = 32_000
_MOST_CHARACTERS = {GENERATE_IMAGE: 2_000, SEARCH: 2_000}
# For all other tools; files and programs have their own, lower limits.
_ANY_CHARACTERS = 4_000_000
_KEPT_CHARACTERS = 500
_MAX_STEPS = 16
# Part of every key of the answer cache: increase it when the format of cached answers changes.
_FORM = 2
_MAX_SAME_CALLS = 3
# Shorter than a screen refresh; each event costs as much as reading several chunks.
_PAUSE_S = 0.012
# The event loop iterations until a published event reaches the turn's listeners.
_HOPS = 2
# Limits for the list of earlier pictures: their number, and the length of each description.
MOST_PICTURES = 48
_ALT_CHARACTERS = 70
_MAX_MESSAGES = 50
# A message with such an error is not sent again: the provider judges the whole history and would block later turns.
_DECLINED = frozenset({ErrorCode.PROMPT_BLOCKED, ErrorCode.REQUEST_REJECTED})


async def planner(state: TurnProgress, deps: Deps) -> Next:
    """Ask the text model what to do next, stream its text, and continue with the node for its calls.

    The model is not called in a new turn if a cap is used up or no image model can obey the user's settings, nor in a
    turn that exceeds its sponsored budget; with a cap of zero the user is asked each time. A call with an argument that
    is too long is not carried out, and the model receives an error.
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
    messages = [answer.message] if answer.parts else []
    components: list[Component] = [AgentMessage(text=answer.text)] if answer.text else []
    if answer.text and answer.grounding.sources:
        # The text quotes them.
        components.append(show(deps, SearchNote(sources=answer.grounding.sources)))
    called = Counter(f"{call.name} {json.dumps(call.arguments, sort_keys=True)}" for call in answer.calls)
    counts = dict(Counter(state["call_counts"]) + called)
    steps = state["planner_steps"] + 1
    error = answer.error or _overrun(steps, counts, answer)
    if error is not None:
        left = Leftovers(messages=tuple(messages), components=tuple(components))
        return Next("failure", {"leftovers": left, "error": error, "failed_node": "planner"})
    _announce_understood(answer.calls, deps)
    planned: TurnProgress = {**state, "calls": answer.calls, "answers": too_long}
    if _only_claims(state, deps, answer):
        target, further = _claimed(state["claims"], deps)
    else:
        target, further = _without_the_unsure(planned, answer, deps)
    update: TurnProgress = {
        "calls": answer.calls,
        "answers": too_long,
        "planner_steps": steps,
        "call_counts": counts,
        **further,
        "messages": messages + further.get("messages", []),
        "components": components + further.get("components", []),
    }
    return Next(target, update)


async def _ask(deps: Deps, name: str, state: TurnProgress) -> tuple[Answer, bool]:
    # An uploaded or marked picture is the subject of the message, so no edit target is stated.
    is_clear = bool(deps.turn.uploads or deps.turn.editing)
    target = None if is_clear else deps.edit_history(state).target
    messages = _model_view(deps, state["messages"], target=target, words=state["words"])
    tools = [declaration(deps.services.catalogue, deps.provider_name, may_ground=deps.may_ground)]
    tools += [tool.declaration for tool in deps.tools.values() if tool.is_offered]
    if deps.may_search:
        tools.append(WEB_SEARCH)
    options = ChatOptions(system=_system_prompt(deps), shows_thoughts=True)

    def tell(text: str, is_thought: bool) -> None:
        emit(deps, ThoughtDelta(text=text) if is_thought else TextDelta(text=text))

    async with TextFlow(tell) as flow:
        answer, is_reused = await _ask_or_reuse(deps, name, messages, tools, options, flow.take)
        if answer.error is not None and answer.error.code is ErrorCode.SIGNATURE_REJECTED and not answer.parts:
            messages = _without_old_signatures(messages)
            answer = await ask_text(deps, f"{name}.unsigned", messages, tools, options, flow.take)
    return answer, is_reused


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
    """Return whether the answer claims to have made a picture although the turn called no tool."""
    has_called = bool(answer.calls) or any(message.role is Role.TOOL for message in state["messages"])
    return not has_called and claims_a_picture(answer.text, deps.turn.text)


def _announce_understood(calls: Sequence[ToolCallPart], deps: Deps) -> None:
    """Emit how the model understood the request, if its calls name a subject or a style."""
    for call in calls:
        if call.name != GENERATE_IMAGE:
            continue
        named = (call.arguments.get(name) for name in ("subject", "style"))
        wish = ", ".join(one.strip() for one in named if isinstance(one, str) and one.strip())
        if wish:
            say(deps, Step.UNDERSTOOD, wish=wish[:120])


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
    """Return the text model's answer, and whether it came from the cache; a cached answer costs nothing."""
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
    """Return the cache key of a request: the SHA-256 of everything that the answer depends on.

    It includes the owner, so that visitors never share answers, and the fingerprint of the provider's key. A picture is
    represented by its digest, a thought signature by its bytes.
    """
    dumped = [one.model_dump(mode="json") for one in (*messages, *tools, options)]
    request = [_FORM, deps.conversation.owner, deps.key_fingerprint, deps.text_model.id, len(messages), dumped]
    return sha256(json.dumps(request, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def _cached_answer(kept: bytes | None) -> CallAnswer | None:
    """Return the cached answer, None when there is no complete one."""
    try:
        answer = CallAnswer.model_validate_json(kept or b"")
    except ValidationError:
        return None
    return answer if answer.parts else None


def _without_the_too_long(answer: Answer) -> tuple[Answer, dict[int, ToolResultPart]]:
    """Return the answer with its overlong arguments cut, and the error results for these calls.

    The call stays in the history, so that the model can correct it, but shortened: otherwise every later request would
    send it again and pay for it. A shortened call loses its signature, because it is not what the model signed.
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
    """Return the error message for a call with an argument that is too long, else an empty string."""
    for name, value in call.arguments.items():
        length, most = len(_text(value)), _most(call.name, name)
        if length > most:
            return (
                f"{call.name} was not carried out: its {name} has {length} characters, and at most {most} are taken. "
                "Call it again with less."
            )
    return ""


def _shortened(call: ToolCallPart) -> ToolCallPart:
    arguments = {
        name: f"{_text(value)[:_KEPT_CHARACTERS]} …" if len(_text(value)) > _most(call.name, name) else value
        for name, value in call.arguments.items()
    }
    return call.unsigned().model_copy(update={"arguments": arguments})


def _most(call: str, argument: str) -> int:
    is_prompt = call == GENERATE_IMAGE and argument == "prompt"
    return _PROMPT_CHARACTERS if is_prompt else _MOST_CHARACTERS.get(call, _ANY_CHARACTERS)


def _text(value: JsonValue) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _without_the_unsure(state: TurnProgress, answer: Answer, deps: Deps) -> tuple[Target, TurnProgress]:
    """Return the next node and the update, after rejecting the calls that the planner is unsure about.

    `state` has the calls and the existing answers; its `unsure_calls` counts those of earlier steps of the turn.
    """
    calls = state["calls"]
    unsure = [
        index
        for index, call in enumerate(calls)
        if index not in state["answers"] and _is_unsure(call, has_mask=deps.turn.has_area)
    ]
    if not unsure:
        return settle(state, {}) if state["answers"] else (next_target(calls, answered=()), {})
    answers: dict[int, ToolResultPart] = {index: error_result(calls[index], ASK_INSTEAD) for index in unsure}
    target, update = settle(state, answers)
    update["unsure_calls"] = state["unsure_calls"] + len(unsure)
    if len(unsure) < len(calls):
        return target, update
    if holds_question(answer.text):
        # The turn ends with the question in the planner's text.
        return "presenter", update
    if not state["unsure_calls"]:
        return "planner", update
    named = (calls[index].arguments.get("subject") for index in unsure)
    subject = next((one.strip()[:80] for one in named if isinstance(one, str) and one.strip()), "")
    asked = asked_back(deps, "unsure", subject)
    update["messages"] = update.get("messages", []) + asked["messages"]
    update["components"] = asked["components"]
    return "presenter", update


def _claimed(claims_so_far: int, deps: Deps) -> tuple[Target, TurnProgress]:
    """Return the next node and the update after an answer that claims a picture without a call.

    The planner is asked again once; after that the user is told."""
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
        # The executor answers it with an error message, so that the planner can correct it.
        return False


class TextFlow:
    """Buffers streamed text and passes each piece on after at most a few milliseconds.

    Use it as an async context manager: leaving it passes on the rest.
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
        """Add text, or thoughts. The first piece is passed on before this returns."""
        if is_thought != self._are_thoughts:
            self._flush()
            self._are_thoughts = is_thought
        self._waiting.append(text)
        if self._is_first:
            self._is_first = False
            self._flush()
            # Let the listeners run: chunks buffered in the socket are read without a pause, until the last one.
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
    """Return the messages for the text model: the history window, then this turn's messages.

    Pictures before the newest prompt are placeholders; those of the newest prompt are labelled with their handles. The
    newest prompt also gets a list of the earlier pictures, which states that `target` is the one to change. The list is
    not stored, so that the messages before the newest prompt are the same in each turn, which is cheaper. If the user
    went back to `target` in this message, `words` are the rest of the request and replace the full text.
    """
    past = _newest_messages(deps.conversation.turns, _MAX_MESSAGES - len(added))
    asked, *more = added
    if words and target:
        parts = [TextPart(text=words) if part == TextPart(text=deps.turn.text) else part for part in asked.parts]
        note = TextPart(text=f"[The person went back to {target} first: it is the picture to change.]")
        asked = asked.model_copy(update={"parts": (*parts[:1], note, *parts[1:])})
    if listing := pictures_listing(deps.conversation, target):
        asked = asked.model_copy(update={"parts": (*asked.parts, TextPart(text=listing))})
    seen = [*past, asked, *more]
    return tuple(_with_handles(message) for message in replace_history_images(seen))


def _newest_messages(turns: Sequence[Turn], limit: int) -> list[PromptMessage]:
    """Return the messages of the newest turns that fit into `limit`, oldest first.

    A turn is included completely or not at all, so that no call is separated from its result. For a turn that the
    planner's model declined, only the uploads are included.
    """
    taken: list[PromptMessage] = []
    for turn in reversed(turns):
        messages = turn.messages
        if _was_declined(turn):
            messages = (PromptMessage(role=Role.PROMPT, parts=turn.uploads),) if turn.uploads else ()
        if len(taken) + len(messages) > limit:
            break
        taken = [*messages, *taken]
    return taken


def _was_declined(turn: Turn) -> bool:
    notes = (component for component in turn.components if isinstance(component, FailureNote))
    return any(note.node == "planner" and note.error.code in _DECLINED for note in notes)


def _without_old_signatures(messages: Sequence[PromptMessage]) -> tuple[PromptMessage, ...]:
    """Return the messages without thought signatures, for the one retry after the provider rejected some."""
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
    """Return the list of pictures from before this turn, oldest first, one line per turn; empty when there are none.

    At most the newest `MOST_PICTURES` are listed. Brackets contain each picture's origin, its base, and what it shows.
    The last line states which picture is changed when none is named (`target`).
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
    facts = [_origin(picture)]
    if is_folded:
        facts.append("an attempt that a review sent back")
    if picture.is_set_aside:
        facts.append("set aside")
    # Brackets are removed: the text is inside a bracket block, and may come from a file name or a web page.
    text = " ".join(picture.alt.translate(str.maketrans("[]()", "    ")).split())
    if text:
        facts.append(text if len(text) <= _ALT_CHARACTERS else text[: _ALT_CHARACTERS - 1].rstrip() + "…")
    return f"{picture.handle} ({'; '.join(facts)})"


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

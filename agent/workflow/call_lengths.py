"""How long a call of the planner may be: one that is longer is neither carried out nor sent, and is told so."""

from __future__ import annotations

import json
from dataclasses import replace

from pydantic import JsonValue

from agent.messages import ContentPart, ToolCallPart, ToolResultPart
from agent.tools.base import error_result
from agent.workflow.hearing import Answer
from agent.workflow.routing import GENERATE_IMAGE, SEARCH

# In characters of an argument, by the call: a picture's prompt, what else a picture or a search is asked for with.
_PROMPT_CHARACTERS = 32_000
_MOST_CHARACTERS = {GENERATE_IMAGE: 2_000, SEARCH: 2_000}
# Files and programs have limits of their own, which are below this one.
_ANY_CHARACTERS = 4_000_000
_KEPT_CHARACTERS = 500


def without_the_too_long(answer: Answer) -> tuple[Answer, dict[int, ToolResultPart]]:
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
    return call.model_copy(update={"arguments": arguments, "thought_signature": None, "signed_by": None})


def _most(call: str, argument: str) -> int:
    is_prompt = call == GENERATE_IMAGE and argument == "prompt"
    return _PROMPT_CHARACTERS if is_prompt else _MOST_CHARACTERS.get(call, _ANY_CHARACTERS)


def _length(value: JsonValue) -> int:
    return len(value) if isinstance(value, str) else len(json.dumps(value))


def _cut(value: JsonValue) -> JsonValue:
    return (value if isinstance(value, str) else json.dumps(value))[:_KEPT_CHARACTERS] + " …"

"""The planner's cache: where the operator wants it, the same request within the hour is answered from disk."""

from __future__ import annotations

from collections.abc import Sequence

from agent.messages import PromptMessage
from agent.providers.base import ChatOptions, ToolDeclaration
from agent.storage.answer_cache import heard_in, key_of, value_of
from agent.storage.journal import Heard
from agent.workflow.asking import ask_text
from agent.workflow.deps import Deps
from agent.workflow.hearing import Answer, OnText
from agent.workflow.tracing import TextRequest


async def ask_or_reuse(
    deps: Deps,
    name: str,
    messages: Sequence[PromptMessage],
    tools: Sequence[ToolDeclaration],
    options: ChatOptions,
    on_text: OnText,
) -> tuple[Answer, bool]:
    """Return the text model's answer, and whether it was there already. What is reused costs nothing again."""
    if deps.answers is None:
        return await ask_text(deps, name, messages, tools, options, on_text), False
    key = key_of(deps.text_model.id, messages, tools, options, deps.conversation.owner, deps.key_fingerprint)
    value = await deps.answers.get(key)
    heard = heard_in(value) if value is not None else None
    if heard is not None:
        answer = Answer(parts=list(heard.parts), finish_reason=heard.finish_reason)
        with deps.trace.call(name, deps.text_model, TextRequest(messages, tools, options)) as step:
            step.answer(answer, 0.0, "cache")
        if answer.text:
            await on_text(answer.text, False)
        return answer, True
    answer = await ask_text(deps, name, messages, tools, options, on_text)
    if answer.error is None:
        heard = Heard(parts=tuple(answer.parts), usage=answer.usage, finish_reason=answer.finish_reason)
        await deps.answers.put(key, value_of(heard))
    return answer, False

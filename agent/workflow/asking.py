"""One call of a model as the nodes make it: heard to its end, repeated where that is right, and told meanwhile."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

from agent.events import Step, ThoughtLog
from agent.messages import CompletionChunk, PromptMessage
from agent.providers.base import ChatOptions, ImageRequest, ToolDeclaration
from agent.providers.catalogue import ModelEntry
from agent.workflow.deps import Deps
from agent.workflow.hearing import Answer
from agent.workflow.retrying import hear_patiently


async def ask_text(
    deps: Deps,
    messages: Sequence[PromptMessage],
    tools: Sequence[ToolDeclaration],
    options: ChatOptions,
    on_text: Callable[[str], Awaitable[None]] | None = None,
) -> Answer:
    """Return the text model's answer."""
    model = deps.text_model
    return await _ask(deps, model, lambda: deps.provider.stream(model, messages, tools, options), True, on_text)


async def ask_picture(deps: Deps, request: ImageRequest) -> Answer:
    """Return the image model's answer."""
    return await _ask(deps, request.model, lambda: deps.provider.generate(request), False)


async def _ask(
    deps: Deps,
    model: ModelEntry,
    call: Callable[[], AsyncIterator[CompletionChunk]],
    is_text: bool,
    on_text: Callable[[str], Awaitable[None]] | None = None,
) -> Answer:
    def tell(seconds: float, tried: int) -> None:
        parameters: dict[str, str | int | float] = {"seconds": math.ceil(seconds), "attempt": tried + 1}
        line = ThoughtLog(step=Step.RETRYING, parameters=parameters, at_s=round(deps.elapsed_s, 3))
        deps.publish(line)

    return await hear_patiently(
        call,
        patience=deps.patience,
        breaker=deps.breakers.of(deps.provider, model.id),
        model_label=model.label,
        is_text=is_text,
        on_pause=tell,
        on_text=on_text,
    )

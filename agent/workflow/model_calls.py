"""Model calls of the nodes: recorded before sending, retried if safe, counted, and not repeated with a known answer."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from functools import partial

from agent.errors import Charge, ErrorInfo
from agent.events import Step, ThoughtLog
from agent.messages import CompletionChunk, PromptMessage, TokenUsage
from agent.providers.base import ChatOptions, ImageRequest, ToolDeclaration
from agent.providers.catalogue import ModelEntry
from agent.workflow.deps import Deps, today
from agent.workflow.ledger import Reservation
from agent.workflow.model_answers import Answer, OnText, RetryPolicy, collect_with_retry
from agent.workflow.tracing import OpenStep, TextRequest
from agent.worst_case import affordable_tokens, input_usage, message_tokens, picture_limit, worst_picture_usd


async def ask_text(
    deps: Deps,
    name: str,
    messages: Sequence[PromptMessage],
    tools: Sequence[ToolDeclaration],
    options: ChatOptions,
    on_text: OnText | None = None,
    *,
    model: ModelEntry | None = None,
) -> Answer:
    """Return the answer of the user's text model, or of `model`.

    `name` is unique in the turn, and stays the same when the turn resumes after a crash. A known answer is passed to
    `on_text` as if it arrived now. If the turn has a maximum, the output is limited to what the rest of it can pay for,
    and to `options.max_output_tokens`; a call that could exceed the maximum is not made.
    """
    model = model or deps.text_model
    most_usd = 0.0
    if _is_weighed(deps, name, model):
        given_usd = model.price_usd(input_usage(messages, tools, options), today())
        tokens = affordable_tokens(model, deps.budget.left_usd - given_usd, today())
        if not tokens:
            return Answer(error=deps.budget.refusal())
        tokens = min(tokens, options.max_output_tokens or tokens)
        options = options.model_copy(update={"max_output_tokens": tokens})
        most_usd = given_usd + model.price_usd(TokenUsage(output_tokens=tokens), today())
    with deps.trace.call(name, model, TextRequest(messages, tools, options)) as step:
        stream = partial(deps.provider.stream, model, messages, tools, options)
        return await _Call(deps, name, model, stream, step, most_usd).answer(on_text)


async def ask_picture(deps: Deps, name: str, request: ImageRequest, about_usd: float) -> Answer:
    """Return the image model's answer; its estimated price is `about_usd`, and `name` is as in `ask_text`."""
    most_usd = 0.0
    if _is_weighed(deps, name, request.model):
        tokens = message_tokens(request.messages)
        most_usd = worst_picture_usd(
            request.model, request.resolution, tokens, today(), is_grounded=request.use_grounding
        )
        if most_usd > deps.budget.left_usd:
            return Answer(error=deps.budget.refusal())
        limit = picture_limit(request.model, request.resolution)
        request = request.model_copy(update={"max_output_tokens": limit})
    with deps.trace.call(name, request.model, request) as step:
        return await _Call(
            deps, name, request.model, lambda: deps.provider.generate(request), step, most_usd, about_usd
        ).answer()


def _is_weighed(deps: Deps, name: str, model: ModelEntry) -> bool:
    """Return whether the call counts towards the turn's maximum: it costs money, and has no known answer."""
    return deps.budget.is_limited and bool(model.prices) and deps.ledger.answered(name, model) is None


@dataclass(frozen=True)
class _Call:
    deps: Deps
    name: str
    model: ModelEntry
    make: Callable[[], AsyncIterator[CompletionChunk]]
    step: OpenStep
    most_usd: float
    about_usd: float | None = None
    """For an image call, the amount that other turns count as reserved until its answer arrives."""

    @property
    def is_text(self) -> bool:
        """Whether this is a text call."""
        return self.about_usd is None

    async def answer(self, on_text: OnText | None = None) -> Answer:
        ledger = self.deps.ledger
        known = ledger.answered(self.name, self.model)
        if known is not None:
            if on_text is not None and known.text:
                await on_text(known.text, False)
            self.step.answer(known, 0.0, "journal")
            if known.error is None:
                self.deps.record.pay(self.deps.spend(self.model, known.usage, self.name), is_known=True)
            return known
        with self.deps.budget.reserving(self.most_usd) as reservation:
            return await self._paid(reservation, on_text)

    async def _paid(self, reservation: Reservation, on_text: OnText | None) -> Answer:
        ledger, settings = self.deps.ledger, self.deps.services.settings
        ledger.queue(self.name, self.model)
        try:
            answer = await collect_with_retry(
                self.make,
                policy=RetryPolicy(budget_s=settings.retry_budget_s),
                breaker=self.deps.services.breakers.of(self.deps.provider, self.model.id),
                model_label=self.model.label,
                is_text=self.is_text,
                limit_s=settings.text_deadline_s if self.is_text else settings.image_deadline_s,
                idle_s=settings.patiences.of_node(self.name.partition(":")[0]),
                # The operator's own server is silent while it loads its model and reads the prompt; after an aborted
                # call it would have to load again.
                begins_late=self.model.has_own_server,
                is_asked_for=ledger.may_repeat,
                on_send=self._send,
                on_pause=self._pause,
                on_text=on_text,
            )
        except asyncio.CancelledError:
            # A turn that resumes at the next start must find the call as sent, because it may have been charged.
            if not self.deps.cut.is_set():
                ledger.cancel(self.name)
            raise
        try:
            answer.parts = [await self.deps.services.images.keep_signature(part) for part in answer.parts]
        finally:
            # Also when the turn is cancelled meanwhile: the call was charged.
            spend = self.deps.spend(self.model, answer.usage, *([self.name] if answer.error is None else []))
            self.deps.record.pay(spend)
            price_usd = spend.price_usd
            if answer.error is None or answer.error.charged is not Charge.MAYBE:
                reservation.paid_usd = price_usd
            self.step.answer(answer, price_usd)
            ledger.end(self.name, answer, price_usd, is_repeatable=self.is_text or self.model.is_free)
        return answer

    async def _send(self) -> None:
        await self.deps.ledger.send(self.name, self.about_usd or 0.0)
        self.step.leave()

    def _pause(self, seconds: float, tried: int, error: ErrorInfo) -> None:
        self.deps.ledger.queue(self.name, self.model)
        self.step.wait(error, seconds)
        parameters: dict[str, str | int | float] = {"seconds": math.ceil(seconds), "attempt": tried + 1}
        self.deps.publish(ThoughtLog(step=Step.RETRYING, parameters=parameters, at_s=round(self.deps.elapsed_s, 3)))

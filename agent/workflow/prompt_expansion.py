"""Prompt expansion: writes a short prompt out in full before it is sent, by the text model or by the sketch's rules."""

from __future__ import annotations

import asyncio
import re
from datetime import UTC, datetime
from typing import Literal

from pydantic import Field

from agent.cancellation import shielded
from agent.errors import ErrorCode, ProviderFailure, RequestRefused, error_from_info
from agent.messages import PromptMessage, Role, TextPart, Value
from agent.prompts import prompt
from agent.providers.base import ChatOptions
from agent.providers.catalogue import ModelEntry, ModelRole
from agent.settings import TextModelChoice
from agent.workflow.metering import PromptWriter
from agent.workflow.model_answers import Answer, RetryPolicy, collect_with_retry

MAX_CHARACTERS = 4000
_LONGEST_ANSWER = 4000
_LIMIT_S = 60.0
# Few retries: the user is waiting at the composer, and can ask again.
_RETRIES = RetryPolicy(tries=2, budget_s=6.0)
_FENCE = re.compile(r"^```[a-z]*\n(.*?)\n?```$", re.DOTALL | re.IGNORECASE)
_MARKS = re.compile(r"^\[/?WISH\]|\[/?WISH\]$")
_QUOTES = (('"', '"'), ("“", "”"), ("「", "」"), ("『", "』"), ("'", "'"))

_KINDS = {
    "none": "It is a wish for a new picture.",
    "beside": (
        "Pictures that you do not see go with it: leave to them what they show, and speak of them only as the wish "
        "does."
    ),
    "change": (
        "It is a wish to change a picture that is there and that you do not see: write out what changes, and how it "
        "fits in; say that everything else stays exactly as it is; invent nothing about what the picture shows."
    ),
}


class PromptToExpand(Value):
    """A prompt in the composer: its text, the use of its pictures, and the settings of the chips.

    `pictures` says whether one picture is to be changed, pictures are sent with the prompt, or there are none.
    `aspect_ratio` and `number_of_images` are locks, None where the agent may choose.
    """

    text: str
    text_model: TextModelChoice = "flash"
    pictures: Literal["none", "beside", "change"] = "none"
    aspect_ratio: str | None = None
    number_of_images: int | None = None


class ExpandedPrompt(Value):
    """An expanded prompt and its price.

    `by` says whether a model or rules wrote it, or `nobody`: the rules only support new pictures. `label` names the
    model."""

    text: str
    by: Literal["model", "rules", "nobody"]
    label: str = ""
    price_usd: float = Field(default=0.0, ge=0)


async def expand_prompt(request: PromptToExpand, writer: PromptWriter) -> ExpandedPrompt:
    """Return the expanded prompt. The cost of the model call is recorded before this returns or raises.

    Raises RequestRefused for an empty or a too long prompt and when the day's cap is used up, and the failures of the
    provider.
    """
    text = request.text.strip()
    if not text:
        raise RequestRefused(ErrorCode.NOTHING_SENT)
    if len(text) > MAX_CHARACTERS:
        raise RequestRefused(ErrorCode.WISH_TOO_LONG, limit=MAX_CHARACTERS)
    model = writer.catalogue.model(ModelRole(request.text_model), writer.provider_name)
    if model.is_sketch:
        if request.pictures != "none":
            return ExpandedPrompt(text=text, by="nobody")
        from agent.providers.sketch.intent import expand_description

        return ExpandedPrompt(text=expand_description(text), by="rules")
    answer = await _ask(request, text, model, writer)
    if answer.error is not None:
        raise error_from_info(answer.error)
    written = _cleaned(answer.text)
    if not written or len(written) > _LONGEST_ANSWER:
        raise ProviderFailure(ErrorCode.ANSWER_UNREADABLE, model=model.label)
    price_usd = model.price_usd(answer.usage, datetime.now(UTC).date())
    return ExpandedPrompt(text=written, by="model", label=model.label, price_usd=price_usd)


async def _ask(request: PromptToExpand, text: str, model: ModelEntry, writer: PromptWriter) -> Answer:
    ask = PromptMessage(role=Role.PROMPT, parts=(TextPart(text=f"[WISH]\n{text}\n[/WISH]"),))
    options = ChatOptions(system=_system(request, text))
    answer = await collect_with_retry(
        lambda: writer.provider.stream(model, [ask], (), options),
        policy=_RETRIES,
        breaker=writer.breakers.of(writer.provider, model.id),
        model_label=model.label,
        is_text=True,
        limit_s=_LIMIT_S,
        on_send=lambda: writer.calls.send(model),
        on_pause=lambda seconds, tried, error: None,
    )
    await shielded(asyncio.ensure_future(writer.calls.end("", model, answer)))
    return answer


def _system(request: PromptToExpand, text: str) -> str:
    # Imported on first use, so that startup does not wait for it.
    from agent import wording

    shape = "the person chooses them beside the wish."
    if request.aspect_ratio is not None:
        shape += f" Frame it for {request.aspect_ratio}, which they chose."
    if (request.number_of_images or 1) > 1:
        shape += f" There will be {request.number_of_images} pictures of this one wish: write it once, for one picture."
    length = "150 Chinese characters" if wording.is_chinese(text) else "90 words"
    filled = prompt("expand_prompt").replace("{length}", length).replace("{shape}", shape)
    return filled.replace("{kind}", _KINDS[request.pictures])


def _cleaned(text: str) -> str:
    """Return the answer without the code fences, markers and quotation marks that models put around it."""
    plain = text.strip()
    fenced = _FENCE.match(plain)
    plain = _MARKS.sub("", fenced[1].strip() if fenced else plain).strip()
    for opening, closing in _QUOTES:
        inside = plain[1:-1]
        if len(plain) > 2 and plain[0] == opening and plain[-1] == closing and closing not in inside:
            return inside.strip()
    return plain

"""The retriever: finds the styles that a request names and adds their phrases to its prompt.

A style is named in the call's `style` argument, or in the user's own text. Names and descriptions are searched in
memory. If that gives no certain match, the provider's embedding model is used, if it has one. Until that model has
indexed the library, in the background and once for all owners, only names and descriptions are searched.

It can fail without failing the turn. The receipt and the trace state a requested style that was not found, and its name
goes into the prompt unchanged.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass

from agent.errors import AivistaError, ErrorCode, ProviderFailure
from agent.events import Step
from agent.imaging.arguments import GENERATE_IMAGE, GenerateImageArgs
from agent.library import MatchKind, StyleMatch
from agent.messages import ToolCallPart
from agent.pictures import MissingStyle, MissingStyleReason
from agent.providers.base import Embedder, Embedding
from agent.providers.catalogue import ModelEntry
from agent.storage.style_match import SURELY_NAMED
from agent.workflow.deps import Deps, say
from agent.workflow.metering import UsageMeter, embedding_model
from agent.workflow.model_answers import Answer
from agent.workflow.state import Next, TurnProgress, named_style

logger = logging.getLogger(__name__)

_LONGEST_TOLD = 80
_SAYS_STYLE = re.compile(r"\b(?:style|manner) of\b|风格", re.IGNORECASE)


async def retriever(state: TurnProgress, deps: Deps) -> Next:
    """Find the styles of each image request, and continue with the executor.

    Raises TimeoutError when this takes longer than `Patiences.retriever_s`.
    """
    found: dict[int, list[StyleMatch]] = {}
    missing: dict[int, MissingStyle] = {}
    async with asyncio.timeout(deps.services.settings.patiences.retriever_s):
        for index, call in enumerate(state["calls"]):
            if call.name != GENERATE_IMAGE or index in state["answers"]:
                continue
            name = f"embedding:{state['planner_steps']}.{index}"
            matches, problem = await _search(deps, name, call)
            if matches:
                found[index] = matches
            if problem is not None:
                missing[index] = problem
    names = list(dict.fromkeys(match.style.title for matches in found.values() for match in matches))
    if names:
        say(deps, Step.STYLES, count=len(names), names=", ".join(names))
    for one in dict.fromkeys(missing.values()):
        say(deps, Step.STYLE_MISSING, style=one.requested, reason=one.reason.value)
    return Next("executor", {"styles": found, "missing_styles": missing})


async def unstyled(state: TurnProgress, deps: Deps, error: Exception) -> Next:
    """Continue without styles when the retriever failed or took too long, and report the requested ones as missing."""
    logger.warning("the style library failed, the prompt goes on without it: %s", _error_text(error))
    reason = MissingStyleReason.LATE if isinstance(error, TimeoutError) else MissingStyleReason.FAILED
    missing = {
        index: _missing(style, deps.turn.text, reason)
        for index, call in enumerate(state["calls"])
        if (style := named_style(call)) and index not in state["answers"]
    }
    return Next("executor", {"styles": {}, "missing_styles": missing})


def with_styles(arguments: GenerateImageArgs, matches: Sequence[StyleMatch], *, is_sketch: bool) -> GenerateImageArgs:
    """Return the arguments with the styles' phrases in the prompt, and what they avoid in the negative prompt.

    A style that was not found is added by its name. For the sketch model nothing is added: it draws from the plain
    words of a request, and phrases for a real model would confuse it.
    """
    if is_sketch:
        return arguments
    style = (arguments.style or "").strip()
    if not matches:
        if not style or style.casefold() in arguments.prompt.casefold():
            return arguments
        return arguments.model_copy(update={"prompt": f"{arguments.prompt}\n\nStyle: {style}."})
    lines = [f"{match.style.title}: {', '.join(match.style.phrases)}." for match in matches]
    avoided = [arguments.negative_prompt or "", *(phrase for match in matches for phrase in match.style.negative)]
    return arguments.model_copy(
        update={
            "prompt": arguments.prompt + "\n\nStyle:\n" + "\n".join(lines),
            "negative_prompt": ", ".join(dict.fromkeys(phrase for phrase in avoided if phrase)) or None,
        }
    )


async def _search(deps: Deps, name: str, call: ToolCallPart) -> tuple[list[StyleMatch], MissingStyle | None]:
    """Return the styles for a call, and the requested style that was not found, if any."""
    style, text = named_style(call), deps.turn.text
    try:
        matches = await deps.services.styles.search(text, owner=deps.conversation.owner)
        if style and not _is_surely_named(matches):
            matches = await _search_style(deps, name, style) or matches
    except AivistaError as error:
        logger.warning("the style library failed, the prompt goes on without it: %s", _error_text(error))
        return [], _missing(style, text, MissingStyleReason.FAILED) if style else None
    matches = _meant(matches)
    problem = _missing(style, text, MissingStyleReason.UNKNOWN) if style and not matches else None
    if deps.text_model.is_sketch:
        matches, not_drawn = _drawn(matches, text)
        # The sketch's rules also take "photo" and "retro" for styles, so only an explicit style can be missing.
        problem = not_drawn or (problem if _SAYS_STYLE.search(text) else None)
    return matches, problem


def _drawn(matches: list[StyleMatch], text: str) -> tuple[list[StyleMatch], MissingStyle | None]:
    """Return the style that the sketch model draws: the best curated one; it has no look for a user's own style."""
    curated = [match for match in matches if not match.style.is_own]
    own = next((match for match in matches if match.style.is_own), None)
    if own is not None and not curated:
        return [], _missing(own.style.title, text, MissingStyleReason.NOT_DRAWN)
    return curated[:1], None


def _meant(matches: list[StyleMatch]) -> list[StyleMatch]:
    """Return the styles to use: all that are named, else the likeliest one by description: guesses do not mix."""
    named = [match for match in matches if match.reason.kind in (MatchKind.NAME, MatchKind.ALIAS)]
    if named or not matches:
        return named
    if matches[0].reason.kind is MatchKind.DESCRIPTION:
        return matches[:1]
    return [match for match in matches if match.reason.kind is not MatchKind.DESCRIPTION]


def _is_surely_named(matches: Sequence[StyleMatch]) -> bool:
    return bool(matches) and matches[0].similarity >= SURELY_NAMED


async def _search_style(deps: Deps, name: str, style: str) -> list[StyleMatch]:
    """Return the styles that a style text matches by name, description or meaning."""
    found = await deps.services.styles.search(style, owner=deps.conversation.owner, is_style=True)
    if _is_surely_named(found):
        return found
    meter = _meter_of(deps, name)
    if meter is None:
        return found
    if not await deps.services.styles.has_meaning(meter):
        reader = _meter_of(deps, f"{name}.library") or meter
        deps.services.keep_alive(_learn_styles(deps, reader))
        return found
    try:
        return await deps.services.styles.search(style, owner=deps.conversation.owner, embedder=meter, is_style=True)
    finally:
        # Also after a timeout: answered calls were paid.
        deps.record.pay(deps.spend(meter.model, meter.usage))


def _missing(style: str, text: str, reason: MissingStyleReason) -> MissingStyle:
    requested = " ".join(style.split())
    requested = requested if len(requested) <= _LONGEST_TOLD else f"{requested[: _LONGEST_TOLD - 1].rstrip()}…"
    return MissingStyle(requested=requested, reason=reason, is_asked_for=style.casefold() in text.casefold())


def _error_text(error: BaseException) -> str:
    return str(error) or type(error).__name__


@dataclass
class _JournalRecorder:
    """Records the calls of a turn's meter: each has a row in the journal, named `name` and a number.

    A call that the journal already has is not made again: a turn that resumes after a crash finds its styles by name
    and description only.
    """

    deps: Deps
    name: str
    newest: str = ""
    _count: int = 0

    async def send(self, model: ModelEntry) -> str:
        self._count += 1
        name, ledger = f"{self.name}.{self._count}", self.deps.ledger
        if name in ledger.known:
            raise ProviderFailure(ErrorCode.CALL_UNKNOWN, model=model.label)
        ledger.queue(name, model)
        await ledger.send(name)
        self.newest = name
        return name

    async def end(self, name: str, model: ModelEntry, answer: Answer) -> None:
        price_usd = self.deps.spend(model, answer.usage).price_usd
        self.deps.ledger.end(name, answer, price_usd, is_repeatable=True)

    def cancel(self, name: str) -> None:
        self.deps.ledger.cancel(name)


@dataclass
class _TracedEmbedder:
    """An embedding model whose calls are steps of the turn."""

    embedder: Embedder
    model: ModelEntry
    calls: _JournalRecorder

    @property
    def model_id(self) -> str:
        return self.embedder.model_id

    @property
    def dimension(self) -> int:
        return self.embedder.dimension

    async def embed(self, texts: Sequence[str]) -> Embedding:
        deps = self.calls.deps
        with deps.trace.call(self.calls.newest, self.model, tuple(texts)) as step:
            embedding = await self.embedder.embed(texts)
            step.embed(embedding, deps.spend(self.model, embedding.usage).price_usd)
        return embedding


def _meter_of(deps: Deps, name: str) -> UsageMeter | None:
    """Return a meter for the embedding model of the turn's provider, or None when it has none."""
    model = embedding_model(deps.services.catalogue, deps.provider_name)
    embedder = deps.provider.embedder(model) if model is not None else None
    if model is None or embedder is None:
        return None
    calls = _JournalRecorder(deps, name)
    return UsageMeter(
        model, _TracedEmbedder(embedder, model, calls), deps.services.breakers.of(deps.provider, model.id), calls
    )


async def _learn_styles(deps: Deps, meter: UsageMeter) -> None:
    """Index the curated styles with the embedding model for later requests. The cost is logged, not added to a turn."""
    try:
        await deps.services.styles.learn_meaning(meter)
    except (AivistaError, ValueError) as error:
        logger.warning("the model %s did not read the styles, they are found by their names: %s", meter.model_id, error)
        return
    spent = deps.spend(meter.model, meter.usage)
    logger.info(
        "the model %s has read the styles: %d tokens, $%.4f", meter.model_id, spent.usage.total_tokens, spent.price_usd
    )

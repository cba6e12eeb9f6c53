"""The retriever: looks up the styles that a request asks for and adds their phrases to its prompt.

A style is asked for in the call's `style`, which is about nothing else, or in the person's own words. Names and
descriptions are searched in memory. Only where they answer nothing surely is the embedding model asked, where the
provider has one; until that model has read the library, in the background and once for every owner, they are gone by
alone.

It can fail without failing the turn. What was asked for and not found is told on the receipt and in the trace, and the
words for it go into the prompt as they are.
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
    """Find the styles of each request for a picture, and go on to the executor.

    Raises TimeoutError when that takes longer than a turn waits for styles.
    """
    async with asyncio.timeout(deps.services.settings.patiences.retriever_s):
        return await _styled(state, deps)


async def unstyled(state: TurnProgress, deps: Deps, error: Exception) -> Next:
    """Go on without styles when the retriever failed or took too long, and say so of those that were asked for."""
    logger.warning("the style library failed, the prompt goes on without it: %s", _error_text(error))
    reason = MissingStyleReason.LATE if isinstance(error, TimeoutError) else MissingStyleReason.FAILED
    said = " ".join(message.text for message in state["messages"][:1])
    missing = {
        index: _missing(style, said, reason)
        for index, call in enumerate(state["calls"])
        if (style := named_style(call)) and index not in state["answers"]
    }
    return Next("executor", {"styles": {}, "missing_styles": missing})


async def _styled(state: TurnProgress, deps: Deps) -> Next:
    found: dict[int, list[StyleMatch]] = {}
    missing: dict[int, MissingStyle] = {}
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


def with_styles(arguments: GenerateImageArgs, matches: Sequence[StyleMatch], *, is_sketch: bool) -> GenerateImageArgs:
    """Return the arguments with the phrases of the styles in the prompt, and what they avoid with the negatives.

    A style of which nothing was found goes in as its own words. The sketch model paints by the plain words of a wish:
    phrases for a real model would only confuse it.
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
    """Return the styles for a call, and the one that was asked for and is not among them."""
    style, said = named_style(call), deps.turn.text
    try:
        matches = await deps.services.styles.search(said, owner=deps.conversation.owner)
        if style and not _is_surely_named(matches):
            matches = await _search_style(deps, name, style) or matches
    except AivistaError as error:
        logger.warning("the style library failed, the prompt goes on without it: %s", _error_text(error))
        return [], _missing(style, said, MissingStyleReason.FAILED) if style else None
    matches = _meant(matches)
    problem = _missing(style, said, MissingStyleReason.UNKNOWN) if style and not matches else None
    if deps.text_model.is_sketch:
        matches, not_drawn = _drawn(matches, said)
        # Its rules read "photo" and "retro" as styles, too, which nobody asked for by that word.
        problem = not_drawn or (problem if _SAYS_STYLE.search(said) else None)
    return matches, problem


def _drawn(matches: list[StyleMatch], said: str) -> tuple[list[StyleMatch], MissingStyle | None]:
    """Return the styles that the sketch model draws: the surest curated one; it has no look for one's own."""
    curated = [match for match in matches if not match.style.is_own]
    own = next((match for match in matches if match.style.is_own), None)
    if own is not None and not curated:
        return [], _missing(own.style.title, said, MissingStyleReason.NOT_DRAWN)
    return curated[:1], None


def _meant(matches: list[StyleMatch]) -> list[StyleMatch]:
    """Return the styles to paint in: all that are named, else the likeliest: a mix of guesses is no style."""
    named = [match for match in matches if match.reason.kind in (MatchKind.NAME, MatchKind.ALIAS)]
    if named or not matches:
        return named
    if matches[0].reason.kind is MatchKind.DESCRIPTION:
        return matches[:1]
    return [match for match in matches if match.reason.kind is not MatchKind.DESCRIPTION]


def _is_surely_named(matches: Sequence[StyleMatch]) -> bool:
    return bool(matches) and matches[0].similarity >= SURELY_NAMED


async def _search_style(deps: Deps, name: str, style: str) -> list[StyleMatch]:
    """Return the styles that words for a style name, describe or mean."""
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
        # Also where it took too long: what was answered was paid.
        deps.record.pay(deps.spend(meter.model, meter.usage))


def _missing(style: str, said: str, reason: MissingStyleReason) -> MissingStyle:
    told = " ".join(style.split())
    told = told if len(told) <= _LONGEST_TOLD else f"{told[: _LONGEST_TOLD - 1].rstrip()}…"
    return MissingStyle(requested=told, reason=reason, is_asked_for=style.casefold() in said.casefold())


def _error_text(error: BaseException) -> str:
    return str(error) or type(error).__name__


@dataclass
class _JournalRecorder:
    """The calls of a turn's meter: each has a row in the journal, `name` and a number.

    One that the journal knows already is not made again: a turn that goes on after a crash finds its styles by name.
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
    """Return the embedding model behind the key that serves the turn, or None where there is none."""
    model = embedding_model(deps.services.catalogue, deps.provider_name)
    embedder = deps.provider.embedder(model) if model is not None else None
    if model is None or embedder is None:
        return None
    calls = _JournalRecorder(deps, name)
    return UsageMeter(
        model, _TracedEmbedder(embedder, model, calls), deps.services.breakers.of(deps.provider, model.id), calls
    )


async def _learn_styles(deps: Deps, meter: UsageMeter) -> None:
    """Have the model read the curated styles, for the wishes to come. What it costs is in the log, in no turn."""
    try:
        await deps.services.styles.learn_meaning(meter)
    except (AivistaError, ValueError) as error:
        logger.warning("the model %s did not read the styles, they are found by their names: %s", meter.model_id, error)
        return
    spent = deps.spend(meter.model, meter.usage)
    logger.info(
        "the model %s has read the styles: %d tokens, $%.4f", meter.model_id, spent.usage.total_tokens, spent.price_usd
    )

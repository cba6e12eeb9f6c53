"""The critic: looks at every new picture that is due for it, and sends back what is not good enough.

It never fails a turn: a picture that nobody could look at passes.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from langgraph.errors import NodeError, NodeTimeoutError
from langgraph.types import Command

from agent.errors import AivistaError
from agent.events import PictureReviewed, Step, ThoughtLog
from agent.imaging.checks import refused_review
from agent.imaging.final_prompt import without_facts
from agent.imaging.lettering import wants_lettering
from agent.messages import TokenUsage
from agent.pictures import Fact, Picture, Review
from agent.providers.catalogue import ModelRole
from agent.spending import A_TRIFLE_USD, worst_review_usd
from agent.workflow.capping import spent_within_caps
from agent.workflow.deps import Deps, TurnRuntime, emit, say, today
from agent.workflow.drifting import note_drifts
from agent.workflow.results import settle_paintings
from agent.workflow.reviewing import call_name, review_picture
from agent.workflow.routing import Target
from agent.workflow.state import Spend, TurnProgress, Work
from agent.worst_case import SHOWN_PICTURE_TOKENS, text_tokens, worst_picture_usd

logger = logging.getLogger(__name__)

_MAX_ADVICE_CHARACTERS = 600


@dataclass(frozen=True)
class _Look:
    """What came of looking at one picture."""

    handle: str
    review: Review
    spend: Spend = field(default_factory=Spend)
    step: ThoughtLog | None = None


class _Price(NamedTuple):
    """What an attempt at a picture cost, and the most that another one can, in US dollars, reviews included."""

    last_usd: float = 0.0
    worst_usd: float = 0.0


def review_due(deps: Deps, work: Work) -> bool:
    """Return whether the work's pictures are looked at: by the person's setting, the model and the words.

    A sketch is not: nothing that could judge it works without a model.
    """
    setting = deps.turn.settings.review
    models = [request.model for request in work.requests]
    if setting == "off" or not models[0].is_reviewed:
        return False
    if setting == "always":
        return True
    # What is seen side by side is looked at side by side.
    has_best = any(model.role is ModelRole.IMAGE_PRO for model in models)
    return has_best or wants_lettering(deps.turn.text, work.prompt.original)


async def critic(state: TurnProgress, runtime: TurnRuntime) -> Command[Target]:
    """Review the newest pictures side by side; those below the bar go round again as long as rounds and money last."""
    deps = runtime.context
    waiting = _waiting(state, deps)
    steps = [say(runtime, Step.REVIEWING, count=len(waiting))] if waiting else []
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(_look(work, handle, state["facts"], runtime)) for handle, work in waiting.items()]
        group.create_task(note_drifts(state["works"].values(), deps))
    looks = [task.result() for task in tasks]
    steps += [look.step for look in looks if look.step is not None]
    if any(look.review.score is None for look in looks):
        steps.append(say(runtime, Step.NOT_REVIEWED))
    reviews = {**state["reviews"], **{look.handle: look.review for look in looks}}
    spend = sum((look.spend for look in looks), Spend())
    spent_usd = state["spend"].price_usd + spend.price_usd
    prices = await _prices(deps, looks, state["works"])
    budget_usd = deps.budget_usd - spent_usd + A_TRIFLE_USD

    def advised(left_usd: float) -> tuple[dict[int, Work], float]:
        return _advised(state["works"], reviews, prices, min(budget_usd, left_usd), deps)

    works = await spent_within_caps(state, deps, spent_usd, advised)
    update: TurnProgress = {"works": works, "reviews": reviews, "spend": spend, "steps": steps}
    if any(work.advice for work in works.values()):
        steps.append(say(runtime, Step.REPAINTING))
        return Command(goto="executor", update=update)
    target, settled = await settle_paintings({**state, "works": works, "reviews": reviews}, deps)
    return Command(goto=target, update={**update, **settled})


async def unreviewed(state: TurnProgress, error: NodeError, runtime: TurnRuntime) -> Command[Target]:
    """Let the pictures pass when the critic failed or took too long; what it found before that counts."""
    if isinstance(error.error, NodeTimeoutError):
        logger.warning("the critic took too long, the pictures pass unreviewed")
    else:
        logger.error("the critic failed, the pictures pass unreviewed", exc_info=error.error)
    deps = runtime.context
    conversation = await deps.records.get(deps.conversation.id, deps.conversation.owner)
    found = {picture.handle: picture.review for picture in conversation.pictures}
    reviews, spend = dict(state["reviews"]), Spend()
    for handle in _waiting(state, deps):
        answer = deps.ledger.answered(call_name(handle), deps.text_model)
        spend += deps.spend(deps.text_model, answer.usage) if answer is not None else Spend()
        review = found.get(handle)
        if review is None:
            review = Review()
            await _record(handle, review, runtime)
        reviews[handle] = review
    works = {index: work.model_copy(update={"advice": {}}) for index, work in state["works"].items()}
    steps = [say(runtime, Step.NOT_REVIEWED)]
    update: TurnProgress = {"works": works, "reviews": reviews, "spend": spend, "steps": steps}
    target, settled = await settle_paintings({**state, "works": works, "reviews": reviews}, deps)
    return Command(goto=target, update={**update, **settled})


def _waiting(state: TurnProgress, deps: Deps) -> dict[str, Work]:
    """Return the works of the pictures that nobody has looked at yet and that are due, by handle."""
    due = [work for work in state["works"].values() if review_due(deps, work)]
    newest = {attempt.handle: work for work in due for attempt in work.newest() if attempt.handle}
    return {handle: work for handle, work in newest.items() if handle not in state["reviews"]}


async def _look(work: Work, handle: str, facts: Sequence[Fact], runtime: TurnRuntime) -> _Look:
    deps = runtime.context
    try:
        conversation = await deps.records.get(deps.conversation.id, deps.conversation.owner)
        picture = conversation.picture(handle)
        review, spend = await _reviewed(deps, work, picture, facts)
    except AivistaError as error:
        logger.warning("the picture %s cannot be reviewed: %s", handle, error)
        return _Look(handle, Review())
    await _record(handle, review, runtime)
    step = None
    if review.score is not None:
        looked, met = review.looked_at, sum(item.is_met is True for item in review.looked_at)
        step = say(runtime, Step.REVIEWED, met=met, count=len(looked), feedback=review.feedback)
    return _Look(handle, review, spend, step)


async def _reviewed(deps: Deps, work: Work, picture: Picture, facts: Sequence[Fact]) -> tuple[Review, Spend]:
    if picture.edit is not None and picture.edit.verdict == "refused":
        # Nobody needs to look: it was not pasted, because it shows something else.
        return refused_review(picture.edit, deps.turn.text), Spend()
    return await review_picture(deps, work, picture, facts)


async def _record(handle: str, review: Review, runtime: TurnRuntime) -> None:
    """Put the review on record and tell of it; a record that cannot be written costs the turn nothing more."""
    deps = runtime.context
    try:
        await deps.records.set_review(deps.conversation.id, handle, review)
    except AivistaError as error:
        logger.warning("the review of %s is not on record: %s", handle, error)
    emit(runtime, PictureReviewed(handle=handle, review=review))


async def _prices(deps: Deps, looks: Sequence[_Look], works: Mapping[int, Work]) -> dict[str, _Price]:
    """Return what each picture cost, the look at it included, and what another attempt can cost."""
    worst_usd = dict(_worst_repaints(deps, works)) if deps.purse.is_limited else {}
    conversation = await deps.records.get(deps.conversation.id, deps.conversation.owner)
    looked_usd = {look.handle: look.spend.price_usd for look in looks}
    return {
        picture.handle: _Price(
            picture.receipt.price_usd + looked_usd.get(picture.handle, 0.0),
            worst_usd[picture.handle] + _shown_usd(deps, picture) if picture.handle in worst_usd else 0.0,
        )
        for picture in conversation.pictures
        if picture.receipt is not None
    }


def _worst_repaints(deps: Deps, works: Mapping[int, Work]) -> Iterator[tuple[str, float]]:
    """Tell of each newest picture what another attempt at it and its review can cost, without the pictures shown."""
    for work in works.values():
        tokens = text_tokens(work.prompt.final or work.prompt.original) + _MAX_ADVICE_CHARACTERS
        requests = [one for one in work.requests for _ in range(one.number_of_images)]
        for attempt in work.newest():
            one = requests[min(attempt.slot, len(requests) - 1)]
            worst_usd = worst_picture_usd(one.model, one.resolution, tokens, today(), is_grounded=one.use_grounding)
            yield attempt.handle or "", worst_usd + worst_review_usd(deps.text_model, today())


def _shown_usd(deps: Deps, picture: Picture) -> float:
    """Return the most that the pictures cost that the painter was shown for this one: each as it is and once more."""
    model = deps.catalogue.by_id(picture.receipt.model) if picture.receipt is not None else None
    if model is None or not picture.parents:
        return 0.0
    tokens = 2 * SHOWN_PICTURE_TOKENS * (len(picture.parents) + 1)
    return model.price_usd(TokenUsage(prompt_tokens=tokens), today())


def _advised(
    works: Mapping[int, Work], reviews: Mapping[str, Review], prices: Mapping[str, _Price], left_usd: float, deps: Deps
) -> tuple[dict[int, Work], float]:
    """Return the works with advice for each picture that goes round again, and without any for the others; and about
    what those will cost.

    Another attempt is taken to cost what the last one did, its review included; what is left must hold all. What is
    left of the turn's maximum must hold the most that each can cost.
    """
    purse_usd = deps.purse.left_usd
    settings = deps.turn.settings
    advised, price_of_all_usd = {}, 0.0
    for index, work in works.items():
        may_repeat = work.request.model.is_reviewed and not deps.stopped.is_set()
        advice: dict[int, str] = {}
        for attempt in work.newest() if may_repeat else ():
            review = reviews.get(attempt.handle or "")
            if review is None or review.has_passed or attempt.round >= settings.review_rounds:
                continue
            price = prices.get(attempt.handle or "", _Price())
            if price.last_usd <= left_usd and price.worst_usd <= purse_usd:
                advice[attempt.slot] = advice_of(review)
                left_usd -= price.last_usd
                purse_usd -= price.worst_usd
                price_of_all_usd += price.last_usd
        advised[index] = work.model_copy(update={"advice": advice})
    return advised, price_of_all_usd


def advice_of(review: Review) -> str:
    """Return what the next attempt should mend, at most 600 characters; never empty."""
    missing = (item for item in review.checklist if item.is_met is False)
    unmet = [f"{item.wish} ({item.why})" if item.why else item.wish for item in missing]
    said = [part for part in (review.feedback, *review.suggestions) if part] or unmet
    text = without_facts(" ".join(said)) or "Follow the request more closely."
    if len(text) <= _MAX_ADVICE_CHARACTERS:
        return text
    cut = text[: _MAX_ADVICE_CHARACTERS - 1]
    return (cut.rpartition(" ")[0] if " " in cut[-40:] else cut) + "…"

"""One picture from asking to the record: the call, the look at what came, the handle, the receipt."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, datetime

from agent.errors import AivistaError, ErrorCode, ErrorInfo
from agent.imaging.contract import NormalizedRequest
from agent.imaging.handles import allot_handle
from agent.imaging.intake import probe
from agent.imaging.references import ResolvedReferences, without_signatures
from agent.messages import ImageOrigin, ImagePart, PromptMessage, Source
from agent.pictures import Fact, Picture, Receipt, Reference, StyleUse
from agent.providers.base import ImageRequest
from agent.workflow.asking import ask_picture
from agent.workflow.deps import Deps
from agent.workflow.hearing import Answer
from agent.workflow.state import Spend

_RATIO_TOLERANCE = 0.03
_SIZE_TOLERANCE = 0.9


@dataclass(frozen=True)
class Commission:
    """One request of the planner, ready for the image model."""

    request: NormalizedRequest
    prompt: str
    messages: tuple[PromptMessage, ...]
    references: ResolvedReferences
    styles: tuple[StyleUse, ...]
    facts: tuple[Fact, ...]
    sources: tuple[Source, ...]

    @property
    def expected_pixels(self) -> tuple[int, int]:
        """Width and height the frame should have until the picture comes."""
        pixels = self.request.model.pixels(self.request.aspect_ratio, self.request.resolution)
        if pixels is not None:
            return pixels
        width, _, height = self.request.aspect_ratio.partition(":")
        return int(width), int(height)


@dataclass(frozen=True)
class Painted:
    """What became of one picture: the picture or the reason there is none, and what the call cost either way."""

    spend: Spend
    picture: Picture | None = None
    error: ErrorInfo | None = None
    sources: tuple[Source, ...] = ()
    suggestions_html: str = ""


async def paint(deps: Deps, commission: Commission, take: int) -> Painted:
    """Ask for one picture, the `take`th of its commission, and put it on record.

    A failure is returned, never raised: the other pictures go on.
    """
    started_s = time.monotonic()
    answer, spend, attempts = await _ask(deps, commission, take)
    if answer.error is not None:
        return Painted(spend=spend, error=answer.error)
    image = answer.picture
    if image is None:
        reason = answer.finish_reason or "?"
        return Painted(spend=spend, error=ErrorInfo(code=ErrorCode.NO_PICTURE, parameters={"reason": reason}))
    try:
        picture = await _record(deps, commission, answer, image, spend, attempts, time.monotonic() - started_s)
    except AivistaError as error:
        return Painted(spend=spend, error=error.info)
    grounding = answer.grounding
    return Painted(
        spend=spend,
        picture=picture,
        sources=grounding.sources if grounding else (),
        suggestions_html=grounding.suggestions_html if grounding else "",
    )


async def _ask(deps: Deps, commission: Commission, take: int) -> tuple[Answer, Spend, int]:
    model = commission.request.model
    request = ImageRequest(
        model=model,
        messages=commission.messages,
        aspect_ratio=commission.request.aspect_ratio,
        resolution=commission.request.resolution,
        use_grounding=commission.request.use_grounding,
        take=take,
    )
    answer = await ask_picture(deps, request)
    spend = deps.spend(model, answer.usage)
    if answer.error is None or answer.error.code is not ErrorCode.SIGNATURE_REJECTED:
        return answer, spend, 1
    # Nothing was painted for a rejected request, so asking again with the pictures in a prompt cannot pay twice.
    retry = request.model_copy(update={"messages": without_signatures(commission.messages)})
    answer = await ask_picture(deps, retry)
    return answer, spend + deps.spend(model, answer.usage), 2


async def _record(
    deps: Deps,
    commission: Commission,
    answer: Answer,
    image: ImagePart,
    spend: Spend,
    attempts: int,
    seconds: float,
) -> Picture:
    probed = await probe(await deps.images.read(image))
    base = commission.references.base
    origin = ImageOrigin.EDITED if base is not None else ImageOrigin.GENERATED
    size: dict[str, str | int] = {"mime_type": probed.mime_type, "width": probed.width, "height": probed.height}
    async with deps.allotting:
        now = await deps.records.get(deps.conversation.id, deps.conversation.owner)
        handle = allot_handle([picture.handle for picture in now.pictures], base=base.handle if base else None)
        named = image.model_copy(update={**size, "origin": origin, "handle": handle, "thought_signature": None})
        picture = Picture(
            handle=handle,
            image=named.model_copy(update={"signed_by": None}),
            turn_id=deps.turn.id,
            created_at=datetime.now(UTC),
            parents=tuple(reference.handle for reference in commission.references.pictures),
            answer=_with_handle(answer.message, image, handle, size),
            receipt=_receipt(deps, commission, answer, named, spend, attempts, seconds),
            alt=commission.request.subject or commission.request.prompt[:200],
            after_stop=deps.stopped.is_set(),
        )
        await deps.records.add_picture(deps.conversation.id, picture)
    return picture


def _with_handle(message: PromptMessage, image: ImagePart, handle: str, size: dict[str, str | int]) -> PromptMessage:
    named = image.model_copy(update={**size, "handle": handle})
    return message.model_copy(update={"parts": tuple(named if part is image else part for part in message.parts)})


def _receipt(
    deps: Deps,
    commission: Commission,
    answer: Answer,
    image: ImagePart,
    spend: Spend,
    attempts: int,
    seconds: float,
) -> Receipt:
    request = commission.request
    grounding = answer.grounding
    width, height = image.width or 0, image.height or 0
    return Receipt(
        prompt=commission.prompt,
        user_text=deps.turn.text,
        model=request.model.id,
        model_label=request.model.label,
        asked_aspect_ratio=request.aspect_ratio,
        asked_resolution=request.resolution,
        width=width,
        height=height,
        mime_type=image.mime_type,
        references=tuple(Reference(handle=picture.handle) for picture in commission.references.pictures),
        left_out=commission.references.left_out,
        styles=commission.styles,
        facts=commission.facts,
        sources=commission.sources + (grounding.sources if grounding else ()),
        usage=spend.usage,
        price_usd=spend.price_usd,
        seconds=round(seconds, 3),
        attempts=attempts,
        finish_reason=answer.finish_reason,
        is_sketch=request.model.provider == "sketch",
        shortfalls=shortfalls(commission.expected_pixels, (width, height), request.resolution),
    )


def shortfalls(asked: tuple[int, int], got: tuple[int, int], resolution: str | None) -> tuple[str, ...]:
    """Return what of the asked size was not delivered: `aspect_ratio`, `resolution`, both or neither."""
    if not all(got):
        return ()
    missing = []
    if abs((got[0] / got[1]) / (asked[0] / asked[1]) - 1) > _RATIO_TOLERANCE:
        missing.append("aspect_ratio")
    if resolution and got[0] * got[1] < asked[0] * asked[1] * _SIZE_TOLERANCE:
        missing.append("resolution")
    return tuple(missing)

"""Turns and pictures with every kind of part, for what stores and shows them."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime, timedelta
from typing import Any

from agent import (
    AgentMessage,
    Component,
    ErrorCode,
    ErrorInfo,
    Fact,
    FailureNote,
    GroundingPart,
    ImageOrigin,
    ImagePart,
    Picture,
    PromptMessage,
    Receipt,
    Reference,
    Role,
    SearchNote,
    SearchPolicy,
    SmartCanvas,
    Source,
    Step,
    Steps,
    StoppedNote,
    TextPart,
    ThoughtLog,
    TokenUsage,
    ToolCallPart,
    ToolResultPart,
    Turn,
    TurnSettings,
    TurnState,
)

NOW = datetime(2026, 11, 20, 12, 30, 15, 123456, tzinfo=UTC)
SMALL_SIGNATURE = bytes(range(256))
LARGE_SIGNATURE = bytes(range(256)) * 5000
_NAMED = {hashlib.sha256(LARGE_SIGNATURE).hexdigest(): LARGE_SIGNATURE}
SOURCE = Source(title="Füchse", url="https://example.org/?q=狐")


def image_part(handle: str = "#1", origin: ImageOrigin = ImageOrigin.UPLOADED) -> ImagePart:
    """Return a reference whose digests follow from the handle; there is no file behind it."""
    data = handle.encode()
    return ImagePart(
        digest=hashlib.sha256(data).hexdigest(),
        md5=hashlib.md5(data, usedforsecurity=False).hexdigest(),
        mime_type="image/png",
        size_bytes=len(data),
        origin=origin,
        width=64,
        height=36,
        handle=handle,
    )


def signed(signature: bytes, by: str) -> dict[str, Any]:
    """Return the fields of a part that carries a signature, or names a large one."""
    if len(signature) <= 4096:
        return {"thought_signature": signature, "signed_by": by}
    digest = hashlib.sha256(signature).hexdigest()
    _NAMED[digest] = signature
    return {"signature_digest": digest, "signed_by": by}


async def keep_signatures(images: Any) -> None:
    """Put every large signature that a part names into the store."""
    for signature in _NAMED.values():
        await images.write_blob(signature)


def answer(handle: str, signature: bytes = LARGE_SIGNATURE) -> PromptMessage:
    """Return an image model's message: signed text, a thought, an unsigned and a signed picture."""
    image = image_part(handle, ImageOrigin.GENERATED)
    return PromptMessage(
        role=Role.MODEL,
        parts=(
            TextPart(text="Here it is.", thought_signature=SMALL_SIGNATURE, signed_by="image-model"),
            TextPart(text="hm", is_thought=True),
            image.model_copy(update={"is_thought": True}),
            image.model_copy(update=signed(signature, "image-model")),
        ),
    )


def picture(handle: str, turn_id: str, *, is_generated: bool = True, signature: bytes = LARGE_SIGNATURE) -> Picture:
    """Return a picture with all that one can have."""
    if not is_generated:
        return Picture(handle=handle, image=image_part(handle), turn_id=turn_id, created_at=NOW)
    receipt = Receipt(
        prompt="a fox\u0000 狐\n[FACTS]",
        user_text="draw 🦊",
        model="m",
        model_label="M",
        asked_aspect_ratio="16:9",
        asked_resolution=None,
        width=64,
        height=36,
        mime_type="image/png",
        references=(Reference(handle="#1", role="base"),),
        left_out=2,
        facts=(Fact(item="red", source="page"),),
        sources=(SOURCE,),
        usage=TokenUsage(prompt_tokens=3, image_tokens=1290),
        price_usd=0.1 + 0.2,
        seconds=1.5,
        attempts=2,
        finish_reason="STOP",
        shortfalls=("size",),
    )
    return Picture(
        handle=handle,
        image=image_part(handle, ImageOrigin.GENERATED),
        turn_id=turn_id,
        created_at=NOW + timedelta(seconds=1),
        parents=("#1",),
        answer=answer(handle, signature),
        receipt=receipt,
        alt="a fox",
        after_stop=True,
    )


def begun_turn(
    turn_id: str = "t1", text: str = "draw a red fox", uploads: tuple[ImagePart, ...] = (), parent: str | None = None
) -> Turn:
    """Return a turn as it starts."""
    return Turn(
        id=turn_id,
        text=text,
        settings=TurnSettings(image_model="pro", search_policy=SearchPolicy.BOTH, aspect_ratio="1:1", budget_usd=0.5),
        started_at=NOW,
        parent=parent,
        uploads=uploads,
        editing="#1",
        references=("#1", "#2"),
    )


def finished(turn: Turn, handle: str = "#2", signature: bytes = LARGE_SIGNATURE) -> Turn:
    """Return the turn as it ends, with every kind of part and component."""
    call = ToolCallPart(
        name="generate_image",
        arguments={"prompt": "狐", "count": 1, "deep": {"list": [1.5, None, True, "x"]}},
        call_id="c1",
        **signed(signature, "text-model"),
    )
    result = ToolResultPart(
        name="generate_image",
        content={"handles": [handle]},
        images=(image_part(handle, ImageOrigin.GENERATED),),
        call_id="c1",
    )
    messages = (
        PromptMessage(role=Role.PROMPT, parts=(*turn.uploads, TextPart(text=turn.text))),
        PromptMessage(
            role=Role.MODEL,
            parts=(
                GroundingPart(queries=("fox",), sources=(SOURCE,), suggestions_html="<b>fox</b>"),
                call,
                TextPart(text="", thought_signature=SMALL_SIGNATURE, signed_by="text-model"),
            ),
        ),
        PromptMessage(role=Role.TOOL, parts=(result,)),
        answer(handle, signature),
    )
    components: tuple[Component, ...] = (
        Steps(lines=(ThoughtLog(step=Step.PAINTING, parameters={"count": 1}, at_s=0.5),), seconds=2.5),
        AgentMessage(text="**done**"),
        SmartCanvas(handles=(handle,)),
        SearchNote(sources=(SOURCE,), suggestions_html="<b>fox</b>"),
        FailureNote(error=ErrorInfo(code=ErrorCode.OVERLOADED, parameters={"model": "m"}), node="executor"),
        StoppedNote(),
    )
    update = {
        "state": TurnState.DONE,
        "messages": messages,
        "components": components,
        "usage": TokenUsage(prompt_tokens=7, thought_tokens=9),
        "price_usd": 0.1,
        "seconds": 3.25,
    }
    return turn.model_copy(update=update)

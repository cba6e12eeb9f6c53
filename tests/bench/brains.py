"""How the test server answers while it is measured: at once, and the same every time."""

from __future__ import annotations

import json

from tests.wire_server import Answer, Call, DelayBetweenChunks, PictureAnswer, Text, WireRequest

WORDS = " ".join(f"word{number}" for number in range(50))
STYLE = " in the style of "
_PAINT = {
    "prompt": "A red fox sits in fresh snow at dawn, seen from the side, with long blue shadows and a quiet forest.",
    "action": "generate_image",
    "subject": "a red fox in the snow",
    "confidence": 0.9,
}
_REVIEW = {
    "lettering": "",
    "checklist": [{"wish": wish, "is_met": True, "why": "It is there."} for wish in ("a red fox", "fresh snow")],
    "score": 0.9,
    "feedback": "The fox is as it was asked for.",
    "suggestions": [],
}


def text(request: WireRequest) -> Answer:
    """Review where a schema asks for it, call for a picture when the words say "paint", else answer in fifty chunks."""
    if "responseJsonSchema" in request.config:
        return Text(json.dumps(_REVIEW), chunks=1)
    if "paint" in request.prompt:
        # Behind the words comes the listing of earlier pictures, which is longer with every turn.
        style = request.prompt.partition(STYLE)[2].partition("\n")[0]
        return Call("generate_image", {**_PAINT, "style": style} if style else _PAINT)
    return Text(WORDS, chunks=50)


def image(request: WireRequest) -> Answer:
    """Paint a small picture, another one each time: what is measured is not how long a large one takes to carry."""
    return PictureAnswer(width=64, height=36, signature_bytes=4096)


def slow_text(request: WireRequest) -> Answer:
    """Answer in words as fast as a model writes: fifty chunks in four seconds."""
    return DelayBetweenChunks(0.08, Text(WORDS, chunks=50))

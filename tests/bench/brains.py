"""How the test server answers while it is measured: at once, and the same every time."""

from __future__ import annotations

import json

from tests.wire_server import Answer, Call, DelayBetweenChunks, PictureAnswer, Text, WireRequest

WORDS = " ".join(f"word{number}" for number in range(50))
STYLE = " in the style of "
_SIGNATURE_BYTES = 4096
_PAINT = {
    "prompt": "A red fox sits in fresh snow at dawn, seen from the side, with long blue shadows and a quiet forest.",
    "action": "generate_image",
    "subject": "a red fox in the snow",
    "confidence": 0.9,
}
_REVIEW = json.dumps(
    {
        "lettering": "",
        "checklist": [
            {"wish": "a red fox", "is_met": True, "why": "It sits in the middle."},
            {"wish": "fresh snow", "is_met": True, "why": "It covers the ground."},
        ],
        "score": 0.9,
        "feedback": "The fox is as it was asked for.",
        "suggestions": [],
    }
)


def text(request: WireRequest) -> Answer:
    """Answer in fifty chunks; review where a schema asks for it; call a tool, or for a picture, when the words say."""
    if "responseJsonSchema" in request.config:
        return Text(_REVIEW, chunks=1)
    if request.function_responses:
        return Text("Done.", chunks=1)
    if "use the tool" in request.prompt:
        return Call("get_history_image", {"image_id": "0123456789abcdef"})
    if "paint" in request.prompt:
        # Behind the words comes the listing of earlier pictures, which is longer with every turn.
        style = request.prompt.partition(STYLE)[2].partition("\n")[0]
        return Call("generate_image", {**_PAINT, "style": style} if style else _PAINT)
    return Text(WORDS, chunks=50)


def image(request: WireRequest) -> Answer:
    """Paint a small picture, another one each time: what is measured is not how long a large one takes to carry."""
    return PictureAnswer(width=64, height=36, signature_bytes=_SIGNATURE_BYTES)


def slow_text(request: WireRequest) -> Answer:
    """Answer in words as fast as a model writes: fifty chunks in four seconds."""
    return DelayBetweenChunks(0.08, Text(WORDS, chunks=50))

"""How the test server answers while it is measured: at once, and the same every time."""

from __future__ import annotations

from tests.wire_server import Answer, Call, PictureAnswer, Text, WireRequest

WORDS = " ".join(f"word{number}" for number in range(50))
_MEGABYTE = 1 << 20


def text(request: WireRequest) -> Answer:
    """Answer in fifty chunks; call a tool when the words say so; paint when they say so."""
    if request.function_responses:
        return Text("Done.", chunks=1)
    if "use the tool" in request.prompt:
        return Call("get_history_image", {"image_id": "0123456789abcdef"})
    if "paint" in request.prompt:
        return Call("generate_image", {"prompt": "a fox"})
    return Text(WORDS, chunks=50)


def image(request: WireRequest) -> Answer:
    """Paint a picture of a megabyte."""
    return PictureAnswer(least_bytes=_MEGABYTE, signature_bytes=1024)

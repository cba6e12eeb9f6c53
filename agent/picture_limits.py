"""How large a picture may be, wherever one comes in or is decoded. `docs/sharing.md` shows these to people."""

from __future__ import annotations

from agent.settings import OPERATOR

MAX_MEGAPIXELS = 64
MAX_DEEP_MEGAPIXELS = 32
"""Up to so many megapixels a picture keeps 16 bits; a larger one is kept with 8, and its record says so."""

MAX_SIDE_PX = 16_384
MAX_ASPECT = 100

MAX_UPLOAD_MEGABYTES = 160
"""A photograph of 24 megapixels and 16 bits has up to 145 MB as PNG."""

MAX_VISITOR_UPLOAD_MEGABYTES = 20
"""The same for anybody but the studio's owner."""

MAX_MESSAGE_MEGABYTES = 320
"""All pictures of one message together."""

MAX_MASK_MEGABYTES = 20
MAX_PICTURES_PER_MESSAGE = 16

MODEL_COPY_SIDE_PX = 4096
"""The longer side of what a model is shown of a larger picture."""

LOW_MEMORY_MEGAPIXELS = 16
"""What is offered when the machine has no memory left for a picture within the limits."""


def upload_limit_megabytes(owner: str) -> int:
    """Return how large a file may be that this owner of conversations sends."""
    return MAX_UPLOAD_MEGABYTES if owner == OPERATOR else MAX_VISITOR_UPLOAD_MEGABYTES


def fitted_size(width: int, height: int, longest_px: int) -> tuple[int, int]:
    """Return width and height of a copy whose longer side is at most so many pixels, never larger than the picture."""
    scale = min(1.0, longest_px / max(width, height, 1))
    return (width, height) if scale == 1 else (max(1, round(width * scale)), max(1, round(height * scale)))


def harden_pillow() -> None:
    """Set Pillow's process-wide limits, for every decoder in this process; may be called again.

    No warning filter is set: filters are shared by all threads, so the sizes are compared where pictures are opened.
    """
    # What the store takes to open is little, and Pillow is much.
    from PIL import Image, ImageFile

    Image.MAX_IMAGE_PIXELS = MAX_MEGAPIXELS * 1_000_000
    ImageFile.LOAD_TRUNCATED_IMAGES = False

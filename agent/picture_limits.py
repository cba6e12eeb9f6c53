"""How large a picture may be, and Pillow held to it, wherever a picture is decoded."""

from __future__ import annotations

from PIL import Image, ImageFile

MAX_MEGAPIXELS = 64
# What is offered when the machine has no memory left for a picture within the limits.
LOW_MEMORY_MEGAPIXELS = 16


def harden_pillow() -> None:
    """Set Pillow's process-wide limits, for every decoder in this process; may be called again.

    No warning filter is set: filters are shared by all threads, so the sizes are compared where pictures are opened.
    """
    Image.MAX_IMAGE_PIXELS = MAX_MEGAPIXELS * 1_000_000
    ImageFile.LOAD_TRUNCATED_IMAGES = False

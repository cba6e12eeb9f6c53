"""Pictures as files."""

from __future__ import annotations

import io

from PIL import Image


def encoded(image: Image.Image, form: str = "PNG", **options: object) -> bytes:
    """Return a picture as a file of a format."""
    sink = io.BytesIO()
    image.save(sink, form, **options)
    return sink.getvalue()

"""Archives of conversations."""

from __future__ import annotations

from agent.archive.archive import Archive
from agent.archive.context import ToldMessage
from agent.archive.format import Limits, Manifest
from agent.archive.walking import images_in, with_images

__all__ = [
    "Archive",
    "Limits",
    "Manifest",
    "ToldMessage",
    "images_in",
    "with_images",
]

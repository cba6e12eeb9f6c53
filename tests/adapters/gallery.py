"""The gallery of a home, and the folder of what it knows of its pictures' meaning and looks."""

from __future__ import annotations

from agent.storage.gallery import Gallery
from agent.storage.gallery_index import FOLDER as INDEX_FOLDER
from agent.storage.gallery_values import FoundBy, GalleryItem, GalleryPage

__all__ = ["INDEX_FOLDER", "FoundBy", "Gallery", "GalleryItem", "GalleryPage"]

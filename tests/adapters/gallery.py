"""The gallery of a home, and the folder of what it knows of its pictures' meaning and looks."""

from __future__ import annotations

from agent import Gallery, GalleryFoundBy, GalleryItem
from agent.library import moment_cursor
from agent.storage.gallery_index import FOLDER as INDEX_FOLDER
from agent.storage.gallery_words import read_some

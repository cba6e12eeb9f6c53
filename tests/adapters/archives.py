"""Archives of conversations."""

from __future__ import annotations

from agent import Archive, ArchiveLanguage, ArchiveLimits, ContextMessage
from agent.archive.format import (
    FORMAT,
    SUFFIXES,
    VERSION,
    ArchivedConversation,
    ArchivedPicture,
    ArchivedTurn,
    ArchivedWorkspaceFile,
    Manifest,
    is_file_name,
    is_folder_name,
    json_schema,
)
from agent.archive.json_guard import check_json, parsed
from agent.archive.kinds import MIME_OF_SUFFIX
from agent.archive.markdown import escaped, markdown
from agent.archive.plain_text import visible, web_address
from agent.archive.readable import Page, conversation_page
from agent.archive.walking import images_in, with_images
from agent.archive.web_page import index_page, web_page

__all__ = [
    "FORMAT",
    "MIME_OF_SUFFIX",
    "SUFFIXES",
    "VERSION",
    "Archive",
    "ArchiveLanguage",
    "ArchiveLimits",
    "ArchivedConversation",
    "ArchivedPicture",
    "ArchivedTurn",
    "ArchivedWorkspaceFile",
    "ContextMessage",
    "Manifest",
    "Page",
    "check_json",
    "conversation_page",
    "escaped",
    "images_in",
    "index_page",
    "is_file_name",
    "is_folder_name",
    "json_schema",
    "markdown",
    "parsed",
    "visible",
    "web_address",
    "web_page",
    "with_images",
]

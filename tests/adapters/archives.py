"""Archives of conversations."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from agent import Archive, ArchiveLanguage, ArchiveLimits, Conversation, ImagePart, WholeConversation
from agent.archive.consistency import Contents, PictureFacts, check_conversation
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
from agent.archive.packing import packed
from agent.archive.plain_text import visible, web_address
from agent.archive.readable import Page, branch_shown, conversation_page
from agent.archive.walking import images_in, with_images
from agent.archive.web_page import index_page, web_page


def blocks_shown(whole: WholeConversation, language: ArchiveLanguage, pictures: Iterable[ImagePart]) -> list[Any]:
    """Return what the page shows of a conversation that an import finds consistent, of pictures of 24 × 16."""
    from webui.features.thread.render import render_conversation
    from webui.view import View
    from webui.words import load_words

    archived, blobs = packed(whole)
    facts = {one.digest: PictureFacts(one.md5, "image/png", one.size_bytes, 24, 16) for one in pictures}
    sizes = {file.digest: file.size_bytes for file in archived.files}
    check_conversation(archived, Contents(facts, frozenset(blobs), frozenset(), sizes), "conversation.json")
    conversation = Conversation(
        id="c",
        owner="local",
        title=whole.title,
        created_at=whole.created_at,
        updated_at=whole.updated_at,
        turns=branch_shown(whole),
        pictures=whole.pictures,
    )
    return list(render_conversation(View(load_words(language), "c"), conversation))

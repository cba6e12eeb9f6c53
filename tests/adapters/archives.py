"""Archives of conversations."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from agent import Archive, ArchiveLanguage, ArchiveLimits, Conversation, ImagePart, WholeConversation
from agent.archive.format import (
    FORMAT,
    MIME_OF_SUFFIX,
    SUFFIXES,
    VERSION,
    ArchivedConversation,
    ArchivedWorkspaceFile,
    Manifest,
    changed,
    conversation_json,
    images_in,
    is_file_name,
    is_folder_name,
    json_schema,
    packed,
    signatures_in,
)
from agent.archive.pages import (
    Page,
    branch_shown,
    conversation_page,
    escaped,
    index_page,
    markdown,
    visible,
    web_address,
    web_page,
)
from agent.archive.reading import Contents, PictureFacts, check_conversation, check_json, parsed


def with_images(whole: WholeConversation, change: Callable[[ImagePart], ImagePart]) -> WholeConversation:
    """Return the conversation with each of its references to a picture changed."""
    found: WholeConversation = changed(whole, ImagePart, change)
    return found


def blocks_shown(whole: WholeConversation, language: ArchiveLanguage, pictures: Iterable[ImagePart]) -> list[Any]:
    """Return what the page shows of a conversation that an import finds consistent, of pictures of 24 × 16."""
    from webui.features.thread.render import render_turns
    from webui.view import View
    from webui.words import load_words

    archived = ArchivedConversation.model_validate_json(conversation_json(packed(whole)))
    facts = {one.digest: PictureFacts(one.md5, "image/png", one.size_bytes, 24, 16) for one in pictures}
    sizes = {file.digest: file.size_bytes for file in archived.files}
    check_conversation(
        archived, Contents(facts, frozenset(signatures_in(whole)), frozenset(), sizes), "conversation.json"
    )
    told = {name: getattr(whole, name) for name in ("title", "created_at", "updated_at", "pictures")}
    conversation = Conversation(id="c", owner="local", turns=branch_shown(whole), **told)
    return render_turns(View(load_words(language), "c"), conversation, conversation.turns, without="", is_busy=False)

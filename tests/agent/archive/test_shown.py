"""What an archive may hold can be shown: no conversation that was taken in leaves its owner before a broken page."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings

from agent import ArchiveLanguage, Conversation, WholeConversation
from agent.archive.consistency import Contents, PictureFacts, check_conversation
from agent.archive.packing import packed
from agent.archive.readable import branch_shown
from tests.agent.archive.values import PARTS, whole_conversations
from webui.features.thread.render import render_conversation
from webui.view import View
from webui.words import load_words

FACTS = {part.digest: PictureFacts(part.md5, "image/png", part.size_bytes, 24, 16) for part in PARTS}


@pytest.mark.parametrize("language", ["en", "zh-CN"])
@settings(max_examples=8, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(whole=whole_conversations())
def test_whatever_is_taken_in_can_be_shown(whole: WholeConversation, language: ArchiveLanguage) -> None:
    archived, blobs = packed(whole)
    sizes = {file.digest: file.size_bytes for file in archived.files}
    check_conversation(archived, Contents(FACTS, frozenset(blobs), frozenset(), sizes), "conversation.json")
    conversation = Conversation(
        id="c",
        owner="local",
        title=whole.title,
        created_at=whole.created_at,
        updated_at=whole.updated_at,
        turns=branch_shown(whole),
        pictures=whole.pictures,
    )
    blocks = render_conversation(View(load_words(language), "c"), conversation)
    assert bool(blocks) >= any(turn.text.strip() for turn in branch_shown(whole))

"""The files of a conversation through the one door."""

from __future__ import annotations

from agent import ErrorCode, Settings, Studio
from tests.support.refusals import refusal


async def test_a_copy_and_an_import_have_the_files_and_nobody_else_does(settings: Settings) -> None:
    async with Studio(settings) as studio:
        original = await studio.conversations.create()
        await studio.conversations.rename(original.id, "Foxes")
        await studio.files(original.id).write("notes/狐.md", "rot", by="person")
        copy = await studio.conversations.duplicate(original.id)
        exported = await studio.archive.export_conversation(original.id, "local")
        [taken] = (await studio.archive.import_archive(exported.path, "ann")).conversations
        await studio.files(original.id).write("notes/狐.md", "weiß", by="person")
        for conversation_id, owner in ((copy.id, "local"), (taken.id, "ann")):
            assert await studio.files(conversation_id, owner).all_texts() == {"notes/狐.md": "rot"}
        assert await refusal(studio.files(original.id, "ann").list()) is ErrorCode.CONVERSATION_NOT_FOUND

"""Archives of the real records."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from agent.conversation import WholeConversation
from agent.messages import ImageOrigin
from tests.adapters.archives import Archive
from tests.adapters.records import ConversationStore, ImageStore
from tests.agent.archive.shelf import as_from_outside, kept_turns, with_plain_ids
from tests.agent.archive.values import PNGS


@asynccontextmanager
async def opened(home: Path) -> AsyncIterator[tuple[ConversationStore, Archive]]:
    images = ImageStore(home)
    store = ConversationStore(home, images)
    await store.open()
    for data in PNGS:
        await images.write(data, "image/png", ImageOrigin.GENERATED)
    try:
        yield store, Archive(store, images, home)
    finally:
        await store.aclose()


async def every_whole(store: ConversationStore) -> list[WholeConversation]:
    return [await store.whole(info.id, "local") for info in await store.list("local")]


def as_imported(whole: WholeConversation) -> WholeConversation:
    """Return the conversation as the records have it when it came as a whole."""
    turns = tuple(turn.model_copy(update={"is_imported": True}) for turn in whole.turns)
    return whole.model_copy(update={"turns": turns})


async def test_conversations_go_from_one_home_to_another_with_all_they_hold(tmp_path: Path) -> None:
    async with opened(tmp_path / "here") as (store, archive):
        await store.add_whole("local", kept_turns())
        before = await every_whole(store)
        exported = await archive.export_library("local")
    async with opened(tmp_path / "there") as (store, archive):
        report = await archive.import_archive(exported.path, "local")
        after = await every_whole(store)
        shown = await store.get(report.conversations[0].id, "local")
    assert [with_plain_ids(one) for one in after] == [with_plain_ids(as_from_outside(one)) for one in before]
    assert [with_plain_ids(one) for one in before] == [with_plain_ids(as_imported(kept_turns()))]
    assert [picture.handle for picture in shown.pictures] == ["#1", "#2", "#4"]
    assert [picture.handle for picture in shown.elsewhere] == ["#3"]


async def test_a_tag_is_spelled_as_its_new_owner_spells_it(tmp_path: Path) -> None:
    async with opened(tmp_path) as (store, archive):
        whole = kept_turns()
        first = await store.add_whole("local", whole.model_copy(update={"tags": {"#2": ("poster",)}}))
        exported = await archive.export_conversation((await store.add_whole("ann", whole)).id, "ann")
        [taken] = (await archive.import_archive(exported.path, "local")).conversations
        assert (await store.whole(taken.id, "local")).tags == {"#1": ("狐",), "#4": ("for the wall", "poster")}
        assert (await store.whole(first.id, "local")).tags == {"#2": ("poster",)}

"""Archives of the real records."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import pytest

from agent.archive.archive import Archive
from agent.components import SmartCanvas
from agent.conversation import TurnState, WholeConversation
from agent.errors import StorageFailure
from agent.messages import ImageOrigin
from agent.storage.conversations import ConversationStore
from agent.storage.images import ImageStore
from agent.storage.spend import SpendBook
from agent.storage.workspace import WorkspaceStore
from tests.agent.archive.shelf import FILES, as_from_outside, kept_turns, with_plain_ids
from tests.agent.archive.values import PNGS
from tests.support.histories import NOW, begun_turn


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


async def test_a_title_that_nobody_gave_can_be_given_after_an_import_as_well(tmp_path: Path) -> None:
    async with opened(tmp_path) as (store, archive):
        unnamed = kept_turns().model_copy(update={"is_named": False})
        exported = await archive.export_conversation((await store.add_whole("local", unnamed)).id, "local")
        [taken] = (await archive.import_archive(exported.path, "local")).conversations
        assert (await store.whole(taken.id, "local")).is_named is False


async def test_an_import_into_its_own_home_stands_beside_the_original(tmp_path: Path) -> None:
    async with opened(tmp_path) as (store, archive):
        original = await store.add_whole("local", kept_turns())
        exported = await archive.export_conversation(original.id, "local")
        await archive.import_archive(exported.path, "local")
        await archive.import_archive(exported.path, "a visitor")
        first, second = await every_whole(store)
        assert with_plain_ids(as_from_outside(first)) == with_plain_ids(as_from_outside(second))
        assert not {turn.id for turn in first.turns} & {turn.id for turn in second.turns}
        assert len(await store.list("a visitor")) == 1


async def test_what_came_with_an_archive_was_not_spent_here(tmp_path: Path) -> None:
    async with opened(tmp_path) as (store, archive):
        book = SpendBook(store)
        original = await store.add_whole("local", kept_turns())
        spent = (await book.conversation(original.id, "local")).price_usd
        exported = await archive.export_conversation(original.id, "local")
        [taken] = (await archive.import_archive(exported.path, "local")).conversations
        assert spent > 0
        assert (await book.conversation(taken.id, "local")).price_usd == spent
        assert (await book.month("local", NOW.date())).price_usd == 0.0
        assert {info.price_usd for info in await store.list("local")} == {spent}


async def test_the_workspace_of_an_import_goes_on(tmp_path: Path) -> None:
    async with opened(tmp_path) as (store, archive):
        original = await store.add_whole("local", kept_turns())
        exported = await archive.export_conversation(original.id, "local")
        [taken] = (await archive.import_archive(exported.path, "a visitor")).conversations
        workspace = WorkspaceStore(store).of(taken.id, "a visitor")
        newest = max(file.version for file in FILES)
        assert (await workspace.write("ROWS.bin", b"new", by="person", expected_version=1)).version == newest + 1
        assert (await WorkspaceStore(store).of(original.id, "local").read("rows.bin")).content == bytes(range(256))


async def test_a_tag_is_spelled_as_its_new_owner_spells_it(tmp_path: Path) -> None:
    async with opened(tmp_path) as (store, archive):
        whole = kept_turns()
        first = await store.add_whole("local", whole.model_copy(update={"tags": {"#2": ("poster",)}}))
        exported = await archive.export_conversation((await store.add_whole("ann", whole)).id, "ann")
        [taken] = (await archive.import_archive(exported.path, "local")).conversations
        assert (await store.whole(taken.id, "local")).tags == {"#1": ("狐",), "#4": ("for the wall", "poster")}
        assert (await store.whole(first.id, "local")).tags == {"#2": ("poster",)}


async def test_a_conversation_goes_on_after_an_import(tmp_path: Path) -> None:
    async with opened(tmp_path) as (store, archive):
        original = await store.add_whole("local", kept_turns())
        exported = await archive.export_conversation(original.id, "local")
        report = await archive.import_archive(exported.path, "local")
        [taken] = report.conversations
        before = await store.get(taken.id, "local")
        await store.begin_turn(taken.id, begun_turn("next").model_copy(update={"parent": before.turns[-1].id}))
        assert [turn.id for turn in (await store.get(taken.id, "local")).turns][-1] == "next"


async def test_no_turn_of_an_import_can_be_taken_up_by_itself(tmp_path: Path) -> None:
    running = begun_turn("r").model_copy(update={"state": TurnState.RUNNING, "components": (SmartCanvas(handles=()),)})
    whole = kept_turns().model_copy(update={"turns": (running,), "head": "r", "pictures": ()})
    async with opened(tmp_path / "here") as (store, archive):
        original = await store.create("local", "at work")
        await store.begin_turn(original.id, whole.turns[0])
        exported = await archive.export_conversation(original.id, "local")
    async with opened(tmp_path / "there") as (store, archive):
        [taken] = (await archive.import_archive(exported.path, "local")).conversations
        assert not await store.is_running(taken.id)
        turns = (await store.get(taken.id, "local")).turns
        assert await store.may_go_on([one.id for one in turns]) == set()


async def test_when_the_records_fail_there_is_neither_a_row_nor_a_file(tmp_path: Path) -> None:
    async with opened(tmp_path / "here") as (store, archive):
        for title in ("first", "second"):
            await store.add_whole("local", kept_turns(title))
        exported = await archive.export_library("local")
    home = tmp_path / "there"
    images = ImageStore(home)
    store = ConversationStore(home, images)
    await store.open()
    with closing(sqlite3.connect(home / "aivista.db")) as database:
        database.execute(
            "CREATE TRIGGER full BEFORE INSERT ON conversations WHEN (SELECT count(*) FROM conversations) > 0 "
            "BEGIN SELECT RAISE(ABORT, 'no more'); END"
        )
    with pytest.raises(StorageFailure):
        await Archive(store, images, home).import_archive(exported.path, "local")
    await store.aclose()
    with closing(sqlite3.connect(home / "aivista.db")) as database:
        tables = ("conversations", "turns", "pictures", "picture_tags", "workspace_files")
        counts = [database.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in tables]
    assert counts == [0, 0, 0, 0, 0]
    assert [path for name in ("pictures", "blobs") for path in (home / name).rglob("*") if path.is_file()] == []

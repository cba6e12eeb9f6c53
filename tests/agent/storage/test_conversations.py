from __future__ import annotations

import asyncio
import contextlib
import glob
import os
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from agent.components import InterruptedNote, SmartCanvas
from agent.conversation import Conversation, TurnState
from agent.errors import ErrorCode, RequestRefused
from agent.messages import SignedPart
from tests.adapters.records import ConversationStore, ImageStore
from tests.support.children import run_child
from tests.support.histories import LARGE_SIGNATURE, begun_turn, finished, image_part, picture


@asynccontextmanager
async def opened(home: Path) -> AsyncIterator[ConversationStore]:
    store = ConversationStore(home, ImageStore(home))
    await store.open()
    try:
        yield store
    finally:
        await store.aclose()


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[ConversationStore]:
    async with opened(tmp_path) as one:
        yield one


async def read_anew(home: Path, conversation: Conversation) -> Conversation:
    async with opened(home) as other:
        return await other.get(conversation.id, conversation.owner)


async def test_a_conversation_comes_back_exactly_after_a_restart(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        conversation = await store.create("local")
        turn = begun_turn(uploads=(image_part("#1"),))
        upload, made = picture("#1", turn.id, is_generated=False), picture("#2", turn.id)
        await store.begin_turn(conversation.id, turn, [upload])
        await store.add_picture(conversation.id, made)
        await store.finish_turn(conversation.id, finished(turn))
        await store.begin_turn(conversation.id, begun_turn("t2", "more", parent="t1"))
        await store.finish_turn(conversation.id, finished(begun_turn("t2", "more", parent="t1")))
        remembered = await store.get(conversation.id, "local")
    read = await read_anew(tmp_path, conversation)
    assert read.turns[0] == finished(turn)
    assert read.pictures == (upload, made.model_copy(update={"answer": None}))
    assert [turn.id for turn in read.turns] == ["t1", "t2"]
    assert read.created_at == conversation.created_at
    assert remembered == read


async def test_what_is_remembered_is_what_is_on_record_after_every_change(
    tmp_path: Path, store: ConversationStore
) -> None:
    conversation = await store.create("local")
    turn = begun_turn()
    changes: tuple[Callable[[], Awaitable[object]], ...] = (
        lambda: store.begin_turn(conversation.id, turn, [picture("#1", turn.id, is_generated=False)]),
        lambda: store.add_picture(conversation.id, picture("#2", turn.id)),
        lambda: store.add_picture(conversation.id, picture("#3", turn.id)),
        lambda: store.add_picture(conversation.id, picture("#2", turn.id).model_copy(update={"alt": "again"})),
        lambda: store.mark_picture(conversation.id, "#3", True),
        lambda: store.finish_turn(conversation.id, finished(turn)),
        lambda: store.rename(conversation.id, "local", "another title"),
    )
    for change in changes:
        await change()
        assert await store.get(conversation.id, "local") == await read_anew(tmp_path, conversation)


async def test_large_signatures_are_blobs_and_come_back_in_their_places(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        conversation = await store.create("local")
        await store.begin_turn(conversation.id, begun_turn())
        await store.add_picture(conversation.id, picture("#2", "t1"))
        await store.finish_turn(conversation.id, finished(begun_turn()))
    # Less than a quarter of one of them: what is there are tables and indexes, empty but for a few rows.
    assert sum(os.stat(path).st_size for path in glob.glob(f"{tmp_path}/aivista.db*")) < len(LARGE_SIGNATURE) / 4
    async with opened(tmp_path) as store:
        read = await store.get(conversation.id, "local")
        signed = [part for message in read.messages for part in message.parts if isinstance(part, SignedPart)]
        assert [part.thought_signature for part in signed].count(LARGE_SIGNATURE) == 2
        assert await store.answer_of(conversation.id, "#2") == picture("#2", "t1").answer


async def test_pictures_are_held_without_the_answer_which_is_fetched_when_asked_for(store: ConversationStore) -> None:
    conversation = await store.create("local")
    await store.begin_turn(conversation.id, begun_turn(), [picture("#1", "t1", is_generated=False)])
    await store.add_picture(conversation.id, picture("#2", "t1"))
    assert [one.answer for one in (await store.get(conversation.id, "local")).pictures] == [None, None]
    assert await store.answer_of(conversation.id, "#2") == picture("#2", "t1").answer
    assert await store.answer_of(conversation.id, "#1") is None
    with pytest.raises(RequestRefused, match="#9"):
        await store.answer_of(conversation.id, "#9")


async def test_a_lost_blob_leaves_the_conversation_readable_with_the_part_unsigned(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        conversation = await store.create("local")
        await store.begin_turn(conversation.id, begun_turn())
        await store.add_picture(conversation.id, picture("#2", "t1"))
    (blob,) = (path for path in (tmp_path / "blobs").rglob("*") if path.is_file())
    blob.unlink()
    async with opened(tmp_path) as store:
        answer = await store.answer_of(conversation.id, "#2")
    assert answer is not None
    assert [(one.thought_signature, one.signed_by) for one in answer.images] == [(None, None)]


@pytest.mark.parametrize("owner", ["somebody else", "", "LOCAL"])
async def test_nobody_elses_conversation_is_opened_renamed_listed_or_deleted(
    tmp_path: Path, store: ConversationStore, owner: str
) -> None:
    conversation = await store.create("local", "mine")
    async with opened(tmp_path) as fresh:
        for attempt in (
            store.get(conversation.id, owner),
            fresh.get(conversation.id, owner),
            fresh.rename(conversation.id, owner, "theirs"),
            fresh.delete(conversation.id, owner),
        ):
            with pytest.raises(RequestRefused) as refused:
                await attempt
            assert refused.value.code is ErrorCode.CONVERSATION_NOT_FOUND
        assert await fresh.list(owner) == []
        assert (await fresh.get(conversation.id, "local")).title == "mine"


async def test_the_list_is_newest_first_and_says_what_each_holds(store: ConversationStore) -> None:
    first, second = await store.create("local", "first"), await store.create("local", "second")
    third = await store.create("local", "third")
    await store.begin_turn(first.id, begun_turn(), [picture("#1", "t1", is_generated=False)])
    await store.add_picture(first.id, picture("#2", "t1"))
    await store.finish_turn(first.id, finished(begun_turn()))
    infos = await store.list("local")
    assert [info.id for info in infos] == [first.id, third.id, second.id]
    assert (infos[0].picture_count, infos[0].price_usd) == (2, 0.1)
    assert infos[0].thumbnail_digest == image_part("#2").digest
    assert (infos[2].picture_count, infos[2].price_usd, infos[2].thumbnail_digest) == (0, 0.0, None)
    assert [info.id for info in await store.list("local", limit=1, offset=1)] == [third.id]


async def test_a_conversation_in_which_nothing_was_said_is_not_listed(store: ConversationStore) -> None:
    await store.create("local")
    begun = await store.create("local")
    await store.begin_turn(begun.id, begun_turn(text=""))
    assert [(info.id, info.title) for info in await store.list("local")] == [(begun.id, "")]


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("  draw\n a   fox ", "draw a fox"),
        ("", ""),
        ("word " * 40, "word " * 8 + "word…"),
        ("画" * 60, "画" * 48 + "…"),
    ],
)
async def test_the_first_words_become_the_title(store: ConversationStore, text: str, title: str) -> None:
    conversation = await store.create("local")
    await store.begin_turn(conversation.id, begun_turn(text=text))
    assert (await store.get(conversation.id, "local")).title == title


async def test_a_title_that_is_there_stays(tmp_path: Path, store: ConversationStore) -> None:
    conversation = await store.create("local", "mine")
    await store.begin_turn(conversation.id, begun_turn())
    assert (await read_anew(tmp_path, conversation)).title == "mine"


async def test_a_conversation_that_is_removed_is_gone_with_all_its_rows(
    tmp_path: Path, store: ConversationStore
) -> None:
    conversation = await store.create("local")
    await store.begin_turn(conversation.id, begun_turn(), [picture("#1", "t1", is_generated=False)])
    await store.remove(conversation.id, "local")
    for attempt in (
        store.get(conversation.id, "local"),
        store.begin_turn(conversation.id, begun_turn("t2")),
        store.finish_turn(conversation.id, finished(begun_turn())),
        store.add_picture(conversation.id, picture("#2", "t1")),
        store.remove(conversation.id, "local"),
        store.delete(conversation.id, "local"),
        store.undelete(conversation.id, "local"),
    ):
        with pytest.raises(RequestRefused) as refused:
            await attempt
        assert refused.value.code is ErrorCode.CONVERSATION_NOT_FOUND
    with contextlib.closing(sqlite3.connect(tmp_path / "aivista.db")) as database:
        counts = [database.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in ("turns", "pictures")]
    assert counts == [0, 0]


async def test_a_turn_that_was_never_begun_cannot_be_finished(store: ConversationStore) -> None:
    conversation = await store.create("local")
    with pytest.raises(RequestRefused):
        await store.finish_turn(conversation.id, finished(begun_turn()))


async def test_a_turn_and_its_uploads_are_recorded_together_or_not_at_all(
    tmp_path: Path, store: ConversationStore
) -> None:
    conversation = await store.create("local")
    twice = [picture("#1", "t1", is_generated=False)] * 2
    with pytest.raises(Exception, match=r"cannot be read or written"):
        await store.begin_turn(conversation.id, begun_turn(), twice)
    assert await store.get(conversation.id, "local") == conversation == await read_anew(tmp_path, conversation)


async def test_a_picture_whose_handle_is_taken_is_recorded_under_the_next_one(
    tmp_path: Path, store: ConversationStore
) -> None:
    conversation = await store.create("local")
    await store.begin_turn(conversation.id, begun_turn())
    await store.add_picture(conversation.id, picture("#2", "t1"))
    other = picture("#2", "t1").model_copy(update={"image": image_part("#3").model_copy(update={"handle": "#2"})})
    added = await store.add_picture(conversation.id, other)
    assert (added.handle, added.image.handle, added.image.digest) == ("#3", "#3", image_part("#3").digest)
    answer = await store.answer_of(conversation.id, "#3")
    assert answer is not None
    assert {image.handle for image in answer.images} == {"#3"}
    kept = await store.get(conversation.id, "local")
    assert [one.image.digest for one in kept.pictures] == [image_part("#2").digest, image_part("#3").digest]
    assert await read_anew(tmp_path, conversation) == kept


async def test_marking_a_picture_that_is_not_there_is_refused(store: ConversationStore) -> None:
    conversation = await store.create("local")
    with pytest.raises(RequestRefused) as refused:
        await store.mark_picture(conversation.id, "#1", True)
    assert refused.value.code is ErrorCode.PICTURE_NOT_FOUND


async def test_a_picture_is_recorded_even_when_its_caller_is_cancelled(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        conversation = await store.create("local")
        await store.begin_turn(conversation.id, begun_turn())
        adding = asyncio.create_task(store.add_picture(conversation.id, picture("#2", "t1")))
        await asyncio.sleep(0)
        adding.cancel()
        with pytest.raises(asyncio.CancelledError):
            await adding
    assert [one.handle for one in (await read_anew(tmp_path, conversation)).pictures] == ["#2"]


async def test_a_turn_whose_process_was_killed_is_interrupted_and_shows_what_it_had_made(tmp_path: Path) -> None:
    code = """
import asyncio, os, signal, sys
from pathlib import Path
from agent.storage.conversations import ConversationStore
from agent.storage.images import ImageStore
from tests.support.histories import begun_turn, picture

async def main():
    home = Path(sys.argv[1])
    store = ConversationStore(home, ImageStore(home))
    await store.open()
    conversation = await store.create("local")
    await store.begin_turn(conversation.id, begun_turn(), [picture("#1", "t1", is_generated=False)])
    await store.add_picture(conversation.id, picture("#2", "t1"))
    await store.begin_turn(conversation.id, begun_turn("t2", parent="t1"))
    print(conversation.id, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main())
"""
    child = run_child(code, str(tmp_path))
    async with opened(tmp_path) as store:
        read = await store.get(child.stdout.strip(), "local")
        assert not await store.is_running(read.id)
    assert [turn.state for turn in read.turns] == [TurnState.INTERRUPTED, TurnState.INTERRUPTED]
    assert read.turns[0].components == (SmartCanvas(handles=("#2",)), InterruptedNote())
    assert read.turns[1].components == (InterruptedNote(),)
    assert [one.handle for one in read.pictures] == ["#1", "#2"]
    assert list((tmp_path / "running").iterdir()) == []


async def test_a_turn_that_still_runs_elsewhere_is_left_alone(tmp_path: Path, store: ConversationStore) -> None:
    conversation = await store.create("local")
    await store.begin_turn(conversation.id, begun_turn())
    async with opened(tmp_path) as other:
        assert await other.is_running(conversation.id)
        assert await other.close_abandoned() == ()
    await store.finish_turn(conversation.id, finished(begun_turn()))
    assert (await read_anew(tmp_path, conversation)).turns[0].state is TurnState.DONE


async def test_a_turn_that_was_running_when_the_store_closed_is_interrupted_at_the_next_start(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        conversation = await store.create("local")
        await store.begin_turn(conversation.id, begun_turn())
    assert (await read_anew(tmp_path, conversation)).turns[0].state is TurnState.INTERRUPTED


async def test_many_turns_at_once_are_all_on_record(tmp_path: Path) -> None:
    async with opened(tmp_path) as store:
        conversations = await asyncio.gather(*(store.create("local") for _ in range(70)))

        async def talk(conversation: Conversation) -> None:
            for n in range(3):
                begun = begun_turn(f"t{n}", parent=f"t{n - 1}" if n else None)
                await store.begin_turn(conversation.id, begun)
                await store.finish_turn(conversation.id, finished(begun, signature=b"s"))

        await asyncio.gather(*(talk(conversation) for conversation in conversations))
        remembered = [await store.get(conversation.id, "local") for conversation in conversations]
    async with opened(tmp_path) as store:
        read = [await store.get(conversation.id, "local") for conversation in conversations]
    assert read == remembered
    assert {tuple(turn.id for turn in conversation.turns) for conversation in read} == {("t0", "t1", "t2")}


async def test_what_the_store_takes_to_open_is_not_loaded_with_it(tmp_path: Path) -> None:
    code = "import sys, agent.storage.conversations, agent.storage.cache, agent.storage.images\n" + (
        "print({'sqlalchemy', 'alembic', 'diskcache', 'PIL'} & set(sys.modules))"
    )
    assert run_child(code).stdout.strip() == "set()"

"""The files of a conversation over real records: written, found, limited, and their owner's alone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from agent.conversation import Writer
from agent.errors import ErrorCode, RequestRefused
from agent.storage.conversations import ConversationStore
from agent.storage.images import ImageStore
from agent.storage.workspace import NEW, Limits, Workspace, WorkspaceStore
from tests.support.children import run_child

SMALL = Limits(files=3, file_bytes=100, total_bytes=250)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[ConversationStore]:
    one = ConversationStore(tmp_path, ImageStore(tmp_path))
    await one.open()
    yield one
    await one.aclose()


@pytest.fixture
async def workspace(store: ConversationStore) -> Workspace:
    return WorkspaceStore(store, SMALL).of((await store.create("ann")).id, "ann")


async def code_of(attempt: Awaitable[object]) -> ErrorCode:
    """Return why the attempt is refused."""
    with pytest.raises(RequestRefused) as refused:
        await attempt
    return refused.value.code


async def names(workspace: Workspace) -> list[str]:
    return [one.name for one in await workspace.list()]


async def test_an_empty_workspace_has_no_files(workspace: Workspace) -> None:
    assert (await workspace.list(), await workspace.all_texts(), await workspace.size()) == ((), {}, 0)


async def test_what_is_written_is_read_to_the_byte(workspace: Workspace) -> None:
    before = datetime.now(UTC)
    data = b"\xff\x00\r\nfox"
    info = await workspace.write("bin/data.bin", data, by="person")
    assert (info.name, info.size_bytes, info.version, info.written_by) == ("bin/data.bin", len(data), 1, "person")
    assert before <= info.updated_at <= datetime.now(UTC)
    file = await workspace.read("bin/data.bin")
    assert (file.content, file.text) == (data, None)
    assert {**file.model_dump(exclude={"content"}), "size_bytes": file.size_bytes} == info.model_dump()
    assert await workspace.list() == (info,)


async def test_text_is_utf_8_and_comes_back_as_it_was(workspace: Workspace) -> None:
    text = "\ufeff狐\r\n  🦊\n"
    await workspace.write("a.txt", text, by="agent")
    assert await workspace.read_text("a.txt") == text
    assert (await workspace.read("a.txt")).content == text.encode()


async def test_half_a_character_is_written_as_a_question_mark(workspace: Workspace) -> None:
    await workspace.write("a.txt", "a\ud83d!", by="agent")
    assert await workspace.read_text("a.txt") == "a?!"


@pytest.mark.parametrize("data", [b"\xff\xfe", b"a\0b", b"\xed\xa0\x80"])
async def test_what_is_no_text_is_said_to_be_none(workspace: Workspace, data: bytes) -> None:
    await workspace.write("a", data, by="person")
    await workspace.write("b", b"text", by="person")
    assert await code_of(workspace.read_text("a")) is ErrorCode.FILE_NOT_TEXT
    assert await workspace.all_texts() == {"b": "text"}


async def test_files_are_listed_by_name_whatever_their_case(workspace: Workspace) -> None:
    for name in ("b.md", "C.md", "a/z.md"):
        await workspace.write(name, "x", by="person")
    assert await names(workspace) == ["a/z.md", "b.md", "C.md"]
    assert list(await workspace.all_texts()) == ["a/z.md", "b.md", "C.md"]


async def test_a_file_is_one_whatever_the_case_of_its_name_and_keeps_the_first(workspace: Workspace) -> None:
    await workspace.write("Über.md", "1", by="person")
    again = await workspace.write("u\u0308BER.MD", "2", by="agent")
    assert (again.name, again.written_by) == ("Über.md", "agent")
    assert await workspace.all_texts() == {"Über.md": "2"}
    await workspace.delete("ÜBER.md")
    assert await names(workspace) == []


async def test_a_file_that_is_not_there_is_told(workspace: Workspace) -> None:
    await workspace.write("a", "x", by="person")
    for attempt in (workspace.read("b"), workspace.read_text("b"), workspace.rename("b", "c"), workspace.delete("b")):
        assert await code_of(attempt) is ErrorCode.FILE_NOT_FOUND


@pytest.mark.parametrize("name", ["../a", "/a", "a//b", "a\0", ""])
async def test_every_call_refuses_a_name_that_is_none(workspace: Workspace, name: str) -> None:
    await workspace.write("a", "x", by="person")
    for attempt in (
        workspace.read(name),
        workspace.read_text(name),
        workspace.write(name, "x", by="agent"),
        workspace.rename(name, "b"),
        workspace.rename("a", name),
        workspace.delete(name),
    ):
        assert await code_of(attempt) is ErrorCode.FILE_NAME_INVALID
    assert await names(workspace) == ["a"]


# Versions


async def test_no_version_is_given_twice_in_a_conversation(workspace: Workspace) -> None:
    versions = [(await workspace.write(name, "x", by="person")).version for name in ("a", "b", "a")]
    await workspace.delete("a")
    versions.append((await workspace.write("a", "x", by="agent")).version)
    assert versions == [1, 2, 3, 4]


async def test_a_file_that_was_changed_meanwhile_is_not_overwritten(workspace: Workspace) -> None:
    seen = await workspace.write("a", "mine", by="person")
    await workspace.write("a", "the agent's", by="agent")
    stale = workspace.write("a", "mine, too", by="person", expected_version=seen.version)
    assert await code_of(stale) is ErrorCode.FILE_CHANGED
    assert await code_of(workspace.delete("a", expected_version=seen.version)) is ErrorCode.FILE_CHANGED
    assert await workspace.read_text("a") == "the agent's"
    now = await workspace.read("a")
    await workspace.write("a", "both", by="person", expected_version=now.version)
    assert await workspace.read_text("a") == "both"


async def test_a_file_that_was_deleted_and_written_anew_is_another(workspace: Workspace) -> None:
    seen = await workspace.write("a", "1", by="person")
    await workspace.delete("a")
    gone = workspace.write("a", "2", by="person", expected_version=seen.version)
    assert await code_of(gone) is ErrorCode.FILE_CHANGED
    await workspace.write("a", "3", by="agent")
    again = workspace.write("a", "2", by="person", expected_version=seen.version)
    assert await code_of(again) is ErrorCode.FILE_CHANGED


async def test_a_new_file_is_one_that_is_not_there_yet(workspace: Workspace) -> None:
    await workspace.write("a", "1", by="person", expected_version=NEW)
    assert await code_of(workspace.write("A", "2", by="person", expected_version=NEW)) is ErrorCode.FILE_CHANGED


async def test_of_two_writes_that_have_seen_the_same_only_one_is_taken(workspace: Workspace) -> None:
    seen = await workspace.write("a", "0", by="person")
    outcomes = await asyncio.gather(
        *(workspace.write("a", str(at), by="person", expected_version=seen.version) for at in range(1, 6)),
        return_exceptions=True,
    )
    assert sum(isinstance(one, RequestRefused) for one in outcomes) == 4
    assert await workspace.read_text("a") == "1"


# Limits


async def test_no_more_files_than_may_be(workspace: Workspace) -> None:
    for name in ("a", "b", "c"):
        await workspace.write(name, "x", by="person")
    assert await code_of(workspace.write("d", "x", by="person")) is ErrorCode.TOO_MANY_FILES
    await workspace.write("a", "y", by="person")
    await workspace.delete("b")
    await workspace.write("d", "x", by="person")
    assert await names(workspace) == ["a", "c", "d"]


async def test_no_file_larger_than_may_be(workspace: Workspace) -> None:
    await workspace.write("a", "x" * 100, by="person")
    assert await code_of(workspace.write("a", "狐" * 34, by="person")) is ErrorCode.FILE_TOO_LARGE
    assert await workspace.size() == 100


async def test_no_more_in_all_than_may_be_and_it_may_always_become_less(workspace: Workspace) -> None:
    await workspace.write("a", b"x" * 100, by="person")
    await workspace.write("b", b"x" * 100, by="person")
    assert await code_of(workspace.write("c", b"x" * 51, by="person")) is ErrorCode.WORKSPACE_FULL
    await workspace.write("c", b"x" * 50, by="person")
    assert await workspace.size() == 250
    await workspace.write("a", b"x" * 20, by="person")
    await workspace.write("c", b"x" * 100, by="person")
    assert await workspace.size() == 220


async def test_the_limits_are_those_that_are_told(store: ConversationStore) -> None:
    whole = Limits()
    assert (whole.files, whole.file_bytes, whole.total_bytes) == (200, 1_048_576, 10_485_760)
    workspace = WorkspaceStore(store).of((await store.create("ann")).id, "ann")
    for number in range(10):
        await workspace.write(f"{number}.bin", bytes(whole.file_bytes), by="person")
    assert await code_of(workspace.write("more", b"x", by="person")) is ErrorCode.WORKSPACE_FULL
    with pytest.raises(RequestRefused, match="10 MB"):
        await workspace.write("more", b"x", by="person")
    with pytest.raises(RequestRefused, match="1 MB"):
        await workspace.write("0.bin", bytes(whole.file_bytes + 1), by="person")


# Names


async def test_a_file_gets_another_name_and_stays_what_it_was(workspace: Workspace) -> None:
    before = await workspace.write("a", "x", by="agent", is_untrusted=True)
    assert await workspace.rename("A", "b/c.md") == before.model_copy(update={"name": "b/c.md"})
    assert await workspace.list() == (before.model_copy(update={"name": "b/c.md"}),)
    assert (await workspace.read("b/c.md")).text == "x"


async def test_a_name_may_change_its_case_alone(workspace: Workspace) -> None:
    await workspace.write("readme.md", "x", by="person")
    await workspace.rename("readme.md", "README.md")
    assert await names(workspace) == ["README.md"]


async def test_a_name_that_is_taken_is_refused(workspace: Workspace) -> None:
    await workspace.write("a", "1", by="person")
    await workspace.write("b/c", "2", by="person")
    for attempt in (
        workspace.rename("a", "B/C"),
        workspace.rename("a", "b"),
        workspace.rename("a", "b/c/d"),
        workspace.write("b", "3", by="person"),
        workspace.write("A/x", "3", by="person"),
    ):
        assert await code_of(attempt) is ErrorCode.FILE_NAME_TAKEN
    assert await workspace.all_texts() == {"a": "1", "b/c": "2"}
    await workspace.rename("a", "a/b")
    assert await names(workspace) == ["a/b", "b/c"]


# Trust


async def test_what_came_from_outside_stays_so_until_something_else_is_said(workspace: Workspace) -> None:
    said: tuple[tuple[Writer, bool | None], ...]
    said = (("agent", None), ("agent", True), ("person", None), ("agent", False), ("person", None))
    flags = [(await workspace.write("a", "x", by=by, is_untrusted=flag)).is_untrusted for by, flag in said]
    assert flags == [False, True, True, False, False]


# Owners


def calls(workspace: Workspace) -> tuple[Callable[[], Awaitable[object]], ...]:
    return (
        workspace.list,
        workspace.all_texts,
        workspace.size,
        lambda: workspace.read("a"),
        lambda: workspace.read_text("a"),
        lambda: workspace.write("a", "theirs", by="person"),
        lambda: workspace.rename("a", "b"),
        lambda: workspace.delete("a"),
    )


async def test_nobody_else_reaches_a_file_by_any_call(store: ConversationStore, workspace: Workspace) -> None:
    await workspace.write("a", "mine", by="person")
    files = WorkspaceStore(store)
    for stranger in (files.of(workspace.place.conversation_id, "bob"), files.of("nowhere", "ann")):
        for call in calls(stranger):
            assert await code_of(call()) is ErrorCode.CONVERSATION_NOT_FOUND
    assert await workspace.all_texts() == {"a": "mine"}


async def test_a_deleted_conversation_has_its_files_again_when_it_is_brought_back(
    store: ConversationStore, workspace: Workspace
) -> None:
    await workspace.write("a", "mine", by="person")
    await store.delete(workspace.place.conversation_id, "ann")
    for call in calls(workspace):
        assert await code_of(call()) is ErrorCode.CONVERSATION_NOT_FOUND
    await store.undelete(workspace.place.conversation_id, "ann")
    assert await workspace.all_texts() == {"a": "mine"}


async def test_each_conversation_has_files_of_its_own(store: ConversationStore, workspace: Workspace) -> None:
    other = WorkspaceStore(store, SMALL).of((await store.create("ann")).id, "ann")
    await workspace.write("a", "here", by="person")
    await other.write("a", "there", by="person")
    await workspace.delete("a")
    assert await other.all_texts() == {"a": "there"}


async def test_files_are_there_after_a_restart_and_no_file_on_the_disk_is_called_like_them(tmp_path: Path) -> None:
    store = ConversationStore(tmp_path, ImageStore(tmp_path))
    await store.open()
    key = (await store.create("ann")).id
    written = await WorkspaceStore(store).of(key, "ann").write("passwd.md", "kept", by="person")
    await store.aclose()
    await store_again(tmp_path, key, written.updated_at)
    assert not any("passwd" in name for name in files_below(tmp_path))


def files_below(folder: Path) -> list[str]:
    return [path.name for path in folder.rglob("*")]


async def store_again(home: Path, key: str, moment: datetime) -> None:
    store = ConversationStore(home, ImageStore(home))
    await store.open()
    file = await WorkspaceStore(store).of(key, "ann").read("passwd.md")
    assert (file.text, file.updated_at) == ("kept", moment)
    assert file.updated_at.utcoffset() == timedelta(0)
    await store.aclose()


def test_a_disk_that_takes_no_more_is_told_and_the_file_stays_as_it_was(tmp_path: Path) -> None:
    code = """
import asyncio, sys
from pathlib import Path
from agent.errors import StorageFailure
from agent.storage.conversations import ConversationStore
from agent.storage.images import ImageStore
from agent.storage.workspace import WorkspaceStore

async def main():
    home = Path(sys.argv[1])
    store = ConversationStore(home, ImageStore(home))
    await store.open()
    workspace = WorkspaceStore(store).of((await store.create("ann")).id, "ann")
    await workspace.write("a", "kept", by="person")
    try:
        await workspace.write("a", bytes(1_000_000), by="person")
    except StorageFailure as error:
        print(type(error).__name__, await workspace.read_text("a"), (await workspace.read("a")).version)
    await store.aclose()

asyncio.run(main())
"""
    child = run_child(code, str(tmp_path), max_file_bytes=600_000)
    assert child.stdout.split() == ["StorageFailure", "kept", "1"], child.stderr

"""A file that the person runs: its program sees the files, and what it writes is theirs."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agent.errors import ErrorCode, RequestRefused
from agent.sandbox.run import Ending
from agent.sandbox.runner import Sandbox
from agent.settings import Settings
from agent.storage.conversations import ConversationStore
from agent.storage.images import ImageStore
from agent.storage.workspace import Limits, Workspace, WorkspaceStore
from agent.studio import Studio
from agent.tools.script_files import ScriptRun, run_file


@pytest.fixture
async def workspace(tmp_path: Path) -> AsyncIterator[Workspace]:
    store = ConversationStore(tmp_path, ImageStore(tmp_path))
    await store.open()
    conversation = await store.create("ann")
    yield WorkspaceStore(store, Limits(files=4, file_bytes=1000, total_bytes=3000)).of(conversation.id, "ann")
    await store.aclose()


async def run(workspace: Workspace, code: str, *, is_untrusted: bool = False) -> ScriptRun:
    await workspace.write("a.js", code, by="agent", is_untrusted=is_untrusted)
    return await run_file(workspace, Sandbox(wall_s=30.0), "A.js")


async def test_it_reads_the_files_and_may_write_over_them(workspace: Workspace) -> None:
    await workspace.write("n.txt", "20", by="agent")
    done = await run(workspace, "console.log('doubling'); writeFile('n.txt', String(readFile('n.txt') * 2)); 1")
    assert (done.name, done.run.result, done.written, done.refused) == ("a.js", 1, ("n.txt",), {})
    assert [line.text for line in done.run.console] == ["doubling"]
    written = await workspace.read("n.txt")
    assert (written.text, written.written_by, written.is_untrusted) == ("40", "person", False)


async def test_a_program_that_throws_writes_nothing_and_says_where(workspace: Workspace) -> None:
    done = await run(workspace, "writeFile('n.txt', 'x')\nmissing()")
    assert done.run.error is not None
    assert (done.run.error.ending, done.run.error.line, done.written) == (Ending.THROWN, 2, ())
    assert [one.name for one in await workspace.list()] == ["a.js"]


async def test_what_cannot_be_written_is_told_and_the_rest_is_written(workspace: Workspace) -> None:
    done = await run(workspace, "writeFile('../up', 'x'); writeFile('big', 'x'.repeat(1001)); writeFile('ok', 'x')")
    assert done.written == ("ok",)
    assert {name: error.code for name, error in done.refused.items()} == {
        "../up": ErrorCode.FILE_NAME_INVALID,
        "big": ErrorCode.FILE_TOO_LARGE,
    }


@pytest.mark.parametrize(
    ("code", "is_untrusted", "is_marked"),
    [
        ("writeFile('out', 'x')", False, False),
        ("writeFile('out', 'x')", True, True),
        ("writeFile('out', files['page.md'])", False, True),
        ("writeFile('out', Object.keys(files).join())", False, True),
        ("writeFile('out', files['mine.md'])", False, False),
    ],
)
async def test_what_comes_of_something_from_outside_is_marked(
    workspace: Workspace, code: str, is_untrusted: bool, is_marked: bool
) -> None:
    await workspace.write("page.md", "from the web", by="agent", is_untrusted=True)
    await workspace.write("mine.md", "ours", by="person")
    await run(workspace, code, is_untrusted=is_untrusted)
    assert (await workspace.read("out")).is_untrusted is is_marked


async def test_a_file_that_is_no_text_is_refused(workspace: Workspace) -> None:
    await workspace.write("a.js", b"\xff", by="person")
    with pytest.raises(RequestRefused) as refused:
        await run_file(workspace, Sandbox(), "a.js")
    assert refused.value.code is ErrorCode.FILE_NOT_TEXT


async def test_the_studio_runs_a_file_for_its_owner_alone(tmp_path: Path) -> None:
    async with Studio(Settings(home=tmp_path / "home")) as studio:
        conversation = await studio.new_conversation("ann")
        await studio.workspace(conversation.id, "ann").write("a.js", "6 * 7", by="person")
        assert (await studio.run_script(conversation.id, "a.js", "ann")).run.result == 42
        with pytest.raises(RequestRefused) as refused:
            await studio.run_script(conversation.id, "a.js", "ben")
        assert refused.value.code is ErrorCode.CONVERSATION_NOT_FOUND

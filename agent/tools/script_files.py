"""What a program has to do with the files of a conversation: what it saw of them, and what it writes into them.

The same for a program of the model's (`run_javascript`) and for a file that the person runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from pydantic import Field

from agent.conversation import Writer
from agent.errors import ErrorCode, ErrorInfo, RequestRefused
from agent.messages import Value
from agent.sandbox.run import ScriptResult
from agent.sandbox.runner import Sandbox
from agent.storage.workspace import Workspace


class Written(NamedTuple):
    """The names of the files that were written, and why the others were not, by the name that was asked for."""

    names: tuple[str, ...]
    refused: dict[str, ErrorInfo]


class ScriptRun(Value):
    """What came of a file that was run as a program: the run, which files it wrote, and why it could not others."""

    name: str
    run: ScriptResult
    written: tuple[str, ...] = ()
    refused: dict[str, ErrorInfo] = Field(default_factory=dict)


async def run_file(workspace: Workspace, sandbox: Sandbox, name: str) -> ScriptRun:
    """Run a file of the workspace over all its texts; what it writes is the person's, and may overwrite.

    A file that it writes is untrusted when the program, or what it read, is. Raises RequestRefused: FILE_NOT_FOUND,
    FILE_NOT_TEXT.
    """
    file = await workspace.read(name)
    if file.text is None:
        raise RequestRefused(ErrorCode.FILE_NOT_TEXT, name=file.name)
    run = await sandbox.run(file.text, await workspace.all_texts())
    is_untrusted = file.is_untrusted or await foreign_source(workspace, run) != ""
    written = await write_all(workspace, run.written, by="person", is_untrusted=is_untrusted)
    return ScriptRun(name=file.name, run=run, written=written.names, refused=written.refused)


async def foreign_source(workspace: Workspace, run: ScriptResult) -> str:
    """Return which files that hold something from outside the program has seen, as a source, or nothing."""
    if not run.read and not run.has_listed:
        return ""
    foreign = {file.name for file in await workspace.list() if file.is_untrusted}
    seen = foreign.intersection(run.read)
    if seen:
        return ", ".join(f"file:{name}" for name in sorted(seen))
    # Their names came from outside, too.
    return "files" if foreign and run.has_listed else ""


async def write_all(
    workspace: Workspace,
    files: Mapping[str, str],
    *,
    by: Writer,
    is_untrusted: bool,
    expected_version: int | None = None,
) -> Written:
    """Write the files one by one; one that is refused leaves the others as they are."""
    names: list[str] = []
    refused: dict[str, ErrorInfo] = {}
    for name, text in files.items():
        try:
            info = await workspace.write(
                name, text, by=by, expected_version=expected_version, is_untrusted=is_untrusted
            )
        except RequestRefused as error:
            refused[name] = error.info
        else:
            names.append(info.name)
    return Written(tuple(names), refused)

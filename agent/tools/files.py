"""The files of the conversation: `write_file`, `read_file`, `list_files` and `delete_file`; and programs that use them:
those of the model (`run_javascript`), and a file that the user runs.

Once external content is in the turn, overwriting or deleting a file waits for the user's click, and written files are
marked as untrusted: a later turn that reads one has external content too.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Annotated, NamedTuple

from pydantic import Field, JsonValue

from agent.conversation import Writer
from agent.errors import ErrorCode, ErrorInfo, RequestRefused
from agent.messages import Value
from agent.sandbox.runner import Sandbox, ScriptEnding, ScriptError, ScriptResult
from agent.storage.workspace import NEW_FILE, Workspace, key_of
from agent.tools.base import Arguments, Reason, Rule, ToolAnswer, ToolContext, failed, tool

# Below the limit of an answer, so that a long file is cut here, where the model is told how to continue.
_MOST_CHARACTERS = 40_000

Name = Annotated[str, "The file's name, with folders before it if you like: notes/plan.md"]


async def overwrites(context: ToolContext, name: str) -> bool:
    """Return whether a file with this name already exists, ignoring case."""
    return any(key_of(file.name) == key_of(name) for file in await context.workspace.list())


def _waits(reason: Reason) -> Rule:
    """Return the rule that a call for an existing file waits for this reason, once external content is in the turn."""

    async def rule(arguments: Arguments, context: ToolContext) -> Reason | None:
        is_meant = context.trust.is_tainted and await overwrites(context, str(arguments["name"]))
        return reason if is_meant else None

    return rule


@tool(rule=_waits("overwrites"))
async def write_file(
    context: ToolContext, name: Name, content: Annotated[str, "All that the file shall hold."]
) -> ToolAnswer:
    """Write a text file of this conversation: a new one, or in the place of all that it holds now. The person sees it
    at once and can change it. Use it for what they will want to keep or to work on: a text, a table, a program."""
    written = await context.workspace.write(name, content, by="agent", is_untrusted=context.trust.is_tainted)
    return ToolAnswer({"name": written.name, "size_bytes": written.size_bytes})


@tool()
async def read_file(
    context: ToolContext,
    name: Name,
    from_line: Annotated[int, Field(ge=1, description="The first line to read; 1 is the first of the file.")] = 1,
    to_line: Annotated[int, Field(ge=0, description="The last line to read; 0 reads to the end.")] = 0,
) -> ToolAnswer:
    """Read a text file of this conversation, or some of its lines. A long file comes in pieces: `next_line` says where
    to go on."""
    file = await context.workspace.read(name)
    if file.text is None:
        raise RequestRefused(ErrorCode.FILE_NOT_TEXT, name=file.name)
    # The lines with their line endings, counted as in an editor.
    lines = list(io.StringIO(file.text, newline=""))
    if from_line > max(1, len(lines)) or 0 < to_line < from_line:
        return failed(f"{file.name} has {len(lines)} lines; from_line and to_line are none of them.")
    content: dict[str, JsonValue] = {"name": file.name, "lines": len(lines), **_portion(lines, from_line, to_line)}
    return ToolAnswer(content, source=f"file:{file.name}" if file.is_untrusted else "")


@tool()
async def list_files(context: ToolContext) -> ToolAnswer:
    """List the files of this conversation, with their sizes and who wrote each last: you (`agent`) or the person."""
    files = await context.workspace.list()
    rows: list[JsonValue] = [
        {"name": one.name, "size_bytes": one.size_bytes, "written_by": one.written_by} for one in files
    ]
    # A tainted turn also chose the names of its files, so the names are untrusted too.
    return ToolAnswer({"files": rows}, source="files" if any(one.is_untrusted for one in files) else "")


@tool(rule=_waits("deletes"))
async def delete_file(context: ToolContext, name: Name) -> ToolAnswer:
    """Delete a file of this conversation for good. Do it only when the person wants that."""
    await context.workspace.delete(name)
    return ToolAnswer({"deleted": name})


def _portion(lines: list[str], from_line: int, to_line: int) -> dict[str, JsonValue]:
    """Return the lines that fit into one answer, and the next line to read; a single line that is too long is cut."""
    wanted = lines[from_line - 1 : to_line or None]
    shown: list[str] = []
    room = _MOST_CHARACTERS
    for line in wanted:
        if len(line) > room:
            if not shown:
                shown.append(f"{line[:room]}… (this line is longer)")
            break
        shown.append(line)
        room -= len(line)
    content: dict[str, JsonValue] = {"from_line": from_line, "text": "".join(shown)}
    if len(shown) < len(wanted):
        content["next_line"] = from_line + len(shown)
    return content


class Written(NamedTuple):
    """The names of the written files, and the errors of the refused ones, by requested name."""

    names: tuple[str, ...]
    refused: dict[str, ErrorInfo]


class ScriptRun(Value):
    """The result of a file that was run as a program: the run, the files it wrote, and the errors of refused ones."""

    name: str
    run: ScriptResult
    written: tuple[str, ...] = ()
    refused: dict[str, ErrorInfo] = Field(default_factory=dict)


async def run_file(workspace: Workspace, sandbox: Sandbox, name: str) -> ScriptRun:
    """Run a file of the workspace as a program that can read all text files of the workspace.

    The files that it writes count as written by the user and may overwrite others; they are untrusted if the program or
    anything it read is untrusted. Raises RequestRefused(FILE_NOT_FOUND) or RequestRefused(FILE_NOT_TEXT).
    """
    file = await workspace.read(name)
    if file.text is None:
        raise RequestRefused(ErrorCode.FILE_NOT_TEXT, name=file.name)
    run = await sandbox.run(file.text, await workspace.all_texts())
    is_untrusted = file.is_untrusted or await foreign_source(workspace, run) != ""
    written = await write_all(workspace, run.written, by="person", is_untrusted=is_untrusted)
    return ScriptRun(name=file.name, run=run, written=written.names, refused=written.refused)


async def foreign_source(workspace: Workspace, run: ScriptResult) -> str:
    """Return the untrusted files that the program has seen, as a `source`, or an empty string."""
    if not run.read and not run.has_listed:
        return ""
    foreign = {file.name for file in await workspace.list() if file.is_untrusted}
    seen = foreign.intersection(run.read)
    if seen:
        return ", ".join(f"file:{name}" for name in sorted(seen))
    # The names of untrusted files are untrusted too.
    return "files" if foreign and run.has_listed else ""


async def write_all(
    workspace: Workspace,
    files: Mapping[str, str],
    *,
    by: Writer,
    is_untrusted: bool,
    expected_version: int | None = None,
) -> Written:
    """Write the files one by one; a refused file does not affect the others."""
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


@tool()
async def run_javascript(
    context: ToolContext, code: Annotated[str, "The program: a script, or the body of an async function."]
) -> ToolAnswer:
    """Run JavaScript (ES2023) and see the value of its last expression, or what it returns, and its console. Use it
    whenever something is to be computed, counted, sorted, parsed or converted: it is exact where you would guess.

    `await` and `return` work at the top level; without a `return` such a program gives no value. The text files of this
    conversation are there as `files["name"]` or `readFile("name")`; `writeFile("name", text)` writes one when the
    program comes to its end without an error. There is no network, no timer, no module and nothing of a browser or of
    Node. A program has 2.5 seconds and 64 MB, and leaves nothing behind for the next."""
    run = await context.sandbox.run(code, await context.workspace.all_texts())
    source = await foreign_source(context.workspace, run)
    is_untrusted = context.trust.is_tainted or source != ""
    # Once external content is in the turn or in the program's input, existing files are not overwritten: what the
    # program writes is known only after it ran, when the user can no longer be asked.
    expected = NEW_FILE if is_untrusted else None
    written = await write_all(
        context.workspace, run.written, by="agent", is_untrusted=is_untrusted, expected_version=expected
    )
    return ToolAnswer({**_run_content(run), **_written_content(written)}, source=source)


def _why(error: ErrorInfo) -> str:
    if error.code is ErrorCode.FILE_CHANGED:
        return "It is there already, and something from outside is in this turn: use write_file, which asks the person."
    return error.message


def _run_content(run: ScriptResult) -> dict[str, JsonValue]:
    """Return the result of the program for the model, without empty parts."""
    content: dict[str, JsonValue] = {}
    if run.error is None:
        content["result"] = run.result
    else:
        content["error"] = _error_text(run.error)
    if run.console:
        content["console"] = [
            line.text if line.level in {"log", "info"} else f"[{line.level}] {line.text}" for line in run.console
        ]
    if run.is_truncated:
        content["is_truncated"] = True
    return content


def _error_text(error: ScriptError) -> str:
    if error.ending is not ScriptEnding.THROWN:
        return error.message
    return f"{error.name}: {error.message}" + (f" (line {error.line})" if error.line is not None else "")


def _written_content(files: Written) -> dict[str, JsonValue]:
    content: dict[str, JsonValue] = {}
    if files.names:
        content["written"] = list(files.names)
    if files.refused:
        content["not_written"] = {name: _why(error) for name, error in files.refused.items()}
    return content

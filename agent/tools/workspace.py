"""The files of the conversation: `write_file`, `read_file`, `list_files` and `delete_file`.

Once something from outside is in the turn, overwriting or deleting a file waits for the person's click, and what is
written is marked: whoever reads it in a later turn has something from outside in that turn, too.
"""

from __future__ import annotations

import io
from typing import Annotated

from pydantic import Field, JsonValue

from agent.errors import ErrorCode, RequestRefused
from agent.storage.workspace import key_of
from agent.tools.base import Arguments, Reason, ToolAnswer, ToolContext, failed, tool

# Below what an answer may hold, so that it is cut here, where the model is told how to go on.
_MOST_CHARACTERS = 40_000

Name = Annotated[str, "The file's name, with folders before it if you like: notes/plan.md"]


async def overwrites(context: ToolContext, name: str) -> bool:
    """Return whether a file of this name is there already, in whatever case."""
    return any(key_of(file.name) == key_of(name) for file in await context.workspace.list())


async def _overwrites_tainted(arguments: Arguments, context: ToolContext) -> Reason | None:
    is_meant = context.trust.is_tainted and await overwrites(context, str(arguments["name"]))
    return "overwrites" if is_meant else None


async def _deletes_tainted(arguments: Arguments, context: ToolContext) -> Reason | None:
    is_meant = context.trust.is_tainted and await overwrites(context, str(arguments["name"]))
    return "deletes" if is_meant else None


@tool(rule=_overwrites_tainted)
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
    lines = _lines(file.text)
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
    # What a turn wrote that something from outside was in, it named as well.
    return ToolAnswer({"files": rows}, source="files" if any(one.is_untrusted for one in files) else "")


@tool(rule=_deletes_tainted)
async def delete_file(context: ToolContext, name: Name) -> ToolAnswer:
    """Delete a file of this conversation for good. Do it only when the person wants that."""
    await context.workspace.delete(name)
    return ToolAnswer({"deleted": name})


def _lines(text: str) -> list[str]:
    """Return the lines as every editor counts them, with their ends."""
    return list(io.StringIO(text, newline=""))


def _portion(lines: list[str], from_line: int, to_line: int) -> dict[str, JsonValue]:
    """Return the lines that fit into one answer, cut where one alone is too long, and where to go on."""
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

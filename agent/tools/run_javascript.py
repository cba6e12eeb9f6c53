"""`run_javascript`: a program of the model's own, run in the sandbox over the files of the conversation."""

from __future__ import annotations

from typing import Annotated

from pydantic import JsonValue

from agent.errors import ErrorCode, ErrorInfo
from agent.sandbox.run import ScriptEnding, ScriptError, ScriptResult
from agent.storage.workspace import NEW_FILE
from agent.tools.base import ToolAnswer, ToolContext, tool
from agent.tools.script_files import Written, foreign_source, write_all


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
    texts = await context.workspace.all_texts()
    run = await context.sandbox.run(code, texts)
    source = await foreign_source(context.workspace, run)
    is_untrusted = context.trust.is_tainted or source != ""
    # Once something from outside is in the turn or in the program, a file that is there already is not overwritten:
    # what a program writes is only known when nobody can be asked any more.
    expected = NEW_FILE if is_untrusted else None
    written = await write_all(
        context.workspace, run.written, by="agent", is_untrusted=is_untrusted, expected_version=expected
    )
    return ToolAnswer({**_told(run), **_files_told(written)}, source=source)


def _why(error: ErrorInfo) -> str:
    if error.code is ErrorCode.FILE_CHANGED:
        return "It is there already, and something from outside is in this turn: use write_file, which asks the person."
    return error.message


def _told(run: ScriptResult) -> dict[str, JsonValue]:
    """Return what came of the program, without what there is nothing to say of."""
    told: dict[str, JsonValue] = {}
    if run.error is None:
        told["result"] = run.result
    else:
        told["error"] = _error_told(run.error)
    if run.console:
        told["console"] = [
            line.text if line.level in {"log", "info"} else f"[{line.level}] {line.text}" for line in run.console
        ]
    if run.is_truncated:
        told["is_truncated"] = True
    return told


def _error_told(error: ScriptError) -> str:
    if error.ending is not ScriptEnding.THROWN:
        return error.message
    return f"{error.name}: {error.message}" + (f" (line {error.line})" if error.line is not None else "")


def _files_told(files: Written) -> dict[str, JsonValue]:
    told: dict[str, JsonValue] = {}
    if files.names:
        told["written"] = list(files.names)
    if files.refused:
        told["not_written"] = {name: _why(error) for name, error in files.refused.items()}
    return told

"""What the files panel shows of a run, and of two versions of a file. Whatever a file or a program says is escaped."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from html import escape

from agent import ConsoleLine, ScriptEnding, ScriptError, ScriptResult, ScriptRun
from webui.icons import icon
from webui.words import Words

_AROUND = 2
_MOST_SHOWN = 2000
_ENDINGS = {
    ScriptEnding.TOO_SLOW: "files.too_slow",
    ScriptEnding.TOO_MUCH_MEMORY: "files.too_much_memory",
    ScriptEnding.TOO_MANY_JOBS: "files.too_many_jobs",
    ScriptEnding.NEVER_SETTLED: "files.never_settled",
    ScriptEnding.TOO_LARGE: "files.too_large_to_run",
    ScriptEnding.SANDBOX_FAILED: "files.sandbox_failed",
}


def run_html(words: Words, done: ScriptRun) -> str:
    """Return the console of a program, its result or what ended it, and what became of the files it wrote."""
    run = done.run
    is_well = run.error is None
    state = words("files.ran", seconds=f"{run.seconds:.1f}") if is_well else words("files.run_failed")
    close = escape(words("files.close_run"))
    head = (
        f"<header>{icon('square-terminal', 15)}<b>{escape(done.name)}</b>"
        f'<span class="{"ok" if is_well else "bad"}">{escape(state)}</span><span class="grow"></span>'
        f'<button type="button" class="b icon" data-files="close_run" aria-label="{close}" title="{close}">'
        f"{icon('x', 15)}</button></header>"
    )
    lines = "".join(map(_line, run.console))
    error = _error(words, run.error) if run.error is not None else ""
    said = "".join((lines, error, _files(words, done), _result(words, run)))
    silent = f'<p class="quiet">{escape(words("files.said_nothing"))}</p>' if not said else ""
    cut = f'<p class="quiet">{escape(words("files.cut"))}</p>' if run.is_truncated else ""
    label = escape(words("files.console", name=done.name))
    return f'{head}<div class="fi-out" role="region" tabindex="0" aria-label="{label}">{said}{silent}{cut}</div>'


def differences_html(words: Words, mine: str, theirs: str) -> str:
    """Return line by line what only the person's text has and what only the saved one has."""
    rows = list(_rows(mine.splitlines(), theirs.splitlines()))
    shown = "".join(rows[:_MOST_SHOWN])
    more = f'<p class="quiet">{escape(words("files.cut"))}</p>' if len(rows) > _MOST_SHOWN else ""
    same = "" if rows else f'<p class="quiet">{escape(words("files.same"))}</p>'
    return (
        f'<p class="fi-key"><del>− {escape(words("files.only_mine"))}</del><ins>+ {escape(words("files.only_theirs"))}'
        f"</ins></p><div>{shown}{same}{more}</div>"
    )


def _rows(mine: Sequence[str], theirs: Sequence[str]) -> Iterator[str]:
    for group in SequenceMatcher(None, mine, theirs).get_grouped_opcodes(_AROUND):
        yield f'<p class="at">{group[0][1] + 1}</p>'
        for kind, first, end, from_, to in group:
            if kind == "equal":
                yield from (f"<p>&nbsp; {escape(line)}</p>" for line in mine[first:end])
                continue
            yield from (f"<p><del>− {escape(line)}</del></p>" for line in mine[first:end])
            yield from (f"<p><ins>+ {escape(line)}</ins></p>" for line in theirs[from_:to])


def _line(line: ConsoleLine) -> str:
    # A line break right behind the tag belongs to the tag, not to the words.
    return f'<pre class="{line.level}">\n{escape(line.text)}</pre>'


def _result(words: Words, run: ScriptResult) -> str:
    if run.result is None:
        return ""
    text = json.dumps(run.result, ensure_ascii=False, indent=2)
    return f'<p class="what">{escape(words("files.result"))}</p><pre class="result">\n{escape(text)}</pre>'


def _error(words: Words, error: ScriptError) -> str:
    key = _ENDINGS.get(error.ending)
    said = words(key) if key else f"{error.name}: {error.message}"
    place = ""
    if error.line is not None:
        where = escape(words("files.line", line=error.line))
        place = f' <button type="button" data-files="line" data-line="{error.line}">{where}</button>'
    return f'<p class="bad" role="alert">{escape(said)}{place}</p>'


def _files(words: Words, done: ScriptRun) -> str:
    opened = ", ".join(
        f'<button type="button" data-files="open" data-name="{escape(name)}">{escape(name)}</button>'
        for name in done.written
    )
    written = f'<p class="wrote">{escape(words("files.wrote"))} {opened}</p>' if opened else ""
    refused = "".join(f'<p class="bad">{escape(words.error(error))}</p>' for error in done.refused.values())
    return written + refused

"""What a script gives back: its value, console, errors and files; and runs that know nothing of each other."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest
from pydantic import JsonValue

from tests.adapters.tools import (
    MAX_CODE_BYTES,
    MAX_INPUT_CHARACTERS,
    SANDBOX_FOLDER,
    Protection,
    Sandbox,
    ScriptEnding,
    ScriptError,
    ScriptResult,
    read_reply,
)
from tests.support.cases import each_case
from tests.support.children import children_that_run
from tests.support.tables import table
from tests.support.waiting import until

FILES = {"a.txt": "alpha", "notes/b.json": '{"n": 7}', "三.txt": "狐狸 🦊"}


async def run(code: str, files: dict[str, str] | None = None) -> ScriptResult:
    # Long enough for the busiest machine: what is tested here ends by itself.
    return await Sandbox(wall_s=30.0).run(code, FILES if files is None else files)


async def results(*scripts: str) -> list[JsonValue]:
    """Return the results of scripts that all come to their end."""
    runs = await asyncio.gather(*(run(code) for code in scripts))
    assert [one.error for one in runs] == [None] * len(runs)
    return [one.result for one in runs]


async def test_a_script_gives_the_value_of_its_last_expression_as_json_or_in_words() -> None:
    scripts = ("1 + 2", "let a = 2; a * 21", "'狐' + '\\u{1f98a}'", "var x = 1", "", "// nothing", "if (true) { 'in' }")
    assert await results(*scripts) == [3, 42, "狐🦊", None, None, None, "in"]
    for kind in ("values", "awaiting"):
        told = table("scripts")[kind]
        assert await results(*told) == [json.loads(value) for value in told.values()]


async def test_the_event_loop_goes_on_while_a_script_computes() -> None:
    sandbox = Sandbox(cpu_s=0.3, wall_s=30.0)
    looks = 0

    def is_over() -> bool:
        nonlocal looks
        looks += 1
        return running.done()

    running = asyncio.create_task(sandbox.run("while (true);", {"large": "é" * 2_000_000}))
    await until(is_over)
    # The first before it began, the last after its end.
    assert looks > 3


async def test_what_stands_before_a_script_costs_it_nothing_and_strictness_is_kept() -> None:
    scripts = (f"{'/' * 5000}\n1", f"{'/* * */ ' * 2000}2", f"{'// await (x)' * 300}\n3", "\n" * 9999 + "4")
    assert await results(*scripts) == [1, 2, 3, 4]
    sloppy = "(function () { return typeof this })()"
    scripts = (sloppy, f"'use strict'; {sloppy}", f'// first\n/* then */ "use strict"\nreturn {sloppy}', "1")
    assert await results(*scripts) == ["object", "undefined", "undefined", 1]


@each_case(("code", "name", "message", "line"), table("scripts")["errors"])
async def test_an_error_has_its_name_its_message_and_its_line(code: str, name: str, message: str, line: int) -> None:
    came = await run(code)
    assert came.error is not None
    assert (came.error.ending, came.error.name, came.error.line or 0) == (ScriptEnding.THROWN, name, line)
    assert came.error.message.startswith(message)
    assert came.result is None


async def test_the_console_is_kept_in_order_with_its_levels() -> None:
    code = """
    console.log('a', 1, { b: [2] }, undefined, null, () => 1)
    console.info('i'); console.debug('d'); console.warn('w'); console.error(new TypeError('e'))
    console.table([[1]]); console.assert(1 > 2, 'wrong'); console.assert(true); console.log()
    console.count(); console.count(); console.group('g'); console.groupEnd()
    await 1
    queueMicrotask(() => { throw new Error('lost') })
    """
    came = await run(code)
    assert [(line.level, line.text) for line in came.console] == [
        ("log", 'a 1 {"b":[2]} undefined null "[function]"'),
        ("info", "i"),
        ("debug", "d"),
        ("warn", "w"),
        ("error", "TypeError: e (line 3)"),
        ("log", "[[1]]"),
        ("error", "wrong"),
        ("log", ""),
        ("log", "default: 1"),
        ("log", "default: 2"),
        ("log", "g"),
        ("error", "Uncaught Error: lost (line 7)"),
    ]


async def test_a_script_is_run_once_although_it_is_read_twice_and_its_time_is_its_own() -> None:
    started = time.monotonic()
    came = await run("console.log('ran'); throw new SyntaxError('mine, not the parser\\'s; return await')")
    assert 0 < came.seconds <= time.monotonic() - started
    assert [line.text for line in came.console] == ["ran"]
    assert came.error is not None
    assert (came.error.name, came.error.line) == ("SyntaxError", 1)
    came = await run("console.time('t'); console.timeLog('t'); console.timeEnd('t')")
    assert [re.sub(r"\d+", "0", line.text) for line in came.console] == ["t: 0 ms", "t: 0 ms"]


async def test_files_come_in_and_go_out_and_a_script_that_fails_writes_none() -> None:
    code = """
    const { n } = JSON.parse(files['notes/b.json'])
    writeFile('out/c.txt', readFile('三.txt').repeat(n))
    writeFile('a.txt', readFile('a.txt').toUpperCase())
    writeFile('a.txt', readFile('a.txt') + '!')
    """
    came = await run(code)
    assert (came.error, came.written) == (None, {"out/c.txt": "狐狸 🦊" * 7, "a.txt": "ALPHA!"})
    assert (set(came.read), came.has_listed) == ({"notes/b.json", "三.txt", "a.txt"}, False)
    came = await run("[Object.keys(files), 'a.txt' in files, files['nothing'], 'toString' in files]")
    assert (came.result, came.read, came.has_listed) == ([list(FILES), True, None, False], (), True)
    came = await run("writeFile('half.txt', 'x'); console.log('wrote'); null.x")
    assert (came.written, [line.text for line in came.console]) == ({}, ["wrote"])


async def test_two_runs_share_nothing_and_a_large_workspace_fits(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="agent.sandbox")
    sandbox = Sandbox(wall_s=30.0)
    await sandbox.run("globalThis.kept = 1; Array.prototype.kept = 2; writeFile('kept', 'x')", {})
    after = await sandbox.run("[typeof kept, [].kept ?? null, Object.keys(files)]", {})
    assert (after.result, after.protection is not None) == (["undefined", None, []], True)
    assert len(caplog.records) == 1, "what protects is said once"
    assert ("seccomp" in caplog.text) == ("without" not in caplog.text)
    files: dict[str, str] = {f"{i}.txt": "狐é\n\0" * 40_000 for i in range(20)}
    came = await run("Object.values(files).join('').length", files)
    assert (came.result, came.error, len(came.read)) == (4 * 40_000 * 20, None, 20)


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="children are counted in /proc")
async def test_many_at_once_all_answer_and_at_most_so_many_live() -> None:
    sandbox = Sandbox(wall_s=30.0, at_once=2)
    alive: list[int] = []
    runs = asyncio.gather(*(sandbox.run(f"{i} * 2", {}) for i in range(24)))

    def is_over() -> bool:
        alive.append(len(children()))
        return runs.done()

    await until(is_over)
    assert [one.result for one in await runs] == [i * 2 for i in range(24)]
    assert 1 <= max(alive) <= 2


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="children are counted in /proc")
async def test_a_cancelled_run_kills_its_child_and_frees_its_place() -> None:
    sandbox = Sandbox(cpu_s=60.0, wall_s=60.0, at_once=1)
    endless = asyncio.create_task(sandbox.run("while (true);", {}))
    waiting = asyncio.create_task(sandbox.run("1", {}))
    (child,) = await until(children)
    waiting.cancel()
    endless.cancel()
    with pytest.raises(asyncio.CancelledError):
        await endless
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)
    assert (await sandbox.run("'free'", {})).result == "free"


async def test_what_is_too_large_is_not_run() -> None:
    long = "/" * (MAX_CODE_BYTES + 1)
    many: dict[str, str] = {"a": "x" * (MAX_INPUT_CHARACTERS // 2), "b": "x" * (MAX_INPUT_CHARACTERS // 2 + 1)}
    for came in (await run(long), await run("1", many)):
        assert came.error is not None
        assert (came.error.ending, came.protection) == (ScriptEnding.TOO_LARGE, None)


async def test_a_child_that_cannot_be_started_or_dies_is_an_error_and_no_exception(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    dying = ("exit 3", "kill -9 $$", "cat >/dev/null; echo not JSON", "yes | head -c 40000000")
    for number, script in enumerate((None, *dying)):
        stand_in = tmp_path / f"python{number}"
        if script is not None:
            stand_in.write_text(f"#!/bin/sh\nPATH=/usr/bin:/bin; {script}\n")
            stand_in.chmod(0o700)
        monkeypatch.setattr(sys, "executable", str(stand_in))
        assert_failed(await run("1", {"large": "x" * 1_000_000}))


async def test_the_engine_missing_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    # As if it were not installed.
    monkeypatch.setattr(sys, "path", [])
    monkeypatch.delitem(sys.modules, "_quickjs", raising=False)
    sys.path_importer_cache.clear()
    came = await run("1")
    assert_failed(came)
    assert came.error is not None
    assert "quickjs-ng is not installed" in came.error.message


def assert_failed(came: ScriptResult) -> None:
    assert isinstance(came.error, ScriptError)
    assert came.error.ending is ScriptEnding.SANDBOX_FAILED
    assert "Traceback" not in came.error.message


def children() -> list[int]:
    return children_that_run("sandbox/child.py")


ANSWER: dict[str, JsonValue] = {"has_limits": True, "unfiltered": "", "stopped": "", "state": "done", "result": [1]}


def test_a_plain_answer_is_read_and_says_what_protects() -> None:
    protections = {(True, ""): Protection.SECCOMP, (True, "refused"): Protection.PROCESS_LIMITS}
    for (has_limits, unfiltered), protection in {**protections, (False, "none"): Protection.ENGINE_LIMITS}.items():
        said = {**ANSWER, "has_limits": has_limits, "unfiltered": unfiltered}
        reply = read_reply(json.dumps(said).encode())
        assert reply is not None
        assert (reply.result, reply.written, reply.protection) == ([1], {}, protection)


NO_RESULTS = ("NaN", "[1e999]", '"\\ud800"', "[" * 5000 + "]" * 5000, "9" * 5000)
NO_FIELDS: list[dict[str, object]] = [
    {"extra": 1},
    {"state": "forged"},
    {"written": {"name": 1}},
    {"read": "name"},
    {"console": [{"level": "alert", "text": "x"}]},
]
WHOLE = json.dumps(ANSWER).encode()


@each_case(
    "data",
    [
        *(b"", b"null", b"[]", b"{}", b"\xff\xfe", WHOLE[:-1], WHOLE * 2),
        *(json.dumps({**ANSWER, **fields}).encode() for fields in NO_FIELDS),
        *(WHOLE.replace(b"[1]", text.encode()) for text in NO_RESULTS),
    ],
)
def test_anything_else_is_no_answer(data: bytes) -> None:
    assert read_reply(data) is None


PROBE = """
import errno, json, mmap, os, resource, signal, socket, sys
sys.path.append(sys.argv[1])
import child, seccomp

ours = os.getpid()
inherited = os.dup(1)
attempts = {
    "open": lambda: os.open("/etc/passwd", os.O_RDONLY),
    "create": lambda: os.open("/tmp/left-behind", os.O_CREAT | os.O_WRONLY),
    "listdir": lambda: os.listdir("/"),
    "stat": lambda: os.stat("/"),
    "unlink": lambda: os.unlink("/tmp/nothing"),
    "socket": lambda: socket.socket(),
    "socket pair": lambda: socket.socketpair(),
    "pipe": lambda: os.pipe(),
    "fork": lambda: os.fork(),
    "exec": lambda: os.execv("/bin/true", ["true"]),
    "kill": lambda: os.kill(ours, signal.SIGTERM),
    "kill the parent": lambda: os.kill(os.getppid(), 0),
    "read": lambda: os.read(0, 1),
    "write elsewhere": lambda: os.write(inherited, b"x"),
    "write to stderr": lambda: os.write(2, b"x"),
    "chdir": lambda: os.chdir("/"),
    "change its priority": lambda: os.nice(1),
    "more memory": lambda: resource.setrlimit(resource.RLIMIT_AS, (-1, -1)),
    "machine code": lambda: mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC),
    "plain memory": lambda: mmap.mmap(-1, 4096).close(),
    "random bytes": lambda: os.urandom(8),
}
child.protect(1.0, 64 << 20)
why = seccomp.install() if sys.argv[2] == "filtered" else "not asked for"
outcome = {}
for name in sys.argv[3:] or attempts:
    attempt = attempts[name]
    try:
        attempt()
        outcome[name] = "done"
    except OSError as error:
        outcome[name] = errno.errorcode[error.errno]
    except ValueError as error:
        outcome[name] = str(error)
os.write(1, json.dumps({"why": why, "outcome": outcome}).encode())
os._exit(0)
"""


def said(code: str, *arguments: str) -> str:
    """Return what a bare Python says that runs this code beside the child's own."""
    command = [sys.executable, "-I", "-S", "-c", code, str(SANDBOX_FOLDER), *arguments]
    return subprocess.run(command, capture_output=True, text=True, env={}, timeout=60, check=True).stdout.strip()


def probed(how: str, *attempts: str) -> tuple[str, dict[str, str]]:
    """Return why there is no filter, and how these attempts went, or all of them."""
    told = json.loads(said(PROBE, how, *attempts))
    return told["why"], told["outcome"]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="seccomp is of Linux")
def test_under_seccomp_it_can_compute_and_answer_and_nothing_else() -> None:
    why, outcome = probed("filtered")
    if why:
        pytest.skip(why)
    allowed = {name for name, how in outcome.items() if how == "done"}
    assert allowed == {"plain memory", "random bytes"}
    refused = {name: how for name, how in outcome.items() if how not in {"done", "EPERM"}}
    # Python says this one in words of its own.
    assert refused.keys() <= {"more memory"}


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such limits")
def test_without_seccomp_its_limits_still_keep_it_from_files_and_the_network() -> None:
    attempts = ("open", "create", "listdir", "socket", "socket pair", "pipe")
    _, outcome = probed("unfiltered", *attempts)
    assert outcome == dict.fromkeys(attempts, "EMFILE")


def test_it_imports_nothing_of_the_project_and_nothing_slow() -> None:
    code = (
        "import sys; sys.path.append(sys.argv[1]); import child, seccomp, json; print(json.dumps(sorted(sys.modules)))"
    )
    loaded = set(json.loads(said(code)))
    assert not {name for name in loaded if name.partition(".")[0] in {"agent", "webui", "pydantic"}}
    assert not loaded & {"asyncio", "dataclasses", "inspect", "subprocess", "typing"}


def test_a_kernel_without_filters_is_told_and_is_no_error() -> None:
    code = (
        "import os, sys; sys.path.append(sys.argv[1]); import seccomp;"
        "os.uname = lambda: type('Name', (), {'machine': 'pdp11'}); print(seccomp.install())"
    )
    assert said(code) == (
        "no filter is known for pdp11" if sys.platform.startswith("linux") else f"{sys.platform} has no seccomp"
    )

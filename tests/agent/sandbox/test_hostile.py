"""Scripts that mean harm, each in a real child: what they may do ends within the limits, and is told."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import pytest

from tests.adapters.tools import Sandbox, ScriptEnding, ScriptResult
from tests.support.tables import table

# A script that the engine could not stop would be killed at the end of these seconds, and say nothing.
PATIENCE_S = 30.0
SCRIPTS: dict[str, dict[str, str]] = table("scripts")


async def outcomes(scripts: Mapping[str, str], *, cpu_s: float = 0.1) -> dict[str, ScriptResult]:
    """Return what comes of the scripts, each in a child of its own, some of them side by side."""
    sandbox = Sandbox(cpu_s=cpu_s, wall_s=PATIENCE_S)
    runs = await asyncio.gather(*(sandbox.run(code, {"secret.txt": "kept"}) for code in scripts.values()))
    return dict(zip(scripts, runs, strict=True))


@pytest.mark.parametrize(
    ("kind", "cpu_s", "ending"),
    [
        ("loops", 0.1, ScriptEnding.TOO_SLOW),
        ("native", 0.1, ScriptEnding.TOO_SLOW),
        ("telling", 0.1, ScriptEnding.TOO_SLOW),
        ("memory", 10.0, ScriptEnding.TOO_MUCH_MEMORY),
        ("growing", 10.0, ScriptEnding.THROWN),
        ("no_way_out", 0.1, ScriptEnding.THROWN),
        ("writing", 10.0, ScriptEnding.THROWN),
        ("never_settled", 0.1, ScriptEnding.NEVER_SETTLED),
    ],
)
async def test_a_script_without_end_or_measure_is_stopped_by_the_limit_it_meets(
    kind: str, cpu_s: float, ending: ScriptEnding
) -> None:
    runs = await outcomes(SCRIPTS[kind], cpu_s=cpu_s)
    # By the child's own account.
    told = {name: run.error.ending if run.error else None for name, run in runs.items() if run.protection is not None}
    assert told == dict.fromkeys(SCRIPTS[kind], ending)
    assert all(run.written == {} for run in runs.values())


async def test_promises_are_counted() -> None:
    runs = await outcomes(SCRIPTS["promises"], cpu_s=10.0)
    told = {run.error.ending if run.error and run.protection else None for run in runs.values()}
    assert told <= {ScriptEnding.TOO_MANY_JOBS, ScriptEnding.TOO_SLOW, ScriptEnding.TOO_MUCH_MEMORY}


async def test_a_stopped_script_is_told_its_limit_and_a_loop_that_the_engine_cannot_stop_is_killed() -> None:
    (run,) = (await outcomes({"": "console.log('so far'); while (true);"}, cpu_s=0.25)).values()
    assert run.error is not None
    assert run.error.message == "the script was stopped: it may compute for 0.25 s, 30 s in all"
    assert [line.text for line in run.console] == ["so far"]
    run = await Sandbox(wall_s=0.5).run("Array.prototype.reverse.call({ length: 2 ** 53 - 1 })", {})
    assert run.error is not None
    assert (run.error.ending, run.protection) == (ScriptEnding.TOO_SLOW, None)


async def test_one_that_survives_its_memory_bomb_answers_and_what_calls_back_from_outside_is_gone() -> None:
    survivor = "let a = []; try { while (true) a.push(new Array(1000).fill(1)); } catch { a = null; } 'alive'"
    names = "std os bjson scriptArgs process require Deno Bun fetch XMLHttpRequest WebAssembly Worker SharedArrayBuffer"
    names += " Atomics FinalizationRegistry setTimeout setInterval print load gc __start__ __loadScript"
    there = f"{names.split()!r}.filter((name) => typeof globalThis[name] !== 'undefined')"
    runs = await outcomes({"survivor": survivor, "there": there}, cpu_s=10.0)
    assert [(run.result, run.error) for run in runs.values()] == [("alive", None), ([], None)]


async def test_a_reply_cannot_be_forged() -> None:
    runs = await outcomes(SCRIPTS["forging"])
    closing = runs.pop("closing")
    assert closing.error is not None
    assert closing.error.name == "SyntaxError"
    assert {name: (run.result, run.error) for name, run in runs.items()} == dict.fromkeys(runs, (1, None))


async def test_what_a_script_changes_turns_neither_its_errors_nor_its_files_against_the_run() -> None:
    runs = await outcomes(SCRIPTS["makers_changed"])
    told = {name: run.error.name for name, run in runs.items() if run.error}
    assert told == dict.fromkeys(SCRIPTS["makers_changed"], "TypeError")
    runs = await outcomes(SCRIPTS["shims"])
    assert {name: run.result for name, run in runs.items()} == dict.fromkeys(SCRIPTS["shims"], "kept")


async def test_what_is_too_long_is_cut() -> None:
    runs = await outcomes(SCRIPTS["too_long"], cpu_s=10.0)
    assert {name for name, run in runs.items() if not run.is_truncated} == set()
    assert all(len(run.model_dump_json()) < 400_000 for run in runs.values())
    assert 19_950 < sum(len(line.text) + 10 for line in runs["console"].console) < 20_020


async def test_half_characters_and_nothings_come_back_whole() -> None:
    runs = await outcomes(SCRIPTS["halves"])
    assert runs["half"].result == ["\ufffd", {"\ufffd": 1}]
    assert runs["half"].written == {"h\ufffd": "a\ufffdb"}
    assert runs["nul"].result == "a\0b"
    assert runs["nul"].written == {"n": "a\0b"}
    assert runs["lines"].result == "\u2028\u2029"

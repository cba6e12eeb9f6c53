from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Coroutine
from pathlib import Path

import pytest

from tests.adapters.fetcher import ChildFailure, ChildTooSlow, run_child
from tests.support.clock import Clock
from tests.support.waiting import until


@pytest.fixture
def script(tmp_path: Path) -> Path:
    return tmp_path / "child.py"


def answer(
    script: Path, code: str, work: bytes = b"", limit_s: float = 20, most: int = 10_000
) -> Coroutine[None, None, bytes]:
    script.write_text(code, encoding="utf-8")
    return run_child(script, work, limit_s=limit_s, max_answer_bytes=most)


async def test_a_child_answers_what_it_was_given_and_knows_nothing_of_us(
    script: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = "import sys; data = sys.stdin.buffer.read(); sys.stdout.buffer.write(data[:3] + str(len(data)).encode())"
    assert await answer(script, code, bytes(range(256)) * 4000) == b"\0\1\x02" + b"1024000"
    monkeypatch.setenv("GEMINI_API_KEY", "canary")
    code = "import os, sys, json; print(json.dumps([dict(os.environ), sys.path, os.getcwd(), sys.flags.isolated]))"
    environment, path, folder, is_isolated = json.loads(await answer(script, code))
    assert set(environment) <= {"LC_CTYPE"}
    assert (folder, bool(is_isolated)) == (Path(sys.executable).anchor, True)
    assert not [entry for entry in path if "site-packages" in entry]


async def test_a_child_that_takes_too_long_is_killed_with_all_its_own(
    script: Path, tmp_path: Path, clock: Clock
) -> None:
    told = tmp_path / "pids"
    code = f"""
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = os.fork()
if child:
    open({str(told)!r}, "w").write(f"{{os.getpid()}} {{child}}")
time.sleep(60)
"""
    with pytest.raises(ChildTooSlow):
        await clock.run_out(answer(script, code, limit_s=50), lambda: written(told), 50)
    first, second = map(int, written(told).split())
    await until(lambda: is_gone(first) and is_gone(second))


async def test_a_call_that_is_stopped_kills_its_child(script: Path, tmp_path: Path) -> None:
    told = tmp_path / "pid"
    code = f"import os, time; open({str(told)!r}, 'w').write(str(os.getpid())); time.sleep(60)"
    running = asyncio.create_task(answer(script, code))
    await until(lambda: written(told) != "")
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    await until(lambda: is_gone(int(written(told))))


DYING = ("raise SystemExit(3)", "import os; os.abort()", "raise ValueError", "import os; os.close(0); os._exit(1)")


async def test_a_child_that_dies_or_talks_too_much_or_too_early_gave_no_answer(script: Path) -> None:
    for code in DYING:
        with pytest.raises(ChildFailure):
            await answer(script, code, b"x" * 1_000_000)
    for after in ("", "raise SystemExit", "import time; time.sleep(60)"):
        often = "for _ in range(1000)" if after else "while True"
        with pytest.raises(ChildFailure, match="too long"):
            await answer(script, f"import sys\n{often}: sys.stdout.write('x' * 1000)\n{after}")
    with pytest.raises(ChildTooSlow):
        await answer(script, "print('x' * 1_000_000)", b"x" * 1_000_000, limit_s=1)


def written(file: Path) -> str:
    return file.read_text(encoding="ascii") if file.exists() else ""


def is_gone(process: int) -> bool:
    """Return whether a process is no more, or only waits to be taken note of."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return True
    return written(Path(f"/proc/{process}/stat")).rpartition(")")[2].split()[:1] == ["Z"]

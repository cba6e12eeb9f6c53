"""What tries to reach this machine, its network or its cloud through the fetcher; none of it is ever dialled."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Coroutine
from pathlib import Path

import pytest

from agent import AivistaError, ErrorCode, NetworkFailure, ToolArgumentError
from tests.adapters.fetcher import ChildFailure, ChildTooSlow, Fetcher, Guard, run_child
from tests.support.cases import each_case
from tests.support.clock import Clock
from tests.support.tables import table
from tests.support.waiting import until
from tests.support.web import Names, web

NAMES = table("web_addresses")["names"]


async def refusal(url: str, names: Names) -> AivistaError | None:
    """Return how a fetcher with the policy as it is refuses an address, or nothing if it does not."""
    async with Fetcher(Guard(names)) as fetcher:
        try:
            await fetcher.fetch(url)
        except AivistaError as error:
            return error
    return None


async def test_an_address_that_hides_another_and_a_name_that_leads_anywhere_private_are_refused() -> None:
    wrong = []
    told = table("web_addresses")
    for url, leads_to in {**dict.fromkeys((*told["hiding"], *told["misspelled"])), **NAMES}.items():
        names = Names()
        if leads_to:
            names.lead(url, *leads_to)
        error = await refusal(f"http://{url}/" if leads_to else url, names)
        if error is None or error.code is not ErrorCode.ADDRESS_REFUSED or names.asked != ([url] if leads_to else []):
            wrong.append((url, error, names.asked))
    assert wrong == []


@pytest.mark.parametrize("url", ["http://nowhere.test/", "https://lоcalhost.test/"])
async def test_a_name_that_nobody_knows_is_out_of_reach(url: str) -> None:
    error = await refusal(url, Names())
    assert isinstance(error, NetworkFailure)
    assert error.code is ErrorCode.PAGE_UNREACHABLE


@each_case("location", table("web_addresses")["redirects"])
async def test_a_redirect_is_checked_as_the_first_address_is(location: str) -> None:
    async with web() as served:
        for name, addresses in NAMES.items():
            served.names.lead(name, *(address for address in addresses if address != "127.0.0.1"))
        served.redirect("/", location)
        async with Fetcher(served.guard) as fetcher:
            with pytest.raises(ToolArgumentError) as caught:
                await fetcher.fetch("http://site.test/")
        assert caught.value.code is ErrorCode.ADDRESS_REFUSED
        assert len(served.requests) == 1
        # What the page wrote is not repeated: it would be outside text in a sentence of ours.
        assert "site.test" in str(caught.value)
        assert "127" not in str(caught.value)


async def test_a_name_is_looked_up_once_for_each_hop_and_what_was_checked_is_what_is_dialled() -> None:
    for place, said in (("10.0.0.1", "not public"), ("169.254.169.254", "leads on to an address that is none")):
        async with web() as served:
            served.names.lead("rebinding.test", "127.0.0.1")
            served.names.lead("rebinding.test", place)
            served.page("/", b"<p>first")
            served.redirect("/hop", "/latest/meta-data")
            async with Fetcher(served.guard) as fetcher:
                if place == "10.0.0.1":
                    assert (await fetcher.fetch("http://rebinding.test/")).content == "<p>first"
                    assert served.names.asked == ["rebinding.test"]
                with pytest.raises(ToolArgumentError, match=said):
                    await fetcher.fetch("http://rebinding.test/hop")
            assert len(served.requests) == 1


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
    with pytest.raises(ChildFailure, match="too long"):
        await answer(script, "print('x' * 1_000_000)", b"x" * 1_000_000)


def written(file: Path) -> str:
    return file.read_text(encoding="ascii") if file.exists() else ""


def is_gone(process: int) -> bool:
    """Return whether a process is no more, or only waits to be taken note of."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return True
    return written(Path(f"/proc/{process}/stat")).rpartition(")")[2].split()[:1] == ["Z"]

"""`aivista gc` and `aivista check` as a person meets them: real processes, their exit codes and sentences."""

from __future__ import annotations

import os
import signal
import sqlite3
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agent.messages import ImageOrigin
from tests.adapters.records import WorkspaceStore
from tests.page import PageProcess, run_command
from tests.support.galleries import Filled, filled, png

LONG_AGO_S = time.time() - 30 * 24 * 3600


@pytest.fixture
async def kept(tmp_path: Path) -> AsyncIterator[Filled]:
    async with filled(tmp_path / "home") as one:
        yield one


async def garbage(kept: Filled) -> Path:
    """Put a picture on record, and beside it a file that nothing names; return that one."""
    await kept.add(await kept.conversation(title="Foxes"))
    part = await kept.images.write(png("blue"), "image/png", ImageOrigin.UPLOADED)
    for path in (kept.home / "pictures").rglob("*"):
        os.utime(path, (LONG_AGO_S, LONG_AGO_S))
    return kept.home / "pictures" / part.digest[:2] / f"{part.digest}.png"


async def test_gc_removes_what_nothing_names_and_says_what_that_was(kept: Filled) -> None:
    unnamed = await garbage(kept)
    told = run_command("gc", "--home", str(kept.home), "--dry-run")
    assert (told.returncode, told.stderr) == (1, "")
    assert told.stdout.splitlines() == [f"Would be removed from {kept.home}:", "  1 picture, 0.0 MB"]
    assert unnamed.exists()
    done = run_command("gc", "--home", str(kept.home))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [f"Removed from {kept.home}:", "  1 picture, 0.0 MB"]
    assert not unnamed.exists()
    again = run_command("gc", AIVISTA_HOME=str(kept.home))
    assert (again.returncode, again.stdout) == (0, f"Nothing to remove in {kept.home}.\n")


async def test_the_home_may_stand_before_the_command(kept: Filled) -> None:
    await kept.conversation()
    assert run_command("--home", str(kept.home), "gc").stdout == f"Nothing to remove in {kept.home}.\n"


async def test_gc_that_had_to_keep_something_says_so(kept: Filled) -> None:
    unnamed = await garbage(kept)
    (kept.home / "aivista.db.unreadable-20260101T000000000000Z").write_bytes(b"x")
    ended = run_command("gc", "--home", str(kept.home))
    assert ended.returncode == 1
    assert ended.stderr.startswith("aivista: Pictures are kept: aivista.db.unreadable-2026")
    assert unnamed.exists()


async def test_check_says_that_all_is_well(kept: Filled) -> None:
    await kept.add(await kept.conversation())
    ended = run_command("check", "--home", str(kept.home))
    assert (ended.returncode, ended.stderr) == (0, "")
    first, last = ended.stdout.splitlines()
    assert first == f"{kept.home}: 1 conversation; 1 picture file, 0.0 MB; no signature."
    assert last == "Everything is fine."


async def test_check_tells_of_the_files_of_conversations(kept: Filled) -> None:
    workspace = WorkspaceStore(kept.store).of(await kept.conversation(), "local")
    for name in ("a.bin", "b.bin"):
        await workspace.write(name, bytes(1_000_000), by="person")
    ended = run_command("check", "--home", str(kept.home))
    assert "; no signature; 2 files of a conversation, 2.0 MB." in ended.stdout.splitlines()[0]


async def test_check_names_what_is_damaged_and_what_gc_would_remove(kept: Filled) -> None:
    unnamed = await garbage(kept)
    (other,) = (path for path in (kept.home / "pictures").rglob("*.png") if path != unnamed)
    other.unlink()
    ended = run_command("check", "--home", str(kept.home))
    assert ended.returncode == 1
    assert "The file of picture #1 in “Foxes”" in ended.stdout
    assert "aivista gc" in ended.stdout
    assert "1 file that no record names, 0.0 MB" in ended.stdout
    assert "Everything is fine" not in ended.stdout
    assert unnamed.exists()


@pytest.mark.parametrize("command", ["gc", "check"])
def test_without_a_home_or_records_it_is_told_in_a_sentence(tmp_path: Path, command: str) -> None:
    missing, empty, file = tmp_path / "missing", tmp_path / "empty", tmp_path / "file"
    empty.mkdir()
    file.write_text("x")
    for home, problem in ((missing, str(missing)), (file, str(file)), (empty, "there is no aivista.db")):
        ended = run_command(command, "--home", str(home))
        assert (ended.returncode, ended.stdout) == (2, "")
        assert problem in ended.stderr
        assert "Traceback" not in ended.stderr
        assert len(ended.stderr.strip().splitlines()) == 1
    assert (missing.exists(), list(empty.iterdir())) == (False, [])


@pytest.mark.parametrize("flags", [["gc", "--port", "7861"], ["check", "--dry-run"], ["gc", "check"], ["gc", "--home"]])
def test_a_flag_that_does_not_belong_there_is_refused(flags: list[str]) -> None:
    ended = run_command(*flags)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.startswith("aivista: ")
    assert len(ended.stderr.strip().splitlines()) == 1


def test_a_bad_variable_is_named() -> None:
    ended = run_command("gc", AIVISTA_TEXT_TIMEOUT_S="soon")
    assert ended.returncode == 2
    assert "AIVISTA_TEXT_TIMEOUT_S" in ended.stderr


def test_help_tells_of_both_commands_and_their_exit_codes() -> None:
    assert {"gc", "check"} <= set(run_command("--help").stdout.split())
    for command in ("gc", "check"):
        assert "Exit code 0" in " ".join(run_command(command, "--help").stdout.split())


async def test_both_work_while_a_studio_runs_on_the_same_home(tmp_path: Path) -> None:
    async with filled(tmp_path / "home") as kept:
        unnamed = await garbage(kept)
    with PageProcess(home=kept.home) as page:
        (sign,) = (kept.home / "running").iterdir()
        os.utime(sign, (LONG_AGO_S, LONG_AGO_S))
        assert run_command("check", "--home", str(kept.home)).returncode == 0
        assert run_command("gc", "--home", str(kept.home)).returncode == 0
        assert sign.exists()
        assert page.end(signal.SIGTERM) == 0
        assert page.errors == ""
    assert not unnamed.exists()
    with sqlite3.connect(kept.home / "aivista.db") as database:
        assert database.execute("SELECT count(*) FROM pictures").fetchone() == (1,)
    database.close()


async def test_a_backup_is_made_listed_and_gone_back_to_and_a_running_studio_is_not_overrun(tmp_path: Path) -> None:
    home = ("--home", str(tmp_path / "home"))
    async with filled(tmp_path / "home") as kept:
        await kept.add(await kept.conversation(title="Foxes"))
        assert run_command("restore", *home).stdout == f"There are no backups of {kept.home}.\n"
        made = run_command("backup", *home)
        assert (made.returncode, made.stderr) == (0, "")
        assert made.stdout.startswith("Backed up and verified: ")
        listed = run_command("restore", *home).stdout.splitlines()
        assert listed[0] == "Backups, the newest first:"
        name = listed[1].split()[0]
        refused = run_command("restore", name, *home)
        assert refused.returncode == 2
        assert "please end it first" in refused.stderr
        assert "Traceback" not in refused.stderr
    done = run_command("restore", name, *home)
    assert (done.returncode, done.stderr) == (0, "")
    assert "No picture that only the former database knew" in done.stdout
    assert run_command("check", *home).returncode == 0
    missing = run_command("restore", "yesterday", *home)
    assert (missing.returncode, "there is no backup yesterday" in missing.stderr) == (2, True)

"""`aivista gc` and `aivista check` as a person meets them: real processes, their exit codes and sentences."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agent import ImageOrigin
from tests.adapters.records import WorkspaceStore
from tests.page import PageProcess, run_command
from tests.support.commands import done, refused
from tests.support.galleries import Filled, filled, png
from tests.support.turns import rows

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
    home, unnamed = ("--home", str(kept.home)), await garbage(kept)
    assert done("gc", *home, "--dry-run", code=1) == f"Would be removed from {kept.home}:\n  1 picture, 0.0 MB\n"
    assert unnamed.exists()
    assert done("gc", *home) == f"Removed from {kept.home}:\n  1 picture, 0.0 MB\n"
    assert not unnamed.exists()
    nothing = f"Nothing to remove in {kept.home}.\n"
    assert done("gc", AIVISTA_HOME=str(kept.home)) == done(*home, "gc") == nothing


async def test_gc_that_had_to_keep_something_says_so(kept: Filled) -> None:
    unnamed = await garbage(kept)
    (kept.home / "aivista.db.unreadable-20260101T000000000000Z").write_bytes(b"x")
    ended = run_command("gc", "--home", str(kept.home))
    assert ended.returncode == 1
    assert ended.stderr.startswith("aivista: Pictures are kept: aivista.db.unreadable-2026")
    assert unnamed.exists()


async def test_check_says_that_all_is_well_and_tells_of_the_files_of_conversations(kept: Filled) -> None:
    conversation = await kept.conversation()
    await kept.add(conversation)
    first, last = done("check", "--home", str(kept.home)).splitlines()
    assert first == f"{kept.home}: 1 conversation; 1 picture file, 0.0 MB; no signature."
    assert last == "Everything is fine."
    workspace = WorkspaceStore(kept.store.db).of(conversation, "local")
    for name in ("a.bin", "b.bin"):
        await workspace.write(name, bytes(1_000_000), by="person")
    told = done("check", "--home", str(kept.home))
    assert "; no signature; 2 files of a conversation, 2.0 MB." in told.splitlines()[0]


async def test_check_names_what_is_damaged_and_what_gc_would_remove(kept: Filled) -> None:
    unnamed = await garbage(kept)
    (other,) = (path for path in (kept.home / "pictures").rglob("*.png") if path != unnamed)
    other.unlink()
    told = run_command("check", "--home", str(kept.home))
    assert told.returncode == 1
    for part in ("The file of picture #1 in “Foxes”", "aivista gc", "1 file that no record names, 0.0 MB"):
        assert part in told.stdout
    assert ("Everything is fine" in told.stdout, unnamed.exists()) == (False, True)


def test_without_a_home_or_records_or_with_a_wrong_flag_it_is_told_in_a_sentence(tmp_path: Path) -> None:
    missing, empty, file = tmp_path / "missing", tmp_path / "empty", tmp_path / "file"
    empty.mkdir()
    file.write_text("x")
    for command in ("gc", "check"):
        for home, problem in ((missing, str(missing)), (file, str(file)), (empty, "there is no aivista.db")):
            assert problem in refused(command, "--home", str(home))
    assert (missing.exists(), list(empty.iterdir())) == (False, [])
    for flags in (["gc", "--port", "7861"], ["check", "--dry-run"], ["gc", "check"], ["gc", "--home"]):
        refused(*flags)


async def test_both_work_while_a_studio_runs_on_the_same_home(tmp_path: Path) -> None:
    async with filled(tmp_path / "home") as kept:
        unnamed = await garbage(kept)
    with PageProcess(home=kept.home) as page:
        (sign,) = (kept.home / "running").iterdir()
        os.utime(sign, (LONG_AGO_S, LONG_AGO_S))
        done("check", "--home", str(kept.home))
        run_command("gc", "--home", str(kept.home))
        assert sign.exists()
        assert page.end(signal.SIGTERM) == 0
        assert page.errors == ""
    assert not unnamed.exists()
    assert len(rows(kept.home / "aivista.db", "SELECT id FROM pictures")) == 1


async def test_a_backup_is_made_listed_and_gone_back_to_and_a_running_studio_is_not_overrun(tmp_path: Path) -> None:
    home = ("--home", str(tmp_path / "home"))
    async with filled(tmp_path / "home") as kept:
        await kept.add(await kept.conversation(title="Foxes"))
        assert done("restore", *home) == f"There are no backups of {kept.home}.\n"
        assert done("backup", *home).startswith("Backed up and verified: ")
        listed = done("restore", *home).splitlines()
        assert listed[0] == "Backups, the newest first:"
        name = listed[1].split()[0]
        assert "please end it first" in run_command("restore", name, *home).stderr
    assert "No picture that only the former database knew" in done("restore", name, *home)
    done("check", *home)
    assert "there is no backup yesterday" in refused("restore", "yesterday", *home)

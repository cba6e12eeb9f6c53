"""The folder of the uploads: whose each file is, and how much each may fill."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

import pytest

from tests.webui.page_gate.test_limits import comer
from webui.page_gate.transit import KEPT_S, Transit

MB = 1 << 20


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path.resolve() / "uploads"
    folder.mkdir()
    return folder


@pytest.fixture
def transit(folder: Path) -> Transit:
    return Transit(folder, most_bytes_of_one=10 * MB)


def file_in(folder: Path, name: str) -> str:
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"x" * 1000)
    return str(path)


def test_a_file_that_nobody_is_known_to_have_sent_is_nobodys(transit: Transit, folder: Path) -> None:
    path = file_in(folder, "abc/a.png")
    assert not transit.is_of(path, "ann")
    transit.keep("ann", path)
    assert transit.is_of(path, "ann")
    assert transit.is_of(f"{folder}/./abc/../abc/a.png", "ann")
    assert not transit.is_of(path, "bob")
    assert not transit.is_of(str(folder), "ann")
    for no_file in ("\0", "/tmp/a\0b", "\ud800"):
        assert not transit.is_of(no_file, "ann")
    # What is no upload is left to whoever looks after it.
    assert transit.is_of("/etc/hostname", "bob")


async def test_what_is_sent_while_the_folder_is_looked_through_keeps_its_owner(transit: Transit, folder: Path) -> None:
    for number in range(300):
        transit.keep("ann", file_in(folder, f"{number}/a.png"))
    looking = asyncio.create_task(transit.room())
    path = ""
    for number in range(300, 900):
        await asyncio.sleep(0)
        path = str(folder / f"{number}" / "a.png")
        transit.keep("ann", path)
        # It is moved to its place only after that.
        file_in(folder, f"{number}/a.png")
    await looking
    for number in range(900):
        path = str(folder / f"{number}" / "a.png")
        assert transit.is_of(path, "ann")
        assert not transit.is_of(path, "bob")


async def test_what_is_too_old_is_gone_and_nobodys(folder: Path) -> None:
    now = [time.time()]
    transit = Transit(folder, most_bytes=MB, clock=lambda: now[0])
    path = file_in(folder, "abc/a.png")
    transit.keep("ann", path)
    assert await transit.room() == MB - 1000
    assert transit.is_of(path, "ann")
    now[0] += KEPT_S + 60
    assert await transit.room() == MB
    with pytest.raises(FileNotFoundError):
        os.unlink(path)
    assert not transit.is_of(path, "ann")


async def test_a_fresh_cookie_makes_no_more_room_and_what_is_under_way_takes_it_already(transit: Transit) -> None:
    before, ann = await transit.room(), comer("ann", "8.8.8.8")
    sending = transit.begin(ann, 6 * MB)
    assert (transit.room_of(ann), await transit.room()) == (4 * MB, before - 6 * MB)
    transit.end(sending, MB)
    # From now on it is what lies in the folder.
    assert (transit.room_of(ann), await transit.room()) == (9 * MB, before)
    for number in range(4):
        one = comer(f"fresh {number}")
        assert transit.room_of(one) == 10 * MB
        transit.end(transit.begin(one, 10 * MB), 10 * MB)
        assert transit.room_of(one) == 0
    assert transit.room_of(comer("fresh 4")) == 0
    assert transit.room_of(comer("other", "93.184.216.2")) == 10 * MB
    for number in range(8):
        transit.end(transit.begin(comer(f"anybody {number}", None), 10 * MB), 10 * MB)
    assert transit.room_of(comer("anybody", None)) == 0

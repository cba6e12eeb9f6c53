"""A disk that fills up: nothing is paid for that cannot be stored, and what was paid for is stored or offered."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import threading
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest

from agent import ErrorCode, PictureFailed, PictureReady, Settings, StorageFailure, Studio, TurnDone, TurnFailed
from tests.adapters.records import DiskReserve
from tests.support.gemini import on_gemini, paint
from tests.support.scenes import of_type, run
from tests.support.turns import asked, retry, rows, started, until
from tests.wire_server import Answer, GeminiServer, PictureAnswer, WireRequest
from tests.wire_server.models import Kind

MB = 1 << 20
PICTURE = PictureAnswer(width=640, height=480)


class SmallDisk:
    """A file system of its own, in memory: `fill` takes all of it but some bytes, `clear` gives them back."""

    def __init__(self, folder: Path, megabytes: int) -> None:
        self.folder = folder
        self._filler = folder / "filler"
        folder.mkdir()
        mounted = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", folder], capture_output=True, check=False
        )
        if mounted.returncode:
            pytest.skip("only root may mount a file system of its own")

    @property
    def free_bytes(self) -> int:
        return shutil.disk_usage(self.folder).free

    def fill(self, leave_bytes: int = 0) -> None:
        size_bytes = self.free_bytes - leave_bytes
        if size_bytes > 0:
            with self._filler.open("ab") as file, suppress(OSError):
                os.posix_fallocate(file.fileno(), file.tell(), size_bytes)

    def clear(self) -> None:
        self._filler.unlink(missing_ok=True)

    def close(self) -> None:
        subprocess.run(["umount", "--lazy", self.folder], check=True)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    small = SmallDisk(tmp_path / "disk", 48)
    yield small
    small.close()


def on_the_disk(settings: Settings, disk: SmallDisk, server: GeminiServer) -> Settings:
    return on_gemini(settings, server.url, home=disk.folder / "home")


def is_sound(home: Path) -> bool:
    with closing(sqlite3.connect(home / "aivista.db")) as database:
        return bool(database.execute("PRAGMA integrity_check").fetchone()[0] == "ok")


async def test_room_that_is_set_aside_is_nobody_elses_until_it_is_given_back(disk: SmallDisk) -> None:
    reserve = DiskReserve(disk.folder / "home")
    async with reserve.hold(20 * MB):
        assert disk.free_bytes <= 28 * MB
        with pytest.raises(StorageFailure) as failed:
            async with reserve.hold(40 * MB):
                pass
        assert failed.value.info.parameters["needed"] == 40
        assert reserve.give_back()
        assert disk.free_bytes > 40 * MB
    assert not reserve.give_back()


async def test_nothing_is_sent_for_a_picture_that_there_is_no_room_for(
    settings: Settings, disk: SmallDisk, server: GeminiServer
) -> None:
    server.on_text(paint())
    server.on_image(PICTURE)
    async with Studio(on_the_disk(settings, disk, server)) as studio:
        conversation = await studio.conversations.create()
        disk.fill(leave_bytes=4 * MB)
        events = await run(studio, conversation.id, "a red fox")
        assert isinstance(events[-1], TurnFailed)
        assert events[-1].error.code is ErrorCode.NO_ROOM_TO_PAINT
        assert asked(server, Kind.IMAGE) == 0
        disk.clear()
        assert isinstance((await retry(studio, conversation.id, started(events)))[-1], TurnDone)
        kept = await studio.conversations.get(conversation.id)
    assert [picture.handle for picture in kept.pictures] == ["#1"]
    assert asked(server, Kind.IMAGE) == 1


async def test_a_picture_that_comes_while_others_fill_the_disk_goes_where_room_was_set_aside(
    settings: Settings, disk: SmallDisk, server: GeminiServer
) -> None:
    def image(request: WireRequest) -> Answer:
        disk.fill()
        return PICTURE

    server.on_text(paint())
    server.on_image(image)
    async with Studio(on_the_disk(settings, disk, server)) as studio:
        conversation = await studio.conversations.create()
        events = await run(studio, conversation.id, "a red fox")
        assert isinstance(events[-1], TurnDone)
    disk.clear()
    async with Studio(on_the_disk(settings, disk, server)) as studio:
        stored = await studio.picture(conversation.id, "#1")
    assert stored.data
    assert asked(server, Kind.IMAGE) == 1
    assert is_sound(disk.folder / "home")


async def test_what_the_disk_never_had_room_for_is_offered_and_joins_the_conversation_later(
    settings: Settings, disk: SmallDisk, server: GeminiServer
) -> None:
    taking = threading.Event()

    def take_all() -> None:
        while not taking.wait(0.0005):
            disk.fill()

    thief = threading.Thread(target=take_all)

    def image(request: WireRequest) -> Answer:
        disk.fill()
        thief.start()
        return PICTURE

    server.on_text(paint())
    server.on_image(image)
    async with Studio(on_the_disk(settings, disk, server)) as studio:
        conversation = await studio.conversations.create()
        events = await run(studio, conversation.id, "a red fox")
        taking.set()
        thief.join()
        shown = of_type(events, PictureReady)
        if shown:
            assert (await studio.picture(conversation.id, "#1")).data
        else:
            [failed] = of_type(events, PictureFailed)
            assert failed.error.code is ErrorCode.PICTURE_NOT_RECORDED
            digest = str(failed.error.parameters["digest"])
            data, mime_type = await studio.unrecorded_picture(conversation.id, digest)
            assert (mime_type, data[:2]) == ("image/jpeg", b"\xff\xd8")
        disk.clear()
        await until(lambda: len(rows((disk.folder / "home") / "aivista.db", "SELECT handle FROM pictures")) == 1)
        kept = await studio.conversations.get(conversation.id)
        assert [picture.handle for picture in kept.pictures] == ["#1"]
    async with Studio(on_the_disk(settings, disk, server)) as studio:
        assert (await studio.picture(conversation.id, "#1")).data
    assert asked(server, Kind.IMAGE) == 1
    assert is_sound(disk.folder / "home")


@pytest.mark.parametrize("left_kb", [0, 64, 300, 1000, 4000, 8000, 9000, 9200, 10000, 16000])
async def test_wherever_the_disk_fills_up_a_turn_pays_for_one_picture_and_has_it(
    settings: Settings, disk: SmallDisk, server: GeminiServer, left_kb: int
) -> None:
    def image(request: WireRequest) -> Answer:
        disk.fill()
        return PICTURE

    server.on_text(paint(), paint())
    server.on_image(image)
    async with Studio(on_the_disk(settings, disk, server)) as studio:
        conversation = await studio.conversations.create()
        disk.fill(leave_bytes=left_kb * 1000)
        events = await run(studio, conversation.id, "a red fox")
        disk.clear()
        failed = of_type(events, TurnFailed)
        if failed:
            assert failed[0].error.code in (ErrorCode.DISK_FULL, ErrorCode.NO_ROOM_TO_PAINT)
            assert asked(server, Kind.IMAGE) == 0
            events = await run(studio, conversation.id, "a red fox")
        assert isinstance(events[-1], TurnDone)
    async with Studio(on_the_disk(settings, disk, server)) as studio:
        kept = await studio.conversations.get(conversation.id)
        assert len(kept.pictures) == 1
        assert (await studio.picture(conversation.id, kept.pictures[0].handle)).data
    assert asked(server, Kind.IMAGE) == 1
    assert is_sound(disk.folder / "home")

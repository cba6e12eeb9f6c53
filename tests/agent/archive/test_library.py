"""Archives of several conversations: what they are called, who may read them, how much memory they take."""

from __future__ import annotations

import os
import stat
import time
import zipfile
from datetime import timedelta
from pathlib import Path

import pytest

from agent import ErrorCode, RequestRefused, StorageFailure
from tests.adapters.archives import ArchiveLimits, Manifest
from tests.agent.archive.shelf import FILES, contents, digests, kept_turns, place, with_plain_ids
from tests.support.children import run_child
from tests.support.histories import NOW

OF_A_CONVERSATION = ["conversation.html", "conversation.json", "conversation.md"]


def listed(archive: Path) -> Manifest:
    return Manifest.model_validate_json(contents(archive)["manifest.json"])


async def test_a_library_holds_every_conversation_the_oldest_first_also_beyond_a_page_of_the_list(
    tmp_path: Path,
) -> None:
    here, there, full = place(tmp_path / "here"), place(tmp_path / "there"), place(tmp_path / "full")
    newer = kept_turns("newer").model_copy(update={"created_at": NOW + timedelta(days=1)})
    await here.keep(newer, kept_turns("older"))
    exported = await here.archive.export_library("local")
    told = [(one.folder, one.title) for one in listed(exported.path).conversations]
    assert told == [("conversations/0001", "older"), ("conversations/0002", "newer")]
    report = await there.archive.import_archive(exported.path, "local")
    taken = [(one.title, one.turn_count, one.picture_count) for one in report.conversations]
    assert taken == [("older", 3, 4), ("newer", 3, 4)]
    assert report.picture_count == len(digests(newer))
    empty = kept_turns().model_copy(update={"turns": (), "pictures": (), "head": None})
    await full.keep(*(empty.model_copy(update={"title": str(number)}) for number in range(450)))
    many = listed((await full.archive.export_library("local")).path)
    assert {one.title for one in many.conversations} == {str(number) for number in range(450)}


async def test_nobody_elses_conversations_are_exported_and_a_home_that_cannot_be_written_is_told(
    tmp_path: Path,
) -> None:
    here = place(tmp_path)
    [key] = await here.keep(kept_turns())
    with pytest.raises(RequestRefused) as refused:
        await here.archive.export_conversation(key, "somebody else")
    assert refused.value.code is ErrorCode.CONVERSATION_NOT_FOUND
    exported = await here.archive.export_library("somebody else")
    assert (exported.name, sorted(contents(exported.path))) == ("aivista-library.zip", ["index.html", "manifest.json"])
    assert (await here.archive.import_archive(exported.path, "local")).conversations == ()
    exported.remove()
    (tmp_path / "exports").rmdir()
    (tmp_path / "exports").write_text("in the way")
    with pytest.raises(StorageFailure) as failure:
        await here.archive.export_library("local")
    assert str(tmp_path) not in str(failure.value)


async def test_two_exports_of_the_same_are_the_same_bytes(tmp_path: Path) -> None:
    here, there = place(tmp_path / "here"), place(tmp_path / "there")
    keys = await here.keep(kept_turns("one"), kept_turns("two"))
    there.shelf.kept.update(reversed(here.shelf.kept.items()))
    await there.keep()
    first, second, other = [await one.archive.export_library("local") for one in (here, here, there)]
    assert first.path.read_bytes() == second.path.read_bytes()
    assert (first.name, first.size_bytes) == (second.name, second.size_bytes)
    assert sorted(contents(first.path)) == sorted(contents(other.path))
    one, again = [await each.archive.export_conversation(keys[0], "local", language="zh-CN") for each in (here, there)]
    assert one.path.read_bytes() == again.path.read_bytes()


async def test_two_imports_of_one_archive_stand_side_by_side(tmp_path: Path) -> None:
    here, there = place(tmp_path / "here"), place(tmp_path / "there")
    [key] = await here.keep(kept_turns())
    exported = await here.archive.export_conversation(key, "local")
    first = await there.archive.import_archive(exported.path, "local")
    files = there.files()
    second = await there.archive.import_archive(exported.path, "local")
    one, other = there.shelf.kept.values()
    assert first.conversations[0].id != second.conversations[0].id
    assert not {turn.id for turn in one.turns} & {turn.id for turn in other.turns}
    assert with_plain_ids(one) == with_plain_ids(other)
    assert there.files() == files


async def test_an_archive_is_its_users_alone_and_goes_when_it_is_removed_or_with_a_later_export(
    tmp_path: Path,
) -> None:
    here = place(tmp_path / "home")
    [key] = await here.keep(kept_turns("Draw: a/b  “fox” ../.. 狐狸, please, and more words"))
    exported = await here.archive.export_conversation(key, "local")
    assert exported.path.parent == here.home / "exports"
    assert [stat.S_IMODE(path.stat().st_mode) for path in (exported.path, exported.path.parent)] == [0o600, 0o700]
    assert exported.size_bytes == exported.path.stat().st_size
    assert exported.name == "aivista-Draw-a-b-fox-狐狸-please-2026-11-20.zip"
    exported.remove()
    exported.remove()
    assert not any(name.startswith("exports") for name in here.files())
    old, new = await here.archive.export_library("local"), await here.archive.export_library("local")
    long_ago_s = time.time() - 2 * 86_400
    os.utime(old.path, (long_ago_s, long_ago_s))
    await here.archive.export_library("local")
    assert (old.path.exists(), new.path.exists()) == (False, True)


async def test_pictures_are_stored_as_they_are_and_words_are_packed(tmp_path: Path) -> None:
    here = place(tmp_path)
    [key] = await here.keep(kept_turns())
    exported = await here.archive.export_conversation(key, "local")
    with zipfile.ZipFile(exported.path) as archive:
        entries = archive.infolist()
        assert archive.testzip() is None
    ways = {(entry.filename.rpartition(".")[2], entry.compress_type) for entry in entries if "." in entry.filename}
    assert ways == {("png", zipfile.ZIP_STORED), *((one, zipfile.ZIP_DEFLATED) for one in ("json", "md", "html"))}
    assert {entry.date_time for entry in entries} == {(1980, 1, 1, 0, 0, 0)}
    assert {stat.S_IMODE(entry.external_attr >> 16) for entry in entries} == {0o600}
    in_the_folder = [entry.filename.rpartition("/")[2] for entry in entries if entry.filename.startswith("conv")]
    assert sorted(in_the_folder) == OF_A_CONVERSATION


async def test_what_could_not_be_taken_in_again_is_not_exported_and_leaves_nothing(tmp_path: Path) -> None:
    for limits in (
        ArchiveLimits(archive_bytes=20_000),
        ArchiveLimits(files=5),
        ArchiveLimits(json_bytes=1000),
        ArchiveLimits(file_bytes=100),
    ):
        here = place(tmp_path, limits)
        await here.keep(kept_turns())
        with pytest.raises(RequestRefused) as refused:
            await here.archive.export_library("local")
        assert refused.value.code is ErrorCode.EXPORT_TOO_LARGE
        assert not any(name.startswith("exports") for name in here.files())


async def test_one_file_in_too_many_workspaces_is_not_exported_either(tmp_path: Path) -> None:
    here, there = place(tmp_path / "here", ArchiveLimits(ratio=4, ratio_from_bytes=2000)), place(tmp_path / "there")
    file = FILES[0].model_copy(update={"content": bytes(1000)})
    whole = kept_turns(signature=b"s").model_copy(update={"files": (file,)})
    await here.keep(*[whole] * 4)
    exported = await here.archive.export_library("local")
    assert len((await there.archive.import_archive(exported.path, "local")).conversations) == 4
    await here.keep(whole)
    with pytest.raises(RequestRefused) as refused:
        await here.archive.export_library("local")
    assert refused.value.code is ErrorCode.EXPORT_TOO_LARGE


def test_a_full_disk_is_told_and_nothing_is_left_half_written(tmp_path: Path) -> None:
    code = """
import asyncio, sys
from pathlib import Path
from agent.errors import StorageFailure
from tests.agent.archive.shelf import kept_turns, place

async def main():
    here = place(Path(sys.argv[1]))
    await here.keep(kept_turns())
    try:
        await here.archive.export_library("local")
    except StorageFailure as error:
        print(error.code, [name for name in here.files() if name.startswith("exports")])

asyncio.run(main())
"""
    child = run_child(code, str(tmp_path), max_file_bytes=30_000)
    assert child.stdout.strip() == "disk_full []", child.stderr


def test_memory_does_not_grow_with_the_archive(tmp_path: Path) -> None:
    code = """
import asyncio, hashlib, io, random, sys, tracemalloc
from pathlib import Path
from PIL import Image
from agent.archive.archive import Archive
from agent.messages import ImageOrigin
from tests.agent.archive.shelf import MemoryShelf, kept_turns
from tests.agent.archive.values import PNGS, part_of

async def main():
    folder, count = Path(sys.argv[1]), int(sys.argv[2])
    folder.mkdir()
    here, there = MemoryShelf(), MemoryShelf()
    images = Folder(folder)
    whole = kept_turns(signature=b"small")
    for data in (*PNGS, *map(noise, range(count))):
        await images.write(data, "image/png", ImageOrigin.GENERATED)
        pictures = (*whole.pictures, whole.pictures[0].model_copy(update={"handle": "#9", "image": part_of(data)}))
        await here.add_whole("local", whole.model_copy(update={"pictures": pictures}))
    tracemalloc.start()
    exported = await Archive(here, images, folder).export_library("local")
    await Archive(there, images, folder).import_archive(exported.path, "local")
    print(exported.size_bytes, tracemalloc.get_traced_memory()[1], len(there.kept))

class Folder:
    # The image store remembers 32 MB of what it has just written.
    def __init__(self, folder):
        self.folder = folder

    async def read(self, image):
        return (self.folder / image.digest).read_bytes()

    async def write(self, data, mime_type, origin):
        (self.folder / hashlib.sha256(data).hexdigest()).write_bytes(data)

def noise(number):
    sink = io.BytesIO()
    data = random.Random(number).randbytes(1_470_000)
    Image.frombytes("RGB", (700, 700), data).save(sink, "PNG", compress_level=0)
    return sink.getvalue()

asyncio.run(main())
"""
    sizes, peaks = [], []
    for count in (2, 14):
        child = run_child(code, str(tmp_path / str(count)), str(count))
        assert child.returncode == 0, child.stderr
        size, peak, kept = map(int, child.stdout.split())
        assert kept == count + 6
        sizes.append(size)
        peaks.append(peak)
    assert sizes[1] - sizes[0] > 12 * 1_400_000
    assert peaks[1] - peaks[0] < 4_000_000

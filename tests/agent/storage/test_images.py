"""Backups: copies of the database made while it is used, verified, thinned out, and gone back to."""

from __future__ import annotations

import asyncio
import io
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from PIL import Image

from agent import ErrorCode, ImageOrigin, ImagePart, RequestRefused, Settings, StorageFailure
from tests.adapters.house import Backup, Backups
from tests.adapters.records import ImageStore
from tests.adapters.scripted import calls, says
from tests.support.cases import each_case
from tests.support.children import run_child
from tests.support.pixels import encoded
from tests.support.scenes import Scene, generate, picture, run

DATA = b"\x89PNG not really" * 100


def files_below(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def stored_file(home: Path, part: ImagePart) -> Path:
    (path,) = (home / "pictures" / part.digest[:2]).glob(f"{part.digest}.[a-z]*")
    return path


def picture_bytes(width: int, height: int, mode: str = "RGB", kind: str = "PNG") -> bytes:
    return encoded(Image.new(mode, (width, height), (255, 0, 0, 100) if mode == "RGBA" else "red"), kind)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "not" / "there" / "yet"


async def test_only_their_user_may_read_folders_and_files(home: Path) -> None:
    store = ImageStore(home)
    await asyncio.gather(*(store.write(DATA, "image/png", ImageOrigin.UPLOADED) for _ in range(8)))
    await store.write_blob(DATA)
    assert len(files_below(home)) == 2, "the same picture is one file"
    folders = {home.parent, home} | {path.parent for path in files_below(home)}
    assert {path.stat().st_mode & 0o777 for path in folders} == {0o700}
    assert {path.stat().st_mode & 0o777 for path in files_below(home)} == {0o600}


async def test_a_damaged_picture_is_refused_by_its_handle_and_mended_by_sending_it_again(home: Path) -> None:
    store = ImageStore(home)
    part = (await store.write(DATA, "image/png", ImageOrigin.UPLOADED)).model_copy(update={"handle": "#7"})
    for damage in (b"", DATA[:-1], DATA.replace(b"n", b"m")):
        stored_file(home, part).write_bytes(damage)
        with pytest.raises(RequestRefused, match="#7") as refused:
            await ImageStore(home).read(part)
        assert refused.value.code is ErrorCode.PICTURE_FILE_MISSING
        await store.write(DATA, "image/png", ImageOrigin.UPLOADED)
        assert await ImageStore(home).read(part) == DATA
        blob = await store.write_blob(DATA)
        (home / "blobs" / blob[:2] / blob).write_bytes(damage)
        with pytest.raises(StorageFailure, match=blob[:8]):
            await ImageStore(home).read_blob(blob)


async def test_a_missing_picture_is_refused_and_one_whose_type_was_mended_is_found(home: Path) -> None:
    store = ImageStore(home)
    part = await store.write(DATA, "image/png", ImageOrigin.GENERATED)
    assert await store.read(part.model_copy(update={"mime_type": "image/jpeg"})) == DATA
    strange = await store.write(DATA[1:], "image/../../x", ImageOrigin.UPLOADED)
    assert stored_file(home, strange).name == f"{strange.digest}.bin"
    stored_file(home, part).unlink()
    for handle, code in ((None, ErrorCode.PICTURE_GONE), ("#7", ErrorCode.PICTURE_FILE_MISSING)):
        named = part.model_copy(update={"handle": handle})
        for attempt in (store.read(named), store.thumbnail(part.digest, 64, *([handle] if handle else []))):
            with pytest.raises(RequestRefused) as refused:
                await attempt
            assert refused.value.code is code
            assert part.digest[:8] not in refused.value.info.message


@pytest.mark.parametrize("digest", ["../../etc/passwd", "a" * 63, "A" * 64, "a" * 64 + "\n", "", "a" * 64 + "/.."])
async def test_a_path_is_never_built_from_outside_text(home: Path, digest: str) -> None:
    store = ImageStore(home)
    part = ImagePart(digest=digest, md5="", mime_type="image/png", size_bytes=1, origin=ImageOrigin.UPLOADED)
    for attempt in (store.read(part), store.thumbnail(digest, 64)):
        with pytest.raises(RequestRefused):
            await attempt
    with pytest.raises(StorageFailure):
        await store.read_blob(digest)


@each_case(("mode", "kind"), [("RGB", "JPEG"), ("RGBA", "PNG"), ("P", "PNG"), ("L", "WEBP"), ("1", "PNG")])
async def test_a_thumbnail_keeps_the_shape_and_is_made_once(home: Path, mode: str, kind: str) -> None:
    store = ImageStore(home)
    part = await store.write(picture_bytes(400, 200, mode, kind), f"image/{kind.lower()}", ImageOrigin.UPLOADED)
    data = await store.thumbnail(part.digest, 100)
    with Image.open(io.BytesIO(data)) as small:
        assert (small.format, small.size) == ("WEBP", (100, 50))
        assert small.has_transparency_data == (mode == "RGBA")
    stored_file(home, part).unlink()
    assert await store.thumbnail(part.digest, 100) == data


async def test_a_thumbnail_of_what_is_no_picture_or_of_a_senseless_size_is_refused(home: Path) -> None:
    store = ImageStore(home)
    part = await store.write(DATA, "image/png", ImageOrigin.UPLOADED)
    with pytest.raises(RequestRefused) as refused:
        await store.thumbnail(part.digest, 64)
    assert refused.value.code is ErrorCode.PICTURE_UNREADABLE
    for edge_px in (0, -1, 15, 2049, 10**9):
        with pytest.raises(ValueError, match="px"):
            await store.thumbnail(part.digest, edge_px)


def test_a_full_disk_is_told_and_nothing_is_left_half_written(home: Path) -> None:
    code = """
import asyncio, sys
from pathlib import Path
from agent.errors import StorageFailure
from agent.messages import ImageOrigin
from tests.adapters.records import ImageStore

async def main():
    store = ImageStore(Path(sys.argv[1]))
    small = await store.write(b"small", "image/png", ImageOrigin.UPLOADED)
    for write in (store.write(b"x" * 200_000, "image/png", ImageOrigin.UPLOADED), store.write_blob(b"y" * 200_000)):
        try:
            await write
        except StorageFailure as error:
            print(error.code)
    print(await store.read(small))

asyncio.run(main())
"""
    child = run_child(code, str(home), max_file_bytes=100_000)
    assert child.stdout.split() == ["disk_full", "disk_full", "b'small'"], child.stderr
    assert [path.read_bytes() for path in files_below(home)] == [b"small"]


NOW = datetime(2031, 5, 14, 12, 0, tzinfo=UTC)


def scene(settings: Settings, words: int = 9) -> Scene:
    text = [calls(generate(f"a red fox {number}")) for number in range(words)]
    return Scene(settings, text=text, pictures=lambda _: picture(64, 36))


async def test_what_came_after_the_backup_is_taken_over_if_it_has_pictures(settings: Settings) -> None:
    backups = Backups(settings.home)
    async with Scene(
        settings,
        text=[calls(generate("a red fox")), calls(generate("a blue fox")), says("Hello."), calls(generate("a boat"))],
        pictures=lambda _: picture(64, 36),
    ).studio() as studio:
        conversation = await studio.conversations.create()
        await run(studio, conversation.id, "a red fox")
        made = backups.make(NOW)
        await run(studio, conversation.id, "a blue fox")
        talk, other = await studio.conversations.create(), await studio.conversations.create()
        await run(studio, talk.id, "Hello")
        await run(studio, other.id, "a boat")
    assert ([one.name for one in backups.all()], made.path.stat().st_mode & 0o077) == (["20310514T120000Z"], 0)
    report = backups.restore(made.name, NOW + timedelta(hours=1))
    assert (report.kept_pictures, report.lost_turns, report.missing_files, report.is_whole) == (2, 1, 0, True)
    assert report.set_aside is not None
    assert report.set_aside.is_file()
    async with scene(settings).studio() as studio:
        kept = await studio.conversations.get(conversation.id)
        assert [one.text for one in kept.turns] == ["a red fox", "a blue fox"]
        assert [one.handle for one in kept.pictures] == ["#1", "#2"]
        assert len((await studio.conversations.get(other.id)).pictures) == 1
        assert {one.id for one in await studio.conversations.list()} == {conversation.id, other.id}
        await run(studio, conversation.id, "a third fox")
        assert len((await studio.conversations.get(conversation.id)).pictures) == 3


async def test_a_database_that_could_not_be_read_is_told_of_with_its_backups_until_one_is_restored(
    settings: Settings,
) -> None:
    backups, path = Backups(settings.home), settings.home / "aivista.db"
    async with scene(settings).studio() as studio:
        conversation = await studio.conversations.create()
        await run(studio, conversation.id, "a red fox")
        made = backups.make(NOW)
        assert await studio.lost_records() is None
    whole = path.read_bytes()
    path.write_bytes(b"no database" * 1000)
    for _ in range(2):
        async with scene(settings).studio() as studio:
            lost = await studio.lost_records()
    assert lost is not None
    assert (lost.backup_count, lost.newest_backup_at) == (1, NOW)
    assert (settings.home / lost.name).exists()
    backups.restore(made.name, datetime.now(UTC))
    async with scene(settings).studio() as studio:
        assert await studio.lost_records() is None
    # Damaged in the middle: what can be read is kept.
    for beside in settings.home.glob("aivista.db-*"):
        beside.unlink()
    third = len(whole) // 3
    path.write_bytes(whole[:third] + b"\xff" * 20_000 + whole[third + 20_000 :])
    backups.restore(made.name, NOW)
    async with scene(settings).studio() as studio:
        assert len((await studio.conversations.get(conversation.id)).pictures) == 1


async def test_a_damaged_backup_is_not_gone_back_to_and_what_cannot_be_verified_is_not_kept(settings: Settings) -> None:
    async with scene(settings).studio() as studio:
        await studio.conversations.create()
        made = Backups(settings.home).make(NOW)
    before = (settings.home / "aivista.db").read_bytes()
    made.path.write_bytes(made.path.read_bytes()[:5000])
    with pytest.raises(StorageFailure):
        Backups(settings.home).restore(made.name, NOW)
    assert (settings.home / "aivista.db").read_bytes() == before
    made.path.unlink()
    (settings.home / "aivista.db").write_bytes(b"no database at all" * 100)
    with pytest.raises(StorageFailure):
        Backups(settings.home).make(NOW)
    assert Backups(settings.home).all() == []
    assert os.listdir(settings.home / "backups") == []


async def test_old_backups_go_by_the_rule(settings: Settings) -> None:
    async with scene(settings).studio() as studio:
        await studio.conversations.create()
    backups, made = Backups(settings.home), list[Backup]()
    for hour in range(0, 60 * 24, 12):
        made.append(backups.make(NOW + timedelta(hours=hour)))
    # From noon of a Wednesday, one each noon and midnight; the last is of a Sunday's midnight.
    assert made[-1].name == "20310713T000000Z"
    days = ["0713T00", "0712T12", "0712T00", "0711T12", "0710T12", "0709T12", "0708T12", "0707T12"]
    assert [one.name[4:11] for one in backups.all()] == [*days, "0706T12", "0629T12", "0622T12"]


async def test_the_studio_makes_one_a_day_and_a_clock_that_was_ahead_hinders_none(settings: Settings) -> None:
    async with scene(settings).studio() as studio:
        await studio.conversations.create()
    backups = Backups(settings.home)
    assert backups.make_if_due(NOW) is not None
    assert backups.make_if_due(NOW + timedelta(hours=23)) is None
    assert backups.make_if_due(NOW + timedelta(hours=25)) is not None
    assert backups.make_if_due(NOW - timedelta(days=3)) is not None

"""Housekeeping over real homes: what goes, what stays, and what is told of damage."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from agent.errors import StorageFailure
from agent.messages import ImageOrigin
from agent.pictures import EditRecord, OriginalFile
from agent.storage.gallery_index import FOLDER, VectorTables
from agent.storage.gallery_values import GalleryQuery
from agent.storage.housekeeping import Housekeeping
from agent.storage.housekeeping_values import Trouble
from agent.storage.liveness import LifeSign
from agent.storage.styles import StyleLibrary
from agent.storage.workspace import WorkspaceStore
from tests.support.children import run_child
from tests.support.galleries import Filled, WordEmbedder, filled, png
from tests.support.histories import LARGE_SIGNATURE, finished, picture

LONG_AGO_S = time.time() - 30 * 24 * 3600


@pytest.fixture
async def kept(tmp_path: Path) -> AsyncIterator[Filled]:
    async with filled(tmp_path) as one:
        yield one


def files_below(folder: Path) -> set[str]:
    return {path.name for path in folder.rglob("*") if path.is_file()}


def age(home: Path, *folders: str) -> None:
    """Let every file of the folders have been written long ago."""
    for folder in folders or ("pictures", "blobs", "styles", "temporary", "running"):
        for path in (home / folder).rglob("*"):
            os.utime(path, (LONG_AGO_S, LONG_AGO_S))


def in_database(home: Path, statement: str, *values: object) -> None:
    with sqlite3.connect(home / "aivista.db") as database:
        database.execute(statement, values)
    database.close()


def file_of(home: Path, digest: str) -> Path:
    (path,) = (home / "pictures" / digest[:2]).glob(f"{digest}.png")
    return path


async def digest_of(kept: Filled, picture_id: int, owner: str = "local") -> str:
    (item,) = await kept.gallery.items(owner, [picture_id])
    return item.picture.image.digest


# Sweeping


async def test_the_file_an_upload_was_goes_with_its_picture_and_not_before(kept: Filled) -> None:
    conversation = await kept.conversation()
    file = await kept.images.stage_original(b"as it came, with its place")
    file.keep()
    original = OriginalFile(digest=file.digest, mime_type="image/jpeg", size_bytes=26)
    picture_id = await kept.add(conversation, details={"original": original})
    stray = await kept.images.stage_original(b"nobody's")
    stray.keep()
    age(kept.home, "pictures", "originals")
    report = Housekeeping(kept.home).sweep()
    assert (report.pictures.files, files_below(kept.home / "originals")) == (1, {file.digest})
    assert Housekeeping(kept.home).check().findings == ()
    in_database(kept.home, "UPDATE pictures SET deleted_at = '2001-01-01 00:00:00' WHERE id = ?", picture_id)
    assert Housekeeping(kept.home).sweep().pictures.files == 2
    assert files_below(kept.home / "originals") == set()


async def test_the_copy_that_models_are_sent_goes_with_its_picture(kept: Filled) -> None:
    unnamed = await kept.images.write(png("blue"), "image/png", ImageOrigin.UPLOADED)
    await kept.images.model_copy(unnamed)
    assert f"{unnamed.digest}.4096.png" in files_below(kept.home / "pictures")
    age(kept.home)
    report = Housekeeping(kept.home).sweep()
    assert (report.pictures.files, report.thumbnails.files) == (1, 1)
    assert files_below(kept.home / "pictures") == set()


async def test_what_a_record_names_stays_and_what_none_names_goes(kept: Filled) -> None:
    conversation = await kept.conversation()
    made = await digest_of(kept, await kept.add(conversation))
    unnamed = await kept.images.write(png("blue"), "image/png", ImageOrigin.UPLOADED)
    for digest in (made, unnamed.digest):
        await kept.images.thumbnail(digest, 64)
    blob = await kept.images.write_blob(b"no message has this")
    age(kept.home)
    report = Housekeeping(kept.home).sweep()
    assert (report.pictures.files, report.thumbnails.files, report.blobs.files) == (1, 1, 1)
    assert report.pictures.size_bytes == len(png("blue"))
    assert report.problems == ()
    assert files_below(kept.home / "pictures") == {f"{made}.png", f"{made}.64.webp"}
    assert blob not in files_below(kept.home / "blobs")
    assert Housekeeping(kept.home).sweep().is_empty


async def test_every_file_that_a_turn_or_an_edit_names_stays(kept: Filled) -> None:
    conversation = await kept.conversation(turn_id="t1")
    parts = [
        await kept.images.write(png(colour), "image/png", ImageOrigin.EDITED) for colour in ("black", "white", "grey")
    ]
    base, mask, raw = parts
    edit = EditRecord(kind="mask", verdict="good", reason="", base=base, mask=mask, raw=raw)
    await kept.add(conversation, details={"edit": edit})
    turn = (await kept.store.get(conversation, "local")).turns[0]
    await kept.store.add_picture(conversation, picture("#aa", "t1"))
    await kept.store.finish_turn(conversation, finished(turn, "#aa"))
    age(kept.home)
    report = Housekeeping(kept.home).sweep()
    assert report.total.files == 0
    assert {f"{part.digest}.png" for part in parts} <= files_below(kept.home / "pictures")
    answer = await kept.store.answer_of(conversation, "#aa")
    assert answer is not None
    assert answer.images[0].thought_signature == LARGE_SIGNATURE


async def test_what_a_running_turn_has_just_written_stays(kept: Filled) -> None:
    await kept.conversation()
    part = await kept.images.write(png("blue"), "image/png", ImageOrigin.GENERATED)
    blob = await kept.images.write_blob(b"young")
    report = Housekeeping(kept.home, grace=timedelta(0)).sweep()
    assert report.is_empty
    assert file_of(kept.home, part.digest).exists()
    assert blob in files_below(kept.home / "blobs")


async def test_a_picture_that_is_recorded_while_the_sweep_runs_stays(kept: Filled) -> None:
    """It is listed before the records are read, so one that is on record by then is named."""
    conversation = await kept.conversation()
    for _ in range(3):
        await kept.add(conversation)
    age(kept.home)
    before = files_below(kept.home / "pictures")
    sweeps = [asyncio.to_thread(Housekeeping(kept.home).sweep) for _ in range(3)]
    *reports, _ = await asyncio.gather(*sweeps, *(kept.add(conversation) for _ in range(5)))
    assert all(getattr(report, "problems", ()) == () for report in reports)
    assert before <= files_below(kept.home / "pictures")
    assert len(files_below(kept.home / "pictures")) == 8


async def test_a_deleted_conversation_goes_after_thirty_days_with_its_files(kept: Filled) -> None:
    recent, old, shared = [await kept.conversation() for _ in range(3)]
    young = await digest_of(kept, await kept.add(recent))
    alone = await digest_of(kept, await kept.add(old))
    both = await digest_of(kept, await kept.add(old, data=png("blue")))
    await kept.add(shared, data=png("blue"))
    for conversation in (recent, old):
        await kept.store.delete(conversation, "local")
    long_ago = datetime.now(UTC) - timedelta(days=31)
    in_database(
        kept.home, "UPDATE conversations SET deleted_at = ? WHERE id = ?", f"{long_ago:%Y-%m-%d %H:%M:%S.%f}", old
    )
    age(kept.home)
    report = Housekeeping(kept.home).sweep()
    assert (report.conversations, report.pictures.files) == (1, 1)
    assert files_below(kept.home / "pictures") == {f"{digest}.png" for digest in (young, both)}
    assert alone not in files_below(kept.home / "pictures")
    await kept.store.undelete(recent, "local")
    with pytest.raises(Exception, match="conversation"):
        await kept.store.undelete(old, "local")


async def test_a_deleted_picture_goes_after_thirty_days_and_its_record_stays(kept: Filled) -> None:
    conversation = await kept.conversation()
    raw, after = [await kept.images.write(png(one), "image/png", ImageOrigin.EDITED) for one in ("white", "grey")]
    mask = await kept.images.write(png("black"), "image/png", ImageOrigin.EDITED)
    base = await kept.images.write(png("blue"), "image/png", ImageOrigin.EDITED)
    edit = EditRecord(kind="mask", verdict="good", reason="", base=base, mask=mask, raw=raw, after=after)
    goes = await kept.add(conversation, "a fox", details={"edit": edit})
    young = await kept.add(conversation)
    leaned_on = await kept.add(conversation, data=png("red"))
    twin = await kept.add(conversation, data=png("red"))
    digests = [await digest_of(kept, one) for one in (goes, young, leaned_on)]
    await kept.images.thumbnail(digests[0], 64)
    assert len((await kept.gallery.page("local", GalleryQuery(words="fox"))).items) == 1
    await kept.gallery.delete("local", [goes, young, leaned_on])
    in_database(kept.home, "UPDATE pictures SET deleted_at = datetime(deleted_at, '-31 days') WHERE id != ?", young)
    in_database(kept.home, "UPDATE pictures SET deleted_at = NULL WHERE id = ?", twin)
    age(kept.home)
    report = Housekeeping(kept.home).sweep()
    assert (report.pictures.files, report.thumbnails.files) == (3, 1)
    left = files_below(kept.home / "pictures")
    assert left == {f"{one}.png" for one in (digests[1], digests[2], mask.digest, base.digest)}
    conversation_now = await kept.store.get(conversation, "local")
    assert (len(conversation_now.pictures), len(conversation_now.gone)) == (1, 3)
    assert Housekeeping(kept.home).check().is_fine
    with sqlite3.connect(kept.home / "aivista.db") as database:
        words = database.execute("SELECT count(*) FROM picture_words WHERE picture_words MATCH 'fox'").fetchone()
    database.close()
    assert words == (0,)


async def test_a_picture_that_another_leans_on_keeps_its_file(kept: Filled) -> None:
    conversation = await kept.conversation()
    goes = await kept.add(conversation, data=png("blue"))
    digest = await digest_of(kept, goes)
    base = (await kept.gallery.items("local", [goes]))[0].picture.image
    mask = await kept.images.write(png("black"), "image/png", ImageOrigin.EDITED)
    edit = EditRecord(kind="mask", verdict="good", reason="", base=base, mask=mask, raw=mask)
    await kept.add(conversation, details={"edit": edit})
    await kept.gallery.delete("local", [goes])
    in_database(kept.home, "UPDATE pictures SET deleted_at = datetime(deleted_at, '-31 days')")
    age(kept.home)
    assert Housekeeping(kept.home).sweep().is_empty
    assert file_of(kept.home, digest).exists()


async def test_unfinished_files_and_forgotten_archives_go_once_they_are_old(kept: Filled) -> None:
    made = await kept.add(await kept.conversation())
    zipped = await kept.gallery.zip_of("local", [made], name_of=lambda _: "x.png")
    digest = await digest_of(kept, made)
    for folder in ("pictures", "blobs"):
        place = kept.home / folder / digest[:2]
        place.mkdir(parents=True, exist_ok=True)
        (place / f".{digest}.png.0123abcd.part").write_bytes(b"half")
    assert Housekeeping(kept.home).sweep().is_empty
    age(kept.home, "pictures", "blobs", "temporary")
    assert Housekeeping(kept.home).sweep().leftovers.files == 3
    assert files_below(kept.home / "temporary") == set()
    assert zipped.count == 1
    assert file_of(kept.home, digest).exists()


async def test_an_archive_that_nobody_fetched_goes_after_a_day_and_not_before(kept: Filled) -> None:
    await kept.conversation()
    written = {}
    for name, hours in (("exports/old.zip", 24.5), ("exports/new.zip", 20), ("imports/old.part", 26)):
        path = written[name] = kept.home / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"zip")
        at_s = time.time() - hours * 3600
        os.utime(path, (at_s, at_s))
    assert Housekeeping(kept.home).sweep().leftovers.files == 2
    assert [name for name, path in written.items() if path.exists()] == ["exports/new.zip"]


async def test_signs_of_dead_processes_go_and_those_of_the_living_stay(kept: Filled) -> None:
    (living,) = (kept.home / "running").iterdir()
    child = run_child(
        "import os, sys\nfrom pathlib import Path\nfrom agent.storage.liveness import LifeSign\n"
        "sign = LifeSign(Path(sys.argv[1]) / 'running')\nsign.hold()\nprint(sign.name, flush=True)\nos._exit(1)",
        str(kept.home),
    )
    dead = child.stdout.strip()
    assert files_below(kept.home / "running") == {living.name, dead}
    assert Housekeeping(kept.home).sweep().signs == 0
    age(kept.home, "running")
    assert Housekeeping(kept.home).sweep().signs == 1
    assert files_below(kept.home / "running") == {living.name}
    assert LifeSign(kept.home / "running").is_alive(living.name)


async def test_files_that_are_not_ours_stay(kept: Filled) -> None:
    await kept.conversation()
    strange = ["notes.txt", "ab/notes.png", f"ab/{'c' * 64}.png", f"{'a' * 64}.png", f"ab/ab{'A' * 62}.png"]
    for name in strange:
        path = kept.home / "pictures" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"mine")
    outside = kept.home.parent / "outside"
    outside.mkdir()
    (outside / f"{'ab' * 32}.png").write_bytes(b"mine")
    (kept.home / "pictures" / "linked").symlink_to(outside, target_is_directory=True)
    age(kept.home)
    os.utime(outside / f"{'ab' * 32}.png", (LONG_AGO_S, LONG_AGO_S))
    assert Housekeeping(kept.home).sweep().is_empty
    assert (outside / f"{'ab' * 32}.png").exists()


async def test_a_dry_run_tells_the_same_and_removes_nothing(kept: Filled) -> None:
    conversation = await kept.conversation()
    await kept.store.delete(conversation, "local")
    in_database(kept.home, "UPDATE conversations SET deleted_at = datetime(deleted_at, '-31 days')")
    await kept.images.write(png("blue"), "image/png", ImageOrigin.UPLOADED)
    age(kept.home)
    before = files_below(kept.home)
    told = Housekeeping(kept.home).sweep(is_dry_run=True)
    assert (told.conversations, told.pictures.files, told.is_empty) == (1, 1, False)
    assert files_below(kept.home) == before
    done = Housekeeping(kept.home).sweep()
    assert (done.conversations, done.pictures) == (told.conversations, told.pictures)


async def test_the_gallerys_index_forgets_what_is_gone(kept: Filled) -> None:
    conversation, other = await kept.conversation(), await kept.conversation()
    for colour in ("red", "#f00000"):
        await kept.add(conversation, data=png(colour))
    stays = await kept.add(other, data=png("#e00000"))
    await kept.gallery.page("local", GalleryQuery(similar_to=stays))
    await kept.store.delete(conversation, "local")
    in_database(kept.home, "UPDATE conversations SET deleted_at = datetime(deleted_at, '-31 days')")
    assert Housekeeping(kept.home).sweep().vectors == 2
    tables = VectorTables(kept.home)
    assert tables.known("looks") == {stays}
    tables.close()
    assert (await kept.gallery.page("local", GalleryQuery(similar_to=stays))).items == ()


def test_without_records_nothing_is_removed(tmp_path: Path) -> None:
    (tmp_path / "pictures" / "ab").mkdir(parents=True)
    file = tmp_path / "pictures" / "ab" / f"{'ab' * 32}.png"
    file.write_bytes(b"x")
    os.utime(file, (LONG_AGO_S, LONG_AGO_S))
    with pytest.raises(StorageFailure, match=r"no aivista\.db"):
        Housekeeping(tmp_path).sweep()
    (tmp_path / "aivista.db").write_bytes(b"this is no database, whatever its name is" * 100)
    with pytest.raises(StorageFailure):
        Housekeeping(tmp_path).sweep()
    (tmp_path / "aivista.db").write_bytes(b"")
    with pytest.raises(StorageFailure):
        Housekeeping(tmp_path).sweep()
    assert file.exists()
    assert files_below(tmp_path) == {"aivista.db", file.name}


async def test_records_of_another_version_are_left_alone(kept: Filled) -> None:
    in_database(kept.home, "UPDATE alembic_version SET version_num = '9999'")
    for work in (Housekeeping(kept.home).sweep, Housekeeping(kept.home).check):
        with pytest.raises(StorageFailure, match="another version"):
            work()


async def test_pictures_stay_while_a_database_that_was_set_aside_may_name_them(kept: Filled) -> None:
    await kept.images.write(png("blue"), "image/png", ImageOrigin.UPLOADED)
    aside = kept.home / "aivista.db.unreadable-20260101T000000000000Z"
    aside.write_bytes(b"broken")
    age(kept.home)
    report = Housekeeping(kept.home).sweep()
    assert report.total.files == 0
    assert [aside.name in problem for problem in report.problems] == [True]
    aside.unlink()
    assert Housekeeping(kept.home).sweep().pictures.files == 1


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is forbidden to root")
async def test_what_cannot_be_removed_is_told_and_the_rest_goes(kept: Filled) -> None:
    stuck = await kept.images.write(png("blue"), "image/png", ImageOrigin.UPLOADED)
    await kept.images.write(png("red"), "image/png", ImageOrigin.UPLOADED)
    age(kept.home)
    folder = kept.home / "pictures" / stuck.digest[:2]
    folder.chmod(0o500)
    report = Housekeeping(kept.home).sweep()
    folder.chmod(0o700)
    assert (report.pictures.files, len(report.problems)) == (1, 1)


def test_records_that_take_nothing_any_more_are_told_and_files_are_freed_all_the_same(tmp_path: Path) -> None:
    code = """
import asyncio, os, resource, signal, sys
from pathlib import Path
from agent.storage.housekeeping import Housekeeping
from agent.messages import ImageOrigin
from tests.support.galleries import filled, png

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
home = Path(sys.argv[1])

async def main():
    async with filled(home) as kept:
        conversation = await kept.conversation()
        await kept.add(conversation)
        await kept.store.delete(conversation, "local")
        await kept.images.write(png("blue"), "image/png", ImageOrigin.UPLOADED)
        def old(connection):
            connection.exec_driver_sql("UPDATE conversations SET deleted_at = datetime(deleted_at, '-31 days')")
        await kept.store.in_transaction(old)
        for path in (home / "pictures").rglob("*"):
            os.utime(path, (1, 1))
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (os.stat(home / "aivista.db-wal").st_size, hard))
        report = Housekeeping(home).sweep()
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        print(report.conversations, report.pictures.files, *report.problems)

asyncio.run(main())
"""
    child = run_child(code, str(tmp_path))
    assert child.stdout.startswith("0 1 The studio's records cannot be read or written"), (child.stdout, child.stderr)


# Checking


async def everything(kept: Filled) -> tuple[str, str]:
    """Put one of each kind into the home; return the digests of a picture and of a blob."""
    conversation = await kept.conversation(title="Foxes", turn_id="t1")
    made = await kept.add(conversation)
    digest = await digest_of(kept, made)
    await kept.images.thumbnail(digest, 64)
    stored = await kept.images.write(png("blue"), "image/png", ImageOrigin.GENERATED)
    signed = picture("#aa", "t1")
    named = stored.model_copy(update={"handle": "#aa", "width": 64, "height": 36})
    await kept.store.add_picture(conversation, signed.model_copy(update={"image": named}))
    await kept.gallery.page("local", GalleryQuery(similar_to=made))
    library = StyleLibrary(kept.home)
    await library.search("ukiyo-e", embedder=WordEmbedder())
    await library.aclose()
    (blob,) = (path for path in (kept.home / "blobs").rglob("*") if path.is_file())
    return digest, blob.name


async def test_a_whole_home_is_fine_and_nothing_of_it_is_changed(kept: Filled) -> None:
    await everything(kept)
    before = {path: path.read_bytes() for path in kept.home.rglob("*") if path.is_file()}
    report = Housekeeping(kept.home).check()
    assert report.findings == ()
    assert report.is_fine
    assert (report.conversations, report.records, report.pictures.files, report.blobs.files) == (1, 2, 2, 1)
    assert (report.unnamed.files, report.thumbnails.files, report.leftovers.files) == (0, 0, 0)
    after = {path: path.read_bytes() for path in kept.home.rglob("*") if path.is_file()}
    assert {path for path in after if path.suffix != ".db-shm"} == {path for path in before if path.suffix != ".db-shm"}
    assert all(after[path] == data for path, data in before.items() if not path.name.endswith("-shm"))


async def test_a_closed_home_is_checked_as_well(tmp_path: Path) -> None:
    async with filled(tmp_path) as kept:
        await everything(kept)
    assert Housekeeping(tmp_path).check().is_fine


@pytest.mark.parametrize(
    "trouble",
    [
        Trouble.PICTURE_MISSING,
        Trouble.PICTURE_DAMAGED,
        Trouble.BLOB_MISSING,
        Trouble.BLOB_DAMAGED,
        Trouble.REFERENCE_BROKEN,
        Trouble.STYLE_INDEX_UNREADABLE,
        Trouble.GALLERY_INDEX_UNREADABLE,
    ],
)
async def test_each_damage_is_found_and_named(tmp_path: Path, trouble: Trouble) -> None:
    async with filled(tmp_path) as kept:
        digest, blob = await everything(kept)
    path, blob_path = file_of(tmp_path, digest), tmp_path / "blobs" / blob[:2] / blob
    match trouble:
        case Trouble.PICTURE_MISSING:
            path.unlink()
        case Trouble.PICTURE_DAMAGED:
            path.write_bytes(path.read_bytes()[:-1])
        case Trouble.BLOB_MISSING:
            blob_path.unlink()
        case Trouble.BLOB_DAMAGED:
            blob_path.write_bytes(b"x")
        case Trouble.REFERENCE_BROKEN:
            in_database(tmp_path, "UPDATE pictures SET conversation_id = 'nowhere' WHERE handle = '#1'")
        case Trouble.STYLE_INDEX_UNREADABLE:
            for manifest in (tmp_path / "styles" / "index").rglob("*.manifest"):
                manifest.write_bytes(b"x")
        case Trouble.GALLERY_INDEX_UNREADABLE:
            for data in (tmp_path / FOLDER).rglob("*.lance"):
                if data.is_file():
                    data.write_bytes(b"x")
    report = Housekeeping(tmp_path).check()
    assert not report.is_fine
    assert {finding.trouble for finding in report.findings} == {trouble}
    expected = {
        Trouble.PICTURE_MISSING: "#1 in “Foxes”",
        Trouble.PICTURE_DAMAGED: f"{digest}.png",
        Trouble.BLOB_MISSING: blob[:16],
        Trouble.BLOB_DAMAGED: blob,
        Trouble.REFERENCE_BROKEN: "pictures, row 1",
        Trouble.STYLE_INDEX_UNREADABLE: "styles/index/curated",
        Trouble.GALLERY_INDEX_UNREADABLE: "gallery/index/looks",
    }
    assert expected[trouble] in report.findings[0].what
    assert report.thumbnails.files == (2 if trouble is Trouble.PICTURE_MISSING else 0)


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        ("UPDATE turns SET parent = 'nowhere'", "a turn of “Foxes” follows one that is not there before it"),
        ("UPDATE turns SET parent = id", "a turn of “Foxes” follows one that is not there before it"),
        ("UPDATE conversations SET head = 'nowhere'", "“Foxes” shows a turn that is not there"),
        ("UPDATE pictures SET turn_id = 'nowhere' WHERE handle = '#1'", "#1 in “Foxes” is of a turn that is not there"),
    ],
)
async def test_turns_and_pictures_that_nobody_could_get_to_are_found(tmp_path: Path, damage: str, told: str) -> None:
    async with filled(tmp_path) as kept:
        await everything(kept)
    assert Housekeeping(tmp_path).check().is_fine
    in_database(tmp_path, damage)
    assert [one.what for one in Housekeeping(tmp_path).check().findings] == [told]


async def test_every_file_of_a_workspace_is_looked_through(kept: Filled) -> None:
    """More of them than are read at once."""
    conversation = await kept.conversation(title="Foxes")
    workspace = WorkspaceStore(kept.store).of(conversation, "local")
    for number in range(40):
        await workspace.write(f"{number}.md", f"text {number}", by="agent")
    report = Housekeeping(kept.home).check()
    assert report.is_fine
    assert (report.files.files, report.files.size_bytes) == (40, await workspace.size())
    in_database(kept.home, "UPDATE workspace_files SET content = x'00' WHERE name = '3.md'")
    in_database(kept.home, "UPDATE workspace_files SET content = CAST('text 00' AS BLOB) WHERE name = '39.md'")
    findings = Housekeeping(kept.home).check().findings
    assert {one.trouble for one in findings} == {Trouble.WORKSPACE_FILE_DAMAGED}
    assert sorted(one.what for one in findings) == ["3.md in “Foxes”", "39.md in “Foxes”"]


async def test_a_deleted_conversation_goes_with_the_files_of_its_workspace(kept: Filled) -> None:
    old, kept_one = await kept.conversation(), await kept.conversation()
    for conversation in (old, kept_one):
        await WorkspaceStore(kept.store).of(conversation, "local").write("a.md", "text", by="person")
    await kept.store.delete(old, "local")
    long_ago = datetime.now(UTC) - timedelta(days=31)
    in_database(
        kept.home, "UPDATE conversations SET deleted_at = ? WHERE id = ?", f"{long_ago:%Y-%m-%d %H:%M:%S.%f}", old
    )
    assert Housekeeping(kept.home).check().files.files == 2
    assert Housekeeping(kept.home).sweep().conversations == 1
    assert Housekeeping(kept.home).check().files.files == 1
    assert await WorkspaceStore(kept.store).of(kept_one, "local").all_texts() == {"a.md": "text"}


async def test_a_part_of_an_edit_that_is_gone_is_told(kept: Filled) -> None:
    conversation = await kept.conversation(title="Foxes")
    part = await kept.images.write(png("black"), "image/png", ImageOrigin.EDITED)
    edit = EditRecord(kind="mask", verdict="good", reason="", base=part, mask=part, raw=part)
    await kept.add(conversation, details={"edit": edit})
    file_of(kept.home, part.digest).unlink()
    (finding,) = Housekeeping(kept.home).check().findings
    assert finding.trouble is Trouble.PICTURE_MISSING
    assert "#1 in “Foxes”, a part of its edit" in finding.what


async def test_a_damaged_database_is_told_and_files_are_looked_through(tmp_path: Path) -> None:
    async with filled(tmp_path) as kept:
        digest, _ = await everything(kept)
    file_of(tmp_path, digest).write_bytes(b"x")
    database = tmp_path / "aivista.db"
    whole = database.read_bytes()
    for start, length in ((0, 100), (8192, len(whole) - 8192)):
        database.write_bytes(whole[:start] + b"\xff" * length + whole[start + length :])
        troubles = {finding.trouble for finding in Housekeeping(tmp_path).check().findings}
        assert troubles == {Trouble.DATABASE_DAMAGED, Trouble.PICTURE_DAMAGED}
    database.write_bytes(whole)


async def test_what_the_next_sweep_removes_is_counted_and_no_fault(kept: Filled) -> None:
    digest, _ = await everything(kept)
    await kept.images.write(png("green"), "image/png", ImageOrigin.UPLOADED)
    (kept.home / "pictures" / digest[:2] / f".{digest}.png.0123abcd.part").write_bytes(b"half")
    report = Housekeeping(kept.home).check()
    assert report.is_fine
    assert (report.unnamed.files, report.leftovers.files, report.leftovers.size_bytes) == (1, 1, 4)


def test_a_home_without_records_cannot_be_checked(tmp_path: Path) -> None:
    with pytest.raises(StorageFailure):
        Housekeeping(tmp_path).check()
    assert list(tmp_path.iterdir()) == []


async def test_a_home_with_a_strange_name_is_kept_as_well(tmp_path: Path) -> None:
    home = tmp_path / "a home? 100% #1 中文"
    async with filled(home) as kept:
        await kept.add(await kept.conversation())
    assert Housekeeping(home).check().is_fine
    assert Housekeeping(home).sweep().is_empty

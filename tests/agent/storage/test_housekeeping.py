"""Housekeeping over real homes: what goes for good, what stays, what is told of damage, and backups to go back to."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import zipfile
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from agent import DriftRecord, EditRecord, ImageOrigin, ImagePart, OriginalFile, Settings, StorageFailure, Studio
from tests.adapters.models import calls, says
from tests.adapters.records import (
    Backup,
    Backups,
    CheckProblem,
    GalleryQuery,
    Housekeeping,
    WorkspaceStore,
    tidy_if_due,
)
from tests.support.children import full_disk, run_child
from tests.support.galleries import Filled, WordEmbedder, filled, png
from tests.support.histories import LARGE_SIGNATURE, finished, keep_signatures
from tests.support.histories import picture as recorded
from tests.support.scenes import Scene, generate, picture, run
from tests.support.turns import in_database, rows

NOW, DAY, HOUR = datetime.now(UTC), timedelta(days=1), timedelta(hours=1)
OLD = "UPDATE {} SET deleted_at = datetime(deleted_at, '-31 days') WHERE id = ?"


@pytest.fixture
async def kept(tmp_path: Path) -> AsyncIterator[Filled]:
    # Of a name that has to be quoted somewhere.
    async with filled(tmp_path / "a home? 100% #1 中文") as one:
        yield one


def files_below(folder: Path) -> set[str]:
    return {path.name for path in folder.rglob("*") if path.is_file()}


def aged(path: Path, age: timedelta, data: bytes | None = None) -> Path:
    """Let a file be as old as that, made for it with the data if there is any."""
    if data is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    at_s = (NOW - age).timestamp()
    os.utime(path, (at_s, at_s))
    return path


def age_all(home: Path) -> None:
    for folder in ("pictures", "originals", "blobs", "temporary", "running"):
        for path in (home / folder).rglob("*"):
            aged(path, 30 * DAY)


def masked_edit(base: ImagePart, mask: ImagePart, raw: ImagePart, **more: Any) -> EditRecord:
    return EditRecord(kind="mask", verdict="good", reason="", base=base, mask=mask, raw=raw, **more)


def sweep(home: Path, **how: bool) -> object:
    report = Housekeeping(home).sweep(**how)
    assert report.problems == ()
    kinds = (report.pictures, report.thumbnails, report.blobs, report.leftovers)
    return report.conversations, *(kind.files for kind in kinds)


async def digest_of(kept: Filled, picture_id: int) -> str:
    (item,) = await kept.gallery.items("local", [picture_id])
    return item.picture.image.digest


async def part(kept: Filled, colour: str) -> ImagePart:
    return await kept.images.write(png(colour), "image/png", ImageOrigin.EDITED)


# Sweeping


async def test_what_a_record_names_stays_and_what_none_names_goes_once_it_is_old(kept: Filled) -> None:
    home, conversation = kept.home, await kept.conversation(turn_id="t1")
    file, stray = [await kept.images.stage_original(data) for data in (b"as it came", b"nobody's")]
    for one in (file, stray):
        one.keep()
    original = OriginalFile(digest=file.digest, mime_type="image/jpeg", size_bytes=10)
    colours = ("black", "white", "grey", "pink", "navy", "teal")
    base, mask, raw, grown, before, after = [await part(kept, colour) for colour in colours]
    edit = masked_edit(base, mask, raw, grown_mask=grown, before=before, after=after)
    changed, own_mask = await part(kept, "gold"), await part(kept, "lime")
    drift = DriftRecord(base="#1", is_comparable=True, changed=changed, changed_share=0.1)
    made = await digest_of(kept, await kept.add(conversation, details={"original": original, "edit": edit}))
    await kept.add(conversation, details={"drift": drift})
    turn = (await kept.store.conversations.get(conversation, "local")).turns[0].model_copy(update={"mask": own_mask})
    await kept.store.conversations.add_picture(conversation, recorded("#aa", "t1"))
    await kept.store.turns.finish(conversation, finished(turn, "#aa"))
    await keep_signatures(kept.images)
    await kept.images.thumbnail(made, 64)
    wanted = files_below(home / "pictures") | files_below(home / "originals") | files_below(home / "blobs")
    wanted -= {stray.digest}

    unnamed = await part(kept, "blue")
    await kept.images.thumbnail(unnamed.digest, 64)
    await kept.images.model_copy(unnamed)
    await kept.images.write_blob(b"no message has this")
    await kept.gallery.zip_of("local", [1], name_of=lambda _: "x.png")
    for folder in ("pictures", "blobs"):
        (home / folder / made[:2]).mkdir(exist_ok=True)
        (home / folder / made[:2] / f".{made}.png.0123abcd.part").write_bytes(b"half")
    assert Housekeeping(home, grace=timedelta(0)).sweep().is_empty, "a running turn may have just written it"
    age_all(home)
    everything = files_below(home)
    told = sweep(home, is_dry_run=True)
    assert (told, files_below(home)) == ((0, 2, 2, 1, 3), everything)
    assert sweep(home) == told
    assert wanted == files_below(home / "pictures") | files_below(home / "originals") | files_below(home / "blobs")
    assert Housekeeping(home).sweep().is_empty
    answer = await kept.store.conversations.answer_of(conversation, "#aa")
    assert answer is not None
    assert await kept.images.read_blob(answer.images[0].signature_digest or "") == LARGE_SIGNATURE


async def test_what_was_deleted_goes_after_thirty_days_and_what_others_lean_on_stays(kept: Filled) -> None:
    home = kept.home
    young, old, other = [await kept.conversation() for _ in range(3)]
    stays, goes = await digest_of(kept, await kept.add(young)), await digest_of(kept, await kept.add(old))
    shared = await digest_of(kept, await kept.add(old, data=png("blue")))
    await kept.add(other, data=png("blue"))
    for conversation in (old, other):
        await WorkspaceStore(kept.store.db).of(conversation, "local").write("a.md", "text", by="person")
    raw, mask = await part(kept, "white"), await part(kept, "black")
    leaned = await kept.add(other, data=png("red"))
    base = (await kept.gallery.items("local", [leaned]))[0].picture.image
    edit = masked_edit(base, mask, raw)
    picture_goes = await kept.add(other, "a fox", details={"edit": edit})
    gone = await digest_of(kept, picture_goes)
    await kept.add(other, details={"edit": masked_edit(base, mask, mask)})
    picture_stays = await kept.add(other)
    for conversation in (young, old):
        await kept.store.conversations.delete(conversation, "local")
    await kept.gallery.delete("local", [leaned, picture_goes, picture_stays])
    in_database(home, OLD.format("conversations"), old)
    for one in (leaned, picture_goes):
        in_database(home, OLD.format("pictures"), one)
    age_all(home)
    assert Housekeeping(home).check().files.files == 2
    assert sweep(home) == (1, 3, 0, 0, 0)
    left = {path.partition(".")[0] for path in files_below(home / "pictures")}
    assert {stays, shared, base.digest, mask.digest} <= left
    assert not {goes, gone, raw.digest} & left
    assert (await kept.store.conversations.get(other, "local")).gone == ("#5", "#6", "#8"), "nobody gets the names"
    report = Housekeeping(home).check()
    assert (report.is_fine, report.files.files) == (True, 1)
    assert (await kept.gallery.page("local", GalleryQuery(words="fox"))).items == ()
    await kept.store.conversations.undelete(young, "local")
    with pytest.raises(Exception, match="conversation"):
        await kept.store.conversations.undelete(old, "local")


async def test_a_picture_that_is_recorded_while_the_sweep_runs_stays(kept: Filled) -> None:
    conversation = await kept.conversation()
    for _ in range(3):
        await kept.add(conversation)
    age_all(kept.home)
    sweeps = [asyncio.to_thread(sweep, kept.home) for _ in range(3)]
    await asyncio.gather(*sweeps, *(kept.add(conversation) for _ in range(5)))
    assert len(files_below(kept.home / "pictures")) == 8


async def test_files_that_are_not_ours_and_signs_of_the_living_stay(kept: Filled) -> None:
    await kept.conversation()
    (living,) = files_below(kept.home / "running")
    child = run_child(
        "import asyncio, os, sys\nfrom pathlib import Path\nfrom agent import Settings, Studio\n"
        "asyncio.run(Studio(Settings(home=Path(sys.argv[1]))).__aenter__())\nos._exit(1)",
        str(kept.home),
    )
    assert len(files_below(kept.home / "running")) == 2, child.stderr
    for name in ("notes.txt", "ab/notes.png", f"ab/{'c' * 64}.png", f"{'a' * 64}.png", f"ab/ab{'A' * 62}.png"):
        aged(kept.home / "pictures" / name, 30 * DAY, b"mine")
    outside = aged(kept.home.parent / "outside" / f"{'ab' * 32}.png", 30 * DAY, b"mine")
    (kept.home / "pictures" / "linked").symlink_to(outside.parent, target_is_directory=True)
    assert Housekeeping(kept.home).sweep().signs == 0
    age_all(kept.home)
    report = Housekeeping(kept.home).sweep()
    assert (report.signs, report.total.files, files_below(kept.home / "running")) == (1, 0, {living})
    assert outside.exists()
    assert len(files_below(kept.home / "pictures")) == 5


@pytest.mark.parametrize(
    "damage",
    [
        lambda home: (home / "aivista.db").unlink(),
        lambda home: (home / "aivista.db").write_bytes(b"this is no database" * 100),
        lambda home: (home / "aivista.db").write_bytes(b""),
        lambda home: in_database(home, "UPDATE alembic_version SET version_num = '9999'"),
    ],
)
def test_without_records_of_this_version_nothing_is_removed(tmp_path: Path, damage: Callable[[Path], object]) -> None:
    async def fill() -> None:
        async with filled(tmp_path) as kept:
            await part(kept, "blue")

    asyncio.run(fill())
    for path in tmp_path.glob("aivista.db-*"):
        path.unlink()
    damage(tmp_path)
    age_all(tmp_path)
    before = files_below(tmp_path)
    with pytest.raises(StorageFailure):
        Housekeeping(tmp_path).sweep()
    assert {name for name in files_below(tmp_path) if not name.startswith("aivista.db-")} == before


async def test_records_that_take_nothing_any_more_are_told_and_files_are_freed_all_the_same(kept: Filled) -> None:
    conversation = await kept.conversation()
    await kept.add(conversation)
    await kept.store.conversations.delete(conversation, "local")
    await part(kept, "blue")
    in_database(kept.home, OLD.format("conversations"), conversation)
    age_all(kept.home)
    with full_disk((kept.home / "aivista.db-wal").stat().st_size):
        report = Housekeeping(kept.home).sweep()
    assert (report.conversations, report.pictures.files) == (0, 1)
    assert report.problems[0].startswith("The studio's records cannot be read or written")


# Once a day


async def put_away(kept: Filled) -> str:
    """Delete a conversation with a picture that is old; return its id."""
    conversation = await kept.conversation(title="Foxes")
    await kept.add(conversation)
    await kept.store.conversations.delete(conversation, "local")
    age_all(kept.home)
    return conversation


async def left(kept: Filled) -> list[str]:
    return [one.title for one in await kept.store.conversations.trash("local")]


async def test_what_was_deleted_is_kept_for_thirty_days_and_then_goes_with_its_files(kept: Filled) -> None:
    await put_away(kept)
    [one] = await kept.store.conversations.trash("local")
    assert one.kept_until - one.deleted_at == 30 * DAY
    hours = [n for n in range(0, 60, 4) if tidy_if_due(kept.home, NOW + n * HOUR) is not None]
    assert hours == [24, 48], "the first time only the time is noted"
    for days in range(3, 32):
        tidy_if_due(kept.home, NOW + days * DAY)
        assert await left(kept) == ["Foxes"]
    # It was due a day ago, and goes when that has been so for a day.
    tidy_if_due(kept.home, NOW + 32 * DAY)
    assert (await left(kept), files_below(kept.home / "pictures")) == ([], set())


@pytest.mark.parametrize("jump", [400 * DAY, -400 * DAY], ids=["ahead", "back"])
async def test_a_clock_that_jumps_for_less_than_a_day_removes_nothing_nor_does_one_that_was_ahead(
    kept: Filled, jump: timedelta
) -> None:
    key = await put_away(kept)
    for moment in (NOW, NOW + DAY, NOW + DAY + jump, NOW + 2 * DAY, NOW + 3 * DAY):
        tidy_if_due(kept.home, moment)
        assert await left(kept) == ["Foxes"]
    in_database(kept.home, "UPDATE conversations SET deleted_at = datetime(deleted_at, '+400 days')")
    for days in range(4, 33):
        tidy_if_due(kept.home, NOW + days * DAY)
    assert (await kept.store.conversations.undelete(key, "local")).title == "Foxes", "by a clock that was ahead"
    await kept.store.conversations.delete(key, "local")
    for days in range(33, 66):
        tidy_if_due(kept.home, NOW + days * DAY)
    assert await left(kept) == [], "what is really due goes all the same"


async def test_an_archive_that_nobody_fetched_goes_after_a_day_by_the_sweep_as_by_the_day(kept: Filled) -> None:
    names = {
        "exports/new.zip": 12,
        "exports/yesterday.zip": 25,
        "exports/.half.0123abcd.part": 960,
        "imports/a.part": 26,
    }
    cleans: tuple[Callable[[], object], ...] = (lambda: tidy_if_due(kept.home, NOW), Housekeeping(kept.home).sweep)
    for clean in cleans:
        written = [aged(kept.home / name, hours * HOUR, b"zip") for name, hours in names.items()]
        beside = aged(kept.home / "exports.txt", 40 * DAY, b"mine")
        clean()
        assert [path.name for path in (*written, beside) if path.exists()] == ["new.zip", "exports.txt"]
    # Also while the trash is not due again.
    assert tidy_if_due(kept.home, NOW + 20 * HOUR) is None
    assert files_below(kept.home / "exports") == set()


# Checking


async def everything_in(home: Path) -> str:
    """Put one of each kind into the home; return the digest of a picture."""
    async with filled(home) as kept:
        conversation = await kept.conversation(title="Foxes", turn_id="t1")
        raw = await part(kept, "black")
        made = await kept.add(conversation, details={"edit": masked_edit(raw, raw, raw)})
        digest = await digest_of(kept, made)
        await kept.images.thumbnail(digest, 64)
        signed = recorded("#aa", "t1")
        named = (await part(kept, "blue")).model_copy(update={"handle": "#aa", "width": 64, "height": 36})
        await kept.store.conversations.add_picture(conversation, signed.model_copy(update={"image": named}))
        await keep_signatures(kept.images)
        await kept.gallery.page("local", GalleryQuery(similar_to=made))
        workspace = WorkspaceStore(kept.store.db).of(conversation, "local")
        for number in range(40):  # more than are read at once
            await workspace.write(f"{number}.md", f"text {number}", by="agent")
        library = Studio(Settings(home=home)).styles
        await library.search("ukiyo-e", embedder=WordEmbedder())
        await library.aclose()
        return digest


PICTURES, BLACK = "pictures/*/", hashlib.sha256(png("black")).hexdigest()
BROKEN, FOLLOWS = CheckProblem.REFERENCE_BROKEN, "a turn of “Foxes” follows one that is not there before it"
# Files that go, or get this content instead, and what is told of it.
FILES = (
    (PICTURES + "{made}.png", None, CheckProblem.PICTURE_MISSING, "#1 in “Foxes”"),
    (PICTURES + "{made}.png", b"x", CheckProblem.PICTURE_DAMAGED, ".png"),
    (f"{PICTURES}{BLACK}.png", None, CheckProblem.PICTURE_MISSING, "#1 in “Foxes”, a part of its edit"),
    ("blobs/*/*", None, CheckProblem.BLOB_MISSING, ""),
    ("blobs/*/*", b"x", CheckProblem.BLOB_DAMAGED, ""),
    ("styles/index/**/*.manifest", b"x", CheckProblem.STYLE_INDEX_UNREADABLE, "styles/index/curated"),
)
ROWS = (
    ("pictures SET conversation_id = 'x' WHERE handle = '#1'", BROKEN, "pictures, row 1"),
    ("turns SET parent = 'nowhere'", BROKEN, FOLLOWS),
    ("turns SET parent = id", BROKEN, FOLLOWS),
    ("conversations SET head = 'x'", BROKEN, "“Foxes” shows a turn that is not there"),
    ("pictures SET turn_id = 'x' WHERE handle = '#1'", BROKEN, "#1 in “Foxes” is of a turn that is not there"),
    (
        *("workspace_files SET content = x'00' WHERE name = '39.md'", CheckProblem.WORKSPACE_FILE_DAMAGED),
        "39.md in “Foxes”",
    ),
)


def test_a_whole_home_is_fine_each_damage_is_named_and_nothing_is_changed(tmp_path: Path) -> None:
    made = asyncio.run(everything_in(tmp_path))
    (tmp_path / "pictures" / made[:2] / f".{made}.png.0123abcd.part").write_bytes(b"half")
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    report = Housekeeping(tmp_path).check()
    assert (report.findings, report.is_fine, report.conversations, report.records) == ((), True, 1, 2)
    assert (report.pictures.files, report.blobs.files, report.files.files) == (3, 1, 40)
    assert (report.unnamed.files, report.leftovers.files, report.leftovers.size_bytes) == (0, 1, 4)

    def check_told(*troubles: CheckProblem, what: str = "") -> None:
        findings = Housekeeping(tmp_path).check().findings
        assert {one.trouble for one in findings} == {*troubles}, (what, findings)
        assert what in findings[0].what
        for path, data in before.items():
            path.write_bytes(data)
        for path in tmp_path.glob("aivista.db-*"):
            path.unlink()
        assert {path: path.read_bytes() for path in before} == before

    for pattern, data, trouble, what in FILES:
        damaged = [path for path in tmp_path.glob(pattern.format(made=made)) if path.is_file()]
        assert damaged != []
        for path in damaged:
            path.unlink() if data is None else path.write_bytes(data)
        check_told(trouble, what=what)
    for changed, trouble, what in ROWS:
        in_database(tmp_path, f"UPDATE {changed}")
        check_told(trouble, what=what)
    whole = (tmp_path / "aivista.db").read_bytes()
    for start, length in ((0, 100), (8192, 40_000)):
        (tmp_path / "aivista.db").write_bytes(whole[:start] + b"\xff" * length + whole[start + length :])
        (tmp_path / "pictures" / made[:2] / f"{made}.png").write_bytes(b"x")
        check_told(CheckProblem.DATABASE_DAMAGED, CheckProblem.PICTURE_DAMAGED)


# Backups

NOON = datetime(2031, 5, 14, 12, 0, tzinfo=UTC)


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
        made = backups.make(NOON)
        await run(studio, conversation.id, "a blue fox")
        talk, other = await studio.conversations.create(), await studio.conversations.create()
        await run(studio, talk.id, "Hello")
        await run(studio, other.id, "a boat")
    assert ([one.name for one in backups.all()], made.path.stat().st_mode & 0o077) == (["20310514T120000Z"], 0)
    report = backups.restore(made.name, NOON + timedelta(hours=1))
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


@pytest.mark.parametrize(("is_older", "kept"), [("the backup", 1), ("the present database", 6)])
async def test_pictures_are_taken_over_whichever_of_the_two_databases_is_of_an_earlier_version(
    settings: Settings, is_older: str, kept: int
) -> None:
    backups, home = Backups(settings.home), settings.home
    with zipfile.ZipFile(Path(__file__).parents[2] / "golden/homes/0010.zip") as packed:
        packed.extract("aivista.db", home)
    places = json.dumps([{"message": 0, "part": 0, "digest": "ab" * 32}])
    in_database(home, "UPDATE pictures SET signatures = ? WHERE answer IS NOT NULL", places)
    older = (home / "aivista.db").read_bytes()
    made = backups.make(NOON)
    if is_older == "the present database":
        (home / "aivista.db").unlink()
    async with scene(settings).studio() as studio:
        conversation = await studio.conversations.create()
        await run(studio, conversation.id, "a red fox")
    if is_older == "the present database":
        made = backups.make(NOON + timedelta(hours=1))
        (home / "aivista.db").write_bytes(older)
    report = backups.restore(made.name, NOON + timedelta(hours=2))
    async with scene(settings).studio() as studio:
        found = {one.id: one.picture_count for one in await studio.conversations.list()}
    assert found.pop(conversation.id) == 1
    assert (report.kept_pictures, report.is_whole, sum(found.values())) == (kept, True, 5)
    assert not list(home.glob(".aivista*"))
    named = 'SELECT id FROM pictures WHERE answer LIKE \'%"signature_digest":"abab%\''
    assert len(rows(home / "aivista.db", named)) == 3


async def test_a_database_that_could_not_be_read_is_told_of_with_its_backups_until_one_is_restored(
    settings: Settings,
) -> None:
    backups, path = Backups(settings.home), settings.home / "aivista.db"
    async with scene(settings).studio() as studio:
        conversation = await studio.conversations.create()
        await run(studio, conversation.id, "a red fox")
        made = backups.make(NOON)
        assert await studio.lost_records() is None
    whole = path.read_bytes()
    path.write_bytes(b"no database" * 1000)
    for _ in range(2):
        async with scene(settings).studio() as studio:
            lost = await studio.lost_records()
    assert lost is not None
    assert (lost.backup_count, lost.newest_backup_at) == (1, NOON)
    assert (settings.home / lost.name).exists()
    backups.restore(made.name, datetime.now(UTC))
    async with scene(settings).studio() as studio:
        assert await studio.lost_records() is None
    # Damaged in the middle: what can be read is kept.
    for beside in settings.home.glob("aivista.db-*"):
        beside.unlink()
    third = len(whole) // 3
    path.write_bytes(whole[:third] + b"\xff" * 20_000 + whole[third + 20_000 :])
    backups.restore(made.name, NOON)
    async with scene(settings).studio() as studio:
        assert len((await studio.conversations.get(conversation.id)).pictures) == 1


async def test_a_damaged_backup_is_not_gone_back_to_and_what_cannot_be_verified_is_not_kept(settings: Settings) -> None:
    async with scene(settings).studio() as studio:
        await studio.conversations.create()
        made = Backups(settings.home).make(NOON)
    before = (settings.home / "aivista.db").read_bytes()
    made.path.write_bytes(made.path.read_bytes()[:5000])
    with pytest.raises(StorageFailure):
        Backups(settings.home).restore(made.name, NOON)
    assert (settings.home / "aivista.db").read_bytes() == before
    made.path.unlink()
    (settings.home / "aivista.db").write_bytes(b"no database at all" * 100)
    with pytest.raises(StorageFailure):
        Backups(settings.home).make(NOON)
    assert Backups(settings.home).all() == []
    assert os.listdir(settings.home / "backups") == []


async def test_old_backups_go_by_the_rule(settings: Settings) -> None:
    async with scene(settings).studio() as studio:
        await studio.conversations.create()
    backups, made = Backups(settings.home), list[Backup]()
    for hour in range(0, 60 * 24, 12):
        made.append(backups.make(NOON + timedelta(hours=hour)))
    # From noon of a Wednesday, one each noon and midnight; the last is of a Sunday's midnight.
    assert made[-1].name == "20310713T000000Z"
    days = ["0713T00", "0712T12", "0712T00", "0711T12", "0710T12", "0709T12", "0708T12", "0707T12"]
    assert [one.name[4:11] for one in backups.all()] == [*days, "0706T12", "0629T12", "0622T12"]


async def test_what_hinders_a_daily_backup_is_logged_and_the_next_one_is_made(
    settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    async with scene(settings).studio() as studio:
        await studio.conversations.create()
    backups, folder = Backups(settings.home), settings.home / "backups"
    folder.write_bytes(b"not a folder")
    assert backups.make_if_due(NOON) is None
    assert "no backup of the database was made" in caplog.text
    folder.unlink()
    # Nothing that can be removed as a file.
    (folder / "aivista-20300101T120000Z.db").mkdir(parents=True)
    for days in range(60):
        assert backups.make_if_due(NOON + timedelta(days=days)) is not None
    assert "20300101T120000Z could not be removed" in caplog.text


async def test_the_studio_makes_one_a_day_and_a_clock_that_was_ahead_hinders_none(settings: Settings) -> None:
    async with scene(settings).studio() as studio:
        await studio.conversations.create()
    backups = Backups(settings.home)
    assert backups.make_if_due(NOON) is not None
    assert backups.make_if_due(NOON + timedelta(hours=23)) is None
    assert backups.make_if_due(NOON + timedelta(hours=25)) is not None
    assert backups.make_if_due(NOON - timedelta(days=3)) is not None

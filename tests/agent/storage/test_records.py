"""The records of a home: opened whatever the database is, nothing lost beside a damage, and nobody else's."""

from __future__ import annotations

import asyncio
import contextlib
import random
import shutil
import sqlite3
import zipfile
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from agent import (
    AgentMessage,
    ErrorCode,
    Picture,
    Settings,
    StorageFailure,
    Studio,
    Turn,
    TurnDone,
    TurnFailed,
    TurnState,
)
from tests.adapters.models import Asked, Line, calls, says
from tests.adapters.records import GalleryQuery, ImageStore, Records, first_start, keep
from tests.support.children import run_child
from tests.support.gemini import SMALL, on_gemini, paint
from tests.support.histories import begun_turn, finished, image_part, picture
from tests.support.refusals import refusal
from tests.support.scenes import Scene, generate, only, run
from tests.support.scenes import picture as painted
from tests.support.tables import table
from tests.support.turns import rows
from tests.support.waiting import until
from tests.wire_server import GeminiServer, PictureAnswer

HOMES = Path(__file__).parents[2] / "golden" / "homes"


@pytest.fixture
def scene(settings: Settings) -> Scene:
    """A studio whose models say hello."""
    return Scene(settings, text=lambda asked: says("Hello."))


@pytest.fixture
async def studio(scene: Scene) -> AsyncIterator[Studio]:
    async with scene.studio() as opened:
        yield opened


def in_database(home: Path, *statements: str) -> None:
    with contextlib.closing(sqlite3.connect(home / "aivista.db")) as database, database:
        for statement in statements:
            database.execute(statement)


def tables(path: Path) -> set[tuple[str, str, str]]:
    """Every column, index and foreign key of a database, however its SQL is written."""
    found: set[tuple[str, str, str]] = set()
    with contextlib.closing(sqlite3.connect(path)) as database:
        for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            for pragma in ("table_info", "index_list", "foreign_key_list"):
                # An index's place in its list says nothing.
                told = database.execute(f"PRAGMA {pragma}({name})").fetchall()
                found |= {(name, pragma, str(row[1:] if pragma == "index_list" else row)) for row in told}
    return found


# The file


@pytest.mark.parametrize("version", sorted(path.stem for path in HOMES.glob("*.zip")))
def test_a_home_of_an_earlier_version_gets_the_tables_of_a_new_one(version: str, tmp_path: Path) -> None:
    with zipfile.ZipFile(HOMES / f"{version}.zip") as packed:
        packed.extractall(tmp_path / "old")
    assert tables(first_start(tmp_path / "old")) == tables(first_start(tmp_path / "new"))
    assert {path.stat().st_mode & 0o777 for path in (tmp_path / "new").glob("aivista.db*")} == {0o600}


def cut(path: Path) -> None:
    path.write_bytes(first_start(path.parent).read_bytes()[:4096])


def garbled(path: Path) -> None:
    path.write_bytes(b"this was a database once " * 400)


NEWER = ("CREATE TABLE alembic_version (version_num TEXT)", "INSERT INTO alembic_version VALUES ('9999')")


@pytest.mark.parametrize(("make", "is_lost"), [(garbled, True), (cut, True), (Path.touch, False)])
async def test_what_is_no_database_is_set_aside_and_told_and_the_studio_opens(
    settings: Settings, make: Callable[[Path], None], is_lost: bool
) -> None:
    settings.home.mkdir()
    make(settings.home / "aivista.db")
    before = (settings.home / "aivista.db").read_bytes()
    async with Studio(settings) as studio:
        lost = await studio.lost_records()
        assert (lost is not None) is is_lost
        await run(studio, (await studio.conversations.create()).id, "hello")
        assert len(await studio.conversations.list()) == 1
    if lost is not None:
        assert (settings.home / lost.name).read_bytes() == before


@pytest.mark.parametrize(
    ("statements", "told"),
    [(NEWER, "newer Aivista"), (("CREATE TABLE theirs (id INTEGER)",), "not a database of Aivista"), ((), "records")],
)
async def test_a_database_that_is_not_ours_to_read_is_left_as_it_is(
    settings: Settings, statements: tuple[str, ...], told: str
) -> None:
    settings.home.mkdir()
    path = settings.home / "aivista.db"
    if statements:
        in_database(settings.home, *statements)
    else:
        path.mkdir()
    before = path.read_bytes() if path.is_file() else b""
    with pytest.raises(StorageFailure, match=told) as failure:
        async with Studio(settings):
            pass
    assert failure.value.code is ErrorCode.STORAGE_BROKEN
    assert str(settings.home) not in str(failure.value)
    assert (path.read_bytes() if path.is_file() else b"") == before


async def test_an_upgrade_that_breaks_off_leaves_the_first_version_as_it_was(settings: Settings) -> None:
    with zipfile.ZipFile(HOMES / "0001.zip") as packed:
        packed.extractall(settings.home)
    in_database(settings.home, "CREATE TABLE calls (in_the_way INTEGER)")
    before = tables(settings.home / "aivista.db")
    with pytest.raises(StorageFailure):
        async with Studio(settings):
            pass
    assert tables(settings.home / "aivista.db") == before
    in_database(settings.home, "DROP TABLE calls")
    async with Studio(settings) as studio:
        assert await studio.conversations.list()
    assert tables(settings.home / "aivista.db") == tables(first_start(settings.home.parent / "new"))


async def test_a_home_that_another_program_opens_first_is_waited_for(settings: Settings) -> None:
    async with Studio(settings) as studio:
        key = (await studio.conversations.create()).id
        await run(studio, key, "draw a fox")
    place = settings.home / "aivista.db"
    with contextlib.closing(sqlite3.connect(place, check_same_thread=False, isolation_level=None)) as other:
        other.execute("PRAGMA journal_mode=DELETE")
        other.execute("BEGIN IMMEDIATE")
        asyncio.get_running_loop().call_later(0.2, other.rollback)
        async with Studio(settings) as studio:
            assert isinstance((await run(studio, key, "make it darker"))[-1], TurnDone)


def test_nothing_heavy_is_loaded_to_open_a_home_a_second_time(tmp_path: Path) -> None:
    code = """
import asyncio, sys
from pathlib import Path
from agent import Settings, Studio

async def main():
    for _ in range(2):
        async with Studio(Settings(home=Path(sys.argv[1]))) as studio:
            await studio.styles.all()
    print(*{"diskcache", "lancedb", "pyarrow", "numpy", "rapidfuzz"} & set(sys.modules))
    async with Studio(Settings(home=Path(sys.argv[1]))) as studio:
        # Whoever only names or describes a style does not wait until LanceDB is loaded.
        for text in ("linocut fox", "soft blurry night lights"):
            print((await studio.styles.search(text))[0].style.id)
    print(*{"lancedb", "pyarrow", "numpy"} & set(sys.modules))

asyncio.run(main())
"""
    child = run_child(code, str(tmp_path), is_cold=True)
    assert child.stdout.split() == ["linocut", "cinematic"], child.stderr


def test_a_folder_that_locks_nothing_syncs_no_folder_and_sets_no_room_aside_holds_a_studio(tmp_path: Path) -> None:
    code = """
import asyncio, errno, fcntl, os, stat, sys
from pathlib import Path
from agent import Settings, Studio, TurnRequest

def missing(*_):
    raise OSError(errno.ENOSYS, "not here")

def fsync(descriptor, sync=os.fsync):
    return missing() if stat.S_ISDIR(os.fstat(descriptor).st_mode) else sync(descriptor)

fcntl.flock, os.posix_fallocate, os.fsync = missing, missing, fsync

async def main():
    async with Studio(Settings(home=Path(sys.argv[1]))) as studio:
        chosen = await studio.preferences.of("local")
        await studio.preferences.keep("local", chosen.model_copy(update={"cap_day_usd": 2.5}))
        conversation = await studio.conversations.create()
        async for event in studio.run_turn(conversation.id, TurnRequest(text="a red fox")):
            pass
        pictures = (await studio.conversations.get(conversation.id)).pictures
        print(event.type, len(pictures), (await studio.preferences.of("local")).cap_day_usd)

asyncio.run(main())
"""
    child = run_child(code, str(tmp_path / "home"))
    assert child.stdout == "turn_done 1 2.5\n", child.stderr


# Damage beside which nothing is lost


async def test_a_failure_tells_nothing_of_what_was_written(settings: Settings, studio: Studio) -> None:
    conversation = await studio.conversations.create()
    in_database(settings.home, "DROP TABLE turns")
    error = only(await run(studio, conversation.id, "a secret wish"), TurnFailed).error
    assert error.code is ErrorCode.STORAGE_BROKEN
    assert "secret" not in str(error)


async def test_of_turns_that_are_recorded_together_a_bad_one_fails_alone(settings: Settings, studio: Studio) -> None:
    kept = [(await studio.conversations.create()).id for _ in range(8)]
    in_database(
        settings.home,
        f"CREATE TRIGGER refuse BEFORE INSERT ON turns WHEN NEW.conversation_id = '{kept[3]}'"
        " BEGIN SELECT RAISE(ABORT, 'no'); END",
    )
    ended = await asyncio.gather(*(run(studio, one, f"number {number}") for number, one in enumerate(kept)))
    assert [isinstance(events[-1], TurnDone) for events in ended] == [one != kept[3] for one in kept]
    in_database(settings.home, "DROP TRIGGER refuse")
    async with Studio(settings) as again:
        told = [[turn.text for turn in (await again.conversations.get(one)).turns] for one in kept]
    assert told == [[f"number {number}"] if number != 3 else [] for number in range(8)]


@pytest.mark.parametrize(
    ("damage", "shown"),
    [
        ("UPDATE turns SET parent = id", ["three"]),
        ("UPDATE turns SET parent = 'nowhere'", ["three"]),
        ("UPDATE conversations SET head = 'nowhere'", ["one", "two", "three"]),
        ("UPDATE conversations SET head = (SELECT id FROM turns WHERE parent IS NULL)", ["one", "two", "three"]),
    ],
)
async def test_turns_that_lead_nowhere_end_somewhere(
    settings: Settings, scene: Scene, damage: str, shown: list[str]
) -> None:
    async with scene.studio() as studio:
        conversation = await studio.conversations.create()
        for words in ("one", "two", "three"):
            await run(studio, conversation.id, words)
    in_database(settings.home, damage)
    async with scene.studio() as studio:
        assert [turn.text for turn in (await studio.conversations.get(conversation.id)).turns] == shown
        assert isinstance((await run(studio, conversation.id, "four"))[-1], TurnDone)


@pytest.mark.parametrize("is_lost", [False, True])
async def test_a_signature_goes_back_as_it_came_and_one_that_was_lost_is_gone_without(
    settings: Settings, is_lost: bool
) -> None:
    with GeminiServer() as server:
        gemini = on_gemini(settings, server.url)
        server.on_text(paint(), paint("make it blue", action="edit_image", handles=["#1"]))
        server.on_image(PictureAnswer(64, 36, signature_bytes=900_000), SMALL)
        async with Studio(gemini) as studio:
            key = (await studio.conversations.create()).id
            await run(studio, key, "a red fox")
        # A signature of this size is no part of a row.
        assert len((settings.home / "aivista.db").read_bytes()) < 900_000
        if is_lost:
            shutil.rmtree(settings.home / "blobs")
        async with Studio(gemini) as studio:
            assert isinstance((await run(studio, key, "make the fox blue"))[-1], TurnDone)
        painted = [request for request in server.requests if request.kind == "image"]
        assert (len(str(painted[1].body)) < 900_000) is is_lost
        assert is_lost or server.violations == []


async def test_a_picture_whose_handle_another_process_took_is_recorded_under_the_next_one(tmp_path: Path) -> None:
    """And one whose caller is cancelled is recorded all the same: it was paid for."""
    async with contextlib.aclosing(Records(tmp_path, ImageStore(tmp_path))) as store:
        await store.open()
        conversation = await store.conversations.create("local")
        twice = [picture("#1", "t1", is_generated=False)] * 2
        with pytest.raises(StorageFailure):
            await store.turns.begin(conversation.id, begun_turn(), twice)
        assert not (await store.conversations.get(conversation.id, "local")).turns, "with its uploads or not at all"
        await store.turns.begin(conversation.id, begun_turn())
        await store.conversations.add_picture(conversation.id, picture("#2", "t1"))
        other = picture("#2", "t1").model_copy(update={"image": image_part("#3").model_copy(update={"handle": "#2"})})
        adding = asyncio.create_task(store.conversations.add_picture(conversation.id, other))
        await asyncio.sleep(0)
        adding.cancel()
        with pytest.raises(asyncio.CancelledError):
            await adding

        async def is_recorded() -> bool:
            return len((await store.conversations.get(conversation.id, "local")).pictures) == 2

        await until(is_recorded)
        await store.turns.finish(conversation.id, finished(begun_turn()))
        kept = await store.conversations.get(conversation.id, "local")
        assert [(one.handle, one.image.digest) for one in kept.pictures] == [
            (name, image_part(name).digest) for name in ("#2", "#3")
        ]
        answer = await store.conversations.answer_of(conversation.id, "#3")
        assert answer is not None
        assert {image.handle for image in answer.images} == {"#3"}
    async with contextlib.aclosing(Records(tmp_path, ImageStore(tmp_path))) as store:
        await store.open()
        assert await store.conversations.get(conversation.id, "local") == kept


# Pages of turns


async def test_the_pages_of_a_branch_join_to_the_whole_and_tell_what_stands_beside_it(tmp_path: Path) -> None:
    told, parent = list[tuple[Turn, list[Picture]]](), None
    for number in range(1, 121):
        # The last two are a branch beside all others but two.
        turn = finished(begun_turn(f"t{number}", parent="t2" if number == 119 else parent), f"#{number}", b"signed")
        told.append((turn, [picture(f"#{number}", turn.id, signature=b"signed")]))
        parent = turn.id
    [made] = await keep(tmp_path, "local", told)
    async with Studio(Settings(home=tmp_path)) as studio:
        for leaf, limit, sizes in (("t3", 50, [50, 50, 18]), ("t3", 500, [118]), ("t119", 3, [3, 1])):
            await studio.conversations.switch_branch(made, leaf)
            whole = await studio.conversations.get(made)
            page = await studio.conversations.turns_page(made, limit=limit)
            pages = [page]
            while page.earlier is not None:
                page = await studio.conversations.turns_page(made, before=page.earlier, limit=limit)
                pages.append(page)
            assert [len(one.turns) for one in pages] == sizes
            assert tuple(turn for one in reversed(pages) for turn in one.turns) == whole.turns
            assert {turn: beside for one in pages for turn, beside in one.forks.items()} == whole.forks
            assert {one.handle for page in pages for one in page.pictures} == {one.handle for one in whole.pictures}
            # Every turn names the first two.
            assert [one.handle for one in pages[0].pictures][:2] == ["#1", "#2"]
        for before in ("t5", "", "t1' OR 1"):
            attempt = studio.conversations.turns_page(made, before=before)
            assert await refusal(attempt) is ErrorCode.TURN_NOT_FOUND


# Whose they are


async def test_what_is_deleted_is_reached_by_nobody_comes_back_whole_and_goes_for_good_with_all_its_rows(
    studio: Studio,
) -> None:
    conversations, key = studio.conversations, (await studio.conversations.create()).id
    await run(studio, key, "hello")
    await studio.files(key).write("a", "mine", by="person")
    before = await conversations.get(key)

    async def is_out_of_reach(owner: str = "local") -> None:
        turn_id, files = before.turns[0].id, studio.files(key, owner)
        for attempt in (
            *(conversations.get(key, owner), conversations.rename(key, "theirs", owner)),
            *(conversations.pin(key, True, owner), conversations.duplicate(key, owner)),
            *(conversations.switch_branch(key, turn_id, owner), conversations.turns_page(key, owner)),
            *(studio.picture(key, "#1", owner), studio.thumbnail(key, "#1", 64, owner), studio.trace(key, None, owner)),
            *(studio.turns.report(key, turn_id, owner=owner), studio.turns.request_of(key, turn_id, owner)),
            *(studio.turns.repeated(key, "#1", owner), studio.archive.export_conversation(key, owner)),
            *(files.list(), files.all_texts(), files.size(), files.read("a"), files.read_text("a")),
            *(files.write("a", "theirs", by="person"), files.rename("a", "b"), files.delete("a")),
        ):
            assert await refusal(attempt) is ErrorCode.CONVERSATION_NOT_FOUND

    for stranger in ("ann", "", "LOCAL"):
        await is_out_of_reach(stranger)
        for change in (conversations.delete, conversations.undelete, conversations.delete_forever):
            assert await refusal(change(key, stranger)) is ErrorCode.CONVERSATION_NOT_FOUND
    await conversations.delete(key)
    await is_out_of_reach()
    assert await refusal(conversations.undelete(key, "ann")) is ErrorCode.CONVERSATION_NOT_FOUND
    assert (await conversations.undelete(key)).model_copy(update={"version": before.version}) == before
    assert await studio.files(key).all_texts() == {"a": "mine"}
    await conversations.delete(key)
    await conversations.delete_forever(key)
    await is_out_of_reach()
    for each in ("turns", "calls", "trace_steps", "workspace_files", "conversation_words"):
        assert rows(studio.settings.home / "aivista.db", f"SELECT * FROM {each}") == []


# Names, words, copies


def said(name: str, text: str, *answers: str) -> tuple[Turn, list[Picture]]:
    shown = tuple(AgentMessage(text=one) for one in answers)
    turn = begun_turn(name, text)
    return turn.model_copy(update={"state": TurnState.DONE, "components": shown}), []


async def test_a_conversation_is_called_by_its_first_words_or_what_the_model_called_the_picture(
    settings: Settings,
) -> None:
    subjects = {" red\n fox. ": "Red fox", "iPhone on a desk": "iPhone on a desk", "雪中的红狐。": "雪中的红狐"}
    subjects |= {"word " * 40: "Word " + "word " * 7 + "word…"}
    subjects |= dict.fromkeys(("", "none", "Auto", "#2", "#7b"), "draw a red fox")
    texts = {"  draw\n a   fox ": "draw a fox", "word " * 40: "word " * 8 + "word…", "画" * 60: "画" * 48 + "…"}
    plans = [calls(generate(subject=one)) for one in subjects]
    scene = Scene(settings, text=[*plans, *(says("Hm.") for _ in texts)], pictures=lambda asked: painted(64, 36))
    async with scene.studio() as studio:
        for words in (*(["draw a red fox"] * len(subjects)), *texts):
            await run(studio, (await studio.conversations.create()).id, words)
        found = [one.title for one in await studio.conversations.list()][::-1]
        assert found == [*subjects.values(), *texts.values()]
        key = (await studio.conversations.list())[0].id
        wrong = {"": ErrorCode.TITLE_EMPTY, " \n\0": ErrorCode.TITLE_EMPTY, "x" * 121: ErrorCode.TITLE_TOO_LONG}
        assert {title: await refusal(studio.conversations.rename(key, title)) for title in wrong} == wrong
        await studio.conversations.rename(key, "画" * 120)
        assert (await studio.conversations.get(key)).title == "画" * 120


FOUND = table("record_words")["said"]


async def test_conversations_are_found_by_words_of_any_script_and_no_query_is_a_command(settings: Settings) -> None:
    long = "word " * 60 + "a Hühnchen\nin the snow " + "word " * 60
    texts = [*(text for text, _, _ in FOUND), long]
    ids = await keep(settings.home, "local", *([said(f"t{number}", text)] for number, text in enumerate(texts)))
    async with Studio(settings) as studio:

        async def found(query: str) -> list[str]:
            return [one.info.id for one in await studio.conversations.search(query, limit=100)]

        for key, (text, are_found, are_not) in zip(ids, FOUND, strict=False):
            assert [query for query in are_found if key not in await found(query)] == [], text
            assert [query for query in are_not if key in await found(query)] == [], text
        for query in table("record_words")["commands"]:
            assert await found(f"zebra {query}") == [], query
        [one] = await studio.conversations.search("huhn")
        assert (one.info.id, one.turn_id, one.place, len(one.excerpt) <= 130) == (ids[-1], "t10", "said", True)
        assert [one.excerpt[start:end] for start, end in one.marks] == ["Hühn"]
        assert (one.excerpt.startswith("…word"), one.excerpt.endswith("word…")) == (True, True)
        await studio.conversations.rename(ids[-1], "lighthouse")
        assert (await found("lighthouse"), await found("huhn")) == ([ids[-1]], [ids[-1]])
        await studio.conversations.rename(ids[-1], "teapot")
        assert (await found("lighthouse"), await found("teapot")) == ([], [ids[-1]])


async def test_a_copy_has_files_stars_and_tags_of_its_own_and_none_that_were_thrown_away(settings: Settings) -> None:
    [key] = await keep(settings.home, "local", [(finished(begun_turn()), [picture(f"#{n}", "t1") for n in (1, 2, 3)])])
    async with Studio(settings) as studio:
        files = studio.files(key)
        await files.write("notes/a.md", "狐", by="agent", is_untrusted=True)
        await files.write("b.bin", b"\0\xff", by="person")
        ids = {item.picture.handle: item.id for item in (await studio.gallery.page("local", GalleryQuery())).items}
        await studio.gallery.star("local", [ids["#3"]], True)
        await studio.gallery.tag("local", [ids["#1"]], "Poster")
        await studio.gallery.delete("local", [ids["#2"]])
        copy = await studio.conversations.duplicate(key)
        items = (await studio.gallery.page("local", GalleryQuery(conversation_id=copy.id))).items
        assert {one.picture.handle: (one.is_starred, one.tags) for one in items} == {
            "#1": (False, ("Poster",)),
            "#3": (True, ()),
        }
        there = studio.files(copy.id)
        assert [(one.name, one.is_untrusted) for one in await there.list()] == [("b.bin", False), ("notes/a.md", True)]
        await there.write("b.bin", "text now", by="person")
        await there.delete("notes/a.md")
        assert (await files.all_texts(), await there.all_texts()) == ({"notes/a.md": "狐"}, {"b.bin": "text now"})
        prices = {one.id: one.price_usd for one in await studio.conversations.list()}
        assert (prices[copy.id], prices[key]) == (0.0, 0.1)
        assert ([one.handle for one in copy.pictures], copy.gone) == (["#1", "#3"], ("#2",))


async def test_traces_keep_to_their_limit_and_the_oldest_turns_are_let_go_whole(settings: Settings) -> None:
    def noise(asked: Asked) -> Line:
        # It cannot be packed into much less than 10 KB.
        return says(random.randbytes(10_000).hex())

    changed = {"trace_limit_bytes": 100_000}
    async with Scene(settings.model_copy(update=changed), text=noise).studio() as studio:
        keys = [(await studio.conversations.create()).id for _ in range(12)]
        for key in keys:
            await run(studio, key, "hello")
        kept = [len(await studio.trace(key)) for key in keys]
        assert kept[0] == 0 < kept[-1]
        assert kept == sorted(kept), "the newest are kept"
        assert set(kept) == {0, kept[-1]}, "and no turn is kept by half"
    async with Scene(settings.model_copy(update={"trace_limit_bytes": 60_000}), text=noise).studio() as studio:
        await run(studio, keys[0], "hello again")
        assert sum([bool(await studio.trace(key)) for key in keys]) < sum(map(bool, kept))
        sizes = rows(settings.home / "aivista.db", "SELECT sum(size_bytes) AS n FROM trace_steps")
        assert 0 < sizes[0]["n"] <= 60_000

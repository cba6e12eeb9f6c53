from __future__ import annotations

import contextlib
import logging
import shutil
import sqlite3
from pathlib import Path

import pytest
from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine

import agent.storage
from agent.conversation import Conversation, TurnState
from agent.errors import ErrorCode, StorageFailure
from agent.messages import PromptMessage
from agent.storage.conversations import ConversationStore
from agent.storage.database import HEAD, migrate, open_database
from agent.storage.images import ImageStore
from agent.storage.journal import CallRecord
from agent.storage.spend import SpendBook
from agent.storage.workspace import WorkspaceStore
from tests.support.children import run_child
from tests.support.histories import LARGE_SIGNATURE, NOW, begun_turn, finished, picture

MIGRATIONS = Path(agent.storage.__path__[0]) / "migrations"


def tables(path: Path) -> set[tuple[str, str, str]]:
    """Every column, index and foreign key of a database, however its SQL is written."""
    found: set[tuple[str, str, str]] = set()
    with contextlib.closing(sqlite3.connect(path)) as database:
        names = [row[0] for row in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for name in names:
            for pragma in ("table_info", "index_list", "foreign_key_list"):
                rows = database.execute(f"PRAGMA {pragma}({name})").fetchall()
                # An index's place in its list says nothing.
                found |= {(name, pragma, str(row[1:] if pragma == "index_list" else row)) for row in rows}
    return found


def test_the_migrations_lead_to_the_same_tables_as_a_first_start(tmp_path: Path) -> None:
    open_database(tmp_path)[0].dispose()
    engine = create_engine(f"sqlite:///{tmp_path / 'migrated.db'}")
    with engine.begin() as connection:
        migrate(connection, None)
    engine.dispose()
    assert tables(tmp_path / "migrated.db") == tables(tmp_path / "aivista.db")


def test_the_newest_revision_is_that_of_the_migrations() -> None:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    assert ScriptDirectory.from_config(config).get_current_head() == HEAD


def test_alembic_is_not_loaded_when_nothing_is_to_be_migrated(tmp_path: Path) -> None:
    code = """
import sys
from pathlib import Path
from agent.storage.database import open_database
for _ in range(2):
    open_database(Path(sys.argv[1]))[0].dispose()
    print("alembic" in sys.modules)
"""
    assert run_child(code, str(tmp_path)).stdout.split() == ["False", "False"]


def test_the_database_is_private_and_keeps_a_log_ahead(tmp_path: Path) -> None:
    engine, set_aside = open_database(tmp_path / "home")
    with engine.connect() as connection:
        pragmas = ("journal_mode", "synchronous", "foreign_keys", "busy_timeout")
        values = [connection.exec_driver_sql(f"PRAGMA {name}").scalar() for name in pragmas]
        modes = {path.stat().st_mode & 0o777 for path in (tmp_path / "home").iterdir()}
    engine.dispose()
    assert values == ["wal", 1, 1, 20000]
    assert modes == {0o600}
    assert (tmp_path / "home").stat().st_mode & 0o777 == 0o700
    assert set_aside is None


async def test_an_unreadable_database_is_set_aside_and_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    rubbish = b"this was a database once " * 400
    (tmp_path / "aivista.db").write_bytes(rubbish)
    store = ConversationStore(tmp_path, ImageStore(tmp_path))
    with caplog.at_level(logging.WARNING):
        await store.open()
    assert store.set_aside is not None
    assert store.set_aside.read_bytes() == rubbish
    assert "set aside" in caplog.text
    conversation = await store.create("local")
    assert await store.get(conversation.id, "local") == conversation
    await store.aclose()


def test_a_truncated_database_is_set_aside(tmp_path: Path) -> None:
    open_database(tmp_path)[0].dispose()
    path = tmp_path / "aivista.db"
    path.write_bytes(path.read_bytes()[:4096])
    engine, set_aside = open_database(tmp_path)
    engine.dispose()
    assert set_aside is not None


def test_an_empty_file_is_a_first_start(tmp_path: Path) -> None:
    (tmp_path / "aivista.db").touch()
    engine, set_aside = open_database(tmp_path)
    engine.dispose()
    assert set_aside is None
    assert open_database(tmp_path)[1] is None


def test_a_database_of_a_newer_aivista_is_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "aivista.db"
    with contextlib.closing(sqlite3.connect(path)) as database:
        database.executescript(
            "CREATE TABLE alembic_version (version_num VARCHAR(32)); INSERT INTO alembic_version VALUES ('9999');"
        )
    before = path.read_bytes()
    with pytest.raises(StorageFailure, match="newer Aivista") as failure:
        open_database(tmp_path)
    assert failure.value.code is ErrorCode.STORAGE_BROKEN
    assert path.read_bytes() == before


def test_a_database_of_somebody_else_is_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "aivista.db"
    with contextlib.closing(sqlite3.connect(path)) as database:
        database.executescript("CREATE TABLE theirs (id INTEGER)")
    before = path.read_bytes()
    with pytest.raises(StorageFailure, match="not a database of Aivista"):
        open_database(tmp_path)
    assert path.read_bytes() == before


def test_a_folder_in_the_place_of_the_database_is_told(tmp_path: Path) -> None:
    (tmp_path / "aivista.db").mkdir()
    with pytest.raises(StorageFailure) as failure:
        open_database(tmp_path)
    assert failure.value.code is ErrorCode.STORAGE_BROKEN
    assert str(tmp_path) not in str(failure.value)


async def test_a_store_that_could_not_open_says_why_and_leaves_no_thread(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("in the way")
    store = ConversationStore(tmp_path / "home", ImageStore(tmp_path))
    with pytest.raises(StorageFailure):
        await store.open()
    with pytest.raises(RuntimeError, match="shutdown"):
        await store.open()


async def test_a_disk_that_takes_no_more_is_told_and_what_was_written_stays(tmp_path: Path) -> None:
    code = """
import asyncio, sys
from pathlib import Path
from agent.errors import StorageFailure
from agent.storage.conversations import ConversationStore
from agent.storage.images import ImageStore
from tests.support.histories import begun_turn

async def main():
    home = Path(sys.argv[1])
    store = ConversationStore(home, ImageStore(home))
    await store.open()
    conversation = await store.create("local")
    await store.begin_turn(conversation.id, begun_turn(text="kept"))
    try:
        await store.begin_turn(conversation.id, begun_turn("t2", "x" * 2_000_000))
    except StorageFailure as error:
        print(type(error).__name__)
    print(len((await store.get(conversation.id, "local")).turns), conversation.id)
    await store.aclose()

asyncio.run(main())
"""
    child = run_child(code, str(tmp_path), max_file_bytes=1_000_000)
    name, count, conversation_id = child.stdout.split()
    assert (name, count) == ("StorageFailure", "1"), child.stderr
    store = ConversationStore(tmp_path, ImageStore(tmp_path))
    await store.open()
    assert [turn.text for turn in (await store.get(conversation_id, "local")).turns] == ["kept"]
    await store.aclose()


async def test_a_failure_tells_nothing_of_what_was_written(tmp_path: Path) -> None:
    store = ConversationStore(tmp_path, ImageStore(tmp_path))
    await store.open()
    conversation = await store.create("local")
    with contextlib.closing(sqlite3.connect(tmp_path / "aivista.db")) as database:
        database.execute("DROP TABLE turns")
    with pytest.raises(StorageFailure) as failure:
        await store.begin_turn(conversation.id, begun_turn(text="a secret wish"))
    assert "no such table" in str(failure.value)
    assert "secret" not in str(failure.value)
    await store.aclose()


def of_version(revision: str, home: Path, source: Path) -> None:
    """Make a home as an Aivista of an earlier revision left it, with everything of the source that it knew."""
    shutil.copytree(source, home)
    (home / "aivista.db").unlink()
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    engine = create_engine(f"sqlite:///{home / 'aivista.db'}")
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, revision)
    engine.dispose()
    with contextlib.closing(sqlite3.connect(home / "aivista.db")) as database, database:
        database.execute("ATTACH ? AS newer", (str(source / "aivista.db"),))
        for table in ("conversations", "turns", "pictures"):
            columns = ", ".join(row[1] for row in database.execute(f"PRAGMA main.table_info({table})"))
            database.execute(f"INSERT INTO main.{table} ({columns}) SELECT {columns} FROM newer.{table}")


def of_the_first_version(home: Path, source: Path) -> None:
    """Make a home as the first Aivista left it, with everything that the source holds."""
    of_version("0001", home, source)
    with contextlib.closing(sqlite3.connect(home / "aivista.db")) as database, database:
        database.execute(
            "UPDATE turns SET details = json_set(json_remove(details, '$.provider', '$.request_id', '$.timings',"
            " '$.settings.review_rounds'), '$.settings.review', json('true'))"
        )
        database.execute("UPDATE pictures SET details = json_remove(details, '$.review', '$.round', '$.call')")


async def written(home: Path) -> tuple[str, str]:
    """Fill a home with two conversations: one with every kind of part, one with a single turn."""
    store = ConversationStore(home, ImageStore(home))
    await store.open()
    rich, plain = await store.create("ann"), await store.create("bob")
    upload = picture("#1", "t1", is_generated=False)
    await store.begin_turn(rich.id, begun_turn(uploads=(upload.image,)), [upload])
    await store.add_picture(rich.id, picture("#2", "t1"))
    await store.finish_turn(rich.id, finished(begun_turn(uploads=(upload.image,))))
    second = begun_turn("t2", "and a second one").model_copy(update={"parent": "t1"})
    await store.begin_turn(rich.id, second)
    await store.finish_turn(rich.id, second.model_copy(update={"state": TurnState.FAILED}))
    await store.begin_turn(plain.id, begun_turn("t1", "the same id in another conversation"))
    await store.finish_turn(plain.id, finished(begun_turn("t1", "the same id in another conversation")))
    await store.mark_picture(rich.id, "#2", True)
    await store.aclose()
    return rich.id, plain.id


def unversioned(conversation: Conversation) -> Conversation:
    """Return the conversation without its version, which begins anew in a home that was brought up to date."""
    return conversation.model_copy(update={"version": 0})


async def everything(home: Path, ids: tuple[str, str]) -> list[object]:
    """Return all that a home tells of the two conversations."""
    store = ConversationStore(home, ImageStore(home))
    await store.open()
    assert store.set_aside is None
    told: list[object] = []
    for conversation_id, owner in zip(ids, ("ann", "bob"), strict=True):
        told += [unversioned(await store.get(conversation_id, owner)), await store.list(owner)]
    told.append(await store.answer_of(ids[0], "#2"))
    await store.aclose()
    return told


async def test_a_home_of_the_first_version_is_brought_up_to_date_with_everything_kept(tmp_path: Path) -> None:
    ids = await written(tmp_path / "new")
    of_the_first_version(tmp_path / "old", tmp_path / "new")
    expected = [
        _with_review_off(one) if isinstance(one, Conversation) else one
        for one in await everything(tmp_path / "new", ids)
    ]
    assert await everything(tmp_path / "old", ids) == expected
    answer = expected[-1]
    assert isinstance(answer, PromptMessage)
    assert LARGE_SIGNATURE in [getattr(part, "thought_signature", None) for part in answer.parts]
    assert tables(tmp_path / "old" / "aivista.db") == tables(tmp_path / "new" / "aivista.db")
    with contextlib.closing(sqlite3.connect(tmp_path / "old" / "aivista.db")) as database:
        assert database.execute("SELECT version_num FROM alembic_version").fetchall() == [(HEAD,)]
        assert database.execute("PRAGMA foreign_key_check").fetchall() == []
        assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


async def test_a_home_of_the_first_version_is_a_tree_with_a_gallery_after_the_upgrade(tmp_path: Path) -> None:
    ids = await written(tmp_path / "new")
    of_the_first_version(tmp_path / "old", tmp_path / "new")
    await everything(tmp_path / "old", ids)
    found = []
    for home in ("new", "old"):
        with contextlib.closing(sqlite3.connect(tmp_path / home / "aivista.db")) as database:
            pictures = database.execute("SELECT handle, owner, model, shape, source FROM pictures ORDER BY id")
            turns = database.execute("SELECT conversation_id, id, parent FROM turns ORDER BY conversation_id, id")
            heads = database.execute("SELECT id, head FROM conversations ORDER BY id")
            found.append([pictures.fetchall(), turns.fetchall(), heads.fetchall()])
    assert found[0] == found[1]
    assert {row[4] for row in found[0][0]} == {"uploaded", "made"}
    assert all(row[3] for row in found[0][0])


async def test_a_home_of_the_first_version_goes_on_as_any_other(tmp_path: Path) -> None:
    ids = await written(tmp_path / "new")
    of_the_first_version(tmp_path / "old", tmp_path / "new")
    store = ConversationStore(tmp_path / "old", ImageStore(tmp_path / "old"))
    await store.open()
    turn = begun_turn("t3", "one more", parent="t2").model_copy(update={"request_id": "r1"})
    await store.begin_turn(ids[0], turn)
    await store.journal.send(CallRecord(conversation_id=ids[0], turn_id="t3", name="planner:1", model="m"), is_new=True)
    assert await store.requested_turn(ids[0], "r1") == "t3"
    assert list(await store.journal.calls("t3")) == ["planner:1"]
    assert [one.id for one in (await store.get(ids[0], "ann")).turns] == ["t1", "t2", "t3"]
    await store.remove(ids[0], "ann")
    assert await store.journal.calls("t3") == {}
    await store.aclose()


async def test_an_upgrade_that_breaks_off_leaves_the_first_version_as_it_was(tmp_path: Path) -> None:
    ids = await written(tmp_path / "new")
    of_the_first_version(tmp_path / "old", tmp_path / "new")
    path = tmp_path / "old" / "aivista.db"
    with contextlib.closing(sqlite3.connect(path)) as database, database:
        database.execute("CREATE TABLE calls (in_the_way INTEGER)")
    before = tables(path)
    with pytest.raises(StorageFailure):
        open_database(tmp_path / "old")
    assert tables(path) == before
    with contextlib.closing(sqlite3.connect(path)) as database, database:
        database.execute("DROP TABLE calls")
    assert len(await everything(tmp_path / "old", ids)) == 5


async def test_a_home_from_before_workspaces_has_empty_ones_and_its_spend_counts_as_before(tmp_path: Path) -> None:
    ids = await written(tmp_path / "new")
    of_version("0003", tmp_path / "old", tmp_path / "new")
    found = []
    for home in (tmp_path / "new", tmp_path / "old"):
        store = ConversationStore(home, ImageStore(home))
        await store.open()
        workspace = WorkspaceStore(store).of(ids[0], "ann")
        assert await workspace.list() == ()
        assert (await workspace.write("a.md", "text", by="person")).version == 1
        assert (await SpendBook(store).month("ann", NOW.date())).price_usd > 0
        found.append([unversioned(await store.get(ids[0], "ann")), await SpendBook(store).month("ann", NOW.date())])
        await store.aclose()
    assert found[0] == found[1]
    assert tables(tmp_path / "old" / "aivista.db") == tables(tmp_path / "new" / "aivista.db")


def _with_review_off(conversation: Conversation) -> Conversation:
    """Return the conversation as the first version's records say it: of a review they knew only a truth value."""
    return conversation.model_copy(
        update={
            "turns": tuple(
                turn.model_copy(update={"settings": turn.settings.model_copy(update={"review": "off"})})
                for turn in conversation.turns
            )
        }
    )

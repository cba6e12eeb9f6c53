from __future__ import annotations

import contextlib
import logging
import sqlite3
from pathlib import Path

import pytest
from alembic.config import Config
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine

import agent.storage
from agent.errors import ErrorCode, StorageFailure
from agent.storage.conversations import ConversationStore
from agent.storage.database import HEAD, migrate, open_database
from agent.storage.images import ImageStore
from tests.support.children import run_child
from tests.support.histories import begun_turn

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
    assert values == ["wal", 1, 1, 5000]
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

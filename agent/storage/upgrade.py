"""A database brought to the tables of this version: what `tables` names and it has not is added, then filled from what
it holds. So what is new needs a default there and another `HEAD` here, and a fill where the default is not true."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from math import sqrt
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.schema import CreateColumn, CreateTable

from agent.errors import ErrorCode, StorageFailure
from agent.storage.tables import CHECKPOINTS, FULL_TEXT, METADATA, TURNS

NAME = "aivista.db"
HEAD = "0011"
_KNOWN = frozenset(f"{number:04}" for number in range(1, int(HEAD) + 1))
_SHAPES = (*("1:8", "1:4", "9:16", "2:3", "3:4", "4:5", "1:1", "5:4", "4:3", "3:2", "16:9", "21:9", "4:1", "8:1"),)
# By the first revision that had it.
_FILLS = (
    # A conversation was a line so far; whom a picture belongs to, and how it came to be, stood in what its row says.
    (
        "0003",
        "UPDATE turns SET parent = (SELECT earlier.id FROM turns AS earlier WHERE earlier.conversation_id = "
        "turns.conversation_id AND earlier.position < turns.position ORDER BY earlier.position DESC LIMIT 1)",
    ),
    (
        "0003",
        "UPDATE conversations SET head = (SELECT turns.id FROM turns WHERE turns.conversation_id = conversations.id "
        "ORDER BY turns.position DESC LIMIT 1)",
    ),
    (
        "0003",
        "UPDATE pictures SET owner = (SELECT conversations.owner FROM conversations WHERE conversations.id = "
        "pictures.conversation_id), model = coalesce(json_extract(receipt, '$.model_label'), ''), source = CASE "
        "WHEN origin IN ('uploaded', 'edited') THEN origin ELSE 'made' END",
    ),
    (
        "0003",
        "UPDATE pictures SET shape = CASE {shapes} END "
        "WHERE json_extract(details, '$.image.width') > 0 AND json_extract(details, '$.image.height') > 0",
    ),
    # Of earlier files nobody knows whether they came from outside: they count as if they had.
    ("0007", "UPDATE workspace_files SET is_untrusted = 1"),
    ("0008", "UPDATE pictures SET position = id, call = coalesce(json_extract(details, '$.call'), '')"),
    # A call brings one picture: of several the first is the one that is known by it.
    (
        "0008",
        "UPDATE pictures SET call = '' WHERE call <> '' AND id NOT IN (SELECT min(id) FROM pictures WHERE call <> '' "
        "GROUP BY conversation_id, turn_id, call)",
    ),
    # One turn at a time: of several that a dead process left behind the newest may go on by itself.
    (
        "0008",
        "UPDATE turns SET state = 'interrupted' WHERE state = 'running' AND EXISTS (SELECT 1 FROM turns AS later WHERE "
        "later.conversation_id = turns.conversation_id AND later.state = 'running' AND later.position > "
        "turns.position)",
    ),
)
_SIGNED = (("turns", "messages"), ("pictures", "answer"), ("calls", "answer"))
_AT_ONCE = 500
_OF = "thread_id checkpoint_ns checkpoint_id"
_CHECKPOINTED = {
    "checkpoints": f"{_OF} parent_checkpoint_id type checkpoint metadata",
    "writes": f"{_OF} task_id idx channel type value",
}


def bring_up_to_date(connection: sa.Connection, revision: str | None) -> None:
    """Bring a database of this revision, None for an empty one, to `HEAD`, within the transaction that is open.

    Raises StorageFailure when the revision is not known here.
    """
    before = revision or HEAD
    if before not in _KNOWN:
        detail = f"{NAME} was written by a newer Aivista (revision {revision})"
        raise StorageFailure(ErrorCode.STORAGE_BROKEN, detail=detail)
    if before < "0011":
        _name_signatures(connection)
    if before < "0002":
        _make_turns_anew(connection)
    _add_columns(connection)
    METADATA.create_all(connection)
    for statement in (*FULL_TEXT, *CHECKPOINTS):
        connection.exec_driver_sql(statement)
    for since, statement in _FILLS:
        if before < since:
            # As it stands: SQLAlchemy would look for parameters after the colons.
            connection.exec_driver_sql(statement.replace("{shapes}", _shapes()))
    for table in METADATA.sorted_tables:
        for index in table.indexes:
            index.create(connection, checkfirst=True)
    if before < "0009":
        _take_over_checkpoints(connection)
    # The table by which versions of before know theirs, and that this one is newer.
    connection.exec_driver_sql(
        "CREATE TABLE IF NOT EXISTS alembic_version "
        "(version_num VARCHAR(32) NOT NULL CONSTRAINT alembic_version_pkc PRIMARY KEY)"
    )
    connection.exec_driver_sql("DELETE FROM alembic_version")
    connection.exec_driver_sql("INSERT INTO alembic_version VALUES (?)", (HEAD,))


def _add_columns(connection: sa.Connection) -> None:
    there = sa.inspect(connection)
    for table in METADATA.sorted_tables:
        known = {one["name"] for one in there.get_columns(table.name)} if there.has_table(table.name) else set()
        for column in table.columns if known else ():
            if column.name not in known:
                added = CreateColumn(column).compile(dialect=connection.dialect)
                connection.exec_driver_sql(f"ALTER TABLE {table.name} ADD COLUMN {added}")


def _make_turns_anew(connection: sa.Connection) -> None:
    """Give the turns the constraint that a request runs once: SQLite adds none to a table that is there."""
    names = [one["name"] for one in sa.inspect(connection).get_columns(TURNS.name)]
    connection.exec_driver_sql("ALTER TABLE turns RENAME TO turns_before")
    connection.execute(CreateTable(TURNS))
    before = sa.table("turns_before", *map(sa.column, names))
    connection.execute(sa.insert(TURNS).from_select(names, sa.select(before)))
    connection.exec_driver_sql("DROP TABLE turns_before")


def _shapes() -> str:
    """Return what names a picture's ratio by the nearest common one."""
    ratios = [int(wide) / int(high) for wide, high in (shape.split(":") for shape in _SHAPES)]
    side = "CAST(json_extract(details, '$.image.width') AS REAL) / json_extract(details, '$.image.height')"
    whens = " ".join(
        f"WHEN {side} < {sqrt(ratio * following):.6f} THEN '{shape}'"
        for shape, ratio, following in zip(_SHAPES, ratios, ratios[1:], strict=False)
    )
    return f"{whens} ELSE '{_SHAPES[-1]}'"


def _name_signatures(connection: sa.Connection) -> None:
    """Name large signatures by the parts that carry them; their places stood in a column of its own."""
    there = sa.inspect(connection)
    for name, column in _SIGNED:
        if not there.has_table(name):
            continue
        rows = sa.table(name, sa.column("_rowid_"), sa.column(column), sa.column("signatures"))
        number = rows.c["_rowid_"]
        signed = sa.select(rows).where(rows.c[column].is_not(None), rows.c.signatures != "[]").order_by(number)
        last = 0
        while some := connection.execute(signed.where(number > last).limit(_AT_ONCE)).all():
            for last, messages, places in some:
                named = {column: _named(messages, places)}
                connection.execute(sa.update(rows).where(number == last).values(named))
        connection.exec_driver_sql(f"ALTER TABLE {name} DROP COLUMN signatures")


def _named(told: str, places: str) -> str:
    """Return messages, a message, or what was heard of one, with the digests of its large signatures; a row that is
    damaged stays as it is."""
    try:
        value = json.loads(told)
        messages: list[dict[str, Any]] = value if isinstance(value, list) else [value]
        for place in json.loads(places):
            messages[place["message"]]["parts"][place["part"]]["signature_digest"] = place["digest"]
    except (ValueError, LookupError, TypeError):
        return told
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _take_over_checkpoints(connection: sa.Connection) -> None:
    """Take over where turns stand, which had a database of its own."""
    before = Path(connection.engine.url.database or "").with_name("checkpoints.db")
    if not before.exists():
        return
    # Damaged, it tells nothing: what was answered is in the journal.
    with contextlib.suppress(sqlite3.Error), contextlib.closing(sqlite3.connect(before)) as database:
        for name, columns in _CHECKPOINTED.items():
            table = sa.table(name, *map(sa.column, columns.split()))
            rows = database.execute(str(sa.select(table))).fetchall()
            if rows:
                connection.execute(sa.insert(table), [dict(zip(columns.split(), row, strict=True)) for row in rows])

"""Upgrade a database to the tables of this version.

What `tables` has and the database lacks is added, then filled from existing data. So an addition needs a default there
and a new `HEAD` here, and a fill where the default is not right.
"""

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
_SHAPES = ("1:8", "1:4", "9:16", "2:3", "3:4", "4:5", "1:1", "5:4", "4:3", "3:2", "16:9", "21:9", "4:1", "8:1")
# By the first revision that has it.
_FILLS = (
    # Older conversations were a single line; a picture's owner and source were only in its other columns.
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
    # The origin of older files is unknown: they count as untrusted.
    ("0007", "UPDATE workspace_files SET is_untrusted = 1"),
    ("0008", "UPDATE pictures SET position = id, call = coalesce(json_extract(details, '$.call'), '')"),
    # A call produces one picture: of several, only the first keeps the call's name.
    (
        "0008",
        "UPDATE pictures SET call = '' WHERE call <> '' AND id NOT IN (SELECT min(id) FROM pictures WHERE call <> '' "
        "GROUP BY conversation_id, turn_id, call)",
    ),
    # One running turn at a time: of several that a dead process left, only the newest may resume by itself.
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
    """Upgrade a database of this revision, None for an empty one, to `HEAD`, within the open transaction.

    Raises StorageFailure for an unknown revision.
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
            # As raw SQL: SQLAlchemy would take the text after colons for parameters.
            connection.exec_driver_sql(statement.replace("{shapes}", _shapes()))
    for table in METADATA.sorted_tables:
        for index in table.indexes:
            index.create(connection, checkfirst=True)
    if before < "0009":
        _take_over_checkpoints(connection)
    # Older versions read their revision from this table, and notice that this one is newer.
    connection.exec_driver_sql(
        "CREATE TABLE IF NOT EXISTS alembic_version "
        "(version_num VARCHAR(32) NOT NULL CONSTRAINT alembic_version_pkc PRIMARY KEY)"
    )
    connection.exec_driver_sql("DELETE FROM alembic_version")
    connection.exec_driver_sql("INSERT INTO alembic_version VALUES (?)", (HEAD,))


def _add_columns(connection: sa.Connection) -> None:
    there = sa.inspect(connection)
    for table in METADATA.sorted_tables:
        if not there.has_table(table.name):
            continue
        known = {one["name"] for one in there.get_columns(table.name)}
        for column in table.columns:
            if column.name not in known:
                added = CreateColumn(column).compile(dialect=connection.dialect)
                connection.exec_driver_sql(f"ALTER TABLE {table.name} ADD COLUMN {added}")


def _make_turns_anew(connection: sa.Connection) -> None:
    """Rebuild the table of turns with its unique request id: SQLite cannot add a constraint to an existing table."""
    names = [one["name"] for one in sa.inspect(connection).get_columns(TURNS.name)]
    connection.exec_driver_sql("ALTER TABLE turns RENAME TO turns_before")
    connection.execute(CreateTable(TURNS))
    before = sa.table("turns_before", *map(sa.column, names))
    connection.execute(sa.insert(TURNS).from_select(names, sa.select(before)))
    connection.exec_driver_sql("DROP TABLE turns_before")


def _shapes() -> str:
    """Return the SQL cases that name a picture's ratio by the nearest common one."""
    ratios = [int(wide) / int(high) for wide, high in (shape.split(":") for shape in _SHAPES)]
    side = "CAST(json_extract(details, '$.image.width') AS REAL) / json_extract(details, '$.image.height')"
    whens = " ".join(
        f"WHEN {side} < {sqrt(ratio * following):.6f} THEN '{shape}'"
        for shape, ratio, following in zip(_SHAPES, ratios, ratios[1:], strict=False)
    )
    return f"{whens} ELSE '{_SHAPES[-1]}'"


def _name_signatures(connection: sa.Connection) -> None:
    """Store the digests of large signatures in their parts; before, their places were in a column of their own."""
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


def _named(text: str, places: str) -> str:
    """Return stored messages with the digests of their large signatures; a damaged value stays as it is."""
    try:
        value = json.loads(text)
        messages: list[dict[str, Any]] = value if isinstance(value, list) else [value]
        for place in json.loads(places):
            messages[place["message"]]["parts"][place["part"]]["signature_digest"] = place["digest"]
    except (ValueError, LookupError, TypeError):
        return text
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _take_over_checkpoints(connection: sa.Connection) -> None:
    """Import the checkpoints, which had a database of their own."""
    before = Path(connection.engine.url.database or "").with_name("checkpoints.db")
    if not before.exists():
        return
    # A damaged one is skipped: the journal has the answers.
    with contextlib.suppress(sqlite3.Error), contextlib.closing(sqlite3.connect(before)) as database:
        for name, columns in _CHECKPOINTED.items():
            table = sa.table(name, *map(sa.column, columns.split()))
            rows = database.execute(str(sa.select(table))).fetchall()
            if rows:
                connection.execute(sa.insert(table), [dict(zip(columns.split(), row, strict=True)) for row in rows])

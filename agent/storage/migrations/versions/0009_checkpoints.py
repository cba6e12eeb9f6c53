"""Where turns stand, which had a database of its own, in the tables of LangGraph's saver."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"

_TABLES = (
    "CREATE TABLE checkpoints (thread_id TEXT NOT NULL, checkpoint_ns TEXT NOT NULL DEFAULT '', "
    "checkpoint_id TEXT NOT NULL, parent_checkpoint_id TEXT, type TEXT, checkpoint BLOB, metadata BLOB, "
    "PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id))",
    "CREATE TABLE writes (thread_id TEXT NOT NULL, checkpoint_ns TEXT NOT NULL DEFAULT '', "
    "checkpoint_id TEXT NOT NULL, task_id TEXT NOT NULL, task_path TEXT NOT NULL DEFAULT '', idx INTEGER NOT NULL, "
    "channel TEXT NOT NULL, type TEXT, value BLOB, "
    "PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id, task_id, idx))",
)
_OF = "thread_id checkpoint_ns checkpoint_id"
_COLUMNS = {
    "checkpoints": f"{_OF} parent_checkpoint_id type checkpoint metadata",
    "writes": f"{_OF} task_id idx channel type value",
}


def upgrade() -> None:
    """Add the tables, and what stands in the database that was there."""
    connection = op.get_bind()
    for statement in _TABLES:
        connection.exec_driver_sql(statement)
    before = Path(connection.engine.url.database or "").with_name("checkpoints.db")
    if not before.exists():
        return
    # Damaged, it tells nothing: what was answered is in the journal.
    with contextlib.suppress(sqlite3.Error), contextlib.closing(sqlite3.connect(before)) as database:
        for name, columns in _COLUMNS.items():
            table = sa.table(name, *map(sa.column, columns.split()))
            rows = database.execute(str(sa.select(table))).fetchall()
            if rows:
                connection.execute(sa.insert(table), [dict(zip(columns.split(), row, strict=True)) for row in rows])

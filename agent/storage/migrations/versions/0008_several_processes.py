"""What several processes on one home need: versions, turns in line, reserved handles, pictures in order."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"

_NO = sa.text("0")
_NOTHING = sa.text("''")
_FILL = (
    "UPDATE pictures SET position = id, call = coalesce(json_extract(details, '$.call'), '')",
    # A call brings one picture: of several the first is the one that is known by it.
    "UPDATE pictures SET call = '' WHERE call <> '' AND id NOT IN (SELECT min(id) FROM pictures WHERE call <> '' "
    "GROUP BY conversation_id, turn_id, call)",
    # One turn at a time: of several that a dead process left behind the newest may go on by itself.
    "UPDATE turns SET state = 'interrupted' WHERE state = 'running' AND EXISTS (SELECT 1 FROM turns AS later WHERE "
    "later.conversation_id = turns.conversation_id AND later.state = 'running' AND later.position > turns.position)",
)
_COLUMNS = {
    "conversations": ("version", "request_id"),
    "turns": ("reserved_usd", "is_stop_requested"),
    "calls": ("handle", "position", "reserved_usd"),
    "pictures": ("position", "call"),
}
_INDEXES = (
    ("ix_conversations_request_id", "conversations", ("owner", "request_id"), True, "request_id IS NOT NULL"),
    ("ix_turns_running", "turns", ("conversation_id",), True, "state = 'running'"),
    ("ix_turns_stop_requested", "turns", ("runner",), False, "is_stop_requested = 1"),
    ("ix_calls_handle", "calls", ("conversation_id", "handle"), True, "handle IS NOT NULL"),
    ("ix_pictures_conversation_id_position", "pictures", ("conversation_id", "position"), False, ""),
    ("ix_pictures_call", "pictures", ("conversation_id", "turn_id", "call"), True, "call <> ''"),
)


def upgrade() -> None:
    """Add the columns, the indexes and the queue, filled from what is there."""
    op.add_column("conversations", sa.Column("version", sa.Integer, nullable=False, server_default=_NO))
    op.add_column("conversations", sa.Column("request_id", sa.String(128), nullable=True))
    op.add_column("turns", sa.Column("reserved_usd", sa.Float, nullable=False, server_default=_NO))
    op.add_column("turns", sa.Column("is_stop_requested", sa.Boolean, nullable=False, server_default=_NO))
    op.add_column("calls", sa.Column("handle", sa.String(32), nullable=True))
    op.add_column("calls", sa.Column("position", sa.Integer, nullable=True))
    op.add_column("calls", sa.Column("reserved_usd", sa.Float, nullable=False, server_default=_NO))
    op.add_column("pictures", sa.Column("position", sa.Integer, nullable=False, server_default=_NO))
    op.add_column("pictures", sa.Column("call", sa.String(128), nullable=False, server_default=_NOTHING))
    for statement in _FILL:
        # As it stands: SQLAlchemy would look for parameters after the colons.
        op.get_bind().exec_driver_sql(statement)
    op.create_table(
        "turn_queue",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("conversation_id", sa.String(64), nullable=False),
        sa.Column("runner", sa.String(64), nullable=False),
        sa.Column("request_id", sa.String(128), nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_turn_queue"),
        sa.ForeignKeyConstraint(
            ["conversation_id"], ["conversations.id"], name="fk_turn_queue_conversations", ondelete="CASCADE"
        ),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_turn_queue_conversation_id_id", "turn_queue", ["conversation_id", "id"])
    for name, table, columns, is_unique, where in _INDEXES:
        op.create_index(name, table, list(columns), unique=is_unique, sqlite_where=sa.text(where) if where else None)

"""What each step of a turn was sent and answered."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """Add the table of steps."""
    op.create_table(
        "trace_steps",
        sa.Column("conversation_id", sa.String(64), nullable=False),
        sa.Column("turn_id", sa.String(64), nullable=False),
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("began_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("size_bytes", sa.Integer, nullable=False),
        sa.Column("summary", sa.LargeBinary, nullable=False),
        sa.Column("contents", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("conversation_id", "turn_id", "number", name="pk_trace_steps"),
        sa.ForeignKeyConstraint(
            ["conversation_id"], ["conversations.id"], name="fk_trace_steps_conversations", ondelete="CASCADE"
        ),
    )
    op.create_index("ix_trace_steps_turn_id_began_at_size_bytes", "trace_steps", ["turn_id", "began_at", "size_bytes"])

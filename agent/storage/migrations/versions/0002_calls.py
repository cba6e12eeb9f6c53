"""The journal of paid calls, and requests that run once."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Add the journal's table, and the name that a request was sent under."""
    op.create_table(
        "calls",
        sa.Column("turn_id", sa.String(64), nullable=False),
        sa.Column("name", sa.String(128), nullable=False),
        sa.Column("conversation_id", sa.String(64), nullable=False),
        sa.Column("model", sa.String(128), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("price_usd", sa.Float, nullable=False),
        sa.Column("error_code", sa.String(64), nullable=True),
        sa.Column("answer", sa.Text, nullable=True),
        sa.Column("signatures", sa.Text, nullable=True),
        sa.PrimaryKeyConstraint("turn_id", "name", name="pk_calls"),
        sa.ForeignKeyConstraint(
            ["conversation_id"], ["conversations.id"], name="fk_calls_conversations", ondelete="CASCADE"
        ),
    )
    op.create_index("ix_calls_conversation_id", "calls", ["conversation_id"])
    with op.batch_alter_table("turns") as turns:
        turns.add_column(sa.Column("request_id", sa.String(128), nullable=True))
        turns.create_unique_constraint("uq_turns_conversation_id_request_id", ["conversation_id", "request_id"])

"""Conversations, their turns and their pictures."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision: str | None = None


def upgrade() -> None:
    """Create the first tables."""
    op.create_table(
        "conversations",
        sa.Column("id", sa.String(64), nullable=False),
        sa.Column("owner", sa.String(128), nullable=False),
        sa.Column("title", sa.Text, nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_conversations"),
    )
    op.create_index("ix_conversations_owner_updated_at", "conversations", ["owner", "updated_at"])
    _create_turns()
    _create_pictures()


def _create_turns() -> None:
    op.create_table(
        "turns",
        sa.Column("conversation_id", sa.String(64), nullable=False),
        sa.Column("id", sa.String(64), nullable=False),
        sa.Column("position", sa.Integer, nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("runner", sa.String(64), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("price_usd", sa.Float, nullable=False),
        sa.Column("messages", sa.Text, nullable=False),
        sa.Column("signatures", sa.Text, nullable=False),
        sa.Column("components", sa.Text, nullable=False),
        sa.Column("details", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("conversation_id", "id", name="pk_turns"),
        sa.ForeignKeyConstraint(
            ["conversation_id"], ["conversations.id"], name="fk_turns_conversations", ondelete="CASCADE"
        ),
    )
    op.create_index("ix_turns_conversation_id_position", "turns", ["conversation_id", "position"])
    op.create_index("ix_turns_state", "turns", ["state"])


def _create_pictures() -> None:
    op.create_table(
        "pictures",
        sa.Column("id", sa.Integer, nullable=False, autoincrement=True),
        sa.Column("conversation_id", sa.String(64), nullable=False),
        sa.Column("handle", sa.String(32), nullable=False),
        sa.Column("turn_id", sa.String(64), nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("origin", sa.String(16), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("is_marked", sa.Boolean, nullable=False),
        sa.Column("receipt", sa.Text, nullable=True),
        sa.Column("details", sa.Text, nullable=False),
        sa.Column("answer", sa.Text, nullable=True),
        sa.Column("signatures", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_pictures"),
        sa.ForeignKeyConstraint(
            ["conversation_id"], ["conversations.id"], name="fk_pictures_conversations", ondelete="CASCADE"
        ),
        sa.UniqueConstraint("conversation_id", "handle", name="uq_pictures_conversation_id_handle"),
    )
    op.create_index("ix_pictures_digest", "pictures", ["digest"])
    op.create_index("ix_pictures_created_at", "pictures", ["created_at"])

"""Workspaces of files; turns that came with an archive."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"

_NO = sa.text("0")


def upgrade() -> None:
    """Add the table of files, and the columns."""
    op.create_table(
        "workspace_files",
        sa.Column("conversation_id", sa.String(64), nullable=False),
        sa.Column("key", sa.String(480), nullable=False),
        sa.Column("name", sa.String(120), nullable=False),
        sa.Column("size_bytes", sa.Integer, nullable=False),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("written_by", sa.String(16), nullable=False),
        sa.Column("is_untrusted", sa.Boolean, nullable=False),
        sa.Column("digest", sa.LargeBinary(32), nullable=False),
        sa.Column("content", sa.LargeBinary, nullable=False),
        sa.PrimaryKeyConstraint("conversation_id", "key", name="pk_workspace_files"),
        sa.ForeignKeyConstraint(
            ["conversation_id"], ["conversations.id"], name="fk_workspace_files_conversations", ondelete="CASCADE"
        ),
    )
    op.add_column("conversations", sa.Column("file_version", sa.Integer, nullable=False, server_default=_NO))
    op.add_column("turns", sa.Column("is_imported", sa.Boolean, nullable=False, server_default=_NO))

"""Pictures counted by kind from an index alone."""

from __future__ import annotations

from alembic import op

revision = "0005"
down_revision = "0004"

_COLUMNS = ("owner", "deleted_at", "model", "shape", "source", "is_starred", "created_at")


def upgrade() -> None:
    """Add the index."""
    op.create_index("ix_pictures_counted", "pictures", list(_COLUMNS))

"""Files of before, of which nobody knows whether they came from outside, count as if they had."""

from __future__ import annotations

from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    """Mark them all."""
    op.execute("UPDATE workspace_files SET is_untrusted = 1")
